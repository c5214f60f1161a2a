"""Texts of the rules about power and heat."""

from gpuwatch.diagnosis.interface import Fires
from gpuwatch.diagnosis.rules.hardware import heat
from gpuwatch.diagnosis.rules.hardware import power_limit as power
from gpuwatch.diagnosis.rules.hardware import slowdown as slow
from gpuwatch.diagnosis.rules.hardware.clocks import heat_limit_c
from gpuwatch.diagnosis.texts.record import RuleText
from gpuwatch.diagnosis.texts.words import duration, facts, lines, number, percent
from gpuwatch.diagnosis.window import Window
from gpuwatch.model import FindingText


def _clock_line(fires: Fires, window: Window) -> str:
    clock, best = facts(fires).get("sm_clock_mhz"), window.references.clock_mhz
    if clock is None:
        return ""
    if best is None:
        return f"clock {clock:.0f} MHz"
    known = "its best" if window.references.clock_is_learned else "90 % of its boost clock"
    return f"clock {clock:.0f} MHz, {known} is {best:.0f} MHz"


def _heat_line(fires: Fires, window: Window) -> str:
    values = facts(fires)
    temperature, limit = values.get("temperature_c"), heat_limit_c(window.info)
    if temperature is None:
        return ""
    return f"{temperature:.0f} °C" + (f", this card's limit is {limit:.0f} °C" if limit is not None else "")


def _memory_line(fires: Fires, window: Window) -> str:
    memory = facts(fires).get("memory_temperature_c")
    most = window.info.temperature_memory_max_c if window.info is not None else None
    if memory is None:
        return "the memory's temperature cannot be read on this card"
    return f"memory at {memory:.0f} °C" + (f", limit {most:.0f} °C" if most else ", its limit is not told")


def _slowdown(fires: Fires, window: Window) -> FindingText:
    values = facts(fires)
    title = {
        "brake": "an external power brake cuts the clock",
        "heat": "the card's heat protection cuts the clock",
        "supply": "the card's protection cuts the clock although it is cool",
    }.get(fires.variant, "the card's own protection cuts the clock")
    watts = values.get("power_w")
    limit = window.last("power_limit_w", 30.0)
    supply = (
        "check the power supply's rating; one cable per connector, no splitters",
        "fans and air path, if the card is hot as well",
    )
    air = (
        "fans and air path first: dust, a blocked intake, a neighbour's exhaust",
        "power supply and cables",
    )
    hot = fires.variant == "heat"
    return FindingText(
        title=title,
        because=lines(
            f"{fires.parameters['reason']} for {values.get('reason_s', 0.0):.0f} of the last 60 s",
            _clock_line(fires, window),
            _heat_line(fires, window),
            f"{watts:.0f} W of {limit:.0f} W" if watts is not None and limit is not None else "",
        ),
        wrong_if="the reason only flashes when the performance state changes",
        settle="nvidia-smi -q -d PERFORMANCE,POWER,TEMPERATURE while it lasts",
        advice=(
            *(air if hot else supply),
            "if it stays: keep reason, temperature and power as evidence for the vendor",
        ),
        short_advice="check fans and air path" if hot else "check power cables and supply",
    )


def _thermal(fires: Fires, window: Window) -> FindingText:
    if fires.variant == "near":
        return _near(fires, window)
    values = facts(fires)
    title = {
        "memory": "hot memory holds the clock down",
        "hidden": "heat holds the clock down: memory or a hot spot, not the core",
    }.get(fires.variant, "heat holds the clock down")
    fan = values.get("fan_ratio")
    of_memory = fires.variant in ("memory", "hidden")
    return FindingText(
        title=title,
        because=lines(
            f"slowed by heat for {duration(values.get('thermal_s', 0.0))} of the last 5 min",
            _clock_line(fires, window),
            _memory_line(fires, window) if of_memory else _heat_line(fires, window),
            _heat_line(fires, window) if of_memory else f"fan at {percent(fan)}" if fan is not None else "",
        ),
        wrong_if="the room or a neighbour card is hot: then all cards rise together",
        settle="side panel off or fans at full for five minutes: does the clock return?",
        advice=(
            *(
                ("thermal pads and air over the backplate",)
                if of_memory
                else ("dust, intake and the case's air path; distance to a neighbour's exhaust",)
            ),
            "raise the fan curve",
            "or lower the power limit by 10-15 %: often the same speed; measure it",
        ),
        short_advice="pads and air over the backplate" if of_memory else "clear the air path, raise fans",
    )


def _near(fires: Fires, window: Window) -> FindingText:
    return FindingText(
        title="the card works at its heat limit",
        because=lines(_heat_line(fires, window), "no slowdown so far"),
        wrong_if="it stays there without a slowdown: then this is how its fans are set",
        settle="watch the clock: it falls if heat wins",
        advice=(
            "raise the fan curve, clear the air path",
            "lower the power limit by 10 % if the room cannot be cooled",
        ),
        short_advice="raise fans, clear the air path",
    )


def _limit(fires: Fires, window: Window) -> FindingText:
    limit = number(fires.parameters, "limit_w") or 0.0
    default = number(fires.parameters, "default_w") or 0.0
    capped = number(fires.parameters, "capped_ratio")
    laptop = fires.variant == "laptop"
    by_whom = "power limit lowered by the system" if laptop else "power limit lowered"
    return FindingText(
        title=f"{by_whom}: {limit:.0f} W of {default:.0f} W",
        because=lines(
            f"the limit in force is {limit:.0f} W, the card's default {default:.0f} W",
            f"the limit holds the clock {percent(capped)} of the time" if capped else "",
            _clock_line(fires, window),
        ),
        wrong_if="it was lowered on purpose (heat, supply, noise): near the top little speed is lost",
        settle=f"steps per second at {limit:.0f} W and at {default:.0f} W",
        advice=(
            "mains instead of battery, the maker's performance mode" if laptop else "ask who set it and why",
            f"nvidia-smi -pl {default:.0f} (admin), if heat and supply allow it",
            "compare steps per second: the last watts bring little",
        ),
        short_advice="mains and performance mode" if laptop else f"ask why; nvidia-smi -pl {default:.0f}",
    )


TEXTS: dict[str, RuleText] = {
    "hw-slowdown": RuleText(
        title="the card's own protection cuts the clock",
        label="protection",
        render=_slowdown,
        sees="Event reason bits HW slowdown (0x8), HW thermal (0x40) and power brake (0x80), the "
        "driver's time counters of the last two, clock, temperature and power.",
        decides=f"0x40 or 0x80 in {slow.SLOWDOWN_S:.0f} of {slow.SLOWDOWN_OF_S:.0f} s or 5 % of that time "
        f"counted; 0x8 alone in {slow.ALONE_S:.0f} of 10 s with the clock under "
        f"{slow.ALONE_CLOCK_RATIO:.0%} of its best; on a GPU at {slow.SLOWDOWN_UTILIZATION:.0%} or "
        f"more. The bits do not count for {slow.P_STATE_SETTLES_S:.0f} s after the P-state changes. Critical; "
        "a warning for 0x8 alone. Likely until the card's own best clock is learned, then measured. It ends "
        f"after {slow.SLOWDOWN_EXIT_S:.0f} s without. What is lost: utilization x (1 - clock/best).",
        unlike="A power cap at the card's default (0x4) is normal at full load; 0x8 flashes for a sample "
        "when the P-state changes; P2 is the normal state of GeForce cards under CUDA. Models "
        "that report these bits in normal work are left alone.",
        steps=(
            "A power brake points at the supply: its rating, one cable for each connector, no "
            "splitters. Heat points at fans and the air path. Keep reason, temperature and power as "
            "evidence for the vendor.",
        ),
        wrong_if="",
        settle="",
        sources="Bits and counters: nvml.h. Which bits are harmful, and the models: NVIDIA DCGM's "
        "diagnostic.",
    ),
    "thermal-throttle": RuleText(
        title="heat holds the clock down",
        label="heat",
        render=_thermal,
        sees="The SW thermal bit (0x20) and its time counter, temperature of core and memory, and this "
        "card's own limits.",
        decides=f"The bit in {heat.THERMAL_S:.0f} of {heat.THERMAL_OF_S:.0f} s or "
        f"{heat.THERMAL_COUNTED_S:.0f} s counted, on a GPU at {heat.THERMAL_UTILIZATION:.0%} or "
        f"more; it ends under {heat.THERMAL_EXIT_S:.0f} of {heat.THERMAL_EXIT_OF_S:.0f} s. At least a "
        f"warning where the bit is set for {heat.HELD_S:.0f} of {heat.HELD_OF_S:.0f} s. A notice before "
        f"that: within {heat.PREWARN_BELOW_LIMIT_C:.0f} °C of the limit for a minute (ends "
        f"{heat.PREWARN_EXIT_C:.0f} °C below it). With the power cap reported beside it half of the time, "
        f"heat is named only within {heat.HEAT_NEAR_LIMIT_C:.0f} °C of the core's limit or "
        f"{heat.MEMORY_NEAR_LIMIT_C:.0f} °C of the memory's ({heat.MEMORY_HOT_C:.0f} °C where that is not "
        f"told). A cool core ({heat.CORE_COOL_C:.0f} °C below its limit) beside a memory that cannot be read "
        "is one step less sure.",
        unlike="Hot without the bit and without loss of clock is no finding: limits differ between about "
        "57 and 105 °C, so no fixed figure is used. A power cap alone is not heat.",
        steps=(
            "Clear dust, intake and the way of the air; raise the fans; or lower the power limit by "
            "10 to 15 %, which often costs no speed. Hot memory asks for pads and air over the "
            "backplate.",
        ),
        wrong_if="",
        settle="",
        sources="Bits and limits: nvml.h; harmful bits and exempt models: NVIDIA DCGM; seconds are our own.",
    ),
    "power-limit-lowered": RuleText(
        title="power limit lowered",
        label="power limit",
        render=_limit,
        sees="The enforced power limit, the card's default and highest, the power cap bit (0x4) and "
        "its counter.",
        decides=f"A limit under {power.LOWERED_RATIO:.0%} of the default (ends at "
        f"{power.LOWERED_EXIT_RATIO:.0%}) is a notice; a warning when the cap holds the clock "
        f"{power.CAPPED_RATIO:.0%} of a minute at {power.CAPPED_UTILIZATION:.0%} utilization. A "
        "share is given only then, and when the card's uncapped clock was seen.",
        unlike="The power cap at the default limit is normal at full load and is never a finding. A "
        "laptop that moves its limit by itself (more than 3 limits in 10 min) is left alone.",
        steps=(
            "Ask who set it and why. Where heat and supply allow it: nvidia-smi -pl with the default "
            "limit (needs an administrator). Compare steps per second: the last watts bring little.",
        ),
        wrong_if="",
        settle="",
        sources="NVIDIA's statements on the power cap and nvml.h; 95 % and 50 % are our own.",
    ),
}
