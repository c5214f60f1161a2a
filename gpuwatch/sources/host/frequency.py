"""How fast the cores run, and whether heat holds them back: cpufreq and thermal_throttle in /sys.

Reading the clock of one core may take 10 to 20 ms on kernels before 5.17 (they measure while the
reader sleeps), so only a few busy cores are looked at, one per tick.
"""

import heapq
import re
from collections import Counter
from collections.abc import Sequence

from gpuwatch.clean import decode
from gpuwatch.sources.host.text import UNREADABLE
from gpuwatch.sources.tree import Tree

_CPU = "/sys/devices/system/cpu"
_POLICY = re.compile(r"policy\d+")
_CLOCK_EVERY_S = 5.0
_FIRST_CLOCK_S = 1.0
_CORES = 3
#: A core that works less than this may sleep just now, and a sleeping core's clock means nothing.
_BUSY_RATIO = 0.5
_THROTTLE_EVERY_S = 10.0

NO_FREQUENCY = "this kernel tells no CPU frequency (virtual machines often hide it)"
NO_THROTTLE_COUNT = "only Intel CPUs count thermal throttling, and not in a virtual machine"
NONE_BUSY = "no core was busy just now"
_NOT_YET = "known after the first seconds"


def read_frequency_info(tree: Tree, absent: dict[str, str]) -> tuple[str | None, str | None, float | None]:
    """(governor of most cores, driver, highest clock of any core in MHz); reasons go into `absent`."""
    policies = _policies(tree)
    governors = Counter(filter(None, (_word(tree, f"{policy}/scaling_governor") for policy in policies)))
    drivers = filter(None, (_word(tree, f"{policy}/scaling_driver") for policy in policies))
    clocks = [clock for policy in policies if (clock := _mhz(tree, f"{policy}/cpuinfo_max_freq")) is not None]
    governor = governors.most_common(1)[0][0] if governors else None
    driver = next(drivers, None)
    clock_max = max(clocks, default=None)
    found = {"cpu_governor": governor, "cpu_frequency_driver": driver, "cpu_clock_max_mhz": clock_max}
    absent.update((name, NO_FREQUENCY) for name, value in found.items() if value is None)
    return governor, driver, clock_max


def _policies(tree: Tree) -> list[str]:
    try:
        names = sorted(name for name in tree.list(f"{_CPU}/cpufreq") if _POLICY.fullmatch(name))
    except OSError:
        return []
    return [f"{_CPU}/cpufreq/{name}" for name in names]


def _word(tree: Tree, path: str) -> str | None:
    try:
        return decode(tree.read(path).strip()) or None
    except OSError:
        return None


def _mhz(tree: Tree, path: str) -> float | None:
    """The files hold kHz; some drivers write 0 or words where they do not know."""
    try:
        clock = int(tree.read(path)) / 1000
    except UNREADABLE:
        return None
    return clock if clock > 0 else None


class CpuClock:
    """Clock of the fastest of the busiest cores, every five seconds; in between the last one counts on."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._due_s: float | None = None
        self._before: tuple[float, tuple[int, ...], tuple[float, ...]] | None = None
        self._queue: list[int] = []
        self._found: list[float] = []
        self._missing = False
        self._value: float | None = None
        self._reason = _NOT_YET

    def read(self, ids: tuple[int, ...], busy_s: tuple[float, ...], now_s: float) -> tuple[float | None, str]:
        """(MHz or None, why not). `busy_s`: counters of the cores `ids`."""
        if self._missing or not ids:
            return None, NO_FREQUENCY
        if self._due_s is None or now_s >= self._due_s:
            self._choose(ids, busy_s, now_s)
        if self._queue:
            self._measure(self._queue.pop())
        return self._value, self._reason

    def _choose(self, ids: tuple[int, ...], busy_s: tuple[float, ...], now_s: float) -> None:
        before, self._before = self._before, (now_s, ids, busy_s)
        if before is None:
            self._due_s = now_s + _FIRST_CLOCK_S
            self._missing = _mhz(self._tree, _current(ids[0])) is None
            self._reason = NO_FREQUENCY if self._missing else _NOT_YET
            return
        self._due_s = now_s + _CLOCK_EVERY_S
        self._found, self._queue = [], _busiest(before, (now_s, ids, busy_s))
        if not self._queue:
            self._value, self._reason = None, NONE_BUSY

    def _measure(self, core: int) -> None:
        clock = _mhz(self._tree, _current(core))
        if clock is not None:
            self._found.append(clock)
        if not self._queue:
            self._value = max(self._found, default=None)
            self._reason = "the busy cores do not tell their clock"


def _current(core: int) -> str:
    return f"{_CPU}/cpu{core}/cpufreq/scaling_cur_freq"


_Look = tuple[float, tuple[int, ...], tuple[float, ...]]


def _busiest(before: _Look, now: _Look) -> list[int]:
    """Cores that worked at least half of the time between two looks, the busiest last."""
    enough_s = _BUSY_RATIO * (now[0] - before[0])
    if now[1] != before[1] or enough_s <= 0:
        return []
    worked = ((late - early, core) for core, early, late in zip(now[1], before[2], now[2], strict=True))
    return [core for used, core in reversed(heapq.nlargest(_CORES, worked)) if used >= enough_s]


class ThrottleCount:
    """Thermal throttling events of all packages as one counter that never runs back.

    Every core of a package counts the package's events, so one core of each is read; where cores
    count for themselves only (before 2011), all of them.
    """

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._due_s = float("-inf")
        self._ids: tuple[int, ...] = ()
        self._paths: list[str] | None = None
        self._last: dict[str, int] = {}
        self._total: int | None = None

    def read(self, ids: tuple[int, ...], now_s: float) -> int | None:
        """None where nothing is counted."""
        if now_s < self._due_s or self._paths == [] or not ids:
            return self._total
        self._due_s = now_s + _THROTTLE_EVERY_S
        if self._paths is None or ids != self._ids:  # cores can be switched off and on
            self._ids, self._paths = ids, self._choose(ids)
        first = self._total is None
        for path in self._paths:
            count = _count(self._tree, path)
            if count is None:
                continue
            if first:
                self._total = (self._total or 0) + count
            elif path in self._last and self._total is not None:
                self._total += max(0, count - self._last[path])
            self._last[path] = count
        return self._total

    def _choose(self, ids: Sequence[int]) -> list[str]:
        for name, cores in (("package", _one_per_package(self._tree, ids)), ("core", ids)):
            paths = [f"{_CPU}/cpu{core}/thermal_throttle/{name}_throttle_count" for core in cores]
            if paths and _count(self._tree, paths[0]) is not None:
                return paths
        return []


def _count(tree: Tree, path: str) -> int | None:
    try:
        return int(tree.read(path))
    except UNREADABLE:
        return None


def _one_per_package(tree: Tree, ids: Sequence[int]) -> list[int]:
    if ids and _count(tree, f"{_CPU}/cpu{ids[0]}/thermal_throttle/package_throttle_count") is None:
        return []  # spare machines without these files the look at hundreds of cores
    first: dict[int | None, int] = {}
    for core in ids:
        first.setdefault(_count(tree, f"{_CPU}/cpu{core}/topology/physical_package_id"), core)
    return list(first.values())
