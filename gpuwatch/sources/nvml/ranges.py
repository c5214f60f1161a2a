"""What a value can be at all. Outside: discarded and counted, never clamped.

The limits are physical or from the definition of the field, with room to spare; they catch
garbage (4294967295 %, nvml blank codes), not unusual hardware.
"""

#: field of GpuReading: (lowest, highest). Counters have no highest but the blank codes.
RANGES: dict[str, tuple[float, float]] = {
    # shares of time by definition (nvml.h, nvmlUtilization_t); 2619 % and 4294967295 % were seen (DCGM#199)
    "utilization_ratio": (0.0, 1.0),
    "memory_utilization_ratio": (0.0, 1.0),
    "encoder_ratio": (0.0, 1.0),
    "decoder_ratio": (0.0, 1.0),
    # largest single package in 2026: 192..288 GB; a factor of ten to spare
    "memory_total_bytes": (1, 4e12),
    "memory_used_bytes": (0, 4e12),
    "memory_reserved_bytes": (0, 4e12),
    # largest board limit in 2026: 1400 W
    "power_w": (0.0, 2000.0),
    "power_limit_w": (1.0, 2000.0),
    # highest boost clock in 2026: 3.2 GHz; memory transfer clocks up to 16 GHz are divided by NVML
    "sm_clock_mhz": (0.0, 10_000.0),
    "memory_clock_mhz": (0.0, 20_000.0),
    "p_state": (0, 15),  # nvml.h, nvmlPstates_t; 32 is "unknown"
    "event_reasons": (0, 0xFFFF_FFFF),
    "temperature_c": (-20.0, 150.0),
    # a memory sensor that reads exactly 0 is not connected (GB10)
    "memory_temperature_c": (1.0, 150.0),
    "temperature_margin_c": (-150.0, 200.0),
    "fan_ratio": (0.0, 1.2),  # nvml.h: may exceed 100 % slightly
    "pcie_generation": (1, 8),
    "pcie_width": (1, 32),
    "pcie_tx_bytes_per_s": (0.0, 600e9),  # gen 7 x16 and room
    "pcie_rx_bytes_per_s": (0.0, 600e9),
    "recovery_action": (0, 7),  # field 230
    # GPM percentages, as ratios; rounding may end just above 1
    "sm_active_ratio": (0.0, 1.01),
    "sm_occupancy_ratio": (0.0, 1.01),
    "tensor_ratio": (0.0, 1.01),
    "dram_ratio": (0.0, 1.01),
    "fp64_ratio": (0.0, 1.01),
    "fp32_ratio": (0.0, 1.01),
    "fp16_ratio": (0.0, 1.01),
}
_COUNTER = (0, 2.0**63 - 4096)

#: A reading above ten times the board's limit is no peak but garbage.
POWER_LIMIT_FACTOR = 10.0

_INT32_BLANK = 0x7FFF_FFF0  # DCGM's blank codes: 2^31-16, 2^63-16 and 2^47, each with 16 variants
_DOUBLE_BLANK = 2.0**47
_INT64_BLANK = 0x7FFF_FFFF_FFFF_FFF0


def bounds(field: str) -> tuple[float, float]:
    return RANGES.get(field, _COUNTER)


def is_blank(value: float) -> bool:
    """A code that means "not available", also after a trip through a double (2^63, 2^64)."""
    return (
        _INT32_BLANK <= value <= 0x7FFF_FFFF
        or _DOUBLE_BLANK <= value < _DOUBLE_BLANK + 16
        or value >= _INT64_BLANK
    )
