"""The ledger: every moment booked once, in order, and the parts sum to exactly 1."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuwatch.diagnosis.interface import Fires, Rule
from gpuwatch.diagnosis.ledger import Claims, LedgerBook
from gpuwatch.diagnosis.ledger_causes import attribute, claims_of
from gpuwatch.diagnosis.ledger_parts import NOBODY, Cause, Claimed, added, drawn
from gpuwatch.diagnosis.lifecycle import Track
from gpuwatch.diagnosis.lifecycle_findings import Member
from gpuwatch.model import Burst, Confidence, GpuReading, JobState, Kind, Layer, LedgerKey

NOBODY_CLAIMS = Claims()
SW_THERMAL, POWER_CAP, APP_CLOCKS, IDLE_BIT = 0x20, 0x4, 0x2, 0x1


def reading(clock=1800.0, reasons=0, bursts=((), ())):
    busy, memory = bursts
    times = tuple(range(len(busy)))
    return GpuReading(
        "G",
        0,
        1.0,
        sm_clock_mhz=clock,
        event_reasons=reasons,
        utilization_burst=Burst(times, busy),
        memory_utilization_burst=Burst(times, memory),
    )


def book_seconds(book, count, util, start=0.0, state=JobState.STEADY, low_since=None, **fields):
    claims = fields.pop("claims", NOBODY_CLAIMS)
    memory = fields.pop("memory", 0.5)
    best = fields.pop("best", 1800.0)
    found = fields.pop("found", reading(**fields))
    for second in range(count):
        book.book(start + second + 1, 1.0, found, util, memory, state, low_since, claims, best)


def shares(ledger):
    result = {}
    for part in ledger.parts:
        result[part.key] = result.get(part.key, 0.0) + part.ratio
    return result


def cause(rule="a", coverage=1.0, layer=Layer.DATA):
    return Cause(rule, layer, rule, coverage)


def test_nothing_booked_is_unknown():
    ledger = LedgerBook().ledger("G")
    assert [(part.key, part.ratio) for part in ledger.parts] == [(LedgerKey.UNKNOWN, 1.0)]
    assert ledger.window_s == 0.0


def test_busy_and_waiting():
    book = LedgerBook()
    book_seconds(book, 30, 0.36)
    ledger = book.ledger("G")
    assert shares(ledger) == pytest.approx({LedgerKey.BUSY: 0.36, LedgerKey.WAITING: 0.64}, abs=1e-5)
    assert ledger.window_s == pytest.approx(30)
    assert book.waiting_ratio() == pytest.approx(0.64)


def test_it_slides_over_a_minute():
    book = LedgerBook()
    book_seconds(book, 60, 0.0)
    book_seconds(book, 60, 1.0, start=60)
    assert shares(book.ledger("G")) == {LedgerKey.BUSY: 1.0}


def test_what_was_not_measured_is_unknown_not_idle():
    book = LedgerBook()
    book_seconds(book, 10, 0.5)
    book.book(11.0, 1.0, None, None, None, JobState.STEADY, None, NOBODY_CLAIMS, None)
    book.book_unknown(20.0, 9.0)
    assert shares(book.ledger("G"))[LedgerKey.UNKNOWN] == pytest.approx(0.5)
    assert book.waiting_ratio() == pytest.approx(0.5)


def test_spinning_at_no_memory_traffic_is_waiting_for_peers():
    book = LedgerBook()
    bursts = ((1.0, 1.0, 1.0, 1.0), (0.6, 0.0, 0.02, 0.6))
    book_seconds(book, 10, 1.0, bursts=bursts, claims=Claims(peers=True))
    assert shares(book.ledger("G"))[LedgerKey.WAITING_PEERS] == pytest.approx(0.5)
    alone = LedgerBook()
    book_seconds(alone, 10, 1.0, bursts=bursts)
    assert shares(alone.ledger("G")) == {LedgerKey.BUSY: 1.0}


def test_without_bursts_the_tick_tells_whether_peers_are_waited_for():
    book = LedgerBook()
    book_seconds(book, 10, 0.99, memory=0.02, claims=Claims(peers=True))
    assert shares(book.ledger("G"))[LedgerKey.WAITING_PEERS] == pytest.approx(0.99, abs=1e-5)
    unknown = LedgerBook()
    book_seconds(unknown, 10, 0.99, memory=None, claims=Claims(peers=True))
    assert LedgerKey.WAITING_PEERS not in shares(unknown.ledger("G"))


def test_a_lowered_clock_is_a_loss_only_with_a_reason():
    for reasons, expected in (
        (SW_THERMAL, 0.2),
        (APP_CLOCKS, 0.2),
        (0, 0.0),
        (POWER_CAP, 0.0),
        (IDLE_BIT, 0),
    ):
        book = LedgerBook()
        book_seconds(book, 10, 1.0, clock=1440.0, reasons=reasons)
        assert shares(book.ledger("G")).get(LedgerKey.SLOWED, 0.0) == pytest.approx(expected, abs=1e-5)


def test_the_power_cap_slows_once_a_lowered_limit_is_a_finding():
    book = LedgerBook()
    book_seconds(book, 10, 1.0, clock=1440.0, reasons=POWER_CAP, claims=Claims(capped=True))
    assert shares(book.ledger("G"))[LedgerKey.SLOWED] == pytest.approx(0.2, abs=1e-5)


def test_others_come_before_slowed():
    book = LedgerBook()
    book_seconds(book, 10, 1.0, clock=900.0, reasons=SW_THERMAL, claims=Claims(foreign_ratio=0.4))
    assert shares(book.ledger("G")) == pytest.approx(
        {LedgerKey.FOREIGN: 0.4, LedgerKey.SLOWED: 0.3, LedgerKey.BUSY: 0.3}, abs=1e-5
    )


def test_idle_of_a_job_that_is_not_judged_is_idle_with_its_state():
    for state, label in (
        (JobState.NO_JOB, "no job"),
        (JobState.STARTING, "starting"),
        (JobState.WARMUP, "warming up"),
        (JobState.SERVING, "no requests"),
    ):
        book = LedgerBook()
        book_seconds(book, 5, 0.0, state=state)
        (part,) = book.ledger("G").parts
        assert (part.key, part.label) == (LedgerKey.IDLE, label)


def test_a_pause_is_rebooked_from_its_start():
    book = LedgerBook()
    book_seconds(book, 10, 0.9)
    book_seconds(book, 5, 0.0, start=10)
    assert LedgerKey.PAUSE not in shares(book.ledger("G"))
    book_seconds(book, 5, 0.0, start=15, state=JobState.EPISODE, low_since=10.0)
    assert shares(book.ledger("G")) == pytest.approx(
        {LedgerKey.BUSY: 0.45, LedgerKey.WAITING: 0.05, LedgerKey.PAUSE: 0.5}, abs=1e-5
    )


def test_causes_claim_the_waiting_in_order_and_the_rest_is_not_proven():
    book = LedgerBook()
    book_seconds(book, 10, 0.2)
    parts = book.ledger("G", Claimed((cause("a", 0.6), cause("b", 0.3)))).parts
    waiting = [(part.cause, part.label, part.ratio) for part in parts if part.key is LedgerKey.WAITING]
    assert waiting == [
        ("a", "a", pytest.approx(0.48, abs=1e-5)),
        ("b", "b", pytest.approx(0.24, abs=1e-5)),
        (None, "not proven", pytest.approx(0.08, abs=1e-5)),
    ]


def test_causes_never_claim_more_than_there_is():
    book = LedgerBook()
    book_seconds(book, 10, 0.2)
    parts = book.ledger("G", Claimed((cause("a", 0.9), cause("b", 0.9)))).parts
    claimed = {part.cause: part.ratio for part in parts if part.key is LedgerKey.WAITING}
    assert claimed == {"a": pytest.approx(0.72, abs=1e-5), "b": pytest.approx(0.08, abs=1e-5)}


def test_a_new_job_starts_an_empty_ledger():
    book = LedgerBook()
    book_seconds(book, 10, 0.2)
    book.restart()
    assert book.ledger("G").window_s == 0.0
    assert book.waiting_ratio() is None


ticks = st.lists(
    st.tuples(
        st.floats(0.01, 30.0),
        st.one_of(st.none(), st.floats(0.0, 1.0)),
        st.sampled_from(list(JobState)),
        st.sampled_from([0, SW_THERMAL, POWER_CAP, 0x80]),
        st.floats(200.0, 2500.0),
        st.floats(0.0, 1.0),
        st.booleans(),
        st.lists(st.tuples(st.floats(0.0, 1.0), st.floats(0.0, 1.0)), max_size=6),
        st.one_of(st.none(), st.floats(0.0, 1.0)),
    ),
    max_size=40,
)
peer_traffic = st.one_of(st.none(), st.floats(0.0, 1.0))
coverages = st.lists(st.floats(0.0, 1.0), max_size=4)


@given(ticks, coverages, peer_traffic)
@settings(max_examples=200, deadline=None)
def test_parts_sum_to_exactly_one_and_none_is_negative(ticks, coverages, peer_traffic):
    book, now, low_since = LedgerBook(), 0.0, None
    causes = tuple(cause(str(i), coverage) for i, coverage in enumerate(coverages))
    claimed = Claimed(causes, peer_memory_ratio=peer_traffic)
    for step, util, state, reasons, clock, foreign, peers, points, memory in ticks:
        now += step
        low_since = (low_since or now - step) if util is not None and util < 0.1 else None
        bursts = (tuple(p[0] for p in points), tuple(p[1] for p in points))
        found = None if util is None else reading(clock, reasons, bursts)
        claims = Claims(peers, foreign)
        book.book(now, step, found, util, memory, state, low_since, claims, 1800.0, claimed)
        minute = book.minute(claimed)
        for booking in (
            minute,
            added(minute, book.past.quarter(now)),
            added(minute, book.past.run),
        ):
            ratios = [part.ratio for part in drawn("G", booking).parts]
            assert sum(ratios) == 1.0
            assert sum(reversed(ratios)) == 1.0
            assert min(ratios) > 0.0
        booked_s = sum(added(minute, book.past.run).values()) * 1e-9
        assert booked_s == pytest.approx(now, rel=1e-6)


# -- the past: a quarter of an hour, and the whole run


def spans(book, now, claimed=NOBODY):
    minute = book.minute(claimed)
    return [drawn("G", added(minute, past)) for past in ({}, book.past.quarter(now), book.past.run)]


def test_the_three_spans_reach_back_a_minute_a_quarter_of_an_hour_and_to_the_start():
    book = LedgerBook()
    book_seconds(book, 900, 1.0)
    book_seconds(book, 900, 0.5, start=900.0)
    book_seconds(book, 60, 0.0, start=1800.0)
    minute, quarter, run = spans(book, 1860.0)
    assert shares(minute) == {LedgerKey.WAITING: 1.0}
    assert shares(quarter) == pytest.approx(
        {LedgerKey.BUSY: 420 / 900, LedgerKey.WAITING: 480 / 900}, abs=0.01
    )
    assert shares(run)[LedgerKey.BUSY] == pytest.approx(1350 / 1860)
    assert [round(ledger.window_s, -1) for ledger in (minute, quarter, run)] == [60, 900, 1860]


def test_time_goes_to_the_past_under_the_cause_known_when_it_leaves_the_minute():
    """A cause is found after half a minute; the time before it is its too. What ended before is not."""
    book, found = LedgerBook(), Claimed((cause("loader", 1.0),))
    for second in range(300):
        named = found if 40 <= second < 200 else NOBODY
        book.book(second + 1.0, 1.0, reading(), 0.5, 0.5, JobState.STEADY, None, NOBODY_CLAIMS, 1800.0, named)
    _, _, run = spans(book, 300.0)
    assert {part.cause: round(part.ratio * 300) for part in run.parts if part.key is LedgerKey.WAITING} == {
        "loader": 70,
        None: 80,
    }


def test_the_run_survives_the_start_of_judgement_and_ends_with_the_job():
    book = LedgerBook()
    book_seconds(book, 90, 0.0, state=JobState.STARTING)
    book.restart(new_job=False)
    assert shares(spans(book, 90.0)[2]) == {LedgerKey.IDLE: 1.0}
    book.restart(new_job=True)
    assert spans(book, 90.0)[2].window_s == 0.0


def test_a_jobs_ledger_is_the_sum_over_its_gpus():
    one, two = LedgerBook(), LedgerBook()
    book_seconds(one, 30, 1.0)
    book_seconds(two, 30, 0.5)
    job = drawn("job:1:2", added(one.minute(), two.minute()), members=2)
    assert shares(job) == {LedgerKey.BUSY: 0.75, LedgerKey.WAITING: 0.25}
    assert job.window_s == pytest.approx(30.0)


# -- which finding claims what


def member(rule, share=0.3, coverage=1.0, kind=Kind.LOSS):
    fires = Fires(Confidence.LIKELY, (), share_ratio=share, coverage_ratio=coverage)
    return Member(Track(Rule(rule, 1, "job", kind, lambda w, a: fires), "ldr", "G", fires=fires), fires, None)


PLACES = dict.fromkeys(
    (
        "gpu-starved",
        "gpu-shared",
        "loader-disk-bound",
        "loader-in-main-process",
        "thermal-throttle",
        "batch-headroom",
        "comm-wait",
        "episode-overhead",
        "something-new",
    ),
    (Layer.DATA, "ldr"),
)


def attributed(*members):
    return attribute({m.track.rule.id: m for m in members}, PLACES, str.upper)


def test_each_loss_claims_its_own_part():
    found = attributed(
        member("thermal-throttle"), member("gpu-shared"), member("comm-wait"), member("episode-overhead")
    )
    assert found.waiting == ()
    assert found.slowed.rule == "thermal-throttle"
    assert found.slowed.label == "THERMAL-THROTTLE"
    assert found.foreign.rule == "gpu-shared"
    assert found.peers.rule == "comm-wait"
    assert found.pause.rule == "episode-overhead"


def test_waiting_causes_follow_the_decision_table_and_new_rules_come_last():
    found = attributed(
        member("something-new"), member("loader-disk-bound"), member("loader-in-main-process", coverage=0.5)
    )
    assert [c.rule for c in found.waiting] == [
        "loader-in-main-process",
        "loader-disk-bound",
        "something-new",
    ]


def test_the_bare_waiting_and_opportunities_are_no_causes():
    assert attributed(member("gpu-starved"), member("batch-headroom", kind=Kind.OPPORTUNITY)) == Claimed()


def test_findings_of_the_last_tick_speak_for_the_next_booking():
    claims = claims_of({"gpu-shared": member("gpu-shared", share=0.45)}, peers=True)
    assert claims == Claims(peers=True, foreign_ratio=0.45, capped=False)
    assert claims_of({"power-limit-lowered": member("power-limit-lowered")}, False).capped
    unknown_cost = {"power-limit-lowered": member("power-limit-lowered", share=None)}
    assert not claims_of(unknown_cost, False).capped
