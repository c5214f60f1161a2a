import pytest
from build import GIB, Gpu, Process, Scene, square
from watch import Watch, evidence, found, reason, watch

from gpuwatch.model import CgroupReading, Confidence, ProcessRole, Severity

QUOTA, CONTENTION = "cpu-quota-throttled", "host-cpu-contention"


def throttled(ratio: float, cores: float = 2.0, until: float = 1e9):
    """A control group in which `ratio` of ten periods a second are stopped for half their length."""

    def reading(t: float) -> CgroupReading:
        periods = int(t * 10)
        stopped = int(min(t, until) * 10 * ratio)
        return CgroupReading("/job", cores, periods, stopped, stopped * 50_000)

    return reading


def quota_scene(ratio: float, util, cpu: float = 1.9) -> Scene:
    trainer = Process(100, cpu=cpu, main=0.5, cgroup=throttled(ratio), usable_cores=2.0)
    return Scene([Gpu(util=util)], [trainer])


def test_a_quota_that_stops_a_pulsed_job():
    diagnosis, bench = watch(quota_scene(0.4, square(0, 0.96, 1.3, 0.5)), 80)
    finding = found(diagnosis, QUOTA)
    assert (finding.severity, finding.confidence) == (Severity.WARNING, Confidence.MEASURED)
    assert finding.text.title == "the CPU quota of 2 cores stops the job"
    assert finding.share_ratio == pytest.approx(0.5, abs=0.06)
    assert evidence(finding)["throttled_ratio"] == pytest.approx(0.4, abs=0.02)
    assert evidence(finding)["throttled_s"] == pytest.approx(30 * 4 * 0.05, rel=0.1)
    assert diagnosis.verdict.rule == QUOTA
    assert diagnosis.verdict.layer == "environment"
    assert bench.first_s[QUOTA] <= 60


def test_most_periods_stopped_is_critical():
    diagnosis, _ = watch(quota_scene(0.7, square(0, 0.96, 1.3, 0.5)), 70, QUOTA)
    assert found(diagnosis, QUOTA).severity is Severity.CRITICAL


def test_n18_a_quota_that_is_felt_while_the_gpu_is_fed_is_a_notice():
    diagnosis, bench = watch(quota_scene(0.3, 0.96), 90)
    finding = found(diagnosis, QUOTA)
    assert finding.severity is Severity.NOTICE
    assert finding.share_ratio is None
    assert bench.alarms == {QUOTA}


@pytest.mark.parametrize(("ratio", "fires"), [(0.1, False), (0.25, True)])
def test_a_fifth_of_the_periods_makes_it(ratio, fires):
    assert (QUOTA in watch(quota_scene(ratio, 0.96), 60, QUOTA)[1].alarms) is fires


def test_short_bursts_under_a_low_average_are_nothing():
    assert not watch(quota_scene(0.3, 0.96, cpu=1.0), 60, QUOTA)[1].alarms


def test_it_ends_under_five_percent():
    bench = Watch(QUOTA)
    scene = quota_scene(0.3, 0.96)
    scene.processes[0].cgroup = throttled(0.3, until=40)
    assert bench.run(scene, 60).findings
    assert not bench.run(scene, 25, begin=60).findings


def test_without_a_quota_it_is_clear_and_without_counters_it_abstains():
    scene = quota_scene(0.3, 0.96)
    scene.processes[0].cgroup = CgroupReading("/job")
    assert not watch(scene, 60, QUOTA)[0].not_checked
    scene.processes[0].cgroup = CgroupReading("/job", 2.0)
    assert "does not count" in reason(watch(scene, 60, QUOTA)[0], QUOTA)
    scene.processes[0].cgroup = None
    assert "control group" in reason(watch(scene, 60, QUOTA)[0], QUOTA)


def busy_host(others: float = 26.0, pressure: float = 0.55, waits: float = 0.35, **more) -> Scene:
    """P13: 32 cores, `others` of them taken; the workers wait `waits` of the time they want a core."""
    cpu = 0.6
    workers = [
        Process(
            200 + i,
            cpu=cpu,
            role=ProcessRole.WORKER,
            trainer_pid=100,
            waits=cpu * waits / (1 - waits),
            usable_cores=32.0,
        )
        for i in range(8)
    ]
    trainer = Process(100, cpu=0.5, waits=0.5 * waits / (1 - waits), usable_cores=32.0)
    foreign = Process(900, cpu=others, role=ProcessRole.OTHER, command="/opt/bin/stress --cpu 26")
    return Scene(
        [Gpu(util=square(0, 0.95, 1.3, 0.55))],
        [trainer, *workers, foreign],
        cores=32,
        host={"cpu_pressure_ratio": pressure},
        **more,
    )


def test_p13_b122_other_programs_are_named():
    diagnosis, bench = watch(busy_host(), 80)
    finding = found(diagnosis, CONTENTION)
    assert finding.severity is Severity.WARNING
    assert finding.confidence is Confidence.LIKELY
    assert finding.text.title == "other programs take the CPU (pid 900, stress --cpu)"
    assert (diagnosis.verdict.rule, diagnosis.verdict.layer) == (CONTENTION, "environment")
    assert "loader-cpu-bound" not in bench.alarms


@pytest.mark.parametrize(
    "change",
    [{"others": 10.0}, {"pressure": 0.15}, {"waits": 0.1}],
)
def test_each_of_the_three_signals_is_needed(change):
    assert CONTENTION not in watch(busy_host(**change), 60, CONTENTION)[1].alarms


def test_it_ends_at_half_of_the_entry():
    bench = Watch(CONTENTION)
    scene = busy_host(pressure=lambda t: 0.55 if t < 50 else 0.15 if t < 100 else 0.05)
    assert bench.run(scene, 98).findings
    assert not bench.run(scene, 40, begin=98).findings


def test_contention_beside_a_fed_gpu_is_only_a_state():
    scene = busy_host()
    scene.gpus[0].util = 0.97
    diagnosis, bench = watch(scene, 60, CONTENTION)
    assert found(diagnosis, CONTENTION).severity is Severity.STATE
    assert not bench.alarms


def test_steal_is_enough():
    scene = busy_host(others=1.0)
    scene.host |= {"cpu_steal_ratio": 0.15, "cpu_pressure_ratio": 0.0}
    finding = found(watch(scene, 60, CONTENTION)[0], CONTENTION)
    assert finding.text.title == "the hypervisor takes CPU from this machine"


def test_ranks_of_the_same_job_are_not_others():
    """Two ranks that fight each other for cores: the cure is fewer threads, not fewer neighbours."""
    gpus = [
        Gpu(uuid=f"GPU-{i}", index=i, util=square(0, 0.95, 1.3, 0.5), pids=((100 + i, 20 * GIB),))
        for i in range(2)
    ]
    ranks = [
        Process(
            100 + i,
            cpu=15.0,
            waits=8.0,
            command=f"python train.py --rank {i}",
            parent_pid=50,
            usable_cores=32.0,
        )
        for i in range(2)
    ]
    scene = Scene(gpus, ranks, cores=32, other_cores=1.0, host={"cpu_pressure_ratio": 0.5})
    assert CONTENTION not in watch(scene, 70, CONTENTION)[1].alarms


def test_n31_a_quiet_monitor_on_two_cores_is_no_contention():
    scene = Scene(
        [Gpu()],
        [Process(100, cpu=1.0, usable_cores=2.0), Process(900, cpu=0.03, role=ProcessRole.OTHER)],
        cores=2,
        other_cores=0.1,
        host={"cpu_pressure_ratio": 0.05},
    )
    assert not watch(scene, 90)[1].alarms


def test_without_pressure_and_without_wait_it_abstains():
    scene = busy_host()
    for process in scene.processes:
        process.extra["absent"] = {"wait_ns": "no schedstat"}
    scene.host = {}
    samples = list(scene.samples(60))
    bench = Watch(CONTENTION)
    from dataclasses import replace

    for sample in samples:
        assert sample.host is not None
        host = replace(sample.host, cpu_pressure_us=None)
        processes = tuple(replace(process, wait_ns=None) for process in sample.processes or ())
        bench.bench.feed(replace(sample, host=host, processes=processes))
    assert bench.bench.diagnosis is not None
    assert "neither CPU pressure nor run-queue wait" in reason(bench.bench.diagnosis, CONTENTION)


def test_workers_of_short_epochs_are_not_other_programs():
    """Every 5 s, just when the job is looked at, two new workers; together they take both cores."""
    epochs = [
        Process(
            200 + 2 * epoch + which,
            cpu=0.85,
            waits=0.3,
            role=ProcessRole.WORKER,
            trainer_pid=100,
            name="pt_data_worker",
            since=5.0 * epoch,
            until=5.0 * epoch + 4.5,
        )
        for epoch in range(27)
        for which in range(2)
    ]
    trainer = Process(100, cpu=0.25, waits=0.15, usable_cores=2.0)
    scene = Scene(
        [Gpu(util=square(0, 0.96, 1.4, 0.5), power=190.0)],
        [trainer, *epochs],
        cores=2,
        other_cores=0.02,
        host={"cpu_pressure_ratio": 0.35},
    )
    diagnosis, bench = watch(scene, 130)
    assert "host-cpu-contention" not in bench.alarms
    assert {finding.rule for finding in diagnosis.findings} & {"loader-cpu-bound", "gpu-starved"}
