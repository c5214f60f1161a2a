"""What has left the last minute of a ledger: a quarter of an hour in steps, and the whole run."""

from collections import deque
from dataclasses import dataclass, field

from gpuwatch.diagnosis.ledger_parts import Booking, Slot

QUARTER_S = 900.0
STEP_S = 10.0


@dataclass(slots=True)
class Past:
    """Bookings of one GPU that are older than a minute, with the causes they were folded under."""

    run: dict[Slot, int] = field(default_factory=dict)
    _quarter: dict[Slot, int] = field(default_factory=dict)
    _steps: deque[tuple[float, dict[Slot, int]]] = field(default_factory=deque)  # start, oldest first

    def clear(self) -> None:
        """A new job."""
        self.run.clear()
        self._quarter.clear()
        self._steps.clear()

    def fold(self, end_s: float, booking: Booking) -> None:
        """Take time that ended at `end_s`; in order of time."""
        if not self._steps or end_s >= self._steps[-1][0] + STEP_S:
            self._steps.append((end_s, {}))
        step = self._steps[-1][1]
        for slot, amount in booking.items():
            step[slot] = step.get(slot, 0) + amount
            self.run[slot] = self.run.get(slot, 0) + amount
            self._quarter[slot] = self._quarter.get(slot, 0) + amount

    def quarter(self, now_s: float) -> Booking:
        """The past part of the last quarter of an hour, to a step of ten seconds."""
        while self._steps and self._steps[0][0] < now_s - QUARTER_S:
            for slot, amount in self._steps.popleft()[1].items():
                self._quarter[slot] -= amount
        return {slot: amount for slot, amount in self._quarter.items() if amount}
