"""Who runs while the GPU is idle: the regression behind the causes."""

import random

import pytest
from build import Gpu, Process, Scene, square
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuwatch.diagnosis.gapcpu import (
    Points,
    burst_points,
    main_thread_gap,
    regress,
    tick_points,
    workers_gap,
)
from gpuwatch.diagnosis.window import GapCpu
from gpuwatch.history import History
from gpuwatch.model import Burst, ProcessRole, ThreadBurst

NAN = float("nan")


def history_of(scene, seconds=40):
    history = History(scene.interval_s)
    sample = None
    for sample in scene.samples(seconds):
        history.append(sample)
    return history, sample


def gap_of_main(util, main, high=0.97, period_hz=6.0):
    scene = Scene([Gpu(util=util)], [Process(100, cpu=main)], jitter=0.3, burst_hz=period_hz)
    history, sample = history_of(scene)
    burst = history.burst("GPU-0", "utilization", 20.0)
    return main_thread_gap(history, sample.processes[0], "gpu:GPU-0", burst, high)


@pytest.mark.parametrize("period", [0.8, 1.4, 3.0])
@pytest.mark.parametrize("duty", [0.36, 0.6])
def test_loading_in_main_runs_in_the_gaps(period, duty):
    util = square(0, 0.97, period, duty)
    found = gap_of_main(util, lambda t: 0.97 if util(t) < 0.5 else 1.0)
    assert found.gap_cores == pytest.approx(0.97, abs=0.02)
    assert found.busy_cores == pytest.approx(1.0, abs=0.02)


@pytest.mark.parametrize("period", [0.8, 1.4, 3.0])
def test_f16_a_spinning_main_thread_sleeps_in_the_gaps(period):
    util = square(0, 0.96, period, 0.5)
    found = gap_of_main(util, lambda t: 0.06 if util(t) < 0.5 else 1.0, high=0.96)
    assert found.gap_cores == pytest.approx(0.06, abs=0.08)
    assert found.busy_cores == pytest.approx(1.0, abs=0.08)


def test_without_gaps_it_abstains():
    assert "gaps" in gap_of_main(0.97, 1.0)


def test_few_points_abstain():
    assert "3 of 12" in regress(Points([0.0, 1.0, 0.0], [1.0, 0.0, 1.0]))


def test_standard_error_covers_the_noise():
    inside = 0
    for seed in range(60):
        rng = random.Random(seed)
        busy = [rng.random() for _ in range(50)]
        cores = [0.5 * (1 - b) + 0.9 * b + rng.gauss(0, 0.05) for b in busy]
        found = regress(Points(busy, cores))
        inside += abs(found.gap_cores - 0.5) <= 2 * found.error_cores
    assert inside >= 52  # 95 % of 60, with three standard deviations of luck


@given(
    st.floats(0, 2),
    st.floats(0, 2),
    st.lists(st.floats(0, 1), min_size=12, max_size=60),
)
@settings(max_examples=100, deadline=None)
def test_an_exact_line_is_recovered(gap, busy_cores, parts):
    found = regress(Points(parts, [gap * (1 - part) + busy_cores * part for part in parts]))
    if isinstance(found, GapCpu):
        assert found.gap_cores == pytest.approx(gap, abs=1e-6)
        assert found.busy_cores == pytest.approx(busy_cores, abs=1e-6)


def test_spans_over_a_hole_or_outside_are_left_out():
    utilization = Burst((0.0, 0.2, 0.4, 0.6, 3.0, 3.2, 3.4), (1.0, 1.0, 0.0, 0.5, 1.0, 1.0, 0.0))
    thread = ThreadBurst(
        (1, 1), 1, (-1.0, 0.0, 0.2, 0.4, 0.6, 3.2, 3.4, 4.0), tuple(range(0, 800, 100)), (0,) * 8
    )
    points = burst_points(thread, utilization, 1.0)
    assert points.busy == pytest.approx([0.0, 0.5, 0.0])


def test_waiting_for_a_core_in_the_gaps_is_told_apart_from_running():
    busy = [0.0, 1.0] * 10
    found = regress(
        Points(busy, [0.6 if b == 0 else 1.0 for b in busy], [0.4 if b == 0 else 0.0 for b in busy])
    )
    assert found.gap_cores == pytest.approx(0.6)
    assert found.gap_wait_cores == pytest.approx(0.4)
    assert regress(Points(busy, busy)).gap_wait_cores is None


def test_a_counter_that_went_back_is_left_out():
    utilization = Burst((0.0, 0.2, 0.4, 0.6, 0.8), (1.0,) * 5)
    thread = ThreadBurst((1, 1), 1, (0.1, 0.3, 0.5, 0.7), (100, 200, 50, 150), (0,) * 4)
    assert len(burst_points(thread, utilization, 1.0).busy) == 2


def test_ticks_leave_out_gaps():
    points = tick_points([1.0, NAN, 0.5], [0.5, 0.5, NAN], 1.0)
    assert (points.busy, points.cores) == ([0.5], [1.0])


def test_without_bursts_ticks_do_for_slow_pulses():
    util = square(0, 0.97, 5.3, 0.5)
    scene = Scene(
        [Gpu(util=util)],
        [Process(100, cpu=lambda t: 0.97 if util(t) < 0.5 else 1.0, burst=False)],
        jitter=0.3,
    )
    history, sample = history_of(scene, 70)
    found = main_thread_gap(history, sample.processes[0], "gpu:GPU-0", Burst(), 0.97)
    assert found.gap_cores == pytest.approx(0.97, abs=0.03)


def test_workers_are_taken_together():
    util = square(0, 0.97, 4.0, 0.5)
    workers = [
        Process(
            200 + i,
            cpu=lambda t: 0.9 if util(t) < 0.5 else 0.3,
            role=ProcessRole.WORKER,
            trainer_pid=100,
        )
        for i in range(3)
    ]
    history, sample = history_of(Scene([Gpu(util=util)], [Process(100), *workers], jitter=0.3), 70)
    found = workers_gap(history, sample.processes[1:], "gpu:GPU-0", 0.97)
    assert found.gap_cores == pytest.approx(2.7, abs=0.15)
    assert found.busy_cores == pytest.approx(0.9, abs=0.15)
    assert workers_gap(history, (), "gpu:GPU-0", 0.97) == "no worker processes"
