"""Texts of the rules about a lost card and about our own sight."""

from gpuwatch.diagnosis.interface import Fires
from gpuwatch.diagnosis.rules.health import watch as health
from gpuwatch.diagnosis.texts.record import RuleText
from gpuwatch.diagnosis.texts.words import duration, facts, lines, number
from gpuwatch.diagnosis.window import Window
from gpuwatch.model import FindingText


def _lost(fires: Fires, window: Window) -> FindingText:
    index = number(fires.parameters, "index") or 0.0
    message, advice = fires.parameters.get("message"), fires.parameters.get("advice")
    values = facts(fires)
    together = fires.variant == "all"
    last = [
        f"{values[key]:.0f} {unit}"
        for key, unit in (("temperature_c", "°C"), ("power_w", "W"))
        if key in values
    ]
    return FindingText(
        title="all GPUs are lost at once" if together else f"GPU {index:.0f} is lost",
        because=lines(
            message if isinstance(message, str) else "",
            f"for {duration(values.get('lost_s', 0.0))}",
            f"last seen at {', '.join(last)}" if last else "",
        ),
        wrong_if="the driver was reloaded or updated" if together else "the card was reset on purpose",
        settle="nvidia-smi, and the kernel log: dmesg | grep -i xid",
        advice=lines(
            advice if isinstance(advice, str) else "",
            "save what can be saved, stop the jobs on this card",
            "power cycle the machine; check supply and seating",
            "report it with the Xid from the kernel log, if there is one",
        ),
        short_advice="look for Xid in the kernel log",
    )


def _telemetry(fires: Fires, window: Window) -> FindingText:
    problems = [str(value) for key, value in fires.parameters.items() if key.startswith("problem_")]
    title = problems[0] if problems else "some figures cannot be read"
    return FindingText(
        title=title if len(problems) < 2 else f"{title}, and {len(problems) - 1} more",
        because=tuple(problems),
        wrong_if="the machine was suspended or very busy for a moment",
        settle="nvidia-smi in another terminal: does it answer at once?",
        advice=(
            "see the list of what is not checked, with the reasons",
            "permissions: groups, container flags, device rules",
            "driver version, and the kernel log",
        ),
        short_advice="see what is not checked, and why",
    )


TEXTS: dict[str, RuleText] = {
    "gpu-lost": RuleText(
        title="a GPU is lost",
        label="lost",
        render=_lost,
        sees="The driver's answer that a card is lost or needs a reset.",
        decides="At once. While it lasts nothing else about this card begins or ends. It ends when the "
        "card answers again.",
        unlike="All cards at once: the driver was probably reloaded. A card that sleeps or does not "
        "answer for a while is not lost.",
        steps=(
            "Stop the jobs on it, look at the kernel log for Xid 79, power cycle the machine, and "
            "check supply and seating.",
        ),
        wrong_if="",
        settle="",
        sources="NVML's return values GPU_IS_LOST and RESET_REQUIRED: nvml.h.",
    ),
    "telemetry-degraded": RuleText(
        title="some figures cannot be read",
        label="unseen",
        render=_telemetry,
        sees="How long a round of reading takes, how old each card's figures are, how many calls fail, "
        "and whether utilization can be read at all.",
        decides=f"A round over {health.SLOW_POLL_S:.0f} s, figures older than {health.OLD_S:.0f} s, more "
        f"than {health.FAILING_RATIO:.0%} of the calls failing, or no utilization (MIG, some "
        "virtual GPUs), in two looks 2 s apart; it ends after 30 s without. It is shown above the "
        "verdict and never alarms.",
        unlike="Signals a card does not have are listed where they are missed, not here.",
        steps=(
            "See which signals are missing and why on the checks' own pages; permissions (groups, "
            "container flags), driver version and the kernel log are the usual places.",
        ),
        wrong_if="",
        settle="",
        sources="Our own limits; that no finding begins or ends on old data follows TraceML's abstentions.",
    ),
}
