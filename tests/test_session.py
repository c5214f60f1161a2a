import pytest
from history_samples import GPU, gpu

from gpuwatch.model import Diagnosis, Event, HostInfo, Machine, OwnCost, Sample, Verdict
from gpuwatch.session import MOST_EVENTS, Session

MACHINE = Machine(HostInfo("box"), label="simulated: starved")


class Judge:
    """Stands in for the engine: answers with the tick's time, or raises."""

    def __init__(self):
        self.calls = []
        self.error = None

    def evaluate(self, history, sample, machine):
        self.calls.append((history.count, machine))
        if self.error is not None:
            raise self.error
        return Diagnosis(sample.monotonic_s, Verdict("fine"))


@pytest.fixture
def judge(monkeypatch):
    judge = Judge()
    monkeypatch.setattr("gpuwatch.session.Engine", lambda ignored: judge)
    return judge


def sample(second, **fields):
    time_s = 1000.0 + second
    return Sample(second, time_s, 0.0, 1.0, gpus=(gpu(time_s, power_w=float(second)),), **fields)


def test_before_the_first_sample_there_is_a_state_to_draw(judge):
    session = Session(ignored=frozenset({"gpu-shared"}))
    state = session.state(5.0)
    assert session.latest is None
    assert (state.tick, state.machine, state.sample, state.age_s) == (0, None, None, None)
    assert state.ignored == {"gpu-shared"}


def test_a_sample_goes_through_history_and_diagnosis_into_the_state(judge):
    session = Session()
    session.feed(sample(0, machine=MACHINE))
    state = session.feed(sample(1))
    assert state is session.latest
    assert state.tick == 2
    assert state.machine is MACHINE  # sent once, kept
    assert state.history.last(GPU, "power_w") == 1.0
    assert state.diagnosis.time_s == 1001.0
    assert judge.calls == [(1, MACHINE), (2, MACHINE)]  # history has the sample already


def test_the_age_is_that_of_the_sample_at_the_moment_of_drawing(judge):
    session = Session()
    session.feed(sample(0))
    assert session.state(1007.5).age_s == 7.5
    assert session.state(1007.5).tick == session.latest.tick


def test_without_a_machine_nothing_is_judged(judge):
    assert Session().feed(sample(0)).diagnosis is None
    assert judge.calls == []


def test_a_failing_diagnosis_is_a_sentence_and_the_figures_go_on(judge):
    session = Session()
    judge.error = ZeroDivisionError("division\nby zero")
    for second in range(3):
        state = session.feed(sample(second, machine=MACHINE))
    assert state.diagnosis.verdict.headline == "the diagnosis failed: division by zero"
    assert [event.kind for event in state.events] == ["diagnosis-failed"]  # told once
    assert state.history.last(GPU, "power_w") == 2.0
    judge.error = None
    assert session.feed(sample(3)).diagnosis.verdict.headline == "fine"


def test_events_are_kept_newest_last_and_bounded(judge):
    session = Session()
    for second in range(MOST_EVENTS + 20):
        state = session.feed(sample(second, events=(Event(float(second), "xid", str(second)),)))
    assert [event.message for event in state.events] == [str(n) for n in range(20, MOST_EVENTS + 20)]


def test_observers_are_told_and_one_that_fails_is_dropped_with_a_sentence(judge):
    session, told = Session(), []

    def watch(sample, diagnosis):
        told.append((sample.number, diagnosis.time_s))

    def broken(_sample, _diagnosis):
        raise OSError("disk full")

    session.observe(broken)
    session.observe(watch)
    for second in range(3):
        state = session.feed(sample(second, machine=MACHINE))
    assert told == [(0, 1000.0), (1, 1001.0), (2, 1002.0)]
    assert len(state.events) == 1
    assert "broken failed and is told nothing more: disk full" in state.events[0].message


def own(second, cpu_s):
    return sample(second, own=OwnCost(cpu_s, rss_bytes=1000 + second))


def test_own_cost_is_the_mean_of_the_last_minute_without_starting_up(judge):
    session = Session()
    for second in range(5):
        state = session.feed(own(second, cpu_s=float(second)))  # a whole core while starting
    assert state.own_cpu_ratio is None  # says nothing about what it costs
    for second in range(5, 200):
        cpu_s = 4.0 + 0.01 * (second - 4) + (0.6 if second >= 150 else 0.0)
        state = session.feed(own(second, cpu_s))
        if second == 140:
            assert state.own_cpu_ratio == pytest.approx(0.01)
    assert state.own_cpu_ratio == pytest.approx(0.02)  # 0.6 s more within this minute
    assert state.own_rss_bytes == 1199


def test_own_cost_is_unknown_where_it_is_not_measured(judge):
    session = Session()
    state = session.feed(sample(0))
    assert (state.own_cpu_ratio, state.own_rss_bytes) == (None, None)
