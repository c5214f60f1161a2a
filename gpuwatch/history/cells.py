"""Plot cells: a fixed number of ticks each, counted from the first tick ever, so a picture shifts
by whole cells and never shimmers."""

from __future__ import annotations  # array[float] cannot be evaluated before Python 3.12

from collections.abc import Callable, Sequence

from gpuwatch.history.ring import Track
from gpuwatch.history.tiers import Range, TierSteps
from gpuwatch.metrics import Summary

Reduce = Callable[[Sequence[float]], float]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _or(values: Sequence[float]) -> float:
    bits = 0
    for value in values:
        bits |= int(value)
    return float(bits)


def _last(values: Sequence[float]) -> float:
    return values[-1]


_REDUCE: dict[Summary, Reduce] = {
    Summary.MEAN: _mean,
    Summary.MAX: max,
    Summary.MIN: min,
    Summary.LAST: _last,
    Summary.OR: _or,
}


class CellReader:
    """Cells of one column, at the moment of tick number `count - 1`."""

    def __init__(self, track: Track, index: int, count: int, tiers: tuple[TierSteps, ...]) -> None:
        self._track = track
        self._index = index
        self._count = count
        self._summary = track.metrics[index].summary
        self._tiers = tiers if track.metrics[index].tiers else ()

    def values(self, cells: int, ticks_per_cell: int, back: int) -> list[float | None]:
        """Each cell summarised as the metric says."""
        lost, first_fine = self._lost(cells, ticks_per_cell, back)
        row = [self._coarse(*span) for span in lost]
        return row + self._fine(first_fine, ticks_per_cell, back, _REDUCE[self._summary])

    def ranges(self, cells: int, ticks_per_cell: int, back: int) -> list[tuple[float, float] | None]:
        """(lowest, highest) of each cell."""
        lost, first_fine = self._lost(cells, ticks_per_cell, back)
        row = [_outer(self._steps(*span)) for span in lost]
        lows = self._fine(first_fine, ticks_per_cell, back, min)
        highs = self._fine(first_fine, ticks_per_cell, back, max)
        for low, high in zip(lows, highs, strict=True):
            row.append(None if low is None or high is None else (low, high))
        return row

    def _lost(self, cells: int, ticks_per_cell: int, back: int) -> tuple[list[tuple[int, int]], int]:
        """(first, last) tick of each cell that the ring does not hold whole, and the first cell it does."""
        last_cell = (self._count - 1 - back) // ticks_per_cell
        first_cell = last_cell - cells + 1
        held = max(0, self._count - self._track.capacity)  # the oldest tick in the ring
        first_fine = min(max(first_cell, -(-held // ticks_per_cell)), last_cell + 1)
        spans = [(c * ticks_per_cell, (c + 1) * ticks_per_cell - 1) for c in range(first_cell, first_fine)]
        return spans, first_fine

    def _fine(self, first_cell: int, ticks_per_cell: int, back: int, reduce: Reduce) -> list[float | None]:
        """Cells from the ring, from `first_cell` on; the newest may be unfinished."""
        ticks = self._count - back - first_cell * ticks_per_cell
        values = self._track.newest(self._index, self._count, max(0, ticks), back)
        if ticks_per_cell == 1:
            return [value if value == value else None for value in values]
        row: list[float | None] = []
        for start in range(0, len(values), ticks_per_cell):
            part: Sequence[float] = values[start : start + ticks_per_cell]
            total = sum(part)
            if total != total:
                part = [value for value in part if value == value]
            row.append(reduce(part) if part else None)
        return row

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
        """What the coarser past has of these ticks, from the finest that has any."""
        if last >= 0:
            for tier in self._tiers:
                steps = tier.of_ticks(self._track, self._index, first, last, self._count)
                if steps:
                    return steps
        return []


def _outer(steps: list[Range]) -> tuple[float, float] | None:
    return (min(step[0] for step in steps), max(step[2] for step in steps)) if steps else None
