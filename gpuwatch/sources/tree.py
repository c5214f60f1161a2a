"""Read access to /proc and /sys through one small door, so that every reader can be pointed at
captured trees (tests) or at a simulated host (demo) instead of this machine.

Paths are always absolute and start with /proc or /sys (or /dev/shm, /etc); a tree maps them.
"""

import contextlib
import os
from collections.abc import Callable
from typing import Protocol


class Tree(Protocol):
    """All methods raise OSError (FileNotFoundError, PermissionError, ...) like the real thing."""

    def read(self, path: str) -> bytes: ...

    def list(self, path: str) -> list[str]: ...

    def link(self, path: str) -> str:
        """Target of a symbolic link, as stored."""
        ...

    def real(self, path: str) -> str:
        """Canonical path with every link resolved, still inside the tree."""
        ...

    def usage(self, path: str) -> tuple[int, int]:
        """(total, used) bytes of the file system that holds path."""
        ...

    def affinity(self, pid: int) -> int:
        """Number of logical cores the process may run on."""
        ...

    def owner(self, path: str) -> int:
        """uid that owns path."""
        ...


class DiskTree:
    """The real file system, or a captured one below `root`."""

    def __init__(self, root: str = "/") -> None:
        self._prefix = root.rstrip("/")
        self._kept: dict[str, int] = {}

    def __del__(self) -> None:
        for descriptor in self._kept.values():
            with contextlib.suppress(OSError):
                os.close(descriptor)

    def read(self, path: str) -> bytes:
        # os.open instead of open(): a third of the cost, and this is the per-second path.
        descriptor = os.open(self._prefix + path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            data = os.read(descriptor, 65536)
            if len(data) < 65536 and not _may_be_short(path):
                return data
            parts = [data]
            while chunk := os.read(descriptor, 65536):
                parts.append(chunk)
            return b"".join(parts)
        finally:
            os.close(descriptor)

    def again(self, path: str) -> bytes:
        """`read` for a small file that is read every tick: it stays open, which halves the cost.

        The kernel ties an open /proc file to its process, so a later process with the same pid cannot
        answer through it.
        """
        descriptor = self._kept.pop(path, None)
        if descriptor is not None:
            try:
                data = os.pread(descriptor, _SMALL, 0)
            except OSError:
                os.close(descriptor)
            else:
                self._kept[path] = descriptor  # newest last
                return data
        descriptor = os.open(self._prefix + path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            data = os.pread(descriptor, _SMALL, 0)
        except OSError:
            os.close(descriptor)
            raise
        self._kept[path] = descriptor
        if len(self._kept) > _MOST_KEPT:
            os.close(self._kept.pop(next(iter(self._kept))))
        return data

    def list(self, path: str) -> list[str]:
        return os.listdir(self._prefix + path)

    def link(self, path: str) -> str:
        return os.readlink(self._prefix + path)

    def real(self, path: str) -> str:
        resolved = os.path.realpath(self._prefix + path)
        return resolved[len(self._prefix) :] if self._prefix else resolved

    def usage(self, path: str) -> tuple[int, int]:
        info = os.statvfs(self._prefix + path)
        total = info.f_blocks * info.f_frsize
        return total, total - info.f_bfree * info.f_frsize

    def affinity(self, pid: int) -> int:
        return len(os.sched_getaffinity(pid))

    def owner(self, path: str) -> int:
        return os.stat(self._prefix + path).st_uid


#: Larger than any stat, schedstat or io file.
_SMALL = 4096
#: Open files, oldest use closed first; the usual limit of a process is 1024.
_MOST_KEPT = 384


def repeated(tree: Tree) -> Callable[[str], bytes]:
    """How to read a small file every tick: `tree.again` where the tree has it, else `tree.read`."""
    again: Callable[[str], bytes] = getattr(tree, "again", tree.read)
    return again


#: seq_file entries hand out at most a page at a time, so a short read is not the end of them.
_LONG = (
    *("/maps", "/mountinfo", "/proc/stat", "/diskstats", "/environ", "/cmdline", "/vmstat", "/cpuinfo"),
    *("/net/tcp", "/net/tcp6", "/net/dev", "/children"),
)


def _may_be_short(path: str) -> bool:
    return path.endswith(_LONG)
