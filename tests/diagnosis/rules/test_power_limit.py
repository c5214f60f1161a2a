import pytest
from build import Gpu, Scene, square
from watch import Watch, found, reason, watch

from gpuwatch.metrics import REASON_POWER_CAP
from gpuwatch.model import Confidence, Kind, Severity

RULE = "power-limit-lowered"


def limited(watts: float, **more) -> Gpu:
    return Gpu(fields={"power_limit_w": watts}, **more)


def test_p22_capped_a100():
    gpu = limited(
        250.0,
        util=0.99,
        power=248.0,
        reasons=lambda t: REASON_POWER_CAP if square(0, 1, 2, 0.85)(t) else 0,
        info={"power_limit_default_w": 400.0, "power_limit_max_w": 400.0},
    )
    diagnosis, bench = watch(Scene([gpu]), 70)
    finding = found(diagnosis, RULE)
    assert (finding.severity, finding.confidence) == (Severity.WARNING, Confidence.MEASURED)
    assert finding.text.title == "power limit lowered: 250 W of 400 W"
    assert bench.alarms == {RULE}


def test_n01_full_load_at_the_default_limit_is_normal():
    gpu = Gpu(
        power=348.0,
        reasons=lambda t: REASON_POWER_CAP if square(0, 1, 2, 0.9)(t) else 0,
        fields={"temperature_c": 78.0, "p_state": 2},
    )
    diagnosis, bench = watch(Scene([gpu]), 120)
    assert not bench.alarms
    (check,) = [c for c in diagnosis.checks if c.check.key == "pow"]
    assert "normal at full load" in check.evidence


@pytest.mark.parametrize(("watts", "fires"), [(331.0, True), (334.0, False)])
def test_the_limit_must_be_five_percent_below(watts, fires):
    assert bool(watch(Scene([limited(watts)]), 15, RULE)[1].alarms) is fires


def test_it_ends_at_97_percent():
    bench = Watch(RULE)

    def watts(t: float) -> float:
        return 300.0 if t < 20 else 336.0 if t < 40 else 341.0

    scene = Scene([Gpu(fields={"power_limit_w": watts})])
    assert bench.run(scene, 38).findings
    assert not bench.run(scene, 20, begin=38).findings


def test_without_load_it_is_a_notice_and_never_a_loss():
    finding = found(watch(Scene([limited(250.0, util=0.3)]), 15, RULE)[0], RULE)
    assert (finding.severity, finding.kind, finding.share_ratio) == (
        Severity.NOTICE,
        Kind.OPPORTUNITY,
        None,
    )


def test_a_share_needs_the_uncapped_clock():
    gpu = Gpu(
        fields={"power_limit_w": lambda t: 350.0 if t < 150 else 250.0},
        clock=lambda t: 1800.0 if t < 150 else 1440.0,
        reasons=lambda t: 0 if t < 150 else REASON_POWER_CAP,
    )
    finding = found(watch(Scene([gpu]), 220, RULE)[0], RULE)
    assert finding.kind is Kind.LOSS
    assert finding.share_ratio == pytest.approx(0.97 * 0.2, abs=0.02)


def test_b136_a_laptop_held_by_the_system():
    gpu = limited(
        55.0,
        info={
            "name": "NVIDIA GeForce RTX 4070 Laptop GPU",
            "power_limit_default_w": None,
            "power_limit_max_w": 105.0,
        },
    )
    finding = found(watch(Scene([gpu]), 75, RULE)[0], RULE)
    assert finding.text.title == "power limit lowered by the system: 55 W of 105 W"


def test_a_laptop_that_moves_its_limit_is_left_alone():
    gpu = Gpu(
        fields={"power_limit_w": lambda t: 60.0 + (int(t) % 7)},
        info={"name": "NVIDIA GeForce RTX 4070 Laptop GPU", "power_limit_default_w": 105.0},
    )
    diagnosis, bench = watch(Scene([gpu]), 100, RULE)
    assert not bench.alarms
    assert "by itself" in reason(diagnosis, RULE)


def test_a_mains_power_source_makes_no_laptop():
    gpu = Gpu(fields={"power_limit_w": 250.0, "power_source": "ac"})
    assert found(watch(Scene([gpu]), 15, RULE)[0], RULE).text.title.startswith("power limit lowered:")


def test_without_a_known_default_it_abstains():
    gpu = limited(
        250.0, info={"power_limit_default_w": None, "absent": {"power_limit_default_w": "not supported"}}
    )
    assert "not supported" in reason(watch(Scene([gpu]), 15, RULE)[0], RULE)


def test_b142_two_cards_are_compared_one_by_one():
    gpus = [Gpu(uuid=f"GPU-{i}", index=i, power=309.0, pids=()) for i in range(2)]
    assert not watch(Scene(gpus, processes=[]), 20, RULE)[1].alarms
