"""All GPUs behind the connection: counted, opened, polled, let go.

Everything here runs in the one polling thread (see source.py), except `retire` and `view`.
"""

from collections.abc import Callable
from dataclasses import dataclass

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
from gpuwatch.sources.nvml.binding import version_tuple
from gpuwatch.sources.nvml.caller import STUCK_AFTER_S, Caller
from gpuwatch.sources.nvml.connection import Connection
from gpuwatch.sources.nvml.pcie import RX, TX
from gpuwatch.sources.nvml.peers import Peer, Peers
from gpuwatch.sources.nvml.poller import DriverGoneError, GpuGoneError
from gpuwatch.sources.nvml.sleep import Rest, SleepGate
from gpuwatch.sources.nvml.slot import Context, Slot
from gpuwatch.sources.tree import Tree

COUNT_EVERY_S = 10.0
#: Opening a GPU without persistence mode takes 1-3 s: so much of it per tick, the rest in the next.
_OPENING_BUDGET_S = 1.0
#: So many ticks in which every call of every GPU fails mean that the connection is dead.
_DEAD_AFTER_TICKS = 3
GAUGE_EVERY_S = 2.0  # the 20 ms PCIe call: one GPU, one direction


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
        self._interval_s = interval_s
        self._only = only
        now = clock.monotonic_s()
        self._connection = Connection(clock, tree, threaded=threaded)
        self._gate = SleepGate(tree)
        self._rest = Rest(self._gate, now)
        self._context: Context | None = None  # while connected
        self._known: set[str] = set()  # uuids opened since start
        self._slots: tuple[Slot, ...] = ()
        self._generation = 0
        self._count_due_s = now
        self._gauge_due_s = now
        self._gauge_turn = 0
        self._peers = Peers()
        self._fault: DriverStatus | None = None

    # -- polling thread -------------------------------------------------------------------------

    def run(self, caller: Caller) -> None:
        """One tick: connect if needed, then step every GPU. Raises nothing but `Retired`."""
        if self._guarded(lambda: self._run(caller, self._clock.monotonic_s())):
            self._fault = None

    def drain(self, caller: Caller) -> None:
        """Between ticks: empty the sample rings (about 10 s deep) when ticks are far apart."""
        self._guarded(lambda: self._drain(caller))

    def idle_work(self, caller: Caller) -> None:
        """After a tick was handed over: the pairs of GPUs once, and at most one 20 ms PCIe call."""
        self._guarded(lambda: self._look_at_peers(caller))
        self._guarded(lambda: self._measure_pcie(caller, self._clock.monotonic_s()))

    def close(self, caller: Caller) -> None:
        """Give the driver back."""
        if self._context is not None:
            status = GpuStatus(GpuState.NO_HANDLE, "closed", "", self._clock.monotonic_s())
            self._guarded(lambda: self._end(caller, status))

    def _guarded(self, work: Callable[[], None]) -> bool:
        """A mistake in this program is said on the screen, and the next tick is taken all the same."""
        try:
            work()
        except Exception as error:
            since = self._fault.since_s if self._fault is not None else self._clock.monotonic_s()
            self._fault = sentences.own_fault(error, since)
            return False
        return True

    def _run(self, caller: Caller, now_s: float) -> None:
        if self._context is None and not self._connect(caller, now_s):
            return
        try:
            if now_s >= self._count_due_s:
                self._recount(caller, now_s)
            self._step_all(caller)
        except DriverGoneError as gone:
            self._disconnect(caller, gone.code)
            return
        if self._connection.xid is not None:
            self._connection.xid.poll()
        self._rest_if_unused(caller, now_s)

    def _connect(self, caller: Caller, now_s: float) -> bool:
        """False when there is nothing to poll yet."""
        connection = self._connection
        if not connection.due(now_s):
            return False
        bus_ids = self._gate.bus_ids()
        if self._rest.keep_away(bus_ids, now_s):
            connection.resting(now_s)
            self._show_asleep(bus_ids, now_s)
            return False
        count = connection.open(caller, now_s)
        if count == 0:
            return False
        self._rest.connected(now_s)
        self._peers = Peers()
        self._count_due_s = now_s + COUNT_EVERY_S
        self._context = Context(
            connection.api,
            self._clock,
            self._interval_s,
            version_tuple(connection.info.version),
            self._tell,
            self._known,
            self._identity,
        )
        self._list(count, now_s)
        return True

    def _list(self, count: int, now_s: float) -> None:
        """One slot per GPU; slots that existed keep their place, figures and stuck threads."""
        slots = [slot for slot in self._slots if slot.index < count]
        added = bool(self._slots)
        slots += [Slot(index, now_s, added=added) for index in range(len(slots), count)]
        if len(slots) != len(self._slots):
            self._generation += 1
        self._slots = tuple(slots)

    def _step_all(self, caller: Caller) -> None:
        context = self._context
        if context is None:
            return
        began = self._clock.monotonic_s()
        for slot in self._slots:
            if slot.stuck is not None or not self._may_open(slot.index):
                continue
            if slot.device is None and self._clock.monotonic_s() - began > _OPENING_BUDGET_S:
                continue
            if slot.step(context, caller):
                self._generation += 1
                self._inventory_changed(caller)
        devices = [slot.device for slot in self._slots if slot.device is not None]
        if devices and all(device.failing_ticks >= _DEAD_AFTER_TICKS for device in devices):
            raise DriverGoneError(errors.UNKNOWN)

    def _inventory_changed(self, caller: Caller) -> None:
        open_ones = [slot.device for slot in self._slots if slot.device is not None]
        if self._connection.xid is not None:
            self._connection.xid.watch(((one.info.uuid, one.handle) for one in open_ones), caller)

    def _recount(self, caller: Caller, now_s: float) -> None:
        self._count_due_s = now_s + COUNT_EVERY_S
        try:
            count = caller.call(self._connection.api.nvmlDeviceGetCount)
        except Exception as error:
            code = errors.code_of(error)
            if code in errors.DRIVER_FATAL:
                raise DriverGoneError(code) from error
            return
        if count != len(self._slots):
            # Handles may have moved to other GPUs: begin again, figures stay until they are read anew.
            self._end(caller, GpuStatus(GpuState.NO_HANDLE, "being opened again", "", now_s))
            self._connect(caller, now_s)

    def _identity(self, index: int) -> tuple[str | None, str | None, str | None]:
        """(name, uuid, bus id) of a GPU that does not open, by its place in bus order."""
        bus_ids = self._gate.bus_ids()
        if len(bus_ids) != len(self._slots) or index >= len(bus_ids):
            return (None, None, None)
        return (*self._gate.identity(bus_ids[index]), bus_ids[index])

    def _disconnect(self, caller: Caller, code: int) -> None:
        now = self._clock.monotonic_s()
        self._connection.lost(code, now)
        self._end(caller, GpuStatus(GpuState.NO_HANDLE, "the driver does not answer", "", now, code))

    def _end(self, caller: Caller, status: GpuStatus) -> None:
        self._context = None
        for slot in self._slots:
            slot.close(caller, status)
        self._connection.close(caller, quiet=all(slot.stuck is None for slot in self._slots))

    def _show_asleep(self, bus_ids: list[str], now_s: float) -> None:
        if len(self._slots) != len(bus_ids):
            self._list(len(bus_ids), now_s)
        for slot, bus_id in zip(self._slots, bus_ids, strict=True):
            if slot.status.state is not GpuState.ASLEEP or slot.info is None:
                name, uuid = self._gate.identity(bus_id)
                slot.sleep(name, uuid, bus_id, sentences.gpu_asleep(now_s, released=False))
                self._generation += 1

    def _rest_if_unused(self, caller: Caller, now_s: float) -> None:
        bus_ids = [slot.device.info.bus_id for slot in self._slots if slot.device is not None]
        known = [bus_id for bus_id in bus_ids if bus_id is not None]
        if not known or len(known) != len(self._slots):
            return
        busy = any(slot.reading is not None and slot.reading.processes for slot in self._slots)
        if self._rest.let_go(known, busy, now_s):
            self._end(caller, sentences.gpu_asleep(now_s, released=True))

    def _drain(self, caller: Caller) -> None:
        context = self._context
        if context is None:
            return
        try:
            for slot in self._slots:
                slot.drain(context, caller)
        except DriverGoneError as gone:
            self._disconnect(caller, gone.code)

    def _look_at_peers(self, caller: Caller) -> None:
        if self._context is None:
            return
        open_ones = [slot for slot in self._slots if slot.device is not None and slot.stuck is None]
        gpus = [
            Peer(slot.index, slot.device.info.uuid, slot.device.handle)
            for slot in open_ones
            if slot.device is not None
        ]
        try:
            news = self._peers.look(self._context.api, gpus, caller)
        except GpuGoneError:
            return  # its next reading says so; the other pairs follow
        except DriverGoneError as gone:
            self._disconnect(caller, gone.code)
            return
        finally:
            caller.gpu = None
        if news:
            for slot in open_ones:
                if slot.info is not None:
                    slot.info = self._peers.tell(slot.info)
            self._generation += 1

    def _measure_pcie(self, caller: Caller, now_s: float) -> None:
        if self._context is None or now_s < self._gauge_due_s:
            return
        turns = [
            (slot, direction)
            for slot in self._slots
            if slot.device is not None and slot.stuck is None and slot.device.pcie.can_measure
            for direction in (TX, RX)
        ]
        if not turns:
            return
        self._gauge_due_s = now_s + GAUGE_EVERY_S - 0.1
        self._gauge_turn = (self._gauge_turn + 1) % len(turns)
        slot, direction = turns[self._gauge_turn]
        try:
            slot.measure_pcie(self._context, caller, direction)
        except DriverGoneError as gone:
            self._disconnect(caller, gone.code)

    def _tell(self, event: Event) -> None:
        xid = self._connection.xid
        if event.kind == "gpu-lost" and xid is not None and event.gpu is not None:
            xid.forget(event.gpu)
        self._connection.events.append(event)

    # -- any thread -----------------------------------------------------------------------------

    def retire(self, caller: Caller, now_s: float) -> bool:
        """Give up a thread that is stuck in a call about one GPU; False when none is."""
        index, name = caller.gpu, caller.name
        if index is None or name is None or caller.stuck_s(now_s) <= caller.limit_s:
            return False
        for slot in self._slots:
            if slot.index == index:
                slot.stuck = (name, caller.since_s)
                if slot.info is None:  # stuck before it was ever opened: it is shown all the same
                    slot.stand_in(*self._identity(index))
                    self._generation += 1
                caller.retired_for = slot
                caller.retired = True  # last: the thread may return at this very moment
                return True
        return False

    def returned(self, caller: Caller) -> None:
        """The stuck call is over: its GPU takes part again. Last act of an abandoned thread."""
        if isinstance(caller.retired_for, Slot):
            caller.retired_for.unstick(caller.now_s())

    def view(self, caller: Caller, now_s: float) -> NvmlTick:
        driver = self._fault or self._connection.status
        name, since = caller.name, caller.since_s
        if name is not None and caller.gpu is None and now_s - since > STUCK_AFTER_S:
            driver = sentences.driver_hangs(name, now_s - since, since)
        readings, infos, events = [], [], []
        for slot in self._slots:
            reading, info = slot.view(caller, now_s), slot.info
            if reading is not None and info is not None and self._wanted(info):
                readings.append(reading)
                infos.append(info)
        if self._only is not None and self._slots and not readings and driver.state is DriverState.OK:
            driver = sentences.none_chosen(len(self._slots), driver.since_s)
        while self._connection.events:
            events.append(self._connection.events.popleft())
        return NvmlTick(
            driver, self._connection.info, tuple(readings), tuple(infos), self._generation, tuple(events)
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
