"""R01: the card's own protection cuts its clock."""

from gpuwatch.diagnosis.interface import Abstain, Clear, Fires, Outcome
from gpuwatch.diagnosis.rules.common import busy_level, grown_s, missing, seconds_where
from gpuwatch.diagnosis.rules.hardware.clocks import (
    by_reference,
    clock_evidence,
    exempt_bits,
    heat_evidence,
    heat_limit_c,
    slowed_share,
)
from gpuwatch.diagnosis.window import Window
from gpuwatch.metrics import (
    REASON_BITS,
    REASON_HW_SLOWDOWN,
    REASON_HW_THERMAL,
    REASON_POWER_BRAKE,
    REASON_SW_THERMAL,
    REASONS_HARMFUL,
)
from gpuwatch.model import Evidence, Severity

#: Bits as in DCGM's diagnostic (mask 0xE8); seconds are our own judgement
SLOWDOWN_UTILIZATION = 0.20
SLOWDOWN_S, SLOWDOWN_OF_S = 3.0, 10.0
SLOWDOWN_COUNTED_S = 0.5  # 5 % of 10 s
ALONE_S, ALONE_CLOCK_RATIO = 5.0, 0.70  # bit 0x8 also flashes when the P-state changes
SLOWDOWN_EXIT_S = 30.0
P_STATE_SETTLES_S = 5.0
#: A card this far below its heat limit is not slowed by heat, so bit 0x8 alone means supply.
COOL_BELOW_LIMIT_C = 15.0


def hw_slowdown(window: Window, active: bool) -> Outcome:
    """R01: the card's protection (heat, supply) cuts its clock by half or more."""
    load = busy_level(window, SLOWDOWN_OF_S)
    if load is None:
        return missing(window, "utilization_ratio")
    bits = window.present("event_reasons", SLOWDOWN_OF_S)
    counted = _hardware_counted_s(window, SLOWDOWN_OF_S)
    if not bits and counted is None:
        return missing(window, "event_reasons")
    judged = REASONS_HARMFUL & ~REASON_SW_THERMAL & ~exempt_bits(window.info)
    if not judged:
        return Abstain("this model reports slowdown in normal work, so its bits say nothing")
    if active:
        return _still_slowed(window, judged)
    if load < SLOWDOWN_UTILIZATION:
        return Clear()
    if not counted and not any(int(value) & judged for value in set(bits)):
        return Clear("no hardware slowdown")
    return _slowed(window, judged) or Clear("no hardware slowdown")


def _hardware_counted_s(window: Window, seconds: float) -> float | None:
    keys = ("hw_thermal_ratio", "power_brake_ratio")
    if all(window.last(key, seconds) is None for key in keys):
        return None
    return max(grown_s(window, key, seconds) for key in keys)


def _slowed(window: Window, judged: int) -> Fires | None:
    """The entry condition."""
    seconds: dict[int, float] = {}
    for bit, counter in ((REASON_POWER_BRAKE, "power_brake_ratio"), (REASON_HW_THERMAL, "hw_thermal_ratio")):
        seconds[bit] = max(_bit_s(window, bit, SLOWDOWN_OF_S), 0.0)
        counted = grown_s(window, counter, SLOWDOWN_OF_S)
        if bit & judged and (seconds[bit] >= SLOWDOWN_S or counted >= SLOWDOWN_COUNTED_S):
            return _slowdown(window, bit)
    alone = judged & REASON_HW_SLOWDOWN and _bit_s(window, REASON_HW_SLOWDOWN, SLOWDOWN_OF_S) >= ALONE_S
    clock, reference = window.last("sm_clock_mhz"), window.references.clock_mhz
    if alone and clock is not None and reference is not None and clock < ALONE_CLOCK_RATIO * reference:
        return _slowdown(window, REASON_HW_SLOWDOWN)
    return None


def _still_slowed(window: Window, judged: int) -> Outcome:
    """The exit condition: nothing of it in 30 s."""
    for bit, counter in (
        (REASON_POWER_BRAKE, "power_brake_ratio"),
        (REASON_HW_THERMAL, "hw_thermal_ratio"),
        (REASON_HW_SLOWDOWN, None),
    ):
        counted = grown_s(window, counter, SLOWDOWN_EXIT_S) if counter is not None else 0.0
        if bit & judged and (_bit_s(window, bit, SLOWDOWN_EXIT_S) > 0 or counted > 0):
            return _slowdown(window, bit)
    return Clear("no hardware slowdown")


def _bit_s(window: Window, bit: int, seconds: float) -> float:
    """Seconds with the bit set, without the first moments after a change of the P-state."""
    raw = seconds_where(window, "event_reasons", seconds, lambda value: bool(int(value) & bit))
    if raw == 0:
        return 0.0
    history, entity = window.history, window.entity
    times = history.times(seconds)
    states = history.values(entity, "p_state", seconds)
    reasons = history.values(entity, "event_reasons", seconds)
    unsettled_until = state = float("nan")
    count = 0
    for time, now, reason in zip(times, states, reasons, strict=True):
        if now == now:
            if state == state and now != state:
                unsettled_until = time + P_STATE_SETTLES_S
            state = now
        if reason == reason and int(reason) & bit and not time < unsettled_until:
            count += 1
    return count * window.sample.interval_s


def _slowdown(window: Window, bit: int) -> Fires:
    share, clock, reference = slowed_share(window)
    temperature, limit = window.last("temperature_c"), heat_limit_c(window.info)
    cool = temperature is not None and limit is not None and temperature < limit - COOL_BELOW_LIMIT_C
    variant = {REASON_POWER_BRAKE: "brake", REASON_HW_THERMAL: "heat"}.get(bit, "supply" if cool else "")
    seconds = seconds_where(window, "event_reasons", 60.0, lambda value: bool(int(value) & bit))
    evidence = [
        Evidence("reason", "reason", REASON_BITS[bit], "", "", None, "event_reasons"),
        Evidence("reason_s", "active", seconds, "s", ">= 3 of 10 s", 60.0, "event_reasons"),
        *clock_evidence(clock, reference),
        *heat_evidence(window, limit),
    ]
    power, power_limit = window.mean("power_w", 10.0), window.last("power_limit_w")
    if power is not None:
        threshold = f"limit {power_limit:.0f} W" if power_limit is not None else ""
        evidence.append(Evidence("power_w", "power", power, "W", threshold, 10.0, "power_w"))
    return Fires(
        confidence=by_reference(window),
        evidence=tuple(evidence),
        severity=Severity.WARNING if bit == REASON_HW_SLOWDOWN else Severity.CRITICAL,
        share_ratio=share,
        variant=variant,
        parameters={"reason": REASON_BITS[bit], "seconds": seconds},
    )
