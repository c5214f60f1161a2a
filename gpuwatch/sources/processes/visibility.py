"""May a pid that the driver names be looked up here?

In a container without the host's pid namespace some drivers give the host's pids: such a number is
absent here or, worse, belongs to another program. There a pid is believed only if that process
uses the GPU by its own look: it maps libcuda or holds a device file open.
"""

from gpuwatch.sources.host.container import container_kind
from gpuwatch.sources.processes.libraries import mapped_names
from gpuwatch.sources.tree import Tree

#: Inode of the first pid namespace (include/linux/proc_ns.h, PROC_PID_INIT_INO).
_FIRST_NAMESPACE = "pid:[4026531836]"
_LOOK_AGAIN_S = 30.0
_MOST_LINKS = 512


def pids_may_be_foreign(tree: Tree) -> bool:
    """True inside a pid namespace of one's own; by the signs of a container where that is not told."""
    try:
        return tree.link("/proc/self/ns/pid") != _FIRST_NAMESPACE
    except OSError:
        return container_kind(tree) is not None


def hides_processes(tree: Tree) -> bool:
    """True where a missing process may just be another user's: /proc with hidepid, or not to be listed."""
    try:
        return "1" not in tree.list("/proc")
    except OSError:
        return True


def uses_gpu(tree: Tree, pid: int) -> bool:
    """False also where it may not be looked at: under doubt no name is attached."""
    try:
        if any(name.startswith((b"libcuda.so", b"nvidia")) for name in mapped_names(_maps(tree, pid))):
            return True
        names = tree.list(f"/proc/{pid}/fd")
    except OSError:
        return False
    return any(_is_gpu_file(tree, f"/proc/{pid}/fd/{name}") for name in names[:_MOST_LINKS])


def _maps(tree: Tree, pid: int) -> bytes:
    return tree.read(f"/proc/{pid}/maps")


def _is_gpu_file(tree: Tree, path: str) -> bool:
    try:
        return tree.link(path).startswith("/dev/nvidia")
    except OSError:
        return False


class Visibility:
    """Remembers the answer per process."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._foreign = pids_may_be_foreign(tree)
        self.may_hide = self._foreign or hides_processes(tree)
        self._known: dict[tuple[int, int], tuple[float, bool]] = {}

    def belongs(self, pid: int, start_ticks: int, now_s: float) -> bool:
        """Is the process at this pid the one the driver means?"""
        if not self._foreign:
            return True
        known = self._known.get((pid, start_ticks))
        if known is None or (not known[1] and now_s - known[0] >= _LOOK_AGAIN_S):
            if len(self._known) > 512:
                self._known.clear()
            known = self._known[pid, start_ticks] = now_s, uses_gpu(self._tree, pid)
        return known[1]
