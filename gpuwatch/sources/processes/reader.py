"""Processes once per tick: trainers with their descendants, workers left over, and who else uses the CPU."""

import mmap
from collections.abc import Callable, Iterable, Mapping

from gpuwatch.model import ProcessKey, ProcessReading, ProcessRole
from gpuwatch.sources.base import Clock
from gpuwatch.sources.host.text import UNREADABLE, number_after
from gpuwatch.sources.processes.datafiles import DataFiles
from gpuwatch.sources.processes.facts import next_look_s, read_facts
from gpuwatch.sources.processes.family import FamilyTree, roots
from gpuwatch.sources.processes.followed import Followed, Surroundings, ended
from gpuwatch.sources.processes.roles import Member, assign_roles, is_worker_name
from gpuwatch.sources.processes.stat import Stat, parse_stat
from gpuwatch.sources.processes.table import ProcessTable
from gpuwatch.sources.processes.users import UserNames, system_user
from gpuwatch.sources.processes.visibility import Visibility
from gpuwatch.sources.tree import Tree, repeated

#: Rows for processes outside the job.
MOST_OTHERS = 3
MOST_ORPHANS = 16
#: A stranger that uses a whole core may be a training that missed its GPU: its libraries are looked at.
#: A little below 1, because a single thread never measures quite that.
_FACTS_CORES = 0.9
#: Unnamed threads of all trainers together that are looked at per tick.
_SCAN_THREADS = 24
#: Desktop programs that show up with a compute context of their own (C+G).
_DESKTOP = frozenset(
    {"Xorg", "Xwayland", "gnome-shell", "kwin_wayland", "kwin_x11", "plasmashell", "sway", "mutter", "weston"}
)


class ProcessReader:
    """Never raises for what the machine does. Used from one thread.

    `page_bytes`: size of a memory page of the machine whose tree this is. `resolve_user` names a uid
    that the tree's /etc/passwd does not have.
    """

    def __init__(
        self,
        tree: Tree,
        clock: Clock,
        page_bytes: int = mmap.PAGESIZE,
        resolve_user: Callable[[int], str | None] = system_user,
    ) -> None:
        self._tree = tree
        self._again = repeated(tree)
        self._clock = clock
        self._around = Surroundings(tree, UserNames(tree, resolve_user), page_bytes)
        self._table = ProcessTable(tree)
        self._family = FamilyTree(tree, self._table)
        self._visibility = Visibility(tree)
        self._data = DataFiles(tree)
        self._followed: dict[int, Followed] = {}
        self._stats: dict[int, Stat | None] = {}
        self._ended: set[int] = set()
        self._own_pid = _own_pid(tree)
        self._boot_s: float | None = None

    def read(self, gpu_processes: Mapping[int, str], now_s: float) -> tuple[tuple[ProcessReading, ...], int]:
        """(readings, number of listed processes that cannot be seen from here).

        `gpu_processes`: the driver's pids with their kind, "C", "G", "C+G" or "MPS". Order of the
        readings: each trainer followed by its descendants, then graphics, orphans, and others, busiest first.
        """
        self._stats.clear()
        self._table.advance(now_s)
        uptime_s = self._uptime()
        alive, gone, hidden = self._sort_out(gpu_processes, now_s)
        graphics = [pid for pid in alive if self._is_graphics(pid, gpu_processes[pid])]
        trainers = roots((pid for pid in alive if pid not in graphics), self._stat)
        readings: list[ProcessReading] = []
        scan = max(4, _SCAN_THREADS // max(1, len(trainers)))
        for trainer in trainers:
            readings += self._read_job(trainer, set(trainers), uptime_s, now_s, scan)
        job = {reading.pid for reading in readings}
        for pid in graphics:
            readings += self._read_one(pid, ProcessRole.GRAPHICS, None, uptime_s, now_s)
        taken = job | set(graphics)
        orphans = self._orphans(taken)
        for pid in orphans:
            readings += self._read_one(pid, ProcessRole.ORPHAN, None, uptime_s, now_s)
        for pid in self._others(taken | set(orphans)):
            readings += self._read_one(pid, ProcessRole.OTHER, None, uptime_s, now_s)
        present = {reading.pid for reading in readings}
        self._followed = {pid: one for pid, one in self._followed.items() if pid in present}
        self._read_facts(now_s)
        self._look_for_data(readings, now_s)
        return (*readings, *gone), hidden

    def _sort_out(
        self, gpu_processes: Mapping[int, str], now_s: float
    ) -> tuple[list[int], list[ProcessReading], int]:
        """Living pids, rows for the just ended, and the number of pids that mean nothing here."""
        alive: list[int] = []
        gone: list[ProcessReading] = []
        hidden = 0
        for pid in sorted(gpu_processes):
            stat = self._stat(pid)
            if stat is not None:
                self._ended.discard(pid)
                if self._visibility.belongs(pid, stat.start_ticks, now_s):
                    alive.append(pid)
                else:
                    hidden += 1
                continue
            followed = self._followed.get(pid)
            if followed is None and self._visibility.may_hide and pid not in self._ended:
                hidden += 1
            elif pid not in self._ended:
                self._ended.add(pid)
                gone.append(ended(pid, followed.last if followed else None))
        self._ended &= gpu_processes.keys()
        return alive, gone, hidden

    def _is_graphics(self, pid: int, kind: str) -> bool:
        if kind == "G":
            return True
        stat = self._stat(pid)
        return kind == "C+G" and stat is not None and stat.name in _DESKTOP

    def _read_job(
        self, trainer: int, trainers: set[int], uptime_s: float | None, now_s: float, scan: int
    ) -> list[ProcessReading]:
        stat = self._stat(trainer)
        if stat is None:
            return []
        key = (trainer, stat.start_ticks)
        unwanted = trainers if self._own_pid is None else trainers | {self._own_pid}
        descendants = self._family.descendants(trainer, unwanted, self._stat)
        roles = assign_roles(
            self._member(trainer, stat, now_s),
            (
                self._member(pid, child, now_s)
                for pid in descendants
                if (child := self._stat(pid)) is not None
            ),
        )
        readings = self._read_one(trainer, ProcessRole.TRAINER, key, uptime_s, now_s, scan)
        for pid in sorted(roles):
            readings += self._read_one(pid, roles[pid], key, uptime_s, now_s)
        return readings

    def _member(self, pid: int, stat: Stat, now_s: float) -> Member:
        return Member(pid, stat.parent_pid, stat.name, self._follow(pid, stat, now_s).command)

    def _follow(self, pid: int, stat: Stat, now_s: float) -> Followed:
        followed = self._followed.get(pid)
        if followed is None or followed.key != (pid, stat.start_ticks):
            followed = self._followed[pid] = Followed(self._around, pid, stat, now_s)
        followed.refresh(stat, now_s)
        return followed

    def _read_one(
        self,
        pid: int,
        role: ProcessRole,
        trainer: ProcessKey | None,
        uptime_s: float | None,
        now_s: float,
        scan: int = 0,
    ) -> list[ProcessReading]:
        stat = self._stat(pid)
        if stat is None:
            return []
        followed = self._follow(pid, stat, now_s)
        followed.role = role
        return [followed.read(stat, trainer, uptime_s, now_s, scan)]

    def _orphans(self, taken: set[int]) -> list[int]:
        """Workers that live on after their trainer; a container's process 1 may be their trainer."""
        found = []
        for pid in self._table.orphans():
            stat = self._stat(pid) if pid not in taken else None
            if stat is None or stat.gone or not is_worker_name(stat.name):
                continue
            if self._is_orphan(pid) or not self._same_program(pid, stat.parent_pid):
                found.append(pid)
        return found[:MOST_ORPHANS]

    def _is_orphan(self, pid: int) -> bool:
        followed = self._followed.get(pid)
        return followed is not None and followed.role is ProcessRole.ORPHAN

    def _same_program(self, pid: int, parent_pid: int) -> bool:
        """A worker that was forked has its trainer's command line."""
        try:
            command = self._tree.read(f"/proc/{pid}/cmdline")
            return bool(command) and command == self._tree.read(f"/proc/{parent_pid}/cmdline")
        except OSError:
            return False

    def _others(self, job: set[int]) -> Iterable[int]:
        """The busiest processes that belong to no GPU job; gpuwatch itself is not one of them."""
        found = []
        for pid in self._table.hogs():
            if pid in job or pid == self._own_pid:
                continue
            stat = self._stat(pid)
            if stat is not None and not stat.gone:
                found.append(pid)
            if len(found) == MOST_OTHERS:
                break
        return found

    def _read_facts(self, now_s: float) -> None:
        """One process per tick: a look costs a millisecond or more. Trainers come first."""
        due = [
            followed
            for followed in self._followed.values()
            if followed.facts_due_s <= now_s and self._wants_facts(followed)
        ]
        if not due:
            return
        one = min(due, key=lambda followed: (followed.role is not ProcessRole.TRAINER, followed.facts_due_s))
        stat = self._stat(one.key[0])
        if stat is None:
            return
        if one.facts_first_s is None:
            one.facts_first_s = now_s
        one.learn(read_facts(self._tree, one.key[0], stat.session_id, one.role, self._stat))
        one.facts_due_s = next_look_s(one.facts_first_s, now_s)

    def _wants_facts(self, followed: Followed) -> bool:
        if followed.role is ProcessRole.OTHER:
            return followed.facts is not None or self._table.cores(followed.key[0]) >= _FACTS_CORES
        return followed.role in (ProcessRole.TRAINER, ProcessRole.WORKER)

    def _look_for_data(self, readings: list[ProcessReading], now_s: float) -> None:
        trainer = self._data.look(readings, now_s)
        followed = None if trainer is None else self._followed.get(trainer[0])
        if trainer is not None and followed is not None and followed.key == trainer:
            followed.learn_mounts(*self._data.of(trainer))

    def _stat(self, pid: int) -> Stat | None:
        """This tick's stat of a process, read once."""
        if pid not in self._stats:
            try:
                self._stats[pid] = parse_stat(self._again(f"/proc/{pid}/stat"))
            except UNREADABLE:
                self._stats[pid] = None
        return self._stats[pid]

    def _uptime(self) -> float | None:
        """Seconds since boot on the clock of start times (it runs through suspend)."""
        try:
            return float(self._again("/proc/uptime").split(None, 1)[0])
        except UNREADABLE:
            pass
        if self._boot_s is None:
            try:
                boot = number_after(self._tree.read("/proc/stat"), b"\nbtime ")
            except OSError:
                boot = None
            if boot is None:
                return None
            self._boot_s = float(boot)
        return self._clock.wall_s() - self._boot_s


def _own_pid(tree: Tree) -> int | None:
    try:
        name = tree.link("/proc/self")
    except OSError:
        return None
    return int(name) if name.isdigit() else None
