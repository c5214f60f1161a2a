from itertools import groupby
from math import isnan

import pytest
from history_samples import GPU, gpu, powers, sample
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuwatch.history import History

steps = st.lists(
    st.tuples(st.floats(0.4, 1.6), st.none() | st.floats(0, 700, width=32)), min_size=1, max_size=150
)


def brute_force(ticks, step_s):
    return {
        step * float(step_s): [value for _, value in group if value is not None]
        for step, group in groupby(ticks, key=lambda tick: tick[0] // step_s)
    }


@settings(max_examples=60, deadline=None)
@given(steps, st.floats(0, 1e6), st.sampled_from([10, 60]))
def test_steps_equal_a_plain_computation(moves, start_s, step_s):
    history, ticks, time_s = History(), [], start_s
    for move_s, value in moves:
        time_s += move_s
        history.append(sample(time_s, gpu(time_s, power_w=value)))
        ticks.append((time_s, value))
    expected = brute_force(ticks, step_s)
    tier = history.tier(GPU, "power_w", step_s)
    assert list(tier.times_s) == sorted(expected)
    for time_s, low, mean, high in zip(tier.times_s, tier.low, tier.mean, tier.high, strict=True):
        known = expected[time_s]
        if known:
            assert low == min(known)
            assert high == max(known)
            assert mean == pytest.approx(sum(known) / len(known), rel=1e-6)
        else:
            assert isnan(low)
            assert isnan(mean)
            assert isnan(high)


def test_a_step_without_a_tick_is_a_gap():
    history = History()
    for time_s in (1000.0, 1001.0, 1045.0):
        history.append(sample(time_s, gpu(time_s, power_w=5.0)))
    tier = history.tier(GPU, "power_w", 10)
    assert list(tier.times_s) == [1000, 1010, 1020, 1030, 1040]
    assert [not isnan(value) for value in tier.mean] == [True, False, False, False, True]


def test_steps_hold_their_span_and_no_more():
    history = History(10.0)
    for number in range(1000):
        history.append(sample(10.0 * number, gpu(10.0 * number, power_w=float(number))))
    tier = history.tier(GPU, "power_w", 10)
    assert (tier.times_s[0], tier.mean[0], len(tier.mean)) == (2800.0, 280.0, 720)
    assert len(history.tier(GPU, "power_w", 60).mean) == 167


def test_after_longer_than_the_span_nothing_old_shows_up():
    history = powers(1.0, 2.0)
    history.append(sample(1000.0 + 3 * 7200, gpu(1000.0 + 3 * 7200, power_w=3.0)))
    assert [value for value in history.tier(GPU, "power_w", 10).mean if not isnan(value)] == [3.0]


def test_a_metric_without_coarser_past_and_an_unknown_gpu_have_none():
    history = powers(1.0, 2.0)
    assert len(history.tier(GPU, "memory_clock_mhz", 10).mean) == 0
    assert len(history.tier("gpu:GPU-9", "power_w", 10).mean) == 0
    with pytest.raises(KeyError):
        history.tier(GPU, "power_w", 30)


def test_a_gpu_away_for_minutes_is_a_gap_in_the_coarser_past_too():
    history = powers(*[10.0] * 60, *[None] * 120, *[20.0] * 60, start_s=6000.0)
    assert [None if isnan(v) else v for v in history.tier(GPU, "power_w", 60).mean] == [10, None, None, 20]
