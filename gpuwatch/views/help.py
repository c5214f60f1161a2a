"""The help page: the keys from their one table, what the marks mean, versions and own cost."""

from collections.abc import Sequence

from gpuwatch import __version__
from gpuwatch.model import CheckState
from gpuwatch.state import State
from gpuwatch.views import format as words
from gpuwatch.views.checks import MARK_ROLE
from gpuwatch.views.ledger_bar import ORDER, ROLES
from gpuwatch.views.lens import Lens
from gpuwatch.views.options import Options
from gpuwatch.views.rows import Row, Span, blank, heading, row, safe, shorten, side_by_side, wrap

TWO_COLUMNS_FROM = 90
_GAP = 2
_KEY_WIDTH = 12

_CHECK_WORDS = {
    CheckState.FINE: "looked, and fine",
    CheckState.NAMED: "a cause is named here",
    CheckState.POSSIBLE: "possible, or the next lever",
    CheckState.WAITING: "not enough data yet, with the seconds left",
    CheckState.UNMEASURABLE: "cannot be measured here; enter says why",
}


def help_page(
    keys: Sequence[tuple[str, str, str]], state: State, options: Options, width: int, height: int
) -> list[Row]:
    """`keys`: (group, keys, help), groups in a row. All rows, which may be more than `height`."""
    lens = Lens(state, options)
    groups: dict[str, list[tuple[str, str]]] = {}
    for group, shown, text in keys:
        groups.setdefault(group, []).append((shown, text))
    two = width >= TWO_COLUMNS_FROM
    column = (width - _GAP) // 2 if two else width
    blocks = [_key_block(lens, group, entries, column) for group, entries in groups.items()]
    blocks += [_marks(lens, column), _ledger(lens, column), _plots(lens, column), _about(lens, column)]
    if not two:
        return [spans for block in blocks for spans in block]
    left, right = _halves(blocks)
    return [row(spans, width) for spans in side_by_side([(left, column), (right, column)], _GAP)]


def _halves(blocks: Sequence[list[Row]]) -> tuple[list[Row], list[Row]]:
    """The blocks in their order in two columns of nearly the same height."""
    total = sum(map(len, blocks))
    left: list[Row] = []
    right: list[Row] = []
    for block in blocks:
        (left if not right and len(left) + len(block) // 2 <= total / 2 else right).extend(block)
    return left, right


def _key_block(lens: Lens, group: str, entries: Sequence[tuple[str, str]], width: int) -> list[Row]:
    rows = [heading(group, width, lens.glyphs)]
    for shown, text in entries:
        room = max(1, width - _KEY_WIDTH - 1)
        rows.append(
            row([(f" {shown:<{_KEY_WIDTH}}", "key"), (shorten(text, room, lens.glyphs), "value")], width)
        )
    return [*rows, blank(width)]


def _marks(lens: Lens, width: int) -> list[Row]:
    rows = [heading("Checks", width, lens.glyphs)]
    for state, text in _CHECK_WORDS.items():
        rows.append(row([(f" {lens.glyphs.check[state]}  ", MARK_ROLE[state]), (text, "value")], width))
    return [*rows, blank(width)]


def _ledger(lens: Lens, width: int) -> list[Row]:
    """The bar: every second of a GPU is booked once."""
    rows = [heading("Ledger, of the last minute", width, lens.glyphs)]
    spans: list[Span] = [(" ", "")]
    used = 1
    for key in ORDER:
        need = len(str(key)) + 5
        if used + need > width and used > 1:
            rows.append(row(spans, width))
            spans, used = [(" ", "")], 1
        spans += [(lens.glyphs.ledger[key] * 2, ROLES[key]), (f" {key}  ", "value")]
        used += need
    rows.append(row(spans, width))
    return [*rows, blank(width)]


def _plots(lens: Lens, width: int) -> list[Row]:
    glyphs = lens.glyphs
    texts = [
        f"newest at the right; {glyphs.gap} no value; {glyphs.over} far beyond the scale",
        "each scale is fixed: to the card's own limit, the figure behind the slash",
        f"pcie{glyphs.rx} is to the GPU, pcie{glyphs.tx} from it; the scale is logarithmic, from 10 MB/s "
        "to what the link carries",
        f"state: the P-state where it begins (P0 is full speed), {glyphs.line} while it lasts",
        "throt: share of time under heat, power brake or hardware slowdown",
        "a value older than 3 s is dim and has its age",
    ]
    rows = [heading("Plots", width, glyphs)]
    for text in texts:
        rows += [
            row([(" ", ""), (line, "value")], width) for line in wrap(text, max(1, width - 1), 3, glyphs)
        ]
    return [*rows, blank(width)]


def _about(lens: Lens, width: int) -> list[Row]:
    state, glyphs = lens.state, lens.glyphs
    texts = [f"gpuwatch {__version__}; it only looks and changes nothing"]
    if state.machine is not None:
        driver = state.machine.driver
        if driver.version:
            cuda = f", CUDA up to {driver.cuda_version}" if driver.cuda_version else ""
            texts.append(f"driver {driver.version}{cuda}")
    if state.own_cpu_ratio is not None:
        rss = f", {words.memory(state.own_rss_bytes)}" if state.own_rss_bytes is not None else ""
        texts.append(f"this program: {100 * state.own_cpu_ratio:.1f} % of a core{rss}")
    if state.ignored:
        texts.append(f"ignored: {', '.join(sorted(state.ignored))}")
    rows = [heading("About", width, glyphs)]
    for text in texts:
        rows += [
            row([(" ", ""), (line, "dim")], width)
            for line in wrap(safe(text, glyphs), max(1, width - 1), 2, glyphs)
        ]
    return rows
