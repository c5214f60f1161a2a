"""Charts of several rows with an axis: the range is written beside every one of them."""

from collections.abc import Sequence

from gpuwatch.metrics import Metric
from gpuwatch.views import format as words
from gpuwatch.views.glyphs import Glyphs
from gpuwatch.views.lens import Lens
from gpuwatch.views.rows import Row, Span, both_ends, cells, row, safe, shorten, width_of
from gpuwatch.views.spark import spark_rows

AXIS_WIDTH = 8
#: Steps of a scale that is taken from the data: 1, 2, 5 and their powers of ten.
_STEPS = (1.0, 2.0, 5.0, 10.0)


def nice_top(value: float) -> float:
    """The next round number at or above `value`; 1 for nothing."""
    if value <= 0:
        return 1.0
    power = 1.0
    while power * 10 < value:
        power *= 10
    while power > value:
        power /= 10
    return next(step * power for step in _STEPS if step * power >= value * 0.9999)


def chart(
    lens: Lens,
    entity: str,
    metric: Metric,
    width: int,
    rows: int,
    *,
    high: float | None = None,
    limit: float | None = None,
    limit_name: str = "limit",
    role: str = "series1",
    title: str = "",
) -> list[Row]:
    """A title row, `rows` rows of curve. `high` None: the metric's own, else a round number above the
    highest value shown. `limit` is drawn as a line across."""
    plot_width = max(1, width - AXIS_WIDTH - 1)
    values = lens.cells(entity, metric.key, plot_width)
    known = [value for value in values if value is not None]
    low = metric.low
    top = high if high is not None else metric.high
    if top is None:
        top = nice_top(max(known, default=0.0))
    lines = spark_rows(values, low, top, rows, lens.glyphs, lens.blank(plot_width))
    if limit is not None and low < limit <= top:
        lines = _with_limit(lines, (limit - low) / (top - low), lens.glyphs)
    result = [_title(lens, metric, title or metric.label, known, limit, limit_name, width)]
    for number, line in enumerate(lines):
        label = ""
        if number == 0:
            label = safe(axis_text(top, metric.unit), lens.glyphs)
        elif number == rows - 1:
            label = safe(axis_text(low, metric.unit), lens.glyphs)
        result.append(row([(f"{label:>{AXIS_WIDTH}} ", "dim"), (line, role)], width))
    return result


def _title(
    lens: Lens,
    metric: Metric,
    title: str,
    known: Sequence[float],
    limit: float | None,
    limit_name: str,
    width: int,
) -> Row:
    start: list[Span] = [(f"{title}  ", "title")]
    if known:
        start.append((safe(words.quantity(known[-1], metric.unit), lens.glyphs), "value"))
    else:
        start.append(("no data", "dim"))
    if limit is not None:
        text = f"   {limit_name} {words.quantity(limit, metric.unit)}"
        start.append((safe(text, lens.glyphs), "dim"))
    if not known:
        return row(start, width)
    low, mean, high = (
        words.quantity(value, metric.unit) for value in (min(known), sum(known) / len(known), max(known))
    )
    for text in (f"min {low}  mean {mean}  max {high}", f"{low} to {high}", f"max {high}"):
        end = safe(f"   {text}", lens.glyphs)
        if width_of(start) + cells(end) <= width:
            return both_ends(start, [(end, "dim")], width)
    return row(start, width)


def _with_limit(lines: Sequence[str], ratio: float, glyphs: Glyphs) -> list[str]:
    """The limit in the free cells of its row; the curve goes over it."""
    place = len(lines) - 1 - min(len(lines) - 1, int(ratio * len(lines)))
    return [line.replace(" ", glyphs.limit) if number == place else line for number, line in enumerate(lines)]


def axis_text(value: float, unit: str) -> str:
    """The end of an axis in at most eight cells."""
    if unit == "ratio":
        return f"{100 * value:.0f} %"
    if unit in ("B", "B/s"):
        text = words.memory(value) if unit == "B" else words.rate(value)
        return text if value else "0"
    return f"{value:.0f} {unit}".strip() if value else "0"


def time_axis(lens: Lens, width: int) -> Row:
    """How far back the left edge lies, and what the right edge is."""
    plot_width = max(1, width - AXIS_WIDTH - 1)
    cell_s = lens.ticks_per_cell * lens.history.interval_s
    start = f"{words.span(float(round(plot_width * cell_s)))} ago"
    end = "now" if not lens.back else f"{words.span(float(round(lens.back * lens.history.interval_s)))} ago"
    cell = f"one cell is {words.span(cell_s)}"
    room = plot_width - len(start) - len(end)
    middle = shorten(cell, max(0, room - 2), lens.glyphs).center(room) if room > len(cell) + 2 else " " * room
    return row([(" " * (AXIS_WIDTH + 1), ""), (f"{start}{middle}{end}", "dim")], width)
