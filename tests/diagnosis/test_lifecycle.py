"""Hysteresis, severities that do not flicker, flapping."""

import pytest

from gpuwatch.diagnosis.interface import Abstain, Clear, Fires, Rule
from gpuwatch.diagnosis.lifecycle import Track, severity_of
from gpuwatch.model import Confidence, Kind, Severity


def fires(share=None, severity=None):
    return Fires(Confidence.LIKELY, (), severity=severity, share_ratio=share)


def track(enter=1, exit_=1, kind=Kind.LOSS):
    rule = Rule("r", 1, "gpu", kind, lambda w, a: Clear(), enter_evaluations=enter, exit_evaluations=exit_)
    return Track(rule, "ldr", "G")


@pytest.mark.parametrize(
    ("share", "before", "expected"),
    [
        (0.079, None, Severity.STATE),
        (0.08, None, Severity.NOTICE),
        (0.15, None, Severity.WARNING),
        (0.349, None, Severity.WARNING),
        (0.35, None, Severity.CRITICAL),
        (0.33, Severity.CRITICAL, Severity.CRITICAL),
        (0.31, Severity.CRITICAL, Severity.WARNING),
        (0.13, Severity.CRITICAL, Severity.WARNING),
        (0.13, Severity.NOTICE, Severity.NOTICE),
        (0.06, Severity.NOTICE, Severity.NOTICE),
        (0.04, Severity.NOTICE, Severity.STATE),
    ],
)
def test_severity_of_a_loss_falls_three_points_below_where_it_rose(share, before, expected):
    assert severity_of(fires(share), Kind.LOSS, before) is expected


def test_severity_of_other_kinds_and_the_rules_own_word():
    assert severity_of(fires(), Kind.RISK, None) is Severity.WARNING
    assert severity_of(fires(), Kind.OPPORTUNITY, None) is Severity.NOTICE
    assert severity_of(fires(), Kind.STATE, None) is Severity.STATE
    assert severity_of(fires(0.9, Severity.NOTICE), Kind.LOSS, None) is Severity.NOTICE


def test_enter_and_exit_ask_for_evaluations_in_a_row():
    one = track(enter=3, exit_=2)
    for now, outcome, on in [
        (0, fires(0.2), False),
        (5, fires(0.2), False),
        (10, Clear(), False),
        (15, fires(0.2), False),
        (20, fires(0.2), False),
        (25, fires(0.2), True),
        (30, Clear(), True),
        (35, fires(0.2), True),
        (40, Clear(), True),
        (45, Clear(), False),
    ]:
        one.take(outcome, float(now))
        assert one.on is on, now


def test_an_abstention_interrupts_entering_and_keeps_what_is_on_for_a_minute():
    one = track(enter=2)
    one.take(fires(0.2), 0.0)
    one.take(Abstain("no signal"), 1.0)
    one.take(fires(0.2), 2.0)
    assert not one.on
    one.take(fires(0.2), 3.0)
    for now in range(4, 64):
        one.take(Abstain("no signal"), float(now))
        assert one.on
    one.take(Abstain("no signal"), 64.0)
    assert not one.on


def test_a_closed_gate_ends_it_and_says_why():
    one = track()
    one.take(fires(0.2), 0.0)
    one.close_gate("warming up, 34 s", 34.0)
    assert not one.shown
    assert one.outcome is None
    assert (one.gate, one.gate_s) == ("warming up, 34 s", 34.0)


def test_a_flapping_rule_is_shown_all_the_time_as_intermittent_until_it_calms_down():
    one = track()
    now = 0.0
    for step in range(40):
        now = step * 5.0
        one.take(fires(0.2) if step % 2 else Clear(), now)
    assert one.frozen
    assert one.shown
    assert one.intermittent(now) == pytest.approx(12, abs=1)
    for step in range(40, 60):
        now = step * 5.0
        one.take(Clear(), now)
    assert not one.frozen
    assert not one.shown
    assert one.intermittent(now) is None


def test_two_changes_are_no_flapping():
    one = track()
    for step in range(30):
        one.take(fires(0.2) if 5 <= step < 15 else Clear(), step * 5.0)
        assert not one.frozen
