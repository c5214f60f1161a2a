"""Clock event reasons: why the driver holds a clock below its best, as bits.

Source: nvml.h, nvmlClocksEventReason*; 0x200 and 0x400 since 13.615.
"""

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
