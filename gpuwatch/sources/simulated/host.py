"""The simulated host as a tree of files: /proc and /sys, made from the scenario when they are read."""

import errno
import os

from gpuwatch.sources.base import Clock
from gpuwatch.sources.simulated.crowd import OWN_PID
from gpuwatch.sources.simulated.host_files import host_files
from gpuwatch.sources.simulated.machine import Machine, whole
from gpuwatch.sources.simulated.process_files import FIRST_USER_ID, VIEWER, ProcessFiles, no_such_file
from gpuwatch.sources.simulated.scenario import Scenario
from gpuwatch.sources.simulated.sysfs import sysfs
from gpuwatch.sources.simulated.timeline import ManualClock, Timeline

_DISK = (2 << 40, 900 << 30)
_DEEPEST_LINK = 8


class SimulatedTree:
    """A `Tree` (see sources/tree.py) that plays the host of a scenario on a clock."""

    def __init__(
        self, scenario: Scenario, clock: Clock | ManualClock, *, timeline: Timeline | None = None
    ) -> None:
        self.machine = Machine(scenario, timeline or Timeline(clock, scenario.timescale))
        users = {process.user for process in self.machine.processes.values()} | {VIEWER, "root"}
        names = [VIEWER, *sorted(users - {VIEWER, "root"})]
        self._user_ids = {"root": 0} | {name: FIRST_USER_ID + place for place, name in enumerate(names)}
        self._processes = ProcessFiles(self.machine, self._user_ids)
        self._files, self._links = sysfs(self.machine, self._processes)
        self._files |= host_files(self.machine)
        self._files["/etc/passwd"] = self._passwd
        self._folders = _folders([*self._files, *self._links])

    def read(self, path: str) -> bytes:
        maker = self._files.get(path)
        if maker is not None:
            return maker()
        pid, rest = self._split(path)
        if pid is not None:
            return self._processes.read(pid, rest)
        resolved = self.real(path)
        maker = self._files.get(resolved)
        if maker is not None:
            return maker()
        if resolved in self._folders:
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        raise no_such_file(path)

    def list(self, path: str) -> list[str]:
        path = path.rstrip("/") or "/"
        pid, rest = self._split(path)
        if pid is not None:
            return self._processes.list(pid, rest)
        names = self._folders.get(self.real(path))
        if names is None:
            raise no_such_file(path)
        found = sorted(names)
        return [*found, *map(str, self.machine.living()), "self"] if path == "/proc" else found

    def link(self, path: str) -> str:
        if path == "/proc/self":
            return str(OWN_PID)
        if path in self._links:
            return self._links[path]
        pid, rest = self._split(path)
        if pid is not None:
            return self._processes.link(pid, rest)
        self.real(path)
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), path)

    def real(self, path: str) -> str:
        for _ in range(_DEEPEST_LINK):
            link = self._link_on(path)
            if link is None:
                return path
            path = self._links[link] + path[len(link) :]
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)

    def _link_on(self, path: str) -> str | None:
        """The first symbolic link on the way, if there is one."""
        parts = path.split("/")
        for length in range(2, len(parts) + 1):
            start = "/".join(parts[:length])
            if start in self._links:
                return start
        return None

    def usage(self, path: str) -> tuple[int, int]:
        if path.startswith("/dev/shm"):
            return self.machine.shm_bytes, whole(self.machine.now("shm.used", "2Gi"))
        return _DISK

    def affinity(self, pid: int) -> int:
        return self._processes.affinity(OWN_PID if pid == 0 else pid)

    def owner(self, path: str) -> int:
        pid, _ = self._split(path)
        return 0 if pid is None else self._processes.owner(pid)

    def _split(self, path: str) -> tuple[int | None, str]:
        """/proc/PID/rest, with `self` for the watcher."""
        if not path.startswith("/proc/"):
            return None, ""
        name, _, rest = path[6:].partition("/")
        if name.isdecimal():
            return int(name), rest
        return (OWN_PID, rest) if name == "self" else (None, "")

    def _passwd(self) -> bytes:
        lines = (f"{name}:x:{uid}:{uid}::/home/{name}:/bin/bash\n" for name, uid in self._user_ids.items())
        return "".join(lines).encode()


def _folders(paths: list[str]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for path in paths:
        while path:
            path, _, name = path.rpartition("/")
            found.setdefault(path or "/", set()).add(name)
    return found
