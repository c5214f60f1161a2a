from dataclasses import replace

import pytest
from build import square

from gpuwatch.diagnosis.paces import PaceTracker
from gpuwatch.diagnosis.shape import shape_of
from gpuwatch.history import History
from gpuwatch.model import JobState, Shape, ShapeKind

HZ = 6


def measured(period_s: float, duty: float) -> Shape:
    """A minute of the driver's samples of a square wave."""
    wave = square(0.0, 0.96, period_s, duty)
    times = [(k + 1) / HZ for k in range(60 * HZ)]
    values = [sum(wave(t - (i + 0.5) / HZ / 40) for i in range(40)) / 40 for t in times]
    return shape_of(times, [round(value, 2) for value in values], True)


def noted(shape: Shape) -> float | None:
    paces = PaceTracker()
    paces.update(100.0, JobState.STEADY, 100.0, shape, History(1.0), "gpu:G")
    return paces.paces[0].period_s


@pytest.mark.parametrize(("period_s", "duty"), [(1.4, 0.5), (2.0, 0.7), (0.8, 0.8), (1.0, 0.8)])
def test_the_pace_is_the_period_whether_or_not_each_gap_is_seen(period_s, duty):
    assert noted(measured(period_s, duty)) == pytest.approx(period_s, rel=0.05)


def test_without_a_regular_period_no_pace_is_noted():
    assert noted(replace(measured(1.4, 0.5), regular=False)) is None
    assert noted(replace(measured(1.4, 0.5), kind=ShapeKind.VARIABLE)) is None
