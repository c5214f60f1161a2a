"""Sparklines, strips and bars: numbers as characters, on a fixed scale, the newest at the right.

A constant 0 and a constant 100 % are different pictures, a missing value is a gap, a cell before the
first tick is blank, and a value far off the scale is marked instead of bending it.
"""

from collections.abc import Sequence
from functools import lru_cache
from math import log10

from gpuwatch.views.glyphs import Glyphs
from gpuwatch.views.rows import Span

#: Beyond this multiple of the scale a value is marked; below it the full cell says enough.
FAR_OVER = 1.25
#: Hexadecimal digits name P-states in strips where P10 has no room.
_DIGITS = "0123456789ABCDEF"


def heights(values: Sequence[float | None], low: float, high: float, steps: int) -> list[int | None]:
    """Each value as a step 0..steps-1 of the scale; `steps` itself where it lies far beyond."""
    span = high - low if high > low else 1.0
    scale, far = (steps - 1) / span, span * FAR_OVER
    last = steps - 1
    result: list[int | None] = []
    for value in values:
        if value is None:
            result.append(None)
        elif value - low > far:
            result.append(steps)
        else:
            step = int((value - low) * scale + 0.5)
            result.append(0 if step < 0 else last if step > last else step)
    return result


def spark(values: Sequence[float | None], low: float, high: float, glyphs: Glyphs, blank: int = 0) -> str:
    """One row, one character per value; the first `blank` cells lie before the first tick."""
    if 0 < blank < len(values) and values[blank] is None:
        blank += 1  # a rate needs two ticks
    symbols = (*glyphs.levels, glyphs.over)
    gap = glyphs.gap
    drawn = heights(values[blank:], low, high, len(glyphs.levels))
    return " " * blank + "".join([gap if step is None else symbols[step] for step in drawn])


def spark_rows(
    values: Sequence[float | None], low: float, high: float, rows: int, glyphs: Glyphs, blank: int = 0
) -> list[str]:
    """The same over several rows, top first. A gap is marked in the lowest row."""
    if rows <= 1:
        return [spark(values, low, high, glyphs, blank)] if rows == 1 else []
    columns = _columns(rows, glyphs.levels, glyphs.full, glyphs.over, glyphs.gap)
    steps = heights(values[blank:], low, high, len(glyphs.levels) * rows)
    front = " " * blank
    if not steps:
        return [front] * rows
    gap = columns[-1]
    drawn = [gap if step is None else columns[step] for step in steps]
    return [front + "".join(row) for row in zip(*drawn, strict=True)]


@lru_cache(maxsize=64)  # one for each height of a plot: half the cost of the rows otherwise
def _columns(rows: int, levels: Sequence[str], full: str, over: str, gap: str) -> tuple[str, ...]:
    """One column of `rows` characters, top first, for each step; then far beyond, and a gap."""
    fine = len(levels)
    columns = []
    for step in range(fine * rows):
        filled = [step - row * fine for row in reversed(range(rows))]
        columns.append(
            "".join(full if part >= fine else levels[part] if part >= 0 else " " for part in filled)
        )
    return (*columns, over + full * (rows - 1), " " * (rows - 1) + gap)


def logarithmic(value: float | None, low: float) -> float | None:
    """For a logarithmic scale that begins at `low`; what lies below counts as nothing."""
    return None if value is None else log10(value / low) if value > low else 0.0


def state_strip(values: Sequence[float | None], glyphs: Glyphs, blank: int = 0) -> str:
    """Which P-state, and when: its name where it begins, a line for as long as it lasts.

    A state of one cell is a hexadecimal digit; a gap is a gap.
    """
    parts = [" " * blank]
    start = blank
    count = len(values)
    while start < count:
        value = values[start]
        end = start + 1
        while end < count and values[end] == value:
            end += 1
        parts.append(_run(value, end - start, glyphs))
        start = end
    return "".join(parts)


def _run(value: float | None, length: int, glyphs: Glyphs) -> str:
    if value is None:
        return glyphs.gap * length
    state = int(value)
    name = f"P{state}"
    if length <= len(name):
        name = _DIGITS[state] if 0 <= state < len(_DIGITS) else "?"
    return name + glyphs.line * (length - len(name))


def share_cells(ratios: Sequence[float], width: int) -> list[int]:
    """`width` cells shared out by largest remainder: the sum is exactly `width`.

    What is at least one percent gets a cell where the largest part can spare it.
    """
    total = sum(ratio for ratio in ratios if ratio > 0)
    if width <= 0 or total <= 0:
        return [0] * len(ratios)
    exact = [max(0.0, ratio) / total * width for ratio in ratios]
    result = [int(cell) for cell in exact]
    by_rest = sorted(range(len(exact)), key=lambda i: (result[i] - exact[i], i))
    for index in by_rest[: width - sum(result)]:
        result[index] += 1
    for index, ratio in enumerate(ratios):
        largest = max(range(len(result)), key=result.__getitem__)
        if result[index] == 0 and ratio / total >= 0.01 and result[largest] > 1:
            result[index], result[largest] = 1, result[largest] - 1
    return result


def whole_percents(ratios: Sequence[float]) -> list[int]:
    """Percentages that sum to 100, by largest remainder."""
    exact = [max(0.0, ratio) * 100 for ratio in ratios]
    result = [int(value) for value in exact]
    missing = round(sum(exact)) - sum(result)
    by_rest = sorted(range(len(exact)), key=lambda i: (result[i] - exact[i], i))
    for index in by_rest[: max(0, missing)]:
        result[index] += 1
    return result


def bar(ratio: float | None, width: int, role: str, glyphs: Glyphs) -> tuple[Span, ...]:
    """A filled part and an empty one; more than full is full. Unknown is all gaps."""
    if width <= 0:
        return ()
    if ratio is None:
        return ((glyphs.gap * width, "dim"),)
    filled = min(width, max(0, round(ratio * width)))
    return ((glyphs.full * filled, role), (glyphs.empty * (width - filled), "dim"))
