import pytest
from build import Gpu, Scene
from watch import Watch, evidence, found, reason, watch

from gpuwatch.metrics import (
    REASON_HW_SLOWDOWN,
    REASON_HW_THERMAL,
    REASON_IDLE,
    REASON_POWER_BRAKE,
    REASON_POWER_CAP,
)
from gpuwatch.model import Confidence, Severity

RULE = "hw-slowdown"


def during(bits: int, start: float, end: float):
    return lambda t: bits if start < t <= end else 0


@pytest.mark.parametrize(
    ("bit", "words"), [(REASON_HW_THERMAL, "heat protection"), (REASON_POWER_BRAKE, "power brake")]
)
def test_protection_bits_are_critical_within_ten_seconds(bit, words):
    scene = Scene([Gpu(reasons=during(bit, 40, 999), clock=lambda t: 900.0 if t > 40 else 1800.0)])
    diagnosis, bench = watch(scene, 80, RULE)
    finding = found(diagnosis, RULE)
    assert finding.severity is Severity.CRITICAL
    assert words in finding.text.title
    assert 43 <= bench.first_s[RULE] <= 50
    assert finding.share_ratio == pytest.approx(0.97 * (1 - 900 / 1890), abs=0.03)  # of the last 30 s


def test_two_seconds_of_a_bit_are_not_enough_and_four_are():
    short, _ = watch(Scene([Gpu(reasons=during(REASON_HW_THERMAL, 40, 42))]), 55, RULE)
    long, _ = watch(Scene([Gpu(reasons=during(REASON_HW_THERMAL, 40, 44))]), 55, RULE)
    assert not short.findings
    assert found(long, RULE)


def test_the_counter_catches_what_a_look_each_second_misses():
    grown = {"hw_thermal_time_ns": lambda t: int(max(0.0, t - 40) * 0.1e9), "power_brake_time_ns": 0}
    diagnosis, _ = watch(Scene([Gpu(fields=grown)]), 60, RULE)
    assert found(diagnosis, RULE).severity is Severity.CRITICAL


def test_slowdown_alone_on_a_cool_card_with_half_its_clock_is_supply():
    scene = Scene([Gpu(reasons=REASON_HW_SLOWDOWN, clock=900.0)])
    finding = found(watch(scene, 30, RULE)[0], RULE)
    assert finding.severity is Severity.WARNING
    assert "cool" in finding.text.title
    assert finding.text.short_advice == "check power cables and supply"


def test_slowdown_alone_without_loss_of_clock_is_nothing():
    assert not watch(Scene([Gpu(reasons=REASON_HW_SLOWDOWN, clock=1700.0)]), 30, RULE)[1].alarms


def test_n25_a_bit_that_flashes_at_each_change_of_the_p_state_is_nothing():
    def reasons(t: float) -> int:
        return REASON_HW_SLOWDOWN | REASON_HW_THERMAL if int(t) % 4 == 0 else 0

    fields = {"p_state": lambda t: 2 if int(t) // 4 % 2 else 0}
    scene = Scene([Gpu(reasons=reasons, clock=900.0, fields=fields)])
    assert not watch(scene, 90, RULE)[1].alarms


def test_bits_are_tested_one_by_one():
    both = REASON_IDLE | REASON_POWER_CAP
    assert not watch(Scene([Gpu(reasons=both)]), 40, RULE)[1].alarms


def test_an_idle_card_is_not_judged():
    scene = Scene([Gpu(util=0.1, reasons=REASON_HW_THERMAL)])
    assert not watch(scene, 40, RULE)[1].alarms


def test_it_ends_after_thirty_seconds_without():
    bench = Watch(RULE)
    scene = Scene([Gpu(reasons=during(REASON_POWER_BRAKE, 5, 20))])
    assert bench.run(scene, 48).findings
    diagnosis = bench.run(scene, 8, begin=48)
    assert not diagnosis.findings
    assert diagnosis.ended[0].rule == RULE


def test_n28_a_t4_says_so_in_normal_work():
    scene = Scene([Gpu(reasons=REASON_HW_THERMAL, info={"name": "Tesla T4"})])
    diagnosis, bench = watch(scene, 40, RULE)
    assert not bench.alarms
    assert "normal work" in reason(diagnosis, RULE)


def test_the_ada_rtx_6000_is_no_turing_quadro():
    scene = Scene([Gpu(reasons=REASON_HW_THERMAL, info={"name": "NVIDIA RTX 6000 Ada Generation"})])
    assert watch(scene, 40, RULE)[0].findings
    turing = Scene([Gpu(reasons=REASON_HW_THERMAL, info={"name": "Quadro RTX 6000"})])
    assert not watch(turing, 40, RULE)[0].findings


def test_without_bits_and_counters_it_abstains():
    scene = Scene([Gpu(fields={"absent": {"event_reasons": "not offered by this driver"}})])
    for sample in scene.samples(1):
        assert sample.gpus[0].event_reasons == 0
    scene.gpus[0].reasons = lambda t: None
    assert "not offered by this driver" in reason(watch(scene, 20, RULE)[0], RULE)


def test_the_loss_is_surer_once_the_best_clock_was_seen():
    early = Scene([Gpu(reasons=REASON_HW_THERMAL, clock=900.0)])
    late = Scene(
        [Gpu(reasons=during(REASON_HW_THERMAL, 150, 999), clock=lambda t: 900.0 if t > 150 else 1800.0)]
    )
    assert found(watch(early, 30, RULE)[0], RULE).confidence is Confidence.LIKELY
    finding = found(watch(late, 185, RULE)[0], RULE)
    assert finding.confidence is Confidence.MEASURED
    assert finding.share_ratio == pytest.approx(0.97 * 0.5, abs=0.03)
    assert evidence(finding)["reason"] == "HW thermal slowdown"
