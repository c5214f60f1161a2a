"""Roles of the views turned into styles: the only place that knows colours.

Colours are the Okabe-Ito palette (told apart by the usual colour-vision deficiencies), darkened for
the light theme until text of them reads 4.5:1. `bad` is bold besides, and no colour ever carries a
meaning alone: glyph, word and position do. "ansi" follows the user's own 16 colours, "plain" uses none.
"""

from collections.abc import Mapping
from dataclasses import dataclass

#: In the order in which the key goes through them; "plain" is never left.
CYCLE = ("dark", "light", "ansi")


@dataclass(frozen=True, slots=True)
class Palette:
    """Colours as Rich writes them; None is the terminal's own."""

    background: str | None
    text: str | None
    dim: str | None
    ok: str | None
    warn: str | None
    bad: str | None
    accent: str | None
    series: tuple[str | None, ...]
    wait: str | None
    slow: str | None
    selected: str | None  # background of a selected row


PALETTES: Mapping[str, Palette] = {
    "dark": Palette(
        background="#121212",
        text="#d0d0d0",
        dim="#8a8a8a",
        ok="#009e73",
        warn="#e69f00",
        bad="#ff7030",
        accent="#56b4e9",
        series=("#56b4e9", "#e69f00", "#009e73", "#cc79a7", "#f0e442"),
        wait="#e69f00",
        slow="#cc79a7",
        selected="#303030",
    ),
    "light": Palette(
        background="#ffffff",
        text="#262626",
        dim="#6a6a6a",
        ok="#00775a",
        warn="#8f5f00",
        bad="#b84300",
        accent="#0069a8",
        series=("#0069a8", "#8f5f00", "#00775a", "#a3477f", "#6b6500"),
        wait="#8f5f00",
        slow="#a3477f",
        selected="#e4e4e4",
    ),
    "ansi": Palette(
        background=None,
        text=None,
        dim=None,
        ok="green",
        warn="yellow",
        bad="red",
        accent="cyan",
        series=("cyan", "yellow", "green", "magenta", "blue"),
        wait="yellow",
        slow="magenta",
        selected=None,
    ),
    "plain": Palette(None, None, None, None, None, None, None, (None,) * 5, None, None, None),
}
