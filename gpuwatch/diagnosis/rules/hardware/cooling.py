"""R03, R05, R06: a fan that stands, a clock that is fixed, a clock that sags without a reason."""

from gpuwatch.diagnosis.interface import Abstain, Clear, Fires, Outcome
from gpuwatch.diagnosis.rules.common import missing, seconds_where
from gpuwatch.diagnosis.rules.hardware.clocks import clock_evidence, heat_limit_c, is_laptop, slowed_share
from gpuwatch.diagnosis.rules.waiting import power_ratio
from gpuwatch.diagnosis.window import Window
from gpuwatch.metrics import (
    REASON_APP_CLOCKS,
    REASON_DISPLAY,
    REASON_SYNC_BOOST,
    REASONS_NOT_IDLE,
)
from gpuwatch.model import Confidence, Evidence, Severity

# -- fan-or-cooling-fault: numbers our own
FAN_UTILIZATION, FAN_S = 0.50, 60.0
HOT_C, HOT_EXIT_C = 75.0, 70.0
FAN_APART = 0.40
RISE_C_PER_MIN, RISE_S, FAN_FULL = 1.5, 300.0, 0.98

# -- clocks-pinned: Azure ignores none of these bits; numbers our own
PINNING = REASON_APP_CLOCKS | REASON_SYNC_BOOST | REASON_DISPLAY
PINNED_S, PINNED_PART, PINNED_RATIO = 60.0, 0.80, 0.90
CONSTANT_S, CONSTANT_PART, CONSTANT_RATIO = 300.0, 0.01, 0.85
CONSTANT_POWER, HEAT_MARGIN_C = 0.80, 10.0
REACHABLE = 0.95  # of the highest clock; that itself is rarely reached
WORKING = 0.50

# -- clock-sag-unexplained: numbers our own
SAG_S, SAG_PART, SAG_UTILIZATION, SAG_MEMORY = 60.0, 0.80, 0.90, 0.20
SAG_RATIO, SAG_EXIT_RATIO, SAG_POWER = 0.85, 0.92, 0.85
SAG_WARNING = 0.15


def fan_or_cooling_fault(window: Window, active: bool) -> Outcome:
    """R03: a fan stands still while the card is hot, or full fans cannot stop the heat."""
    reading, info = window.reading, window.info
    temperature = window.mean("temperature_c", 10.0)
    if temperature is None:
        return missing(window, "temperature_c")
    if reading is None or (reading.fan_ratio is None and not reading.fan_ratios):
        return Abstain("the card has no fan that reports")
    if info is not None and info.fan_count == 0:
        return Clear("a passive card")
    if (window.mean("utilization_ratio", FAN_S) or 0.0) < FAN_UTILIZATION:
        return Clear("")
    fans = reading.fan_ratios or (reading.fan_ratio or 0.0,)
    hot = seconds_where(
        window, "temperature_c", FAN_S, lambda value: value > (HOT_EXIT_C if active else HOT_C)
    )
    stands = min(fans) <= 0.0 or (len(fans) > 1 and max(fans) - min(fans) > FAN_APART)
    still = seconds_where(window, "fan_ratio", FAN_S, lambda value: value <= 0.0)
    if len(fans) == 1 and min(fans) <= 0.0 and still < 0.9 * FAN_S:
        stands = False  # a zero-RPM fan that has just been about to start
    if stands and hot >= 0.9 * FAN_S:
        return _fan(window, temperature, fans, "")
    values = window.present("temperature_c", RISE_S)
    if len(values) * window.sample.interval_s >= 0.95 * RISE_S and min(fans) >= FAN_FULL:
        part = max(1, len(values) // 5)
        rise = (sum(values[-part:]) - sum(values[:part])) / part / (RISE_S * 0.8 / 60.0)
        limit = heat_limit_c(info)
        if rise > RISE_C_PER_MIN and (limit is None or temperature > limit - 2 * HEAT_MARGIN_C):
            return _fan(window, temperature, fans, "rises")
    return Clear("")


def _fan(window: Window, temperature: float, fans: tuple[float, ...], variant: str) -> Fires:
    throttles = "thermal-throttle" in window.active
    return Fires(
        Confidence.LIKELY,
        (
            Evidence("temperature_c", "temperature", temperature, "°C", "> 75 °C", FAN_S, "temperature_c"),
            *(
                Evidence(f"fan{place}_ratio", f"fan {place}", value, "ratio")
                for place, value in enumerate(fans)
            ),
        ),
        severity=Severity.CRITICAL if throttles and not variant else Severity.WARNING,
        variant=variant,
        parameters={"temperature": temperature, "slowest": min(fans), "fastest": max(fans)},
    )


def clocks_pinned(window: Window, active: bool) -> Outcome:
    """R05: the clock is fixed below what the card can do, by a setting that shows, or one that does not."""
    info = window.info
    most = info.sm_clock_max_mhz if info is not None else None
    if not most:
        return Abstain("the card's highest clock is not known")
    if (window.mean("utilization_ratio", PINNED_S) or 0.0) < WORKING:
        return Clear("")
    clock = window.mean("sm_clock_mhz", PINNED_S)
    if clock is None:
        return missing(window, "sm_clock_mhz")
    if clock > PINNED_RATIO * most * (1.03 if active else 1.0):
        return Clear("")
    watched_s = len(window.present("event_reasons", PINNED_S)) * window.sample.interval_s
    held_s = seconds_where(window, "event_reasons", PINNED_S, lambda bits: bool(int(bits) & PINNING))
    if watched_s >= 0.9 * PINNED_S and held_s >= PINNED_PART * watched_s:
        return _pinned(window, clock, most, "bit")
    return _constant(window, clock, most)


def _constant(window: Window, clock: float, most: float) -> Outcome:
    """Locked clocks set no bit: a clock that stands still for minutes, with power and heat to spare."""
    if is_laptop(window) or clock >= CONSTANT_RATIO * most:
        return Clear("")
    values = window.present("sm_clock_mhz", CONSTANT_S)
    if len(values) * window.sample.interval_s < 0.95 * CONSTANT_S:
        return Clear("")
    power, limit, temperature = (
        power_ratio(window),
        heat_limit_c(window.info),
        window.mean("temperature_c", 10.0),
    )
    if power is None or temperature is None:
        return Abstain("without power and temperature a low clock has no meaning")
    busy = window.present("utilization_ratio", CONSTANT_S)
    reasons = window.present("event_reasons", CONSTANT_S)
    if not busy or min(busy) < WORKING or any(int(bits) & REASONS_NOT_IDLE for bits in reasons):
        return Clear("")
    if max(values) - min(values) > CONSTANT_PART * max(values) or power >= CONSTANT_POWER:
        return Clear("")
    if limit is not None and temperature > limit - HEAT_MARGIN_C:
        return Clear("")
    return _pinned(window, clock, most, "")


def _pinned(window: Window, clock: float, most: float, variant: str) -> Fires:
    busy = window.mean("utilization_ratio", PINNED_S) or 0.0
    share = busy * max(0.0, 1 - clock / (REACHABLE * most))
    return Fires(
        Confidence.MEASURED if variant else Confidence.LIKELY,
        (
            Evidence(
                "sm_clock_mhz", "clock", clock, "MHz", f"highest {most:.0f} MHz", PINNED_S, "sm_clock_mhz"
            ),
            Evidence("utilization_ratio", "utilization", busy, "ratio", ">= 50 %", PINNED_S),
        ),
        share_ratio=share,
        variant=variant,
        parameters={"clock": clock, "most": most},
    )


def clock_sag_unexplained(window: Window, active: bool) -> Outcome:
    """R06: heavy work, low clock, low power, cool, and no reason given: look at the supply."""
    reference = window.references
    if not reference.clock_is_learned or reference.clock_mhz is None:
        return Abstain("the card's usual clock is not learned yet (two minutes of full load)")
    clock = window.mean("sm_clock_mhz", SAG_S)
    if clock is None:
        return missing(window, "sm_clock_mhz")
    if clock >= (SAG_EXIT_RATIO if active else SAG_RATIO) * reference.clock_mhz:
        return Clear("")
    if is_laptop(window):
        return Clear("a laptop sets its clock by itself")
    needed = {key: window.history.values(window.entity, key, SAG_S) for key in _SAG_KEYS}
    if any(not any(value == value for value in values) for values in needed.values()):
        return Abstain("power, temperature, memory utilization or reasons cannot be read")
    limit = heat_limit_c(window.info)
    power_limit = window.last("power_limit_w", 30.0)
    if power_limit is None:
        return missing(window, "power_limit_w")
    rows = list(zip(*needed.values(), strict=True))
    ratio = SAG_EXIT_RATIO if active else SAG_RATIO
    held = sum(
        used >= SAG_UTILIZATION
        and memory >= SAG_MEMORY
        and mhz < ratio * reference.clock_mhz
        and watts < SAG_POWER * power_limit
        and not int(bits) & REASONS_NOT_IDLE
        and (limit is None or celsius < limit - HEAT_MARGIN_C)
        for used, memory, mhz, watts, bits, celsius in rows
        if all(value == value for value in (used, memory, mhz, watts, bits, celsius))
    )
    if held * window.sample.interval_s < SAG_PART * SAG_S:
        return Clear("")
    share, at_work, best = slowed_share(window)
    power = window.mean("power_w", SAG_S) or 0.0
    return Fires(
        Confidence.POSSIBLE,
        (
            *clock_evidence(at_work, best),
            Evidence("power_w", "power", power, "W", f"limit {power_limit:.0f} W", SAG_S, "power_w"),
            Evidence(
                "held_s", "seconds of the last minute", held * window.sample.interval_s, "s", ">= 50 s", SAG_S
            ),
        ),
        severity=Severity.WARNING if share is not None and share >= SAG_WARNING else Severity.NOTICE,
        share_ratio=share,
        parameters={"clock": clock, "best": reference.clock_mhz, "power": power, "limit": power_limit},
    )


_SAG_KEYS = (
    "utilization_ratio",
    "memory_utilization_ratio",
    "sm_clock_mhz",
    "power_w",
    "event_reasons",
    "temperature_c",
)
