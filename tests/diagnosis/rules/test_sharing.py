import pytest
from build import GIB, Gpu, Process, Scene
from watch import Watch, evidence, found, reason, watch

from gpuwatch.model import (
    CgroupReading,
    Confidence,
    GpuProcess,
    Kind,
    ProcessRole,
    Severity,
)

RULE = "gpu-shared"


def scene(neighbour: Process | None, memory: int = 6 * GIB, own: float = 0.5, kind: str = "C") -> Scene:
    trainer = Process(100, extra={"sm_ratio": own}, group_id=100)
    pids = [(100, 14 * GIB)]
    processes = [trainer]
    listed = [GpuProcess(100, "C", 14 * GIB)]
    if neighbour is not None:
        processes.append(neighbour)
        listed.append(GpuProcess(neighbour.pid, kind, memory))
    gpu = Gpu(pids=tuple(pids), fields={"processes": tuple(listed), "memory_used_bytes": 20 * GIB})
    return Scene([gpu], processes)


def other(share: float | None = 0.45, **more) -> Process:
    more = {"user": "bob", "command": "/usr/bin/python other.py", "group_id": 777, **more}
    return Process(777, extra={"sm_ratio": share}, **more)


def test_p24_a_neighbour_is_critical_and_named():
    diagnosis, bench = watch(scene(other()), 80)
    finding = found(diagnosis, RULE)
    assert (finding.severity, finding.confidence) == (Severity.CRITICAL, Confidence.LIKELY)
    assert finding.text.title == "another process uses this GPU (pid 777, python other.py)"
    assert "user bob" in finding.text.because[0]
    assert finding.share_ratio == pytest.approx(0.97 * 0.45 / 0.95, abs=0.02)
    assert (diagnosis.verdict.rule, diagnosis.verdict.layer) == (RULE, "hardware")
    assert bench.first_s[RULE] >= 29
    assert bench.alarms == {RULE}


@pytest.mark.parametrize(("share", "fires"), [(0.09, False), (0.12, True)])
def test_a_tenth_of_the_samples_makes_a_neighbour(share, fires):
    assert (RULE in watch(scene(other(share), memory=GIB), 60, RULE)[1].alarms) is fires


def test_it_needs_half_a_minute_of_samples():
    assert not watch(scene(other()), 25, RULE)[1].alarms


def test_memory_without_work_is_a_notice():
    finding = found(watch(scene(other(0.0)), 60, RULE)[0], RULE)
    assert (finding.severity, finding.kind) == (Severity.NOTICE, Kind.OPPORTUNITY)
    assert (
        finding.text.title == "another process holds 6.0 GiB of the GPU's memory (pid 777, python other.py)"
    )


@pytest.mark.parametrize(
    "relation",
    [
        {"group_id": 100},
        {"session_id": 5},
        {"parent_pid": 50},
        {"role": ProcessRole.CHILD, "trainer_pid": 100},
        {"name": "nvidia-cuda-mps"},
        {"cgroup": CgroupReading("/docker/abc")},
    ],
)
def test_what_belongs_to_the_job_is_no_neighbour(relation):
    made = scene(other(**relation))
    trainer = made.processes[0]
    trainer.session_id, trainer.parent_pid = 5 if "session_id" in relation else None, 50
    trainer.cgroup = CgroupReading("/docker/abc")
    assert not watch(made, 60, RULE)[1].alarms


def test_the_mps_server_is_said_and_no_finding():
    diagnosis, bench = watch(scene(other(), kind="MPS"), 60, RULE)
    assert not bench.alarms
    (check,) = [c for c in diagnosis.checks if c.check.key == "cpu"]
    assert "MPS" in check.evidence


@pytest.mark.parametrize(("share", "fires"), [(0.05, False), (0.20, True)])
def test_a_compositor_counts_from_a_tenth(share, fires):
    desktop = other(share, role=ProcessRole.GRAPHICS, command="/usr/lib/xorg/Xorg")
    diagnosis, bench = watch(scene(desktop, memory=GIB, kind="G"), 60, RULE)
    assert (RULE in bench.alarms) is fires
    if fires:
        assert "display" in found(diagnosis, RULE).text.title


def test_a_process_of_another_namespace_is_judged_by_memory_only():
    made = scene(None)
    listed = (GpuProcess(100, "C", 14 * GIB), GpuProcess(4242, "C", 6 * GIB, sm_ratio=0.9))
    made.gpus[0].fields["processes"] = listed
    made.hidden_processes = 1
    finding = found(watch(made, 60, RULE)[0], RULE)
    assert finding.severity is Severity.NOTICE
    assert "outside this container" in finding.text.title
    assert finding.confidence is Confidence.POSSIBLE


def test_an_entry_of_a_process_that_has_ended_is_nothing():
    made = scene(None)
    made.gpus[0].fields["processes"] = (GpuProcess(100, "C", 14 * GIB), GpuProcess(4242, "C", 6 * GIB))
    assert not watch(made, 60, RULE)[1].alarms


def test_ranks_on_the_same_card_of_one_launcher_are_no_neighbours():
    made = scene(other(parent_pid=50, command="python train.py --rank 1"))
    made.processes[0].parent_pid = 50
    assert not watch(made, 60, RULE)[1].alarms


def test_it_ends_after_a_minute_without():
    bench = Watch(RULE)
    made = scene(other(until=60.0))
    assert bench.run(made, 62).findings
    assert not bench.run(made, 70, begin=62).findings


def test_an_unreadable_process_list_abstains():
    made = scene(None)
    made.gpus[0].fields |= {"processes": None, "absent": {"processes": "no permission"}}
    assert "no permission" in reason(watch(made, 100, RULE)[0], RULE)


def test_names_from_outside_are_made_safe():
    finding = found(watch(scene(other(command="python \x1b[31mevil.py")), 60, RULE)[0], RULE)
    assert "\x1b" not in finding.text.title + str(evidence(finding)["command"])
