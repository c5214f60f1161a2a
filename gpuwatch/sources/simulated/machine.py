"""The simulated host as a whole: its settings, its processes, its CPU time and its counters."""

import math
from collections.abc import Callable

from gpuwatch.sources.simulated.busy import BusyFiles
from gpuwatch.sources.simulated.crowd import SimulatedProcess
from gpuwatch.sources.simulated.gpu import SimulatedGpu
from gpuwatch.sources.simulated.integrals import Integral
from gpuwatch.sources.simulated.jobs import Builder, check
from gpuwatch.sources.simulated.loads import CpuLoads
from gpuwatch.sources.simulated.processes import ProcessTable
from gpuwatch.sources.simulated.scenario import Scenario
from gpuwatch.sources.simulated.settings import Reader
from gpuwatch.sources.simulated.timeline import Timeline
from gpuwatch.sources.simulated.waveforms import Compiler, Noise
from gpuwatch.sources.simulated.waves import Wave

_UPTIME_S = "5*24*3600"
_TYPICAL_S = 30.0
#: Idle time that the kernel books as waiting for a disk, per share of time with I/O pressure.
_IO_WAIT = 0.3
#: s per request of an idle disk of each kind, and bytes per request.
_AWAIT = {"nvme": "0.1ms", "ssd": "0.4ms", "hdd": "9ms"}
_REQUEST_BYTES = 128 * 1024
#: Requests a disk serves at once before it counts as busy all the time.
_PARALLEL = {"nvme": 16.0, "ssd": 4.0, "hdd": 1.0}


class Machine:
    """Everything the files of the simulated host are made from."""

    def __init__(self, scenario: Scenario, timeline: Timeline) -> None:
        self.scenario = scenario
        self.timeline = timeline
        noise, busy = Noise(scenario.seed), BusyFiles(timeline)
        self.gpus = [SimulatedGpu(scenario, plan, timeline, noise, busy) for plan in scenario.gpus]
        table = ProcessTable(scenario, self.gpus, busy)
        compiler = self.gpus[0].compiler if self.gpus else Compiler(seed=scenario.seed, noise=noise)
        self.settings = Reader(scenario.host.machine, compiler)
        self.cores = max(1, round(self.settings.number("cores", "16")))
        self.uptime_s = self.settings.number("uptime", _UPTIME_S)
        self.memory_bytes = int(self.settings.number("mem.total", "128Gi"))
        builder = Builder(table, self.gpus, self.settings, compiler)
        builder.build(scenario.host.jobs, scenario.host.processes)
        check(scenario.name, builder.processes)
        self.processes = {process.pid: process for process in builder.processes}
        pressure = self.settings.wave("psi.io", "0.2")
        io_wait = pressure.scaled(_IO_WAIT / 100)
        self.mask = builder.mask
        #: Share of CPU time in the kernel, over all cores: that of the busiest kind of job.
        self.system_ratio = max(
            [process.system_ratio for process in builder.processes if process.of_job] or [0.1]
        )
        self.cpu = CpuLoads(
            self.cores, builder.mask or self.cores, builder.loads, io_wait, timeline.timescale
        )
        self._integrals: dict[str, Integral] = {}
        self._waves: dict[str, Wave] = {}
        self._before: dict[str, float] = {}
        self._disk_waves()
        self._share_disk()

    def _disk_waves(self) -> None:
        settings = self.settings
        self.disk_kind = settings.text("disk.kind", "nvme")
        self.disk_read = settings.wave("disk.read", "300K")
        self.disk_write = settings.wave("disk.write", "800K")
        self.disk_await = settings.wave("disk.await", _AWAIT.get(self.disk_kind, "0.4ms"))
        read, wait = self.disk_read, self.disk_await
        parallel = _PARALLEL.get(self.disk_kind, 4.0)
        if settings.has("disk.iops"):
            self.disk_reads = settings.wave("disk.iops", "0")
        else:
            self.disk_reads = read.scaled(1 / _REQUEST_BYTES)
        reads = self.disk_reads
        busy = settings.wave("disk.busy", "0")
        if not settings.has("disk.busy"):
            busy = _from(lambda t: min(100.0, reads.at(t) * wait.at(t) / parallel * 100))
        self.disk_wait = _from(lambda t: reads.at(t) * wait.at(t))
        self.disk_busy = _from(lambda t: min(1.0, busy.at(t) / 100))

    def _share_disk(self) -> None:
        """What the disk delivers beyond its usual hum goes to the job's readers in equal parts."""
        if not self.settings.has("disk.read"):
            return
        job = [process for process in self.processes.values() if process.of_job]
        parents = {process.parent for process in job}
        readers = [process for process in job if process.pid not in parents]
        for process in readers:
            process.from_disk = self.disk_read.scaled(1 / len(readers))

    @property
    def shm_bytes(self) -> int:
        """Size of /dev/shm."""
        return int(self.settings.number("shm.total", str(self.memory_bytes // 2)))

    def living(self) -> dict[int, SimulatedProcess]:
        now = self.timeline.real()
        return {pid: found for pid, found in self.processes.items() if found.start_s <= now < found.end_s}

    def process(self, pid: int) -> SimulatedProcess | None:
        found = self.processes.get(pid)
        if found is None or not found.start_s <= self.timeline.real() < found.end_s:
            return None
        return found

    def count(self, key: str, wave: Wave, since_s: float = 3600.0) -> float:
        """Amount of a rate since `since_s` before the start, in units of the rate times real seconds."""
        found = self._integrals.get(key)
        scale = self.timeline.timescale
        if found is None:
            mean = wave.mean if scale == 1 else lambda a, b: wave.mean(a * scale, b * scale)
            found = self._integrals[key] = Integral(mean)
            self._before[key] = max(0.0, wave.mean(-_TYPICAL_S, 0.0)) * since_s
        return self._before[key] + found.at(self.timeline.real())

    def counter(self, key: str, default: str) -> float:
        """`count` of a setting."""
        return self.count(key, self._setting(key, default))

    def _setting(self, key: str, default: str) -> Wave:
        wave = self._waves.get(key)
        if wave is None:
            wave = self._waves[key] = self.settings.wave(key, default)
        return wave

    def now(self, key: str, default: str) -> float:
        """A setting's value at this moment."""
        return self._setting(key, default).at(self.timeline.now())


def _from(at: Callable[[float], float]) -> Wave:
    def mean(start: float, end: float) -> float:
        return (at(start + (end - start) / 4) + at(start + (end - start) * 3 / 4)) / 2

    return Wave(at, mean)


def whole(value: float) -> int:
    """A counter as the kernel prints it."""
    return math.floor(max(0.0, value))
