from history_samples import GPU, gpu, powers, sample
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuwatch.history import History

values = st.lists(st.none() | st.floats(0, 500, allow_nan=False), min_size=1, max_size=60)


@given(values, st.integers(1, 30))
def test_cells_shift_by_one_per_tick(row, count):
    before = powers(*row).cells(GPU, "power_w", count)
    after = powers(*row, 77.0).cells(GPU, "power_w", count)
    assert after == [*before[1:], 77.0]


@given(values, st.integers(1, 30), st.integers(1, 7))
def test_finished_cells_do_not_change_when_the_picture_moves(row, count, per_cell):
    """Anchored to tick numbers: only the newest cell, still unfinished, may change."""
    before = powers(*row).cells(GPU, "power_w", count, per_cell)
    after = powers(*row, 77.0).cells(GPU, "power_w", count, per_cell)
    if len(row) % per_cell == 0:
        assert after[:-1] == before[1:]
    else:
        assert after[:-1] == before[:-1]


@given(values, st.integers(1, 30), st.integers(1, 7), st.integers(0, 80))
def test_cells_match_a_plain_computation(row, count, per_cell, back):
    history = powers(*row)
    newest = len(row) - 1 - back
    expected, ranges = [], []
    for cell in range(newest // per_cell - count + 1, newest // per_cell + 1):
        ticks = range(cell * per_cell, min(newest, cell * per_cell + per_cell - 1) + 1)
        known = [row[tick] for tick in ticks if tick >= 0 and row[tick] is not None]
        expected.append(sum(known) / len(known) if known else None)
        ranges.append((min(known), max(known)) if known else None)
    assert history.cells(GPU, "power_w", count, per_cell, back) == expected
    assert history.cell_ranges(GPU, "power_w", count, per_cell, back) == ranges


def test_gaps_stay_gaps_in_cells():
    assert powers(1, None, 3).cells(GPU, "power_w", 4) == [None, 1, None, 3]
    assert powers(1, None, None, None, 5).cells(GPU, "power_w", 3, 2) == [1, None, 5]


def test_an_unknown_series_is_all_gaps():
    assert powers(1.0).cells("gpu:GPU-9", "power_w", 3) == [None] * 3
    assert powers(1.0).cells(GPU, "temperature_c", 3) == [None] * 3
    assert History().cells(GPU, "power_w", 2) == [None] * 2
    assert History().cell_ranges(GPU, "power_w", 2, 5) == [None] * 2


def test_cells_are_summarised_as_the_metric_says():
    history = History()
    for second, (temperature, reasons, limit) in enumerate(
        ((50, 1, 300), (70, 4, 250), (60, 0, 200), (0, 0, 0))
    ):
        time_s = 4.0 * 250 + second
        reading = gpu(time_s, temperature_c=temperature, event_reasons=reasons, power_limit_w=limit)
        history.append(sample(time_s, reading))
    assert history.cells(GPU, "temperature_c", 1, 3, back=1) == [70]
    assert history.cells(GPU, "event_reasons", 1, 3, back=1) == [5]
    assert history.cells(GPU, "power_limit_w", 1, 3, back=1) == [200]


@settings(max_examples=20)
@given(st.integers(0, 40), st.integers(1, 3))
def test_cells_older_than_the_ring_come_from_the_coarser_past(phase, per_minute):
    """226 ticks of a minute fill the ring; what has left it is drawn from the steps of a minute."""
    history, row = History(60.0), []
    for number in range(300):
        value = None if number % 11 == 5 else float((number + phase) % 50)
        history.append(sample(60.0 * number, gpu(60.0 * number, power_w=value)))
        row.append(value)
    assert history.cells(GPU, "power_w", 300) == row
    coarse = history.cells(GPU, "power_w", 100, per_minute)
    # 300 ticks are whole cells of each of these lengths.
    for cell, value in enumerate(coarse, start=300 // per_minute - 100):
        known = [v for v in row[max(0, cell * per_minute) : (cell + 1) * per_minute] if v is not None]
        assert value == (sum(known) / len(known) if known and cell >= 0 else None)


def test_what_has_no_coarser_past_is_a_gap_there():
    history = History(60.0)
    for number in range(300):
        history.append(sample(60.0 * number, gpu(60.0 * number, memory_clock_mhz=900.0)))
    cells = history.cells(GPU, "memory_clock_mhz", 300)
    assert cells == [None] * 75 + [900.0] * 225
