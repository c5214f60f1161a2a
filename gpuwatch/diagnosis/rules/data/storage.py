"""R33 to R36: the workers wait for a disk or a network, and what the page cache has to do with it."""

from dataclasses import dataclass

from gpuwatch.diagnosis.interface import Abstain, Clear, Fires, Outcome
from gpuwatch.diagnosis.rules.common import idle_coverage, lower
from gpuwatch.diagnosis.rules.waiting import (
    UNSEEN_JOB,
    Waiting,
    confidence,
    job_evidence,
    sleeps_in_gaps,
    waiting,
)
from gpuwatch.diagnosis.window import JobView, Window
from gpuwatch.model import Confidence, DataMount, Evidence, Severity

WINDOW_S = 30.0
#: The job's part of the device's reads; two signs must hold (our own).
JOB_PART = 0.50
WORKER_CORES = 0.60
PRESSURE_RATIO, BLOCKED_RATIO, BUSY_RATIO, IOWAIT_RATIO = 0.20, 0.30, 0.90, 0.20
#: Under pressure, a job that reads this much from the disk is the one that waits for it.
HEAVY_BYTES_PER_S = 100e6
SIGNS, SIGNS_EXIT = 2, 1
#: A read this slow, by kind of disk (ms; NVMe and SSD as in common advice, a hard disk seeks).
SLOW_READ_MS = {"nvme": 2.0, "ssd": 5.0, "hdd": 20.0, "virtual": 5.0, "unknown": 5.0}
#: A tick counts for the disk from half of each sign on.
FELT_PART = 0.5

# -- page cache: the first pass lasts ten minutes at most; thirds after gpuprof; the rest our own
COLD_AGE_S, COLD_PART = 600.0, 1 / 3
THRASH_BYTES_PER_S, THRASH_EXIT_BYTES_PER_S = 100e6, 50e6
CACHED_RATIO, CGROUP_RATIO, REFAULTS_PER_S = 0.40, 0.90, 100.0

# -- network: own judgement
NET_WORKER_CORES, NET_BLOCKED = 0.50, 0.20
NET_BYTES_PER_S, NET_LINK_RATIO = 20e6, 0.70
QUIET_READ_BYTES_PER_S = 5e6
TRAINING_TRAFFIC = 0.5  # sent against received: as much out as in is training, not loading
STEADY_PART = 0.30  # spread of a stream that is slow but even


@dataclass(frozen=True, slots=True)
class _Disk:
    name: str
    kind: str
    known: bool  # the job's data lie there, for certain
    read_bytes_per_s: float
    busy: float | None
    await_ms: float | None
    reads_per_s: float | None


def _waits(window: Window, active: bool) -> tuple[JobView, Waiting] | Abstain | Clear:
    job = window.job
    if job is None:
        return Abstain(UNSEEN_JOB)
    found = waiting(window, active)
    return (job, found) if isinstance(found, Waiting) else found


def _data_disk(window: Window, job: JobView) -> _Disk | None:
    """The disk below the job's data files; where these are not known, the one read most."""
    mounts = _mounts(job)
    names = {name for mount in mounts for name in mount.disks}
    all_disks = [entity.partition(":")[2] for entity in window.history.entities("disk")]
    candidates = [name for name in all_disks if name in names] or ([] if mounts and not names else all_disks)
    best: tuple[float, str] | None = None
    for name in candidates:
        reads = window.history.mean(f"disk:{name}", "read_bytes_per_s", WINDOW_S)
        if reads is not None and (best is None or reads > best[0]):
            best = (reads, name)
    if best is None:
        return None
    entity = f"disk:{best[1]}"
    kinds = {disk.name: disk.kind for disk in window.machine.host.disks}
    return _Disk(
        best[1],
        kinds.get(best[1], "unknown"),
        best[1] in names,
        best[0],
        window.history.mean(entity, "busy_ratio", WINDOW_S),
        window.history.mean(entity, "read_await_ms", WINDOW_S),
        window.history.mean(entity, "reads_per_s", WINDOW_S),
    )


def _mounts(job: JobView) -> tuple[DataMount, ...]:
    facts = job.trainer.facts
    return () if facts is None or facts.data_mounts is None else facts.data_mounts


def _job_reads(window: Window, job: JobView) -> float | None:
    """Bytes per second that the job reads from block devices."""
    rates = [
        window.history.mean(f"process:{one.pid}:{one.start_ticks}", "read_bytes_per_s", WINDOW_S)
        for one in (job.trainer, *job.workers)
    ]
    known = [rate for rate in rates if rate is not None]
    return sum(known) if known else None


def _signs(window: Window, job: JobView, disk: _Disk) -> list[str]:
    """Which of the signs of a disk that keeps people waiting hold now."""
    found = []
    pressure, iowait = (window.host_mean(key, WINDOW_S) for key in ("io_pressure_ratio", "cpu_iowait_ratio"))
    if pressure is not None and pressure >= PRESSURE_RATIO:
        found.append("pressure")
    if job.worker_blocked_ratio is not None and job.worker_blocked_ratio >= BLOCKED_RATIO:
        found.append("blocked")
    slow = disk.await_ms is not None and disk.await_ms >= SLOW_READ_MS[disk.kind]
    # An NVMe disk is "busy" with a single request; only its latency says that it is slow.
    if (disk.kind != "nvme" and disk.busy is not None and disk.busy >= BUSY_RATIO) or slow:
        found.append("disk")
    if iowait is not None and iowait >= IOWAIT_RATIO:
        found.append("iowait")
    if "pressure" in found and (_job_reads(window, job) or 0.0) >= HEAVY_BYTES_PER_S:
        found.append("reads")
    return found


def loader_disk_bound(window: Window, active: bool) -> Outcome:
    """R33: the workers wait for the disk that holds the data."""
    found = _waits(window, active)
    if not isinstance(found, tuple):
        return found
    job, waits = found
    if job.worker_cpu_cores is not None and job.worker_cpu_cores >= WORKER_CORES:
        return Clear(f"workers use {job.worker_cpu_cores:.2f} core each")
    if any(mount.remote for mount in _mounts(job)) and not any(mount.disks for mount in _mounts(job)):
        return Clear("the data lie on a remote file system")
    disk = _data_disk(window, job)
    if disk is None:
        return Abstain("no disk can be read")
    signs = _signs(window, job, disk)
    if len(signs) < (SIGNS_EXIT if active else SIGNS):
        return Clear(f"{disk.name} keeps nobody waiting")
    reads = _job_reads(window, job)
    if reads is not None and reads < JOB_PART * disk.read_bytes_per_s:
        return Clear(f"others read from {disk.name}")
    if sleeps_in_gaps(window) is False and job.workers:
        return Clear("the main thread works while the GPU idles")
    return _disk_finding(window, job, waits, disk, signs, reads)


def _disk_finding(
    window: Window, job: JobView, waits: Waiting, disk: _Disk, signs: list[str], reads: float | None
) -> Fires:
    cold = _is_cold(window, job)
    evidence = [
        Evidence("read_bytes_per_s", f"{disk.name} reads", disk.read_bytes_per_s, "B/s", "", WINDOW_S),
        *(
            Evidence(key, label, value, unit, threshold, WINDOW_S)
            for key, label, value, unit, threshold in (
                ("reads_per_s", "reads a second", disk.reads_per_s, "1/s", ""),
                ("busy_ratio", f"{disk.name} busy", disk.busy, "ratio", ""),
                ("await_ms", "a read takes", disk.await_ms, "ms", f">= {SLOW_READ_MS[disk.kind]:.0f} ms"),
                (
                    "io_pressure_ratio",
                    "I/O pressure",
                    window.host_mean("io_pressure_ratio", WINDOW_S),
                    "ratio",
                    ">= 20 %",
                ),
                ("worker_blocked_ratio", "workers blocked", job.worker_blocked_ratio, "ratio", ">= 30 %"),
                ("job_read_bytes_per_s", "the job reads", reads, "B/s", ""),
            )
            if value is not None
        ),
        *job_evidence(window, job),
    ]
    doubts = int(not disk.known and reads is None) + int(reads is None)
    severity = Severity.NOTICE if cold else None
    return Fires(
        confidence=lower(confidence(window, waits), min(1, doubts)),
        evidence=tuple(evidence),
        severity=severity,
        share_ratio=waits.share,
        share_low_ratio=waits.low,
        share_high_ratio=waits.high,
        coverage_ratio=_disk_coverage(window, job, signs),
        variant="cold" if cold else "",
        parameters={"disk": disk.name, "kind": disk.kind, "share": waits.share},
    )


def _disk_coverage(window: Window, job: JobView, signs: list[str]) -> float:
    """Part of the idle time in which the pressure was felt; where there is none to read, of all."""
    pressure = window.history.values("host:", "io_pressure_ratio", WINDOW_S)
    if "pressure" not in signs or not any(value == value for value in pressure):
        return 1.0 if len(signs) >= SIGNS else 0.6
    felt = [None if value != value else value >= FELT_PART * PRESSURE_RATIO for value in pressure]
    return idle_coverage(window, felt, WINDOW_S) or 0.0


def _is_cold(window: Window, job: JobView) -> bool:
    """The first pass over the data: a young job."""
    age_s = job.trainer.age_s
    return age_s is not None and age_s < COLD_AGE_S


def page_cache_cold(window: Window, active: bool) -> Outcome:
    """R34: the first pass reads from the disk, the next ones will not. A state."""
    if "loader-disk-bound" not in window.active:
        return Clear("")
    job = window.job
    if job is None:
        return Abstain(UNSEEN_JOB)
    disk = _data_disk(window, job)
    if disk is None:
        return Abstain("no disk can be read")
    thirds = _thirds(window, disk.name)
    falling = thirds is not None and thirds[2] < COLD_PART * thirds[0] and thirds[1] <= thirds[0]
    if not _is_cold(window, job) and not falling:
        return Clear("")
    evidence = [
        Evidence("read_bytes_per_s", f"{disk.name} reads", disk.read_bytes_per_s, "B/s", "", WINDOW_S)
    ]
    cached = window.host_mean("memory_cached_bytes", WINDOW_S)
    if cached is not None:
        evidence.append(Evidence("memory_cached_bytes", "page cache", cached, "B"))
    return Fires(Confidence.LIKELY, tuple(evidence), severity=Severity.STATE, parameters={"disk": disk.name})


def _thirds(window: Window, disk: str) -> tuple[float, float, float] | None:
    """Mean reads in each third of the last ten minutes."""
    values = window.history.present(f"disk:{disk}", "read_bytes_per_s", COLD_AGE_S)
    size = len(values) // 3
    if size < 60:
        return None
    first, second, third = (values[i * size : (i + 1) * size] for i in range(3))
    return sum(first) / size, sum(second) / size, sum(third) / size


def page_cache_thrash(window: Window, active: bool) -> Outcome:
    """R35: every pass reads everything again: the data do not fit into the memory that may cache them."""
    found = _waits(window, active)
    if not isinstance(found, tuple):
        return found
    job, waits = found
    if "loader-disk-bound" not in window.active and not active:
        return Clear("")
    if _is_cold(window, job) or (
        window.steady_s < COLD_AGE_S and (job.trainer.age_s or 0.0) < 2 * COLD_AGE_S
    ):
        return Clear("too early to tell")
    disk = _data_disk(window, job)
    if disk is None:
        return Abstain("no disk can be read")
    least = THRASH_EXIT_BYTES_PER_S if active else THRASH_BYTES_PER_S
    if disk.read_bytes_per_s < least:
        return Clear("")
    cached, total = window.host_mean("memory_cached_bytes", WINDOW_S), window.machine.host.memory_total_bytes
    if total is None and window.sample.host is not None:
        total = window.sample.host.memory_total_bytes
    refaults = window.host_mean("refaults_per_s", WINDOW_S)
    group = job.trainer.cgroup
    tight = (
        group is not None
        and bool(group.memory_limit_bytes)
        and group.memory_used_bytes is not None
        and group.memory_used_bytes >= CGROUP_RATIO * (group.memory_limit_bytes or 1)
    )
    full = cached is not None and bool(total) and cached >= CACHED_RATIO * (total or 1)
    again = refaults is not None and refaults >= REFAULTS_PER_S
    if not full and not (tight and again):
        return Clear("")
    evidence = [
        Evidence(
            "read_bytes_per_s", f"{disk.name} reads", disk.read_bytes_per_s, "B/s", ">= 100 MB/s", WINDOW_S
        ),
        *([Evidence("memory_cached_bytes", "page cache", cached, "B")] if cached is not None else []),
        *([Evidence("refaults_per_s", "read again", refaults, "1/s")] if refaults is not None else []),
    ]
    return Fires(
        confidence=Confidence.LIKELY if again else Confidence.POSSIBLE,
        evidence=tuple(evidence),
        share_ratio=waits.share,
        share_low_ratio=waits.low,
        share_high_ratio=waits.high,
        coverage_ratio=1.0,
        variant="limit" if tight else "",
        parameters={"disk": disk.name},
    )


def loader_network_bound(window: Window, active: bool) -> Outcome:
    """R36: samples come over the network too slowly."""
    found = _waits(window, active)
    if not isinstance(found, tuple):
        return found
    job, waits = found
    if job.worker_cpu_cores is not None and job.worker_cpu_cores >= NET_WORKER_CORES:
        return Clear(f"workers use {job.worker_cpu_cores:.2f} core each")
    if sleeps_in_gaps(window) is False:
        return Clear("")
    if "loader-disk-bound" in window.active:
        return Clear("the workers wait for the disk")
    remote = next((mount for mount in _mounts(job) if mount.remote), None)
    blocked = job.worker_blocked_ratio or 0.0
    card = _busiest_card(window)
    streams = card is not None and _streams(card) and _disk_is_quiet(window, job)
    if remote is not None and (blocked >= NET_BLOCKED or (card is not None and card[1] >= NET_BYTES_PER_S)):
        sure = Confidence.LIKELY if blocked >= NET_BLOCKED else Confidence.POSSIBLE
    elif streams:
        sure = Confidence.POSSIBLE
    else:
        if card is None and remote is None:
            return Abstain("no network interface can be read")
        return Clear("")
    evidence = list(job_evidence(window, job))
    if card is not None:
        evidence.insert(
            0, Evidence("rx_bytes_per_s", f"{card[0]} receives", card[1], "B/s", ">= 20 MB/s", WINDOW_S)
        )
        if card[3]:
            evidence.insert(1, Evidence("link_bytes_per_s", "its link carries", card[3], "B/s"))
    if remote is not None:
        evidence.insert(0, Evidence("filesystem", "the data lie on", f"{remote.filesystem} at {remote.path}"))
    steps = 1 if not waits.resolved else 0
    return Fires(
        confidence=lower(sure, steps),
        evidence=tuple(evidence),
        share_ratio=waits.share,
        share_low_ratio=waits.low,
        share_high_ratio=waits.high,
        coverage_ratio=1.0,
        variant="mount" if remote is not None else "",
        parameters={"filesystem": remote.filesystem if remote is not None else "", "share": waits.share},
    )


def _busiest_card(window: Window) -> tuple[str, float, float, float | None] | None:
    """(name, received and sent bytes per s, link speed) of the interface that receives most."""
    best = None
    for entity in window.history.entities("net"):
        if entity == "net:lo":
            continue
        rx = window.history.mean(entity, "rx_bytes_per_s", WINDOW_S)
        tx = window.history.mean(entity, "tx_bytes_per_s", WINDOW_S)
        if rx is not None and tx is not None and (best is None or rx > best[1]):
            best = (entity.partition(":")[2], rx, tx)
    if best is None:
        return None
    networks = window.sample.host.networks if window.sample.host is not None else ()
    speed = next((one.speed_bytes_per_s for one in networks if one.name == best[0]), None)
    return (*best, speed)


def _streams(card: tuple[str, float, float, float | None]) -> bool:
    """Much comes in and little goes out, at the link's limit."""
    _, rx, tx, speed = card
    return (
        rx >= NET_BYTES_PER_S
        and tx < TRAINING_TRAFFIC * rx
        and bool(speed)
        and rx >= NET_LINK_RATIO * (speed or 1)
    )


def _disk_is_quiet(window: Window, job: JobView) -> bool:
    disk = _data_disk(window, job)
    return disk is None or disk.read_bytes_per_s < QUIET_READ_BYTES_PER_S
