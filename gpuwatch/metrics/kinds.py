"""What a metric is, and the derivations that most of them share."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Kind(StrEnum):
    GAUGE = "gauge"
    RATE = "rate"  # difference of a counter over true time
    BITS = "bits"
    STATE = "state"  # small integers with names (P-state, link width)


class Summary(StrEnum):
    """How several points become one cell of a plot."""

    MEAN = "mean"
    MAX = "max"
    MIN = "min"
    LAST = "last"
    OR = "or"


#: (previous reading or None, present reading, seconds between) → value, None for "not known".
Derivation = Callable[[Any, Any, float], float | None]


@dataclass(frozen=True, slots=True)
class Metric:
    """`high` None: the scale comes from the machine (`high_from` names the GpuInfo field) or grows.

    `tiers`: kept for 24 hours in coarser steps; others for the fine window only.
    """

    key: str
    label: str
    unit: str  # "ratio", "W", "MHz", "°C", "B", "B/s", "cores", "1/s", "ms", ""
    kind: Kind
    derive: Derivation
    low: float = 0.0
    high: float | None = None
    high_from: str | None = None
    summary: Summary = Summary.MEAN
    tiers: bool = False


#: No counter of bytes or events here grows faster; what does is a reset or a foreign counter.
#: (The fastest real one is NVLink of all links together, below 2 TB/s.)
MOST_PER_S = 1e13
#: A counter of time is refreshed in steps, so it may run ahead of the tick by this much; a larger
#: step is a jump (resume, driver reload).
TIME_STEP_S = 2.0


@dataclass(frozen=True, slots=True)
class Field:
    """The reading's own field. A class, so that history can read all plain fields in one go."""

    name: str

    def __call__(self, _previous: Any, current: Any, _dt: float) -> float | None:
        value = getattr(current, self.name)
        return None if value is None else float(value)


def field(name: str) -> Derivation:
    """The reading's own field."""
    return Field(name)


@dataclass(frozen=True, slots=True)
class Rate:
    """Counter difference per second, times `scale`. A class for the same reason."""

    name: str
    scale: float = 1.0
    most_per_s: float = MOST_PER_S

    def __call__(self, previous: Any, current: Any, dt: float) -> float | None:
        if previous is None:
            return None
        return self.of(getattr(previous, self.name), getattr(current, self.name), dt)

    def of(self, before: float | None, now: float | None, dt: float) -> float | None:
        """From the two counts."""
        if before is None or now is None or now < before or dt <= 0:
            return None
        value = float(now - before) * self.scale / dt
        return value if value <= self.most_per_s else None


def rate(name: str, scale: float = 1.0, most_per_s: float = MOST_PER_S) -> Derivation:
    """Counter difference per second, times `scale`.

    A negative one (reset, reload, resume) or one above `most_per_s` is unknown.
    """
    return Rate(name, scale, most_per_s)


def time_share(name: str, per_s: float) -> Derivation:
    """Share of time, 0..1, in which a counter of time (`per_s` units a second) grew.

    Its step may straddle the tick, hence at most 1; a jump is unknown.
    """

    def derive(previous: Any, current: Any, dt: float) -> float | None:
        if previous is None or dt <= 0:
            return None
        before, now = getattr(previous, name), getattr(current, name)
        if before is None or now is None or now < before:
            return None
        grown_s = (now - before) / per_s
        return min(1.0, grown_s / dt) if grown_s <= dt + TIME_STEP_S else None

    return derive
