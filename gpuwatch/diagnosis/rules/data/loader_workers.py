"""R29 and R30: the workers run all the time and the GPU still waits: too few of them, or no cores left."""

from dataclasses import dataclass
from statistics import median

from gpuwatch.diagnosis.interface import Abstain, Clear, Fires, Outcome
from gpuwatch.diagnosis.rules.common import lower
from gpuwatch.diagnosis.rules.waiting import (
    UNSEEN_JOB,
    Waiting,
    confidence,
    hidden_waiting,
    job_evidence,
    sleeps_in_gaps,
    waiting,
    wanted_workers,
)
from gpuwatch.diagnosis.window import JobView, Window
from gpuwatch.model import Confidence, Evidence

#: A worker at this share of a core does nothing but work; most of half a minute.
FULL_WORKER, FULL_WORKER_EXIT = 0.85, 0.70
FULL_PART, FULL_S = 0.70, 30.0
#: Cores another worker could use: two, and a quarter of what the job may use.
FREE_CORES, FREE_PART = 2.0, 0.25
#: With more pressure than this the cores are not really free.
PRESSURE_RATIO = 0.10
#: Logical cores count twice what they do, so 85 % of them may be all there is.
ALL_CORES_RATIO, ALL_CORES_EXIT_RATIO = 0.85, 0.70
#: More system time than this hints at too many threads rather than at decoding.
SYSTEM_RATIO = 0.20
#: A main thread below this has time left (our own).
MAIN_RESTS_CORES = 0.60
#: Workers looked at one by one; their kind of work is the same.
MOST_WORKERS = 8
DISK_BOUND = "loader-disk-bound"


@dataclass(frozen=True, slots=True)
class _Pool:
    """Workers (or loader threads) that are always at work while the GPU waits."""

    job: JobView
    waits: Waiting
    usable: float
    used: float
    wanted: int
    threads: bool = False

    @property
    def takes_all(self) -> bool:
        return self.used >= ALL_CORES_RATIO * self.usable

    @property
    def cannot_keep_up(self) -> bool:
        """Not even a worker on every core would do."""
        return not self.threads and self.wanted > self.usable


def loader_too_few_workers(window: Window, active: bool) -> Outcome:
    """R29: more workers would help, and cores for them are free."""
    pool = _pool(window, active)
    if not isinstance(pool, _Pool):
        return pool
    if pool.threads:
        return Clear("data are prepared by threads of the process")
    if pool.takes_all or pool.cannot_keep_up:
        return Clear("no cores are left for more workers")
    free, pressure = pool.job.free_cores, window.host_mean("cpu_pressure_ratio", FULL_S)
    if free is None:
        return Abstain(f"free cores: {window.why_absent('free_cores')}")
    if not active:
        if free < max(FREE_CORES, FREE_PART * pool.usable):
            return Clear("few cores are free")
        if pressure is not None and pressure >= PRESSURE_RATIO:
            return Clear("the cores are under pressure")
    if DISK_BOUND in window.active:
        return Clear("the workers wait for the disk")
    return _if_full(window, pool, active, "", 1 if pressure is None else 0)


def loader_cpu_bound(window: Window, active: bool) -> Outcome:
    """R30: preparing the data needs more CPU than the job may use."""
    pool = _pool(window, active)
    if not isinstance(pool, _Pool):
        return pool
    takes_all = pool.used >= (ALL_CORES_EXIT_RATIO if active else ALL_CORES_RATIO) * pool.usable
    if not takes_all and not pool.cannot_keep_up:
        return Clear("cores are left")
    system = window.host_mean("cpu_system_ratio", FULL_S)
    doubts = 1 if system is not None and system >= SYSTEM_RATIO else 0
    if pool.threads:
        return _found(window, pool, "threads", doubts, 1.0)
    return _if_full(window, pool, active, "" if takes_all else "out-of-reach", doubts)


def _pool(window: Window, active: bool) -> _Pool | Clear | Abstain:
    """The workers beside a waiting GPU, before it is known how busy they are."""
    job = window.job
    if job is None:
        return Abstain(UNSEEN_JOB)
    threads = not job.workers and bool(job.thread_workers)
    if not job.workers and not threads:
        return Clear("no workers")
    waits = waiting(window, active)
    if isinstance(waits, Clear) and not threads and _main_rests(job):
        waits = hidden_waiting(window, active) or waits
    if not isinstance(waits, Waiting):
        return waits
    if job.usable_cores is None or job.tree_cpu_cores is None:
        key = "usable_cores" if job.usable_cores is None else "tree_cpu_cores"
        return Abstain(f"{key.replace('_', ' ')}: {window.why_absent(key)}")
    wanted = 0 if threads else wanted_workers(waits.share, len(job.workers))
    return _Pool(job, waits, job.usable_cores, _used_by_ranks(window, job), wanted, threads)


def _main_rests(job: JobView) -> bool:
    """Whether the main thread is neither busy launching nor spinning: where no gap is seen, workers that
    are always at work then stand for the waiting (a full queue would let them sleep)."""
    return job.main_cpu_cores is not None and job.main_cpu_cores < MAIN_RESTS_CORES


def _used_by_ranks(window: Window, job: JobView) -> float:
    """Cores that all processes of the job use: its ranks on this machine share them."""
    used = {job.trainer.key: job.tree_cpu_cores or 0.0}
    for one in window.siblings:
        if one.job is not None and one.job.tree_cpu_cores is not None:
            used[one.job.trainer.key] = one.job.tree_cpu_cores
    return sum(used.values())


def _if_full(window: Window, pool: _Pool, active: bool, variant: str, doubts: int) -> Outcome:
    """The finding, if the workers are at work all the time and the main thread waits for them."""
    job = pool.job
    if job.worker_cpu_cores is None:
        return Abstain(f"CPU of the workers: {window.why_absent('worker_cpu_cores')}")
    if sleeps_in_gaps(window) is False:
        return Clear("the main thread works while the GPU idles")
    full_part = _full_part(window, job, FULL_WORKER_EXIT if active else FULL_WORKER)
    if full_part < FULL_PART:
        return Clear(f"workers use {job.worker_cpu_cores:.2f} core each")
    return _found(window, pool, variant, doubts, full_part)


def _full_part(window: Window, job: JobView, full: float) -> float:
    """Share of the last ticks in which the median worker ran or queued for a core, `full` cores or more.

    On a crowded machine a worker with work to do gets only a part of a core.
    """
    step = max(1, len(job.workers) // MOST_WORKERS)
    columns = []
    for worker in job.workers[::step]:
        name = f"process:{worker.pid}:{worker.start_ticks}"
        ran = window.history.values(name, "cpu_cores", FULL_S)
        waited = window.history.values(name, "wait_ratio", FULL_S)
        columns.append([_wanted(cores, wait) for cores, wait in zip(ran, waited, strict=True)])
    at_work = known = 0
    for row in zip(*columns, strict=True):
        present = [value for value in row if value == value]
        if present:
            known += 1
            at_work += median(present) >= full
    return at_work / known if known else 0.0


def _wanted(cores: float, wait_ratio: float) -> float:
    """Cores a process ran on or queued for; NaN stays NaN, and an unknown wait counts for nothing."""
    return cores / (1.0 - wait_ratio) if 0.0 < wait_ratio < 1.0 else cores


def _found(window: Window, pool: _Pool, variant: str, doubts: int, coverage: float) -> Fires:
    job, waits = pool.job, pool.waits
    sure = Confidence.POSSIBLE if pool.threads else lower(confidence(window, waits), doubts)
    evidence = job_evidence(window, job)
    evidence += (Evidence("tree_cpu_cores", "the job uses", pool.used, "cores", ">= 85 %", 30.0),)
    return Fires(
        confidence=sure,
        evidence=evidence,
        share_ratio=waits.share,
        share_low_ratio=waits.low,
        share_high_ratio=waits.high,
        coverage_ratio=coverage,
        variant=variant,
        parameters={
            "wanted": float(pool.wanted),
            "workers": float(len(job.workers)),
            "usable_cores": pool.usable,
            "used_cores": pool.used,
            "share": waits.share,
        },
    )
