"""What the rules about waiting share: how much the GPU waits, and what its main process does meanwhile."""

from dataclasses import dataclass
from math import ceil

from gpuwatch.diagnosis.interface import Abstain, Clear
from gpuwatch.diagnosis.rules.common import lower, missing, shape_evidence
from gpuwatch.diagnosis.window import GapCpu, JobView, Window
from gpuwatch.model import Confidence, Evidence, Shape, ShapeKind

UNSEEN_JOB = "the job's process cannot be seen from here"
#: A shape needs half a minute; until a minute is full the result is preliminary.
LEAST_S = 30.0
WAITS_RATIO, WAITS_EXIT_RATIO = 0.08, 0.05
#: A steady low utilization at low power waits too, faster than the samples can show.
FLAT_UTILIZATION, FLAT_POWER_RATIO = 0.60, 0.50
POWER_S = 10.0
IDLE_POWER_PART = 0.15  # of the limit, until the card's idle power is learned
#: Above this power share gaps are doubtful: the card hardly rests.
DOUBTED_POWER_RATIO = 0.80
#: A process that reads or decodes in its gaps prepares data there.
READS_BYTES_PER_S = 1e6
#: Spin waits keep a thread at 100 % in every case, so only CPU in the gaps counts (0.97 against
#: 0.02-0.08 in our simulation).
RUNS_IN_GAPS, RUNS_EXIT, SLEEPS_IN_GAPS = 0.80, 0.60, 0.40
FULL_CORE = 0.95
FULL_CORE_EXIT = 0.80
#: An estimate with a larger standard error counts as one signal less.
UNSURE_CORES = 0.25
#: Gaps are over after this long without one, at this part of the busy level (our own).
ENDED_S, ENDED_CYCLES, ENDED_PART = 15.0, 3.0, 0.9
#: The other GPUs of a job that work and do not wait (our own). While busy they move about as much memory as
#: this one while it is busy; spinning kernels move next to none.
PEERS_WORK, PEERS_WAIT, PEERS_MEMORY, PEERS_TRAFFIC = 0.90, 0.05, 0.05, 0.85

#: Fewer points a cycle than this, and the shape is no picture of the gaps.
SAMPLES_PER_CYCLE = 3.5
_UNRESOLVED = frozenset({ShapeKind.FLAT_LOW, ShapeKind.VARIABLE})
#: Idle moments shorter than a sample: only what keeps them apart from launches can name a cause (our own).
_HIDDEN = _UNRESOLVED | {ShapeKind.FLAT_HIGH}
HIDDEN_RATIO, HIDDEN_EXIT_RATIO = 0.15, 0.10


@dataclass(frozen=True, slots=True)
class Waiting:
    """How much the GPU waits. `resolved`: its gaps are seen one by one."""

    share: float
    low: float | None
    high: float | None
    resolved: bool


def waiting(window: Window, active: bool) -> Waiting | Abstain | Clear:
    """The waiting of the last minute; Clear when there is none worth naming."""
    if window.last("utilization_ratio", LEAST_S) is None:
        return missing(window, "utilization_ratio")
    shape = known_shape(window)
    if isinstance(shape, Abstain):
        return shape
    least = WAITS_EXIT_RATIO if active else WAITS_RATIO
    if shape.kind is ShapeKind.PULSED and shape.stall_ratio is not None:
        if shape.stall_ratio < least:
            return Clear("hardly any waiting")
        if _has_ended(window, shape):
            return Clear("the waiting has ended")
        if done_early(window):
            return Clear("the other GPUs of this job are not held up: this one has less to do")
        return Waiting(shape.stall_ratio, shape.stall_low_ratio, shape.stall_high_ratio, _is_resolved(shape))
    mean = shape.mean_ratio
    if shape.kind in _UNRESOLVED and mean is not None and mean < FLAT_UTILIZATION:
        return Waiting(1.0 - mean, None, None, False)
    if mean is None:
        return Clear("")
    gaps = "no gaps to be seen" if shape.kind in _HIDDEN else "the GPU does not wait"
    return Clear(f"{gaps} ({mean:.0%} busy)".replace("%", " %"))


def hidden_waiting(window: Window, active: bool) -> Waiting | None:
    """Idle time without a gap to be seen: steps about as long as the driver's samples mix with them.

    It proves no waiting by itself, as kernels launched one by one look alike.
    """
    shape = known_shape(window)
    if isinstance(shape, Abstain) or shape.kind not in _HIDDEN or shape.mean_ratio is None:
        return None
    idle = 1.0 - shape.mean_ratio
    least = HIDDEN_EXIT_RATIO if active else HIDDEN_RATIO
    return Waiting(idle, None, None, False) if idle >= least else None


def known_shape(window: Window) -> Shape | Abstain:
    """The shape of the last minute's utilization; before half a minute nothing is known of its gaps."""
    shape = window.shape
    if shape is None or shape.kind is ShapeKind.UNKNOWN or shape.duration_s < 0.9 * LEAST_S:
        seen = 0.0 if shape is None else shape.duration_s
        return Abstain("watching the GPU's gaps", seconds_left=max(1.0, LEAST_S - seen))
    return shape


def _has_ended(window: Window, shape: Shape) -> bool:
    """Whether the gaps of the last minute are all behind: none for as long as three used to take."""
    high = shape.high_ratio
    if not shape.cycles or high is None:
        return False
    quiet_s = max(ENDED_S, ENDED_CYCLES * shape.duration_s / shape.cycles)
    if quiet_s >= shape.duration_s:
        return False
    values = window.present("utilization_ratio", quiet_s)
    return bool(values) and min(values) >= ENDED_PART * high


def done_early(window: Window) -> bool:
    """Whether all other GPUs of the job work on without waiting: no input is missing, the work is uneven.

    A rank whose batch is late stops the others, which shows as their waiting.
    """
    if not window.siblings:
        return False
    own = traffic_at_work(window)
    return all(
        (one.mean("utilization_ratio", LEAST_S) or 0.0) >= PEERS_WORK
        and one.peers_ratio is not None
        and one.peers_ratio < PEERS_WAIT
        and (one.mean("memory_utilization_ratio", LEAST_S) or 0.0) >= PEERS_MEMORY
        and (own is None or (traffic_at_work(one) or 0.0) >= PEERS_TRAFFIC * own)
        for one in window.siblings
    )


def traffic_at_work(window: Window) -> float | None:
    """Memory utilization per utilization: what of its busy time a GPU accesses memory."""
    busy = window.mean("utilization_ratio", LEAST_S)
    memory = window.mean("memory_utilization_ratio", LEAST_S)
    return memory / busy if busy and memory is not None else None


def _is_resolved(shape: Shape) -> bool:
    """Pulses about as fast as the samples look like slower ones (aliases)."""
    if not shape.buffered or not shape.cycles or shape.resolution_s is None:
        return True
    return shape.duration_s / shape.cycles >= SAMPLES_PER_CYCLE * shape.resolution_s


def power_ratio(window: Window) -> float | None:
    """Power between idle (0) and the limit (1), over ten seconds; None where it is not known."""
    power, limit = window.mean("power_w", POWER_S), window.last("power_limit_w", 30.0)
    if power is None or not limit:
        return None
    idle = window.references.idle_power_w
    if idle is None:
        idle = IDLE_POWER_PART * limit
    return (power - idle) / (limit - idle) if limit > idle else None


def prepares_data(job: JobView, active: bool = False) -> bool | None:
    """Whether the main process reads or decodes; None where neither can be seen."""
    reads = job.main_read_bytes_per_s
    if reads is not None and reads >= READS_BYTES_PER_S * (0.5 if active else 1.0):
        return True
    facts = job.trainer.facts
    if facts is not None and facts.decoder is not None:
        return True
    return None if reads is None or facts is None or facts.libraries is None else False


def main_gap(window: Window) -> GapCpu | None:
    """The main thread in the gaps; None where utilization is only polled.

    A reading a second says how a sixth of it was, which pulls both figures towards the mean.
    """
    if window.job is None or window.shape is None or not window.shape.buffered:
        return None
    return window.job.main_gap


def wanted_in_gaps(gap: GapCpu) -> float:
    """Cores the thread runs on or queues for while the GPU idles: on a crowded host it gets only a part."""
    return gap.gap_cores + (gap.gap_wait_cores or 0.0)


def runs_in_gaps(window: Window, job: JobView, active: bool = False) -> bool | None:
    """Whether the main thread works while the GPU idles; None where even its CPU use is not known.

    Without the gap measure a full core stands for it, which also a spin wait would show.
    """
    gap = main_gap(window)
    if gap is not None:
        return wanted_in_gaps(gap) >= (RUNS_EXIT if active else RUNS_IN_GAPS)
    if job.main_cpu_cores is None:
        return None
    return job.main_cpu_cores >= (FULL_CORE_EXIT if active else FULL_CORE)


def sleeps_in_gaps(window: Window) -> bool | None:
    """Whether the main thread rests while the GPU idles; None without the gap measure."""
    gap = main_gap(window)
    return None if gap is None else wanted_in_gaps(gap) <= SLEEPS_IN_GAPS


def confidence(window: Window, found: Waiting) -> Confidence:
    """Likely; a step down without the gap measure or with an unsure one, or if gaps are not resolved."""
    gap = main_gap(window)
    steps = int(gap is None or gap.error_cores > UNSURE_CORES) + int(not found.resolved)
    return lower(Confidence.LIKELY, steps)


def wanted_workers(share: float, present: int) -> int:
    """How many workers would just keep up: from none, the preparation is `share` of a step; `present`
    saturated ones do 1 - `share` of the work. A fifth on top; assumes that workers add up."""
    rest = max(0.02, 1.0 - share)
    return ceil(1.2 * (present if present else share) / rest)


def gap_evidence(window: Window, job: JobView) -> tuple[Evidence, ...]:
    """CPU of the main thread in the gaps and at work, or its mean where that is all there is."""
    gap = main_gap(window)
    found = []
    if gap is not None:
        found += [
            Evidence(
                "gapcpu_main_cores", "main thread while the GPU idles", gap.gap_cores, "cores", ">= 0.8"
            ),
            *(
                [
                    Evidence(
                        "gapwait_main_cores", "it queues for a core meanwhile", gap.gap_wait_cores, "cores"
                    )
                ]
                if gap.gap_wait_cores is not None and gap.gap_wait_cores >= 0.1
                else []
            ),
            Evidence("busycpu_main_cores", "main thread while it works", gap.busy_cores, "cores"),
        ]
    elif job.main_cpu_cores is not None:
        found.append(Evidence("main_cpu_cores", "main thread", job.main_cpu_cores, "cores", ">= 0.95", 30.0))
    return tuple(found)


def job_evidence(window: Window, job: JobView) -> tuple[Evidence, ...]:
    """Waiting, main thread, workers, cores and reads: what the table of causes is read from."""
    found = [
        *shape_evidence(window),
        *gap_evidence(window, job),
        Evidence("worker_count", "worker processes", float(len(job.workers))),
    ]
    for key, label, value, unit in (
        ("worker_cpu_cores", "each worker", job.worker_cpu_cores, "cores"),
        ("free_cores", "free cores", job.free_cores, "cores"),
        ("usable_cores", "usable cores", job.usable_cores, "cores"),
        ("main_read_bytes_per_s", "main process reads", job.main_read_bytes_per_s, "B/s"),
    ):
        if value is not None:
            found.append(Evidence(key, label, value, unit, "", 30.0))
    return tuple(found)
