"""The demo's stories, end to end through driver, bindings and reader, in simulated time."""

import pytest

from gpuwatch.model import Severity, severity_at_least
from gpuwatch.session import Session
from gpuwatch.sources.live import run_simulated

#: scenario: rule, layer of the verdict, seconds until it is there. The disk's own rule is not built yet.
STORIES = {
    "starved": ("loader-in-main-process", "data", 60),
    "workers": ("loader-too-few-workers", "data", 60),
    "disk": ("gpu-starved", "data", 60),
    "power-cap": ("power-limit-lowered", "hardware", 40),
    "pcie-x4": ("pcie-width-reduced", "hardware", 65),
    "mixed": ("loader-in-main-process", "data", 60),
}


def run(name: str, seconds: float):
    session = Session(interval_s=1.0)
    first: dict[str, float] = {}
    alarms: set[str] = set()
    start = None
    for sample in run_simulated(name, seconds, interval_s=1.0, gpus=None, pid=None, user=None):
        start = sample.monotonic_s if start is None else start
        diagnosis = session.feed(sample).diagnosis
        assert diagnosis is not None
        if diagnosis.verdict.rule is not None:
            first.setdefault(diagnosis.verdict.rule, sample.monotonic_s - start)
        alarms |= {f.rule for f in diagnosis.findings if severity_at_least(f.severity, Severity.NOTICE)}
    return diagnosis, first, alarms


@pytest.mark.parametrize("name", STORIES)
def test_each_story_is_told(name):
    rule, layer, within_s = STORIES[name]
    diagnosis, first, alarms = run(name, 75)
    assert (diagnosis.verdict.rule, diagnosis.verdict.layer) == (rule, layer)
    assert first[rule] <= within_s
    assert alarms <= {rule, "thermal-throttle"}
    assert not [entry for entry in diagnosis.not_checked if "failed" in entry.reason]


def test_the_pulses_of_the_starved_job_are_measured():
    diagnosis, _, _ = run("starved", 75)
    (shape,) = diagnosis.shapes.values()
    assert shape.period_s == pytest.approx(1.4, rel=0.1)
    assert shape.stall_ratio == pytest.approx(0.64, abs=0.05)


def test_a_healthy_job_has_no_findings():
    diagnosis, _, alarms = run("healthy", 90)
    assert not alarms
    assert diagnosis.verdict.rule is None
