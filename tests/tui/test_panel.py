"""The one widget: what it keeps, what it paints, what it makes of a row."""

import asyncio
from collections.abc import Sequence

from rich.style import Style
from textual.app import App, ComposeResult

from gpuwatch.tui.panel import Panel, Row, _regions, _strip
from gpuwatch.tui.theme import PALETTES, styles


class Alone(App[None]):
    """A panel over the whole screen, whose rows a test sets."""

    def __init__(self, rows: list[Row]) -> None:
        super().__init__()
        self.rows = rows
        self.drawn: list[tuple[int, int]] = []
        self.role_styles = styles("dark")
        self.painted: list[object] = []

    def compose(self) -> ComposeResult:
        yield Panel("only", self.draw, lambda: self.role_styles)

    def draw(self, width: int, height: int) -> Sequence[Row]:
        self.drawn.append((width, height))
        return [((f"{text:<{width}}"[:width], role),) for ((text, role),) in self.rows]


def in_app(rows: list[Row], script: object, size: tuple[int, int] = (12, 4)) -> None:
    async def run() -> None:
        app = Alone(rows)
        async with app.run_test(size=size) as pilot:
            await pilot.pause(0)
            await script(app, app.query_one(Panel))  # type: ignore[operator] # a coroutine function

    asyncio.run(run())


def test_equal_rows_keep_their_strips_and_only_changed_ones_are_painted() -> None:
    async def script(app: Alone, panel: Panel) -> None:
        before = panel.render_lines(panel.region.reset_offset)
        app.rows[1] = (("new", "bad"),)
        painted: list[object] = []
        panel.refresh = lambda *regions, **_: painted.extend(regions)  # type: ignore[method-assign]
        panel.update()
        after = panel.render_lines(panel.region.reset_offset)
        assert after[0] is before[0]
        assert after[1] is not before[1]
        assert [(region.y, region.height) for region in painted] == [(1, 1)]  # type: ignore[attr-defined]
        painted.clear()
        panel.update()
        assert painted == []

    in_app([(("one", ""),), (("two", ""),), (("three", ""),)], script)


def test_a_view_with_too_few_or_too_many_rows_fills_the_panel() -> None:
    async def script(app: Alone, panel: Panel) -> None:
        assert [strip.text for strip in panel.render_lines(panel.region.reset_offset)] == [
            "one         ",
            *[" " * 12] * 3,
        ]
        app.rows += [((str(number), ""),) for number in range(9)]
        panel.update()
        assert len(panel.render_lines(panel.region.reset_offset)) == 4

    in_app([(("one", ""),)], script)


def test_a_new_theme_styles_the_same_rows_anew() -> None:
    async def script(app: Alone, panel: Panel) -> None:
        before = panel.render_lines(panel.region.reset_offset)[0]
        app.role_styles = styles("light")
        after = panel.render_lines(panel.region.reset_offset)[0]
        assert after.text == before.text
        assert after != before

    in_app([(("one", ""),)], script)


def test_a_cropped_line_is_a_part_of_the_whole() -> None:
    async def script(app: Alone, panel: Panel) -> None:
        region = panel.region.reset_offset
        part = panel.render_lines(region.shrink((0, 3, 0, 2)))
        assert part[0].text == "cdefghi"
        assert part[0].cell_length == 7

    in_app([(("abcdefghijkl", ""),)], script)


def test_a_view_that_fails_says_so_and_recovers() -> None:
    async def script(app: Alone, panel: Panel) -> None:
        good, app.rows = app.rows, [None]  # type: ignore[list-item] # breaks the drawing
        panel.update()
        texts = [strip.text for strip in panel.render_lines(panel.region.reset_offset)]
        assert texts[0].startswith("only cannot be drawn: ")
        assert [len(text) for text in texts] == [60] * 4
        app.rows = good
        panel.update()
        assert panel.render_lines(panel.region.reset_offset)[0].text.startswith("one ")

    in_app([(("one", ""),)], script, size=(60, 4))


def pieces(row: Row, theme: str = "dark") -> list[tuple[str, Style | None]]:
    width = sum(len(text) for text, _ in row)
    return [(segment.text, segment.style) for segment in _strip(row, width, styles(theme))]


def test_neighbours_that_look_alike_become_one_piece() -> None:
    made = styles("dark")
    assert pieces((("a", "label"), ("b", "dim"))) == [("ab", made["dim"])]
    assert pieces((("a", "ok"), ("  ", ""), ("b", "ok"))) == [("a  b", made["ok"])]
    assert pieces((("  ", ""), ("a", "bad"))) == [("  a", made["bad"])]
    assert pieces((("a", "ok"), ("b", "bad"))) == [("a", made["ok"]), ("b", made["bad"])]


def test_blanks_of_a_selected_row_stay_selected() -> None:
    for theme in PALETTES:
        made = styles(theme)
        row: Row = ((">", "accent"), ("  ", "selected"), ("x", "selected"), ("  ", ""))
        assert pieces(row, theme) == [
            (">", made["accent"]),
            ("  x", made["selected"]),
            ("  ", made[""]),
        ]


def test_an_unknown_role_is_plain_text() -> None:
    assert pieces((("a", "no such role"),)) == [("a", styles("dark")[""])]


def test_neighbouring_rows_are_one_region() -> None:
    found = [(region.y, region.height) for region in _regions([0, 1, 2, 5, 7, 8], 10)]
    assert found == [(0, 3), (5, 1), (7, 2)]
