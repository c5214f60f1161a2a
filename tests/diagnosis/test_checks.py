"""The eight checks: in their place, and never silently green."""

import pytest
from build import Bench, Gpu, Process, Scene
from stubs import always, between, engine, fires, never, rule, when

from gpuwatch.diagnosis.interface import STEADY, Abstain, Clear
from gpuwatch.model import CHECKS, CheckState, Confidence, Kind, Severity


def checks_after(seconds, *rules, scene=None, **fields):
    bench = Bench(engine(*rules, **fields))
    bench.run(scene or Scene(), seconds)
    return {result.check.key: result for result in bench.log[-1].checks}


def test_all_eight_are_there_in_their_order():
    bench = Bench(engine())
    bench.run(Scene(), 1)
    assert tuple(result.check for result in bench.log[-1].checks) == CHECKS


def test_without_rules_a_check_is_unmeasurable_not_fine():
    results = checks_after(3)
    assert {result.state for result in results.values()} == {CheckState.UNMEASURABLE}
    assert results["dsk"].evidence == "no rule for this yet"
    assert checks_after(3, rule("disk", when(always), unavailable="later"))["dsk"].state is (
        CheckState.UNMEASURABLE
    )


@pytest.mark.parametrize(
    ("outcome", "kind", "state"),
    [
        (fires(0.3), Kind.LOSS, CheckState.NAMED),
        (fires(0.3, confidence=Confidence.POSSIBLE), Kind.LOSS, CheckState.POSSIBLE),
        (fires(), Kind.OPPORTUNITY, CheckState.POSSIBLE),
        (
            fires(severity=Severity.WARNING, confidence=Confidence.MEASURED),
            Kind.OPPORTUNITY,
            CheckState.NAMED,
        ),
        (fires(severity=Severity.NOTICE), Kind.RISK, CheckState.NAMED),
        (fires(severity=Severity.STATE), Kind.STATE, CheckState.FINE),
        (fires(0.02), Kind.LOSS, CheckState.POSSIBLE),
    ],
)
def test_a_finding_names_its_check_as_surely_as_it_is(outcome, kind, state):
    result = checks_after(3, rule("disk", when(always, outcome), kind=kind))["dsk"]
    assert result.state is state
    assert result.evidence == "title of disk"
    assert result.rule == "disk"


def test_bare_waiting_names_no_cause():
    result = checks_after(3, rule("gpu-starved", when(always, fires(0.6))))["ldr"]
    assert result.state is CheckState.POSSIBLE


def test_clear_is_fine_with_what_was_seen():
    results = checks_after(
        3,
        rule("gpu-starved", when(never, otherwise=Clear("no gaps"))),
        rule("loader-cpu-bound", when(never, otherwise=Clear("14 of 16 cores free"))),
    )
    assert results["ldr"].state is CheckState.FINE
    assert results["ldr"].evidence == "no gaps; 14 of 16 cores free"


def test_one_abstaining_rule_does_not_hide_that_another_looked():
    results = checks_after(
        3,
        rule("gpu-starved", lambda w, a: Abstain("no counter")),
        rule("loader-cpu-bound", when(never)),
    )
    assert results["ldr"].state is CheckState.FINE


def test_only_abstentions_are_unmeasurable_with_the_reason():
    result = checks_after(3, rule("disk", lambda w, a: Abstain("no permission")))["dsk"]
    assert (result.state, result.evidence) == (CheckState.UNMEASURABLE, "no permission")


def test_too_little_data_waits_with_the_seconds_left():
    result = checks_after(3, rule("disk", lambda w, a: Abstain("30 s of data needed", 27.0)))["dsk"]
    assert (result.state, result.seconds_left) == (CheckState.WAITING, 27.0)


def test_a_rule_about_to_fire_is_not_fine():
    slow = rule("disk", when(between(0, 100)), enter_evaluations=60)
    assert checks_after(5, slow)["dsk"].state is CheckState.WAITING


def test_gates_wait_and_say_for_what():
    job_rule = rule("disk", when(never), scope="job", states=STEADY)
    nothing = checks_after(3, job_rule, scene=Scene([Gpu(util=0.0, pids=())], []))["dsk"]
    assert (nothing.state, nothing.evidence) == (CheckState.WAITING, "no job on the GPU")
    young = checks_after(31, job_rule, scene=Scene(processes=[Process(100, age_s=5)]))["dsk"]
    assert young.state is CheckState.WAITING
    assert young.seconds_left == pytest.approx(41, abs=2.1)
    server = checks_after(3, job_rule, scene=Scene(processes=[Process(100, command="vllm serve")]))["dsk"]
    assert "not judged" in server.evidence


def test_a_banner_has_no_row():
    degraded = rule("telemetry-degraded", when(always, fires(severity=Severity.STATE)), kind=Kind.STATE)
    bench = Bench(engine(degraded))
    bench.run(Scene(), 3)
    assert [finding.banner for finding in bench.log[-1].findings] == [True]
    assert len(bench.log[-1].checks) == 8
