from itertools import pairwise

import pytest
from fake_machine import Machine
from fake_tree import FakeClock
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuwatch.model import ProcessReading, ProcessRole
from gpuwatch.sources.processes.bursts import INTERVAL_S, MOST_THREADS, BurstReader


def process(pid, role, trainer, state="S"):
    return ProcessReading(pid, 5, 1, "x", "x", role, trainer=(trainer, 5), state=state)


def job(trainer, workers):
    return [
        process(trainer, ProcessRole.TRAINER, trainer),
        *(process(trainer + 1 + i, ProcessRole.WORKER, trainer) for i in range(workers)),
        process(trainer + 500, ProcessRole.CHILD, trainer),
    ]


class Bursting:
    def __init__(self, *processes):
        self.machine = Machine()
        self.processes = list(processes)
        for one in self.processes:
            self.machine.files[f"/proc/{one.pid}/schedstat"] = b"100 20 1\n"
        self.time = FakeClock(0.0)
        self.bursts = BurstReader(self.machine, self.time.clock)

    def second(self, low=()):
        """One tick and the polls after it; the bursts by pid."""
        self.bursts.aim(self.processes, [(pid, 5) for pid in low], self.time.now)
        end = self.time.now + 1.0
        while self.time.now < end - 1e-9:
            self.bursts.poll(self.time.now)
            wait = self.bursts.wait_s(self.time.now)
            self.time.now = min(end, self.time.now + (1.0 if wait is None else max(wait, 1e-3)))
        return {burst.tid: burst for burst in self.bursts.drain()}


def test_main_thread_and_workers_six_times_a_second():
    bursting = Bursting(*job(100, 2))
    burst = bursting.second(low=[100])
    assert set(burst) == {100, 101, 102}
    assert 5 <= len(burst[100].times_s) <= 7
    assert burst[100].run_ns[0] == 100
    assert burst[100].wait_ns[0] == 20
    assert list(burst[100].times_s) == sorted(burst[100].times_s)
    assert burst[101].process == (101, 5)


def test_no_burst_while_the_gpu_is_busy():
    bursting = Bursting(*job(100, 2))
    assert bursting.second() == {}
    assert bursting.bursts.wait_s(1.0) is None
    assert bursting.machine.reads == []


def test_burst_lasts_ten_seconds_after_the_last_idle_moment():
    bursting = Bursting(*job(100, 1))
    seen = [bool(bursting.second(low=[100] if second == 0 else [])) for second in range(14)]
    assert seen == [True] * 11 + [False] * 3


def test_a_loader_with_64_workers_is_watched_in_part():
    burst = Bursting(*job(100, 64)).second(low=[100])
    assert len(burst) == MOST_THREADS
    assert 100 in burst


def test_trainers_take_turns_of_ten_seconds():
    bursting = Bursting(*(one for trainer in range(1000, 9000, 1000) for one in job(trainer, 8)))
    low = list(range(1000, 9000, 1000))
    turns = []
    for _ in range(80):
        burst = bursting.second(low)
        assert 0 < len(burst) <= MOST_THREADS
        turns.append(frozenset(tid for tid in burst if tid in low))
    assert set().union(*turns) == set(low)
    changes = [second for second in range(1, 80) if turns[second] != turns[second - 1]]
    assert all(9 <= later - earlier <= 11 for earlier, later in pairwise(changes))
    assert len(changes) == 7


def test_late_polls_are_not_made_up_for():
    bursting = Bursting(*job(100, 0))
    bursting.bursts.aim(bursting.processes, [(100, 5)], 0.0)
    bursting.bursts.poll(0.0)
    bursting.time.now = 30.0
    bursting.bursts.poll(30.0)
    bursting.bursts.poll(30.0)
    assert bursting.bursts.wait_s(30.0) == pytest.approx(INTERVAL_S / 2)
    assert len(bursting.bursts.drain()[0].times_s) == 2


def test_ended_processes_and_zombies_are_left_out():
    bursting = Bursting(*job(100, 2), process(110, ProcessRole.WORKER, 100, state="Z"))
    del bursting.machine.files["/proc/101/schedstat"]
    assert set(bursting.second(low=[100])) == {100, 102}


def test_undrained_points_do_not_pile_up():
    bursting = Bursting(*job(100, 0))
    for second in range(100):
        bursting.bursts.aim(bursting.processes, [(100, 5)], float(second))
        for part in range(6):
            bursting.bursts.poll(second + part / 6)
    assert len(bursting.bursts.drain()[0].times_s) == 64


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 20), st.integers(0, 40), st.booleans()), max_size=12))
def test_never_more_than_the_limit(jobs):
    processes = [one for number, workers, _ in jobs for one in job(number * 1000, workers)]
    bursting = Bursting(*processes)
    for second in range(3):
        low = [number * 1000 for number, _, is_low in jobs if is_low or second == 2]
        assert len(bursting.second(low)) <= MOST_THREADS


def test_interval_is_that_of_the_driver():
    assert pytest.approx(1 / 6) == INTERVAL_S
