"""Everything derived from the samples of one session, for plots and rules to read.

Memory is bounded: each ring has its size from the start, and there are limits to how many entities
are followed. Appended to and read from one thread.
"""

from __future__ import annotations  # array[float] cannot be evaluated before Python 3.12

from array import array
from collections.abc import Sequence
from typing import Any

from gpuwatch.history.bursts import Bursts
from gpuwatch.history.cells import CellReader
from gpuwatch.history.ring import Plan, TickTimes, Track, gaps
from gpuwatch.history.tiers import Tier, TierSteps
from gpuwatch.metrics import METRICS, core_shares
from gpuwatch.model import Burst, GpuReading, HostReading, ProcessKey, Sample, ThreadBurst

#: The fine ring: a quarter of an hour of ticks, within bounds for very short and long intervals.
FINE_S, FINE_LEAST, FINE_MOST = 900.0, 225, 4500
#: Processes come and go; plots of them are short.
PROCESS_TICKS = 180
#: (step, span) in seconds of the coarser past.
TIERS = ((10, 2 * 3600), (60, 24 * 3600))
#: Most entities of a kind; those gone longest make room, and without room none is added.
MOST_ENTITIES = {"gpu": 64, "host": 1, "disk": 64, "net": 64, "process": 256}
#: A difference over more than three intervals (two seconds at least on top) says nothing about now.
LONGEST_INTERVALS, LONGEST_EXTRA_S = 3.0, 2.0

#: The newest value counts for at least so many intervals.
LAST_INTERVALS = 1.5

_INDEX = {kind: {metric.key: i for i, metric in enumerate(metrics)} for kind, metrics in METRICS.items()}
_PLANS = {kind: Plan(metrics) for kind, metrics in METRICS.items()}
_TIERED = {kind: tuple(i for i, m in enumerate(metrics) if m.tiers) for kind, metrics in METRICS.items()}


class History:
    """Series by (entity, key). Entities: "gpu:<uuid>", "host:", "disk:<name>", "net:<name>",
    "process:<pid>:<start_ticks>". Keys: gpuwatch.metrics. Times are monotonic seconds.

    A GPU is its uuid: lost and back it continues its series behind a gap.
    """

    def __init__(self, interval_s: float = 1.0) -> None:
        self.interval_s = interval_s
        self.now_s = 0.0
        capacity = round(min(FINE_MOST, max(FINE_LEAST, FINE_S / interval_s)))
        self._ticks = TickTimes(capacity)
        self._capacity = dict.fromkeys(METRICS, capacity) | {"process": min(PROCESS_TICKS, capacity)}
        self._longest_s = max(LONGEST_INTERVALS * interval_s, interval_s + LONGEST_EXTRA_S)
        self._tracks: dict[str, dict[str, Track]] = {kind: {} for kind in METRICS}
        self._tiers = tuple(TierSteps(step_s, span_s) for step_s, span_s in TIERS)
        self._bursts = Bursts()
        self._lengths: dict[float, int] = {}  # ticks in the last so many seconds, at this tick
        self._core_pair: tuple[HostReading, HostReading] | None = None

    @property
    def count(self) -> int:
        """Samples appended so far."""
        return self._ticks.count

    def append(self, sample: Sample) -> None:
        """Derive and keep one tick. A sample that is not newer than the last one is left out."""
        now = sample.monotonic_s
        if self.count and now <= self.now_s:
            return
        tick = self.count
        for tier in self._tiers:
            if tier.ends_before(now):
                self._close(tier)
        self.now_s = now
        self._lengths.clear()
        self._ticks.append(now)
        for reading in sample.gpus:
            self._add_gpu(tick, now, reading)
        self._core_pair = None
        if sample.host is not None:
            self._add_host(tick, sample.host)
        for process in sample.processes or ():
            name = f"process:{process.pid}:{process.start_ticks}"
            self._write("process", name, tick, process, now)
        for burst in sample.thread_bursts:
            self._bursts.add_thread(now, burst)
        self._skip_absent(tick)
        for tier in self._tiers:
            tier.add_tick(now, tick)

    def _add_gpu(self, tick: int, now: float, reading: GpuReading) -> None:
        if self._write("gpu", f"gpu:{reading.uuid}", tick, reading, reading.read_s):
            self._bursts.add_gpu(now, reading.uuid, "utilization", reading.utilization_burst)
            self._bursts.add_gpu(now, reading.uuid, "memory_utilization", reading.memory_utilization_burst)
            self._bursts.add_gpu(now, reading.uuid, "power", reading.power_burst)

    def _add_host(self, tick: int, host: HostReading) -> None:
        track = self._tracks["host"].get("host:")
        before: HostReading | None = track.previous if track is not None else None
        if not self._write("host", "host:", tick, host, host.read_s):
            return
        if before is not None and before.core_ids == host.core_ids:
            self._core_pair = (before, host)
        for disk in host.disks:
            self._write("disk", f"disk:{disk.name}", tick, disk, host.read_s)
        for network in host.networks:
            self._write("net", f"net:{network.name}", tick, network, host.read_s)

    def _write(self, kind: str, name: str, tick: int, reading: Any, time_s: float) -> bool:
        """False when the reading is an old one, or there is no room for another entity."""
        track = self._tracks[kind].get(name)
        if track is None:
            track = self._new_track(kind, name, tick)
            if track is None:
                return False
        elif time_s <= track.previous_s or reading is track.previous:
            return False
        track.write(tick, reading, time_s, self._longest_s)
        track.seen = tick
        return True

    def _new_track(self, kind: str, name: str, tick: int) -> Track | None:
        tracks = self._tracks[kind]
        if len(tracks) >= MOST_ENTITIES[kind]:
            oldest = min(tracks, key=lambda entity: tracks[entity].seen)
            if tracks[oldest].seen == tick:
                return None
            self._forget(kind, oldest)
        track = tracks[name] = Track(_PLANS[kind], self._capacity[kind])
        return track

    def _forget(self, kind: str, name: str) -> None:
        del self._tracks[kind][name]
        if kind == "gpu":
            self._bursts.forget_gpu(name.partition(":")[2])

    def _skip_absent(self, tick: int) -> None:
        for kind, tracks in self._tracks.items():
            over = []
            for name, track in tracks.items():
                if track.seen != tick:
                    track.skip(tick)
                    if tick - track.seen >= track.capacity and kind not in ("gpu", "host"):
                        over.append(name)
            for name in over:
                self._forget(kind, name)

    def _close(self, tier: TierSteps) -> None:
        for kind, tracks in self._tracks.items():
            for track in tracks.values():
                for index in _TIERED[kind]:
                    tier.close(track, index, self.count)

    def entities(self, kind: str) -> tuple[str, ...]:
        """Names of the entities of a kind, in the order they were first seen."""
        return tuple(self._tracks[kind])

    def times(self, seconds: float) -> array[float]:
        """Tick times of the last `seconds`, oldest first."""
        return self._ticks.newest(self._window(seconds))

    def values(self, entity: str, key: str, seconds: float) -> array[float]:
        """Aligned with times(seconds); NaN is a gap. An unknown series is all gaps."""
        ticks = self._window(seconds)
        found = self._find(entity, key)
        if found is None:
            return gaps(ticks)
        track, index = found
        return track.newest(index, self.count, ticks)

    def present(self, entity: str, key: str, seconds: float) -> list[float]:
        """The values without the gaps."""
        return [value for value in self.values(entity, key, seconds) if value == value]

    def last(self, entity: str, key: str, max_age_s: float = 5.0) -> float | None:
        """The newest value that is no gap and not older than `max_age_s`; with long intervals, than one and
        a half of them, jitter included."""
        found = self._find(entity, key)
        if found is None:
            return None
        newest = found[0].newest_value(found[1], self.count)
        if newest == newest:
            return newest
        for value in reversed(self.values(entity, key, max(max_age_s, LAST_INTERVALS * self.interval_s))):
            if value == value:
                return value
        return None

    def mean(self, entity: str, key: str, seconds: float) -> float | None:
        values: Sequence[float] = self.values(entity, key, seconds)
        total = sum(values)
        if total != total:
            values = [value for value in values if value == value]
            total = sum(values)
        return total / len(values) if values else None

    def maximum(self, entity: str, key: str, seconds: float) -> float | None:
        return max(self.present(entity, key, seconds), default=None)

    def minimum(self, entity: str, key: str, seconds: float) -> float | None:
        return min(self.present(entity, key, seconds), default=None)

    def cells(
        self, entity: str, key: str, count: int, ticks_per_cell: int = 1, back: int = 0
    ) -> list[float | None]:
        """`count` plot cells, newest last, `back` ticks before the newest; each summarised as the metric
        says. Cells are anchored to tick numbers so that a picture shifts and never shimmers. None is a gap.
        Ticks older than the fine ring are drawn from the coarser past, where the metric has one."""
        reader = self._reader(entity, key)
        return [None] * count if reader is None else reader.values(count, ticks_per_cell, back)

    def cell_ranges(
        self, entity: str, key: str, count: int, ticks_per_cell: int = 1, back: int = 0
    ) -> list[tuple[float, float] | None]:
        """Likewise (lowest, highest) of each cell."""
        reader = self._reader(entity, key)
        return [None] * count if reader is None else reader.ranges(count, ticks_per_cell, back)

    def tier(self, entity: str, key: str, step_s: int) -> Tier:
        """The past in steps of `step_s` (10 or 60, else KeyError); empty if the metric has no tiers."""
        steps = {tier.step_s: tier for tier in self._tiers}[step_s]
        found = self._find(entity, key)
        if found is None or not found[0].metrics[found[1]].tiers:
            return Tier(*(array("d") for _ in range(4)))
        return steps.read(*found, self.count)

    def burst(self, uuid: str, signal: str, seconds: float) -> Burst:
        """Sub-second points; signal is "utilization", "memory_utilization" or "power". 2 minutes are kept."""
        return self._bursts.gpu(self.now_s, uuid, signal, seconds)

    def thread_burst(self, process: ProcessKey, tid: int, seconds: float) -> ThreadBurst | None:
        """Scheduler counters of a watched thread, None without any in that time."""
        return self._bursts.thread(self.now_s, process, tid, seconds)

    def core_shares(self) -> Sequence[float | None]:
        """Busy share of each core in the newest tick, in core_ids order; empty while unknown."""
        return core_shares(*self._core_pair) if self._core_pair is not None else ()

    def _window(self, seconds: float) -> int:
        """Ticks in the last `seconds`; the same few lengths are asked for many times a tick."""
        ticks = self._lengths.get(seconds)
        if ticks is None:
            ticks = self._lengths[seconds] = self._ticks.since(self.now_s - seconds)
        return ticks

    def _find(self, entity: str, key: str) -> tuple[Track, int] | None:
        kind = entity.partition(":")[0]
        track = self._tracks[kind].get(entity)
        return None if track is None else (track, _INDEX[kind][key])

    def _reader(self, entity: str, key: str) -> CellReader | None:
        found = self._find(entity, key)
        return None if found is None else CellReader(*found, self.count, self._tiers)
