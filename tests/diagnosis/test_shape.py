"""The pulse detector: what it must find, what it must not call a pulse, and how exact it is."""

import random
from collections import Counter

import pytest
from build import mean, square
from hypothesis import given, settings
from hypothesis import strategies as st
from pulses import buffered, negatives, polled, pulses, true_stall

from gpuwatch.diagnosis.autocorrelation import autocorrelation
from gpuwatch.diagnosis.shape import shape_of
from gpuwatch.diagnosis.shape_series import fill_holes
from gpuwatch.model import Shape, ShapeKind


def sampled(wave, hz=6.0, duration=60.0):
    times = [(k + 1) / hz for k in range(round(duration * hz))]
    return times, [round(mean(wave, t - 1 / hz, t), 2) for t in times]


def plain_autocorrelation(values, max_lag):
    count, center = len(values), sum(values) / len(values)
    rest = [value - center for value in values]
    variance = sum(value * value for value in rest) / count
    return [
        sum(rest[i] * rest[i + lag] for i in range(count - lag)) / (count - lag) / variance
        for lag in range(max_lag + 1)
    ]


def test_autocorrelation_equals_the_plain_double_loop():
    rng = random.Random(3)
    values = [rng.randint(0, 1000) for _ in range(240)]
    assert autocorrelation(values, 80) == pytest.approx(plain_autocorrelation(values, 80), abs=1e-9)


def test_autocorrelation_of_a_constant_is_zero_and_of_nothing_empty():
    assert autocorrelation([50] * 50, 10) == [0.0] * 11
    assert autocorrelation([], 10) == []
    with pytest.raises(ValueError, match="4001"):
        autocorrelation([0] * 4001, 3)
    with pytest.raises(ValueError, match="must be 0"):
        autocorrelation([0, 1001], 1)


@pytest.mark.parametrize("hz", [5.0, 6.0])
def test_p01_square_3090_period_within_a_tenth_and_stall_within_five_points(hz):
    shape = shape_of(*sampled(square(0, 0.97, 1.4, 0.36), hz), buffered=True)
    assert shape.kind is ShapeKind.PULSED
    assert shape.period_s == pytest.approx(1.4, rel=0.10)
    assert shape.stall_ratio == pytest.approx(0.64, abs=0.05)
    assert shape.stall_low_ratio <= 0.64 <= shape.stall_high_ratio
    assert shape.regular is True
    assert shape.gap_median_s == pytest.approx(0.9, abs=0.2)
    assert shape.cycles == pytest.approx(60 / 1.4, abs=2)


def test_a_preliminary_class_needs_half_a_minute_of_buffered_points():
    times, values = sampled(square(0, 0.97, 1.4, 0.36), duration=25)
    assert shape_of(times, values, buffered=True).kind is ShapeKind.UNKNOWN
    times, values = sampled(square(0, 0.97, 1.4, 0.36), duration=30)
    assert shape_of(times, values, buffered=True).kind is ShapeKind.PULSED


def test_readings_once_a_second_need_more_time_and_never_show_a_period():
    rng = random.Random(1)
    truth = pulses(rng, 3.0, 0.5, 0.08, 65)
    times, values = polled(truth.mean, rng, 1 / 6, 60)
    assert shape_of(times[:32], values[:32], buffered=False).kind is ShapeKind.UNKNOWN
    shape = shape_of(times, values, buffered=False)
    assert shape.kind is ShapeKind.PULSED
    assert shape.period_s is None


def test_nothing_and_few_points_are_unknown():
    assert shape_of([], [], buffered=True) == Shape(ShapeKind.UNKNOWN, buffered=True)
    assert shape_of([1.0], [0.5], buffered=True).kind is ShapeKind.UNKNOWN


@pytest.mark.parametrize(
    ("wave", "kind"),
    [
        (0.0, ShapeKind.IDLE),
        (0.97, ShapeKind.SATURATED),
        (lambda t: 0.96 if t % 60 > 40 else 0.88, ShapeKind.SATURATED),
        (0.6, ShapeKind.FLAT_LOW),
        (0.8, ShapeKind.FLAT_HIGH),
        (square(0.0, 0.97, 25, 0.75), ShapeKind.EPISODIC),
        (lambda t: 0.2 + 0.7 * t / 60, ShapeKind.VARIABLE),
    ],
)
def test_class(wave, kind):
    assert shape_of(*sampled(wave), buffered=True).kind is kind


@pytest.mark.parametrize("period", [0.25, 0.4, 0.5])
def test_p43_pulses_faster_than_the_points_show_no_period(period):
    rng = random.Random(2)
    for wave in (
        pulses(rng, period, 0.5, 0.08, 65).mean,
        lambda a, b: mean(square(0, 0.96, period, 0.5), a, b),
    ):
        assert shape_of(*buffered(wave, rng, 6, 60), buffered=True).period_s is None


def test_one_long_gap_is_no_pulse_n07():
    assert shape_of(*sampled(lambda t: 0.0 if 20 < t < 32 else 0.97), buffered=True).kind is not (
        ShapeKind.PULSED
    )


def test_the_best_level_of_the_job_is_the_reference_of_the_stall():
    times, values = sampled(square(0, 0.60, 1.4, 0.5))
    alone = shape_of(times, values, buffered=True).stall_ratio
    against_best = shape_of(times, values, buffered=True, best_high=0.97).stall_ratio
    assert alone == pytest.approx(0.5, abs=0.05)
    assert against_best == pytest.approx(1 - 0.3 / 0.97, abs=0.05)


def test_a_hole_makes_no_edge_and_no_gap_length():
    times, values = sampled(square(0, 0.97, 1.4, 0.5))
    kept = [(t, v) for t, v in zip(times, values) if not 20 < t < 40]
    shape = shape_of([t for t, _ in kept], [v for _, v in kept], buffered=True)
    assert shape.gap_p90_s < 2
    assert shape.period_s == pytest.approx(1.4, rel=0.10)


def test_b_f4_a_ring_that_ran_dry_is_filled_from_the_ticks_not_skipped():
    times, values = sampled(lambda t: 0.97 if t % 12 < 6 else 0.0)
    wet = [(t, v) for t, v in zip(times, values) if t % 12 < 6.05]
    ticks = [float(t) for t in range(1, 61)]
    readings = [0.97 if t % 12 < 6 else 0.0 for t in ticks]
    filled_times, filled_values = fill_holes(([t for t, _ in wet], [v for _, v in wet]), (ticks, readings))
    assert sum(filled_values) / len(filled_values) == pytest.approx(0.5, abs=0.06)
    assert filled_times == sorted(filled_times)
    without = fill_holes(([t for t, _ in wet], [v for _, v in wet]), ([], []))
    assert without[1] == [v for _, v in wet]


@given(
    st.lists(st.integers(0, 100).map(lambda percent: percent / 100), min_size=30, max_size=200),
    st.booleans(),
    st.sampled_from([0.15, 0.2, 1.0, 2.0]),
)
@settings(max_examples=200, deadline=None)
def test_any_series_gives_ratios_in_range_and_an_ordered_interval(values, buffered_, spacing):
    shape = shape_of([i * spacing for i in range(len(values))], values, buffered_)
    for ratio in (shape.mean_ratio, shape.low_ratio, shape.high_ratio, shape.stall_ratio):
        assert ratio is None or 0.0 <= ratio <= 1.0
    if shape.stall_low_ratio is not None:
        assert 0.0 <= shape.stall_low_ratio <= shape.stall_high_ratio + 1e-9
        assert shape.stall_high_ratio <= 1.0
    if shape.period_s is not None:
        assert 4 * spacing * 0.8 <= shape.period_s <= shape.duration_s / 3 + spacing


# -- the simulation behind the thresholds, at reduced size


@pytest.fixture(scope="module")
def simulated():
    """(detected of findable, errors of the stall share, share inside the interval) at 6 Hz, 60 s."""
    found = total = inside = 0
    errors = []
    for period in (0.7, 1.0, 1.4, 2.0, 3.0, 5.0, 8.0):
        for duty in (0.2, 0.4, 0.6, 0.8, 0.9):
            for jitter in (0.08, 0.2):
                if period * (1 - duty) < 0.2:
                    continue
                rng = random.Random(f"{period} {duty} {jitter}")
                truth = pulses(rng, period, duty, jitter, 65)
                shape = shape_of(*buffered(truth.mean, rng, 6, 60), buffered=True)
                total += 1
                if shape.kind is ShapeKind.PULSED:
                    found += 1
                    stall = true_stall(truth, 0, 60)
                    errors.append(abs(shape.stall_ratio - stall))
                    inside += shape.stall_low_ratio <= stall <= shape.stall_high_ratio
    return found / total, sorted(errors), inside / found


def test_simulation_recall(simulated):
    assert simulated[0] >= 0.98


def test_simulation_error_of_the_stall_share(simulated):
    errors = simulated[1]
    assert sum(errors) / len(errors) <= 0.03
    assert errors[int(0.95 * len(errors))] <= 0.09


def test_simulation_interval_holds(simulated):
    assert simulated[2] >= 0.85


def test_simulation_false_pulses():
    false = Counter()
    for run in range(6):
        rng = random.Random(f"negative {run}")
        for name, wave in negatives(rng, 65).items():
            shape = shape_of(*buffered(wave, rng, 6, 60), buffered=True)
            false[name] += shape.kind is ShapeKind.PULSED
    assert not {name for name in +false if name != "noise 50 30"}  # 50 ± 30 % moves like pulses
    assert sum(false.values()) <= 0.02 * 6 * 18


def test_simulation_readings_once_a_second_with_jitter():
    found = total = 0
    for period in (1.0, 2.0, 3.0, 5.0):
        for duty in (0.2, 0.4, 0.6):
            for seed in range(2):
                rng = random.Random(f"{period} {duty} {seed}")
                truth = pulses(rng, period, duty, 0.08, 65)
                total += 1
                found += shape_of(*polled(truth.mean, rng, 1 / 6, 60), buffered=False).kind is (
                    ShapeKind.PULSED
                )
    assert found / total >= 0.90
