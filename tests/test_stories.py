"""The shipped stories end to end: simulated driver and host, real bindings, real rules, stepped time.

Each scenario file states its truth; nothing in the program reads it.
"""

from dataclasses import dataclass, field

import pytest

from gpuwatch.diagnosis.rules import RULES
from gpuwatch.model import Finding, Severity, severity_at_least
from gpuwatch.session import Session
from gpuwatch.sources.live import run_simulated
from gpuwatch.sources.simulated import load, scenario_names
from gpuwatch.state import State

WATCH_S = 150.0


@dataclass
class Told:
    """What a session said, second by second."""

    first_s: dict[str, float] = field(default_factory=dict)  # rule: first at notice or above
    verdict_first_s: dict[str, float] = field(default_factory=dict)
    verdicts: list[str] = field(default_factory=list)
    findings: dict[str, Finding] = field(default_factory=dict)
    last: State | None = None


def watch(name: str, seconds: float = WATCH_S, seed: int = 1, interval_s: float = 1.0) -> Told:
    session, told, start_s = Session(interval_s=interval_s), Told(), None
    for sample in run_simulated(name, seconds, seed=seed, interval_s=interval_s):
        state = session.feed(sample)
        start_s = sample.monotonic_s if start_s is None else start_s
        after_s = sample.monotonic_s - start_s
        assert state.diagnosis is not None
        for finding in state.diagnosis.findings:
            if severity_at_least(finding.severity, Severity.NOTICE):
                told.first_s.setdefault(finding.rule, after_s)
                told.findings[finding.rule] = finding
        rule = state.diagnosis.verdict.rule
        if rule is not None:
            told.verdict_first_s.setdefault(rule, after_s)
            if not told.verdicts or told.verdicts[-1] != rule:
                told.verdicts.append(rule)
        told.last = state
    return told


FAULTY = [name for name in scenario_names() if load(name).truth.get("rule", "none") != "none"]


BUILT = {rule.id for rule in RULES}


@pytest.mark.parametrize("name", FAULTY)
def test_the_cause_is_named_and_leads(name: str) -> None:
    truth = load(name).truth
    # Where the rule that would name the cause does not exist yet, waiting is told without one.
    rule = truth["rule"] if truth["rule"] in BUILT else "gpu-starved"
    told = watch(name)
    assert rule in told.first_s
    assert rule in told.verdicts
    assert str(told.findings[rule].layer) == truth["layer"]


def test_starved_within_a_minute_with_its_figures() -> None:
    truth = load("starved").truth
    told = watch("starved", 90.0)
    assert told.verdict_first_s["loader-in-main-process"] <= 60.0
    assert told.last is not None
    assert told.last.diagnosis is not None
    [shape] = told.last.diagnosis.shapes.values()
    assert shape.period_s == pytest.approx(float(truth["period_s"]), rel=0.10)
    assert shape.stall_ratio == pytest.approx(float(truth["stall_ratio"]), abs=0.05)
    assert shape.stall_low_ratio is not None
    assert shape.stall_high_ratio is not None
    assert shape.stall_low_ratio <= float(truth["stall_ratio"]) <= shape.stall_high_ratio


@pytest.mark.parametrize(("interval_s", "seconds"), [(0.2, 60.0), (5.0, 120.0), (60.0, 600.0)])
def test_the_interval_changes_what_is_seen_late_not_what_is_seen(interval_s: float, seconds: float) -> None:
    """The driver's own sub-second samples are drained whatever the interval."""
    told = watch("starved", seconds, interval_s=interval_s)
    assert told.verdicts == ["loader-in-main-process"]
    assert watch("healthy", seconds, interval_s=interval_s).first_s == {}


@pytest.mark.parametrize("seed", [1, 2])
def test_healthy_is_silent_for_five_minutes(seed: int) -> None:
    told = watch("healthy", 300.0, seed)
    assert told.first_s == {}
    assert told.verdicts == []


def test_a_lost_gpu_is_told_and_comes_back() -> None:
    told = watch("lost", 100.0)
    assert told.first_s["gpu-lost"] == pytest.approx(20.0, abs=3.0)
    assert told.last is not None
    assert told.last.sample is not None
    assert [reading.status.state.value for reading in told.last.sample.gpus] == ["ok", "ok"]
    kinds = [event.kind for event in told.last.events]
    assert "gpu-lost" in kinds
    assert "gpu-back" in kinds
    assert told.last.diagnosis is not None
    assert [finding.rule for finding in told.last.diagnosis.ended] == ["gpu-lost"]


@pytest.mark.parametrize("name", scenario_names())
def test_ledger_parts_always_sum_to_one(name: str) -> None:
    session = Session(interval_s=1.0)
    for sample in run_simulated(name, 45.0):
        state = session.feed(sample)
        assert state.diagnosis is not None
        for ledger in state.diagnosis.ledgers.values():
            assert sum(part.ratio for part in ledger.parts) == pytest.approx(1.0, abs=1e-9)
            assert all(part.ratio >= 0 for part in ledger.parts)


def test_the_same_scenario_is_told_the_same_way_twice() -> None:
    first, second = watch("workers", 60.0), watch("workers", 60.0)
    assert first.first_s == second.first_s
    assert first.verdict_first_s == second.verdict_first_s
