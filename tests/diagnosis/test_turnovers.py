import random
from math import nan

import pytest

from gpuwatch.diagnosis.turnovers import lost_s


def second_by_second(level, change=100, gap_s=0.0, count=140, since=0.0):
    times = [since + second + 1.0 for second in range(count)]
    values = [0.0 if change <= time < change + gap_s else level for time in times]
    return times, values


@pytest.mark.parametrize("gap_s", [3.0, 5.0, 8.0])
@pytest.mark.parametrize("level", [0.95, 0.41])
def test_the_gap_of_new_workers_is_what_is_missing_of_the_usual_work(level, gap_s):
    times, values = second_by_second(level, gap_s=gap_s)
    assert lost_s(times[:112], values[:112], [100.0]) == pytest.approx(gap_s, abs=0.1)


def test_a_gpu_that_waits_in_every_step_loses_nothing_more_when_workers_change():
    times, values = second_by_second(0.41)
    assert lost_s(times[:112], values[:112], [100.0]) == 0.0


def test_polled_readings_of_short_steps_jump_between_idle_and_busy():
    """One reading a second stands for a sixth of it: idle or busy by chance, change or not."""
    draw = random.Random(3)
    lost = []
    for _ in range(200):
        times = [float(second) for second in range(112)]
        values = [float(draw.random() < 0.41) for _ in times]
        lost.append(lost_s(times, values, [100.0]))
    assert sorted(lost)[100] < 2.0


def test_earlier_changes_are_not_usual_time():
    times = [float(second) for second in range(113)]
    values = [0.0 if second % 25 < 5 else 0.9 for second in range(113)]
    assert lost_s(times, values, [0.0, 25.0, 50.0, 75.0, 100.0]) == pytest.approx(5.0, abs=0.2)


def test_epochs_shorter_than_the_look_around_are_compared_with_their_better_half():
    times = [float(second) for second in range(113)]
    values = [0.0 if second % 10 < 4 else 0.9 for second in range(113)]
    changes = [10.0 * n for n in range(1, 11)]
    assert 3.0 <= lost_s(times, values, changes) <= 6.0


def test_nothing_measured_is_nothing_lost():
    assert lost_s([], [], [1.0]) == 0.0
    times, _ = second_by_second(0.9)
    assert lost_s(times, [nan] * len(times), [100.0]) == 0.0


def test_a_gpu_that_hardly_ever_works_shows_no_gap():
    times, values = second_by_second(0.01, gap_s=8.0)
    assert lost_s(times[:112], values[:112], [100.0]) == 0.0
