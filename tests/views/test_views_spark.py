"""Sparklines, strips and bars."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuwatch.views.glyphs import ASCII, UNICODE, ascii_text
from gpuwatch.views.rows import cells
from gpuwatch.views.spark import (
    bar,
    logarithmic,
    share_cells,
    spark,
    spark_rows,
    state_strip,
    whole_percents,
)

BOTH = pytest.mark.parametrize("glyphs", [UNICODE, ASCII], ids=["unicode", "ascii"])
VALUES = st.lists(st.none() | st.floats(-10, 300, allow_nan=False), max_size=60)


@BOTH
def test_constant_nothing_constant_full_and_missing_are_three_pictures(glyphs):
    pictures = {spark([value] * 8, 0.0, 1.0, glyphs) for value in (0.0, 1.0, None)}
    assert len(pictures) == 3
    assert all(picture.strip() for picture in pictures)


@BOTH
def test_the_scale_does_not_follow_the_values(glyphs):
    assert spark([0.40, 0.41], 0.0, 1.0, glyphs) == spark([0.41, 0.40], 0.0, 1.0, glyphs)
    assert spark([0.5], 0.0, 1.0, glyphs) != spark([0.5], 0.0, 0.5, glyphs)


def test_newest_is_at_the_right_and_the_picture_shifts_whole_cells():
    values = [0.0, 1.0, None, 0.3, 0.6, 0.9]
    before = spark(values, 0.0, 1.0, UNICODE)
    after = spark([*values[1:], 0.0], 0.0, 1.0, UNICODE)
    assert after[:-1] == before[1:]
    assert after[-1] == UNICODE.levels[0]


def test_cells_before_the_first_tick_are_blank_and_later_holes_are_not():
    assert spark([None, None, 0.0, None, 1.0], 0.0, 1.0, UNICODE, blank=2) == "  ▁·█"


def test_a_rate_that_needs_two_ticks_leaves_no_gap_at_the_start():
    assert spark([None, None, 1.0], 0.0, 1.0, UNICODE, blank=1) == "  █"


def test_b058_one_absurd_value_is_marked_and_bends_nothing():
    calm = spark([50.0, 60.0, 55.0], 0.0, 100.0, UNICODE)
    spiked = spark([50.0, 9e9, 55.0], 0.0, 100.0, UNICODE)
    assert spiked[0] == calm[0]
    assert spiked[2] == calm[2]
    assert spiked[1] == UNICODE.over


def test_b056_a_little_over_the_limit_is_a_full_cell():
    assert spark([228.8], 0.0, 210.0, UNICODE) == "█"


@BOTH
@given(values=VALUES, rows=st.integers(1, 6), blank=st.integers(0, 10))
def test_every_row_has_one_cell_for_each_value(glyphs, values, rows, blank):
    blank = min(blank, len(values))
    drawn = spark_rows(values, 0.0, 100.0, rows, glyphs, blank)
    assert len(drawn) == rows
    assert all(cells(line) == len(values) for line in drawn)
    assert glyphs is UNICODE or all(line.isascii() for line in drawn)


def test_several_rows_are_finer_than_one():
    low, high = spark_rows([0.50], 0.0, 1.0, 4, UNICODE), spark_rows([0.55], 0.0, 1.0, 4, UNICODE)
    assert low != high
    assert spark([0.50], 0.0, 1.0, UNICODE) == spark([0.55], 0.0, 1.0, UNICODE)


def test_a_gap_in_several_rows_is_marked_once_at_the_bottom():
    assert spark_rows([None], 0.0, 1.0, 3, UNICODE) == [" ", " ", "·"]


@pytest.mark.parametrize(
    ("states", "picture"),
    [
        ([0, 0, 0, 0], "P0──"),
        ([0, 0, 8, 8, 8], "0─P8─"),
        ([2, 8, 0], "280"),
        ([12, 12, 12, 12, 12], "P12──"),
        ([12, 0], "C0"),
        ([None, None, 2, 2, 2], "··P2─"),
    ],
)
def test_p_states_are_named_where_they_begin(states, picture):
    values = [None if state is None else float(state) for state in states]
    assert state_strip(values, UNICODE) == picture


@given(
    st.lists(st.none() | st.sampled_from([0.0, 2.0, 8.0, 12.0, 15.0, 32.0]), max_size=50), st.integers(0, 5)
)
def test_the_strip_has_one_cell_for_each_value(values, blank):
    blank = min(blank, len(values))
    assert cells(state_strip(values, UNICODE, blank)) == len(values)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8), st.integers(0, 200))
def test_bar_parts_sum_to_the_width(ratios, width):
    shared = share_cells(ratios, width)
    assert sum(shared) == (width if sum(ratios) > 0 else 0)
    assert all(count >= 0 for count in shared)


def test_a_small_part_still_has_a_cell():
    assert share_cells([0.97, 0.02, 0.01], 20) == [18, 1, 1]


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=8).filter(sum))
def test_whole_percents_sum_to_a_hundred(weights):
    total = sum(weights)
    assert sum(whole_percents([weight / total for weight in weights])) == 100


def test_a_memory_bar_over_full_is_full_and_an_unknown_one_is_a_gap():
    assert "".join(text for text, _ in bar(1.09, 10, "value", UNICODE)) == "█" * 10
    assert "".join(text for text, _ in bar(None, 10, "value", UNICODE)) == "·" * 10
    assert bar(0.5, 0, "value", UNICODE) == ()


def test_a_logarithmic_scale_begins_at_nothing():
    assert logarithmic(None, 10.0) is None
    assert logarithmic(3.0, 10.0) == 0.0
    assert logarithmic(1000.0, 10.0) == pytest.approx(2.0)


@pytest.mark.parametrize("glyphs", [UNICODE, ASCII])
def test_every_glyph_is_one_cell_and_states_differ_without_colour(glyphs):
    singles = [*glyphs.levels, glyphs.gap, glyphs.over, glyphs.line, glyphs.ellipsis, glyphs.full]
    singles += [*glyphs.check.values(), *glyphs.severity.values(), *glyphs.ledger.values()]
    assert all(cells(one) == 1 for one in singles)
    assert len(set(glyphs.check.values())) == len(glyphs.check)
    assert len(set(glyphs.ledger.values())) == len(glyphs.ledger)
    assert glyphs.gap not in glyphs.levels


@given(st.text(max_size=40))
def test_ascii_text_is_ascii(text):
    assert ascii_text(text).isascii()
