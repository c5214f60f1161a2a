"""The library object that the NVML bindings believe: every entry point in Python, nothing compiled.

`install()` puts it where pynvml keeps the library it loaded. From then on `pynvml.nvmlInit()` and all
other functions run as they are, down to the C signatures, and meet this object instead of the driver.
A symbol that the simulated driver's version lacks is an AttributeError here, as with a real library.
"""

import ctypes
import re
from collections.abc import Callable
from functools import partial
from typing import Any

import pynvml

from gpuwatch.sources.base import Clock
from gpuwatch.sources.simulated import (
    calls_events,
    calls_fields,
    calls_gpm,
    calls_health,
    calls_inventory,
    calls_links,
    calls_mig,
    calls_processes,
    calls_state,
    calls_system,
    codes,
)
from gpuwatch.sources.simulated.busy import BusyFiles
from gpuwatch.sources.simulated.entries import ENTRIES, Entry
from gpuwatch.sources.simulated.gpu import Refused, SimulatedGpu, suffer
from gpuwatch.sources.simulated.processes import LiveProcess, ProcessTable
from gpuwatch.sources.simulated.scenario import Fault, Scenario
from gpuwatch.sources.simulated.timeline import ManualClock, Timeline
from gpuwatch.sources.simulated.waveforms import Noise

#: The modules fill ENTRIES when they are imported.
ENTRY_MODULES = (
    calls_events,
    calls_fields,
    calls_gpm,
    calls_health,
    calls_inventory,
    calls_links,
    calls_mig,
    calls_processes,
    calls_state,
    calls_system,
)

#: Symbols and the first driver branch that exports them (release notes and symbol lists of nvml.h).
_SINCE = {
    "nvmlDeviceGetComputeRunningProcesses_v3": 510,
    "nvmlDeviceGetGraphicsRunningProcesses_v3": 510,
    "nvmlDeviceGetMPSComputeRunningProcesses_v3": 510,
    "nvmlDeviceGetMemoryInfo_v2": 510,
    "nvmlDeviceGetCurrentClocksEventReasons": 535,
    "nvmlDeviceGetSupportedClocksEventReasons": 535,
    "nvmlDeviceGetGpuFabricInfoV": 545,
    "nvmlDeviceGetProcessesUtilizationInfo": 550,
    "nvmlDeviceGetRunningProcessDetailList": 535,
    "nvmlDeviceGetMarginTemperature": 570,
    "nvmlDeviceGetTemperatureV": 570,
    "nvmlDeviceGetFanSpeedRPM": 565,
    "nvmlSystemGetDriverBranch": 570,
    "nvmlDeviceGetAddressingMode": 570,
    "nvmlGpmMetricsGet": 520,
    "nvmlGpmSampleAlloc": 520,
    "nvmlGpmSampleFree": 520,
    "nvmlGpmSampleGet": 520,
    "nvmlGpmMigSampleGet": 520,
    "nvmlGpmQueryDeviceSupport": 520,
}
#: Entry points that exist but are not played: readers say Not Supported, writers have no permission.
_READERS = re.compile(r"nvml(Device|Vgpu\w+|Unit|GpuInstance|ComputeInstance|System)(Get|Query)\w+")
_WRITERS = re.compile(r"nvml\w*(Set|Clear|Reset|Create|Destroy|Modify|Remove|Freeze|Discover|Validate)\w*")
_ANYTIME = frozenset({"nvmlInit", "nvmlInit_v2", "nvmlInitWithFlags", "nvmlErrorString"})


class SimulatedDriver:
    """Plays a scenario's GPUs on a clock. `tree` need not be told: both only read the same clock."""

    def __init__(
        self, scenario: Scenario, clock: Clock | ManualClock, *, timeline: Timeline | None = None
    ) -> None:
        self.scenario = scenario
        self.timeline = timeline or Timeline(clock, scenario.timescale)
        noise = Noise(scenario.seed)
        busy = BusyFiles(self.timeline)
        self.gpus = [SimulatedGpu(scenario, plan, self.timeline, noise, busy) for plan in scenario.gpus]
        self.table = ProcessTable(scenario, self.gpus, busy)
        self.init_count = 0
        self.event_sets: dict[int, Any] = {}
        self.gpm_samples: dict[int, Any] = {}
        self._devices: dict[int, tuple[SimulatedGpu, int]] = {}
        self._handles: dict[tuple[int, int], Any] = {}
        self._make_handles()
        self._functions: dict[str, Any] = {}
        self._before: tuple[Any, int] | None = None

    def _make_handles(self) -> None:
        for gpu in self.gpus:
            for slot in range(-1, len(gpu.plan.mig or ())):
                device = pynvml.struct_c_nvmlDevice_t()
                self._handles[gpu.index, slot] = device
                self._devices[ctypes.addressof(device)] = (gpu, slot)

    def install(self) -> None:
        """Become the library of the bindings. The one that was there comes back with `uninstall`."""
        if self._before is None:
            self._before = (pynvml.nvmlLib, pynvml._nvmlLib_refcount)
        pynvml.nvmlLib = self
        pynvml._nvmlLib_refcount = 0
        pynvml._nvmlGetFunctionPointer_cache.clear()

    def uninstall(self) -> None:
        if self._before is None or pynvml.nvmlLib is not self:
            return
        pynvml.nvmlLib, pynvml._nvmlLib_refcount = self._before
        pynvml._nvmlGetFunctionPointer_cache.clear()
        self._before = None

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("nvml"):
            raise AttributeError(name)
        function = self._functions.get(name)
        if function is None:
            function = self._functions[name] = self._function(name)
        return function

    def _function(self, name: str) -> Any:
        faults = self._call_faults(name)
        missing = any(fault.error == codes.FUNCTION_NOT_FOUND and fault.always for fault in faults)
        if missing or int(re.match(r"\d*", self.scenario.driver).group() or 0) < _SINCE.get(name, 0):  # type: ignore[union-attr]  # \d* always matches
            raise AttributeError(name)
        if name == "nvmlErrorString":
            return partial(_error_string)
        played = ENTRIES.get(name)
        if played is None:
            if not hasattr(pynvml, name):
                raise AttributeError(name)
            code = codes.NO_PERMISSION if _WRITERS.fullmatch(name) else codes.NOT_SUPPORTED
            if code == codes.NOT_SUPPORTED and not _READERS.fullmatch(name):
                raise AttributeError(name)
            played = partial(_refuse, code)
        return self._guarded(name, played, faults)

    def _call_faults(self, name: str) -> tuple[Fault, ...]:
        """Those of the exact name, else of the longest `prefix*`."""
        known = self.scenario.call_faults
        if name in known:
            return known[name]
        fits = [key for key in known if key.endswith("*") and name.startswith(key[:-1])]
        return known[max(fits, key=len)] if fits else ()

    def _guarded(self, name: str, played: Entry, faults: tuple[Fault, ...]) -> Callable[..., int]:
        anytime = name in _ANYTIME

        def call(*arguments: Any) -> int:
            if not (anytime or self.init_count):
                return codes.UNINITIALIZED
            try:
                if faults:
                    suffer(faults, self.timeline, f"{self.scenario.seed}/{name}")
                played(self, *arguments)
            except Refused as refusal:
                return refusal.code
            return codes.SUCCESS

        return call

    def handle(self, gpu: SimulatedGpu, slot: int = -1) -> Any:
        """What a handle of a GPU, or of one of its MIG instances, points to."""
        return self._handles[gpu.index, slot]

    def device(self, handle: Any) -> tuple[SimulatedGpu, int]:
        """The GPU behind a handle and the MIG instance it means, -1 for the whole card."""
        try:
            return self._devices[ctypes.addressof(handle.contents)]
        except (AttributeError, KeyError, ValueError):
            raise Refused(codes.INVALID_ARGUMENT) from None

    def gpu(self, handle: Any) -> SimulatedGpu:
        """The GPU behind a handle, if it answers and the handle means the whole card."""
        gpu, slot = self.device(handle)
        if slot >= 0:
            raise Refused(codes.NOT_SUPPORTED)
        faults = gpu.plan.metrics["device"].faults
        if faults:
            gpu.suffer(faults, "device")
        return gpu

    def part(self, handle: Any) -> tuple[SimulatedGpu, int]:
        """As `gpu`, MIG instances welcome."""
        gpu, slot = self.device(handle)
        faults = gpu.plan.metrics["device"].faults
        if faults:
            gpu.suffer(faults, "device")
        return gpu, slot

    def processes(self, gpu: SimulatedGpu) -> list[LiveProcess]:
        return self.table.live(gpu, self.timeline.now())


def _refuse(code: int, driver: SimulatedDriver, *arguments: Any) -> None:
    raise Refused(code)


def _error_string(code: Any) -> bytes:
    return codes.error_text(int(getattr(code, "value", code))).encode()
