"""On which file systems the open data files of a training lie.

Workers open and close small files all the time, so a single look finds little: the trainer and some
of its workers are looked at in turn, each about every half minute, and what was found stays known.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from gpuwatch.model import DataMount, ProcessKey, ProcessReading, ProcessRole
from gpuwatch.sources.host.text import UNREADABLE, why
from gpuwatch.sources.processes.storage import Place, data_mount, parse_places, place_of
from gpuwatch.sources.tree import Tree

ROUND_S = 30.0
MOST_WORKERS = 8
_IDLE_S = 5.0  # while nothing trains
_MOST_LINKS = 256
_MOST_MOUNTS = 16
#: Never a data set: devices and pseudo files, programs and their libraries, scratch of the system.
_ELSEWHERE = (
    *("/dev/", "/proc/", "/sys/", "/run/", "/tmp/", "/var/tmp/", "/var/log/", "/var/lib/sss/"),
    *("/usr/", "/etc/", "/bin/", "/sbin/", "/lib/", "/lib64/", "/snap/", "/nix/", "/memfd:", "/dmabuf"),
)
_ENDINGS = (
    *(".so", ".py", ".pyc", ".pth", ".log", ".out", ".err", ".sock", ".lock", " (deleted)"),
    ".safetensors",  # weights: mapped at the start, read once
)
_PARTS = (
    *(".so.", "/site-packages/", "/dist-packages/", "/__pycache__/", "/wandb/"),
    *("/.nv/", "/.triton/", "/.cache/torch/", "/.ipython/", "/.jupyter/"),
)
_FIRST_FILE = 3  # 0, 1 and 2 are the terminal or logs
_WRITE_ONLY = 1  # O_WRONLY in the lowest two bits of an open file's flags

NOT_YET = "looked for within the first half minute"
FORBIDDEN = "its open files may be read by its owner and root only"


@dataclass(slots=True)
class _Job:
    mounts: dict[str, DataMount] = field(default_factory=dict)  # by mount point
    places: tuple[Place, ...] | None = None  # the mount table, read once per round
    folders: set[str] = field(default_factory=set)  # looked up in this round
    left: int = 0  # processes of this round still to be looked at
    whole: bool = False  # every process was looked at once
    reason: str = NOT_YET


class DataFiles:
    """`look` once per tick; it reads the open files of one process when one is due."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._jobs: dict[ProcessKey, _Job] = {}
        self._queue: list[tuple[ProcessKey, int]] = []
        self._pause_s = _IDLE_S
        self._due_s = float("-inf")
        self._round = 0

    def look(self, processes: Iterable[ProcessReading], now_s: float) -> ProcessKey | None:
        """The trainer whose answer may have changed. `processes` of this tick."""
        if now_s < self._due_s:
            return None
        looked_at = None
        if self._queue:
            looked_at, pid = self._queue.pop()
            self._look_at(self._jobs[looked_at], pid, trainer=pid == looked_at[0])
        if not self._queue:
            self._begin(processes)
        self._due_s = now_s + self._pause_s
        return looked_at

    def of(self, trainer: ProcessKey) -> tuple[tuple[DataMount, ...] | None, str]:
        """(mounts, or None and why). Nothing found is only told after everybody was looked at."""
        job = self._jobs.get(trainer)
        if job is None:
            return None, NOT_YET
        if job.mounts or job.whole:
            return tuple(job.mounts[point] for point in sorted(job.mounts)), ""
        return None, job.reason

    def _begin(self, processes: Iterable[ProcessReading]) -> None:
        members: dict[ProcessKey, list[int]] = {}
        for process in processes:
            if process.role is ProcessRole.TRAINER:
                members.setdefault(process.key, [])
            elif process.role is ProcessRole.WORKER and process.trainer is not None:
                members.setdefault(process.trainer, []).append(process.pid)
        self._jobs = {trainer: self._jobs.get(trainer) or _Job() for trainer in members}
        for trainer, workers in members.items():
            chosen = [*_some(workers, self._round), trainer[0]]  # taken from the end: the trainer first
            job = self._jobs[trainer]
            job.places, job.left = None, len(chosen)
            job.folders.clear()
            self._queue += [(trainer, pid) for pid in chosen]
        self._round += 1
        self._pause_s = ROUND_S / len(self._queue) if self._queue else _IDLE_S

    def _look_at(self, job: _Job, pid: int, *, trainer: bool) -> None:
        job.left -= 1
        try:
            names = self._tree.list(f"/proc/{pid}/fd")
        except OSError as error:
            if trainer:
                forbidden = isinstance(error, PermissionError)
                job.reason = FORBIDDEN if forbidden else why(error, f"/proc/{pid}/fd")
        else:
            if trainer:
                job.reason = NOT_YET
            for name in names[:_MOST_LINKS]:
                if name.isdigit() and int(name) >= _FIRST_FILE:
                    self._take(job, pid, name)
        job.whole = job.whole or (job.left == 0 and job.reason == NOT_YET)

    def _take(self, job: _Job, pid: int, name: str) -> None:
        try:
            path = self._tree.link(f"/proc/{pid}/fd/{name}")
        except OSError:
            return  # closed meanwhile
        folder = path.rpartition("/")[0]
        if not _may_be_data(path) or folder in job.folders or self._only_written(pid, name):
            return
        job.folders.add(folder)
        if job.places is None:
            try:
                job.places = parse_places(self._tree.read(f"/proc/{pid}/mountinfo"))
            except OSError:
                return
        place = place_of(path, job.places)
        if place is not None and place.point not in job.mounts and len(job.mounts) < _MOST_MOUNTS:
            job.mounts[place.point] = data_mount(self._tree, place)

    def _only_written(self, pid: int, name: str) -> bool:
        """Logs and checkpoints. Where the kernel does not say, the file counts as read."""
        try:
            words = self._tree.read(f"/proc/{pid}/fdinfo/{name}").split()
            return int(words[words.index(b"flags:") + 1], 8) & 3 == _WRITE_ONLY
        except UNREADABLE:
            return False


def _may_be_data(path: str) -> bool:
    return (
        path.startswith("/")
        and not path.startswith(_ELSEWHERE)
        and not path.endswith(_ENDINGS)
        and not any(part in path for part in _PARTS)
    )


def _some(workers: list[int], turn: int) -> list[int]:
    """Eight of them, others in every round."""
    if len(workers) <= MOST_WORKERS:
        return workers
    first = turn * MOST_WORKERS % len(workers)
    return (workers + workers)[first : first + MOST_WORKERS]
