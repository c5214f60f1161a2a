"""MIG instances, unified memory, laptops that sleep, many GPUs."""

from types import SimpleNamespace

import pytest
from fake_nvml import Fail

from gpuwatch.model import DriverState, GpuState

BUS = "0000:01:00.0"
GPU_DIR = f"/proc/driver/nvidia/gpus/{BUS}"
STATUS = f"/sys/bus/pci/devices/{BUS}/power/runtime_status"
CONTROL = f"/sys/bus/pci/devices/{BUS}/power/control"


def mig_parent(machine):
    """GPU 0 is split in two; place 1 of three is empty. Instances are handles 1 and 2."""
    parent = machine.api.answers[0]
    parent["nvmlDeviceGetMigMode"] = [1, 1]
    parent["nvmlDeviceGetUtilizationRates"] = Fail(3)
    parent["nvmlDeviceGetPowerUsage"] = 178_000
    parent["nvmlDeviceGetEnforcedPowerLimit"] = 500_000
    parent["nvmlDeviceGetMemoryInfo"] = SimpleNamespace(total=81920 << 20, used=24205 << 20, reserved=0)
    parent["nvmlDeviceGetMaxMigDeviceCount"] = 3
    parent["nvmlDeviceGetMigDeviceHandleByIndex"] = lambda place: {0: 1, 1: Fail(6), 2: 2}[place]
    for number, profile in ((1, "3g.40gb"), (2, "1g.10gb")):
        instance = machine.api.answers[number]
        instance["nvmlDeviceGetUUID"] = f"MIG-{number}"
        instance["nvmlDeviceGetName"] = f"NVIDIA A100-SXM4-80GB MIG {profile}"
        instance["nvmlDeviceGetGpuInstanceId"] = number
        instance["nvmlDeviceGetComputeInstanceId"] = 0
        instance["nvmlDeviceGetMemoryInfo"] = SimpleNamespace(total=40 << 30, used=number << 30)
    machine.api.system["nvmlDeviceGetCount"] = 1
    return machine


def test_b046_instances_are_listed_under_their_parent(rig):
    gpu = mig_parent(rig(3)).tick().gpus[0]
    assert [(one.uuid, one.profile, one.gpu_instance) for one in gpu.mig] == [
        ("MIG-1", "3g.40gb", 1),
        ("MIG-2", "1g.10gb", 2),
    ]
    assert gpu.mig[0].memory_used_bytes == 1 << 30
    assert gpu.utilization_ratio is None
    assert "MIG" in gpu.absent["utilization_ratio"]
    assert (gpu.power_w, gpu.power_limit_w, gpu.memory_used_bytes) == (178, 500, 24205 << 20)


def test_b046_processes_carry_their_instance(rig):
    machine = mig_parent(rig(3))
    entry = SimpleNamespace(pid=11, usedGpuMemory=1 << 30, gpuInstanceId=1, computeInstanceId=0)
    machine.api.answers[0]["nvmlDeviceGetComputeRunningProcesses_v3"] = [entry]
    process = machine.tick().gpus[0].processes[0]
    assert (process.gpu_instance, process.compute_instance, process.sm_ratio) == (1, 0, None)


def test_b047_power_belongs_to_the_card_alone(rig):
    machine = mig_parent(rig(3))
    gpu = machine.tick().gpus[0]
    assert not hasattr(gpu.mig[0], "power_w")
    assert machine.api.count("nvmlDeviceGetPowerUsage", 1) == 0


def test_the_sample_ring_of_a_split_gpu_is_not_asked(rig):
    machine = mig_parent(rig(3))
    machine.tick(3)
    assert machine.api.count("nvmlDeviceGetSamples") == 0


def unified(machine):
    answers = machine.api.answers[0]
    answers["nvmlDeviceGetName"] = "NVIDIA GB10"
    answers["nvmlDeviceGetMemoryInfo"] = Fail(3)
    return answers


def test_unified_memory_is_told_from_a_card_without_a_memory_size(rig):
    machine = rig()
    unified(machine)
    assert machine.tick().infos[0].unified_memory is True
    machine = rig()
    machine.api.answers[0]["nvmlDeviceGetMemoryInfo"] = Fail(3)
    assert machine.tick().infos[0].unified_memory is False


@pytest.mark.parametrize("memory", [Fail(3), SimpleNamespace(total=0, used=0, reserved=0)])
def test_b031_b032_b034_unified_memory_has_no_figures_of_the_card(rig, memory):
    machine = rig()
    unified(machine)["nvmlDeviceGetMemoryInfo"] = memory
    gpu = machine.tick().gpus[0]
    assert (gpu.memory_total_bytes, gpu.memory_used_bytes, gpu.memory_reserved_bytes) == (None, None, None)
    assert "unified memory" in gpu.absent["memory_used_bytes"]
    assert gpu.utilization_ratio == 0.75


def test_b035_no_link_figures_of_an_on_package_gpu(rig):
    machine = rig()
    unified(machine)
    tick = machine.tick()
    assert (tick.gpus[0].pcie_generation, tick.gpus[0].pcie_width) == (None, None)
    assert (tick.infos[0].pcie_generation_max, tick.infos[0].pcie_width_max) == (None, None)
    assert "internal connection" in tick.gpus[0].absent["pcie_generation"]


@pytest.mark.parametrize("first", [Fail(999), Fail(3)])
def test_b037_utilization_that_fails_is_unknown_not_zero(rig, first):
    machine = rig()
    machine.api.answers[0]["nvmlDeviceGetUtilizationRates"] = first
    assert machine.tick().gpus[0].utilization_ratio is None


def test_b037_a_counter_stuck_at_zero_under_power_does_not_work(rig):
    machine = rig()
    machine.api.answers[0]["nvmlDeviceGetUtilizationRates"] = SimpleNamespace(gpu=0, memory=0)
    assert machine.tick(20).gpus[0].utilization_ratio == 0
    gpu = machine.tick(15).gpus[0]
    assert gpu.utilization_ratio is None
    assert "450 W" in gpu.absent["utilization_ratio"]
    machine.api.answers[0]["nvmlDeviceGetUtilizationRates"] = SimpleNamespace(gpu=3, memory=0)
    assert machine.tick().gpus[0].utilization_ratio == 0.03


def test_b037_an_idle_card_stays_at_zero(rig):
    machine = rig()
    machine.api.answers[0]["nvmlDeviceGetUtilizationRates"] = SimpleNamespace(gpu=0, memory=0)
    machine.api.answers[0]["nvmlDeviceGetPowerUsage"] = 70_000
    assert machine.tick(60).gpus[0].utilization_ratio == 0


def test_b040_the_enforced_limit_comes_first(rig):
    machine = rig()
    machine.api.answers[0]["nvmlDeviceGetPowerManagementLimit"] = Fail(3)
    machine.api.answers[0]["nvmlDeviceGetEnforcedPowerLimit"] = 115_000
    assert machine.tick().gpus[0].power_limit_w == 115
    machine = rig()
    machine.api.answers[0]["nvmlDeviceGetPowerManagementLimit"] = 120_000
    machine.api.answers[0]["nvmlDeviceGetEnforcedPowerLimit"] = Fail(3)
    assert machine.tick().gpus[0].power_limit_w == 120


def laptop(rig, status="suspended"):
    files = {
        f"{GPU_DIR}/information": "Model: \t NVIDIA GeForce RTX 4060 Laptop GPU\nGPU UUID: \t GPU-????????\n",
        STATUS: status,
        CONTROL: "auto",
    }
    return rig(files=files)


def battery(machine):
    supply = "/sys/class/power_supply"
    machine.tree.files |= {
        f"{supply}/AC/type": "Mains\n",
        f"{supply}/AC/online": "0\n",
        f"{supply}/BAT0/type": "Battery\n",
        f"{supply}/BAT0/status": "Discharging\n",
    }


def test_b097_a_suspended_gpu_is_not_touched(rig):
    machine = laptop(rig)
    tick = machine.tick(5)
    assert machine.api.calls == []
    assert tick.driver.state is DriverState.OK
    assert tick.gpus[0].status.state is GpuState.ASLEEP
    assert tick.infos[0].name == "NVIDIA GeForce RTX 4060 Laptop GPU"


def test_b097_when_something_wakes_it_it_is_read(rig):
    machine = laptop(rig)
    machine.tick(5)
    machine.tree.files[STATUS] = "active\n"
    tick = machine.tick()
    assert tick.gpus[0].status.state is GpuState.OK
    assert tick.gpus[0].uuid == "GPU-00000000"


def test_b098_on_battery_an_unused_gpu_is_let_go(rig):
    machine = laptop(rig, "active")
    battery(machine)
    machine.tick(29)
    assert machine.api.count("nvmlShutdown") == 0
    tick = machine.tick(5)
    assert machine.api.count("nvmlShutdown") == 1
    assert tick.gpus[0].status.state is GpuState.ASLEEP
    machine.tree.files[STATUS] = "suspended"
    machine.api.calls.clear()
    tick = machine.tick(120)
    assert machine.api.calls == []
    assert tick.gpus[0].status.state is GpuState.ASLEEP
    machine.tree.files[STATUS] = "active"
    assert machine.tick(2).gpus[0].status.state is GpuState.OK


def test_b098_a_gpu_that_stays_awake_anyway_is_read_on(rig):
    machine = laptop(rig, "active")
    battery(machine)
    machine.tick(35)
    assert machine.api.count("nvmlShutdown") == 1
    tick = machine.tick(120)
    assert tick.gpus[0].status.state is GpuState.OK
    assert machine.api.count("nvmlShutdown") == 1


def test_b098_on_mains_or_with_a_process_it_is_kept(rig):
    machine = laptop(rig, "active")
    machine.tick(90)
    assert machine.api.count("nvmlShutdown") == 0
    machine = laptop(rig, "active")
    battery(machine)
    entry = SimpleNamespace(pid=7, usedGpuMemory=1, gpuInstanceId=0xFFFFFFFF, computeInstanceId=0xFFFFFFFF)
    machine.api.answers[0]["nvmlDeviceGetComputeRunningProcesses_v3"] = [entry]
    machine.tick(90)
    assert machine.api.count("nvmlShutdown") == 0


@pytest.mark.parametrize("count", [6, 8, 16])
def test_b086_b088_every_gpu_of_many_is_read_every_tick(rig, count):
    machine = rig(count)
    tick = machine.tick(3)
    assert [gpu.index for gpu in tick.gpus] == list(range(count))
    assert {gpu.read_s for gpu in tick.gpus} == {machine.time.now_s - 1}
    assert len({gpu.uuid for gpu in tick.gpus}) == count


def test_opening_many_slow_gpus_does_not_hold_the_first_ones_back(rig):
    machine = rig(8)

    def slow(index):
        machine.time.advance(1.2)
        return index

    machine.api.system["nvmlDeviceGetHandleByIndex"] = slow
    assert len(machine.tick().gpus) == 1
    tick = machine.tick(7)
    assert len(tick.gpus) == 8
    assert machine.api.count("nvmlDeviceGetUtilizationRates", 0) == 8
