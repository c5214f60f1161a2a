"""Who runs on the CPU while the GPU is idle: gap-conditioned CPU of a thread or of processes.

CUDA waits by spinning, so a trainer's main thread looks busy in every case; only its CPU use while the
GPU is idle tells whether the GPU waits for it. With b the busy part of the GPU (utilization over its
busy level) in the same spans as the CPU use c, least squares on  c = gap (1 - b) + busy b  gives both.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isnan, sqrt

from gpuwatch.diagnosis.window import GapCpu
from gpuwatch.history import History
from gpuwatch.model import Burst, ProcessReading, ThreadBurst

#: Below this deviation of b there are no gaps to compare with (diagnosis §3.4).
MIN_DEVIATION = 0.12
MIN_POINTS = 12
#: Bursts at 5-6 points a second; a point every tick needs longer for as many gaps.
BURST_S, TICKS_S = 20.0, 60.0
#: Workers are followed at burst resolution up to this many; beyond, their per-tick means do.
MAX_BURST_WORKERS = 8


@dataclass(frozen=True, slots=True)
class Points:
    """Busy part of the GPU and CPU use in cores, over the same spans of time."""

    busy: Sequence[float]
    cores: Sequence[float]


def regress(points: Points) -> GapCpu | str:
    """The two levels with the standard error of the first, or the reason why they cannot be told."""
    count = len(points.busy)
    if count < MIN_POINTS:
        return f"{count} of {MIN_POINTS} points so far"
    mean_busy = sum(points.busy) / count
    mean_cores = sum(points.cores) / count
    spread = sum((busy - mean_busy) ** 2 for busy in points.busy)
    if sqrt(spread / count) < MIN_DEVIATION:
        return "the GPU's gaps are too even or too short to compare with"
    product = sum(
        (busy - mean_busy) * (cores - mean_cores)
        for busy, cores in zip(points.busy, points.cores, strict=True)
    )
    slope = product / spread
    gap = mean_cores - slope * mean_busy
    rest = sum(
        (cores - gap - slope * busy) ** 2 for busy, cores in zip(points.busy, points.cores, strict=True)
    )
    error = sqrt(max(0.0, rest) / (count - 2) * (1 / count + mean_busy**2 / spread))
    return GapCpu(gap_cores=gap, busy_cores=gap + slope, sample_count=count, error_cores=error)


def burst_points(thread: ThreadBurst, utilization: Burst, high: float) -> Points:
    """CPU use between two readings of a thread against mean utilization in just that span."""
    mean_in = _StepMeans(utilization)
    busy, cores = [], []
    for index in range(1, len(thread.times_s)):
        start, end = thread.times_s[index - 1], thread.times_s[index]
        ran_ns = thread.run_ns[index] - thread.run_ns[index - 1]
        if end <= start or ran_ns < 0:
            continue
        mean = mean_in.over(start, end)
        if mean is None:
            continue
        busy.append(min(1.0, max(0.0, mean / high)))
        cores.append(ran_ns * 1e-9 / (end - start))
    return Points(busy, cores)


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


def workers_gap(
    history: History, workers: Sequence[ProcessReading], gpu: str, utilization: Burst, high: float
) -> GapCpu | str:
    """Of all workers together; the sum of lines is the line of the sum."""
    if not workers:
        return "no worker processes"
    if len(workers) <= MAX_BURST_WORKERS and utilization.values:
        bursts = [history.thread_burst(worker.key, worker.pid, BURST_S) for worker in workers]
        results = [regress(burst_points(burst, utilization, high)) for burst in bursts if burst is not None]
        lines = [result for result in results if isinstance(result, GapCpu)]
        if len(lines) == len(workers):
            return _sum(lines)
    return regress(_tick_series(history, gpu, [_entity(worker) for worker in workers], "cpu_cores", high))


def _sum(lines: Sequence[GapCpu]) -> GapCpu:
    return GapCpu(
        gap_cores=sum(line.gap_cores for line in lines),
        busy_cores=sum(line.busy_cores for line in lines),
        sample_count=min(line.sample_count for line in lines),
        error_cores=sqrt(sum(line.error_cores**2 for line in lines)),
    )


def _entity(process: ProcessReading) -> str:
    return f"process:{process.pid}:{process.start_ticks}"


def _tick_series(history: History, gpu: str, entities: Iterable[str], key: str, high: float) -> Points:
    columns = [history.values(entity, key, TICKS_S) for entity in entities]
    cores = [sum(row) for row in zip(*columns, strict=True)]
    return tick_points(cores, history.values(gpu, "utilization_ratio", TICKS_S), high)


class _StepMeans:
    """Means of a series of periods over any span, asked for in rising order of time.

    Point i covers (times[i-1], times[i]]; where two points are far apart nothing is known.
    """

    def __init__(self, burst: Burst) -> None:
        self._times = burst.times_s
        self._values = burst.values
        steps = sorted(after - before for before, after in zip(self._times, self._times[1:], strict=False))
        self._hole_s = 3 * steps[len(steps) // 2] if steps else 0.0
        self._next = 1

    def over(self, start: float, end: float) -> float | None:
        """Mean over [start, end], or None unless all of it is covered."""
        times, values = self._times, self._values
        index = self._next
        while index < len(times) and times[index] <= start:
            index += 1
        self._next = index
        total, at = 0.0, start
        while index < len(times) and at < end:
            before, until = times[index - 1], times[index]
            if before > at or until - before > self._hole_s:
                return None
            step = min(until, end) - at
            total += values[index] * step
            at += step
            index += 1
        return total / (end - start) if at >= end else None
