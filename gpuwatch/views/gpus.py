"""All GPUs in one panel. Its height decides how much each gets: every series, five, one row, one cell."""

from collections.abc import Sequence
from dataclasses import dataclass

from gpuwatch.model import GpuReading
from gpuwatch.state import State
from gpuwatch.views import format as words
from gpuwatch.views.gpu_block import block, mig_rows
from gpuwatch.views.gpu_line import line
from gpuwatch.views.gpu_series import GpuPicture
from gpuwatch.views.layout import FULL_GPU, GPU_COLUMN
from gpuwatch.views.lens import Lens
from gpuwatch.views.notices import no_gpu_rows
from gpuwatch.views.options import Options
from gpuwatch.views.rows import Row, Span, blank, filled, row, side_by_side
from gpuwatch.views.spark import spark

MOST_COLUMNS = 4
COLUMN_GAP = 2
#: A second column is opened for more rows a GPU only where each keeps this many cells.
ROOMY_COLUMN = 60
#: With this many rows for each GPU one column is good enough.
ENOUGH_ROWS = 4


@dataclass(frozen=True, slots=True)
class Grid:
    """`rows` for each GPU, `columns` of `width` cells; `rows` 0: not all fit."""

    columns: int
    width: int
    rows: int


def gpus(state: State, options: Options, width: int, height: int) -> list[Row]:
    """The panel `gpus`."""
    if width < 1 or height < 1:
        return []
    lens = Lens(state, options)
    readings = lens.gpus
    if not readings:
        return no_gpu_rows(lens, width, height)
    grid = choose_grid(len(readings), width, height, options.density)
    if grid.rows == 0:
        return _overflow(lens, readings, width, height)
    per_column = -(-len(readings) // grid.columns)
    shown, per_column = _window(readings, options, per_column, height // grid.rows)
    pictures = [GpuPicture(lens, reading) for reading in shown]
    spare = height - per_column * grid.rows
    # Where everything has one row, MIG instances get theirs under their GPU if all of them fit.
    with_mig = grid.rows == 1 and grid.columns == 1 and 0 < sum(len(one.mig) for one in shown) <= spare
    columns: list[tuple[Sequence[Row], int]] = []
    for start in range(0, len(pictures), per_column):
        rows: list[Row] = []
        for picture in pictures[start : start + per_column]:
            rows += block(picture, grid.width, grid.rows, len(readings))
            if with_mig:
                rows += mig_rows(picture, grid.width)
        columns.append((rows, grid.width))
    if len(columns) == 1:
        return filled(columns[0][0], width, height)
    picture_rows = side_by_side(columns, COLUMN_GAP)
    return filled([row(spans, width) for spans in picture_rows], width, height)


def choose_grid(count: int, width: int, height: int, density: str = "auto") -> Grid:
    """How `count` GPUs share the panel."""
    if density == "full":
        return Grid(1, width, min(FULL_GPU, height))
    best = Grid(1, width, 0)
    for columns in range(1, min(MOST_COLUMNS, count) + 1):
        column = (width - COLUMN_GAP * (columns - 1)) // columns
        rows = height // -(-count // columns)
        if columns > 1 and column < (ROOMY_COLUMN if best.rows else GPU_COLUMN):
            break
        if rows > best.rows and best.rows < ENOUGH_ROWS:
            best = Grid(columns, width if columns == 1 else column, rows)
    if density == "compact" and best.rows:
        return Grid(best.columns, best.width, 1)
    return best


def _window(
    readings: Sequence[GpuReading], options: Options, per_column: int, fit: int
) -> tuple[Sequence[GpuReading], int]:
    """The GPUs that are shown when not all fit: a window that has the selected one in it."""
    if per_column <= fit:
        return readings, per_column
    fit = max(1, fit)
    top = min(max(0, options.gpu_row), len(readings) - fit)
    return readings[top : top + fit], fit


def _overflow(lens: Lens, readings: Sequence[GpuReading], width: int, height: int) -> list[Row]:
    """More GPUs than rows: one cell for each, and under it as many of them as fit."""
    rows = [summary(lens, readings, width)]
    fit = height - 1
    if fit > 0:
        top = min(max(0, lens.options.gpu_row), len(readings) - fit)
        rows += [line(GpuPicture(lens, one), width, len(readings)) for one in readings[top : top + fit]]
    return filled(rows or [blank(width)], width, height)


def summary(lens: Lens, readings: Sequence[GpuReading], width: int) -> Row:
    """One cell for each GPU, its utilization as a height, with the lowest and highest of them."""
    values = [lens.point(f"gpu:{reading.uuid}", "utilization_ratio").value for reading in readings]
    known = [value for value in values if value is not None]
    figure = words.percent(None)
    if known:
        low, high = words.percent_number(min(known)), words.percent_number(max(known))
        figure = f"{low} %" if low == high else f"{low}-{high} %"
    label = f"{words.plural(len(readings), 'GPU')} "
    spans: list[Span] = [(label, "label"), (spark(values, 0.0, 1.0, lens.glyphs), "series1")]
    spans.append((f" {figure}", "value"))
    if len(known) < len(values):
        spans.append((f" {len(values) - len(known)} without", "warn"))
    return row(spans, width)
