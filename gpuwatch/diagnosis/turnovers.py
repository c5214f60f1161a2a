"""When a job's data loader workers were all replaced by new ones, and what that cost the GPU."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from gpuwatch.diagnosis.window import Turnover
from gpuwatch.history import History
from gpuwatch.model import ProcessKey, ProcessReading, ProcessRole

KEPT_S = 1800.0
#: What a change cost is looked for from this long before the new workers to this long after them.
BEFORE_S, AFTER_S = 4.0, 12.0
#: The time without a change that it is compared with: the last minutes, if enough is left of them (our own).
USUAL_S, LEAST_USUAL_S = 300.0, 20.0
#: A tick below this part of the usual utilization belongs to the gap; where next to nothing is usual,
#: no gap can be told.
GAP_PART, LEAST_USUAL = 0.5, 0.05


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

    def update(
        self,
        now: float,
        trainer: ProcessReading | None,
        family: Sequence[ProcessReading],
        history: History,
        gpu: str,
    ) -> None:
        """`family`: the trainer's descendants that are there now."""
        while self.turnovers and self.turnovers[0].time_s < now - KEPT_S:
            self.turnovers.popleft()
        workers = frozenset(p.key for p in family if p.role is ProcessRole.WORKER)
        if workers and workers != self._workers:
            # Another loader beside the first (validation) leaves some of the old ones.
            if self._workers and not workers & self._workers:
                self._pending = (now, len(workers))
            self._workers = workers
        if self._pending is not None and now - self._pending[0] >= AFTER_S:
            time_s, count = self._pending
            self._pending = None
            times = history.times(USUAL_S)
            values = history.values(gpu, "utilization_ratio", USUAL_S)
            changes = [*(one.time_s for one in self.turnovers), time_s]
            lost = lost_s(times, values, changes)
            self.turnovers.append(Turnover(time_s, count, lost, _written(history, trainer)))


def _written(history: History, trainer: ProcessReading | None) -> float | None:
    if trainer is None:
        return None
    name = f"process:{trainer.pid}:{trainer.start_ticks}"
    rate = history.mean(name, "write_bytes_per_s", BEFORE_S + AFTER_S)
    return None if rate is None else rate * (BEFORE_S + AFTER_S)


def lost_s(times: Sequence[float], values: Sequence[float], changes: Sequence[float]) -> float:
    """Seconds of its usual work (`values`: utilization, NaN for gaps) that a GPU lost at the last change.

    A GPU that waits in every step waits around a change too; only what is beyond the usual counts, and
    no more than one coherent gap.
    """
    points = [(time, value) for time, value in zip(times, values, strict=True) if value == value]
    if len(points) < 2:
        return 0.0
    step_s = (points[-1][0] - points[0][0]) / (len(points) - 1)
    around = [value for time, value in points if changes[-1] - BEFORE_S < time <= changes[-1] + AFTER_S]
    usual = _usual(points, changes, step_s)
    if usual < LEAST_USUAL:
        return 0.0
    missing_s = sum(1.0 - value / usual for value in around) * step_s
    return max(0.0, min(missing_s, _longest_gap(around, GAP_PART * usual) * step_s))


def _usual(points: Sequence[tuple[float, float]], changes: Sequence[float], step_s: float) -> float:
    """Mean utilization away from the changes; where they leave no room, the better half of all ticks."""
    away = [
        value
        for time, value in points
        if not any(change - BEFORE_S < time <= change + AFTER_S for change in changes)
    ]
    if len(away) * step_s < LEAST_USUAL_S:
        ordered = sorted(value for _, value in points)
        away = ordered[len(ordered) // 2 :]
    return sum(away) / len(away)


def _longest_gap(values: Sequence[float], level: float) -> int:
    """Ticks below `level` in a row, with one for the parts of ticks at both ends; 0 for none."""
    longest = run = 0
    for value in values:
        run = run + 1 if value < level else 0
        longest = max(longest, run)
    return longest + 1 if longest else 0
