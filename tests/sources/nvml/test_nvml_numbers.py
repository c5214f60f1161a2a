"""Impossible values: discarded and counted, never clamped, and alone."""

from types import SimpleNamespace

import pytest
from fake_nvml import Fail
from hypothesis import given
from hypothesis import strategies as st

from gpuwatch.sources.nvml.builder import Builder
from gpuwatch.sources.nvml.fields import number
from gpuwatch.sources.nvml.ranges import RANGES, is_blank

BLANKS = (
    140737488355328.0,
    9223372036854775792,
    9223372036854775794,
    9223372036854776000,
    18446744073709551615,
    float(2**64),
    2147483632,
)


@pytest.mark.parametrize("value", [4294967295, 808334905, 686103, 2619, 1980, 101])
def test_b052_impossible_utilization_is_discarded_and_counted(rig, value):
    machine = rig()
    machine.api.answers[0]["nvmlDeviceGetUtilizationRates"] = SimpleNamespace(gpu=value, memory=40)
    gpu = machine.tick().gpus[0]
    assert gpu.utilization_ratio is None
    assert gpu.memory_utilization_ratio == 0.4
    assert gpu.rejected_count == 1
    assert "discarded" in gpu.absent["utilization_ratio"]
    machine.api.answers[0]["nvmlDeviceGetUtilizationRates"] = SimpleNamespace(gpu=75, memory=40)
    gpu = machine.tick().gpus[0]
    assert gpu.utilization_ratio == 0.75
    assert gpu.rejected_count == 1


@pytest.mark.parametrize("value", BLANKS)
def test_b053_blank_codes_read_as_not_available(rig, value):
    machine = rig()
    machine.api.fields[0][82] = (0, float(value))
    gpu = machine.tick().gpus[0]
    assert gpu.memory_temperature_c is None
    assert gpu.absent["memory_temperature_c"] == "the driver has no value"
    assert gpu.rejected_count == 0


def test_b056_power_above_the_limit_is_shown_honestly(rig):
    machine = rig()
    machine.api.answers[0] |= {
        "nvmlDeviceGetPowerUsage": 228_820,
        "nvmlDeviceGetEnforcedPowerLimit": 210_000,
        "nvmlDeviceGetPowerManagementDefaultLimit": Fail(999),
    }
    tick = machine.tick()
    assert (tick.gpus[0].power_w, tick.gpus[0].power_limit_w) == (228.82, 210)
    assert tick.infos[0].power_limit_default_w is None
    assert tick.infos[0].absent["power_limit_default_w"]


def test_b058_one_absurd_sample_between_two_normal_ones_leaves_no_trace_in_the_figures(rig):
    machine = rig()
    machine.tick()
    machine.api.answers[0]["nvmlDeviceGetTemperatureV"] = 3000
    machine.api.answers[0]["nvmlDeviceGetPowerUsage"] = 4_000_000_000
    machine.api.answers[0]["nvmlDeviceGetClockInfo"] = 4_000_000
    gpu = machine.tick().gpus[0]
    assert (gpu.temperature_c, gpu.power_w, gpu.sm_clock_mhz) == (None, None, None)
    assert gpu.rejected_count == 4


def test_used_memory_above_the_total_is_discarded(rig):
    machine = rig()
    machine.api.answers[0]["nvmlDeviceGetMemoryInfo"] = SimpleNamespace(total=100, used=101, reserved=1)
    gpu = machine.tick().gpus[0]
    assert (gpu.memory_total_bytes, gpu.memory_used_bytes) == (100, None)
    assert gpu.rejected_count == 1


def test_power_ten_times_the_limit_is_garbage(rig):
    machine = rig()
    machine.api.answers[0]["nvmlDeviceGetEnforcedPowerLimit"] = 70_000
    machine.api.answers[0]["nvmlDeviceGetPowerUsage"] = 900_000
    assert machine.tick().gpus[0].power_w is None


def test_a_fan_slightly_above_full_speed_is_real_and_a_broken_one_is_alone(rig):
    machine = rig()
    machine.api.answers[0]["nvmlDeviceGetFanSpeed_v2"] = lambda fan: 105 if fan == 0 else 6553
    gpu = machine.tick().gpus[0]
    assert (gpu.fan_ratio, gpu.fan_ratios) == (1.05, (1.05,))
    assert gpu.rejected_count == 1


def test_impossible_points_of_the_sample_ring_are_dropped_and_counted(rig):
    machine = rig()
    now_us = int(machine.time.clock.wall_s() * 1e6)
    machine.api.samples[0][1] = [(now_us - 300_000, 50), (now_us - 150_000, 4294967295), (now_us, 70)]
    gpu = machine.tick().gpus[0]
    assert gpu.utilization_burst.values == (0.5, 0.7)
    assert gpu.rejected_count == 1


def test_b041_each_call_may_fail_alone(rig):
    """Each function in turn answers "not supported": every other figure stays what it was."""
    whole = rig().tick().gpus[0]
    fields = [
        name
        for name in RANGES
        if getattr(whole, name) is not None and name not in {"fan_ratio", "power_limit_w"}
    ]
    functions = [name for name in rig().api.answers[0] if name.startswith("nvmlDeviceGet")]
    for function in functions:
        machine = rig()
        machine.api.answers[0][function] = Fail(3)
        gpu = machine.tick().gpus[0]
        lost = [name for name in fields if getattr(gpu, name) != getattr(whole, name)]
        assert len(lost) <= 3, (function, lost)
        assert all(gpu.absent.get(name) for name in lost), (function, lost)


def test_b100_one_failing_field_of_the_batch_leaves_the_others(rig):
    machine = rig()
    machine.api.field_errors[0] = {83: 999, 82: 3}
    gpu = machine.tick().gpus[0]
    assert (gpu.energy_j, gpu.memory_temperature_c) == (None, None)
    assert gpu.power_cap_time_ns == 10**9
    machine.api.field_errors[0] = {}
    gpu = machine.tick().gpus[0]
    assert gpu.energy_j == 5000
    assert gpu.memory_temperature_c is None


@pytest.mark.parametrize("kind", [7, 99])
def test_an_unknown_value_type_is_no_number(kind):
    assert number(kind, object()) != number(kind, object())


def test_signed_field_types_are_read_by_their_member(rig):
    machine = rig()
    machine.api.fields[0][82] = (5, 44)
    assert machine.tick().gpus[0].memory_temperature_c == 44


@given(st.floats(allow_nan=True, allow_infinity=True))
def test_what_is_accepted_is_within_the_limits(value):
    for field, (low, high) in RANGES.items():
        out = Builder()
        if out.put(field, value):
            assert low <= value <= high
            assert not out.absent
        else:
            assert field not in out.values
            assert out.absent[field]


@given(st.integers(min_value=0, max_value=2**47 - 1))
def test_ordinary_counters_are_no_blank_codes(value):
    assert is_blank(value) == (0x7FFFFFF0 <= value <= 0x7FFFFFFF)
