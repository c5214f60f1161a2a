"""The PCIe way of a GPU through sysfs: the card's own limit, its slot's, and the narrowest hop above.

The driver's "maximum link" already includes the slot, so an x16 card in an x4 slot looks perfect to
it; only the files of the card and of the ports above it tell the two apart (ABI sysfs-bus-pci).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from gpuwatch.model import GpuInfo
from gpuwatch.sources.host.text import UNREADABLE, why
from gpuwatch.sources.tree import Tree

_DEVICES = "/sys/bus/pci/devices"
_ADDRESS = re.compile(r"([0-9a-f]{4,8}):([0-9a-f]{2}):([0-9a-f]{2})\.([0-7])")
_SPEED = re.compile(rb"([\d.]+)\s*GT/s")
#: Transfer rate in GT/s of each generation (PCI Express base specification).
_GENERATION_RATES = (2.5, 5.0, 8.0, 16.0, 32.0, 64.0)
_WIDTHS = frozenset({1, 2, 4, 8, 12, 16, 32})
#: Vendors of emulated ports: Red Hat (QEMU), VMware, Microsoft, VirtualBox.
_EMULATED = frozenset({b"0x1b36", b"0x1af4", b"0x15ad", b"0x1414", b"0x80ee"})

_IN_VM = "in a virtual machine the ports above the card are emulated; trust the driver's own link figures"
_NO_LINK = "this device does not tell its link"


@dataclass(frozen=True, slots=True)
class PciLink:
    """Maxima, not what is negotiated now. `slot` is the port just above, `chain` the narrowest of all."""

    card: tuple[int, int] | None = None  # (generation, width)
    slot: tuple[int, int] | None = None
    chain: tuple[int, int] | None = None
    numa_node: int | None = None
    runtime_status: str | None = None  # "active", "suspended", ...
    absent: Mapping[str, str] = field(default_factory=dict)


def sysfs_address(bus_id: str) -> str | None:
    """`00000000:0B:00.0` as the driver writes it becomes `0000:0b:00.0`; None if it is no address."""
    found = _ADDRESS.fullmatch(bus_id.strip().lower())
    if found is None:
        return None
    domain, bus, device, function = found.groups()
    return f"{int(domain, 16):04x}:{bus}:{device}.{function}"


def read_link(tree: Tree, bus_id: str, virtual_machine: bool | None) -> PciLink:
    """Never raises; missing parts have their reason in `absent`, keyed card, slot, chain, numa_node.

    A device in runtime suspend is left asleep: reading its link would wake it.
    """
    address = sysfs_address(bus_id)
    if address is None:
        return _nothing("the driver gave no PCI address")
    base = f"{_DEVICES}/{address}"
    status = _text(tree, f"{base}/power/runtime_status")
    absent: dict[str, str] = {}
    numa_node = _numa_node(tree, base, absent)
    if status in ("suspended", "suspending"):
        return PciLink(
            numa_node=numa_node,
            runtime_status=status,
            absent={**absent, **_everywhere("the GPU is asleep and was not woken to ask")},
        )
    card: tuple[int, int] | None = None
    ports: list[tuple[int, int]] = []
    if virtual_machine:
        absent.update(_everywhere(_IN_VM))
    else:
        try:
            ports_above = _ports_above(tree, base)
            card = _maximum(tree, base)
            ports = _walk(tree, ports_above, absent)
        except UNREADABLE as error:
            absent.update(_everywhere(why(error, base)))
        if card is None:
            absent.setdefault("card", _NO_LINK)
        if not ports:
            absent.setdefault("slot", "no port above the card tells its link")
            absent.setdefault("chain", absent["slot"])
    return PciLink(
        card=card,
        slot=ports[0] if ports else None,
        chain=min(ports, key=_bandwidth) if ports else None,
        numa_node=numa_node,
        runtime_status=status,
        absent=absent,
    )


def with_link(info: GpuInfo, link: PciLink) -> GpuInfo:
    """The inventory record with what sysfs says; reasons keep the record's field names."""
    parts = (("card", link.card), ("slot", link.slot), ("chain", link.chain))
    values: dict[str, int | None] = {"numa_node": link.numa_node}
    absent = dict(info.absent)
    for name, pair in parts:
        for position, quantity in enumerate(("generation", "width")):
            key = f"pcie_{quantity}_{name}"
            known = getattr(info, key)  # the driver knows the card's own generation, too
            values[key] = pair[position] if pair else known
            if values[key] is None and name in link.absent:
                absent[key] = link.absent[name]
            elif values[key] is not None:
                absent.pop(key, None)
    if link.numa_node is None:
        absent["numa_node"] = link.absent.get("numa_node", "not told")
    return replace(info, absent=absent, **values)  # type: ignore[arg-type]  # keys are fields above


def _ports_above(tree: Tree, base: str) -> list[str]:
    """Sysfs directories of the bridges above the device, nearest first.

    The real path nests them: /sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0.
    """
    parts = tree.real(base).split("/")
    chain = [i for i, part in enumerate(parts) if _ADDRESS.fullmatch(part)]
    return ["/".join(parts[: i + 1]) for i in reversed(chain[:-1])]


def _walk(tree: Tree, ports: list[str], absent: dict[str, str]) -> list[tuple[int, int]]:
    """Links of the ports that have one; none where the way is emulated or a cable tunnel."""
    links = []
    for port in ports:
        if _text(tree, f"{port}/vendor").encode() in _EMULATED:
            absent.update(slot=_IN_VM, chain=_IN_VM)
            return []
        if _text(tree, f"{port}/removable") == "removable":
            reason = "behind Thunderbolt or USB4 the ports do not tell the true link"
            absent.update(slot=reason, chain=reason)
            return []
        link = _maximum(tree, port)
        if link is not None:
            links.append(link)
    return links


def _maximum(tree: Tree, base: str) -> tuple[int, int] | None:
    """(generation, width) from the max_link files; 0, 255 and "Unknown" mean none."""
    try:
        speed = _SPEED.match(tree.read(f"{base}/max_link_speed").strip())
        width = int(tree.read(f"{base}/max_link_width"))
    except UNREADABLE:
        return None
    rate = float(speed.group(1)) if speed else 0.0
    if rate not in _GENERATION_RATES or width not in _WIDTHS:
        return None
    return _GENERATION_RATES.index(rate) + 1, width


def _bandwidth(link: tuple[int, int]) -> float:
    generation, width = link
    return _GENERATION_RATES[generation - 1] * width


def _numa_node(tree: Tree, base: str, absent: dict[str, str]) -> int | None:
    try:
        node = int(tree.read(f"{base}/numa_node"))
    except UNREADABLE as error:
        absent["numa_node"] = why(error, f"{base}/numa_node")
        return None
    if node < 0:
        absent["numa_node"] = "the firmware does not tell the NUMA node of this slot"
        return None
    return node


def _text(tree: Tree, path: str) -> str:
    try:
        return tree.read(path).strip().decode("ascii", "replace")
    except OSError:
        return ""


def _everywhere(reason: str) -> dict[str, str]:
    return dict.fromkeys(("card", "slot", "chain"), reason)


def _nothing(reason: str) -> PciLink:
    return PciLink(absent={**_everywhere(reason), "numa_node": reason})
