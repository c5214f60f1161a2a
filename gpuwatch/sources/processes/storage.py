"""From a path to its file system and the disks below it: mount tables, partitions, dm and md."""

import re
from dataclasses import dataclass

from gpuwatch.clean import decode
from gpuwatch.model import DataMount
from gpuwatch.sources.host.disks import NOT_DISKS
from gpuwatch.sources.processes.mounts import unescape
from gpuwatch.sources.tree import Tree

#: File systems whose data comes over a network, or from the host of a virtual machine.
_REMOTE = frozenset(
    {
        *("nfs", "nfs4", "cifs", "smb3", "smbfs", "lustre", "gpfs", "beegfs", "ceph", "glusterfs"),
        *("9p", "virtiofs", "afs", "orangefs", "panfs", "wekafs"),
    }
)
#: User space file systems that only rearrange local files; every other fuse.* is taken as remote
#: (sshfs, s3fs, gcsfuse, JuiceFS, rclone, ...).
_LOCAL_FUSE = frozenset(
    {
        *("fuse-overlayfs", "mergerfs", "bindfs", "unionfs", "lxcfs", "portal", "gvfsd-fuse", "snapfuse"),
        *("squashfuse", "squashfuse_ll", "gocryptfs", "encfs", "cryfs", "ntfs-3g", "exfat", "ratarmount"),
    }
)
_DEVICE = re.compile(r"[1-9]\d*:\d+")
_DEEPEST = 8


@dataclass(frozen=True, slots=True)
class Place:
    """One line of a mount table."""

    point: str
    filesystem: str
    device: str  # "major:minor"; major 0 where no block device is behind it
    source: str

    def holds(self, path: str) -> bool:
        return self.point == "/" or path == self.point or path.startswith(self.point + "/")


def parse_places(mountinfo: bytes) -> tuple[Place, ...]:
    """Longest mount point first; of two at one point the later, which hides the earlier."""
    places: dict[str, Place] = {}
    for line in mountinfo.split(b"\n"):
        left, dash, right = line.partition(b" - ")
        words, system = left.split(b" "), right.split(b" ")
        if not dash or len(words) < 5 or len(system) < 2:
            continue
        point = _path(words[4])
        places[point] = Place(point, decode(system[0]), decode(words[2]), _path(system[1]))
    return tuple(sorted(places.values(), key=lambda place: -len(place.point)))


def _path(field: bytes) -> str:
    return unescape(field).decode("utf-8", "surrogateescape")


def place_of(path: str, places: tuple[Place, ...]) -> Place | None:
    return next((place for place in places if place.holds(path)), None)


def is_remote(filesystem: str) -> bool:
    if filesystem in _REMOTE:
        return True
    kind, dot, name = filesystem.partition(".")
    return kind == "fuse" and bool(dot) and name not in _LOCAL_FUSE


def data_mount(tree: Tree, place: Place) -> DataMount:
    """Never raises; unknown disks are ()."""
    remote = is_remote(place.filesystem)
    return DataMount(
        path=decode(place.point.encode("utf-8", "surrogateescape")),
        filesystem=place.filesystem,
        remote=remote,
        disks=() if remote else disks_of(tree, place),
    )


def disks_of(tree: Tree, place: Place) -> tuple[str, ...]:
    """Whole disks at the bottom, named as /proc/diskstats does."""
    if _DEVICE.fullmatch(place.device):
        paths = [f"/sys/dev/block/{place.device}"]
    elif place.source.startswith("/dev/"):  # btrfs and bcachefs have no device number of their own
        sources = place.source.split(":")
        paths = [f"/sys/class/block/{_last(tree.real(source))}" for source in sources]
    else:
        return ()
    found: set[str] = set()
    for path in paths:
        _descend(tree, path, found, 0)
    return tuple(sorted(found))


def _descend(tree: Tree, path: str, found: set[str], depth: int) -> None:
    base = tree.real(path)
    try:
        names = tree.list(base)
        if "partition" in names:
            base = base.rpartition("/")[0]
            names = tree.list(base)
        below = tree.list(f"{base}/slaves") if "slaves" in names else []
    except OSError:
        return
    name = _last(base).replace("!", "/")  # sysfs writes cciss/c0d0 as cciss!c0d0
    if below and depth < _DEEPEST:
        for lower in below:
            _descend(tree, f"/sys/class/block/{lower}", found, depth + 1)
    elif not NOT_DISKS.fullmatch(name):
        found.add(decode(name))


def _last(path: str) -> str:
    return path.rpartition("/")[2]
