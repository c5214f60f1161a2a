"""Driver calls that do not return: real threads, a clock moved by hand, no waiting."""

import threading
import time
from collections.abc import Iterator

import pytest
from fake_nvml import FakeApi, FakeTree, Time

from gpuwatch.model import DriverState, GpuState
from gpuwatch.sources.nvml import NvmlSource, collector, connection
from gpuwatch.sources.nvml.slot import Slot

GUARD_S = 10.0  # only against hanging tests


class HangRig:
    def __init__(self, api: FakeApi) -> None:
        self.api = api
        self.time = Time()
        self.source = NvmlSource(self.time.clock, FakeTree())
        self.gate = threading.Event()  # set: hanging calls return
        self.inside = threading.Event()  # set: a call hangs

    def hang(self, *_arguments):
        self.inside.set()
        self.gate.wait(GUARD_S)
        return 61

    def polling_threads(self) -> list[threading.Thread]:
        return [thread for thread in threading.enumerate() if thread.name == "gpuwatch-nvml"]


@pytest.fixture
def rig(monkeypatch: pytest.MonkeyPatch) -> Iterator[HangRig]:
    api = FakeApi(2)
    monkeypatch.setattr(connection, "load_binding", lambda: api)
    rig = HangRig(api)
    before = set(rig.polling_threads())
    rig.source.start()
    yield rig
    rig.gate.set()
    rig.source.close()
    for thread in set(rig.polling_threads()) - before:
        thread.join(GUARD_S)
        assert not thread.is_alive()


def hang_gpu_0(rig: HangRig) -> None:
    rig.source.tick(0, GUARD_S)
    rig.api.answers[0]["nvmlDeviceGetTemperatureV"] = rig.hang
    rig.time.advance(1)
    rig.source.tick(0, 0.0)
    assert rig.inside.wait(GUARD_S)


def test_b028_a_hanging_card_is_not_answering_and_the_other_goes_on(rig):
    hang_gpu_0(rig)
    rig.time.advance(3)
    tick = rig.source.tick(0, GUARD_S)
    stuck, other = tick.gpus
    assert stuck.status.state is GpuState.NOT_ANSWERING
    assert stuck.status.message == "no answer to nvmlDeviceGetTemperatureV for 3 s"
    assert other.status.state is GpuState.OK
    assert other.read_s == rig.time.now_s
    assert stuck.read_s < other.read_s
    rig.time.advance(9)
    tick = rig.source.tick(0, GUARD_S)
    assert tick.gpus[0].status.message.endswith("for 12 s")
    assert tick.gpus[1].read_s == rig.time.now_s


def test_b028_one_lost_thread_per_gpu_and_it_comes_back_when_the_call_returns(rig):
    hang_gpu_0(rig)
    for _ in range(5):
        rig.time.advance(3)
        rig.source.tick(0, GUARD_S)
    assert len(rig.polling_threads()) == 2
    stuck_thread = rig.polling_threads()[0]
    rig.api.answers[0]["nvmlDeviceGetTemperatureV"] = 55
    rig.gate.set()
    stuck_thread.join(GUARD_S)
    rig.time.advance(1)
    tick = rig.source.tick(0, GUARD_S)
    assert tick.gpus[0].status.state is GpuState.OK
    assert tick.gpus[0].temperature_c == 55
    assert tick.gpus[0].read_s == rig.time.now_s
    assert len(rig.polling_threads()) == 1


def test_a_card_that_hangs_again_and_again_is_asked_after_growing_pauses():
    time = Time()
    slot = Slot(0, time.now_s)
    pauses = []
    for _ in range(6):
        slot.stuck = ("nvmlDeviceGetTemperatureV", time.now_s)
        time.advance(3)
        slot.unstick(time.now_s)
        pauses.append(slot.due_in_s(time.now_s))
        assert slot.status.state is GpuState.NOT_ANSWERING
        assert "only after 3 s" in slot.status.message
    assert pauses == [0, 2, 4, 8, 10, 10]


def test_a_short_block_is_no_state(rig):
    hang_gpu_0(rig)
    rig.time.advance(1.5)
    assert rig.source.tick(0, 0.0).gpus[0].status.state is GpuState.OK


def test_a_tick_waits_no_longer_than_asked(rig):
    hang_gpu_0(rig)
    began = time.monotonic()
    rig.source.tick(0, 0.05)
    assert time.monotonic() - began < 1.0


def test_a_card_that_hangs_while_it_is_opened_is_listed_and_the_next_one_opens(rig):
    rig.api.system["nvmlDeviceGetHandleByIndex"] = lambda index: index if index else rig.hang() or 0
    rig.source.tick(0, 0.0)
    assert rig.inside.wait(GUARD_S)
    rig.time.advance(16)
    tick = rig.source.tick(0, GUARD_S)
    assert [gpu.status.state for gpu in tick.gpus] == [GpuState.NOT_ANSWERING, GpuState.OK]
    assert [info.name for info in tick.infos] == ["GPU 0", "NVIDIA Test 9000"]
    assert tick.gpus[0].utilization_ratio is None


def test_init_that_hangs_is_a_driver_state(rig):
    rig.source.tick(0, GUARD_S)
    rig.api.system["nvmlDeviceGetCount"] = rig.hang
    rig.time.advance(11)
    rig.source.tick(0, 0.0)
    assert rig.inside.wait(GUARD_S)
    rig.time.advance(5)
    tick = rig.source.tick(0, 0.0)
    assert tick.driver.state is DriverState.NOT_ANSWERING
    assert "nvmlDeviceGetCount for 5 s" in tick.driver.message
    assert len(tick.gpus) == 2


def test_close_returns_while_a_call_hangs(rig):
    hang_gpu_0(rig)
    began = time.monotonic()
    rig.source.close()
    assert time.monotonic() - began < 0.5


def test_close_shuts_the_driver_down(rig):
    rig.source.tick(0, GUARD_S)
    rig.source.close()
    assert rig.api.count("nvmlShutdown") == 1


def test_an_old_reading_carries_no_bursts_a_second_time(rig):
    now_us = int(rig.time.clock.wall_s() * 1e6)
    rig.api.samples[0][1] = [(now_us - 300_000, 50)]
    assert len(rig.source.tick(0, GUARD_S).gpus[0].utilization_burst.values) == 1
    rig.api.answers[0]["nvmlDeviceGetUtilizationRates"] = rig.hang
    again = rig.source.tick(0, 0.0).gpus[0]
    assert again.utilization_burst.values == ()


def test_a_slow_card_is_asked_less_often_and_says_so(rig):
    rig.source.tick(0, GUARD_S)

    def slow():
        rig.time.advance(1.5)
        return 61

    rig.api.answers[1]["nvmlDeviceGetTemperatureV"] = slow
    rig.time.advance(1)
    tick = rig.source.tick(0, GUARD_S)
    assert tick.gpus[1].status.state is GpuState.OK
    assert "answers slowly: 1.5 s" in tick.gpus[1].status.message
    before = rig.api.count("nvmlDeviceGetTemperatureV", 1)
    for _ in range(4):
        rig.time.advance(1)
        tick = rig.source.tick(0, GUARD_S)
    assert rig.api.count("nvmlDeviceGetTemperatureV", 1) == before
    assert tick.gpus[0].read_s == rig.time.now_s


def test_a_mistake_of_our_own_is_a_sentence_and_the_thread_lives_on(rig, monkeypatch):
    rig.source.tick(0, GUARD_S)

    def broken(self, caller, now_s):
        raise ZeroDivisionError("division by zero")

    with monkeypatch.context() as patch:
        patch.setattr(collector.Collector, "_run", broken)
        rig.time.advance(1)
        tick = rig.source.tick(0, GUARD_S)
        assert tick.driver.state is DriverState.ERROR
        assert "ZeroDivisionError" in tick.driver.message
    rig.time.advance(1)
    assert rig.source.tick(0, GUARD_S).gpus[0].read_s == rig.time.now_s
