"""Pauses of a steady job, 5 s or longer, and what the job did meanwhile."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from gpuwatch.diagnosis.window import Episode
from gpuwatch.history import History
from gpuwatch.model import JobState, ProcessKey, ProcessReading, ProcessRole

KEPT_S = 1800.0
_IN_PAUSE = (JobState.EPISODE, JobState.PAUSED)


@dataclass(slots=True)
class EpisodeTracker:
    """`update` once a tick, after the job's state is known."""

    episodes: deque[Episode] = field(default_factory=deque)
    _workers: frozenset[ProcessKey] = frozenset()  # of the working job, before the pause
    _paused: bool = False

    def reset(self) -> None:
        """A new job."""
        self.episodes.clear()
        self._workers, self._paused = frozenset(), False

    def update(
        self,
        now: float,
        state: JobState,
        low_since_s: float | None,
        history: History,
        trainer: ProcessReading | None,
        family: Sequence[ProcessReading],
    ) -> None:
        """`low_since_s`: start of the present stretch of low utilization."""
        while self.episodes and (self.episodes[0].end_s or now) < now - KEPT_S:
            self.episodes.popleft()
        workers = frozenset(p.key for p in family if p.role is ProcessRole.WORKER)
        if state in _IN_PAUSE and low_since_s is not None and not self._paused:
            self._paused = True
            self.episodes.append(Episode(low_since_s))
        elif self._paused and state is JobState.STEADY:
            self._paused = False
            self.episodes[-1] = _ended(
                self.episodes[-1], now, history, trainer, family, workers, self._workers
            )
        if not self._paused and workers:
            self._workers = workers


def _ended(
    episode: Episode,
    now: float,
    history: History,
    trainer: ProcessReading | None,
    family: Sequence[ProcessReading],
    workers: frozenset[ProcessKey],
    before: frozenset[ProcessKey],
) -> Episode:
    seconds = now - episode.start_s
    episode = replace(episode, end_s=now, new_workers=bool(workers and before and not workers & before))
    if trainer is None:
        return episode
    names = [_entity(process) for process in (trainer, *family)]
    writes = [history.mean(name, "write_bytes_per_s", seconds) for name in names]
    known = [value for value in writes if value is not None]
    return replace(
        episode,
        write_bytes_per_s=sum(known) if known else None,
        read_bytes_per_s=history.mean(names[0], "read_chars_per_s", seconds),
        main_cpu_cores=history.mean(names[0], "main_cpu_cores", seconds),
    )


def _entity(process: ProcessReading) -> str:
    return f"process:{process.pid}:{process.start_ticks}"
