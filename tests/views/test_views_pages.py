"""The pages that stand on a whole session: the essay's rows, and the findings over time."""

from dataclasses import replace

import fabric
import pytest

from gpuwatch.model import (
    Diagnosis,
    JobState,
    JobStatus,
    Ledger,
    LedgerSpans,
    NotChecked,
    Severity,
    Shape,
    ShapeKind,
    Verdict,
)
from gpuwatch.state import State
from gpuwatch.views.checklist_page import checklist_page
from gpuwatch.views.options import Options
from gpuwatch.views.rows import text_of
from gpuwatch.views.timeline_page import time_of_day, timeline_page

PLAIN = Options()


def state(**fields: object) -> State:
    made = fabric.Fabric(gpus=2, seconds=120).state()
    uuid = fabric.uuid(0)

    def span(seconds: float, busy: float) -> Ledger:
        return replace(fabric.ledger(uuid, busy=busy, waiting=1 - busy), window_s=seconds)

    diagnosis = Diagnosis(
        made.now_s,
        Verdict("x"),
        ledgers={uuid: span(60, 0.25)},
        jobs={uuid: JobStatus(uuid, JobState.STEADY, 0.0)},
        spans={uuid: LedgerSpans(span(60, 0.25), span(900, 0.5), span(7300, 0.75))},
        shapes={
            uuid: Shape(
                ShapeKind.PULSED,
                low_ratio=0.0,
                high_ratio=0.97,
                stall_ratio=0.64,
                period_s=1.4,
                resolution_s=1 / 6,
            )
        },
        not_checked=(NotChecked("tensor-cores-idle", "cod", "not measurable on this card"),),
        **fields,
    )
    return replace(made, diagnosis=diagnosis)


def shown(rows: object) -> list[str]:
    return [line.rstrip() for line in text_of(rows)]  # type: ignore[arg-type]


def test_the_checklist_has_the_essays_eight_rows_in_its_numbering():
    lines = shown(checklist_page(state(), PLAIN, 80, 40))
    numbers = [line[0] for line in lines if line[:1].isdigit()]
    assert numbers == list("12345678")
    assert "GPU kept busy" in next(line for line in lines if line.startswith("1"))
    assert "tensor cores" in next(line for line in lines if line.startswith("2"))


def test_row_one_is_the_ledger_of_three_spans():
    text = "\n".join(shown(checklist_page(state(), PLAIN, 80, 40)))
    for name, seen, busy in (
        ("last minute", "60 s", 25),
        ("last 15 min", "15 min", 50),
        ("whole run", "2 h", 75),
    ):
        assert name in text
        assert seen in text
        assert f"{busy} busy" in text
    assert "GPU 0: saw-tooth between 0 % and 97 %, about every 1.4 s" in text


def test_an_unmeasurable_row_says_why():
    text = "\n".join(shown(checklist_page(state(), PLAIN, 80, 40)))
    assert "not measurable on this card" in text


@pytest.mark.parametrize(("width", "height"), [(1, 1), (20, 5), (40, 12), (300, 100)])
def test_pages_keep_their_width(width, height):
    for page in (checklist_page, timeline_page):
        for made in (state(), replace(state(), diagnosis=None), state(findings=(fabric.finding(),))):
            assert {len(line) for line in text_of(page(made, PLAIN, width, height))} == {width}


def test_findings_over_time_say_when_how_long_and_how_bad():
    base = state()
    assert base.sample is not None
    on = fabric.finding(started_s=base.now_s - 30, updated_s=base.now_s, worst_share_ratio=0.7)
    gone = fabric.finding(
        rule="thermal-throttle",
        severity=Severity.WARNING,
        started_s=base.now_s - 100,
        ended_s=base.now_s - 40,
        updated_s=base.now_s - 40,
    )
    lines = shown(timeline_page(state(findings=(on,), ended=(gone,)), PLAIN, 100, 30))
    assert lines[1].startswith(time_of_day(base, base.now_s - 30))
    assert lines[1].endswith("on, 30 s")
    assert "at worst 70 % of the time" in lines[2]
    assert lines[3].startswith(time_of_day(base, base.now_s - 100))
    assert lines[3].endswith(f"{time_of_day(base, base.now_s - 40)}, 60 s")


def test_time_of_day_is_that_of_the_machine_that_was_watched():
    made = state()
    assert made.sample is not None
    assert made.machine is not None
    there = replace(made, machine=replace(made.machine, utc_offset_s=3600.0))
    at = made.sample.monotonic_s
    hours = [int(time_of_day(one, at)[:2]) for one in (made, there)]
    assert (hours[1] - hours[0]) % 24 == 1
    assert time_of_day(State(history=made.history, now_s=0.0), 1.0) == "--:--:--"


def test_without_a_finding_it_says_so():
    assert "no finding yet" in "\n".join(shown(timeline_page(state(), PLAIN, 60, 10)))
