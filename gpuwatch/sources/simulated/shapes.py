"""Shapes of waves: periodic ones, steps, lines, loops and delays, each with its exact mean."""

import math
from bisect import bisect_right
from collections.abc import Callable

from gpuwatch.sources.simulated.waves import At, Wave, binary, sampled_wave

PERIODIC = ("square", "saw", "sine", "tri")


def periodic(name: str, waves: list[Wave | None]) -> Wave:
    """A wave between `low` and `high`; the share of the way up is a shape of the phase."""
    low, high, period = waves[:3]
    duty = waves[3] if name == "square" and len(waves) > 3 else None
    phase = waves[4:5] if name == "square" else waves[3:4]
    if low is None or high is None or period is None:
        raise ValueError(name)  # the parser lets none of them be missing
    length = period.constant
    part = 0.5 if duty is None else duty.constant
    offset = phase[0].constant if phase and phase[0] else 0.0
    if length is None or part is None or offset is None:
        return _moving_periodic(name, low, high, period, duty, phase[0] if phase else None)
    if not length > 0:
        return high if name == "square" and part > 0 else low
    share = _share_wave(name, length, part, offset)
    return binary("+", low, binary("*", binary("-", high, low), share))


def _share_wave(name: str, period: float, duty: float, phase: float) -> Wave:
    shape, area = _shape(name, duty)

    def at(t: float) -> float:
        return shape((t + phase) / period % 1.0)

    whole = area(1.0)

    def mean(start: float, end: float) -> float:
        if end <= start:
            return at(end)
        x, y = (start + phase) / period, (end + phase) / period
        i, j = math.floor(x), math.floor(y)
        return (whole * (j - i) + area(y - j) - area(x - i)) / (y - x)

    return Wave(at, mean, True)


def _shape(name: str, duty: float) -> tuple[At, At]:
    """Height at a phase 0..1, and the area under it from 0 on."""
    if name == "square":
        return (lambda x: 1.0 if x < duty else 0.0), (lambda x: min(x, duty))
    if name == "saw":
        return (lambda x: x), (lambda x: x * x / 2)
    if name == "sine":
        turn = 2 * math.pi
        return (lambda x: 0.5 - 0.5 * math.cos(turn * x)), (lambda x: x / 2 - math.sin(turn * x) / (2 * turn))
    return (
        (lambda x: 2 * x if x < 0.5 else 2 - 2 * x),
        (lambda x: x * x if x < 0.5 else 2 * x - x * x - 0.5),
    )


def _moving_periodic(
    name: str, low: Wave, high: Wave, period: Wave, duty: Wave | None, phase: Wave | None
) -> Wave:
    def at(t: float) -> float:
        length = period.at(t)
        shift = phase.at(t) if phase else 0.0
        place = (t + shift) / length % 1.0 if length > 0 else 0.0
        shape, _ = _shape(name, duty.at(t) if duty else 0.5)
        bottom = low.at(t)
        return bottom + (high.at(t) - bottom) * shape(place)

    return sampled_wave(at)


def _pieces(wave_of: Callable[[float], Wave], cuts: list[float], start: float, end: float) -> float:
    """Mean over a span of a wave that changes at the cuts."""
    if end <= start:
        return wave_of(end).at(end)
    total, at = 0.0, start
    for cut in cuts[bisect_right(cuts, start) :]:
        if cut >= end:
            break
        total += wave_of(at).mean(at, cut) * (cut - at)
        at = cut
    return (total + wave_of(at).mean(at, end) * (end - at)) / (end - start)


def steps(keys: list[float], waves: list[Wave]) -> Wave:
    """The last value whose time has come; the first one before that."""
    cuts = sorted({key for key in keys if key > -math.inf})

    def pick(t: float) -> Wave:
        chosen = waves[0]
        for key, wave in zip(keys, waves, strict=True):
            if key <= t:
                chosen = wave
        return chosen

    exact = all(wave.exact for wave in waves)
    return Wave(lambda t: pick(t).at(t), lambda start, end: _pieces(pick, cuts, start, end), exact)


def lin(keys: list[float], waves: list[Wave]) -> Wave:
    """Straight lines between points; level outside."""
    points = [(0.0 if key == -math.inf else key, wave) for key, wave in zip(keys, waves, strict=True)]
    cuts = sorted({key for key, _ in points})

    def at(t: float) -> float:
        before: tuple[float, float] | None = None
        for key, wave in points:
            value = wave.at(t)
            if t < key:
                if before is None:
                    return value
                return before[1] + (value - before[1]) * (t - before[0]) / (key - before[0])
            before = (key, value)
        return before[1] if before else 0.0

    if any(wave.constant is None for _, wave in points):
        return sampled_wave(at)
    line = Wave(at, lambda start, end: (at(start) + at(math.nextafter(end, start))) / 2)
    return Wave(at, lambda start, end: _pieces(lambda t: line, cuts, start, end), True)


def ramp(low: Wave, high: Wave, start: Wave, end: Wave) -> Wave:
    return lin([start.at(0.0), max(start.at(0.0), end.at(0.0))], [low, high])


def loop(period: Wave, wave: Wave) -> Wave:
    length = period.at(0.0)
    if not length > 0:
        return wave
    at, mean = wave.at, wave.mean

    def looped_mean(start: float, end: float) -> float:
        if end <= start:
            return at(end % length)
        first, last = math.floor(start / length), math.floor(end / length)
        if first == last:
            return mean(start - first * length, end - first * length)
        total = mean(start - first * length, length) * ((first + 1) * length - start)
        total += mean(0.0, length) * length * (last - first - 1)
        if end > last * length:
            total += mean(0.0, end - last * length) * (end - last * length)
        return total / (end - start)

    return Wave(lambda t: at(t % length), looped_mean, wave.exact)


def shift(wave: Wave, by: Wave) -> Wave:
    at, mean, delay = wave.at, wave.mean, by.at(0.0)
    return Wave(lambda t: at(t - delay), lambda start, end: mean(start - delay, end - delay), wave.exact)
