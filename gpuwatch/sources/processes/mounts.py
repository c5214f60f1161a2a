"""Where control group hierarchies are mounted, from /proc/self/mountinfo."""

import re
from dataclasses import dataclass

_OCTAL = re.compile(rb"\\([0-7]{3})")


@dataclass(frozen=True, slots=True)
class Mount:
    """One hierarchy. `root` is the group that is visible at `point`; version 2 names no controllers."""

    root: str
    point: str
    version: int
    controllers: frozenset[str]

    def holds(self, controllers: frozenset[str]) -> bool:
        """Does this line of /proc/PID/cgroup speak of this hierarchy?"""
        return not controllers if self.version == 2 else bool(controllers & self.controllers)

    def has(self, controller: str) -> bool:
        return self.version == 2 or controller in self.controllers


def unescape(field: bytes) -> bytes:
    """Undo the octal escapes of mount tables: \\040 is a blank."""
    return _OCTAL.sub(lambda match: bytes([int(match.group(1), 8) & 0xFF]), field)


def cgroup_mounts(mountinfo: bytes) -> tuple[Mount, ...]:
    """Hierarchies with a cpu or memory controller. Lines that are not understood are left out."""
    mounts = []
    for line in mountinfo.split(b"\n"):
        left, dash, right = line.partition(b" - ")
        words, system = left.split(b" "), right.split(b" ", 2)
        if not dash or len(words) < 5 or len(system) < 3 or system[0] not in (b"cgroup", b"cgroup2"):
            continue
        options = frozenset(option.decode("ascii", "replace") for option in system[2].split(b","))
        version = 2 if system[0] == b"cgroup2" else 1
        if version == 1 and not options & {"cpu", "memory"}:
            continue
        mounts.append(
            Mount(
                root=unescape(words[3]).decode("utf-8", "surrogateescape"),
                point=unescape(words[4]).decode("utf-8", "surrogateescape"),
                version=version,
                controllers=options & {"cpu", "memory"} if version == 1 else frozenset(),
            )
        )
    return tuple(mounts)
