"""R41 and R45: the step itself leaves the GPU waiting: many small kernels, or waits inside the step."""

from math import sqrt

from gpuwatch.diagnosis.interface import Abstain, Clear, Fires, Outcome
from gpuwatch.diagnosis.rules.common import missing, shape_evidence
from gpuwatch.diagnosis.rules.waiting import (
    FULL_CORE,
    FULL_CORE_EXIT,
    UNSEEN_JOB,
    Waiting,
    job_evidence,
    known_shape,
    main_gap,
    power_ratio,
    prepares_data,
    waiting,
    wanted_in_gaps,
)
from gpuwatch.diagnosis.window import JobView, Window
from gpuwatch.model import Confidence, Evidence, Severity, ShapeKind

WINDOW_S = 60.0
#: A steady middle utilization: the bounds and the spread are our own.
LOW_UTILIZATION, HIGH_UTILIZATION, SPREAD = 0.20, 0.95, 0.10
#: Little power and little memory traffic: small kernels (our own; exit clearly above).
POWER_RATIO, POWER_EXIT_RATIO = 0.45, 0.55
MEMORY_RATIO = 0.25
#: Measured by GPM the kernels fill a part of the card only (KempnerPulse: busy and SM < 25 %).
SM_RATIO, OCCUPANCY_RATIO = 0.30, 0.20
#: Workers that use more are the ones to look at first.
WORKER_CORES = 0.50
FULL_PART = 0.80  # of a minute's seconds (50 of 60)
#: Below this utilization the rest counts as lost time; above it only as a lever.
LOSS_UTILIZATION, LOSS_RATIO = 0.90, 0.15

#: Waits inside the step: the main thread runs a part of the gaps and all of the busy time; our own.
SYNC_GAP = (0.20, 0.80)
SYNC_BUSY, SYNC_WORKERS = 0.90, 0.30
QUIET_PRESSURE, QUIET_DISK = 0.10, 0.50


def launch_bound(window: Window, active: bool) -> Outcome:
    """R41: steady, low power, one thread at full speed, and nobody prepares data."""
    job = window.job
    if job is None:
        return Abstain(UNSEEN_JOB)
    utilization = window.mean("utilization_ratio", WINDOW_S)
    if utilization is None:
        return missing(window, "utilization_ratio")
    if not LOW_UTILIZATION <= utilization <= HIGH_UTILIZATION:
        return Clear("")
    shape = known_shape(window)
    if isinstance(shape, Abstain):
        return shape
    if shape.kind is ShapeKind.PULSED or _spread(window) > SPREAD:
        return Clear("")
    power = power_ratio(window)
    if power is None:
        return missing(window, "power_w")
    if power > (POWER_EXIT_RATIO if active else POWER_RATIO):
        return Clear("power as of large kernels")
    traffic = window.mean("memory_utilization_ratio", WINDOW_S)
    if traffic is None:
        return missing(window, "memory_utilization_ratio")
    if traffic > MEMORY_RATIO:
        return Clear("")
    busy_main = _main_is_full(window, job, active)
    if busy_main is None:
        return Abstain(f"CPU of the main thread: {window.why_absent('main_cpu_cores')}")
    if not busy_main:
        return Clear("the main thread does not run all the time")
    if job.thread_workers or (job.workers and (job.worker_cpu_cores or 0.0) > WORKER_CORES):
        return Clear("data loading is busy too")
    if not job.workers and prepares_data(job):
        return Clear("the main process prepares data")
    return _launching(window, job, utilization, power, traffic)


def _launching(window: Window, job: JobView, utilization: float, power: float, traffic: float) -> Fires:
    sm, occupancy = window.mean("sm_active_ratio", WINDOW_S), window.mean("sm_occupancy_ratio", WINDOW_S)
    seen = sm is not None and sm < SM_RATIO and (occupancy is None or occupancy < OCCUPANCY_RATIO)
    lost = 1 - utilization if utilization < LOSS_UTILIZATION else None
    evidence = [
        Evidence("utilization_ratio", "utilization", utilization, "ratio", "20-95 %, steady", WINDOW_S),
        Evidence("power_ratio", "power between idle and limit", power, "ratio", "<= 45 %", 10.0),
        Evidence("memory_utilization_ratio", "memory traffic", traffic, "ratio", "<= 25 %", WINDOW_S),
        Evidence("main_cpu_cores", "main thread", job.main_cpu_cores, "cores", ">= 0.95", 30.0),
    ]
    for key, label, value in (
        ("sm_active_ratio", "SM active", sm),
        ("sm_occupancy_ratio", "occupancy", occupancy),
    ):
        if value is not None:
            evidence.append(Evidence(key, label, value, "ratio", "", WINDOW_S, key))
    return Fires(
        confidence=Confidence.LIKELY if seen else Confidence.POSSIBLE,
        evidence=tuple(evidence),
        severity=Severity.WARNING if seen and lost is not None and lost >= LOSS_RATIO else Severity.NOTICE,
        share_ratio=lost,
        parameters={"utilization": utilization, "power": power, **({} if sm is None else {"sm": sm})},
    )


def _spread(window: Window) -> float:
    """Standard deviation of the last minute's ticks."""
    values = window.present("utilization_ratio", WINDOW_S)
    if len(values) < 2:
        return 0.0
    mean = sum(values) / len(values)
    return sqrt(sum((value - mean) ** 2 for value in values) / len(values))


def _main_is_full(window: Window, job: JobView, active: bool) -> bool | None:
    entity = f"process:{job.trainer.pid}:{job.trainer.start_ticks}"
    values = window.history.present(entity, "main_cpu_cores", WINDOW_S)
    if not values:
        return None
    least = FULL_CORE_EXIT if active else FULL_CORE
    return sum(value >= least for value in values) >= FULL_PART * len(values)


def sync_stalls(window: Window, active: bool) -> Outcome:
    """R45: the main thread runs through a part of the gaps, the workers rest, nothing else is busy.

    The weakest inference of all: shown only where no other cause holds, and as possible.
    """
    job = window.job
    if job is None:
        return Abstain(UNSEEN_JOB)
    if window.siblings:
        return Clear("")
    found = waiting(window, active)
    if not isinstance(found, Waiting):
        return found
    gap = main_gap(window)
    if gap is None:
        return Abstain(f"CPU in the gaps: {window.why_absent('main_gap')}")
    if not SYNC_GAP[0] <= wanted_in_gaps(gap) <= SYNC_GAP[1] or gap.busy_cores < SYNC_BUSY:
        return Clear("")
    if job.thread_workers or (job.worker_cpu_cores or 0.0) > SYNC_WORKERS or not _quiet(window):
        return Clear("")
    if not job.workers and prepares_data(job) is not False:
        return Clear("")
    return Fires(
        confidence=Confidence.POSSIBLE,
        evidence=(*shape_evidence(window), *job_evidence(window, job)),
        severity=Severity.NOTICE,
        share_ratio=found.share,
        share_low_ratio=found.low,
        share_high_ratio=found.high,
        coverage_ratio=min(1.0, max(0.0, wanted_in_gaps(gap))),
        parameters={"gap": gap.gap_cores},
    )


def _quiet(window: Window) -> bool:
    """Neither disk nor memory make anybody wait, as far as can be seen."""
    pressure = window.host_mean("io_pressure_ratio", 30.0)
    return pressure is None or pressure < QUIET_PRESSURE
