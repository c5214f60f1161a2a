"""The points a shape is measured on: the driver's sub-second samples where it has them, else ticks."""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise
from math import isnan

from gpuwatch.diagnosis.shape import HOLE_SPACINGS
from gpuwatch.history import History

#: Sub-second points must reach over this part of the window, or the ticks are the better record.
MIN_COVER = 0.5

Series = tuple[Sequence[float], Sequence[float]]


def utilization_series(history: History, uuid: str, seconds: float) -> tuple[Series, bool]:
    """((times, values 0..1), whether they are the driver's own samples) of the last `seconds`."""
    burst = history.burst(uuid, "utilization", seconds)
    times, values = burst.times_s, burst.values
    if len(times) < 2 or times[-1] - times[0] < MIN_COVER * seconds:
        return _ticks(history, uuid, seconds), False
    spacing = (times[-1] - times[0]) / (len(times) - 1)
    steps = [after - before for before, after in pairwise(times)]
    if max(steps) <= HOLE_SPACINGS * spacing:
        return (times, values), True
    return fill_holes((times, values), _ticks(history, uuid, seconds)), True


def _ticks(history: History, uuid: str, seconds: float) -> Series:
    times = history.times(seconds)
    values = history.values(f"gpu:{uuid}", "utilization_ratio", seconds)
    known = [(time, value) for time, value in zip(times, values, strict=True) if not isnan(value)]
    return [time for time, _ in known], [value for _, value in known]


def fill_holes(points: Series, ticks: Series) -> Series:
    """Where the ring ran dry (drivers do that on an idle GPU) the ticks' readings stand in.

    A hole without a reading stays a hole.
    """
    times, values = points
    steps = sorted([after - before for before, after in pairwise(times)])
    spacing = steps[len(steps) // 2]
    if spacing <= 0:
        return points
    filled_times, filled_values = [times[0]], [values[0]]
    for time, value in zip(times[1:], values[1:], strict=True):
        if time - filled_times[-1] > HOLE_SPACINGS * spacing:
            _fill(filled_times, filled_values, time, spacing, ticks)
        filled_times.append(time)
        filled_values.append(value)
    return filled_times, filled_values


def _fill(times: list[float], values: list[float], until: float, spacing: float, ticks: Series) -> None:
    """Extend up to `until`, as far as ticks were read in between."""
    tick_times, tick_values = ticks
    index = bisect_right(tick_times, times[-1])
    while index < len(tick_times) and tick_times[index] < until:
        while times[-1] + spacing <= tick_times[index]:
            times.append(times[-1] + spacing)
            values.append(tick_values[index])
        index += 1
