"""Series of one process."""

from gpuwatch.metrics.kinds import Kind, Metric, Summary, field, rate
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
)
