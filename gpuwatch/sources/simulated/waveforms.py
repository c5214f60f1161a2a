"""Expressions as fast functions of time.

Everything depends on the time, the GPU, the place in the file and the seed alone.
"""

import math
import random
from array import array
from collections.abc import Callable, Mapping

from gpuwatch.sources.simulated.language import Binary, Call, Constant, Node, Number, Reference, Time
from gpuwatch.sources.simulated.shapes import PERIODIC, lin, loop, periodic, ramp, shift, steps
from gpuwatch.sources.simulated.waves import (
    At,
    Wave,
    binary,
    choose,
    constant_wave,
    pointwise,
    sampled_wave,
)

_NOISE_LENGTH = 8192  # values; a power of two
_QUANTUM = 64  # per s: slow functions of a window are evaluated this often
_LAG_POINTS = 16
_LAG_REACH = 4.0  # time constants that exponential smoothing looks back


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
                return binary(operator, self.wave(left), self.wave(right))
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
            return steps(keys, given) if call.name == "steps" else lin(keys, given)
        if call.name == "noise":
            cell = given[1].at(0.0) if len(given) > 1 else 0.1
            return self._noise.wave(given[0], cell, self._where(call))
        if call.name == "pergpu":
            share = random.Random(f"{self._seed}/{self._where(call)}/pergpu").random()
            low, high = given
            return binary("+", low, binary("*", binary("-", high, low), constant_wave(share)))
        if call.name in PERIODIC:
            return periodic(call.name, waves)
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

        return binary("*", amplitude, Wave(at, mean, True))


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


_FUNCTIONS: Mapping[str, Callable[..., Wave]] = {
    "ramp": ramp,
    "loop": loop,
    "shift": shift,
    "min": pointwise(min),
    "max": pointwise(max),
    "clamp": pointwise(lambda x, low, high: min(max(x, low), high)),
    "if": choose,
    "avg": _avg,
    "lag": _lag,
    "floor": pointwise(lambda x: float(math.floor(x))),
    "mod": pointwise(lambda x, y: math.fmod(x, y) if y else 0.0),
    "abs": pointwise(abs),
}
