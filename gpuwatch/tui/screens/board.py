"""The live screen: panels placed by the views' own pure layout, no box model in between."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import ClassVar, NamedTuple, Protocol

from rich.style import Style
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.geometry import NULL_OFFSET, NULL_SPACING, Region, Size
from textual.layout import ArrangeResult, Layout, WidgetPlacement
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget

from gpuwatch.tui.keys import Where, bindings
from gpuwatch.tui.panel import Draw, Panel


class Place(NamedTuple):
    """Where a panel goes, in cells. The views' own boxes have the same fields."""

    name: str
    x: int
    y: int
    width: int
    height: int


class Box(Protocol):
    """What a `Place` and a box of the views have in common."""

    @property
    def name(self) -> str: ...
    @property
    def x(self) -> int: ...
    @property
    def y(self) -> int: ...
    @property
    def width(self) -> int: ...
    @property
    def height(self) -> int: ...


class Arrangement(Layout):
    """A Textual layout that does what a pure function says. Panels without a box are not shown."""

    name = "gpuwatch"

    def __init__(self, boxes: Callable[[int, int], Iterable[Box]]) -> None:
        self._boxes = boxes

    def arrange(
        self, parent: Widget, children: list[Widget], size: Size, greedy: bool = True
    ) -> ArrangeResult:
        by_name = {child.id: child for child in children}
        return [
            WidgetPlacement(
                Region(box.x, box.y, box.width, box.height), NULL_OFFSET, NULL_SPACING, by_name[box.name]
            )
            for box in self._boxes(size.width, size.height)
            if box.name in by_name
        ]


class Backdrop(Screen[None]):
    """A screen whose empty cells have the theme's background, and nothing else of Textual's look."""

    DEFAULT_CSS = "Backdrop { overflow: hidden; }"

    def __init__(
        self, boxes: Callable[[int, int], Iterable[Box]], styles_of: Callable[[], Mapping[str, Style]]
    ) -> None:
        super().__init__()
        self.styles_of = styles_of
        self._arrangement = Arrangement(boxes)

    @property
    def layout(self) -> Layout:
        return self._arrangement

    def render_lines(self, crop: Region) -> list[Strip]:
        return [Strip.blank(crop.width, self.styles_of()[""])] * crop.height

    def update(self, only: Collection[str] | None = None) -> None:
        """Paint what changed in the panels, or in some of them."""
        for panel in self.query_children(Panel):
            if only is None or panel.id in only:
                panel.update()

    def on_screen_resume(self) -> None:
        # Meanwhile another screen was in front, and this one was not kept up to date.
        self.update()


class Board(Backdrop):
    """`boxes(width, height)` may change with what there is to show; `update` notices."""

    BINDINGS: ClassVar[list[BindingType]] = [(key, f"app.{action}") for key, action in bindings(Where.MAIN)]

    def __init__(
        self,
        panels: Mapping[str, Draw],
        boxes: Callable[[int, int], Sequence[Box]],
        styles_of: Callable[[], Mapping[str, Style]],
    ) -> None:
        super().__init__(self._place, styles_of)
        self._panels, self._boxes = panels, boxes
        self._shown: Sequence[Box] | None = None  # not placed yet

    def compose(self) -> ComposeResult:
        for name, draw in self._panels.items():
            yield Panel(name, draw, self.styles_of)

    def _place(self, width: int, height: int) -> Sequence[Box]:
        shown = self._shown = self._boxes(width, height)
        return shown

    def update(self, only: Collection[str] | None = None) -> None:
        """Paint what changed; place the panels anew where the content asks for it."""
        if self._shown is not None and self._boxes(*self.size) != self._shown:
            self.refresh(layout=True, repaint=False)
        super().update(only)
