"""Colours: every role has a style, text is readable, no-colour has none."""

from itertools import pairwise

import pytest
from rich.color import Color

from gpuwatch.tui.plan import THEMES
from gpuwatch.tui.theme import PALETTES, next_theme, styles
from gpuwatch.views.roles import BARS, ROLES

#: https://www.w3.org/TR/WCAG22/#contrast-minimum
LEAST_CONTRAST = 4.5
#: https://www.w3.org/TR/WCAG22/#non-text-contrast: for shapes.
LEAST_SHAPE_CONTRAST = 3.0


def least(role: str) -> float:
    return LEAST_SHAPE_CONTRAST if role == "plot" else LEAST_CONTRAST


def luminance(color: Color) -> float:
    """Relative luminance, 0 black to 1 white (WCAG 2.2)."""
    parts = [channel / 255 for channel in color.get_truecolor()]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: Color, other: Color) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_the_measure_itself() -> None:
    assert contrast(Color.parse("#ffffff"), Color.parse("#000000")) == pytest.approx(21.0)


@pytest.mark.parametrize("theme", PALETTES)
def test_every_role_has_a_style(theme: str) -> None:
    assert set(styles(theme)) == set(ROLES)


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_text_reads_on_its_background(theme: str) -> None:
    for role, style in styles(theme).items():
        assert style.color is not None
        assert style.bgcolor is not None
        assert contrast(style.color, style.bgcolor) >= least(role), role


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_text_reads_with_256_colours_too(theme: str) -> None:
    from rich.color import ColorSystem

    for role, style in styles(theme).items():
        assert style.color is not None
        assert style.bgcolor is not None
        color, background = (c.downgrade(ColorSystem.EIGHT_BIT) for c in (style.color, style.bgcolor))
        assert contrast(color, background) >= least(role), role


def test_the_terminals_own_colours_keep_its_background() -> None:
    for role, style in styles("ansi").items():
        assert style.bgcolor is None, role
        assert style.color is None or style.color.number is not None, role
        assert style.color is None or style.color.number < 16, role  # type: ignore[operator] # just checked


def test_plain_sends_no_colour_at_all() -> None:
    for style in styles("plain").values():
        assert style.color is None
        assert style.bgcolor is None


def test_bad_is_bold_and_selection_shows_without_colour() -> None:
    for theme in PALETTES:
        assert styles(theme)["bad"].bold
        assert styles(theme)["selected"] != styles(theme)[""]


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_neighbours_in_the_ledger_bar_differ(theme: str) -> None:
    made = styles(theme)
    for one, other in pairwise(BARS):
        if (one, other) != ("bar_idle", "bar_unknown"):  # told apart by their glyphs
            assert made[one] != made[other]


def test_the_key_goes_through_all_themes_and_leaves_no_colour_alone() -> None:
    seen = ["dark"]
    for _ in THEMES:
        seen.append(next_theme(seen[-1]))
    assert seen[:-1] == list(THEMES)
    assert seen[-1] == "dark"
    assert next_theme("plain") == "plain"
