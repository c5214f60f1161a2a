"""Expressions: what they mean, and that bad ones are told apart with a reason."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuwatch.sources.simulated.language import FUNCTIONS, ExpressionParser, ScenarioError
from gpuwatch.sources.simulated.waveforms import Compiler

CONSTANTS = {"gpu": 2.0, "p_default": 350.0, "mem_total": 24.0 * 2**30}


def value(text: str, t: float = 0.0) -> float:
    return Compiler(CONSTANTS).wave(ExpressionParser(text).parse()).at(t)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 + 2*3", 7),
        ("(1 + 2)*3", 9),
        ("10 - 4 - 3", 3),
        ("-2*3", -6),
        ("--2", 2),
        ("7/2", 3.5),
        ("7/0", 0),
        ("3 < 4", 1),
        ("3 >= 4", 0),
        ("1.5e3", 1500),
        (".5", 0.5),
        ("40GiB", 40 * 2**30),
        ("12GB", 12e9),
        ("3Ki", 3072),
        ("2K", 2000),
        ("50ms", 0.05),
        ("2min", 120),
        ("1h", 3600),
        ("1815MHz", 1815),
        ("2.1GHz", 2100),
        ("350W + 10%", 360),
        ("sw_thermal + hw_slowdown", 0x28),
        ("p_default*0.5", 175),
        ("gpu + 4101", 4103),
        ("min(4, 2, 3) + max(1, 5)", 7),
        ("clamp(12, 0, 10)", 10),
        ("clamp(high=10, low=0, x=-3)", 0),
        ("if(2 > 1, 5, 6)", 5),
        ("floor(2.7) + mod(7, 4) + abs(-1)", 6),
    ],
)
def test_values(text: str, expected: float) -> None:
    assert value(text) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("text", "t", "expected"),
    [
        ("t", 3.5, 3.5),
        ("square(0, 97, period=1.4, duty=0.36)", 0.5, 97),
        ("square(0, 97, period=1.4, duty=0.36)", 0.51, 0),
        ("square(0, 97, 1.4, 0.36)", 1.41, 97),
        ("square(0, 10, 2, duty=0.5, phase=1)", 0.5, 0),
        ("saw(0, 10, 2)", 1.0, 5),
        ("sine(-1, 1, 12)", 6.0, 1),
        ("tri(0, 10, 4)", 3.0, 5),
        ("ramp(60, 84, 0, 240)", 120.0, 72),
        ("ramp(60, 84, 10, 240)", 5.0, 60),
        ("ramp(60, 84, 10, 240)", 500.0, 84),
        ("steps(1, 20:2, 45:3)", 19.9, 1),
        ("steps(1, 20:2, 45:3)", 20.0, 2),
        ("steps(1, 20:2, 45:3)", 99.0, 3),
        ("lin(50:340, 55:230, 80:230)", 52.5, 285),
        ("lin(50:340, 55:230)", 10.0, 340),
        ("lin(50:340, 55:230)", 90.0, 230),
        ("loop(10, t)", 23.0, 3),
        ("shift(t, 5)", 8.0, 3),
        ("avg(t, 4)", 10.0, 8),
    ],
)
def test_waves_over_time(text: str, t: float, expected: float) -> None:
    assert value(text, t) == pytest.approx(expected, abs=1e-9)


def test_smoothing_settles_on_a_constant_and_lags_a_step() -> None:
    assert value("lag(7, 3)", 50.0) == 7
    late = value("lag(steps(0, 100:10), 2)", 102.0)
    assert 10 * (1 - math.exp(-1)) == pytest.approx(late, abs=0.6)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "a value is missing"),
        ("1 +", "a value is missing"),
        ("util + bogus", 'unknown name "bogus"'),
        ("(1 + 2", "missing )"),
        ("1 2", 'left over: "2"'),
        ("square(1, 2)", "needs 3 arguments"),
        ("clamp(1, low=2)", "needs 3 arguments"),
        ("clamp(high=1, low=2)", "argument 1 is missing"),
        ("floor(1, 2)", "too many arguments"),
        ("noise(1", "expected , or )"),
        ("busy()", "wants a path first"),
        ("40Gx", 'left over: "Gx"'),
        ("(" * 200, "nest too deep"),
    ],
)
def test_a_mistake_has_a_reason(text: str, reason: str) -> None:
    with pytest.raises(ScenarioError, match="scenario") as raised:
        ExpressionParser(text).parse()
    assert reason in str(raised.value)


NUMBERS = st.integers(0, 1000).map(str) | st.floats(0, 1e6, allow_nan=False).map(lambda x: f"{x:.3f}")


def combined(inner):
    pair = st.tuples(inner, st.sampled_from("+-*"), inner)
    return pair.map(lambda parts: f"({parts[0]} {parts[1]} {parts[2]})") | inner.map(lambda x: f"min({x}, 5)")


@given(st.recursive(NUMBERS, combined, max_leaves=12))
def test_arithmetic_agrees_with_python(text: str) -> None:
    assert value(text) == pytest.approx(eval(text), rel=1e-9, abs=1e-9)


@given(st.text(alphabet="0123456789.+-*/<>=(),:ktuilsqarenp GM%\"'", max_size=40))
def test_any_text_is_an_expression_or_a_reason(text: str) -> None:
    try:
        node = ExpressionParser(text).parse()
    except ScenarioError:
        return
    assert isinstance(Compiler(CONSTANTS).wave(node).at(1.0), float | int)


def test_every_function_is_known_to_the_compiler() -> None:
    for name, (fewest, _, _) in FUNCTIONS.items():
        arguments = ", ".join(["1"] * fewest)
        text = f"{name}(/nowhere)" if name.startswith("busy") else f"{name}({arguments})"
        assert isinstance(value(text), float | int)
