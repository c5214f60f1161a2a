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

#: A value older than this is dimmed and gets its age.
STALE_S = 3.0
#: Older values are not shown at all.
FORGOTTEN_S = 60.0
_LOOK_TICKS = 8


class Point(NamedTuple):
    """A value and its age in seconds."""

    value: float | None
    age_s: float = 0.0

    @property
    def stale(self) -> bool:
        return self.value is not None and self.age_s > STALE_S


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
        self._times = self.history.times(FORGOTTEN_S + 2 * self.back * self.history.interval_s)

    def cells(self, entity: str, key: str, count: int) -> Sequence[float | None]:
        """Plot cells up to the moment looked at."""
        return self.history.cells(entity, key, count, self.ticks_per_cell, self.back)

    def blank(self, count: int) -> int:
        """How many of `count` cells lie before the first tick."""
        known = (self.history.count - 1 - self.back) // self.ticks_per_cell + 1
        return min(count, max(0, count - known))

    def point(self, entity: str, key: str) -> Point:
        """The newest value at the moment looked at, with its age; none older than a minute."""
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
        return Point(value, age_s) if age_s <= FORGOTTEN_S else NO_POINT

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
