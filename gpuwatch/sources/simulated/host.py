"""The simulated host as a tree of files; nothing is played on it yet."""

from gpuwatch.sources.base import Clock
from gpuwatch.sources.simulated.scenario import Scenario
from gpuwatch.sources.simulated.timeline import ManualClock, Timeline


class SimulatedTree:
    """A `Tree` without files."""

    def __init__(
        self, scenario: Scenario, clock: Clock | ManualClock, *, timeline: Timeline | None = None
    ) -> None:
        self._timeline = timeline or Timeline(clock, scenario.timescale)

    def read(self, path: str) -> bytes:
        raise FileNotFoundError(path)

    def list(self, path: str) -> list[str]:
        raise FileNotFoundError(path)

    link = real = usage = affinity = owner = read  # type: ignore[assignment]  # nothing is there
