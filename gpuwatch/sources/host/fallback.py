"""The host panels on systems without /proc, through psutil: cores, memory, disks, network.

What only Linux tells is absent with one sentence. The only file that imports psutil.
"""

import platform
from typing import Any

import psutil

from gpuwatch.clean import decode
from gpuwatch.model import CpuTimes, DiskInfo, DiskReading, HostInfo, HostReading, NetworkReading
from gpuwatch.sources.base import Clock

_REASON = "only Linux tells this; gpuwatch reads it from /proc"
_LINUX_ONLY = (
    "runnable_count",
    "cpu_pressure_us",
    "io_pressure_us",
    "io_full_pressure_us",
    "memory_pressure_us",
    "memory_full_pressure_us",
    "major_fault_count",
    "oom_kill_count",
    "refault_count",
    "cpu_clock_mhz",
    "cpu_throttle_count",
    "shm_total_bytes",
    "shm_used_bytes",
)
_LINUX_ONLY_INFO = (
    "numa_nodes",
    "numa_cores",
    "virtual_machine",
    "cpu_governor",
    "cpu_frequency_driver",
    "cpu_clock_max_mhz",
    "memory_modules",
    "memory_slot_count",
    "memory_channel_count",
)


class FallbackHostReader:
    """Same method as `HostReader`; each psutil call may fail alone."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def read(self) -> HostReading:
        fields: dict[str, Any] = {}
        absent = dict.fromkeys(_LINUX_ONLY, _REASON)
        for name, part in _PARTS.items():
            try:
                fields.update(part())
            except (OSError, RuntimeError, NotImplementedError, psutil.Error) as error:
                absent[name] = f"the system did not answer ({type(error).__name__})"
        return HostReading(read_s=self._clock.monotonic_s(), absent=absent, **fields)


def _cpu() -> dict[str, Any]:
    cores = [_times(core) for core in psutil.cpu_times(percpu=True)]
    return {
        "cpu": _times(psutil.cpu_times()),
        "core_ids": tuple(range(len(cores))),
        "core_busy_s": tuple(core.total_s - core.idle_s - core.iowait_s for core in cores),
        "core_total_s": tuple(core.total_s for core in cores),
    }


def _times(times: Any) -> CpuTimes:
    """By field name: the names differ between systems and their order between psutil versions."""
    system = sum(getattr(times, name, 0.0) for name in ("system", "irq", "softirq", "interrupt", "dpc"))
    user = times.user + getattr(times, "nice", 0.0)
    iowait, steal = getattr(times, "iowait", 0.0), getattr(times, "steal", 0.0)
    return CpuTimes(user, system, times.idle, iowait, steal, user + system + times.idle + iowait + steal)


def _load() -> dict[str, Any]:
    return {"load_1m": psutil.getloadavg()[0]}


def _memory() -> dict[str, Any]:
    memory = psutil.virtual_memory()
    fields = {"memory_total_bytes": memory.total, "memory_available_bytes": memory.available}
    cached = getattr(memory, "cached", None)
    return fields if cached is None else {**fields, "memory_cached_bytes": cached}


def _swap() -> dict[str, Any]:
    swap = psutil.swap_memory()
    return {
        "swap_total_bytes": swap.total,
        "swap_used_bytes": swap.used,
        "swap_in_bytes": swap.sin,
        "swap_out_bytes": swap.sout,
    }


def _disks() -> dict[str, Any]:
    counters = psutil.disk_io_counters(perdisk=True) or {}
    return {
        "disks": tuple(
            DiskReading(
                name=decode(name),
                reads=disk.read_count,
                writes=disk.write_count,
                read_bytes=disk.read_bytes,
                write_bytes=disk.write_bytes,
                read_ms=disk.read_time,
                write_ms=disk.write_time,
                # No busy time outside Linux: the sum of both is what comes nearest and grows likewise.
                busy_ms=getattr(disk, "busy_time", disk.read_time + disk.write_time),
                queue_ms=disk.read_time + disk.write_time,
            )
            for name, disk in sorted(counters.items())
        )
    }


def _networks() -> dict[str, Any]:
    speeds = psutil.net_if_stats()
    counters = psutil.net_io_counters(pernic=True)
    readings = []
    for name, network in sorted(counters.items()):
        state = speeds.get(name)
        if name.startswith("lo") or not (network.bytes_recv or network.bytes_sent):
            continue
        speed = state.speed * 1e6 / 8 if state is not None and state.speed > 0 else None
        readings.append(NetworkReading(decode(name), network.bytes_recv, network.bytes_sent, speed))
    return {"networks": tuple(readings)}


_PARTS = {
    "cpu": _cpu,
    "load_1m": _load,
    "memory_total_bytes": _memory,
    "swap_used_bytes": _swap,
    "disks": _disks,
    "networks": _networks,
}


def read_fallback_info() -> HostInfo:
    """The inventory as far as psutil and Python know it."""
    try:
        names = sorted(psutil.disk_io_counters(perdisk=True) or {})
    except (OSError, RuntimeError):
        names = []
    return HostInfo(
        hostname=decode(platform.node()) or "localhost",
        system=platform.system() or "unknown",
        kernel=platform.release() or None,
        cpu_model=platform.processor() or None,
        logical_cores=psutil.cpu_count(),
        physical_cores=psutil.cpu_count(logical=False),
        memory_total_bytes=psutil.virtual_memory().total,
        disks=tuple(DiskInfo(decode(name), "unknown") for name in names),
        absent={
            **dict.fromkeys(_LINUX_ONLY_INFO, _REASON),
            "processes": "the process panel needs Linux; GPU and host panels work",
        },
    )
