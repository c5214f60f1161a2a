"""What the rules about clocks share: the card's limits, models to leave alone, and what is lost."""

from gpuwatch.diagnosis.rules.common import lower
from gpuwatch.diagnosis.window import Window
from gpuwatch.metrics import (
    REASON_HW_SLOWDOWN,
    REASON_HW_THERMAL,
    REASON_SW_THERMAL,
    REASONS_HARMFUL,
)
from gpuwatch.model import Confidence, Evidence, GpuInfo

#: What is lost is measured over this time, in ticks with at least this utilization.
SHARE_S, AT_WORK_UTILIZATION = 30.0, 0.20

#: Models that report harmful bits in normal work (DCGM's allow list of its clock test).
#: RTX 6000 and 8000 here are the Turing Quadro cards; their passive form has no fan.
_EXEMPT = (
    ("Tesla K80", REASONS_HARMFUL),
    ("Tesla T4", REASONS_HARMFUL),
    ("NVIDIA T4", REASONS_HARMFUL),
    ("Tesla V100S", REASON_SW_THERMAL),
    ("Quadro RTX 6000", REASON_HW_SLOWDOWN | REASON_SW_THERMAL | REASON_HW_THERMAL),
)
_PASSIVE = ("Quadro RTX 6000", "Quadro RTX 8000")
_LAPTOP_WORDS = ("Laptop", "Max-Q", "Mobile")


def exempt_bits(info: GpuInfo | None) -> int:
    """Event reason bits that say nothing on this model."""
    if info is None:
        return 0
    name = info.name.removeprefix("NVIDIA ") if "Quadro" in info.name else info.name
    if info.fan_count == 0 and name.startswith(_PASSIVE):
        return REASONS_HARMFUL
    return next((bits for model, bits in _EXEMPT if name == model or name.startswith(f"{model}-")), 0)


def is_laptop(window: Window) -> bool:
    """By the model's name, or because it runs on a battery (desktop cards tell "ac", too)."""
    if window.reading is not None and window.reading.power_source == "battery":
        return True
    return window.info is not None and any(word in window.info.name for word in _LAPTOP_WORDS)


def heat_limit_c(info: GpuInfo | None) -> float | None:
    """This card's own limit: where it slows down, or its highest working temperature, if lower."""
    if info is None:
        return None
    known = [
        limit
        for limit in (info.temperature_gpu_max_c, info.temperature_slowdown_c)
        if limit is not None and limit > 0
    ]
    return min(known, default=None)


def by_reference(window: Window) -> Confidence:
    """A counter says so; the loss is less sure while the card's own best clock is not learned."""
    measured = Confidence.MEASURED
    return measured if window.references.clock_is_learned else lower(measured)


def slowed_share(window: Window) -> tuple[float | None, float | None, float | None]:
    """(share of wall time lost, mean clock at work, best clock); None for what is not known.

    Lost is what the missing clock costs while the GPU is busy: utilization x (1 - clock / best).
    """
    reference = window.references.clock_mhz
    utilization = window.mean("utilization_ratio", SHARE_S)
    clocks = window.history.values(window.entity, "sm_clock_mhz", SHARE_S)
    busy = window.history.values(window.entity, "utilization_ratio", SHARE_S)
    at_work = [
        clock
        for clock, used in zip(clocks, busy, strict=True)
        if clock == clock and used >= AT_WORK_UTILIZATION
    ]
    if not at_work or reference is None or utilization is None:
        return None, (sum(at_work) / len(at_work) if at_work else None), reference
    clock = sum(at_work) / len(at_work)
    return max(0.0, utilization * (1 - clock / reference)), clock, reference


def clock_evidence(clock: float | None, reference: float | None) -> tuple[Evidence, ...]:
    if clock is None:
        return ()
    threshold = f"best {reference:.0f} MHz" if reference is not None else ""
    return (Evidence("sm_clock_mhz", "clock at work", clock, "MHz", threshold, SHARE_S, "sm_clock_mhz"),)


def heat_evidence(window: Window, limit: float | None) -> tuple[Evidence, ...]:
    found = []
    temperature = window.last("temperature_c")
    if temperature is not None:
        threshold = f"limit {limit:.0f} °C" if limit is not None else ""
        found.append(
            Evidence("temperature_c", "temperature", temperature, "°C", threshold, None, "temperature_c")
        )
    memory = window.last("memory_temperature_c")
    if memory is not None:
        most = window.info.temperature_memory_max_c if window.info is not None else None
        threshold = f"limit {most:.0f} °C" if most is not None else ""
        found.append(
            Evidence("memory_temperature_c", "memory", memory, "°C", threshold, None, "memory_temperature_c")
        )
    return tuple(found)
