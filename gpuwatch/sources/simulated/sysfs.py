"""Files of the simulated host below /sys, and the few of /proc and /etc that never change."""

from collections.abc import Callable

from gpuwatch.sources.simulated.gpu import SimulatedGpu
from gpuwatch.sources.simulated.host_files import disks
from gpuwatch.sources.simulated.machine import Machine, whole
from gpuwatch.sources.simulated.process_files import VIEWER, ProcessFiles

_RATES = ("", "2.5 GT/s PCIe", "5.0 GT/s PCIe", "8.0 GT/s PCIe", "16.0 GT/s PCIe", "32.0 GT/s PCIe")
#: Control group files of the job: ten periods a second.
_PERIODS_PER_S = 10
_KERNEL = "6.8.0-60-generic"
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
    made |= _frequencies(machine)
    links["/sys/class/net/eno1"] = "/sys/devices/virtual/net/eno1"
    made["/sys/devices/virtual/net/eno1/speed"] = _constant(
        f"{machine.settings.number('net.speed', '10000'):.0f}\n"
    )
    made["/sys/devices/virtual/net/eno1/operstate"] = _constant("up\n")
    return made, links


def _constant(text: str) -> Maker:
    data = text.encode()
    return lambda: data


def _identity(machine: Machine) -> dict[str, str]:
    virtual = machine.settings.on("vm", False)
    kernel = (
        "5.15.153.1-microsoft-standard-WSL2" if machine.settings.text("platform", "") == "wsl" else _KERNEL
    )
    driver = machine.scenario.driver
    found = {
        "/proc/version": f"Linux version {kernel} (gcc 13.3.0) #1 SMP PREEMPT_DYNAMIC\n",
        "/proc/sys/kernel/hostname": machine.settings.text("hostname", "simbox") + "\n",
        "/proc/sys/kernel/osrelease": kernel + "\n",
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
    if machine.settings.has("dimms"):
        found["/run/udev/data/+dmi:id"] = _memory_modules(machine)
    return found


def _memory_modules(machine: Machine) -> str:
    """The board's memory tables as udev keeps them: full slots first, one channel after the other."""
    settings = machine.settings
    count = round(settings.number("dimms", "2"))
    slots = max(count, round(settings.number("dimm.slots", str(count))))
    channels = max(1, round(settings.number("dimm.channels", "2")))
    speed = round(settings.number("dimm.speed", "3200"))
    size = round(machine.memory_bytes * 1.02 / max(1, count))
    lines = [f"E:MEMORY_ARRAY_NUM_DEVICES={slots}"]
    for slot in range(slots):
        name = f"E:MEMORY_DEVICE_{slot}"
        lines.append(f"{name}_LOCATOR=DIMM {slot}")
        lines.append(f"{name}_BANK_LOCATOR=P0 CHANNEL {chr(ord('A') + slot % channels)}")
        lines.append(f"{name}_SIZE={size if slot < count else 0}")
        lines.append(f"{name}_TYPE=DDR4")
        lines += (
            [f"{name}_SPEED_MTS={speed}", f"{name}_CONFIGURED_SPEED_MTS={speed}"]
            if slot < count
            else [f"{name}_PRESENT=0"]
        )
    return "\n".join((*lines, ""))


def _frequencies(machine: Machine) -> dict[str, Maker]:
    """Clocks of the cores, where the scenario gives any, and the count of thermal throttling."""
    settings, base = machine.settings, "/sys/devices/system/cpu"
    made: dict[str, Maker] = {}
    if settings.has("cpu.mhz") or settings.has("cpu.mhz_max"):
        top = settings.number("cpu.mhz_max", "4700")
        for core in range(machine.cores):
            policy = f"{base}/cpufreq/policy{core}"
            made[f"{policy}/scaling_governor"] = _constant(settings.text("cpu.governor", "schedutil") + "\n")
            made[f"{policy}/scaling_driver"] = _constant(settings.text("cpu.driver", "acpi-cpufreq") + "\n")
            made[f"{policy}/cpuinfo_max_freq"] = _constant(f"{top * 1000:.0f}\n")
            made[f"{base}/cpu{core}/cpufreq/scaling_cur_freq"] = lambda: (
                b"%d\n" % whole(machine.now("cpu.mhz", f"{top}") * 1000)
            )
    if settings.has("cpu.throttles"):
        for core in range(machine.cores):
            made[f"{base}/cpu{core}/topology/physical_package_id"] = _constant("0\n")
            made[f"{base}/cpu{core}/thermal_throttle/package_throttle_count"] = lambda: (
                b"%d\n" % whole(machine.counter("cpu.throttles", "0"))
            )
    return made


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
    quarter = str(machine.memory_bytes // 4)
    for path, is_job in mine.items():
        base = f"/sys/fs/cgroup{path}"
        limited = is_job and quota > 0
        limit = f"{round(quota * 100000)} 100000\n" if limited else "max 100000\n"
        made[f"{base}/cpu.max"] = _constant(limit)
        bounded = is_job and machine.settings.has("cg.mem.limit")
        limit = f"{machine.settings.number('cg.mem.limit', '0'):.0f}\n" if bounded else "max\n"
        made[f"{base}/memory.max"] = _constant(limit)
        made[f"{base}/memory.current"] = lambda: b"%d\n" % whole(machine.now("cg.mem.used", quarter))
        made[f"{base}/memory.stat"] = lambda: (
            b"file %d\nworkingset_refault_file %d\n"
            % (whole(machine.now("cg.mem.file", quarter)), whole(machine.counter("cg.refaults", "0")))
        )
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
