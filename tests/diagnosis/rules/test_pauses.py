import pytest
from build import Gpu, Process, Scene, square
from test_loader import PIL, workers
from watch import Watch, evidence, found, watch

from gpuwatch.model import Confidence, LedgerKey, Severity

PAUSES, STARVED, RESPAWN = "episode-overhead", "gpu-starved", "loader-respawn"


def saving(every_s: float, gap_s: float, rate: float = 4e8, **more) -> Scene:
    """The GPU works, then stands still while the process writes."""
    gpu = Gpu(
        util=lambda t: 0.0 if t % every_s < gap_s else 0.98,
        power=lambda t: 120.0 if t % every_s < gap_s else 310.0,
    )
    values = {"cpu": 1.0, "facts": PIL, "writes": lambda t: rate if t % every_s < gap_s else 0.0, **more}
    return Scene([gpu], [Process(100, **values), *workers(2, 0.2)])


def test_short_checkpoints_are_named_by_what_is_written_in_the_gaps():
    diagnosis, bench = watch(saving(5.0, 1.0), 90)
    finding = found(diagnosis, PAUSES)
    assert finding.severity is Severity.WARNING
    assert finding.confidence is Confidence.LIKELY
    assert finding.share_ratio == pytest.approx(0.2, abs=0.04)
    assert evidence(finding)["coverage_ratio"] > 0.9
    assert finding.text.title == "checkpoints hold up the GPU, about every 5 s"
    assert bench.first_s[PAUSES] <= 45
    assert (diagnosis.verdict.rule, diagnosis.verdict.layer) == (PAUSES, "code")
    assert STARVED not in {one.rule for one in diagnosis.findings}
    (ledger,) = diagnosis.ledgers.values()
    assert sum(part.ratio for part in ledger.parts if part.cause == PAUSES) > 0.15
    assert {part.key for part in ledger.parts if part.cause == PAUSES} == {LedgerKey.WAITING}


def test_a_process_that_writes_all_the_time_writes_no_checkpoints():
    scene = saving(5.0, 1.0)
    scene.processes[0].writes = 5e7
    assert PAUSES not in watch(scene, 90)[1].alarms


def test_writing_beside_the_gaps_is_no_reason_for_them():
    scene = saving(5.0, 1.0)
    scene.processes[0].writes = lambda t: 4e8 if 2.5 < t % 5.0 < 3.0 else 0.0
    assert PAUSES not in watch(scene, 90)[1].alarms


def test_they_end_when_saving_ends():
    bench = Watch(PAUSES)
    scene = saving(5.0, 1.0)
    scene.gpus[0].util = lambda t: 0.0 if t % 5 < 1 and t < 100 else 0.98
    scene.processes[0].writes = lambda t: 4e8 if t % 5 < 1 and t < 100 else 0.0
    assert bench.run(scene, 99).findings
    assert not bench.run(scene, 90, begin=99).findings


def test_one_long_checkpoint_is_no_finding():
    scene = saving(5.0, 1.0)
    scene.gpus[0].util = lambda t: 0.0 if 60 <= t < 75 else 0.98
    scene.processes[0].writes = lambda t: 4e8 if 60 <= t < 75 else 0.0
    assert PAUSES not in watch(scene, 150)[1].alarms


def test_three_long_checkpoints_are_named_before_ten_minutes():
    diagnosis, _ = watch(saving(40.0, 9.0), 150)
    finding = found(diagnosis, PAUSES)
    assert finding.text.title.endswith("goes into checkpoints")
    assert finding.share_ratio == pytest.approx(9 / 40, abs=0.06)
    assert diagnosis.verdict.rule == PAUSES


def test_long_pauses_without_a_certain_kind_wait_for_ten_minutes():
    assert PAUSES not in watch(saving(40.0, 9.0, rate=0.0), 150)[1].alarms


def test_a_loader_that_takes_seconds_for_a_batch_is_no_pause():
    """B124: audio is decoded in the main process, every gap is long."""
    scene = saving(20.0, 14.0, rate=0.0, reads=60e6)
    scene.processes = scene.processes[:1]
    _, bench = watch(scene, 700)
    assert PAUSES not in bench.alarms


def starting_anew(epoch_s: float, gap_s: float, **main) -> Scene:
    """Each epoch has workers of its own; the GPU stands still until they deliver."""
    gpu = Gpu(util=lambda t: 0.0 if t % epoch_s < gap_s else 0.97, power=300.0)
    trainer = Process(100, cpu=1.0, facts=PIL, **main)
    crews = []
    for epoch in range(8):
        begin, end = epoch * epoch_s, (epoch + 1) * epoch_s
        crews += [
            Process(
                200 + 10 * epoch + i,
                cpu=0.4,
                role=trainer.role.WORKER,
                trainer_pid=100,
                name="pt_data_worker",
                since=begin,
                until=end,
            )
            for i in range(2)
        ]
    return Scene([gpu], [trainer, *crews])


def test_workers_that_start_anew_each_epoch_with_a_pause():
    finding = found(watch(starting_anew(40.0, 4.0), 200)[0], RESPAWN)
    assert finding.share_ratio == pytest.approx(0.1, abs=0.04)


def test_new_workers_of_a_starved_job_are_no_reason_for_its_waiting():
    """The GPU waits in every step; at the change of epochs no more than else."""
    scene = starting_anew(30.0, 0.0)
    scene.gpus[0].util = square(0, 0.97, 0.39, 0.41)
    assert RESPAWN not in watch(scene, 150)[1].alarms


def test_checkpoints_at_the_end_of_each_epoch_are_not_its_workers_fault():
    scene = starting_anew(40.0, 8.0, writes=lambda t: 4e8 if t % 40.0 < 8.0 else 0.0)
    diagnosis, bench = watch(scene, 200)
    assert RESPAWN not in bench.alarms
    assert found(diagnosis, PAUSES)
