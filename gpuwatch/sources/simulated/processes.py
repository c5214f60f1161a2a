"""Which processes live on which GPU at a moment."""

import os
from dataclasses import dataclass

from gpuwatch.sources.simulated.busy import BusyFiles
from gpuwatch.sources.simulated.gpu import SimulatedGpu
from gpuwatch.sources.simulated.language import Node, Number, Reference
from gpuwatch.sources.simulated.scenario import ProcessPlan, Scenario
from gpuwatch.sources.simulated.waves import Wave, constant_wave

#: Pids of the processes of a scenario that tells of a job but lists no process.
FIRST_PID = 4001
_WAVES: dict[str, Node] = {
    "sm": Reference("util"),
    "mem_util": Reference("mem_util"),
    "enc": Number(0.0),
    "dec": Number(0.0),
}


@dataclass(frozen=True, slots=True)
class LiveProcess:
    """`memory_bytes` is None where the driver does not say."""

    pid: int
    plan: ProcessPlan
    memory_bytes: int | None


class ProcessTable:
    """The `[proc]` sections, and one implied process per GPU where only `#host` lines tell of a job."""

    def __init__(self, scenario: Scenario, gpus: list[SimulatedGpu], busy: BusyFiles) -> None:
        self.plans = list(scenario.processes)
        if not self.plans and scenario.host.jobs:
            self.plans = [_implied(gpu) for gpu in gpus if gpu.index in scenario.host.jobs]
        self._waves: dict[tuple[int, int, str], Wave] = {}
        self._busy = busy
        for gpu in gpus:
            gpu.procs_mem = self._memory_of(gpu)

    def _memory_of(self, gpu: SimulatedGpu) -> Wave:
        def at(t: float) -> float:
            return float(sum(process.memory_bytes or 0 for process in self.live(gpu, t)))

        return Wave(at, lambda start, end: at(end))

    def live(self, gpu: SimulatedGpu, t: float) -> list[LiveProcess]:
        found = []
        for number, plan in enumerate(self.plans):
            if gpu.index not in plan.gpus or not plan.start_s <= t < plan.end_s:
                continue
            for pid in self.pids(plan, gpu, t):
                memory = None
                if plan.memory is not None:
                    memory = max(0, int(self.wave(number, plan, gpu, "memory").at(t)))
                found.append(LiveProcess(pid, plan, memory))
        return found

    def wave(self, number: int, plan: ProcessPlan, gpu: SimulatedGpu, what: str) -> Wave:
        """The process's own wave of `sm`, `mem_util`, `enc`, `dec`, `memory` or `pid`, on one GPU."""
        key = (number, gpu.index, what)
        wave = self._waves.get(key)
        if wave is None:
            node = plan.waves.get(what) or _WAVES.get(what)
            if what == "memory":
                node = plan.memory
            elif what == "pid":
                node = plan.pid if not isinstance(plan.pid, int | str) else Number(0.0)
            wave = self._waves[key] = gpu.compiler.wave(node) if node else constant_wave(0.0)
        return wave

    def number(self, plan: ProcessPlan) -> int:
        return next(number for number, known in enumerate(self.plans) if known is plan)

    def pids(self, plan: ProcessPlan, gpu: SimulatedGpu, t: float) -> list[int]:
        """Whom a section means on one GPU at a moment."""
        pid = plan.pid
        if isinstance(pid, int):
            return [pid]
        if pid == "self":
            return [os.getpid()]
        if pid == "parent":
            return [os.getppid()]
        if isinstance(pid, str) and pid.startswith("env:"):
            text = os.environ.get(pid[4:].replace("{gpu}", str(gpu.index)), "")
            return [int(text)] if text.isdecimal() and int(text) else []
        if isinstance(pid, str):
            return _pids_from_file(pid.removeprefix("file:"))
        found = int(self.wave(self.number(plan), plan, gpu, "pid").at(t))
        return [found] if found >= 1 else []


def _implied(gpu: SimulatedGpu) -> ProcessPlan:
    """A trainer of one GPU that holds what the GPU's memory holds, or most of it by default."""
    wave = gpu.plan.metrics["mem_used"].wave
    memory = Number(gpu.model.memory_mib * 2**20 * 0.8) if wave == Reference("procs_mem") else wave
    return ProcessPlan(pid=FIRST_PID + gpu.index, gpus=frozenset({gpu.index}), memory=memory)


def _pids_from_file(path: str) -> list[int]:
    try:
        with open(path, encoding="ascii", errors="replace") as stream:
            words = stream.read(4096).split()
    except OSError:
        return []
    return [int(word) for word in words if word.isdecimal()]
