from dataclasses import replace

from build import Gpu, Scene, square
from watch import Watch, evidence, found, watch

from gpuwatch.model import (
    Burst,
    DriverState,
    DriverStatus,
    Event,
    GpuState,
    GpuStatus,
    Severity,
)

LOST, SIGHT = "gpu-lost", "telemetry-degraded"
GONE = GpuStatus(
    GpuState.LOST, "GPU 1 fell off the bus", "look for NVRM lines in the kernel log", 10_020.0, 15
)


def two(status) -> Scene:
    return Scene([Gpu(), Gpu(uuid="GPU-1", index=1, pids=(), status=status)])


def test_p37_a_lost_card_is_critical_at_once_and_a_banner():
    scene = two(lambda t: GONE if t > 20 else GpuStatus())
    diagnosis, bench = watch(scene, 30)
    finding = found(diagnosis, LOST)
    assert finding.severity is Severity.CRITICAL
    assert finding.banner
    assert finding.gpus == ("GPU-1",)
    assert finding.text.title == "GPU 1 is lost"
    assert bench.first_s[LOST] <= 22
    assert evidence(finding)["power_w"] == 300.0
    assert diagnosis.verdict.rule == LOST
    assert bench.alarms == {LOST}


def test_it_ends_when_the_card_is_back():
    bench = Watch(LOST)
    scene = two(lambda t: GONE if 20 < t <= 40 else GpuStatus())
    assert bench.run(scene, 39).findings
    diagnosis = bench.run(scene, 5, begin=39)
    assert not diagnosis.findings
    assert diagnosis.ended[0].rule == LOST


def test_b029_nothing_else_begins_or_ends_on_a_lost_card():
    wave = square(0, 0.96, 1.5, 0.4)
    gpu = Gpu(util=wave, power=180.0, status=lambda t: GONE if t > 70 else GpuStatus())
    bench = Watch()
    scene = Scene([gpu])
    before = bench.run(scene, 69)
    assert "gpu-starved" in {finding.rule for finding in before.findings}
    after = bench.run(scene, 60, begin=69)
    assert {"gpu-starved", LOST} <= {finding.rule for finding in after.findings}


def test_all_cards_at_once_are_worded_as_a_driver_reload():
    scene = two(lambda t: GONE if t > 20 else GpuStatus())
    scene.gpus[0].status = scene.gpus[1].status
    text = next(f for f in watch(scene, 30, LOST)[0].findings if f.rule == LOST).text
    assert text.title == "all GPUs are lost at once"
    assert "reloaded" in text.wrong_if


def test_a_card_that_sleeps_or_does_not_answer_is_not_lost():
    for state in (GpuState.ASLEEP, GpuState.NOT_ANSWERING):
        scene = two(lambda t, state=state: GpuStatus(state, "no answer for 8 s"))
        assert LOST not in {f.rule for f in watch(scene, 20, LOST)[0].findings}


def seen(diagnosis) -> list[str]:
    return list(found(diagnosis, SIGHT).text.because)


def test_a_card_that_does_not_answer_is_shown_as_a_banner_without_alarm():
    scene = two(lambda t: GpuStatus(GpuState.NOT_ANSWERING, "no answer for 8 s") if t > 20 else GpuStatus())
    diagnosis, bench = watch(scene, 30, SIGHT)
    finding = found(diagnosis, SIGHT)
    assert finding.banner
    assert finding.severity is Severity.STATE
    assert finding.gpus == ("GPU-1",)
    assert seen(diagnosis) == ["GPU 1: no answer for 8 s"]
    assert not bench.alarms


def test_a_sleeping_card_is_no_trouble():
    assert not watch(two(lambda t: GpuStatus(GpuState.ASLEEP, "asleep")), 20, SIGHT)[0].findings


def test_a_slow_round_must_come_three_times():
    slow = Scene(duration_s=lambda t: 2.5 if t > 20 else 0.02)
    short = Scene(duration_s=lambda t: 2.5 if 20 < t <= 22 else 0.02)
    assert "2.5 s" in seen(watch(slow, 30, SIGHT)[0])[0]
    assert not watch(short, 30, SIGHT)[0].findings


def test_it_ends_after_half_a_minute_without():
    bench = Watch(SIGHT)
    scene = Scene(duration_s=lambda t: 2.5 if t <= 20 else 0.02)
    assert bench.run(scene, 48).findings
    assert not bench.run(scene, 6, begin=48).findings


def degraded(change, seconds: float = 20):
    bench = Watch(SIGHT)
    for sample in Scene().samples(seconds):
        bench.bench.feed(replace(sample, gpus=(change(sample, sample.gpus[0]),)))
    assert bench.bench.diagnosis is not None
    return bench.bench.diagnosis


def test_old_figures_are_named_with_their_age():
    diagnosis = degraded(lambda sample, gpu: replace(gpu, read_s=min(gpu.read_s, 10_003.0)))
    assert seen(diagnosis) in (["GPU 0: its figures are 16 s old"], ["GPU 0: its figures are 17 s old"])


def test_calls_that_fail_are_counted():
    assert "9 of 30" in seen(degraded(lambda sample, gpu: replace(gpu, failed_calls=9)))[0]
    assert not degraded(lambda sample, gpu: replace(gpu, failed_calls=6)).findings


def test_n21_no_utilization_on_mig_is_said():
    def blind(sample, gpu):
        absent = {"utilization_ratio": "not offered for MIG"}
        return replace(gpu, utilization_ratio=None, utilization_burst=Burst(), absent=absent)

    assert "not offered for MIG" in seen(degraded(blind))[0]


def test_n22_an_empty_ring_beside_a_gauge_of_zero_is_normal():
    def idle(sample, gpu):
        return replace(gpu, utilization_ratio=0.0, utilization_burst=Burst())

    assert not degraded(idle).findings


def test_a_driver_that_is_gone_is_the_verdicts_matter():
    scene = two(lambda t: GpuStatus(GpuState.NOT_ANSWERING, "no answer"))
    scene.driver = DriverStatus(DriverState.NOT_LOADED, "the module is not loaded")
    assert not watch(scene, 20, SIGHT)[0].findings


def test_several_troubles_are_one_banner():
    scene = two(lambda t: GpuStatus(GpuState.NOT_ANSWERING, "no answer for 8 s"))
    scene.duration_s = 3.0
    finding = found(watch(scene, 20, SIGHT)[0], SIGHT)
    assert finding.text.title == "one round of reading takes 3.0 s, and 1 more"


def test_a_clock_jump_alone_degrades_nothing():
    bench = Watch(SIGHT)
    for sample in Scene().samples(20):
        event = Event(sample.monotonic_s, "clock-jump", "the clock went forward by 60 s")
        bench.bench.feed(replace(sample, events=(event,)))
    assert bench.bench.diagnosis is not None
    assert not bench.bench.diagnosis.findings
