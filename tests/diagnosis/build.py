"""Builds samples from waveforms, second by second, without a driver, a clock or a file.

A waveform is a number or a function of time in seconds. `Scene.samples(60)` gives a minute of ticks;
`Bench` feeds them to a history and an engine.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from gpuwatch.history import History
from gpuwatch.model import (
    Burst,
    CgroupReading,
    CpuTimes,
    Diagnosis,
    DriverState,
    DriverStatus,
    GpuInfo,
    GpuProcess,
    GpuReading,
    GpuStatus,
    HostInfo,
    HostReading,
    Machine,
    ProcessFacts,
    ProcessReading,
    ProcessRole,
    Sample,
    ThreadBurst,
    ThreadReading,
)

Wave = float | Callable[[float], float]
FINE_S = 0.01  # step of the integrals
GIB = 1024**3


def at(wave: Wave, t: float) -> float:
    return wave(t) if callable(wave) else wave


def mean(wave: Wave, start: float, end: float) -> float:
    if not callable(wave):
        return wave
    steps = max(1, round((end - start) / FINE_S))
    width = (end - start) / steps
    return sum(wave(start + (i + 0.5) * width) for i in range(steps)) / steps


def square(low: float, high: float, period: float, duty: float) -> Callable[[float], float]:
    """High for the first `duty` part of each period."""
    return lambda t: high if (t % period) < duty * period else low


def noisy(level: float, amplitude: float, seed: int = 1) -> Callable[[float], float]:
    """A level with noise that is a pure function of time (one draw per 1/6 s)."""

    def wave(t: float) -> float:
        return level + random.Random(f"{seed}:{int(t * 6)}").uniform(-amplitude, amplitude)

    return wave


@dataclass
class Process:
    """A process with its CPU use in cores; `main` is the main thread's part (default: all of it)."""

    pid: int
    cpu: Wave = 1.0
    main: Wave | None = None
    role: ProcessRole = ProcessRole.TRAINER
    trainer_pid: int | None = None
    name: str = "python"
    command: str = "python train.py"
    reads: Wave = 0.0  # bytes/s of read calls
    disk_reads: Wave = 0.0
    writes: Wave = 0.0
    waits: Wave = 0.0  # cores' worth of run-queue wait
    state: str = "R"
    usable_cores: float | None = 16.0
    age_s: float = 1800.0  # at t=0
    user: str = "alice"
    uid: int = 1000
    parent_pid: int = 1
    group_id: int | None = None
    session_id: int | None = None
    threads: tuple[str, ...] = ()  # names beside the main thread
    cgroup: CgroupReading | Callable[[float], CgroupReading] | None = None
    facts: ProcessFacts | None = None
    burst: bool = True  # its main thread is read several times a second
    start_ticks: int = 1000
    since: float = float("-inf")  # present from here ...
    until: float = float("inf")  # ... to here
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass
class Gpu:
    """A GPU with its waveforms; `fields` set any other field of GpuReading, number or waveform."""

    util: Wave = 0.97
    memory_util: Wave = 0.5
    power: Wave = 300.0
    clock: Wave = 1800.0
    reasons: Callable[[float], int] | int = 0
    uuid: str = "GPU-0"
    index: int = 0
    pids: Sequence[tuple[int, int]] = ((100, 20 * GIB),)  # (pid, memory)
    info: dict[str, Any] = field(default_factory=dict)
    fields: dict[str, Any] = field(default_factory=dict)
    buffered: bool = True
    status: Callable[[float], GpuStatus] | None = None


@dataclass
class Scene:
    """A machine over time. Starts at `start_s` (monotonic)."""

    gpus: Sequence[Gpu] = field(default_factory=lambda: [Gpu()])
    processes: Sequence[Process] = field(default_factory=lambda: [Process(100)])
    cores: int = 16
    other_cores: Wave = 0.3
    host: dict[str, Wave] = field(default_factory=dict)  # "cpu_pressure_ratio" and the like, 0..1
    interval_s: float = 1.0
    burst_hz: float = 6.0
    start_s: float = 10_000.0
    jitter: float = 0.0  # of the interval, 0..0.3
    driver: DriverStatus = field(default_factory=lambda: DriverStatus(DriverState.OK))
    virtual_machine: bool | None = None
    duration_s: Wave = 0.0  # of taking a sample
    hidden_processes: int = 0

    def machine(self) -> Machine:
        defaults: dict[str, Any] = {
            "name": "NVIDIA GeForce RTX 3090",
            "brand": "geforce",
            "architecture": "ampere",
            "compute_capability": (8, 6),
            "memory_total_bytes": 24 * GIB,
            "power_limit_default_w": 350.0,
            "power_limit_max_w": 390.0,
            "sm_clock_max_mhz": 2100.0,
            "temperature_slowdown_c": 95.0,
            "temperature_gpu_max_c": 93.0,
            "pcie_generation_max": 4,
            "pcie_width_max": 16,
            "pcie_generation_card": 4,
            "pcie_width_card": 16,
            "pcie_generation_slot": 4,
            "pcie_width_slot": 16,
        }
        gpus = tuple(GpuInfo(uuid=gpu.uuid, index=gpu.index, **{**defaults, **gpu.info}) for gpu in self.gpus)
        host = HostInfo(
            "box",
            logical_cores=self.cores,
            physical_cores=self.cores,
            memory_total_bytes=64 * GIB,
            virtual_machine=self.virtual_machine,
        )
        return Machine(host=host, gpus=gpus)

    def samples(self, seconds: float, begin: float = 0.0) -> Iterator[Sample]:
        """Ticks of the scene's time (begin, begin + seconds]."""
        state = _Counters(self)
        state.advance(begin)
        rng = random.Random(7)
        number, t = 0, begin
        while t < begin + seconds - 1e-9:
            due = begin + (number + 1) * self.interval_s
            before, t = t, due + rng.uniform(-1, 1) * self.jitter * self.interval_s
            state.advance(t)
            yield self._sample(number, before, t, state)
            number += 1

    def _sample(self, number: int, before: float, t: float, state: "_Counters") -> Sample:
        now = self.start_s + t
        present = [process for process in self.processes if process.since <= t < process.until]
        return Sample(
            number=number,
            monotonic_s=now,
            wall_s=1.7e9 + t,
            interval_s=self.interval_s,
            duration_s=at(self.duration_s, t),
            hidden_processes=self.hidden_processes,
            driver=self.driver,
            gpus=tuple(self._gpu(gpu, before, t, state) for gpu in self.gpus),
            host=self._host(t, state),
            processes=tuple(self._process(process, t, state) for process in present),
            thread_bursts=tuple(
                self._thread_burst(process, before, t, state) for process in present if process.burst
            ),
            machine=self.machine() if number == 0 else None,
        )

    def _gpu(self, gpu: Gpu, before: float, t: float, state: "_Counters") -> GpuReading:
        now = self.start_s + t
        if gpu.status is not None and gpu.status(t) != GpuStatus():
            return GpuReading(gpu.uuid, gpu.index, now, gpu.status(t))
        step = 1 / self.burst_hz
        first, last = int(before * self.burst_hz + 1e-6) + 1, int(t * self.burst_hz + 1e-6)
        ends = [k * step for k in range(first, last + 1)]
        times = tuple(self.start_s + end for end in ends)

        def burst(wave: Wave) -> Burst:
            if not gpu.buffered:
                return Burst()
            return Burst(times, tuple(round(mean(wave, end - step, end), 2) for end in ends))

        fields: dict[str, Any] = {
            "memory_total_bytes": 24 * GIB,
            "memory_used_bytes": sum(memory for _, memory in gpu.pids) or GIB // 2,
            "power_limit_w": 350.0,
            "p_state": 2,
            "temperature_c": 65.0,
            "pcie_generation": 4,
            "pcie_width": 16,
            "fan_ratio": 0.6,
            "calls": 30,
        }
        fields.update(gpu.fields)
        fields = {key: value(t) if callable(value) else value for key, value in fields.items()}
        alive = [p.pid for p in self.processes if p.since <= t < p.until]
        known = {p.pid for p in self.processes}
        listed = tuple(
            GpuProcess(pid, "C", memory) for pid, memory in gpu.pids if pid in alive or pid not in known
        )
        fields.setdefault("processes", listed)
        return GpuReading(
            gpu.uuid,
            gpu.index,
            now,
            utilization_ratio=round(mean(gpu.util, t - step, t), 2),
            memory_utilization_ratio=round(mean(gpu.memory_util, t - step, t), 2),
            power_w=at(gpu.power, t),
            sm_clock_mhz=at(gpu.clock, t),
            event_reasons=gpu.reasons(t) if callable(gpu.reasons) else gpu.reasons,
            utilization_burst=burst(gpu.util),
            memory_utilization_burst=burst(gpu.memory_util),
            **fields,
        )

    def _host(self, t: float, state: "_Counters") -> HostReading:
        busy = state.busy_s
        total = self.cores * (self.start_s + t)
        pressures = {
            key: round(state.host_s.get(f"{key.removesuffix('_us')}_ratio", 0.0) * 1e6)
            for key in ("cpu_pressure_us", "io_pressure_us", "memory_pressure_us", "memory_full_pressure_us")
        }
        return HostReading(
            read_s=self.start_s + t,
            cpu=CpuTimes(busy, 0.0, total - busy - state.steal_s, 0.0, state.steal_s, total),
            core_ids=tuple(range(self.cores)),
            core_busy_s=tuple(busy / self.cores for _ in range(self.cores)),
            core_total_s=tuple(total / self.cores for _ in range(self.cores)),
            memory_total_bytes=64 * GIB,
            memory_available_bytes=50 * GIB,
            **pressures,
        )

    def _process(self, process: Process, t: float, state: "_Counters") -> ProcessReading:
        counters = state.processes[process.pid]
        owner = process.trainer_pid if process.trainer_pid is not None else process.pid
        start = next(
            (other.start_ticks for other in self.processes if other.pid == owner), process.start_ticks
        )
        has_trainer = process.role in (ProcessRole.TRAINER, ProcessRole.WORKER, ProcessRole.CHILD)
        main = ThreadReading(
            process.pid,
            process.name,
            process.state,
            round(counters.main_s * 1e9),
            round(counters.wait_s * 1e9),
        )
        others = tuple(
            ThreadReading(process.pid + 1 + i, name, "S") for i, name in enumerate(process.threads)
        )
        return ProcessReading(
            pid=process.pid,
            start_ticks=process.start_ticks,
            parent_pid=process.parent_pid if process.trainer_pid is None else owner,
            name=process.name,
            command=process.command,
            role=process.role,
            age_s=process.age_s + t,
            trainer=(owner, start) if has_trainer else None,
            user=process.user,
            uid=process.uid,
            state=process.state,
            cpu_ns=round(counters.cpu_s * 1e9),
            wait_ns=round(counters.wait_s * 1e9),
            major_faults=0,
            rss_bytes=GIB,
            read_bytes=round(counters.disk_read),
            write_bytes=round(counters.written),
            read_chars=round(counters.read),
            read_calls=round(counters.read / 1e5),
            group_id=process.group_id if process.group_id is not None else owner,
            session_id=process.session_id,
            usable_cores=process.usable_cores,
            affinity_cores=None if process.usable_cores is None else round(process.usable_cores),
            cgroup=process.cgroup(t) if callable(process.cgroup) else process.cgroup,
            threads=(main, *others),
            facts=process.facts,
            **process.extra,
        )

    def _thread_burst(self, process: Process, before: float, t: float, state: "_Counters") -> ThreadBurst:
        start = state.processes[process.pid].main_before_s
        wave = process.cpu if process.main is None else process.main
        times, ran = [], []
        count = 6
        for k in range(1, count + 1):
            until = before + (t - before) * k / count
            times.append(self.start_s + until)
            ran.append(round((start + mean(wave, before, until) * (until - before)) * 1e9))
        return ThreadBurst(
            (process.pid, process.start_ticks), process.pid, tuple(times), tuple(ran), (0,) * count
        )


@dataclass
class _ProcessCounters:
    cpu_s: float = 100.0
    main_s: float = 100.0
    main_before_s: float = 100.0
    wait_s: float = 0.0
    read: float = 0.0
    disk_read: float = 0.0
    written: float = 0.0


class _Counters:
    """Integrals of the scene's waveforms up to now."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.t = 0.0
        self.busy_s = 0.0
        self.steal_s = 0.0
        self.host_s: dict[str, float] = {}
        self.processes = {process.pid: _ProcessCounters() for process in scene.processes}

    def advance(self, t: float) -> None:
        before, step = self.t, t - self.t
        self.t = t
        if step <= 0:
            return
        used = mean(self.scene.other_cores, before, t)
        for process in self.scene.processes:
            counters = self.processes[process.pid]
            counters.main_before_s = counters.main_s
            if not process.since <= t < process.until:
                continue
            cpu = mean(process.cpu, before, t)
            main = cpu if process.main is None else mean(process.main, before, t)
            used += cpu
            counters.cpu_s += cpu * step
            counters.main_s += main * step
            counters.wait_s += mean(process.waits, before, t) * step
            counters.read += mean(process.reads, before, t) * step
            counters.disk_read += mean(process.disk_reads, before, t) * step
            counters.written += mean(process.writes, before, t) * step
        self.busy_s += min(self.scene.cores, used) * step
        self.steal_s += mean(self.scene.host.get("cpu_steal_ratio", 0.0), before, t) * self.scene.cores * step
        for key, wave in self.scene.host.items():
            self.host_s[key] = self.host_s.get(key, 0.0) + mean(wave, before, t) * step


class Bench:
    """Feeds samples to a history and an engine, and keeps the last of everything."""

    def __init__(self, engine: Any, interval_s: float = 1.0) -> None:
        self.engine = engine
        self.history = History(interval_s)
        self.machine: Machine | None = None
        self.diagnosis: Diagnosis | None = None
        self.log: list[Diagnosis] = []

    def feed(self, sample: Sample) -> Diagnosis:
        self.machine = sample.machine or self.machine
        self.history.append(sample)
        self.diagnosis = self.engine.evaluate(self.history, sample, self.machine)
        self.log.append(self.diagnosis)
        return self.diagnosis

    def run(self, scene: Scene, seconds: float, begin: float = 0.0) -> Diagnosis:
        for sample in scene.samples(seconds, begin):
            self.feed(sample)
        assert self.diagnosis is not None
        return self.diagnosis
