"""ONE table of keys: it drives the bindings, the foot line, the help page and the command palette.

No key changes anything outside this program: it only looks. Nothing is bound to ctrl+a or ctrl+b
(prefixes of screen and tmux), and no key needs a function key, alt or escape as its only way.
"""

from dataclasses import dataclass
from enum import StrEnum


class Where(StrEnum):
    MAIN = "main"
    DIALOG = "dialog"
    BOTH = "both"


@dataclass(frozen=True, slots=True)
class Key:
    """One action. `keys` are Textual's names; `shown` is how a person writes them.

    `foot` is the place in the foot line, 1 first, 0 never; `foot_shown` and `foot_label` there
    stand for a pair ("n/N finding"). A `palette` entry can be called by name.
    """

    keys: tuple[str, ...]
    action: str
    shown: str
    label: str
    help: str
    group: str
    where: Where = Where.BOTH
    foot: int = 0
    foot_shown: str = ""
    foot_label: str = ""
    palette: bool = True


_MAIN, _DIALOG, _BOTH = Where.MAIN, Where.DIALOG, Where.BOTH
_GENERAL, _FIND, _MOVE, _TIME, _SHOW = "General", "Findings and checks", "Move", "Time", "Show"

KEYS: tuple[Key, ...] = (
    Key(("question_mark", "h", "f1"), "help", "? h F1", "help", "this page", _GENERAL, _BOTH, 1, "?"),
    Key(("q",), "leave", "q", "quit", "quit", _GENERAL, _MAIN, 2),
    Key(("ctrl+c", "ctrl+q"), "leave", "ctrl+c", "quit", "quit from anywhere", _GENERAL, palette=False),
    Key(
        ("escape", "q", "backspace"),
        "back",
        "esc q",
        "back",
        "back to the screen before",
        _GENERAL,
        _DIALOG,
        1,
    ),
    Key(("ctrl+z",), "suspend", "ctrl+z", "suspend", "suspend; fg comes back", _GENERAL),
    Key(("ctrl+l",), "redraw", "ctrl+l", "redraw", "draw the whole screen again", _GENERAL),
    Key(("ctrl+p",), "palette", "ctrl+p", "more", "all commands by name", _GENERAL, _MAIN, 14, palette=False),
    Key(("enter",), "why", "enter", "why", "why: the detail of what is selected", _FIND, _MAIN, 4),
    Key(("n",), "finding(1)", "n", "next finding", "next finding", _FIND, _BOTH, 5, "n/N", "finding"),
    Key(("N",), "finding(-1)", "N", "previous finding", "previous finding", _FIND),
    *(
        Key(
            (str(number),),
            f"check({number})",
            "1-8",
            f"check {number}",
            "open one of the eight checks",
            _FIND,
            _BOTH,
            6 if number == 1 else 0,
            "1-8",
            "check",
        )
        for number in range(1, 9)
    ),
    Key(("0",), "checklist", "0", "checklist", "the essay's eight rows, with the ledger of the run", _FIND),
    Key(("t",), "timeline", "t", "timeline", "findings over time, with time of day", _FIND, _BOTH, 11),
    Key(("y",), "copy", "y", "copy", "copy the finding to the clipboard (OSC 52)", _FIND),
    Key(
        ("e",), "export", "e", "export", "export the evidence of this moment: text and JSON", _FIND, _BOTH, 13
    ),
    Key(("tab",), "panel(1)", "tab", "next panel", "next panel", _MOVE, _MAIN, 7, "tab", "panel"),
    Key(("shift+tab",), "panel(-1)", "shift+tab", "previous panel", "previous panel", _MOVE, _MAIN),
    Key(("down", "j"), "row(1)", "down j", "down", "row down", _MOVE, palette=False),
    Key(("up", "k"), "row(-1)", "up k", "up", "row up", _MOVE, palette=False),
    Key(("pagedown",), "row(10)", "page down", "page down", "ten rows down", _MOVE, palette=False),
    Key(("pageup",), "row(-10)", "page up", "page up", "ten rows up", _MOVE, palette=False),
    Key(("g", "home"), "end(-1)", "g home", "first", "first row", _MOVE, palette=False),
    Key(("G", "end"), "end(1)", "G end", "last", "last row; in the past: back to now", _MOVE, palette=False),
    Key(
        ("right", "l"),
        "side(1)",
        "right l",
        "right",
        "next panel; in the zoom the next GPU",
        _MOVE,
        palette=False,
    ),
    Key(
        ("left",),
        "side(-1)",
        "left",
        "left",
        "panel before; in the zoom the GPU before",
        _MOVE,
        palette=False,
    ),
    Key(
        ("space", "p"),
        "freeze",
        "space p",
        "freeze",
        "freeze the view; sampling goes on",
        _TIME,
        _BOTH,
        3,
        "space",
    ),
    Key(
        ("left_square_bracket",),
        "time(1)",
        "[",
        "back one",
        "back one sample",
        _TIME,
        _BOTH,
        9,
        "[ ]",
        "time",
    ),
    Key(("right_square_bracket",), "time(-1)", "]", "forward one", "forward one sample", _TIME),
    Key(("left_curly_bracket",), "minute(1)", "{", "back a minute", "back one minute", _TIME),
    Key(("right_curly_bracket",), "minute(-1)", "}", "forward a minute", "forward one minute", _TIME),
    Key(
        ("plus", "equals_sign"),
        "scale(1)",
        "+",
        "wider",
        "more time per cell",
        _TIME,
        _BOTH,
        10,
        "+ -",
        "scale",
    ),
    Key(("minus",), "scale(-1)", "-", "closer", "less time per cell", _TIME),
    Key(("z",), "zoom", "z", "zoom", "one GPU large; enter on a GPU does it too", _SHOW, _MAIN, 8),
    Key(("comma",), "sort(-1)", ",", "sort left", "sort processes by the column before", _SHOW, _MAIN),
    Key(("full_stop",), "sort(1)", ".", "sort right", "sort processes by the next column", _SHOW, _MAIN),
    Key(("slash",), "reverse", "/", "reverse", "reverse the order of processes", _SHOW, _MAIN),
    Key(("f",), "density('full')", "f", "full", "full: every metric of every GPU", _SHOW, _MAIN),
    Key(("c",), "density('compact')", "c", "compact", "compact: one row for each GPU", _SHOW, _MAIN),
    Key(("a",), "density('auto')", "a", "automatic", "as many rows for each GPU as fit", _SHOW, _MAIN),
    Key(("m",), "mouse", "m", "mouse", "mouse on or off; off lets the terminal select text", _SHOW),
    Key(("T",), "theme", "T", "theme", "next theme: dark, light, 16 colours", _SHOW, _BOTH, 15),
)


def bindings(where: Where) -> list[tuple[str, str]]:
    """(key, action) of one place, each key once; BOTH belongs to either."""
    return [(key, row.action) for row in KEYS if row.where in (where, Where.BOTH) for key in row.keys]


def footer(where: Where) -> list[tuple[str, str]]:
    """(keys, label) for the foot line, the most important first."""
    rows = [row for row in KEYS if row.foot and row.where in (where, Where.BOTH)]
    rows.sort(key=lambda row: row.foot)
    return [(row.foot_shown or row.shown, row.foot_label or row.label) for row in rows]


def help_rows() -> list[tuple[str, str, str]]:
    """(group, keys, help), each line once, in the order of the table."""
    seen = dict.fromkeys((row.group, row.shown, row.help) for row in KEYS)
    return list(seen)


def commands() -> list[Key]:
    """What the palette offers: actions that make sense by name on the main screen."""
    return [row for row in KEYS if row.palette and row.where is not Where.DIALOG]
