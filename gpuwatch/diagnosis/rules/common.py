"""What several rules ask of their window."""

from collections.abc import Callable, Sequence

from gpuwatch.diagnosis.interface import Abstain
from gpuwatch.diagnosis.window import Window
from gpuwatch.model import Confidence, Evidence, ShapeKind
from gpuwatch.model.link import link_bytes_per_s

#: A busy level is only in the shape where it alternates; elsewhere the mean is the level.
_ALTERNATING = frozenset({ShapeKind.PULSED, ShapeKind.EPISODIC, ShapeKind.VARIABLE})
_LOWER = {
    Confidence.MEASURED: Confidence.LIKELY,
    Confidence.LIKELY: Confidence.POSSIBLE,
    Confidence.POSSIBLE: Confidence.POSSIBLE,
}


def lower(confidence: Confidence, steps: int = 1) -> Confidence:
    """The confidence `steps` below; nothing is below POSSIBLE."""
    for _ in range(steps):
        confidence = _LOWER[confidence]
    return confidence


def missing(window: Window, key: str) -> Abstain:
    """Abstain because a signal is absent, with the signal's own reason."""
    return Abstain(f"{_names(key)}: {window.why_absent(key)}")


def _names(key: str) -> str:
    for unit in ("_bytes_per_s", "_ratio", "_mhz", "_cores", "_c", "_w"):
        key = key.removesuffix(unit)
    return key.replace("_", " ")


def inventory_missing(window: Window, key: str, what: str) -> Abstain:
    """Abstain because the inventory does not know `key`; `what` is its name in a sentence."""
    reason = window.info.absent.get(key) if window.info is not None else None
    return Abstain(f"{what} is not known: {reason}" if reason else f"{what} is not known")


def seconds_where(window: Window, key: str, seconds: float, test: Callable[[float], bool]) -> float:
    """For how many of the last `seconds` the series passed `test`; a tick stands for one interval."""
    values = window.present(key, seconds)
    if not values:
        return 0.0
    passing = {value for value in set(values) if test(value)}
    if not passing:
        return 0.0
    return sum(value in passing for value in values) * window.sample.interval_s


def grown_s(window: Window, key: str, seconds: float) -> float:
    """Seconds under a reason within the last `seconds`, from the driver's counter; 0 without one."""
    return sum(window.present(key, seconds)) * window.sample.interval_s


def busy_level(window: Window, seconds: float) -> float | None:
    """How busy the GPU is while it works: the level between gaps, else its mean utilization."""
    mean = window.mean("utilization_ratio", seconds)
    shape = window.shape
    if mean is not None and shape is not None and shape.kind in _ALTERNATING and shape.high_ratio is not None:
        return max(mean, shape.high_ratio)
    return mean


def link_rate_bytes_per_s(window: Window) -> float | None:
    """What the PCIe link carries one way as it is now; None where its generation or width is not known."""
    generation, width = window.last("pcie_generation", 30.0), window.last("pcie_width", 30.0)
    return link_bytes_per_s(generation, width)


def pulsed(window: Window) -> bool:
    return window.shape is not None and window.shape.kind is ShapeKind.PULSED


def idle_coverage(window: Window, holds: Sequence[bool | None], seconds: float) -> float | None:
    """Share of the idle time of the last `seconds` in whose ticks `holds`; None where nothing is known.

    `holds` is aligned with the history's ticks; None leaves a tick out.
    """
    utilization = window.history.values(window.entity, "utilization_ratio", seconds)
    high = window.shape.high_ratio if window.shape is not None and window.shape.high_ratio else 1.0
    idle = covered = 0.0
    for busy, held in zip(utilization, holds, strict=True):
        if held is None or busy != busy:
            continue
        weight = max(0.0, 1.0 - busy / high)
        idle += weight
        covered += weight * held
    return covered / idle if idle > 0 else None


def shape_evidence(window: Window) -> tuple[Evidence, ...]:
    """The waiting as measured: share, period where it can be told, resolution."""
    shape = window.shape
    if shape is None:
        return ()
    found = [
        Evidence(
            "stall_ratio",
            "GPU waits",
            shape.stall_ratio,
            "ratio",
            ">= 8 %",
            shape.duration_s,
            "utilization_ratio",
        )
    ]
    if shape.period_s is not None:
        found.append(Evidence("period_s", "period", shape.period_s, "s", "", shape.duration_s))
    found += [
        Evidence("cycles", "gaps seen", float(shape.cycles), "", "", shape.duration_s),
        Evidence("resolution_s", "resolution", shape.resolution_s, "s"),
    ]
    return tuple(found)
