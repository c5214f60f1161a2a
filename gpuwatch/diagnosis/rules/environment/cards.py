"""R13, R24, R25, R26: memory nobody owns up to, shared memory, a better card that is free, spilling."""

from gpuwatch.diagnosis.interface import Abstain, Clear, Fires, Outcome
from gpuwatch.diagnosis.rules.common import link_rate_bytes_per_s
from gpuwatch.diagnosis.rules.waiting import UNSEEN_JOB
from gpuwatch.diagnosis.window import Window
from gpuwatch.model import Confidence, Evidence, JobState, ProcessRole, Severity

GIB = 1024**3
# -- ghost-memory: numbers our own
GHOST_BYTES, GHOST_RATIO, GHOST_EXIT_BYTES, GHOST_S = GIB, 0.05, GIB // 2, 60.0
#: Beside a job that is listed: allocators and drivers differ in what they count to a process.
GHOST_BESIDE_RATIO = 0.25
#: What the driver keeps for itself and does not always report as reserved.
DRIVER_BYTES = 700 * 1024**2

# -- shm-nearly-full: 90 and 80 % as netdata's alarms are shaped; 64 MiB is Docker's default
SHM_RATIO, SHM_EXIT_RATIO, SHM_SMALL_BYTES = 0.90, 0.80, 64 * 1024**2

# -- wrong-gpu: numbers our own
FREE_S, FREE_UTILIZATION, FREE_MEMORY = 120.0, 0.03, 0.05

# -- sysmem-spill
SPILL_RATIO, SPILL_EXIT_RATIO, SPILL_LINK, SPILL_S = 0.97, 0.93, 0.30, 60.0


def ghost_memory(window: Window, active: bool) -> Outcome:
    """R13: GPU memory is in use, and the processes listed do not hold it."""
    reading, info = window.reading, window.info
    if reading is None:
        return Clear("")
    if window.machine.host.wsl or (info is not None and (info.mig_enabled or info.unified_memory)):
        return Abstain("memory cannot be told by process on this kind of device")
    if reading.processes is None or reading.memory_used_bytes is None or not reading.memory_total_bytes:
        return Abstain("memory or the list of processes cannot be read")
    if any(entry.memory_bytes is None for entry in reading.processes):
        return Abstain("the driver does not say how much each process holds")
    if window.sample.hidden_processes:
        return Abstain("some of the listed processes cannot be seen from here")
    held = sum(entry.memory_bytes or 0 for entry in reading.processes)
    ghost = reading.memory_used_bytes - held - DRIVER_BYTES
    orphans = [one for one in window.sample.processes or () if one.role is ProcessRole.ORPHAN]
    ratio = GHOST_BESIDE_RATIO if held and not orphans else GHOST_RATIO
    least = GHOST_EXIT_BYTES if active else max(GHOST_BYTES, ratio * reading.memory_total_bytes)
    if ghost < least:
        return Clear("all memory in use is accounted for")
    if not reading.processes and (window.mean("utilization_ratio", 10.0) or 0.0) >= 0.05:
        return Clear("a job that the driver does not list")
    return Fires(
        Confidence.POSSIBLE,
        (
            Evidence("ghost_bytes", "held by nobody listed", float(ghost), "B", ">= 1 GiB", GHOST_S),
            Evidence("memory_used_bytes", "in use", float(reading.memory_used_bytes), "B"),
            Evidence("listed_bytes", "held by listed processes", float(held), "B"),
            *(Evidence(f"orphan_{one.pid}", "left over", f"pid {one.pid} {one.name}") for one in orphans[:4]),
        ),
        severity=Severity.NOTICE,
        parameters={"bytes": float(ghost), "orphans": ", ".join(str(one.pid) for one in orphans[:6])},
    )


def shm_nearly_full(window: Window, active: bool) -> Outcome:
    """R24: shared memory through which workers hand over batches is nearly full, or very small."""
    job, host = window.job, window.sample.host
    if job is None:
        return Abstain(UNSEEN_JOB)
    if not job.workers:
        return Clear("")
    if host is None or not host.shm_total_bytes or host.shm_used_bytes is None:
        return Abstain("the size of /dev/shm is not known")
    ratio = host.shm_used_bytes / host.shm_total_bytes
    full = ratio >= (SHM_EXIT_RATIO if active else SHM_RATIO)
    small = host.shm_total_bytes <= SHM_SMALL_BYTES and window.machine.host.container is not None
    if not full and not small:
        return Clear(f"shared memory {ratio:.0%} used".replace("%", " %"))
    return Fires(
        Confidence.MEASURED,
        (
            Evidence("shm_used_ratio", "/dev/shm used", ratio, "ratio", ">= 90 %"),
            Evidence("shm_total_bytes", "its size", float(host.shm_total_bytes), "B"),
            Evidence("worker_count", "workers", float(len(job.workers))),
        ),
        severity=Severity.WARNING if full else Severity.NOTICE,
        variant="" if full else "small",
        parameters={"ratio": ratio, "total": float(host.shm_total_bytes)},
    )


def wrong_gpu(window: Window, active: bool) -> Outcome:
    """R25: the job shares its card, or sits on the lesser one, while another is free."""
    if not window.others:
        return Clear("one GPU")
    if window.siblings:
        return Clear("")
    shared = "gpu-shared" in window.active
    for other in window.others:
        if not _is_free(other) or other.info is None or window.info is None:
            continue
        better = _score(other) > 1.25 * _score(window)
        if better or (shared and _score(other) >= 0.95 * _score(window)):
            return _free_card(window, other, shared)
    return Clear("no better card is free")


def _score(window: Window) -> float:
    """Cores times clock: enough to tell two models apart."""
    info = window.info
    if info is None or not info.core_count or not info.sm_clock_max_mhz:
        return 0.0
    return info.core_count * info.sm_clock_max_mhz


def _is_free(window: Window) -> bool:
    if window.status is None or window.status.state is not JobState.NO_JOB:
        return False
    values, memory = window.present("utilization_ratio", FREE_S), window.last("memory_used_ratio", 10.0)
    watched_s = len(values) * window.sample.interval_s
    if watched_s < 0.9 * FREE_S or memory is None:
        return False
    return max(values) < FREE_UTILIZATION and memory < FREE_MEMORY


def _free_card(window: Window, other: Window, shared: bool) -> Fires:
    facts = window.job.trainer.facts if window.job is not None else None
    assigned = (
        any(name.startswith("SLURM") for name in (facts.environment or {})) if facts is not None else False
    )
    info = other.info
    assert info is not None
    return Fires(
        Confidence.LIKELY if shared else Confidence.POSSIBLE,
        (
            Evidence("free", "free", f"GPU {info.index} {info.name}, {info.uuid}, {info.bus_id or '?'}"),
            Evidence("here", "the job is on", f"GPU {window.info.index if window.info is not None else '?'}"),
        ),
        severity=Severity.NOTICE,
        variant="assigned" if assigned else "",
        parameters={"number": float(info.index), "uuid": info.uuid, "name": info.name},
    )


def sysmem_spill(window: Window, active: bool) -> Outcome:
    """R26: on Windows and WSL a full card spills into main memory, over the link."""
    if not window.machine.host.wsl and window.machine.host.system != "Windows":
        return Clear("this system reports an error instead of spilling")
    used = window.mean("memory_used_ratio", SPILL_S)
    rx, tx = window.mean("pcie_rx_bytes_per_s", SPILL_S), window.mean("pcie_tx_bytes_per_s", SPILL_S)
    rate = link_rate_bytes_per_s(window)
    if used is None or rx is None or tx is None or rate is None:
        return Abstain("memory or PCIe traffic cannot be read")
    traffic = (rx + tx) / rate
    if used < (SPILL_EXIT_RATIO if active else SPILL_RATIO) or traffic < SPILL_LINK:
        return Clear("")
    if any(rule.startswith("loader-") for rule in window.active):
        return Clear("")
    return Fires(
        Confidence.POSSIBLE,
        (
            Evidence("memory_used_ratio", "GPU memory used", used, "ratio", ">= 97 %", SPILL_S),
            Evidence("link_ratio", "PCIe in use", traffic, "ratio", ">= 30 %", SPILL_S),
        ),
        severity=Severity.WARNING,
        parameters={"used": used, "traffic": traffic},
    )
