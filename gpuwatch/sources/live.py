"""Opens a machine as a source of samples: this one, or a simulated one.

A simulated machine brings its own clock, file tree and driver library; everything that reads them is
the same.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

from gpuwatch.model import Sample
from gpuwatch.sources.base import Clock, Source
from gpuwatch.sources.joined import JoinedSource, Selection
from gpuwatch.sources.schedule import ticks
from gpuwatch.sources.tree import DiskTree

if TYPE_CHECKING:
    from gpuwatch.sources.simulated import Scenario


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
    from gpuwatch.sources.simulated import load, simulated

    scenario, clock, play = load(name), Clock(), ExitStack()
    _, tree = play.enter_context(simulated(scenario, clock))
    return JoinedSource(
        clock,
        tree,
        NvmlSource(clock, tree, interval_s=interval_s, only=_only(gpus)),
        interval_s=interval_s,
        selection=Selection(pid, user),
        label=f"simulated: {scenario.name}",
        holds=play,
    )


def run_simulated(
    name: "str | Scenario",
    seconds: float,
    *,
    interval_s: float = 1.0,
    gpus: tuple[int | str, ...] | None = None,
    pid: int | None = None,
    user: str | None = None,
    seed: int = 1,
) -> Iterator[Sample]:
    """The samples of `seconds` of a scenario (name, file or loaded), as fast as they can be taken; the
    same every time.
    """
    from gpuwatch.sources.nvml import InlineNvml
    from gpuwatch.sources.simulated import ManualClock, load, simulated

    scenario, hand = load(name) if isinstance(name, str) else name, ManualClock()
    clock, end_s = hand.clock(), hand.monotonic_s() + seconds
    with ExitStack() as play:
        _, tree = play.enter_context(simulated(scenario, hand))
        source = JoinedSource(
            clock,
            tree,
            InlineNvml(clock, tree, interval_s=interval_s, only=_only(gpus)),
            interval_s=interval_s,
            selection=Selection(pid, user),
            label=f"simulated: {scenario.name}",
            measure_own=None,
        )
        play.callback(source.close)
        source.open()
        for sample in ticks(source, clock, hand.advance, interval_s, seed):
            if sample.monotonic_s > end_s:
                return
            yield sample


def _only(gpus: tuple[int | str, ...] | None) -> frozenset[int | str] | None:
    return None if gpus is None else frozenset(gpus)
