"""R51, R52, R55, R57: how a job divides its work over several GPUs, and the way between them."""

from gpuwatch.diagnosis.interface import Abstain, Clear, Fires, Outcome
from gpuwatch.diagnosis.jobs import RANK_VARIABLES
from gpuwatch.diagnosis.rules.common import missing, pulsed
from gpuwatch.diagnosis.rules.gpus.peers import (
    ALONE,
    WINDOW_S,
    all_steady,
    means,
    middle,
    name,
    same_model,
    team,
    traffic_bytes_per_s,
    uuid,
)
from gpuwatch.diagnosis.window import Window
from gpuwatch.model import Confidence, Evidence, Severity

# -- dp-single-process: Kineto flags it; numbers our own. DDP ranks hold small contexts on GPU 0.
CONTEXT_BYTES = 500 * 1024**2
FIRST_UTILIZATION, FIRST_MEMORY = 0.15, 0.15
OTHERS_IDLE = 0.15
TURNS_CORRELATION, TURNS_SUM = -0.3, (0.8, 1.2)

# -- gpu-imbalance: 35 after trainpulse; 20 and 12 our own
SPREAD, SPREAD_EXIT, SPREAD_WARNING = 0.20, 0.12, 0.35
#: Stages of a pipeline differ by design: one that works steadily at this level is told, no more.
STAGE_UTILIZATION = 0.70

# -- gpus-unused: 5 min are our own
UNUSED_S, UNUSED_UTILIZATION, USED_UTILIZATION = 300.0, 0.03, 0.50

#: Traffic from which a bad path between the cards matters (our own).
TALKS_BYTES_PER_S = 500e6
CONSUMER = ("geforce", "titan")


def dp_single_process(window: Window, active: bool) -> Outcome:
    """R51: one process drives all GPUs, and the first of them carries more."""
    windows = team(window)
    if len(windows) < 2:
        return Clear(ALONE)
    job = window.job
    if job is None:
        return Abstain("the job's process cannot be seen from here")
    held = [_held(one, job.trainer.pid) for one in windows]
    if any(memory is None or memory < CONTEXT_BYTES for memory in held):
        return Clear("one process for each GPU")
    facts = job.trainer.facts
    if facts is not None and facts.environment and any(key in facts.environment for key in RANK_VARIABLES):
        return Clear("one process for each rank")
    busy = means(windows, "utilization_ratio")
    if busy is None:
        return missing(window, "utilization_ratio")
    memory = [float(value) for value in held if value is not None]
    rest = middle(busy[1:])
    first = busy[0] - rest >= FIRST_UTILIZATION or memory[0] >= (1 + FIRST_MEMORY) * middle(memory[1:])
    turns = TURNS_SUM[0] <= sum(busy) <= TURNS_SUM[1] and _take_turns(windows)
    if not first and not turns and not active:
        return Clear("one process, evenly divided")
    evidence = [
        Evidence("pid", "one process", float(job.trainer.pid)),
        *(
            Evidence(f"gpu{place}_utilization_ratio", name(one), value, "ratio", "", WINDOW_S)
            for place, (one, value) in enumerate(zip(windows, busy, strict=True))
        ),
    ]
    idle = 1 - rest
    return Fires(
        Confidence.LIKELY,
        tuple(evidence),
        severity=Severity.WARNING if idle >= OTHERS_IDLE else Severity.NOTICE,
        variant="turns" if turns else "",
        gpus=tuple(uuid(one) for one in windows),
        parameters={"pid": float(job.trainer.pid), "idle": idle, "count": float(len(windows))},
    )


def _held(window: Window, pid: int) -> int | None:
    listed = (window.reading.processes or ()) if window.reading is not None else ()
    return next((entry.memory_bytes for entry in listed if entry.pid == pid), None)


def _take_turns(windows: tuple[Window, ...]) -> bool:
    """Whether the GPUs are busy one after the other (layers of one model on several cards)."""
    series = [one.history.values(one.entity, "utilization_ratio", WINDOW_S) for one in windows[:2]]
    pairs = [(a, b) for a, b in zip(*series, strict=True) if a == a and b == b]
    if len(pairs) < 10:
        return False
    mean_a, mean_b = (sum(pair[i] for pair in pairs) / len(pairs) for i in (0, 1))
    across = sum((a - mean_a) * (b - mean_b) for a, b in pairs)
    spread = (sum((a - mean_a) ** 2 for a, _ in pairs) * sum((b - mean_b) ** 2 for _, b in pairs)) ** 0.5
    return bool(spread > 0 and across / spread <= TURNS_CORRELATION)


def gpu_imbalance(window: Window, active: bool) -> Outcome:
    """R52: one GPU idles while others of the job work. Pipeline stages differ by design."""
    windows = team(window)
    if len(windows) < 2:
        return Clear(ALONE)
    if not all_steady(windows) or not same_model(windows):
        return Clear("")
    busy = means(windows, "utilization_ratio")
    if busy is None:
        return missing(window, "utilization_ratio")
    spread = max(busy) - min(busy)
    if spread < (SPREAD_EXIT if active else SPREAD) or "dp-single-process" in window.active:
        return Clear(f"utilization differs by {spread:.0%}".replace("%", " points"))
    low, high = windows[busy.index(min(busy))], windows[busy.index(max(busy))]
    return Fires(
        Confidence.MEASURED,
        (
            Evidence("low_ratio", name(low), min(busy), "ratio", "", WINDOW_S),
            Evidence("high_ratio", name(high), max(busy), "ratio", "", WINDOW_S),
            Evidence("spread_ratio", "difference", spread, "ratio", ">= 20 points", WINDOW_S),
        ),
        severity=_imbalance_severity(low, min(busy), spread),
        gpus=tuple(uuid(one) for one in windows),
        parameters={"low": name(low), "high": name(high), "spread": spread},
    )


def _imbalance_severity(low: Window, utilization: float, spread: float) -> Severity:
    if spread >= SPREAD_WARNING:
        return Severity.WARNING
    return Severity.STATE if utilization >= STAGE_UTILIZATION and not pulsed(low) else Severity.NOTICE


def p2p_or_nvlink_down(window: Window, active: bool) -> Outcome:
    """R55: the direct path between the GPUs of the job is missing, worse than its peers', or switched off."""
    windows = team(window)
    if len(windows) < 2:
        return Clear(ALONE)
    counts = [one.reading.nvlink_active_count if one.reading is not None else None for one in windows]
    expected = [one.info.nvlink_count if one.info is not None else None for one in windows]
    # No link anywhere is a machine without bridges, which is how most cards are sold.
    if any(counts):
        for one, count, most in zip(windows, counts, expected, strict=True):
            best = max([number for number in (most, *counts) if number is not None], default=0)
            if count is not None and best and count < best:
                return _down(one, count, best)
    job = window.job
    facts = job.trainer.facts if job is not None else None
    if facts is not None and (facts.environment or {}).get("NCCL_P2P_DISABLE") == "1":
        return _path(windows, "switched-off", "NCCL_P2P_DISABLE=1", Severity.NOTICE)
    if all(count for count in counts):
        return Clear(f"NVLink: {counts[0]} links each")
    return _pairs(windows)


def _pairs(windows: tuple[Window, ...]) -> Outcome:
    """What the driver says of peer access and path, pair by pair."""
    known = False
    for one in windows:
        for other in windows:
            access = one.info.peer_access.get(uuid(other)) if one.info is not None else None
            known = known or access is not None
            if access is not None and access != "ok":
                consumer = one.info is not None and one.info.brand in CONSUMER
                severity = Severity.STATE if consumer else Severity.NOTICE
                return _path((one, other), "no-access", access, severity)
    talks = [traffic_bytes_per_s(one, WINDOW_S) for one in windows]
    loud = any(value is not None and value >= TALKS_BYTES_PER_S for value in talks)
    for one in windows:
        for other in windows:
            path = one.info.peer_path.get(uuid(other)) if one.info is not None else None
            if path == "system" and loud:
                return _path((one, other), "far", path, Severity.STATE)
    return (
        Clear("direct access between the GPUs")
        if known
        else Abstain("the path between the GPUs is not known")
    )


def _down(window: Window, count: int, expected: int) -> Fires:
    return Fires(
        Confidence.MEASURED,
        (
            Evidence("nvlink_active_count", "links up", float(count), "", f"{expected}"),
            Evidence("nvlink_count", "links expected", float(expected)),
        ),
        severity=Severity.WARNING,
        variant="links",
        gpus=(uuid(window),),
        parameters={"gpu": name(window), "up": float(count), "expected": float(expected)},
    )


def _path(windows: tuple[Window, ...], variant: str, what: str, severity: Severity) -> Fires:
    return Fires(
        Confidence.MEASURED,
        (Evidence("path", "between the GPUs", what),),
        severity=severity,
        variant=variant,
        gpus=tuple(uuid(one) for one in windows),
        parameters={"what": what, "pair": " and ".join(name(one) for one in windows[:2])},
    )


def gpus_unused(window: Window, active: bool) -> Outcome:
    """R57: the job holds GPUs that do nothing while another works."""
    windows = team(window)
    if len(windows) < 2:
        return Clear(ALONE)
    if window.steady_s < UNUSED_S:
        return Abstain("GPUs without work", seconds_left=UNUSED_S - window.steady_s)
    busy = means(windows, "utilization_ratio", UNUSED_S)
    if busy is None:
        return missing(window, "utilization_ratio")
    idle = [
        one
        for one, value in zip(windows, busy, strict=True)
        if value < UNUSED_UTILIZATION and max(one.present("utilization_ratio", UNUSED_S)) < 0.10
    ]
    if not idle or max(busy) < USED_UTILIZATION:
        return Clear("")
    names = ", ".join(name(one) for one in idle)
    return Fires(
        Confidence.MEASURED,
        (
            Evidence("unused", "without work", names, "", "< 3 % for 5 min", UNUSED_S),
            Evidence("busy_ratio", "the busiest", max(busy), "ratio", ">= 50 %", UNUSED_S),
        ),
        severity=Severity.NOTICE,
        gpus=tuple(uuid(one) for one in idle),
        parameters={"names": names},
    )
