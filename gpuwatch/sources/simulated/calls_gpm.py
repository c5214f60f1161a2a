"""Entry points for GPU performance monitoring (GPM): means of hardware counters between two samples."""

import ctypes
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pynvml

from gpuwatch.sources.simulated import codes
from gpuwatch.sources.simulated.calls_links import check_link, links_up
from gpuwatch.sources.simulated.entries import entry, need, put, target
from gpuwatch.sources.simulated.gpu import Refused, SimulatedGpu
from gpuwatch.sources.simulated.models import MIB

if TYPE_CHECKING:
    from gpuwatch.sources.simulated.driver import SimulatedDriver

#: GPM metric ids (nvml.h): the scenario's metric and whether it is a rate in MiB/s rather than %.
_METRICS = {
    1: ("util", False),
    2: ("sm_active", False),
    3: ("sm_occupancy", False),
    4: ("integer", False),
    5: ("tensor", False),
    7: ("tensor", False),
    10: ("dram", False),
    11: ("fp64", False),
    12: ("fp32", False),
    13: ("fp16", False),
    20: ("pcie_tx", True),
    21: ("pcie_rx", True),
    30: ("dec", False),
    40: ("jpg", False),
    50: ("ofa", False),
    60: ("nvlink_rx", True),
    61: ("nvlink_tx", True),
}
#: Engines that stay idle.
_IDLE = frozenset({6, 8, 9, 51, *range(31, 38), *range(41, 48)})
_PER_LINK = range(62, 98)


@dataclass(slots=True)
class _Sample:
    memory: Any  # keeps the address alive
    gpu: SimulatedGpu | None = None
    t: float = 0.0


@entry("nvmlGpmQueryDeviceSupport")
def support(driver: "SimulatedDriver", handle: Any, out: Any) -> None:
    target(out).isSupportedDevice = int(driver.gpu(handle).supports("gpm"))


@entry("nvmlGpmQueryIfStreamingEnabled")
def streaming(driver: "SimulatedDriver", handle: Any, out: Any) -> None:
    driver.gpu(handle).check("gpm")
    put(out, 1)


@entry("nvmlGpmSampleAlloc")
def allocate(driver: "SimulatedDriver", out: Any) -> None:
    memory = pynvml.struct_c_nvmlGpmSample_t()
    driver.gpm_samples[ctypes.addressof(memory)] = _Sample(memory)
    target(out).contents = memory


def _sample(driver: "SimulatedDriver", pointer: Any) -> _Sample:
    try:
        found: _Sample = driver.gpm_samples[ctypes.addressof(pointer.contents)]
    except (AttributeError, KeyError, ValueError):
        raise Refused(codes.INVALID_ARGUMENT) from None
    return found


@entry("nvmlGpmSampleFree")
def free(driver: "SimulatedDriver", pointer: Any) -> None:
    del driver.gpm_samples[ctypes.addressof(_sample(driver, pointer).memory)]


@entry("nvmlGpmSampleGet")
def take(driver: "SimulatedDriver", handle: Any, pointer: Any) -> None:
    gpu = driver.gpu(handle)
    sample = _sample(driver, pointer)
    gpu.check("gpm")
    sample.gpu, sample.t = gpu, driver.timeline.now()


@entry("nvmlGpmMigSampleGet")
def take_mig(driver: "SimulatedDriver", handle: Any, instance: Any, pointer: Any) -> None:
    need(driver.gpu(handle).plan.mig is not None, codes.NOT_SUPPORTED)
    take(driver, handle, pointer)


@entry("nvmlGpmMetricsGet")
def metrics(driver: "SimulatedDriver", request: Any) -> None:
    wanted = target(request)
    need(wanted.version == 1, codes.VERSION_MISMATCH)
    first, second = _sample(driver, wanted.sample1), _sample(driver, wanted.sample2)
    gpu = first.gpu
    if gpu is None or gpu is not second.gpu:
        raise Refused(codes.INVALID_ARGUMENT)
    start, end = sorted((first.t, second.t))
    for place in range(wanted.numMetrics):
        metric = wanted.metrics[place]
        metric.value, metric.nvmlReturn = 0.0, codes.SUCCESS
        try:
            metric.value = _value(gpu, metric.metricId, start, end)
        except Refused as refusal:
            metric.nvmlReturn = refusal.code


def _value(gpu: SimulatedGpu, metric_id: int, start: float, end: float) -> float:
    if metric_id in _IDLE:
        return 0.0
    if metric_id in _PER_LINK:
        link, sends = divmod(metric_id - _PER_LINK.start, 2)
        check_link(gpu, link)
        up = links_up(gpu)
        rate = gpu.wave("nvlink_tx" if sends else "nvlink_rx").mean(start, end)
        return rate / MIB / up if link < up else 0.0
    if metric_id not in _METRICS:
        raise Refused(codes.NOT_SUPPORTED)
    name, is_rate = _METRICS[metric_id]
    gpu.check(name)
    mean = max(0.0, gpu.wave(name).mean(start, end))
    return mean / MIB if is_rate else min(100.0, mean)
