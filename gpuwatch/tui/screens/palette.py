"""All commands by name: type a part of one, enter runs it. Made from the key table alone."""

from collections.abc import Callable, Mapping, Sequence

from rich.cells import set_cell_size
from rich.style import Style
from textual import events
from textual.app import ComposeResult

from gpuwatch.tui.keys import Key
from gpuwatch.tui.panel import Panel, Row
from gpuwatch.tui.screens.board import Backdrop, Place


def matching(commands: Sequence[Key], query: str) -> list[Key]:
    """Commands with every word of `query` in their label or help, labels that begin with it first."""
    words = query.lower().split()
    found = [row for row in commands if all(word in f"{row.label} {row.help}".lower() for word in words)]
    return sorted(found, key=lambda row: not row.label.startswith(query.lower()))


class Palette(Backdrop):
    """Takes every printable key as text, so it has no bindings of its own."""

    def __init__(
        self,
        commands: Sequence[Key],
        run: Callable[[str], None],
        styles_of: Callable[[], Mapping[str, Style]],
    ) -> None:
        super().__init__(lambda width, height: (Place("palette", 0, 0, width, height),), styles_of)
        self._commands, self._run = commands, run
        self._query = ""
        self._chosen = 0

    def compose(self) -> ComposeResult:
        yield Panel("palette", self._draw, self.styles_of)

    def on_key(self, event: events.Key) -> None:
        event.stop()
        found = matching(self._commands, self._query)
        if event.key == "escape" or (event.key == "backspace" and not self._query):
            self.dismiss()
        elif event.key == "enter":
            self.dismiss()
            if found:
                self._run(found[min(self._chosen, len(found) - 1)].action)
        elif event.key in ("down", "up"):
            self._chosen = max(0, min(len(found) - 1, self._chosen + (1 if event.key == "down" else -1)))
        elif event.key == "backspace":
            self._query, self._chosen = self._query[:-1], 0
        elif event.is_printable and event.character:
            self._query, self._chosen = self._query + event.character, 0
        self.update()

    def _draw(self, width: int, height: int) -> list[Row]:
        found = matching(self._commands, self._query)
        lines = [(f" command: {self._query}_", "title"), ("", "")]
        top = max(0, self._chosen - (height - 4))
        for number, row in enumerate(found[top : top + height - 3], start=top):
            mark = ">" if number == self._chosen else " "
            text = f" {mark} {row.label:<18} {row.shown:<11} {row.help}"
            lines.append((text, "selected" if number == self._chosen else "value"))
        if not found:
            lines.append(("   no command has that in its name", "dim"))
        lines += [("", "")] * (height - 1 - len(lines))
        lines.append((" enter run  esc back  up down choose", "dim"))
        return [((set_cell_size(text, width), role),) for text, role in lines[:height]]
