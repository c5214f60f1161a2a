"""Texts of the rules about waiting for data."""

from gpuwatch.diagnosis.interface import Fires
from gpuwatch.diagnosis.rules import waiting as wait
from gpuwatch.diagnosis.rules.data import loader_workers as pool
from gpuwatch.diagnosis.texts.record import RuleText
from gpuwatch.diagnosis.texts.words import (
    byte_rate,
    cores,
    free_cores_line,
    gap_line,
    lines,
    number,
    percent,
    reads_line,
    whole,
)
from gpuwatch.diagnosis.window import JobView, Window
from gpuwatch.model import FindingText

_TOO_FAST = "its gaps are shorter than the driver's samples, so they are not seen one by one"


def _worker_line(job: JobView | None) -> str:
    if job is None:
        return ""
    count = len(job.workers)
    if not count:
        return "no worker processes"
    if job.worker_cpu_cores is None:
        return f"{count} workers"
    return f"{count} worker{'s' if count > 1 else ''} at {cores(job.worker_cpu_cores)} each"


def _period_line(window: Window) -> str:
    shape = window.shape
    if shape is None or not shape.cycles:
        return ""
    every = f"about every {shape.period_s:.1f} s, " if shape.period_s is not None else ""
    return (
        f"{shape.cycles} gaps in {shape.duration_s:.0f} s, {every}down to {percent(shape.low_ratio or 0.0)}"
    )


def _input_line(job: JobView | None, window: Window) -> str:
    """Hints at disk or network: blocked workers, pressure, what is read."""
    if job is None:
        return ""
    parts = []
    if job.worker_blocked_ratio is not None and job.worker_blocked_ratio >= 0.2:
        parts.append(f"workers blocked in {percent(job.worker_blocked_ratio)} of the looks")
    pressure = window.host_mean("io_pressure_ratio", 30.0)
    if pressure is not None and pressure >= 0.2:
        parts.append(f"I/O pressure {percent(pressure)}")
    if job.tree_read_bytes_per_s is not None and len(parts) < 2:
        parts.append(f"the job reads {byte_rate(job.tree_read_bytes_per_s)}")
    return ", ".join(parts)


def _starved(fires: Fires, window: Window) -> FindingText:
    job = window.job
    doubted = number(fires.parameters, "doubted")
    doubt = "power stays near its limit in spite of the gaps, which makes them doubtful" if doubted else ""
    if fires.variant == "collate":
        return _collate(window)
    if fires.variant == "seldom":
        return _seldom(fires, window)
    flat = fires.variant == "flat"
    return FindingText(
        title="the GPU is busy only part of the time, cause not proven"
        if flat
        else "the GPU waits, cause not proven",
        because=lines(
            _TOO_FAST if flat else _period_line(window),
            gap_line(window) if job is not None else wait.UNSEEN_JOB,
            _worker_line(job),
            doubt or _input_line(job, window),
        ),
        wrong_if="small kernels keep the GPU busy only part of the time"
        if flat
        else "the pauses belong to the program (an environment, a server's clients, a schedule)",
        settle="run 100 steps on random tensors instead of the data loader",
        advice=(
            "train 100 steps on random tensors; if the gaps go, it is the data",
            f"py-spy dump --pid {job.trainer.pid} while the GPU idles"
            if job is not None
            else "py-spy dump on the training process while the GPU idles",
            "record 10 steps with the framework's profiler",
        ),
        short_advice="100 steps on random tensors",
    )


def _between(window: Window) -> FindingText:
    job = window.job
    reads = job.main_read_bytes_per_s if job is not None else None
    unseen = "its reads cannot be seen" if reads is None else f"it reads only {byte_rate(reads)}"
    return FindingText(
        title="CPU work between the steps, in the main process (0 workers)",
        because=lines(gap_line(window), unseen + " and no decoder is known", _worker_line(job)),
        wrong_if="this work is the job itself (an environment, a simulation, tree search)",
        settle="100 steps on random tensors: if the gaps go, the work is making the batches",
        advice=(
            f"py-spy top --pid {job.trainer.pid}" if job is not None else "py-spy top on the process",
            "if it is the data set: let loader workers do it",
            "move what can wait out of the step: metrics, logging, copies to the CPU",
            "compute several environments or samples at once, or overlap them with the GPU",
        ),
        short_advice="py-spy top: what runs in the gaps?",
    )


def _collate(window: Window) -> FindingText:
    job = window.job
    return FindingText(
        title="the main process works while the GPU idles, its workers rest",
        because=lines(gap_line(window), _worker_line(job), free_cores_line(job)),
        wrong_if="it only spins while it waits for the GPU",
        settle="py-spy dump a few times while the GPU idles: is it collate or a transform?",
        advice=(
            "move collate_fn and transforms into the workers, or to the GPU",
            f"py-spy top --pid {job.trainer.pid}" if job is not None else "py-spy top on the process",
            "send smaller batches of plain arrays; convert and normalize on the GPU",
        ),
        short_advice="py-spy top: collate or transform?",
    )


def _seldom(fires: Fires, window: Window) -> FindingText:
    job, every = window.job, number(fires.parameters, "every_s") or 0.0
    return FindingText(
        title=f"the main process holds up the GPU about every {every:.0f} s, its workers rest",
        because=lines(gap_line(window), _worker_line(job), free_cores_line(job)),
        wrong_if="these gaps are wanted: an evaluation, a sample that is drawn",
        settle="py-spy dump in such a gap: evaluation, metrics, logging?",
        advice=(
            f"py-spy top --pid {job.trainer.pid}" if job is not None else "py-spy top on the process",
            "evaluate less often; compute metrics on the GPU, and copy only their sums",
            "log and save from a thread of its own",
        ),
        short_advice="py-spy top: evaluation or logging?",
    )


def _main_process(fires: Fires, window: Window) -> FindingText:
    if fires.variant == "between":
        return _between(window)
    job = window.job
    wanted = number(fires.parameters, "wanted") or 1.0
    free = job.free_cores if job is not None else None
    bound = ""
    if free is not None and wanted > free + 1:
        bound = f"only {whole(float(int(free + 0.5)))} cores are free, so workers alone will not cure it"
    first = max(1, min(4, int(free + 1.0) if free is not None else 4))
    return FindingText(
        title="batches are prepared in the main process (0 workers)",
        because=lines(
            gap_line(window),
            reads_line(job),
            free_cores_line(job),
            _TOO_FAST if fires.variant == "unresolved" else _period_line(window),
        ),
        wrong_if="the step itself does CPU work (metrics, an environment)",
        settle=f"num_workers={first} for 100 steps, or random tensors instead of the loader",
        advice=lines(
            f"num_workers={first} first, then towards {wanted:.0f} (computed from the gaps)"
            if wanted > first
            else f"num_workers={first}; about {wanted:.0f} would keep up",
            bound,
            "then persistent_workers=True and pin_memory=True",
            "in a notebook or on Windows guard the start with __main__; or decode on the GPU",
        ),
        short_advice=f"num_workers={first}, watch 100 steps",
    )


def _few_workers(fires: Fires, window: Window) -> FindingText:
    job = window.job
    wanted = number(fires.parameters, "wanted") or 0.0
    present = number(fires.parameters, "workers") or 0.0
    name = "worker" if present == 1 else "workers"
    return FindingText(
        title=f"{present:.0f} {name} cannot keep up; about {wanted:.0f} would",
        because=lines(_worker_line(job), free_cores_line(job), gap_line(window), _period_line(window)),
        wrong_if="workers do not add up: one lock, one file, one slow disk behind all of them",
        settle=f"num_workers={wanted:.0f} for 100 steps",
        advice=(
            f"num_workers={wanted:.0f}, and stop where steps per second stop rising",
            "prefetch_factor=4, so that a slow sample is bridged",
            "watch host memory: each worker holds its own copy of the dataset object",
        ),
        short_advice=f"num_workers={wanted:.0f}, watch steps/s",
    )


def _cpu_bound(fires: Fires, window: Window) -> FindingText:
    job = window.job
    usable = number(fires.parameters, "usable_cores") or 0.0
    used = number(fires.parameters, "used_cores") or 0.0
    wanted = number(fires.parameters, "wanted") or 0.0
    have = f"{whole(usable)} core{'s' if usable > 1 else ''}"
    title = {
        "threads": f"loader threads take all of the {have}",
        "out-of-reach": f"preparing data needs more than the {have}",
    }.get(fires.variant, f"preparing data takes all of the {have}")
    threads = job.thread_workers if job is not None and fires.variant == "threads" else 0
    return FindingText(
        title=title,
        because=lines(
            f"the job uses {cores(used)} of {whole(usable)}",
            f"{threads} busy threads in the process" if threads else _worker_line(job),
            f"about {wanted:.0f} workers would be needed" if fires.variant == "out-of-reach" else "",
            gap_line(window),
            _period_line(window),
        ),
        wrong_if="too many threads fight for the cores (system time above 20 %)",
        settle="100 steps with the dearest transform left out, or on random tensors",
        advice=lines(
            f"raise num_workers towards {whole(usable)} first" if fires.variant == "out-of-reach" else "",
            "make decoding cheaper: store smaller images, a faster JPEG decoder",
            "augment and normalize on the GPU",
            "keep decoded or resized samples",
        ),
        short_advice="smaller images, augment on the GPU",
    )


TEXTS: dict[str, RuleText] = {
    "gpu-starved": RuleText(
        title="the GPU waits, cause not proven",
        label="not proven",
        render=_starved,
        sees="The shape of utilization over the last minute, from the driver's sub-second samples "
        "where the card has them, and power. It proves that the GPU waits and how much, not for "
        "what.",
        decides=f"Repeated gaps that cost {wait.WAITS_RATIO:.0%} of the time or more, in three looks 5 s "
        f"apart; or a steady utilization under {wait.FLAT_UTILIZATION:.0%} with less than half of "
        "the power range. It ends after six looks without. It is hidden once named causes cover "
        "80 % of the waiting.",
        unlike="Rare long pauses (validation, checkpoint), a busy card with small kernels, warm-up and "
        "serving are not starving. A main thread at 100 % is normal, because CUDA waits by "
        "spinning; only its CPU use in the gaps counts. If power stays above 80 % of its range "
        "the gaps are doubted.",
        steps=(
            "Train 100 steps on random tensors instead of the data loader: if the gaps go, it is the "
            "data. Otherwise look with py-spy dump at the process while the GPU idles.",
        ),
        wrong_if="",
        settle="",
        sources="The 80 % of coverage follow TraceML; low percentiles of utilization as a sign of "
        "starving are used by SageMaker Debugger; the 8 % are the measuring error in our own "
        "simulation.",
    ),
    "loader-in-main-process": RuleText(
        title="batches are prepared in the main process (0 workers)",
        label="main process",
        render=_main_process,
        sees="The main thread's CPU use while the GPU idles against its use while the GPU works, "
        "worker processes and threads, what the main process reads, and decoders it has loaded.",
        decides=f"Gaps, no workers, {wait.RUNS_IN_GAPS} core or more of main thread in the gaps (ends "
        f"under {wait.RUNS_EXIT}). Time in the queue for a core counts as running. With reads of 1 MB/s "
        "or a decoder it is likely; without, it says only that the CPU works between the steps, as "
        "possible and never above notice. Without a measure of the gaps: main thread at "
        f"{wait.FULL_CORE} core, one step less sure. The number of workers comes from "
        "share/(1-share) plus a fifth.",
        unlike="A spin wait shows a full core at work but none in the gaps. Loaders that use threads "
        "(TensorFlow, DALI) are left alone. Programs that compute between steps on purpose "
        "(simulation, reinforcement learning) look the same from outside unless they read nothing.",
        steps=(
            "Start with num_workers=4, then go towards the number the finding names; add "
            "persistent_workers=True and pin_memory=True. Stop where steps per second stop rising. If "
            "py-spy shows the program's own work instead, move it out of the step.",
        ),
        wrong_if="",
        settle="",
        sources="num_workers=0 is PyTorch's default (its DataLoader documentation). The limits are from "
        "our own simulation: 0.97 core for loading in the main thread, at most 0.08 for anything "
        "else.",
    ),
    "loader-too-few-workers": RuleText(
        title="too few workers",
        label="too few workers",
        render=_few_workers,
        sees="Each worker's CPU use, the main thread in the gaps, free cores, and pressure on the CPU.",
        decides=f"Gaps while the typical worker uses {pool.FULL_WORKER} core or more in "
        f"{pool.FULL_PART:.0%} of 30 s (ends under {pool.FULL_WORKER_EXIT}), a main thread that "
        "rests, two cores and a quarter of all free, CPU pressure under "
        f"{pool.PRESSURE_RATIO:.0%}. About 1.2 x workers/(1-share) would keep up.",
        unlike="With all cores in use it is a lack of CPU; with workers that wait for a disk, more of "
        "them do not help.",
        steps=(
            "Raise num_workers to the number the finding names and stop where steps per second stop "
            "rising; prefetch_factor=4 bridges slow samples. Each worker holds its own copy of the "
            "dataset object: watch the memory.",
        ),
        wrong_if="",
        settle="",
        sources="The limits are our own; that workers add up is an assumption, settled by trying.",
    ),
    "loader-cpu-bound": RuleText(
        title="preparing data takes all cores",
        label="CPU",
        render=_cpu_bound,
        sees="CPU use of the job against the cores it may use (affinity, quota), workers or loader threads.",
        decides=f"As with too few workers, but the job uses {pool.ALL_CORES_RATIO:.0%} of its cores (ends "
        f"under {pool.ALL_CORES_EXIT_RATIO:.0%}), or even a worker on each core would not keep up.",
        unlike="A quota, other programs or too many threads explain why cores are short: then those are "
        "named.",
        steps=(
            "Decode cheaper (smaller stored images, a faster JPEG library), augment on the GPU, or "
            "keep decoded samples. More workers do not help.",
        ),
        wrong_if="",
        settle="",
        sources="gpuprof warns at 80 % of CPU; 85 % of logical cores is our own judgement, because two of "
        "them share a core.",
    ),
}
