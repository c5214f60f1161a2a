"""The connection to the driver and all GPUs behind it: opened, polled, lost, opened again.

Everything here runs in the one polling thread (see source.py), except `view`.
"""

from collections import deque
from dataclasses import dataclass
from typing import Any

from gpuwatch.model import (
    DriverInfo,
    DriverState,
    DriverStatus,
    Event,
    GpuInfo,
    GpuReading,
    GpuState,
    GpuStatus,
)
from gpuwatch.sources.base import Clock
from gpuwatch.sources.nvml import errors, sentences
from gpuwatch.sources.nvml.binding import BindingError, load_binding, load_library, version_tuple
from gpuwatch.sources.nvml.caller import STUCK_AFTER_S, Caller
from gpuwatch.sources.nvml.inventory import read_driver_info
from gpuwatch.sources.nvml.pcie import RX, TX
from gpuwatch.sources.nvml.poller import DriverGoneError
from gpuwatch.sources.nvml.sleep import SleepGate
from gpuwatch.sources.nvml.slot import Context, Slot
from gpuwatch.sources.nvml.xid import XidWatch
from gpuwatch.sources.tree import Tree

COUNT_EVERY_S = 10.0
_LONGEST_RETRY_S = 30.0
#: Opening a GPU without persistence mode takes 1-3 s: so much of it per tick, the rest in the next.
_OPENING_BUDGET_S = 1.0
#: So many ticks in which every call of every GPU fails mean that the connection is dead (B016).
_DEAD_AFTER_TICKS = 3
GAUGE_EVERY_S = 2.0  # the 20 ms PCIe call: one GPU, one direction
#: On battery: let go after so long without a process; look again at a released GPU after so long.
IDLE_RELEASE_S = 30.0
PEEK_AFTER_S = 15.0
#: Letting go had no effect: something else keeps the GPU awake. Do not try again for a while.
_RELEASE_AGAIN_S = 600.0


@dataclass(frozen=True, slots=True)
class NvmlTick:
    """What the NVML side knows at one moment.

    `gpus` and `infos` are in index order and match each other; a GPU that did not answer keeps its
    last reading with its old `read_s`. `generation` grows when the inventory changes. `events` are
    those since the tick before.
    """

    driver: DriverStatus
    driver_info: DriverInfo
    gpus: tuple[GpuReading, ...]
    infos: tuple[GpuInfo, ...]
    generation: int
    events: tuple[Event, ...]


class Collector:
    """`only` keeps GPUs by index, uuid (or its beginning) or bus id; None keeps all."""

    def __init__(
        self,
        clock: Clock,
        tree: Tree,
        interval_s: float,
        only: frozenset[str | int] | None,
        *,
        threaded: bool,
    ) -> None:
        self._clock = clock
        self._tree = tree
        self._interval_s = interval_s
        self._only = only
        self._threaded = threaded
        self._gate = SleepGate(tree)
        self._events: deque[Event] = deque(maxlen=1000)
        self._known: set[str] = set()
        now = clock.monotonic_s()
        self._driver = DriverStatus(DriverState.STARTING, "Connecting to the NVIDIA driver.", "", now)
        self._driver_info = DriverInfo()
        self._api: Any = None
        self._library_path: str | None = None
        self._context: Context | None = None  # while connected
        self._xid: XidWatch | None = None
        self._slots: tuple[Slot, ...] = ()
        self._generation = 0
        self._retry_s = now
        self._pause_s = 1.0
        self._count_due_s = now
        self._gauge_due_s = now
        self._gauge_turn = 0
        self._used_s = now  # last moment a process was on a GPU
        self._released_s: float | None = None
        self._no_release_before_s = now
        self._had_driver = False

    # -- polling thread -------------------------------------------------------------------------

    def run(self, caller: Caller) -> None:
        """One tick: connect if needed, then step every GPU. Raises nothing but `Retired`."""
        now = self._clock.monotonic_s()
        if self._context is None and not self._connect(caller, now):
            return
        try:
            if now >= self._count_due_s:
                self._recount(caller, now)
            self._step_all(caller)
        except DriverGoneError as gone:
            self._disconnect(caller, gone.code)
            return
        if self._xid is not None:
            self._xid.poll()
        self._maybe_release(caller, now)

    def _step_all(self, caller: Caller) -> None:
        context = self._context
        assert context is not None
        began = self._clock.monotonic_s()
        for slot in self._slots:
            if slot.stuck is not None or not self._may_open(slot.index):
                continue
            if slot.device is None and self._clock.monotonic_s() - began > _OPENING_BUDGET_S:
                continue
            if slot.step(context, caller):
                self._generation += 1
                self._watch_events(caller)
        self._known.update(slot.info.uuid for slot in self._slots if slot.info is not None)
        devices = [slot.device for slot in self._slots if slot.device is not None]
        if devices and all(device.failing_ticks >= _DEAD_AFTER_TICKS for device in devices):
            raise DriverGoneError(errors.UNKNOWN)

    def _watch_events(self, caller: Caller) -> None:
        if self._xid is not None:
            pairs = [
                (slot.device.info.uuid, slot.device.handle) for slot in self._slots if slot.device is not None
            ]
            self._xid.watch(pairs, caller)

    def _connect(self, caller: Caller, now_s: float) -> bool:
        """Load, initialise, list. False when there is nothing to poll yet."""
        if now_s < self._retry_s or not self._have_binding(now_s):
            return False
        if self._all_asleep(now_s):
            return False
        try:
            self._library_path = load_library(self._api, self._tree) or self._library_path
            caller.call(self._api.nvmlInit)
        except Exception as error:
            self._not_connected(errors.code_of(error), now_s)
            return False
        try:
            self._driver_info = read_driver_info(self._api, caller, self._tree, self._library_path)
            count = caller.call(self._api.nvmlDeviceGetCount)
        except DriverGoneError as gone:
            self._shut_down(caller)
            self._not_connected(gone.code, now_s)
            return False
        except Exception as error:
            self._shut_down(caller)
            self._not_connected(errors.code_of(error), now_s)
            return False
        if count == 0:
            # A GPU that appears later is only seen after a fresh initialisation.
            self._shut_down(caller)
            self._back_off(now_s)
            since = self._driver.since_s if self._driver.state is DriverState.NO_GPUS else now_s
            self._driver = sentences.no_gpus_status(since)
            return False
        self._connected(count, now_s)
        return True

    def _have_binding(self, now_s: float) -> bool:
        if self._api is None:
            try:
                self._api = load_binding()
            except BindingError as error:
                self._driver = sentences.binding_status(str(error), now_s)
                self._retry_s = float("inf")
                return False
        return True

    def _connected(self, count: int, now_s: float) -> None:
        if self._had_driver and self._driver.state is not DriverState.OK:
            self._tell(Event(now_s, "driver-back", "The NVIDIA driver answers again"))
        path = self._library_path
        message = f"The driver library was found at {path}, not by its name." if path else ""
        self._driver = DriverStatus(DriverState.OK, message, "", now_s)
        self._had_driver = True
        self._pause_s = 1.0
        self._released_s = None
        self._used_s = now_s
        self._count_due_s = now_s + COUNT_EVERY_S
        self._context = Context(
            self._api,
            self._clock,
            self._interval_s,
            version_tuple(self._driver_info.version),
            self._tell,
            self._known,
            self._identity,
        )
        self._xid = XidWatch(self._api, self._clock, self._events, threaded=self._threaded)
        self._list(count, now_s)

    def _list(self, count: int, now_s: float) -> None:
        """One slot per GPU; slots that existed keep their place, figures and stuck threads."""
        slots = [slot for slot in self._slots if slot.index < count]
        slots += [Slot(index, now_s) for index in range(len(slots), count)]
        if len(slots) != len(self._slots):
            self._generation += 1
        self._slots = tuple(slots)

    def _recount(self, caller: Caller, now_s: float) -> None:
        self._count_due_s = now_s + COUNT_EVERY_S
        try:
            count = caller.call(self._api.nvmlDeviceGetCount)
        except Exception as error:
            code = errors.code_of(error)
            if code in errors.DRIVER_FATAL:
                raise DriverGoneError(code) from error
            return
        if count != len(self._slots):
            # Handles may have moved to other GPUs: begin again, figures stay until they are read anew.
            self._end_connection(caller, GpuStatus(GpuState.NO_HANDLE, "being opened again", "", now_s))
            self._retry_s = now_s
            self._connect(caller, now_s)

    def _identity(self, index: int) -> tuple[str | None, str | None, str | None]:
        """(name, uuid, bus id) of a GPU that does not open, by its place in bus order."""
        bus_ids = self._gate.bus_ids()
        if len(bus_ids) != len(self._slots) or index >= len(bus_ids):
            return (None, None, None)
        name, uuid = self._gate.identity(bus_ids[index])
        return (name, uuid, bus_ids[index])

    # -- losing the driver ----------------------------------------------------------------------

    def _not_connected(self, code: int, now_s: float) -> None:
        since = self._driver.since_s if self._driver.code == code else now_s
        self._driver = sentences.driver_status(code, self._tree, since)
        self._back_off(now_s)

    def _back_off(self, now_s: float) -> None:
        self._retry_s = now_s + self._pause_s
        self._pause_s = min(2 * self._pause_s, _LONGEST_RETRY_S)

    def _disconnect(self, caller: Caller, code: int) -> None:
        now = self._clock.monotonic_s()
        self._not_connected(code, now)
        self._tell(Event(now, "driver-lost", self._driver.message, code=code))
        self._end_connection(
            caller, GpuStatus(GpuState.NO_HANDLE, "the driver does not answer", "", now, code)
        )

    def _end_connection(self, caller: Caller, status: GpuStatus) -> None:
        self._context = None
        for slot in self._slots:
            slot.close(caller, status)
        watch, self._xid = self._xid, None
        quiet = watch is None or watch.close(1.5)
        # With a thread inside the driver a shutdown may wait for it for ever.
        if quiet and all(slot.stuck is None for slot in self._slots):
            self._shut_down(caller)

    def _shut_down(self, caller: Caller) -> None:
        try:
            caller.call(self._api.nvmlShutdown)
        except Exception:
            return  # it was down already, or refuses (17 under WSL); initialising again tells

    # -- laptops --------------------------------------------------------------------------------

    def _all_asleep(self, now_s: float) -> bool:
        """Do not connect: every GPU is in runtime suspend, or was just let go."""
        bus_ids = self._gate.bus_ids()
        asleep = bool(bus_ids) and all(self._gate.asleep(bus_id) for bus_id in bus_ids)
        released = self._released_s
        if not asleep:
            if released is None or now_s - released >= PEEK_AFTER_S:
                if released is not None:
                    self._no_release_before_s = now_s + _RELEASE_AGAIN_S
                return False
            return True
        if released is not None and now_s - released >= PEEK_AFTER_S:
            self._released_s = None  # it sleeps: whoever wakes it next has a reason
        self._show_asleep(bus_ids, now_s)
        return True

    def _show_asleep(self, bus_ids: list[str], now_s: float) -> None:
        if self._driver.state is not DriverState.OK:
            self._driver = DriverStatus(DriverState.OK, "", "", now_s)
        if len(self._slots) != len(bus_ids):
            self._list(len(bus_ids), now_s)
        for slot, bus_id in zip(self._slots, bus_ids, strict=True):
            if slot.status.state is not GpuState.ASLEEP or slot.info is None:
                name, uuid = self._gate.identity(bus_id)
                slot.sleep(name, uuid, bus_id, sentences.gpu_asleep(now_s, released=False))
                self._generation += 1

    def _maybe_release(self, caller: Caller, now_s: float) -> None:
        """On battery, a GPU that could sleep and has nothing to do is let go."""
        devices = [slot.device for slot in self._slots if slot.device is not None]
        if not devices or any(device.info.bus_id is None for device in devices):
            return
        if any(slot.reading is not None and slot.reading.processes for slot in self._slots):
            self._used_s = now_s
        if now_s - self._used_s < IDLE_RELEASE_S or now_s < self._no_release_before_s:
            return
        self._used_s = now_s  # look again only after another while
        if not self._gate.on_battery() or not all(self._gate.may_sleep(d.info.bus_id or "") for d in devices):
            return
        self._released_s = now_s
        self._end_connection(caller, sentences.gpu_asleep(now_s, released=True))

    # -- between ticks --------------------------------------------------------------------------

    def drain(self, caller: Caller) -> None:
        """Empty the sample rings (about 10 s deep) when ticks are far apart."""
        context = self._context
        if context is None:
            return
        try:
            for slot in self._slots:
                slot.drain(context, caller)
        except DriverGoneError as gone:
            self._disconnect(caller, gone.code)

    def idle_work(self, caller: Caller) -> None:
        """After a tick was handed over: at most one 20 ms PCIe call."""
        now = self._clock.monotonic_s()
        if self._context is None or now < self._gauge_due_s:
            return
        turns = [
            (slot, direction)
            for slot in self._slots
            if slot.device is not None and slot.stuck is None and slot.device.pcie.can_measure
            for direction in (TX, RX)
        ]
        if not turns:
            return
        self._gauge_due_s = now + GAUGE_EVERY_S - 0.1
        self._gauge_turn = (self._gauge_turn + 1) % len(turns)
        slot, direction = turns[self._gauge_turn]
        try:
            slot.measure_pcie(self._context, caller, direction)
        except DriverGoneError as gone:
            self._disconnect(caller, gone.code)

    def close(self, caller: Caller) -> None:
        if self._context is not None:
            self._end_connection(
                caller, GpuStatus(GpuState.NO_HANDLE, "closed", "", self._clock.monotonic_s())
            )

    def _tell(self, event: Event) -> None:
        if event.kind == "gpu-lost" and self._xid is not None and event.gpu is not None:
            self._xid.forget(event.gpu)
        self._events.append(event)

    # -- any thread -----------------------------------------------------------------------------

    def retire(self, caller: Caller, now_s: float) -> bool:
        """Give up a thread that is stuck in a call about one GPU; False when none is."""
        index, name = caller.gpu, caller.name
        if index is None or name is None or caller.stuck_s(now_s) <= caller.limit_s:
            return False
        for slot in self._slots:
            if slot.index == index:
                slot.stuck = (name, caller.since_s)
                caller.retired_for = slot
                caller.retired = True  # last: the thread may return at this very moment
                return True
        return False

    def returned(self, caller: Caller) -> None:
        """The stuck call is over: its GPU takes part again. Last act of an abandoned thread."""
        if isinstance(caller.retired_for, Slot):
            caller.retired_for.unstick()

    def view(self, caller: Caller, now_s: float) -> NvmlTick:
        driver = self._driver
        name, since = caller.name, caller.since_s
        if name is not None and caller.gpu is None and now_s - since > STUCK_AFTER_S:
            driver = sentences.driver_hangs(name, now_s - since, since)
        readings, infos = [], []
        for slot in self._slots:
            reading, info = slot.view(caller, now_s), slot.info
            if reading is not None and info is not None and self._wanted(info):
                readings.append(reading)
                infos.append(info)
        events = []
        while self._events:
            events.append(self._events.popleft())
        return NvmlTick(
            driver, self._driver_info, tuple(readings), tuple(infos), self._generation, tuple(events)
        )

    def _may_open(self, index: int) -> bool:
        """A GPU that was not asked for by its index is not even opened (uuids show only then)."""
        only = self._only
        return only is None or index in only or any(isinstance(choice, str) for choice in only)

    def _wanted(self, info: GpuInfo) -> bool:
        if self._only is None:
            return True
        for choice in self._only:
            if isinstance(choice, int):
                if choice == info.index:
                    return True
            elif info.uuid.startswith(choice) or info.bus_id == choice.lower() or choice == str(info.index):
                return True
        return False
