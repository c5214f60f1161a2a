from dataclasses import replace

import pytest
from build import Gpu, Process, Scene, noisy, square
from watch import Watch, evidence, found, reason, watch

from gpuwatch.model import Confidence, ProcessFacts, ProcessRole, Severity

MAIN, FEW, BOUND, STARVED = (
    "loader-in-main-process",
    "loader-too-few-workers",
    "loader-cpu-bound",
    "gpu-starved",
)
PIL = ProcessFacts(libraries=("_imaging.so", "libtorch_cuda.so"), frameworks=("torch",), decoder="PIL")
PLAIN = ProcessFacts(libraries=("libtorch_cuda.so",), frameworks=("torch",))


def pulses(low: float, high: float, period: float, duty: float):
    return square(low, high, period, duty)


def workers(count: int, cpu: float, **more) -> list[Process]:
    return [
        Process(200 + i, cpu=cpu, role=ProcessRole.WORKER, trainer_pid=100, name="pt_data_worker", **more)
        for i in range(count)
    ]


def p01(**trainer) -> Scene:
    values = {"cpu": pulses(0.97, 1.0, 1.4, 0.36), "reads": 60e6, "facts": PIL, **trainer}
    gpu = Gpu(
        util=pulses(0, 0.97, 1.4, 0.36), power=176.0, fields={"p_state": 2, "memory_used_bytes": 20 * 2**30}
    )
    return Scene([gpu], [Process(100, **values)])


def test_p01_loading_in_the_main_process():
    diagnosis, bench = watch(p01(), 90)
    finding = found(diagnosis, MAIN)
    assert finding.severity is Severity.CRITICAL
    assert finding.confidence is Confidence.LIKELY
    assert finding.share_ratio is not None
    assert 0.58 <= finding.share_ratio <= 0.68
    assert finding.parameters["wanted"] in (2.0, 3.0)
    assert (diagnosis.verdict.rule, diagnosis.verdict.layer) == (MAIN, "data")
    assert bench.first_s[MAIN] <= 45
    assert bench.alarms == {MAIN}
    text = finding.text
    assert text.title == "batches are prepared in the main process (0 workers)"
    assert text.because[0] == "main thread runs 0.97 core while the GPU idles"
    assert text.because[1] == "it reads 60 MB/s and has PIL loaded"
    assert text.short_advice == "num_workers=4, watch 100 steps"


def test_b131_b143_augmentation_on_the_cpu_needs_no_reads_when_a_decoder_is_loaded():
    assert found(watch(p01(reads=0.0), 90)[0], MAIN)


@pytest.mark.parametrize(("gap", "fires"), [(0.72, False), (0.88, True)])
def test_eight_tenths_of_a_core_in_the_gaps_make_it(gap, fires):
    scene = p01(cpu=pulses(gap, 1.0, 1.4, 0.36))
    assert (MAIN in watch(scene, 70, MAIN)[1].alarms) is fires


def test_it_stays_down_to_six_tenths():
    bench = Watch(MAIN)
    high, middle, low = (pulses(gap, 1.0, 1.4, 0.36) for gap in (0.97, 0.7, 0.4))
    scene = p01(cpu=lambda t: high(t) if t < 60 else middle(t) if t < 120 else low(t))
    assert bench.run(scene, 118).findings
    assert not bench.run(scene, 60, begin=118).findings


def test_a_main_thread_that_only_spins_is_not_blamed():
    scene = p01(cpu=pulses(0.06, 1.0, 1.4, 0.36))
    diagnosis, bench = watch(scene, 90)
    assert bench.alarms == {STARVED}
    assert "cause not proven" in found(diagnosis, STARVED).text.title


def test_workers_clear_it():
    scene = p01()
    scene.processes = [*scene.processes, *workers(4, 0.4)]
    assert MAIN not in watch(scene, 90)[1].alarms


def test_it_ends_when_workers_start():
    bench = Watch(MAIN)
    scene = p01()
    scene.processes = [*scene.processes, *workers(4, 0.4, since=70.0)]
    assert bench.run(scene, 69).findings
    assert not bench.run(scene, 30, begin=69).findings


def test_n19_without_reads_and_decoder_it_is_only_cpu_work_between_the_steps():
    finding = found(watch(p01(reads=0.0, facts=PLAIN), 90)[0], MAIN)
    assert finding.text.title.startswith("CPU work between the steps")
    assert (finding.confidence, finding.severity) == (Confidence.POSSIBLE, Severity.NOTICE)
    assert "num_workers" not in " ".join((*finding.text.advice, finding.text.settle))


def test_reads_of_another_user_cannot_be_seen():
    scene = p01(facts=None)
    bench = Watch(MAIN)
    for sample in scene.samples(90):
        processes = tuple(replace(process, read_chars=None) for process in sample.processes or ())
        bench.bench.feed(replace(sample, processes=processes))
    assert bench.bench.diagnosis is not None
    assert not bench.alarms
    assert "other user" in reason(bench.bench.diagnosis, MAIN)


def test_without_the_gap_measure_it_is_only_possible_and_says_so():
    """No scheduler counters of threads: the process' CPU time stands for its main thread's."""
    scene = p01(cpu=0.99, burst=False)
    scene.gpus[0].util = pulses(0, 0.97, 0.4, 0.36)
    diagnosis, _ = watch(scene, 120)
    finding = found(diagnosis, MAIN)
    assert finding.confidence is Confidence.POSSIBLE
    assert any("CPU in the gaps not known" in line for line in finding.text.because)


def test_p43_gaps_too_fast_for_the_samples_stay_possible():
    scene = p01(cpu=1.0, reads=40e6)
    scene.gpus[0].util = pulses(0, 0.96, 0.25, 0.5)
    diagnosis, _ = watch(scene, 120)
    finding = found(diagnosis, MAIN)
    assert finding.confidence is Confidence.POSSIBLE
    assert "period_s" not in evidence(finding)


def test_p45_tensorflow_threads_are_no_loading_in_the_main_process():
    trainer = Process(
        100,
        cpu=11.0,
        main=0.3,
        usable_cores=12.0,
        reads=50e6,
        facts=ProcessFacts(libraries=("libtensorflow_cc.so",), frameworks=("tensorflow",), decoder="jpeg"),
    )
    scene = Scene([Gpu(util=pulses(0, 0.95, 1.1, 0.6))], [trainer], cores=12)
    diagnosis, bench = watch(scene, 100)
    assert MAIN not in bench.alarms
    finding = found(diagnosis, BOUND)
    assert finding.text.title == "loader threads take all of the 12 cores"
    assert finding.confidence is Confidence.POSSIBLE


@pytest.mark.parametrize("thread", ["pt_thread_data_", "[DALI] WT0", "tf_data_iterator"])
def test_loader_threads_are_seen_by_their_names(thread):
    assert MAIN not in watch(p01(threads=(thread,) * 4), 80, MAIN)[1].alarms


def test_other_busy_threads_of_the_job_lower_the_confidence_and_neighbours_do_not():
    scene = p01(main=pulses(0.97, 1.0, 1.4, 0.36), cpu=2.4, usable_cores=4.0)
    assert found(watch(scene, 70, MAIN)[0], MAIN).confidence is Confidence.POSSIBLE
    beside = p01()
    beside.other_cores = 8.0
    assert found(watch(beside, 70, MAIN)[0], MAIN).confidence is Confidence.LIKELY


def test_few_free_cores_bound_the_advice():
    scene = p01(usable_cores=2.0)
    scene.cores = 2
    text = found(watch(scene, 70, MAIN)[0], MAIN).text
    assert text.short_advice.startswith(("num_workers=1", "num_workers=2"))
    assert any("will not cure" in line for line in text.advice)


def p03(**changes) -> Scene:
    count, cpu = changes.pop("count", 2), changes.pop("cpu", 0.97)
    trainer = Process(100, cpu=pulses(0.06, 1.0, 1.0, 0.5), usable_cores=16.0)
    return Scene(
        [Gpu(util=pulses(0, 0.96, 1.0, 0.5))], [trainer, *workers(count, cpu, usable_cores=16.0)], **changes
    )


def test_p03_two_workers_cannot_keep_up():
    diagnosis, bench = watch(p03(), 90)
    finding = found(diagnosis, FEW)
    assert (finding.severity, finding.confidence) == (Severity.CRITICAL, Confidence.LIKELY)
    assert 4 <= float(finding.parameters["wanted"]) <= 6
    assert (diagnosis.verdict.rule, diagnosis.verdict.layer) == (FEW, "data")
    assert bench.alarms == {FEW}
    assert bench.first_s[FEW] <= 60
    assert finding.text.title == "2 workers cannot keep up; about 5 would"


@pytest.mark.parametrize(("cpu", "fires"), [(0.80, False), (0.90, True)])
def test_workers_must_be_fully_busy(cpu, fires):
    assert (FEW in watch(p03(cpu=cpu), 70, FEW)[1].alarms) is fires


def test_without_free_cores_more_workers_are_not_advised():
    assert FEW not in watch(p03(other_cores=12.0), 70, FEW)[1].alarms


def test_pressure_says_that_cores_are_not_free():
    assert FEW not in watch(p03(host={"cpu_pressure_ratio": 0.12}), 70, FEW)[1].alarms


def test_it_ends_when_workers_get_rest():
    bench = Watch(FEW)
    scene = p03(cpu=lambda t: 0.97 if t < 60 else 0.75 if t < 110 else 0.6)
    assert bench.run(scene, 108).findings
    assert not bench.run(scene, 60, begin=108).findings


def test_n16_idle_workers_are_nothing():
    scene = Scene([Gpu(util=0.97)], [Process(100), *workers(16, 0.04)])
    assert not watch(scene, 90)[1].alarms


def p04(**changes) -> Scene:
    cpu = changes.pop("cpu", 0.96)
    trainer = Process(100, cpu=pulses(0.07, 0.9, 0.9, 0.6), usable_cores=16.0)
    return Scene(
        [Gpu(util=pulses(0, 0.95, 0.9, 0.6))],
        [trainer, *workers(16, cpu, usable_cores=16.0)],
        other_cores=0.0,
        host={"cpu_pressure_ratio": 0.12},
        **changes,
    )


def test_p04_decoding_takes_all_cores():
    diagnosis, bench = watch(p04(), 90)
    finding = found(diagnosis, BOUND)
    assert (finding.severity, finding.confidence) == (Severity.CRITICAL, Confidence.LIKELY)
    assert finding.share_ratio == pytest.approx(0.4, abs=0.06)
    assert (diagnosis.verdict.rule, diagnosis.verdict.layer) == (BOUND, "data")
    assert bench.alarms == {BOUND}
    assert finding.text.title == "preparing data takes all of the 16 cores"


def test_it_ends_when_cores_are_left():
    bench = Watch(BOUND)
    scene = p04(cpu=lambda t: 0.96 if t < 60 else 0.65)
    assert bench.run(scene, 58).findings
    assert not bench.run(scene, 70, begin=58).findings


def test_b119_few_workers_on_two_cores_are_a_lack_of_cpu():
    trainer = Process(100, cpu=pulses(0.06, 0.8, 1.0, 0.5), usable_cores=2.0)
    scene = Scene(
        [Gpu(util=pulses(0, 0.96, 1.0, 0.5))],
        [trainer, *workers(2, 0.9, usable_cores=2.0)],
        cores=2,
        other_cores=0.0,
    )
    diagnosis, bench = watch(scene, 90)
    assert found(diagnosis, BOUND)
    assert FEW not in bench.alarms


def test_more_workers_than_cores_would_be_needed():
    scene = Scene(
        [Gpu(util=pulses(0, 0.96, 1.5, 0.25))],
        [Process(100, cpu=pulses(0.06, 1.0, 1.5, 0.25)), *workers(6, 0.97, usable_cores=16.0)],
    )
    diagnosis, bench = watch(scene, 90)
    finding = found(diagnosis, BOUND)
    assert finding.text.title == "preparing data needs more than the 16 cores"
    assert FEW not in bench.alarms


def test_p07b_busy_workers_beside_a_busy_disk_are_too_few():
    scene = p03(count=4, host={"io_pressure_ratio": 0.01})
    assert found(watch(scene, 90)[0], FEW)


def test_b113_the_share_of_waiting_and_the_cpu_figures_are_evidence():
    values = evidence(found(watch(p03(), 70, FEW)[0], FEW))
    assert {"stall_ratio", "gapcpu_main_cores", "worker_count", "worker_cpu_cores", "free_cores"} <= set(
        values
    )
    assert values["worker_count"] == 2.0


def test_p42_heat_beside_loading_is_second_with_its_own_share():
    from gpuwatch.metrics import REASON_SW_THERMAL

    scene = p01()
    scene.gpus[0].reasons = REASON_SW_THERMAL
    scene.gpus[0].clock = 1512.0
    diagnosis, _ = watch(scene, 100)
    assert diagnosis.verdict.layer == "data"
    heat, loading = found(diagnosis, "thermal-throttle"), found(diagnosis, MAIN)
    assert heat.share_ratio is not None
    assert loading.share_ratio is not None
    assert heat.share_ratio + loading.share_ratio < 1
    ledger = next(iter(diagnosis.ledgers.values()))
    assert sum(part.ratio for part in ledger.parts) == 1.0
    assert "heat" in diagnosis.verdict.after_that


def test_n30_a_new_job_starts_clean():
    scene = p01()
    first = scene.processes[0]
    first.until = 80.0
    second = Process(300, cpu=1.0, since=100.0, age_s=-99.0)
    wave, steady = scene.gpus[0].util, noisy(0.97, 0.02)
    scene.gpus[0].util = lambda t: wave(t) if t < 80 else 0.0 if t < 100 else steady(t)
    scene.gpus[0].pids = ((100, 20 * 2**30), (300, 20 * 2**30))
    scene.processes = [first, second]
    bench = Watch()
    assert bench.run(scene, 78).findings
    diagnosis = bench.run(scene, 150, begin=78)
    assert not diagnosis.findings
    assert MAIN in {finding.rule for finding in diagnosis.ended}


@pytest.mark.parametrize(("make", "rule"), [(p01, MAIN), (p03, FEW), (p04, BOUND)])
@pytest.mark.parametrize("hertz", [5.0, None])
def test_causes_are_named_at_every_cadence(make, rule, hertz):
    """Five samples a second, and one reading a second of the driver's last sixth, which is less sure."""
    scene = make()
    scene.jitter = 0.25
    if hertz is None:
        scene.gpus[0].buffered = False
    else:
        scene.burst_hz = hertz
    diagnosis, bench = watch(scene, 100)
    finding = found(diagnosis, rule)
    assert finding.confidence is (Confidence.POSSIBLE if hertz is None else Confidence.LIKELY)
    assert bench.alarms <= {rule, STARVED}
    assert diagnosis.verdict.layer == "data"
    if hertz is None:
        assert any("too coarse" in line for line in finding.text.because)


def test_workers_that_queue_for_a_core_are_at_work_all_the_time():
    """Two workers and a spinning main thread on two cores: nobody gets a whole one."""
    scene = Scene(
        [Gpu(util=square(0, 0.96, 1.4, 0.5), power=190.0)],
        [
            Process(100, cpu=lambda t: 0.45, main=pulses(0.0, 0.9, 1.4, 0.5), usable_cores=2.0),
            *workers(2, 0.76, waits=0.2),
        ],
        cores=2,
        other_cores=0.02,
    )
    finding = found(watch(scene, 90)[0], BOUND)
    assert finding.share_ratio == pytest.approx(0.5, abs=0.06)


def test_workers_that_only_get_half_a_core_each_stay_the_cause():
    """Four workers on two cores: each runs for 0.45 of a core and queues for one the rest of the time."""
    gpu = Gpu(
        util=pulses(0, 0.97, 1.4, 0.36), power=176.0, fields={"p_state": 2, "memory_used_bytes": 20 * 2**30}
    )
    trainer = Process(100, cpu=pulses(0.02, 0.4, 1.4, 0.36), facts=PIL, usable_cores=2.0)
    scene = Scene([gpu], [trainer, *workers(4, 0.45, waits=0.53)], cores=2, other_cores=0.02)
    diagnosis, bench = watch(scene, 120)
    assert found(diagnosis, BOUND)
    shown = [{finding.rule for finding in one.findings} for one in bench.bench.log]
    assert not any(STARVED in rules for rules in shown[shown.index({BOUND}) :])


def hidden(**trainer) -> Scene:
    """Steps of 0.172 s beside samples of 0.167 s: nearly every sample mixes work and waiting."""
    values = {"cpu": 0.45, "usable_cores": 2.0, **trainer}
    return Scene(
        [Gpu(util=square(0, 1.0, 0.172, 0.7), power=240.0)],
        [Process(100, **values), *workers(2, 0.76, waits=0.2, usable_cores=2.0)],
        cores=2,
        other_cores=0.02,
    )


def test_workers_always_at_work_name_waiting_too_short_to_be_seen():
    diagnosis, bench = watch(hidden(), 90)
    finding = found(diagnosis, BOUND)
    assert finding.confidence is Confidence.POSSIBLE
    assert finding.share_ratio == pytest.approx(0.3, abs=0.05)
    assert diagnosis.verdict.layer == "data"
    assert bench.alarms == {BOUND}


def test_a_busy_main_thread_leaves_short_idle_moments_unexplained():
    diagnosis, bench = watch(hidden(cpu=0.9), 90)
    assert not bench.alarms & {BOUND, FEW}
    assert diagnosis.verdict.headline.startswith("the GPU idles 30 % of the time")
