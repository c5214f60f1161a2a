"""Synthetic utilization with a known truth: busy and idle stretches, averaged as a driver does.

The simulation behind the detector's thresholds: exact busy time, box means of the driver's period,
1.5 points of noise, whole percents.
"""

import math
import random
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass

Series = tuple[list[float], list[float]]


@dataclass
class Truth:
    """Rising edges and their busy lengths up to `duration`; busy time up to any moment is exact."""

    starts: list[float]
    lengths: list[float]
    high: float
    low: float

    def busy_before(self, t: float) -> float:
        index = bisect_right(self.starts, t)
        done = self._sums[index - 1] if index else 0.0
        return done + (min(self.lengths[index - 1], t - self.starts[index - 1]) if index else 0.0)

    def __post_init__(self) -> None:
        self._sums = [0.0]
        for length in self.lengths:
            self._sums.append(self._sums[-1] + length)

    def mean(self, start: float, end: float) -> float:
        part = (self.busy_before(end) - self.busy_before(start)) / (end - start)
        return self.low + (self.high - self.low) * part


def pulses(
    rng: random.Random, period: float, duty: float, jitter: float, duration: float, high: float = 0.97
) -> Truth:
    starts, lengths = [], []
    t = -rng.random() * period - 2 * period
    while t < duration + period:
        starts.append(t)
        lengths.append(max(0.02, duty * period * (1 + rng.gauss(0, jitter))))
        t += lengths[-1] + max(0.02, (1 - duty) * period * (1 + rng.gauss(0, jitter)))
    return Truth(starts, lengths, high, 0.0)


def true_stall(truth: Truth, start: float, end: float) -> float:
    return 1 - (truth.busy_before(end) - truth.busy_before(start)) / (end - start)


def read(value: float, rng: random.Random) -> float:
    return round(min(1.0, max(0.0, value + rng.uniform(-0.015, 0.015))), 2)


def buffered(mean: Callable[[float, float], float], rng: random.Random, hz: float, duration: float) -> Series:
    """The driver's own samples: means of periods that follow each other."""
    times = [(k + 1) / hz for k in range(round(duration * hz))]
    return times, [read(mean(t - 1 / hz, t), rng) for t in times]


def polled(
    mean: Callable[[float, float], float],
    rng: random.Random,
    window: float,
    duration: float,
    jitter: float = 0.3,
) -> Series:
    """One reading a second of the driver's last period."""
    times = [k + 1 + rng.uniform(-jitter, jitter) for k in range(round(duration))]
    return times, [read(mean(t - window, t), rng) for t in times]


def steady(level: float) -> Callable[[float, float], float]:
    return lambda start, end: level


def correlated(
    rng: random.Random, level: float, deviation: float, correlation_s: float, duration: float
) -> Callable[[float, float], float]:
    """Noise with a memory of `correlation_s` (an AR(1) process at 10 Hz)."""
    keep = math.exp(-0.1 / correlation_s)
    values, value = [], rng.gauss(0, deviation)
    for _ in range(round(duration * 10) + 30):
        value = keep * value + rng.gauss(0, deviation) * math.sqrt(1 - keep * keep)
        values.append(min(1.0, max(0.0, level + value)))
    return _sampled(values, 0.1)


def wave(shape: Callable[[float], float], duration: float) -> Callable[[float, float], float]:
    return _sampled([shape(i * 0.1) for i in range(round(duration * 10) + 30)], 0.1)


def _sampled(values: list[float], step: float) -> Callable[[float, float], float]:
    sums = [0.0]
    for value in values:
        sums.append(sums[-1] + value * step)

    def until(t: float) -> float:
        place = max(0.0, t / step + 10)  # readings may start before 0
        index = min(len(values) - 1, int(place))
        return sums[index] + (place - index) * step * values[index]

    return lambda start, end: (until(end) - until(start)) / (end - start)


def negatives(rng: random.Random, duration: float) -> dict[str, Callable[[float, float], float]]:
    """What is not a pulse although it moves."""
    pauses = Truth([-5.0, 22.0, 55.0], [20.0, 25.0, 100.0], 0.97, 0.0)
    one_pause = Truth([-5.0, 32.0], [25.0, 100.0], 0.97, 0.0)
    return {
        "steady 97": steady(0.97),
        "steady 60": steady(0.60),
        "steady 30": steady(0.30),
        "idle": steady(0.01),
        "noise 90 5": correlated(rng, 0.90, 0.05, 0.3, duration),
        "noise 70 10": correlated(rng, 0.70, 0.10, 0.3, duration),
        "noise 50 15": correlated(rng, 0.50, 0.15, 1.0, duration),
        "noise 60 20": correlated(rng, 0.60, 0.20, 0.3, duration),
        "noise 50 30": correlated(rng, 0.50, 0.30, 3.0, duration),
        "pauses": pauses.mean,
        "one pause": one_pause.mean,
        "ramp": wave(lambda t: 0.2 + 0.75 * t / duration, duration),
        "slow sine": wave(lambda t: 0.6 + 0.3 * math.sin(t / 5), duration),
        "fast sine": wave(lambda t: 0.7 + 0.15 * math.sin(t * 4), duration),
        "shallow pulses": wave(lambda t: 0.95 if t % 1.5 < 0.9 else 0.65, duration),
        "high-based pulses": wave(lambda t: 0.97 if t % 2 < 1.2 else 0.5, duration),
        "small stalls 5": pulses(rng, 1.0, 0.95, 0.05, duration, 1.0).mean,
        "small stalls 7": pulses(rng, 3.0, 0.93, 0.05, duration, 1.0).mean,
    }
