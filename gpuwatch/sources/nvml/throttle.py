"""The unit of the accumulated throttle times: nanoseconds by nvml.h, microseconds on some drivers.

Told apart by experience: while a reason's bit is set through whole intervals, its counter must grow
by the interval itself. Until then nanoseconds are assumed.
"""

from gpuwatch.sources.nvml.builder import Builder

#: field: the event reason bit under which it grows (nvml.h, nvmlClocksEventReason*)
COUNTER_BITS = {
    "power_cap_time_ns": 0x004,
    "sync_boost_time_ns": 0x010,
    "sw_thermal_time_ns": 0x020,
    "hw_thermal_time_ns": 0x040,
    "power_brake_time_ns": 0x080,
}
#: Growth per second that only nanoseconds explain: five times what microseconds can reach.
_SURELY_NS = 5e6
#: Growth per second of a counter of microseconds under a reason that never lifted.
_LIKE_US = (0.4e6, 1.3e6)
#: So many intervals in a row must look like microseconds; in nanoseconds that would be a tenth of a
#: percent of each interval although the bit was set at both of its ends.
_VOTES = 5


class TimeUnits:
    """Of one GPU. `apply` brings the counters of a reading to nanoseconds."""

    __slots__ = ("_before", "_before_s", "_scale", "_settled", "_votes")

    def __init__(self) -> None:
        self._before: dict[str, int] = {}
        self._before_s = 0.0
        self._scale = 1
        self._settled = False
        self._votes = 0

    def apply(self, out: Builder, now_s: float) -> None:
        reasons = out.number("event_reasons")
        if not self._settled and reasons is not None:
            self._learn(out, int(reasons), now_s)
        if self._scale == 1:
            return
        for field in COUNTER_BITS:
            value = out.number(field)
            if value is not None:
                out.values[field] = int(value) * self._scale

    def _learn(self, out: Builder, reasons: int, now_s: float) -> None:
        passed = now_s - self._before_s
        before, self._before, self._before_s = self._before, {}, now_s
        for field, bit in COUNTER_BITS.items():
            value = out.number(field)
            if value is None or not reasons & bit:
                continue
            self._before[field] = int(value)
            if field not in before or passed <= 0:
                continue
            growth = (int(value) - before[field]) / passed
            if growth >= _SURELY_NS:
                self._settled = True
                return
            self._votes = self._votes + 1 if _LIKE_US[0] <= growth <= _LIKE_US[1] else 0
            if self._votes >= _VOTES:
                self._settled, self._scale = True, 1000
                for name in COUNTER_BITS:  # one gap, not one huge step
                    if out.values.pop(name, None) is not None:
                        out.absent[name] = "the counter's unit was just learned to be microseconds"
                return
