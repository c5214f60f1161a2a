"""The machine around the GPUs: cores, memory, disks, network.

`open_host` chooses between /proc and, on systems without it, psutil.
"""

from typing import Protocol

from gpuwatch.model import HostInfo, HostReading
from gpuwatch.sources.base import Clock
from gpuwatch.sources.host.info import read_host_info
from gpuwatch.sources.host.reader import HostReader
from gpuwatch.sources.tree import Tree

__all__ = ["HostReader", "ReadsHost", "has_proc", "open_host", "read_host_info"]


class ReadsHost(Protocol):
    def read(self) -> HostReading: ...


def has_proc(tree: Tree) -> bool:
    """False on systems other than Linux (and in a chroot without /proc)."""
    try:
        tree.read("/proc/stat")
    except OSError:
        return False
    return True


def open_host(tree: Tree, clock: Clock) -> tuple[HostInfo, ReadsHost]:
    """The inventory and the reader that fit this system."""
    if has_proc(tree):
        return read_host_info(tree), HostReader(tree, clock)
    from gpuwatch.sources.host.fallback import FallbackHostReader, read_fallback_info

    return read_fallback_info(), FallbackHostReader(clock)
