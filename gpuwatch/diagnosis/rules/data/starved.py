"""R27: the GPU waits, and nothing seen so far says for what."""

from gpuwatch.diagnosis.interface import Abstain, Clear, Fires, Outcome
from gpuwatch.diagnosis.rules.common import lower, shape_evidence
from gpuwatch.diagnosis.rules.waiting import (
    DOUBTED_POWER_RATIO,
    FLAT_POWER_RATIO,
    Waiting,
    job_evidence,
    main_gap,
    power_ratio,
    runs_in_gaps,
    waiting,
)
from gpuwatch.diagnosis.window import Window
from gpuwatch.model import Confidence, Evidence, Layer, ShapeKind

#: Workers that use less than this are asleep.
ASLEEP_CORES = 0.30
#: Gaps as far apart as this are not part of each step (our own).
SELDOM_S = 3.0


def gpu_starved(window: Window, active: bool) -> Outcome:
    """Fires on gaps, or on a steady low utilization at low power; the cause is for others to find."""
    found = waiting(window, active)
    if not isinstance(found, Waiting):
        return found
    shape, power = window.shape, power_ratio(window)
    assert shape is not None
    if shape.kind is ShapeKind.VARIABLE:
        return Abstain("utilization varies without a pattern, which proves no waiting")
    if shape.kind is ShapeKind.FLAT_LOW and power is None:
        return Abstain("utilization is low and steady; without power, waiting cannot be told from small work")
    if shape.kind is ShapeKind.FLAT_LOW and power is not None and power >= FLAT_POWER_RATIO:
        return Clear("steady at a part of the time, with power to match")
    return _starved(window, found, power)


def _starved(window: Window, found: Waiting, power: float | None) -> Fires:
    shape, job = window.shape, window.job
    certain = Confidence.MEASURED if shape is not None and shape.buffered else Confidence.LIKELY
    doubted = power is not None and power > DOUBTED_POWER_RATIO
    variant = _variant(window, found)
    confidence = certain if not variant else Confidence.POSSIBLE
    if doubted:
        confidence = lower(confidence, 2)
    evidence = job_evidence(window, job) if job is not None else shape_evidence(window)
    if power is not None:
        threshold = "doubtful above 80 %" if doubted else ""
        evidence += (
            Evidence("power_ratio", "power between idle and limit", power, "ratio", threshold, 10.0),
        )
    return Fires(
        confidence=confidence,
        evidence=evidence,
        share_ratio=found.share,
        share_low_ratio=found.low,
        share_high_ratio=found.high,
        variant=variant,
        layer=Layer.CODE if variant == "seldom" else None,
        parameters={"share": found.share, "doubted": float(doubted), "every_s": _every_s(window)},
    )


def _every_s(window: Window) -> float:
    shape = window.shape
    return shape.duration_s / shape.cycles if shape is not None and shape.cycles else 0.0


def _variant(window: Window, found: Waiting) -> str:
    """Which of the texts: what the main thread does in the gaps leaves less to search for."""
    job = window.job
    if job is not None and runs_in_gaps(window, job) and not job.thread_workers:
        asleep = job.worker_cpu_cores is not None and job.worker_cpu_cores <= ASLEEP_CORES
        if job.workers and asleep and main_gap(window) is not None:
            return "collate" if _every_s(window) < SELDOM_S else "seldom"
    return "" if found.resolved else "flat"
