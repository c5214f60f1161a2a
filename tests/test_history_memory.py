"""Fixed memory, shown on a scaled-down run: rings of a long interval are full after a day of ticks."""

import tracemalloc

from history_samples import disk, gpu, host, process, sample

from gpuwatch.history import History
from gpuwatch.model import Burst, ThreadBurst


def tick(number: int):
    time_s = 60.0 * number
    points = Burst(tuple(time_s - 1 + step / 6 for step in range(6)), (0.5,) * 6)
    return sample(
        time_s,
        gpu(time_s, power_w=1.0, sm_clock_mhz=1000.0, utilization_burst=points),
        host=host(time_s, disks=(disk("sda", time_s), disk(f"loop{number % 5}", time_s))),
        processes=(process(1, time_s), process(1000 + number, 1.0)),
        thread_bursts=(ThreadBurst((1000 + number, 7), 1000 + number, (time_s,), (1,), (1,)),),
    )


def test_b092_memory_is_flat_once_the_rings_are_full():
    history = History(60.0)
    for number in range(1500):
        history.append(tick(number))
    tracemalloc.start()
    try:
        for number in range(1500, 1750):  # every process ring held now was made while being traced
            history.append(tick(number))
        before = tracemalloc.get_traced_memory()[0]
        for number in range(1750, 2500):
            history.append(tick(number))
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert grown < 64 * 1024


def test_b092_the_number_of_everything_kept_is_bounded():
    history = History(60.0)
    counts = set()
    for number in range(3000):
        history.append(tick(number))
        if number >= 1500:
            counts.add(
                tuple(len(history.entities(kind)) for kind in ("gpu", "host", "disk", "net", "process"))
            )
    assert counts == {(1, 1, 6, 0, 181)}
    assert len(history.times(1e9)) == 225
    assert len(history.tier("gpu:GPU-0", "power_w", 10).mean) <= 720
    assert len(history.tier("gpu:GPU-0", "power_w", 60).mean) == 1440
