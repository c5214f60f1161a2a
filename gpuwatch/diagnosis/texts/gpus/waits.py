"""Texts of the rules about GPUs that wait for each other."""

from gpuwatch.diagnosis.interface import Fires
from gpuwatch.diagnosis.texts.record import RuleText
from gpuwatch.diagnosis.texts.words import duration, facts, lines, number, percent
from gpuwatch.diagnosis.window import Window
from gpuwatch.language import say
from gpuwatch.model import FindingText


def _straggler(fires: Fires, window: Window) -> FindingText:
    suspect = round(number(fires.parameters, "suspect") or 0)
    wait, reason = number(fires.parameters, "wait") or 0.0, str(fires.parameters.get("reason", ""))
    own, rest = facts(fires).get("suspect_clock_mhz"), facts(fires).get("clock_mhz")
    traffic = fires.variant == "traffic"
    return FindingText(
        title=say("GPU {number} is late, the others spin and wait for it", number=suspect),
        because=lines(
            say("all show full utilization, but the others move {share} less memory", share=percent(wait))
            if traffic
            else say("the others wait {share} of the time at full utilization", share=percent(wait)),
            say("and draw less power: they spin between their steps")
            if traffic
            else say("GPU {number} waits least", number=suspect),
            say("it has a finding of its own: {rule}", rule=reason) if reason else None,
            say("its clock is {own} MHz against {rest} MHz", own=round(own), rest=round(rest))
            if own is not None and rest is not None
            else None,
        ),
        wrong_if=say("its rank has more to do by design (logging, a longer batch)"),
        settle=say("swap the ranks: does it follow the card or the rank?"),
        advice=(
            say("mend what is found on GPU {number}", number=suspect)
            if reason
            else say("compare clocks, temperature and link of GPU {number} with its peers", number=suspect),
            say("swap the ranks: does it follow the card or the rank?"),
            say("the same power limit and clocks on all cards"),
        ),
        short_advice=say("look at GPU {number} first", number=suspect),
    )


def _comm(fires: Fires, window: Window) -> FindingText:
    share = number(fires.parameters, "wait") or 0.0
    link = facts(fires).get("link_ratio")
    bound = fires.variant == "bandwidth"
    return FindingText(
        title=say("the GPUs wait for the link between them")
        if bound
        else say("the GPUs wait for each other, all alike"),
        because=lines(
            say("{share} of the time at full utilization without touching memory", share=percent(share)),
            None if link is None else say("PCIe is {share} full", share=percent(link)),
            say("NVLink is in use") if number(fires.parameters, "nvlink") else say("no NVLink is in use"),
        ),
        wrong_if=say("the kernels work on data that stays in the cache"),
        settle=say("the same run on one GPU: how much longer is its step?"),
        advice=(
            say("check the way between the cards: nvidia-smi topo -m"),
            say("larger buckets, gradient accumulation, bfloat16 gradients"),
            say("NCCL_DEBUG=INFO once: P2P or NVLink, or SHM and NET?"),
        ),
        short_advice=say("nvidia-smi topo -m"),
    )


def _hang(fires: Fires, window: Window) -> FindingText:
    seconds, suspects = number(fires.parameters, "seconds") or 0.0, str(fires.parameters.get("suspects", ""))
    power = facts(fires).get("power_ratio")
    return FindingText(
        title=say(
            "the job looks stuck in a collective for {time}; {who} does not take part",
            time=duration(seconds),
            who=suspects,
        )
        if suspects
        else say("the job looks stuck in a collective for {time}", time=duration(seconds)),
        because=lines(
            say("full utilization without memory access or traffic: spinning, not working"),
            None if power is None else say("power is {share} of its range", share=percent(power)),
            say("{who} does nothing", who=suspects) if suspects else None,
        ),
        wrong_if=say("one rank compiles or loads for this long on purpose"),
        settle=say("py-spy dump on each rank: where do they stand?"),
        advice=(
            say("py-spy dump on each rank"),
            say("look for a rank that crashed, ended early or took another branch"),
            say("set a timeout and the flight recorder of torch.distributed"),
        ),
        short_advice=say("py-spy dump on each rank"),
    )


TEXTS: dict[str, RuleText] = {
    "straggler-card": RuleText(
        title="one card is late, the others wait for it",
        label="late card",
        render=_straggler,
        sees="How much of its time each GPU of the job spins at full utilization without touching memory.",
        decides="The others wait 10 % of a minute or more (ends below 6 %) and one waits a third of that or less: it is "
        "the late one. Likely with at least three GPUs and a finding of its own, else possible. Waits shorter than a "
        "sample: all at 90 % or more, and the others, alike, move at least 15 % less memory and draw less power.",
        unlike="Where all wait alike it is the communication; a card that spins at low power is a victim.",
        steps=(
            "Mend what is found on the late card.",
            "Swap the ranks: does it follow the card or the rank?",
            "The same power limit and clocks on all cards.",
        ),
        wrong_if="its rank has more to do by design.",
        settle="swap the ranks.",
        sources="Late arriver: PyTorch HTA and TraceML; at least three members: XProf; the wait share is our own.",
    ),
    "comm-wait": RuleText(
        title="the GPUs wait for each other",
        label="peers",
        render=_comm,
        sees="GPUs of one job that all spin at full utilization for a part of the time.",
        decides="Each waits 10 % of a minute or more (ends below 6 %), the most less than twice the least. Likely "
        "where PCIe is 60 % full, else possible.",
        unlike="One late card; work bound by memory (it accesses memory all the time); a hang (no traffic at all).",
        steps=(
            "Check the way between the cards: nvidia-smi topo -m.",
            "Larger buckets, gradient accumulation, bfloat16 gradients.",
            "NCCL_DEBUG=INFO once: P2P or NVLink, or SHM and NET?",
        ),
        wrong_if="the kernels work on data that stays in the cache.",
        settle="the same run on one GPU.",
        sources="10 %: PyTorch Kineto; 3, 15 and 30 %: XProf; the signature: reports of NCCL users.",
    ),
    "collective-hang": RuleText(
        title="stuck in a collective",
        label="hang",
        render=_hang,
        sees="GPUs at full utilization that access no memory, move nothing and draw little power.",
        decides="Utilization of 95 %, memory accessed 3 % of the time at most, power up to 25 % of its range and links "
        "below 500 MB/s for 120 s on two GPUs, or on one beside one that does nothing; critical from 300 s.",
        unlike="A held card shows 0 %; GPUs that wait for a slow link have traffic.",
        steps=(
            "py-spy dump on each rank.",
            "Look for a rank that crashed, ended early or took another branch.",
            "Set a timeout and the flight recorder of torch.distributed.",
        ),
        wrong_if="one rank compiles or loads for this long on purpose.",
        settle="py-spy dump on each rank.",
        sources="100 % at about 70 W: reports of NCCL users; the times are our own.",
    ),
}
