"""Counters as integrals of waves: summed once, step by step on a fixed grid, never again from zero."""

import math
import threading
from collections.abc import Callable

_KEPT = 512  # steps that stay addressable


class Integral:
    """Amount of a rate gathered since t = 0; the rate's mean over each step, straight lines inside.

    A pure function of time: the grid does not depend on who asks when. Where the rate comes from a real
    process (`live`), a step is only known when it has passed, and the present one as far as it has gone.
    """

    def __init__(
        self, mean: Callable[[float, float], float], step_s: float = 0.1, live: bool = False
    ) -> None:
        self._mean = mean
        self._step_s = step_s
        self._live = live
        self._highest = 0.0
        self._lock = threading.Lock()
        self._first = 0  # grid index of the first kept sum
        self._sums = [0.0]

    def at(self, t: float) -> float:
        """Never falls as t grows, for t that are at most a few hundred steps old."""
        if t <= 0:
            return self._mean(t, 0.0) * t if t < 0 else 0.0
        step = self._step_s
        cell = math.floor(t / step)
        with self._lock:
            sums = self._sums
            while self._first + len(sums) <= cell + (not self._live):
                start = (self._first + len(sums) - 1) * step
                sums.append(sums[-1] + max(0.0, self._mean(start, start + step)) * step)
            if len(sums) > 2 * _KEPT:
                self._first += len(sums) - _KEPT
                del sums[:-_KEPT]
            place = max(0, cell - self._first)
            if place + 1 >= len(sums):
                so_far = max(0.0, self._mean(cell * step, t)) * (t - cell * step)
                self._highest = max(self._highest, sums[place] + so_far)
                return self._highest
            before, after = sums[place], sums[place + 1]
        return before + (after - before) * min(1.0, max(0.0, t / step - cell))

    def mean(self, start: float, end: float) -> float:
        """Mean rate between two recent moments."""
        return (self.at(end) - self.at(start)) / (end - start)


class BitTimes:
    """Seconds since t = 0 in which each bit of a mask was set."""

    def __init__(
        self, mask: Callable[[float], float], count: int = 11, step_s: float = 0.1, live: bool = False
    ) -> None:
        self._mask = mask
        self._part = 0.0 if live else 0.5  # where in a step the mask is looked at
        self._step_s = step_s
        self._lock = threading.Lock()
        self._cell = 0
        self._bits = int(max(0.0, mask(step_s * self._part)))
        self._sums = [0.0] * count

    def at(self, t: float) -> list[float]:
        if t <= 0:
            return [0.0] * len(self._sums)
        step = self._step_s
        cell = math.floor(t / step)
        with self._lock:
            while self._cell < cell:
                self._add(self._sums, step)
                self._cell += 1
                self._bits = int(max(0.0, self._mask((self._cell + self._part) * step)))
            sums = list(self._sums)
            self._add(sums, max(0.0, t - self._cell * step))
        return sums

    def _add(self, sums: list[float], seconds: float) -> None:
        bits = self._bits
        for bit in range(len(sums)):
            if bits >> bit & 1:
                sums[bit] += seconds
