"""R12: a process outside the job uses this card too."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from gpuwatch.clean import clean
from gpuwatch.diagnosis.interface import Abstain, Clear, Fires, Outcome
from gpuwatch.diagnosis.rules.common import missing
from gpuwatch.diagnosis.window import Window
from gpuwatch.model import (
    Confidence,
    Evidence,
    GpuProcess,
    Kind,
    ProcessKey,
    ProcessReading,
    ProcessRole,
    Severity,
)

#: The driver's samples name one process each, so a share needs half a minute of them.
SHARE_S, LEAST_S = 60.0, 30.0
ENTER_RATIO, EXIT_RATIO, CRITICAL_RATIO = 0.10, 0.05, 0.35
#: Holds memory without working.
MEMORY_RATIO, QUIET_RATIO = 0.10, 0.03


@dataclass(frozen=True, slots=True)
class _Guest:
    """A foreign process with its mean share of the SMs; `process` None: not visible from here."""

    entry: GpuProcess
    process: ProcessReading | None
    share: float | None
    seconds: float


def gpu_shared(window: Window, active: bool) -> Outcome:
    """Fires for a foreign process with a tenth of the SMs, or of the memory."""
    reading = window.reading
    if reading is None or reading.processes is None:
        return missing(window, "processes")
    if window.job is None:
        return Abstain("the job's process cannot be seen, so nobody else can be told from it")
    trainer = window.job.trainer
    trainers = {trainer.key, *(w.job.trainer.key for w in window.siblings if w.job is not None)}
    guests = []
    for entry in reading.processes:
        process = window.by_pid.get(entry.pid)
        if not _of_family(entry, process, trainers) and not _harmless(window, entry, process, trainer):
            guests.append(_guest(window, entry, process))
    if not guests:
        mps = any(entry.kind == "MPS" for entry in reading.processes)
        return Clear("shared on purpose through MPS" if mps else "nobody else on the card")
    known = [guest for guest in guests if guest.share is not None and guest.seconds >= LEAST_S]
    share = sum(guest.share or 0.0 for guest in known)
    if share >= (EXIT_RATIO if active else ENTER_RATIO):
        return _working(window, trainer, known, share)
    holding = [guest for guest in guests if _holds(window, guest)]
    if holding:
        return _resting(window, holding)
    if len(known) < len(guests) and any(guest.process is not None for guest in guests):
        return Abstain("watching how much the others use", seconds_left=LEAST_S)
    return Clear("others on the card are idle")


def _of_family(entry: GpuProcess, process: ProcessReading | None, trainers: Collection[ProcessKey]) -> bool:
    """Of the job, or of its ranks on other cards."""
    if process is None:
        return any(entry.pid == key[0] for key in trainers)
    return process.key in trainers or process.trainer in trainers


def _harmless(
    window: Window, entry: GpuProcess, process: ProcessReading | None, trainer: ProcessReading
) -> bool:
    """The driver's MPS server, an entry of a process that has ended, and what belongs to the job."""
    if entry.kind == "MPS":
        return True
    if process is None:
        return window.sample.hidden_processes == 0
    if process.name.startswith("nvidia-cuda-mps"):
        return True
    if process.role is ProcessRole.GRAPHICS:
        return False
    together = process.group_id is not None and process.group_id == trainer.group_id
    same_session = process.session_id is not None and process.session_id == trainer.session_id
    same_launcher = process.parent_pid > 1 and process.parent_pid == trainer.parent_pid
    return together or same_session or same_launcher or _same_container(process, trainer)


def _same_container(process: ProcessReading, trainer: ProcessReading) -> bool:
    """Also the same job of a batch system: both give each its own control group."""
    if process.cgroup is None or trainer.cgroup is None:
        return False
    path = process.cgroup.path
    names = ("docker", "kubepods", "libpod", "containerd", "slurm", "/job_", "lxc")
    return path == trainer.cgroup.path and any(name in path for name in names)


def _guest(window: Window, entry: GpuProcess, process: ProcessReading | None) -> _Guest:
    if process is None:
        return _Guest(entry, None, None, 0.0)
    values = window.history.present(f"process:{process.pid}:{process.start_ticks}", "sm_ratio", SHARE_S)
    share = sum(values) / len(values) if values else None
    return _Guest(entry, process, share, len(values) * window.sample.interval_s)


def _holds(window: Window, guest: _Guest) -> bool:
    total = window.reading.memory_total_bytes if window.reading is not None else None
    memory = guest.entry.memory_bytes
    if not total or memory is None or memory < MEMORY_RATIO * total:
        return False
    return guest.share is None or guest.share < QUIET_RATIO


def _working(window: Window, trainer: ProcessReading, guests: Iterable[_Guest], share: float) -> Fires:
    own_values = window.history.present(f"process:{trainer.pid}:{trainer.start_ticks}", "sm_ratio", SHARE_S)
    own = sum(own_values) / len(own_values) if own_values else None
    busy = window.mean("utilization_ratio", SHARE_S)
    lost = None
    if own is not None and busy is not None and share + own > 0:
        lost = busy * share / (share + own)
    worst = max(guests, key=lambda guest: guest.share or 0.0)
    evidence = (
        Evidence("foreign_sm_ratio", "others' share of the SMs", share, "ratio", ">= 10 %", SHARE_S),
        Evidence("own_sm_ratio", "the job's own share", own, "ratio", "", SHARE_S),
        *_identity(worst),
        Evidence("samples_s", "seen for", worst.seconds, "s", ">= 30 s"),
    )
    return Fires(
        confidence=Confidence.LIKELY,
        evidence=evidence,
        severity=Severity.CRITICAL if share >= CRITICAL_RATIO else Severity.WARNING,
        share_ratio=lost,
        variant="display" if _is_graphics(worst) else "",
        parameters={"share": share, **_names(worst)},
    )


def _resting(window: Window, guests: list[_Guest]) -> Fires:
    worst = max(guests, key=lambda guest: guest.entry.memory_bytes or 0)
    return Fires(
        confidence=Confidence.LIKELY if worst.process is not None else Confidence.POSSIBLE,
        evidence=_identity(worst),
        severity=Severity.NOTICE,
        kind=Kind.OPPORTUNITY,
        variant="memory" if worst.process is not None else "hidden",
        parameters=_names(worst),
    )


def _is_graphics(guest: _Guest) -> bool:
    return guest.process is not None and guest.process.role is ProcessRole.GRAPHICS


def _identity(guest: _Guest) -> tuple[Evidence, ...]:
    process = guest.process
    found = [Evidence("pid", "process", float(guest.entry.pid))]
    if process is not None:
        found.append(Evidence("command", "command", clean(process.command or process.name)))
        found.append(Evidence("user", "user", None if process.user is None else clean(process.user)))
    if guest.entry.memory_bytes is not None:
        found.append(Evidence("memory_bytes", "its memory", float(guest.entry.memory_bytes), "B"))
    return tuple(found)


def _names(guest: _Guest) -> dict[str, float | str]:
    process = guest.process
    named: dict[str, float | str] = {"pid": float(guest.entry.pid)}
    if process is not None:
        named["command"] = clean(process.command or process.name)
        if process.user is not None:
            named["user"] = clean(process.user)
    if guest.entry.memory_bytes is not None:
        named["memory_bytes"] = float(guest.entry.memory_bytes)
    return named
