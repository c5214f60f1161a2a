"""The processes of the simulated host: trainers with their threads and workers, and everybody else."""

import math
from dataclasses import dataclass, field, replace

from gpuwatch.sources.simulated.gpu import SimulatedGpu
from gpuwatch.sources.simulated.language import ScenarioError
from gpuwatch.sources.simulated.loads import Load
from gpuwatch.sources.simulated.parse_values import parse_expression
from gpuwatch.sources.simulated.processes import ProcessTable
from gpuwatch.sources.simulated.scenario import COMPUTE, MPS, ProcessPlan, Settings
from gpuwatch.sources.simulated.settings import Reader
from gpuwatch.sources.simulated.waveforms import Compiler
from gpuwatch.sources.simulated.waves import Wave, constant_wave

SHELL_PID = 3001
OWN_PID = 3050
_OTHERS_PID = 2801
#: A CPU waits for its GPU by spinning, so the main thread is busy whenever the GPU is.
_SPIN = "if(util > 5, 1, 0.03)"
_QUIET = constant_wave(0.0)
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
    read: Wave = _QUIET  # bytes/s through read calls
    from_disk: Wave = _QUIET  # bytes/s of them that the disk delivers
    libraries: str = ""  # words that stand for groups of libraries
    environment: str = ""
    files: list[str] = field(default_factory=list)
    mask: int | None = None
    session: int = 0


class Builder:
    """Makes the process table of a scenario's host."""

    def __init__(self, table: ProcessTable, gpus: list[SimulatedGpu], machine: Reader, compiler: Compiler):
        self._table = table
        self._gpus = gpus
        self._machine = machine
        self._compiler = compiler
        self._next = 0
        self._shells = {"demo": SHELL_PID}
        self._launchers: dict[str, int] = {}
        self.processes: list[SimulatedProcess] = []
        self.loads: list[Load] = []
        self.mask: int | None = None

    def build(self, jobs: dict[int, Settings], extras: list[Settings]) -> None:
        trainers = [found for plan in self._table.plans for found in self._pids(plan)]
        self._next = max([4000, *(pid for pid, _, _ in trainers)]) + 100
        self._background()
        readers = [
            Reader({**jobs.get(gpu.index, {}), **plan.host}, gpu.compiler) for _, plan, gpu in trainers
        ]
        cards: dict[str, set[int]] = {}
        for (_, plan, gpu), settings in zip(trainers, readers, strict=True):
            if plan.kinds & (COMPUTE | MPS):
                cards.setdefault(settings.text("user", "demo"), set()).add(gpu.index)
        for (pid, plan, gpu), settings in zip(trainers, readers, strict=True):
            # One user's processes on several cards are the ranks of one job.
            ranks = len(cards.get(settings.text("user", "demo"), ())) > 1
            self._gpu_process(pid, plan, gpu, settings, ranks)
        for extra in extras:
            self._extra(Reader(extra, self._compiler))
        self._others()

    def _pids(self, plan: ProcessPlan) -> list[tuple[int, ProcessPlan, SimulatedGpu]]:
        """One entry per process; a process on several GPUs belongs to the first of them."""
        found: dict[int, tuple[int, ProcessPlan, SimulatedGpu]] = {}
        for gpu in self._gpus:
            if gpu.index in plan.gpus and not _is_live(plan):
                for pid in self._table.pids(plan, gpu, 0.0):
                    found.setdefault(pid, (pid, plan, gpu))
        return list(found.values())

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

    def _gpu_process(
        self, pid: int, plan: ProcessPlan, gpu: SimulatedGpu, settings: Reader, ranks: bool
    ) -> None:
        if not plan.kinds & (COMPUTE | MPS):
            name = settings.text("name", "Xorg")
            process = SimulatedProcess(
                pid, 1, name, settings.text("cmd", f"/usr/lib/xorg/{name}"), settings.text("user", "root"), []
            )
            process.threads.append(self._thread(process, pid, name, settings.wave("main.cpu", "0.02")))
            self._add(process)
            return
        workers = max(0, round(settings.number("W", "4")))
        trainer = self._trainer(pid, plan, gpu, settings, workers, ranks)
        self._add(trainer)
        self._workers(trainer, settings, workers)

    def _trainer(
        self, pid: int, plan: ProcessPlan, gpu: SimulatedGpu, settings: Reader, workers: int, ranks: bool
    ) -> SimulatedProcess:
        named = settings.on("names", True)
        age_s = settings.number("age", "1800")
        mask = round(settings.number("mask", "0")) or None
        self.mask = mask or self.mask
        memory = gpu.compiler.wave(plan.memory).at(0.0) if plan.memory else 0.0
        user = settings.text("user", "demo")
        shell = self._shell(user)
        trainer = SimulatedProcess(
            pid=pid,
            parent=self._launcher(user, shell) if ranks else shell,
            name=settings.text("name", "python"),
            command=settings.text("cmd", "python train.py"),
            user=user,
            threads=[],
            start_s=plan.start_s if plan.start_s > -math.inf else -age_s,
            end_s=plan.end_s,
            of_job=True,
            memory_bytes=int((3 << 30) + memory * 0.05),
            system_ratio=settings.number("sys", "0.1"),
            read=settings.wave("main.read", "0"),
            libraries=settings.text("maps", "torch PIL") + " cuda",
            environment=settings.text("env", ""),
            mask=mask,
            session=shell,
        )
        main = self._thread(
            trainer, pid, trainer.name, settings.wave("main.cpu", _SPIN), settings, "main.delay"
        )
        trainer.threads.append(main)
        if workers and settings.on("pin", True):
            name = "pt_data_pin" if named else trainer.name
            trainer.threads.append(self._thread(trainer, self._id(), name, constant_wave(0.03)))
        for name, cores in (("pt_autograd_0", 0.05), ("cuda-EvtHandlr", 0.0)):
            shown = name if named or name.startswith("cuda") else trainer.name
            trainer.threads.append(self._thread(trainer, self._id(), shown, constant_wave(cores)))
        if ranks:
            for name in ("pt_nccl_watchdg", "pt_nccl_heartbt"):
                trainer.threads.append(self._thread(trainer, self._id(), name, constant_wave(0.0)))
        trainer.files = [f"/data/{trainer.pid}/train/{n:05d}.tar" for n in range(3)] if not workers else []
        return trainer

    def _shell(self, user: str) -> int:
        """Everybody works in a session of their own."""
        if user not in self._shells:
            pid = self._id()
            self._shells[user] = pid
            self._add(
                SimulatedProcess(pid, 901, "bash", "-bash", user, [SimulatedThread(pid, "bash")], -86400.0)
            )
        return self._shells[user]

    def _launcher(self, user: str, shell: int) -> int:
        """The parent of the ranks of a job on several GPUs."""
        if user not in self._launchers:
            pid = self._launchers[user] = self._id()
            threads = [SimulatedThread(pid, "pt_elastic")]
            command = "/usr/bin/python3 /usr/bin/torchrun --nproc-per-node=gpu train.py"
            self._add(SimulatedProcess(pid, shell, "pt_elastic", command, user, threads, session=shell))
        return self._launchers[user]

    def _workers(self, trainer: SimulatedProcess, settings: Reader, count: int) -> None:
        if not count:
            return
        named = settings.on("names", True)
        name = settings.text("w.name", "pt_data_worker" if named else trainer.name)
        extra = round(settings.number("threads", "0"))
        wave = settings.wave("w.cpu", "0.25")
        shared = self._load(trainer, wave, settings, "w.delay", count)
        more = self._load(trainer, wave, settings, "w.delay", count * extra) if extra else None
        blocked = self._blocked(settings)
        for place in range(count):
            pid = self._id()
            threads = [SimulatedThread(pid, name, shared, blocked)]
            threads += [SimulatedThread(self._id(), name, more) for _ in range(extra)]
            worker = replace(
                trainer,
                pid=pid,
                parent=trainer.pid,
                name=name,
                threads=threads,
                start_s=trainer.start_s + 4.0,
                memory_bytes=900 << 20,
                read=settings.wave("w.read", "2M"),
                libraries=trainer.libraries.replace(" cuda", ""),
                files=[f"/data/{trainer.pid}/train/{place:05d}.tar"],
            )
            self._add(worker)

    def _blocked(self, settings: Reader) -> Wave | None:
        """`w.state = D 60 %` as a share."""
        words = settings.text("w.state", "").split(None, 1)
        if len(words) != 2 or words[0] != "D":
            return None
        node, _ = parse_expression(words[1].replace("%", ""))
        return constant_wave(self._compiler.wave(node).at(0.0) / 100)

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
            start_s=-settings.number("age", "3600"),
        )
        load = Load(settings.wave("cpu", "0"), 1, of_job=False, spread=True)
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


def _is_live(plan: ProcessPlan) -> bool:
    """A pid that a real process gives has no place on a simulated host."""
    return not isinstance(plan.pid, int | str) and "busy" in repr(plan.pid)


def check(scenario_file: str, processes: list[SimulatedProcess]) -> None:
    """ScenarioError where two processes have one pid."""
    seen: set[int] = set()
    for process in processes:
        if process.pid in seen:
            raise ScenarioError(f"two processes with pid {process.pid}", scenario_file)
        seen.add(process.pid)
