"""R07 and R08: the PCIe link is narrower or slower than card and slot allow.

Both judge only under load and by the best value seen, because an idle card lowers its link by design.
The driver's own maximum already contains the slot, so card and slot come from sysfs.
"""

from collections.abc import Iterator

from gpuwatch.diagnosis.interface import Abstain, Clear, Fires, Outcome
from gpuwatch.diagnosis.rules.common import inventory_missing, missing
from gpuwatch.diagnosis.rules.hardware.clocks import is_laptop
from gpuwatch.diagnosis.window import Window
from gpuwatch.model import Confidence, Evidence, GpuInfo, Kind, Severity

WINDOW_S, EXIT_S = 120.0, 30.0
LOAD_UTILIZATION, LOAD_S = 0.20, 10.0
TRAFFIC_BYTES_PER_S = 50e6  # own judgement: a link that moves less is not worth its full speed
#: The link takes a moment to rise when load comes after a pause long enough to lower it.
SETTLES_S, PAUSE_S = 2.0, 5.0
NARROW_SLOT = 4  # an x8 slot costs a few percent, x4 and less more
OLD_GENERATION = 2
SATURATED = "pcie-saturated"

_HIGHER = {Severity.NOTICE: Severity.WARNING, Severity.WARNING: Severity.CRITICAL}


def pcie_width_reduced(window: Window, active: bool) -> Outcome:
    """R07: fewer lanes than the card has: trained down, or a slot or a way with fewer."""
    excused = _excused(window)
    if excused is not None:
        return excused
    info = window.info
    if info is None or info.pcie_width_card is None:
        return inventory_missing(window, "pcie_width_card", "the card's own width")
    if info.pcie_width_slot is None:
        return inventory_missing(window, "pcie_width_slot", "the slot's width")
    widths = _under_load(window, "pcie_width", False)
    if isinstance(widths, Abstain):
        return widths
    card, slot = info.pcie_width_card, info.pcie_width_slot
    expected = min(card, slot)
    best = _best(window, widths, expected, active)
    if best < expected:
        severity, confidence, variant = Severity.WARNING, Confidence.MEASURED, "trained"
    else:
        way = min(slot, info.pcie_width_chain or slot)
        if way >= card:
            return Clear(f"x{best} under load")
        severity = Severity.WARNING if way <= NARROW_SLOT else Severity.NOTICE
        confidence, variant = Confidence.LIKELY, "slot" if slot == way else "way"
    evidence = (
        Evidence("pcie_width", "lanes under load", float(best), "", f"card x{card}", WINDOW_S, "pcie_width"),
        Evidence("pcie_width_slot", "lanes of the slot", float(slot)),
        *_chain_evidence(info.pcie_width_chain, "lanes of the way to the CPU", "pcie_width_chain"),
        *_bus_evidence(info),
        *_traffic_evidence(window),
    )
    return Fires(
        confidence=confidence,
        evidence=evidence,
        severity=_raised(window, severity),
        kind=Kind.OPPORTUNITY,
        variant=variant,
        parameters={
            "best": float(best),
            "card": float(card),
            "slot": float(slot),
            "way": float(min(slot, info.pcie_width_chain or slot)),
        },
    )


def pcie_gen_reduced(window: Window, active: bool) -> Outcome:
    """R08: the link stays at a lower generation although card and slot can do more."""
    excused = _excused(window)
    if excused is not None:
        return excused
    info = window.info
    if info is None or info.pcie_generation_card is None:
        return inventory_missing(window, "pcie_generation_card", "the card's own generation")
    if info.pcie_generation_slot is None:
        return inventory_missing(window, "pcie_generation_slot", "the slot's generation")
    generations = _under_load(window, "pcie_generation", True)
    if isinstance(generations, Abstain):
        return generations
    card, slot = info.pcie_generation_card, info.pcie_generation_slot
    expected = min(card, slot)
    best = _best(window, generations, expected, active)
    if best >= expected:
        board = f", the board's limit (card: gen {card})" if slot < card else ""
        return Clear(f"gen {best} under load{board}")
    far = expected - best >= 2 or best <= OLD_GENERATION
    evidence = (
        Evidence(
            "pcie_generation",
            "generation under load",
            float(best),
            "",
            f"{expected} possible",
            WINDOW_S,
            "pcie_generation",
        ),
        Evidence("pcie_generation_card", "generation of the card", float(card)),
        Evidence("pcie_generation_slot", "generation of the slot", float(slot)),
        *_bus_evidence(info),
        *_traffic_evidence(window),
    )
    return Fires(
        confidence=Confidence.MEASURED,
        evidence=evidence,
        severity=_raised(window, Severity.WARNING if far else Severity.NOTICE),
        kind=Kind.OPPORTUNITY,
        parameters={"best": float(best), "expected": float(expected)},
    )


def _excused(window: Window) -> Abstain | None:
    """Where the link is as the maker built it, or cannot be seen."""
    info = window.info
    if info is None:
        return Abstain("the card's inventory is not known yet")
    if info.unified_memory:
        return Abstain("this GPU is on the same package as the CPU and has no link of its own")
    if is_laptop(window):
        return Abstain("in a laptop the link is fixed by its design")
    if window.machine.host.virtual_machine or info.virtualization not in (None, "none"):
        return Abstain("in a virtual machine the slot cannot be seen")
    return None


def _under_load(window: Window, key: str, with_traffic: bool) -> list[tuple[float, int]] | Abstain:
    """(time, value) of the ticks that may be judged, in the last two minutes."""
    if window.last("utilization_ratio", WINDOW_S) is None:
        return missing(window, "utilization_ratio")
    if window.last(key, WINDOW_S) is None:
        return missing(window, key)
    traffic = "pcie_rx_bytes_per_s"
    if with_traffic and window.last(traffic, WINDOW_S) is None:
        return missing(window, traffic)
    ticks = list(_loaded_ticks(window, key, with_traffic))
    seen_s = len(ticks) * window.sample.interval_s
    if seen_s < LOAD_S:
        what = "load and traffic" if with_traffic else "load"
        return Abstain(f"judged after {LOAD_S:.0f} s of {what}", seconds_left=LOAD_S - seen_s)
    return ticks


def _loaded_ticks(window: Window, key: str, with_traffic: bool) -> Iterator[tuple[float, int]]:
    history, entity = window.history, window.entity
    times = history.times(WINDOW_S)
    busy = history.values(entity, "utilization_ratio", WINDOW_S)
    values = history.values(entity, key, WINDOW_S)
    received = history.values(entity, "pcie_rx_bytes_per_s", WINDOW_S)
    sent = history.values(entity, "pcie_tx_bytes_per_s", WINDOW_S)
    settled_s = loaded_s = float("-inf")
    moved = 0.0
    for time, used, value, rx, tx in zip(times, busy, values, received, sent, strict=True):
        if rx == rx or tx == tx:  # some cards are asked for their traffic every few ticks only
            moved = (rx if rx == rx else 0.0) + (tx if tx == tx else 0.0)
        if not used >= LOAD_UTILIZATION:
            continue
        if time - loaded_s > PAUSE_S:
            settled_s = time + SETTLES_S
        loaded_s = time
        if time < settled_s or value != value or value <= 0:
            continue
        if not with_traffic or moved >= TRAFFIC_BYTES_PER_S:
            yield time, int(value)


def _best(window: Window, ticks: list[tuple[float, int]], expected: int, active: bool) -> int:
    """The best value of the window. Once a finding is shown, only 30 s of good ones end it."""
    recent = [value for time, value in ticks if time > window.now_s - EXIT_S]
    if not active or len(recent) * window.sample.interval_s < LOAD_S:
        return max(value for _, value in ticks)
    good = all(value >= expected for value in recent)
    return max(recent) if good else min(recent)


def _raised(window: Window, severity: Severity) -> Severity:
    """A link that is full makes its lost lanes worse."""
    return _HIGHER[severity] if SATURATED in window.active else severity


def _chain_evidence(value: int | None, label: str, key: str) -> tuple[Evidence, ...]:
    return () if value is None else (Evidence(key, label, float(value)),)


def _bus_evidence(info: GpuInfo) -> tuple[Evidence, ...]:
    return () if info.bus_id is None else (Evidence("bus_id", "PCI address", info.bus_id),)


def _traffic_evidence(window: Window) -> tuple[Evidence, ...]:
    received = window.mean("pcie_rx_bytes_per_s", 30.0)
    if received is None:
        return ()
    return (Evidence("pcie_rx_bytes_per_s", "to the card", received, "B/s", "", 30.0, "pcie_rx_bytes_per_s"),)
