"""Entry points for what a card does now: utilization, memory, power, temperature, clocks."""

import math
from typing import TYPE_CHECKING, Any

from gpuwatch.sources.simulated import codes
from gpuwatch.sources.simulated.entries import (
    entry,
    fixed_entry,
    metric_entry,
    need,
    number,
    percent,
    put,
    target,
    uint,
)
from gpuwatch.sources.simulated.gpu import SimulatedGpu
from gpuwatch.sources.simulated.models import MIB

if TYPE_CHECKING:
    from gpuwatch.sources.simulated.driver import SimulatedDriver


@entry("nvmlDeviceGetUtilizationRates")
def utilization(driver: "SimulatedDriver", handle: Any, out: Any) -> None:
    gpu = driver.gpu(handle)
    need(gpu.plan.mig is None, codes.NOT_SUPPORTED)
    gpu.check("util")
    rates = target(out)
    rates.gpu = percent(gpu.sampled("util"))
    rates.memory = percent(gpu.sampled("mem_util")) if gpu.supports("mem_util") else 0


def _engine(name: str, metric: str) -> None:
    @entry(name)
    def read(driver: "SimulatedDriver", handle: Any, out: Any, period: Any) -> None:
        gpu = driver.gpu(handle)
        need(gpu.plan.mig is None, codes.NOT_SUPPORTED)
        gpu.check(metric)
        put(out, percent(gpu.sampled(metric)))
        put(period, int(driver.scenario.util_sample_s * 1e6))


_engine("nvmlDeviceGetEncoderUtilization", "enc")
_engine("nvmlDeviceGetDecoderUtilization", "dec")
_engine("nvmlDeviceGetJpgUtilization", "jpg")
_engine("nvmlDeviceGetOfaUtilization", "ofa")


@entry("nvmlDeviceGetDynamicPstatesInfo")
def dynamic_p_states(driver: "SimulatedDriver", handle: Any, out: Any) -> None:
    gpu = driver.gpu(handle)
    gpu.check("util")
    info = target(out)
    for place, metric in enumerate(("util", "mem_util", "dec")):
        info.utilization[place].bIsPresent = 1
        info.utilization[place].percentage = percent(gpu.sampled(metric))


#: Sampling types of nvmlDeviceGetSamples: metric, scale, period's name, length of the ring.
_RINGS = {
    0: ("power", 1000.0, "power_sample_s", 120),
    1: ("util", 1.0, "util_sample_s", 100),
    2: ("mem_util", 1.0, "util_sample_s", 100),
    3: ("enc", 1.0, "util_sample_s", 100),
    4: ("dec", 1.0, "util_sample_s", 100),
    5: ("clock_sm", 1.0, "clock_sample_s", 100),
    6: ("clock_mem", 1.0, "clock_sample_s", 100),
    8: ("jpg", 1.0, "util_sample_s", 100),
    9: ("ofa", 1.0, "util_sample_s", 100),
}


@entry("nvmlDeviceGetSamples")
def samples(
    driver: "SimulatedDriver", handle: Any, kind: Any, last_seen: Any, value_type: Any, count: Any, out: Any
) -> None:
    """Means of whole periods, oldest first, only those after `last_seen`; Not Found if there are none."""
    gpu = driver.gpu(handle)
    need(0 <= number(kind) < 10)
    need(number(kind) in _RINGS, codes.NOT_SUPPORTED)
    metric, scale, period_name, length = _RINGS[number(kind)]
    utilization_ring = period_name == "util_sample_s"
    need(not (gpu.plan.mig is not None and utilization_ring), codes.NOT_SUPPORTED)
    gpu.check("samples")
    gpu.check(metric)
    put(value_type, 1)  # unsigned int
    if out is None:
        put(count, length)
        return
    period = getattr(driver.scenario, period_name)
    newest = gpu.last_sample(period)
    seen = number(last_seen)
    ends = [(k, int(gpu.sample_end_s(period, k) * 1e6)) for k in range(newest - length + 1, newest + 1)]
    fresh = [(k, stamp) for k, stamp in ends if stamp > seen][: number(target(count))]
    for place, (k, stamp) in enumerate(fresh):
        value = gpu.sample(metric, period, k) * scale
        out[place].timeStamp = stamp
        out[place].sampleValue.ullVal = percent(value) if utilization_ring else uint(value)
    put(count, len(fresh))
    need(fresh, codes.NOT_FOUND)


def _memory(driver: "SimulatedDriver", handle: Any) -> tuple[int, int, int]:
    """(total, reserved, used) bytes; used without the reserve, in pages of 64 KiB."""
    gpu, slot = driver.part(handle)
    gpu.check("mem_used")
    now = driver.timeline.now()
    if slot >= 0 and gpu.plan.mig:
        part = gpu.plan.mig[slot]
        total, reserved = part.memory_mib * MIB, 0.0
        mine = [p for p in driver.processes(gpu) if p.plan.gpu_instance == part.gpu_instance]
        used = float(sum(process.memory_bytes or 0 for process in mine))
    else:
        total = gpu.model.memory_mib * MIB
        reserved = min(max(gpu.wave("mem_reserved").at(now), 0.0), float(total))
        used = gpu.wave("mem_used").at(now)
    used = min(max(used, 0.0), total - reserved)
    return total, int(reserved), int(used) & ~0xFFFF


@entry("nvmlDeviceGetMemoryInfo")
def memory(driver: "SimulatedDriver", handle: Any, out: Any) -> None:
    total, reserved, used = _memory(driver, handle)
    info = target(out)
    info.total, info.free = total, total - reserved - used
    info.used = used + reserved  # the old call counts the reserve as used


@entry("nvmlDeviceGetMemoryInfo_v2")
def memory_v2(driver: "SimulatedDriver", handle: Any, out: Any) -> None:
    info = target(out)
    need(info.version in (2, 0x02000028), codes.VERSION_MISMATCH)
    total, reserved, used = _memory(driver, handle)
    info.total, info.reserved, info.used = total, reserved, used
    info.free = total - reserved - used


@entry("nvmlDeviceGetBAR1MemoryInfo")
def bar1(driver: "SimulatedDriver", handle: Any, out: Any) -> None:
    gpu, _ = driver.part(handle)
    info = target(out)
    total = gpu.model.bar1_mib * MIB
    used = int(min(max(gpu.value("bar1_used"), 0.0), total))
    info.bar1Total, info.bar1Used, info.bar1Free = total, used, total - used


@entry("nvmlDeviceGetTemperature")
def temperature(driver: "SimulatedDriver", handle: Any, sensor: Any, out: Any) -> None:
    put(out, uint(_temperature(driver.gpu(handle), number(sensor))))


@entry("nvmlDeviceGetTemperatureV")
def temperature_v(driver: "SimulatedDriver", handle: Any, out: Any) -> None:
    reading = target(out)
    reading.temperature = round(_temperature(driver.gpu(handle), reading.sensorType))


def _temperature(gpu: SimulatedGpu, sensor: int) -> float:
    need(sensor in (0, 1))
    return gpu.value("hotspot" if sensor else "temp")


@entry("nvmlDeviceGetTemperatureThreshold")
def threshold(driver: "SimulatedDriver", handle: Any, which: Any, out: Any) -> None:
    gpu = driver.gpu(handle)
    shutdown, slowdown, gpu_max, memory_max, wanted = gpu.model.temperatures
    limits = {0: shutdown, 1: slowdown, 2: memory_max, 3: gpu_max}
    if wanted:
        limits |= {4: 65, 5: wanted, 6: wanted + 7}
    found = limits.get(number(which))
    need(found, codes.NOT_SUPPORTED)
    put(out, int(found or 0))


@entry("nvmlDeviceGetMarginTemperature")
def margin(driver: "SimulatedDriver", handle: Any, out: Any) -> None:
    gpu = driver.gpu(handle)
    gpu_max = gpu.model.temperatures[2]
    # Cards before Ada, and GeForce cards, have no margin.
    need(gpu.model.architecture >= 8 and gpu_max and not gpu.model.geforce, codes.NOT_SUPPORTED)
    target(out).marginTemperature = gpu_max - round(gpu.value("temp"))


@entry("nvmlDeviceGetThermalSettings")
def thermal_settings(driver: "SimulatedDriver", handle: Any, sensor: Any, out: Any) -> None:
    gpu = driver.gpu(handle)
    info = target(out)
    info.count = 1
    info.sensor[0].controller = 1
    info.sensor[0].defaultMaxTemp = gpu.model.temperatures[0] or 127
    info.sensor[0].currentTemp = round(gpu.value("temp"))
    info.sensor[0].target = 1


metric_entry("nvmlDeviceGetFanSpeed", "fan")


def _fan(driver: "SimulatedDriver", handle: Any, fan: int, metric: str) -> int:
    gpu = driver.gpu(handle)
    need(not gpu.model.fan_count or 0 <= fan < gpu.model.fan_count)
    return uint(gpu.value(metric))


@entry("nvmlDeviceGetFanSpeed_v2", "nvmlDeviceGetTargetFanSpeed")
def fan_speed(driver: "SimulatedDriver", handle: Any, fan: Any, out: Any) -> None:
    put(out, _fan(driver, handle, number(fan), "fan"))


@entry("nvmlDeviceGetFanSpeedRPM")
def fan_rpm(driver: "SimulatedDriver", handle: Any, out: Any) -> None:
    reading = target(out)
    reading.speed = _fan(driver, handle, reading.fan, "fan_rpm")


@entry("nvmlDeviceGetMinMaxFanSpeed")
def fan_range(driver: "SimulatedDriver", handle: Any, low: Any, high: Any) -> None:
    need(driver.gpu(handle).model.fan_count, codes.NOT_SUPPORTED)
    put(low, 30)
    put(high, 100)


@entry("nvmlDeviceGetPowerUsage")
def power_usage(driver: "SimulatedDriver", handle: Any, out: Any) -> None:
    gpu = driver.gpu(handle)
    gpu.check("power")
    put(out, uint(gpu.power(gpu.model.averages_power) * 1000))


@entry("nvmlDeviceGetTotalEnergyConsumption")
def energy(driver: "SimulatedDriver", handle: Any, out: Any) -> None:
    put(out, energy_mj(driver.gpu(handle)))


def energy_mj(gpu: SimulatedGpu) -> int:
    gpu.check("energy")
    return int(gpu.counter_start["energy"] + gpu.integral("power") * 1000)


metric_entry("nvmlDeviceGetPowerManagementLimit", "power_limit", 1000)
metric_entry("nvmlDeviceGetEnforcedPowerLimit", "power_limit", 1000)
fixed_entry("nvmlDeviceGetPowerManagementDefaultLimit", lambda gpu: gpu.model.power[0] * 1000 or None)


@entry("nvmlDeviceGetPowerManagementLimitConstraints")
def power_range(driver: "SimulatedDriver", handle: Any, low: Any, high: Any) -> None:
    power = driver.gpu(handle).model.power
    need(power[0], codes.NOT_SUPPORTED)
    put(low, int(power[1] * 1000))
    put(high, int(power[2] * 1000))


_CLOCKS = ("clock_sm", "clock_sm", "clock_mem", "clock_video")


def _clock_metric(kind: int) -> str:
    need(0 <= kind < 4)
    return _CLOCKS[kind]


def _highest_clock(gpu: SimulatedGpu, kind: int) -> int:
    if kind == 2:
        return gpu.model.memory_clocks[0]
    return gpu.model.video_clock if kind == 3 else gpu.model.sm_clocks[0]


@entry("nvmlDeviceGetClockInfo")
def clock(driver: "SimulatedDriver", handle: Any, kind: Any, out: Any) -> None:
    gpu = driver.gpu(handle)
    which = number(kind)
    put(out, uint(min(gpu.value(_clock_metric(which)), _highest_clock(gpu, which) or math.inf)))


@entry("nvmlDeviceGetMaxClockInfo")
def max_clock(driver: "SimulatedDriver", handle: Any, kind: Any, out: Any) -> None:
    gpu = driver.gpu(handle)
    need(0 <= number(kind) < 4)
    highest = _highest_clock(gpu, number(kind))
    need(highest, codes.NOT_SUPPORTED)
    put(out, highest)


@entry(
    "nvmlDeviceGetMaxCustomerBoostClock",
    "nvmlDeviceGetApplicationsClock",
    "nvmlDeviceGetDefaultApplicationsClock",
)
def customer_clock(driver: "SimulatedDriver", handle: Any, kind: Any, out: Any) -> None:
    gpu = driver.gpu(handle)
    need(not gpu.model.geforce and not gpu.model.unified, codes.NOT_SUPPORTED)
    max_clock(driver, handle, kind, out)


@entry("nvmlDeviceGetClock")
def clock_by_id(driver: "SimulatedDriver", handle: Any, kind: Any, which: Any, out: Any) -> None:
    if number(which) == 0:
        clock(driver, handle, kind, out)
    else:
        customer_clock(driver, handle, kind, out)


metric_entry("nvmlDeviceGetPerformanceState", "pstate")
metric_entry("nvmlDeviceGetPowerState", "pstate")


@entry("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons")
def reasons(driver: "SimulatedDriver", handle: Any, out: Any) -> None:
    put(out, int(max(0.0, driver.gpu(handle).value("throttle"))))


@entry("nvmlDeviceGetSupportedClocksEventReasons", "nvmlDeviceGetSupportedClocksThrottleReasons")
def supported_reasons(driver: "SimulatedDriver", handle: Any, out: Any) -> None:
    gpu = driver.gpu(handle)
    gpu.check("throttle")
    put(out, 0x1ED if gpu.model.geforce or gpu.model.unified else 0x1FF)


@entry("nvmlDeviceGetViolationStatus")
def violation(driver: "SimulatedDriver", handle: Any, policy: Any, out: Any) -> None:
    gpu = driver.gpu(handle)
    which = number(policy)
    need(which <= 5 or which in (10, 11))
    status = target(out)
    status.referenceTime = int(driver.timeline.wall(driver.timeline.now()) * 1e6)
    status.violationTime = policy_ns(gpu, which)


#: Bits behind each performance policy (NVML_PERF_POLICY_*), and behind single reasons from 100 on.
_POLICIES = {
    0: (2,),
    1: (5, 6),
    2: (4,),
    3: (9,),
    4: (0,),
    5: (10,),
    10: (2, 3, 5, 6),
    11: (2, 3, 5, 6),
    100: (5,),
    101: (6,),
    102: (7,),
}


def policy_ns(gpu: SimulatedGpu, policy: int) -> int:
    """Nanoseconds under a policy since the driver was loaded."""
    gpu.check("violation")
    times = gpu.reason_times()
    return int(sum(times[bit] for bit in _POLICIES[policy]) * 1e9)
