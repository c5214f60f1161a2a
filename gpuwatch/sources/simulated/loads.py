"""CPU time of the simulated host: who ran how much, on which core, and who had to wait.

Every thread asks for a share of a core. Single threads get a core each as long as there are enough; the
rest spreads evenly. Where more is asked for than there is, everybody gets less and waits the difference,
so that the time of all cores is always the time of all threads. All sums are kept on a fixed grid of
time, whoever asks and when.
"""

import math
import threading
from dataclasses import dataclass

from gpuwatch.sources.simulated.waves import Wave

#: Fine enough for the phases of a training step a second long.
STEP_S = 1 / 24
_LOAD_MEAN_S = 60.0


@dataclass(slots=True, eq=False)
class Load:
    """What `count` equal threads ask for, in cores each, while they live (real seconds since start).

    `delay` is the share of runnable time, 0..1, spent waiting for a core in any case; `spread` loads
    have no core of their own. The sums are of one thread.
    """

    wave: Wave
    count: int = 1
    delay: Wave | None = None
    of_job: bool = True
    spread: bool = False
    start_s: float = -math.inf
    end_s: float = math.inf
    rate: float = 0.0
    wait_rate: float = 0.0
    run_s: float = 0.0
    wait_s: float = 0.0
    cores: int = 0  # cores of their own


@dataclass(slots=True, eq=False)
class CoreClass:
    """Cores that are alike: each runs one thread of `load`, or only what is spread."""

    load: Load | None
    count: int
    allowed: bool  # the job may run here
    busy_rate: float = 0.0
    wait_rate: float = 0.0  # idle while something waits for a disk
    busy_s: float = 0.0
    iowait_s: float = 0.0


@dataclass(slots=True)
class Totals:
    """Of the whole host: seconds in which somebody waited for a core, and the load average."""

    pressure_s: float = 0.0
    pressure_rate: float = 0.0
    runnable: float = 0.0
    load_average: float = 0.0


class CpuLoads:
    """All loads of a host with `cores` cores; the job may use the first `mask` of them."""

    def __init__(self, cores: int, mask: int, loads: list[Load], io_wait: Wave, timescale: float) -> None:
        self.cores = cores
        self.loads = loads
        self.totals = Totals()
        self._mask = min(mask, cores)
        self._io_wait = io_wait
        self._timescale = timescale
        self._lock = threading.Lock()
        self._step = 0
        self.classes = self._assign()
        self._steady = io_wait.constant is not None and all(_is_steady(load) for load in loads)
        self._rates()

    def _assign(self) -> list[CoreClass]:
        classes = []
        left = {True: self._mask, False: self.cores - self._mask}
        for load in self.loads:
            if load.spread:
                continue
            load.cores = min(load.count, left[True])
            left[True] -= load.cores
            if load.cores:
                classes.append(CoreClass(load, load.cores, allowed=True))
        classes += [CoreClass(None, count, allowed) for allowed, count in left.items() if count]
        return classes

    def core_classes(self) -> list[CoreClass]:
        """The class of each core, in order."""
        return [found for found in self.classes for _ in range(found.count)]

    def advance(self, real_s: float) -> float:
        """Bring the sums up to a moment; the seconds since the last step, to add at the present rates."""
        with self._lock:
            target = math.floor(real_s / STEP_S)
            while self._step < target:
                self._add()
                self._step += 1
                if not self._steady:
                    self._rates()
            return max(0.0, real_s - self._step * STEP_S)

    def _add(self) -> None:
        for load in self.loads:
            load.run_s += load.rate * STEP_S
            load.wait_s += load.wait_rate * STEP_S
        for cores in self.classes:
            cores.busy_s += cores.busy_rate * STEP_S
            cores.iowait_s += cores.wait_rate * STEP_S
        totals = self.totals
        totals.pressure_s += totals.pressure_rate * STEP_S
        totals.load_average += (totals.runnable - totals.load_average) * STEP_S / _LOAD_MEAN_S

    def _rates(self) -> None:
        now = self._step * STEP_S
        asked = [self._asked(load, now) for load in self.loads]
        of_job = sum(rate * load.count for rate, load in zip(asked, self.loads, strict=True) if load.of_job)
        of_others = sum(asked[i] * load.count for i, load in enumerate(self.loads) if not load.of_job)
        job_share = min(1.0, self._mask / of_job) if of_job else 1.0
        total = of_job * job_share + of_others
        share = min(1.0, self.cores / total) if total else 1.0
        for rate, load in zip(asked, self.loads, strict=True):
            load.rate = rate * share * (job_share if load.of_job else 1.0)
            load.wait_rate = rate - load.rate
            if load.delay is not None:
                waiting = min(0.99, max(0.0, load.delay.at(now * self._timescale)))
                load.wait_rate += load.rate * waiting / (1 - waiting)
        self.totals.runnable = of_job + of_others
        self.totals.pressure_rate = min(1.0, of_job + of_others - total * share)
        self._spread(now)

    def _asked(self, load: Load, now: float) -> float:
        if not load.start_s <= now < load.end_s:
            return 0.0
        wave = load.wave
        if wave.constant is not None:
            return max(0.0, wave.constant)
        start, length = now * self._timescale, STEP_S * self._timescale
        if wave.exact:
            return max(0.0, wave.mean(start, start + length))
        return max(0.0, (wave.at(start + length / 4) + wave.at(start + length * 3 / 4)) / 2)

    def _spread(self, now: float) -> None:
        """Busy rates of the cores: their own thread, then the job's rest, then everybody else's."""
        for cores in self.classes:
            cores.busy_rate = min(1.0, cores.load.rate) if cores.load else 0.0
        for of_job in (True, False):
            pool = sum(_beyond(load) for load in self.loads if load.of_job is of_job)
            if pool <= 0:
                continue
            takers = [cores for cores in self.classes if cores.allowed or not of_job]
            free = sum((1 - cores.busy_rate) * cores.count for cores in takers)
            share = min(1.0, pool / free) if free > 0 else 0.0
            for cores in takers:
                cores.busy_rate += (1 - cores.busy_rate) * share
        waiting = min(1.0, max(0.0, self._io_wait.at(now * self._timescale)))
        for cores in self.classes:
            cores.wait_rate = (1 - cores.busy_rate) * waiting


def _beyond(load: Load) -> float:
    """Cores in use beyond the load's own ones."""
    return load.rate * (load.count - load.cores) + max(0.0, load.rate - 1.0) * load.cores


def _is_steady(load: Load) -> bool:
    """Does it ask for the same all the time?"""
    same = load.wave.constant is not None and (load.delay is None or load.delay.constant is not None)
    return same and load.start_s == -math.inf and load.end_s == math.inf
