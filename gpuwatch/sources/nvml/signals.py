"""The table of signals that are one or a few driver calls each, read every tick or every ten seconds.

A signal has one or more ways to read it, tried in order until the driver knows one. A way asks the
driver and puts what it answers; it raises the binding's errors and lets the caller sort them out.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gpuwatch.sources.nvml import errors
from gpuwatch.sources.nvml.builder import Builder

#: ask(function name, arguments after the handle)
Ask = Callable[..., Any]
Way = Callable[[Ask, Builder], None]

MEMORY_V2 = 0x02000028  # nvml.h, nvmlMemory_v2: sizeof(nvmlMemory_v2_t) | 2 << 24
SENSOR_GPU = 0  # nvmlTemperatureSensors_t
CLOCK_SM, CLOCK_MEMORY = 1, 2  # nvmlClockType_t
ECC_CORRECTED, ECC_UNCORRECTED = 0, 1  # nvmlMemoryErrorType_t
ECC_VOLATILE = 0  # since the last driver load (nvmlEccCounterType_t)
P_STATE_UNKNOWN = 32
POWER_AVERAGE, POWER_INSTANT = 185, 186  # NVML_FI_DEV_POWER_AVERAGE, _INSTANT, mW; scope 0 is the GPU
POWER_SOURCES = {0: "ac", 1: "battery", 2: "undersized"}  # nvmlPowerSource_t


@dataclass(frozen=True, slots=True)
class Signal:
    fields: tuple[str, ...]  # of GpuReading
    ways: tuple[Way, ...]


def _number(field: str, function: str, *arguments: int, divisor: int = 1) -> Signal:
    return Signal((field,), (_plain(field, function, *arguments, divisor=divisor),))


def _plain(field: str, function: str, *arguments: int, divisor: int = 1) -> Way:
    def way(ask: Ask, out: Builder) -> None:
        value = ask(function, *arguments)
        out.put(field, value if divisor == 1 else value / divisor)

    return way


def _utilization(ask: Ask, out: Builder) -> None:
    rates = ask("nvmlDeviceGetUtilizationRates")
    out.put("utilization_ratio", rates.gpu / 100)
    out.put("memory_utilization_ratio", rates.memory / 100)


def _codec(field: str, function: str) -> Signal:
    def way(ask: Ask, out: Builder) -> None:
        out.put(field, ask(function)[0] / 100)

    return Signal((field,), (way,))


def _memory(ask: Ask, out: Builder) -> None:
    memory = ask("nvmlDeviceGetMemoryInfo", MEMORY_V2)
    _put_memory(out, memory.total, memory.used)
    if "memory_total_bytes" in out.values:
        out.put("memory_reserved_bytes", memory.reserved)


def _memory_v1(ask: Ask, out: Builder) -> None:
    """Older drivers: `used` includes the driver's own reserve of a few hundred MB."""
    memory = ask("nvmlDeviceGetMemoryInfo")
    _put_memory(out, memory.total, memory.used)
    out.absent["memory_reserved_bytes"] = "this driver counts its reserve as used"


def _put_memory(out: Builder, total: int, used: int) -> None:
    fields = ("memory_total_bytes", "memory_used_bytes", "memory_reserved_bytes")
    if total == 0:
        out.lacks(fields, "the driver reports a memory size of 0")
    elif out.put("memory_total_bytes", total) and out.put("memory_used_bytes", used):
        if used > total:
            del out.values["memory_used_bytes"]
            out.reject("memory_used_bytes", used)
    else:
        out.absent.setdefault("memory_reserved_bytes", "memory figures are impossible")


def _power_field(identity: int) -> Way:
    def way(ask: Ask, out: Builder) -> None:
        answer = ask("nvmlDeviceGetFieldValues", [(identity, 0)])[0]
        if answer.nvmlReturn != errors.SUCCESS:
            raise errors.FieldError(answer.nvmlReturn)
        out.put("power_w", answer.value.uiVal / 1000)

    return way


def _p_state(ask: Ask, out: Builder) -> None:
    state = ask("nvmlDeviceGetPerformanceState")
    if state == P_STATE_UNKNOWN:
        out.absent["p_state"] = "the driver does not know the performance state"
    else:
        out.put("p_state", state)


def _temperature(ask: Ask, out: Builder) -> None:
    out.put("temperature_c", ask("nvmlDeviceGetTemperatureV", SENSOR_GPU))


def _limit(function: str) -> Way:
    def way(ask: Ask, out: Builder) -> None:
        milliwatts = ask(function)
        if milliwatts:
            out.put("power_limit_w", milliwatts / 1000)
        else:
            out.absent["power_limit_w"] = "the driver reports no power limit"

    return way


def _fans(ask: Ask, out: Builder) -> None:
    count = ask("nvmlDeviceGetNumFans")
    if count == 0:
        out.lacks(("fan_ratio", "fan_ratios"), "this GPU has no fan of its own")
        return
    _put_fans(out, [ask("nvmlDeviceGetFanSpeed_v2", fan) / 100 for fan in range(min(count, 16))])


def _one_fan(ask: Ask, out: Builder) -> None:
    _put_fans(out, [ask("nvmlDeviceGetFanSpeed") / 100])


def _put_fans(out: Builder, ratios: list[float]) -> None:
    """One impossible fan is counted once and leaves the others."""
    good = [ratio for ratio in ratios if out.put("fan_ratio", ratio)]
    if good:
        out.values["fan_ratio"] = max(good)
        out.values["fan_ratios"] = tuple(good)
        out.absent.pop("fan_ratio", None)
    else:
        out.absent["fan_ratios"] = out.absent["fan_ratio"]


def _remapped(ask: Ask, out: Builder) -> None:
    _corrected, uncorrected, pending, failed = ask("nvmlDeviceGetRemappedRows")
    out.put("remapped_uncorrected_count", uncorrected)
    out.values["remap_pending"] = bool(pending)
    out.values["remap_failed"] = bool(failed)


def _retired(ask: Ask, out: Builder) -> None:
    out.values["retired_pending"] = bool(ask("nvmlDeviceGetRetiredPagesPendingStatus"))


def _power_source(ask: Ask, out: Builder) -> None:
    source = ask("nvmlDeviceGetPowerSource")
    if source in POWER_SOURCES:
        out.values["power_source"] = POWER_SOURCES[source]
    else:
        out.absent["power_source"] = "the driver reports an unknown power source"


FAST: tuple[Signal, ...] = (
    Signal(("utilization_ratio", "memory_utilization_ratio"), (_utilization,)),
    Signal(("memory_total_bytes", "memory_used_bytes", "memory_reserved_bytes"), (_memory, _memory_v1)),
    Signal(
        ("power_w",),
        (
            _plain("power_w", "nvmlDeviceGetPowerUsage", divisor=1000),
            _power_field(POWER_AVERAGE),
            _power_field(POWER_INSTANT),
        ),
    ),
    _number("sm_clock_mhz", "nvmlDeviceGetClockInfo", CLOCK_SM),
    _number("memory_clock_mhz", "nvmlDeviceGetClockInfo", CLOCK_MEMORY),
    Signal(("p_state",), (_p_state,)),
    Signal(
        ("event_reasons",),
        (
            _plain("event_reasons", "nvmlDeviceGetCurrentClocksEventReasons"),
            _plain("event_reasons", "nvmlDeviceGetCurrentClocksThrottleReasons"),  # before 535
        ),
    ),
    Signal(
        ("temperature_c",),
        (_temperature, _plain("temperature_c", "nvmlDeviceGetTemperature", SENSOR_GPU)),  # before 570
    ),
    _number("temperature_margin_c", "nvmlDeviceGetMarginTemperature"),
    _number("pcie_generation", "nvmlDeviceGetCurrPcieLinkGeneration"),
    _number("pcie_width", "nvmlDeviceGetCurrPcieLinkWidth"),
    _codec("encoder_ratio", "nvmlDeviceGetEncoderUtilization"),
    _codec("decoder_ratio", "nvmlDeviceGetDecoderUtilization"),
)

SLOW: tuple[Signal, ...] = (
    Signal(
        ("power_limit_w",),
        (_limit("nvmlDeviceGetEnforcedPowerLimit"), _limit("nvmlDeviceGetPowerManagementLimit")),
    ),
    Signal(("fan_ratio", "fan_ratios"), (_fans, _one_fan)),
    _number("ecc_corrected_count", "nvmlDeviceGetTotalEccErrors", ECC_CORRECTED, ECC_VOLATILE),
    _number("ecc_uncorrected_count", "nvmlDeviceGetTotalEccErrors", ECC_UNCORRECTED, ECC_VOLATILE),
    Signal(("remapped_uncorrected_count", "remap_pending", "remap_failed"), (_remapped,)),
    Signal(("retired_pending",), (_retired,)),
    _number("pcie_replay_count", "nvmlDeviceGetPcieReplayCounter"),
    Signal(("power_source",), (_power_source,)),
)
