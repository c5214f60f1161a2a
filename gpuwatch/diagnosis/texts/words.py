"""Figures and names in sentences. Rounded to what was measured."""

from collections.abc import Mapping

from gpuwatch.clean import clean
from gpuwatch.diagnosis.interface import Fires
from gpuwatch.diagnosis.rules.waiting import main_gap
from gpuwatch.diagnosis.window import JobView, Window
from gpuwatch.model import Evidence

MOST_COMMAND = 28


def facts(fires: Fires) -> dict[str, float]:
    """The numeric evidence by key; what was not measured is not in it."""
    return {
        item.key: item.value
        for item in fires.evidence
        if isinstance(item.value, int | float) and not isinstance(item.value, bool)
    }


def item(fires: Fires, key: str) -> Evidence | None:
    return next((found for found in fires.evidence if found.key == key), None)


def number(parameters: Mapping[str, float | str], key: str) -> float | None:
    value = parameters.get(key)
    return float(value) if isinstance(value, int | float) else None


def lines(*found: str | None) -> tuple[str, ...]:
    """Those that could be said."""
    return tuple(line for line in found if line)


def cores(value: float) -> str:
    """ "0.97 core", "14 cores"."""
    shown = f"{value:.2f}" if value < 1.995 else f"{value:.1f}" if value < 9.95 else f"{value:.0f}"
    return f"{shown} core" if value < 1.005 else f"{shown} cores"


def whole(value: float) -> str:
    """ "16", but "1.5" where a fraction matters (a quota)."""
    return f"{value:.0f}" if abs(value - round(value)) < 0.05 else f"{value:.1f}"


def percent(ratio: float) -> str:
    return f"{round(ratio * 100)} %"


def byte_rate(value: float) -> str:
    """ "61 MB/s"; decimal units, as links and disks are sold."""
    for unit, size in (("GB/s", 1e9), ("MB/s", 1e6), ("kB/s", 1e3)):
        if value >= size:
            shown = value / size
            return f"{shown:.1f} {unit}" if shown < 9.95 and unit == "GB/s" else f"{shown:.0f} {unit}"
    return f"{value:.0f} B/s"


def gib(value: float) -> str:
    """Memory in binary units, as the driver's tools show it."""
    return f"{value / 1024**3:.1f} GiB" if value >= 1024**3 else f"{value / 1024**2:.0f} MiB"


def duration(value: float) -> str:
    whole_s = round(value)
    return f"{whole_s} s" if whole_s < 120 else f"{whole_s // 60} min"


def range_of(fires: Fires) -> str:
    """ "58-66 %" where the share has an interval, else one figure."""
    share, low, high = fires.share_ratio, fires.share_low_ratio, fires.share_high_ratio
    if low is not None and high is not None and round(low * 100) < round(high * 100):
        return f"{round(low * 100)}-{round(high * 100)} %"
    return "a part" if share is None else percent(share)


def program(command: str) -> str:
    """A command line short enough for a title: the program without its folder, and its first argument."""
    words = clean(command).split()
    if not words:
        return "?"
    words[0] = words[0].rsplit("/", 1)[-1]
    shown = " ".join(words[:2])
    return shown if len(shown) <= MOST_COMMAND else shown[: MOST_COMMAND - 1] + "…"


def process_name(parameters: Mapping[str, float | str]) -> str:
    """ "pid 4242, python other.py, user bob", as far as known."""
    pid = number(parameters, "pid")
    parts = [] if pid is None else [f"pid {pid:.0f}"]
    command, user = parameters.get("command"), parameters.get("user")
    if isinstance(command, str):
        parts.append(program(command))
    if isinstance(user, str):
        parts.append(f"user {user}")
    return ", ".join(parts)


def free_cores_line(job: JobView | None) -> str:
    """ "14 of 16 cores free"."""
    if job is None or job.free_cores is None or job.usable_cores is None:
        return ""
    return f"{whole(float(int(job.free_cores + 0.5)))} of {whole(job.usable_cores)} cores free"


def gap_line(window: Window) -> str:
    """What the main thread does in the gaps, or that it could not be measured."""
    job, gap = window.job, main_gap(window)
    if job is None:
        return ""
    if gap is not None:
        queues = gap.gap_wait_cores or 0.0
        if queues >= 0.1 and gap.gap_cores + queues >= 0.5:
            return f"main thread runs {cores(gap.gap_cores)} and queues for {queues:.2f} while the GPU idles"
        if gap.gap_cores >= 0.5:
            return f"main thread runs {cores(gap.gap_cores)} while the GPU idles"
        return f"main thread uses only {cores(max(0.0, gap.gap_cores))} while the GPU idles"
    polled = window.shape is not None and not window.shape.buffered
    reason = (
        "one reading a second is too coarse" if polled else job.absent.get("main_gap", "not measured yet")
    )
    if job.main_cpu_cores is None:
        return f"CPU in the gaps not known: {reason}"
    return f"main thread at {cores(job.main_cpu_cores)}; CPU in the gaps not known: {reason}"


def reads_line(job: JobView | None) -> str:
    """What the main process reads and decodes."""
    if job is None:
        return ""
    decoder = job.trainer.facts.decoder if job.trainer.facts is not None else None
    reads = job.main_read_bytes_per_s
    if reads is not None and reads >= 1e6:
        return f"it reads {byte_rate(reads)}" + (f" and has {decoder} loaded" if decoder else "")
    return f"it has the decoder {decoder} loaded" if decoder else ""
