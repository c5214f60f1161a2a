"""Entry points for the processes on a card and how much of it each uses."""

from typing import TYPE_CHECKING, Any

from gpuwatch.sources.simulated import codes
from gpuwatch.sources.simulated.entries import entry, need, number, percent, put, target
from gpuwatch.sources.simulated.gpu import SimulatedGpu
from gpuwatch.sources.simulated.processes import LiveProcess
from gpuwatch.sources.simulated.scenario import COMPUTE, GRAPHICS, MPS

if TYPE_CHECKING:
    from gpuwatch.sources.simulated.driver import SimulatedDriver

#: NVML_VALUE_NOT_AVAILABLE, and the id of "no MIG instance".
_NO_MEMORY = 0xFFFFFFFFFFFFFFFF
_NO_INSTANCE = 0xFFFFFFFF
_RING = 100


def _listed(driver: "SimulatedDriver", handle: Any, kinds: int) -> tuple[SimulatedGpu, list[LiveProcess]]:
    gpu, slot = driver.part(handle)
    gpu.check("procs")
    found = [process for process in driver.processes(gpu) if process.plan.kinds & kinds]
    if slot >= 0 and gpu.plan.mig:
        instance = gpu.plan.mig[slot].gpu_instance
        found = [process for process in found if process.plan.gpu_instance == instance]
    return gpu, found


def _process_list(kind: str, kinds: int) -> None:
    def read(driver: "SimulatedDriver", handle: Any, count: Any, out: Any) -> None:
        gpu, found = _listed(driver, handle, kinds)
        room = number(target(count))
        put(count, len(found))
        need(room >= len(found), codes.INSUFFICIENT_SIZE)
        for place, process in enumerate(found):
            _fill(out[place], gpu, process)

    for version in ("", "_v2", "_v3"):
        entry(f"nvmlDeviceGet{kind}RunningProcesses{version}")(read)


def _fill(out: Any, gpu: SimulatedGpu, process: LiveProcess) -> None:
    out.pid = process.pid
    out.usedGpuMemory = _NO_MEMORY if process.memory_bytes is None else process.memory_bytes
    in_mig = gpu.plan.mig is not None and process.plan.gpu_instance is not None
    if hasattr(out, "gpuInstanceId"):
        out.gpuInstanceId = (process.plan.gpu_instance or 0) if in_mig else _NO_INSTANCE
        out.computeInstanceId = 0 if in_mig else _NO_INSTANCE


_process_list("Compute", COMPUTE)
_process_list("Graphics", GRAPHICS)
_process_list("MPSCompute", MPS)


@entry("nvmlDeviceGetRunningProcessDetailList")
def detail_list(driver: "SimulatedDriver", handle: Any, details: Any) -> None:
    wanted = target(details)
    need(wanted.mode < 3)
    gpu, found = _listed(driver, handle, (COMPUTE, GRAPHICS, MPS)[wanted.mode])
    room = wanted.numProcArrayEntries
    wanted.numProcArrayEntries = len(found)
    need(room >= len(found), codes.INSUFFICIENT_SIZE)
    for place, process in enumerate(found):
        _fill(wanted.procArray[place], gpu, process)


def _shares(
    driver: "SimulatedDriver", gpu: SimulatedGpu, last_seen_us: int
) -> list[tuple[int, int, list[int]]]:
    """(pid, µs, [sm, memory, encoder, decoder] percent) of processes active in the newest period."""
    gpu.check("proc_util")
    need(gpu.plan.mig is None, codes.NOT_SUPPORTED)
    period = driver.scenario.process_sample_s
    newest = gpu.last_sample(period)
    stamp = int(gpu.sample_end_s(period, newest) * 1e6)
    if stamp <= last_seen_us:
        return []
    found = []
    for process in driver.processes(gpu):
        place = driver.table.number(process.plan)
        waves = [
            driver.table.wave(place, process.plan, gpu, name) for name in ("sm", "mem_util", "enc", "dec")
        ]
        shares = [percent(gpu.mean_over(wave, period, newest)) for wave in waves]
        if any(shares):
            found.append((process.pid, stamp, shares))
    return found


@entry("nvmlDeviceGetProcessUtilization")
def process_utilization(driver: "SimulatedDriver", handle: Any, out: Any, count: Any, last_seen: Any) -> None:
    gpu = driver.gpu(handle)
    if out is None:
        gpu.check("proc_util")
        need(gpu.plan.mig is None, codes.NOT_SUPPORTED)
        put(count, _RING)
        need(False, codes.INSUFFICIENT_SIZE)
    found = _shares(driver, gpu, number(last_seen))
    room = number(target(count))
    put(count, len(found))
    need(found, codes.NOT_FOUND)
    need(room >= len(found), codes.INSUFFICIENT_SIZE)
    for place, (pid, stamp, shares) in enumerate(found):
        sample = out[place]
        sample.pid, sample.timeStamp = pid, stamp
        sample.smUtil, sample.memUtil, sample.encUtil, sample.decUtil = shares


@entry("nvmlDeviceGetProcessesUtilizationInfo")
def processes_utilization(driver: "SimulatedDriver", handle: Any, request: Any) -> None:
    gpu = driver.gpu(handle)
    wanted = target(request)
    found = _shares(driver, gpu, wanted.lastSeenTimeStamp)
    if not wanted.procUtilArray:
        wanted.processSamplesCount = max(1, len(found))
        need(False, codes.INSUFFICIENT_SIZE)
    room = wanted.processSamplesCount
    wanted.processSamplesCount = len(found)
    need(found, codes.NOT_FOUND)
    need(room >= len(found), codes.INSUFFICIENT_SIZE)
    for place, (pid, stamp, shares) in enumerate(found):
        sample = wanted.procUtilArray[place]
        sample.pid, sample.timeStamp = pid, stamp
        sample.smUtil, sample.memUtil, sample.encUtil, sample.decUtil = shares
