"""Expressions as fast functions of time: the value at a moment, and the mean over a span.

Means are exact where the shape allows it (sums, scaled square waves, ramps, steps, noise) and sampled
elsewhere, so that a utilization sample is what its whole period held. Everything depends on the time,
the GPU, the place in the file and the seed alone. Before the start, time goes on into the past.
"""

import math
import random
from array import array
from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from gpuwatch.sources.simulated.language import Binary, Call, Constant, Node, Number, Reference, Time

At = Callable[[float], float]
Mean = Callable[[float, float], float]

_POINT_S = 0.02  # spacing of the points of a sampled mean
_FEWEST, _MOST = 4, 32
_NOISE_LENGTH = 8192  # values; a power of two
_QUANTUM = 64  # per s: slow functions of a window are evaluated this often
_LAG_POINTS = 16
_LAG_REACH = 4.0  # time constants that exponential smoothing looks back


@dataclass(frozen=True, slots=True)
class Wave:
    """`exact`: the mean costs about as much as one value. `constant`: the value, if it has only one."""

    at: At
    mean: Mean
    exact: bool = False
    constant: float | None = None

    def scaled(self, factor: float) -> "Wave":
        if self.constant is not None:
            return constant_wave(self.constant * factor)
        at, mean = self.at, self.mean
        return Wave(lambda t: factor * at(t), lambda start, end: factor * mean(start, end), self.exact)


def constant_wave(value: float) -> Wave:
    return Wave(lambda t: value, lambda start, end: value, True, value)


def sampled_wave(at: At) -> Wave:
    """A wave whose mean is taken from points in the middle of equal parts."""

    def mean(start: float, end: float) -> float:
        length = end - start
        if length <= 0:
            return at(end)
        count = min(_MOST, max(_FEWEST, round(length / _POINT_S)))
        step = length / count
        first = start + step / 2
        return sum([at(first + step * i) for i in range(count)]) / count

    return Wave(at, mean)


class Compiler:
    """Makes waves for one GPU (or for none). `lookup` gives the waves that names refer to."""

    def __init__(
        self,
        constants: Mapping[str, float] | None = None,
        lookup: Callable[[str], Wave] | None = None,
        seed: int = 1,
        noise: "Noise | None" = None,
        busy: Callable[[Call, Wave], Wave] | None = None,
    ) -> None:
        self._constants = constants or {}
        self._lookup = lookup
        self._seed = seed
        self._noise = noise or Noise(seed)
        self._busy = busy

    def wave(self, node: Node) -> Wave:
        match node:
            case Number(value):
                return constant_wave(value)
            case Time():
                return Wave(lambda t: t, lambda start, end: (start + end) / 2, True)
            case Constant(name):
                return constant_wave(float(self._constants.get(name, 0.0)))
            case Reference(name):
                return self._lookup(name) if self._lookup else constant_wave(0.0)
            case Binary(operator, left, right):
                return _binary(operator, self.wave(left), self.wave(right))
            case Call():
                return self._call(node)

    def _call(self, call: Call) -> Wave:
        waves = [None if node is None else self.wave(node) for node in call.arguments]
        if call.name.startswith("busy"):
            slot = waves[0] if waves and waves[0] else constant_wave(self._constants.get("gpu", 0.0))
            return self._busy(call, slot) if self._busy else constant_wave(0.0)
        given = [wave for wave in waves if wave is not None]
        if call.name in ("steps", "lin"):
            keys = [self.wave(key).at(0.0) if key else -math.inf for key in call.keys]
            return _steps(keys, given) if call.name == "steps" else _lin(keys, given)
        if call.name == "noise":
            cell = given[1].at(0.0) if len(given) > 1 else 0.1
            return self._noise.wave(given[0], cell, self._where(call))
        if call.name == "pergpu":
            share = random.Random(f"{self._seed}/{self._where(call)}/pergpu").random()
            low, high = given
            return _binary("+", low, _binary("*", _binary("-", high, low), constant_wave(share)))
        if call.name in _PERIODIC:
            return _periodic(call.name, waves)
        return _FUNCTIONS[call.name](*given)

    def _where(self, call: Call) -> str:
        return f"{self._constants.get('gpu', -1)}/{call.place}"


class Noise:
    """One table of random numbers for all noise of a scenario; each place walks it in its own way."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._table = array("d")

    def wave(self, amplitude: Wave, cell: float, where: str) -> Wave:
        if not self._table:
            source = random.Random(f"{self._seed}/noise")
            self._table.extend(source.uniform(-1.0, 1.0) for _ in range(_NOISE_LENGTH))
        table, mask = self._table, _NOISE_LENGTH - 1
        own = random.Random(f"{self._seed}/{where}")
        stride, offset = own.randrange(1, _NOISE_LENGTH, 2), own.randrange(_NOISE_LENGTH)
        cell = cell if cell > 0 else 0.1
        floor = math.floor

        def at(t: float) -> float:
            return table[(floor(t / cell) * stride + offset) & mask]

        def mean(start: float, end: float) -> float:
            if end <= start:
                return at(end)
            first, last = floor(start / cell), floor(end / cell)
            if first == last:
                return table[(first * stride + offset) & mask]
            total = table[(first * stride + offset) & mask] * ((first + 1) * cell - start)
            total += table[(last * stride + offset) & mask] * (end - last * cell)
            for k in range(first + 1, last):
                total += table[(k * stride + offset) & mask] * cell
            return total / (end - start)

        return _binary("*", amplitude, Wave(at, mean, True))


def _binary(operator: str, left: Wave, right: Wave) -> Wave:
    if left.constant is not None and right.constant is not None:
        return constant_wave(_OPERATORS[operator](left.constant, right.constant))
    a, b, ma, mb = left.at, right.at, left.mean, right.mean
    exact = left.exact and right.exact
    if operator == "+":
        return Wave(lambda t: a(t) + b(t), lambda start, end: ma(start, end) + mb(start, end), exact)
    if operator == "-":
        return Wave(lambda t: a(t) - b(t), lambda start, end: ma(start, end) - mb(start, end), exact)
    if operator == "*" and left.constant is not None:
        return right.scaled(left.constant)
    if operator == "*" and right.constant is not None:
        return left.scaled(right.constant)
    if operator == "/" and right.constant is not None:
        return left.scaled(1 / right.constant if right.constant else 0.0)
    apply = _OPERATORS[operator]
    return sampled_wave(lambda t: apply(a(t), b(t)))


_OPERATORS: Mapping[str, Callable[[float, float], float]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b if b else 0.0,
    "<": lambda a, b: float(a < b),
    ">": lambda a, b: float(a > b),
    "<=": lambda a, b: float(a <= b),
    ">=": lambda a, b: float(a >= b),
}

_PERIODIC = ("square", "saw", "sine", "tri")


def _periodic(name: str, waves: list[Wave | None]) -> Wave:
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
    return _binary("+", low, _binary("*", _binary("-", high, low), share))


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


def _steps(keys: list[float], waves: list[Wave]) -> Wave:
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


def _lin(keys: list[float], waves: list[Wave]) -> Wave:
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


def _ramp(low: Wave, high: Wave, start: Wave, end: Wave) -> Wave:
    return _lin([start.at(0.0), max(start.at(0.0), end.at(0.0))], [low, high])


def _loop(period: Wave, wave: Wave) -> Wave:
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


def _shift(wave: Wave, by: Wave) -> Wave:
    at, mean, delay = wave.at, wave.mean, by.at(0.0)
    return Wave(lambda t: at(t - delay), lambda start, end: mean(start - delay, end - delay), wave.exact)


def _window(value: At) -> Wave:
    """A slow function of time: evaluated on a fine grid, the last answer kept."""
    kept = (-(2**62), 0.0)

    def at(t: float) -> float:
        nonlocal kept
        cell = math.floor(t * _QUANTUM)
        last, answer = kept
        if cell != last:
            answer = value(cell / _QUANTUM)
            kept = (cell, answer)
        return answer

    return sampled_wave(at)


def _avg(wave: Wave, window: Wave) -> Wave:
    if wave.constant is not None:
        return wave
    mean, length = wave.mean, window.at(0.0)
    return _window(lambda t: mean(t - length, t))


def _lag(wave: Wave, tau: Wave) -> Wave:
    """Exponential smoothing with time constant tau, over the last four of them."""
    constant = tau.at(0.0)
    if not constant > 0 or wave.constant is not None:
        return wave
    step = _LAG_REACH / _LAG_POINTS
    weights = [math.exp(-step * (i + 0.5)) for i in range(_LAG_POINTS)]
    total = sum(weights)
    parts = [(step * i * constant, step * (i + 1) * constant, w / total) for i, w in enumerate(weights)]
    at, mean = wave.at, wave.mean
    if wave.exact:
        return _window(lambda t: sum([mean(t - late, t - early) * w for early, late, w in parts]))
    return _window(lambda t: sum([at(t - (early + late) / 2) * w for early, late, w in parts]))


def _pointwise(function: Callable[..., float]) -> Callable[..., Wave]:
    def make(*waves: Wave) -> Wave:
        if all(wave.constant is not None for wave in waves):
            return constant_wave(function(*[wave.constant for wave in waves]))
        values = [wave.at for wave in waves]
        return sampled_wave(lambda t: function(*[value(t) for value in values]))

    return make


def _if(condition: Wave, then: Wave, otherwise: Wave) -> Wave:
    if condition.constant is not None:
        return then if condition.constant else otherwise
    test, yes, no = condition.at, then.at, otherwise.at
    return sampled_wave(lambda t: yes(t) if test(t) else no(t))


_FUNCTIONS: Mapping[str, Callable[..., Wave]] = {
    "ramp": _ramp,
    "loop": _loop,
    "shift": _shift,
    "min": _pointwise(min),
    "max": _pointwise(max),
    "clamp": _pointwise(lambda x, low, high: min(max(x, low), high)),
    "if": _if,
    "avg": _avg,
    "lag": _lag,
    "floor": _pointwise(lambda x: float(math.floor(x))),
    "mod": _pointwise(lambda x, y: math.fmod(x, y) if y else 0.0),
    "abs": _pointwise(abs),
}
