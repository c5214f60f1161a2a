import pytest
from build import Gpu, Process, Scene, noisy, square
from watch import Watch, evidence, found, reason, watch

from gpuwatch.model import Confidence, ProcessFacts, ProcessRole, Severity

RULE, MAIN = "gpu-starved", "loader-in-main-process"
LOADERS = {"loader-in-main-process", "loader-too-few-workers", "loader-cpu-bound"}


def spins(gap: float, work: float = 1.0, period: float = 1.4, duty: float = 0.36):
    """CPU of a main thread: `gap` cores while the GPU idles, `work` while it works."""
    return square(gap, work, period, duty)


def workers(count: int, cpu: float, state: str = "S") -> list[Process]:
    return [
        Process(
            200 + i, cpu=cpu, state=state, role=ProcessRole.WORKER, trainer_pid=100, name="pt_data_worker"
        )
        for i in range(count)
    ]


def test_p46_waiting_for_something_unknown():
    main = spins(0.02, 0.9, 1.5, 0.5)
    scene = Scene(
        [Gpu(util=square(0, 0.96, 1.5, 0.5), power=190.0)], [Process(100, cpu=main), *workers(8, 0.1)]
    )
    diagnosis, bench = watch(scene, 90)
    finding = found(diagnosis, RULE)
    assert finding.confidence is Confidence.MEASURED
    assert "cause not proven" in finding.text.title
    assert finding.share_ratio == pytest.approx(0.5, abs=0.05)
    assert bench.alarms == {RULE}
    assert bench.first_s[RULE] <= 60
    assert any("0.02 core while the GPU idles" in line for line in finding.text.because)
    assert diagnosis.verdict.rule == RULE


def test_p06_blocked_workers_and_io_pressure_are_hinted_at():
    scene = Scene(
        [Gpu(util=square(0, 0.94, 3.0, 0.3), power=140.0)],
        [Process(100, cpu=spins(0.04, 1.0, 3.0, 0.3)), *workers(8, 0.12, "D")],
        host={"io_pressure_ratio": 0.61},
    )
    finding = found(watch(scene, 90)[0], RULE)
    assert any("blocked" in line and "I/O pressure 61 %" in line for line in finding.text.because)


def test_n15_a_spinning_main_thread_of_a_busy_card_is_normal():
    scene = Scene([Gpu(util=0.98)], [Process(100, cpu=1.0), *workers(8, 0.3)])
    assert not watch(scene, 120)[1].alarms


@pytest.mark.parametrize(("duty", "fires"), [(0.95, False), (0.85, True)])
def test_eight_percent_of_waiting_is_the_least(duty, fires):
    scene = Scene([Gpu(util=square(0, 1.0, 3.0, duty))], [Process(100, cpu=spins(0.0)), *workers(4, 0.2)])
    assert (RULE in watch(scene, 90, RULE)[1].alarms) is fires


def test_n06_a_lower_level_during_validation_is_no_waiting():
    level = noisy(0.0, 0.03)

    def util(t: float) -> float:
        return (0.70 if 60 < t % 180 < 100 else 0.96) + level(t)

    assert not watch(Scene([Gpu(util=util)]), 200)[1].alarms


def test_n07_one_checkpoint_is_no_waiting():
    assert not watch(Scene([Gpu(util=lambda t: 0.0 if 90 < t < 102 else 0.96)]), 180)[1].alarms


def test_p15_pauses_between_epochs_are_no_waiting():
    assert not watch(Scene([Gpu(util=lambda t: 0.0 if t % 120 < 9 else 0.96)]), 300)[1].alarms


def test_a_steady_low_level_at_low_power_waits_faster_than_the_samples():
    scene = Scene([Gpu(util=0.4, power=120.0)], [Process(100, cpu=0.3), *workers(4, 0.3)])
    finding = found(watch(scene, 90)[0], RULE)
    assert finding.confidence is Confidence.POSSIBLE
    assert any("not seen one by one" in line for line in finding.text.because)
    assert finding.share_ratio == pytest.approx(0.6, abs=0.02)


def test_a_steady_low_level_with_power_to_match_is_left_alone():
    assert not watch(Scene([Gpu(util=0.5, power=280.0)]), 90)[1].alarms


def test_a_steady_low_level_without_power_cannot_be_told():
    scene = Scene([Gpu(util=0.4, power=lambda t: None)])
    assert "without power" in reason(watch(scene, 90, RULE)[0], RULE)


def test_gaps_at_full_power_are_doubted():
    main = spins(0.02, 0.9, 1.5, 0.5)
    scene = Scene(
        [Gpu(util=square(0, 0.96, 1.5, 0.5), power=345.0)], [Process(100, cpu=main), *workers(4, 0.1)]
    )
    finding = found(watch(scene, 90)[0], RULE)
    assert finding.confidence is Confidence.POSSIBLE
    assert any("doubtful" in line for line in finding.text.because)


def test_polled_utilization_is_a_step_less_sure():
    main = spins(0.02, 0.9, 4.0, 0.5)
    scene = Scene(
        [Gpu(util=square(0, 0.96, 4.0, 0.5), buffered=False, power=190.0)],
        [Process(100, cpu=main), *workers(4, 0.1)],
        jitter=0.3,
    )
    assert found(watch(scene, 120)[0], RULE).confidence is Confidence.LIKELY


def test_n19_rl_is_at_most_cpu_work_between_steps():
    facts = ProcessFacts(libraries=("libtorch_cuda.so",), frameworks=("torch",))
    scene = Scene([Gpu(util=square(0, 0.6, 0.6, 0.3), power=120.0)], [Process(100, cpu=1.0, facts=facts)])
    diagnosis, bench = watch(scene, 120)
    finding = found(diagnosis, MAIN)
    assert finding.text.title.startswith("CPU work between the steps")
    assert (finding.confidence, finding.severity) == (Confidence.POSSIBLE, Severity.NOTICE)
    assert not bench.alarms & (LOADERS - {MAIN})
    assert "num_workers" not in " ".join(finding.text.advice)


def test_collate_in_the_main_process_beside_sleeping_workers():
    scene = Scene([Gpu(util=square(0, 0.96, 1.4, 0.5))], [Process(100, cpu=1.0), *workers(4, 0.1)])
    finding = found(watch(scene, 90)[0], RULE)
    assert "its workers rest" in finding.text.title
    assert "collate" in finding.text.advice[0]


def test_gaps_are_named_also_when_the_process_is_in_another_namespace():
    scene = Scene([Gpu(util=square(0, 0.96, 1.5, 0.5))], processes=[], hidden_processes=1)
    diagnosis, _ = watch(scene, 160, RULE, "loader-in-main-process")
    finding = found(diagnosis, RULE)
    assert any("cannot be seen" in line for line in finding.text.because)
    assert "cannot be seen" in reason(diagnosis, "loader-in-main-process")


def test_n21_without_utilization_it_abstains():
    scene = Scene([Gpu(fields={"absent": {"utilization_ratio": "not offered for MIG"}})])
    samples = list(scene.samples(150))
    from dataclasses import replace

    from gpuwatch.model import Burst

    bench = Watch(RULE)
    for sample in samples:
        gpu = replace(sample.gpus[0], utilization_ratio=None, utilization_burst=Burst())
        bench.bench.feed(replace(sample, gpus=(gpu,)))
    assert bench.bench.diagnosis is not None
    assert not bench.alarms
    assert "MIG" in reason(bench.bench.diagnosis, RULE)


def test_it_ends_half_a_minute_after_the_gaps():
    bench = Watch(RULE)
    wave = square(0, 0.96, 1.5, 0.5)
    scene = Scene(
        [Gpu(util=lambda t: wave(t) if t < 80 else 0.96)], [Process(100, cpu=0.1), *workers(4, 0.1)]
    )
    assert bench.run(scene, 85).findings
    diagnosis = bench.run(scene, 100, begin=85)
    assert not diagnosis.findings
    assert 100 < diagnosis.ended[0].ended_s - scene.start_s < 180


def test_b121_serial_loading_shows_one_busy_core_among_idle_ones():
    """Neither the CPU nor the GPU is busy as a whole: the figure that counts is the main thread's."""
    scene = Scene([Gpu(util=square(0, 0.9, 1.5, 0.33))], [Process(100, cpu=1.0, reads=8e6)], cores=56)
    diagnosis, _ = watch(scene, 90)
    finding = found(diagnosis, "loader-in-main-process")
    assert evidence(finding)["gapcpu_main_cores"] == pytest.approx(1.0, abs=0.05)
