"""One process that is followed from tick to tick: its rarely changing side, and its reading."""

from dataclasses import replace

from gpuwatch.model import DataMount, ProcessFacts, ProcessKey, ProcessReading, ProcessRole, ThreadReading
from gpuwatch.sources.host.text import TICKS_PER_S, UNREADABLE, why
from gpuwatch.sources.processes.cgroups import CgroupReader, Chain
from gpuwatch.sources.processes.stat import Io, Stat, parse_command, parse_io, parse_uid
from gpuwatch.sources.processes.threads import ThreadWatch, WaitSum, main_thread
from gpuwatch.sources.processes.users import UserNames
from gpuwatch.sources.tree import Tree, repeated

_TICK_NS = 1_000_000_000 // TICKS_PER_S
_REFRESH_S = 20.0
_IO_FIELDS = ("read_bytes", "write_bytes", "read_chars", "read_calls")
_ENDED = "the process has ended"


class Surroundings:
    """What all followed processes share."""

    def __init__(self, tree: Tree, users: UserNames, page_bytes: int) -> None:
        self.tree = tree
        self.again = repeated(tree)
        self.users = users
        self.page_bytes = page_bytes
        self.cgroups = CgroupReader(tree)


class Followed:
    """State per process. Reasons live in `absent`, which is replaced, never changed: readings share it."""

    def __init__(self, around: Surroundings, pid: int, stat: Stat, now_s: float) -> None:
        self.key: ProcessKey = (pid, stat.start_ticks)
        self.command = ""
        self.facts: ProcessFacts | None = None
        self.facts_first_s: float | None = None
        self.facts_due_s = now_s
        self.role = ProcessRole.OTHER
        self.last: ProcessReading | None = None
        self._around = around
        self._uid: int | None = None
        self._affinity: int | None = None
        self._chain: Chain | None = None
        self._waits = WaitSum()
        self._threads: ThreadWatch | None = None
        self._io_allowed = True
        self._name = ""
        self._mounts: tuple[tuple[DataMount, ...] | None, str] | None = None
        self._absent: dict[str, str] = {}
        self._due_s = now_s
        self._read_uid(pid)

    def learn(self, facts: ProcessFacts) -> None:
        """Facts were read; what is known of the data stays."""
        self.facts = facts
        self._apply_mounts()

    def learn_mounts(self, mounts: tuple[DataMount, ...] | None, reason: str) -> None:
        """Where the open data files of this trainer and its workers lie, or why nobody knows."""
        if self._mounts != (mounts, reason):
            self._mounts = (mounts, reason)
            self._apply_mounts()

    def _apply_mounts(self) -> None:
        if self.facts is None or self._mounts is None:
            return
        mounts, reason = self._mounts
        absent = {name: text for name, text in self.facts.absent.items() if name != "data_mounts"}
        if mounts is None:
            absent["data_mounts"] = reason
        self.facts = replace(self.facts, data_mounts=mounts, absent=absent)

    def refresh(self, stat: Stat, now_s: float) -> None:
        """The slow side, every 20 to 40 s (not all processes in one tick) and after an exec."""
        if now_s < self._due_s and stat.name == self._name:
            return
        pid = self.key[0]
        self._due_s = now_s + _REFRESH_S + pid % int(_REFRESH_S)
        self._name = stat.name
        self._read_command(pid, stat)
        try:
            self._affinity = self._around.tree.affinity(pid)
            self._forget("affinity_cores")
        except UNREADABLE as error:
            self._affinity = None
            self._note("affinity_cores", why(error, "the CPU mask"))
        try:
            self._chain = self._around.cgroups.locate(pid, now_s)
            self._forget("cgroup")
        except UNREADABLE as error:
            self._chain = None
            self._note("cgroup", why(error, f"/proc/{pid}/cgroup"))

    def read(
        self, stat: Stat, trainer: ProcessKey | None, uptime_s: float | None, now_s: float, scan: int
    ) -> ProcessReading:
        """The reading of this tick. `scan`: threads to look at for busy ones (trainers only)."""
        pid, start_ticks = self.key
        around = self._around
        threads = self._read_threads(pid, stat, now_s, scan)
        wait_ns = self._waits.add(threads)
        if wait_ns is None:
            self._note("wait_ns", "the kernel keeps no scheduler statistics for this process")
        io = self._read_io(pid)
        age_s = None if uptime_s is None else uptime_s - start_ticks / TICKS_PER_S
        if age_s is not None and age_s < 0:
            age_s = None  # a container's own uptime with the host's start times
        if age_s is None:
            self._note("age_s", "start time and uptime do not belong to the same clock")
        if stat.last_core is None:
            self._note("last_core", "this kernel does not tell it")
        cgroup = None if self._chain is None else around.cgroups.read(self._chain, now_s)
        quota = None if cgroup is None else cgroup.quota_cores
        limits = [float(limit) for limit in (self._affinity, quota) if limit is not None]
        self.last = ProcessReading(
            pid=pid,
            start_ticks=start_ticks,
            parent_pid=stat.parent_pid,
            name=stat.name,
            command=self.command,
            role=self.role,
            age_s=age_s,
            trainer=trainer,
            user=None if self._uid is None else around.users.name(self._uid),
            uid=self._uid,
            state=stat.state,
            cpu_ns=stat.cpu_ticks * _TICK_NS,
            wait_ns=wait_ns,
            major_faults=stat.major_faults,
            rss_bytes=stat.rss_pages * around.page_bytes,
            read_bytes=io.read_bytes if io else None,
            write_bytes=io.write_bytes if io else None,
            read_chars=io.read_chars if io else None,
            read_calls=io.read_calls if io else None,
            thread_count=stat.thread_count,
            group_id=stat.group_id,
            session_id=stat.session_id,
            usable_cores=min(limits) if limits else None,
            affinity_cores=self._affinity,
            cgroup=cgroup,
            threads=threads,
            last_core=stat.last_core,
            facts=self.facts,
            absent=self._absent,
        )
        return self.last

    def _read_threads(self, pid: int, stat: Stat, now_s: float, scan: int) -> tuple[ThreadReading, ...]:
        main = main_thread(self._around.again, pid, stat)
        if self.role is not ProcessRole.TRAINER:
            return (main,)
        if self._threads is None:
            self._threads = ThreadWatch(self._around.tree, pid)
        return (main, *self._threads.read(now_s, scan))

    def _read_io(self, pid: int) -> Io | None:
        """Asked for only as long as it is allowed: the owner of a process does not change."""
        if not self._io_allowed:
            return None
        try:
            return parse_io(self._around.again(f"/proc/{pid}/io"))
        except UNREADABLE as error:
            reason = why(error, f"/proc/{pid}/io")
            if isinstance(error, PermissionError | FileNotFoundError):
                self._io_allowed = False
            if isinstance(error, PermissionError):
                reason = "its I/O may be read by its owner and root only"
            for field in _IO_FIELDS:
                self._note(field, reason)
            return None

    def _read_command(self, pid: int, stat: Stat) -> None:
        try:
            self.command = parse_command(self._around.tree.read(f"/proc/{pid}/cmdline"))
        except OSError as error:
            self._note("command", why(error, f"/proc/{pid}/cmdline"))
        self.command = self.command or f"[{stat.name}]"

    def _read_uid(self, pid: int) -> None:
        tree = self._around.tree
        try:
            self._uid = parse_uid(tree.read(f"/proc/{pid}/status"))
            if self._uid is None:
                self._uid = tree.owner(f"/proc/{pid}")
        except UNREADABLE as error:
            self._note("user", why(error, f"/proc/{pid}/status"))

    def _note(self, field: str, reason: str) -> None:
        if self._absent.get(field) != reason:
            self._absent = {**self._absent, field: reason}

    def _forget(self, field: str) -> None:
        if field in self._absent:
            self._absent = {name: reason for name, reason in self._absent.items() if name != field}


def ended(pid: int, last: ProcessReading | None) -> ProcessReading:
    """The row of a process that the driver still lists and that is gone: no counters, state X."""
    return ProcessReading(
        pid=pid,
        start_ticks=last.start_ticks if last else 0,
        parent_pid=last.parent_pid if last else 0,
        name=last.name if last else "",
        command=f"{last.command} (ended)" if last else "(ended)",
        role=ProcessRole.OTHER,
        user=last.user if last else None,
        uid=last.uid if last else None,
        state="X",
        absent=dict.fromkeys(("age_s", "cpu_ns", "wait_ns", "rss_bytes", *_IO_FIELDS), _ENDED),
    )
