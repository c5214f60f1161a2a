"""Writes what a pretended GPU does into the shared file that `busy(PATH)` of a scenario reads.

The layout stands at the head of gpuwatch/sources/simulated/busy.py. One process writes one slot.
"""

import mmap
import os
import struct
import time
from pathlib import Path

PAGE, RECORD, RECORDS, SLOTS = 4096, 64, 4096, 8
SLOT_BYTES = PAGE + 3 * RECORDS * RECORD
_HEADER = struct.Struct("=8sQQQ")


def create(path: Path) -> None:
    """An empty file with eight slots."""
    with path.open("wb") as stream:
        stream.truncate(PAGE + SLOTS * SLOT_BYTES)
        stream.write(_HEADER.pack(b"VGPU0001", SLOTS, SLOT_BYTES, RECORDS))


class PretendedGpu:
    """`run(seconds)` says that a kernel runs from now on for that long; it returns its end (unix ns)."""

    def __init__(self, path: Path, slot: int, memory_bytes: int) -> None:
        with path.open("r+b") as stream:
            self._map = mmap.mmap(stream.fileno(), 0)
        self._base = PAGE + slot * SLOT_BYTES
        self._count = self._busy_ns = 0
        self._power = self._traffic = 0.0
        with open("/proc/self/stat", "rb") as stat:
            start = int(stat.read().rpartition(b")")[2].split()[19])
        now = time.time_ns()
        struct.pack_into("=8Q", self._map, self._base, os.getpid(), start, now, now, memory_bytes, 0, 0, 0)

    def run(self, seconds: float, power: float = 0.9, traffic: float = 0.5) -> int:
        begin = time.time_ns()
        end = begin + round(seconds * 1e9)
        place = self._base + PAGE + self._count % RECORDS * RECORD
        record = (begin, end, self._busy_ns, power, self._power, traffic, self._traffic)
        struct.pack_into("=QQQddddQ", self._map, place, *record, 1)
        self._count += 1
        struct.pack_into("=Q", self._map, self._base + 24, begin)
        struct.pack_into("=Q", self._map, self._base + 40, self._count)
        length = end - begin
        self._busy_ns += length
        self._power += power * length
        self._traffic += traffic * length
        return end
