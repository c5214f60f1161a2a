"""Files of one process of the simulated host below /proc/PID, made when they are read."""

import errno
import math
import os
from collections.abc import Callable

from gpuwatch.sources.simulated.crowd import SimulatedProcess, SimulatedThread
from gpuwatch.sources.simulated.libraries import maps
from gpuwatch.sources.simulated.machine import Machine, whole

_TICKS = 100
_PAGE = 4096
_CALL_BYTES = 128 * 1024  # per read call
#: Who looks: files of other users that only their owner may read are refused.
VIEWER = "demo"
_PRIVATE = frozenset({"io", "maps", "environ", "fd", "fdinfo", "smaps_rollup", "exe", "cwd"})
FIRST_USER_ID = 1000


def no_such_file(path: str) -> FileNotFoundError:
    return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)


class ProcessFiles:
    """`read`, `list` and `link` below /proc/PID; OSError like the real thing."""

    def __init__(self, machine: Machine, user_ids: dict[str, int]) -> None:
        self._machine = machine
        self._user_ids = user_ids
        self._makers: dict[str, Callable[[SimulatedProcess], bytes]] = {
            "stat": lambda process: self._stat(process, None),
            "status": self._status,
            "statm": self._statm,
            "comm": lambda process: process.name.encode() + b"\n",
            "cmdline": lambda process: process.command.replace(" ", "\0").encode() + b"\0",
            "environ": lambda process: process.environment.replace(" ", "\0").encode(),
            "io": self._io,
            "schedstat": lambda process: self._schedstat(process.threads[0]),
            "cgroup": self._cgroup,
            "maps": lambda process: maps(process.libraries, machine.scenario.driver),
            "limits": lambda process: (
                b"Max open files            1048576              1048576              files\n"
            ),
            "mountinfo": lambda process: self.mountinfo(process.data),
            "oom_score": lambda process: b"0\n",
        }
        self._cgroup_paths: dict[int, str] = {}

    def read(self, pid: int, rest: str) -> bytes:
        process = self._process(pid, rest)
        maker = self._makers.get(rest)
        if maker is not None:
            return maker(process)
        parts = rest.split("/")
        if parts[0] == "task" and len(parts) == 3:
            return self._task(process, int(parts[1]), parts[2])
        raise no_such_file(f"/proc/{pid}/{rest}")

    def list(self, pid: int, rest: str) -> list[str]:
        process = self._process(pid, rest)
        if rest == "task":
            return [str(thread.tid) for thread in process.threads]
        if rest == "fd":
            return [str(number) for number in range(3 + len(self._open_files(process)))]
        if not rest:
            return [*self._makers, "task", "fd"]
        raise no_such_file(f"/proc/{pid}/{rest}")

    def link(self, pid: int, rest: str) -> str:
        process = self._process(pid, rest)
        if rest == "ns/pid":
            return "pid:[4026531836]"
        parts = rest.split("/")
        if parts[0] == "fd" and len(parts) == 2 and parts[1].isdecimal():
            targets = ("/dev/pts/1",) * 3 + self._open_files(process)
            if int(parts[1]) < len(targets):
                return targets[int(parts[1])]
        if rest == "exe":
            return "/usr/bin/python3.11"
        if rest == "cwd":
            return f"/home/{process.user}"
        raise no_such_file(f"/proc/{pid}/{rest}")

    def owner(self, pid: int) -> int:
        return self._user_ids[self._process(pid, "").user]

    def affinity(self, pid: int) -> int:
        process = self._process(pid, "")
        return process.mask or self._machine.cores

    def mountinfo(self, filesystem: str = "") -> bytes:
        """The root, the data (on `filesystem`, if one is named) and the control groups."""
        docker = self._machine.settings.text("container", "") == "docker"
        data = "/dev/nvme0n1p1" if self._machine.disk_kind == "nvme" else "/dev/sda1"
        device = "259:1" if self._machine.disk_kind == "nvme" else "8:1"
        root = (
            "22 1 0:50 / / rw,relatime - overlay overlay rw,lowerdir=/var/lib/docker/overlay2/l"
            if docker
            else "22 1 259:1 / / rw,relatime - ext4 /dev/nvme0n1p1 rw"
        )
        here = f"41 22 {device} / /data rw,noatime - ext4 {data} rw"
        if filesystem:
            source = "store:/export/data" if filesystem.startswith("nfs") else "datastore"
            here = f"41 22 0:61 / /data rw,noatime - {filesystem} {source} rw"
        lines = (
            root,
            here,
            "28 22 0:26 / /dev/shm rw,nosuid - tmpfs tmpfs rw",
            "30 22 0:28 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw",
        )
        return "\n".join((*lines, "")).encode()

    def cgroup_path(self, process: SimulatedProcess) -> str:
        if not process.of_job:
            return "/system.slice/session.scope" if process.user == "root" else "/user.slice/session.scope"
        if self._machine.settings.text("container", "") == "docker":
            return "/system.slice/docker-4f2c9a.scope"
        return "/user.slice/job.scope" if process.user == VIEWER else f"/user.slice/{process.user}.scope"

    def _process(self, pid: int, rest: str) -> SimulatedProcess:
        process = self._machine.process(pid)
        if process is None:
            raise no_such_file(f"/proc/{pid}/{rest}")
        if process.user != VIEWER and rest.split("/")[0] in _PRIVATE:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), f"/proc/{pid}/{rest}")
        return process

    def _task(self, process: SimulatedProcess, tid: int, name: str) -> bytes:
        thread = next((thread for thread in process.threads if thread.tid == tid), None)
        if thread is None:
            raise no_such_file(f"/proc/{process.pid}/task/{tid}")
        if name == "stat":
            return self._stat(process, thread)
        if name == "schedstat":
            return self._schedstat(thread)
        if name == "comm":
            return thread.name.encode() + b"\n"
        if name == "children":
            return self._children(process) if tid == process.pid else b""
        raise no_such_file(f"/proc/{process.pid}/task/{tid}/{name}")

    def _children(self, process: SimulatedProcess) -> bytes:
        living = self._machine.living().values()
        return b"".join(b"%d " % child.pid for child in living if child.parent == process.pid)

    def _run_s(self, thread: SimulatedThread, part: float) -> float:
        load = thread.load
        return load.run_s + load.rate * part if load is not None else 0.0

    def _part(self) -> float:
        return self._machine.cpu.advance(self._machine.timeline.real())

    def _schedstat(self, thread: SimulatedThread) -> bytes:
        part = self._part()
        load = thread.load
        wait_s = load.wait_s + load.wait_rate * part if load is not None else 0.0
        run_s = self._run_s(thread, part)
        return b"%d %d %d\n" % (whole(run_s * 1e9), whole(wait_s * 1e9), whole(run_s * 250) + 1)

    def _state(self, thread: SimulatedThread) -> str:
        """Where the thread is at this moment; a draw ten times a second."""
        now = self._machine.timeline.real()
        draw = _draw(thread.tid, math.floor(now * 10))
        if thread.blocked is not None and draw < thread.blocked.at(self._machine.timeline.now()):
            return "D"
        return "R" if thread.load is not None and 1 - draw < thread.load.rate else "S"

    def _stat(self, process: SimulatedProcess, thread: SimulatedThread | None) -> bytes:
        """52 fields as in proc(5); those that nobody reads are 0."""
        part = self._part()
        threads = process.threads if thread is None else [thread]
        used = sum(self._run_s(found, part) for found in threads)
        shown = thread or process.threads[0]
        start = whole((self._machine.uptime_s + process.start_s) * _TICKS)
        faults = 120 if thread is None else 0
        head = f"{shown.tid} ({shown.name[:15]}) {self._state(shown)} {process.parent} {process.pid}"
        session = process.session or process.pid
        system = used * process.system_ratio
        times = f"{whole((used - system) * _TICKS)} {whole(system * _TICKS)}"
        memory = process.memory_bytes
        middle = (
            f"{session} 0 -1 4194304 50000 0 {faults} 0 {times} 0 0 20 0 {len(process.threads)} 0 {start}"
        )
        tail = f"{memory * 4} {memory // _PAGE} 18446744073709551615" + " 0" * 13
        core = self._core(process, shown.tid)
        return f"{head} {middle} {tail} {core} 0 0 0 0 0 0 0 0 0 0 0 0 0\n".encode()

    def _core(self, process: SimulatedProcess, tid: int) -> int:
        """The core a thread ran on last."""
        cores, nodes = self._machine.cores, max(1, self._machine.scenario.numa_nodes)
        if process.node is None or nodes == 1:
            return tid % cores
        share = max(1, cores // nodes)
        return process.node * share + tid % share

    def _status(self, process: SimulatedProcess) -> bytes:
        uid = self._user_ids[process.user]
        cores = (process.mask or self._machine.cores) - 1
        lines = (
            f"Name:\t{process.name[:15]}",
            "State:\tS (sleeping)",
            f"Tgid:\t{process.pid}",
            f"Pid:\t{process.pid}",
            f"PPid:\t{process.parent}",
            f"Uid:\t{uid}\t{uid}\t{uid}\t{uid}",
            f"Gid:\t{uid}\t{uid}\t{uid}\t{uid}",
            f"VmRSS:\t{process.memory_bytes // 1024} kB",
            f"Threads:\t{len(process.threads)}",
            f"Cpus_allowed_list:\t0-{cores}",
            "voluntary_ctxt_switches:\t1000",
            "nonvoluntary_ctxt_switches:\t100",
            "",
        )
        return "\n".join(lines).encode()

    def _statm(self, process: SimulatedProcess) -> bytes:
        pages = process.memory_bytes // _PAGE
        return b"%d %d 2000 100 0 %d 0\n" % (pages * 4, pages, pages)

    def _io(self, process: SimulatedProcess) -> bytes:
        lived = max(0.0, -process.start_s)
        chars = self._machine.count(f"read {process.pid}", process.read, lived)
        device = self._machine.count(f"disk {process.pid}", process.from_disk, lived)
        chars = max(chars, device)
        written = 4096 + self._machine.count(f"write {process.pid}", process.write, lived)
        return (
            b"rchar: %d\nwchar: %d\nsyscr: %d\nsyscw: 10\nread_bytes: %d\nwrite_bytes: %d\n"
            b"cancelled_write_bytes: 0\n"
            % (whole(chars), whole(written), whole(chars / _CALL_BYTES), whole(device), whole(written))
        )

    def _cgroup(self, process: SimulatedProcess) -> bytes:
        return f"0::{self.cgroup_path(process)}\n".encode()

    def _open_files(self, process: SimulatedProcess) -> tuple[str, ...]:
        devices = ("/dev/nvidiactl", "/dev/nvidia0") if "cuda" in process.libraries.split() else ()
        return (*devices, *process.files)


def _draw(tid: int, moment: int) -> float:
    """0..1, the same for the same thread and moment."""
    mixed = (tid * 0x9E3779B1 ^ moment * 0x85EBCA77) & 0xFFFFFFFF
    mixed = (mixed ^ mixed >> 15) * 0x2C1B3C6D & 0xFFFFFFFF
    mixed = (mixed ^ mixed >> 12) * 0x297A2D39 & 0xFFFFFFFF
    return (mixed ^ mixed >> 15) / 0x100000000
