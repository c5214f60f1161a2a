"""Xid events: the driver's own error reports, with plain words.

The call that waits for them blocks, so it has a thread of its own; a timeout just means quiet.
"""

import ctypes
import threading
from collections import deque
from collections.abc import Iterable
from typing import Any

from gpuwatch.model import Event
from gpuwatch.sources.base import Clock
from gpuwatch.sources.nvml import errors
from gpuwatch.sources.nvml.caller import Caller

_XID = 0x8  # nvml.h, nvmlEventTypeXidCriticalError
_WAIT_MS = 1000

#: Meanings after NVIDIA's Xid catalogue (docs.nvidia.com/deploy/xid-errors).
WORDS = {
    13: "the program faulted on the GPU (graphics engine exception)",
    31: "the program accessed wrong GPU memory (page fault)",
    32: "invalid or corrupted command stream",
    38: "driver firmware error",
    43: "the program's GPU work was stopped",
    45: "the program's GPU work was cleaned up after an error or a kill",
    48: "uncorrectable memory error (double-bit ECC): reset the GPU",
    54: "auxiliary power is not connected",
    61: "internal micro-controller breakpoint",
    62: "internal micro-controller halt: reset the GPU",
    63: "a memory row was marked for remapping",
    64: "remapping a memory row failed: replace the GPU",
    69: "graphics engine class error",
    74: "NVLink error: check links and bridges",
    79: "the GPU fell off the bus: power, heat, seating or riser",
    92: "high rate of corrected memory errors",
    94: "contained memory error: the program on it must be restarted",
    95: "uncontained memory error: reset the GPU",
    109: "context switch timeout",
    119: "the GPU's system processor does not answer: reset or reboot",
    120: "the GPU's system processor failed: reset or reboot",
    140: "unrecovered memory error",
    154: "the GPU asks for a recovery action",
}


def words(code: int) -> str:
    return WORDS.get(code, "see NVIDIA's Xid catalogue")


class XidWatch:
    """Watches a set of handles. `threaded`: waits in its own daemon thread; else `poll` asks."""

    def __init__(self, api: Any, clock: Clock, events: deque[Event], *, threaded: bool) -> None:
        self._api = api
        self._clock = clock
        self._events = events
        self._threaded = threaded
        self._set: Any = None
        self._registered: set[str] = set()
        self._uuids: dict[int, str] = {}  # by handle
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def watch(self, devices: Iterable[tuple[str, Any]], caller: Caller) -> None:
        """Register (uuid, handle) pairs that are not watched yet."""
        for uuid, handle in devices:
            if uuid not in self._registered:
                self._registered.add(uuid)
                self._register(uuid, handle, caller)
        if self._set is not None and self._threaded and self._thread is None:
            self._thread = threading.Thread(target=self._run, name="gpuwatch-xid", daemon=True)
            self._thread.start()

    def _register(self, uuid: str, handle: Any, caller: Caller) -> None:
        try:
            if not caller.call(self._api.nvmlDeviceGetSupportedEventTypes, handle) & _XID:
                return
            if self._set is None:
                self._set = caller.call(self._api.nvmlEventSetCreate)
            caller.call(self._api.nvmlDeviceRegisterEvents, handle, _XID, self._set)
            self._uuids[_address(handle)] = uuid
        except Exception:
            # Events are an extra (none under WSL, in guests, without permission): the figures go on.
            return

    def forget(self, uuid: str) -> None:
        """A lost GPU has to be registered again when it comes back."""
        self._registered.discard(uuid)

    def _run(self) -> None:
        while not self._stop.is_set():
            if self._next(_WAIT_MS) in errors.DRIVER_FATAL:
                return

    def poll(self) -> None:
        """Without a thread: take what has come."""
        if self._set is not None and not self._threaded:
            while self._next(0) == errors.SUCCESS:
                pass

    def _next(self, wait_ms: int) -> int:
        try:
            data = self._api.nvmlEventSetWait_v2(self._set, wait_ms)
        except Exception as error:
            code = errors.code_of(error)
            if code != errors.TIMEOUT and self._threaded:
                self._stop.wait(1.0)  # a failing wait returns at once; do not spin on it
            return code
        if data.eventType & _XID:
            code = int(data.eventData)
            self._events.append(
                Event(
                    self._clock.monotonic_s(),
                    "xid",
                    f"Xid {code}: {words(code)}",
                    self._uuids.get(_address(data.device)),
                    code,
                )
            )
        return errors.SUCCESS

    def close(self, wait_s: float) -> bool:
        """Stop and free the set; False when the thread is still inside the driver after `wait_s`."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(wait_s)
            if self._thread.is_alive():
                return False
        if self._set is not None:
            try:
                self._api.nvmlEventSetFree(self._set)
            except Exception:
                self._registered.clear()  # the driver is gone and has freed it already
            self._set = None
        return True


def _address(handle: Any) -> int:
    """What tells handles apart: the pointer itself (no driver call, works for a lost GPU)."""
    return ctypes.cast(handle, ctypes.c_void_p).value or 0
