"""Control groups: which CPU quota and memory limit bind a process, versions 1, 2 and both at once.

Limits apply on the way up to the root, and cpu.stat counts a group's own limit only (cgroup-v2.rst),
so the whole chain is walked and the group with the tightest quota is the one to watch.
"""

from dataclasses import dataclass
from typing import NamedTuple

from gpuwatch.clean import decode
from gpuwatch.model import CgroupReading
from gpuwatch.sources.host.text import UNREADABLE, number_after
from gpuwatch.sources.processes.mounts import Mount, cgroup_mounts
from gpuwatch.sources.tree import Tree

#: A memory limit above this means none (version 1 writes 2^63 rounded down to a page).
_NO_LIMIT_BYTES = 1 << 60
_REFRESH_S = 30.0
#: memory.stat makes the kernel add up the counters of all cores: up to milliseconds on large machines.
_STATISTICS_S = 5.0
#: Most telling name first. "total_" of version 1 includes the groups below, as version 2 always does.
_FILE = {1: (b"\ntotal_cache ",), 2: (b"\nfile ",)}
_REFAULTS = {
    1: (b"\ntotal_workingset_refault_file ", b"\nworkingset_refault_file "),
    2: (b"\nworkingset_refault_file ", b"\nworkingset_refault "),  # one for all before 5.9
}


class _Files(NamedTuple):
    """One group: its directory, the version of its hierarchy (file names differ) and its own path."""

    directory: str
    version: int
    group: str


@dataclass(frozen=True, slots=True)
class Chain:
    """The groups that bind, found by walking up. `cpu` or `memory` None: no such limit."""

    path: str
    cpu: _Files | None
    quota_cores: float | None
    memory: _Files | None
    memory_limit_bytes: int | None


class CgroupReader:
    """Chains are looked up every 30 seconds, counters once per tick and group."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._mounts: tuple[Mount, ...] | None = None
        self._chains: dict[bytes, tuple[float, Chain]] = {}
        self._readings: dict[Chain, CgroupReading] = {}
        self._tick_s: float | None = None
        self._statistics: dict[_Files, tuple[float, int | None, int | None]] = {}

    def locate(self, pid: int, now_s: float) -> Chain:
        """OSError if the process is gone or this kernel has no control groups."""
        content = self._tree.read(f"/proc/{pid}/cgroup")
        known = self._chains.get(content)
        if known is None or now_s - known[0] >= _REFRESH_S:
            if self._mounts is None:
                self._mounts = cgroup_mounts(self._tree.read("/proc/self/mountinfo"))
            if len(self._chains) > 256:
                self._chains.clear()
            known = self._chains[content] = now_s, self._walk(content, self._mounts)
        return known[1]

    def read(self, chain: Chain, now_s: float) -> CgroupReading:
        """Limits and counters of this tick; counters are None where there is no quota."""
        if self._tick_s != now_s:
            self._tick_s = now_s
            self._readings.clear()
        reading = self._readings.get(chain)
        if reading is None:
            reading = self._readings[chain] = self._read(chain, now_s)
        return reading

    def _walk(self, content: bytes, mounts: tuple[Mount, ...]) -> Chain:
        """The innermost group wins a tie: its counters are the process' own."""
        own = "/"
        cpu: tuple[float, _Files] | None = None
        memory: tuple[int, _Files] | None = None
        for controllers, path in _groups(content):
            for mount in mounts:
                if not mount.holds(controllers):
                    continue
                own = path if own == "/" else own
                for files in _upwards(mount, path):
                    quota = self._quota(files) if mount.has("cpu") else None
                    if quota is not None and (cpu is None or quota < cpu[0]):
                        cpu = quota, files
                    limit = self._memory_limit(files) if mount.has("memory") else None
                    if limit is not None and (memory is None or limit < memory[0]):
                        memory = limit, files
        return Chain(
            path=decode(cpu[1].group if cpu else own),
            cpu=cpu[1] if cpu else None,
            quota_cores=cpu[0] if cpu else None,
            memory=memory[1] if memory else None,
            memory_limit_bytes=memory[0] if memory else None,
        )

    def _quota(self, files: _Files) -> float | None:
        """Cores; None without a quota or where the file is missing (the root group has none)."""
        try:
            if files.version == 2:
                quota, period = self._tree.read(f"{files.directory}/cpu.max").split()[:2]
            else:
                quota = self._tree.read(f"{files.directory}/cpu.cfs_quota_us")
                period = self._tree.read(f"{files.directory}/cpu.cfs_period_us")
            cores = int(quota) / int(period)
        except (*UNREADABLE, ZeroDivisionError):
            return None  # "max" is no number
        return cores if cores > 0 else None

    def _memory_limit(self, files: _Files) -> int | None:
        name = "memory.max" if files.version == 2 else "memory.limit_in_bytes"
        limit = self._number(f"{files.directory}/{name}")
        return limit if limit is not None and 0 < limit < _NO_LIMIT_BYTES else None

    def _number(self, path: str) -> int | None:
        try:
            return int(self._tree.read(path))
        except UNREADABLE:
            return None

    def _read(self, chain: Chain, now_s: float) -> CgroupReading:
        used = file_bytes = refaults = None
        if chain.memory is not None:
            name = "memory.current" if chain.memory.version == 2 else "memory.usage_in_bytes"
            used = self._number(f"{chain.memory.directory}/{name}")
            file_bytes, refaults = self._memory_statistics(chain.memory, now_s)
        periods = throttled_periods = throttled_us = None
        if chain.cpu is not None:
            periods, throttled_periods, throttled_us = self._throttling(chain.cpu)
        return CgroupReading(
            path=chain.path,
            quota_cores=chain.quota_cores,
            periods=periods,
            throttled_periods=throttled_periods,
            throttled_us=throttled_us,
            memory_limit_bytes=chain.memory_limit_bytes,
            memory_used_bytes=used,
            memory_file_bytes=file_bytes,
            refault_count=refaults,
        )

    def _memory_statistics(self, files: _Files, now_s: float) -> tuple[int | None, int | None]:
        """(page cache in bytes, refaults of file pages), at most so old as `_STATISTICS_S`."""
        known = self._statistics.get(files)
        if known is None or now_s - known[0] >= _STATISTICS_S:
            if len(self._statistics) > 256:
                self._statistics.clear()
            try:
                data = b"\n" + self._tree.read(f"{files.directory}/memory.stat")
            except OSError:
                data = b""
            known = self._statistics[files] = (
                now_s,
                _first_number(data, _FILE[files.version]),
                _first_number(data, _REFAULTS[files.version]),
            )
        return known[1], known[2]

    def _throttling(self, files: _Files) -> tuple[int | None, int | None, int | None]:
        """Version 2 counts microseconds, version 1 nanoseconds."""
        try:
            data = b"\n" + self._tree.read(f"{files.directory}/cpu.stat")
        except OSError:
            return None, None, None
        if files.version == 2:
            spent = number_after(data, b"\nthrottled_usec ")
        else:
            nanoseconds = number_after(data, b"\nthrottled_time ")
            spent = None if nanoseconds is None else nanoseconds // 1000
        return number_after(data, b"\nnr_periods "), number_after(data, b"\nnr_throttled "), spent


def _first_number(data: bytes, keys: tuple[bytes, ...]) -> int | None:
    found = (number_after(data, key) for key in keys)
    return next((number for number in found if number is not None), None)


def _groups(content: bytes) -> list[tuple[frozenset[str], str]]:
    """(controllers, path) per hierarchy from /proc/PID/cgroup; version 2 has no controllers there."""
    groups = []
    for line in content.split(b"\n"):
        words = line.split(b":", 2)
        if len(words) == 3:
            names = frozenset(name.decode("ascii", "replace") for name in words[1].split(b",") if name)
            groups.append((names, words[2].decode("utf-8", "surrogateescape")))
    return groups


def _upwards(mount: Mount, path: str) -> list[_Files]:
    """The group's directory and all above it, up to where the hierarchy is mounted.

    A path outside of what is mounted here (another namespace's) leaves only the mount's own top.
    """
    inside = path
    if mount.root != "/":
        inside = path[len(mount.root) :] if (path + "/").startswith(mount.root + "/") else "/"
    parts = [part for part in inside.split("/") if part]
    if ".." in parts:
        parts = []
    above = mount.root.rstrip("/")
    return [
        _Files(
            directory="/".join([mount.point, *parts[:length]]),
            version=mount.version,
            group="/".join([above, *parts[:length]]) or "/",
        )
        for length in range(len(parts), -1, -1)
    ]
