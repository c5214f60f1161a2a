"""The field batch: one nvmlDeviceGetFieldValues call for all counters of a GPU.

Field ids are nvml.h's NVML_FI_DEV_*. Those of accumulated throttle time were renumbered between
580.65 and 580.82, so they follow the driver's version (the other numbering means power smoothing).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gpuwatch.sources.nvml import errors
from gpuwatch.sources.nvml.builder import Builder
from gpuwatch.sources.nvml.caller import Caller
from gpuwatch.sources.nvml.poller import Poller, judge
from gpuwatch.sources.nvml.signals import Ask

ENERGY = 83  # mJ since driver load
POWER_CAP_TIME, THERMAL_TIME, SYNC_BOOST_TIME = 74, 75, 76
MEMORY_TEMPERATURE = 82
NVLINK_TX, NVLINK_RX = 138, 139  # KiB of payload
ALL_LINKS = 0xFFFF_FFFF
PCIE_TX, PCIE_RX = 197, 198  # bytes, width unknown: see pcie.py
RECOVERY_ACTION = 230

#: (first version with this numbering, (SW thermal, HW thermal, HW power brake))
THERMAL_IDS: tuple[tuple[tuple[int, ...], tuple[int, int, int]], ...] = (
    ((580, 82), (269, 270, 271)),
    ((575,), (251, 252, 253)),
)
OLD_THERMAL = "drivers before 575 count all heat in one sum (kept as SW thermal)"


#: The binding's structures override attribute access to decode text: 0.5 µs instead of 0.1 µs, and
#: there are hundreds of accesses a tick with 8 GPUs (measured: a tenth of the tick).
attribute = object.__getattribute__


@dataclass(frozen=True, slots=True)
class Field:
    name: str  # of GpuReading
    id: int
    scope: int = 0
    factor: int = 1
    divisor: int = 1
    whole: bool = True  # an integer counter


def fields_for(driver_version: tuple[int, ...], nvlinks: int | None) -> tuple[Field, ...]:
    """The batch for this driver, on a GPU with so many NVLinks."""
    common: tuple[Field, ...] = (
        Field("energy_j", ENERGY, divisor=1000, whole=False),
        Field("power_cap_time_ns", POWER_CAP_TIME),
        Field("sync_boost_time_ns", SYNC_BOOST_TIME),
        Field("memory_temperature_c", MEMORY_TEMPERATURE, whole=False),
        Field("pcie_tx_bytes", PCIE_TX),
        Field("pcie_rx_bytes", PCIE_RX),
    )
    if nvlinks:
        common += (
            Field("nvlink_tx_bytes", NVLINK_TX, ALL_LINKS, factor=1024),
            Field("nvlink_rx_bytes", NVLINK_RX, ALL_LINKS, factor=1024),
        )
    for first, (software, hardware, brake) in THERMAL_IDS:
        if driver_version >= first:
            return (
                *common,
                Field("sw_thermal_time_ns", software),
                Field("hw_thermal_time_ns", hardware),
                Field("power_brake_time_ns", brake),
            )
    return (*common, Field("sw_thermal_time_ns", THERMAL_TIME))


class FieldBatch:
    """Asks for the fields that this GPU supports; a field that proves unsupported leaves the batch."""

    def __init__(self, fields: Sequence[Field], poller: Poller) -> None:
        self._poller = poller
        self._fields = tuple(fields)
        names = {field.name for field in fields}
        if "hw_thermal_time_ns" not in names and "sw_thermal_time_ns" in names:
            poller.lacks(("hw_thermal_time_ns", "power_brake_time_ns"), OLD_THERMAL)
        self._ids = [(field.id, field.scope) for field in self._fields]

    def read(self, ask: Ask, out: Builder, caller: Caller) -> None:
        """Raises GpuGoneError or DriverGoneError."""
        if not self._fields:
            return
        try:
            answers = ask("nvmlDeviceGetFieldValues", self._ids)
        except Exception as error:
            code = self._poller.failed(error, caller)
            names = tuple(field.name for field in self._fields)
            if code in errors.PERMANENT:
                self._poller.lacks(names, errors.text(code))
                self._fields = ()
            else:
                out.lacks(names, errors.text(code))
            return
        for field, answer in zip(self._fields, answers, strict=True):
            self._take(field, answer, out, caller)

    def _take(self, field: Field, answer: Any, out: Builder, caller: Caller) -> None:
        code = attribute(answer, "nvmlReturn")
        if code == errors.SUCCESS:
            value = number(attribute(answer, "valueType"), attribute(answer, "value")) * field.factor
            if field.divisor != 1:
                value /= field.divisor
            out.put(field.name, int(value) if field.whole and math.isfinite(value) else value)
        elif code in errors.PERMANENT:
            self._poller.lacks((field.name,), errors.text(code))
            self._fields = tuple(other for other in self._fields if other is not field)
            self._ids = [(other.id, other.scope) for other in self._fields]
        else:
            judge(code, caller)
            out.absent[field.name] = errors.text(code)


def number(kind: int, value: Any) -> float:
    """The number in a field value or sample, by its declared type (nvml.h, nvmlValueType_t).

    An unknown type reads as NaN, which nothing accepts.
    """
    if kind == 3:
        result: float = value.ullVal
    elif kind == 1:
        result = value.uiVal
    elif kind == 0:
        result = value.dVal
    elif kind == 2:
        result = value.ulVal
    elif kind == 4:
        result = value.sllVal
    elif kind == 5:
        result = value.siVal
    elif kind == 6:
        result = value.usVal
    else:
        result = float("nan")
    return result
