import pytest
from build import GIB, Gpu, Process, Scene
from watch import Watch, found, reason, watch

from gpuwatch.model import CheckState, Confidence, Severity

WIDTH, GENERATION = "pcie-width-reduced", "pcie-gen-reduced"
TRAFFIC = {"pcie_rx_bytes_per_s": 1.5e9}


def link(generation=4, width=16, util=0.95, info=None, **fields) -> Scene:
    values = {"pcie_generation": generation, "pcie_width": width, **TRAFFIC, **fields}
    return Scene([Gpu(util=util, fields=values, info=info or {})])


def judged(scene: Scene, seconds: float = 60):
    return watch(scene, seconds, WIDTH, GENERATION)


def test_p18_generation_1_under_load():
    diagnosis, bench = judged(link(generation=1))
    finding = found(diagnosis, GENERATION)
    assert (finding.severity, finding.confidence) == (Severity.WARNING, Confidence.MEASURED)
    assert finding.text.title == "PCIe runs at generation 1 of 4 under load"
    assert bench.first_s[GENERATION] <= 30
    assert bench.alarms == {GENERATION}


def test_n03_b128_generation_1_at_idle_is_normal():
    diagnosis, bench = judged(link(generation=1, util=0.02, pcie_rx_bytes_per_s=1e6), 150)
    assert not bench.alarms
    (check,) = [c for c in diagnosis.checks if c.check.key == "lnk"]
    assert check.state is CheckState.WAITING
    assert "load" in check.evidence


def test_b127_one_card_stays_three_generations_below():
    info = {"pcie_generation_card": 5, "pcie_generation_slot": 5}
    assert found(judged(link(generation=2, info=info))[0], GENERATION).severity is Severity.WARNING


def test_b127_idle_changes_of_the_link_are_ignored():
    scene = link(util=lambda t: 0.95 if t % 10 < 5 else 0.0, generation=lambda t: 4 if t % 10 < 5 else 1)
    assert not judged(scene, 100)[1].alarms


def test_one_generation_below_is_a_notice():
    assert found(judged(link(generation=3))[0], GENERATION).severity is Severity.NOTICE


def test_an_older_board_is_named_and_no_finding():
    diagnosis, bench = judged(link(generation=3, info={"pcie_generation_slot": 3}))
    assert not bench.alarms
    (check,) = [c for c in diagnosis.checks if c.check.key == "lnk"]
    assert "the board's limit (card: gen 4)" in check.evidence


def test_without_traffic_the_generation_is_not_judged():
    assert not judged(link(generation=1, pcie_rx_bytes_per_s=1e6))[1].alarms


def test_traffic_that_is_read_every_few_ticks_counts():
    scene = link(generation=1, pcie_rx_bytes_per_s=lambda t: 1.5e9 if int(t) % 5 == 0 else None)
    assert found(judged(scene)[0], GENERATION)


def test_unknown_traffic_abstains():
    scene = link(generation=1, pcie_rx_bytes_per_s=None, absent={"pcie_rx_bytes_per_s": "not measured"})
    assert "not measured" in reason(judged(scene)[0], GENERATION)


@pytest.mark.parametrize(("slot", "severity"), [(8, Severity.NOTICE), (4, Severity.WARNING)])
def test_a_slot_with_fewer_lanes(slot, severity):
    finding = found(judged(link(width=slot, info={"pcie_width_slot": slot}))[0], WIDTH)
    assert (finding.severity, finding.confidence) == (severity, Confidence.LIKELY)
    assert finding.text.title == f"the slot has {slot} lanes, the card 16"


def test_a_link_trained_down_is_measured():
    finding = found(judged(link(width=8))[0], WIDTH)
    assert (finding.severity, finding.confidence) == (Severity.WARNING, Confidence.MEASURED)
    assert finding.text.title == "PCIe runs on 8 of 16 lanes"
    assert finding.text.short_advice.startswith("reseat")


def test_a_narrow_hop_on_the_way_to_the_cpu_is_named():
    finding = found(judged(link(info={"pcie_width_chain": 4}))[0], WIDTH)
    assert finding.text.title == "the way to the CPU has 4 lanes, the card 16"


def test_n13_a_card_made_for_eight_lanes():
    info = {"pcie_width_card": 8, "pcie_width_max": 8}
    assert not judged(link(width=8, info=info))[1].alarms


def test_b133_half_the_lanes_of_an_old_card_are_judged_under_load_only():
    assert not judged(link(width=8, generation=2, util=0.05), 150)[1].alarms


@pytest.mark.parametrize(
    ("info", "words"),
    [
        ({"unified_memory": True}, "same package"),
        ({"name": "NVIDIA GeForce RTX 4070 Laptop GPU"}, "laptop"),
        ({"virtualization": "passthrough"}, "virtual machine"),
        (
            {
                "pcie_width_card": None,
                "pcie_generation_card": None,
                "absent": {"pcie_width_card": "no sysfs"},
            },
            "not known",
        ),
        ({"pcie_width_slot": None, "pcie_generation_slot": None}, "the slot's"),
    ],
)
def test_where_the_link_cannot_be_judged_it_abstains_aloud(info, words):
    diagnosis, bench = judged(link(width=4, generation=1, info=info))
    assert not bench.alarms
    assert words in reason(diagnosis, WIDTH)
    assert words in reason(diagnosis, GENERATION)


def test_n34_in_a_virtual_machine_it_is_listed_as_not_checked():
    scene = link(width=4, generation=1)
    scene.virtual_machine = True
    assert "virtual machine" in reason(judged(scene)[0], WIDTH)


def test_ten_seconds_of_load_are_needed():
    scene = link(width=4, util=lambda t: 0.95 if 20 < t <= 33 else 0.0)
    diagnosis, bench = judged(scene, 28)
    assert not bench.alarms
    (check,) = [c for c in diagnosis.checks if c.check.key == "lnk"]
    assert check.seconds_left is not None
    assert check.seconds_left > 0
    assert WIDTH in judged(scene, 45)[1].alarms


def test_a_pulsed_job_is_judged_between_its_gaps():
    assert found(judged(link(width=4, util=lambda t: 0.94 if t % 3 < 0.9 else 0.0), 90)[0], WIDTH)


def test_the_link_that_rises_late_after_a_pause_is_not_blamed():
    def util(t: float) -> float:
        return 0.95 if t % 20 > 17.5 else 0.0

    def generation(t: float) -> float:
        return 1 if t % 20 <= 19 else 4

    assert not judged(link(util=util, generation=generation), 120)[1].alarms


def test_it_ends_after_half_a_minute_at_full_width():
    bench = Watch(WIDTH)
    scene = link(width=lambda t: 8 if t < 60 else 16)
    assert bench.run(scene, 84).findings
    assert not bench.run(scene, 12, begin=84).findings


def test_a_full_link_raises_the_severity():
    from gpuwatch.diagnosis.rules.hardware.pcie_link import SATURATED, _raised
    from gpuwatch.diagnosis.window import Window

    bench = Watch(WIDTH)
    bench.run(link(), 1)
    sample = next(iter(link().samples(1)))
    window = Window(bench.bench.history, sample, sample.machine, 0.0, "gpu:GPU-0", active={SATURATED})
    assert _raised(window, Severity.NOTICE) is Severity.WARNING


def test_several_cards_are_judged_one_by_one():
    gpus = [
        Gpu(
            uuid=f"GPU-{i}",
            index=i,
            pids=((100 + i, 20 * GIB),),
            fields={"pcie_width": 4 if i else 16, **TRAFFIC},
        )
        for i in range(2)
    ]
    scene = Scene(gpus, [Process(100), Process(101)])
    finding = found(watch(scene, 40, WIDTH)[0], WIDTH)
    assert finding.gpus == ("GPU-1",)
