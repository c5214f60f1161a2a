"""R09, R10, R60: a full bus, packets sent again, and main memory on too few channels."""

from math import ceil

from gpuwatch.diagnosis.interface import Abstain, Clear, Fires, Outcome
from gpuwatch.diagnosis.rules.common import link_rate_bytes_per_s, missing, pulsed, seconds_where
from gpuwatch.diagnosis.window import Window
from gpuwatch.model import Confidence, Evidence, Severity

#: Of what the lanes carry (our own).
PAYLOAD = 0.85
FULL_RATIO, FULL_EXIT_RATIO, FULL_S, FULL_PART = 0.70, 0.55, 30.0, 0.50
LOSS_RATIO = 0.08

#: Packets sent again per minute and lane that are within the norm, by generation (DCGM).
REPLAYS_PER_MIN = {1: 0.15, 2: 0.3, 3: 0.48, 4: 0.96, 5: 1.92, 6: 3.84}
REPLAY_S = 60.0


def _payload(window: Window) -> float | None:
    """What the link carries now, one way."""
    rate = link_rate_bytes_per_s(window)
    return None if rate is None else rate * PAYLOAD


def pcie_saturated(window: Window, active: bool) -> Outcome:
    """R09: for half of the time the link carries about all it can, to or from the card."""
    most = _payload(window)
    rx, tx = window.mean("pcie_rx_bytes_per_s", FULL_S), window.mean("pcie_tx_bytes_per_s", FULL_S)
    if rx is None or tx is None:
        return missing(window, "pcie_rx_bytes_per_s")
    if most is None:
        return Abstain("generation or width of the link is not known")
    least = (FULL_EXIT_RATIO if active else FULL_RATIO) * most
    seconds = max(
        seconds_where(window, key, FULL_S, lambda value: value >= least)
        for key in ("pcie_rx_bytes_per_s", "pcie_tx_bytes_per_s")
    )
    if seconds < FULL_PART * FULL_S:
        return Clear(f"{max(rx, tx) / most:.0%} of the link in use".replace("%", " %"))
    if window.siblings and min(rx, tx) >= 0.5 * max(rx, tx):
        return Clear("the GPUs talk to each other")
    shape = window.shape
    stalls = shape.stall_ratio if pulsed(window) and shape is not None else None
    loses = stalls is not None and stalls >= LOSS_RATIO
    return Fires(
        Confidence.MEASURED if not loses else Confidence.LIKELY,
        (
            Evidence("rx_bytes_per_s", "to the GPU", rx, "B/s", "", FULL_S, "pcie_rx_bytes_per_s"),
            Evidence("tx_bytes_per_s", "from the GPU", tx, "B/s", "", FULL_S, "pcie_tx_bytes_per_s"),
            Evidence("link_bytes_per_s", "the link carries about", most, "B/s"),
            Evidence("full_s", "full for", seconds, "s", ">= 15 of 30 s", FULL_S),
        ),
        severity=None if loses else Severity.STATE,
        share_ratio=stalls if loses else None,
        share_low_ratio=shape.stall_low_ratio if loses and shape is not None else None,
        share_high_ratio=shape.stall_high_ratio if loses and shape is not None else None,
        coverage_ratio=min(1.0, seconds / FULL_S) if loses else 0.0,
        parameters={"used": max(rx, tx), "most": most},
    )


def pcie_errors(window: Window, active: bool) -> Outcome:
    """R60: more packets are sent again than the physics of the link explains."""
    replays = window.present("pcie_replays_per_s", REPLAY_S)
    if not replays:
        return missing(window, "pcie_replay_count")
    generation, width = window.last("pcie_generation", 30.0), window.last("pcie_width", 30.0)
    if generation is None or not width:
        return Abstain("generation or width of the link is not known")
    count = sum(replays) * window.sample.interval_s
    limit = ceil(REPLAYS_PER_MIN.get(int(generation), REPLAYS_PER_MIN[6]) * width)
    if count <= limit * (0.5 if active else 1.0):
        return Clear("no packets repeated" if count < 0.5 else f"{count:.0f} packets repeated in a minute")
    return Fires(
        Confidence.MEASURED,
        (
            Evidence(
                "replays", "packets sent again", count, "", f"> {limit}", REPLAY_S, "pcie_replays_per_s"
            ),
            Evidence("link", "link", f"gen {generation:.0f} x{width:.0f}"),
        ),
        severity=Severity.WARNING,
        parameters={"count": count, "limit": float(limit)},
    )


def host_memory_channels(window: Window, active: bool) -> Outcome:
    """R10: main memory sits on fewer channels than the machine has."""
    host = window.machine.host
    if host.virtual_machine:
        return Abstain("in a virtual machine memory modules are fiction")
    modules = host.memory_modules
    if not modules:
        return Abstain(
            host.absent.get(
                "memory_modules", "memory modules cannot be read; as administrator: dmidecode -t memory"
            )
        )
    named = {module.channel or module.locator for module in modules}
    channels = len(named) if all(module.channel for module in modules) else None
    total = host.memory_channel_count or host.memory_slot_count
    if len(modules) == 1 and (total is None or total >= 2):
        used, most = 1, total or 2
    elif channels is not None and host.memory_channel_count and channels < host.memory_channel_count / 2:
        used, most = channels, host.memory_channel_count
    else:
        return Clear(f"{len(modules)} memory modules")
    slow = [
        one for one in modules if one.speed_mts and one.configured_mts and one.configured_mts < one.speed_mts
    ]
    beside = bool({"loader-cpu-bound", "pageable-copies", "loader-too-few-workers"} & window.active) or any(
        {"loader-cpu-bound", "pageable-copies"} & one.active for one in window.others
    )
    evidence = [
        Evidence("modules", "memory modules", float(len(modules))),
        Evidence("channels", "channels in use", float(used), "", f"of {most}"),
    ]
    if slow:
        evidence.append(Evidence("configured_mts", "they run at", float(slow[0].configured_mts or 0), "MT/s"))
    return Fires(
        Confidence.MEASURED,
        tuple(evidence),
        severity=Severity.WARNING if beside else Severity.NOTICE,
        parameters={"used": float(used), "most": float(most)},
    )
