"""A binding for tests: the functions of `pynvml`, answered from a table instead of a driver.

Each answer is a value, an NVML error code wrapped in `Fail`, or a callable of the call's arguments.
Errors and structures are those of the real binding.
"""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pynvml

from gpuwatch.sources.base import Clock


class Fail:
    """An answer that raises the binding's error for this return value."""

    def __init__(self, code: int) -> None:
        self.code = code


class Time:
    """A clock that moves only when told to. The wall clock may be set apart from it."""

    def __init__(self, start_s: float = 1000.0) -> None:
        self.now_s = start_s
        self.wall_offset_s = 1.7e9
        self.clock = Clock(lambda: self.now_s, lambda: self.now_s + self.wall_offset_s)

    def advance(self, seconds: float) -> None:
        self.now_s += seconds


class FakeTree:
    """Files by path; everything else does not exist."""

    def __init__(self, files: dict[str, str] | None = None) -> None:
        self.files = files or {}
        self.reads: list[str] = []

    def read(self, path: str) -> bytes:
        self.reads.append(path)
        if path not in self.files:
            raise FileNotFoundError(path)
        return self.files[path].encode()

    def list(self, path: str) -> list[str]:
        names = {name[len(path) + 1 :].split("/")[0] for name in self.files if name.startswith(path + "/")}
        if not names:
            raise FileNotFoundError(path)
        return sorted(names)

    def link(self, path: str) -> str:
        raise FileNotFoundError(path)

    def real(self, path: str) -> str:
        return path

    def usage(self, path: str) -> tuple[int, int]:
        raise FileNotFoundError(path)

    def affinity(self, pid: int) -> int:
        return 1

    def owner(self, path: str) -> int:
        return 0


def healthy(gpu: int) -> dict[str, Any]:
    """The answers of an ordinary data-centre card under load."""
    return {
        "nvmlDeviceGetName": "NVIDIA Test 9000",
        "nvmlDeviceGetUUID": f"GPU-0000000{gpu}",
        "nvmlDeviceGetPciInfo": SimpleNamespace(busId=f"00000000:{gpu + 1:02X}:00.0"),
        "nvmlDeviceGetBrand": 14,
        "nvmlDeviceGetArchitecture": 9,
        "nvmlDeviceGetCudaComputeCapability": (9, 0),
        "nvmlDeviceGetNumGpuCores": 16896,
        "nvmlDeviceGetMemoryInfo": SimpleNamespace(total=80 << 30, used=40 << 30, reserved=1 << 29),
        "nvmlDeviceGetPowerManagementDefaultLimit": 700_000,
        "nvmlDeviceGetPowerManagementLimitConstraints": [200_000, 700_000],
        "nvmlDeviceGetMaxClockInfo": 1980,
        "nvmlDeviceGetTemperatureThreshold": 90,
        "nvmlDeviceGetMaxPcieLinkGeneration": 5,
        "nvmlDeviceGetMaxPcieLinkWidth": 16,
        "nvmlDeviceGetGpuMaxPcieLinkGeneration": 5,
        "nvmlDeviceGetPersistenceMode": 1,
        "nvmlDeviceGetVirtualizationMode": 0,
        "nvmlDeviceGetMigMode": [0, 0],
        "nvmlDeviceGetNvLinkState": lambda link: 1 if link < 2 else Fail(2),
        "nvmlDeviceGetNumFans": 2,
        "nvmlGpmQueryDeviceSupport": SimpleNamespace(isSupportedDevice=0),
        "nvmlDeviceGetUtilizationRates": SimpleNamespace(gpu=75, memory=40),
        "nvmlDeviceGetPowerUsage": 450_250,
        "nvmlDeviceGetClockInfo": lambda kind: 1700 if kind == 1 else 2600,
        "nvmlDeviceGetPerformanceState": 0,
        "nvmlDeviceGetCurrentClocksEventReasons": 4,
        "nvmlDeviceGetTemperatureV": 61,
        "nvmlDeviceGetMarginTemperature": 26,
        "nvmlDeviceGetCurrPcieLinkGeneration": 5,
        "nvmlDeviceGetCurrPcieLinkWidth": 16,
        "nvmlDeviceGetEncoderUtilization": [0, 100_000],
        "nvmlDeviceGetDecoderUtilization": [12, 100_000],
        "nvmlDeviceGetEnforcedPowerLimit": 650_000,
        "nvmlDeviceGetFanSpeed_v2": lambda fan: 50 + fan,
        "nvmlDeviceGetTotalEccErrors": 0,
        "nvmlDeviceGetRemappedRows": (0, 0, 0, 0),
        "nvmlDeviceGetRetiredPagesPendingStatus": 0,
        "nvmlDeviceGetPcieReplayCounter": 3,
        "nvmlDeviceGetPowerSource": 0,
        "nvmlDeviceGetPcieThroughput": lambda direction: 1000 + direction,
        "nvmlDeviceGetComputeRunningProcesses_v3": [],
        "nvmlDeviceGetGraphicsRunningProcesses_v3": [],
        "nvmlDeviceGetMPSComputeRunningProcesses_v3": Fail(3),
        "nvmlDeviceGetProcessUtilization": Fail(6),
        "nvmlDeviceGetSupportedEventTypes": 0,
        "nvmlDeviceGetFieldValues": None,  # from `fields`
        "nvmlDeviceGetSamples": None,  # from `samples`
    }


#: field id: (value type, value), the ids of driver 580.82 and later
FIELDS: dict[int, tuple[int, float]] = {
    83: (3, 5_000_000),
    74: (3, 10**9),
    76: (3, 0),
    269: (3, 2 * 10**9),
    270: (3, 0),
    271: (3, 0),
    82: (1, 70),
    138: (3, 2048),
    139: (3, 4096),
    161: (3, 1),
    162: (3, 0),
    163: (3, 4),
    197: (3, 1 << 40),
    198: (3, 1 << 41),
    230: (1, 0),
}
_MEMBERS = {0: "dVal", 1: "uiVal", 2: "ulVal", 3: "ullVal", 4: "sllVal", 5: "siVal", 6: "usVal"}


class FakeApi:
    """Stands for the module `pynvml`. `answers[gpu][function]`, `system[function]`, `fields[gpu]`."""

    NVMLError = pynvml.NVMLError
    c_nvmlGpmMetricsGet_t = pynvml.c_nvmlGpmMetricsGet_t
    NVML_GPM_METRICS_GET_VERSION = 1

    def __init__(self, gpus: int = 1) -> None:
        self.answers = [healthy(gpu) for gpu in range(gpus)]
        self.fields = [dict(FIELDS) for _ in range(gpus)]
        self.field_errors: list[dict[int, int]] = [{} for _ in range(gpus)]
        self.samples: list[dict[int, list[tuple[int, int]]]] = [{1: [], 2: [], 0: []} for _ in range(gpus)]
        self.system: dict[str, Any] = {
            "nvmlInit": None,
            "nvmlShutdown": None,
            "nvmlDeviceGetCount": gpus,
            "nvmlSystemGetDriverVersion": "580.95.05",
            "nvmlSystemGetNVMLVersion": "13.580.95.05",
            "nvmlSystemGetCudaDriverVersion_v2": 13000,
            "nvmlDeviceGetHandleByIndex": lambda index: index,
            "_LoadNvmlLibrary": None,
        }
        self.calls: list[tuple[str, Any]] = []
        self.nvmlLib = object()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name in self.system:
            return self._function(name, lambda *arguments: self._resolve(self.system[name], arguments))
        if any(name in answers for answers in self.answers):
            return self._function(name, lambda gpu, *arguments: self._ask(name, gpu, arguments))
        raise AttributeError(name)

    def _function(self, name: str, body: Callable[..., Any]) -> Callable[..., Any]:
        def function(*arguments: Any) -> Any:
            self.calls.append((name, arguments[0] if arguments else None))
            return body(*arguments)

        function.__name__ = name
        return function

    def _ask(self, name: str, gpu: int, arguments: tuple[Any, ...]) -> Any:
        answer = self.answers[gpu].get(name, Fail(13))
        if answer is None and name == "nvmlDeviceGetFieldValues":
            return self._field_values(gpu, arguments[0])
        if answer is None and name == "nvmlDeviceGetSamples":
            return self._sample_values(gpu, *arguments)
        return self._resolve(answer, arguments)

    def _resolve(self, answer: Any, arguments: tuple[Any, ...]) -> Any:
        if callable(answer):
            takes_all = answer.__code__.co_flags & 0x04
            answer = answer(*(arguments if takes_all else arguments[: answer.__code__.co_argcount]))
        if isinstance(answer, Fail):
            raise pynvml.NVMLError(answer.code)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _field_values(self, gpu: int, wanted: list[Any]) -> Any:
        array = (pynvml.c_nvmlFieldValue_t * len(wanted))()
        for place, identity in enumerate(wanted):
            number = identity[0] if isinstance(identity, tuple) else identity
            code = self.field_errors[gpu].get(number, 0 if number in self.fields[gpu] else 3)
            array[place].nvmlReturn = code
            if code == 0:
                kind, value = self.fields[gpu][number]
                array[place].valueType = kind
                setattr(array[place].value, _MEMBERS.get(kind, "ullVal"), value)
        return array

    def _sample_values(self, gpu: int, kind: int, last_us: int) -> Any:
        """Everything after `last_us`, as (value type, samples); NotFound when there is nothing."""
        found = []
        for stamp, value in self.samples[gpu][kind]:
            if stamp > last_us:
                sample = pynvml.c_nvmlSample_t()
                sample.timeStamp = stamp
                sample.sampleValue.uiVal = value
                found.append(sample)
        if not found:
            raise pynvml.NVMLError(6)
        return (1, found)

    def count(self, name: str, gpu: int | None = None) -> int:
        return sum(call == name and (gpu is None or first == gpu) for call, first in self.calls)
