"""Sub-second history: draining the driver's own sample rings (nvmlDeviceGetSamples).

The rings hold about 10 s (72 entries at 6 Hz; power at 20 ms holds 2.4 s on a busy GPU), so they are
emptied at every tick and at least every 5 s.
"""

from gpuwatch.model import Burst
from gpuwatch.sources.nvml import errors
from gpuwatch.sources.nvml.caller import Caller
from gpuwatch.sources.nvml.fields import attribute, number
from gpuwatch.sources.nvml.poller import judge
from gpuwatch.sources.nvml.ranges import bounds
from gpuwatch.sources.nvml.signals import Ask

POWER, UTILIZATION, MEMORY_UTILIZATION = 0, 1, 2  # nvmlSamplingType_t
#: What a first drain may bring from before the program started.
_OLDEST_S = 20.0
#: A wall clock that moved by more than this against the monotonic one was set; old stamps are void.
_CLOCK_STEP_S = 0.5


class SampleRing:
    """One signal of one GPU. `divisor` turns the driver's number into the field's unit."""

    def __init__(self, kind: int, field: str, divisor: int) -> None:
        self._kind = kind
        self._bounds = bounds(field)
        self._divisor = divisor
        self._last_us = 0
        self._offset_s: float | None = None  # wall minus monotonic
        self._points: list[tuple[float, float]] = []
        self.supported = True
        self.rejected = 0

    def drain(self, ask: Ask, caller: Caller, now_s: float, wall_s: float) -> None:
        """Fetch what is new; on most errors that is nothing. Raises GpuGoneError or DriverGoneError."""
        offset = wall_s - now_s
        stepped = self._offset_s is not None and abs(offset - self._offset_s) > _CLOCK_STEP_S
        self._offset_s = offset
        if stepped:
            self._last_us = 0
        try:
            kind, samples = ask("nvmlDeviceGetSamples", self._kind, self._last_us)
        except Exception as error:
            code = errors.code_of(error)
            if code not in errors.QUIET:
                judge(code, caller)
                self.supported = code not in errors.PERMANENT
            return
        last, oldest, newest = self._last_us, (wall_s - _OLDEST_S) * 1e6, (wall_s + _CLOCK_STEP_S) * 1e6
        low, high = self._bounds
        # The order is not promised, and some drivers hand out entries that were asked for no more.
        for sample in sorted(samples, key=_stamp):
            stamp = _stamp(sample)
            # Stamps of the future are left from before the clock was set back.
            if stamp <= last or stamp > newest:
                continue
            last = stamp
            if stepped or stamp < oldest:
                continue
            value = number(kind, attribute(sample, "sampleValue")) / self._divisor
            if low <= value <= high:
                self._points.append((stamp / 1e6 - offset, value))
            else:
                self.rejected += 1
        self._last_us = last

    def seen_nonzero(self) -> bool:
        """Whether a point since the last take is above 0."""
        return any(value > 0 for _, value in self._points)

    def take(self) -> Burst:
        """The points since the last take, oldest first, times in monotonic seconds."""
        if not self._points:
            return _EMPTY
        points, self._points = self._points, []
        times, values = zip(*points, strict=True)
        return Burst(times, values)


_EMPTY = Burst()


def _stamp(sample: object) -> int:
    stamp: int = attribute(sample, "timeStamp")
    return stamp
