"""Texts of the rules about fans, fixed clocks, the bus and main memory."""

from gpuwatch.diagnosis.interface import Fires
from gpuwatch.diagnosis.texts.record import RuleText
from gpuwatch.diagnosis.texts.words import byte_rate, facts, lines, number, percent, range_of
from gpuwatch.diagnosis.window import Window
from gpuwatch.language import say
from gpuwatch.model import FindingText


def _fan(fires: Fires, window: Window) -> FindingText:
    temperature = number(fires.parameters, "temperature") or 0.0
    slow, fast = number(fires.parameters, "slowest") or 0.0, number(fires.parameters, "fastest") or 0.0
    rises = fires.variant == "rises"
    return FindingText(
        title=say("the fans run at full speed and the card still gets hotter")
        if rises
        else say("a fan may have stopped"),
        because=lines(
            say("{temperature} °C under load", temperature=round(temperature)),
            say("fans at {slow} and {fast}", slow=percent(slow), fast=percent(fast))
            if fast != slow
            else say("the fan reads {slow}", slow=percent(slow)),
        ),
        wrong_if=say("the card is water-cooled and reports its pump"),
        settle=say("look and listen; nvidia-smi -q -d TEMPERATURE"),
        advice=(
            say("look and listen: does every fan turn?"),
            say("nvidia-smi -q -d TEMPERATURE"),
            say("no long runs until it is clear"),
        ),
        short_advice=say("look: does every fan turn?"),
    )


def _pinned(fires: Fires, window: Window) -> FindingText:
    clock, most = number(fires.parameters, "clock") or 0.0, number(fires.parameters, "most") or 0.0
    return FindingText(
        title=say("the clock is fixed at {clock} of {most} MHz", clock=round(clock), most=round(most)),
        because=lines(
            say("a clock setting is among the event reasons")
            if fires.variant
            else say("it has not moved for five minutes, with power and heat to spare"),
            say("it costs up to {share} if the work is bound by the clock", share=range_of(fires)),
        ),
        wrong_if=say("somebody fixed it on purpose, or the work is bound by memory"),
        settle=say("nvidia-smi -q -d CLOCK shows applications and locked clocks"),
        advice=(
            say("nvidia-smi -rgc and -rac reset it (administrator)"),
            say("look for tuning tools or a cluster policy"),
            say("sync boost: mend the slowest card of the group"),
        ),
        short_advice=say("nvidia-smi -rgc (administrator)"),
    )


def _sag(fires: Fires, window: Window) -> FindingText:
    get = fires.parameters
    return FindingText(
        title=say("the clock stays low and the card gives no reason"),
        because=lines(
            say(
                "{clock} MHz against {best} MHz before",
                clock=round(number(get, "clock") or 0),
                best=round(number(get, "best") or 0),
            ),
            say(
                "{power} of {limit} W",
                power=round(number(get, "power") or 0),
                limit=round(number(get, "limit") or 0),
            ),
            say("full load, cool, and no event reason"),
        ),
        wrong_if=say("the job entered another phase with other kernels"),
        settle=say("swap cable, slot or card: what does it follow?"),
        advice=(
            say("power cables and supply under load"),
            say("nvidia-smi -q -d CLOCK,PERFORMANCE while it lasts"),
            say("swap cable, slot or card and see what it follows"),
        ),
        short_advice=say("check power cables and supply"),
    )


def _bus(fires: Fires, window: Window) -> FindingText:
    used, most = number(fires.parameters, "used") or 0.0, number(fires.parameters, "most") or 1.0
    return FindingText(
        title=say("the bus to the card is full"),
        because=lines(
            say("{used} of about {most}", used=byte_rate(used), most=byte_rate(most)),
            say("for {seconds} of 30 s", seconds=round(facts(fires).get("full_s", 0.0))),
        ),
        wrong_if=say("the copies run beside the computing and cost nothing"),
        settle=say("100 steps with the batch kept on the GPU"),
        advice=(
            say("send uint8 and normalise on the GPU: a quarter of the bytes"),
            say("pin_memory=True, non_blocking=True"),
            say("mend width or generation of the link; keep data on the card if they fit"),
        ),
        short_advice=say("send uint8, normalise on the GPU"),
    )


def _errors(fires: Fires, window: Window) -> FindingText:
    count, limit = number(fires.parameters, "count") or 0.0, number(fires.parameters, "limit") or 0.0
    return FindingText(
        title=say("the PCIe link repeats packets"),
        because=lines(
            say("{count} in a minute; {limit} are within the norm", count=round(count), limit=round(limit))
        ),
        wrong_if=say("the counter was read across a reset"),
        settle=say("another slot or riser: do they go?"),
        advice=(
            say("reseat the card, try another slot"),
            say("another riser or cable"),
            say("a lower generation in the BIOS as a test"),
        ),
        short_advice=say("reseat the card, other riser"),
    )


def _channels(fires: Fires, window: Window) -> FindingText:
    used, most = round(number(fires.parameters, "used") or 0), round(number(fires.parameters, "most") or 0)
    speed = facts(fires).get("configured_mts")
    return FindingText(
        title=say("main memory runs on {used} of {most} channels", used=used, most=most),
        because=lines(
            say("{count} memory modules are fitted", count=round(facts(fires).get("modules", 0.0))),
            None
            if speed is None
            else say("they run at {speed} MT/s, below what they can", speed=round(speed)),
        ),
        wrong_if=say("the tables of the machine are wrong"),
        settle=say("dmidecode -t memory as administrator"),
        advice=(
            say("fill the matched slots of the manual"),
            say("dmidecode -t memory: slots and configured speed"),
            say("measure copies before and after"),
        ),
        short_advice=say("fill the matched memory slots"),
    )


TEXTS: dict[str, RuleText] = {
    "fan-or-cooling-fault": RuleText(
        title="a fan stands still, or cannot cope",
        label="fan",
        render=_fan,
        sees="Every fan's speed against the temperature under load.",
        decides="A GPU at 50 % or more, and: above 75 °C for a minute (ends below 70 °C) with a fan at 0 or "
        "more than 40 points behind its sibling; or more than 1.5 °C a minute for 5 min with all fans at 98 %, "
        "within 20 °C of the card's limit. A warning; a fan that stands is critical while heat holds the clock "
        "down. It ends after half a minute without.",
        unlike="Passive cards; fans that stand still when it is cool; a warm room raises all cards.",
        steps=(
            "Look and listen: does every fan turn?",
            "nvidia-smi -q -d TEMPERATURE.",
            "No long runs until it is clear.",
        ),
        wrong_if="the card is water-cooled and reports its pump.",
        settle="look and listen.",
        sources="Our own.",
    ),
    "clocks-pinned": RuleText(
        title="the clock is fixed",
        label="fixed clock",
        render=_pinned,
        sees="Event reasons of clock settings, and a clock that never moves.",
        decides="A GPU at 50 % or more, and: application clocks, sync boost or display clock set in 80 % of a "
        "minute with the clock at 90 % of the highest or less (ends above 93 %); or, likely only, without a "
        "reason the same clock within 1 % for 5 min below 85 % of the highest, with power below 80 % of its "
        "range and 10 °C of margin. In two looks 10 s apart. What is lost is counted from 95 % of the highest.",
        unlike="A power cap or heat, which have reasons of their own; a laptop, which sets its clock itself; the "
        "highest clock is rarely reached.",
        steps=(
            "nvidia-smi -rgc and -rac reset it (administrator).",
            "Look for tuning tools or a cluster policy.",
            "Sync boost: mend the slowest card of the group.",
        ),
        wrong_if="somebody fixed it on purpose, or the work is bound by memory.",
        settle="nvidia-smi -q -d CLOCK.",
        sources="Bits: nvml.h; numbers are our own.",
    ),
    "clock-sag-unexplained": RuleText(
        title="a low clock without a reason",
        label="clock sag",
        render=_sag,
        sees="Clock and power of a fully loaded card against its own best in this session.",
        decides="In 80 % of a minute: utilization 90 %, memory accessed 20 %, clock below 85 % of the learned "
        "best (ends at 92 %), power below 85 % of the limit, no reason, 10 °C of margin. The best needs two "
        "minutes of load. A notice, from 15 % lost a warning; always possible only.",
        unlike="Another phase of the job; laptops; a fixed clock does not move at all.",
        steps=(
            "Power cables and supply under load.",
            "nvidia-smi -q -d CLOCK,PERFORMANCE while it lasts.",
            "Swap cable, slot or card and see what it follows.",
        ),
        wrong_if="the job entered another phase with other kernels.",
        settle="swap cable, slot or card.",
        sources="The essay's weak supply; numbers are our own.",
    ),
    "pcie-saturated": RuleText(
        title="the bus to the card is full",
        label="PCIe",
        render=_bus,
        sees="Bytes to and from the card against what its link carries.",
        decides="70 % of the payload rate (85 % of the lanes' rate) in one direction in 15 of 30 s (ends below "
        "55 %). A loss, likely, where the GPU waits in pulses for 8 % or more, else a state.",
        unlike="GPUs that talk to each other use both ways; copies that are not pinned reach 30 to 50 %.",
        steps=(
            "Send uint8 and normalise on the GPU: a quarter of the bytes.",
            "pin_memory=True, non_blocking=True.",
            "Mend width or generation of the link.",
        ),
        wrong_if="the copies run beside the computing and cost nothing.",
        settle="100 steps with the batch kept on the GPU.",
        sources="20 GB/s: gpuprof; transfer 30 % of input: XProf; 70 and 85 % are our own.",
    ),
    "pcie-errors": RuleText(
        title="the PCIe link repeats packets",
        label="PCIe errors",
        render=_errors,
        sees="How many packets the link sends again.",
        decides="More in a minute than 0.15, 0.3, 0.48, 0.96, 1.92 or 3.84 per lane for generations 1 to 6, "
        "rounded up (ends at half of that). A warning.",
        unlike="A few repeats are physics.",
        steps=(
            "Reseat the card, try another slot.",
            "Another riser or cable.",
            "A lower generation in the BIOS as a test.",
        ),
        wrong_if="the counter was read across a reset.",
        settle="another slot or riser.",
        sources="Rates: NVIDIA DCGM's health watch.",
    ),
    "host-memory-channels": RuleText(
        title="main memory on few channels",
        label="memory channels",
        render=_channels,
        sees="The memory modules the machine lists, and their channels.",
        decides="One module where there is room for 2 (or the room is not told), or fewer than half of the "
        "channels. A notice; a warning beside a loader that lacks CPU or copies that are not pinned.",
        unlike="Virtual machines, whose tables are fiction.",
        steps=(
            "Fill the matched slots of the manual.",
            "dmidecode -t memory: slots and configured speed.",
            "Measure copies before and after.",
        ),
        wrong_if="the tables of the machine are wrong.",
        settle="dmidecode -t memory as administrator.",
        sources="The essay; our own.",
    ),
}
