"""The one table of all series: key, label, unit, range, and how each is derived from raw readings.

Everything else (history, plots, exports, help) reads this table. A derivation gets the previous
reading of the same thing (None at first), the present one and the true seconds between them; it
returns None for "not known", which history keeps as a gap.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from gpuwatch.model import DiskReading, GpuReading, HostReading, ProcessReading

#: Clock event reason bits (nvml.h, nvmlClocksEventReason*; 0x200 and 0x400 since 13.615).
REASON_BITS: dict[int, str] = {
    0x001: "idle",
    0x002: "application clocks",
    0x004: "SW power cap",
    0x008: "HW slowdown",
    0x010: "sync boost",
    0x020: "SW thermal slowdown",
    0x040: "HW thermal slowdown",
    0x080: "HW power brake",
    0x100: "display clock",
    0x200: "board limit",
    0x400: "reliability",
}
REASON_IDLE = 0x001
REASON_APP_CLOCKS = 0x002
REASON_POWER_CAP = 0x004
REASON_HW_SLOWDOWN = 0x008
REASON_SYNC_BOOST = 0x010
REASON_SW_THERMAL = 0x020
REASON_HW_THERMAL = 0x040
REASON_POWER_BRAKE = 0x080
REASON_DISPLAY = 0x100
#: The ones DCGM's own diagnostic fails a GPU on (DCGM, DcgmRecorder.cpp).
REASONS_HARMFUL = 0x0E8
#: Any reason but idle: with one of these set a clock says nothing about the card's best.
REASONS_NOT_IDLE = 0x7FE


class Kind(StrEnum):
    GAUGE = "gauge"
    RATE = "rate"  # difference of a counter over true time
    BITS = "bits"
    STATE = "state"  # small integers with names (P-state, link width)


class Summary(StrEnum):
    """How several points become one cell of a plot."""

    MEAN = "mean"
    MAX = "max"
    MIN = "min"
    LAST = "last"
    OR = "or"


Derivation = Callable[[Any, Any, float], float | None]


@dataclass(frozen=True, slots=True)
class Metric:
    """`high` None: the scale comes from the machine (`high_from` names the GpuInfo field) or grows.

    `tiers`: kept for 24 hours in coarser steps; others for the fine window only.
    """

    key: str
    label: str
    unit: str  # "ratio", "W", "MHz", "°C", "B", "B/s", "cores", "1/s", "ms", ""
    kind: Kind
    derive: Derivation
    low: float = 0.0
    high: float | None = None
    high_from: str | None = None
    summary: Summary = Summary.MEAN
    tiers: bool = False


def _field(name: str) -> Derivation:
    def derive(_previous: Any, current: Any, _dt: float) -> float | None:
        value = getattr(current, name)
        return None if value is None else float(value)

    return derive


def rate(name: str, scale: float = 1.0) -> Derivation:
    """Counter difference per second; a negative one (reset, reload, resume) is unknown."""

    def derive(previous: Any, current: Any, dt: float) -> float | None:
        if previous is None or dt <= 0:
            return None
        before, now = getattr(previous, name), getattr(current, name)
        if before is None or now is None or now < before:
            return None
        return float(now - before) * scale / dt

    return derive


def time_share(name: str, per_s: float) -> Derivation:
    """Share of time a counter of time grew, 0..1. A counter's step may straddle the tick: cap at 1."""
    per_second = rate(name)

    def derive(previous: Any, current: Any, dt: float) -> float | None:
        value = per_second(previous, current, dt)
        return None if value is None else min(1.0, value / per_s)

    return derive


def _utilization(_previous: GpuReading | None, current: GpuReading, _dt: float) -> float | None:
    """Mean of the driver's sub-second samples of this tick; its gauge stands for one sixth of a second."""
    values = current.utilization_burst.values
    return sum(values) / len(values) if values else current.utilization_ratio


def _memory_utilization(_previous: GpuReading | None, current: GpuReading, _dt: float) -> float | None:
    values = current.memory_utilization_burst.values
    return sum(values) / len(values) if values else current.memory_utilization_ratio


#: A sub-second sample below this counts as a gap (signals-nvml §5.1).
GAP_RATIO = 0.10


def _gaps(_previous: GpuReading | None, current: GpuReading, _dt: float) -> float | None:
    values = current.utilization_burst.values
    return sum(value < GAP_RATIO for value in values) / len(values) if values else None


def _power(previous: GpuReading | None, current: GpuReading, dt: float) -> float | None:
    """Energy difference where the card counts it (exact over any window of a second), else the gauge."""
    if (
        previous is not None
        and dt >= 0.5  # the counter moves in steps of up to 100 ms (zeus)
        and previous.energy_j is not None
        and current.energy_j is not None
        and current.energy_j > previous.energy_j
    ):
        return (current.energy_j - previous.energy_j) / dt
    return current.power_w


def _memory_ratio(_previous: GpuReading | None, current: GpuReading, _dt: float) -> float | None:
    if current.memory_used_bytes is None or not current.memory_total_bytes:
        return None
    return current.memory_used_bytes / current.memory_total_bytes


def _pcie(direction: str) -> Derivation:
    counter, gauge = f"pcie_{direction}_bytes", f"pcie_{direction}_bytes_per_s"

    def derive(previous: GpuReading | None, current: GpuReading, dt: float) -> float | None:
        now = getattr(current, counter)
        before = getattr(previous, counter) if previous is not None else None
        if now is None or before is None or dt <= 0:
            value = getattr(current, gauge)
            return None if value is None else float(value)
        delta = now - before
        if delta < 0:
            bits = current.pcie_counter_bits
            if bits is None or bits >= 64:
                return None
            delta += 1 << bits
        return float(delta) / dt

    return derive


def _thermal(previous: GpuReading | None, current: GpuReading, dt: float) -> float | None:
    parts = [
        share(previous, current, dt)
        for share in (time_share("sw_thermal_time_ns", 1e9), time_share("hw_thermal_time_ns", 1e9))
    ]
    known = [part for part in parts if part is not None]
    return max(known) if known else None


def _throttle(previous: GpuReading | None, current: GpuReading, dt: float) -> float | None:
    """Share of this tick under a harmful reason: counters first, else the bits of this moment."""
    brake = time_share("power_brake_time_ns", 1e9)(previous, current, dt)
    thermal = _thermal(previous, current, dt)
    known = [part for part in (brake, thermal) if part is not None]
    if known and max(known) > 0:
        return max(known)
    if current.event_reasons is not None:
        return 1.0 if current.event_reasons & REASONS_HARMFUL else 0.0
    return max(known) if known else None


GPU_METRICS: tuple[Metric, ...] = (
    Metric("utilization_ratio", "util", "ratio", Kind.GAUGE, _utilization, high=1.0, tiers=True),
    Metric("gap_ratio", "gaps", "ratio", Kind.GAUGE, _gaps, high=1.0, tiers=True),
    Metric("memory_utilization_ratio", "mem util", "ratio", Kind.GAUGE, _memory_utilization, high=1.0),
    Metric("encoder_ratio", "encoder", "ratio", Kind.GAUGE, _field("encoder_ratio"), high=1.0),
    Metric("decoder_ratio", "decoder", "ratio", Kind.GAUGE, _field("decoder_ratio"), high=1.0),
    Metric(
        "memory_used_bytes",
        "vram",
        "B",
        Kind.GAUGE,
        _field("memory_used_bytes"),
        high_from="memory_total_bytes",
        summary=Summary.MAX,
        tiers=True,
    ),
    Metric("memory_used_ratio", "vram", "ratio", Kind.GAUGE, _memory_ratio, high=1.0, summary=Summary.MAX),
    Metric("power_w", "power", "W", Kind.GAUGE, _power, high_from="power_limit_max_w", tiers=True),
    Metric("power_limit_w", "power limit", "W", Kind.GAUGE, _field("power_limit_w"), summary=Summary.LAST),
    Metric(
        "sm_clock_mhz",
        "clock",
        "MHz",
        Kind.GAUGE,
        _field("sm_clock_mhz"),
        high_from="sm_clock_max_mhz",
        tiers=True,
    ),
    Metric(
        "memory_clock_mhz",
        "mem clock",
        "MHz",
        Kind.GAUGE,
        _field("memory_clock_mhz"),
        high_from="memory_clock_max_mhz",
    ),
    Metric(
        "p_state", "P-state", "", Kind.STATE, _field("p_state"), high=15.0, summary=Summary.MAX, tiers=True
    ),
    Metric("event_reasons", "events", "", Kind.BITS, _field("event_reasons"), summary=Summary.OR),
    Metric(
        "throttle_ratio", "throttle", "ratio", Kind.RATE, _throttle, high=1.0, summary=Summary.MAX, tiers=True
    ),
    Metric("thermal_ratio", "thermal", "ratio", Kind.RATE, _thermal, high=1.0, summary=Summary.MAX),
    Metric(
        "sw_thermal_ratio",
        "SW thermal",
        "ratio",
        Kind.RATE,
        time_share("sw_thermal_time_ns", 1e9),
        high=1.0,
    ),
    Metric(
        "hw_thermal_ratio",
        "HW thermal",
        "ratio",
        Kind.RATE,
        time_share("hw_thermal_time_ns", 1e9),
        high=1.0,
    ),
    Metric(
        "power_brake_ratio",
        "power brake",
        "ratio",
        Kind.RATE,
        time_share("power_brake_time_ns", 1e9),
        high=1.0,
    ),
    Metric(
        "power_cap_ratio",
        "power cap",
        "ratio",
        Kind.RATE,
        time_share("power_cap_time_ns", 1e9),
        high=1.0,
        tiers=True,
    ),
    Metric(
        "sync_boost_ratio", "sync boost", "ratio", Kind.RATE, time_share("sync_boost_time_ns", 1e9), high=1.0
    ),
    Metric(
        "temperature_c",
        "temp",
        "°C",
        Kind.GAUGE,
        _field("temperature_c"),
        low=20.0,
        high_from="temperature_slowdown_c",
        summary=Summary.MAX,
        tiers=True,
    ),
    Metric(
        "memory_temperature_c",
        "mem temp",
        "°C",
        Kind.GAUGE,
        _field("memory_temperature_c"),
        low=20.0,
        high_from="temperature_memory_max_c",
        summary=Summary.MAX,
    ),
    Metric(
        "temperature_margin_c",
        "margin",
        "°C",
        Kind.GAUGE,
        _field("temperature_margin_c"),
        high=80.0,
        summary=Summary.MIN,
    ),
    Metric("fan_ratio", "fan", "ratio", Kind.GAUGE, _field("fan_ratio"), high=1.0, summary=Summary.MAX),
    Metric(
        "pcie_generation",
        "PCIe gen",
        "",
        Kind.STATE,
        _field("pcie_generation"),
        high=6.0,
        summary=Summary.MAX,
    ),
    Metric("pcie_width", "PCIe width", "", Kind.STATE, _field("pcie_width"), high=16.0, summary=Summary.MAX),
    Metric("pcie_rx_bytes_per_s", "PCIe rx", "B/s", Kind.RATE, _pcie("rx"), tiers=True),
    Metric("pcie_tx_bytes_per_s", "PCIe tx", "B/s", Kind.RATE, _pcie("tx"), tiers=True),
    Metric("pcie_replays_per_s", "PCIe replays", "1/s", Kind.RATE, rate("pcie_replay_count")),
    Metric("nvlink_rx_bytes_per_s", "NVLink rx", "B/s", Kind.RATE, rate("nvlink_rx_bytes")),
    Metric("nvlink_tx_bytes_per_s", "NVLink tx", "B/s", Kind.RATE, rate("nvlink_tx_bytes")),
    Metric(
        "sm_active_ratio", "SM active", "ratio", Kind.GAUGE, _field("sm_active_ratio"), high=1.0, tiers=True
    ),
    Metric("sm_occupancy_ratio", "occupancy", "ratio", Kind.GAUGE, _field("sm_occupancy_ratio"), high=1.0),
    Metric("tensor_ratio", "tensor", "ratio", Kind.GAUGE, _field("tensor_ratio"), high=1.0, tiers=True),
    Metric("dram_ratio", "DRAM", "ratio", Kind.GAUGE, _field("dram_ratio"), high=1.0),
    Metric("fp64_ratio", "FP64", "ratio", Kind.GAUGE, _field("fp64_ratio"), high=1.0),
    Metric("fp32_ratio", "FP32", "ratio", Kind.GAUGE, _field("fp32_ratio"), high=1.0),
    Metric("fp16_ratio", "FP16", "ratio", Kind.GAUGE, _field("fp16_ratio"), high=1.0),
)


def _cpu(part: Callable[[Any], float]) -> Derivation:
    """Share of all cores' time that went into `part` of CpuTimes."""

    def derive(previous: HostReading | None, current: HostReading, _dt: float) -> float | None:
        if previous is None or previous.cpu is None or current.cpu is None:
            return None
        total = current.cpu.total_s - previous.cpu.total_s
        spent = part(current.cpu) - part(previous.cpu)
        return spent / total if total > 0 and 0 <= spent <= total else None

    return derive


def _busiest_core(previous: HostReading | None, current: HostReading, _dt: float) -> float | None:
    if previous is None or previous.core_ids != current.core_ids:
        return None
    shares = core_shares(previous, current)
    known = [share for share in shares if share is not None]
    return max(known) if known else None


def core_shares(previous: HostReading, current: HostReading) -> list[float | None]:
    """Busy share of each core between two readings of the same cores; None where time stood still."""
    shares: list[float | None] = []
    for before, now, total_before, total_now in zip(
        previous.core_busy_s, current.core_busy_s, previous.core_total_s, current.core_total_s, strict=True
    ):
        total = total_now - total_before
        busy = now - before
        shares.append(busy / total if total > 0 and 0 <= busy <= total else None)
    return shares


HOST_METRICS: tuple[Metric, ...] = (
    Metric(
        "cpu_ratio",
        "cpu",
        "ratio",
        Kind.RATE,
        _cpu(lambda cpu: cpu.total_s - cpu.idle_s - cpu.iowait_s),
        high=1.0,
        tiers=True,
    ),
    Metric("cpu_system_ratio", "system", "ratio", Kind.RATE, _cpu(lambda cpu: cpu.system_s), high=1.0),
    Metric("cpu_iowait_ratio", "iowait", "ratio", Kind.RATE, _cpu(lambda cpu: cpu.iowait_s), high=1.0),
    Metric("cpu_steal_ratio", "steal", "ratio", Kind.RATE, _cpu(lambda cpu: cpu.steal_s), high=1.0),
    Metric(
        "busiest_core_ratio", "busiest core", "ratio", Kind.RATE, _busiest_core, high=1.0, summary=Summary.MAX
    ),
    Metric(
        "cpu_pressure_ratio",
        "cpu pressure",
        "ratio",
        Kind.RATE,
        time_share("cpu_pressure_us", 1e6),
        high=1.0,
        tiers=True,
    ),
    Metric(
        "io_pressure_ratio",
        "io pressure",
        "ratio",
        Kind.RATE,
        time_share("io_pressure_us", 1e6),
        high=1.0,
        tiers=True,
    ),
    Metric(
        "memory_pressure_ratio",
        "memory pressure",
        "ratio",
        Kind.RATE,
        time_share("memory_pressure_us", 1e6),
        high=1.0,
        tiers=True,
    ),
    Metric(
        "memory_full_pressure_ratio",
        "memory full pressure",
        "ratio",
        Kind.RATE,
        time_share("memory_full_pressure_us", 1e6),
        high=1.0,
    ),
    Metric(
        "memory_available_bytes",
        "available",
        "B",
        Kind.GAUGE,
        _field("memory_available_bytes"),
        summary=Summary.MIN,
        tiers=True,
    ),
    Metric("memory_cached_bytes", "cached", "B", Kind.GAUGE, _field("memory_cached_bytes")),
    Metric("swap_used_bytes", "swap", "B", Kind.GAUGE, _field("swap_used_bytes")),
    Metric("swap_in_bytes_per_s", "swap in", "B/s", Kind.RATE, rate("swap_in_bytes")),
    Metric("swap_out_bytes_per_s", "swap out", "B/s", Kind.RATE, rate("swap_out_bytes")),
    Metric("load_1m", "load", "", Kind.GAUGE, _field("load_1m")),
    Metric("refaults_per_s", "refaults", "1/s", Kind.RATE, rate("refault_count")),
)


def _await(reads: str, milliseconds: str) -> Derivation:
    def derive(previous: DiskReading | None, current: DiskReading, _dt: float) -> float | None:
        if previous is None:
            return None
        count = getattr(current, reads) - getattr(previous, reads)
        spent = getattr(current, milliseconds) - getattr(previous, milliseconds)
        return spent / count if count > 0 and spent >= 0 else None

    return derive


DISK_METRICS: tuple[Metric, ...] = (
    Metric("busy_ratio", "busy", "ratio", Kind.RATE, time_share("busy_ms", 1e3), high=1.0, tiers=True),
    Metric("read_bytes_per_s", "read", "B/s", Kind.RATE, rate("read_bytes"), tiers=True),
    Metric("write_bytes_per_s", "write", "B/s", Kind.RATE, rate("write_bytes")),
    Metric("reads_per_s", "reads", "1/s", Kind.RATE, rate("reads")),
    Metric("read_await_ms", "await", "ms", Kind.RATE, _await("reads", "read_ms"), summary=Summary.MAX),
    Metric("queue_depth", "queue", "", Kind.RATE, rate("queue_ms", 1e-3)),
)

NETWORK_METRICS: tuple[Metric, ...] = (
    Metric("rx_bytes_per_s", "rx", "B/s", Kind.RATE, rate("rx_bytes")),
    Metric("tx_bytes_per_s", "tx", "B/s", Kind.RATE, rate("tx_bytes")),
)


def _wait_share(previous: ProcessReading | None, current: ProcessReading, _dt: float) -> float | None:
    """Run-queue wait as a share of the time its threads wanted a core."""
    if previous is None or previous.cpu_ns is None or previous.wait_ns is None:
        return None
    if current.cpu_ns is None or current.wait_ns is None:
        return None
    ran, waited = current.cpu_ns - previous.cpu_ns, current.wait_ns - previous.wait_ns
    return waited / (ran + waited) if ran >= 0 and waited >= 0 and ran + waited > 0 else None


def _main_thread(previous: ProcessReading | None, current: ProcessReading, dt: float) -> float | None:
    if previous is None or not previous.threads or not current.threads or dt <= 0:
        return None
    before, now = previous.threads[0].run_ns, current.threads[0].run_ns
    return None if before is None or now is None or now < before else (now - before) / 1e9 / dt


def _blocked(_previous: ProcessReading | None, current: ProcessReading, _dt: float) -> float | None:
    return None if current.state == "?" else float(current.state == "D")


PROCESS_METRICS: tuple[Metric, ...] = (
    Metric("cpu_cores", "cpu", "cores", Kind.RATE, rate("cpu_ns", 1e-9)),
    Metric("main_cpu_cores", "main thread", "cores", Kind.RATE, _main_thread),
    Metric("wait_ratio", "run-queue wait", "ratio", Kind.RATE, _wait_share, high=1.0),
    Metric("blocked_ratio", "blocked", "ratio", Kind.STATE, _blocked, high=1.0),
    Metric("rss_bytes", "rss", "B", Kind.GAUGE, _field("rss_bytes"), summary=Summary.MAX),
    Metric("read_bytes_per_s", "disk read", "B/s", Kind.RATE, rate("read_bytes")),
    Metric("write_bytes_per_s", "disk write", "B/s", Kind.RATE, rate("write_bytes")),
    Metric("read_chars_per_s", "read", "B/s", Kind.RATE, rate("read_chars")),
    Metric("major_faults_per_s", "major faults", "1/s", Kind.RATE, rate("major_faults")),
)

#: By entity kind, the part of an entity's name before the colon ("gpu:GPU-…", "host:", "disk:sda").
METRICS: dict[str, tuple[Metric, ...]] = {
    "gpu": GPU_METRICS,
    "host": HOST_METRICS,
    "disk": DISK_METRICS,
    "net": NETWORK_METRICS,
    "process": PROCESS_METRICS,
}


def metric(entity_kind: str, key: str) -> Metric:
    """KeyError if there is no such metric."""
    for candidate in METRICS[entity_kind]:
        if candidate.key == key:
            return candidate
    raise KeyError(f"no metric {key!r} of {entity_kind!r}")
