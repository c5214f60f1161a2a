"""Scenario time: how a clock's wall time becomes the `t` of a scenario, and a clock set by hand."""

import threading
import time
from collections.abc import Callable

from gpuwatch.sources.base import Clock


class ManualClock:
    """A clock that moves only when told, so that minutes can be simulated in moments.

    Has the fields of `Clock`. `sleep` moves it too: a slow driver call is slow in this time.
    """

    def __init__(self, wall_s: float = 1_700_000_000.0, monotonic_s: float = 1000.0) -> None:
        self._lock = threading.Lock()
        self._passed_s = 0.0
        self._wall_s = wall_s
        self._monotonic_s = monotonic_s

    def monotonic_s(self) -> float:
        return self._monotonic_s + self._passed_s

    def wall_s(self) -> float:
        return self._wall_s + self._passed_s

    def advance(self, seconds: float) -> None:
        with self._lock:
            self._passed_s += seconds

    sleep = advance

    def step_wall(self, seconds: float) -> None:
        """Set the wall clock without any time passing."""
        self._wall_s += seconds

    def clock(self) -> Clock:
        """The same clock as sources take it."""
        return Clock(self.monotonic_s, self.wall_s, lambda _: 0.0)


class Timeline:
    """Scenario seconds since the start; `timescale` of them pass in a real second."""

    def __init__(
        self, clock: Clock | ManualClock, timescale: float = 1.0, start_s: float | None = None
    ) -> None:
        self._wall_s = clock.wall_s
        self.timescale = timescale
        self.start_s = clock.wall_s() if start_s is None else start_s
        self.sleep: Callable[[float], None] = clock.sleep if isinstance(clock, ManualClock) else time.sleep

    def now(self) -> float:
        return (self._wall_s() - self.start_s) * self.timescale

    def real(self) -> float:
        """Real seconds since the start."""
        return self._wall_s() - self.start_s

    def wall(self, t: float) -> float:
        """Unix seconds of a scenario time."""
        return self.start_s + t / self.timescale
