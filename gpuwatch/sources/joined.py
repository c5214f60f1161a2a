"""Driver, host and processes of one machine, joined on one clock into samples."""

import mmap
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from gpuwatch.model import (
    DriverInfo,
    DriverStatus,
    Event,
    GpuInfo,
    GpuReading,
    HostInfo,
    Machine,
    OwnCost,
    ProcessKey,
    ProcessReading,
    ProcessRole,
    Sample,
    ThreadBurst,
)
from gpuwatch.sources.base import Clock
from gpuwatch.sources.host import has_proc, open_host
from gpuwatch.sources.pci import read_link, with_link
from gpuwatch.sources.processes import BurstReader, ProcessReader
from gpuwatch.sources.processes.bursts import LOW_RATIO
from gpuwatch.sources.tree import DiskTree, Tree

if TYPE_CHECKING:
    from gpuwatch.sources.host import ReadsHost

#: How long a tick waits for the driver: part of the interval, and at most this. What comes later is
#: in the next tick, under its own age.
WAIT_RATIO, WAIT_MOST_S = 0.4, 0.4
#: After a tick without any answer the driver hangs, and waiting long again would only make ticks late.
WAIT_SILENT_S = 0.05
#: Wall clock against monotonic clock; time daemons slew by far less between two ticks.
CLOCK_JUMP_S = 2.0
#: The driver's sample rings hold about ten seconds; with longer intervals they are drained in between.
DRAIN_EVERY_S = 5.0


class NvmlTick(Protocol):
    """What the driver's side knows at one moment (sources.nvml)."""

    @property
    def driver(self) -> DriverStatus: ...
    @property
    def driver_info(self) -> DriverInfo: ...
    @property
    def gpus(self) -> tuple[GpuReading, ...]: ...
    @property
    def infos(self) -> tuple[GpuInfo, ...]: ...
    @property
    def generation(self) -> int: ...
    @property
    def events(self) -> tuple[Event, ...]: ...


class Nvml(Protocol):
    def start(self) -> None: ...
    def tick(self, deadline_s: float, wait_s: float) -> NvmlTick: ...
    def drain(self) -> None: ...
    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Selection:
    """Which training processes are judged: a process (or its launcher), a user's, else all."""

    pid: int | None = None
    user: str | None = None

    def judged(self, processes: Iterable[ProcessReading]) -> frozenset[int] | None:
        """Pids of the chosen trainers; None when nothing was chosen."""
        if self.pid is None and self.user is None:
            return None
        return frozenset(
            process.pid
            for process in processes
            if process.role is ProcessRole.TRAINER
            and (self.pid is None or self.pid in (process.pid, process.parent_pid))
            and (self.user is None or self.user == process.user)
        )


def own_cost() -> OwnCost:
    """What this program has used so far, all threads."""
    try:
        rss_bytes = int(DiskTree().read("/proc/self/statm").split()[1]) * mmap.PAGESIZE
    except (OSError, IndexError, ValueError):
        rss_bytes = None
    return OwnCost(cpu_s=time.process_time(), rss_bytes=rss_bytes)


class JoinedSource:
    """One machine. `label` is shown all the time; `holds` is entered by `open` and left by `close`.

    `measure_own` None: the monitor's own cost is not measured.
    """

    def __init__(
        self,
        clock: Clock,
        tree: Tree,
        nvml: Nvml,
        *,
        interval_s: float = 1.0,
        selection: Selection = Selection(),
        label: str | None = None,
        holds: AbstractContextManager[object] | None = None,
        measure_own: Callable[[], OwnCost] | None = own_cost,
    ) -> None:
        self._clock = clock
        self._tree = tree
        self._nvml = nvml
        self._interval_s = interval_s
        self._selection = selection
        self._label = label
        self._holds = holds
        self._measure_own = measure_own
        self._open = ExitStack()
        self._number = 0
        self._generation: int | None = None
        self._wall_ahead_s: float | None = None
        self._drained_s = float("-inf")
        self._silent = False
        self._processes: ProcessReader | None = None
        self._bursts: BurstReader | None = None
        self._host_info: HostInfo
        self._host: ReadsHost

    def open(self) -> None:
        """Start the driver's thread and look at the host once; on failure nothing stays open."""
        with ExitStack() as opening:
            if self._holds is not None:
                opening.enter_context(self._holds)
            self._nvml.start()
            opening.callback(self._nvml.close)
            self._host_info, self._host = open_host(self._tree, self._clock)
            if has_proc(self._tree):
                self._processes = ProcessReader(self._tree, self._clock)
                self._bursts = BurstReader(self._tree, self._clock)
            self._open = opening.pop_all()

    def sample(self, deadline_s: float) -> Sample:
        """One tick. The driver is asked first, because its answer may take a while."""
        start_s = self._clock.monotonic_s()
        wait_s = WAIT_SILENT_S if self._silent else WAIT_MOST_S
        tick = self._nvml.tick(deadline_s, min(wait_s, WAIT_RATIO * self._interval_s))
        self._silent = bool(tick.gpus) and all(gpu.read_s < start_s for gpu in tick.gpus)
        now_s, wall_s = self._clock.monotonic_s(), self._clock.wall_s()
        self._drained_s = now_s  # a tick drains too
        host = self._host.read()
        processes: tuple[ProcessReading, ...] | None = None
        bursts: tuple[ThreadBurst, ...] = ()
        hidden = 0
        if self._processes is not None and self._bursts is not None:
            processes, hidden = self._processes.read(_pids(tick.gpus), now_s)
            processes = with_shares(processes, tick.gpus)
            bursts = self._bursts.drain()
            self._bursts.aim(processes, low_trainers(tick.gpus, processes), now_s)
        sample = Sample(
            number=self._number,
            monotonic_s=now_s,
            wall_s=wall_s,
            interval_s=self._interval_s,
            late_s=max(0.0, start_s - deadline_s),
            duration_s=self._clock.monotonic_s() - start_s,
            driver=tick.driver,
            gpus=tick.gpus,
            host=host,
            processes=processes,
            hidden_processes=hidden,
            judged_pids=self._selection.judged(processes or ()),
            thread_bursts=bursts,
            events=(*tick.events, *self._clock_jump(now_s, wall_s)),
            own=None if self._measure_own is None else self._measure_own(),
            machine=self._machine_if_new(tick),
        )
        self._number += 1
        return sample

    def between(self) -> float | None:
        """Read the watched threads if it is time; with long intervals drain the driver's samples."""
        now_s = self._clock.monotonic_s()
        pauses = []
        if self._bursts is not None:
            self._bursts.poll(now_s)
            pause_s = self._bursts.wait_s(self._clock.monotonic_s())
            if pause_s is not None:
                pauses.append(pause_s)
        if self._interval_s > DRAIN_EVERY_S:
            if now_s >= self._drained_s + DRAIN_EVERY_S:
                self._nvml.drain()
                self._drained_s = now_s
            pauses.append(self._drained_s + DRAIN_EVERY_S - now_s)
        return min(pauses, default=None)

    def close(self) -> None:
        self._open.close()

    def _machine_if_new(self, tick: NvmlTick) -> Machine | None:
        if tick.generation == self._generation:
            return None
        self._generation = tick.generation
        in_vm = self._host_info.virtual_machine
        gpus = tuple(
            info if info.bus_id is None else with_link(info, read_link(self._tree, info.bus_id, in_vm))
            for info in tick.infos
        )
        offset_s = self._clock.utc_offset_s(self._clock.wall_s())
        return Machine(self._host_info, tick.driver_info, gpus, self._label, offset_s)

    def _clock_jump(self, now_s: float, wall_s: float) -> tuple[Event, ...]:
        """Only a remark: nothing here computes with wall time."""
        ahead_s = wall_s - now_s
        before_s, self._wall_ahead_s = self._wall_ahead_s, ahead_s
        if before_s is None or abs(ahead_s - before_s) < CLOCK_JUMP_S:
            return ()
        jump_s = ahead_s - before_s
        way = "forward" if jump_s > 0 else "back"
        message = f"the clock went {way} by {abs(jump_s):.0f} s (it was set, or the machine slept)"
        return (Event(now_s, "clock-jump", message),)


def _pids(gpus: Iterable[GpuReading]) -> dict[int, str]:
    """The driver's processes on all GPUs by pid; one that computes anywhere computes."""
    kinds: dict[int, str] = {}
    for gpu in gpus:
        for process in gpu.processes or ():
            if "C" not in kinds.get(process.pid, ""):
                kinds[process.pid] = process.kind
    return kinds


def with_shares(
    processes: tuple[ProcessReading, ...], gpus: Iterable[GpuReading]
) -> tuple[ProcessReading, ...]:
    """The same processes with their share of the SMs, where the driver tells it."""
    shares: dict[int, float] = {}
    for gpu in gpus:
        for process in gpu.processes or ():
            if process.sm_ratio is not None:
                shares[process.pid] = max(process.sm_ratio, shares.get(process.pid, 0.0))
    if not shares:
        return processes
    return tuple(
        replace(process, sm_ratio=shares[process.pid]) if process.pid in shares else process
        for process in processes
    )


def low_trainers(gpus: Iterable[GpuReading], processes: Iterable[ProcessReading]) -> set[ProcessKey]:
    """Trainers with a GPU that idled for a moment: their threads are worth a closer look."""
    trainers = {process.pid: process.trainer for process in processes if process.trainer is not None}
    low: set[ProcessKey] = set()
    for gpu in gpus:
        points: tuple[float | None, ...] = gpu.utilization_burst.values or (gpu.utilization_ratio,)
        if any(point is not None and point < LOW_RATIO for point in points):
            low.update(trainers[p.pid] for p in gpu.processes or () if p.pid in trainers)
    return low
