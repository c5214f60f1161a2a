"""Texts of the rules about the PCIe link."""

from gpuwatch.diagnosis.interface import Fires
from gpuwatch.diagnosis.rules.hardware import pcie_link as link
from gpuwatch.diagnosis.texts.record import RuleText
from gpuwatch.diagnosis.texts.words import byte_rate, facts, item, lines, number
from gpuwatch.diagnosis.window import Window
from gpuwatch.model import FindingText


def _traffic_line(fires: Fires) -> str:
    received = facts(fires).get("pcie_rx_bytes_per_s")
    return f"{byte_rate(received)} to the card at present" if received is not None else ""


def _address(fires: Fires) -> str:
    found = item(fires, "bus_id")
    return f" ({found.value})" if found is not None else ""


def _width(fires: Fires, window: Window) -> FindingText:
    best, card, slot, way = (number(fires.parameters, key) or 0.0 for key in ("best", "card", "slot", "way"))
    title = {
        "slot": f"the slot has {slot:.0f} lanes, the card {card:.0f}",
        "way": f"the way to the CPU has {way:.0f} lanes, the card {card:.0f}",
    }.get(fires.variant, f"PCIe runs on {best:.0f} of {min(card, slot):.0f} lanes")
    trained = fires.variant == "trained"
    return FindingText(
        title=title,
        because=lines(
            f"x{best:.0f} at best under load in 2 min{_address(fires)}",
            f"card x{card:.0f}, slot x{slot:.0f}" + (f", way to the CPU x{way:.0f}" if way < slot else ""),
            _traffic_line(fires),
        ),
        wrong_if="the job moves little: an x8 link then costs a few percent at most",
        settle="watch PCIe traffic while batches are copied: is it near the link's rate?",
        advice=(
            "reseat the card, take out the riser, clean the contacts"
            if trained
            else "use the first x16 slot that is wired to the CPU (see the board's manual)",
            "BIOS: bifurcation back to x16; lanes are often shared with M.2 slots",
            "send uint8 and normalize on the GPU: a quarter of the bytes",
        ),
        short_advice="reseat the card, no riser" if trained else "use the CPU's x16 slot",
    )


def _generation(fires: Fires, window: Window) -> FindingText:
    best, expected = (number(fires.parameters, key) or 0.0 for key in ("best", "expected"))
    values = facts(fires)
    card, slot = values.get("pcie_generation_card", 0.0), values.get("pcie_generation_slot", 0.0)
    return FindingText(
        title=f"PCIe runs at generation {best:.0f} of {expected:.0f} under load",
        because=lines(
            f"generation {best:.0f} at best under load in 2 min{_address(fires)}",
            f"card generation {card:.0f}, slot generation {slot:.0f}",
            _traffic_line(fires),
        ),
        wrong_if="a power saving profile raises the link late",
        settle="nvidia-smi -q -d PCI while the training runs",
        advice=(
            "BIOS: set the slot's speed to Auto or to its generation",
            "a riser or cable rated for that generation, or none",
            "reseat the card",
        ),
        short_advice="BIOS: slot speed to Auto",
    )


_SEES = (
    "The link as negotiated now, the card's and the slot's own maxima from sysfs (the "
    "driver's maximum already contains the slot), utilization and traffic. Only the best "
    "value of two minutes under load counts."
)

TEXTS: dict[str, RuleText] = {
    "pcie-width-reduced": RuleText(
        title="PCIe runs on fewer lanes than the card has",
        label="PCIe",
        render=_width,
        sees=_SEES,
        decides=f"After {link.LOAD_S:.0f} s with the GPU at {link.LOAD_UTILIZATION:.0%}: fewer lanes than "
        "card and slot both have is a warning; a slot, or a hop on the way to the CPU, with fewer "
        f"lanes is a notice, a warning at x{link.NARROW_SLOT} and below, and only likely. It ends after "
        f"{link.EXIT_S:.0f} s in which every reading under load shows full width.",
        unlike="An idle card that saves power; cards made for x8; laptops, virtual machines and GPUs on "
        "the CPU's package, which are listed as not checked.",
        steps=(
            "Use the first x16 slot wired to the CPU; reseat the card, leave the riser out; set the "
            "slot back to x16 in the BIOS (lanes are often shared with M.2).",
        ),
        wrong_if="",
        settle="",
        sources="What the driver's maximum means: nvml.h; sysfs comparison as in Meta's gcm; limits are "
        "our own.",
    ),
    "pcie-gen-reduced": RuleText(
        title="PCIe runs at a lower generation than card and slot allow",
        label="PCIe",
        render=_generation,
        sees=_SEES,
        decides=f"After {link.LOAD_S:.0f} s with the GPU at {link.LOAD_UTILIZATION:.0%} and "
        f"{link.TRAFFIC_BYTES_PER_S / 1e6:.0f} MB/s on the link: one generation below is a notice, "
        f"two below or generation {link.OLD_GENERATION} and less a warning. It ends after "
        f"{link.EXIT_S:.0f} s in which every reading under load shows full speed.",
        unlike="Generation 1 on an idle card is how it saves power. A board of an older generation is "
        "named in the check's line, it is no fault.",
        steps=(
            "Look again under load. Set the slot's speed to Auto in the BIOS; use a riser or cable "
            "rated for the generation, or none.",
        ),
        wrong_if="",
        settle="",
        sources="Driver behaviour: NVIDIA's developer forum and nvml.h; 50 MB/s is our own.",
    ),
}
