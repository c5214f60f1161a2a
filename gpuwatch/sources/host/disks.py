"""Block devices: which ones count, and their counters from /proc/diskstats.

Only whole disks at the bottom of a stack count: a partition, an LVM volume and a RAID set repeat
what their disks already say.
"""

import re

from gpuwatch.clean import decode
from gpuwatch.model import DiskInfo, DiskReading
from gpuwatch.sources.tree import Tree

#: Sectors of this file are 512 bytes whatever the device says (admin-guide/iostats.rst).
_SECTOR_BYTES = 512
#: Never storage of a data set; nvme0c0n1 is one path of a multipath nvme0n1.
NOT_DISKS = re.compile(r"(loop|ram|zram|sr|fd)\d+|nvme\d+c\d+n\d+")
#: Whole disks by name, for trees without /sys/block.
_WHOLE = re.compile(r"(sd|vd|xvd|hd|dasd)[a-z]+|nvme\d+n\d+|mmcblk\d+|pmem\d+")
_LAYOUT_S = 30.0


def list_disks(tree: Tree) -> tuple[str, ...]:
    """Names as /proc/diskstats writes them. OSError where /sys/block cannot be read."""
    return tuple(
        sorted(
            name.replace("!", "/")  # sysfs writes cciss/c0d0 as cciss!c0d0
            for name in tree.list("/sys/block")
            if not NOT_DISKS.fullmatch(name) and not _is_stacked(tree, name)
        )
    )


def _is_stacked(tree: Tree, name: str) -> bool:
    try:
        return bool(tree.list(f"/sys/block/{name}/slaves"))
    except OSError:
        return False


def disk_info(tree: Tree, name: str, virtual_machine: bool | None) -> DiskInfo:
    """The kind of a disk. `rotational` is believed on bare metal only: virtual disks say 1 on SSDs."""
    return DiskInfo(decode(name), _kind(tree, name, virtual_machine))


def _kind(tree: Tree, name: str, virtual_machine: bool | None) -> str:
    if name.startswith("nvme"):
        return "nvme"
    if virtual_machine or name.startswith(("vd", "xvd")):
        return "virtual"
    try:
        flag = tree.read(f"/sys/block/{name.replace('/', '!')}/queue/rotational").strip()
    except OSError:
        return "unknown"
    return {b"0": "ssd", b"1": "hdd"}.get(flag, "unknown")


class DiskReader:
    """Counters of the whole disks, once per tick."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._known: frozenset[bytes] | None = None
        self._names: dict[bytes, str] = {}
        self._looked_s = -_LAYOUT_S

    def read(self, now_s: float) -> tuple[DiskReading, ...]:
        """OSError without /proc/diskstats. A line that is not understood is left out."""
        if now_s - self._looked_s >= _LAYOUT_S:
            self._looked_s = now_s
            self._look()
        data = self._tree.read("/proc/diskstats")
        lines = (line.split() for line in data.split(b"\n"))
        readings = (self._parse(words) for words in lines if len(words) >= 14 and self._counts(words[2]))
        return tuple(reading for reading in readings if reading is not None)

    def _look(self) -> None:
        try:
            self._known = frozenset(
                name.encode("utf-8", "surrogateescape") for name in list_disks(self._tree)
            )
        except OSError:
            self._known = None

    def _counts(self, name: bytes) -> bool:
        if self._known is not None:
            return name in self._known
        return _WHOLE.fullmatch(name.decode("utf-8", "replace")) is not None

    def _parse(self, words: list[bytes]) -> DiskReading | None:
        try:
            numbers = list(map(int, words[3:14]))
        except ValueError:
            return None
        reads, _, sectors_read, read_ms, writes, _, sectors_written, write_ms, _, busy_ms, queue_ms = numbers
        name = self._names.get(words[2])
        if name is None:
            name = self._names[words[2]] = decode(words[2])
        if name.startswith("nbd") and not reads and not writes:
            return None  # sixteen of them exist wherever the module is loaded, mostly unused
        return DiskReading(
            name=name,
            reads=reads,
            writes=writes,
            read_bytes=sectors_read * _SECTOR_BYTES,
            write_bytes=sectors_written * _SECTOR_BYTES,
            read_ms=read_ms,
            write_ms=write_ms,
            busy_ms=busy_ms,
            queue_ms=queue_ms,
        )
