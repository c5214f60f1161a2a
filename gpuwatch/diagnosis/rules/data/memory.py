"""R38 and R39: main memory: swapping now, and running out soon."""

from statistics import median

from gpuwatch.diagnosis.interface import Abstain, Clear, Fires, Outcome
from gpuwatch.diagnosis.rules.common import idle_coverage, pulsed
from gpuwatch.diagnosis.window import Window
from gpuwatch.model import Confidence, Evidence, HostReading, Severity

# -- host-swapping: 1 MB/s after gpuprof; old pages resting in swap are harmless
SWAP_S, SWAP_BYTES_PER_S, SWAP_PRESSURE = 10.0, 1024**2, 0.05
SWAP_EXIT_S, SWAP_FULL = 30.0, 0.10

# -- host-ram-pressure: 10 and 15 % available, 90 and 80 % of a group, as netdata has them; forecast our own
LOW_RATIO, LOW_EXIT_RATIO = 0.10, 0.15
GROUP_RATIO, GROUP_EXIT_RATIO = 0.90, 0.80
LOW_S = 30.0
FORECAST_S, FORECAST_STEP_S, SOON_S = 600.0, 10, 1800.0
FALLING_PART, FALLING_LEAST = 0.70, 0.02  # of the steps; of all memory


def host_swapping(window: Window, active: bool) -> Outcome:
    """R38: pages come back from swap all the time, and somebody waits for them."""
    rate = window.host_mean("swap_in_bytes_per_s", SWAP_EXIT_S if active else SWAP_S)
    if rate is None:
        return Abstain("the kernel does not say how much is swapped in")
    if rate < (1.0 if active else SWAP_BYTES_PER_S):
        return Clear("nothing is swapped in")
    pressure = window.host_mean("memory_pressure_ratio", SWAP_S)
    if pressure is None:
        return Abstain("pages come back from swap, but memory pressure cannot be read")
    if not active and pressure < SWAP_PRESSURE:
        return Clear("")
    full = window.host_mean("memory_full_pressure_ratio", SWAP_S)
    waits = [one for one in window.others if pulsed(one)]
    coverage, share = 0.0, None
    if waits:
        values = window.history.values("host:", "swap_in_bytes_per_s", 30.0)
        felt = [None if value != value else value >= 0.5 * SWAP_BYTES_PER_S for value in values]
        coverage = max(idle_coverage(one, felt, 30.0) or 0.0 for one in waits)
        share = max((one.shape.stall_ratio or 0.0) for one in waits if one.shape is not None)
    evidence = [
        Evidence(
            "swap_in_bytes_per_s", "swapped in", rate, "B/s", ">= 1 MiB/s", SWAP_S, "host:swap_in_bytes_per_s"
        ),
        Evidence("memory_pressure_ratio", "memory pressure", pressure, "ratio", ">= 5 %", SWAP_S),
    ]
    available = window.host_mean("memory_available_bytes", SWAP_S)
    if available is not None:
        evidence.append(Evidence("memory_available_bytes", "available", available, "B"))
    return Fires(
        Confidence.MEASURED,
        tuple(evidence),
        severity=Severity.CRITICAL if full is not None and full >= SWAP_FULL else Severity.WARNING,
        share_ratio=share,
        coverage_ratio=coverage,
        parameters={"rate": rate},
    )


def host_ram_pressure(window: Window, active: bool) -> Outcome:
    """R39: little memory is left, of the machine or of the job's control group; or it will be full soon."""
    host = window.sample.host
    if host is None or not host.memory_total_bytes:
        return Abstain("the size of main memory is not known")
    available = window.host_mean("memory_available_bytes", LOW_S)
    if available is None:
        return Abstain("available memory cannot be read")
    ratio = available / host.memory_total_bytes
    group = _group_ratio(window)
    low = ratio < (LOW_EXIT_RATIO if active else LOW_RATIO)
    tight = group is not None and group >= (GROUP_EXIT_RATIO if active else GROUP_RATIO)
    if low or tight:
        return _pressed(ratio, group, "group" if tight and not low else "", None)
    left_s = _left_s(window, host)
    if left_s is not None and left_s < SOON_S * (1.5 if active else 1.0):
        return _pressed(ratio, group, "soon", left_s)
    return Clear(f"{ratio:.0%} of memory available".replace("%", " %"))


def _pressed(ratio: float, group: float | None, variant: str, left_s: float | None) -> Fires:
    evidence = [Evidence("available_ratio", "memory available", ratio, "ratio", "< 10 %", LOW_S)]
    if group is not None:
        evidence.append(Evidence("group_ratio", "of the container's limit in use", group, "ratio", ">= 90 %"))
    if left_s is not None:
        evidence.append(Evidence("left_s", "full in about", left_s, "s", "< 30 min", FORECAST_S))
    return Fires(
        Confidence.MEASURED if left_s is None else Confidence.LIKELY,
        tuple(evidence),
        severity=Severity.NOTICE if variant == "soon" else Severity.WARNING,
        variant=variant,
        parameters={"available": ratio, **({} if left_s is None else {"left_s": left_s})},
    )


def _group_ratio(window: Window) -> float | None:
    """The fullest of the jobs' control groups; page cache is not counted, it can be dropped."""
    found = []
    for one in window.others:
        group = one.job.trainer.cgroup if one.job is not None else None
        if group is None or not group.memory_limit_bytes or group.memory_used_bytes is None:
            continue
        if group.memory_file_bytes is None:
            continue
        found.append((group.memory_used_bytes - group.memory_file_bytes) / group.memory_limit_bytes)
    return max(found, default=None)


def _left_s(window: Window, host: HostReading) -> float | None:
    """Seconds until nothing is available, if memory falls steadily; None where it does not."""
    tier = window.history.tier("host:", "memory_available_bytes", FORECAST_STEP_S)
    steps = round(FORECAST_S / FORECAST_STEP_S)
    values = [value for value in tier.mean[-steps:] if value == value]
    if len(values) < 0.9 * steps or not host.memory_total_bytes:
        return None
    third = len(values) // 3
    first, last = median(values[:third]), median(values[-third:])
    middle = median(values[third : 2 * third])
    fallen = first - last
    falling = sum(after < before for before, after in zip(values[:-6:6], values[6::6], strict=False))
    even = first > middle > last and 0.5 <= 2 * (first - middle) / fallen <= 1.5 if fallen > 0 else False
    if not even or fallen < FALLING_LEAST * host.memory_total_bytes:
        return None
    if falling < FALLING_PART * len(values[6::6]):
        return None
    per_s = fallen / (FORECAST_S * 2 / 3)
    return last / per_s
