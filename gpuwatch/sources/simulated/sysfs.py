"""Files of the simulated host below /sys, and the few of /proc and /etc that never change."""

from collections.abc import Callable

from gpuwatch.sources.simulated.gpu import SimulatedGpu
from gpuwatch.sources.simulated.host_files import disks
from gpuwatch.sources.simulated.machine import Machine, whole
from gpuwatch.sources.simulated.process_files import VIEWER, ProcessFiles

_RATES = ("", "2.5 GT/s PCIe", "5.0 GT/s PCIe", "8.0 GT/s PCIe", "16.0 GT/s PCIe", "32.0 GT/s PCIe")
#: Control group files of the job: ten periods a second.
_PERIODS_PER_S = 10
_THROTTLED_S = 0.06  # lost in a period that is cut short

Maker = Callable[[], bytes]


def sysfs(machine: Machine, files: ProcessFiles) -> tuple[dict[str, Maker], dict[str, str]]:
    """Makers of files, and symbolic links with absolute targets."""
    made: dict[str, Maker] = {}
    links: dict[str, str] = {}
    fixed = {**_identity(machine), **_cpus(machine), **_nodes(machine), **_blocks(machine, links)}
    for path, text in fixed.items():
        made[path] = _constant(text)
    for gpu in machine.gpus:
        _pci(machine, gpu, made, links)
    made |= _control_groups(machine, files)
    links["/sys/class/net/eno1"] = "/sys/devices/virtual/net/eno1"
    made["/sys/devices/virtual/net/eno1/speed"] = _constant("10000\n")
    made["/sys/devices/virtual/net/eno1/operstate"] = _constant("up\n")
    return made, links


def _constant(text: str) -> Maker:
    data = text.encode()
    return lambda: data


def _identity(machine: Machine) -> dict[str, str]:
    virtual = machine.settings.on("vm", False)
    driver = machine.scenario.driver
    found = {
        "/proc/version": "Linux version 6.8.0-60-generic (gcc 13.3.0) #1 SMP PREEMPT_DYNAMIC\n",
        "/proc/sys/kernel/hostname": machine.settings.text("hostname", "simbox") + "\n",
        "/proc/sys/kernel/osrelease": "6.8.0-60-generic\n",
        "/sys/class/dmi/id/sys_vendor": "QEMU\n" if virtual else "Supermicro\n",
        "/sys/class/dmi/id/product_name": "Standard PC (Q35)\n" if virtual else "SYS-740GP\n",
        "/sys/class/dmi/id/board_name": "simulated\n",
    }
    if machine.gpus:
        found["/proc/driver/nvidia/version"] = (
            f"NVRM version: NVIDIA UNIX x86_64 Kernel Module  {driver}  Release Build\n"
        )
    for gpu in machine.gpus:
        base = f"/proc/driver/nvidia/gpus/{address(gpu)}"
        found[f"{base}/information"] = (
            f"Model: \t\t {gpu.plan.name}\nGPU UUID: \t {gpu.uuid}\nBus Location: \t {address(gpu)}\n"
            f"Device Minor: \t {gpu.minor}\n"
        )
    return found


def _cpus(machine: Machine) -> dict[str, str]:
    """Two threads per core, the second ones numbered after the first ones."""
    cores = machine.cores
    half = cores // 2 if cores % 2 == 0 and cores >= 4 else cores
    base = "/sys/devices/system/cpu"
    found = {f"{base}/online": f"0-{cores - 1}\n"}
    for core in range(cores):
        first = core % half
        siblings = f"{first},{first + half}" if half < cores else str(core)
        found[f"{base}/cpu{core}/topology/thread_siblings_list"] = siblings + "\n"
        found[f"{base}/cpu{core}/topology/core_cpus_list"] = siblings + "\n"
    return found


def _nodes(machine: Machine) -> dict[str, str]:
    nodes = max(1, machine.scenario.numa_nodes)
    share = max(1, machine.cores // nodes)
    base = "/sys/devices/system/node"
    return {f"{base}/node{n}/cpulist": f"{n * share}-{(n + 1) * share - 1}\n" for n in range(nodes)}


def _blocks(machine: Machine, links: dict[str, str]) -> dict[str, str]:
    found = {}
    for name, major, minor, _ in disks(machine):
        base = f"/sys/devices/virtual/block/{name}"
        links[f"/sys/block/{name}"] = base
        part = f"{name}p1" if name.startswith("nvme") else f"{name}1"
        links[f"/sys/dev/block/{major}:{minor}"] = base
        links[f"/sys/dev/block/{major}:{minor + 1}"] = f"{base}/{part}"
        found[f"{base}/queue/rotational"] = "1\n" if machine.disk_kind == "hdd" and name == "sda" else "0\n"
        found[f"{base}/dev"] = f"{major}:{minor}\n"
        found[f"{base}/{part}/partition"] = "1\n"
        found[f"{base}/{part}/dev"] = f"{major}:{minor + 1}\n"
    return found


def address(gpu: SimulatedGpu) -> str:
    """The form of sysfs: 0000:01:00.0."""
    return f"{gpu.domain:04x}:{gpu.bus & 0xFF:02x}:00.0"


def _pci(machine: Machine, gpu: SimulatedGpu, made: dict[str, Maker], links: dict[str, str]) -> None:
    """The card below its port. The port is as wide as the driver says card and slot are together."""
    port = f"/sys/devices/pci{gpu.domain:04x}:00/{gpu.domain:04x}:00:{1 + gpu.index % 8:02x}.{gpu.index // 8}"
    card = f"{port}/{address(gpu)}"
    links[f"/sys/bus/pci/devices/{address(gpu)}"] = card
    generation, width = gpu.model.pcie
    laptop = gpu.model.geforce and not gpu.model.fan_count
    texts = {
        f"{card}/vendor": "0x10de\n",
        f"{card}/class": "0x030000\n",
        f"{card}/max_link_speed": _RATES[generation] + "\n",
        f"{card}/max_link_width": f"{width}\n",
        f"{card}/numa_node": f"{gpu.numa_node if machine.scenario.numa_nodes > 1 else -1}\n",
        f"{card}/power/runtime_status": "active\n",
        f"{card}/power/control": "auto\n" if laptop else "on\n",
        f"{port}/vendor": "0x1022\n",
    }
    for path, text in texts.items():
        made[path] = _constant(text)

    def value(metric: str) -> int:
        return max(1, whole(gpu.wave(metric).at(machine.timeline.now()) + 0.5))

    def rate(metric: str) -> bytes:
        return _RATES[min(value(metric), len(_RATES) - 1)].encode() + b"\n"

    made[f"{card}/current_link_speed"] = lambda: rate("pcie_gen")
    made[f"{card}/current_link_width"] = lambda: b"%d\n" % value("pcie_width")
    made[f"{port}/current_link_speed"] = made[f"{card}/current_link_speed"]
    made[f"{port}/current_link_width"] = made[f"{card}/current_link_width"]
    made[f"{port}/max_link_speed"] = lambda: rate("pcie_gen_max")
    made[f"{port}/max_link_width"] = lambda: b"%d\n" % value("pcie_width_max")


def _control_groups(machine: Machine, files: ProcessFiles) -> dict[str, Maker]:
    made: dict[str, Maker] = {}
    quota = machine.settings.number("cg.quota", "0")
    mine = {files.cgroup_path(p): p.of_job and p.user == VIEWER for p in machine.processes.values()}
    for path, is_job in mine.items():
        base = f"/sys/fs/cgroup{path}"
        limited = is_job and quota > 0
        limit = f"{round(quota * 100000)} 100000\n" if limited else "max 100000\n"
        made[f"{base}/cpu.max"] = _constant(limit)
        made[f"{base}/memory.max"] = _constant("max\n")
        made[f"{base}/memory.current"] = _constant(f"{machine.memory_bytes // 4}\n")
        made[f"{base}/cpu.stat"] = (lambda: _throttling(machine)) if limited else _constant("usage_usec 0\n")
    return made


def _throttling(machine: Machine) -> bytes:
    throttled = machine.counter("cg.throttled", "0") / 100 * _PERIODS_PER_S
    periods = (3600 + machine.timeline.real()) * _PERIODS_PER_S
    return b"usage_usec 0\nnr_periods %d\nnr_throttled %d\nthrottled_usec %d\n" % (
        whole(periods),
        whole(throttled),
        whole(throttled * _THROTTLED_S * 1e6),
    )
