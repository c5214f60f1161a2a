"""R04: the enforced power limit is below the card's default."""

from gpuwatch.diagnosis.interface import Abstain, Clear, Fires, Outcome
from gpuwatch.diagnosis.rules.common import busy_level, inventory_missing, missing
from gpuwatch.diagnosis.rules.hardware.clocks import clock_evidence, is_laptop, slowed_share
from gpuwatch.diagnosis.window import Window
from gpuwatch.metrics import REASON_POWER_CAP
from gpuwatch.model import Confidence, Evidence, Kind, Severity

LOWERED_RATIO, LOWERED_EXIT_RATIO = 0.95, 0.97
CAPPED_RATIO, CAPPED_S, CAPPED_UTILIZATION = 0.50, 60.0, 0.70
#: A laptop's limit that takes more values than this in ten minutes moves by itself.
MOVING_LIMITS, MOVING_S = 3, 600.0
LAPTOP_S = 60.0  # watched at least


def power_limit_lowered(window: Window, active: bool) -> Outcome:
    """R04: the enforced power limit is below the card's default."""
    limit = window.last("power_limit_w", 30.0)
    if limit is None:
        return missing(window, "power_limit_w")
    default = window.info.power_limit_default_w if window.info is not None else None
    laptop = is_laptop(window)
    if default is None and laptop and window.info is not None:
        default = window.info.power_limit_max_w
    if not default:
        return inventory_missing(window, "power_limit_default_w", "the card's default power limit")
    if laptop:
        past = window.present("power_limit_w", MOVING_S)
        if len(set(past)) > MOVING_LIMITS:
            return Abstain("this laptop moves its power limit by itself")
        seen_s = len(past) * window.sample.interval_s
        if seen_s < LAPTOP_S:
            return Abstain("watching whether the power limit moves", seconds_left=LAPTOP_S - seen_s)
    capped = _capped_ratio(window)
    if limit >= (LOWERED_EXIT_RATIO if active else LOWERED_RATIO) * default:
        at_limit = capped is not None and capped >= CAPPED_RATIO
        state = "at its power limit, normal at full load" if at_limit else "power limit at its default"
        return Clear(f"{state} ({limit:.0f} W)")
    return _lowered(window, limit, default, capped, laptop)


def _capped_ratio(window: Window) -> float | None:
    """Share of the last minute in which the power cap held the clock, of a busy GPU; None if unknown."""
    counted = window.mean("power_cap_ratio", CAPPED_S)
    if counted is not None:
        return counted
    bits = window.present("event_reasons", CAPPED_S)
    if not bits:
        return None
    return sum(bool(int(value) & REASON_POWER_CAP) for value in bits) / len(bits)


def _lowered(window: Window, limit: float, default: float, capped: float | None, laptop: bool) -> Fires:
    load = busy_level(window, CAPPED_S)
    costs = capped is not None and capped >= CAPPED_RATIO and load is not None and load >= CAPPED_UTILIZATION
    share, clock, reference = slowed_share(window)
    known_loss = costs and window.references.clock_is_learned and share is not None and share > 0
    most = window.info.power_limit_max_w if window.info is not None else None
    evidence = [
        Evidence(
            "power_limit_w", "power limit", limit, "W", f"default {default:.0f} W", None, "power_limit_w"
        ),
        *([Evidence("power_limit_max_w", "highest limit", most, "W")] if most is not None else []),
        *([Evidence("capped_ratio", "held by it", capped, "ratio", ">= 50 %", CAPPED_S)] if capped else []),
        *(clock_evidence(clock, reference) if costs else ()),
    ]
    return Fires(
        confidence=Confidence.MEASURED,
        evidence=tuple(evidence),
        severity=Severity.WARNING if costs else Severity.NOTICE,
        kind=Kind.LOSS if known_loss else Kind.OPPORTUNITY,
        share_ratio=share if known_loss else None,
        variant="laptop" if laptop else "",
        parameters={"limit_w": limit, "default_w": default, "capped_ratio": capped or 0.0},
    )
