"""What the screen shows: each panel bound to the app's present state and choices, and who was clicked."""

from collections.abc import Sequence
from typing import Protocol

from gpuwatch.model import CHECKS, Finding
from gpuwatch.state import State
from gpuwatch.tui.keys import Where, footer, help_rows
from gpuwatch.tui.panel import Draw, Row
from gpuwatch.tui.screens.dialog import Page
from gpuwatch.views.compose import PANELS, PanelView, content_of
from gpuwatch.views.findings import subject_words
from gpuwatch.views.foot import foot
from gpuwatch.views.gpus import choose_grid
from gpuwatch.views.layout import Box, layout
from gpuwatch.views.lens import Lens
from gpuwatch.views.options import Options
from gpuwatch.views.procs import Table, ordered
from gpuwatch.views.rows import safe


class Viewer(Protocol):
    """What a picture is made from: the app, or a test's stand-in."""

    state: State
    options: Options
    message: str


def panels(viewer: Viewer) -> dict[str, Draw]:
    """Every panel of the live screen by name."""
    drawn: dict[str, Draw] = {name: _bound(viewer, view) for name, view in PANELS.items()}
    drawn["foot"] = foot_line(viewer, Where.MAIN)
    return drawn


def _bound(viewer: Viewer, view: PanelView) -> Draw:
    return lambda width, height: view(viewer.state, viewer.options, width, height)


def foot_line(viewer: Viewer, where: Where) -> Draw:
    keys = footer(where)
    return lambda width, height: foot(
        keys, viewer.message, width, height, ascii_only=viewer.options.ascii_only
    )


def page(viewer: Viewer, kind: str) -> Page:
    """All rows of a dialog, by its kind ("help", "check", ...), for a window of (width, height)."""
    # Imported here: the first picture of the live screen needs none of them.
    from gpuwatch.views.checklist_page import checklist_page
    from gpuwatch.views.help import help_page
    from gpuwatch.views.pages import check_page, finding_page
    from gpuwatch.views.timeline_page import timeline_page
    from gpuwatch.views.zoom import zoom_page

    pages = {
        "finding": finding_page,
        "zoom": zoom_page,
        "timeline": timeline_page,
        "checklist": checklist_page,
    }

    def draw(width: int, height: int) -> Sequence[Row]:
        state, options = viewer.state, viewer.options
        if kind == "help":
            return help_page(help_rows(), state, options, width, height)
        if kind == "check":
            return check_page(state, options, options.check_row + 1, width, height)
        return pages[kind](state, options, width, height)

    return draw


def boxes(viewer: Viewer, width: int, height: int) -> tuple[Box, ...]:
    return layout(width, height, content_of(viewer.state, viewer.options))


def row_at(viewer: Viewer, panel: str, rows: Sequence[Row], x: int, y: int) -> int | None:
    """The selectable row of `panel` under a click on cell (x, y) of its picture; None for none."""
    if not 0 <= y < len(rows):
        return None
    text = "".join(piece for piece, _ in rows[y])
    lens = Lens(viewer.state, viewer.options)
    if panel == "checks":
        return _check_at(text, x)
    if panel == "procs":
        return _process_at(lens, text)
    if panel == "findings":
        return _finding_at(lens, ["".join(piece for piece, _ in row) for row in rows[: y + 1]])
    if panel == "gpus":
        return _gpu_at(lens, max(1, sum(len(piece) for piece, _ in rows[y])), len(rows), x, y)
    return None


def _check_at(text: str, x: int) -> int | None:
    """The check whose name begins last before the click."""
    lowered = text.lower()
    named = any(check.label.lower() in lowered for check in CHECKS)
    starts = [lowered.find(check.label.lower() if named else check.key) for check in CHECKS]
    before = [(start, place) for place, start in enumerate(starts) if 0 <= start <= x + 2]
    return max(before)[1] if before else None


def _process_at(lens: Lens, text: str) -> int | None:
    words = text.lstrip("> ").split()
    pids = [str(entry.process.pid) for entry in ordered(Table(lens), lens.options)]
    return pids.index(words[0]) if words and words[0] in pids else None


def _finding_at(lens: Lens, texts: Sequence[str]) -> int | None:
    """The finding whose line is the clicked one or the next above: its reasons belong to it."""
    for text in reversed(texts):
        for place, finding in enumerate(lens.findings):
            if text[3:].startswith(_start_of(lens, finding)):
                return place
    return None


def _start_of(lens: Lens, finding: Finding) -> str:
    return (subject_words(lens, finding) + safe(finding.text.title, lens.glyphs))[:16]


def _gpu_at(lens: Lens, width: int, height: int, x: int, y: int) -> int | None:
    count, options = len(lens.gpus), lens.options
    grid = choose_grid(count, width, height, options.density)
    fit = max(1, height // grid.rows if grid.rows else height - 1)
    per_column = -(-count // grid.columns)
    if grid.rows == 0 or per_column > fit:
        top = min(max(0, options.gpu_row), max(0, count - fit))
        row = top + (y // grid.rows if grid.rows else max(0, y - 1))
    else:
        row = x // (grid.width + 1) * per_column + min(y // grid.rows, per_column - 1)
    return row if row < count else None
