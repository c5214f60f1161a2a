"""The jobs of the simulated host: trainers with their threads and workers."""

import math
from dataclasses import replace

from gpuwatch.sources.simulated.crowd import (
    QUIET,
    SHELL_PID,
    Crowd,
    SimulatedProcess,
    SimulatedThread,
)
from gpuwatch.sources.simulated.gpu import SimulatedGpu
from gpuwatch.sources.simulated.language import ScenarioError
from gpuwatch.sources.simulated.parse_values import parse_expression
from gpuwatch.sources.simulated.processes import ProcessTable
from gpuwatch.sources.simulated.scenario import COMPUTE, MPS, ProcessPlan, Settings
from gpuwatch.sources.simulated.settings import Reader
from gpuwatch.sources.simulated.waveforms import Compiler
from gpuwatch.sources.simulated.waves import Wave, constant_wave

#: A CPU waits for its GPU by spinning, so the main thread is busy whenever the GPU is.
_SPIN = "if(util > 5, 1, 0.03)"
#: Workers are replaced for this long at most.
_LONGEST_S = 1800.0


class Builder(Crowd):
    """Makes the process table of a scenario's host."""

    def __init__(self, table: ProcessTable, gpus: list[SimulatedGpu], machine: Reader, compiler: Compiler):
        super().__init__(machine, compiler)
        self._table = table
        self._gpus = gpus
        self._shells = {"demo": SHELL_PID}
        self._launchers: dict[str, int] = {}
        self._ranks: dict[str, int] = {}
        self._world: dict[str, int] = {}
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
        self._world = {user: len(found) for user, found in cards.items()}
        for (pid, plan, gpu), settings in zip(trainers, readers, strict=True):
            # One user's processes on several cards are the ranks of one job.
            ranks = len(cards.get(settings.text("user", "demo"), ())) > 1
            self._gpu_process(pid, plan, gpu, settings, ranks)
        for extra in extras:
            self._extra(Reader(extra, self._compiler))
        self._others()
        self._orphans()

    def _pids(self, plan: ProcessPlan) -> list[tuple[int, ProcessPlan, SimulatedGpu]]:
        """One entry per process; a process on several GPUs belongs to the first of them."""
        found: dict[int, tuple[int, ProcessPlan, SimulatedGpu]] = {}
        for gpu in self._gpus:
            if gpu.index in plan.gpus and not _is_live(plan):
                for pid in self._table.pids(plan, gpu, 0.0):
                    found.setdefault(pid, (pid, plan, gpu))
        return list(found.values())

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
        self._compilers(trainer, settings.text("compile", ""))

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
        above = self._launcher(user, shell) if ranks else shell
        libraries = settings.text("maps", "torch PIL")
        trainer = SimulatedProcess(
            pid=pid,
            parent=self._wrapper(settings.text("wrapper", ""), user, above),
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
            write=settings.wave("main.write", "0"),
            libraries=libraries if "torch-cpu" in libraries.split() else libraries + " cuda",
            environment=settings.text("env", "") + (self._rank(user) if ranks else ""),
            mask=mask,
            node=round(settings.number("node", "-1")) if settings.has("node") else None,
            data=settings.text("data", ""),
            session=shell,
        )
        main = self._thread(
            trainer, pid, trainer.name, settings.wave("main.cpu", _SPIN), settings, "main.delay"
        )
        main.blocked = self._blocked(settings, "main.state")
        trainer.threads.append(main)
        for thread in self._more_threads(trainer, settings):
            trainer.threads.append(thread)
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
        for start_s, end_s in _generations(settings):
            born = replace(
                trainer, start_s=max(trainer.start_s + 4.0, start_s), end_s=min(trainer.end_s, end_s)
            )
            self._generation(trainer, born, settings, name, count)

    def _generation(
        self, trainer: SimulatedProcess, born: SimulatedProcess, settings: Reader, name: str, count: int
    ) -> None:
        """`count` workers that live as long as `born`."""
        extra = round(settings.number("threads", "0"))
        wave = settings.wave("w.cpu", "0.25")
        shared = self._load(born, wave, settings, "w.delay", count)
        more = self._load(born, wave, settings, "w.delay", count * extra) if extra else None
        if settings.has("w.respawn"):  # they use the same cores one after the other
            shared.spread = True
        blocked = self._blocked(settings, "w.state")
        for place in range(count):
            pid = self._id()
            threads = [SimulatedThread(pid, name, shared, blocked)]
            threads += [SimulatedThread(self._id(), name, more) for _ in range(extra)]
            worker = replace(
                born,
                pid=pid,
                parent=trainer.pid,
                name=name,
                threads=threads,
                memory_bytes=900 << 20,
                read=settings.wave("w.read", "2M"),
                write=QUIET,
                libraries=trainer.libraries.replace(" cuda", ""),
                files=[f"/data/{trainer.pid}/train/{place:05d}.tar"],
            )
            self._add(worker)

    def _more_threads(self, trainer: SimulatedProcess, settings: Reader) -> list[SimulatedThread]:
        """A reader's own threads, as frameworks that load without worker processes have them."""
        count = round(settings.number("main.threads", "0"))
        if not count:
            return []
        load = self._load(trainer, settings.wave("main.thread.cpu", "0.9"), settings, "w.delay", count)
        name = settings.text("main.thread.name", trainer.name)
        return [SimulatedThread(self._id(), name, load) for _ in range(count)]

    def _rank(self, user: str) -> str:
        """The variables a launcher gives to each process of a job on several GPUs."""
        rank = self._ranks[user] = self._ranks.get(user, -1) + 1
        return f" RANK={rank} LOCAL_RANK={rank} WORLD_SIZE={self._world.get(user, 1)}"

    def _wrapper(self, command: str, user: str, parent: int) -> int:
        """The process a trainer was started under; its parent where there is none."""
        if not command:
            return parent
        pid, name = self._id(), command.split()[0].rpartition("/")[2][:15]
        threads = [SimulatedThread(pid, name)]
        self._add(SimulatedProcess(pid, parent, name, command, user, threads, session=parent))
        return pid

    def _compilers(self, trainer: SimulatedProcess, span: str) -> None:
        if not span:
            return
        start, _, end = span.partition("..")
        life = replace(trainer, start_s=float(start), end_s=float(end))
        for _ in range(4):
            pid = self._id()
            load = self._load(life, constant_wave(0.9), None, "", 1)
            load.spread = True
            self._add(
                replace(
                    life,
                    pid=pid,
                    parent=trainer.pid,
                    name="ptxas",
                    command="ptxas -O3 kernel.ptx",
                    threads=[SimulatedThread(pid, "ptxas", load)],
                    memory_bytes=80 << 20,
                    read=QUIET,
                    libraries="",
                    files=[],
                )
            )

    def _blocked(self, settings: Reader, key: str) -> Wave | None:
        """`D 60 %` as a share."""
        words = settings.text(key, "").split(None, 1)
        if len(words) != 2 or words[0] != "D":
            return None
        node, _ = parse_expression(words[1].replace("%", ""))
        return constant_wave(self._compiler.wave(node).at(0.0) / 100)


def _generations(settings: Reader) -> list[tuple[float, float]]:
    """(start, end) of each set of workers, in seconds since the scenario's start."""
    if not settings.has("w.respawn"):
        return [(-math.inf, math.inf)]
    length = max(1.0, settings.number("w.respawn", "60"))
    pause = settings.number("w.pause", "1")
    starts = [length * n for n in range(math.ceil(_LONGEST_S / length))]
    return [(-math.inf, -pause), *((start, start + length - pause) for start in starts)]


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
