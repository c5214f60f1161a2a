"""The driver's process lists: merged, doubted, with shares only where they can be told."""

from types import SimpleNamespace

import pytest
from fake_nvml import Fail

NOT_MIG = 0xFFFF_FFFF
COMPUTE = "nvmlDeviceGetComputeRunningProcesses_v3"
GRAPHICS = "nvmlDeviceGetGraphicsRunningProcesses_v3"
MPS = "nvmlDeviceGetMPSComputeRunningProcesses_v3"
SHARES = "nvmlDeviceGetProcessUtilization"


def entry(pid, memory=1 << 30):
    return SimpleNamespace(pid=pid, usedGpuMemory=memory, gpuInstanceId=NOT_MIG, computeInstanceId=NOT_MIG)


def share(machine, pid, percent, age_s=0.5):
    stamp = int((machine.time.clock.wall_s() - age_s) * 1e6)
    return SimpleNamespace(pid=pid, timeStamp=stamp, smUtil=percent)


def read(machine, ticks=1):
    return machine.tick(ticks).gpus[0]


def test_lists_are_merged_by_process(rig):
    machine = rig()
    machine.api.answers[0] |= {
        COMPUTE: [entry(10), entry(20, None)],
        GRAPHICS: [entry(20, 5), entry(30)],
        MPS: [entry(40)],
    }
    found = {process.pid: (process.kind, process.memory_bytes) for process in read(machine).processes}
    assert found == {10: ("C", 1 << 30), 20: ("C+G", 5), 30: ("G", 1 << 30), 40: ("MPS", 1 << 30)}


@pytest.mark.parametrize("memory", [None, 2**64 - 1, 2**64 - 2, 9223372036854775794])
def test_b038_memory_that_is_not_available_is_no_number(rig, memory):
    machine = rig()
    machine.api.answers[0][COMPUTE] = [entry(10, memory)]
    gpu = read(machine)
    assert gpu.processes[0].memory_bytes is None
    assert gpu.memory_used_bytes == 40 << 30


@pytest.mark.parametrize(
    "pids", [[10, 0, 4294967295, 4294967295, 20], [10, 1 << 30], [0], [10, 4294967295, 30]]
)
def test_b049_b050_a_garbled_list_is_dropped_whole_with_its_reason(rig, pids):
    machine = rig()
    machine.api.answers[0][COMPUTE] = [entry(pid) for pid in pids]
    gpu = read(machine)
    assert gpu.processes is None
    assert "garbled" in gpu.absent["processes"]
    machine.api.answers[0][COMPUTE] = [entry(10)]
    assert [process.pid for process in read(machine, 4).processes] == [10]


def test_b064_b065_pids_are_passed_on_as_the_driver_says_without_looking_at_them(rig):
    machine = rig()
    machine.api.answers[0][COMPUTE] = [entry(4145)]
    assert read(machine).processes[0].pid == 4145
    assert not [path for path in machine.tree.reads if path.startswith("/proc/4145")]


def test_a_driver_without_the_third_version_is_asked_for_the_second(rig):
    machine = rig()
    del machine.api.answers[0][COMPUTE]
    machine.api.answers[0]["nvmlDeviceGetComputeRunningProcesses_v2"] = [entry(10)]
    assert [process.pid for process in read(machine, 8).processes] == [10]


def test_lists_not_supported_at_all_have_a_reason(rig):
    machine = rig()
    for name in (COMPUTE, GRAPHICS, MPS):
        machine.api.answers[0][name] = Fail(3)
    gpu = read(machine)
    assert gpu.processes is None
    assert gpu.absent["processes"] == "not supported by this GPU"


def test_a_failing_graphics_list_leaves_the_compute_list(rig):
    machine = rig()
    machine.api.answers[0] |= {COMPUTE: [entry(10)], GRAPHICS: Fail(999)}
    assert [process.pid for process in read(machine).processes] == [10]


def test_b062_shares_are_the_processes_own_and_a_listed_process_without_samples_has_zero(rig):
    machine = rig()
    machine.api.answers[0] |= {
        COMPUTE: [entry(10), entry(20)],
        SHARES: lambda last: [share(machine, 10, 30), share(machine, 10, 50), share(machine, 99, 70)],
    }
    shares = {process.pid: process.sm_ratio for process in read(machine).processes}
    assert shares == {10: 0.4, 20: 0.0}


@pytest.mark.parametrize("answer", [Fail(6), Fail(0), Fail(3), []])
def test_no_samples_are_unknown_not_zero(rig, answer):
    machine = rig()
    machine.api.answers[0] |= {COMPUTE: [entry(10)], SHARES: answer}
    assert read(machine).processes[0].sm_ratio is None


def test_old_and_impossible_shares_are_dropped(rig):
    machine = rig()
    machine.api.answers[0] |= {
        COMPUTE: [entry(10)],
        SHARES: lambda last: [
            share(machine, 10, 40),
            share(machine, 10, 4294967295),
            share(machine, 10, 90, age_s=500),
        ],
    }
    assert read(machine).processes[0].sm_ratio == 0.4


def test_the_newer_function_is_tried_where_the_older_is_missing(rig):
    machine = rig()
    machine.api.answers[0] |= {
        COMPUTE: [entry(10)],
        SHARES: Fail(3),
        "nvmlDeviceGetProcessesUtilizationInfo": lambda last: [share(machine, 10, 25)],
    }
    assert read(machine).processes[0].sm_ratio == 0.25
    read(machine, 8)
    assert machine.api.count(SHARES) == 1
