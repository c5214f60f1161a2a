"""GPU performance monitoring (GPM): SM, tensor core and memory activity on Hopper and newer.

Two samples alternate; each tick takes one and asks for the metrics between it and the one before.
They must lie more than 100 ms apart (nvml.h) and be freed before the driver is shut down.
"""

import math
from typing import Any

from gpuwatch.sources.nvml import errors
from gpuwatch.sources.nvml.builder import Builder
from gpuwatch.sources.nvml.caller import Caller
from gpuwatch.sources.nvml.poller import Poller, judge

_MIB = 1048576.0
SM_ACTIVE = 2  # nvmlGpmMetricId_t
#: metric id: (field, factor); percent become ratios, MiB/s become bytes/s
METRICS: dict[int, tuple[str, float]] = {
    SM_ACTIVE: ("sm_active_ratio", 0.01),
    3: ("sm_occupancy_ratio", 0.01),
    5: ("tensor_ratio", 0.01),
    10: ("dram_ratio", 0.01),
    11: ("fp64_ratio", 0.01),
    12: ("fp32_ratio", 0.01),
    13: ("fp16_ratio", 0.01),
    20: ("pcie_tx_bytes_per_s", _MIB),
    21: ("pcie_rx_bytes_per_s", _MIB),
}
#: Without the PCIe gauges, which have other ways.
FIELDS = tuple(field for field, _ in METRICS.values() if not field.startswith("pcie"))
_SHORTEST_S = 0.1


class GpmPair:
    """Two samples of one GPU, or of one MIG instance (`gpu_instance`)."""

    def __init__(self, api: Any, handle: Any, ids: tuple[int, ...], gpu_instance: int | None = None) -> None:
        self._api = api
        self._handle = handle
        self._gpu_instance = gpu_instance
        self._samples: list[Any] = []
        self._newest_s: float | None = None
        self._request: Any = None
        self._ids = ids

    def read(self, caller: Caller, now_s: float) -> dict[int, float]:
        """Values by metric id since the last read; empty the first time. Raises the binding's errors."""
        if not self._samples:
            self._samples = [caller.call(self._api.nvmlGpmSampleAlloc) for _ in range(2)]
            self._request = self._new_request()
        if self._newest_s is not None and now_s - self._newest_s <= _SHORTEST_S:
            return {}
        older, newer = self._samples[1], self._samples[0]
        if self._gpu_instance is None:
            caller.call(self._api.nvmlGpmSampleGet, self._handle, newer)
        else:
            caller.call(self._api.nvmlGpmMigSampleGet, self._handle, self._gpu_instance, newer)
        self._samples = [older, newer]
        first = self._newest_s is None
        self._newest_s = now_s
        if first:
            return {}
        request = self._request
        request.sample1, request.sample2 = older, newer
        caller.call(self._api.nvmlGpmMetricsGet, request)
        values: dict[int, float] = {}
        for place, identity in enumerate(self._ids):
            answer = request.metrics[place]
            if answer.nvmlReturn == errors.SUCCESS and math.isfinite(answer.value):
                values[identity] = answer.value
        return values

    def _new_request(self) -> Any:
        request = self._api.c_nvmlGpmMetricsGet_t()
        request.version = self._api.NVML_GPM_METRICS_GET_VERSION
        request.numMetrics = len(self._ids)
        for place, identity in enumerate(self._ids):
            request.metrics[place].metricId = identity
        return request

    def free(self, caller: Caller) -> None:
        """Never raises: on a lost GPU there is nothing left to free."""
        samples, self._samples = self._samples, []
        self._newest_s = None
        for sample in samples:
            try:
                caller.call(self._api.nvmlGpmSampleFree, sample)
            except Exception:
                return


class Gpm:
    """The metrics of one whole GPU."""

    def __init__(self, api: Any, handle: Any, poller: Poller) -> None:
        self._pair = GpmPair(api, handle, tuple(METRICS))
        self._poller = poller
        self._on = True

    def read(self, out: Builder, caller: Caller, now_s: float) -> None:
        """Raises GpuGoneError or DriverGoneError."""
        if not self._on:
            return
        try:
            values = self._pair.read(caller, now_s)
        except Exception as error:
            code = errors.code_of(error)
            judge(code, caller)
            if code in errors.PERMANENT or code == errors.NO_PERMISSION:
                self._on = False
                self._poller.lacks(FIELDS, errors.text(code))
            else:
                out.lacks(FIELDS, errors.text(code))
            return
        for identity, (field, factor) in METRICS.items():
            if identity in values:
                out.put(field, values[identity] * factor)
            elif field in FIELDS:
                out.absent[field] = "needs two readings" if not values else "the driver has no value"

    def free(self, caller: Caller) -> None:
        self._pair.free(caller)
