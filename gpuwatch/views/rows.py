"""Rows of a picture: pieces of text with a role, together exactly as wide as asked for."""

import re
from collections.abc import Iterable, Sequence

from rich.cells import cell_len, set_cell_size

from gpuwatch.clean import clean
from gpuwatch.views.glyphs import Glyphs, ascii_text

Span = tuple[str, str]  # text, role
Row = tuple[Span, ...]

#: Latin, arrows, boxes, blocks and marks that every terminal draws one cell wide (ours are all here).
_NARROW = re.compile("[ -~\u00a1-\u00ac\u00ae-\u02ff\u2010-\u2027\u2190-\u21ff\u2500-\u259f\u2713\u2717]*")


def cells(text: str) -> int:
    """Width of `text` on a terminal. Wide characters take two cells, combining ones none."""
    if text.isascii() or _NARROW.fullmatch(text):
        return len(text)
    return cell_len(text)


def crop(text: str, width: int) -> str:
    """`text` cut or filled with blanks to exactly `width` cells."""
    if width <= 0:
        return ""
    if text.isascii() or _NARROW.fullmatch(text):
        return text[:width] if len(text) >= width else text + " " * (width - len(text))
    return set_cell_size(text, width)


def safe(text: str, glyphs: Glyphs) -> str:
    """Text from outside this room: nothing in it steers the terminal, and ASCII stays ASCII."""
    if text.isascii() and text.isprintable():
        return text
    text = clean(text)
    return ascii_text(text) if glyphs.line == "-" else text


#: A figure and its unit belong on one line.
_FIGURE = re.compile(r"(?<=\d) (?=(?:%|°?C|W|MHz|GiB|MiB|[kMG]?B/s|s|ms|min|h|core|cores|GPUs?|GB)(?![\w]))")
_GLUE = "\u00a0"


def _glued(text: str) -> str:
    return _FIGURE.sub(_GLUE, text)


def shorten(text: str, width: int, glyphs: Glyphs) -> str:
    """`text` in at most `width` cells; what is cut off ends in an ellipsis, at a word where one is near."""
    if cells(text) <= width:
        return text
    if width <= 1:
        return glyphs.ellipsis[: max(0, width)]
    return _cut(_glued(text), width, glyphs).replace(_GLUE, " ")


def _cut(text: str, width: int, glyphs: Glyphs) -> str:
    cut = crop(text, width - 1).rstrip()
    space = cut.rfind(" ")
    # A figure or a word cut in the middle says something else; a long first word has to be cut.
    if space >= width // 2 and text[len(cut) : len(cut) + 1] not in ("", " "):
        cut = cut[:space].rstrip(" ,;:")
    if cut.rfind("(") > cut.rfind(")"):  # half a remark says less than none
        cut = cut[: cut.rfind("(")].rstrip() or cut
    return cut + glyphs.ellipsis


def clip(text: str, width: int, glyphs: Glyphs) -> str:
    """Likewise, but cut anywhere: for command lines and paths, whose words are long."""
    if cells(text) <= width:
        return text
    return crop(text, width - 1).rstrip() + glyphs.ellipsis if width > 1 else glyphs.ellipsis[: max(0, width)]


def wrap(text: str, width: int, most: int, glyphs: Glyphs) -> list[str]:
    """`text` in lines of at most `width` cells, at most `most` of them; the last ends in an ellipsis."""
    if width < 1 or most < 1:
        return []
    lines: list[str] = []
    words = [word for word in _glued(text).split(" ") if word]
    while words and len(lines) < most - 1:
        line = ""
        while words and cells(line) + bool(line) + cells(words[0]) <= width:
            line = f"{line} {words.pop(0)}" if line else words.pop(0)
        if not line:  # one word wider than the line
            line = _cut(words.pop(0), width, glyphs) if width > 1 else glyphs.ellipsis
        lines.append(line)
    lines = [line.replace(_GLUE, " ") for line in lines]
    if words:
        lines.append(shorten(" ".join(words).replace(_GLUE, " "), width, glyphs))
    return lines


def row(spans: Iterable[Span], width: int) -> Row:
    """The pieces cut or filled to exactly `width` cells; a piece that is cut off ends without a mark."""
    result: list[Span] = []
    left = width
    for text, role in spans:
        if not text:
            continue
        size = cells(text)
        if size > left:
            if left:
                result.append((crop(text, left), role))
                left = 0
            break
        result.append((text, role))
        left -= size
    if left > 0:
        result.append((" " * left, ""))
    return tuple(result)


def both_ends(start: Sequence[Span], end: Sequence[Span], width: int) -> Row:
    """`start` from the left, `end` at the right edge; the end gives way where both do not fit."""
    used, tail = width_of(start), width_of(end)
    if not end or used + tail > width:
        return row(start, width)
    return row((*start, (" " * (width - used - tail), ""), *end), width)


def width_of(spans: Iterable[Span]) -> int:
    return sum(cells(text) for text, _ in spans)


def blank(width: int) -> Row:
    return ((" " * width, ""),) if width > 0 else ()


def filled(rows: Sequence[Row], width: int, height: int) -> list[Row]:
    """At most `height` rows."""
    return list(rows[: max(0, height)])


def side_by_side(parts: Sequence[tuple[Sequence[Row], int]], gap: int) -> list[Row]:
    """Blocks of rows next to one another: (rows, width of each), `gap` blanks between."""
    height = max((len(rows) for rows, _ in parts), default=0)
    between: Row = ((" " * gap, ""),) if gap else ()
    result = []
    for y in range(height):
        spans: list[Span] = []
        for number, (rows, width) in enumerate(parts):
            if number:
                spans.extend(between)
            spans.extend(rows[y] if y < len(rows) else blank(width))
        result.append(tuple(spans))
    return result


def heading(text: str, width: int, glyphs: Glyphs, focused: bool = False, note: str = "") -> Row:
    """A rule line with the panel's name in it, and a note at its end."""
    line = glyphs.line
    start = f"{line}{line} {text} "
    end = f" {note} {line}" if note and cells(start) + cells(note) + 4 <= width else ""
    rest = line * max(0, width - cells(start) - cells(end))
    role = "accent" if focused else "heading"
    return row(((start, role), (rest, "heading"), (end, "dim")), width)


def text_of(rows: Iterable[Row]) -> list[str]:
    """The rows without their roles, for tests, pipes and files."""
    return ["".join(text for text, _ in spans) for spans in rows]
