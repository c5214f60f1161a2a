"""Profilers, debuggers and sanitizers around a process: programs that slow it on purpose."""

from collections.abc import Callable

from gpuwatch.sources.host.text import UNREADABLE, number_after
from gpuwatch.sources.processes.stat import Stat, parse_command
from gpuwatch.sources.tree import Tree

ReadStat = Callable[[int], Stat | None]

WRAPPERS = (
    "nsys",
    "ncu",
    "nsight-sys",
    "compute-sanitizer",
    "cuda-memcheck",
    "cuda-gdb",
    "gdb",
    "strace",
    "valgrind",
    "py-spy",
)
_ANCESTORS = 8
_NAME_LENGTH = 15  # the kernel keeps so much of a name
_SHORT = {name[:_NAME_LENGTH]: name for name in WRAPPERS}


def read_wrappers(tree: Tree, pid: int, stat_of: ReadStat) -> tuple[str, ...]:
    """Among the ancestors, the tracer that is attached now, and the program itself (valgrind runs its
    programs inside its own process). ProcessLookupError where an ancestor cannot be seen.
    """
    found = [_named(tree, pid, None), _tracer(tree, pid, stat_of)]
    stat = stat_of(pid)
    for _ in range(_ANCESTORS):
        if stat is None:
            raise ProcessLookupError("an ancestor is hidden")
        parent = stat.parent_pid
        if parent <= 1:
            break
        stat = stat_of(parent)
        found.append(_named(tree, parent, stat))
    return tuple(dict.fromkeys(name for name in found if name is not None))


def _named(tree: Tree, pid: int, stat: Stat | None) -> str | None:
    """By its name, else by the program it was started as; a script's interpreter is not looked through."""
    name = None if stat is None else _SHORT.get(stat.name)
    if name is not None:
        return name
    try:
        words = parse_command(tree.read(f"/proc/{pid}/cmdline")).split(" ", 1)
    except OSError:
        return None
    program = words[0].rpartition("/")[2]
    return program if program in WRAPPERS else None


def _tracer(tree: Tree, pid: int, stat_of: ReadStat) -> str | None:
    try:
        tracer = number_after(tree.read(f"/proc/{pid}/status"), b"\nTracerPid:")
    except UNREADABLE:
        return None
    return _named(tree, tracer, stat_of(tracer)) if tracer else None
