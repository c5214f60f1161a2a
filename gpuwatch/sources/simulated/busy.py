"""Values that come from a real process: what it says in a shared file its GPU is doing.

The file's words have 8 bytes, native order. A page: magic, number of slots, bytes per slot, records per
ring. Then the slots, each a page (pid, its start time, created ns, last sign of life ns, memory bytes,
three counts) and three rings of records of 64 bytes: kernels, copies to the device, copies to the host.
A record has start and end (ns of the realtime clock), busy ns before it, and two rates, each with its
integral before it. The past of a ring is fixed, so a mean is exact however late it is asked for.
"""

import mmap
import os
import struct
import threading
import time
from dataclasses import dataclass, field

from gpuwatch.sources.simulated.language import Call
from gpuwatch.sources.simulated.timeline import Timeline
from gpuwatch.sources.simulated.waves import Wave

_PAGE = 4096
_MAGIC = b"VGPU0001"
_RECORD = struct.Struct("=QQQdddd")
_RECORD_BYTES = 64
_HEADER = struct.Struct("=8sQQQ")
_SLOT = struct.Struct("=8Q")
_LOOK_S = 0.1  # between looks at the file's name
_LOOK_PID_S = 0.05
_INSTANT_S = 0.02  # what "now" means
#: Ring, place of the amount in a record (busy time, rate a, rate b), scale.
_KINDS = {
    "busy": (0, 0, 100.0),
    "busy_power": (0, 1, 100.0),
    "busy_membw": (0, 2, 100.0),
    "busy_h2d": (1, 1, 1e9),
    "busy_d2h": (2, 1, 1e9),
}


class BusyFiles:
    """Makes the waves of `busy...()`; one reader per file."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._files: dict[str, BusyFile] = {}
        self.used = False  # does any value of the scenario come from a real process?

    def wave(self, call: Call, slot: Wave) -> Wave:
        self.used = True
        path = call.path or ""
        if path.startswith("env:"):
            path = os.environ.get(path[4:], "")
        file = self._files.setdefault(path, BusyFile(path))
        wall = self._timeline.wall
        name = call.name

        def mean(start: float, end: float) -> float:
            return file.value(int(slot.at(end)), name, wall(start), wall(end))

        def at(t: float) -> float:
            now = wall(t)
            return file.value(int(slot.at(t)), name, now - _INSTANT_S, now)

        return Wave(at, mean, True)


@dataclass(slots=True)
class _Writer:
    pid: int = 0
    start: int = 0
    alive: bool = False
    seen_alive: bool = False
    checked_s: float = -1e9
    dead_at_s: float = 0.0  # unix seconds; what comes later is void


@dataclass(slots=True)
class BusyFile:
    """One file. A missing or foreign file is a GPU that does nothing."""

    path: str
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _map: mmap.mmap | None = None
    _identity: tuple[int, int, int] = (0, 0, 0)
    _slots: int = 0
    _slot_bytes: int = 0
    _records: int = 0
    _checked_s: float = -1e9
    _writers: dict[int, _Writer] = field(default_factory=dict)

    def value(self, slot: int, name: str, start_s: float, end_s: float) -> float:
        """Percent or bytes/s from one unix time to another; memory and pid as of now."""
        with self._lock:
            self._refresh()
            if self._map is None or not 0 <= slot < self._slots:
                return 0.0
            base = _PAGE + slot * self._slot_bytes
            words = _SLOT.unpack_from(self._map, base)
            writer = self._writer(slot, words)
            if name in ("busy_pid", "busy_mem"):
                return float(words[0 if name == "busy_pid" else 4]) if writer.alive else 0.0
            ring, what, scale = _KINDS[name]
            begin, end = start_s, end_s
            if writer.dead_at_s:
                begin, end = min(begin, writer.dead_at_s), min(end, writer.dead_at_s)
            if end <= begin:
                return 0.0
            amount = self._total(base, words, ring, what, int(end * 1e9))
            amount -= self._total(base, words, ring, what, int(begin * 1e9))
            return max(0.0, amount / ((end_s - start_s) * 1e9) * scale)

    def _refresh(self) -> None:
        now = time.monotonic()
        if now - self._checked_s < _LOOK_S:
            return
        self._checked_s = now
        try:
            info = os.stat(self.path)
            identity = (info.st_dev, info.st_ino, info.st_size)
            if self._map is not None and identity == self._identity:
                return
            self._map = None
            with open(self.path, "rb") as stream:
                self._open(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ), identity)
        except (OSError, ValueError):
            self._map = None

    def _open(self, mapped: mmap.mmap, identity: tuple[int, int, int]) -> None:
        if len(mapped) < _PAGE:
            return
        magic, slots, slot_bytes, records = _HEADER.unpack_from(mapped)
        fits = slot_bytes == _PAGE + 3 * records * _RECORD_BYTES and records >= 2
        if magic != _MAGIC or not fits or len(mapped) < _PAGE + slots * slot_bytes:
            return
        self._map, self._identity = mapped, identity
        self._slots, self._slot_bytes, self._records = slots, slot_bytes, records
        self._writers.clear()

    def _writer(self, slot: int, words: tuple[int, ...]) -> _Writer:
        pid, start = words[:2]
        writer = self._writers.get(slot)
        if writer is None or (writer.pid, writer.start) != (pid, start):
            writer = self._writers[slot] = _Writer(pid, start)
        now = time.monotonic()
        if not pid or now - writer.checked_s < _LOOK_PID_S:
            return writer
        writer.checked_s = now
        writer.alive = _lives(pid, start)
        if writer.alive:
            writer.seen_alive, writer.dead_at_s = True, 0.0
        elif not writer.dead_at_s:
            writer.dead_at_s = time.time() if writer.seen_alive else words[3] / 1e9
        return writer

    def _record(self, base: int, ring: int, number: int) -> tuple[int, int, int, float, float, float, float]:
        assert self._map is not None
        place = ring * self._records + number % self._records
        found: tuple[int, int, int, float, float, float, float] = _RECORD.unpack_from(
            self._map, base + _PAGE + place * _RECORD_BYTES
        )
        return found

    def _total(self, base: int, words: tuple[int, ...], ring: int, what: int, at_ns: int) -> float:
        """Amount gathered in a ring up to a moment: busy ns, or the integral of a rate over ns."""
        count, records = words[5 + ring], self._records
        first = count - records + 1 if count >= records else 0  # the next one may be half written
        low, high = first, count
        while low < high:
            middle = (low + high) // 2
            if self._record(base, ring, middle)[0] <= at_ns:
                low = middle + 1
            else:
                high = middle
        if low > first:
            start, end, busy, rate_a, sum_a, rate_b, sum_b = self._record(base, ring, low - 1)
            length = max(0, min(end, at_ns) - start)
            return (float(busy + length), sum_a + length * rate_a, sum_b + length * rate_b)[what]
        if not first:
            return 0.0
        # Older than the ring: spread evenly since the file was made.
        start, _, busy, _, sum_a, _, sum_b = self._record(base, ring, first)
        created = words[2]
        share = (at_ns - created) / (start - created) if start > created else 0.0
        return max(0.0, share) * (float(busy), sum_a, sum_b)[what]


def _lives(pid: int, start: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as stream:
            fields = stream.read().rpartition(b")")[2].split()
    except OSError:
        return False
    return len(fields) > 19 and fields[0] not in (b"Z", b"X") and int(fields[19]) == start
