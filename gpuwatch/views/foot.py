"""The last line: a message while there is one, else as many keys as fit, the most important first."""

from collections.abc import Sequence

from gpuwatch.views.glyphs import glyphs_for
from gpuwatch.views.rows import Row, Span, cells, row, safe, shorten


def foot(
    keys: Sequence[tuple[str, str]], message: str, width: int, height: int, *, ascii_only: bool = False
) -> list[Row]:
    """The panel `foot`. `keys`: (keys, label), the most important first."""
    if height < 1 or width < 1:
        return []
    glyphs = glyphs_for(ascii_only)
    if message:
        return [row([(shorten(safe(message, glyphs), width, glyphs), "accent")], width)]
    spans: list[Span] = []
    left = width
    for shown, label in keys:
        need = cells(shown) + 1 + cells(label) + (2 if spans else 0)
        if need > left:
            continue
        if spans:
            spans.append(("  ", ""))
        spans += [(shown, "key"), (f" {label}", "dim")]
        left -= need
    return [row(spans, width)]
