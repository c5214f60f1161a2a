"""The utilization of a window as a measured object: class, stall share with its interval, period.

A pulse is a repeated change between busy and nearly idle, with gaps shorter than a human pause. It is
a shape: it proves that the GPU waits and how much, not for whom. Thresholds without another source
were set on a simulation (tests/diagnosis/test_shape.py repeats it at reduced size).
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import sqrt
from operator import mul
from statistics import median

from gpuwatch.diagnosis.autocorrelation import autocorrelation
from gpuwatch.model import Shape, ShapeKind

#: A preliminary class needs 30 s of buffered points; of readings once a second, some more (our own).
MIN_BUFFERED_S, MIN_POLLED_S = 29.0, 34.0
MIN_POINTS = 30
#: A hole longer than this many spacings splits the series.
HOLE_SPACINGS = 3.0

IDLE_MEAN, IDLE_P95 = 0.05, 0.15
SATURATED_P10, SATURATED_MEAN = 0.85, 0.90
PULSE_DEPTH, PULSE_LOW, PULSE_HIGH = 0.40, 0.35, 0.50
PULSE_EDGES, PULSE_STALL = 4, 0.08
PULSE_SEPARABILITY, PULSE_CORRELATION = 0.70, 0.5
#: A gap of one or two points is mixed with work on both sides and never reads as idle; where the pulses
#: keep time with the driver's samples, it reads the same each time (our own).
MIXED_GAP_SPACINGS, MIXED_LOW, MIXED_CORRELATION = 2.2, 0.55, 0.8
EPISODE_DEPTH, EPISODE_LOW, EPISODE_HIGH = 0.60, 0.15, 0.80
EPISODE_GAP_S, EPISODE_BUSY_SHARE = 2.0, 0.60
#: Pulses with gaps of a human pause, few and far between, are episodes.
PAUSE_GAP_S, PAUSE_SPACING_S = 5.0, 20.0
FLAT_DEVIATION, FLAT_DEPTH, FLAT_SPLIT = 0.10, 0.25, 0.70
#: Schmitt trigger levels as parts of the depth: noise on the flanks makes no edges.
RISE_LEVEL, FALL_LEVEL = 0.65, 0.35
#: Idle level below which "busy 0" is assumed for the stall share.
STALL_LOW = 0.10
REGULAR_CORRELATION = 0.4
LATER_PEAK_LEAD = 0.1
PERIOD_MIN_SPACINGS, PERIOD_MAX_PART = 4, 3
#: More cycles than the period leaves room for: it is a multiple of one too short to be seen.
ALIAS_CYCLES = 1.5
#: The driver answers in whole percents; no interval is narrower.
READING_ERROR = 0.01


_STEADY = frozenset({ShapeKind.IDLE, ShapeKind.SATURATED})


@dataclass(frozen=True, slots=True)
class _Levels:
    low: float
    high: float
    threshold: float
    separability: float  # between-class over total variance


@dataclass(slots=True)
class _Edges:
    rises: list[int]  # indices of the first high point
    gaps_s: list[float]  # finished gaps

    @property
    def gap_s(self) -> float | None:
        """The typical gap."""
        return median(self.gaps_s) if self.gaps_s else None


@dataclass(frozen=True, slots=True)
class _Rhythm:
    correlation: float = 0.0  # height of the highest peak of the autocorrelation
    period_s: float | None = None


def shape_of(
    times: Sequence[float], values: Sequence[float], buffered: bool, best_high: float | None = None
) -> Shape:
    """Measure `values` (utilization, 0..1, no NaN) at `times` (seconds, ascending).

    `buffered`: the driver's own evenly spaced sub-second points; False for one reading a tick, which
    is a subsample: its period is never shown. `best_high` is the best busy level (0..1) of the same
    job in the last ten minutes; the stall share is measured against it.
    """
    count = len(values)
    spacing = _spacing(times)
    duration = times[-1] - times[0] + spacing if count else 0.0
    known = Shape(ShapeKind.UNKNOWN, count, duration, spacing or None, buffered)
    if count < MIN_POINTS or duration < (MIN_BUFFERED_S if buffered else MIN_POLLED_S):
        return known
    ordered = sorted(values)
    mean = sum(ordered) / count
    deviation = sqrt(max(0.0, sum(map(mul, ordered, ordered)) / count - mean * mean))
    levels = _levels(ordered)
    base, reference = min(levels.low, STALL_LOW), max(levels.high, best_high or 0.0)
    stall = _stall(mean, base, reference)
    kind = _plain_kind(mean, deviation, ordered, levels)
    edges, rhythm = _Edges([], []), _Rhythm()
    if kind not in _STEADY and levels.high - levels.low >= PULSE_DEPTH:
        hole_s = HOLE_SPACINGS * spacing
        edges = _edges(times, values, levels, hole_s)
        busy_share = sum(value >= levels.threshold for value in values) / count
        mixed = buffered and edges.gap_s is not None and edges.gap_s <= MIXED_GAP_SPACINGS * spacing
        lowest = MIXED_LOW if mixed else PULSE_LOW
        if levels.low <= lowest and _could_pulse(levels, edges, stall, duration, busy_share):
            rhythm = _rhythm(times, values, spacing, len(edges.rises) / duration)
            deep = levels.low <= PULSE_LOW
            if rhythm.correlation >= (PULSE_CORRELATION if deep else MIXED_CORRELATION) or (
                deep and levels.separability >= PULSE_SEPARABILITY
            ):
                kind = ShapeKind.PULSED
        if kind is not ShapeKind.PULSED and _episodic(levels, edges, busy_share):
            kind = ShapeKind.EPISODIC
    error = max(READING_ERROR, _stall_error(values, edges, base, reference, buffered, deviation))
    pulsed, measured = kind is ShapeKind.PULSED, kind is not ShapeKind.IDLE
    regular = rhythm.correlation >= REGULAR_CORRELATION
    return Shape(
        kind=kind,
        sample_count=count,
        duration_s=duration,
        resolution_s=spacing,
        buffered=buffered,
        mean_ratio=mean,
        low_ratio=levels.low,
        high_ratio=levels.high,
        stall_ratio=stall if measured else None,
        stall_low_ratio=_stall_low(mean, levels.high, error) if measured else None,
        stall_high_ratio=min(1.0, 1 - mean + error) if measured else None,
        cycles=len(edges.rises),
        period_s=rhythm.period_s if buffered and regular and pulsed else None,
        regular=regular if pulsed else None,
        gap_median_s=edges.gap_s,
        gap_p90_s=_quantile(sorted(edges.gaps_s), 0.9) if edges.gaps_s else None,
        standard_deviation_ratio=deviation,
    )


def _spacing(times: Sequence[float]) -> float:
    steps = sorted([after - before for before, after in pairwise(times)])
    return steps[len(steps) // 2] if steps else 0.0


def _quantile(ordered: Sequence[float], part: float) -> float:
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]


def _levels(ordered: Sequence[float]) -> _Levels:
    """Otsu's threshold on whole percents, and the typical low and high level.

    The levels are medians of the outer halves of the classes: points on a flank are mixtures.
    """
    counts = list(Counter([round(value * 100) for value in ordered]).items())  # rising, as counted
    total = len(ordered)
    total_sum = sum(level * number for level, number in counts)
    total_square = sum(level * level * number for level, number in counts)
    variance = total_square / total - (total_sum / total) ** 2
    best, split, below, below_sum = 0.0, total, 0, 0
    threshold = counts[-1][0] / 100
    for (level, number), (following, _) in pairwise(counts):
        below += number
        below_sum += level * number
        above = total - below
        between = below * above * (below_sum / below - (total_sum - below_sum) / above) ** 2
        if between > best:
            best, split, threshold = between, below, (level + following) / 200
    separability = best / total**2 / variance if variance > 0 else 0.0
    low = ordered[split // 4]
    high = ordered[total - 1 - (total - split) // 4] if split < total else ordered[-1 - total // 4]
    return _Levels(low, high, threshold, separability)


def _edges(times: Sequence[float], values: Sequence[float], levels: _Levels, hole_s: float) -> _Edges:
    depth = levels.high - levels.low
    rise, fall = levels.low + RISE_LEVEL * depth, levels.low + FALL_LEVEL * depth
    edges = _Edges([], [])
    high: bool | None = None  # unknown at the start and after a hole
    fell_s: float | None = None
    before = times[0]
    for index, (time, value) in enumerate(zip(times, values, strict=True)):
        if time - before > hole_s:
            high, fell_s = None, None
        if value >= rise:
            if high is False:
                edges.rises.append(index)
                if fell_s is not None:
                    edges.gaps_s.append(before - fell_s)
            high = True
        elif value <= fall:
            if high:
                fell_s = before  # a point's time is the end of its period
            high = False
        before = time
    return edges


def _stall(mean: float, low: float, high: float) -> float:
    return min(1.0, max(0.0, 1 - (mean - low) / (high - low))) if high > low else 0.0


def _stall_low(mean: float, high: float, error: float) -> float:
    return max(0.0, 1 - mean / high - error) if high > 0 else 0.0


def _stall_error(
    values: Sequence[float], edges: _Edges, low: float, high: float, buffered: bool, deviation: float
) -> float:
    """Two standard errors: from cycle to cycle where three are seen one by one, else of the mean."""
    if not buffered or len(edges.rises) < 4:
        return 2 * deviation / (high * sqrt(len(values))) if high > 0 else 0.0
    sums = [0.0, *accumulate(values)]
    stalls = [
        _stall((sums[end] - sums[start]) / (end - start), low, high) for start, end in pairwise(edges.rises)
    ]
    mean = sum(stalls) / len(stalls)
    variance = sum((stall - mean) ** 2 for stall in stalls) / (len(stalls) - 1)
    return 2 * sqrt(variance / len(stalls))


def _plain_kind(mean: float, deviation: float, ordered: Sequence[float], levels: _Levels) -> ShapeKind:
    if mean < IDLE_MEAN and _quantile(ordered, 0.95) < IDLE_P95:
        return ShapeKind.IDLE
    if mean >= SATURATED_MEAN or _quantile(ordered, 0.10) >= SATURATED_P10:
        return ShapeKind.SATURATED
    if deviation <= FLAT_DEVIATION or levels.high - levels.low < FLAT_DEPTH:
        return ShapeKind.FLAT_HIGH if mean >= FLAT_SPLIT else ShapeKind.FLAT_LOW
    return ShapeKind.VARIABLE


def _could_pulse(levels: _Levels, edges: _Edges, stall: float, duration: float, busy_share: float) -> bool:
    gap = edges.gap_s
    rare_pauses = (
        gap is not None
        and gap >= PAUSE_GAP_S
        and len(edges.rises) <= duration / PAUSE_SPACING_S
        and busy_share >= EPISODE_BUSY_SHARE
    )
    return (
        levels.high - levels.low >= PULSE_DEPTH
        and levels.high >= PULSE_HIGH
        and len(edges.rises) >= PULSE_EDGES
        and stall >= PULSE_STALL
        and not rare_pauses
    )


def _episodic(levels: _Levels, edges: _Edges, busy_share: float) -> bool:
    gap = edges.gap_s
    return (
        levels.high - levels.low >= EPISODE_DEPTH
        and levels.low <= EPISODE_LOW
        and levels.high >= EPISODE_HIGH
        and busy_share >= EPISODE_BUSY_SHARE
        and len(edges.rises) >= 1
        and gap is not None
        and gap >= EPISODE_GAP_S
    )


def _rhythm(times: Sequence[float], values: Sequence[float], spacing: float, cycles_per_s: float) -> _Rhythm:
    """Peak and period of the longest stretch without a hole; no period where cycles contradict it."""
    start, end = _longest_stretch(times, HOLE_SPACINGS * spacing)
    longest = (end - start) // PERIOD_MAX_PART
    correlation = autocorrelation([round(value * 100) for value in values[start:end]], longest + 1)
    best = _peak(correlation)
    if best is None:
        return _Rhythm()
    left, top, right = correlation[best - 1 : best + 2]
    bend = left - 2 * top + right
    period_s = spacing * (best + (0.5 * (left - right) / bend if bend < 0 else 0.0))
    return _Rhythm(top, period_s if cycles_per_s * period_s <= ALIAS_CYCLES else None)


def _peak(correlation: Sequence[float]) -> int | None:
    """The first maximum after the first zero crossing, or a later one that beats it clearly."""
    crossing = next((lag for lag, value in enumerate(correlation) if value <= 0), len(correlation))
    best: int | None = None
    for lag in range(max(crossing, PERIOD_MIN_SPACINGS), len(correlation) - 1):
        height = correlation[lag]
        if not correlation[lag - 1] <= height > correlation[lag + 1]:
            continue
        if best is None or height > correlation[best] + LATER_PEAK_LEAD:
            best = lag
    return best


def _longest_stretch(times: Sequence[float], hole_s: float) -> tuple[int, int]:
    bounds = [0]
    bounds += [i for i in range(1, len(times)) if times[i] - times[i - 1] > hole_s]
    bounds.append(len(times))
    return max(pairwise(bounds), key=lambda stretch: stretch[1] - stretch[0])
