"""A driver in place of the real one for a test, on a clock set by hand."""

import pytest

from gpuwatch.sources.simulated import ManualClock
from gpuwatch.sources.simulated.driver import SimulatedDriver
from gpuwatch.sources.simulated.host import SimulatedTree
from gpuwatch.sources.simulated.shipped import load
from gpuwatch.sources.simulated.timeline import Timeline


class Play:
    def __init__(self, text: str) -> None:
        self.scenario = load(text)
        self.clock = ManualClock()
        timeline = Timeline(self.clock, self.scenario.timescale)
        self.driver = SimulatedDriver(self.scenario, self.clock, timeline=timeline)
        self._timeline = timeline
        self._tree: SimulatedTree | None = None

    @property
    def tree(self) -> SimulatedTree:
        if self._tree is None:
            self._tree = SimulatedTree(self.scenario, self.clock, timeline=self._timeline)
        return self._tree


@pytest.fixture
def play():
    """Call it with a scenario's name or text: the driver is installed and started."""
    import pynvml

    playing: list[Play] = []

    def start(text: str, init: bool = True) -> Play:
        found = Play(text)
        found.driver.install()
        playing.append(found)
        if init:
            pynvml.nvmlInit()
        return found

    yield start
    for found in reversed(playing):
        found.driver.uninstall()
