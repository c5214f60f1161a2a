from math import isnan, nan

import pytest
from history_samples import GPU, disk, gpu, host, powers, process, sample

from gpuwatch.history import History
from gpuwatch.metrics import METRICS


def text(values):
    return ["gap" if isnan(value) else value for value in values]


def test_windows_are_aligned_and_oldest_first():
    history = powers(10, 20, None, 40)
    assert list(history.times(3)) == [1001, 1002, 1003]
    assert text(history.values(GPU, "power_w", 3)) == [20, "gap", 40]
    assert text(history.values(GPU, "power_w", 999)) == [10, 20, "gap", 40]


def test_a_gap_is_left_out_of_figures_and_is_never_zero():
    history = powers(10, 20, None, 40)
    assert history.present(GPU, "power_w", 3) == [20, 40]
    assert history.mean(GPU, "power_w", 3) == 30
    assert history.minimum(GPU, "power_w", 3) == 20
    assert history.maximum(GPU, "power_w", 3) == 40


def test_without_any_value_figures_are_unknown():
    history = powers(None, None)
    for figure in (history.mean, history.minimum, history.maximum, history.last):
        assert figure(GPU, "power_w", 60) is None
    assert powers(1.0).mean(GPU, "temperature_c", 60) is None


def test_last_looks_back_only_as_far_as_it_may():
    history = powers(10, None, None)
    assert history.last(GPU, "power_w", max_age_s=5) == 10
    assert history.last(GPU, "power_w", max_age_s=2) is None


def test_an_unknown_metric_of_a_known_entity_is_an_error_of_the_caller():
    with pytest.raises(KeyError):
        powers(1.0).values(GPU, "no_such_metric", 5)


@pytest.mark.parametrize(
    ("interval_s", "ticks"), [(1.0, 900), (0.2, 4500), (5.0, 225), (60.0, 225), (2.0, 450)]
)
def test_the_ring_holds_a_quarter_of_an_hour_within_bounds(interval_s, ticks):
    history = History(interval_s)
    for number in range(ticks + 3):
        history.append(sample(number * interval_s, gpu(number * interval_s, power_w=float(number))))
    values = history.values(GPU, "power_w", 1e9)
    assert (values[0], values[-1], len(values)) == (3.0, ticks + 2.0, ticks)


def test_windows_across_the_ring_seam_match_a_plain_list():
    history, kept = History(60.0), []
    for number in range(700):
        value = None if number % 7 == 0 else float(number)
        history.append(sample(number * 60.0, gpu(number * 60.0, power_w=value)))
        kept.append("gap" if value is None else value)
        if number % 50 == 49:
            assert text(history.values(GPU, "power_w", 60.0 * 200)) == kept[-200:]


def test_a_stale_reading_is_a_gap_not_a_repeated_value():
    history = History()
    for second in range(4):
        read_s = min(1001.0, 1000.0 + second)
        history.append(sample(1000.0 + second, gpu(read_s, power_w=50.0)))
    assert text(history.values(GPU, "power_w", 10)) == [50, 50, "gap", "gap"]


def test_the_first_rate_after_a_long_silence_is_unknown():
    """What happened within twenty seconds must not be drawn as the rate of the last one."""
    history = History()
    for time_s in (1000.0, 1001.0, 1021.0, 1022.0):
        history.append(sample(time_s, gpu(time_s, nvlink_rx_bytes=int(1e6 * time_s), power_w=1.0)))
    assert text(history.values(GPU, "nvlink_rx_bytes_per_s", 60)) == ["gap", 1e6, "gap", 1e6]
    assert text(history.values(GPU, "power_w", 60)) == [1, 1, 1, 1]


def test_a_gpu_lost_and_back_continues_its_series_behind_a_gap():
    history = powers(10, 20, None, None, 50, 60)
    assert history.entities("gpu") == (GPU,)
    assert text(history.values(GPU, "power_w", 60)) == [10, 20, "gap", "gap", 50, 60]


def test_a_gpu_is_its_uuid_not_its_place():
    history = History()
    history.append(sample(1.0, gpu(1.0, "GPU-a", power_w=1.0), gpu(1.0, "GPU-b", power_w=2.0)))
    history.append(sample(2.0, gpu(2.0, "GPU-b", power_w=3.0)))
    assert text(history.values("gpu:GPU-a", "power_w", 9)) == [1, "gap"]
    assert text(history.values("gpu:GPU-b", "power_w", 9)) == [2, 3]


def test_b110_a_jump_of_the_wall_clock_changes_nothing():
    history = History()
    for second, wall_s in enumerate((5.0, 3e9, -3600.0, 8.0)):
        time_s = 1000.0 + second
        reading = gpu(time_s, nvlink_rx_bytes=second * 100)
        history.append(
            sample(time_s, reading, host=host(time_s)).__class__(0, time_s, wall_s, 1.0, gpus=(reading,))
        )
    assert text(history.values(GPU, "nvlink_rx_bytes_per_s", 60)) == ["gap", 100, 100, 100]


def test_b110_a_sample_that_is_not_newer_is_left_out():
    history = powers(10, 20)
    history.append(sample(1000.5, gpu(1000.5, power_w=99.0)))
    history.append(sample(1001.0, gpu(1001.5, power_w=99.0)))
    assert history.count == 2
    history.append(sample(1002.0, gpu(1002.0, power_w=30.0)))
    assert text(history.values(GPU, "power_w", 9)) == [10, 20, 30]


def test_b112_smaller_counters_after_resume_are_a_gap_and_the_next_tick_is_normal():
    history = History()
    for time_s, counted_s in ((100.0, 100.0), (101.0, 101.0), (102.0, 3.0), (103.0, 4.0)):
        reading = host(counted_s)
        history.append(sample(time_s, host=reading.__class__(**_with(reading, read_s=time_s))))
    shares = text(history.values("host:", "cpu_ratio", 60))
    assert shares[0] == shares[2] == "gap"
    assert shares[1] == pytest.approx(0.375)
    assert shares[3] == pytest.approx(0.375)


def _with(record, **changes):
    return {name: getattr(record, name) for name in record.__dataclass_fields__} | changes


def test_process_series_are_short_and_aligned():
    history = History()
    for second in range(300):
        history.append(sample(1000.0 + second, processes=(process(5, second, cores=2.0),)))
    cores = history.values("process:5:7", "cpu_cores", 250)
    assert len(cores) == len(history.times(250)) == 250
    assert all(map(isnan, cores[:70]))
    assert list(cores[70:]) == pytest.approx([2.0] * 180)


def test_a_reused_pid_is_another_process():
    history = History()
    history.append(sample(1.0, processes=(process(5, 1.0),)))
    other = process(5, 0.0).__class__(5, 8, 1, "x", "x", process(5, 0.0).role, cpu_ns=0)
    history.append(sample(2.0, processes=(other,)))
    assert history.entities("process") == ("process:5:7", "process:5:8")
    assert history.last("process:5:8", "cpu_cores") is None


def test_a_record_handed_on_unchanged_is_no_new_reading_of_a_process():
    history, same = History(), process(5, 1.0)
    for second in range(3):
        history.append(sample(1.0 + second, processes=(same,)))
    assert text(history.values("process:5:7", "blocked_ratio", 9)) == [0, "gap", "gap"]


def test_processes_that_are_gone_are_forgotten_and_their_number_is_bounded():
    history = History()
    for second in range(1000):
        history.append(sample(float(second), processes=(process(second + 1, 1.0), process(1, second))))
    names = history.entities("process")
    assert "process:1:7" in names
    assert len(names) <= 182
    history.append(sample(1000.0, processes=tuple(process(pid, 1.0) for pid in range(2000, 2400))))
    assert len(history.entities("process")) == 256
    assert "process:1:7" not in history.entities("process")  # was not in the newest sample
    assert history.last("process:2399:7", "cpu_cores") is None  # no room: unknown, not wrong


def test_disks_come_and_go_without_growth():
    history = History(60.0)
    for number in range(600):
        time_s = 60.0 * number
        disks = (disk("sda", time_s), disk(f"loop{number}", time_s))
        history.append(sample(time_s, host=host(time_s + 1, disks=disks)))
    assert "disk:sda" in history.entities("disk")
    assert len(history.entities("disk")) <= 64
    assert history.last("disk:sda", "read_bytes_per_s", 90) == pytest.approx(1e6)


def test_core_shares_are_of_the_newest_tick():
    history = History()
    history.append(sample(1.0, host=host(1.0)))
    assert list(history.core_shares()) == []
    history.append(sample(2.0, host=host(2.0, busy=(0.75, 0.125))))
    assert list(history.core_shares()) == [1.0, 0.0]
    history.append(sample(3.0))
    assert list(history.core_shares()) == []


def test_core_shares_with_cores_hot_plugged_are_unknown():
    history = History()
    history.append(sample(1.0, host=host(1.0)))
    history.append(sample(2.0, host=host(2.0, busy=(0.5, 0.5, 0.5))))
    assert list(history.core_shares()) == []
    history.append(sample(3.0, host=host(3.0, busy=(0.5, 0.5, 0.5))))
    assert list(history.core_shares()) == [0.5, 0.5, 0.5]


def test_every_metric_of_the_table_can_be_asked_for():
    history = powers(1.0, 2.0)
    history.append(sample(1002.0, host=host(1.0, disks=(disk("sda", 1.0),)), processes=(process(1, 1.0),)))
    for kind, metrics in METRICS.items():
        for entity in history.entities(kind):
            for metric in metrics:
                assert len(history.values(entity, metric.key, 60)) == 3


def test_nan_from_a_source_is_a_gap():
    assert text(powers(nan, 1.0).values(GPU, "power_w", 9)) == ["gap", 1]


def test_the_newest_value_of_a_long_interval_still_counts():
    history = History(interval_s=60.0)
    history.append(sample(1000.0, gpu(1000.0, power_w=100.0)))
    history.append(sample(1060.0))  # one tick without it
    assert history.last(GPU, "power_w", 5.0) == 100.0
    history.append(sample(1120.0))
    assert history.last(GPU, "power_w", 5.0) is None
