"""R42, R43, R46: what a GPU that is fed well leaves unused. Levers and states, never losses."""

from gpuwatch.diagnosis.interface import Abstain, Clear, Fires, Outcome
from gpuwatch.diagnosis.rules.common import busy_level, missing
from gpuwatch.diagnosis.rules.waiting import power_ratio
from gpuwatch.diagnosis.window import Window
from gpuwatch.model import Confidence, Evidence, Severity, ShapeKind

# -- batch-headroom: SageMaker's BatchSize rule asks p95 < 70 of all three; the essay aims at 70-90 %
BATCH_STEADY_S = 300.0
HEADROOM_RATIO, HEADROOM_EXIT_RATIO = 0.60, 0.70
BATCH_SM, BATCH_OCCUPANCY = 0.60, 0.25
BATCH_UTILIZATION, BATCH_POWER = 0.85, 0.50

# -- tensor-cores-idle: Kineto's "exactly zero" rule, KempnerPulse's 15 and 50; 3 is our own
TENSOR_STEADY_S, TENSOR_S = 120.0, 120.0
TENSOR_IDLE, TENSOR_SOME, TENSOR_EXIT = 0.03, 0.15, 0.08
TENSOR_SM, TENSOR_FP32 = 0.50, 0.10
#: Compute capability from which there are tensor cores; GTX 16 is 7.5 without them.
TENSOR_FROM = (7, 0)

# -- memory-bandwidth-bound: XProf's 70 against 50, KempnerPulse's 50; M is our own
BANDWIDTH_S = 60.0
BANDWIDTH_UTILIZATION = 0.90
DRAM_RATIO, DRAM_TENSOR = 0.60, 0.30
TRAFFIC_RATIO, TRAFFIC_POWER = 0.70, (0.40, 0.90)

#: A loss of this size comes first; levers wait.
LOSS_FIRST_RATIO = 0.15
PREALLOCATING = frozenset({"jax", "tensorflow"})


def preallocates(window: Window) -> bool:
    """Frameworks that take most of the memory at once say nothing by how much they hold."""
    job = window.job
    facts = None if job is None else job.trainer.facts
    return facts is not None and bool(PREALLOCATING & set(facts.frameworks or ()))


def _loses(window: Window) -> bool:
    return (window.ledger_idle_ratio or 0.0) >= LOSS_FIRST_RATIO


def batch_headroom(window: Window, active: bool) -> Outcome:
    """R42: more than a third of the memory was never used, and the kernels do not fill the card."""
    if window.steady_s < BATCH_STEADY_S:
        return Abstain("memory use of the job", seconds_left=BATCH_STEADY_S - window.steady_s)
    if preallocates(window):
        return Abstain("this framework takes the memory in advance, so what is used cannot be seen")
    if window.info is not None and window.info.unified_memory:
        return Abstain("GPU and host share one memory")
    if _loses(window) or window.shape is None or window.shape.kind is ShapeKind.PULSED:
        return Clear("")
    values = window.present("memory_used_ratio", min(900.0, window.steady_s))
    if not values:
        return missing(window, "memory_used_bytes")
    peak = max(values)
    if peak > (HEADROOM_EXIT_RATIO if active else HEADROOM_RATIO):
        return Clear(f"up to {peak:.0%} of memory used".replace("%", " %"))
    sm, occupancy = (
        window.mean("sm_active_ratio", BANDWIDTH_S),
        window.mean("sm_occupancy_ratio", BANDWIDTH_S),
    )
    # The level at work: a checkpoint a moment ago says nothing about the kernels.
    utilization, power = busy_level(window, BANDWIDTH_S), power_ratio(window)
    if sm is not None:
        room = sm < BATCH_SM or (occupancy is not None and occupancy < BATCH_OCCUPANCY)
    elif utilization is None or power is None:
        return missing(window, "utilization_ratio" if utilization is None else "power_w")
    else:
        room = utilization < BATCH_UTILIZATION or power < BATCH_POWER
    if not room:
        return Clear("the kernels fill the card")
    evidence = [Evidence("memory_peak_ratio", "memory used at most", peak, "ratio", "<= 60 %", 900.0)]
    for key, label, value in (
        ("utilization_ratio", "utilization", utilization),
        ("power_ratio", "power between idle and limit", power),
        ("sm_active_ratio", "SM active", sm),
        ("sm_occupancy_ratio", "occupancy", occupancy),
    ):
        if value is not None:
            evidence.append(Evidence(key, label, value, "ratio", "", BANDWIDTH_S))
    return Fires(
        Confidence.POSSIBLE,
        tuple(evidence),
        severity=Severity.NOTICE,
        parameters={"peak": peak},
    )


def tensor_cores_idle(window: Window, active: bool) -> Outcome:
    """R43: the matrix units do nothing while the card computes in FP32. Needs GPM."""
    info = window.info
    if info is None or info.compute_capability is None:
        return Abstain("the compute capability is not known")
    if info.compute_capability < TENSOR_FROM or "GTX 16" in info.name:
        return Abstain("this card has no tensor cores")
    tensor = window.mean("tensor_ratio", TENSOR_S)
    if tensor is None:
        return Abstain("tensor activity is not measurable on this card, and the script is not read")
    if window.steady_s < TENSOR_STEADY_S:
        return Abstain("tensor activity of the job", seconds_left=TENSOR_STEADY_S - window.steady_s)
    sm, fp32 = window.mean("sm_active_ratio", TENSOR_S), window.mean("fp32_ratio", TENSOR_S)
    if sm is None or fp32 is None:
        return missing(window, "sm_active_ratio" if sm is None else "fp32_ratio")
    if _loses(window) or sm <= TENSOR_SM or fp32 <= TENSOR_FP32:
        return Clear(f"tensor cores active {tensor:.0%}".replace("%", " %"))
    idle = tensor < (TENSOR_EXIT if active else TENSOR_IDLE)
    if not idle and not (tensor < TENSOR_SOME and fp32 > tensor):
        return Clear(f"tensor cores active {tensor:.0%}".replace("%", " %"))
    return Fires(
        Confidence.LIKELY if idle else Confidence.POSSIBLE,
        (
            Evidence(
                "tensor_ratio", "tensor cores active", tensor, "ratio", "< 3 %", TENSOR_S, "tensor_ratio"
            ),
            Evidence("fp32_ratio", "FP32 units active", fp32, "ratio", "> 10 %", TENSOR_S, "fp32_ratio"),
            Evidence("sm_active_ratio", "SM active", sm, "ratio", "> 50 %", TENSOR_S, "sm_active_ratio"),
        ),
        severity=Severity.WARNING if idle else Severity.NOTICE,
        variant="" if idle else "partly",
        parameters={"tensor": tensor, "fp32": fp32},
    )


def memory_bandwidth_bound(window: Window, active: bool) -> Outcome:
    """R46: the card works all the time, and its memory sets the speed. A state."""
    utilization = window.mean("utilization_ratio", BANDWIDTH_S)
    if utilization is None:
        return missing(window, "utilization_ratio")
    if utilization < BANDWIDTH_UTILIZATION:
        return Clear("")
    dram, tensor = window.mean("dram_ratio", BANDWIDTH_S), window.mean("tensor_ratio", BANDWIDTH_S)
    if dram is not None and tensor is not None:
        if dram < DRAM_RATIO or tensor >= DRAM_TENSOR:
            return Clear("")
        return _bandwidth(Confidence.LIKELY, dram, "dram_ratio", "GPU memory active")
    traffic, power = window.mean("memory_utilization_ratio", BANDWIDTH_S), power_ratio(window)
    if traffic is None or power is None:
        return missing(window, "memory_utilization_ratio" if traffic is None else "power_w")
    if traffic < TRAFFIC_RATIO or not TRAFFIC_POWER[0] <= power <= TRAFFIC_POWER[1]:
        return Clear("")
    return _bandwidth(Confidence.POSSIBLE, traffic, "memory_utilization_ratio", "memory accessed")


def _bandwidth(confidence: Confidence, value: float, key: str, label: str) -> Fires:
    return Fires(
        confidence,
        (Evidence(key, label, value, "ratio", "", BANDWIDTH_S, key),),
        severity=Severity.STATE,
        parameters={"traffic": value, "signal": label},
    )
