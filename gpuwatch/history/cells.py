"""Plot cells: a fixed number of ticks each, counted from the first tick ever, so a picture shifts
by whole cells and never shimmers."""

from __future__ import annotations  # array[float] cannot be evaluated before Python 3.12

from array import array
from collections.abc import Callable

from gpuwatch.history.ring import Track
from gpuwatch.history.tiers import Range, TierSteps
from gpuwatch.history.tiers import summary as range_of
from gpuwatch.metrics import Summary

Reduce = Callable[[list[float]], float]


def _or(values: list[float]) -> float:
    bits = 0
    for value in values:
        bits |= int(value)
    return float(bits)


_REDUCE: dict[Summary, Reduce] = {
    Summary.MEAN: lambda values: sum(values) / len(values),
    Summary.MAX: max,
    Summary.MIN: min,
    Summary.LAST: lambda values: values[-1],
    Summary.OR: _or,
}


class CellReader:
    """Cells of one column. `first_held` is the oldest tick still in the fine ring."""

    def __init__(self, track: Track, index: int, count: int, tiers: tuple[TierSteps, ...]) -> None:
        self._track = track
        self._index = index
        self._count = count
        self._summary = track.metrics[index].summary
        self._tiers = tiers if track.metrics[index].tiers else ()
        self._first_held = max(0, count - track.capacity)

    def values(self, cells: int, ticks_per_cell: int, back: int) -> list[float | None]:
        newest = self._count - 1 - back
        if ticks_per_cell == 1 and newest - cells + 1 >= self._first_held:
            newest_values = self._track.newest(self._index, self._count, cells, back)
            return [value if value == value else None for value in newest_values]
        reduce = _REDUCE[self._summary]
        row: list[float | None] = []
        for first, last in _spans(newest, cells, ticks_per_cell):
            fine = self._fine(first, last)
            if fine is None:
                row.append(self._coarse(first, last))
                continue
            known = [value for value in fine if value == value]
            row.append(reduce(known) if known else None)
        return row

    def ranges(self, cells: int, ticks_per_cell: int, back: int) -> list[tuple[float, float] | None]:
        row: list[tuple[float, float] | None] = []
        for first, last in _spans(self._count - 1 - back, cells, ticks_per_cell):
            fine = self._fine(first, last)
            if fine is None:
                steps = self._steps(first, last)
                row.append((min(s[0] for s in steps), max(s[2] for s in steps)) if steps else None)
            else:
                known = range_of(fine)
                row.append((known[0], known[2]) if known else None)
        return row

    def _fine(self, first: int, last: int) -> array[float] | None:
        """The cell's own values; None once the ring has lost one of them."""
        if last < 0:
            return array("d")
        first = max(first, 0)
        if first < self._first_held:
            return None
        return self._track.newest(self._index, self._count, last - first + 1, self._count - 1 - last)

    def _coarse(self, first: int, last: int) -> float | None:
        steps = self._steps(first, last)
        if not steps:
            return None
        if self._summary is Summary.MAX:
            return max(step[2] for step in steps)
        if self._summary is Summary.MIN:
            return min(step[0] for step in steps)
        return sum(step[1] for step in steps) / len(steps)

    def _steps(self, first: int, last: int) -> list[Range]:
        for tier in self._tiers:
            steps = tier.of_ticks(self._track, self._index, first, last, self._count)
            if steps:
                return steps
        return []


def _spans(newest: int, cells: int, ticks_per_cell: int) -> list[tuple[int, int]]:
    """(first, last) tick of each cell, newest last; the newest cell may be unfinished."""
    last_cell = newest // ticks_per_cell
    return [
        (cell * ticks_per_cell, min(newest, (cell + 1) * ticks_per_cell - 1))
        for cell in range(last_cell - cells + 1, last_cell + 1)
    ]
