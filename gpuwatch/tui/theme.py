"""Roles of the views turned into styles: the only place that knows colours.

Colours are the Okabe-Ito palette (told apart by the usual colour-vision deficiencies), darkened for
the light theme until text of them reads 4.5:1. `bad` is bold besides, and no colour ever carries a
meaning alone: glyph, word and position do. "ansi" follows the user's own 16 colours, "plain" uses none.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from rich.style import Style

from gpuwatch.tui.plan import THEMES


@dataclass(frozen=True, slots=True)
class Palette:
    """Colours as Rich writes them; None is the terminal's own."""

    background: str | None
    text: str | None
    dim: str | None
    plot: str | None  # shapes only
    ok: str | None
    warn: str | None
    bad: str | None
    accent: str | None
    series: tuple[str | None, ...]
    slow: str | None
    selected: str | None  # background of a selected row


PALETTES: Mapping[str, Palette] = {
    "dark": Palette(
        background="#121212",
        text="#d0d0d0",
        dim="#8a8a8a",
        plot="#6c6c6c",
        ok="#009e73",
        warn="#e69f00",
        bad="#ff7030",
        accent="#56b4e9",
        series=("#56b4e9", "#e69f00", "#009e73", "#cc79a7", "#f0e442"),
        slow="#cc79a7",
        selected="#303030",
    ),
    "light": Palette(
        background="#ffffff",
        text="#262626",
        dim="#6a6a6a",
        plot="#949494",
        ok="#00775a",
        warn="#8f5f00",
        bad="#b84300",
        accent="#0069a8",
        series=("#0069a8", "#8f5f00", "#00775a", "#8f3a72", "#6b6500"),
        slow="#8f3a72",
        selected="#e4e4e4",
    ),
    "ansi": Palette(
        background=None,
        text=None,
        dim=None,
        plot=None,
        ok="green",
        warn="yellow",
        bad="red",
        accent="cyan",
        series=("cyan", "yellow", "green", "magenta", "blue"),
        slow="magenta",
        selected=None,
    ),
    "plain": Palette(None, None, None, None, None, None, None, None, (None,) * 5, None, None),
}


def next_theme(theme: str) -> str:
    """The one after it; without colour there is nothing to choose."""
    return THEMES[(THEMES.index(theme) + 1) % len(THEMES)] if theme in THEMES else theme


@cache
def styles(theme: str) -> Mapping[str, Style]:
    """Role -> style; each has the background too, so a row never inherits anything.

    Roles that look alike share one object, so that a painter can tell without comparing.
    """
    colors = PALETTES[theme]
    known: dict[Style, Style] = {}

    def ink(color: str | None, *, bold: bool = False) -> Style:
        return Style(color=color, bgcolor=colors.background, bold=bold or None)

    sky, orange, green, purple, yellow = colors.series
    # Terminals with 16 colours have no shade between text and background that is sure to be seen.
    chosen = Style(reverse=True) if colors.selected is None else Style(bgcolor=colors.selected, bold=True)
    made = {
        "": ink(colors.text),
        "title": ink(colors.text, bold=True),
        "heading": ink(colors.dim),
        "label": ink(colors.dim),
        "value": ink(colors.text),
        "dim": ink(colors.dim),
        "plot": ink(colors.plot),
        "ok": ink(colors.ok),
        "warn": ink(colors.warn),
        "bad": ink(colors.bad, bold=True),
        "accent": ink(colors.accent, bold=True),
        "key": ink(colors.accent, bold=True),
        "selected": ink(colors.text) + chosen,
        "series1": ink(sky),
        "series2": ink(orange),
        "series3": ink(green),
        "series4": ink(purple),
        "series5": ink(yellow),
        "bar_busy": ink(colors.ok),
        "bar_slow": ink(colors.slow),
        "bar_wait": ink(colors.warn),
        "bar_peers": ink(sky),
        "bar_foreign": ink(colors.bad),
        "bar_pause": ink(yellow),
        "bar_idle": ink(colors.dim),
        "bar_unknown": ink(colors.dim),
    }
    return {role: known.setdefault(style, style) for role, style in made.items()}
