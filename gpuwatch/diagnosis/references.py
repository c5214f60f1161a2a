"""What is learned about a card while it is watched: its own best clock, its idle power, its busy level."""

from collections import deque
from dataclasses import dataclass, field

from gpuwatch.diagnosis.window import References
from gpuwatch.metrics import REASONS_NOT_IDLE
from gpuwatch.model import GpuInfo, GpuReading, Shape, ShapeKind

#: The best clock is the 95th percentile under load, once there are two minutes of it (diagnosis §2).
LOADED_UTILIZATION, LOADED_S, CLOCK_PART = 0.80, 120.0, 0.95
#: Until then: the highest boost clock is rarely reached, so a tenth less.
BOOST_PART = 0.90
IDLE_UTILIZATION, IDLE_S = 0.01, 10.0
BEST_HIGH_S = 600.0
_HAS_BUSY_LEVEL = frozenset(
    {ShapeKind.SATURATED, ShapeKind.PULSED, ShapeKind.EPISODIC, ShapeKind.FLAT_HIGH, ShapeKind.VARIABLE}
)


@dataclass(slots=True)
class ReferenceLearner:
    """One card's references. Clock and power stay for the session, the busy level for one job."""

    best_high: float | None = None  # of this job in the last ten minutes
    _seconds_at_mhz: dict[int, float] = field(default_factory=dict)
    _loaded_s: float = 0.0
    _clock_mhz: float | None = None
    _clock_at_s: float = 0.0
    _idle: deque[tuple[float, float, float]] = field(default_factory=deque)  # time, step, W
    _idle_power_w: float | None = None
    _highs: deque[tuple[float, float]] = field(default_factory=deque)

    def update(
        self,
        now: float,
        step: float,
        reading: GpuReading,
        utilization: float | None,
        power_w: float | None,
        has_context: bool,
    ) -> None:
        """Take one fresh reading that stands for `step` seconds."""
        if utilization is None:
            return
        if (
            utilization >= LOADED_UTILIZATION
            and reading.sm_clock_mhz is not None
            and reading.event_reasons is not None
            and not reading.event_reasons & REASONS_NOT_IDLE
        ):
            clock = round(reading.sm_clock_mhz)
            self._seconds_at_mhz[clock] = self._seconds_at_mhz.get(clock, 0.0) + step
            self._loaded_s += step
        self._learn_idle(now, step, utilization, power_w if has_context else None)

    def _learn_idle(self, now: float, step: float, utilization: float, power_w: float | None) -> None:
        if utilization >= IDLE_UTILIZATION or power_w is None:
            self._idle.clear()
            return
        self._idle.append((now, step, power_w))
        while sum(entry[1] for entry in self._idle) - self._idle[0][1] >= IDLE_S:
            self._idle.popleft()
        covered = sum(entry[1] for entry in self._idle)
        if covered >= IDLE_S:
            mean = sum(length * power for _, length, power in self._idle) / covered
            if self._idle_power_w is None or mean < self._idle_power_w:
                self._idle_power_w = mean

    def note_shape(self, now: float, shape: Shape) -> None:
        """Remember the busy level of a measured shape."""
        if shape.kind in _HAS_BUSY_LEVEL and shape.high_ratio is not None:
            self._highs.append((now, shape.high_ratio))
        while self._highs and now - self._highs[0][0] > BEST_HIGH_S:
            self._highs.popleft()
        self.best_high = max((high for _, high in self._highs), default=None)

    def new_job(self) -> None:
        """The busy level belonged to the job that ended."""
        self._highs.clear()
        self.best_high = None

    def references(self, info: GpuInfo | None) -> References:
        """What is known now; the clock is recomputed when ten more seconds of load were seen."""
        if self._loaded_s >= LOADED_S and self._loaded_s - self._clock_at_s >= 10.0:
            self._clock_mhz = _weighted_quantile(self._seconds_at_mhz, CLOCK_PART)
            self._clock_at_s = self._loaded_s
        clock, learned = self._clock_mhz, self._clock_mhz is not None
        if clock is None and info is not None and info.sm_clock_max_mhz is not None:
            clock = BOOST_PART * info.sm_clock_max_mhz
        return References(clock, learned, self._idle_power_w, self.best_high)


def _weighted_quantile(weights: dict[int, float], part: float) -> float:
    left = part * sum(weights.values())
    for value in sorted(weights):
        left -= weights[value]
        if left <= 0:
            return float(value)
    return float(max(weights))
