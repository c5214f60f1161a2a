"""The one widget of the program: it paints the rows of a view and compares them with the last ones.

Cost follows the number of widgets and of styled pieces, so there are few of these and each row has
few pieces. Nothing of Textual's own styling applies: a row is painted as the view gave it.
"""

from collections.abc import Callable, Mapping, Sequence

from rich.cells import set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from gpuwatch.clean import clean

#: (text, role) pieces; the text of a row is exactly as many cells wide as was asked for.
Row = Sequence[tuple[str, str]]
Draw = Callable[[int, int], Sequence[Row]]


class Panel(Widget):
    """Draws `draw(width, height)`. `styles_of` maps roles to styles and may change with the theme."""

    DEFAULT_CSS = "Panel { width: 100%; height: 100%; }"

    class Clicked(Message):
        """A click on a cell of the panel called `panel`, which shows `rows`."""

        def __init__(self, panel: str, rows: Sequence[Row], x: int, y: int) -> None:
            super().__init__()
            self.panel, self.rows, self.x, self.y = panel, rows, x, y

    class Wheel(Message):
        """One step of the wheel over the panel; `rows` is positive downwards."""

        def __init__(self, panel: str, rows: int) -> None:
            super().__init__()
            self.panel, self.rows = panel, rows

    def __init__(self, name: str, draw: Draw, styles_of: Callable[[], Mapping[str, Style]]) -> None:
        super().__init__(id=name)
        self._draw, self._styles_of = draw, styles_of
        self._rows: list[Row] = []
        self._strips: list[Strip] = []
        self._styles: Mapping[str, Style] = {}
        self._drawn_size = (0, 0)

    def update(self) -> None:
        """Draw again; only rows that differ are painted."""
        if self.is_mounted and self.size.width and self.size.height:
            changed = self._redraw()
            if changed:
                self.refresh(*_regions(changed, self.size.width))

    def render_lines(self, crop: Region) -> list[Strip]:
        if self._drawn_size != self.size or self._styles is not self._styles_of():
            self._redraw()
        lines = self._strips[crop.y : crop.bottom]
        if crop.x == 0 and crop.width == self._drawn_size[0]:
            return lines
        return [strip.crop(crop.x, crop.right) for strip in lines]

    def _redraw(self) -> list[int]:
        """Rows and strips anew; returns the numbers of the rows that changed."""
        width, height = self.size
        styles = self._styles_of()
        rows = self._rows_of(width, height)
        rows.extend([((" " * width, ""),)] * (height - len(rows)))
        same = styles is self._styles and self._drawn_size == (width, height)
        old = self._rows if same else []
        changed = [y for y, row in enumerate(rows) if y >= len(old) or row != old[y]]
        strips = self._strips if same else [Strip([])] * height
        for y in changed:
            strips[y] = _strip(rows[y], width, styles)
        self._rows, self._strips = rows, strips
        self._styles, self._drawn_size = styles, (width, height)
        return changed

    def _rows_of(self, width: int, height: int) -> list[Row]:
        """The view's rows; a view that fails costs its own panel, not the program."""
        try:
            return list(self._draw(width, height)[:height])
        except Exception as error:
            reason = " ".join(str(error).split()) or type(error).__name__
            text = clean(f"{self.id} cannot be drawn: {reason}")
            return [((set_cell_size(text, width), "bad"),)]

    def on_click(self, event: events.Click) -> None:
        self.post_message(self.Clicked(self.id or "", self._rows, event.x, event.y))

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self.post_message(self.Wheel(self.id or "", 1))

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self.post_message(self.Wheel(self.id or "", -1))


def _strip(row: Row, width: int, styles: Mapping[str, Style]) -> Strip:
    segments: list[Segment] = []
    text, style = "", styles[""]
    for piece, role in row:
        next_style = styles.get(role, styles[""])
        # Neighbours that look alike become one piece, and blanks look like anything on the same
        # background: fewer bytes to the terminal.
        if next_style is not style and _same_ground(style, next_style):
            if piece.isspace():
                next_style = style
            elif text.isspace():
                style = next_style
        if next_style is not style and text:
            segments.append(Segment(text, style))
            text = ""
        text, style = text + piece, next_style
    segments.append(Segment(text, style))
    return Strip(segments, width)


def _same_ground(one: Style, other: Style) -> bool:
    """Whether a blank looks the same in both."""
    return one.bgcolor == other.bgcolor and not (one.reverse or other.reverse)


def _regions(rows: Sequence[int], width: int) -> list[Region]:
    """Neighbouring rows as one region each."""
    regions: list[Region] = []
    start = previous = rows[0]
    for y in rows[1:]:
        if y != previous + 1:
            regions.append(Region(0, start, width, previous + 1 - start))
            start = y
        previous = y
    regions.append(Region(0, start, width, previous + 1 - start))
    return regions
