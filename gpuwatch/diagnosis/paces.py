"""How fast the job goes, minute by minute: the only signs of its pace from outside."""

from collections import deque
from dataclasses import dataclass, field

from gpuwatch.diagnosis.window import Pace
from gpuwatch.history import History
from gpuwatch.model import JobState, Shape, ShapeKind

EVERY_S, KEPT = 60.0, 120


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
        period_s = shape.duration_s / shape.cycles if regular and shape.cycles >= 5 else None
        rx = history.mean(gpu, "pcie_rx_bytes_per_s", EVERY_S)
        self.paces.append(Pace(now, period_s, rx))
