import pytest
from history_samples import gpu, host, process
from hypothesis import given
from hypothesis import strategies as st

from gpuwatch.metrics import (
    GPU_METRICS,
    METRICS,
    REASON_BITS,
    REASONS_HARMFUL,
    core_shares,
    metric,
    rate,
    time_share,
)
from gpuwatch.model import Burst, CpuTimes, DiskReading, GpuReading, HostReading


def derive(kind, key, previous, current, dt=1.0):
    return metric(kind, key).derive(previous, current, dt)


def test_every_key_is_unique_and_can_be_looked_up():
    for kind, metrics in METRICS.items():
        assert len({entry.key for entry in metrics}) == len(metrics)
        for entry in metrics:
            assert metric(kind, entry.key) is entry


def test_an_unknown_metric_is_named_in_the_error():
    with pytest.raises(KeyError, match="'speed' of 'gpu'"):
        metric("gpu", "speed")


def test_every_scale_taken_from_the_machine_names_a_field_of_it():
    from gpuwatch.model import GpuInfo

    for entry in GPU_METRICS:
        assert entry.high_from is None or entry.high_from in GpuInfo.__dataclass_fields__


def test_harmful_reasons_are_known_bits():
    assert sum(bit for bit in REASON_BITS if bit & REASONS_HARMFUL) == REASONS_HARMFUL


def test_an_empty_reading_derives_nothing_at_all():
    """Missing is never zero, whatever the metric."""
    empty = {
        "gpu": gpu(1.0),
        "host": HostReading(read_s=1.0),
        "process": process(1, 0.0, cpu_ns=None, state="?"),
    }
    for kind, reading in empty.items():
        for entry in METRICS[kind]:
            assert entry.derive(None, reading, 1.0) is None
            assert entry.derive(reading, reading, 1.0) is None


def test_utilization_is_the_mean_of_the_driver_samples_else_the_gauge():
    buffered = gpu(1.0, utilization_ratio=1.0, utilization_burst=Burst((0.1, 0.2), (0.0, 0.5)))
    for previous in (None, gpu(0.0)):
        assert derive("gpu", "utilization_ratio", previous, buffered) == 0.25
        assert derive("gpu", "gap_ratio", previous, buffered) == 0.5
    assert derive("gpu", "utilization_ratio", None, gpu(1.0, utilization_ratio=0.75)) == 0.75
    assert derive("gpu", "gap_ratio", None, gpu(1.0, utilization_ratio=0.0)) is None


def test_the_driver_ring_of_many_seconds_does_not_become_the_first_tick():
    ring = Burst((1.0, 5.0, 9.2, 9.7), (0.0, 0.0, 0.5, 1.0))
    first = gpu(10.0, utilization_ratio=0.3, utilization_burst=ring)
    assert derive("gpu", "utilization_ratio", None, first) == 0.75
    assert derive("gpu", "gap_ratio", None, first) == 0.0
    assert derive("gpu", "utilization_ratio", gpu(0.9), first, 9.1) == 0.375  # a tick of nine seconds
    old = gpu(20.0, utilization_ratio=0.3, utilization_burst=ring)
    assert derive("gpu", "utilization_ratio", None, old) == 0.3


def test_power_is_the_energy_difference_where_the_card_counts_energy():
    before, now = gpu(1.0, energy_j=1000.0, power_w=10.0), gpu(3.0, energy_j=1600.0, power_w=10.0)
    assert derive("gpu", "power_w", before, now, 2.0) == 300.0
    assert derive("gpu", "power_w", before, now, 0.2) == 10.0  # too short for the counter's steps
    assert derive("gpu", "power_w", None, now) == 10.0
    assert derive("gpu", "power_w", now, before, 2.0) == 10.0  # counter was reset
    assert derive("gpu", "power_w", gpu(1.0, energy_j=0.0), gpu(3.0, energy_j=9e9, power_w=50.0), 2.0) == 50.0


def test_pcie_counters_wrap_as_their_width_says():
    before = gpu(1.0, pcie_rx_bytes=2**32 - 100, pcie_counter_bits=32)
    after = gpu(2.0, pcie_rx_bytes=400, pcie_counter_bits=32)
    assert derive("gpu", "pcie_rx_bytes_per_s", before, after) == 500
    wide = [
        gpu(1.0, pcie_rx_bytes=900, pcie_counter_bits=64),
        gpu(2.0, pcie_rx_bytes=400, pcie_counter_bits=64),
    ]
    assert derive("gpu", "pcie_rx_bytes_per_s", *wide) is None
    assert derive("gpu", "pcie_tx_bytes_per_s", None, gpu(1.0, pcie_tx_bytes_per_s=7.0)) == 7.0
    jump = gpu(2.0, pcie_rx_bytes=10**15, pcie_counter_bits=64)
    assert derive("gpu", "pcie_rx_bytes_per_s", wide[0], jump) is None


def test_throttle_counts_time_first_and_bits_second():
    quiet = gpu(1.0, sw_thermal_time_ns=0, event_reasons=0x20)
    half = gpu(2.0, sw_thermal_time_ns=500_000_000, event_reasons=0)
    assert derive("gpu", "throttle_ratio", quiet, half) == 0.5
    assert derive("gpu", "thermal_ratio", quiet, half) == 0.5
    assert derive("gpu", "throttle_ratio", None, gpu(1.0, event_reasons=0x40)) == 1.0
    assert derive("gpu", "throttle_ratio", None, gpu(1.0, event_reasons=0x4)) == 0.0  # the cap is no harm
    assert derive("gpu", "throttle_ratio", quiet, gpu(2.0, sw_thermal_time_ns=0)) == 0.0
    assert derive("gpu", "throttle_ratio", None, gpu(1.0)) is None


def test_b112_rates_of_counters_that_fell_or_jumped_are_unknown():
    bytes_rate = rate("nvlink_rx_bytes")
    assert bytes_rate(gpu(1.0, nvlink_rx_bytes=5), gpu(2.0, nvlink_rx_bytes=4), 1.0) is None
    assert bytes_rate(gpu(1.0, nvlink_rx_bytes=0), gpu(2.0, nvlink_rx_bytes=2**63), 1.0) is None
    assert bytes_rate(gpu(1.0, nvlink_rx_bytes=5), gpu(2.0, nvlink_rx_bytes=6), 0.0) is None
    assert bytes_rate(gpu(1.0, nvlink_rx_bytes=5), gpu(2.0, nvlink_rx_bytes=6), -1.0) is None
    share = time_share("sw_thermal_time_ns", 1e9)
    assert share(gpu(1.0, sw_thermal_time_ns=0), gpu(2.0, sw_thermal_time_ns=1_900_000_000), 1.0) == 1.0
    assert share(gpu(1.0, sw_thermal_time_ns=0), gpu(2.0, sw_thermal_time_ns=9_000_000_000), 1.0) is None


counters = st.integers(0, 2**64)


@given(
    counters, counters, st.floats(0.01, 100), st.sampled_from(["sw_thermal_time_ns", "power_brake_time_ns"])
)
def test_shares_of_time_are_shares(before, now, dt, name):
    share = time_share(name, 1e9)(gpu(1.0, **{name: before}), gpu(2.0, **{name: now}), dt)
    assert share is None or 0 <= share <= 1


def test_cpu_shares_are_of_all_cores_together():
    before, now = host(10.0, (1.0, 0.5)), host(20.0, (1.0, 0.5))
    assert derive("host", "cpu_ratio", before, now) == 0.75
    assert derive("host", "busiest_core_ratio", before, now) == 1.0
    assert derive("host", "cpu_ratio", now, now) is None  # no time went by
    steal = CpuTimes(0.0, 0.0, 5.0, 0.0, 5.0, 10.0)
    start = CpuTimes(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    pair = HostReading(read_s=0.0, cpu=start), HostReading(read_s=1.0, cpu=steal)
    assert derive("host", "cpu_steal_ratio", *pair) == 0.5


def test_disk_waits_are_means_over_the_requests_of_the_tick():
    before = DiskReading("sda", 100, 0, 0, 0, 1000, 0, 0, 0)
    now = DiskReading("sda", 110, 0, 5_000_000, 0, 1250, 0, 500, 4000)
    assert derive("disk", "read_await_ms", before, now) == 25.0
    assert derive("disk", "read_await_ms", now, now) is None  # nothing was read: no wait, not zero
    assert derive("disk", "busy_ratio", before, now) == 0.5
    assert derive("disk", "queue_depth", before, now) == 4.0
    assert derive("disk", "read_bytes_per_s", before, now) == 5e6


def test_run_queue_wait_is_a_share_of_the_time_a_core_was_wanted():
    before = process(1, 0.0, cpu_ns=0, wait_ns=0)
    assert derive("process", "wait_ratio", before, process(1, 0, cpu_ns=300, wait_ns=100)) == 0.25
    assert derive("process", "wait_ratio", before, before) is None
    assert derive("process", "blocked_ratio", None, process(1, 0.0, state="D")) == 1.0


def test_memory_ratio_needs_both_numbers():
    reading = GpuReading("GPU-0", 0, 1.0, memory_used_bytes=1, memory_total_bytes=4)
    assert derive("gpu", "memory_used_ratio", None, reading) == 0.25
    assert derive("gpu", "memory_used_ratio", None, gpu(1.0, memory_used_bytes=1)) is None
    assert (
        derive("gpu", "memory_used_ratio", None, gpu(1.0, memory_used_bytes=1, memory_total_bytes=0)) is None
    )


def test_a_core_at_100_percent_is_no_gap_for_a_rounding_error():
    before = HostReading(1.0, core_busy_s=(1000.1,), core_total_s=(1000.1,), core_ids=(0,))
    # the two differences, 0.78 each, differ in the eleventh digit
    now = HostReading(2.0, core_busy_s=(1000.88,), core_total_s=(1000.8799999999697,), core_ids=(0,))
    assert core_shares(before, now) == [1.0]
