"""The source on the real bindings, with the simulated driver behind them, in simulated time."""

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from gpuwatch.model import DriverState, GpuState
from gpuwatch.sources.nvml import InlineNvml, NvmlTick
from gpuwatch.sources.simulated import ManualClock, load, simulated


class Play:
    def __init__(self, stack: ExitStack, text: str) -> None:
        self.clock = ManualClock()
        _, tree = stack.enter_context(simulated(load(text), self.clock))
        self.source = InlineNvml(self.clock.clock(), tree)
        stack.callback(self.source.close)
        self.events = []

    def run(self, seconds: float, interval_s: float = 1.0) -> list[NvmlTick]:
        ticks = []
        for _ in range(round(seconds / interval_s)):
            ticks.append(self.source.tick(self.clock.monotonic_s(), 0.0))
            self.events += ticks[-1].events
            self.clock.advance(interval_s)
        return ticks


@pytest.fixture
def play() -> Iterator[Callable[[str], Play]]:
    with ExitStack() as stack:
        yield lambda text: Play(stack, text)


def test_a_steady_card_reads_as_the_scenario_says(play):
    ticks = play("gpus = rtx3090\nutil = 80\npower = 300\ntemp = 70\nmem_used = 12Gi").run(5)
    gpu = ticks[-1].gpus[0]
    assert gpu.status.state is GpuState.OK
    assert gpu.utilization_ratio == pytest.approx(0.8, abs=0.01)
    assert gpu.power_w == pytest.approx(300, rel=0.02)
    assert gpu.temperature_c == pytest.approx(70, abs=1)
    assert gpu.memory_used_bytes == 12 << 30
    energy = [tick.gpus[0].energy_j for tick in ticks]
    assert (energy[-1] - energy[-3]) / 2 == pytest.approx(300, rel=0.03)


def test_sub_second_points_are_stitched_without_gap_or_double(play):
    ticks = play("gpus = rtx3090\nutil = square(low=0, high=100, period=2, duty=0.5)").run(20)
    times = [time for tick in ticks[1:] for time in tick.gpus[0].utilization_burst.times_s]
    values = [value for tick in ticks[1:] for value in tick.gpus[0].utilization_burst.values]
    steps = [later - earlier for earlier, later in itertools.pairwise(times)]
    assert len(times) == pytest.approx(19 * 6, abs=3)
    assert max(steps) < 0.2
    assert min(steps) > 0.1
    assert sum(values) / len(values) == pytest.approx(0.5, abs=0.03)


def test_16_gpus(play):
    tick = play("gpus = 16 x h100-sxm\nutil = 90").run(3)[-1]
    assert len({gpu.uuid for gpu in tick.gpus}) == 16
    assert all(gpu.sm_active_ratio is not None for gpu in tick.gpus)
    assert all(not gpu.failed_calls for gpu in tick.gpus)


def test_b020_one_of_two_is_lost_and_comes_back(play):
    scene = play("gpus = 2 x rtx3090\nutil = 90\n[gpu 1]\ndevice = ERR:GPU_IS_LOST@20..40")
    ticks = scene.run(60)
    states = [tick.gpus[1].status.state for tick in ticks]
    assert states[19] is GpuState.OK
    assert states[21:39] == [GpuState.LOST] * 18
    assert states[52] is GpuState.OK
    assert [event.kind for event in scene.events] == ["gpu-lost", "gpu-back"]
    assert all(tick.gpus[0].status.state is GpuState.OK for tick in ticks)
    assert len({tick.gpus[1].uuid for tick in ticks}) == 1


def test_no_driver_is_a_state_and_ends(play):
    scene = play("gpus = rtx3090\ncall.nvmlInit* = ERR:DRIVER_NOT_LOADED@0..10")
    ticks = scene.run(20)
    assert ticks[0].driver.state is DriverState.NOT_LOADED
    assert ticks[-1].driver.state is DriverState.OK
    assert len(ticks[-1].gpus) == 1


def test_narrow_counters_are_not_used_on_a_wide_link(play):
    ticks = play("gpus = rtx3090\npcie_counter_bits = 32\npcie_rx = 8G\npcie_tx = 1G").run(10)
    assert all(tick.gpus[0].pcie_rx_bytes is None for tick in ticks)
    rates = [tick.gpus[0].pcie_rx_bytes_per_s for tick in ticks]
    known = [rate for rate in rates if rate is not None]
    assert known == pytest.approx([8e9] * len(known), rel=0.05)
    assert 1 <= len(known) <= 3


def test_wide_counters_give_the_scenarios_rate(play):
    ticks = play("gpus = rtx3090\npcie_rx = 8G\npcie_tx = 1G").run(10)
    first, last = ticks[-4].gpus[0], ticks[-1].gpus[0]
    assert last.pcie_counter_bits == 64
    assert (last.pcie_rx_bytes - first.pcie_rx_bytes) / 3 == pytest.approx(8e9, rel=0.05)


@pytest.mark.parametrize("driver", ["535.104.05", "575.57.08", "580.65.06", "580.95.05", "610.57"])
def test_thermal_throttle_time_is_counted_on_every_driver(play, driver):
    ticks = play(f"driver = {driver}\ngpus = rtx3090\nutil = 99\nthrottle = sw_thermal").run(6)
    first, last = ticks[-3].gpus[0], ticks[-1].gpus[0]
    assert (last.sw_thermal_time_ns - first.sw_thermal_time_ns) / 2e9 == pytest.approx(1.0, abs=0.05)


def test_mig_unified_memory_and_laptop(play):
    gpu = play("gpus = a100-sxm4-80gb\nmig = 3g.40gb, 2g.20gb\nutil = 70").run(2)[-1].gpus[0]
    assert [one.profile for one in gpu.mig] == ["3g.40gb", "2g.20gb"]
    assert gpu.utilization_ratio is None


def test_unified_memory(play):
    tick = play("gpus = gb10\nutil = 90").run(2)[-1]
    assert tick.infos[0].unified_memory
    assert tick.gpus[0].memory_total_bytes is None


def test_a_transient_error_now_and_then_leaves_gaps_only(play):
    ticks = play("gpus = rtx3090\nutil = 80\ntemp = 70 ; ERR:UNKNOWN%30").run(60)
    temperatures = [tick.gpus[0].temperature_c for tick in ticks]
    assert 5 < temperatures.count(None) < 35
    assert {value for value in temperatures if value is not None} == {70}
    assert all(tick.gpus[0].absent["temperature_c"] for tick in ticks if tick.gpus[0].temperature_c is None)


def test_xid_events(play):
    scene = play("gpus = 2 x a100-sxm4-80gb\n[gpu 1]\nxid = 3:63, 6:79")
    uuid = scene.run(10)[-1].gpus[1].uuid
    assert [(event.code, event.gpu) for event in scene.events] == [(63, uuid), (79, uuid)]


def test_nvlink_errors_and_pairs_through_the_real_bindings(play):
    ticks = play("gpus = 2 x h100\nutil = 50").run(3)
    info, other = ticks[-1].infos
    assert info.peer_access == {other.uuid: "ok"}
    assert info.peer_path[other.uuid] in ("node", "system", "host bridge")
    assert ticks[-1].gpus[0].nvlink_error_count == 0
