"""Which descendants of a trainer are its data loader workers."""

from collections.abc import Iterable
from dataclasses import dataclass

from gpuwatch.model import ProcessRole

#: What PyTorch names the group leader of a worker process, as far as the kernel's 15 characters go:
#: pt_data_worker since 2.5 (pytorch#128448), pt_multiprocess_data_worker on the main branch.
_WORKER_NAMES = ("pt_data_worker", "pt_multiprocess")
_SPAWNED = ("multiprocessing.spawn import", "--multiprocessing-fork")
_FORKSERVER = "multiprocessing.forkserver import"
_NOT_WORKERS = ("resource_tracker", "semaphore_tracker", "compile_worker")


@dataclass(frozen=True, slots=True)
class Member:
    """A process of a job, as far as its role depends on it."""

    pid: int
    parent_pid: int
    name: str
    command: str


def is_worker_name(name: str) -> bool:
    return name.startswith(_WORKER_NAMES)


def assign_roles(trainer: Member, descendants: Iterable[Member]) -> dict[int, ProcessRole]:
    """WORKER or CHILD for every descendant.

    Where one process carries PyTorch's name, only those are workers. Older releases have no names:
    there a worker is a process with the trainer's own command line (fork), one that multiprocessing
    spawned, or a child of the fork server - and never multiprocessing's own helpers.
    """
    members = list(descendants)
    workers = {member.pid for member in members if is_worker_name(member.name)}
    if not workers:
        servers = {member.pid for member in members if _is_forkserver(member, trainer)}
        workers = {member.pid for member in members if _looks_like_worker(member, trainer, servers)}
    return {
        member.pid: ProcessRole.WORKER if member.pid in workers else ProcessRole.CHILD for member in members
    }


def _is_forkserver(member: Member, trainer: Member) -> bool:
    """The server is the trainer's child; what it forks keeps its command line."""
    return _FORKSERVER in member.command and member.parent_pid == trainer.pid


def _looks_like_worker(member: Member, trainer: Member, servers: set[int]) -> bool:
    if any(word in member.command for word in _NOT_WORKERS) or member.pid in servers:
        return False
    if member.parent_pid in servers:
        return True
    if member.parent_pid != trainer.pid:
        return False
    if any(word in member.command for word in _SPAWNED):
        return True
    return bool(member.command) and member.command == trainer.command
