"""Entry points for what a card is: names, places, modes."""

from typing import TYPE_CHECKING, Any

from gpuwatch.sources.simulated import codes
from gpuwatch.sources.simulated.calls_system import mig_uuid
from gpuwatch.sources.simulated.entries import (
    entry,
    fixed_entry,
    metric_entry,
    need,
    number,
    put,
    put_text,
    target,
)
from gpuwatch.sources.simulated.gpu import Refused, SimulatedGpu

if TYPE_CHECKING:
    from gpuwatch.sources.simulated.driver import SimulatedDriver

#: Cores of the host, for affinity masks.
_CORES = 16


@entry("nvmlDeviceGetIndex")
def index(driver: "SimulatedDriver", handle: Any, out: Any) -> None:
    gpu, slot = driver.device(handle)
    put(out, gpu.index if slot < 0 else slot)


@entry("nvmlDeviceGetName")
def name(driver: "SimulatedDriver", handle: Any, buffer: Any, length: Any) -> None:
    gpu, slot = driver.device(handle)
    profile = "" if slot < 0 or not gpu.plan.mig else f" MIG {gpu.plan.mig[slot].profile}"
    put_text(buffer, length, gpu.plan.name + profile)


@entry("nvmlDeviceGetUUID")
def uuid(driver: "SimulatedDriver", handle: Any, buffer: Any, length: Any) -> None:
    gpu, slot = driver.device(handle)
    put_text(buffer, length, gpu.uuid if slot < 0 else mig_uuid(gpu, slot))


@entry("nvmlDeviceGetSerial")
def serial(driver: "SimulatedDriver", handle: Any, buffer: Any, length: Any) -> None:
    gpu = driver.gpu(handle)
    need(gpu.model.serial, codes.NOT_SUPPORTED)
    put_text(buffer, length, gpu.serial)


@entry("nvmlDeviceGetVbiosVersion")
def vbios(driver: "SimulatedDriver", handle: Any, buffer: Any, length: Any) -> None:
    put_text(buffer, length, driver.gpu(handle).model.vbios)


@entry("nvmlDeviceGetBoardPartNumber")
def part_number(driver: "SimulatedDriver", handle: Any, buffer: Any, length: Any) -> None:
    part = driver.gpu(handle).model.part
    if part is None:
        raise Refused(codes.NOT_SUPPORTED)
    put_text(buffer, length, part)


@entry("nvmlDeviceGetGspFirmwareVersion")
def gsp_version(driver: "SimulatedDriver", handle: Any, buffer: Any) -> None:
    need(driver.gpu(handle).model.architecture >= 6, codes.NOT_SUPPORTED)
    buffer.value = driver.scenario.driver.encode()


@entry("nvmlDeviceGetPciInfo", "nvmlDeviceGetPciInfo_v2", "nvmlDeviceGetPciInfo_v3")
def pci_info(driver: "SimulatedDriver", handle: Any, info: Any) -> None:
    gpu, slot = driver.device(handle)
    need(slot < 0, codes.NOT_SUPPORTED)
    fill_pci(target(info), gpu)


@entry("nvmlDeviceGetPciInfoExt")
def pci_info_extended(driver: "SimulatedDriver", handle: Any, info: Any) -> None:
    gpu, _ = driver.device(handle)
    out = target(info)
    out.domain, out.bus, out.device = gpu.domain, gpu.bus, 0
    out.pciDeviceId, out.pciSubSystemId = gpu.model.pci_ids
    out.baseClass, out.subClass = 3, 0 if gpu.model.geforce else 2
    out.busId = gpu.bus_id.encode()


def fill_pci(out: Any, gpu: SimulatedGpu) -> None:
    out.domain, out.bus, out.device = gpu.domain, gpu.bus, 0
    out.pciDeviceId, out.pciSubSystemId = gpu.model.pci_ids
    out.busIdLegacy = f"{gpu.domain & 0xFFFF:04X}:{gpu.bus & 0xFF:02X}:00.0".encode()
    if hasattr(out, "busId"):
        out.busId = gpu.bus_id.encode()


@entry("nvmlDeviceGetMinorNumber")
def minor_number(driver: "SimulatedDriver", handle: Any, out: Any) -> None:
    put(out, driver.device(handle)[0].minor)


@entry("nvmlDeviceGetCudaComputeCapability")
def compute_capability(driver: "SimulatedDriver", handle: Any, major: Any, minor: Any) -> None:
    gpu, _ = driver.device(handle)
    put(major, gpu.model.compute_capability[0])
    put(minor, gpu.model.compute_capability[1])


fixed_entry("nvmlDeviceGetBrand", lambda gpu: gpu.model.brand)
fixed_entry("nvmlDeviceGetArchitecture", lambda gpu: gpu.model.architecture)
fixed_entry("nvmlDeviceGetBusType", lambda gpu: 3 if gpu.model.unified else 2)
fixed_entry("nvmlDeviceGetMemoryBusWidth", lambda gpu: gpu.model.bus_bits or None)
fixed_entry("nvmlDeviceGetNumGpuCores", lambda gpu: None if gpu.plan.mig else gpu.model.core_count)
fixed_entry("nvmlDeviceGetBoardId", lambda gpu: gpu.domain << 16 | gpu.bus << 8)
fixed_entry("nvmlDeviceGetMultiGpuBoard", lambda gpu: 0)
fixed_entry("nvmlDeviceGetIrqNum", lambda gpu: 160 + gpu.index)
fixed_entry("nvmlDeviceGetModuleId", lambda gpu: gpu.index + 1 if gpu.model.links_up else None)
fixed_entry("nvmlDeviceGetNumFans", lambda gpu: gpu.model.fan_count)
fixed_entry("nvmlDeviceGetAccountingMode", lambda gpu: 0)
fixed_entry("nvmlDeviceGetAccountingBufferSize", lambda gpu: 4000)
fixed_entry("nvmlDeviceGetVirtualizationMode", lambda gpu: 0)
fixed_entry("nvmlDeviceGetPowerManagementMode", lambda gpu: 1 if gpu.model.power[0] else None)
metric_entry("nvmlDeviceGetPersistenceMode", "persistence")
metric_entry("nvmlDeviceGetComputeMode", "compute_mode")
metric_entry("nvmlDeviceGetDisplayMode", "display_mode")
metric_entry("nvmlDeviceGetDisplayActive", "display_active")
metric_entry("nvmlDeviceGetPowerSource", "power_source")


@entry("nvmlDeviceGetAddressingMode")
def addressing_mode(driver: "SimulatedDriver", handle: Any, mode: Any) -> None:
    """2: the CPU and the GPU share page tables; 1: the kernel mirrors them; 0: neither."""
    model = driver.gpu(handle).model
    target(mode).value = 2 if model.unified else int(model.architecture >= 8)


@entry("nvmlDeviceGetNumaNodeId")
def numa_node(driver: "SimulatedDriver", handle: Any, out: Any) -> None:
    put(out, _node(driver, driver.gpu(handle)))


def _node(driver: "SimulatedDriver", gpu: SimulatedGpu) -> int:
    nodes = max(1, driver.scenario.numa_nodes)
    return gpu.numa_node % nodes


@entry("nvmlDeviceGetCpuAffinity", "nvmlDeviceGetCpuAffinityWithinScope")
def cpu_affinity(driver: "SimulatedDriver", handle: Any, size: Any, mask: Any, *scope: Any) -> None:
    gpu = driver.gpu(handle)
    nodes = max(1, driver.scenario.numa_nodes)
    share = _CORES // nodes
    bits = (1 << share) - 1 << share * _node(driver, gpu)
    words = target(mask)
    for place in range(number(size)):
        words[place] = bits >> 64 * place & 0xFFFFFFFFFFFFFFFF


@entry("nvmlDeviceGetMemoryAffinity")
def memory_affinity(driver: "SimulatedDriver", handle: Any, size: Any, mask: Any, scope: Any) -> None:
    gpu = driver.gpu(handle)
    words = target(mask)
    for place in range(number(size)):
        words[place] = 0
    words[0] = 1 << _node(driver, gpu)


@entry("nvmlDeviceGetEccMode")
def ecc_mode(driver: "SimulatedDriver", handle: Any, current: Any, pending: Any) -> None:
    on = int(driver.gpu(handle).value("ecc_mode") != 0)
    put(current, on)
    put(pending, on)


@entry("nvmlDeviceGetDefaultEccMode")
def default_ecc_mode(driver: "SimulatedDriver", handle: Any, out: Any) -> None:
    ecc = driver.gpu(handle).model.ecc
    need(ecc is not None, codes.NOT_SUPPORTED)
    put(out, int(bool(ecc)))
