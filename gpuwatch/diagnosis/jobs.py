"""The job state of each GPU: which process trains here, and whether it may be judged yet.

A deterministic state machine fed by samples. Data and code rules run in STEADY only, because a
starting, compiling, pausing or serving process looks like a starved one.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from gpuwatch.model import (
    GpuProcess,
    GpuReading,
    JobState,
    JobStatus,
    ProcessKey,
    ProcessReading,
    ProcessRole,
    Sample,
)

#: A compute process below this holds a context at most (diagnosis §2, job state gate).
MIN_JOB_BYTES = 100 * 1024**2
#: A job older than this when we attach is judged at once; so is one whose work cannot be seen.
OLD_JOB_S = 120.0
STARTED_UTILIZATION, STARTED_S = 0.20, 10.0
WARMUP_S, COMPILING_MAX_S = 60.0, 600.0
EPISODE_UTILIZATION, EPISODE_S = 0.10, 5.0
PAUSED_UTILIZATION, PAUSED_S = 0.05, 120.0
#: The driver's process list may miss a tick; a job is gone after this.
GONE_S = 3.0
#: Stands for a job whose process nobody lists; presumed after so long a time of work without one.
UNSEEN_PID, UNLISTED_S = -1, 30.0
#: Process facts may come a few ticks after the first reading of the GPU.
ATTACH_S = 5.0

COMPILERS = frozenset({"ptxas", "cicc", "nvcc", "cc1plus", "cudafe++"})
_COMPILER_WORDS = ("compile_worker", "triton")
#: Arguments that tell one rank of a job from the next: its number, its card, its pipe to the parent.
_RANK_NUMBER = re.compile(
    r"((?<![a-z])(?:rank|device|gpu|cuda|node|fd|handle|proc|port|index|idx|id)"
    r"(?:[_-]?(?:rank|id|index|idx|num|no|fd|handle|port))?s?\W{1,3})\d+",
    re.IGNORECASE,
)
#: Launchers tell each process its rank: torchrun and its kin, Open MPI, MPICH, Slurm.
RANK_VARIABLES = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID")
_SERVERS = (
    *("vllm", "sglang", "tritonserver", "text-generation", "ollama", "uvicorn", "llama-server", "llama-box"),
    *("lmdeploy", "koboldcpp", "tabbyapi", "trtllm-serve", "text-embeddings", "infinity_emb", "torchserve"),
)


@dataclass(frozen=True, slots=True)
class Trainer:
    """The process whose job a GPU runs; `process` is None where only the driver sees it."""

    pid: int
    process: ProcessReading | None

    @property
    def key(self) -> ProcessKey | None:
        return None if self.process is None else self.process.key


def find_trainer(
    reading: GpuReading,
    by_pid: Mapping[int, ProcessReading],
    held_pid: int | None = None,
    chosen: Collection[int] | None = None,
) -> Trainer | None:
    """The compute process with most memory; never graphics and never the MPS server.

    `held_pid` stays unless another holds more than twice as much: two jobs of similar size must not
    take turns. `chosen` restricts it to these pids.
    """
    candidates = [
        entry
        for entry in reading.processes or ()
        if (chosen is None or entry.pid in chosen) and _computes(entry, by_pid)
    ]
    if not candidates:
        return None
    best = max(candidates, key=lambda entry: (entry.memory_bytes or 0, -entry.pid))
    for entry in candidates:
        if entry.pid == held_pid and (best.memory_bytes or 0) <= 2 * (entry.memory_bytes or 0):
            best = entry
    return Trainer(best.pid, by_pid.get(best.pid))


def _computes(entry: GpuProcess, by_pid: Mapping[int, ProcessReading]) -> bool:
    if "C" not in entry.kind or entry.kind == "MPS":
        return False
    process = by_pid.get(entry.pid)
    if process is not None and process.name.startswith("nvidia-cuda-mps"):
        return False
    if process is not None and process.role is ProcessRole.GRAPHICS:
        return False
    return entry.memory_bytes is None or entry.memory_bytes >= MIN_JOB_BYTES


def compiles(processes: Iterable[ProcessReading]) -> bool:
    """Whether any of these processes builds kernels."""
    return any(
        process.name in COMPILERS or any(word in process.command for word in _COMPILER_WORDS)
        for process in processes
    )


def serves(process: ProcessReading) -> bool:
    """Whether the program itself (not some argument of it) is an inference server."""
    words = process.command.split()[:6]
    programs = [process.name, *words[:1]]
    rest = words[1:]
    while rest:
        word = rest.pop(0)
        if word == "-m" and rest:
            programs.append(rest.pop(0))
            break
        if not word.startswith("-"):
            programs.append(word)
            break
    names = [re.split(r"[/\\]", program)[-1].lower() for program in programs]
    return any(name.startswith(_SERVERS) for name in names)


def job_group(process: ProcessReading) -> tuple[object, ...]:
    """Equal for the ranks of one job: same launcher and same command but for the numbers of ranks.

    Runs that differ in any other number are a sweep: jobs of their own. So are runs of one command that
    differ in the cards they may see only, unless a launcher numbered them.
    """
    command = _RANK_NUMBER.sub(r"\1#", process.command)
    launcher = process.parent_pid if process.parent_pid > 1 else process.group_id
    cards = _own_cards(process) if command == process.command else None
    return (launcher, command, cards)


def _own_cards(process: ProcessReading) -> str | None:
    """CUDA_VISIBLE_DEVICES of a process that no launcher gave a rank; None where that is not known."""
    environment = process.facts.environment if process.facts is not None else None
    if environment is None or any(name in environment for name in RANK_VARIABLES):
        return None
    return environment.get("CUDA_VISIBLE_DEVICES")


@dataclass(slots=True)
class JobTracker:
    """One GPU's state machine. `update` once per fresh reading, in order of time."""

    gpu: str
    status: JobStatus = field(init=False)
    trainer: Trainer | None = None
    attached_s: float | None = None  # the first reading of this GPU
    job_s: float = 0.0  # when this job was first seen
    steady_since_s: float | None = None
    _busy_s: float = 0.0  # with utilization at or above STARTED_UTILIZATION
    _warm_s: float = 0.0
    _low_since_s: float | None = None
    _near_zero_since_s: float | None = None
    _seen_s: float = float("-inf")
    _unlisted_s: float | None = None  # the GPU works, and no process is listed, since
    _last_s: float | None = None

    def __post_init__(self) -> None:
        self.status = JobStatus(self.gpu, JobState.NO_JOB, 0.0)

    @property
    def steady_s(self) -> float:
        """How long the job has been STEADY, episodes included, at the last update."""
        if self.steady_since_s is None or self._last_s is None:
            return 0.0
        return self._last_s - self.steady_since_s

    def update(
        self,
        sample: Sample,
        reading: GpuReading,
        utilization: float | None,
        by_pid: Mapping[int, ProcessReading],
    ) -> bool:
        """Take one tick; True when a new job began or the old one ended."""
        now = sample.monotonic_s
        step = 0.0 if self._last_s is None else max(0.0, now - self._last_s)
        self._last_s = now
        if self.attached_s is None:
            self.attached_s = now
            self.status = JobStatus(self.gpu, JobState.NO_JOB, now)
        held = self.trainer
        self.trainer = self._present_trainer(sample, reading, utilization, by_pid)
        changed = not _same_job(held, self.trainer)
        learned = not changed and held is not None and held.process is None and self.trainer != held
        if changed:
            self.job_s = now
        if changed or learned:
            self._begin(self.trainer, utilization, now)
        if self.trainer is not None:
            self._advance(self.trainer, sample, utilization, step, now)
        return changed

    def _present_trainer(
        self,
        sample: Sample,
        reading: GpuReading,
        utilization: float | None,
        by_pid: Mapping[int, ProcessReading],
    ) -> Trainer | None:
        held, now, chosen = self.trainer, sample.monotonic_s, sample.judged_pids
        if reading.processes is None:
            return held or (_presumed(utilization) if chosen is None else None)
        if not reading.processes and chosen is None and (held is None or held.pid == UNSEEN_PID):
            # Drivers leave out processes of other pid namespaces: a working GPU with an empty list.
            if held is not None:
                return None if self.status.state is JobState.PAUSED else held
            if utilization is None or utilization < STARTED_UTILIZATION:
                self._unlisted_s = None
            elif self._unlisted_s is None:
                self._unlisted_s = now
            seen_s = 0.0 if self._unlisted_s is None else now - self._unlisted_s
            return _presumed(utilization) if seen_s >= UNLISTED_S else None
        found = find_trainer(reading, by_pid, None if held is None else held.pid, chosen)
        lately = held is not None and now - self._seen_s <= GONE_S
        if found is None:
            return held if lately else None
        if found.process is None and held is not None and held.process is not None and held.pid == found.pid:
            return held if lately else found
        self._seen_s = now
        return found

    def _begin(self, trainer: Trainer | None, utilization: float | None, now: float) -> None:
        self._busy_s = 0.0
        self._low_since_s = self._near_zero_since_s = None
        self.steady_since_s = None
        if trainer is None:
            self._enter(JobState.NO_JOB, now)
            return
        process = trainer.process
        if process is not None and serves(process):
            self._enter(JobState.SERVING, now)
            return
        age = None if process is None else process.age_s
        at_attach = self.attached_s is not None and self.job_s - self.attached_s <= ATTACH_S
        if age is not None and age > OLD_JOB_S and (at_attach or utilization is None):
            self._enter(JobState.STEADY, now)
        else:
            self._enter(JobState.STARTING, now)

    def _advance(
        self, trainer: Trainer, sample: Sample, utilization: float | None, step: float, now: float
    ) -> None:
        state = self.status.state
        if state is JobState.STARTING:
            if utilization is not None and utilization >= STARTED_UTILIZATION:
                self._busy_s += step
            if self._busy_s >= STARTED_S:
                self._warm_s = now
                self._enter(JobState.WARMUP, now)
            elif utilization is None and now - self.job_s > OLD_JOB_S:
                self._enter(JobState.STEADY, now)
        elif state is JobState.WARMUP:
            self._warm_up(trainer, sample, now)
        elif state in (JobState.STEADY, JobState.EPISODE, JobState.PAUSED):
            self._follow_gaps(state, utilization, step, now)

    def _warm_up(self, trainer: Trainer, sample: Sample, now: float) -> None:
        warm = now - self._warm_s
        compiling = warm < COMPILING_MAX_S and compiles(_children(trainer, sample))
        if warm >= WARMUP_S and not compiling:
            self._enter(JobState.STEADY, now)
        else:
            self._set(JobState.WARMUP, None if compiling else max(0.0, WARMUP_S - warm))

    def _follow_gaps(self, state: JobState, utilization: float | None, step: float, now: float) -> None:
        if utilization is None:
            return
        if utilization >= EPISODE_UTILIZATION:
            self._low_since_s = self._near_zero_since_s = None
            if state is JobState.PAUSED:
                self.steady_since_s = None
            if state is not JobState.STEADY:
                self._enter(JobState.STEADY, now)
            return
        if self._low_since_s is None:
            self._low_since_s = now - step
        if utilization >= PAUSED_UTILIZATION:
            self._near_zero_since_s = None
        elif self._near_zero_since_s is None:
            self._near_zero_since_s = now - step
        if self._near_zero_since_s is not None and now - self._near_zero_since_s > PAUSED_S:
            self._enter(JobState.PAUSED, now)
        elif state is JobState.STEADY and now - self._low_since_s >= EPISODE_S:
            self._enter(JobState.EPISODE, now)

    @property
    def low_since_s(self) -> float | None:
        """Start of the present stretch of low utilization; None while the GPU works."""
        return self._low_since_s

    def _enter(self, state: JobState, now: float) -> None:
        if state is JobState.STEADY and self.steady_since_s is None:
            self.steady_since_s = now
        if state is not self.status.state or self.status.trainer != self._trainer_key():
            self.status = JobStatus(self.gpu, state, now, self._trainer_key())
        if state is JobState.WARMUP:
            self._set(state, WARMUP_S)

    def _set(self, state: JobState, remaining_s: float | None) -> None:
        self.status = JobStatus(self.gpu, state, self.status.since_s, self._trainer_key(), remaining_s)

    def _trainer_key(self) -> ProcessKey | None:
        return None if self.trainer is None else self.trainer.key


def _same_job(before: Trainer | None, after: Trainer | None) -> bool:
    """A process that was only a number until now stays the same job when its identity is read."""
    if before is None or after is None:
        return before is after
    if before.pid != after.pid:
        return False
    return before.process is None or after.process is None or before.process.key == after.process.key


def _presumed(utilization: float | None) -> Trainer | None:
    """No process is listed (no permission, MIG, WSL, a container): work is the only sign of a job."""
    return (
        Trainer(UNSEEN_PID, None) if utilization is not None and utilization >= STARTED_UTILIZATION else None
    )


def _children(trainer: Trainer, sample: Sample) -> list[ProcessReading]:
    key = trainer.key
    if key is None:
        return []
    return [process for process in sample.processes or () if process.trainer == key and process.key != key]
