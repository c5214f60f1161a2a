"""Who belongs to which trainer: the trainers among the driver's pids, and their descendants."""

from collections.abc import Callable, Iterable

from gpuwatch.sources.processes.roles import is_worker_name
from gpuwatch.sources.processes.stat import Stat
from gpuwatch.sources.processes.table import ProcessTable
from gpuwatch.sources.tree import Tree

ReadStat = Callable[[int], Stat | None]

#: More descendants of one trainer are not followed (a loader with 128 workers is, a fork bomb is not).
_MOST_DESCENDANTS = 200
_DEPTH = 16


def roots(pids: Iterable[int], stat_of: ReadStat) -> list[int]:
    """The trainers: compute processes that are not another one's data loader worker.

    A worker that prepares data on the GPU has a context of its own; it stays a worker.
    """
    candidates = set(pids)
    return sorted(pid for pid in candidates if not _is_inner_worker(pid, candidates, stat_of))


def _is_inner_worker(pid: int, candidates: set[int], stat_of: ReadStat) -> bool:
    stat = stat_of(pid)
    if stat is None or not is_worker_name(stat.name):
        return False
    for _ in range(_DEPTH):
        if stat is None or stat.parent_pid <= 1:
            return False
        if stat.parent_pid in candidates:
            return True
        stat = stat_of(stat.parent_pid)
    return False


class FamilyTree:
    """Descendants from two sources: the round over all processes (complete, up to 10 s old) and the
    children files of main threads (at once; a kernel option).
    """

    def __init__(self, tree: Tree, table: ProcessTable) -> None:
        self._tree = tree
        self._table = table
        self._children_files = True

    def descendants(self, trainer: int, others: set[int], stat_of: ReadStat) -> list[int]:
        """Living descendants, parents first. `others` (trainers, and what is never wanted) end a branch.

        A pid from the older source counts only if its parent is still the one expected.
        """
        found: list[int] = []
        seen = others | {trainer}
        parents = [trainer]
        for parent in parents:
            for pid in self._children(parent, stat_of):
                stat = stat_of(pid) if pid not in seen else None
                if stat is None or stat.gone or stat.parent_pid != parent:
                    continue
                seen.add(pid)
                found.append(pid)
                parents.append(pid)
                if len(found) >= _MOST_DESCENDANTS:
                    return found
        return found

    def _children(self, pid: int, stat_of: ReadStat) -> list[int]:
        known = self._table.children(pid)
        stat = stat_of(pid)
        if not self._children_files or stat is None or is_worker_name(stat.name):
            return known
        try:
            direct = self._tree.read(f"/proc/{pid}/task/{pid}/children").split()
        except FileNotFoundError:
            self._children_files = self._exists()
            return known
        except OSError:
            return known
        return [*known, *(int(word) for word in direct if word.isdigit())]

    def _exists(self) -> bool:
        """A missing file may just be a process that ended; pid 1's tells whether the kernel has it."""
        try:
            self._tree.read("/proc/1/task/1/children")
        except OSError:
            return False
        return True
