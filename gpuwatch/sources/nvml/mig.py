"""MIG instances under their GPU: identity, memory, and SM activity where GPM knows it.

Power, temperature and clocks belong to the card alone and are never shared out among instances.
"""

import re
from typing import Any

from gpuwatch.clean import decode
from gpuwatch.model import MigReading
from gpuwatch.sources.nvml import errors
from gpuwatch.sources.nvml.caller import Caller
from gpuwatch.sources.nvml.gpm import SM_ACTIVE, GpmPair
from gpuwatch.sources.nvml.poller import judge
from gpuwatch.sources.nvml.signals import Ask

NOT_ON_MIG = "not measurable on a GPU that is split into MIG instances"


class MigInstances:
    """All instances of one GPU."""

    def __init__(self, api: Any, handle: Any, gpm_supported: bool) -> None:
        self._api = api
        self._handle = handle
        self._gpm_supported = gpm_supported
        self._pairs: dict[int, GpmPair] = {}
        self.readings: tuple[MigReading, ...] = ()

    def read(self, ask: Ask, caller: Caller, now_s: float) -> None:
        """Raises GpuGoneError or DriverGoneError; an instance that cannot be read is left out this time."""
        readings = []
        places = self._quietly(caller, ask, "nvmlDeviceGetMaxMigDeviceCount") or 0
        for place in range(places):
            # Places may be empty in between: go on, do not stop.
            handle = self._quietly(caller, ask, "nvmlDeviceGetMigDeviceHandleByIndex", place)
            if handle is not None and (reading := self._one(handle, caller, now_s)) is not None:
                readings.append(reading)
        self.readings = tuple(readings)

    def _quietly(self, caller: Caller, ask: Ask, name: str, *arguments: Any) -> Any:
        try:
            return ask(name, *arguments)
        except Exception as error:
            judge(errors.code_of(error), caller)
            return None

    def _one(self, handle: Any, caller: Caller, now_s: float) -> MigReading | None:
        def ask(name: str, *arguments: Any) -> Any:
            return caller.call(getattr(self._api, name), handle, *arguments)

        uuid = self._quietly(caller, ask, "nvmlDeviceGetUUID")
        if uuid is None:
            return None
        gpu_instance = self._quietly(caller, ask, "nvmlDeviceGetGpuInstanceId")
        memory = self._quietly(caller, ask, "nvmlDeviceGetMemoryInfo")
        believable = memory is not None and 0 <= memory.used <= memory.total and memory.total > 0
        return MigReading(
            uuid=decode(uuid),
            gpu_instance=gpu_instance,
            compute_instance=self._quietly(caller, ask, "nvmlDeviceGetComputeInstanceId"),
            profile=self._profile(ask, caller),
            memory_used_bytes=memory.used if believable else None,
            memory_total_bytes=memory.total if believable else None,
            sm_active_ratio=self._activity(gpu_instance, caller, now_s),
        )

    def _profile(self, ask: Ask, caller: Caller) -> str:
        """The name ends in it: "NVIDIA A100-SXM4-80GB MIG 3g.40gb"."""
        name = decode(self._quietly(caller, ask, "nvmlDeviceGetName"))
        found = re.search(r"\d+g\.\d+gb(?:\+\S+)?$|(?<=MIG )\S+$", name)
        return found.group(0) if found else name

    def _activity(self, gpu_instance: int | None, caller: Caller, now_s: float) -> float | None:
        if not self._gpm_supported or gpu_instance is None:
            return None
        pair = self._pairs.get(gpu_instance)
        if pair is None:
            pair = self._pairs[gpu_instance] = GpmPair(self._api, self._handle, (SM_ACTIVE,), gpu_instance)
        try:
            percent = pair.read(caller, now_s).get(SM_ACTIVE)
        except Exception as error:
            judge(errors.code_of(error), caller)
            return None
        return percent / 100 if percent is not None and 0 <= percent <= 101 else None

    def free(self, caller: Caller) -> None:
        for pair in self._pairs.values():
            pair.free(caller)
        self._pairs.clear()
