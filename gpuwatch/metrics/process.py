"""Series of one process."""

from gpuwatch.metrics.kinds import Derivation, Kind, Metric, Summary, field, rate
from gpuwatch.model import ProcessReading


def _wait_share(previous: ProcessReading | None, current: ProcessReading, _dt: float) -> float | None:
    """Run-queue wait as a share of the time its threads wanted a core."""
    if previous is None or previous.cpu_ns is None or previous.wait_ns is None:
        return None
    if current.cpu_ns is None or current.wait_ns is None:
        return None
    ran, waited = current.cpu_ns - previous.cpu_ns, current.wait_ns - previous.wait_ns
    return waited / (ran + waited) if ran >= 0 and waited >= 0 and ran + waited > 0 else None


def _main_thread(previous: ProcessReading | None, current: ProcessReading, dt: float) -> float | None:
    if previous is None or not previous.threads or not current.threads or dt <= 0:
        return None
    before, now = previous.threads[0].run_ns, current.threads[0].run_ns
    return None if before is None or now is None or now < before else (now - before) / 1e9 / dt


def _blocked(_previous: ProcessReading | None, current: ProcessReading, _dt: float) -> float | None:
    return None if current.state == "?" else float(current.state == "D")


def _quota_counter(name: str, scale: float, of: str | None) -> Derivation:
    """Growth of a counter of the group with the tightest CPU quota: as a part of another's, or per second."""

    def derive(previous: ProcessReading | None, current: ProcessReading, dt: float) -> float | None:
        if previous is None or previous.cgroup is None or current.cgroup is None or dt <= 0:
            return None
        if previous.cgroup.path != current.cgroup.path:
            return None
        before, now = getattr(previous.cgroup, name), getattr(current.cgroup, name)
        if before is None or now is None or now < before:
            return None
        if of is None:
            return float(now - before) * scale / dt
        whole_before, whole_now = getattr(previous.cgroup, of), getattr(current.cgroup, of)
        if whole_before is None or whole_now is None or whole_now <= whole_before:
            return None
        return min(1.0, float(now - before) / float(whole_now - whole_before))

    return derive


PROCESS_METRICS: tuple[Metric, ...] = (
    Metric("cpu_cores", "cpu", "cores", Kind.RATE, rate("cpu_ns", 1e-9)),
    Metric("main_cpu_cores", "main thread", "cores", Kind.RATE, _main_thread),
    Metric("wait_ratio", "run-queue wait", "ratio", Kind.RATE, _wait_share, high=1.0),
    Metric("blocked_ratio", "blocked", "ratio", Kind.STATE, _blocked, high=1.0),
    Metric("rss_bytes", "rss", "B", Kind.GAUGE, field("rss_bytes"), summary=Summary.MAX),
    Metric("read_bytes_per_s", "disk read", "B/s", Kind.RATE, rate("read_bytes")),
    Metric("write_bytes_per_s", "disk write", "B/s", Kind.RATE, rate("write_bytes")),
    Metric("read_chars_per_s", "read", "B/s", Kind.RATE, rate("read_chars")),
    Metric("major_faults_per_s", "major faults", "1/s", Kind.RATE, rate("major_faults")),
    Metric("last_core", "last core", "", Kind.STATE, field("last_core"), summary=Summary.LAST),
    Metric("sm_ratio", "SM share", "ratio", Kind.GAUGE, field("sm_ratio"), high=1.0),
    Metric(
        "throttled_ratio",
        "quota stops",
        "ratio",
        Kind.RATE,
        _quota_counter("throttled_periods", 1.0, "periods"),
        high=1.0,
    ),
    Metric("throttled_s_per_s", "quota stops", "s/s", Kind.RATE, _quota_counter("throttled_us", 1e-6, None)),
)
