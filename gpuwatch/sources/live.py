"""Opens a machine as a source of samples: this one, or a simulated one.

A simulated machine brings its own clock, file tree and driver library; everything that reads them is
the same.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from gpuwatch.model import Sample
from gpuwatch.sources.base import Clock, Source
from gpuwatch.sources.joined import JoinedSource, Selection
from gpuwatch.sources.schedule import ticks
from gpuwatch.sources.tree import DiskTree


def live_source(
    *,
    interval_s: float,
    gpus: tuple[int | str, ...] | None = None,
    pid: int | None = None,
    user: str | None = None,
) -> Source:
    """This machine. `gpus`: only these, by index or uuid; `pid`, `user`: judge only these trainings."""
    from gpuwatch.sources.nvml import NvmlSource

    clock, tree = Clock(), DiskTree()
    nvml = NvmlSource(clock, tree, interval_s=interval_s, only=_only(gpus))
    return JoinedSource(clock, tree, nvml, interval_s=interval_s, selection=Selection(pid, user))


def simulated_source(
    name: str,
    *,
    interval_s: float,
    gpus: tuple[int | str, ...] | None = None,
    pid: int | None = None,
    user: str | None = None,
) -> Source:
    """A scenario (name or file) in real time. Raises ScenarioError, OSError or KeyError if there is none."""
    from gpuwatch.sources.nvml import NvmlSource
    from gpuwatch.sources.simulated import SimulatedDriver, SimulatedTree, load

    scenario, clock = load(name), Clock()
    tree = SimulatedTree(scenario, clock)
    return JoinedSource(
        clock,
        tree,
        NvmlSource(clock, tree, interval_s=interval_s, only=_only(gpus)),
        interval_s=interval_s,
        selection=Selection(pid, user),
        label=f"simulated: {scenario.name}",
        holds=_installed(SimulatedDriver(scenario, clock)),
    )


def run_simulated(
    name: str,
    seconds: float,
    *,
    interval_s: float = 1.0,
    gpus: tuple[int | str, ...] | None = None,
    pid: int | None = None,
    user: str | None = None,
    seed: int = 1,
) -> Iterator[Sample]:
    """The samples of `seconds` of a scenario, as fast as they can be taken; the same every time."""
    from gpuwatch.sources.nvml import InlineNvml
    from gpuwatch.sources.simulated import ManualClock, SimulatedDriver, SimulatedTree, load

    scenario, clock = load(name), ManualClock()
    tree = SimulatedTree(scenario, clock)
    source = JoinedSource(
        clock,
        tree,
        InlineNvml(clock, tree, interval_s=interval_s, only=_only(gpus)),
        interval_s=interval_s,
        selection=Selection(pid, user),
        label=f"simulated: {scenario.name}",
        holds=_installed(SimulatedDriver(scenario, clock)),
        measure_own=None,
    )
    end_s = clock.monotonic_s() + seconds
    source.open()
    try:
        for sample in ticks(source, clock, clock.advance, interval_s, seed):
            if sample.monotonic_s > end_s:
                return
            yield sample
    finally:
        source.close()


def _only(gpus: tuple[int | str, ...] | None) -> frozenset[int | str] | None:
    return None if gpus is None else frozenset(gpus)


class _Installs(Protocol):
    def install(self) -> None: ...
    def uninstall(self) -> None: ...


@contextmanager
def _installed(driver: _Installs) -> Iterator[None]:
    driver.install()
    try:
        yield
    finally:
        driver.uninstall()
