"""R47 and R48: GPU memory at its limit, or growing towards it."""

from itertools import pairwise
from statistics import median

from gpuwatch.diagnosis.interface import Abstain, Clear, Fires, Outcome
from gpuwatch.diagnosis.rules.code.levers import preallocates
from gpuwatch.diagnosis.rules.common import missing
from gpuwatch.diagnosis.window import Window
from gpuwatch.model import Confidence, Evidence, Severity

# -- vram-near-limit: TraceML warns at 92, Kineto at 90; later on purpose, a steady 95 % is good (own)
FULL_RATIO, FULL_EXIT_RATIO, FULL_S = 0.98, 0.93, 30.0
#: The allocator gave memory back and took it again: falls by a tenth, three times a minute.
RETRY_FALL, RETRY_TIMES, RETRY_S = 0.10, 3, 60.0

# -- vram-growth: 512 MiB and 6 % are TraceML's; slope and persistence our own
GROWTH_AFTER_S, GROWTH_STEP_S, GROWTH_STEPS = 300.0, 60, 15
LEAST_STEPS = 7
GROWTH_PER_MIN = 0.005
GROWTH_BYTES, GROWTH_RATIO = 512 * 1024**2, 0.05
RISING_PART = 0.80
SOON_S = 1800.0


def vram_near_limit(window: Window, active: bool) -> Outcome:
    """R47: no memory left to speak of; or the allocator frees and takes it again and again."""
    if window.info is not None and window.info.unified_memory:
        return Abstain("GPU and host share one memory")
    used = window.last("memory_used_ratio", 10.0)
    if used is None:
        return missing(window, "memory_used_bytes")
    if preallocates(window):
        return Clear("the framework takes the memory in advance")
    if used < FULL_EXIT_RATIO:
        return Clear(f"memory {used:.0%} used".replace("%", " %"))
    values = window.present("memory_used_ratio", RETRY_S)
    falls = _falls(values)
    recent = window.present("memory_used_ratio", FULL_S)
    full = bool(recent) and min(recent) >= (FULL_EXIT_RATIO if active else FULL_RATIO)
    if falls < RETRY_TIMES and not full:
        return Clear("")
    retries = falls >= RETRY_TIMES
    return Fires(
        Confidence.MEASURED,
        (
            Evidence("memory_used_ratio", "memory used", used, "ratio", ">= 98 %", FULL_S),
            *(
                [Evidence("falls", "freed and taken again", float(falls), "", ">= 3", RETRY_S)]
                if retries
                else []
            ),
        ),
        severity=Severity.WARNING if retries else Severity.NOTICE,
        variant="retries" if retries else "",
        parameters={"used": used, "falls": float(falls)},
    )


def _falls(values: list[float]) -> int:
    """How often the series fell by a tenth from its last high and came back."""
    falls, high, low = 0, None, None
    for value in values:
        if high is None or (low is None and value > high):
            high = value
        elif low is None and value <= high - RETRY_FALL:
            low = value
        elif low is not None and value >= high - RETRY_FALL / 2:
            falls, low, high = falls + 1, None, value
    return falls


def vram_growth(window: Window, active: bool) -> Outcome:
    """R48: memory grows steadily, by a robust slope (Theil-Sen) over a quarter of an hour."""
    if window.steady_s < GROWTH_AFTER_S:
        return Abstain("growth of GPU memory", seconds_left=GROWTH_AFTER_S - window.steady_s)
    info = window.info
    total = info.memory_total_bytes if info is not None else None
    if not total:
        return missing(window, "memory_total_bytes")
    tier = window.history.tier(window.entity, "memory_used_bytes", GROWTH_STEP_S)
    steps = min(GROWTH_STEPS, int((window.steady_s - 60.0) / GROWTH_STEP_S))
    points = [
        (time_s, value)
        for time_s, value in zip(tier.times_s[-steps:], tier.mean[-steps:], strict=True)
        if value == value
    ]
    if len(points) < LEAST_STEPS:
        return Abstain("growth of GPU memory", seconds_left=60.0 * (LEAST_STEPS - len(points)))
    slope = _slope(points) * 60.0
    grown = points[-1][1] - points[0][1]
    rises = [after - before for (_, before), (_, after) in pairwise(points)]
    rising = sum(rise > 0 for rise in rises) / len(rises)
    least = 0.5 if active else 1.0
    if (
        slope < least * GROWTH_PER_MIN * total
        or grown < least * max(GROWTH_BYTES, GROWTH_RATIO * total)
        or rising < least * RISING_PART
    ):
        return Clear("")
    left_s = max(0.0, (total - points[-1][1]) / slope * 60.0)
    return Fires(
        Confidence.LIKELY,
        (
            Evidence("slope_bytes_per_min", "growth a minute", slope, "B", "> 0.5 % of memory", 900.0),
            Evidence("grown_bytes", "grown by", grown, "B", "", points[-1][0] - points[0][0]),
            Evidence("left_s", "full in about", left_s, "s"),
        ),
        severity=Severity.WARNING if left_s < SOON_S else Severity.NOTICE,
        parameters={"slope": slope, "grown": grown, "left_s": left_s},
    )


def _slope(points: list[tuple[float, float]]) -> float:
    """Median of the slopes of all pairs: a single jump does not move it."""
    return median(
        (later[1] - earlier[1]) / (later[0] - earlier[0])
        for place, earlier in enumerate(points)
        for later in points[place + 1 :]
        if later[0] > earlier[0]
    )
