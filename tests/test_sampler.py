import itertools
import subprocess
import sys
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuwatch.model import DriverState, Event, GpuReading, HostInfo, Machine, Sample
from gpuwatch.sampler import MOST_WAITING, Sampler
from gpuwatch.sources.base import Clock
from gpuwatch.sources.schedule import JITTER_RATIO, LEAST_SPACING_RATIO, Deadlines, ticks

GUARD_S = 10.0  # only against hanging


class Hand:
    """A clock that is moved by hand; `moves` are the waits that were asked for."""

    def __init__(self):
        self.now_s = 1000.0
        self.moves = []
        self.clock = Clock(lambda: self.now_s, lambda: self.now_s + 1e9)

    def wait(self, seconds):
        self.moves.append(seconds)
        self.now_s += seconds


class Scripted:
    """A source that answers in `cost_s` and does its sub-second work every `pause_s`."""

    def __init__(self, hand, cost_s=0.01, pause_s=None):
        self.hand, self.cost_s, self.pause_s = hand, cost_s, pause_s
        self.log = []
        self.deadlines = []
        self.between_calls = 0

    def open(self):
        self.log.append("open")

    def sample(self, deadline_s):
        self.deadlines.append(deadline_s)
        taken_s = self.hand.now_s
        self.hand.now_s += self.cost_s(len(self.deadlines)) if callable(self.cost_s) else self.cost_s
        return Sample(len(self.deadlines) - 1, taken_s, 0.0, 1.0, late_s=taken_s - deadline_s)

    def between(self):
        self.between_calls += 1
        return self.pause_s

    def close(self):
        self.log.append("close")


def take(source, hand, count, interval_s=1.0, seed=3):
    samples = []
    for sample in ticks(source, hand.clock, hand.wait, interval_s, seed):
        samples.append(sample)
        if len(samples) == count:
            return samples
    return samples


@given(st.integers(0, 2**32), st.sampled_from([0.2, 1.0, 7.0, 60.0]), st.integers(1, 80))
def test_deadlines_lie_on_the_grid_within_the_jitter(seed, interval_s, count):
    deadlines, now_s = Deadlines(500.0, interval_s, seed), 500.0
    places = []
    for _ in range(count):
        due_s = deadlines.after(now_s, now_s)
        assert due_s - now_s >= LEAST_SPACING_RATIO * interval_s
        place = round((due_s - 500.0) / interval_s)
        assert abs(due_s - (500.0 + place * interval_s)) <= JITTER_RATIO * interval_s + 1e-9
        places.append(place)
        now_s = due_s
    assert places == list(range(1, count + 1))


def test_jitter_is_spread_over_its_whole_range_and_can_be_repeated():
    def moments(seed):
        deadlines, now_s, offsets = Deadlines(0.0, 1.0, seed), 0.0, []
        for _ in range(400):
            now_s = deadlines.after(now_s, now_s)
            offsets.append(now_s - round(now_s))
        return offsets

    offsets = moments(5)
    assert offsets == moments(5) != moments(6)
    assert min(offsets) < -0.28
    assert max(offsets) > 0.28
    assert abs(sum(offsets)) / 400 < 0.03  # no drift off the grid


@given(st.floats(0.0, 1e9), st.integers(0, 100))
def test_b110_missed_ticks_are_left_out_at_once_however_many(late_s, seed):
    deadlines = Deadlines(0.0, 1.0, seed)
    due_s = deadlines.after(0.0, late_s)
    assert late_s < due_s <= max(late_s, LEAST_SPACING_RATIO) + 1.0 + 2 * JITTER_RATIO + 1e-6


def test_the_first_tick_is_taken_at_once_and_spacing_is_true_time():
    hand = Hand()
    samples = take(Scripted(hand), hand, 50)
    assert samples[0].monotonic_s == 1000.0
    spacing = [b.monotonic_s - a.monotonic_s for a, b in itertools.pairwise(samples)]
    assert min(spacing) >= 0.35
    assert max(spacing) <= 1.6 + 1e-9
    assert sum(spacing) / len(spacing) == pytest.approx(1.0, abs=0.02)


def test_lateness_is_against_the_deadline():
    hand = Hand()
    source = Scripted(hand)
    hand_wait = hand.wait
    hand.wait = lambda seconds: hand_wait(seconds + 0.004)
    samples = take(source, hand, 5)
    assert [sample.late_s for sample in samples[1:]] == pytest.approx([0.004] * 4)


def test_a_slow_source_is_never_asked_twice_to_catch_up():
    hand = Hand()
    source = Scripted(hand, cost_s=lambda number: 7.3 if number == 3 else 0.01)
    samples = take(source, hand, 8)
    spacing = [b.monotonic_s - a.monotonic_s for a, b in itertools.pairwise(samples)]
    assert spacing[2] > 7.3
    assert all(0.35 <= gap <= 1.6 + 1e-9 for gap in [*spacing[:2], *spacing[3:]])


@pytest.mark.parametrize("interval_s", [1.0, 60.0])
def test_sub_second_work_goes_on_between_ticks(interval_s):
    hand = Hand()
    source = Scripted(hand, pause_s=1 / 6)
    take(source, hand, 4, interval_s)
    elapsed_s = hand.now_s - 1000.0
    assert source.between_calls == pytest.approx(elapsed_s * 6, rel=0.25)
    assert max(hand.moves) <= 1 / 6


@pytest.mark.parametrize("pause_s", [0.0, -1.0])
def test_a_source_that_never_wants_to_pause_does_not_spin(pause_s):
    hand = Hand()
    source = Scripted(hand, pause_s=pause_s)
    take(source, hand, 3)
    assert source.between_calls <= 2 * 160 + 10


def test_waiting_that_says_stop_ends_the_ticks():
    hand = Hand()
    source = Scripted(hand)
    stops = iter([None, True])

    def wait(seconds):
        hand.now_s += seconds
        return next(stops)

    assert len(list(ticks(source, hand.clock, wait, 1.0, 1))) == 2


# -- the thread


class Gate:
    """A source driven from the test: `sample` returns what `push` gave, or raises it."""

    def __init__(self):
        self.given = threading.Semaphore(0)
        self.answers = []
        self.closed = threading.Event()

    def push(self, *answers):
        self.answers += answers
        for _ in answers:
            self.given.release()

    def open(self):
        pass

    def sample(self, deadline_s):
        assert self.given.acquire(timeout=GUARD_S)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def between(self):
        return None

    def close(self):
        self.closed.set()


def running(source, **options):
    told = threading.Semaphore(0)
    sampler = Sampler(source, interval_s=0.002, notify=told.release, **options)
    sampler.start()
    return sampler, told


def wait_for(told, count):
    for _ in range(count):
        assert told.acquire(timeout=GUARD_S)


def numbered(count, **fields):
    return [Sample(number, float(number), 0.0, 1.0, **fields) for number in range(count)]


def test_samples_wait_in_order_until_they_are_taken():
    source = Gate()
    source.push(*numbered(3))
    sampler, told = running(source)
    wait_for(told, 3)
    assert [sample.number for sample in sampler.take()] == [0, 1, 2]
    assert sampler.take() == ()
    sampler.stop()
    source.push(*numbered(1))
    assert sampler.join(GUARD_S)
    assert source.closed.is_set()


def test_nobody_taking_samples_costs_no_memory_and_no_news():
    source = Gate()
    machine = Machine(HostInfo("box"))
    first = Sample(0, 0.0, 0.0, 1.0, machine=machine, events=(Event(0.0, "xid", "Xid 79"),))
    source.push(first, *numbered(MOST_WAITING + 20))
    sampler, told = running(source)
    wait_for(told, MOST_WAITING + 21)
    samples = sampler.take()
    assert len(samples) == MOST_WAITING
    assert samples[0].machine is machine
    assert [event.message for event in samples[0].events] == ["Xid 79"]
    assert sum(len(sample.events) for sample in samples) == 1
    sampler.stop()
    source.push(*numbered(1))


def test_a_source_that_raises_is_one_sentence_and_the_next_tick_is_normal():
    source = Gate()
    good = Sample(4, 4.0, 0.0, 1.0, gpus=(GpuReading("GPU-0", 0, 4.0),), machine=Machine(HostInfo("box")))
    source.push(good, RuntimeError("the cable\nwas cut"), RuntimeError("again"), good)
    sampler, told = running(source)
    wait_for(told, 4)
    first, broken, still, after = sampler.take()
    assert first is good
    assert broken.driver.state is DriverState.ERROR
    assert broken.driver.message == "sampling failed: the cable was cut"
    assert broken.number == 5
    assert broken.gpus == good.gpus  # the last readings stay, with their old age
    assert broken.machine is None
    assert still.driver.since_s == broken.driver.since_s
    assert after is good
    sampler.stop()
    source.push(good)


def test_a_source_that_cannot_be_opened_is_tried_again():
    class Unopened(Gate):
        tries = 0

        def open(self):
            self.tries += 1
            if self.tries < 3:
                raise OSError("not yet")

    source = Unopened()
    source.push(*numbered(1))
    sampler, told = running(source)
    wait_for(told, 2)
    sample, good = sampler.take()
    assert sample.driver.message == "sampling failed: not yet"
    assert good.number == 0
    sampler.stop()
    source.push(*numbered(1))


def test_a_failure_between_ticks_is_an_event_told_once():
    class Halting(Gate):
        def between(self):
            raise ValueError("no threads")

    source = Halting()
    source.push(*numbered(4))
    sampler, told = running(source)
    wait_for(told, 4)
    events = [event for sample in sampler.take() for event in sample.events]
    assert [event.message for event in events] == ["reading between two ticks failed: no threads"]
    sampler.stop()
    source.push(*numbered(1))


def test_stopping_returns_at_once_while_a_driver_call_hangs():
    source = Gate()
    sampler, _ = running(source)
    sampler.stop()
    assert not sampler.join(0.0)  # still inside the call, and nobody has to wait for it
    assert sampler._thread.daemon
    source.push(*numbered(1))
    assert sampler.join(GUARD_S)


def test_notify_can_be_set_after_the_start():
    source = Gate()
    sampler = Sampler(source, interval_s=0.002)
    sampler.start()
    source.push(*numbered(1))
    told = threading.Semaphore(0)
    sampler.notify = told.release
    source.push(*numbered(2))
    wait_for(told, 1)
    assert sampler.take()
    sampler.stop()
    source.push(*numbered(2))


def test_b071_the_sampling_thread_ends_with_the_program():
    """The main thread dies while a driver call never returns: the process must not stay."""
    script = """
import threading
from gpuwatch.sampler import Sampler

class Hanging:
    def open(self): inside.set(); threading.Event().wait()
    def sample(self, deadline_s): raise AssertionError
    def between(self): return None
    def close(self): pass

inside = threading.Event()
Sampler(Hanging()).start()
inside.wait()
raise MemoryError("the main program is out of memory")
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert "out of memory" in done.stderr
