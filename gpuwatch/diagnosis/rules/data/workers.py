"""R31, R32, R37, R40: one slow worker, too many of them, copies that are not pinned, workers made anew."""

from statistics import median

from gpuwatch.diagnosis.interface import Abstain, Clear, Fires, Outcome
from gpuwatch.diagnosis.rules.code.short_checkpoints import CHECKPOINT_BYTES_PER_S
from gpuwatch.diagnosis.rules.common import missing, pulsed
from gpuwatch.diagnosis.rules.waiting import (
    UNSEEN_JOB,
    Waiting,
    job_evidence,
    main_gap,
    waiting,
    wanted_in_gaps,
)
from gpuwatch.diagnosis.window import Turnover, Window
from gpuwatch.model import Confidence, Evidence, Severity, ShapeKind

# -- loader-worker-imbalance: 2.5 after gpuprof
WINDOW_S = 60.0
LEAST_WORKERS, SLOW_TIMES, SLOW_EXIT_TIMES, SLOW_PART, OTHERS_CORES = 3, 2.5, 1.8, 0.60, 0.50
SLOW_CORES = 0.5  # a worker that does little holds nobody up

# -- loader-too-many-workers: 200 % of the cores after SageMaker; the rest our own
TOO_MANY_TIMES, IDLE_WORKERS, IDLE_CORES = 2.0, 4, 0.15
PRESSURE_RATIO, AVAILABLE_RATIO, SWAP_BYTES_PER_S = 0.20, 0.10, 1024**2

# -- pageable-copies: thresholds our own
COPIES_BYTES_PER_S = 200e6
COPY_GAP = (0.30, 0.90)

# -- loader-respawn
RESPAWNS, RESPAWN_GAP_S, RESPAWN_RATIO, RESPAWN_S = 2, 2.0, 0.03, 1800.0


def loader_worker_imbalance(window: Window, active: bool) -> Outcome:
    """R31: one worker works all the time, the others rest: batches come in order, so all wait for it."""
    job = window.job
    if job is None:
        return Abstain(UNSEEN_JOB)
    if len(job.workers) < LEAST_WORKERS:
        return Clear("")
    found = waiting(window, active)
    if not isinstance(found, Waiting):
        return found
    series = []
    for worker in job.workers:
        name = f"process:{worker.pid}:{worker.start_ticks}"
        series.append(window.history.values(name, "cpu_cores", WINDOW_S))
    means = [_mean([value for value in one if value == value]) for one in series]
    known = [value for value in means if value is not None]
    if len(known) < len(series):
        return Abstain("CPU of the workers is not known")
    slowest = max(range(len(known)), key=lambda place: known[place])
    rest = [value for place, value in enumerate(known) if place != slowest]
    typical = median(rest)
    times = SLOW_EXIT_TIMES if active else SLOW_TIMES
    if known[slowest] < max(SLOW_CORES, times * typical) or max(rest) >= OTHERS_CORES:
        return Clear("the workers share the work")
    ahead = [
        row[slowest] >= times * median([value for place, value in enumerate(row) if place != slowest])
        for row in zip(*series, strict=True)
        if all(value == value for value in row)
    ]
    if not ahead or sum(ahead) < SLOW_PART * len(ahead):
        return Clear("the slow worker changes")
    worker = job.workers[slowest]
    return Fires(
        Confidence.POSSIBLE,
        (
            Evidence(
                "slow_cores", f"worker {worker.pid}", known[slowest], "cores", ">= 2.5 x the others", WINDOW_S
            ),
            Evidence("others_cores", "the others", typical, "cores", "", WINDOW_S),
            *job_evidence(window, job),
        ),
        share_ratio=found.share,
        share_low_ratio=found.low,
        share_high_ratio=found.high,
        coverage_ratio=min(1.0, known[slowest]),
        parameters={"pid": float(worker.pid), "cores": known[slowest], "others": typical},
    )


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None


def loader_too_many_workers(window: Window, active: bool) -> Outcome:
    """R32: many workers, and the machine feels it. Idle workers alone cost little."""
    job = window.job
    if job is None:
        return Abstain(UNSEEN_JOB)
    count = len(job.workers)
    if count < IDLE_WORKERS:
        return Clear("")
    if job.usable_cores is None or job.worker_cpu_cores is None:
        return Abstain("cores or CPU of the workers are not known")
    saturated = window.shape is not None and window.shape.kind is ShapeKind.SATURATED
    idle = job.worker_cpu_cores <= IDLE_CORES and saturated
    if count <= TOO_MANY_TIMES * job.usable_cores and not idle:
        return Clear("")
    pressure = window.host_mean("cpu_pressure_ratio", 30.0)
    swap = window.host_mean("swap_in_bytes_per_s", 30.0)
    available = window.host_mean("memory_available_bytes", 30.0)
    total = window.sample.host.memory_total_bytes if window.sample.host is not None else None
    tight = available is not None and bool(total) and available < AVAILABLE_RATIO * (total or 1)
    pressed = pressure is not None and pressure >= PRESSURE_RATIO
    swaps = swap is not None and swap >= SWAP_BYTES_PER_S
    if not (tight or pressed or swaps):
        return Clear(f"{count} workers, and nothing is short")
    evidence = [
        Evidence("worker_count", "workers", float(count), "", "> 2 x cores"),
        Evidence("usable_cores", "usable cores", job.usable_cores, "cores"),
        Evidence("worker_cpu_cores", "each worker", job.worker_cpu_cores, "cores", "", 15.0),
    ]
    for key, label, value, unit in (
        ("cpu_pressure_ratio", "CPU pressure", pressure, "ratio"),
        ("memory_available_bytes", "memory available", available, "B"),
    ):
        if value is not None:
            evidence.append(Evidence(key, label, value, unit, "", 30.0))
    return Fires(
        Confidence.LIKELY,
        tuple(evidence),
        severity=Severity.NOTICE,
        parameters={"workers": float(count), "cores": job.usable_cores},
    )


def pageable_copies(window: Window, active: bool) -> Outcome:
    """R37: batches are copied from memory that is not pinned, by the main thread, while the GPU idles."""
    job = window.job
    if job is None:
        return Abstain(UNSEEN_JOB)
    if not job.workers:
        return Clear("")
    if not job.pt_thread_names:
        return Abstain("this PyTorch names no threads, so pinning cannot be told")
    if any(thread.name.startswith("pt_data_pin") for thread in job.trainer.threads):
        return Clear("batches are pinned")
    rx = window.mean("pcie_rx_bytes_per_s", WINDOW_S)
    if rx is None:
        return missing(window, "pcie_rx_bytes_per_s")
    if rx < (0.5 if active else 1.0) * COPIES_BYTES_PER_S:
        return Clear("")
    gap = main_gap(window)
    if gap is None:
        return Abstain("what the main thread does in the gaps cannot be told from this")
    if not COPY_GAP[0] <= wanted_in_gaps(gap) <= COPY_GAP[1]:
        return Clear("")
    shape = window.shape
    loses = pulsed(window) and shape is not None and (shape.stall_ratio or 0.0) >= 0.08
    evidence = (
        Evidence(
            "rx_bytes_per_s", "copied to the GPU", rx, "B/s", ">= 200 MB/s", WINDOW_S, "pcie_rx_bytes_per_s"
        ),
        Evidence("gapcpu_main_cores", "main thread while the GPU idles", gap.gap_cores, "cores", "0.3-0.9"),
        *job_evidence(window, job),
    )
    share = shape.stall_ratio if loses and shape is not None else None
    return Fires(
        Confidence.POSSIBLE,
        evidence,
        severity=None if loses else Severity.NOTICE,
        share_ratio=share,
        share_low_ratio=shape.stall_low_ratio if loses and shape is not None else None,
        share_high_ratio=shape.stall_high_ratio if loses and shape is not None else None,
        coverage_ratio=min(1.0, max(0.0, wanted_in_gaps(gap))),
        parameters={"rx": rx},
    )


def _written_per_s(one: Turnover) -> float:
    """Bytes/s that the trainer wrote in the gap; what cannot be seen counts as nothing."""
    return (one.written_bytes or 0.0) / one.gap_s if one.gap_s else 0.0


def loader_respawn(window: Window, active: bool) -> Outcome:
    """R40: all workers are replaced again and again, each time with a pause."""
    job = window.job
    if job is None:
        return Abstain(UNSEEN_JOB)
    found = window.turnovers
    if len(found) < RESPAWNS:
        return Clear("workers stay" if job.workers else "")
    if median([one.gap_s for one in found]) < RESPAWN_GAP_S:
        return Clear("new workers start without a gap")
    if median([_written_per_s(one) for one in found]) >= CHECKPOINT_BYTES_PER_S:
        return Clear("the job writes a checkpoint whenever its workers change")
    span = found[-1].time_s - found[0].time_s
    if span <= 0:
        return Clear("")
    interval = span / (len(found) - 1)
    gap = median([one.gap_s for one in found])
    share = gap / interval
    if share < RESPAWN_RATIO or window.now_s - found[-1].time_s > 3 * interval:
        return Clear("workers stay most of the time")
    return Fires(
        Confidence.LIKELY,
        (
            Evidence("gap_s", "lost each time", gap, "s", ">= 2 s"),
            Evidence("interval_s", "workers replaced every", interval, "s"),
            Evidence("count", "times", float(len(found)), "", ">= 2", RESPAWN_S),
            Evidence("worker_count", "workers", float(found[-1].count)),
        ),
        severity=None if share >= 0.15 else Severity.NOTICE,
        share_ratio=share,
        parameters={"gap": gap, "interval": interval, "workers": float(found[-1].count)},
    )
