"""R28: the training process prepares the data itself, so CPU and GPU take turns."""

from gpuwatch.diagnosis.interface import Abstain, Clear, Fires, Outcome
from gpuwatch.diagnosis.rules.common import lower
from gpuwatch.diagnosis.rules.waiting import (
    UNSEEN_JOB,
    Waiting,
    confidence,
    job_evidence,
    main_gap,
    prepares_data,
    runs_in_gaps,
    waiting,
    wanted_in_gaps,
    wanted_workers,
)
from gpuwatch.diagnosis.window import JobView, Window
from gpuwatch.model import Confidence, Severity

#: The job's other cores rest; else several of its threads may prepare data.
OTHERS_BUSY_RATIO = 0.30


def loader_in_main_process(window: Window, active: bool) -> Outcome:
    """No workers, and the main thread runs in the gaps; only likely if it reads or decodes."""
    job = window.job
    if job is None:
        return Abstain(UNSEEN_JOB)
    if job.workers:
        count = len(job.workers)
        return Clear(f"{count} worker{'s' if count > 1 else ''}")
    if job.thread_workers:
        return Clear("data are prepared by threads of the process")
    found = waiting(window, active)
    if not isinstance(found, Waiting):
        return found
    runs = runs_in_gaps(window, job, active)
    if runs is None:
        return Abstain(f"CPU of the main thread: {window.why_absent('main_cpu_cores')}")
    if not runs:
        return Clear("the main thread rests while the GPU idles")
    prepares = prepares_data(job, active)
    if prepares is None:
        reason = window.why_absent("main_read_bytes_per_s")
        return Abstain(f"whether the main process reads or decodes data cannot be seen: {reason}")
    return _found(window, job, found, prepares)


def _found(window: Window, job: JobView, found: Waiting, prepares: bool) -> Fires:
    """Without reads and decoder it may be the job itself (simulation, reinforcement learning)."""
    gap = main_gap(window)
    running = wanted_in_gaps(gap) if gap is not None else job.main_cpu_cores or 0.0
    sure = confidence(window, found) if prepares else Confidence.POSSIBLE
    if _others_busy(job):
        sure = lower(sure)
    variant = "between" if not prepares else "" if found.resolved else "unresolved"
    wanted = wanted_workers(found.share, 0)
    parameters: dict[str, float | str] = {"wanted": float(wanted), "share": found.share}
    return Fires(
        confidence=sure,
        evidence=job_evidence(window, job),
        share_ratio=found.share,
        share_low_ratio=found.low,
        share_high_ratio=found.high,
        coverage_ratio=min(1.0, max(0.0, running)),
        severity=None if prepares else Severity.NOTICE,
        variant=variant,
        parameters=parameters,
    )


def _others_busy(job: JobView) -> bool:
    """Other threads of the job use its other cores. Busy neighbours do not change the cause."""
    if job.tree_cpu_cores is None or job.usable_cores is None or job.usable_cores <= 1:
        return False
    beside = job.tree_cpu_cores - (job.main_cpu_cores or 0.0)
    return beside >= OTHERS_BUSY_RATIO * (job.usable_cores - 1)
