"""Entry points for events: Xid errors at the moments the scenario gives."""

import ctypes
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pynvml

from gpuwatch.sources.simulated import codes
from gpuwatch.sources.simulated.entries import entry, number, put, target
from gpuwatch.sources.simulated.gpu import Refused

if TYPE_CHECKING:
    from gpuwatch.sources.simulated.driver import SimulatedDriver

_XID = 8
_NO_INSTANCE = 0xFFFFFFFF
_LOOK_S = 0.02


@dataclass(slots=True)
class _EventSet:
    memory: Any  # keeps the address alive
    waiting: dict[int, list[tuple[float, int]]] = field(default_factory=dict)  # by GPU, to come


@entry("nvmlEventSetCreate")
def create(driver: "SimulatedDriver", out: Any) -> None:
    memory = pynvml.struct_c_nvmlEventSet_t()
    driver.event_sets[ctypes.addressof(memory)] = _EventSet(memory)
    target(out).contents = memory


def _event_set(driver: "SimulatedDriver", pointer: Any) -> _EventSet:
    try:
        found: _EventSet = driver.event_sets[ctypes.addressof(pointer.contents)]
    except (AttributeError, KeyError, ValueError):
        raise Refused(codes.INVALID_ARGUMENT) from None
    return found


@entry("nvmlEventSetFree")
def free(driver: "SimulatedDriver", pointer: Any) -> None:
    del driver.event_sets[ctypes.addressof(_event_set(driver, pointer).memory)]


@entry("nvmlDeviceGetSupportedEventTypes")
def supported(driver: "SimulatedDriver", handle: Any, out: Any) -> None:
    put(out, 0x1F if driver.gpu(handle).model.ecc else 0x18)


@entry("nvmlDeviceRegisterEvents")
def register(driver: "SimulatedDriver", handle: Any, types: Any, pointer: Any) -> None:
    """Only events from now on; there is no history."""
    gpu = driver.gpu(handle)
    events = _event_set(driver, pointer)
    if number(types) & _XID:
        now = driver.timeline.now()
        events.waiting[gpu.index] = [xid for xid in gpu.plan.xids if xid[0] > now]


@entry("nvmlEventSetWait", "nvmlEventSetWait_v2")
def wait(driver: "SimulatedDriver", pointer: Any, out: Any, timeout_ms: Any) -> None:
    """Blocks in real time even where simulated time is set by hand: waiting must not move it."""
    events = _event_set(driver, pointer)
    end = time.monotonic() + number(timeout_ms) / 1000
    while not _deliver(driver, events, out):
        left = end - time.monotonic()
        if left <= 0:
            raise Refused(codes.TIMEOUT)
        time.sleep(min(left, _LOOK_S))


def _deliver(driver: "SimulatedDriver", events: _EventSet, out: Any) -> bool:
    now = driver.timeline.now()
    due = [
        (waiting[0], index) for index, waiting in events.waiting.items() if waiting and waiting[0][0] <= now
    ]
    if not due:
        return False
    (_, code), index = min(due)
    events.waiting[index].pop(0)
    data = target(out)
    data.device.contents = driver.handle(driver.gpus[index])
    data.eventType, data.eventData = _XID, code
    data.gpuInstanceId = data.computeInstanceId = _NO_INSTANCE
    return True
