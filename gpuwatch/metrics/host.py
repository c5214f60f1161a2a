"""Series of the host, its disks and its network interfaces."""

from collections.abc import Callable
from typing import Any

from gpuwatch.metrics.kinds import Derivation, Kind, Metric, Summary, field, rate, time_share
from gpuwatch.model import DiskReading, HostReading

#: Differences of floating counters of seconds since boot are off by about this share.
_ROUNDING = 1e-6


def _part(spent: float, total: float) -> float | None:
    """spent/total; None where it is no share at all (a counter that fell, no time passed)."""
    if total <= 0 or not -_ROUNDING <= spent / total <= 1 + _ROUNDING:
        return None
    return min(1.0, max(0.0, spent / total))


def _cpu(part: Callable[[Any], float]) -> Derivation:
    """Share of all cores' time that went into `part` of CpuTimes."""

    def derive(previous: HostReading | None, current: HostReading, _dt: float) -> float | None:
        if previous is None or previous.cpu is None or current.cpu is None:
            return None
        total = current.cpu.total_s - previous.cpu.total_s
        spent = part(current.cpu) - part(previous.cpu)
        return _part(spent, total)

    return derive


def _busiest_core(previous: HostReading | None, current: HostReading, _dt: float) -> float | None:
    if previous is None or previous.core_ids != current.core_ids:
        return None
    shares = core_shares(previous, current)
    known = [share for share in shares if share is not None]
    return max(known) if known else None


def core_shares(previous: HostReading, current: HostReading) -> list[float | None]:
    """Busy share of each core between two readings of the same cores; None where time stood still."""
    shares: list[float | None] = []
    for before, now, total_before, total_now in zip(
        previous.core_busy_s, current.core_busy_s, previous.core_total_s, current.core_total_s, strict=True
    ):
        # As in _part, spelled out: machines have hundreds of cores.
        total = total_now - total_before
        share = (now - before) / total if total > 0 else -1.0
        if not -_ROUNDING <= share <= 1 + _ROUNDING:
            shares.append(None)
        else:
            shares.append(0.0 if share < 0 else 1.0 if share > 1 else share)
    return shares


HOST_METRICS: tuple[Metric, ...] = (
    Metric(
        "cpu_ratio",
        "cpu",
        "ratio",
        Kind.RATE,
        _cpu(lambda cpu: cpu.total_s - cpu.idle_s - cpu.iowait_s),
        high=1.0,
        tiers=True,
    ),
    Metric("cpu_system_ratio", "system", "ratio", Kind.RATE, _cpu(lambda cpu: cpu.system_s), high=1.0),
    Metric("cpu_iowait_ratio", "iowait", "ratio", Kind.RATE, _cpu(lambda cpu: cpu.iowait_s), high=1.0),
    Metric("cpu_steal_ratio", "steal", "ratio", Kind.RATE, _cpu(lambda cpu: cpu.steal_s), high=1.0),
    Metric(
        "busiest_core_ratio", "busiest core", "ratio", Kind.RATE, _busiest_core, high=1.0, summary=Summary.MAX
    ),
    Metric(
        "cpu_pressure_ratio",
        "cpu pressure",
        "ratio",
        Kind.RATE,
        time_share("cpu_pressure_us", 1e6),
        high=1.0,
        tiers=True,
    ),
    Metric(
        "io_pressure_ratio",
        "io pressure",
        "ratio",
        Kind.RATE,
        time_share("io_pressure_us", 1e6),
        high=1.0,
        tiers=True,
    ),
    Metric(
        "memory_pressure_ratio",
        "memory pressure",
        "ratio",
        Kind.RATE,
        time_share("memory_pressure_us", 1e6),
        high=1.0,
        tiers=True,
    ),
    Metric(
        "memory_full_pressure_ratio",
        "memory full pressure",
        "ratio",
        Kind.RATE,
        time_share("memory_full_pressure_us", 1e6),
        high=1.0,
    ),
    Metric(
        "memory_available_bytes",
        "available",
        "B",
        Kind.GAUGE,
        field("memory_available_bytes"),
        summary=Summary.MIN,
        tiers=True,
    ),
    Metric("memory_cached_bytes", "cached", "B", Kind.GAUGE, field("memory_cached_bytes")),
    Metric("swap_used_bytes", "swap", "B", Kind.GAUGE, field("swap_used_bytes")),
    Metric("swap_in_bytes_per_s", "swap in", "B/s", Kind.RATE, rate("swap_in_bytes")),
    Metric("swap_out_bytes_per_s", "swap out", "B/s", Kind.RATE, rate("swap_out_bytes")),
    Metric("load_1m", "load", "", Kind.GAUGE, field("load_1m")),
    Metric("refaults_per_s", "refaults", "1/s", Kind.RATE, rate("refault_count")),
    Metric("major_faults_per_s", "major faults", "1/s", Kind.RATE, rate("major_fault_count")),
    Metric("shm_used_bytes", "shared memory", "B", Kind.GAUGE, field("shm_used_bytes")),
    Metric("cpu_clock_mhz", "CPU clock", "MHz", Kind.GAUGE, field("cpu_clock_mhz")),
    Metric("cpu_throttles_per_s", "CPU throttling", "1/s", Kind.RATE, rate("cpu_throttle_count")),
)


def _await(reads: str, milliseconds: str) -> Derivation:
    def derive(previous: DiskReading | None, current: DiskReading, _dt: float) -> float | None:
        if previous is None:
            return None
        count = getattr(current, reads) - getattr(previous, reads)
        spent = getattr(current, milliseconds) - getattr(previous, milliseconds)
        return spent / count if count > 0 and spent >= 0 else None

    return derive


DISK_METRICS: tuple[Metric, ...] = (
    Metric("busy_ratio", "busy", "ratio", Kind.RATE, time_share("busy_ms", 1e3), high=1.0, tiers=True),
    Metric("read_bytes_per_s", "read", "B/s", Kind.RATE, rate("read_bytes"), tiers=True),
    Metric("write_bytes_per_s", "write", "B/s", Kind.RATE, rate("write_bytes")),
    Metric("reads_per_s", "reads", "1/s", Kind.RATE, rate("reads")),
    Metric("read_await_ms", "await", "ms", Kind.RATE, _await("reads", "read_ms"), summary=Summary.MAX),
    Metric("queue_depth", "queue", "", Kind.RATE, rate("queue_ms", 1e-3)),
)

NETWORK_METRICS: tuple[Metric, ...] = (
    Metric("rx_bytes_per_s", "rx", "B/s", Kind.RATE, rate("rx_bytes")),
    Metric("tx_bytes_per_s", "tx", "B/s", Kind.RATE, rate("tx_bytes")),
)
