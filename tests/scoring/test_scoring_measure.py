"""Outcomes from what was said: found, missed, false, in time, flapping."""

import math

import pytest

from gpuwatch.model import Confidence, Layer, Severity
from gpuwatch.scoring.labels import parse_labels
from gpuwatch.scoring.measure import Run, measure
from gpuwatch.scoring.table import as_json, as_text, score
from gpuwatch.scoring.watch import Said, Spoken, Watched

RUN = Run("case", "6hz", 1)
RULES = frozenset({"gpu-starved", "loader-in-main-process", "thermal-throttle", "batch-headroom"})


def said(rule, start=40.0, severity=Severity.WARNING, share=0.5, gpus=(0,), confidence=Confidence.LIKELY):
    return Said(start, rule, severity, confidence, share, frozenset(gpus), start)


def outcome(text, *findings, verdicts=(), run=RUN, lost=None, stalls=None, end=180.0, steady=0.0):
    watched = Watched(list(findings), list(verdicts), steady, end, lost or {})
    return measure(run, parse_labels(text, RULES), watched, stalls or {})


def test_found_and_missed():
    result = outcome("#expect gpu-starved\n#expect thermal-throttle\n", said("gpu-starved"))
    assert (result.found, result.missed) == (["gpu-starved"], ["thermal-throttle"])


@pytest.mark.parametrize(
    "condition",
    ["severity>=critical", "severity<=notice", "confidence=measured", "share=0.6..0.7", "gpu=1", "by=30"],
)
def test_a_condition_that_does_not_hold_is_a_miss(condition):
    assert outcome(f"#expect gpu-starved {condition}", said("gpu-starved")).missed == ["gpu-starved"]


def test_how_sure_it_is_is_not_asked_of_a_reading_a_second():
    text = "#expect gpu-starved confidence=measured"
    polled = Run("case", "1hz", 1)
    assert outcome(text, said("gpu-starved"), run=polled).found == ["gpu-starved"]


def test_a_warning_nobody_expected_is_false_and_a_notice_is_not():
    result = outcome(
        "#expect gpu-starved\n",
        said("gpu-starved"),
        said("thermal-throttle"),
        said("batch-headroom", severity=Severity.NOTICE),
    )
    assert result.false == [("thermal-throttle", Severity.WARNING)]


def test_what_is_allowed_is_not_false_and_what_is_forbidden_is():
    allowed = outcome("#allow thermal-throttle\n", said("thermal-throttle"))
    assert allowed.false == []
    forbidden = outcome("#forbid batch-* after=100\n", said("batch-headroom", 120.0, Severity.NOTICE))
    assert forbidden.false == [("batch-headroom", Severity.NOTICE)]
    before = outcome("#forbid batch-* after=100\n", said("batch-headroom", 60.0, Severity.NOTICE))
    assert before.false == []


def test_in_a_healthy_scenario_notices_count():
    result = outcome(
        "#healthy\n", said("batch-headroom", severity=Severity.NOTICE), said("thermal-throttle"), end=1800.0
    )
    assert (result.healthy_notices, result.healthy_alarms) == (1, 1)
    total = score([result]).total
    assert total["false_notices_per_healthy_hour"] == pytest.approx(2.0)
    assert total["false_warnings_healthy"] == 1


def test_a_finding_that_worsens_is_one():
    result = outcome(
        "#healthy\n",
        Said(40.0, "gpu-starved", Severity.NOTICE, Confidence.LIKELY, 0.1, frozenset({0}), 40.0),
        Said(60.0, "gpu-starved", Severity.WARNING, Confidence.LIKELY, 0.2, frozenset({0}), 40.0),
    )
    assert result.false == [("gpu-starved", Severity.WARNING)]


VERDICT = "#verdict data rule=gpu-starved\n"
RIGHT = Spoken(40.0, Layer.DATA, "gpu-starved", "")


def test_time_counts_from_the_later_of_onset_and_steady():
    assert outcome(VERDICT, verdicts=[RIGHT], steady=10.0).verdict_s == pytest.approx(30.0)
    assert outcome("#onset 25\n" + VERDICT, verdicts=[RIGHT], steady=10.0).verdict_s == pytest.approx(15.0)


def test_flaps_are_changes_after_the_first_right_one():
    verdicts = [Spoken(0.0, None, None, ""), RIGHT, Spoken(100.0, Layer.CODE, "x", ""), RIGHT]
    result = outcome(VERDICT, verdicts=verdicts)
    assert result.flaps == pytest.approx(1.0)
    assert result.layer_right is True
    assert outcome(VERDICT, verdicts=verdicts[:3]).layer_right is False


def test_never_right_is_longest():
    result = outcome(VERDICT, verdicts=[Spoken(0.0, None, None, "")])
    assert (result.verdict_s, result.layer_right) == (math.inf, False)
    assert score([result]).total["time_to_verdict_s"] is None


def test_the_share_of_waiting_against_the_truth():
    result = outcome("#stall auto\n", lost={0: 0.5, 1: 0.1}, stalls={0: 0.6, 1: 0.1})
    assert result.stall_error == pytest.approx(0.05)
    assert outcome("#stall 0.45\n", lost={0: 0.5}).stall_error == pytest.approx(0.05)
    assert outcome("", lost={0: 0.5}).stall_error is None


def test_tables_and_json_agree():
    one = outcome("#expect gpu-starved\n", said("gpu-starved"))
    two = outcome("#expect gpu-starved\n", said("thermal-throttle"))
    scores = {"6hz": score([one, two])}
    document = as_json(scores)
    assert document["total"]["recall"] == 0.5
    assert document["rules"]["gpu-starved"] == {"required": 2, "found": 1, "missed": 1, "false": 0}
    assert document["total"]["precision"] == 0.5
    assert {run["scenario"] for run in document["runs"]} == {"case"}
    text = "\n".join(as_text(scores))
    assert "gpu-starved" in text
    assert "missed gpu-starved" in text
    assert "0.500" in text
