"""What is learned of a card: its best clock, its idle power, its busy level."""

import pytest

from gpuwatch.diagnosis.references import ReferenceLearner
from gpuwatch.model import GpuInfo, GpuReading, Shape, ShapeKind

CARD = GpuInfo("G", 0, "card", sm_clock_max_mhz=2000.0)


def learn(learner, seconds, clock=1800.0, reasons=0, util=0.97, power=300.0, start=0.0, context=True):
    for second in range(seconds):
        reading = GpuReading("G", 0, start + second, sm_clock_mhz=clock, event_reasons=reasons)
        learner.update(start + second, 1.0, reading, util, power, context)


def test_before_two_minutes_of_load_a_tenth_below_boost_stands_in():
    learner = ReferenceLearner()
    learn(learner, 119)
    known = learner.references(CARD)
    assert (known.clock_mhz, known.clock_is_learned) == (1800.0, False)
    learn(learner, 1, clock=1700.0, start=119)
    known = learner.references(CARD)
    assert (known.clock_mhz, known.clock_is_learned) == (1800.0, True)


def test_an_unknown_card_has_no_clock_reference():
    assert ReferenceLearner().references(None).clock_mhz is None
    assert ReferenceLearner().references(GpuInfo("G", 0, "card")).clock_mhz is None


def test_the_best_clock_is_the_95th_percentile():
    learner = ReferenceLearner()
    learn(learner, 190, clock=1500.0)
    learn(learner, 10, clock=1900.0, start=190)
    assert learner.references(CARD).clock_mhz == 1500.0
    learn(learner, 10, clock=1900.0, start=200)
    assert learner.references(CARD).clock_mhz == 1900.0


@pytest.mark.parametrize(
    "fields", [{"reasons": 0x4}, {"reasons": 0x20}, {"reasons": 0x100}, {"reasons": None}, {"util": 0.5}]
)
def test_a_clock_under_a_reason_or_without_load_teaches_nothing(fields):
    learner = ReferenceLearner()
    learn(learner, 300, **fields)
    assert not learner.references(CARD).clock_is_learned


def test_the_idle_bit_does_not_hinder():
    learner = ReferenceLearner()
    learn(learner, 130, reasons=0x1)
    assert learner.references(CARD).clock_is_learned


def test_idle_power_is_the_lowest_ten_seconds_with_a_context():
    learner = ReferenceLearner()
    learn(learner, 9, util=0.0, power=40.0)
    assert learner.references(CARD).idle_power_w is None
    learn(learner, 5, util=0.0, power=40.0, start=9)
    assert learner.references(CARD).idle_power_w == pytest.approx(40.0)
    learn(learner, 20, util=0.0, power=30.0, start=20)
    assert learner.references(CARD).idle_power_w == pytest.approx(30.0)
    learn(learner, 20, util=0.0, power=5.0, start=40, context=False)
    assert learner.references(CARD).idle_power_w == pytest.approx(30.0)


def test_the_busy_level_lasts_ten_minutes_and_one_job():
    learner = ReferenceLearner()
    learner.note_shape(0.0, Shape(ShapeKind.SATURATED, high_ratio=0.98))
    learner.note_shape(5.0, Shape(ShapeKind.PULSED, high_ratio=0.60))
    learner.note_shape(6.0, Shape(ShapeKind.IDLE, high_ratio=1.0))
    assert learner.best_high == 0.98
    learner.note_shape(601.0, Shape(ShapeKind.PULSED, high_ratio=0.62))
    assert learner.best_high == 0.62
    learner.new_job()
    assert learner.best_high is None
