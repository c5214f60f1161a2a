"""Memory modules without root: udev's record of the board's tables, else the kernel's error detection.

systemd decodes the tables once at boot and keeps the result where everybody may read it (since 248,
dmi_memory_id). Serial numbers stand there too; they are not kept.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from gpuwatch.clean import decode
from gpuwatch.model import MemoryModule
from gpuwatch.sources.host.text import UNREADABLE
from gpuwatch.sources.tree import Tree

_RECORD = "/run/udev/data/+dmi:id"
_EDAC = "/sys/devices/system/edac/mc"
FIELDS = ("memory_modules", "memory_slot_count", "memory_channel_count")
_DEVICE = re.compile(r"MEMORY_DEVICE_(\d{1,4})_([A-Z_]+)")
#: What stands in the tables besides main memory: firmware chips and persistent memory.
_NOT_MAIN = frozenset({"ROM", "Flash", "EEPROM", "FEPROM", "EPROM", "Logical non-volatile device"})
#: "P0 CHANNEL A", "Controller1-ChannelB-DIMM0", "NODE 0 CHANNEL 3 DIMM 0": up to the channel's own name.
_CHANNEL = re.compile(r".*?channel[ _-]*(?:\d+|[a-z])(?![a-z0-9])", re.IGNORECASE)
_EMPTY_WORDS = frozenset({"not specified", "unknown", "<bad index>", "<out of spec>", "none", ""})
_CONTROLLER = re.compile(r"mc\d+")
_DIMM = re.compile(r"dimm\d+")
_LAYER = re.compile(r"([a-z]+) (\d+)")
#: Firmware and integrated graphics keep some memory to themselves; tables that say less than the
#: kernel sees, or several times as much, describe another machine. Both limits are our own.
_LEAST_RATIO, _MOST_RATIO = 0.98, 1.5

IN_VM = "in a virtual machine the memory tables are invented"
IN_CONTAINER = "containers are not shown the memory tables (run gpuwatch on the host)"
NOT_TOLD = "no memory tables can be read without root here (as root: dmidecode -t memory)"
NO_MATCH = "the memory tables do not match the memory of this machine"
NO_SLOTS = "the memory tables do not count the slots"
NO_CHANNELS = "the memory tables do not name the channels"


@dataclass(frozen=True, slots=True)
class MemoryLayout:
    modules: tuple[MemoryModule, ...] | None = None
    slots: int | None = None
    channels: int | None = None


def read_memory_layout(
    tree: Tree,
    memory_bytes: int | None,
    *,
    virtual_machine: bool | None,
    container: bool,
    absent: dict[str, str],
) -> MemoryLayout:
    """Never raises. `memory_bytes`: what the kernel sees; the tables must agree with it."""
    if virtual_machine:
        return _nothing(IN_VM, absent)
    errors = _from_error_detection(tree)
    tables = _from_record(tree)
    found = tables if tables.modules else errors
    if not found.modules:
        return _nothing(IN_CONTAINER if container else NOT_TOLD, absent)
    if not _plausible(found.modules, memory_bytes):
        return _nothing(NO_MATCH, absent)
    found = MemoryLayout(found.modules, found.slots, found.channels or errors.channels)
    if found.slots is None:
        absent["memory_slot_count"] = NO_SLOTS
    if found.channels is None:
        absent["memory_channel_count"] = NO_CHANNELS
    return found


def _nothing(reason: str, absent: dict[str, str]) -> MemoryLayout:
    absent.update(dict.fromkeys(FIELDS, reason))
    return MemoryLayout()


def _plausible(modules: Iterable[MemoryModule], memory_bytes: int | None) -> bool:
    sizes = [module.size_bytes for module in modules]
    known = [size for size in sizes if size is not None]
    if memory_bytes is None or len(known) < len(sizes):
        return True  # nothing to compare
    return _LEAST_RATIO * memory_bytes <= sum(known) <= _MOST_RATIO * memory_bytes + (4 << 30)


# -- udev's record --------------------------------------------------------------------------------


def _from_record(tree: Tree) -> MemoryLayout:
    try:
        record = tree.read(_RECORD)
    except OSError:
        return MemoryLayout()
    slots: dict[int, dict[str, str]] = {}
    counted = 0
    for line in record.split(b"\n"):
        if not line.startswith(b"E:MEMORY_"):
            continue
        key, _, value = decode(line[2:]).partition("=")
        found = _DEVICE.fullmatch(key)
        if found:
            slots.setdefault(int(found.group(1)), {})[found.group(2)] = value
        elif key == "MEMORY_ARRAY_NUM_DEVICES":
            counted = _whole(value) or 0  # of the last array only, where there are several
    mains = [slot for _, slot in sorted(slots.items()) if slot.get("TYPE") not in _NOT_MAIN]
    modules = tuple(_module(slot) for slot in mains if _populated(slot))
    channels = [_channel(slot) for slot in mains]
    return MemoryLayout(
        modules=modules,
        slots=max(counted, len(mains)) or None,
        channels=len(set(channels)) if channels and all(channels) else None,
    )


def _populated(slot: dict[str, str]) -> bool:
    return slot.get("PRESENT") != "0" and bool(_whole(slot.get("SIZE")))


def _module(slot: dict[str, str]) -> MemoryModule:
    return MemoryModule(
        size_bytes=_whole(slot.get("SIZE")),
        speed_mts=_whole(slot.get("SPEED_MTS")),
        configured_mts=_whole(slot.get("CONFIGURED_SPEED_MTS")),
        locator=_words(slot.get("LOCATOR")),
        channel=_channel(slot) or _words(slot.get("BANK_LOCATOR")),
    )


def _channel(slot: dict[str, str]) -> str:
    for key in ("BANK_LOCATOR", "LOCATOR"):
        found = _CHANNEL.match(slot.get(key, ""))
        if found:
            return found.group(0)
    return ""


def _words(text: str | None) -> str:
    return "" if text is None or text.strip().lower() in _EMPTY_WORDS else text.strip()


def _whole(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdigit() else None


# -- error detection (EDAC) -----------------------------------------------------------------------


def _from_error_detection(tree: Tree) -> MemoryLayout:
    """Servers with ECC: one folder per controller, in it one per populated place."""
    modules: list[MemoryModule] = []
    slots: int | None = 0
    channels: int | None = 0
    for controller in _names(tree, _EDAC, _CONTROLLER):
        base = f"{_EDAC}/{controller}"
        layers = _layers(tree, f"{base}/max_location")
        slots = _add(slots, _places(layers))
        channels = _add(channels, layers.get("channel"))
        places: dict[tuple[str, ...], MemoryModule] = {}
        for name in _names(tree, base, _DIMM):
            place, module = _dimm(tree, base, controller, name)
            places[place] = _joined(places.get(place), module)
        modules += places.values()
    return MemoryLayout(tuple(modules), slots or None, channels or None)


def _add(total: int | None, more: int | None) -> int | None:
    return None if total is None or more is None else total + more


def _layers(tree: Tree, path: str) -> dict[str, int]:
    """How many of each: the file names the last place, "channel 1 slot 1"."""
    return {name: int(last) + 1 for name, last in _LAYER.findall(_text(tree, path))}


def _places(layers: dict[str, int]) -> int | None:
    """Slots of one controller. Where ranks are counted instead ("csrow"), nobody knows."""
    if set(layers) != {"channel", "slot"}:
        return None
    return layers["channel"] * layers["slot"]


def _dimm(tree: Tree, base: str, controller: str, name: str) -> tuple[tuple[str, ...], MemoryModule]:
    """(where the module sits, module). Drivers that count ranks have two of them per module."""
    size_mib = _whole(_text(tree, f"{base}/{name}/size"))
    location = dict(_LAYER.findall(_text(tree, f"{base}/{name}/dimm_location")))
    channel, rank = location.get("channel"), location.get("csrow")
    module = MemoryModule(
        size_bytes=size_mib << 20 if size_mib else None,
        locator=_words(_text(tree, f"{base}/{name}/dimm_label")),
        channel="" if channel is None else f"{controller} channel {channel}",
    )
    if rank is None or channel is None:
        return (name,), module
    return (channel, str(int(rank) // 2)), module


def _joined(one: MemoryModule | None, other: MemoryModule) -> MemoryModule:
    if one is None or one.size_bytes is None or other.size_bytes is None:
        return one or other
    return replace(one, size_bytes=one.size_bytes + other.size_bytes)


def _names(tree: Tree, path: str, pattern: re.Pattern[str]) -> list[str]:
    try:
        return sorted(name for name in tree.list(path) if pattern.fullmatch(name))
    except OSError:
        return []


def _text(tree: Tree, path: str) -> str:
    try:
        return decode(tree.read(path).strip())
    except UNREADABLE:
        return ""
