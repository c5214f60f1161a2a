"""The driver's process lists: compute, graphics and MPS, with each process's share of the SMs.

Costly (about 4.5 ms a list, under the driver's global lock), so read every few seconds only.
"""

from collections.abc import Callable
from typing import Any

from gpuwatch.model import GpuProcess
from gpuwatch.sources.nvml import errors
from gpuwatch.sources.nvml.caller import Caller
from gpuwatch.sources.nvml.poller import judge
from gpuwatch.sources.nvml.ranges import is_blank
from gpuwatch.sources.nvml.signals import Ask

#: kind: functions to try. `_v3` since 510; 535.98 lacks the symbol.
_LISTS: dict[str, tuple[str, ...]] = {
    "C": ("nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2"),
    "G": ("nvmlDeviceGetGraphicsRunningProcesses_v3", "nvmlDeviceGetGraphicsRunningProcesses_v2"),
    "MPS": ("nvmlDeviceGetMPSComputeRunningProcesses_v3", "nvmlDeviceGetMPSComputeRunningProcesses_v2"),
}
_NOT_MIG = 0xFFFF_FFFF  # nvml.h: instance ids of a process on no MIG instance
#: The kernel's largest pid (PID_MAX_LIMIT). A larger one is a memory size in the wrong place.
_LARGEST_PID = 1 << 22
GARBLED = "the driver's process list is garbled: the driver is older or newer than its library"
_UTILIZATION: tuple[str, ...] = ("nvmlDeviceGetProcessUtilization", "nvmlDeviceGetProcessesUtilizationInfo")

_Key = tuple[int, int | None, int | None]


class ProcessLists:
    """Of one GPU. `processes` is None with a `reason` when the list cannot be read or believed."""

    def __init__(self, wall_s: Callable[[], float]) -> None:
        self._functions = dict(_LISTS)
        self._utilization = _UTILIZATION
        self._last_us = int(wall_s() * 1e6) - 3_000_000
        self._wall_s = wall_s
        self.processes: tuple[GpuProcess, ...] | None = None
        self.reason = "not read yet"

    def read(self, ask: Ask, caller: Caller) -> None:
        """Raises GpuGoneError or DriverGoneError."""
        found: dict[_Key, tuple[str, int | None]] = {}
        self.processes = None
        for kind in _LISTS:
            entries = self._entries(kind, ask, caller)
            if entries is None:
                if kind == "C":
                    return
                continue
            for entry in entries:
                if not 0 < entry.pid <= _LARGEST_PID:
                    self.reason = GARBLED
                    return
                _merge(found, kind, entry)
        shares = self._shares(ask, caller) if found else {}
        self.processes = tuple(
            GpuProcess(
                pid=key[0],
                kind=kind,
                memory_bytes=memory,
                sm_ratio=None if shares is None or key[1] is not None else shares.get(key[0], 0.0),
                gpu_instance=key[1],
                compute_instance=key[2],
            )
            for key, (kind, memory) in sorted(found.items(), key=_by_pid)
        )

    def _entries(self, kind: str, ask: Ask, caller: Caller) -> list[Any] | None:
        functions = self._functions[kind]
        while functions:
            try:
                entries: list[Any] = ask(functions[0])
            except Exception as error:
                code = errors.code_of(error)
                judge(code, caller)
                if code != errors.FUNCTION_NOT_FOUND or functions == _LISTS[kind]:
                    self.reason = errors.text(code)
                if code not in errors.PERMANENT:
                    return [] if code in errors.QUIET else None
                functions = self._functions[kind] = functions[1:]
                continue
            return entries
        return None

    def _shares(self, ask: Ask, caller: Caller) -> dict[int, float] | None:
        """SM share by pid since the last read; None when the driver has no samples to tell from."""
        now_us = int(self._wall_s() * 1e6)
        if self._last_us > now_us:
            self._last_us = now_us - 3_000_000  # the wall clock was set back
        while self._utilization:
            try:
                samples = ask(self._utilization[0], self._last_us)
            except Exception as error:
                code = errors.code_of(error)
                if code in errors.QUIET:
                    return None
                judge(code, caller)
                if code not in errors.PERMANENT:
                    return None
                self._utilization = self._utilization[1:]
                continue
            return self._newest(samples)
        return None

    def _newest(self, samples: list[Any]) -> dict[int, float] | None:
        """Garbage entries (old stamps, more than 100 %) were seen and are dropped."""
        sums: dict[int, list[int]] = {}
        after = self._last_us
        for sample in samples:
            if sample.timeStamp > after and 0 <= sample.smUtil <= 100:
                sums.setdefault(sample.pid, []).append(sample.smUtil)
                self._last_us = max(self._last_us, sample.timeStamp)
        return {pid: sum(values) / len(values) / 100 for pid, values in sums.items()} or None


def _merge(found: dict[_Key, tuple[str, int | None]], kind: str, entry: Any) -> None:
    key = (
        entry.pid,
        _instance(getattr(entry, "gpuInstanceId", None)),
        _instance(getattr(entry, "computeInstanceId", None)),
    )
    memory: int | None = entry.usedGpuMemory
    if memory is not None and is_blank(memory):
        memory = None
    before = found.get(key)
    if before is None:
        found[key] = (kind, memory)
    else:
        both = "C+G" if {before[0], kind} == {"C", "G"} else before[0]
        found[key] = (both, before[1] if before[1] is not None else memory)


def _instance(value: int | None) -> int | None:
    return None if value is None or value == _NOT_MIG else value


def _by_pid(item: tuple[_Key, tuple[str, int | None]]) -> tuple[int, int, int]:
    pid, gpu_instance, compute_instance = item[0]
    return (pid, gpu_instance or -1, compute_instance or -1)
