"""PCIe bytes: the counters where their wrap is unambiguous, else the 20 ms gauge, one call at a time.

Fields 197 and 198 count bytes in an unknown width. A value above 2^32 proves 64 bits; below, 32 bits
are assumed, and a difference is only believed when the link cannot move 4 GiB between two readings.
"""

from typing import Any

from gpuwatch.sources.nvml import errors
from gpuwatch.sources.nvml.builder import Builder
from gpuwatch.sources.nvml.caller import Caller
from gpuwatch.sources.nvml.poller import Poller, judge

WRAP = 1 << 32
TX, RX = 0, 1  # nvmlPcieUtilCounter_t; TX is from the GPU, RX to it
FIELDS = {TX: "pcie_tx_bytes_per_s", RX: "pcie_rx_bytes_per_s"}
COUNTERS = ("pcie_tx_bytes", "pcie_rx_bytes")
COUNTED = "counted in bytes instead"
AMBIGUOUS = "the byte counter may wrap within one interval on this link"


class PcieBytes:
    """Of one GPU. `needs_gauge` tells whether the 20 ms call is the only way here."""

    def __init__(self, poller: Poller, interval_s: float) -> None:
        self._poller = poller
        self._wide = False
        self._before_s: float | None = None
        self._interval_s = interval_s
        self._gauge: dict[str, float] = {}
        self._gauge_absent: dict[str, str] = {}
        self.needs_gauge = False

    def apply(self, out: Builder, now_s: float, link: float | None) -> None:
        """Decide which of counter and gauge this reading carries. `link` is bytes/s one way."""
        # 1.3: the first interval is not known yet, and ticks are jittered by up to 30 %
        passed = self._interval_s * 1.3 if self._before_s is None else now_s - self._before_s
        self._before_s = now_s
        counters = [out.number(field) for field in COUNTERS]
        known = [value for value in counters if value is not None]
        if any(value >= WRAP for value in known):
            self._wide = True
        if known and (self._wide or (link is not None and link * passed < WRAP)):
            out.values["pcie_counter_bits"] = 64 if self._wide else 32
            for field in FIELDS.values():
                out.values.pop(field, None)  # GPM's gauge: one source per figure
                out.absent[field] = COUNTED
            self.needs_gauge = False
            return
        for field in COUNTERS:
            if out.values.pop(field, None) is not None:
                out.absent[field] = AMBIGUOUS
        out.absent["pcie_counter_bits"] = "no usable byte counter"
        self.needs_gauge = not all(field in out.values for field in FIELDS.values())
        if self.needs_gauge:
            self._take_gauge(out)

    def _take_gauge(self, out: Builder) -> None:
        """A gauge belongs to the one reading after it was measured; it says nothing about later ones."""
        for field in FIELDS.values():
            if field in self._gauge:
                out.put(field, self._gauge.pop(field))
            elif field not in self._poller.unsupported:
                out.absent[field] = self._gauge_absent.pop(
                    field, "measured for 20 ms at a time, not in this tick"
                )

    def measure(self, api: Any, handle: Any, direction: int, caller: Caller) -> None:
        """The call that blocks for about 20 ms. Raises GpuGoneError or DriverGoneError."""
        field = FIELDS[direction]
        if field in self._poller.unsupported:
            return
        try:
            self._gauge[field] = caller.call(api.nvmlDeviceGetPcieThroughput, handle, direction) * 1000.0
        except Exception as error:
            code = errors.code_of(error)
            judge(code, caller)
            if code in errors.PERMANENT:
                self._poller.lacks((field,), errors.text(code))
            else:
                self._gauge_absent[field] = errors.text(code)

    @property
    def can_measure(self) -> bool:
        return self.needs_gauge and not all(field in self._poller.unsupported for field in FIELDS.values())
