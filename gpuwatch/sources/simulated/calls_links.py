"""Entry points for PCIe, NVLink and the topology between cards."""

from typing import TYPE_CHECKING, Any

from gpuwatch.sources.simulated import codes
from gpuwatch.sources.simulated.calls_inventory import fill_pci
from gpuwatch.sources.simulated.entries import (
    entry,
    fixed_entry,
    metric_entry,
    need,
    number,
    put,
    target,
    uint,
)
from gpuwatch.sources.simulated.gpu import Refused, SimulatedGpu

if TYPE_CHECKING:
    from gpuwatch.sources.simulated.driver import SimulatedDriver

ALL_LINKS = 0xFFFFFFFF
#: Transfer rates of the generations, MT/s per lane.
_SPEEDS = (0, 2500, 5000, 8000, 16000, 32000, 64000)

metric_entry("nvmlDeviceGetCurrPcieLinkGeneration", "pcie_gen")
metric_entry("nvmlDeviceGetCurrPcieLinkWidth", "pcie_width")
metric_entry("nvmlDeviceGetMaxPcieLinkGeneration", "pcie_gen_max")
metric_entry("nvmlDeviceGetMaxPcieLinkWidth", "pcie_width_max")
metric_entry("nvmlDeviceGetPcieReplayCounter", "pcie_replay")
metric_entry("nvmlDeviceGetPcieLinkMaxSpeed", "pcie_gen_max")  # the enum counts generations
fixed_entry("nvmlDeviceGetGpuMaxPcieLinkGeneration", lambda gpu: gpu.model.pcie[0])


@entry("nvmlDeviceGetPcieSpeed")
def pcie_speed(driver: "SimulatedDriver", handle: Any, out: Any) -> None:
    generation = uint(driver.gpu(handle).value("pcie_gen"))
    put(out, _SPEEDS[generation] if generation < len(_SPEEDS) else 0)


@entry("nvmlDeviceGetPcieThroughput")
def pcie_throughput(driver: "SimulatedDriver", handle: Any, direction: Any, out: Any) -> None:
    """KiB/s over the time the call takes: like the real one, it measures while the caller waits."""
    gpu = driver.gpu(handle)
    need(number(direction) in (0, 1))
    metric = "pcie_rx" if number(direction) else "pcie_tx"
    gpu.check(metric)
    start = driver.timeline.now()
    driver.timeline.sleep(driver.scenario.pcie_block_s)
    put(out, uint(gpu.wave(metric).mean(start, driver.timeline.now()) / 1024))


def pcie_bytes(driver: "SimulatedDriver", gpu: SimulatedGpu, direction: str) -> int:
    """Bytes moved since the driver was loaded; wraps where the scenario narrows the counter."""
    gpu.check("pcie_counters")
    total = int(gpu.counter_start[direction] + gpu.integral(direction))
    bits = driver.scenario.pcie_counter_bits
    return total & (1 << bits) - 1 if bits < 64 else total


def links_up(gpu: SimulatedGpu) -> int:
    return uint(min(gpu.value("nvlink"), gpu.model.link_count))


def check_link(gpu: SimulatedGpu, link: int) -> None:
    need(gpu.model.link_count, codes.NOT_SUPPORTED)
    need(0 <= link < gpu.model.link_count)


def link_bytes(gpu: SimulatedGpu, link: int, direction: str) -> float:
    """Bytes over one link, or over all of them."""
    need(gpu.model.link_count, codes.NOT_SUPPORTED)
    gpu.check(direction)
    up = links_up(gpu)
    total = gpu.counter_start[direction] + gpu.integral(direction)
    if link == ALL_LINKS:
        return total if up else 0.0
    check_link(gpu, link)
    return total / up if link < up else 0.0


def link_errors(gpu: SimulatedGpu, link: int, metric: str) -> int:
    """All errors are on link 0."""
    if link != ALL_LINKS:
        check_link(gpu, link)
    need(gpu.model.link_count, codes.NOT_SUPPORTED)
    value = gpu.value(metric)
    return int(max(0.0, value)) if link in (0, ALL_LINKS) else 0


@entry("nvmlDeviceGetNvLinkState")
def link_state(driver: "SimulatedDriver", handle: Any, link: Any, out: Any) -> None:
    gpu = driver.gpu(handle)
    check_link(gpu, number(link))
    put(out, int(number(link) < links_up(gpu)))


@entry("nvmlDeviceGetNvLinkVersion")
def link_version(driver: "SimulatedDriver", handle: Any, link: Any, out: Any) -> None:
    gpu = driver.gpu(handle)
    check_link(gpu, number(link))
    put(out, gpu.model.link_version)


def _active_link(driver: "SimulatedDriver", handle: Any, link: Any) -> SimulatedGpu:
    gpu = driver.gpu(handle)
    check_link(gpu, number(link))
    need(number(link) < links_up(gpu), codes.NOT_SUPPORTED)
    return gpu


@entry("nvmlDeviceGetNvLinkCapability")
def link_capability(driver: "SimulatedDriver", handle: Any, link: Any, which: Any, out: Any) -> None:
    gpu = _active_link(driver, handle, link)
    put(out, int(gpu.model.geforce) if number(which) == 4 else 1)


@entry("nvmlDeviceGetNvLinkRemoteDeviceType")
def link_remote_type(driver: "SimulatedDriver", handle: Any, link: Any, out: Any) -> None:
    gpu = _active_link(driver, handle, link)
    put(out, 2 if gpu.model.links_up else 0)  # a switch on HGX boards, else a GPU


@entry("nvmlDeviceGetNvLinkRemotePciInfo_v2")
def link_remote_pci(driver: "SimulatedDriver", handle: Any, link: Any, out: Any) -> None:
    gpu = _active_link(driver, handle, link)
    info = target(out)
    if gpu.model.links_up:  # one of four switches
        info.bus = 7 + number(link) % 4
        info.pciDeviceId = 0x22A310DE
        info.busId = f"00000000:{info.bus:02X}:00.0".encode()
        return
    other = gpu.index ^ 1
    fill_pci(info, driver.gpus[other if other < len(driver.gpus) else gpu.index])


@entry("nvmlDeviceGetNvLinkErrorCounter")
def link_error_counter(driver: "SimulatedDriver", handle: Any, link: Any, which: Any, out: Any) -> None:
    gpu = driver.gpu(handle)
    metrics = ("nvlink_replay", "nvlink_recovery", "nvlink_crc", "nvlink_crc")
    need(number(which) < 5)
    check_link(gpu, number(link))
    need(number(which) < 4, codes.NOT_SUPPORTED)
    put(out, link_errors(gpu, number(link), metrics[number(which)]))


#: Ways between two cards (nvmlGpuTopologyLevel_t) by the words of the setting `topology`.
_WAYS = {"single": 10, "multiple": 20, "host": 30, "node": 40, "system": 50}


def _ancestor(driver: "SimulatedDriver", one: SimulatedGpu, other: SimulatedGpu) -> int:
    """NVML_TOPOLOGY_*: 0 the same, 30 one host bridge, 40 one NUMA node, 50 across sockets."""
    if one is other:
        return 0
    way = driver.scenario.host.machine.get("topology")
    if isinstance(way, str) and way in _WAYS:
        return _WAYS[way]
    if one.numa_node != other.numa_node:
        return 50
    return 40 if one.model.links_up else 30


@entry("nvmlDeviceGetTopologyCommonAncestor")
def common_ancestor(driver: "SimulatedDriver", one: Any, other: Any, out: Any) -> None:
    put(out, _ancestor(driver, driver.gpu(one), driver.gpu(other)))


@entry("nvmlDeviceGetTopologyNearestGpus")
def nearest_gpus(driver: "SimulatedDriver", handle: Any, level: Any, count: Any, out: Any) -> None:
    gpu = driver.gpu(handle)
    near = [
        other for other in driver.gpus if other is not gpu and _ancestor(driver, gpu, other) == number(level)
    ]
    if out is not None:
        for place, other in enumerate(near[: number(target(count))]):
            out[place].contents = driver.handle(other)
    put(count, len(near))


@entry("nvmlDeviceGetP2PStatus")
def p2p_status(driver: "SimulatedDriver", one: Any, other: Any, what: Any, out: Any) -> None:
    """0 works, 1 not with this chipset, 5 not supported. Kind 2 is NVLink, 4 is PCIe."""
    first, second = driver.gpu(one), driver.gpu(other)
    need(0 <= number(what) < 5)
    now = driver.timeline.now()
    peers = driver.scenario.host.machine.get("p2p")
    if peers in ("on", "off"):
        put(out, 0 if peers == "on" else 1)
        return
    if first.wave("nvlink").at(now) > 0 and second.wave("nvlink").at(now) > 0:
        put(out, 5 if number(what) == 4 else 0)
    else:
        put(out, 5 if number(what) == 2 else int(first.model.geforce))


@entry("nvmlDeviceOnSameBoard")
def same_board(driver: "SimulatedDriver", one: Any, other: Any, out: Any) -> None:
    put(out, int(driver.gpu(one) is driver.gpu(other)))


@entry("nvmlDeviceGetGpuFabricInfo", "nvmlDeviceGetGpuFabricInfoV")
def fabric(driver: "SimulatedDriver", handle: Any, out: Any) -> None:
    gpu = driver.gpu(handle)
    if not gpu.model.links_up:
        raise Refused(codes.NOT_SUPPORTED)
    info = target(out)
    info.status, info.cliqueId = 0, 0
    info.state = 3 if gpu.model.architecture >= 9 else 0  # 3: completed
    if hasattr(info, "healthMask"):
        info.healthMask = 2
