"""A scenario played as a whole: its driver installed and its host beside it, on one clock."""

from collections.abc import Iterator
from contextlib import contextmanager

from gpuwatch.sources.base import Clock
from gpuwatch.sources.simulated.driver import SimulatedDriver
from gpuwatch.sources.simulated.host import SimulatedTree
from gpuwatch.sources.simulated.scenario import Scenario
from gpuwatch.sources.simulated.shipped import load
from gpuwatch.sources.simulated.timeline import ManualClock, Timeline


@contextmanager
def simulated(
    scenario: Scenario | str, clock: Clock | ManualClock
) -> Iterator[tuple[SimulatedDriver, SimulatedTree]]:
    """The driver is installed inside the `with` block; scenario time starts when it is entered."""
    loaded = load(scenario) if isinstance(scenario, str) else scenario
    timeline = Timeline(clock, loaded.timescale)
    driver = SimulatedDriver(loaded, clock, timeline=timeline)
    tree = SimulatedTree(loaded, clock, timeline=timeline)
    driver.install()
    try:
        yield driver, tree
    finally:
        driver.uninstall()
