"""All processes of the machine, seen once in ten seconds: who is whose child, who uses the CPU, and
which data loader workers are left over.

Reading every /proc/PID/stat costs 20 µs each, so a round is spread over the ticks. Kernel threads
(thousands on a big machine) are looked at again only now and then.
"""

import math
from dataclasses import dataclass

from gpuwatch.sources.host.text import TICKS_PER_S, UNREADABLE
from gpuwatch.sources.processes.roles import is_worker_name
from gpuwatch.sources.processes.stat import Brief, parse_brief
from gpuwatch.sources.tree import Tree

ROUND_S = 10.0
_MOST_PER_TICK = 100  # 2 ms; a machine with more than 1000 processes gets longer rounds
_KERNEL_ROUNDS = 6
#: Below this share of a core a process outside the job is not worth a row.
_HOG_CORES = 0.1
#: Who takes in orphans besides process 1: the user's own manager.
_USER_MANAGER = b"systemd"
#: In a container a training may be process 1 itself; its workers are no orphans.
_TRAINING = (b"python", b"pt_")


@dataclass(slots=True)
class _Entry:
    start_ticks: int
    parent_pid: int
    name: bytes
    kernel_thread: bool
    cpu_ticks: int
    read_s: float
    cores: float | None = None
    #: A worker that had the same parent one round ago: workers end within seconds after their trainer.
    stays: bool = False


class ProcessTable:
    """Parents and CPU use of every process; at most one round old."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._entries: dict[int, _Entry] = {}
        self._children: dict[int, list[int]] = {}
        self._hogs: list[int] = []
        self._orphans: list[int] = []
        self._queue: list[int] = []
        self._per_s = 0.0
        self._round = 0
        self._round_s: float | None = None
        self._last_s = 0.0

    def advance(self, now_s: float) -> None:
        """Do this tick's part of the round; the very first round is done at once."""
        first = self._round_s is None
        if first or (not self._queue and now_s - (self._round_s or 0.0) >= ROUND_S):
            self._begin(now_s)
        part = len(self._queue)
        if not first:
            wanted = math.ceil(self._per_s * max(0.0, now_s - self._last_s))
            part = min(part, wanted, _MOST_PER_TICK)
        self._last_s = now_s
        if not self._queue:
            return
        for _ in range(part):
            self._look(self._queue.pop(), now_s)
        if not self._queue:
            self._finish()

    def children(self, pid: int) -> list[int]:
        return self._children.get(pid, [])

    def hogs(self) -> list[int]:
        """Processes that use a tenth of a core or more, the busiest first."""
        return self._hogs

    def cores(self, pid: int) -> float:
        """CPU use of a process in the last round, in cores; 0 while it is not known."""
        entry = self._entries.get(pid)
        return 0.0 if entry is None or entry.cores is None else entry.cores

    def orphans(self) -> list[int]:
        """Data loader workers whose trainer is gone for a round or longer, lowest pid first."""
        return self._orphans

    def _begin(self, now_s: float) -> None:
        self._round_s = now_s
        self._round += 1
        try:
            pids = [int(name) for name in self._tree.list("/proc") if name.isdigit()]
        except OSError:
            pids = []
        alive = set(pids)
        self._entries = {pid: entry for pid, entry in self._entries.items() if pid in alive}
        if self._round % _KERNEL_ROUNDS:
            pids = [pid for pid in pids if not self._is_kernel(pid)]
        self._queue = pids
        self._per_s = len(pids) / ROUND_S

    def _is_kernel(self, pid: int) -> bool:
        entry = self._entries.get(pid)
        return entry is not None and entry.kernel_thread

    def _look(self, pid: int, now_s: float) -> None:
        try:
            stat = parse_brief(self._tree.read(f"/proc/{pid}/stat"))
        except UNREADABLE:
            self._entries.pop(pid, None)
            return
        before = self._entries.get(pid)
        self._entries[pid] = _Entry(
            stat.start_ticks,
            stat.parent_pid,
            stat.name,
            stat.kernel_thread,
            stat.cpu_ticks,
            now_s,
            _cores(before, stat, now_s),
            stays=_is_worker(stat.name)
            and before is not None
            and (before.start_ticks, before.parent_pid) == (stat.start_ticks, stat.parent_pid),
        )

    def _finish(self) -> None:
        children: dict[int, list[int]] = {}
        busy = []
        for pid, entry in self._entries.items():
            if entry.kernel_thread:
                continue
            children.setdefault(entry.parent_pid, []).append(pid)
            if entry.cores is not None and entry.cores >= _HOG_CORES:
                busy.append((entry.cores, pid))
        self._children = children
        self._hogs = [pid for _, pid in sorted(busy, reverse=True)]
        self._orphans = sorted(
            pid for pid, entry in self._entries.items() if entry.stays and self._adopted(entry.parent_pid)
        )

    def _adopted(self, parent_pid: int) -> bool:
        parent = self._entries.get(parent_pid)
        if parent_pid == 1:
            return parent is None or not parent.name.startswith(_TRAINING)
        return parent is not None and parent.name == _USER_MANAGER


def _is_worker(name: bytes) -> bool:
    return name.startswith(b"pt_") and is_worker_name(name.decode("ascii", "replace"))


def _cores(before: _Entry | None, stat: Brief, now_s: float) -> float | None:
    """Mean CPU use since the last look; None for a new process or after a counter ran backwards."""
    if before is None or before.start_ticks != stat.start_ticks or now_s <= before.read_s:
        return None
    ticks = stat.cpu_ticks - before.cpu_ticks
    return ticks / TICKS_PER_S / (now_s - before.read_s) if ticks >= 0 else None
