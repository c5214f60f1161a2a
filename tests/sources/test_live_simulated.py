"""A scenario as a source: the real bindings and readers, in stepped time and in real time."""

import itertools

import pytest

from gpuwatch.history import History
from gpuwatch.model import DriverState
from gpuwatch.sources.live import run_simulated, simulated_source
from gpuwatch.sources.simulated import ScenarioError


@pytest.fixture(scope="module")
def minute():
    return list(run_simulated("starved", 60.0))


def test_a_minute_of_a_scenario_is_sixty_ticks_on_a_jittered_grid(minute):
    assert 59 <= len(minute) <= 62
    spacing = [b.monotonic_s - a.monotonic_s for a, b in itertools.pairwise(minute)]
    assert 0.35 <= min(spacing) < 0.7
    assert 1.3 < max(spacing) <= 1.65
    assert [sample.number for sample in minute] == list(range(len(minute)))
    assert {sample.driver.state for sample in minute} == {DriverState.OK}


def test_the_label_comes_with_the_inventory_once(minute):
    assert minute[0].machine.label == "simulated: starved"
    assert [sample.machine for sample in minute[1:] if sample.machine is not None] == []


def test_history_measures_what_the_scenario_plays(minute):
    """High for 0.36 of each 1.4 s; the driver's rings make the mean exact."""
    history = History()
    for sample in minute:
        history.append(sample)
    uuid = minute[0].gpus[0].uuid
    points = history.burst(uuid, "utilization", 60.0)
    assert len(points.values) == pytest.approx(360, abs=3)
    expected = sum(points.values) / len(points.values)
    assert history.mean(f"gpu:{uuid}", "utilization_ratio", 60.0) == pytest.approx(expected, abs=0.03)
    assert expected == pytest.approx(0.97 * 0.36, abs=0.02)


def test_the_same_scenario_comes_out_the_same(minute):
    again = list(run_simulated("starved", 10.0))
    first = minute[: len(again)]
    assert [sample.monotonic_s for sample in again] == [sample.monotonic_s for sample in first]
    assert [sample.gpus for sample in again] == [sample.gpus for sample in first]
    other = run_simulated("starved", 10.0, seed=2)
    assert [sample.monotonic_s for sample in other] != [sample.monotonic_s for sample in first]


def test_with_long_intervals_no_sub_second_point_is_lost():
    history = History(30.0)
    for sample in run_simulated("starved", 120.0, interval_s=30.0):
        history.append(sample)
        uuid = sample.gpus[0].uuid
    times = history.burst(uuid, "utilization", 100.0).times_s
    assert max(b - a for a, b in itertools.pairwise(times)) < 0.2


def test_choosing_no_gpu_that_exists_leaves_none():
    sample = next(run_simulated("starved", 1.0, gpus=(7,)))
    assert sample.gpus == ()


def test_a_source_in_real_time_answers_the_first_tick_and_gives_the_driver_back():
    for _ in range(2):
        source = simulated_source("starved", interval_s=1.0)
        source.open()
        try:
            sample = source.sample(0.0)
        finally:
            source.close()
        assert sample.machine.label == "simulated: starved"
        assert sample.own is not None


def test_an_unknown_scenario_is_refused_before_anything_starts():
    with pytest.raises((ScenarioError, OSError, KeyError)):
        simulated_source("no-such-scenario", interval_s=1.0)
