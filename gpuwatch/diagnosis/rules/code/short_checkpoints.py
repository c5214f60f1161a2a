"""Gaps of the GPU in which the training process writes: checkpoints too short to count as pauses."""

from dataclasses import dataclass
from itertools import groupby
from statistics import median

from gpuwatch.diagnosis.window import JobView, Window
from gpuwatch.model import Burst

WINDOW_S = 60.0
#: As for long pauses: what is written in a checkpoint.
CHECKPOINT_BYTES_PER_S = 20e6
#: A sample below this part of the busy level belongs to a gap (our own).
GAP_PART = 0.9
#: Writing is counted a moment before or after the gap: ticks and samples end at different times (our own).
SLACK_S = 0.5
#: The gaps with writing are most of the idle time, more of it than chance would give, and several (our own).
COVERAGE, COVERAGE_EXIT = 0.80, 0.60
ABOVE_CHANCE, ABOVE_CHANCE_EXIT = 0.30, 0.15
LEAST_GAPS = 3


@dataclass(frozen=True, slots=True)
class WrittenGaps:
    """The gaps of the last minute in which the training process wrote."""

    count: int
    gap_s: float  # median
    every_s: float
    coverage: float  # share of all idle time that lies in them
    write_bytes_per_s: float  # while it wrote


def written_gaps(window: Window, job: JobView, active: bool) -> WrittenGaps | None:
    """None where the gaps are no checkpoints, or not known."""
    shape = window.shape
    if shape is None or not shape.high_ratio:
        return None
    times = window.history.times(WINDOW_S)
    name = f"process:{job.trainer.pid}:{job.trainer.start_ticks}"
    rates = window.history.values(name, "write_bytes_per_s", WINDOW_S)
    step_s = window.sample.interval_s
    known = [(time, rate) for time, rate in zip(times, rates, strict=True) if rate == rate]
    writing = [(time, rate) for time, rate in known if rate >= CHECKPOINT_BYTES_PER_S]
    if not writing:
        return None
    spans = _merged([(time - step_s - SLACK_S, time + SLACK_S) for time, _ in writing])
    # The driver kept samples of the time before the process was first read.
    seconds = window.now_s - known[0][0] + step_s
    burst = _utilization(window, shape.buffered, min(WINDOW_S, seconds))
    gaps = _gaps(burst, shape.high_ratio)
    idle_s = sum(lost_s for _, _, lost_s in gaps)
    ours = [gap for gap in gaps if any(start < gap[1] and gap[0] < end for start, end in spans)]
    seen_s = burst.times_s[-1] - burst.times_s[0] if len(burst.times_s) > 1 else 0.0
    if len(ours) < LEAST_GAPS or idle_s <= 0 or seen_s <= 0:
        return None
    coverage = sum(lost_s for _, _, lost_s in ours) / idle_s
    chance = min(1.0, sum(end - start for start, end in spans) / seen_s)
    if coverage < (COVERAGE_EXIT if active else COVERAGE):
        return None
    if coverage - chance < (ABOVE_CHANCE_EXIT if active else ABOVE_CHANCE):
        return None
    return WrittenGaps(
        count=len(ours),
        gap_s=median([end - start for start, end, _ in ours]),
        every_s=seen_s / len(ours),
        coverage=coverage,
        write_bytes_per_s=median([rate for _, rate in writing]),
    )


def _utilization(window: Window, buffered: bool, seconds: float) -> Burst:
    """The driver's samples, or where there are none the readings of the ticks."""
    if buffered:
        return window.history.burst(window.entity.partition(":")[2], "utilization", seconds)
    times = window.history.times(seconds)
    values = window.history.values(window.entity, "utilization_ratio", seconds)
    known = [(time, value) for time, value in zip(times, values, strict=True) if value == value]
    return Burst(tuple(time for time, _ in known), tuple(value for _, value in known))


def _merged(spans: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Overlapping spans (in order of time) made one."""
    found: list[tuple[float, float]] = []
    for start, end in spans:
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found


def _gaps(burst: Burst, high: float) -> list[tuple[float, float, float]]:
    """(start, end, seconds of work lost) of every stretch below the busy level."""
    points = list(zip(burst.times_s, burst.times_s[1:], burst.values[1:], strict=False))
    found = []
    for low, group in groupby(points, key=lambda point: point[2] < GAP_PART * high):
        stretch = list(group)
        if low:
            lost_s = sum((end - start) * (1.0 - value / high) for start, end, value in stretch)
            found.append((stretch[0][0], stretch[-1][1], lost_s))
    return found
