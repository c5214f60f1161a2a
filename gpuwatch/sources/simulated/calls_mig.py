"""Entry points for cards that are cut into MIG instances."""

from typing import TYPE_CHECKING, Any

from gpuwatch.sources.simulated import codes
from gpuwatch.sources.simulated.entries import entry, fixed_entry, need, number, put, target
from gpuwatch.sources.simulated.gpu import Refused
from gpuwatch.sources.simulated.scenario import MigSlice

if TYPE_CHECKING:
    from gpuwatch.sources.simulated.driver import SimulatedDriver

_MOST = 7

fixed_entry("nvmlDeviceGetMaxMigDeviceCount", lambda gpu: _MOST if gpu.model.mig else 0)


@entry("nvmlDeviceGetMigMode")
def mig_mode(driver: "SimulatedDriver", handle: Any, current: Any, pending: Any) -> None:
    gpu = driver.gpu(handle)
    need(gpu.model.mig, codes.NOT_SUPPORTED)
    put(current, int(gpu.plan.mig is not None))
    put(pending, int(gpu.plan.mig is not None))


@entry("nvmlDeviceGetMigDeviceHandleByIndex")
def mig_handle(driver: "SimulatedDriver", handle: Any, place: Any, out: Any) -> None:
    gpu = driver.gpu(handle)
    if gpu.plan.mig is None:
        raise Refused(codes.NOT_FOUND if gpu.model.mig else codes.NOT_SUPPORTED)
    need(0 <= number(place) < _MOST)
    need(number(place) < len(gpu.plan.mig), codes.NOT_FOUND)
    target(out).contents = driver.handle(gpu, number(place))


@entry("nvmlDeviceIsMigDeviceHandle")
def is_mig_handle(driver: "SimulatedDriver", handle: Any, out: Any) -> None:
    put(out, int(driver.device(handle)[1] >= 0))


@entry("nvmlDeviceGetDeviceHandleFromMigDeviceHandle")
def parent_handle(driver: "SimulatedDriver", handle: Any, out: Any) -> None:
    gpu, slot = driver.device(handle)
    need(slot >= 0)
    target(out).contents = driver.handle(gpu)


def _slice(driver: "SimulatedDriver", handle: Any) -> MigSlice:
    gpu, slot = driver.part(handle)
    if slot < 0 or gpu.plan.mig is None:
        raise Refused(codes.NOT_SUPPORTED)
    return gpu.plan.mig[slot]


@entry("nvmlDeviceGetGpuInstanceId")
def gpu_instance_id(driver: "SimulatedDriver", handle: Any, out: Any) -> None:
    put(out, _slice(driver, handle).gpu_instance)


@entry("nvmlDeviceGetComputeInstanceId")
def compute_instance_id(driver: "SimulatedDriver", handle: Any, out: Any) -> None:
    _slice(driver, handle)
    put(out, 0)


@entry("nvmlDeviceGetAttributes_v2")
def attributes(driver: "SimulatedDriver", handle: Any, out: Any) -> None:
    part = _slice(driver, handle)
    found = target(out)
    found.multiprocessorCount = part.sm_count
    found.sharedCopyEngineCount = part.slices
    found.sharedDecoderCount = part.slices // 2
    found.gpuInstanceSliceCount = found.computeInstanceSliceCount = part.slices
    found.memorySizeMB = part.memory_mib
