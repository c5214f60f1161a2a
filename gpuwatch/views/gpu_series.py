"""What is drawn of one GPU: each series with its scale, its limit, its unit and its age."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from gpuwatch.metrics import METRICS
from gpuwatch.model import Finding, GpuInfo, GpuReading, GpuState, Severity, severity_at_least
from gpuwatch.model.link import link_bytes_per_s
from gpuwatch.views import format as words
from gpuwatch.views.lens import Lens, Point
from gpuwatch.views.rows import Span, safe, shorten
from gpuwatch.views.spark import logarithmic, spark, spark_rows, state_strip

#: PCIe traffic spans decades, so its scale is logarithmic: this much is nothing, the link's own is full.
PCIE_NOTHING_BYTES_PER_S = 10e6
#: Where the machine does not say what its scale is.
_FALLBACK = {"power_w": 400.0, "sm_clock_mhz": 2000.0, "temperature_c": 95.0, "pcie": 31.5e9}

#: How far back sub-second samples are drawn.
FINE_S = 60.0

LABEL_WIDTH = 7
VALUE_WIDTH, NARROW_VALUE_WIDTH = 15, 10


@dataclass(frozen=True, slots=True)
class Series:
    """One plotted series. `unit` is written; `evidence` are the metrics a finding about it names."""

    name: str
    label: str
    key: str
    unit: str
    role: str = "plot"
    evidence: tuple[str, ...] = ()


UTILIZATION = Series("util", "util", "utilization_ratio", "%", "series1", ("utilization_ratio", "gap_ratio"))
POWER = Series("power", "power", "power_w", "W", "plot", ("power_w", "power_limit_w", "power_cap_ratio"))
CLOCK = Series("clock", "clock", "sm_clock_mhz", "MHz", "plot", ("sm_clock_mhz",))
P_STATE = Series("pstate", "state", "p_state", "", "dim", ("p_state",))
PCIE_RX = Series(
    "pcie_rx",
    "pcie",
    "pcie_rx_bytes_per_s",
    "GB/s",
    "plot",
    ("pcie_rx_bytes_per_s", "pcie_generation", "pcie_width"),
)
PCIE_TX = Series("pcie_tx", "pcie", "pcie_tx_bytes_per_s", "GB/s", "plot", ("pcie_tx_bytes_per_s",))
MEMORY = Series(
    "vram", "vram", "memory_used_bytes", "GiB", "plot", ("memory_used_bytes", "memory_used_ratio")
)
TEMPERATURE = Series(
    "temp", "temp", "temperature_c", "°C", "plot", ("temperature_c", "temperature_margin_c", "thermal_ratio")
)
THROTTLE = Series(
    "throttle",
    "throt",
    "throttle_ratio",
    "%",
    "plot",
    ("throttle_ratio", "event_reasons", "thermal_ratio", "power_brake_ratio", "hw_thermal_ratio"),
)
#: In the order in which rows are given to them.
BY_IMPORTANCE = (UTILIZATION, POWER, CLOCK, P_STATE, PCIE_RX, MEMORY, TEMPERATURE, THROTTLE, PCIE_TX)
_METRIC_KEYS = frozenset(metric.key for metric in METRICS["gpu"])


class GpuPicture:
    """One GPU at the moment looked at."""

    def __init__(self, lens: Lens, reading: GpuReading) -> None:
        self.lens, self.reading = lens, reading
        self.entity = f"gpu:{reading.uuid}"
        self.info: GpuInfo | None = lens.info(reading.uuid)
        self._loud = _loud_metrics(lens.findings, reading.uuid)
        self._points: dict[str, Point] = {}

    @property
    def ok(self) -> bool:
        return self.reading.status.state is GpuState.OK

    def point(self, key: str) -> Point:
        found = self._points.get(key)
        if found is None:
            found = self._points[key] = self.lens.point(self.entity, key)
        return found

    def label(self, series: Series) -> str:
        arrows = {"pcie_rx": self.lens.glyphs.rx, "pcie_tx": self.lens.glyphs.tx}
        return series.label + arrows.get(series.name, "")

    def role(self, series: Series) -> str:
        """Loud where a finding is about this series, else calm."""
        for key in series.evidence:
            if key in self._loud:
                return self._loud[key]
        return series.role

    def scale(self, series: Series) -> tuple[float, float]:
        """(low, high) of the plot, fixed for this GPU. For PCIe both are bytes a second."""
        info = self.info
        if series is POWER:
            highest = None if info is None else info.power_limit_max_w
            limits = [value for value in (highest, self.reading.power_limit_w) if value is not None]
            return 0.0, max(limits, default=_FALLBACK["power_w"])
        if series is CLOCK:
            return 0.0, (info and info.sm_clock_max_mhz) or _FALLBACK["sm_clock_mhz"]
        if series is TEMPERATURE:
            return 20.0, self.hottest_c or _FALLBACK["temperature_c"]
        if series is MEMORY:
            total = self.reading.memory_total_bytes or (info and info.memory_total_bytes)
            return 0.0, float(total or words.UNKNOWN_MEMORY)
        if series in (PCIE_RX, PCIE_TX):
            return PCIE_NOTHING_BYTES_PER_S, self.link_bytes_per_s or _FALLBACK["pcie"]
        return 0.0, 15.0 if series is P_STATE else 1.0

    @property
    def hottest_c(self) -> float | None:
        """Where this card slows itself down, as far as the driver says."""
        info = self.info
        if info is None:
            return None
        return info.temperature_slowdown_c or info.temperature_gpu_max_c or info.temperature_shutdown_c

    @property
    def link_bytes_per_s(self) -> float | None:
        """What the link of card and slot carries one way, at its best."""
        generation = (self.info and self.info.pcie_generation_max) or self.reading.pcie_generation
        width = (self.info and self.info.pcie_width_max) or self.reading.pcie_width
        return link_bytes_per_s(generation, width)

    def plot(self, series: Series, width: int, rows: int = 1) -> list[str]:
        """The series over `rows` rows of `width` cells; a reason in its place where it is not there."""
        if width <= 0:
            return [""] * rows
        values = self.lens.cells(self.entity, series.key, width)
        blank = self.lens.blank(width)
        reason = self.reason(series) if not any(value is not None for value in values) else ""
        glyphs = self.lens.glyphs
        if reason:
            text = shorten(safe(reason, glyphs), width, glyphs)
            return [text + " " * (width - len(text))] + [" " * width] * (rows - 1)
        if series is P_STATE:
            return [state_strip(values, glyphs, blank)] + [" " * width] * (rows - 1)
        low, high = self.scale(series)
        if series in (PCIE_RX, PCIE_TX):
            values = [logarithmic(value, low) for value in values]
            low, high = 0.0, logarithmic(high, low) or 1.0
        return spark_rows(values, low, high, rows, glyphs, blank)

    @property
    def has_fine(self) -> bool:
        return bool(self.lens.history.burst(self.reading.uuid, "utilization", FINE_S).times_s)

    def fine(self, width: int) -> tuple[str, float | None]:
        """The driver's sub-second utilization, one sample a cell, and how many come in a second.

        A hole between samples is a gap of as many cells as would have fitted. Looking back shows none:
        they are kept for two minutes only.
        """
        blank = " " * width
        if width <= 0 or self.lens.back:
            return blank, None
        burst = self.lens.history.burst(self.reading.uuid, "utilization", FINE_S)
        times, values = burst.times_s, burst.values
        if len(times) < 3:
            return blank, None
        spaces = sorted(later - earlier for earlier, later in itertools.pairwise(times))
        spacing = spaces[len(spaces) // 2]
        if spacing <= 0:
            return blank, None
        cells: list[float | None] = [None] * width
        newest = times[-1]
        for time_s, value in zip(reversed(times), reversed(values), strict=True):
            place = width - 1 - round((newest - time_s) / spacing)
            if place < 0:
                break
            cells[place] = value
        first = next(i for i, value in enumerate(cells) if value is not None)
        return spark(cells, 0.0, 1.0, self.lens.glyphs, first), 1 / spacing

    def reason(self, series: Series) -> str:
        """Why there is no value, in the driver's words; "" where there is one or nothing is known."""
        absent: Mapping[str, str] = self.reading.absent
        short_key = series.key.removesuffix("_per_s")
        return absent.get(series.key) or absent.get(short_key) or ""

    def value(self, series: Series, width: int) -> Span:
        """The newest value with its unit, right-aligned number, the limit where there is room, its age."""
        point = self.point(series.key)
        if series is P_STATE:
            return self._state_value(point, width)
        number = _NUMBERS[series.name](point.value)
        unit = self.lens.glyphs.degree if series is TEMPERATURE else series.unit
        if point.stale:
            return _aged(number, unit, words.age(point.age_s), width), "dim"
        limit = self.limit(series) if width >= VALUE_WIDTH else ""
        figure = f"{number}/{limit}" if limit and point.value is not None else number
        role = self.role(series)
        if point.value is None or (series is THROTTLE and not point.value):
            role = "dim"
        elif role == series.role:
            role = "value"
        return f"{figure:>{width - 5}} {unit:<4}", role

    def _state_value(self, point: Point, width: int) -> Span:
        """The P-state has its name in the strip already, so the memory stands beside it."""
        state = words.DASH if point.value is None else f"P{point.value:.0f}"
        return f"{state:>{width - 5}}     ", "dim" if point.value is None or point.stale else "value"

    def limit(self, series: Series) -> str:
        """The limit of this GPU as a number in the series' unit; "" where none is known."""
        if series is POWER:
            return "" if self.reading.power_limit_w is None else words.whole(self.reading.power_limit_w)
        if series is CLOCK and self.info is not None and self.info.sm_clock_max_mhz:
            return words.whole(self.info.sm_clock_max_mhz)
        if series is TEMPERATURE and self.hottest_c is not None:
            return words.whole(self.hottest_c)
        if series is MEMORY and self.reading.memory_total_bytes:
            return words.gib(self.reading.memory_total_bytes)
        if series in (PCIE_RX, PCIE_TX) and self.link_bytes_per_s is not None:
            return words.gigabytes_per_s(self.link_bytes_per_s)
        return ""

    def memory(self) -> str:
        """ "38.2/80.0 GiB"; one figure alone where the other is not known."""
        used = self.point("memory_used_bytes").value
        total = self.reading.memory_total_bytes
        return f"{words.gib(used)}/{words.gib(total)} GiB" if total else f"{words.gib(used)} GiB"

    def link(self) -> str:
        """ "4x16", generation and lanes of this moment."""
        generation, width = self.reading.pcie_generation, self.reading.pcie_width
        if generation is None and width is None:
            return ""
        return f"{generation or '?'}{self.lens.glyphs.times}{width or '?'}"


_NUMBERS: Mapping[str, Callable[[float | None], str]] = {
    "util": words.percent_number,
    "power": words.whole,
    "clock": words.whole,
    "pcie_rx": words.gigabytes_per_s,
    "pcie_tx": words.gigabytes_per_s,
    "vram": words.gib,
    "temp": words.whole,
    "throttle": words.percent_number,
}


def _aged(number: str, unit: str, age: str, width: int) -> str:
    """An old value with its age; the unit gives way where all three do not fit."""
    text = f"{number} {unit}"
    if len(text) + 1 + len(age) > width:
        text = number
    return f"{text:>{max(1, width - max(6, len(age) + 1))}} {age:>{max(5, len(age))}}"[-width:]


def _loud_metrics(findings: Sequence[Finding], uuid: str) -> dict[str, str]:
    """metric -> role, for the series that active findings about this GPU stand on; the worst wins."""
    loud: dict[str, str] = {}
    for finding in reversed(findings):
        if uuid not in finding.gpus or not severity_at_least(finding.severity, Severity.NOTICE):
            continue
        role = "bad" if finding.severity is Severity.CRITICAL else "warn"
        for evidence in finding.evidence:
            if evidence.metric in _METRIC_KEYS:
                loud[evidence.metric] = role
    return loud
