"""The threads of a trainer that are worth watching: main, those named by a framework, and busy others.

A trainer may have hundreds of threads. Names are read when a thread appears (and once more, since a
thread names itself after its start); the CPU of unnamed threads is looked at a few per tick in turn,
and those that use a fifth of a core are watched until they calm down.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from gpuwatch.model import ThreadReading
from gpuwatch.sources.host.text import UNREADABLE
from gpuwatch.sources.processes.stat import Stat, parse_schedstat, parse_stat
from gpuwatch.sources.tree import Tree, repeated

_LIST_S = 2.0
_NAMES_PER_TICK = 32
_NAME_READS = 2
_BUSY_CORES = 0.2
_MOST_NAMED = 16
_MOST_BUSY = 8
_MOST_REMEMBERED = 100
#: In this order when there are more than can be watched.
_NAMED = ("pt_data_pin", "pt_thread_data", "pt_data", "pt_autograd", "pt_", "tf_data", "[DALI]", "grain")


@dataclass(slots=True)
class _Thread:
    name: str = ""
    name_reads: int = 0
    run_ns: int | None = None  # at `read_s`, for the scan of busy threads
    read_s: float = 0.0
    cores: float = 0.0


class ThreadWatch:
    """Threads of one process; the main thread is read by the caller."""

    def __init__(self, tree: Tree, pid: int) -> None:
        self._tree = tree
        self._again = repeated(tree)
        self._pid = pid
        self._threads: dict[int, _Thread] = {}
        self._watched: tuple[int, ...] = ()
        self._scan: list[int] = []
        self._listed_s: float | None = None

    def read(self, now_s: float, scan: int) -> list[ThreadReading]:
        """Readings of the watched threads; `scan` unnamed threads are looked at besides."""
        if self._listed_s is None or now_s - self._listed_s >= _LIST_S:
            self._listed_s = now_s
            self._list()
        self._read_names()
        self._look_for_busy(now_s, scan)
        readings = (self._read_one(tid) for tid in self._watched)
        return [reading for reading in readings if reading is not None]

    def _list(self) -> None:
        try:
            tids = {int(name) for name in self._tree.list(f"/proc/{self._pid}/task") if name.isdigit()}
        except OSError:
            tids = set()
        tids.discard(self._pid)
        for tid in self._threads.keys() - tids:
            del self._threads[tid]
        for tid in tids - self._threads.keys():
            self._threads[tid] = _Thread()
        self._choose()

    def _read_names(self) -> None:
        due = [tid for tid, thread in self._threads.items() if thread.name_reads < _NAME_READS]
        for tid in due[:_NAMES_PER_TICK]:
            thread = self._threads[tid]
            thread.name_reads += 1
            try:
                thread.name = parse_stat(self._tree.read(f"/proc/{self._pid}/task/{tid}/stat")).name
            except UNREADABLE:
                continue
        if due:
            self._choose()

    def _choose(self) -> None:
        named = [tid for tid, thread in self._threads.items() if thread.name.startswith(_NAMED)]
        named.sort(key=lambda tid: (_rank(self._threads[tid].name), tid))
        busy = [
            tid
            for tid, thread in self._threads.items()
            if thread.cores >= _BUSY_CORES and not thread.name.startswith(_NAMED)
        ]
        busy.sort(key=lambda tid: -self._threads[tid].cores)
        self._watched = (*named[:_MOST_NAMED], *busy[:_MOST_BUSY])

    def _look_for_busy(self, now_s: float, count: int) -> None:
        if not self._scan:
            self._scan = [tid for tid, thread in self._threads.items() if not thread.name.startswith(_NAMED)]
        changed = False
        for tid in _pop(self._scan, count):
            thread = self._threads.get(tid)
            if thread is None:
                continue
            was_busy = thread.cores >= _BUSY_CORES
            self._measure(tid, thread, now_s)
            changed |= was_busy != (thread.cores >= _BUSY_CORES)
        if changed:
            self._choose()

    def _measure(self, tid: int, thread: _Thread, now_s: float) -> None:
        try:
            run_ns, _ = parse_schedstat(self._tree.read(f"/proc/{self._pid}/task/{tid}/schedstat"))
        except UNREADABLE:
            thread.run_ns, thread.cores = None, 0.0
            return
        if thread.run_ns is not None and now_s > thread.read_s:
            thread.cores = max(0, run_ns - thread.run_ns) / 1e9 / (now_s - thread.read_s)
        thread.run_ns, thread.read_s = run_ns, now_s

    def _read_one(self, tid: int) -> ThreadReading | None:
        base = f"/proc/{self._pid}/task/{tid}"
        try:
            stat = parse_stat(self._again(f"{base}/stat"))
        except UNREADABLE:
            return None  # it has ended
        run_ns, wait_ns = read_schedstat(self._again, base)
        return ThreadReading(tid, stat.name, stat.state, run_ns, wait_ns)


def _rank(name: str) -> int:
    return next(rank for rank, prefix in enumerate(_NAMED) if name.startswith(prefix))


def _pop(items: list[int], count: int) -> list[int]:
    taken = items[-count:] if count > 0 else []
    del items[len(items) - len(taken) :]
    return taken


def read_schedstat(read: Callable[[str], bytes], base: str) -> tuple[int | None, int | None]:
    """(run, wait) in ns of the thread or process below `base`; None where the kernel keeps none."""
    try:
        return parse_schedstat(read(f"{base}/schedstat"))
    except UNREADABLE:
        return None, None


def main_thread(read: Callable[[str], bytes], pid: int, stat: Stat) -> ThreadReading:
    """The process files describe the group leader: its state, its name, its scheduler counters."""
    run_ns, wait_ns = read_schedstat(read, f"/proc/{pid}")
    return ThreadReading(pid, stat.name, stat.state, run_ns, wait_ns)


class WaitSum:
    """Run-queue wait over the watched threads as one counter that never jumps.

    Threads come into view and leave it: the main thread counts from its start, any other from the
    moment it was first seen, and what a thread waited stays counted after it has ended.
    """

    def __init__(self) -> None:
        self._last: dict[int, int] = {}
        self._total: int | None = None

    def add(self, threads: Iterable[ThreadReading]) -> int | None:
        """The counter in ns, None while no thread told its wait."""
        threads = tuple(threads)
        if len(self._last) > _MOST_REMEMBERED:
            present = {thread.tid for thread in threads}
            self._last = {tid: wait for tid, wait in self._last.items() if tid in present}
        for thread in threads:
            if thread.wait_ns is None:
                continue
            if self._total is None:
                self._total = thread.wait_ns  # the main thread comes first
            elif thread.tid in self._last:
                self._total += max(0, thread.wait_ns - self._last[thread.tid])
            self._last[thread.tid] = thread.wait_ns
        return self._total
