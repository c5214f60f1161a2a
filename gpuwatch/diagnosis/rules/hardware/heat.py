"""R02: heat sets the clock, or is about to."""

from gpuwatch.diagnosis.interface import Abstain, Clear, Fires, Outcome
from gpuwatch.diagnosis.rules.common import busy_level, grown_s, lower, missing, seconds_where
from gpuwatch.diagnosis.rules.hardware.clocks import (
    by_reference,
    clock_evidence,
    exempt_bits,
    heat_evidence,
    heat_limit_c,
    slowed_share,
)
from gpuwatch.diagnosis.window import Window
from gpuwatch.metrics import REASON_POWER_CAP, REASON_SW_THERMAL
from gpuwatch.model import Confidence, Evidence, Kind, Severity

THERMAL_UTILIZATION = 0.50
THERMAL_S, THERMAL_OF_S = 10.0, 30.0
THERMAL_COUNTED_S = 3.0  # 10 % of 30 s
THERMAL_EXIT_S, THERMAL_EXIT_OF_S = 2.0, 60.0
HELD_S, STILL_HELD_S, HELD_OF_S = 54.0, 30.0, 60.0
PREWARN_BELOW_LIMIT_C, PREWARN_EXIT_C, PREWARN_S = 3.0, 5.0, 60.0
#: With heat and power cap both reported, heat decides only this near to a limit.
HEAT_NEAR_LIMIT_C = 5.0
#: The core is clearly not what is hot; more is asked where the memory cannot be read, because
#: GeForce cards slow down at a target about 10 degrees below their limit.
CORE_BELOW_LIMIT_C, CORE_COOL_C = 8.0, 15.0
NOTE_S = 300.0
MEMORY_NEAR_LIMIT_C = 3.0
#: Where the card does not tell its memory's limit: GDDR6X parts slow down at 110 °C, HBM earlier.
MEMORY_HOT_C = 100.0


def thermal_throttle(window: Window, active: bool) -> Outcome:
    """R02: heat holds the clock down, or is about to."""
    load = busy_level(window, THERMAL_OF_S)
    if load is None:
        return missing(window, "utilization_ratio")
    counted = window.last("sw_thermal_ratio", THERMAL_OF_S) is not None
    if not counted and window.last("event_reasons", THERMAL_OF_S) is None:
        return missing(window, "event_reasons")
    if exempt_bits(window.info) & REASON_SW_THERMAL:
        return Abstain("this model reports thermal slowdown in normal work, so the bit says nothing")
    if load < THERMAL_UTILIZATION and not active:
        return Clear(_heat_note(window))
    hot_s = _thermal_s(window, THERMAL_EXIT_OF_S if active else THERMAL_OF_S)
    enough = THERMAL_EXIT_S if active else THERMAL_S
    grown = grown_s(window, "sw_thermal_ratio", THERMAL_EXIT_OF_S if active else THERMAL_OF_S)
    if hot_s >= enough or grown >= (THERMAL_EXIT_S if active else THERMAL_COUNTED_S):
        return (
            _throttled(window, active) if _heat_decides(window) else Clear("power, not heat, sets the clock")
        )
    near = _near_limit(window, active)
    return near if near is not None else Clear(_heat_note(window))


def _thermal_s(window: Window, seconds: float) -> float:
    return seconds_where(window, "event_reasons", seconds, lambda value: bool(int(value) & REASON_SW_THERMAL))


def _heat_decides(window: Window) -> bool:
    """With the power cap reported beside it, heat is the reason only near one of the card's limits."""
    both = REASON_SW_THERMAL | REASON_POWER_CAP
    together = seconds_where(window, "event_reasons", THERMAL_OF_S, lambda value: int(value) & both == both)
    if together < 0.5 * _thermal_s(window, THERMAL_OF_S) or together == 0:
        return True
    limit = heat_limit_c(window.info)
    temperature, margin = window.last("temperature_c"), window.last("temperature_margin_c")
    if margin is not None and 0 < margin <= HEAT_NEAR_LIMIT_C:  # some cards report 0 or less: ignored
        return True
    if _memory_is_hot(window):
        return True
    return limit is None or temperature is None or temperature >= limit - HEAT_NEAR_LIMIT_C


def _memory_is_hot(window: Window) -> bool:
    memory = window.last("memory_temperature_c")
    if memory is None:
        return False
    limit = window.info.temperature_memory_max_c if window.info is not None else None
    return memory >= (limit - MEMORY_NEAR_LIMIT_C if limit else MEMORY_HOT_C)


def _throttled(window: Window, active: bool) -> Fires:
    share, clock, reference = slowed_share(window)
    limit, temperature = heat_limit_c(window.info), window.last("temperature_c")
    variant = _where(window, limit, temperature)
    held = _thermal_s(window, HELD_OF_S) >= (STILL_HELD_S if active else HELD_S)
    at_least_warning = held and (share is None or share < 0.15)
    seconds = max(_thermal_s(window, 300.0), grown_s(window, "sw_thermal_ratio", 300.0))
    past = window.present("temperature_c", 300.0)
    evidence = [
        Evidence("thermal_s", "slowed by heat", seconds, "s", ">= 10 of 30 s", 300.0, "thermal_ratio"),
        *clock_evidence(clock, reference),
        *heat_evidence(window, limit),
    ]
    if len(past) > 1:
        evidence.append(
            Evidence("temperature_rise_c", "rise", past[-1] - past[0], "°C", "", 300.0, "temperature_c")
        )
    fan = window.last("fan_ratio")
    if fan is not None:
        evidence.append(Evidence("fan_ratio", "fan", fan, "ratio", "", None, "fan_ratio"))
    return Fires(
        confidence=lower(by_reference(window)) if variant == "hidden" else by_reference(window),
        evidence=tuple(evidence),
        severity=Severity.WARNING if at_least_warning else None,
        share_ratio=share,
        variant=variant,
        parameters={"seconds": seconds},
    )


def _where(window: Window, limit: float | None, temperature: float | None) -> str:
    """Which text: the core is hot (""), the memory, or something that cannot be read."""
    if limit is None or temperature is None:
        return ""
    if temperature < limit - CORE_BELOW_LIMIT_C and _memory_is_hot(window):
        return "memory"
    unknown = window.last("memory_temperature_c") is None
    return "hidden" if unknown and temperature < limit - CORE_COOL_C else ""


def _near_limit(window: Window, active: bool) -> Fires | None:
    """A card that works at its heat limit without being slowed yet."""
    limit = heat_limit_c(window.info)
    past = window.present("temperature_c", PREWARN_S)
    if limit is None or len(past) * window.sample.interval_s < 0.8 * PREWARN_S:
        return None
    if min(past) < limit - (PREWARN_EXIT_C if active else PREWARN_BELOW_LIMIT_C):
        return None
    return Fires(
        confidence=Confidence.MEASURED,
        evidence=heat_evidence(window, limit),
        severity=Severity.NOTICE,
        kind=Kind.RISK,
        variant="near",
    )


def _heat_note(window: Window) -> str:
    past = window.present("temperature_c", NOTE_S)
    if not past:
        return "no heat slowdown"
    low, high = round(min(past)), round(max(past))
    span = f"{low} °C" if low == high else f"{low}-{high} °C"
    limit = heat_limit_c(window.info)
    return f"{span} of {limit:.0f} °C" if limit is not None else span
