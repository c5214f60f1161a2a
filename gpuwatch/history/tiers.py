"""The coarser past: lowest, mean and highest value of each step of monotonic time.

Steps lie on multiples of their length, so they are the same whenever the program was started. The
step that is still open is computed from the fine ring when it is asked for.
"""

from __future__ import annotations  # array[float] cannot be evaluated before Python 3.12

from array import array
from bisect import bisect_right
from dataclasses import dataclass
from math import nan

from gpuwatch.history.ring import Track


@dataclass(frozen=True, slots=True)
class Tier:
    """Coarser past of one series, oldest first; NaN where nothing was measured.

    `times_s` are the starts of the steps.
    """

    times_s: array[float]
    low: array[float]
    mean: array[float]
    high: array[float]


Range = tuple[float, float, float]  # low, mean, high
_UNKNOWN: Range = (nan, nan, nan)


def summary(values: array[float]) -> Range | None:
    """(low, mean, high) of the values that are no gap, None without any."""
    total = sum(values)
    if total != total or not values:
        values = array("d", [value for value in values if value == value])
        if not values:
            return None
        total = sum(values)
    return min(values), total / len(values), max(values)


class TierSteps:
    """The steps of one length: which are held, and the tick each began with.

    A step without any tick is not listed. A track's ring for it lies at step number modulo capacity.
    """

    def __init__(self, step_s: int, span_s: int) -> None:
        self.step_s = step_s
        self.capacity = span_s // step_s
        self.ticks = 0  # in the open step, the last of the list
        self._steps = array("q")
        self._first_ticks = array("q")

    def ends_before(self, time_s: float) -> bool:
        """Whether a tick at `time_s` closes the open step."""
        return bool(self._steps) and int(time_s // self.step_s) != self._steps[-1]

    def add_tick(self, time_s: float, tick: int) -> None:
        step = int(time_s // self.step_s)
        if not self._steps or step != self._steps[-1]:
            self._steps.append(step)
            self._first_ticks.append(tick)
            self.ticks = 0
            lost = bisect_right(self._steps, step - self.capacity)
            del self._steps[:lost], self._first_ticks[:lost]
        self.ticks += 1

    def close(self, track: Track, index: int, count: int) -> None:
        """Keep the open step of one column for good."""
        if track.columns[index] is None or not self._steps:
            return
        column = track.coarse.get((self.step_s, index))
        if column is None:
            column = track.coarse[self.step_s, index] = tuple(
                array("f", [nan]) * self.capacity for _ in range(3)
            )
        slot = self._steps[-1] % self.capacity
        for part, value in zip(column, self._open(track, index, count) or _UNKNOWN, strict=True):
            part[slot] = value

    def read(self, track: Track, index: int, count: int) -> Tier:
        """All steps held, the open one included; steps without a tick are gaps."""
        times, lows, means, highs = (array("d") for _ in range(4))
        known = set(self._steps)
        for step in range(self._steps[0], self._steps[-1] + 1) if self._steps else ():
            range_ = self._range(track, index, step, count) if step in known else None
            times.append(float(step * self.step_s))
            for target, value in zip((lows, means, highs), range_ or _UNKNOWN, strict=True):
                target.append(value)
        return Tier(times, lows, means, highs)

    def of_ticks(self, track: Track, index: int, first: int, last: int, count: int) -> list[Range]:
        """The known steps that ticks `first` to `last` fall into; empty when they are no longer held."""
        start = max(0, bisect_right(self._first_ticks, first) - 1)
        end = bisect_right(self._first_ticks, last)
        ranges = (self._range(track, index, step, count) for step in self._steps[start:end])
        return [range_ for range_ in ranges if range_ is not None]

    def _range(self, track: Track, index: int, step: int, count: int) -> Range | None:
        if step == self._steps[-1]:
            return self._open(track, index, count)
        column = track.coarse.get((self.step_s, index))
        if column is None:
            return None
        slot = step % self.capacity
        low, mean, high = column
        return (low[slot], mean[slot], high[slot]) if mean[slot] == mean[slot] else None

    def _open(self, track: Track, index: int, count: int) -> Range | None:
        return summary(track.newest(index, count, self.ticks))
