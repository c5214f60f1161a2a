"""Waves: exact means, noise that is the same every time, integrals that never fall."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuwatch.sources.simulated.integrals import BitTimes, Integral
from gpuwatch.sources.simulated.language import ExpressionParser
from gpuwatch.sources.simulated.waveforms import Compiler
from gpuwatch.sources.simulated.waves import Wave


def wave(text: str, seed: int = 1, gpu: int = 0) -> Wave:
    return Compiler({"gpu": float(gpu)}, seed=seed).wave(ExpressionParser(text).parse())


def by_points(at, start: float, end: float, count: int = 4000) -> float:
    step = (end - start) / count
    return sum(at(start + (i + 0.5) * step) for i in range(count)) / count


SHAPES = [
    "square(0, 97, period=1.4, duty=0.36)",
    "square(3, 97, period=1.4, duty=0.36, phase=0.4)*0.5 + 10",
    "saw(2, 10, 3)",
    "sine(-1, 1, 2.5)",
    "tri(0, 8, 3, phase=1)",
    "ramp(60, 84, 3, 9)",
    "steps(1, 4:2, 6:square(0, 8, 0.9))",
    "lin(2:340, 5:230, 8:260)",
    "5 - noise(2)",
    "shift(square(0, 97, 1.4, 0.36), 0.3)",
    "loop(3, saw(0, 9, 3))",
]


@pytest.mark.parametrize("text", SHAPES)
@pytest.mark.parametrize(("start", "end"), [(0.0, 1 / 6), (3.1, 3.35), (2.0, 9.5), (-4.0, 1.0)])
def test_means_are_what_the_span_held(text: str, start: float, end: float) -> None:
    found = wave(text)
    assert found.mean(start, end) == pytest.approx(by_points(found.at, start, end), rel=0.01, abs=0.05)


@given(st.floats(-5, 50), st.floats(0.01, 5), st.floats(0.01, 5), st.sampled_from(SHAPES[:10]))
@settings(max_examples=150)
def test_means_of_neighbours_add_up(start: float, first: float, second: float, text: str) -> None:
    found = wave(text)
    middle, end = start + first, start + first + second
    both = found.mean(start, middle) * first + found.mean(middle, end) * second
    assert found.mean(start, end) * (first + second) == pytest.approx(both, rel=1e-6, abs=1e-6)


def test_sampled_means_come_close() -> None:
    found = wave("if(square(0, 97, period=1.4, duty=0.36) < 50, 0.97, 1.0)")
    assert found.mean(0.0, 14.0) == pytest.approx(0.97 * 0.64 + 0.36, abs=0.003)


@given(st.integers(0, 10_000))
def test_noise_stays_within_its_amplitude_and_holds_for_a_cell(cell: int) -> None:
    found = wave("noise(3, cell=0.5)")
    inside = found.at(cell * 0.5 + 0.01)
    assert -3 <= inside <= 3
    assert found.at(cell * 0.5 + 0.49) == inside


def test_noise_depends_on_seed_place_and_gpu_alone() -> None:
    def values(text: str, **where: int) -> list[float]:
        at = wave(text, **where).at
        return [at(i / 10) for i in range(50)]

    same = values("noise(1)")
    assert same == values("noise(1)")
    assert same != values("noise(1)", seed=2)
    assert same != values("noise(1)", gpu=1)
    apart = wave("noise(1) - noise(1)")
    assert any(apart.at(i / 10) for i in range(50))
    assert sum(values("noise(1)")) / 50 == pytest.approx(0, abs=0.25)


def test_pergpu_differs_between_gpus_and_stays() -> None:
    found = [wave("pergpu(10, 20)", gpu=gpu) for gpu in range(4)]
    assert all(10 <= one.at(0) <= 20 and one.at(0) == one.at(99) for one in found)
    assert len({one.at(0) for one in found}) == 4


@given(st.lists(st.floats(0, 30), min_size=2, max_size=20))
def test_an_integral_does_not_depend_on_who_asks_when(moments: list[float]) -> None:
    mean = wave("square(0, 97, period=1.4, duty=0.36)").mean
    eager, late = Integral(mean), Integral(mean)
    values = [eager.at(t) for t in sorted(moments)]
    assert values == sorted(values)
    assert late.at(max(moments)) == values[-1]


def test_an_integral_is_the_area() -> None:
    mean = wave("square(0, 100, period=2, duty=0.25)").mean
    assert Integral(mean).at(200.0) == pytest.approx(5000)
    assert Integral(mean).mean(100.0, 104.0) == pytest.approx(25, abs=0.01)


def test_an_integral_before_the_start_is_negative_amount() -> None:
    assert Integral(lambda start, end: 5.0).at(-2.0) == -10.0


def test_bit_times_count_each_reason() -> None:
    times = BitTimes(wave("square(0, sw_power_cap, period=2, duty=0.85) + sw_thermal").at)
    seconds = times.at(100.0)
    assert seconds[2] == pytest.approx(85, abs=1)
    assert seconds[5] == pytest.approx(100)
    assert seconds[3] == 0


def test_a_live_integral_never_looks_ahead() -> None:
    known_until = 0.0
    rate = wave("square(0, 97, period=1.4, duty=0.36)").mean

    def mean(start: float, end: float) -> float:
        assert end <= known_until + 1e-9
        return rate(start, end)

    live, planned = Integral(mean, live=True), Integral(rate)
    for known_until in (0.03, 0.33, 1.234, 7.0, 7.05, 20.01):
        assert live.at(known_until) == pytest.approx(planned.at(known_until), abs=5)
    assert live.at(20.01) == pytest.approx(planned.at(20.01), abs=1)
