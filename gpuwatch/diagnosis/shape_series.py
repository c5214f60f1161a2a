"""The points a shape is measured on: the driver's sub-second samples where it has them, else ticks."""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise
from math import isnan

from gpuwatch.diagnosis.shape import HOLE_SPACINGS
from gpuwatch.history import History

#: Sub-second points must reach over this part of the window, or the ticks are the better record.
MIN_COVER = 0.5

Series = tuple[list[float], list[float]]


def utilization_series(history: History, uuid: str, seconds: float) -> tuple[Series, bool]:
    """((times, values 0..1), whether they are the driver's own samples) of the last `seconds`."""
    entity = f"gpu:{uuid}"
    burst = history.burst(uuid, "utilization", seconds)
    ticks = [
        (time, value)
        for time, value in zip(
            history.times(seconds), history.values(entity, "utilization_ratio", seconds), strict=True
        )
        if not isnan(value)
    ]
    tick_times, tick_values = [time for time, _ in ticks], [value for _, value in ticks]
    if len(burst.values) < 2 or burst.times_s[-1] - burst.times_s[0] < MIN_COVER * seconds:
        return (tick_times, tick_values), False
    return fill_holes((list(burst.times_s), list(burst.values)), (tick_times, tick_values)), True


def fill_holes(points: Series, ticks: Series) -> Series:
    """Where the ring ran dry (drivers do that on an idle GPU) the ticks' readings stand in.

    A hole without a reading stays a hole.
    """
    times, values = points
    steps = sorted(after - before for before, after in pairwise(times))
    spacing = steps[len(steps) // 2]
    if steps[-1] <= HOLE_SPACINGS * spacing or spacing <= 0:
        return points
    filled_times, filled_values = times[:1], values[:1]
    for time, value in zip(times[1:], values[1:], strict=True):
        if time - filled_times[-1] > HOLE_SPACINGS * spacing:
            _fill(filled_times, filled_values, time, spacing, ticks)
        filled_times.append(time)
        filled_values.append(value)
    return filled_times, filled_values


def _fill(
    times: list[float], values: list[float], until: float, spacing: float, ticks: Sequence[list[float]]
) -> None:
    """Extend up to `until`, as far as ticks were read in between."""
    tick_times, tick_values = ticks
    index = bisect_right(tick_times, times[-1])
    while index < len(tick_times) and tick_times[index] < until:
        while times[-1] + spacing <= tick_times[index]:
            times.append(times[-1] + spacing)
            values.append(tick_values[index])
        index += 1
