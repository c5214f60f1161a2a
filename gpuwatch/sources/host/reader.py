"""The host once per tick: one record from half a dozen small files, each of which may fail alone."""

import mmap
from collections.abc import Callable, Iterable
from typing import Any

from gpuwatch.model import HostReading
from gpuwatch.sources.base import Clock
from gpuwatch.sources.host.cpu import parse_stat
from gpuwatch.sources.host.disks import DiskReader
from gpuwatch.sources.host.frequency import NO_THROTTLE_COUNT, CpuClock, ThrottleCount
from gpuwatch.sources.host.memory import (
    MEMINFO_FIELDS,
    PRESSURE_FIELDS,
    VMSTAT_FIELDS,
    parse_meminfo,
    parse_vmstat,
    read_pressure,
    why_no_pressure,
)
from gpuwatch.sources.host.networks import NetworkReader
from gpuwatch.sources.host.text import UNREADABLE, why
from gpuwatch.sources.tree import Tree

_CPU_FIELDS = ("cpu", "core_busy_s", "core_total_s", "core_ids", "runnable_count")


class HostReader:
    """Reads `HostReading`s. Never raises for what the machine does; reasons are in `absent`.

    `page_bytes`: size of a memory page of the machine whose tree this is.
    """

    def __init__(self, tree: Tree, clock: Clock, page_bytes: int = mmap.PAGESIZE) -> None:
        self._tree = tree
        self._clock = clock
        self._page_bytes = page_bytes
        self._disks = DiskReader(tree)
        self._networks = NetworkReader(tree)
        self._cpu_clock = CpuClock(tree)
        self._throttling = ThrottleCount(tree)

    def read(self) -> HostReading:
        now_s = self._clock.monotonic_s()
        fields: dict[str, Any] = {}
        absent: dict[str, str] = {}
        self._cpu(fields, absent)
        self._cores(fields, absent, now_s)
        self._load(fields, absent)
        self._numbers("/proc/meminfo", MEMINFO_FIELDS, parse_meminfo, fields, absent)
        self._numbers(
            "/proc/vmstat", VMSTAT_FIELDS, lambda data: parse_vmstat(data, self._page_bytes), fields, absent
        )
        self._pressure(fields, absent)
        self._shared_memory(fields, absent)
        self._devices("disks", "/proc/diskstats", self._disks.read, now_s, fields, absent)
        self._devices("networks", "/proc/net/dev", self._networks.read, now_s, fields, absent)
        return HostReading(read_s=now_s, absent=absent, **fields)

    def _cpu(self, fields: dict[str, Any], absent: dict[str, str]) -> None:
        try:
            stat = parse_stat(self._tree.read("/proc/stat"))
        except UNREADABLE as error:
            _missing(absent, _CPU_FIELDS, why(error, "/proc/stat"))
            return
        fields["cpu"] = stat.cpu
        fields["core_busy_s"] = stat.core_busy_s
        fields["core_total_s"] = stat.core_total_s
        fields["core_ids"] = stat.core_ids
        if stat.runnable_count is None:
            absent["runnable_count"] = "/proc/stat has no procs_running"
        else:
            fields["runnable_count"] = stat.runnable_count

    def _cores(self, fields: dict[str, Any], absent: dict[str, str], now_s: float) -> None:
        """Clock and heat of the cores that /proc/stat has just named."""
        ids, busy_s = fields.get("core_ids", ()), fields.get("core_busy_s", ())
        clock_mhz, reason = self._cpu_clock.read(ids, busy_s, now_s)
        count = self._throttling.read(ids, now_s)
        if clock_mhz is None:
            absent["cpu_clock_mhz"] = reason
        if count is None:
            absent["cpu_throttle_count"] = NO_THROTTLE_COUNT
        fields["cpu_clock_mhz"], fields["cpu_throttle_count"] = clock_mhz, count

    def _load(self, fields: dict[str, Any], absent: dict[str, str]) -> None:
        try:
            fields["load_1m"] = float(self._tree.read("/proc/loadavg").split(None, 1)[0])
        except UNREADABLE as error:
            absent["load_1m"] = why(error, "/proc/loadavg")

    def _numbers(
        self,
        path: str,
        names: Iterable[str],
        parse: Callable[[bytes], dict[str, int]],
        fields: dict[str, Any],
        absent: dict[str, str],
    ) -> None:
        try:
            found = parse(self._tree.read(path))
        except UNREADABLE as error:
            _missing(absent, names, why(error, path))
            return
        fields.update(found)
        _missing(absent, (name for name in names if name not in found), f"{path} has no such line here")

    def _pressure(self, fields: dict[str, Any], absent: dict[str, str]) -> None:
        for resource, names in PRESSURE_FIELDS.items():
            wanted = [name for name in names if name is not None]
            try:
                found = read_pressure(self._tree, resource)
            except OSError as error:
                _missing(absent, wanted, why_no_pressure(error))
                continue
            fields.update(found)
            left = (name for name in wanted if name not in found)
            _missing(absent, left, f"/proc/pressure/{resource} has no such line here")

    def _shared_memory(self, fields: dict[str, Any], absent: dict[str, str]) -> None:
        try:
            fields["shm_total_bytes"], fields["shm_used_bytes"] = self._tree.usage("/dev/shm")
        except UNREADABLE as error:
            _missing(absent, ("shm_total_bytes", "shm_used_bytes"), why(error, "/dev/shm"))

    def _devices(
        self,
        name: str,
        path: str,
        read: Callable[[float], tuple[Any, ...]],
        now_s: float,
        fields: dict[str, Any],
        absent: dict[str, str],
    ) -> None:
        try:
            fields[name] = read(now_s)
        except UNREADABLE as error:
            absent[name] = why(error, path)


def _missing(absent: dict[str, str], names: Iterable[str], reason: str) -> None:
    for name in names:
        absent[name] = reason
