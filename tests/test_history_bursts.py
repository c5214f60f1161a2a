from history_samples import gpu, process, sample
from hypothesis import given
from hypothesis import strategies as st

from gpuwatch.history import History
from gpuwatch.model import Burst, ThreadBurst


def burst_tick(time_s, times, values=None):
    values = tuple(time % 1 for time in times) if values is None else values
    return sample(time_s, gpu(time_s, utilization_burst=Burst(tuple(times), tuple(values))))


def test_bursts_of_several_ticks_are_one_line():
    history = History()
    history.append(burst_tick(10.0, (9.2, 9.6, 10.0)))
    history.append(burst_tick(11.0, (10.4, 10.8)))
    burst = history.burst("GPU-0", "utilization", 60)
    assert burst.times_s == (9.2, 9.6, 10.0, 10.4, 10.8)
    assert history.burst("GPU-0", "utilization", 0.9).times_s == (10.4, 10.8)


def test_points_seen_before_are_not_taken_twice():
    history = History()
    history.append(burst_tick(10.0, (9.0, 9.5), (0.1, 0.2)))
    history.append(burst_tick(11.0, (9.0, 9.5, 10.5), (0.7, 0.8, 0.9)))
    assert history.burst("GPU-0", "utilization", 60) == Burst((9.0, 9.5, 10.5), (0.1, 0.2, 0.9))


def test_b110_points_from_the_future_are_left_out():
    history = History()
    history.append(burst_tick(10.0, (9.5, 9999.0)))
    history.append(burst_tick(11.0, (10.5,)))
    assert history.burst("GPU-0", "utilization", 60).times_s == (9.5, 10.5)


def test_the_burst_of_a_stale_reading_is_not_taken_again():
    history, reading = History(), gpu(10.0, utilization_burst=Burst((9.5,), (0.5,)))
    history.append(sample(10.0, reading))
    history.append(sample(11.0, reading))
    assert history.burst("GPU-0", "utilization", 60).times_s == (9.5,)


def test_unknown_bursts_are_empty():
    history = History()
    history.append(sample(1.0))
    assert history.burst("GPU-0", "power", 60) == Burst()
    assert history.thread_burst((1, 2), 1, 60) is None


@given(st.lists(st.floats(0, 3, allow_nan=False), min_size=1, max_size=40))
def test_two_minutes_are_kept_and_no_more(moves):
    history, time_s = History(), 1000.0
    everything = []
    for move_s in (*moves, *[1.0] * 100):
        time_s += move_s + 0.01
        history.append(burst_tick(time_s, (time_s,)))
        everything.append(time_s)
    expected = tuple(t for t in everything if t > time_s - 120)
    assert history.burst("GPU-0", "utilization", 1e9).times_s == expected


def test_fast_rings_are_bounded():
    history = History()
    for second in range(200):
        times = tuple(second + step / 1000 for step in range(1000))
        reading = gpu(second + 1.0, power_burst=Burst(times, times))
        history.append(sample(second + 1.0, reading))
    points = history.burst("GPU-0", "power", 120)
    assert 6000 <= len(points.times_s) <= 12_000
    assert points.times_s[-1] == 199.999


def thread_tick(time_s, pids):
    bursts = tuple(ThreadBurst((pid, 1), pid, (time_s,), (int(time_s),), (0,)) for pid in pids)
    return sample(time_s, thread_bursts=bursts)


def test_threads_are_kept_by_process_and_thread():
    history = History()
    history.append(thread_tick(10.0, (5, 6)))
    history.append(thread_tick(11.0, (5,)))
    assert history.thread_burst((5, 1), 5, 60) == ThreadBurst((5, 1), 5, (10.0, 11.0), (10, 11), (0, 0))
    assert history.thread_burst((5, 2), 5, 60) is None  # the pid of another process
    assert history.thread_burst((6, 1), 6, 0.5) is None


def test_threads_silent_for_two_minutes_are_forgotten_and_their_number_is_bounded():
    history = History()
    history.append(thread_tick(10.0, (1,)))
    history.append(thread_tick(131.0, (2,)))
    assert history.thread_burst((1, 1), 1, 1e9) is None
    history.append(thread_tick(132.0, range(10, 400)))
    assert history.thread_burst((2, 1), 2, 60) is None
    assert history.thread_burst((399, 1), 399, 60) is not None
    assert sum(history.thread_burst((pid, 1), pid, 60) is not None for pid in range(10, 400)) == 256


def test_a_process_that_ends_keeps_its_burst_for_the_window():
    history = History()
    history.append(thread_tick(10.0, (5,)))
    history.append(sample(11.0, processes=(process(9, 1.0),)))
    assert history.thread_burst((5, 1), 5, 60) is not None
