"""Scheduler counters of the threads that feed a GPU, several times a second.

They answer who was on the CPU while the GPU was idle, so they are read only for trainers whose GPU
had idle moments within the last ten seconds, and for at most 24 threads at a time. Where more
trainers want a turn than fit, they take turns of ten seconds: the longer, the better the regression
behind it.
"""

from collections.abc import Collection, Iterable

from gpuwatch.model import ProcessKey, ProcessReading, ProcessRole, ThreadBurst
from gpuwatch.sources.base import Clock
from gpuwatch.sources.host.text import UNREADABLE
from gpuwatch.sources.processes.stat import parse_schedstat
from gpuwatch.sources.tree import Tree, repeated

#: 5 to 6 times a second is what the driver's own utilization samples come at (diagnosis F3).
INTERVAL_S = 1 / 6
MOST_THREADS = 24
#: Below this sub-second utilization a GPU counts as idle for a moment.
LOW_RATIO = 0.5
_KEEP_S = 10.0
_TURN_S = 10.0
#: Points per thread kept between two drains, should nobody drain.
_MOST_POINTS = 64

_Point = tuple[float, int, int]


class BurstReader:
    """`aim` once per tick, `poll` in between, `drain` into the sample."""

    def __init__(self, tree: Tree, clock: Clock) -> None:
        self._again = repeated(tree)
        self._clock = clock
        self._low_s: dict[ProcessKey, float] = {}
        self._threads: dict[ProcessKey, list[ProcessKey]] = {}  # trainer: processes, itself first
        self._turn: tuple[ProcessKey, ...] = ()
        self._turn_s = 0.0
        self._points: dict[ProcessKey, list[_Point]] = {}
        self._next_s: float | None = None

    def aim(
        self, processes: Iterable[ProcessReading], low_trainers: Collection[ProcessKey], now_s: float
    ) -> None:
        """This tick's processes, and the trainers on a GPU whose newest sub-second utilization fell
        below `LOW_RATIO`.
        """
        jobs: dict[ProcessKey, list[ProcessKey]] = {}
        workers: dict[ProcessKey, list[ProcessKey]] = {}
        for process in processes:
            if process.state in "ZX":
                continue
            if process.role is ProcessRole.TRAINER:
                jobs[process.key] = [process.key]
            elif process.role is ProcessRole.WORKER and process.trainer is not None:
                workers.setdefault(process.trainer, []).append(process.key)
        for trainer, members in jobs.items():
            members += sorted(workers.get(trainer, []))[: MOST_THREADS - 1]
        for trainer in low_trainers:
            self._low_s[trainer] = now_s
        self._low_s = {
            trainer: since
            for trainer, since in self._low_s.items()
            if trainer in jobs and now_s - since <= _KEEP_S
        }
        self._threads = {trainer: jobs[trainer] for trainer in self._low_s}
        self._choose(now_s)

    def _choose(self, now_s: float) -> None:
        """Whole trainers until the threads are used up; the next ones after ten seconds."""
        wanting = sorted(self._threads)
        stays = bool(self._turn) and all(trainer in self._threads for trainer in self._turn)
        fits = sum(len(self._threads[trainer]) for trainer in wanting) <= MOST_THREADS
        if fits:
            self._turn = tuple(wanting)
        elif not stays or now_s - self._turn_s >= _TURN_S or self._size(self._turn) > MOST_THREADS:
            last = self._turn[-1] if self._turn else None
            after = [trainer for trainer in wanting if last is not None and trainer > last]
            order = after + [trainer for trainer in wanting if trainer not in after]
            turn: list[ProcessKey] = []
            for trainer in order:
                if turn and self._size((*turn, trainer)) > MOST_THREADS:
                    break
                turn.append(trainer)
            self._turn, self._turn_s = tuple(turn), now_s
        if not self._turn:
            self._next_s = None
        elif self._next_s is None:
            self._next_s = now_s

    def _size(self, trainers: Iterable[ProcessKey]) -> int:
        return sum(len(self._threads[trainer]) for trainer in trainers)

    def wait_s(self, now_s: float) -> float | None:
        """Seconds until the next poll; None while nobody is watched."""
        return None if self._next_s is None else max(0.0, self._next_s - now_s)

    def poll(self, now_s: float) -> None:
        """Read every watched thread once if it is time. A process that has ended is left out."""
        if self._next_s is None or now_s < self._next_s:
            return
        self._next_s = max(self._next_s + INTERVAL_S, now_s + INTERVAL_S / 2)  # late ones are not made up for
        for trainer in self._turn:
            for key in self._threads[trainer]:
                self._read(key)

    def _read(self, key: ProcessKey) -> None:
        try:
            run_ns, wait_ns = parse_schedstat(self._again(f"/proc/{key[0]}/schedstat"))
        except UNREADABLE:
            return
        points = self._points.setdefault(key, [])
        points.append((self._clock.monotonic_s(), run_ns, wait_ns))
        if len(points) > _MOST_POINTS:
            del points[0]

    def drain(self) -> tuple[ThreadBurst, ...]:
        """All points since the last drain, per main thread, oldest first."""
        bursts = tuple(
            ThreadBurst(
                process=key,
                tid=key[0],
                times_s=tuple(point[0] for point in points),
                run_ns=tuple(point[1] for point in points),
                wait_ns=tuple(point[2] for point in points),
            )
            for key, points in self._points.items()
        )
        self._points.clear()
        return bursts
