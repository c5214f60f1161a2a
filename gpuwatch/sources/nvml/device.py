"""One GPU that answers: its handle, what it supports, and the reading of one tick."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gpuwatch.model import Burst, GpuInfo, GpuReading, GpuState, GpuStatus
from gpuwatch.model.link import link_bytes_per_s
from gpuwatch.sources.base import Clock
from gpuwatch.sources.nvml import bursts, errors, gpm, nvlinks
from gpuwatch.sources.nvml.builder import Builder
from gpuwatch.sources.nvml.bursts import SampleRing
from gpuwatch.sources.nvml.caller import Caller
from gpuwatch.sources.nvml.fields import FieldBatch, fields_for
from gpuwatch.sources.nvml.gpm import Gpm
from gpuwatch.sources.nvml.inventory import ON_PACKAGE
from gpuwatch.sources.nvml.mig import NOT_ON_MIG, MigInstances
from gpuwatch.sources.nvml.nvlinks import NvLinks
from gpuwatch.sources.nvml.pcie import PcieBytes
from gpuwatch.sources.nvml.poller import Poller
from gpuwatch.sources.nvml.processes import ProcessLists
from gpuwatch.sources.nvml.ranges import POWER_LIMIT_FACTOR
from gpuwatch.sources.nvml.signals import FAST, SLOW, Ask
from gpuwatch.sources.nvml.throttle import TimeUnits

SLOW_EVERY_S = 10.0
PROCESSES_EVERY_S = 3.0
#: Utilization that stays at exactly 0 so long while the card draws this share of its limit is a
#: counter that does not work here (early Thor drivers, some WSL drivers), not an idle GPU.
MUTE_AFTER_S = 30.0
MUTE_POWER_RATIO = 0.4
UTILIZATION_FIELDS = ("utilization_ratio", "memory_utilization_ratio", "encoder_ratio", "decoder_ratio")


class Device:
    """Used by one thread at a time. `read` raises GpuGoneError or DriverGoneError, nothing else."""

    def __init__(
        self,
        api: Any,
        handle: Any,
        info: GpuInfo,
        driver_version: tuple[int, ...],
        clock: Clock,
        interval_s: float,
    ) -> None:
        self._api = api
        self.handle = handle
        self.info = info
        self._clock = clock
        self._poller = Poller(api, handle)
        self._fields = FieldBatch(fields_for(driver_version, info.nvlink_count), self._poller)
        self._units = TimeUnits()
        self._links = NvLinks(self._poller, info.nvlink_count) if info.nvlink_count else None
        self.pcie = PcieBytes(self._poller, interval_s)
        self._link = link_bytes_per_s(info.pcie_generation_max, info.pcie_width_max)
        self._utilization = SampleRing(bursts.UTILIZATION, "utilization_ratio", 100)
        self._memory_utilization = SampleRing(bursts.MEMORY_UTILIZATION, "memory_utilization_ratio", 100)
        self._power = SampleRing(bursts.POWER, "power_w", 1000)
        self._lists = ProcessLists(clock.wall_s)
        self._gpm = Gpm(api, handle, self._poller) if info.gpm_supported else None
        self._mig = MigInstances(api, handle, bool(info.gpm_supported)) if info.mig_enabled else None
        self._slow_values: Mapping[str, object] = {}
        self._slow_absent: Mapping[str, str] = {}
        self._slow_due_s = 0.0
        self._processes_due_s = 0.0
        self._processes_read_s: float | None = None
        self._rejected = 0
        self._still_s: float | None = None  # since when utilization reads 0 under power
        self.failing_ticks = 0  # in a row in which every call failed
        self._failing_since_s = 0.0
        self._prepare()

    def _prepare(self) -> None:
        """What is known to be absent without asking."""
        if self._gpm is None:
            reason = self.info.absent.get("gpm_supported") or "needs a Hopper GPU or newer"
            self._poller.lacks(gpm.FIELDS, reason)
        if self._links is None:
            self._poller.lacks(nvlinks.FIELDS, nvlinks.NO_LINK)
        self._poller.lacks(("recovery_action",), "not offered by this driver")

    def read(self, caller: Caller) -> GpuReading:
        now_s, wall_s = self._clock.monotonic_s(), self._clock.wall_s()
        calls, failed = caller.calls, caller.failed
        ask = self._poller.asker(caller)
        out = Builder()
        self._poller.run(FAST, ask, out, caller)
        self._fields.read(ask, out, caller)
        self._units.apply(out, now_s)
        if self._gpm is not None:
            self._gpm.read(out, caller, now_s)
        self.pcie.apply(out, now_s, self._link)
        self.drain(caller, now_s, wall_s)
        if now_s >= self._processes_due_s:
            self._processes_due_s = now_s + PROCESSES_EVERY_S - 0.5
            self._read_processes(ask, caller, now_s)
        if now_s >= self._slow_due_s:
            self._read_slow(ask, caller, now_s)
        calls, failed = caller.calls - calls, caller.failed - failed
        self._note_failure(failed, out, now_s)
        out.take(self._slow_values, self._slow_absent)
        self._doubt(out, now_s)
        self._rejected += out.rejected
        return self._reading(out, now_s, calls, failed)

    def _reading(self, out: Builder, now_s: float, calls: int, failed: int) -> GpuReading:
        values: dict[str, Any] = out.values
        utilization, memory_utilization, power = (
            self._utilization.take(),
            self._memory_utilization.take(),
            self._power.take(),
        )
        if "utilization_ratio" in out.absent and self._still_s is not None:
            utilization = Burst()
        absent = {**self._poller.unsupported, **out.absent}
        if self._lists.processes is None:
            absent["processes"] = self._lists.reason
        rejected = self._utilization.rejected + self._memory_utilization.rejected + self._power.rejected
        return GpuReading(
            uuid=self.info.uuid,
            index=self.info.index,
            read_s=now_s,
            status=self._status() if self.failing_ticks else _OK,
            utilization_burst=utilization,
            memory_utilization_burst=memory_utilization,
            power_burst=power,
            processes=self._lists.processes,
            processes_read_s=self._processes_read_s,
            mig=self._mig.readings if self._mig is not None else (),
            rejected_count=self._rejected + rejected,
            failed_calls=failed,
            calls=calls,
            absent=absent,
            **values,
        )

    def _note_failure(self, failed: int, out: Builder, now_s: float) -> None:
        if not failed or out.values:
            self.failing_ticks = 0
            return
        if self.failing_ticks == 0:
            self._failing_since_s = now_s
        self.failing_ticks += 1

    def _status(self) -> GpuStatus:
        return GpuStatus(
            GpuState.ERROR,
            "every driver call for this GPU fails",
            "look for NVRM lines in the kernel log (dmesg, journalctl -k)",
            self._failing_since_s,
            errors.UNKNOWN,
        )

    def drain(self, caller: Caller, now_s: float, wall_s: float) -> None:
        """Empty the driver's sample rings into this device, for its next reading."""
        ask = self._poller.asker(caller)
        if not self.info.mig_enabled:
            for ring in (self._utilization, self._memory_utilization):
                if ring.supported:
                    ring.drain(ask, caller, now_s, wall_s)
        # Energy differences are exact; the power ring is worth its cost only without them.
        if self._power.supported and "energy_j" in self._poller.unsupported:
            self._power.drain(ask, caller, now_s, wall_s)

    def _read_processes(self, ask: Ask, caller: Caller, now_s: float) -> None:
        self._lists.read(ask, caller)
        self._processes_read_s = now_s
        if self._mig is not None:
            self._mig.read(ask, caller, now_s)

    def _read_slow(self, ask: Ask, caller: Caller, now_s: float) -> None:
        # Staggered from the second time on, so that not all GPUs are asked for everything in one tick.
        first = self._slow_due_s == 0.0
        stagger = (self.info.index % 10) if first else 0.0
        self._slow_due_s = now_s + SLOW_EVERY_S - stagger
        out = Builder()
        self._poller.run(SLOW, ask, out, caller)
        if self._links is not None:
            self._links.read(ask, out, caller)
        self._read_recovery(ask, out, caller)
        self._rejected += out.rejected
        self._slow_values, self._slow_absent = out.values, out.absent

    def _read_recovery(self, ask: Ask, out: Builder, caller: Caller) -> None:
        try:
            answer = ask("nvmlDeviceGetFieldValues", [RECOVERY_ACTION])[0]
        except Exception as error:
            self._poller.failed(error, caller)
            return
        if answer.nvmlReturn == errors.SUCCESS:
            out.put("recovery_action", answer.value.uiVal)

    def _doubt(self, out: Builder, now_s: float) -> None:
        """Values that were answered and still cannot be believed, or mean nothing on this kind of GPU."""
        limit, power = out.number("power_limit_w"), out.number("power_w")
        if power is not None and limit is not None and power > POWER_LIMIT_FACTOR * limit:
            del out.values["power_w"]
            out.reject("power_w", power)
        if self.info.mig_enabled:
            for field in UTILIZATION_FIELDS:
                if out.values.pop(field, None) is None:
                    self._poller.unsupported[field] = NOT_ON_MIG
        if self.info.unified_memory:
            self._doubt_on_package(out)
        self._doubt_utilization(out, power, limit, now_s)

    def _doubt_on_package(self, out: Builder) -> None:
        reason = self.info.absent.get("memory_total_bytes", "")
        for field in ("memory_total_bytes", "memory_used_bytes", "memory_reserved_bytes"):
            out.values.pop(field, None)
            out.absent[field] = reason
        for field in ("pcie_generation", "pcie_width"):
            out.values.pop(field, None)
            out.absent[field] = ON_PACKAGE
        if out.number("memory_utilization_ratio") == 0:
            del out.values["memory_utilization_ratio"]
            out.absent["memory_utilization_ratio"] = "this counter stays at 0 on GPUs with unified memory"

    def _doubt_utilization(
        self, out: Builder, power: float | None, limit: float | None, now_s: float
    ) -> None:
        limit = limit or self.info.power_limit_default_w
        if out.number("utilization_ratio") != 0 or self._utilization.seen_nonzero():
            self._still_s = None
            return
        if power is None or limit is None or power < MUTE_POWER_RATIO * limit:
            self._still_s = None
            return
        if self._still_s is None:
            self._still_s = now_s
        elif now_s - self._still_s >= MUTE_AFTER_S:
            del out.values["utilization_ratio"]
            out.absent["utilization_ratio"] = (
                f"the counter reads 0 while the card draws {power:.0f} W: it does not work here"
            )

    def free(self, caller: Caller) -> None:
        """Give back what must not outlive the driver connection."""
        if self._gpm is not None:
            self._gpm.free(caller)
        if self._mig is not None:
            self._mig.free(caller)


RECOVERY_ACTION = 230
_OK = GpuStatus()


def with_status(reading: GpuReading, status: GpuStatus) -> GpuReading:
    """The same figures with another state; `read_s` stays old, so everybody sees that they are stale."""
    return replace(reading, status=status)
