"""A page over the live screen: help, a finding, a check, one GPU. The same panel draws it."""

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

from rich.style import Style
from textual.app import ComposeResult
from textual.binding import BindingType

from gpuwatch.tui.keys import Where, bindings
from gpuwatch.tui.panel import Draw, Panel, Row
from gpuwatch.tui.screens.board import Backdrop, Place

#: (width, height of the window) -> all rows of the page, which may be more than fit.
Page = Callable[[int, int], Sequence[Row]]


def page_and_foot(width: int, height: int) -> tuple[Place, ...]:
    """The page with the foot line under it; a window of one row is all page."""
    rows = max(1, height - 1)
    return (Place("page", 0, 0, width, rows), Place("foot", 0, rows, width, height - rows))


class Dialog(Backdrop):
    """`kind` says what the page is about; what exactly, the page finds in the choices of the user."""

    BINDINGS: ClassVar[list[BindingType]] = [(key, f"app.{action}") for key, action in bindings(Where.DIALOG)]

    def __init__(
        self, kind: str, page: Page, foot: Draw, styles_of: Callable[[], Mapping[str, Style]]
    ) -> None:
        super().__init__(page_and_foot, styles_of)
        self.kind = kind
        self._page, self._foot = page, foot
        self._top = 0

    def compose(self) -> ComposeResult:
        yield Panel("page", self._window, self.styles_of)
        yield Panel("foot", self._foot, self.styles_of)

    def scroll_rows(self, rows: int) -> None:
        """Move the window; the page's own length is the limit."""
        self._top = max(0, self._top + rows)
        self.update()

    def _window(self, width: int, height: int) -> Sequence[Row]:
        rows = self._page(width, height)
        self._top = min(self._top, max(0, len(rows) - height))
        return rows[self._top : self._top + height]
