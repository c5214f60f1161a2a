"""When a job's data loader workers were all replaced by new ones, and what that cost the GPU."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from gpuwatch.diagnosis.window import Turnover
from gpuwatch.history import History
from gpuwatch.model import ProcessKey, ProcessReading, ProcessRole

KEPT_S = 1800.0
#: Idle time is counted from this long before the new workers to this long after them.
AROUND_S = 12.0


@dataclass(slots=True)
class TurnoverTracker:
    """`update` once a tick."""

    turnovers: deque[Turnover] = field(default_factory=deque)
    _workers: frozenset[ProcessKey] = frozenset()
    _pending: tuple[float, int] | None = None  # when, how many; until its cost can be told

    def reset(self) -> None:
        """A new job."""
        self.turnovers.clear()
        self._workers, self._pending = frozenset(), None

    def update(self, now: float, family: Sequence[ProcessReading], history: History, gpu: str) -> None:
        """`family`: the descendants that are there now."""
        while self.turnovers and self.turnovers[0].time_s < now - KEPT_S:
            self.turnovers.popleft()
        workers = frozenset(p.key for p in family if p.role is ProcessRole.WORKER)
        if workers and workers != self._workers:
            # Another loader beside the first (validation) leaves some of the old ones.
            if self._workers and not workers & self._workers:
                self._pending = (now, len(workers))
            self._workers = workers
        if self._pending is not None and now - self._pending[0] >= AROUND_S:
            time_s, count = self._pending
            self._pending = None
            self.turnovers.append(Turnover(time_s, count, _idle_s(history, gpu)))


def _idle_s(history: History, gpu: str) -> float:
    """Idle seconds of the GPU around the change."""
    values = history.present(gpu, "utilization_ratio", 2 * AROUND_S)
    step_s = 2 * AROUND_S / len(values) if values else 0.0
    return sum(1.0 - value for value in values if value < 0.5) * step_s
