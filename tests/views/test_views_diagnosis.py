"""Verdict, ledger bar, checks, findings, banner, head and foot, and the plain sentences of them."""

from dataclasses import replace

import fabric
import pytest

from gpuwatch.model import (
    CHECKS,
    CheckResult,
    CheckState,
    DriverState,
    DriverStatus,
    JobState,
    JobStatus,
    Layer,
    LedgerKey,
    NotChecked,
    Severity,
    Verdict,
)
from gpuwatch.views.checks import checks
from gpuwatch.views.findings import findings, number_ranges
from gpuwatch.views.foot import foot
from gpuwatch.views.head import head, short_name
from gpuwatch.views.help import help_page
from gpuwatch.views.ledger_bar import booked, mean_parts
from gpuwatch.views.lens import Lens
from gpuwatch.views.notices import banner
from gpuwatch.views.options import Options, finding_key, select_finding, selected_index
from gpuwatch.views.pages import check_page, finding_page
from gpuwatch.views.plain import plain
from gpuwatch.views.procs import procs
from gpuwatch.views.rows import text_of
from gpuwatch.views.verdict import tightened, verdict

STATE = fabric.Fabric(gpus=2, seconds=30).state()
OPTIONS = Options()


def with_diagnosis(state=STATE, **fields):
    assert state.diagnosis is not None
    return replace(state, diagnosis=replace(state.diagnosis, **fields))


def lines(rows):
    return [row.rstrip() for row in text_of(rows)]


def test_rows_of_the_verdict_come_in_the_order_of_importance():
    assert lines(verdict(STATE, OPTIONS, 80, 1)) == ["DATA  likely  the GPUs wait 58-66 % of the time"]
    two = lines(verdict(STATE, OPTIONS, 80, 2))
    assert "38 busy" in two[1]
    three = lines(verdict(STATE, OPTIONS, 80, 3))
    assert "0 workers" in three[1]
    labels = [row.split("  ")[0].strip() for row in lines(verdict(STATE, OPTIONS, 100, 12))]
    assert labels[4:9] == ["because", "wrong if", "settle", "do", "then"]


def test_with_few_rows_the_reason_and_the_step_are_kept():
    rows = lines(verdict(STATE, OPTIONS, 80, 5))
    assert rows[3].split()[0] == "because"
    assert rows[4].split()[0] == "do"


@pytest.mark.parametrize("width", range(20, 100))
def test_the_verdicts_figure_survives_every_width(width):
    assert "58-66 %" in lines(verdict(STATE, OPTIONS, width, 1))[0]


def test_spare_words_go_before_figures():
    assert tightened("the GPU waits 58-66 % of the time", 24) == "the GPU waits 58-66 %"
    assert tightened("the GPU loses 20 % of its speed", 16) == "GPU loses 20 %"


def test_two_layers_that_are_level_are_both_named():
    given = replace(STATE.diagnosis.verdict, second_layer=Layer.HARDWARE, preliminary=True)
    assert lines(verdict(with_diagnosis(verdict=given), OPTIONS, 100, 1)) == [
        "DATA + HARDWARE  likely  the GPUs wait 58-66 % of the time (preliminary)"
    ]


def test_a_state_has_no_layer_and_before_the_first_look_it_says_so():
    waiting = with_diagnosis(verdict=Verdict("warming up, 34 s", "not judged until then"), ledgers={})
    assert lines(verdict(waiting, OPTIONS, 60, 3)) == ["warming up, 34 s", " not judged until then", ""]
    assert lines(verdict(replace(STATE, diagnosis=None, sample=None), OPTIONS, 60, 3)) == ["reading GPUs …"]


def test_the_ledger_is_that_of_the_verdicts_gpus():
    slow, other = fabric.uuid(0), fabric.uuid(1)
    books = {slow: fabric.ledger(slow, busy=0.5, slowed=0.5), other: fabric.ledger(other, busy=1.0)}
    given = Verdict("GPU 0 loses 50 % of its speed", rule="thermal-throttle", subject=f"gpu:{slow}")
    found = booked(Lens(with_diagnosis(ledgers=books, verdict=given), OPTIONS))
    assert found is not None
    assert found.who == "GPU 0"
    assert {part.key: part.ratio for part in found.parts} == {LedgerKey.BUSY: 0.5, LedgerKey.SLOWED: 0.5}


def test_without_a_subject_it_is_the_mean_of_the_gpus_at_work():
    books = {fabric.uuid(i): fabric.ledger(fabric.uuid(i), busy=1.0 - i / 2, idle=i / 2) for i in range(2)}
    jobs = {fabric.uuid(i): JobStatus(fabric.uuid(i), JobState.STEADY, 0.0) for i in range(2)}
    given = Verdict("nothing outside the model slows these GPUs")
    found = booked(Lens(with_diagnosis(ledgers=books, jobs=jobs, verdict=given), OPTIONS))
    assert found is not None
    assert {part.key: part.ratio for part in found.parts} == {LedgerKey.BUSY: 0.75, LedgerKey.IDLE: 0.25}
    jobs[fabric.uuid(1)] = JobStatus(fabric.uuid(1), JobState.NO_JOB, 0.0)
    found = booked(Lens(with_diagnosis(ledgers=books, jobs=jobs, verdict=given), OPTIONS))
    assert found is not None
    assert found.who == "GPU 0"


def test_parts_stand_in_the_order_of_the_bar_and_sum_to_one():
    parts = mean_parts([fabric.ledger("a"), fabric.ledger("b", unknown=0.5, busy=0.5)])
    assert [part.key for part in parts] == [
        LedgerKey.BUSY,
        LedgerKey.WAITING,
        LedgerKey.PAUSE,
        LedgerKey.UNKNOWN,
    ]
    assert sum(part.ratio for part in parts) == pytest.approx(1.0)


def test_bar_and_legend_have_the_same_order_and_roles():
    rows = verdict(STATE, OPTIONS, 80, 8)
    bar_roles = [role for _, role in rows[2]]
    legend_roles = [role for _, role in rows[3] if role.startswith("bar_")]
    assert bar_roles == legend_roles == ["bar_busy", "bar_wait", "bar_pause"]


def test_the_short_checks_fit_forty_cells_and_name_in_capitals():
    row = lines(checks(STATE, OPTIONS, 40, 1))[0]
    assert row == "✓pow ✓lnk –env ✓cpu ✗LDR …dsk !cod –mgp"


@pytest.mark.parametrize("width", [8, 20, 40, 57, 58, 80, 120])
@pytest.mark.parametrize("height", [1, 2, 4, 8])
def test_checks_keep_their_order_in_every_form(width, height):
    text = "".join(text_of(checks(STATE, OPTIONS, width, height)))
    assert [c for c in text if c in "✓✗–"][:5] == ["✓", "✓", "–", "✓", "✗"]


def test_evidence_follows_from_58_columns_on():
    assert "no limit in 10 min" not in lines(checks(STATE, OPTIONS, 57, 8))[0]
    assert "no limit in 10 min" in lines(checks(STATE, OPTIONS, 58, 8))[0]
    assert "24 s" in lines(checks(STATE, OPTIONS, 58, 8))[5]


def test_before_the_first_look_no_check_is_green():
    rows = lines(checks(replace(STATE, diagnosis=None), OPTIONS, 60, 8))
    assert all(row.strip().startswith("…") for row in rows)


def test_a_check_page_says_what_could_not_be_looked_at():
    missing = NotChecked("loader-respawn", "ldr", "no rule for this yet", f"gpu:{fabric.uuid(1)}")
    text = "\n".join(lines(check_page(with_diagnosis(not_checked=(missing,)), OPTIONS, 5, 80, 30)))
    assert "5  data loader  data" in text
    assert "a cause is named" in text
    assert "loader-respawn (GPU 1): no rule for this yet" in text


@pytest.mark.parametrize("number", range(1, 9))
def test_every_check_has_a_page_in_every_state(number):
    for state in CheckState:
        result = tuple(CheckResult(check, state, "") for check in CHECKS)
        rows = lines(check_page(with_diagnosis(checks=result), OPTIONS, number, 80, 30))
        assert rows[0].startswith(f"{number}  {CHECKS[number - 1].label}")


def test_one_row_of_findings_says_what_to_do_where_the_verdict_names_the_cause():
    assert lines(findings(STATE, OPTIONS, 40, 1)) == ["do  num_workers=4, watch 100 steps   1/3"]
    second = select_finding(STATE.diagnosis.findings, OPTIONS, 1)
    assert "tensor cores" in lines(findings(STATE, second, 40, 1))[0]


@pytest.mark.parametrize("height", range(1, 25))
def test_the_selected_finding_is_always_on_screen(height):
    many = tuple(fabric.lever(f"rule-{n}", f"finding number {n}", started_s=n) for n in range(12))
    state = with_diagnosis(findings=many)
    for finding in many:
        text = "\n".join(lines(findings(state, Options(finding=finding_key(finding)), 80, height)))
        assert finding.text.title in text


def test_findings_are_walked_around_the_end_and_a_vanished_one_is_the_first():
    found = STATE.diagnosis.findings
    options = OPTIONS
    seen = []
    for _ in range(4):
        seen.append(selected_index(found, options))
        options = select_finding(found, options, 1)
    assert seen == [0, 1, 2, 0]
    assert selected_index(found, Options(finding=("gone", "gpu:x", 1.0))) == 0
    assert select_finding((), Options(finding=("gone", "x", 1.0)), 1).finding is None


def test_a_finding_of_some_gpus_says_which():
    one = fabric.finding(gpus=(fabric.uuid(1),))
    assert "GPU 1: batches" in "\n".join(lines(findings(with_diagnosis(findings=(one,)), OPTIONS, 90, 6)))
    both = fabric.finding(gpus=(fabric.uuid(0), fabric.uuid(1)))
    assert (
        "GPU" not in lines(findings(with_diagnosis(findings=(both,)), OPTIONS, 90, 6))[1].split("likely")[0]
    )


def test_ended_findings_and_ignored_ones_are_told():
    rows = lines(findings(replace(STATE, ignored=frozenset({"gpu-shared"})), OPTIONS, 90, 20))
    assert "1 ignored" in rows[0]
    assert any("checkpoints pause the job" in row and "34 s ago, lasted 8 s" in row for row in rows)


def test_a_flapping_finding_says_how_often():
    flapping = fabric.finding(intermittent=3)
    assert "3x in 2 min" in lines(findings(with_diagnosis(findings=(flapping,)), OPTIONS, 100, 6))[1]


def test_no_finding_leaves_the_verdicts_step_or_a_word():
    step = with_diagnosis(findings=(), ended=(), verdict=Verdict("no driver", action="gpuwatch demo"))
    assert lines(findings(step, OPTIONS, 40, 1)) == ["do  gpuwatch demo"]
    assert lines(findings(with_diagnosis(findings=(), verdict=Verdict("fine")), OPTIONS, 40, 1)) == [
        " no findings"
    ]


@pytest.mark.parametrize(
    ("numbers", "text"), [([0], "0"), ([0, 1, 2, 3], "0-3"), ([0, 2, 3, 7], "0,2-3,7"), ([1, 3], "1,3")]
)
def test_numbers_are_written_as_ranges(numbers, text):
    assert number_ranges(numbers) == text


def test_the_finding_page_has_reasons_steps_evidence_and_a_chart():
    text = "\n".join(lines(finding_page(STATE, OPTIONS, 100, 40)))
    for words in (
        "rule loader-in-main-process",
        "costs 58-66 % of the time",
        "14 of 16 cores free",
        "pin_memory=True",
        ">= 0.8, over 60 s",
        "GPU 0 util",
        "one cell is 1 s",
    ):
        assert words in text
    assert lines(finding_page(with_diagnosis(findings=()), OPTIONS, 60, 10)) == ["no finding is active"]


def test_banner_findings_and_late_events_stand_above_the_verdict():
    lost = fabric.lever("gpu-lost", "GPU 1 is lost", severity=Severity.CRITICAL, banner=True)
    state = replace(
        with_diagnosis(findings=(lost,)),
        events=(
            fabric.event("gpu-added", "GPU 1 appeared", STATE.now_s - 500),
            fabric.event("gpu-back", "GPU 0 is back", STATE.now_s - 5),
        ),
    )
    rows = lines(banner(state, OPTIONS, 80, 3))
    assert rows == ["✗ GPU 1 is lost; bf16 autocast", "· GPU 0 is back (5 s ago)"]
    assert "GPU 1 is lost" not in "\n".join(lines(findings(state, OPTIONS, 80, 5)))


def test_a_driver_in_trouble_is_a_banner_while_there_are_gpus():
    driver = DriverStatus(DriverState.NOT_ANSWERING, "The driver gives no answer.", "Figures go on later.")
    assert lines(banner(fabric.Fabric(seconds=3, driver=driver).state(), OPTIONS, 80, 3)) == [
        "✗ The driver gives no answer. Figures go on later."
    ]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, "live"),
        ({"now_s": STATE.now_s + 12}, "no data for 12 s"),
        ({"recording": "REC 2:10"}, "REC 2:10"),
        ({"sample": None}, "waiting"),
    ],
)
def test_the_head_says_how_old_the_picture_is(change, words):
    assert words in lines(head(replace(STATE, **change), OPTIONS, 100, 1))[0]


def test_the_head_names_what_there_is_and_drops_the_least_first():
    wide = lines(head(STATE, OPTIONS, 120, 1))[0]
    for words in ("2× H100 80GB", "driver 560.35.03", "trainbox", "job 2:14:38", "own cpu 0.8 %"):
        assert words in wide
    narrow = lines(head(STATE, OPTIONS, 40, 1))[0]
    assert "H100" in narrow
    assert "own cpu" not in narrow
    assert "back 30 s" in lines(head(STATE, Options(back=30), 80, 1))[0]


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("NVIDIA H100 80GB HBM3", "H100 80GB"),
        ("NVIDIA GeForce RTX 3090", "RTX 3090"),
        ("Tesla V100-SXM2-32GB", "V100-SXM2-32GB"),
        ("NVIDIA", "NVIDIA"),
    ],
)
def test_names_of_cards_are_shortened(name, short):
    assert short_name(name) == short


def test_the_foot_shows_whole_keys_and_messages_first():
    assert lines(foot(fabric.KEYS, "", 20, 1)) == ["? help  q quit"]
    assert lines(foot(fabric.KEYS, "exported to evidence.txt", 60, 1)) == ["exported to evidence.txt"]


def test_help_is_made_from_the_keys_it_is_given():
    text = "\n".join(lines(help_page((("Time", "[", "back one sample"),), STATE, OPTIONS, 80, 30)))
    for words in ("Time", "[", "back one sample", "looked, and fine", "driver 560.35.03", "0.8 % of a core"):
        assert words in text


def test_processes_that_cannot_be_seen_are_counted_in_a_sentence():
    idle = fabric.Fabric(gpus=1, seconds=5, hidden_processes=2).state()
    text = "\n".join(lines(procs(idle, OPTIONS, 100, 5)))
    assert "2 GPU processes are not visible here" in text


def test_waiting_for_work_is_counted():
    state = fabric.Fabric(gpus=1, seconds=5).state()
    empty = replace(
        state,
        sample=replace(state.sample, processes=()),
        diagnosis=replace(
            state.diagnosis,
            jobs={fabric.uuid(0): JobStatus(fabric.uuid(0), JobState.NO_JOB, state.now_s - 34)},
        ),
    )
    assert (
        lines(procs(empty, OPTIONS, 80, 3))[0].strip() == "no process on the GPU, waiting for work for 34 s"
    )
    unread = replace(state, sample=replace(state.sample, processes=None))
    assert "cannot be read here" in lines(procs(unread, OPTIONS, 80, 3))[0]


@pytest.mark.parametrize(
    ("sort", "reverse", "first"), [("pid", False, "2100"), ("pid", True, "2103"), ("cpu", False, "2100")]
)
def test_processes_are_sorted_by_the_chosen_column(sort, reverse, first):
    rows = lines(
        procs(fabric.Fabric(gpus=4, seconds=5).state(), Options(sort=sort, reverse=reverse), 100, 10)
    )
    assert rows[2].split()[0] == first


def test_workers_are_counted_in_their_trainers_row():
    rows = lines(procs(fabric.Fabric(gpus=1, seconds=5, workers=4).state(), OPTIONS, 120, 6))
    assert "4×90%" in rows[2]
    assert len([row for row in rows if "python" in row]) == 1


def test_plain_sentences_tell_it_all():
    text = "\n".join(plain(STATE, 120, ascii_only=False))
    for words in (
        "gpuwatch on trainbox, 2× H100 80GB, driver 560.35.03",
        "Verdict: DATA (likely): the GPUs wait 58-66 % of the time",
        "Wrong if: the step itself",
        "Ledger of the last 60 s of 2 GPUs: 38 % busy, 58 % waiting (data loader), 4 % pause",
        "GPU 1 H100 80GB HBM3: utilization 1 %",
        "Finding 1 of 3:",
        "Check data loader: CAUSE; batches are prepared",
    ):
        assert words in text


def test_plain_without_anything_is_still_a_sentence():
    assert plain(replace(STATE, sample=None, machine=None, diagnosis=None), 80, ascii_only=True) == [
        "gpuwatch",
        "Nothing has been read yet.",
    ]
