"""The coarser past: lowest, mean and highest value of each step of monotonic time.

Steps lie on multiples of their length, so they are the same whenever the program was started. The
step that is still open is computed from the fine ring when it is asked for.
"""

from __future__ import annotations  # array[float] cannot be evaluated before Python 3.12

from array import array
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
    """The steps of one length: which are held, and the tick each began with."""

    def __init__(self, step_s: int, span_s: int) -> None:
        self.step_s = step_s
        self.capacity = span_s // step_s
        self.step: int | None = None  # the open one
        self.ticks = 0  # in the open step
        self._first_step = 0
        self._steps = array("q", [-1]) * self.capacity
        self._first_ticks = array("q", [0]) * self.capacity

    def ends_before(self, time_s: float) -> bool:
        """Whether a tick at `time_s` closes the open step."""
        return self.step is not None and int(time_s // self.step_s) != self.step

    def add_tick(self, time_s: float, tick: int) -> None:
        step = int(time_s // self.step_s)
        if step != self.step:
            if self.step is None:
                self._first_step = step
            self.step, self.ticks = step, 0
            slot = step % self.capacity
            self._steps[slot], self._first_ticks[slot] = step, tick
        self.ticks += 1

    def close(self, track: Track, index: int, count: int) -> None:
        """Keep the open step of one column for good."""
        if track.columns[index] is None or self.step is None:
            return
        column = track.coarse.get((self.step_s, index))
        if column is None:
            column = track.coarse[self.step_s, index] = tuple(
                array("f", [nan]) * self.capacity for _ in range(3)
            )
        slot = self.step % self.capacity
        for part, value in zip(column, self._open(track, index, count) or _UNKNOWN, strict=True):
            part[slot] = value

    def read(self, track: Track, index: int, count: int) -> Tier:
        """All steps held, the open one included."""
        times, lows, means, highs = (array("d") for _ in range(4))
        for step in self._held():
            range_ = self._range(track, index, step, count)
            times.append(float(step * self.step_s))
            for target, value in zip((lows, means, highs), range_ or _UNKNOWN, strict=True):
                target.append(value)
        return Tier(times, lows, means, highs)

    def of_ticks(self, track: Track, index: int, first: int, last: int, count: int) -> list[Range]:
        """The known steps that ticks `first` to `last` fall into; empty when they are no longer held."""
        ranges: list[Range] = []
        newest = True
        following = count
        for step in reversed(self._held()):
            slot = step % self.capacity
            if self._steps[slot] != step:
                continue
            began = self._first_ticks[slot]
            if began <= last and (newest or following > first):
                range_ = self._range(track, index, step, count)
                if range_ is not None:
                    ranges.append(range_)
            if began <= first:
                break
            newest, following = False, began
        ranges.reverse()
        return ranges

    def _held(self) -> range:
        if self.step is None:
            return range(0)
        return range(max(self._first_step, self.step - self.capacity + 1), self.step + 1)

    def _range(self, track: Track, index: int, step: int, count: int) -> Range | None:
        if step == self.step:
            return self._open(track, index, count)
        slot = step % self.capacity
        column = track.coarse.get((self.step_s, index))
        if column is None or self._steps[slot] != step:
            return None
        low, mean, high = column
        return (low[slot], mean[slot], high[slot]) if mean[slot] == mean[slot] else None

    def _open(self, track: Track, index: int, count: int) -> Range | None:
        return summary(track.newest(index, count, self.ticks))
