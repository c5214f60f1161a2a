"""One place in the driver's list of GPUs: opened, hidden, asleep, stuck, lost and back again."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from gpuwatch.model import Burst, Event, GpuInfo, GpuReading, GpuState, GpuStatus
from gpuwatch.sources.base import Clock
from gpuwatch.sources.nvml import errors, sentences
from gpuwatch.sources.nvml.caller import STUCK_AFTER_OPENING_S, STUCK_AFTER_S, STUCK_AGAIN_AFTER_S, Caller
from gpuwatch.sources.nvml.device import Device, with_status
from gpuwatch.sources.nvml.inventory import Inventory
from gpuwatch.sources.nvml.poller import DriverGoneError, GpuGoneError, Poller

#: A GPU that takes longer for one reading is asked less often, so that it does not slow the others.
SLOW_READING_S = 0.5
_LONGEST_PAUSE_S = 10.0
#: Retries of a GPU that does not open or is lost: 1, 2, 4, ... s.
_LONGEST_RETRY_S = 10.0


@dataclass(slots=True)
class Context:
    """What all slots share."""

    api: Any
    clock: Clock
    interval_s: float
    driver_version: tuple[int, ...]
    tell: Callable[[Event], None]
    known: set[str]  # uuids opened since start
    #: (name, uuid) of the GPU at an index, from elsewhere than the driver library
    identity: Callable[[int], tuple[str | None, str | None, str | None]] = lambda _index: (None, None, None)


class Slot:
    """Written by the polling thread whose turn it is; the drawing side only reads `view`."""

    def __init__(self, index: int, now_s: float, *, added: bool = False) -> None:
        """`added`: not in the driver's first listing."""
        self.index = index
        self._added = added
        self.device: Device | None = None
        self.status = GpuStatus(GpuState.NO_HANDLE, "being opened", "", now_s)
        self.info: GpuInfo | None = None
        self.reading: GpuReading | None = None
        self.stuck: tuple[str, float] | None = None  # call and since when, while a thread is lost in it
        self._created_s = now_s
        self._retry_s = now_s
        self._pause_s = 1.0
        self._not_before_s = now_s
        self._was_lost = False
        self._stuck_in_a_row = 0  # since the last whole reading
        self._void = False
        self._handed_s = float("-inf")

    # -- polling side ---------------------------------------------------------------------------

    def step(self, context: Context, caller: Caller) -> bool:
        """Open or read this GPU if it is due. True when the inventory changed. Raises DriverGoneError."""
        now = context.clock.monotonic_s()
        caller.gpu, caller.limit_s = self.index, self._patience_s()
        try:
            if self.device is None:
                return now >= self._retry_s and self._open(context, caller, now)
            if self.due_in_s(now) <= 0:
                self.reading = self.device.read(caller)
                self.status = self.reading.status
                self._stuck_in_a_row = 0
                self._pace(now, context.clock.monotonic_s())
            return False
        except GpuGoneError as error:
            self._lose(error.code, context, caller)
            return False
        finally:
            caller.gpu = None

    def due_in_s(self, now_s: float) -> float:
        """Seconds until this GPU is asked again; 0 when it is due."""
        return max(0.0, self._not_before_s - now_s)

    def _pace(self, began_s: float, ended_s: float) -> None:
        taken = ended_s - began_s
        if taken > SLOW_READING_S:
            self._not_before_s = ended_s + min(3 * taken, _LONGEST_PAUSE_S)
            self.status = GpuStatus(
                GpuState.OK, f"answers slowly: {taken:.1f} s for one reading", "asked less often", began_s
            )

    def _open(self, context: Context, caller: Caller, now_s: float) -> bool:
        caller.limit_s = STUCK_AFTER_OPENING_S
        try:
            handle = caller.call(context.api.nvmlDeviceGetHandleByIndex, self.index)
            info = Inventory(Poller(context.api, handle).asker(caller), caller).read(self.index)
        except DriverGoneError:
            raise
        except Exception as error:
            code = error.code if isinstance(error, GpuGoneError) else errors.code_of(error)
            return self._not_opened(code, context, now_s)
        self.device = Device(
            context.api, handle, info, context.driver_version, context.clock, context.interval_s
        )
        self._pause_s = 1.0
        changed = self.info != info
        moved = self.info is not None and self.info.uuid != info.uuid and self.info.uuid in context.known
        self.info = info
        caller.limit_s = self._patience_s()
        self.reading = self.device.read(caller)
        self.status = self.reading.status
        self._announce(context, now_s, moved)
        return changed

    def _announce(self, context: Context, now_s: float, moved: bool) -> None:
        """`moved`: another GPU was at this place before."""
        assert self.info is not None
        uuid, name = self.info.uuid, self.info.name
        if self._was_lost:
            context.tell(Event(now_s, "gpu-back", f"GPU {self.index} ({name}) is back", uuid))
        elif uuid not in context.known and (self._added or moved):
            context.tell(Event(now_s, "gpu-added", f"GPU {self.index} ({name}) was added", uuid))
        self._was_lost = False
        context.known.add(uuid)

    def _not_opened(self, code: int, context: Context, now_s: float) -> bool:
        since = self.status.since_s if self.status.code == code else now_s
        self.status = sentences.gpu_status(code, since)
        self._wait(now_s)
        self._was_lost = self._was_lost or code in errors.GPU_FATAL
        if self.info is None:
            self.stand_in(*context.identity(self.index))
            return True
        return False

    def _wait(self, now_s: float) -> None:
        self._retry_s = now_s + self._pause_s
        self._pause_s = min(2 * self._pause_s, _LONGEST_RETRY_S)

    def stand_in(self, name: str | None, uuid: str | None, bus_id: str | None) -> None:
        """What is known of a GPU that never opened: its place, and what the kernel module tells."""
        reason = self.status.message
        self.info = GpuInfo(
            uuid=uuid or (f"pci-{bus_id}" if bus_id else f"index-{self.index}"),
            index=self.index,
            name=name or f"GPU {self.index}",
            bus_id=bus_id,
            absent={"name": reason, "memory_total_bytes": reason},
        )

    def _lose(self, code: int, context: Context, caller: Caller) -> None:
        now = context.clock.monotonic_s()
        self.status = sentences.gpu_status(code, now)
        if self.device is not None:
            self.device.free(caller)
            self.device = None
            self._was_lost = True
            assert self.info is not None
            context.tell(Event(now, "gpu-lost", self._last_words(), self.info.uuid, code))
        self._pause_s = 1.0
        self._wait(now)

    def _last_words(self) -> str:
        """The event's text with the last figures: what happened just before matters most."""
        assert self.info is not None
        head = f"GPU {self.index} ({self.info.name}) {self.status.message}"
        last = self.reading
        if last is None:
            return head
        parts = [
            f"{last.temperature_c:.0f} °C" if last.temperature_c is not None else "",
            f"{last.power_w:.0f} W" if last.power_w is not None else "",
            f"{last.sm_clock_mhz:.0f} MHz" if last.sm_clock_mhz is not None else "",
            f"pids {', '.join(str(process.pid) for process in last.processes[:4])}" if last.processes else "",
        ]
        figures = ", ".join(part for part in parts if part)
        return f"{head}; last: {figures}" if figures else head

    def drain(self, context: Context, caller: Caller) -> None:
        """Empty the sample rings between ticks. Raises DriverGoneError."""
        if self.device is None or self.stuck is not None:
            return
        caller.gpu, caller.limit_s = self.index, self._patience_s()
        try:
            self.device.drain(caller, context.clock.monotonic_s(), context.clock.wall_s())
        except GpuGoneError as error:
            self._lose(error.code, context, caller)
        finally:
            caller.gpu = None

    def close(self, caller: Caller, status: GpuStatus) -> None:
        """The driver connection ends; figures stay as they were, with this state."""
        if self.stuck is not None:
            self._void = True  # its thread still uses the device; dropped when it returns
            return
        if self.device is not None:
            self.device.free(caller)
            self.device = None
        self.status = status
        self._retry_s = self._not_before_s = float("-inf")
        self._pause_s = 1.0

    def _patience_s(self) -> float:
        return STUCK_AGAIN_AFTER_S if self._stuck_in_a_row else STUCK_AFTER_S

    def unstick(self, now_s: float) -> None:
        """The stuck call has returned; called by the thread that was stuck, as its last act.

        The first time the GPU takes part again at once, then after growing pauses.
        """
        if self.stuck is not None:
            since = self.stuck[1]
            self.status = sentences.gpu_answered_late(now_s - since, since)
            pause = 2.0**self._stuck_in_a_row if self._stuck_in_a_row else 0.0
            self._not_before_s = now_s + min(pause, _LONGEST_PAUSE_S)
            self._stuck_in_a_row += 1
        if self._void:
            self.device, self._void = None, False
            self._retry_s = float("-inf")
        self.stuck = None

    def sleep(self, name: str | None, uuid: str | None, bus_id: str, status: GpuStatus) -> None:
        """Never opened, or let go: show what the kernel knows of it."""
        self.status = status
        if self.info is None:
            self.stand_in(name, uuid, bus_id)

    def measure_pcie(self, context: Context, caller: Caller, direction: int) -> None:
        """One call of about 20 ms. Raises DriverGoneError."""
        assert self.device is not None
        caller.gpu, caller.limit_s = self.index, self._patience_s()
        try:
            self.device.pcie.measure(context.api, self.device.handle, direction, caller)
        except GpuGoneError as error:
            self._lose(error.code, context, caller)
        finally:
            caller.gpu = None

    # -- the other side -------------------------------------------------------------------------

    def view(self, caller: Caller, now_s: float) -> GpuReading | None:
        """The newest reading with the state of this moment; None before anything is known.

        A reading is handed out once with its bursts; again only as an old one, without them.
        """
        reading, info, status = self.reading, self.info, self.status
        if info is None:
            return None
        call = self.stuck or _overdue(caller, self.index, now_s)
        if call is not None:
            status = sentences.gpu_hangs(call[0], now_s - call[1], call[1])
        if reading is None or reading.uuid != info.uuid:
            absent = {"utilization_ratio": status.message}
            return GpuReading(info.uuid, self.index, self._created_s, status, absent=absent)
        if reading.read_s <= self._handed_s:
            reading = _without_bursts(reading)
        self._handed_s = reading.read_s
        return reading if status is reading.status else with_status(reading, status)


def _overdue(caller: Caller, index: int, now_s: float) -> tuple[str, float] | None:
    name, since = caller.name, caller.since_s
    if name is not None and caller.gpu == index and now_s - since > caller.limit_s:
        return name, since
    return None


def _without_bursts(reading: GpuReading) -> GpuReading:
    none = Burst()
    return replace(reading, utilization_burst=none, memory_utilization_burst=none, power_burst=none)
