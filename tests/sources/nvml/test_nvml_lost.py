"""One GPU lost, sick or back: its own state, its last words, nobody else's trouble."""

import pytest
from fake_nvml import Fail, FakeApi

from gpuwatch.model import DriverState, GpuProcess, GpuState


def break_gpu(api: FakeApi, gpu: int, code: int) -> dict:
    whole = dict(api.answers[gpu])
    api.answers[gpu].update({name: Fail(code) for name in whole})
    return whole


def test_b019_a_lost_card_at_start_costs_one_row(rig):
    machine = rig(3)
    machine.api.system["nvmlDeviceGetHandleByIndex"] = lambda index: Fail(15) if index == 1 else index
    tick = machine.tick()
    assert [gpu.status.state for gpu in tick.gpus] == [GpuState.OK, GpuState.LOST, GpuState.OK]
    assert tick.driver.state is DriverState.OK


@pytest.mark.parametrize(("code", "word"), [(15, "lost"), (16, "reset")])
def test_b020_a_loss_is_an_event_with_the_last_figures(rig, code, word):
    machine = rig(2)
    process = type("Entry", (), {"pid": 4711, "usedGpuMemory": 1 << 30, "gpuInstanceId": 0xFFFFFFFF})()
    machine.api.answers[1]["nvmlDeviceGetComputeRunningProcesses_v3"] = [process]
    machine.tick(2)
    read_s = machine.last.gpus[1].read_s
    break_gpu(machine.api, 1, code)
    tick = machine.tick()
    event = machine.events[0]
    assert (event.kind, event.gpu, event.code) == ("gpu-lost", "GPU-00000001", code)
    for part in (word, "61 °C", "450 W", "1700 MHz", "4711"):
        assert part in event.message
    lost = tick.gpus[1]
    assert lost.status.state is GpuState.LOST
    assert lost.read_s == read_s
    assert lost.utilization_ratio == 0.75
    assert tick.gpus[0].status.state is GpuState.OK
    assert tick.gpus[0].read_s > read_s


def test_b023_all_calls_lost_within_one_sample_and_the_card_comes_back(rig):
    machine = rig(2)
    machine.tick(3)
    whole = break_gpu(machine.api, 1, 15)
    machine.api.system["nvmlDeviceGetHandleByIndex"] = lambda index: Fail(15) if index == 1 else index
    machine.tick(20)
    assert [event.kind for event in machine.events] == ["gpu-lost"]
    assert machine.last.gpus[1].status.state is GpuState.LOST
    machine.api.answers[1] = whole
    machine.api.system["nvmlDeviceGetHandleByIndex"] = lambda index: index
    tick = machine.tick(11)
    assert [event.kind for event in machine.events] == ["gpu-back"]
    assert tick.gpus[1].status.state is GpuState.OK
    assert tick.gpus[1].uuid == "GPU-00000001"


def test_a_lost_gpu_is_asked_rarely(rig):
    machine = rig(2)
    machine.tick()
    break_gpu(machine.api, 1, 15)
    machine.api.system["nvmlDeviceGetHandleByIndex"] = lambda index: Fail(15) if index == 1 else index
    machine.tick()
    machine.api.calls.clear()
    machine.tick(40)
    assert machine.api.count("nvmlDeviceGetHandleByIndex", 1) <= 7
    assert machine.api.count("nvmlDeviceGetUtilizationRates", 0) == 40


def test_b022_no_handle_with_an_unknown_error(rig):
    machine = rig(2)
    machine.api.system["nvmlDeviceGetHandleByIndex"] = lambda index: Fail(999) if index == 1 else index
    status = machine.tick().gpus[1].status
    assert status.state is GpuState.NO_HANDLE
    assert "no handle: unknown" in status.message
    assert "999" in status.message
    assert "kernel log" in status.advice


def test_a_missing_power_cable_is_named(rig):
    machine = rig()
    machine.api.system["nvmlDeviceGetHandleByIndex"] = lambda index: Fail(8)
    status = machine.tick().gpus[0].status
    assert "power" in status.message
    assert "cable" in status.advice


def test_b025_no_data_is_unknown_never_healthy(rig):
    machine = rig(2)
    machine.tick()
    break_gpu(machine.api, 1, 999)
    tick = machine.tick(5)
    sick = tick.gpus[1]
    assert sick.status.state is GpuState.ERROR
    assert (sick.utilization_ratio, sick.power_w, sick.temperature_c) == (None, None, None)
    assert tick.driver.state is DriverState.OK
    assert tick.gpus[0].status.state is GpuState.OK


def test_b029_row_remapping_states_are_passed_on(rig):
    machine = rig()
    machine.api.answers[0]["nvmlDeviceGetRemappedRows"] = (0, 4, 1, 0)
    gpu = machine.tick().gpus[0]
    assert (gpu.remapped_uncorrected_count, gpu.remap_pending, gpu.remap_failed) == (4, True, False)


def test_b073_the_first_sample_decides_nothing(rig):
    machine = rig()
    machine.api.answers[0]["nvmlDeviceGetCurrPcieLinkGeneration"] = Fail(999)
    machine.api.answers[0]["nvmlDeviceGetUtilizationRates"] = Fail(999)
    gpu = machine.tick().gpus[0]
    assert (gpu.pcie_generation, gpu.utilization_ratio, gpu.power_w) == (None, None, 450.25)
    machine.api.answers[0]["nvmlDeviceGetCurrPcieLinkGeneration"] = 4
    assert machine.tick().gpus[0].pcie_generation == 4


def test_identity_of_a_gpu_that_never_opened_comes_from_the_kernel_module(rig):
    info = "Model: \t\t NVIDIA GeForce RTX 3090\nGPU UUID: \t GPU-feed\nBus Location: \t 0000:01:00.0\n"
    machine = rig(files={"/proc/driver/nvidia/gpus/0000:01:00.0/information": info})
    machine.api.system["nvmlDeviceGetHandleByIndex"] = lambda index: Fail(15)
    tick = machine.tick()
    assert (tick.infos[0].name, tick.infos[0].uuid) == ("NVIDIA GeForce RTX 3090", "GPU-feed")
    assert tick.gpus[0].uuid == "GPU-feed"


def test_events_are_handed_out_once(rig):
    machine = rig()
    machine.tick()
    break_gpu(machine.api, 0, 15)
    machine.tick()
    assert len(machine.events) == 1
    machine.tick()
    assert machine.events == []


def test_processes_of_a_reading_are_records(rig):
    machine = rig()
    entry = type("Entry", (), {"pid": 7, "usedGpuMemory": 5, "gpuInstanceId": 0xFFFFFFFF})()
    machine.api.answers[0]["nvmlDeviceGetComputeRunningProcesses_v3"] = [entry]
    assert machine.tick().gpus[0].processes == (GpuProcess(7, "C", 5, None, None, None),)
