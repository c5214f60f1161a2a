"""The processes of the simulated host that belong to no job, and what all processes are made of."""

import math
from dataclasses import dataclass, field

from gpuwatch.sources.simulated.loads import Load
from gpuwatch.sources.simulated.settings import Reader
from gpuwatch.sources.simulated.waveforms import Compiler
from gpuwatch.sources.simulated.waves import Wave, constant_wave

SHELL_PID = 3001
OWN_PID = 3050
_OTHERS_PID = 2801
QUIET = constant_wave(0.0)
#: What a process did before the scenario began is what it does in this time before it.
_TYPICAL_S = 30.0


@dataclass(slots=True, eq=False)
class SimulatedThread:
    """`share` of the load is this thread's; `blocked` is the share of time it waits for a disk."""

    tid: int
    name: str
    load: Load | None = None
    blocked: Wave | None = None


@dataclass(slots=True, eq=False)
class SimulatedProcess:
    """Lives from `start_s` to `end_s` (real seconds since the scenario's start; negative: before)."""

    pid: int
    parent: int
    name: str
    command: str
    user: str
    threads: list[SimulatedThread]
    start_s: float = -1800.0
    end_s: float = math.inf
    of_job: bool = False
    memory_bytes: int = 40 << 20
    system_ratio: float = 0.1
    read: Wave = QUIET  # bytes/s through read calls
    write: Wave = QUIET
    from_disk: Wave = QUIET  # bytes/s of them that the disk delivers
    libraries: str = ""  # words that stand for groups of libraries
    environment: str = ""
    files: list[str] = field(default_factory=list)
    mask: int | None = None
    node: int | None = None  # NUMA node its threads run on
    data: str = ""  # file system below /data
    session: int = 0


class Crowd:
    """A process table with what every machine runs, and who else is on this one."""

    def __init__(self, machine: Reader, compiler: Compiler) -> None:
        self._machine = machine
        self._compiler = compiler
        self._next = 0
        self.processes: list[SimulatedProcess] = []
        self.loads: list[Load] = []

    def _id(self) -> int:
        self._next += 1
        return self._next

    def _add(self, process: SimulatedProcess) -> None:
        self.processes.append(process)
        for thread in process.threads:
            if thread.load is not None and thread.load not in self.loads:
                self.loads.append(thread.load)

    def _background(self) -> None:
        """What every machine runs, and the watcher itself."""
        for pid, parent, name, command, user in (
            (1, 0, "systemd", "/sbin/init", "root"),
            (901, 1, "sshd", "sshd: /usr/sbin/sshd -D", "root"),
            (SHELL_PID, 901, "bash", "-bash", "demo"),
            (OWN_PID, SHELL_PID, "gpuwatch", "gpuwatch", "demo"),
        ):
            self._add(
                SimulatedProcess(pid, parent, name, command, user, [SimulatedThread(pid, name)], -86400.0)
            )

    def _thread(
        self,
        process: SimulatedProcess,
        tid: int,
        name: str,
        wave: Wave,
        settings: Reader | None = None,
        delay: str = "",
    ) -> SimulatedThread:
        return SimulatedThread(tid, name, self._load(process, wave, settings, delay, 1))

    def _load(
        self, process: SimulatedProcess, wave: Wave, settings: Reader | None, delay: str, count: int
    ) -> Load:
        waiting = settings.wave(delay, "0.2") if settings and delay else constant_wave(0.2)
        share = waiting.scaled(0.01)
        small = (wave.constant or 0.0) < 0.2 if wave.constant is not None else False
        lived_s = max(0.0, -process.start_s)
        before_s = wave.mean(-_TYPICAL_S, 0.0) * lived_s
        return Load(
            wave,
            count,
            share,
            of_job=process.of_job,
            spread=small or (wave.constant or 0.0) > 1,
            start_s=process.start_s if process.start_s > 0 else -math.inf,
            end_s=process.end_s,
            run_s=before_s,
            wait_s=before_s * share.mean(-_TYPICAL_S, 0.0),
        )

    def _extra(self, settings: Reader) -> None:
        pid = round(settings.number("pid", "0")) or self._id()
        name = settings.text("name", "python")
        process = SimulatedProcess(
            pid=pid,
            parent=round(settings.number("parent", "1")),
            name=name[:15],
            command=settings.text("cmd", name),
            user=settings.text("user", "demo"),
            threads=[],
            start_s=settings.number("start", "0")
            if settings.has("start")
            else -settings.number("age", "3600"),
            end_s=settings.number("end", "0") if settings.has("end") else math.inf,
            libraries=settings.text("maps", ""),
            environment=settings.text("env", ""),
        )
        load = Load(
            settings.wave("cpu", "0"),
            1,
            of_job=False,
            spread=True,
            start_s=process.start_s if process.start_s > 0 else -math.inf,
            end_s=process.end_s,
        )
        process.threads.append(SimulatedThread(pid, process.name, load))
        self._add(process)

    def _others(self) -> None:
        """One foreign process that keeps `others.cpu` cores busy."""
        if not self._machine.has("others.cpu"):
            return
        load = Load(self._machine.wave("others.cpu", "0"), 1, of_job=False, spread=True)
        threads = [SimulatedThread(_OTHERS_PID, "render", load)]
        command = "/opt/render/render --threads 0 scene.blend"
        self._add(SimulatedProcess(_OTHERS_PID, 1, "render", command, "alex", threads, -7200.0))

    def _orphans(self) -> None:
        """Workers that outlived their trainer and sleep on."""
        for _ in range(round(self._machine.number("orphans", "0"))):
            pid = self._id()
            threads = [SimulatedThread(pid, "pt_data_worker")]
            self._add(
                SimulatedProcess(
                    pid,
                    1,
                    "pt_data_worker",
                    "python train.py",
                    "demo",
                    threads,
                    memory_bytes=900 << 20,
                    libraries="torch PIL",
                )
            )
