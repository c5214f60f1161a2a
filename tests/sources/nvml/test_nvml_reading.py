"""What one tick of an ordinary GPU carries, and how often the driver is asked for what."""

import dataclasses
from types import SimpleNamespace

import pytest
from fake_nvml import Fail

from gpuwatch.model import GpuReading, GpuState


def test_every_figure_of_a_healthy_card_arrives_in_its_unit(rig):
    gpu = rig().tick().gpus[0]
    assert gpu.status.state is GpuState.OK
    assert (gpu.utilization_ratio, gpu.memory_utilization_ratio) == (0.75, 0.4)
    assert (gpu.power_w, gpu.energy_j, gpu.power_limit_w) == (450.25, 5000.0, 650.0)
    assert (gpu.memory_total_bytes, gpu.memory_used_bytes) == (80 << 30, 40 << 30)
    assert (gpu.sm_clock_mhz, gpu.memory_clock_mhz, gpu.p_state, gpu.event_reasons) == (1700, 2600, 0, 4)
    assert (gpu.temperature_c, gpu.memory_temperature_c, gpu.temperature_margin_c) == (61, 70, 26)
    assert (gpu.fan_ratio, gpu.fan_ratios) == (0.51, (0.5, 0.51))
    assert (gpu.power_cap_time_ns, gpu.sw_thermal_time_ns) == (10**9, 2 * 10**9)
    assert (gpu.pcie_tx_bytes, gpu.pcie_rx_bytes, gpu.pcie_counter_bits) == (1 << 40, 1 << 41, 64)
    assert (gpu.nvlink_tx_bytes, gpu.nvlink_rx_bytes) == (2048 * 1024, 4096 * 1024)
    assert (gpu.nvlink_active_count, gpu.nvlink_error_count) == (2, 2 * (1 + 0 + 4))
    assert gpu.power_source == "ac"
    assert gpu.processes == ()
    assert gpu.recovery_action == 0


def test_every_missing_figure_has_its_reason(rig):
    machine = rig()
    machine.api.answers[0] = {
        name: answer if name in {"nvmlDeviceGetUUID", "nvmlDeviceGetName"} else Fail(3)
        for name, answer in machine.api.answers[0].items()
    }
    gpu = machine.tick().gpus[0]
    missing = [
        field.name
        for field in dataclasses.fields(GpuReading)
        if getattr(gpu, field.name) is None and field.name != "processes_read_s"
    ]
    assert len(missing) > 40
    assert [name for name in missing if not gpu.absent.get(name)] == []


def test_b070_inventory_of_a_card_with_uuid_and_bus_id(rig):
    tick = rig().tick()
    info = tick.infos[0]
    assert (info.uuid, info.bus_id, info.brand) == ("GPU-00000000", "0000:01:00.0", "data centre")
    assert (info.architecture, info.compute_capability) == ("hopper", (9, 0))
    assert (info.power_limit_default_w, info.power_limit_min_w, info.power_limit_max_w) == (700, 200, 700)
    assert (info.nvlink_count, info.mig_enabled, info.persistence_mode) == (2, False, True)
    assert (tick.driver_info.version, tick.driver_info.cuda_version) == ("580.95.05", "13.0")


def test_unsupported_signals_are_asked_once(rig):
    machine = rig()
    machine.api.answers[0]["nvmlDeviceGetMarginTemperature"] = Fail(3)
    machine.api.answers[0]["nvmlDeviceGetTemperatureV"] = Fail(13)
    machine.api.answers[0]["nvmlDeviceGetTemperature"] = 58
    gpu = machine.tick(5).gpus[0]
    assert machine.api.count("nvmlDeviceGetMarginTemperature") == 1
    assert machine.api.count("nvmlDeviceGetTemperatureV") == 1
    assert gpu.temperature_c == 58
    assert gpu.absent["temperature_margin_c"] == "not supported by this GPU"


@pytest.mark.parametrize("code", [2, 3, 13, 25, 26])
def test_every_code_that_means_unsupported_is_remembered(rig, code):
    machine = rig()
    machine.api.answers[0]["nvmlDeviceGetPowerUsage"] = Fail(code)
    assert machine.tick(4).gpus[0].absent["power_w"]
    assert machine.api.count("nvmlDeviceGetPowerUsage") == 1


@pytest.mark.parametrize("code", [999, 10, 4])
def test_transient_errors_are_not_remembered(rig, code):
    machine = rig()
    machine.api.answers[0]["nvmlDeviceGetPowerUsage"] = Fail(code)
    gpu = machine.tick().gpus[0]
    assert gpu.power_w is None
    assert gpu.absent["power_w"]
    machine.api.answers[0]["nvmlDeviceGetPowerUsage"] = 200_000
    gpu = machine.tick().gpus[0]
    assert gpu.power_w == 200
    assert "power_w" not in gpu.absent


def test_cadence_of_lists_and_slow_signals(rig):
    machine = rig(2)
    machine.tick(30)
    assert machine.api.count("nvmlDeviceGetUtilizationRates", 0) == 30
    assert machine.api.count("nvmlDeviceGetComputeRunningProcesses_v3", 0) == 10
    assert machine.api.count("nvmlDeviceGetEnforcedPowerLimit", 0) == 3


def test_slow_signals_of_many_gpus_are_spread_over_the_ticks(rig):
    machine = rig(8)
    machine.tick()
    machine.api.calls.clear()
    most = 0
    for _ in range(20):
        before = machine.api.count("nvmlDeviceGetEnforcedPowerLimit")
        machine.tick()
        most = max(most, machine.api.count("nvmlDeviceGetEnforcedPowerLimit") - before)
    assert machine.api.count("nvmlDeviceGetEnforcedPowerLimit") >= 8
    assert most <= 2


def test_memory_version_1_is_the_fallback_and_says_so(rig):
    machine = rig()
    machine.api.answers[0]["nvmlDeviceGetMemoryInfo"] = _memory_v1_only
    gpu = machine.tick().gpus[0]
    assert (gpu.memory_total_bytes, gpu.memory_used_bytes) == (100, 60)
    assert "reserve" in gpu.absent["memory_reserved_bytes"]


def _memory_v1_only(*version):
    return Fail(13) if version else SimpleNamespace(total=100, used=60)


@pytest.mark.parametrize(
    ("version", "ids", "absent"),
    [
        ("580.95.05", {269: 7, 270: 8, 271: 9}, False),
        ("580.65.06", {251: 7, 252: 8, 253: 9}, False),
        ("575.57.08", {251: 7, 252: 8, 253: 9}, False),
        ("570.86.10", {75: 7}, True),
    ],
)
def test_throttle_time_fields_follow_the_driver_version(rig, version, ids, absent):
    machine = rig()
    machine.api.system["nvmlSystemGetDriverVersion"] = version
    for old in (269, 270, 271):
        del machine.api.fields[0][old]
    for identity, value in ids.items():
        machine.api.fields[0][identity] = (3, value)
    gpu = machine.tick().gpus[0]
    assert gpu.sw_thermal_time_ns == 7
    assert gpu.hw_thermal_time_ns == (None if absent else 8)
    if absent:
        assert "575" in gpu.absent["hw_thermal_time_ns"]


def test_older_binding_and_driver_use_the_old_names(rig):
    machine = rig()
    del machine.api.answers[0]["nvmlDeviceGetCurrentClocksEventReasons"]
    machine.api.answers[0]["nvmlDeviceGetCurrentClocksThrottleReasons"] = 0x20
    assert machine.tick(2).gpus[0].event_reasons == 0x20


def test_one_field_call_per_tick_without_the_unsupported_ones(rig):
    machine = rig()
    del machine.api.fields[0][82]
    asked = []
    original = machine.api._field_values
    machine.api._field_values = lambda gpu, ids: asked.append(len(ids)) or original(gpu, ids)
    machine.tick(4)
    batches = [count for count in asked if count > 6]  # smaller ones are of links and health
    assert len(batches) == 4
    assert batches[1] == batches[0] - 1


@pytest.mark.parametrize("field", [185, 186])
def test_power_comes_from_a_field_where_the_call_is_missing(rig, field):
    machine = rig()
    machine.api.answers[0]["nvmlDeviceGetPowerUsage"] = Fail(3)
    machine.api.fields[0][field] = (1, 123_000)
    assert machine.tick(2).gpus[0].power_w == 123


def test_gpu_instances_of_a_choice(rig):
    assert [info.index for info in rig(3, only=frozenset({1})).tick().infos] == [1]


def test_gpus_not_chosen_by_index_are_not_opened(rig):
    machine = rig(3, only=frozenset({1}))
    machine.tick(2)
    assert [first for name, first in machine.api.calls if name == "nvmlDeviceGetHandleByIndex"] == [1]


def test_choice_by_uuid(rig):
    assert [info.index for info in rig(3, only=frozenset({"GPU-00000002"})).tick().infos] == [2]
