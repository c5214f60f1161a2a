"""A value over time: what it is at a moment, and its mean over a span.

Means are exact where the shape allows it and sampled elsewhere, so that a utilization sample is what its
whole period held. Before the start, time goes on into the past.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

At = Callable[[float], float]
Mean = Callable[[float, float], float]

_POINT_S = 0.02  # spacing of the points of a sampled mean
_FEWEST, _MOST = 4, 32


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


def binary(operator: str, left: Wave, right: Wave) -> Wave:
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


def pointwise(function: Callable[..., float]) -> Callable[..., Wave]:
    def make(*waves: Wave) -> Wave:
        if all(wave.constant is not None for wave in waves):
            return constant_wave(function(*[wave.constant for wave in waves]))
        values = [wave.at for wave in waves]
        return sampled_wave(lambda t: function(*[value(t) for value in values]))

    return make


def choose(condition: Wave, then: Wave, otherwise: Wave) -> Wave:
    if condition.constant is not None:
        return then if condition.constant else otherwise
    test, yes, no = condition.at, then.at, otherwise.at
    return sampled_wave(lambda t: yes(t) if test(t) else no(t))
