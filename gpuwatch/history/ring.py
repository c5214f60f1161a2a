"""The fine past: one value per tick and series, and the ring of tick times they are aligned with.

Every ring is written twice, a capacity apart, so that the last n values are always one slice.
Where a slot lies follows from the tick's number alone; all rings of one capacity share it.
"""

from __future__ import annotations  # array[float] cannot be evaluated before Python 3.12

from array import array
from bisect import bisect_right
from collections.abc import Callable, Sequence
from math import nan
from operator import attrgetter
from typing import Any

from gpuwatch.metrics import Field, Metric, Rate

_NAN = array("d", [nan])


def gaps(count: int) -> array[float]:
    """`count` unknown values."""
    return _NAN * count


class TickTimes:
    """Monotonic times of the newest `capacity` ticks."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.count = 0  # ticks so far; the newest has the number count - 1
        self._times = array("d", bytes(16 * capacity))

    def append(self, time_s: float) -> None:
        slot = self.count % self.capacity
        self._times[slot] = self._times[slot + self.capacity] = time_s
        self.count += 1

    @property
    def held(self) -> int:
        """How many ticks are still here."""
        return min(self.count, self.capacity)

    def since(self, time_s: float) -> int:
        """How many of the newest ticks are later than `time_s`."""
        end = self._end()
        return end - bisect_right(self._times, time_s, end - self.held, end)

    def newest(self, ticks: int) -> array[float]:
        end = self._end()
        return self._times[end - ticks : end]

    def _end(self) -> int:
        return (self.count - 1) % self.capacity + self.capacity + 1 if self.count else self.capacity


class Plan:
    """How the metrics of one kind of entity are derived: plain fields and counters in bulk."""

    __slots__ = ("counters", "fields", "metrics", "others", "read_counters", "read_fields")

    def __init__(self, metrics: Sequence[Metric]) -> None:
        numbered = [(index, metric.derive) for index, metric in enumerate(metrics)]
        self.metrics = metrics
        self.fields = [index for index, derive in numbered if isinstance(derive, Field)]
        self.counters = [(index, derive) for index, derive in numbered if isinstance(derive, Rate)]
        self.others = [(index, derive) for index, derive in numbered if not isinstance(derive, Field | Rate)]
        self.read_fields = _reader([derive.name for _, derive in numbered if isinstance(derive, Field)])
        self.read_counters = _reader([derive.name for _, derive in self.counters])


def _reader(names: Sequence[str]) -> Callable[[Any], tuple[Any, ...]]:
    """All these fields of a reading at once."""
    if len(names) < 2:
        return lambda reading: tuple(getattr(reading, name) for name in names)
    return attrgetter(*names)


class Track:
    """The series of one entity: a column per metric, made when its first value comes.

    `previous` is its newest reading that was fresh, `previous_s` when that was taken, `seen` the
    number of the last tick that knew the entity. `coarse` holds (low, mean, high) rings by step length
    in seconds and column, see `tiers`.
    """

    __slots__ = (
        "_counts",
        "_plan",
        "capacity",
        "coarse",
        "columns",
        "metrics",
        "previous",
        "previous_s",
        "seen",
    )

    def __init__(self, plan: Plan, capacity: int) -> None:
        self.metrics = plan.metrics
        self.capacity = capacity
        self.columns: list[array[float] | None] = [None] * len(plan.metrics)
        self.previous: Any = None
        self.previous_s = nan
        self.seen = -1
        self.coarse: dict[tuple[int, int], tuple[array[float], ...]] = {}
        self._plan = plan
        self._counts: tuple[Any, ...] | None = None  # of the previous reading

    def write(self, tick: int, reading: Any, time_s: float, longest_s: float) -> None:
        """Derive this tick's values. After more than `longest_s` a difference says nothing about now."""
        dt = time_s - self.previous_s
        comparable = dt <= longest_s
        previous = self.previous if comparable else None
        capacity, columns, plan = self.capacity, self.columns, self._plan
        slot = tick % capacity
        twin = slot + capacity
        for index, value in zip(plan.fields, plan.read_fields(reading), strict=True):
            column = columns[index]
            if column is None:
                if value is None:
                    continue
                column = self._column(index)
            column[slot] = column[twin] = nan if value is None else value
        counts, before = plan.read_counters(reading), self._counts
        if before is not None and comparable:
            for (index, rate), old, new in zip(plan.counters, before, counts, strict=True):
                self._put(index, slot, rate.of(old, new, dt))
        else:
            for index, _ in plan.counters:
                self._put(index, slot, None)
        for index, derive in plan.others:
            self._put(index, slot, derive(previous, reading, dt))
        self.previous, self.previous_s, self._counts = reading, time_s, counts

    def _put(self, index: int, slot: int, value: float | None) -> None:
        column = self.columns[index]
        if column is None:
            if value is None:
                return
            column = self._column(index)
        column[slot] = column[slot + self.capacity] = nan if value is None else value

    def _column(self, index: int) -> array[float]:
        column = self.columns[index] = gaps(2 * self.capacity)
        return column

    def skip(self, tick: int) -> None:
        """This tick knows nothing of the entity."""
        slot = tick % self.capacity
        twin = slot + self.capacity
        for column in self.columns:
            if column is not None:
                column[slot] = column[twin] = nan

    def newest_value(self, index: int, count: int) -> float:
        """Of the newest of `count` ticks so far; NaN is a gap."""
        column = self.columns[index]
        return nan if column is None or not count else column[(count - 1) % self.capacity]

    def newest(self, index: int, count: int, ticks: int, back: int = 0) -> array[float]:
        """The last `ticks` values of a column before the newest `back`, of `count` ticks so far.

        Older ones than the ring holds are unknown.
        """
        column = self.columns[index]
        if column is None:
            return gaps(ticks)
        held = max(0, min(ticks, self.capacity - back))
        last = count - 1 - back
        end = last % self.capacity + self.capacity + 1
        values = column[end - held : end]
        return values if held == ticks else gaps(ticks - held) + values
