"""The driver's states: each with a sentence, recovery by itself, host and other GPUs untouched."""

import builtins
import ctypes
import importlib
import sys

import pynvml
import pytest
from fake_nvml import Fail, FakeApi, FakeTree

from gpuwatch.model import DriverState, GpuState
from gpuwatch.sources.nvml import binding
from gpuwatch.sources.nvml.binding import BindingError, load_binding, load_library

VERSION = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  510.73.08  Wed May 18 20:34:19 UTC 2022\n"


def failing_init(rig, code, files=None):
    machine = rig(files=files)
    machine.api.system["nvmlInit"] = Fail(code)
    return machine


def sentences_are_whole(status):
    assert status.message.endswith(".")
    assert status.message[0].isupper()
    assert status.advice
    assert "Traceback" not in status.message


@pytest.mark.parametrize("code", [1, 4, 8, 9, 12, 17, 18, 20, 999, 4711])
def test_b001_any_failure_of_init_is_a_sentence_and_no_exception(rig, code):
    tick = failing_init(rig, code).tick()
    sentences_are_whole(tick.driver)
    assert tick.driver.state not in (DriverState.OK, DriverState.STARTING)
    assert (tick.gpus, tick.infos) == ((), ())


def test_b001_b007_without_a_library_it_says_what_was_tried(rig):
    machine = rig()
    machine.api.system["_LoadNvmlLibrary"] = Fail(12)
    tick = machine.tick()
    assert tick.driver.state is DriverState.NO_LIBRARY
    assert "libnvidia-ml.so.1" in tick.driver.message
    assert "demo" in tick.driver.advice


def test_no_library_beside_a_loaded_module_means_a_container_without_it(rig):
    machine = rig(files={"/proc/driver/nvidia/version": VERSION})
    machine.api.system["_LoadNvmlLibrary"] = Fail(12)
    status = machine.tick().driver
    assert "510.73.08" in status.message
    assert "container" in status.advice


def test_b002_usual_full_paths_are_tried_when_the_name_is_unknown(monkeypatch):
    tried = []

    def open_library(path):
        tried.append(path)
        if path != "/usr/lib64/libnvidia-ml.so.1":
            raise OSError("not here")
        return "library"

    monkeypatch.setattr(ctypes, "CDLL", open_library)
    monkeypatch.setattr(sys, "platform", "linux")
    api = FakeApi()
    api.system["_LoadNvmlLibrary"] = Fail(12)
    assert load_library(api, FakeTree()) == "/usr/lib64/libnvidia-ml.so.1"
    assert api.nvmlLib == "library"
    assert len(tried) > 1


def test_b002_the_path_that_worked_is_mentioned(rig, monkeypatch):
    machine = rig()
    monkeypatch.setattr("gpuwatch.sources.nvml.connection.load_library", lambda api, tree: "/odd/place.so")
    tick = machine.tick()
    assert tick.driver.state is DriverState.OK
    assert "/odd/place.so" in tick.driver.message
    assert tick.driver_info.library_path == "/odd/place.so"


def test_b002_the_kernel_modules_version_is_tried_as_a_file_name():
    tree = FakeTree({"/proc/driver/nvidia/version": VERSION})
    assert "/usr/lib64/libnvidia-ml.so.510.73.08" in binding.candidates(tree)


def test_b004_a_mismatch_names_both_versions(rig):
    files = {
        "/proc/driver/nvidia/version": VERSION,
        "/proc/self/maps": "7f00-7f01 r-xp 0 08:01 1  /usr/lib/libnvidia-ml.so.515.48.07\n",
    }
    status = failing_init(rig, 18, files).tick().driver
    assert status.state is DriverState.MISMATCH
    assert "510.73.08" in status.message
    assert "515.48.07" in status.message
    assert "eboot" in status.advice


def test_b005_a_mismatch_never_raises_and_is_retried(rig):
    machine = failing_init(rig, 18)
    machine.tick(3)
    machine.api.system["nvmlInit"] = None
    assert machine.tick(4).driver.state is DriverState.OK


def test_b008_blocked_by_the_system_under_wsl_and_a_failing_shutdown(rig):
    files = {"/proc/version": "Linux version 5.15.90.1-microsoft-standard-WSL2\n"}
    machine = failing_init(rig, 17, files)
    machine.api.system["nvmlShutdown"] = Fail(17)
    status = machine.tick().driver
    machine.source.close()
    assert "blocked by the operating system" in status.message
    assert "WSL" in status.advice


def test_b010_two_of_four_gpus_hidden_by_a_cgroup(rig):
    machine = rig(4)
    machine.api.system["nvmlDeviceGetHandleByIndex"] = lambda index: Fail(4) if index in (1, 3) else index
    states = [gpu.status.state for gpu in machine.tick().gpus]
    assert states == [GpuState.OK, GpuState.HIDDEN, GpuState.OK, GpuState.HIDDEN]
    hidden = machine.last.gpus[1]
    assert "hidden from this session" in hidden.status.message
    assert hidden.utilization_ratio is None


def test_b011_permission_belongs_to_a_field_not_to_the_gpu(rig):
    machine = rig()
    machine.api.field_errors[0] = {138: 4, 139: 4}
    gpu = machine.tick().gpus[0]
    assert gpu.status.state is GpuState.OK
    assert gpu.nvlink_tx_bytes is None
    assert "permission" in gpu.absent["nvlink_tx_bytes"]
    assert gpu.utilization_ratio == 0.75


def test_b013_a_card_is_listed_with_what_can_be_read(rig):
    machine = rig()
    keep = {
        "nvmlDeviceGetName",
        "nvmlDeviceGetUUID",
        "nvmlDeviceGetMemoryInfo",
        "nvmlDeviceGetTemperatureV",
        "nvmlDeviceGetPerformanceState",
    }
    machine.api.answers[0] = {name: answer for name, answer in machine.api.answers[0].items() if name in keep}
    machine.api.answers[0]["nvmlDeviceGetPerformanceState"] = 8
    gpu = machine.tick().gpus[0]
    assert (gpu.status.state, gpu.temperature_c, gpu.p_state) == (GpuState.OK, 61, 8)
    assert gpu.memory_used_bytes == 40 << 30
    assert gpu.utilization_ratio is None


@pytest.mark.parametrize("error", [SyntaxError("Missing parentheses"), ImportError("no"), TypeError("odd")])
def test_b014_any_exception_of_the_bindings_import_is_named(monkeypatch, error):
    def fail(name):
        raise error

    monkeypatch.setattr(importlib, "import_module", fail)
    with pytest.raises(BindingError, match=type(error).__name__):
        load_binding()


def test_b014_a_foreign_module_of_the_same_name_is_refused(monkeypatch):
    monkeypatch.setattr(importlib, "import_module", lambda name: builtins)
    with pytest.raises(BindingError, match="nvidia-ml-py"):
        load_binding()


def test_b014_a_broken_binding_is_a_driver_state(rig, monkeypatch):
    machine = rig()

    def fail():
        raise BindingError("the Python binding pynvml fails to import: SyntaxError: Missing parentheses")

    monkeypatch.setattr("gpuwatch.sources.nvml.connection.load_binding", fail)
    tick = machine.tick(3)
    assert tick.driver.state is DriverState.BINDING
    sentences_are_whole(tick.driver)


@pytest.mark.parametrize("name", [b"NVIDIA A\xc3\xa9", "NVIDIA Aé"])
def test_b014_names_as_bytes_and_as_text(rig, name):
    machine = rig()
    machine.api.answers[0]["nvmlDeviceGetName"] = name
    assert machine.tick().infos[0].name == "NVIDIA Aé"


@pytest.mark.parametrize(
    "answer", [b"\xf8\x01\x02", UnicodeDecodeError("utf-8", b"\xf8", 0, 1, "invalid start byte")]
)
def test_b055_an_unreadable_name_is_no_crash(rig, answer):
    machine = rig()
    machine.api.answers[0]["nvmlDeviceGetName"] = answer
    info = machine.tick().infos[0]
    assert info.name == "GPU 0 (name unreadable)"
    assert "driver" in info.absent["name"]


def test_control_characters_of_a_name_do_not_pass(rig):
    machine = rig()
    machine.api.answers[0]["nvmlDeviceGetName"] = "NVIDIA\x1b[2J"
    assert "\x1b" not in machine.tick().infos[0].name


def test_init_is_retried_with_growing_pauses(rig):
    machine = failing_init(rig, 9)
    moments = []
    for second in range(120):
        before = machine.api.count("nvmlInit")
        machine.tick()
        if machine.api.count("nvmlInit") > before:
            moments.append(second)
    assert moments == [0, 1, 3, 7, 15, 31, 61, 91]


def test_the_state_keeps_its_first_moment(rig):
    machine = failing_init(rig, 9)
    first = machine.tick().driver.since_s
    assert machine.tick(10).driver.since_s == first


@pytest.mark.parametrize("code", [1, 9, 18])
def test_a_dead_connection_is_opened_again(rig, code):
    machine = rig(2)
    machine.tick(2)
    for answers in machine.api.answers:
        answers["nvmlDeviceGetUtilizationRates"] = Fail(code)
    machine.api.system["nvmlInit"] = Fail(9)
    tick = machine.tick()
    assert tick.driver.state is not DriverState.OK
    assert [event.kind for event in machine.events] == ["driver-lost"]
    assert [gpu.status.state for gpu in tick.gpus] == [GpuState.NO_HANDLE] * 2
    assert machine.api.count("nvmlShutdown") == 1
    for answers in machine.api.answers:
        answers["nvmlDeviceGetUtilizationRates"] = Fail(3)
    machine.api.system["nvmlInit"] = None
    tick = machine.tick(4)
    assert tick.driver.state is DriverState.OK
    assert [event.kind for event in machine.events] == ["driver-back"]
    assert [gpu.status.state for gpu in tick.gpus] == [GpuState.OK] * 2


def test_b016_b017_all_calls_fail_after_a_day_and_access_returns_later(rig):
    machine = rig(2)
    whole = [dict(answers) for answers in machine.api.answers]
    machine.tick(2)
    for answers in machine.api.answers:
        answers.update({name: Fail(999) for name in answers})
    machine.api.system["nvmlInit"] = Fail(999)
    tick = machine.tick(6)
    assert tick.driver.state is DriverState.ERROR
    assert "999" in tick.driver.message
    machine.api.answers[:] = whole
    machine.tick(40)
    machine.api.system["nvmlInit"] = None
    tick = machine.tick(31)
    assert tick.driver.state is DriverState.OK
    assert [gpu.status.state for gpu in tick.gpus] == [GpuState.OK] * 2


def test_b026_no_gpu_is_a_state_to_wait_in(rig):
    machine = rig()
    machine.api.system["nvmlDeviceGetCount"] = 0
    tick = machine.tick(3)
    assert tick.driver.state is DriverState.NO_GPUS
    machine.api.system["nvmlDeviceGetCount"] = 1
    tick = machine.tick(6)
    assert tick.driver.state is DriverState.OK
    assert len(tick.gpus) == 1
    assert machine.api.count("nvmlInit") >= 2


def test_b026_a_gpu_added_later_becomes_a_new_one_by_its_uuid(rig):
    machine = rig(2)
    machine.api.system["nvmlDeviceGetCount"] = 1
    first = machine.tick(3)
    assert len(first.gpus) == 1
    machine.api.system["nvmlDeviceGetCount"] = 2
    tick = machine.tick(12)
    assert [gpu.uuid for gpu in tick.gpus] == ["GPU-00000000", "GPU-00000001"]
    assert [event.kind for event in machine.events] == ["gpu-added"]
    assert tick.generation > first.generation


def test_b026_a_gpu_that_takes_the_place_of_another_moves_it_on(rig):
    machine = rig(2)
    machine.api.system["nvmlDeviceGetCount"] = 1
    machine.api.system["nvmlDeviceGetHandleByIndex"] = lambda index: 1
    machine.tick(3)
    machine.api.system["nvmlDeviceGetCount"] = 2
    machine.api.system["nvmlDeviceGetHandleByIndex"] = lambda index: index
    tick = machine.tick(12)
    assert [gpu.uuid for gpu in tick.gpus] == ["GPU-00000000", "GPU-00000001"]
    assert [(event.kind, event.gpu) for event in machine.events] == [("gpu-added", "GPU-00000000")]


def test_gpus_of_the_first_listing_that_open_late_are_no_additions(rig):
    machine = rig(6)

    def slow(index):
        machine.time.advance(3)
        return index

    machine.api.system["nvmlDeviceGetHandleByIndex"] = slow
    assert len(machine.tick(8).gpus) == 6
    assert machine.events == []


def test_real_errors_of_the_binding_are_understood():
    from gpuwatch.sources.nvml import errors

    assert errors.code_of(pynvml.NVMLError(15)) == 15
    assert errors.code_of(pynvml.NVMLLibraryMismatchError("x")) == errors.FUNCTION_NOT_FOUND
    assert errors.code_of(TypeError("x")) == errors.UNREADABLE
    assert errors.text(4711) == "driver error 4711"
