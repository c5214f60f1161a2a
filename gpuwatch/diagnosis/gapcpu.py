"""Who runs on the CPU while the GPU is idle: gap-conditioned CPU of a thread or of processes.

CUDA waits by spinning, so a trainer's main thread looks busy in every case; only its CPU use while the
GPU is idle tells whether the GPU waits for it. With b the busy part of the GPU (utilization over its
busy level) in the same spans as the CPU use c, least squares on  c = gap (1 - b) + busy b  gives both.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isnan, sqrt
from operator import mul

from gpuwatch.diagnosis.window import GapCpu
from gpuwatch.history import History
from gpuwatch.model import Burst, ProcessReading, ThreadBurst

#: Below this deviation of b there are no gaps to compare with (diagnosis §3.4).
MIN_DEVIATION = 0.12
MIN_POINTS = 12
EVEN = "the GPU's gaps are too even or too short to compare with"
#: Bursts at 5-6 points a second; a point every tick needs longer for as many gaps.
BURST_S, TICKS_S = 15.0, 60.0


@dataclass(frozen=True, slots=True)
class Points:
    """Busy part of the GPU and CPU use in cores, over the same spans of time."""

    busy: Sequence[float]
    cores: Sequence[float]
    waits: Sequence[float] = ()  # run-queue wait over the same spans, where it is known


def regress(points: Points) -> GapCpu | str:
    """The two levels with the standard error of the first, or the reason why they cannot be told."""
    count = len(points.busy)
    if count < MIN_POINTS:
        return f"{count} of {MIN_POINTS} points so far"
    mean_busy = sum(points.busy) / count
    mean_cores = sum(points.cores) / count
    busy = [value - mean_busy for value in points.busy]
    cores = [value - mean_cores for value in points.cores]
    spread = sum(map(mul, busy, busy))
    if sqrt(spread / count) < MIN_DEVIATION:
        return EVEN
    product = sum(map(mul, busy, cores))
    slope = product / spread
    gap = mean_cores - slope * mean_busy
    rest = sum(map(mul, cores, cores)) - slope * product
    error = sqrt(max(0.0, rest) / (count - 2) * (1 / count + mean_busy**2 / spread))
    return GapCpu(gap, gap + slope, count, error, _intercept(points.waits, busy, mean_busy, spread))


def _intercept(
    values: Sequence[float], busy: Sequence[float], mean_busy: float, spread: float
) -> float | None:
    """What the line of `values` gives at an idle GPU; `busy` is centred."""
    if not values:
        return None
    slope: float = sum(map(mul, busy, values)) / spread
    return sum(values) / len(values) - slope * mean_busy


def burst_points(thread: ThreadBurst, utilization: Burst, high: float) -> Points:
    """CPU use between two readings of a thread against mean utilization in just that span."""
    integral = _Integral(utilization)
    busy, cores, waits = [], [], []
    before: tuple[float, int] | None = None  # busy seconds and stretch at the reading before
    for index, time in enumerate(thread.times_s):
        here = integral.at(time)
        if here is not None and before is not None and here[1] == before[1]:
            step = time - thread.times_s[index - 1]
            ran_ns = thread.run_ns[index] - thread.run_ns[index - 1]
            if step > 0 and ran_ns >= 0:
                part = (here[0] - before[0]) / step / high
                busy.append(1.0 if part > 1.0 else part)
                cores.append(ran_ns * 1e-9 / step)
                waits.append((thread.wait_ns[index] - thread.wait_ns[index - 1]) * 1e-9 / step)
        before = here
    return Points(busy, cores, waits)


def tick_points(cores: Sequence[float], utilization: Sequence[float], high: float) -> Points:
    """Per-tick CPU use against the tick's mean utilization; NaN in either is left out."""
    pairs = [
        (min(1.0, max(0.0, busy / high)), used)
        for busy, used in zip(utilization, cores, strict=True)
        if not isnan(busy) and not isnan(used)
    ]
    return Points([busy for busy, _ in pairs], [used for _, used in pairs])


def main_thread_gap(
    history: History, trainer: ProcessReading, gpu: str, utilization: Burst, high: float
) -> GapCpu | str:
    """Of the trainer's main thread: from bursts where there are any, else from ticks."""
    tid = trainer.threads[0].tid if trainer.threads else trainer.pid
    burst = history.thread_burst(trainer.key, tid, BURST_S)
    if burst is not None and utilization.values:
        result = regress(burst_points(burst, utilization, high))
        if isinstance(result, GapCpu):
            return result
    return regress(_tick_series(history, gpu, [_entity(trainer)], "main_cpu_cores", high))


def workers_gap(history: History, workers: Sequence[ProcessReading], gpu: str, high: float) -> GapCpu | str:
    """Of all workers together, from ticks: dozens of threads a tick would cost more than they tell."""
    if not workers:
        return "no worker processes"
    return regress(_tick_series(history, gpu, [_entity(worker) for worker in workers], "cpu_cores", high))


def _entity(process: ProcessReading) -> str:
    return f"process:{process.pid}:{process.start_ticks}"


def _tick_series(history: History, gpu: str, entities: Iterable[str], key: str, high: float) -> Points:
    columns = [history.values(entity, key, TICKS_S) for entity in entities]
    cores = [sum(row) for row in zip(*columns, strict=True)]
    return tick_points(cores, history.values(gpu, "utilization_ratio", TICKS_S), high)


class _Integral:
    """Busy seconds up to any moment, of points that each stand for the time since the one before.

    Where two points are far apart nothing is known: what follows is another stretch.
    """

    def __init__(self, burst: Burst) -> None:
        times, values = burst.times_s, burst.values
        steps = [after - before for before, after in pairwise(times)]
        hole_s = 3 * sorted(steps)[len(steps) // 2] if steps else 0.0
        self._times = times
        self._values = values
        self._sums = [0.0]
        self._stretches = [0]
        for value, step in zip(values[1:], steps, strict=True):
            hole = step > hole_s
            self._sums.append(self._sums[-1] + (0.0 if hole else value * step))
            self._stretches.append(self._stretches[-1] + hole)

    def at(self, time: float) -> tuple[float, int] | None:
        """(busy seconds, number of the stretch); None outside what was measured or in a hole."""
        index = bisect_left(self._times, time)
        if index == 0 or index == len(self._times) or self._stretches[index] != self._stretches[index - 1]:
            return None
        ahead = self._times[index] - time
        return self._sums[index] - ahead * self._values[index], self._stretches[index]
