"""Who belongs to a job, over the last half minute: loader workers may live for one epoch only.

A mean over the processes that are there right now would forget what the last epoch's workers did, and
book it to strangers.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from gpuwatch.model import ProcessKey, ProcessReading, ProcessRole

#: Means over the job reach back this far.
MEMORY_S = 30.0
#: Between two epochs there may be no worker for a moment; only then do the last ones stand for them.
EPOCH_CHANGE_S = 10.0


@dataclass(slots=True)
class Family:
    """The descendants of one trainer. `update` once a tick."""

    _seen: dict[ProcessKey, tuple[float, ProcessReading]] = field(default_factory=dict)
    _trainer: ProcessKey | None = None
    _now_s: float = 0.0

    def update(self, now: float, relatives: Sequence[ProcessReading], trainer: ProcessKey | None) -> None:
        """Note who is there of this trainer; another trainer's family is forgotten."""
        self._now_s = now
        if trainer != self._trainer:
            self._seen.clear()
            self._trainer = trainer
        for process in relatives:
            self._seen[process.key] = (now, process)
        if len(self._seen) > len(relatives):
            gone = [key for key, (seen_s, _) in self._seen.items() if now - seen_s > MEMORY_S]
            for key in gone:
                del self._seen[key]

    @property
    def recent(self) -> tuple[ProcessReading, ...]:
        """Everybody seen in the last half minute."""
        return tuple(process for _, process in self._seen.values())

    @property
    def present(self) -> tuple[ProcessReading, ...]:
        return tuple(process for seen_s, process in self._seen.values() if seen_s == self._now_s)

    @property
    def workers(self) -> tuple[ProcessReading, ...]:
        """The workers there are, or between two epochs the last ones."""
        workers = [entry for entry in self._seen.values() if entry[1].role is ProcessRole.WORKER]
        newest_s = max((seen_s for seen_s, _ in workers), default=0.0)
        if self._now_s - newest_s > EPOCH_CHANGE_S:
            return ()
        return tuple(process for seen_s, process in workers if seen_s == newest_s)
