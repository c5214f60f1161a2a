"""The connection to the driver: loading, initialising, losing it, and trying again with pauses."""

from collections import deque
from typing import Any

from gpuwatch.model import DriverInfo, DriverState, DriverStatus, Event
from gpuwatch.sources.base import Clock
from gpuwatch.sources.nvml import errors, sentences
from gpuwatch.sources.nvml.binding import BindingError, load_binding, load_library
from gpuwatch.sources.nvml.caller import Caller
from gpuwatch.sources.nvml.inventory import read_driver_info
from gpuwatch.sources.nvml.poller import DriverGoneError
from gpuwatch.sources.nvml.xid import XidWatch
from gpuwatch.sources.tree import Tree

_LONGEST_RETRY_S = 30.0  # retries after 1, 2, 4, ... s
_XID_WAIT_S = 1.5  # the event thread comes back every second


class Connection:
    """`open` when `due`; `status` and `info` say how it stands. Used by the polling thread."""

    def __init__(self, clock: Clock, tree: Tree, *, threaded: bool) -> None:
        self._clock = clock
        self._tree = tree
        self._threaded = threaded
        self.events: deque[Event] = deque(maxlen=1000)
        now = clock.monotonic_s()
        self.status = DriverStatus(DriverState.STARTING, "Connecting to the NVIDIA driver.", "", now)
        self.info = DriverInfo()
        self.api: Any = None
        self.is_open = False
        self.xid: XidWatch | None = None
        self._library_path: str | None = None
        self._retry_s = now
        self._pause_s = 1.0
        self._was_open = False

    def due(self, now_s: float) -> bool:
        """Load the binding if need be; whether it is time to try and open."""
        if now_s < self._retry_s:
            return False
        if self.api is None:
            try:
                self.api = load_binding()
            except BindingError as error:
                self.status = sentences.binding_status(str(error), now_s)
                self._retry_s = float("inf")
                return False
        return True

    def open(self, caller: Caller, now_s: float) -> int:
        """Initialise; the number of GPUs, 0 when there is nothing to poll yet (see `status`)."""
        try:
            self._library_path = load_library(self.api, self._tree) or self._library_path
            caller.call(self.api.nvmlInit)
        except Exception as error:
            self.failed(errors.code_of(error), now_s)
            return 0
        try:
            self.info = read_driver_info(self.api, caller, self._tree, self._library_path)
            count: int = caller.call(self.api.nvmlDeviceGetCount)
        except Exception as error:
            code = error.code if isinstance(error, DriverGoneError) else errors.code_of(error)
            self._shut_down(caller)
            self.failed(code, now_s)
            return 0
        if count == 0:
            # A GPU that appears later is only seen after a fresh initialisation.
            self._shut_down(caller)
            self._back_off(now_s)
            since = self.status.since_s if self.status.state is DriverState.NO_GPUS else now_s
            self.status = sentences.no_gpus_status(since)
            return 0
        self._opened(now_s)
        return count

    def _opened(self, now_s: float) -> None:
        if self._was_open and self.status.state is not DriverState.OK:
            self.events.append(Event(now_s, "driver-back", "The NVIDIA driver answers again"))
        path = self._library_path
        message = f"The driver library was found at {path}, not by its name." if path else ""
        self.status = DriverStatus(DriverState.OK, message, "", now_s)
        self._was_open = self.is_open = True
        self._pause_s = 1.0
        self.xid = XidWatch(self.api, self._clock, self.events, threaded=self._threaded)

    def resting(self, now_s: float) -> None:
        """Closed on purpose, while the GPUs sleep: nothing is wrong."""
        if self.status.state is not DriverState.OK:
            self.status = DriverStatus(DriverState.OK, "", "", now_s)

    def failed(self, code: int, now_s: float) -> None:
        """Not opened, or lost while open: the state for this return value, and a pause."""
        since = self.status.since_s if self.status.code == code else now_s
        self.status = sentences.driver_status(code, self._tree, since)
        self._back_off(now_s)

    def _back_off(self, now_s: float) -> None:
        self._retry_s = now_s + self._pause_s
        self._pause_s = min(2 * self._pause_s, _LONGEST_RETRY_S)

    def lost(self, code: int, now_s: float) -> None:
        """An open connection is dead. The caller closes it next."""
        self.failed(code, now_s)
        self.events.append(Event(now_s, "driver-lost", self.status.message, code=code))

    def close(self, caller: Caller, *, quiet: bool) -> None:
        """Shut down; only left behind when not `quiet`: a thread inside the driver may block it."""
        self.is_open = False
        watch, self.xid = self.xid, None
        if (watch is None or watch.close(_XID_WAIT_S)) and quiet:
            self._shut_down(caller)

    def _shut_down(self, caller: Caller) -> None:
        try:
            caller.call(self.api.nvmlShutdown)
        except Exception:
            return  # it was down already, or refuses (17 under WSL); initialising again tells
