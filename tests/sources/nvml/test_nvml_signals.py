"""The single signals with a life of their own: sample rings, throttle time, PCIe bytes, GPM, Xid."""

import ctypes
import itertools
from collections import deque
from types import SimpleNamespace

import pynvml
import pytest
from fake_nvml import Fail, Time
from hypothesis import given
from hypothesis import strategies as st

from gpuwatch.model.link import link_bytes_per_s
from gpuwatch.sources.nvml import gpm, xid
from gpuwatch.sources.nvml.builder import Builder
from gpuwatch.sources.nvml.bursts import UTILIZATION, SampleRing
from gpuwatch.sources.nvml.caller import Caller, Retired
from gpuwatch.sources.nvml.throttle import TimeUnits

# -- sample rings ---------------------------------------------------------------------------------


def add_samples(machine, *points):
    """(seconds before now, percent) of GPU 0's utilization ring."""
    now = machine.time.clock.wall_s()
    machine.api.samples[0][1] += [(int((now - age) * 1e6), value) for age, value in points]


def test_points_arrive_sorted_once_and_in_monotonic_time(rig):
    machine = rig()
    add_samples(machine, (0.1, 30), (0.5, 10), (0.3, 20))
    burst = machine.tick().gpus[0].utilization_burst
    assert burst.values == (0.1, 0.2, 0.3)
    assert burst.times_s == pytest.approx((999.5, 999.7, 999.9), abs=1e-3)
    assert machine.tick().gpus[0].utilization_burst.values == ()
    add_samples(machine, (0.2, 40))
    assert machine.tick().gpus[0].utilization_burst.values == (0.4,)


def test_nothing_new_is_neither_an_error_nor_zero(rig):
    gpu = rig().tick(3).gpus[0]
    assert gpu.utilization_burst.values == ()
    assert gpu.failed_calls == 0


def test_unsupported_rings_are_asked_once(rig):
    machine = rig()
    machine.api.answers[0]["nvmlDeviceGetSamples"] = Fail(3)
    machine.tick(3)
    assert machine.api.count("nvmlDeviceGetSamples") == 2


def test_long_past_points_are_left_out_at_the_start(rig):
    machine = rig()
    add_samples(machine, (300, 99), (1, 50))
    assert machine.tick().gpus[0].utilization_burst.values == (0.5,)


@pytest.mark.parametrize("step_s", [-3600.0, 86400.0 * 365])
def test_b110_a_clock_that_was_set_voids_old_stamps_only(rig, step_s):
    machine = rig()
    add_samples(machine, (0.1, 30))
    machine.tick()
    machine.time.wall_offset_s += step_s
    add_samples(machine, (0.1, 40))
    machine.tick()
    add_samples(machine, (0.1, 50))
    burst = machine.tick().gpus[0].utilization_burst
    assert burst.values == (0.5,)
    assert burst.times_s[0] == pytest.approx(machine.time.now_s - 1.1, abs=1e-3)


def test_draining_between_ticks_loses_nothing(rig):
    machine = rig(interval_s=30.0)
    machine.tick()
    for value in (10, 20, 30):
        machine.time.advance(5)
        add_samples(machine, (0.1, value))
        machine.source.drain()
        machine.api.samples[0][1].clear()  # the ring moved on
    assert machine.tick().gpus[0].utilization_burst.values == (0.1, 0.2, 0.3)


def test_the_power_ring_is_read_only_without_an_energy_counter(rig):
    machine = rig()
    now_us = int(machine.time.clock.wall_s() * 1e6)
    machine.api.samples[0][0] = [(now_us - 20_000, 300_500)]
    assert machine.tick().gpus[0].power_burst.values == ()
    machine = rig()
    del machine.api.fields[0][83]
    machine.api.samples[0][0] = [(now_us - 20_000, 300_500)]
    assert machine.tick().gpus[0].power_burst.values == (300.5,)


@given(st.lists(st.tuples(st.integers(0, 19_000_000), st.integers(0, 200)), max_size=40))
def test_a_ring_in_any_order_gives_rising_times_and_true_values(points):
    time = Time()
    now_us = int(time.clock.wall_s() * 1e6)
    samples = []
    for age_us, value in points:
        sample = pynvml.c_nvmlSample_t()
        sample.timeStamp = now_us - age_us
        sample.sampleValue.uiVal = value
        samples.append(sample)
    ring = SampleRing(UTILIZATION, "utilization_ratio", 100)
    ring.drain(lambda *_: (1, samples), Caller(time.clock.monotonic_s), time.now_s, time.clock.wall_s())
    burst = ring.take()
    assert list(burst.times_s) == sorted(set(burst.times_s))
    assert all(0 <= value <= 1 for value in burst.values)
    assert len(burst.values) + ring.rejected == len({age for age, _ in points})


# -- throttle time --------------------------------------------------------------------------------


def run_units(units: TimeUnits, per_second: float, ticks: int, reasons: int = 4) -> list[int | None]:
    seen: list[int | None] = []
    for tick in range(ticks):
        out = Builder()
        out.values["event_reasons"] = reasons
        out.values["power_cap_time_ns"] = 5_000_000 + int(per_second * tick)
        units.apply(out, float(tick))
        value = out.values.get("power_cap_time_ns")
        seen.append(value if isinstance(value, int) else None)
    return seen


def test_nanoseconds_stay_nanoseconds():
    assert run_units(TimeUnits(), 1e9, 20) == [5_000_000 + 10**9 * tick for tick in range(20)]


def test_microseconds_are_found_out_and_leave_one_gap():
    seen = run_units(TimeUnits(), 1e6, 20)
    gap = seen.index(None)
    assert gap == 5
    assert seen[gap + 1 :] == [(5_000_000 + 10**6 * tick) * 1000 for tick in range(gap + 1, 20)]


def test_a_counter_that_stands_still_teaches_nothing():
    assert run_units(TimeUnits(), 0, 30) == [5_000_000] * 30


def test_without_the_reason_bit_nothing_is_learned():
    assert None not in run_units(TimeUnits(), 1e6, 30, reasons=0)


# -- PCIe bytes -----------------------------------------------------------------------------------


def set_counters(machine, tx, rx):
    machine.api.fields[0] |= {197: (3, tx), 198: (3, rx)}


def test_a_counter_above_4_gib_is_64_bits_wide(rig):
    gpu = rig().tick().gpus[0]
    assert (gpu.pcie_counter_bits, gpu.pcie_rx_bytes) == (64, 1 << 41)
    assert gpu.pcie_rx_bytes_per_s is None


def test_a_small_counter_on_a_fast_link_is_not_believed(rig):
    machine = rig()
    set_counters(machine, 1000, 2000)
    gpu = machine.tick().gpus[0]
    assert (gpu.pcie_counter_bits, gpu.pcie_rx_bytes) == (None, None)
    assert "wrap" in gpu.absent["pcie_rx_bytes"]
    set_counters(machine, 1000, 1 << 33)
    gpu = machine.tick().gpus[0]
    assert (gpu.pcie_counter_bits, gpu.pcie_tx_bytes, gpu.pcie_rx_bytes) == (64, 1000, 1 << 33)


def test_a_small_counter_on_a_link_that_cannot_wrap_it_is_used(rig):
    machine = rig()
    set_counters(machine, 1000, 2000)
    machine.api.answers[0] |= {"nvmlDeviceGetMaxPcieLinkGeneration": 3, "nvmlDeviceGetMaxPcieLinkWidth": 1}
    gpu = machine.tick(2).gpus[0]
    assert (gpu.pcie_counter_bits, gpu.pcie_rx_bytes) == (32, 2000)
    machine.time.advance(5)  # a late tick: now it could have wrapped
    assert machine.tick().gpus[0].pcie_rx_bytes is None


def test_the_20_ms_call_is_one_gpu_and_one_direction_at_a_time(rig):
    machine = rig(4)
    for gpu in range(4):
        for field in (197, 198):
            del machine.api.fields[gpu][field]
    moments = []
    for tick in range(32):
        before = machine.api.count("nvmlDeviceGetPcieThroughput")
        machine.tick()
        if now := machine.api.count("nvmlDeviceGetPcieThroughput") - before:
            assert now == 1
            moments.append(tick)
    assert len(moments) == 16
    assert all(later - earlier >= 2 for earlier, later in itertools.pairwise(moments))
    asked = {first for name, first in machine.api.calls if name == "nvmlDeviceGetPcieThroughput"}
    assert asked == {0, 1, 2, 3}


def test_the_gauge_belongs_to_one_reading_and_is_in_bytes(rig):
    machine = rig()
    for field in (197, 198):
        del machine.api.fields[0][field]
    seen = [machine.tick().gpus[0] for _ in range(9)]
    rx = [gpu.pcie_rx_bytes_per_s for gpu in seen]
    tx = [gpu.pcie_tx_bytes_per_s for gpu in seen]
    assert set(rx) == {None, 1_001_000.0}
    assert set(tx) == {None, 1_000_000.0}
    assert rx.count(None) >= 6
    assert all(gpu.absent["pcie_rx_bytes_per_s"] for gpu in seen if gpu.pcie_rx_bytes_per_s is None)


def test_without_counter_gpm_and_call_the_reason_remains(rig):
    machine = rig()
    for field in (197, 198):
        del machine.api.fields[0][field]
    machine.api.answers[0]["nvmlDeviceGetPcieThroughput"] = Fail(3)
    gpu = machine.tick(8).gpus[0]
    assert gpu.absent["pcie_rx_bytes_per_s"] == "not supported by this GPU"
    assert machine.api.count("nvmlDeviceGetPcieThroughput") == 2


def test_link_rates():
    assert link_bytes_per_s(4, 16) == pytest.approx(31.5e9, rel=0.01)
    assert link_bytes_per_s(None, 16) is None
    assert link_bytes_per_s(99, 16) is None


# -- GPM ------------------------------------------------------------------------------------------


def with_gpm(machine, values):
    """GPM answers from `values` (metric id: number, Fail code or NaN)."""
    machine.api.answers[0]["nvmlGpmQueryDeviceSupport"] = SimpleNamespace(isSupportedDevice=1)

    def metrics(request):
        for place in range(request.numMetrics):
            answer = values.get(request.metrics[place].metricId, Fail(3))
            if isinstance(answer, Fail):
                request.metrics[place].nvmlReturn = answer.code
            else:
                request.metrics[place].nvmlReturn = 0
                request.metrics[place].value = answer
        return request

    allocated = []

    def allocate():
        allocated.append(len(allocated))
        return ctypes.cast(len(allocated), ctypes.c_void_p)

    machine.api.system |= {
        "nvmlGpmSampleAlloc": lambda: ctypes.cast(1 + len(allocated), pynvml.c_nvmlGpmSample_t),
        "nvmlGpmSampleFree": None,
        "nvmlGpmMetricsGet": metrics,
    }
    machine.api.answers[0]["nvmlGpmSampleGet"] = 0
    return machine


def test_gpm_needs_two_samples_and_gives_ratios(rig):
    machine = with_gpm(rig(), {2: 62.5, 3: 40.0, 5: 12.0, 10: 33.0, 20: 2.0, 21: 5.0})
    gpu = machine.tick().gpus[0]
    assert gpu.sm_active_ratio is None
    assert "two readings" in gpu.absent["sm_active_ratio"]
    gpu = machine.tick().gpus[0]
    assert (gpu.sm_active_ratio, gpu.sm_occupancy_ratio) == (0.625, 0.4)
    assert (gpu.tensor_ratio, gpu.dram_ratio) == pytest.approx((0.12, 0.33))
    assert gpu.fp64_ratio is None
    assert gpu.absent["fp64_ratio"]


def test_gpm_gives_pcie_rates_where_the_counter_cannot(rig):
    machine = with_gpm(rig(), {2: 50.0, 20: 2.0, 21: 5.0})
    set_counters(machine, 10, 20)
    gpu = machine.tick(2).gpus[0]
    assert (gpu.pcie_tx_bytes_per_s, gpu.pcie_rx_bytes_per_s) == (2 << 20, 5 << 20)
    machine.tick(4)
    assert machine.api.count("nvmlDeviceGetPcieThroughput") <= 1  # only before GPM had two samples


def test_gpm_not_a_number_is_no_value(rig):
    gpu = with_gpm(rig(), {2: float("nan"), 5: float("inf"), 3: 10.0}).tick(2).gpus[0]
    assert (gpu.sm_active_ratio, gpu.tensor_ratio, gpu.sm_occupancy_ratio) == (None, None, 0.1)
    assert gpu.rejected_count == 0


def test_gpm_without_permission_is_asked_once(rig):
    machine = with_gpm(rig(), {2: 50.0})
    machine.api.answers[0]["nvmlGpmSampleGet"] = Fail(4)
    gpu = machine.tick(5).gpus[0]
    assert "permission" in gpu.absent["sm_active_ratio"]
    assert machine.api.count("nvmlGpmSampleGet") == 1


def test_gpm_samples_are_freed_before_the_shutdown(rig):
    machine = with_gpm(rig(), {2: 50.0})
    machine.tick(2)
    machine.source.close()
    names = [name for name, _ in machine.api.calls]
    assert names.count("nvmlGpmSampleFree") == 2
    assert names.index("nvmlGpmSampleFree") < names.index("nvmlShutdown")


def test_gpm_readings_closer_than_100_ms_are_not_made():
    class Api:
        c_nvmlGpmMetricsGet_t = pynvml.c_nvmlGpmMetricsGet_t
        NVML_GPM_METRICS_GET_VERSION = 1
        taken = 0

        def nvmlGpmSampleAlloc(self):
            return pynvml.c_nvmlGpmSample_t()

        def nvmlGpmSampleGet(self, handle, sample):
            self.taken += 1

        def nvmlGpmMetricsGet(self, request):
            return request

    api = Api()
    pair = gpm.GpmPair(api, 0, (2,))
    caller = Caller(lambda: 0.0)
    for now in (0.0, 0.05, 0.1, 0.2, 0.25):
        pair.read(caller, now)
    assert api.taken == 2


# -- Xid ------------------------------------------------------------------------------------------


def test_xid_events_have_words_and_their_gpu():
    handle = ctypes.cast(4096, pynvml.c_nvmlDevice_t)
    queue = [SimpleNamespace(device=handle, eventType=8, eventData=79)]

    class Api:
        def nvmlDeviceGetSupportedEventTypes(self, handle):
            return 0x1F

        def nvmlEventSetCreate(self):
            return "set"

        def nvmlDeviceRegisterEvents(self, handle, types, event_set):
            assert types == 8

        def nvmlEventSetWait_v2(self, event_set, wait_ms):
            assert wait_ms == 0
            if not queue:
                raise pynvml.NVMLError(10)
            return queue.pop()

        def nvmlEventSetFree(self, event_set):
            raise pynvml.NVMLError(1)

    events = deque()
    watch = xid.XidWatch(Api(), Time().clock, events, threaded=False)
    watch.watch([("GPU-x", handle)], Caller(lambda: 0.0))
    watch.poll()
    watch.poll()
    assert watch.close(0.0)
    (event,) = events
    assert (event.kind, event.code, event.gpu) == ("xid", 79, "GPU-x")
    assert "fell off the bus" in event.message


def test_no_events_here_is_no_error(rig):
    machine = rig()
    machine.api.answers[0]["nvmlDeviceGetSupportedEventTypes"] = Fail(3)
    machine.tick(2)
    assert machine.events == []


def test_unknown_xid_codes_point_to_the_catalogue():
    assert "catalogue" in xid.words(9999)


# -- the door to the driver -----------------------------------------------------------------------


def test_a_retired_caller_makes_no_further_call():
    caller = Caller(lambda: 0.0)
    caller.retired = True
    with pytest.raises(Retired):
        caller.call(lambda: 1)
    assert caller.calls == 0


def test_a_caller_retired_during_its_call_raises_when_it_returns():
    caller = Caller(lambda: 0.0)

    def answer():
        caller.retired = True
        return 1

    with pytest.raises(Retired):
        caller.call(answer)
