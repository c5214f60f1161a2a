"""R11, R20, R22, R23: which cores the job runs on, how many it may use, and how fast they are."""

from gpuwatch.diagnosis.interface import Abstain, Clear, Fires, Outcome
from gpuwatch.diagnosis.rules.common import idle_coverage, link_rate_bytes_per_s, pulsed
from gpuwatch.diagnosis.rules.waiting import UNSEEN_JOB
from gpuwatch.diagnosis.window import JobView, Window
from gpuwatch.model import Confidence, Evidence, Kind, ProcessReading, Severity

WINDOW_S = 30.0
# -- numa-remote: 70 and 50 % are our own
REMOTE_RATIO, REMOTE_EXIT_RATIO, REMOTE_S, LINK_RATIO = 0.70, 0.50, 60.0, 0.20

# -- cpu-mask-narrow: numbers our own
FAIR_PART, MASK_PRESSURE, MASK_EXIT_PRESSURE, MASK_USED = 0.50, 0.10, 0.05, 0.90
#: A GPU at work all the time misses nothing.
FED_UTILIZATION = 0.85

# -- thread-oversubscription: 668 threads, system time 23 instead of 4 % (mmdetection); thresholds our own
THREADS_PER_CORE, THREADS_PRESSURE, THREADS_EXIT_PRESSURE, SYSTEM_RATIO = 4.0, 0.30, 0.15, 0.20

# -- cpu-governor
SLOW_CLOCK, BUSY_CORE = 0.60, 0.95
CPU_SIDE = frozenset(
    {"loader-in-main-process", "loader-too-few-workers", "loader-cpu-bound", "launch-bound", "sync-stalls"}
)
#: Drivers whose "powersave" is the normal, dynamic governor.
DYNAMIC = ("intel_pstate", "amd-pstate", "amd_pstate")


def numa_remote(window: Window, active: bool) -> Outcome:
    """R11: the job computes on another NUMA node than its GPU's."""
    job, nodes = window.job, window.machine.host.numa_cores
    if job is None:
        return Abstain(UNSEEN_JOB)
    if len(nodes) < 2:
        return Clear("one NUMA node") if nodes else Abstain("NUMA nodes are not known")
    node = window.info.numa_node if window.info is not None else None
    if node is None or not 0 <= node < len(nodes):
        return Abstain("the GPU's NUMA node is not known")
    local = frozenset(nodes[node])
    remote = _remote_ratio(window, job, local)
    if remote is None:
        return Abstain("on which cores the job ran is not known")
    if remote < (REMOTE_EXIT_RATIO if active else REMOTE_RATIO):
        return Clear("on the GPU's NUMA node")
    if not pulsed(window) and (_link_ratio(window) or 0.0) < LINK_RATIO:
        return Clear("on another NUMA node, with little to copy")
    return Fires(
        Confidence.POSSIBLE,
        (
            Evidence("remote_ratio", "CPU time on other nodes", remote, "ratio", ">= 70 %", REMOTE_S),
            Evidence("node", "the GPU's node", float(node)),
        ),
        severity=Severity.NOTICE,
        parameters={"node": float(node), "remote": remote},
    )


def _remote_ratio(window: Window, job: JobView, local: frozenset[int]) -> float | None:
    """Share of the CPU time of main process and workers on cores of other nodes, by where each was seen."""
    spent = away = 0.0
    for process in (job.trainer, *job.workers):
        name = f"process:{process.pid}:{process.start_ticks}"
        cores = window.history.values(name, "cpu_cores", REMOTE_S)
        places = window.history.values(name, "last_core", REMOTE_S)
        if local.issuperset(places):
            spent += sum(used for used in cores if used == used)
            continue
        for used, place in zip(cores, places, strict=True):
            if used == used and place == place:
                spent += used
                away += used if int(place) not in local else 0.0
    return away / spent if spent > 0.1 else None


def _link_ratio(window: Window) -> float | None:
    rate, rx = link_rate_bytes_per_s(window), window.mean("pcie_rx_bytes_per_s", REMOTE_S)
    return None if rate is None or rx is None else rx / rate


def cpu_mask_narrow(window: Window, active: bool) -> Outcome:
    """R20: the job may use a small part of the machine's cores, and needs more."""
    job, online = window.job, window.machine.host.logical_cores
    if job is None:
        return Abstain(UNSEEN_JOB)
    mask = job.trainer.affinity_cores
    if mask is None or not online:
        return Abstain("which cores the job may use is not known")
    gpus = max(1, len(window.sample.gpus))
    if mask >= FAIR_PART * online / gpus or mask >= online:
        return Clear(f"{mask} of {online} cores")
    pressure = window.host_mean("cpu_pressure_ratio", WINDOW_S)
    used = job.tree_cpu_cores
    if pressure is None and used is None:
        return Abstain("neither CPU pressure nor the job's CPU use is known")
    pressed = pressure is not None and pressure >= (MASK_EXIT_PRESSURE if active else MASK_PRESSURE)
    full = used is not None and used >= MASK_USED * mask
    if not full and not (pressed and (job.tree_wait_ratio or 0.0) >= 0.10):
        return Clear(f"{mask} of {online} cores, and they suffice")
    if not pulsed(window) and (window.mean("utilization_ratio", WINDOW_S) or 0.0) >= FED_UTILIZATION:
        return Clear(f"{mask} of {online} cores, and the GPU is fed")
    shape = window.shape
    loses = pulsed(window) and shape is not None
    beside = any(rule.startswith("loader-") for rule in window.active)
    return Fires(
        Confidence.LIKELY,
        (
            Evidence("affinity_cores", "cores the job may use", float(mask), "cores"),
            Evidence("logical_cores", "of the machine's", float(online), "cores"),
            *(
                [Evidence("tree_cpu_cores", "it uses", used, "cores", ">= 90 %", WINDOW_S)]
                if used is not None
                else []
            ),
            *(
                [Evidence("cpu_pressure_ratio", "CPU pressure", pressure, "ratio", ">= 10 %", WINDOW_S)]
                if pressure is not None
                else []
            ),
        ),
        severity=Severity.WARNING if loses or beside else Severity.NOTICE,
        kind=Kind.LOSS if loses else None,
        share_ratio=shape.stall_ratio if loses and shape is not None else None,
        share_low_ratio=shape.stall_low_ratio if loses and shape is not None else None,
        share_high_ratio=shape.stall_high_ratio if loses and shape is not None else None,
        coverage_ratio=1.0 if loses and full else 0.0,
        parameters={"mask": float(mask), "online": float(online)},
    )


def thread_oversubscription(window: Window, active: bool) -> Outcome:
    """R22: workers start more threads than there are cores, and the kernel spends its time on them."""
    job = window.job
    if job is None:
        return Abstain(UNSEEN_JOB)
    if not job.workers:
        return Clear("")
    if job.usable_cores is None:
        return Abstain("which cores the job may use is not known")
    counts = [worker.thread_count for worker in job.workers if worker.thread_count is not None]
    if len(counts) < len(job.workers):
        return Abstain("the workers' threads cannot be counted")
    threads = sum(counts)
    if threads <= THREADS_PER_CORE * job.usable_cores:
        return Clear("")
    pressure, system = (
        window.host_mean("cpu_pressure_ratio", WINDOW_S),
        window.host_mean("cpu_system_ratio", WINDOW_S),
    )
    busy = window.host_mean("cpu_ratio", WINDOW_S)
    if pressure is None or system is None or not busy:
        return Abstain("CPU pressure or system time cannot be read")
    share = system / busy  # of the time the cores work
    if pressure < (THREADS_EXIT_PRESSURE if active else THREADS_PRESSURE) or share < SYSTEM_RATIO:
        return Clear("many threads, but they rest")
    shape = window.shape
    loses = pulsed(window) and shape is not None
    coverage = 0.0
    if loses:
        values = window.history.values("host:", "cpu_pressure_ratio", WINDOW_S)
        felt = [None if value != value else value >= 0.5 * THREADS_PRESSURE for value in values]
        coverage = idle_coverage(window, felt, WINDOW_S) or 0.0
    library = next(
        (name for name in _names(job.trainer) if name.startswith(("cv2", "libmkl", "libgomp"))), ""
    )
    return Fires(
        Confidence.LIKELY,
        (
            Evidence("worker_threads", "threads of the workers", float(threads), "", "> 4 x cores"),
            Evidence("usable_cores", "usable cores", job.usable_cores, "cores"),
            Evidence("system_ratio", "of the CPU time in the kernel", share, "ratio", ">= 20 %", WINDOW_S),
            Evidence("cpu_pressure_ratio", "CPU pressure", pressure, "ratio", ">= 30 %", WINDOW_S),
        ),
        severity=None if loses else Severity.WARNING,
        share_ratio=shape.stall_ratio if loses and shape is not None else None,
        share_low_ratio=shape.stall_low_ratio if loses and shape is not None else None,
        share_high_ratio=shape.stall_high_ratio if loses and shape is not None else None,
        coverage_ratio=coverage,
        parameters={"threads": float(threads), "cores": job.usable_cores, "library": library},
    )


def _names(process: ProcessReading) -> tuple[str, ...]:
    return process.facts.libraries or () if process.facts is not None else ()


def cpu_governor(window: Window, active: bool) -> Outcome:
    """R23: busy cores run at a low clock. Only beside a finding of the CPU's side."""
    if not CPU_SIDE & window.active:
        return Clear("")
    host = window.machine.host
    clock, throttles = window.host_mean("cpu_clock_mhz", 60.0), window.host_mean("cpu_throttles_per_s", 60.0)
    if clock is None or not host.cpu_clock_max_mhz:
        return Abstain("the clock of the cores cannot be read")
    job = window.job
    busiest = (
        max((value for value in (job.main_cpu_cores, job.worker_cpu_cores) if value is not None), default=0.0)
        if job
        else 0.0
    )
    if busiest < BUSY_CORE * (0.9 if active else 1.0):
        return Clear("")
    pinned = host.cpu_governor == "powersave" and not (host.cpu_frequency_driver or "").startswith(DYNAMIC)
    slow = clock < SLOW_CLOCK * host.cpu_clock_max_mhz
    hot = throttles is not None and throttles > 0 and clock < 0.9 * host.cpu_clock_max_mhz
    if not slow and not hot and not (pinned and clock < 0.9 * host.cpu_clock_max_mhz):
        return Clear("cores run at their clock")
    return Fires(
        Confidence.POSSIBLE,
        (
            Evidence("cpu_clock_mhz", "clock of the busy cores", clock, "MHz", "< 60 % of the highest", 60.0),
            Evidence("cpu_clock_max_mhz", "their highest", host.cpu_clock_max_mhz, "MHz"),
            Evidence("governor", "governor", host.cpu_governor or "not known"),
            *(
                [Evidence("cpu_throttles_per_s", "thermal throttling", throttles, "1/s", "> 0", 60.0)]
                if throttles
                else []
            ),
        ),
        severity=Severity.NOTICE,
        variant="hot" if hot else "governor" if pinned else "",
        parameters={"clock": clock, "most": host.cpu_clock_max_mhz},
    )
