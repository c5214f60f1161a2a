"""R53, R54, R56: GPUs of one job that wait for each other: for a late one, for the link, for ever.

A kernel of a collective spins while it waits, so a waiting GPU shows full utilization (nccl#968).
"""

from collections.abc import Sequence
from dataclasses import replace

from gpuwatch.diagnosis.catalogue import PLACES
from gpuwatch.diagnosis.interface import Abstain, Clear, Fires, Outcome
from gpuwatch.diagnosis.rules.common import link_rate_bytes_per_s, missing
from gpuwatch.diagnosis.rules.gpus.peers import (
    ALONE,
    WINDOW_S,
    all_steady,
    means,
    middle,
    name,
    own_reason,
    power_share,
    same_model,
    team,
    traffic_bytes_per_s,
    uuid,
)
from gpuwatch.diagnosis.window import Window
from gpuwatch.model import Confidence, Evidence, Layer, Severity

#: Waiting that counts, and how much less the late card waits; 10 % is Kineto's share for communication.
WAIT_RATIO, WAIT_EXIT_RATIO = 0.10, 0.06
LATE_PART, LATE_EXIT_PART = 1 / 3, 0.6
EVEN_PART = 2.0  # all wait alike
#: Waits shorter than a sample show as less memory traffic per busy time than the late card's: this much,
#: alike on all others, which are busy all the time, on the same model, with as much memory held and less
#: power (our own).
MIXED_RATIO, MIXED_EXIT_RATIO, MIXED_SPREAD = 0.15, 0.10, 0.10
MIXED_UTILIZATION, MIXED_HELD, MIXED_POWER = 0.90, 0.10, 0.90
#: Seconds watched before waits are compared: with sub-second readings of the memory, and without (our own).
WATCHED_S, WATCHED_POLLED_S = 10.0, 30.0
#: A link this full during the waits limits them (our own).
LINK_FULL = 0.60
#: Outliers among at least three (XProf needs as many): a clock this much lower, at equal load.
OUTLIER_CLOCK, OUTLIER_MEMBERS = 0.85, 3

# -- collective-hang: 100 % at about 70 W in the reports; times our own
HANG_UTILIZATION, HANG_MEMORY, HANG_POWER = 0.95, 0.03, 0.25
HANG_S, HANG_CRITICAL_S = 120.0, 300.0
#: Spinning kernels poll over the link; gradients that still flow are gigabytes a second (our own).
HANG_LINK_BYTES_PER_S = 500e6
MOVES_MEMORY = 0.10
SUSPECT_UTILIZATION = 0.05


def straggler_card(window: Window, active: bool) -> Outcome:
    """R53: most GPUs wait much, one hardly: it is the late one. Never blame those that spin."""
    windows = team(window)
    if len(windows) < 2:
        return Clear(ALONE)
    if not all_steady(windows):
        return Clear("")
    known = _waits(window, windows)
    if isinstance(known, Abstain):
        return known
    late = min(range(len(windows)), key=lambda place: known[place])
    others = [wait for place, wait in enumerate(known) if place != late]
    typical = middle(others)
    part = LATE_EXIT_PART if active else LATE_PART
    if typical >= (WAIT_EXIT_RATIO if active else WAIT_RATIO) and known[late] <= part * typical:
        return _late(windows, late, known, typical)
    mixed = _mixed_waits(windows, active)
    if mixed is None:
        return Clear("the GPUs do not wait for one of them")
    late = min(range(len(windows)), key=lambda place: mixed[place])
    return _late_by_traffic(windows, late, mixed)


def _waits(window: Window, windows: Sequence[Window]) -> list[float] | Abstain:
    """How much each GPU of the job waits for the others.

    A few readings once a second hit some of the waits of one card and none of the next.
    """
    waits = [one.peers_ratio for one in windows if one.peers_ratio is not None]
    if len(waits) < len(windows) or means(windows, "memory_utilization_ratio") is None:
        return Abstain("without memory utilization, waiting cannot be told from work")
    reading = window.reading
    fine = reading is not None and bool(reading.memory_utilization_burst.values)
    seen_s = len(window.present("memory_utilization_ratio", WINDOW_S)) * window.sample.interval_s
    left_s = (WATCHED_S if fine else WATCHED_POLLED_S) - seen_s
    if left_s > 0:
        return Abstain("watching how the GPUs wait for each other", seconds_left=left_s)
    return waits


def _late(windows: Sequence[Window], late: int, waits: Sequence[float], typical: float) -> Fires:
    suspect = windows[late]
    reason = own_reason(suspect)
    clocks = means(windows, "sm_clock_mhz")
    evidence = [
        Evidence("wait_ratio", "the others wait", typical, "ratio", ">= 10 %", WINDOW_S),
        Evidence(
            "suspect_wait_ratio", f"{name(suspect)} waits", waits[late], "ratio", "<= a third", WINDOW_S
        ),
    ]
    if clocks is not None:
        rest = middle([clock for place, clock in enumerate(clocks) if place != late])
        evidence.append(Evidence("suspect_clock_mhz", f"clock of {name(suspect)}", clocks[late], "MHz"))
        evidence.append(Evidence("clock_mhz", "clock of the others", rest, "MHz"))
    layer: Layer | None = PLACES[reason][0] if reason is not None else None
    few = len(windows) < OUTLIER_MEMBERS
    return Fires(
        confidence=Confidence.LIKELY if reason is not None and not few else Confidence.POSSIBLE,
        evidence=tuple(evidence),
        layer=layer,
        share_ratio=typical,
        gpus=(uuid(suspect),),
        parameters={
            "suspect": float(suspect.reading.index if suspect.reading is not None else -1),
            "reason": reason or "",
            "wait": typical,
        },
    )


def _mixed_waits(windows: Sequence[Window], active: bool) -> list[float] | None:
    """How much each GPU spins, by what its memory traffic lacks; None where that says nothing of waiting.

    Ranks of one model do the same work in every step. So of busy GPUs the one that accesses most memory while
    it is busy, and draws most power for it, works; the others spin in between.
    """
    seen = min(len(one.present("memory_utilization_ratio", WINDOW_S)) for one in windows)
    if seen * windows[0].sample.interval_s < WATCHED_POLLED_S or not same_model(windows):
        return None
    busy, memory = means(windows, "utilization_ratio"), means(windows, "memory_utilization_ratio")
    held = means(windows, "memory_used_ratio")
    powers = [power_share(one) for one in windows]
    if busy is None or memory is None or held is None or None in powers or min(busy) <= 0:
        return None
    if max(held) - min(held) > MIXED_HELD * max(held):
        return None
    dense = [traffic / share for traffic, share in zip(memory, busy, strict=True)]
    late = dense.index(max(dense))
    waits = [
        share - traffic / dense[late] if dense[late] > 0 else 0.0
        for traffic, share in zip(memory, busy, strict=True)
    ]
    others = [place for place in range(len(windows)) if place != late]
    if min(busy[place] for place in others) < MIXED_UTILIZATION:
        return None
    lacking = [waits[place] for place in others]
    if middle(lacking) < (MIXED_EXIT_RATIO if active else MIXED_RATIO):
        return None
    drawn = [(power or 0.0) / share for power, share in zip(powers, busy, strict=True)]
    less = max(drawn[place] for place in others) <= MIXED_POWER * drawn[late]
    return waits if less and max(lacking) - min(lacking) <= MIXED_SPREAD else None


def _late_by_traffic(windows: Sequence[Window], late: int, waits: Sequence[float]) -> Fires:
    """The same finding, read from traffic: without another reason on the late card it may be by design."""
    typical = middle([wait for place, wait in enumerate(waits) if place != late])
    found = _late(windows, late, waits, typical)
    busy = windows[late].mean("utilization_ratio", WINDOW_S) or 1.0
    work = (windows[late].mean("memory_utilization_ratio", WINDOW_S) or 0.0) / busy
    evidence = (
        Evidence(
            "traffic_ratio", f"{name(windows[late])} accesses memory while busy", work, "ratio", "", WINDOW_S
        ),
        Evidence("lacking_ratio", "the others lack of it", typical, "ratio", ">= 15 %", WINDOW_S),
        *(item for item in found.evidence if item.key.endswith("clock_mhz")),
    )
    severity = found.severity if found.parameters["reason"] else Severity.NOTICE
    parameters = {**found.parameters, "work_memory": work}
    return replace(found, evidence=evidence, severity=severity, variant="traffic", parameters=parameters)


def comm_wait(window: Window, active: bool) -> Outcome:
    """R54: all GPUs wait for each other alike."""
    windows = team(window)
    if len(windows) < 2:
        return Clear(ALONE)
    if not all_steady(windows) or "straggler-card" in window.active:
        return Clear("")
    waits = _waits(window, windows)
    if isinstance(waits, Abstain):
        return waits
    least = WAIT_EXIT_RATIO if active else WAIT_RATIO
    if min(waits) < least or max(waits) > EVEN_PART * min(waits):
        return Clear("the GPUs hardly wait for each other")
    full = _link_ratio(windows)
    bound = full is not None and full >= LINK_FULL
    share = middle(waits)
    evidence = [Evidence("wait_ratio", "waiting for each other", share, "ratio", ">= 10 %", WINDOW_S)]
    if full is not None:
        evidence.append(Evidence("link_ratio", "PCIe in use", full, "ratio", ">= 60 %", WINDOW_S))
    nvlinks = [one.reading.nvlink_active_count for one in windows if one.reading is not None]
    return Fires(
        confidence=Confidence.LIKELY if bound else Confidence.POSSIBLE,
        evidence=tuple(evidence),
        share_ratio=share,
        variant="bandwidth" if bound else "",
        gpus=tuple(uuid(one) for one in windows),
        parameters={"wait": share, "nvlink": float(any(nvlinks))},
    )


def _link_ratio(windows: Sequence[Window]) -> float | None:
    """The fullest PCIe link of the job, both ways against what one way carries."""
    found = []
    for one in windows:
        rate = link_rate_bytes_per_s(one)
        rx, tx = one.mean("pcie_rx_bytes_per_s", WINDOW_S), one.mean("pcie_tx_bytes_per_s", WINDOW_S)
        if rate is not None and rx is not None and tx is not None:
            found.append((rx + tx) / rate)
    return max(found, default=None)


def collective_hang(window: Window, active: bool) -> Outcome:
    """R56: full utilization at near-idle power, no memory access, silent links, for two minutes.

    A card of the job that differs (it does nothing) is the one to look at.
    """
    windows = team(window)
    if len(windows) < 2:
        return Clear(ALONE)
    if window.mean("memory_utilization_ratio", 10.0) is None:
        return missing(window, "memory_utilization_ratio")
    stuck_s = [_stuck_s(one) for one in windows]
    stuck = [one for one, seconds in zip(windows, stuck_s, strict=True) if seconds >= HANG_S]
    rest = [one for one, seconds in zip(windows, stuck_s, strict=True) if seconds < HANG_S]
    if not stuck or (len(stuck) < 2 and not rest) or any(_works(one) for one in rest):
        return Clear("")
    seconds = min(value for value in stuck_s if value >= HANG_S)
    power = max((value for one in stuck if (value := power_share(one)) is not None), default=None)
    suspects = [name(one) for one in rest]
    evidence = [
        Evidence("stuck_s", "no progress for", seconds, "s", ">= 120 s"),
        Evidence("stuck_count", "GPUs that spin", float(len(stuck))),
    ]
    if power is not None:
        evidence.append(Evidence("power_ratio", "power between idle and limit", power, "ratio", "<= 25 %"))
    return Fires(
        confidence=Confidence.LIKELY,
        evidence=tuple(evidence),
        severity=Severity.CRITICAL if seconds >= HANG_CRITICAL_S else Severity.WARNING,
        gpus=tuple(uuid(one) for one in windows),
        parameters={"seconds": seconds, "suspects": ", ".join(suspects), "count": float(len(stuck))},
    )


def _stuck_s(window: Window) -> float:
    """For how long up to now the card has spun without accessing memory, at little power."""
    power, traffic = power_share(window), traffic_bytes_per_s(window, 30.0)
    if power is None or power > HANG_POWER or (traffic is not None and traffic > HANG_LINK_BYTES_PER_S):
        return 0.0
    history, entity = window.history, window.entity
    busy = history.values(entity, "utilization_ratio", HANG_CRITICAL_S + 30.0)
    memory = history.values(entity, "memory_utilization_ratio", HANG_CRITICAL_S + 30.0)
    ticks = 0
    for value, accesses in zip(reversed(busy), reversed(memory), strict=True):
        if value != value or accesses != accesses:
            continue
        if value < HANG_UTILIZATION or accesses > HANG_MEMORY:
            break
        ticks += 1
    return ticks * window.sample.interval_s


def _works(window: Window) -> bool:
    """This card still computes, so nothing hangs."""
    busy, memory = window.mean("utilization_ratio", 30.0), window.mean("memory_utilization_ratio", 30.0)
    if busy is not None and busy < SUSPECT_UTILIZATION:
        return False
    return memory is None or memory > HANG_MEMORY
