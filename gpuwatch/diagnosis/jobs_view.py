"""The training process and what belongs to it, as rules see it: means over the last half minute."""

from collections.abc import Iterable, Sequence
from statistics import median

from gpuwatch.diagnosis.gapcpu import BURST_S, EVEN, MIN_DEVIATION, main_thread_gap, workers_gap
from gpuwatch.diagnosis.jobs_family import MEMORY_S, Family
from gpuwatch.diagnosis.window import GapCpu, JobView
from gpuwatch.history import History
from gpuwatch.model import Machine, ProcessReading, ProcessRole, Sample, Shape

MEAN_S, WORKER_S = MEMORY_S, 15.0
#: A minute this even (of its busy level) has no quarter of a minute that moves enough for a regression.
EVEN_DEVIATION = 0.5 * MIN_DEVIATION
#: Threads that prepare data inside one process, by the names their libraries give them (15 characters).
LOADER_THREADS = ("pt_thread_data_", "tf_data", "[DALI]", "grain")
#: Beyond its main thread a trainer keeps about one core busy (backward pass, copies); more than this
#: many together are a loader's threads.
OTHER_THREADS_CORES = 2.0


def job_view(
    history: History,
    sample: Sample,
    machine: Machine,
    gpu: str,
    trainer: ProcessReading,
    kin: Family,
    shape: Shape | None,
) -> JobView:
    """Everything about the job of `gpu` (an entity, "gpu:<uuid>") that the last minute tells."""
    workers = kin.workers
    children = tuple(process for process in kin.present if process.role is not ProcessRole.WORKER)
    family = [trainer, *kin.recent]
    absent: dict[str, str] = {}
    main_gap, pool_gap = _gaps(history, gpu, trainer, workers, shape, absent)
    cores = [_share(history, process, "cpu_cores") for process in family]
    reads = [_share(history, process, "read_chars_per_s") for process in family]
    main_cores = _mean(history, trainer, "main_cpu_cores")
    tree_cores = _total(cores)
    usable = trainer.usable_cores
    view = JobView(
        trainer=trainer,
        workers=workers,
        children=children,
        main_gap=main_gap,
        workers_gap=pool_gap,
        main_cpu_cores=main_cores,
        worker_cpu_cores=_median(_mean(history, worker, "cpu_cores", WORKER_S) for worker in workers),
        worker_blocked_ratio=_average(_mean(history, worker, "blocked_ratio") for worker in workers),
        tree_cpu_cores=tree_cores,
        tree_wait_ratio=_wait_ratio(history, family, cores),
        usable_cores=usable,
        free_cores=_free_cores(history, machine, sample, usable, tree_cores),
        main_read_bytes_per_s=reads[0],
        tree_read_bytes_per_s=_total(reads),
        pt_thread_names=any(thread.name.startswith("pt_") for process in family for thread in process.threads)
        or any(process.name.startswith("pt_") for process in family),
        thread_workers=_thread_workers(trainer, _mean(history, trainer, "cpu_cores"), main_cores),
        absent=absent,
    )
    _explain_absent(view, absent)
    return view


def _gaps(
    history: History,
    gpu: str,
    trainer: ProcessReading,
    workers: Sequence[ProcessReading],
    shape: Shape | None,
    absent: dict[str, str],
) -> tuple[GapCpu | None, GapCpu | None]:
    if shape is None or not shape.high_ratio:
        reason = "the shape of utilization is not known yet"
        absent.update(main_gap=reason, workers_gap=reason)
        return None, None
    if (shape.standard_deviation_ratio or 0.0) < EVEN_DEVIATION * shape.high_ratio:
        absent.update(main_gap=EVEN, workers_gap=EVEN if workers else "no worker processes")
        return None, None
    utilization = history.burst(gpu.partition(":")[2], "utilization", BURST_S + 2.0)
    main = main_thread_gap(history, trainer, gpu, utilization, shape.high_ratio)
    pool = workers_gap(history, workers, gpu, shape.high_ratio)
    if isinstance(main, str):
        absent["main_gap"] = main
    if isinstance(pool, str):
        absent["workers_gap"] = pool
    return (None if isinstance(main, str) else main), (None if isinstance(pool, str) else pool)


def entity(process: ProcessReading) -> str:
    """The process's name in history."""
    return f"process:{process.pid}:{process.start_ticks}"


def _mean(history: History, process: ProcessReading, key: str, seconds: float = MEAN_S) -> float | None:
    return history.mean(entity(process), key, seconds)


def _share(history: History, process: ProcessReading, key: str) -> float | None:
    """Its part in the mean of the whole window, also where it lived for a part of it only."""
    values = history.present(entity(process), key, MEAN_S)
    ticks = len(history.present("host:", "cpu_ratio", MEAN_S)) or len(history.times(MEAN_S))
    return sum(values) / max(len(values), ticks) if values and ticks else None


def _known(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _median(values: Iterable[float | None]) -> float | None:
    known = _known(values)
    return median(known) if known else None


def _average(values: Iterable[float | None]) -> float | None:
    known = _known(values)
    return sum(known) / len(known) if known else None


def _total(values: Sequence[float | None]) -> float | None:
    """Sum over those that are known; None when the trainer's, the first, is not."""
    return None if values[0] is None else sum(_known(values))


def _wait_ratio(
    history: History, processes: Sequence[ProcessReading], cores: Sequence[float | None]
) -> float | None:
    """Run-queue wait of all together, as a share of the time they wanted a core."""
    ran = waited = 0.0
    known = False
    for process, used in zip(processes, cores, strict=True):
        ratio = _mean(history, process, "wait_ratio")
        if ratio is None or used is None or ratio >= 1.0:
            continue
        known = True
        ran += used
        waited += used * ratio / (1 - ratio)
    if not known:
        return None
    return waited / (ran + waited) if ran + waited > 0 else 0.0


def _free_cores(
    history: History, machine: Machine, sample: Sample, usable: float | None, tree: float | None
) -> float | None:
    """What is left on the machine, and of what the job itself may use."""
    logical = machine.host.logical_cores
    if logical is None and sample.host is not None:
        logical = len(sample.host.core_ids) or None
    used = history.mean("host:", "cpu_ratio", MEAN_S)
    if logical is None or used is None:
        return None
    free = logical * (1 - used)
    if usable is not None and tree is not None:
        free = min(free, usable - tree)
    return max(0.0, free)


def _thread_workers(trainer: ProcessReading, total: float | None, main: float | None) -> int:
    named = sum(thread.name.startswith(LOADER_THREADS) for thread in trainer.threads)
    if total is None or main is None or total - main < OTHER_THREADS_CORES:
        return named
    return max(named, int(total - main))


def _explain_absent(view: JobView, absent: dict[str, str]) -> None:
    reasons = {
        "main_cpu_cores": "scheduler counters of the main thread cannot be read",
        "tree_cpu_cores": "CPU time of the process cannot be read",
        "tree_wait_ratio": "run-queue wait cannot be read",
        "usable_cores": "affinity and quota cannot be read",
        "free_cores": "CPU use of the machine is not known yet",
        "main_read_bytes_per_s": "reads of the process cannot be seen (other user)",
        "tree_read_bytes_per_s": "reads of the process cannot be seen (other user)",
        "worker_cpu_cores": "no worker processes",
        "worker_blocked_ratio": "no worker processes",
    }
    own = view.trainer.absent
    for name, reason in reasons.items():
        if getattr(view, name) is None and name not in absent:
            absent[name] = own.get(_RAW.get(name, ""), reason)


#: The raw reading behind a mean, whose own reason is better than a general one.
_RAW = {
    "main_cpu_cores": "threads",
    "tree_cpu_cores": "cpu_ns",
    "tree_wait_ratio": "wait_ns",
    "usable_cores": "usable_cores",
    "main_read_bytes_per_s": "read_chars",
    "tree_read_bytes_per_s": "read_chars",
}
