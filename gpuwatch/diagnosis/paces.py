"""How fast the job goes, minute by minute: the only signs of its pace from outside."""

from collections import deque
from dataclasses import dataclass, field

from gpuwatch.diagnosis.window import Pace
from gpuwatch.history import History
from gpuwatch.model import JobState, Shape, ShapeKind

EVERY_S, KEPT = 60.0, 120
LEAST_CYCLES = 5
#: Gaps of a sample or two fall through between samples: counting cycles would miss some of them.
COUNTED_SAMPLES = 2.5


@dataclass(slots=True)
class PaceTracker:
    """`update` when a shape was measured."""

    paces: deque[Pace] = field(default_factory=lambda: deque(maxlen=KEPT))
    _due_s: float = float("-inf")

    def reset(self) -> None:
        """A new job."""
        self.paces.clear()
        self._due_s = float("-inf")

    def update(
        self, now: float, state: JobState, steady_s: float, shape: Shape, history: History, gpu: str
    ) -> None:
        """Note the pace once a minute of steady time."""
        if state is not JobState.STEADY or steady_s < EVERY_S or now < self._due_s:
            return
        self._due_s = now + EVERY_S
        regular = shape.kind is ShapeKind.PULSED and shape.buffered and shape.regular
        period_s = _period_s(shape) if regular and shape.cycles >= LEAST_CYCLES else None
        rx = history.mean(gpu, "pcie_rx_bytes_per_s", EVERY_S)
        self.paces.append(Pace(now, period_s, rx))


def _period_s(shape: Shape) -> float | None:
    """Counted, which is most exact, or from the autocorrelation where gaps are too short to be counted."""
    gap_s, resolution_s = shape.gap_median_s, shape.resolution_s
    if gap_s is not None and resolution_s is not None and gap_s < COUNTED_SAMPLES * resolution_s:
        return shape.period_s
    return shape.duration_s / shape.cycles
