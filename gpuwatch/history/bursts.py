"""Sub-second points of the last two minutes: of GPUs, and of threads' scheduler counters."""

from __future__ import annotations  # array[float] cannot be evaluated before Python 3.12

from array import array
from bisect import bisect_right
from typing import Any

from gpuwatch.model import Burst, ProcessKey, ThreadBurst

KEPT_S = 120.0
#: The fastest ring seen gives a point every 20 ms (power); twice two minutes of that.
MOST_POINTS = 12_000
#: Watched threads; those not heard of longest go first.
MOST_THREADS = 256
#: A point later than this after the tick that brought it has a wrong time (a clock was set).
AHEAD_S = 1.0


class BurstLine:
    """Points of one signal in rising order of time; `values` are parallel columns."""

    __slots__ = ("times", "values")

    def __init__(self, *typecodes: str) -> None:
        self.times = array("d")
        self.values: tuple[array[Any], ...] = tuple(array(code) for code in typecodes)

    def extend(self, now_s: float, times: tuple[float, ...], *columns: tuple[float, ...]) -> None:
        """Add points; those not later than what is here, or from the future, are left out."""
        last = self.times[-1] if self.times else float("-inf")
        if times and (times[0] <= last or times[-1] > now_s + AHEAD_S):
            chosen = [i for i, time in enumerate(times) if last < time <= now_s + AHEAD_S]
            times = tuple(times[i] for i in chosen)
            columns = tuple(tuple(column[i] for i in chosen) for column in columns)
        self.times.extend(times)
        for kept, column in zip(self.values, columns, strict=True):
            kept.extend(column)
        self._trim(now_s)

    def _trim(self, now_s: float) -> None:
        # Rarely and a lot at once: cutting the front moves everything behind it.
        if not self.times or (self.times[0] > now_s - 1.5 * KEPT_S and len(self.times) <= MOST_POINTS):
            return
        cut = max(self.since(now_s - KEPT_S), len(self.times) - MOST_POINTS // 2)
        del self.times[:cut]
        for column in self.values:
            del column[:cut]

    def since(self, time_s: float) -> int:
        """Index of the first point later than `time_s`."""
        return bisect_right(self.times, time_s)


class Bursts:
    """All burst lines of one session."""

    def __init__(self) -> None:
        self._gpus: dict[tuple[str, str], BurstLine] = {}
        self._threads: dict[tuple[ProcessKey, int], BurstLine] = {}

    def add_gpu(self, now_s: float, uuid: str, signal: str, burst: Burst) -> None:
        if not burst.times_s:
            return
        line = self._gpus.get((uuid, signal))
        if line is None:
            line = self._gpus[uuid, signal] = BurstLine("d")
        line.extend(now_s, burst.times_s, burst.values)

    def add_thread(self, now_s: float, burst: ThreadBurst) -> None:
        # Taken out and put back: the dictionary's order is then that of the last news.
        line = self._threads.pop((burst.process, burst.tid), None) or BurstLine("q", "q")
        self._threads[burst.process, burst.tid] = line
        line.extend(now_s, burst.times_s, burst.run_ns, burst.wait_ns)
        while len(self._threads) > MOST_THREADS or self._oldest_is_over(now_s):
            del self._threads[next(iter(self._threads))]

    def _oldest_is_over(self, now_s: float) -> bool:
        line = next(iter(self._threads.values()))
        return not line.times or line.times[-1] <= now_s - KEPT_S

    def forget_gpu(self, uuid: str) -> None:
        for key in [key for key in self._gpus if key[0] == uuid]:
            del self._gpus[key]

    def gpu(self, now_s: float, uuid: str, signal: str, seconds: float) -> Burst:
        line = self._gpus.get((uuid, signal))
        if line is None:
            return Burst()
        start = line.since(now_s - min(seconds, KEPT_S))
        return Burst(tuple(line.times[start:]), tuple(line.values[0][start:]))

    def thread(self, now_s: float, process: ProcessKey, tid: int, seconds: float) -> ThreadBurst | None:
        line = self._threads.get((process, tid))
        if line is None:
            return None
        start = line.since(now_s - min(seconds, KEPT_S))
        if start == len(line.times):
            return None
        run, wait = line.values
        return ThreadBurst(process, tid, tuple(line.times[start:]), tuple(run[start:]), tuple(wait[start:]))
