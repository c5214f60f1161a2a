"""Texts of the rules about what driver and kernel report."""

from gpuwatch.diagnosis.interface import Fires
from gpuwatch.diagnosis.texts.record import RuleText
from gpuwatch.diagnosis.texts.words import duration, facts, lines, number, process_name
from gpuwatch.diagnosis.window import Window
from gpuwatch.language import say
from gpuwatch.model import FindingText


def _xid(fires: Fires, window: Window) -> FindingText:
    code, message = round(number(fires.parameters, "code") or 0), str(fires.parameters.get("message", ""))
    program = fires.variant == "program"
    return FindingText(
        title=say("the driver logged Xid {code}", code=code),
        because=lines(message, say("{time} ago", time=duration(facts(fires).get("ago_s", 0.0)))),
        wrong_if=say("the hardware is at fault after all") if program else say("a program caused it"),
        settle=say("NVIDIA's Xid catalogue, and dmesg | grep -i xid"),
        advice=(
            say("first suspect the program: it runs again without?")
            if program
            else say("save what can be saved; check the hardware"),
            say("look the code up in NVIDIA's Xid catalogue"),
            say("dmesg | grep -i xid"),
        ),
        short_advice=say("look up Xid {code}", code=code),
    )


_MEMORY = {
    "failed": "replacing a row of GPU memory failed",
    "errors": "GPU memory errors that were not corrected",
    "pending": "rows of GPU memory wait for being replaced",
}


def _ecc(fires: Fires, window: Window) -> FindingText:
    found = facts(fires)
    errors = found.get("ecc_uncorrected_count")
    rows = found.get("remapped_uncorrected_count")
    return FindingText(
        title=say(_MEMORY[fires.variant]),
        because=lines(
            None
            if errors is None
            else say("{count} uncorrected errors since the driver started", count=round(errors)),
            None if rows is None else say("{count} rows replaced so far", count=round(rows)),
        ),
        wrong_if=say("the counters are from before the last reset"),
        settle=say("nvidia-smi -q -d ECC,ROW_REMAPPER"),
        advice=(
            say("save a checkpoint"),
            say("a reset or reboot applies what is pending"),
            say("a failed replacement: exchange the card"),
        ),
        short_advice=say("save a checkpoint"),
    )


def _stuck(fires: Fires, window: Window) -> FindingText:
    return FindingText(
        title=say(
            "a process hangs in the kernel (pid {pid})", pid=round(number(fires.parameters, "pid") or 0)
        ),
        because=lines(
            process_name(fires.parameters),
            say(
                "it has been waiting for {time} without a break",
                time=duration(facts(fires).get("blocked_s", 0.0)),
            ),
        ),
        wrong_if=say("a file server pauses and comes back"),
        settle=say("the kernel log: dmesg"),
        advice=(
            say("check the mount and its server"),
            say("the kernel log: dmesg"),
            say("reboot if a driver is stuck"),
        ),
        short_advice=say("check the mount, dmesg"),
    )


def _persistence(fires: Fires, window: Window) -> FindingText:
    return FindingText(
        title=say("the driver unloads between jobs"),
        because=(say("persistence mode is off"),),
        wrong_if=say("it is meant to be so"),
        settle=say("nvidia-smi -q | grep Persistence"),
        advice=(say("run the persistence daemon"), say("it has no effect while a job trains")),
        short_advice=say("run the persistence daemon"),
    )


TEXTS: dict[str, RuleText] = {
    "xid": RuleText(
        title="the driver logged an error (Xid)",
        label="Xid",
        render=_xid,
        sees="Error events of the driver while gpuwatch listens.",
        decides="48, 62, 64, 74, 79, 95, 119, 120 and 140 are critical, 13, 31, 43 and 45 a notice (usually the program), others a warning; "
        "each is shown for 10 min.",
        unlike="Events that came before gpuwatch started are in the kernel log only.",
        steps=(
            "Look the code up in NVIDIA's Xid catalogue.",
            "48, 74, 79: stop and check the hardware.",
            "13, 31, 43: first suspect the program.",
        ),
        wrong_if="a program caused what looks like hardware, or the reverse.",
        settle="NVIDIA's Xid catalogue, and the kernel log.",
        sources="NVIDIA's Xid catalogue and DCGM's subsystems; the division is our own.",
    ),
    "ecc-remap": RuleText(
        title="GPU memory errors",
        label="memory errors",
        render=_ecc,
        sees="Uncorrected errors since the driver started, and rows that wait for being replaced.",
        decides="1 uncorrected error or a failed replacement is critical, a pending one a warning. Corrected errors are not shown.",
        unlike="Totals over the card's life, which stay.",
        steps=(
            "Save a checkpoint.",
            "A reset or reboot applies what is pending.",
            "A failed replacement: exchange the card.",
        ),
        wrong_if="the counters are from before the last reset.",
        settle="nvidia-smi -q -d ECC,ROW_REMAPPER.",
        sources="NVIDIA DCGM; KempnerPulse.",
    ),
    "stuck-process": RuleText(
        title="a process hangs in the kernel",
        label="stuck",
        render=_stuck,
        sees="The state of main process and workers, tick by tick.",
        decides="State D without a break for 60 s.",
        unlike="Short waits for a disk.",
        steps=("Check the mount and its server.", "The kernel log: dmesg.", "Reboot if a driver is stuck."),
        wrong_if="a file server pauses and comes back.",
        settle="the kernel log.",
        sources="Five checks a minute apart: gpud; 60 s are our own.",
    ),
    "persistence-off": RuleText(
        title="the driver unloads between jobs",
        label="persistence",
        render=_persistence,
        sees="Persistence mode of a data-centre card without a job.",
        decides="Off, and 0 jobs on the card. A state.",
        unlike="Desktop cards, where it does not matter.",
        steps=("Run the persistence daemon.", "It has no effect while a job trains."),
        wrong_if="it is meant to be so.",
        settle="nvidia-smi -q | grep Persistence.",
        sources="gpud; our own.",
    ),
}
