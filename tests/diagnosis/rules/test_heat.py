import pytest
from build import Gpu, Scene, square
from watch import Watch, found, reason, watch

from gpuwatch.metrics import REASON_POWER_CAP, REASON_SW_THERMAL
from gpuwatch.model import Kind, Severity

RULE = "thermal-throttle"


def ramp(low: float, high: float, start: float, end: float):
    return lambda t: low + (high - low) * min(1.0, max(0.0, (t - start) / (end - start)))


def test_p19_heat_up_loses_a_fifth():
    gpu = Gpu(
        fields={"temperature_c": ramp(60, 84, 0, 150)},
        reasons=lambda t: REASON_SW_THERMAL if t > 150 else 0,
        clock=ramp(1890, 1480, 150, 200),
    )
    diagnosis, bench = watch(Scene([gpu]), 240, RULE, "power-limit-lowered")
    finding = found(diagnosis, RULE)
    assert finding.severity is Severity.WARNING
    assert finding.share_ratio is not None
    assert 0.15 <= finding.share_ratio <= 0.25
    assert 159 <= bench.first_s[RULE] <= 164
    assert diagnosis.verdict.layer == "hardware"
    assert bench.alarms == {RULE}


@pytest.mark.parametrize(("seconds", "fires"), [(8, False), (12, True)])
def test_ten_of_thirty_seconds_make_it(seconds, fires):
    gpu = Gpu(reasons=lambda t: REASON_SW_THERMAL if 40 < t <= 40 + seconds else 0)
    assert (RULE in watch(Scene([gpu]), 60, RULE)[1].first_s) is fires


def test_the_counter_alone_is_enough():
    gpu = Gpu(fields={"sw_thermal_time_ns": lambda t: int(t * 0.2e9)})
    assert RULE in watch(Scene([gpu]), 40, RULE)[1].first_s


def test_it_ends_under_two_of_sixty_seconds():
    bench = Watch(RULE)
    scene = Scene([Gpu(reasons=lambda t: REASON_SW_THERMAL if t <= 20 else 0)])
    assert bench.run(scene, 76).findings
    assert not bench.run(scene, 10, begin=76).findings


def test_held_for_a_minute_it_is_a_warning_even_with_little_loss():
    scene = Scene([Gpu(reasons=REASON_SW_THERMAL, clock=1880.0)])
    bench = Watch(RULE)
    assert found(bench.run(scene, 30), RULE).severity is Severity.STATE
    assert found(bench.run(scene, 40, begin=30), RULE).severity is Severity.WARNING


def test_n24_hot_but_fine():
    assert not watch(Scene([Gpu(fields={"temperature_c": 84.0})]), 120, RULE)[1].alarms


def test_n28_exempt_t4():
    gpu = Gpu(reasons=REASON_SW_THERMAL, info={"name": "NVIDIA T4"})
    diagnosis, bench = watch(Scene([gpu]), 60, RULE)
    assert not bench.alarms
    assert "normal work" in reason(diagnosis, RULE)


def test_p21_hot_memory_is_named():
    gpu = Gpu(
        reasons=REASON_SW_THERMAL,
        clock=1500.0,
        fields={"temperature_c": 71.0, "memory_temperature_c": 106.0},
    )
    finding = found(watch(Scene([gpu]), 40, RULE)[0], RULE)
    assert finding.text.title == "hot memory holds the clock down"
    assert any("106 °C" in line for line in finding.text.because)


def test_a_cool_core_with_memory_that_cannot_be_read_is_worded_openly():
    gpu = Gpu(reasons=REASON_SW_THERMAL, clock=1500.0, fields={"temperature_c": 70.0})
    finding = found(watch(Scene([gpu]), 40, RULE)[0], RULE)
    assert "hot spot" in finding.text.title


def test_with_the_power_cap_beside_it_heat_counts_only_near_a_limit():
    both = REASON_SW_THERMAL | REASON_POWER_CAP
    cool = Gpu(reasons=both, clock=1500.0, fields={"temperature_c": 70.0})
    hot = Gpu(reasons=both, clock=1500.0, fields={"temperature_c": 90.0})
    assert not watch(Scene([cool]), 60, RULE)[1].alarms
    assert found(watch(Scene([hot]), 60, RULE)[0], RULE)


def test_a_margin_of_zero_or_less_is_ignored():
    both = REASON_SW_THERMAL | REASON_POWER_CAP
    gpu = Gpu(reasons=both, fields={"temperature_c": 60.0, "temperature_margin_c": -2.0})
    assert not watch(Scene([gpu]), 60, RULE)[1].alarms


@pytest.mark.parametrize(("limit", "near"), [(57.0, True), (93.0, False)])
def test_b134_the_cards_own_limit_counts_not_a_fixed_one(limit, near):
    gpu = Gpu(
        fields={"temperature_c": 56.0}, info={"temperature_gpu_max_c": limit, "temperature_slowdown_c": 97.0}
    )
    diagnosis, bench = watch(Scene([gpu]), 80, RULE)
    assert (RULE in bench.alarms) is near
    if near:
        finding = found(diagnosis, RULE)
        assert (finding.kind, finding.severity) == (Kind.RISK, Severity.NOTICE)
        assert finding.share_ratio is None


def test_the_note_tells_the_range_and_the_limit():
    gpu = Gpu(fields={"temperature_c": ramp(61, 64, 0, 30)})
    diagnosis, _ = watch(Scene([gpu]), 40, RULE)
    (check,) = [c for c in diagnosis.checks if c.check.key == "pow"]
    assert check.evidence == "61-64 °C of 93 °C"


def test_heat_beside_pulses_counts_at_the_busy_level():
    gpu = Gpu(util=square(0, 0.97, 1.4, 0.36), reasons=REASON_SW_THERMAL, clock=1500.0)
    finding = found(watch(Scene([gpu]), 70, RULE)[0], RULE)
    assert finding.share_ratio == pytest.approx(0.35 * (1 - 1500 / 1890), abs=0.03)
