"""Rows and texts: exact widths whatever the characters, figures whole, nothing that steers a terminal."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from gpuwatch.views import format as words
from gpuwatch.views.glyphs import ASCII, UNICODE
from gpuwatch.views.rows import (
    both_ends,
    cells,
    clip,
    crop,
    heading,
    row,
    safe,
    shorten,
    side_by_side,
    text_of,
    wrap,
)

TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), max_size=40)
WIDE = "训练-模型 müller ▁▂█ e\u0301"


@given(TEXT)
def test_widths_are_those_of_the_terminal_library(text):
    assert cells(text) == cell_len(text)


@given(st.lists(st.tuples(TEXT, st.just("value")), max_size=5), st.integers(0, 60))
def test_b074_a_row_is_exactly_as_wide_as_asked(spans, width):
    assert sum(cell_len(text) for text, _ in row(spans, width)) == width


@given(TEXT, st.integers(0, 50))
def test_cropped_and_shortened_texts_fit(text, width):
    assert cell_len(crop(text, width)) == width
    assert cell_len(shorten(text, width, UNICODE)) <= max(width, 0)
    assert cell_len(clip(text, width, UNICODE)) <= max(width, 0)


@given(TEXT, st.integers(1, 50), st.integers(1, 5))
def test_wrapped_lines_fit(text, width, most):
    lines = wrap(text, width, most, UNICODE)
    assert len(lines) <= most
    assert all(cell_len(line) <= width for line in lines)


def test_what_is_cut_off_is_marked_and_a_figure_is_never_split():
    assert shorten("the GPU waits 58-66 % of the time", 20, UNICODE) == "the GPU waits…"
    assert wrap("costs 58-66 % of the time", 13, 3, UNICODE) == ["costs 58-66 %", "of the time"]
    assert wrap("costs 158-66 % of it", 13, 3, UNICODE) == ["costs", "158-66 % of", "it"]


def test_half_a_remark_is_not_left_standing():
    assert shorten("batches are prepared in main (0 workers)", 33, UNICODE) == "batches are prepared in main…"


def test_a_long_word_is_cut_rather_than_lost():
    assert shorten("x" * 30, 10, UNICODE) == "x" * 9 + "…"
    assert wrap("x" * 30 + " y", 10, 3, UNICODE) == ["x" * 9 + "…", "y"]


def test_both_ends_keep_the_start():
    assert text_of([both_ends([("left", "")], [("right", "")], 12)]) == ["left   right"]
    assert text_of([both_ends([("left", "")], [("right", "")], 8)]) == ["left    "]


def test_side_by_side_fills_the_shorter_block():
    left, right = [row([("a", "")], 2)], [row([("b", "")], 2), row([("c", "")], 2)]
    assert text_of(side_by_side([(left, 2), (right, 2)], 1)) == ["a  b ", "   c "]


@pytest.mark.parametrize("width", range(1, 40))
def test_headings_have_their_width(width):
    assert len(text_of([heading("findings 3", width, UNICODE, note="2 ignored")])[0]) == width


@given(st.text(max_size=30))
def test_nothing_steers_the_terminal(text):
    for glyphs in (UNICODE, ASCII):
        drawn = safe(f"\x1b]0;owned\x07{text}\r\n\u202e", glyphs)
        assert not any(ord(c) < 32 or 0x7F <= ord(c) < 0xA0 for c in drawn)
        assert "\u202e" not in drawn
    assert safe(text, ASCII).isascii()


@pytest.mark.parametrize(
    ("function", "value", "text"),
    [
        (words.percent, None, "- %"),
        (words.percent, 0.0, "0 %"),
        (words.percent, 0.001, "<1 %"),
        (words.percent, 0.976, "98 %"),
        (words.whole, None, "-"),
        (words.gib, 80 * 2**30, "80.0"),
        (words.gib, 503 * 2**30, "503"),
        (words.memory, None, "-"),
        (words.memory, 412 * 2**20, "412 MiB"),
        (words.memory_short, 38.2 * 2**30, "38.2G"),
        (words.memory_short, 0, "0K"),
        (words.rate, None, "- MB/s"),
        (words.rate, 0.0, "0 MB/s"),
        (words.rate, 61e6, "61 MB/s"),
        (words.rate, 999.9e6, "1.0 GB/s"),
        (words.rate_short, 1.24e9, "1.2G"),
        (words.clock_time, 8049.0, "2:14:09"),
        (words.clock_time, 90061.0, "1d 1:01:01"),
        (words.span, 1.4, "1.4 s"),
        (words.span, 119.0, "119 s"),
        (words.span, 7199.0, "119 min"),
        (words.age, 3.9, "3 s"),
        (words.short, 0.004, "0"),
        (words.short, 0.21, "0.21"),
        (words.short, 31.5, "31.5"),
    ],
)
def test_figures(function, value, text):
    assert function(value) == text


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.62, "ratio", "62 %"),
        (None, "W", "-"),
        ("bf16", "", "bf16"),
        (0.974, "cores", "0.97 cores"),
        (228.8, "W", "229 W"),
        (5.0, "s", "5 s"),
        (61e6, "B/s", "61 MB/s"),
        (1.234, "ms", "1.23 ms"),
    ],
)
def test_evidence_is_written_in_its_unit(value, unit, text):
    assert words.quantity(value, unit) == text


@given(st.floats(0, 1e15, allow_nan=False))
def test_columns_hold_any_amount(value):
    assert len(words.rate_short(value)) <= 8
    assert len(words.memory_short(value)) <= 8


def test_a_wide_user_name_keeps_the_columns():
    assert cells(crop(WIDE, 12)) == 12
