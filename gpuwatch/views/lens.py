"""Reading a state for one picture: which moment is looked at, how old a value is, which plot cells.

A frozen view and a look back are the same thing: history has grown since, so the newest ticks are
left out.
"""

from collections.abc import Sequence
from typing import NamedTuple

from gpuwatch.model import Finding, GpuInfo, GpuReading, HostReading, ProcessReading
from gpuwatch.state import State
from gpuwatch.views.glyphs import Glyphs, glyphs_for
from gpuwatch.views.options import Options

#: A value older than this, or than two intervals, is dimmed and gets its age.
STALE_S, STALE_INTERVALS = 3.0, 2.0
#: Older values, by seconds and by intervals, are not shown at all.
FORGOTTEN_S, FORGOTTEN_INTERVALS = 60.0, 4.0
_LOOK_TICKS = 8


def stale_after_s(interval_s: float) -> float:
    """The age at which a value no longer counts as the present one."""
    return max(STALE_S, STALE_INTERVALS * interval_s)


class Point(NamedTuple):
    """A value, its age in seconds, and whether that is more than it should be."""

    value: float | None
    age_s: float = 0.0
    stale: bool = False


NO_POINT = Point(None)


class Lens:
    """One state seen with one set of options. Cheap; made anew for each panel and tick."""

    def __init__(self, state: State, options: Options) -> None:
        self.state, self.options = state, options
        self.glyphs: Glyphs = glyphs_for(options.ascii_only)
        self.history = state.history
        newer = max(0, state.history.count - state.tick) if state.tick else 0
        self.back = newer + options.back
        self.ticks_per_cell = options.ticks_per_cell
        interval_s = state.history.interval_s
        self.stale_s = stale_after_s(interval_s)
        self._forgotten_s = max(FORGOTTEN_S, FORGOTTEN_INTERVALS * interval_s)
        self._times = self.history.times(self._forgotten_s + 2 * self.back * interval_s)

    def cells(self, entity: str, key: str, count: int) -> Sequence[float | None]:
        """Plot cells up to the moment looked at."""
        return self.history.cells(entity, key, count, self.ticks_per_cell, self.back)

    def blank(self, count: int) -> int:
        """How many of `count` cells lie before the first tick."""
        known = (self.history.count - 1 - self.back) // self.ticks_per_cell + 1
        return min(count, max(0, count - known))

    def point(self, entity: str, key: str) -> Point:
        """The newest value at the moment looked at, with its age; none that is long past."""
        times = self._times
        for look in (_LOOK_TICKS, len(times)):
            values = self.history.cells(entity, key, look, 1, self.back)
            for index in range(len(values) - 1, -1, -1):
                value = values[index]
                if value is not None:
                    return self._point(value, len(values) - 1 - index)
            if look >= len(times):
                break
        return NO_POINT

    def _point(self, value: float, ticks: int) -> Point:
        place = len(self._times) - 1 - self.back - ticks
        if place < 0:
            return NO_POINT
        end_s = self.state.now_s if not self.options.back else self._times[place + ticks]
        age_s = max(0.0, end_s - self._times[place])
        return Point(value, age_s, age_s > self.stale_s) if age_s <= self._forgotten_s else NO_POINT

    @property
    def gpus(self) -> tuple[GpuReading, ...]:
        return () if self.state.sample is None else self.state.sample.gpus

    def info(self, uuid: str) -> GpuInfo | None:
        machine = self.state.machine
        infos = () if machine is None else machine.gpus
        return next((info for info in infos if info.uuid == uuid), None)

    @property
    def host(self) -> HostReading | None:
        return None if self.state.sample is None else self.state.sample.host

    @property
    def processes(self) -> tuple[ProcessReading, ...]:
        sample = self.state.sample
        return () if sample is None or sample.processes is None else sample.processes

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Active ones without the banners, worst first."""
        diagnosis = self.state.diagnosis
        found = () if diagnosis is None else diagnosis.findings
        return tuple(finding for finding in found if not finding.banner)

    def index_of(self, uuid: str) -> int | None:
        """The driver's number of a GPU."""
        return next((gpu.index for gpu in self.gpus if gpu.uuid == uuid), None)
