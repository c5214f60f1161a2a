"""When ticks are due.

They lie on a grid with jitter. Polling exactly once a second would freeze a pulse with a period of
half a second or a second in one phase, and the pulse would look like idling or like full load.
"""

import random
from collections.abc import Callable, Iterator
from math import ceil

from gpuwatch.model import Sample
from gpuwatch.sources.base import Clock, Source

#: Most that a tick is moved off its place in the grid, either way, as part of the interval.
JITTER_RATIO = 0.3
#: A tick this soon after the one before would make rates of too short a time; it is left out.
LEAST_SPACING_RATIO = 0.35
#: A source that always wants to be called at once must not keep a core busy.
LEAST_PAUSE_S = 0.01


class Deadlines:
    """When ticks are due. Ticks that were missed are left out, never made up for."""

    def __init__(self, start_s: float, interval_s: float, seed: int | None = None) -> None:
        self._start_s = start_s
        self._interval_s = interval_s
        self._random = random.Random(seed)
        self._place = 0

    def after(self, taken_s: float, now_s: float) -> float:
        """The first deadline later than `now_s`; the last tick was taken at `taken_s`."""
        earliest_s = max(now_s, taken_s + LEAST_SPACING_RATIO * self._interval_s)
        place = max(self._place + 1, ceil((earliest_s - self._start_s) / self._interval_s - JITTER_RATIO))
        while (due_s := self._at(place)) <= earliest_s:
            place += 1
        self._place = place
        return due_s

    def _at(self, place: int) -> float:
        jitter = self._random.uniform(-JITTER_RATIO, JITTER_RATIO)
        return self._start_s + (place + jitter) * self._interval_s


def ticks(
    source: Source,
    clock: Clock,
    wait: Callable[[float], bool | None],
    interval_s: float,
    seed: int | None = None,
) -> Iterator[Sample]:
    """Samples of an opened source, the first at once, until `wait` says True for "stop".

    `wait(seconds)` lets time pass: it blocks, or it moves a clock of its own on.
    """
    due_s = clock.monotonic_s()
    deadlines = Deadlines(due_s, interval_s, seed)
    while True:
        taken_s = clock.monotonic_s()
        yield source.sample(due_s)
        due_s = deadlines.after(taken_s, clock.monotonic_s())
        while clock.monotonic_s() < due_s:
            pause_s = source.between()
            left_s = due_s - clock.monotonic_s()
            if left_s > 0 and wait(left_s if pause_s is None else min(left_s, max(pause_s, LEAST_PAUSE_S))):
                return
