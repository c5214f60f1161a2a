"""Small rules of known behaviour, to test the machinery around rules."""

from gpuwatch.diagnosis.engine import Catalogue, Engine
from gpuwatch.diagnosis.interface import ANY_STATE, STEADY, Abstain, Clear, Fires, Rule
from gpuwatch.model import Confidence, FindingText, Kind, Layer, Severity, ShapeKind

PLACES = {
    "gpu-starved": (Layer.DATA, "ldr"),
    "loader-in-main-process": (Layer.DATA, "ldr"),
    "loader-cpu-bound": (Layer.DATA, "ldr"),
    "cpu-quota-throttled": (Layer.ENVIRONMENT, "cpu"),
    "thermal-throttle": (Layer.HARDWARE, "pow"),
    "gpu-lost": (Layer.HARDWARE, "pow"),
    "pcie-width-reduced": (Layer.HARDWARE, "lnk"),
    "batch-headroom": (Layer.CODE, "cod"),
    "disk": (Layer.DATA, "dsk"),
    "telemetry-degraded": (Layer.HARDWARE, ""),
    "host-rule": (Layer.ENVIRONMENT, "cpu"),
}


def render(rule, fires, window):
    return FindingText(
        title=f"title of {rule}",
        because=("one", "two", "three", "four", "five"),
        wrong_if="it is something else",
        settle="try it",
        advice=("first step", "second step"),
        short_advice=f"do {rule}",
    )


def engine(*rules, ignored=frozenset(), render=render):
    return Engine(ignored=ignored, catalogue=Catalogue(tuple(rules), PLACES, render, lambda rule: rule))


def rule(id_, evaluate, scope="gpu", kind=Kind.LOSS, **fields):
    return Rule(id_, 1, scope, kind, evaluate, **fields)


def fires(share=None, severity=None, confidence=Confidence.LIKELY, **fields):
    return Fires(confidence, (), severity=severity, share_ratio=share, **fields)


def when(condition, outcome=None, otherwise=None):
    """Fires while `condition(window)`."""
    outcome = outcome or fires(0.3)
    otherwise = otherwise or Clear("looked")
    return lambda window, active: outcome if condition(window) else otherwise


def between(start, end):
    """Scene time; scenes start at 10000 s."""
    return lambda window: start <= window.now_s - 10_000 < end


def always(window):
    return True


def never(window):
    return False


def _starved(window, active):
    shape = window.shape
    if shape.kind is ShapeKind.UNKNOWN:
        return Abstain("too few points", 30.0)
    if shape.kind is not ShapeKind.PULSED:
        return Clear(f"utilization is {shape.kind.value}")
    return Fires(
        Confidence.MEASURED,
        (),
        share_ratio=shape.stall_ratio,
        share_low_ratio=shape.stall_low_ratio,
        share_high_ratio=shape.stall_high_ratio,
    )


def _in_main(window, active):
    outcome = _starved(window, active)
    gap = window.job.main_gap
    if isinstance(outcome, Fires) and (gap is None or gap.gap_cores < 0.8):
        return Clear("the main thread sleeps in the gaps")
    return outcome


STARVED = rule(
    "gpu-starved", _starved, "job", states=STEADY, every_s=5.0, enter_evaluations=3, exit_evaluations=6
)
IN_MAIN = rule("loader-in-main-process", _in_main, "job", states=STEADY, every_s=5.0, exit_evaluations=3)
LOST = rule(
    "gpu-lost",
    lambda window, active: (
        fires(severity=Severity.CRITICAL) if window.reading.status.state.value == "lost" else Clear("present")
    ),
    kind=Kind.RISK,
    states=ANY_STATE,
    without_data=True,
)
