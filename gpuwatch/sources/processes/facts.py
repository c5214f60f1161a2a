"""What a process has loaded, how it was started and whether it serves: slow looks, rarely repeated.

Libraries load late (a decoder with the first image, cuDNN with the first convolution), so the look
is repeated after 30 s, after 2 minutes, and then every 10 minutes.
"""

import re
from typing import Any

from gpuwatch.model import ProcessFacts, ProcessRole
from gpuwatch.sources.host.text import UNREADABLE, why
from gpuwatch.sources.processes.datafiles import NOT_YET
from gpuwatch.sources.processes.environment import OVERWRITTEN, read_environment
from gpuwatch.sources.processes.libraries import (
    decoder_of,
    frameworks_of,
    libraries_of_interest,
    mapped_paths,
    paths_of_interest,
)
from gpuwatch.sources.processes.wrappers import ReadStat, read_wrappers
from gpuwatch.sources.tree import Tree

#: Ages of the facts of a process at which they are read again, in seconds after the first look.
_AGAIN_S = (30.0, 120.0)
_THEN_EVERY_S = 600.0
_MOST_LINKS = 512
_LISTENING = re.compile(rb"^\s*\d+: \S+ \S+ 0A +(?:\S+ +){5}(\d+)", re.MULTILINE)
_SOCKET = re.compile(r"socket:\[(\d+)\]")
_FROM_MAPS = ("libraries", "library_paths", "frameworks", "decoder")
_TRAINERS_ONLY = "looked up for trainers only"
_NOT_WORKERS = "looked up for trainers and busy strangers only"
NO_ENVIRONMENT = "its environment may be read by its owner and root only"


def next_look_s(first_s: float, now_s: float) -> float:
    """When the facts first read at `first_s` are due again."""
    age = now_s - first_s
    later = (mark for mark in _AGAIN_S if age < mark)
    return first_s + next(later, age + _THEN_EVERY_S)


def read_facts(tree: Tree, pid: int, session_id: int, role: ProcessRole, stat_of: ReadStat) -> ProcessFacts:
    """Never raises. Trainers are asked for everything but their data (see datafiles.py)."""
    found: dict[str, Any] = {}
    absent: dict[str, str] = {"data_mounts": NOT_YET if role is ProcessRole.TRAINER else _TRAINERS_ONLY}
    _read_libraries(tree, pid, found, absent)
    if role is ProcessRole.TRAINER:
        _read_sockets(tree, pid, found, absent)
    else:
        absent["listening"] = _TRAINERS_ONLY
    if role is ProcessRole.WORKER:
        absent.update(environment=_NOT_WORKERS, wrappers=_NOT_WORKERS)
    else:
        _read_start(tree, pid, stat_of, found, absent)
    return ProcessFacts(session_id=session_id, absent=absent, **found)


def _read_libraries(tree: Tree, pid: int, found: dict[str, Any], absent: dict[str, str]) -> None:
    try:
        maps = tree.read(f"/proc/{pid}/maps")
        if not maps:  # every living program maps something: its memory is gone already
            raise ProcessLookupError("no memory")
    except OSError as error:
        reason = "its libraries may be read by its owner and root only"
        if not isinstance(error, PermissionError):
            reason = why(error, f"/proc/{pid}/maps")
        absent.update(dict.fromkeys(_FROM_MAPS, reason))
        return
    paths = mapped_paths(maps)
    libraries = libraries_of_interest(path[path.rfind(b"/") + 1 :] for path in paths)
    decoder = decoder_of(libraries)
    found.update(
        libraries=libraries,
        library_paths=paths_of_interest(paths),
        frameworks=frameworks_of(libraries),
        decoder=decoder,
    )
    if decoder is None:
        absent["decoder"] = "no decoder library is loaded"


def _read_start(
    tree: Tree, pid: int, stat_of: ReadStat, found: dict[str, Any], absent: dict[str, str]
) -> None:
    """How it was started: variables and wrappers."""
    try:
        found["environment"] = read_environment(tree, pid)
    except PermissionError:
        absent["environment"] = NO_ENVIRONMENT
    except ValueError:
        absent["environment"] = OVERWRITTEN
    except OSError as error:
        absent["environment"] = why(error, f"/proc/{pid}/environ")
    try:
        found["wrappers"] = read_wrappers(tree, pid, stat_of)
    except UNREADABLE:
        absent["wrappers"] = "not all processes above it can be seen"


def _read_sockets(tree: Tree, pid: int, found: dict[str, Any], absent: dict[str, str]) -> None:
    try:
        found["listening"] = _is_listening(tree, pid)
    except OSError as error:
        absent["listening"] = why(error, f"/proc/{pid}/fd")


def _is_listening(tree: Tree, pid: int) -> bool:
    """Does the process hold a listening TCP socket? OSError if its open files may not be read."""
    held = _sockets(tree, pid)
    if not held:
        return False
    for name in ("tcp", "tcp6"):
        try:
            table = tree.read(f"/proc/{pid}/net/{name}")
        except FileNotFoundError:
            continue  # no IPv6 in this kernel
        if any(inode.decode("ascii") in held for inode in _LISTENING.findall(table)):
            return True
    return False


def _sockets(tree: Tree, pid: int) -> set[str]:
    """Inodes of the sockets among the lowest 512 open files (servers listen early)."""
    names = sorted((name for name in tree.list(f"/proc/{pid}/fd") if name.isdigit()), key=int)
    held = set()
    for name in names[:_MOST_LINKS]:
        try:
            found = _SOCKET.fullmatch(tree.link(f"/proc/{pid}/fd/{name}"))
        except OSError:
            continue  # closed meanwhile
        if found:
            held.add(found.group(1))
    return held
