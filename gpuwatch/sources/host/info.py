"""The host's inventory, read once."""

import re

from gpuwatch.clean import decode
from gpuwatch.model import DiskInfo, HostInfo
from gpuwatch.sources.host.container import container_kind, is_virtual_machine, is_wsl
from gpuwatch.sources.host.disks import disk_info, list_disks
from gpuwatch.sources.host.frequency import read_frequency_info
from gpuwatch.sources.host.memory import parse_meminfo
from gpuwatch.sources.host.modules import read_memory_layout
from gpuwatch.sources.host.text import UNREADABLE, why
from gpuwatch.sources.tree import Tree

_CPU = re.compile(r"cpu\d+")
_NODE = re.compile(r"node\d+")
#: x86 names its model in every record; some Arm kernels have one "Hardware" line at the end.
_MODEL = re.compile(rb"^(?:model name|Hardware|cpu model|cpu)\s*:\s*(\S.*)$", re.MULTILINE)


def read_host_info(tree: Tree) -> HostInfo:
    """Never raises; what could not be read is None with its reason in `absent`."""
    absent: dict[str, str] = {}
    cpuinfo = _read(tree, "/proc/cpuinfo", "cpu_model", absent) or b""
    cores, physical = _cores(tree, absent)
    virtual_machine = is_virtual_machine(tree, b"\n" + cpuinfo)
    if virtual_machine is None:
        absent["virtual_machine"] = "neither the CPU nor the board says"
    if _hides_processes(tree):
        absent["processes"] = "processes of other users are hidden here (/proc is mounted with hidepid)"
    hostname = _read(tree, "/proc/sys/kernel/hostname", "hostname", absent)
    kernel = _read(tree, "/proc/sys/kernel/osrelease", "kernel", absent)
    nodes, numa_cores = _numa(tree, absent)
    memory_bytes = _memory_total(tree, absent)
    governor, frequency_driver, clock_max_mhz = read_frequency_info(tree, absent)
    container = container_kind(tree)
    memory = read_memory_layout(
        tree,
        memory_bytes,
        virtual_machine=virtual_machine,
        container=container is not None,
        absent=absent,
    )
    return HostInfo(
        hostname=decode(hostname.strip()) if hostname else "localhost",
        kernel=decode(kernel.strip()) if kernel else None,
        cpu_model=_cpu_model(tree, cpuinfo, absent),
        logical_cores=cores,
        physical_cores=physical,
        numa_nodes=nodes,
        memory_total_bytes=memory_bytes,
        container=container,
        wsl=is_wsl(tree),
        virtual_machine=virtual_machine,
        disks=_disks(tree, virtual_machine, absent),
        numa_cores=numa_cores,
        cpu_governor=governor,
        cpu_frequency_driver=frequency_driver,
        cpu_clock_max_mhz=clock_max_mhz,
        memory_modules=memory.modules,
        memory_slot_count=memory.slots,
        memory_channel_count=memory.channels,
        absent=absent,
    )


def _read(tree: Tree, path: str, field: str, absent: dict[str, str]) -> bytes | None:
    try:
        return tree.read(path)
    except OSError as error:
        absent[field] = why(error, path)
        return None


def _cpu_model(tree: Tree, cpuinfo: bytes, absent: dict[str, str]) -> str | None:
    found = _MODEL.search(cpuinfo)
    if found:
        return " ".join(decode(found.group(1)).split())
    try:
        model = decode(tree.read("/sys/firmware/devicetree/base/model").rstrip(b"\0 \n"))
    except OSError:
        model = ""
    if not model:
        absent.setdefault("cpu_model", "this kernel does not name the CPU")
    return model or None


def _cores(tree: Tree, absent: dict[str, str]) -> tuple[int | None, int | None]:
    """(logical, physical) cores that are online; siblings of one core share one list."""
    base = "/sys/devices/system/cpu"
    try:
        names = [name for name in tree.list(base) if _CPU.fullmatch(name)]
    except OSError as error:
        absent["physical_cores"] = why(error, base)
        return _count_stat(tree, absent), None
    siblings = [_siblings(tree, f"{base}/{name}/topology/thread_siblings_list") for name in names]
    known = [group for group in siblings if group is not None]
    logical = _count_stat(tree, absent) or len(names) or None
    if not known:
        absent["physical_cores"] = "the kernel does not tell the CPU topology here"
    return logical, len(set(known)) or None


def _siblings(tree: Tree, path: str) -> bytes | None:
    try:
        return tree.read(path).strip()  # an offline core has no topology
    except OSError:
        return None


def _count_stat(tree: Tree, absent: dict[str, str]) -> int | None:
    try:
        count = len(re.findall(rb"^cpu\d+ ", tree.read("/proc/stat"), re.MULTILINE))
    except OSError as error:
        absent["logical_cores"] = why(error, "/proc/stat")
        return None
    return count or None


def _numa(tree: Tree, absent: dict[str, str]) -> tuple[int | None, tuple[tuple[int, ...], ...]]:
    """(number of nodes, the cores of each by the node's number).

    Numbers may have gaps and nodes may have no cores (the memory of a coherent GPU is a node of its
    own): both are empty there.
    """
    path = "/sys/devices/system/node"
    try:
        nodes = sorted(int(name[4:]) for name in tree.list(path) if _NODE.fullmatch(name))
    except OSError as error:
        absent["numa_nodes"] = absent["numa_cores"] = why(error, path)
        return None, ()
    if not nodes:
        absent["numa_cores"] = "this kernel knows no NUMA nodes"
        return None, ()
    try:
        lists = {node: parse_cores(tree.read(f"{path}/node{node}/cpulist")) for node in nodes}
    except UNREADABLE as error:
        absent["numa_cores"] = why(error, f"{path}/node*/cpulist")
        return len(nodes), ()
    last = max((node for node in nodes if lists[node]), default=-1)
    return len(nodes), tuple(lists.get(node, ()) for node in range(last + 1))


def parse_cores(data: bytes) -> tuple[int, ...]:
    """The cores of a list like 0-3,8,10-11. ValueError if it is none."""
    cores: list[int] = []
    for part in data.strip().split(b","):
        first, _, last = part.partition(b"-")
        if first:
            cores += range(int(first), int(last or first) + 1)
    return tuple(cores)


def _memory_total(tree: Tree, absent: dict[str, str]) -> int | None:
    try:
        total = parse_meminfo(tree.read("/proc/meminfo")).get("memory_total_bytes")
    except UNREADABLE as error:
        absent["memory_total_bytes"] = why(error, "/proc/meminfo")
        return None
    if total is None:
        absent["memory_total_bytes"] = "/proc/meminfo has no such line here"
    return total


def _disks(tree: Tree, virtual_machine: bool | None, absent: dict[str, str]) -> tuple[DiskInfo, ...]:
    try:
        return tuple(disk_info(tree, name, virtual_machine) for name in list_disks(tree))
    except OSError as error:
        absent["disks"] = why(error, "/sys/block")
        return ()


def _hides_processes(tree: Tree) -> bool:
    try:
        return "1" not in tree.list("/proc")
    except OSError:
        return False
