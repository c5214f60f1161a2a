"""Numbers with their units, in fixed widths: the one place where figures become text.

None is a dash everywhere. Bytes of memory are binary (GiB), rates of bytes are decimal (MB/s), as the
makers of memory and of links write them.
"""

DASH = "-"
#: The scale of a memory plot where the card does not say its size.
UNKNOWN_MEMORY = 24 << 30

_GIB, _MIB, _KIB = 1 << 30, 1 << 20, 1 << 10
_RATES = ((1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"))


def whole(value: float | None) -> str:
    return DASH if value is None else f"{value:.0f}"


def percent(ratio: float | None) -> str:
    """ "98 %"; below one percent but not nothing is "<1 %"."""
    if ratio is None:
        return f"{DASH} %"
    return "<1 %" if 0 < ratio < 0.005 else f"{100 * ratio:.0f} %"


def percent_number(ratio: float | None) -> str:
    return DASH if ratio is None else f"{100 * ratio:.0f}"


def short(value: float) -> str:
    """Three significant digits, in at most four characters below 10000."""
    if value >= 99.95 or value < 0.005:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 9.995 else f"{value:.2f}"


def gib(size: float | None) -> str:
    """GiB as a number without the unit: "38.2", "503", "0.4"."""
    if size is None:
        return DASH
    value = size / _GIB
    return f"{value:.0f}" if value >= 99.95 else f"{value:.1f}"


def gib_whole(size: float | None) -> str:
    """GiB without the unit and without decimals, except below ten."""
    if size is None:
        return DASH
    value = size / _GIB
    return f"{value:.1f}" if 0.05 <= value < 9.95 and round(value, 1) != round(value) else f"{value:.0f}"


def memory(size: float | None) -> str:
    """ "38.2 GiB", "412 MiB"."""
    if size is None:
        return DASH
    if size >= _GIB:
        return f"{gib(size)} GiB"
    return f"{size / _MIB:.0f} MiB" if size >= _MIB else f"{size / _KIB:.0f} KiB"


def memory_short(size: float | None) -> str:
    """ "38.2G", "412M": for columns, at most five characters."""
    if size is None:
        return DASH
    if size >= 999.5 * _MIB:
        return f"{gib(size)}G"
    return f"{size / _MIB:.0f}M" if size >= _MIB else f"{size / _KIB:.0f}K"


def card_memory(total: float) -> str:
    """The size of a card as people name it: "80G"."""
    return f"{round(total / _GIB)}G"


def rate(value: float | None) -> str:
    """Bytes a second: "1.2 GB/s", "61 MB/s", "0 MB/s"."""
    if value is None:
        return f"{DASH} MB/s"
    number, unit = rate_parts(value)
    return f"{number} {unit}"


def rate_parts(value: float) -> tuple[str, str]:
    for factor, unit in _RATES:
        if value >= 0.9995 * factor:
            scaled = value / factor
            return (f"{scaled:.1f}" if scaled < 9.95 else f"{scaled:.0f}"), unit
    return "0", "MB/s"


def rate_short(value: float | None) -> str:
    """ "1.2G", "61M", "0": for columns of bytes a second."""
    if value is None:
        return DASH
    number, unit = rate_parts(value)
    return number if number == "0" else f"{number}{unit[0]}"


def gigabytes_per_s(value: float | None) -> str:
    """GB/s as a number without the unit."""
    return DASH if value is None else short(value / 1e9)


def clock_time(seconds: float | None) -> str:
    """A duration as h:mm:ss: "2:14:09"; days in front where there are any."""
    if seconds is None:
        return DASH
    whole_s = max(0, int(seconds))
    days, rest = divmod(whole_s, 86400)
    text = f"{rest // 3600}:{rest // 60 % 60:02}:{rest % 60:02}"
    return f"{days}d {text}" if days else text


def span(seconds: float | None) -> str:
    """A duration in one unit: "3 s", "12 min", "5 h", "2 d"."""
    if seconds is None:
        return DASH
    value = max(0.0, seconds)
    if value < 10 and round(value, 1) != round(value):
        return f"{value:.1f} s"
    for limit, unit_s, unit in ((120, 1, "s"), (7200, 60, "min"), (172800, 3600, "h")):
        if value < limit:
            return f"{int(value / unit_s)} {unit}"
    return f"{int(value / 86400)} d"


def age(seconds: float) -> str:
    """How old something is: whole seconds, then minutes, then hours."""
    return span(float(int(max(0.0, seconds))))


def ratio_range(low: float | None, value: float | None, high: float | None) -> str:
    """A share with its interval: "58-66 %"; without one "61 %"; "" where it is unknown."""
    if low is not None and high is not None:
        first, last = round(100 * low), round(100 * high)
        return f"{first} %" if first >= last else f"{first}-{last} %"
    return "" if value is None else f"{round(100 * value)} %"


def quantity(value: float | str | None, unit: str) -> str:
    """A raw value of evidence in its unit, as the metric table names units."""
    if value is None:
        return DASH
    if isinstance(value, str):
        return f"{value} {unit}".rstrip()
    if unit == "ratio":
        return percent(value)
    if unit in ("B", "bytes"):
        return memory(value)
    if unit in ("B/s", "bytes/s"):
        return rate(value)
    if unit == "s":
        return span(value)
    if unit == "cores":
        return f"{value:.2f} cores" if value < 9.995 else f"{value:.0f} cores"
    text = f"{value:.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.3g}"
    return f"{text} {unit}".rstrip()


def plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
