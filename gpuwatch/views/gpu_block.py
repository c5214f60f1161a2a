"""One GPU in several rows: a head with the P-state strip, then one series a row, the most telling first."""

from gpuwatch.model import MigReading
from gpuwatch.views import format as words
from gpuwatch.views.gpu_line import index_mark, is_selected, line, status_spans
from gpuwatch.views.gpu_series import (
    BY_IMPORTANCE,
    LABEL_WIDTH,
    MEMORY,
    NARROW_VALUE_WIDTH,
    P_STATE,
    UTILIZATION,
    VALUE_WIDTH,
    GpuPicture,
    Series,
)
from gpuwatch.views.rows import Row, Span, blank, row, safe, shorten

#: From this width of a block on the limits stand beside the values.
LIMITS_FROM = 50
#: A head row pays from this many rows on: several GPUs need it to be told apart.
HEAD_ROWS, HEAD_ROWS_SINGLE = 4, 7
#: A curve with much in it may be higher than one that hardly moves.
#: One GPU with this many rows has one for its sub-second samples.
FINE_FROM = 6
MOST_PLOT_ROWS = {"util": 8, "power": 4, "pcie_rx": 3, "clock": 2, "temp": 2}


def block(picture: GpuPicture, width: int, rows: int, count: int) -> list[Row]:
    """`rows` rows of `width` cells; `count` is the number of GPUs in all."""
    if rows == 1:
        return [line(picture, width, count)]
    if not picture.ok:
        return _status_block(picture, width, rows, count)
    with_head = rows >= (HEAD_ROWS_SINGLE if count == 1 else HEAD_ROWS)
    result = [_head(picture, width, count)] if with_head else []
    instances = mig_rows(picture, width)[: max(0, rows - 3)]
    chosen = [series for series in BY_IMPORTANCE if not (with_head and series is P_STATE)]
    fine = [_fine_row(picture, width)] if count == 1 and rows >= FINE_FROM and picture.has_fine else []
    left = rows - len(result) - len(instances) - len(fine)
    for place, (series, height) in enumerate(_heights(chosen, left)):
        first = place == 0 and not with_head
        result += _series_rows(picture, series, width, height, index_mark(picture, count) if first else None)
        if place == 0:
            result += fine
    result += instances
    return (result + [blank(width)] * (rows - len(result)))[:rows]


def _fine_row(picture: GpuPicture, width: int) -> Row:
    """The driver's own samples of the last seconds, one a cell: pulses shorter than a tick show here."""
    value_width = VALUE_WIDTH if width >= LIMITS_FROM else NARROW_VALUE_WIDTH
    plot_width = max(0, width - LABEL_WIDTH - value_width)
    points, per_s = picture.fine(plot_width)
    value = f"{f'{per_s:.0f} a second' if per_s else '':>{value_width - 1}} "
    return row(
        [("fine".ljust(LABEL_WIDTH), "label"), (points, picture.role(UTILIZATION)), (value, "dim")], width
    )


def _heights(chosen: list[Series], rows: int) -> list[tuple[Series, int]]:
    """Rows for each series: one each as far as they reach, then more for the ones with a curve."""
    shown = chosen[:rows]
    heights = [1] * len(shown)
    left = rows - len(shown)
    while left > 0:
        growing = [i for i, one in enumerate(shown) if heights[i] < MOST_PLOT_ROWS.get(one.name, 1)][:left]
        if not growing:
            break
        for index in growing:
            heights[index] += 1
        left -= len(growing)
    return list(zip(shown, heights, strict=True))


def _series_rows(
    picture: GpuPicture, series: Series, width: int, height: int, mark: Span | None
) -> list[Row]:
    """Label, plot, value. Without room for a head the first label is the GPU's number."""
    value_width = VALUE_WIDTH if width >= LIMITS_FROM else NARROW_VALUE_WIDTH
    if width < LABEL_WIDTH + NARROW_VALUE_WIDTH + 6:
        value_width = max(0, width - LABEL_WIDTH - 6)
    plot_width = max(0, width - LABEL_WIDTH - value_width)
    plots = picture.plot(series, plot_width, height)
    label: Span = (f"{picture.label(series):<{LABEL_WIDTH}}", "label")
    if mark is not None and len(picture.lens.gpus) > 1:
        pointer = ">" if is_selected(picture) else " "
        name = f"{f'{picture.reading.index}{pointer}':<2}{series.label}"
        label = (name[:LABEL_WIDTH].ljust(LABEL_WIDTH), mark[1])
    value = picture.value(series, value_width) if value_width >= 6 else ("", "")
    if series is P_STATE and value_width:
        value = _memory_value(picture, value_width)
    role = picture.role(series)
    first = row([label, (plots[0], role), value], width)
    return [first, *(row([(" " * LABEL_WIDTH, ""), (plot, role)], width) for plot in plots[1:])]


def _memory_value(picture: GpuPicture, width: int) -> Span:
    """Beside the P-state strip, which names its states itself, there is room for the memory."""
    point = picture.point(MEMORY.key)
    used, total = words.gib_whole(point.value), picture.reading.memory_total_bytes
    text = f"{used}/{words.gib_whole(total)}" if total else used
    return f"{text:>{width - 5}} GiB ", "dim" if point.stale else "value"


def _head(picture: GpuPicture, width: int, count: int) -> Row:
    """Number of the GPU, the P-state over time as a rule, temperature and link."""
    reading, glyphs = picture.reading, picture.lens.glyphs
    mark = ">" if is_selected(picture) else ""
    label = f"{mark}GPU {reading.index}" if count > 1 else "state"
    temperature = picture.point("temperature_c")
    value = f"{words.whole(temperature.value)} {glyphs.degree}  {picture.link()}"
    value_width = VALUE_WIDTH if width >= LIMITS_FROM else NARROW_VALUE_WIDTH
    plot_width = max(0, width - LABEL_WIDTH - value_width)
    strip = picture.plot(P_STATE, plot_width)[0]
    role = "accent" if mark else "title" if count > 1 else "label"
    return row(
        [
            (label[:LABEL_WIDTH].ljust(LABEL_WIDTH), role),
            (strip, picture.role(P_STATE)),
            (f" {value}"[:value_width], "dim"),
        ],
        width,
    )


def _status_block(picture: GpuPicture, width: int, rows: int, count: int) -> list[Row]:
    """A GPU that gives no figures: what happened, what to do, and its past under that."""
    reading, glyphs = picture.reading, picture.lens.glyphs
    label = f"{'>' if is_selected(picture) else ''}GPU {reading.index}"
    head: list[Span] = [(label.ljust(LABEL_WIDTH), "title"), *status_spans(picture, width - LABEL_WIDTH)]
    result = [row(head, width)]
    advice = safe(reading.status.advice, glyphs)
    if advice:
        text = shorten(advice, max(1, width - LABEL_WIDTH - 2), glyphs)
        result.append(row([(" " * (LABEL_WIDTH + 2), ""), (text, "value")], width))
    for series in BY_IMPORTANCE[: rows - len(result)]:
        result += _series_rows(picture, series, width, 1, None)
    return (result + [blank(width)] * rows)[:rows]


def mig_rows(picture: GpuPicture, width: int) -> list[Row]:
    """One row for each MIG instance, under its GPU."""
    return [_mig_row(picture, instance, width) for instance in picture.reading.mig]


def _mig_row(picture: GpuPicture, instance: MigReading, width: int) -> Row:
    glyphs = picture.lens.glyphs
    number = "?" if instance.gpu_instance is None else str(instance.gpu_instance)
    memory = f"{words.gib(instance.memory_used_bytes)}/{words.gib(instance.memory_total_bytes)} GiB"
    active = (
        "SM -" if instance.sm_active_ratio is None else f"SM active {words.percent(instance.sm_active_ratio)}"
    )
    return row(
        [
            (f"  MIG {number} ", "label"),
            (f"{safe(instance.profile, glyphs):<10} ", "value"),
            (f"{memory:>14}  ", "value"),
            (active, "dim"),
        ],
        width,
    )
