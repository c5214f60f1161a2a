"""Faults: errors, delays, missing symbols, a card that is lost and comes back."""

import pynvml
import pytest


def test_an_error_holds_for_its_span_and_its_gpu(play) -> None:
    clock = play("gpus = 2 x rtx3090\n[gpu 1]\ntemp = 66 ; ERR:NO_PERMISSION@15..25\n").clock
    first, second = (pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(2))
    assert pynvml.nvmlDeviceGetTemperature(second, 0) == 66
    clock.advance(20)
    with pytest.raises(pynvml.NVMLError_NoPermission):
        pynvml.nvmlDeviceGetTemperature(second, 0)
    assert pynvml.nvmlDeviceGetTemperature(first, 0) > 0
    assert pynvml.nvmlDeviceGetPowerUsage(second) > 0
    clock.advance(10)
    assert pynvml.nvmlDeviceGetTemperature(second, 0) == 66


def test_a_lost_card_comes_back(play) -> None:
    clock = play("gpus = 2 x a100\n[gpu 1]\ndevice = ERR:GPU_IS_LOST@20..40\n").clock
    first, second = (pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(2))
    clock.advance(25)
    for call in (pynvml.nvmlDeviceGetTemperatureThreshold, pynvml.nvmlDeviceGetTemperature):
        with pytest.raises(pynvml.NVMLError_GpuIsLost):
            call(second, 0)
        assert call(first, 0) > 0
    with pytest.raises(pynvml.NVMLError_GpuIsLost):
        pynvml.nvmlDeviceGetHandleByIndex(1)
    clock.advance(20)
    again = pynvml.nvmlDeviceGetHandleByIndex(1)
    assert pynvml.nvmlDeviceGetUUID(again) == pynvml.nvmlDeviceGetUUID(second)
    assert pynvml.nvmlDeviceGetTemperature(again, 0) > 0


def test_a_delay_takes_time_on_the_clock(play) -> None:
    clock = play("gpus = rtx3090\npower = 300 ; delay=300ms@10..20\n").clock
    handle = pynvml.nvmlDeviceGetHandleByIndex(0)
    clock.advance(12)
    before = clock.monotonic_s()
    pynvml.nvmlDeviceGetPowerUsage(handle)
    assert clock.monotonic_s() - before == pytest.approx(0.3)
    pynvml.nvmlDeviceGetTemperature(handle, 0)
    assert clock.monotonic_s() - before == pytest.approx(0.3)


def test_a_hang_is_a_very_long_call(play) -> None:
    clock = play("gpus = rtx3090\ntemp = hang@5\n").clock
    handle = pynvml.nvmlDeviceGetHandleByIndex(0)
    clock.advance(6)
    before = clock.monotonic_s()
    pynvml.nvmlDeviceGetTemperature(handle, 0)
    assert clock.monotonic_s() - before > 600


def test_errors_by_chance_come_about_as_often_as_said(play) -> None:
    clock = play("gpus = rtx3090\ntemp = 70 ; ERR:UNKNOWN%20\n").clock
    handle = pynvml.nvmlDeviceGetHandleByIndex(0)
    failed = 0
    for _ in range(500):
        clock.advance(0.1)
        try:
            pynvml.nvmlDeviceGetTemperature(handle, 0)
        except pynvml.NVMLError_Unknown:
            failed += 1
    assert 60 < failed < 140


def test_call_faults_by_name_and_by_prefix(play) -> None:
    play(
        "gpus = rtx3090\ncall.nvmlDeviceGet* = ERR:TIMEOUT\ncall.nvmlDeviceGetFan* = ERR:UNKNOWN\n"
        "call.nvmlDeviceGetFanSpeed = ERR:IN_USE\ncall.nvmlDeviceGetHandleByIndex* = delay=0\n"
    )
    handle = pynvml.nvmlDeviceGetHandleByIndex(0)
    for call, code in (
        (lambda: pynvml.nvmlDeviceGetTemperature(handle, 0), pynvml.NVML_ERROR_TIMEOUT),
        (lambda: pynvml.nvmlDeviceGetFanSpeed_v2(handle, 0), pynvml.NVML_ERROR_UNKNOWN),
        (lambda: pynvml.nvmlDeviceGetFanSpeed(handle), 19),
    ):
        with pytest.raises(pynvml.NVMLError) as raised:
            call()
        assert raised.value.value == code


def test_a_missing_symbol_is_missing(play) -> None:
    play("gpus = rtx3090\ncall.nvmlDeviceGetComputeRunningProcesses_v3 = ERR:FUNCTION_NOT_FOUND\n")
    handle = pynvml.nvmlDeviceGetHandleByIndex(0)
    assert not hasattr(pynvml.nvmlLib, "nvmlDeviceGetComputeRunningProcesses_v3")
    with pytest.raises(pynvml.NVMLError_FunctionNotFound):
        pynvml.nvmlDeviceGetComputeRunningProcesses_v3(handle)
    assert pynvml.nvmlDeviceGetComputeRunningProcesses_v2(handle) == []


def test_an_old_driver_lacks_the_newer_symbols(play) -> None:
    play("gpus = rtx3090\ndriver = 525.60.13\n")
    handle = pynvml.nvmlDeviceGetHandleByIndex(0)
    with pytest.raises(pynvml.NVMLError_FunctionNotFound):
        pynvml.nvmlDeviceGetCurrentClocksEventReasons(handle)
    assert pynvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle) == 1


def test_symbols_that_do_not_exist(play) -> None:
    library = play("gpus = rtx3090\n").driver
    for name in ("nvmlDeviceGetNonsense", "nvmlFoo", "something"):
        assert not hasattr(library, name)


def test_what_is_not_played_says_so_and_nothing_can_be_set(play) -> None:
    play("gpus = rtx3090\n")
    handle = pynvml.nvmlDeviceGetHandleByIndex(0)
    with pytest.raises(pynvml.NVMLError_NotSupported):
        pynvml.nvmlDeviceGetBridgeChipInfo(handle)
    with pytest.raises(pynvml.NVMLError_NoPermission):
        pynvml.nvmlDeviceSetPersistenceMode(handle, 1)


def test_a_driver_that_does_not_start(play) -> None:
    play("gpus = rtx3090\ncall.nvmlInit* = ERR:LIB_RM_VERSION_MISMATCH\n", init=False)
    with pytest.raises(pynvml.NVMLError_LibRmVersionMismatch):
        pynvml.nvmlInit()


def test_words_for_codes_that_the_bindings_do_not_know(play) -> None:
    play("gpus = rtx3090\ntemp = ERR:IN_USE\n")
    handle = pynvml.nvmlDeviceGetHandleByIndex(0)
    with pytest.raises(pynvml.NVMLError) as raised:
        pynvml.nvmlDeviceGetTemperature(handle, 0)
    assert str(raised.value) == "In use by another client"


def test_no_gpus(play) -> None:
    play("gpus = none\n#host cores = 8\n")
    assert pynvml.nvmlDeviceGetCount() == 0
