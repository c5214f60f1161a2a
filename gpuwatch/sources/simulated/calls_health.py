"""Entry points for errors of memory: ECC, remapped rows, retired pages."""

from typing import TYPE_CHECKING, Any

from gpuwatch.sources.simulated import codes
from gpuwatch.sources.simulated.entries import entry, metric_entry, need, number, put, target, uint
from gpuwatch.sources.simulated.gpu import SimulatedGpu

if TYPE_CHECKING:
    from gpuwatch.sources.simulated.driver import SimulatedDriver

_DEVICE_MEMORY = 2


def ecc_total(gpu: SimulatedGpu, uncorrected: int, aggregate: int) -> int:
    need(uncorrected in (0, 1) and aggregate in (0, 1))
    need(gpu.value("ecc_mode") != 0, codes.NOT_SUPPORTED)
    name = f"ecc_{'uncorr' if uncorrected else 'corr'}{'_agg' if aggregate else ''}"
    return int(max(0.0, gpu.value(name)))


@entry("nvmlDeviceGetTotalEccErrors")
def total_ecc_errors(driver: "SimulatedDriver", handle: Any, kind: Any, counter: Any, out: Any) -> None:
    put(out, ecc_total(driver.gpu(handle), number(kind), number(counter)))


@entry("nvmlDeviceGetMemoryErrorCounter")
def memory_errors(
    driver: "SimulatedDriver", handle: Any, kind: Any, counter: Any, where: Any, out: Any
) -> None:
    total = ecc_total(driver.gpu(handle), number(kind), number(counter))
    put(out, total if number(where) == _DEVICE_MEMORY else 0)


@entry("nvmlDeviceGetDetailedEccErrors")
def detailed_ecc_errors(driver: "SimulatedDriver", handle: Any, kind: Any, counter: Any, out: Any) -> None:
    target(out).deviceMemory = ecc_total(driver.gpu(handle), number(kind), number(counter))


@entry("nvmlDeviceGetRemappedRows")
def remapped_rows(
    driver: "SimulatedDriver", handle: Any, corrected: Any, uncorrected: Any, pending: Any, failed: Any
) -> None:
    gpu = driver.gpu(handle)
    need(gpu.plan.mig is None, codes.NOT_SUPPORTED)
    values = [gpu.value(f"remap_{name}") for name in ("corr", "uncorr", "pending", "failure")]
    put(corrected, uint(values[0]))
    put(uncorrected, uint(values[1]))
    put(pending, int(values[2] != 0))
    put(failed, int(values[3] != 0))


@entry("nvmlDeviceGetRowRemapperHistogram")
def remapper_histogram(driver: "SimulatedDriver", handle: Any, out: Any) -> None:
    driver.gpu(handle).check("remap_corr")
    target(out).max = 640


@entry("nvmlDeviceGetRetiredPages", "nvmlDeviceGetRetiredPages_v2")
def retired_pages(
    driver: "SimulatedDriver", handle: Any, cause: Any, count: Any, pages: Any, times: Any = None
) -> None:
    gpu = driver.gpu(handle)
    need(number(cause) in (0, 1))
    found = uint(gpu.value("retired_dbe" if number(cause) else "retired_sbe"))
    room = number(target(count))
    put(count, found)
    need(room >= found, codes.INSUFFICIENT_SIZE)
    for place in range(found if pages is not None else 0):
        pages[place] = 0x3A0000 + place * 0x10000
        if times is not None:
            times[place] = int(driver.timeline.start_s * 1e6)


metric_entry("nvmlDeviceGetRetiredPagesPendingStatus", "retired_pending")
