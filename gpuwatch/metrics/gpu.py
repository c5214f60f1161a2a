"""Series of one GPU."""

from bisect import bisect_right
from collections.abc import Sequence

from gpuwatch.metrics.kinds import Derivation, Kind, Metric, Summary, field, rate, time_share
from gpuwatch.metrics.reasons import REASONS_HARMFUL
from gpuwatch.model import Burst, GpuReading

#: The driver's ring may bring many seconds at once (at the start, after a hang); the tick is the last
#: of them.
LATEST_S = 1.0
#: A sub-second sample below this counts as a gap (signals-nvml §5.1).
GAP_RATIO = 0.10


def _points(previous: GpuReading | None, current: GpuReading, burst: Burst) -> Sequence[float]:
    """The sub-second values of this tick."""
    values = burst.values
    if previous is None and values:
        start = bisect_right(burst.times_s, current.read_s - LATEST_S)
        return values[start:]
    return values


def _utilization(previous: GpuReading | None, current: GpuReading, _dt: float) -> float | None:
    """Mean of the driver's sub-second samples of this tick; its gauge stands for one sixth of a second."""
    values = _points(previous, current, current.utilization_burst)
    return sum(values) / len(values) if values else current.utilization_ratio


def _memory_utilization(previous: GpuReading | None, current: GpuReading, _dt: float) -> float | None:
    values = _points(previous, current, current.memory_utilization_burst)
    return sum(values) / len(values) if values else current.memory_utilization_ratio


def _gaps(previous: GpuReading | None, current: GpuReading, _dt: float) -> float | None:
    values = _points(previous, current, current.utilization_burst)
    return sum(value < GAP_RATIO for value in values) / len(values) if values else None


#: The energy counter moves in steps of up to 100 ms (zeus), so a difference needs this long a tick.
ENERGY_DT_S = 0.5
#: No single GPU takes more; a larger difference of energy is a jump of the counter.
MOST_POWER_W = 5000.0


def _power(previous: GpuReading | None, current: GpuReading, dt: float) -> float | None:
    """Energy difference where the card counts it (exact over any window of a second), else the gauge."""
    if (
        previous is not None
        and dt >= ENERGY_DT_S
        and previous.energy_j is not None
        and current.energy_j is not None
        and current.energy_j > previous.energy_j
    ):
        power_w = (current.energy_j - previous.energy_j) / dt
        if power_w <= MOST_POWER_W:
            return power_w
    return current.power_w


def _memory_ratio(_previous: GpuReading | None, current: GpuReading, _dt: float) -> float | None:
    if current.memory_used_bytes is None or not current.memory_total_bytes:
        return None
    return current.memory_used_bytes / current.memory_total_bytes


#: Twice what sixteen lanes of the sixth generation carry one way.
MOST_PCIE_BYTES_PER_S = 256e9


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
        value = delta / dt
        return value if value <= MOST_PCIE_BYTES_PER_S else None

    return derive


_sw_thermal = time_share("sw_thermal_time_ns", 1e9)
_hw_thermal = time_share("hw_thermal_time_ns", 1e9)
_power_brake = time_share("power_brake_time_ns", 1e9)


def _most(*values: float | None) -> float | None:
    return max((value for value in values if value is not None), default=None)


def _thermal(previous: GpuReading | None, current: GpuReading, dt: float) -> float | None:
    return _most(_sw_thermal(previous, current, dt), _hw_thermal(previous, current, dt))


def _throttle(previous: GpuReading | None, current: GpuReading, dt: float) -> float | None:
    """Share of this tick under a harmful reason: counters first, else the bits of this moment."""
    counted = _most(_power_brake(previous, current, dt), _thermal(previous, current, dt))
    if not counted and current.event_reasons is not None:
        return 1.0 if current.event_reasons & REASONS_HARMFUL else 0.0
    return counted


GPU_METRICS: tuple[Metric, ...] = (
    Metric("utilization_ratio", "util", "ratio", Kind.GAUGE, _utilization, high=1.0, tiers=True),
    Metric("gap_ratio", "gaps", "ratio", Kind.GAUGE, _gaps, high=1.0, tiers=True),
    Metric("memory_utilization_ratio", "mem util", "ratio", Kind.GAUGE, _memory_utilization, high=1.0),
    Metric("encoder_ratio", "encoder", "ratio", Kind.GAUGE, field("encoder_ratio"), high=1.0),
    Metric("decoder_ratio", "decoder", "ratio", Kind.GAUGE, field("decoder_ratio"), high=1.0),
    Metric(
        "memory_used_bytes",
        "vram",
        "B",
        Kind.GAUGE,
        field("memory_used_bytes"),
        high_from="memory_total_bytes",
        summary=Summary.MAX,
        tiers=True,
    ),
    Metric("memory_used_ratio", "vram", "ratio", Kind.GAUGE, _memory_ratio, high=1.0, summary=Summary.MAX),
    Metric("power_w", "power", "W", Kind.GAUGE, _power, high_from="power_limit_max_w", tiers=True),
    Metric("power_limit_w", "power limit", "W", Kind.GAUGE, field("power_limit_w"), summary=Summary.LAST),
    Metric(
        "sm_clock_mhz",
        "clock",
        "MHz",
        Kind.GAUGE,
        field("sm_clock_mhz"),
        high_from="sm_clock_max_mhz",
        tiers=True,
    ),
    Metric(
        "memory_clock_mhz",
        "mem clock",
        "MHz",
        Kind.GAUGE,
        field("memory_clock_mhz"),
        high_from="memory_clock_max_mhz",
    ),
    Metric(
        "p_state", "P-state", "", Kind.STATE, field("p_state"), high=15.0, summary=Summary.MAX, tiers=True
    ),
    Metric("event_reasons", "events", "", Kind.BITS, field("event_reasons"), summary=Summary.OR),
    Metric(
        "throttle_ratio", "throttle", "ratio", Kind.RATE, _throttle, high=1.0, summary=Summary.MAX, tiers=True
    ),
    Metric("thermal_ratio", "thermal", "ratio", Kind.RATE, _thermal, high=1.0, summary=Summary.MAX),
    Metric(
        "sw_thermal_ratio",
        "SW thermal",
        "ratio",
        Kind.RATE,
        _sw_thermal,
        high=1.0,
    ),
    Metric(
        "hw_thermal_ratio",
        "HW thermal",
        "ratio",
        Kind.RATE,
        _hw_thermal,
        high=1.0,
    ),
    Metric(
        "power_brake_ratio",
        "power brake",
        "ratio",
        Kind.RATE,
        _power_brake,
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
        field("temperature_c"),
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
        field("memory_temperature_c"),
        low=20.0,
        high_from="temperature_memory_max_c",
        summary=Summary.MAX,
    ),
    Metric(
        "temperature_margin_c",
        "margin",
        "°C",
        Kind.GAUGE,
        field("temperature_margin_c"),
        high=80.0,
        summary=Summary.MIN,
    ),
    Metric("fan_ratio", "fan", "ratio", Kind.GAUGE, field("fan_ratio"), high=1.0, summary=Summary.MAX),
    Metric(
        "pcie_generation",
        "PCIe gen",
        "",
        Kind.STATE,
        field("pcie_generation"),
        high=6.0,
        summary=Summary.MAX,
    ),
    Metric("pcie_width", "PCIe width", "", Kind.STATE, field("pcie_width"), high=16.0, summary=Summary.MAX),
    Metric("pcie_rx_bytes_per_s", "PCIe rx", "B/s", Kind.RATE, _pcie("rx"), tiers=True),
    Metric("pcie_tx_bytes_per_s", "PCIe tx", "B/s", Kind.RATE, _pcie("tx"), tiers=True),
    Metric("pcie_replays_per_s", "PCIe replays", "1/s", Kind.RATE, rate("pcie_replay_count")),
    Metric("nvlink_rx_bytes_per_s", "NVLink rx", "B/s", Kind.RATE, rate("nvlink_rx_bytes")),
    Metric("nvlink_tx_bytes_per_s", "NVLink tx", "B/s", Kind.RATE, rate("nvlink_tx_bytes")),
    Metric("nvlink_errors_per_s", "NVLink errors", "1/s", Kind.RATE, rate("nvlink_error_count")),
    Metric(
        "sm_active_ratio", "SM active", "ratio", Kind.GAUGE, field("sm_active_ratio"), high=1.0, tiers=True
    ),
    Metric("sm_occupancy_ratio", "occupancy", "ratio", Kind.GAUGE, field("sm_occupancy_ratio"), high=1.0),
    Metric("tensor_ratio", "tensor", "ratio", Kind.GAUGE, field("tensor_ratio"), high=1.0, tiers=True),
    Metric("dram_ratio", "DRAM", "ratio", Kind.GAUGE, field("dram_ratio"), high=1.0),
    Metric("fp64_ratio", "FP64", "ratio", Kind.GAUGE, field("fp64_ratio"), high=1.0),
    Metric("fp32_ratio", "FP32", "ratio", Kind.GAUGE, field("fp32_ratio"), high=1.0),
    Metric("fp16_ratio", "FP16", "ratio", Kind.GAUGE, field("fp16_ratio"), high=1.0),
)
