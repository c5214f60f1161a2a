"""One GPU in one row: its utilization over time and as many figures as fit, in fixed places."""

import re

from gpuwatch.model import GpuState
from gpuwatch.views import format as words
from gpuwatch.views.gpu_series import PCIE_RX, POWER, UTILIZATION, GpuPicture
from gpuwatch.views.lens import Point
from gpuwatch.views.rows import Row, Span, row, safe, shorten

#: The plot keeps at least this many cells and this share of the row.
LEAST_PLOT, LEAST_PLOT_SHARE = 8, 0.4
#: What gives way first stands last.
_FIELDS = ("util", "power", "memory", "temperature", "state", "clock", "pcie")
#: A message may have counted up to the moment it was written; how long it is by now is said anyway.
_DURATION = re.compile(r" for \d+ s$")
_WIDTHS = {"util": 5, "power": 6, "memory": 8, "temperature": 5, "state": 4, "clock": 9, "pcie": 7}


def line(picture: GpuPicture, width: int, count: int) -> Row:
    """`count`: GPUs in all, so that the numbers of all of them have the same width."""
    mark, role = index_mark(picture, count)
    if not picture.ok:
        return row([(mark, role), *status_spans(picture, width - len(mark))], width)
    left = width - len(mark)
    fields: list[str] = []
    for name in _FIELDS:
        if left - _WIDTHS[name] < max(LEAST_PLOT, LEAST_PLOT_SHARE * width):
            break
        fields.append(name)
        left -= _WIDTHS[name]
    spans: list[Span] = [(mark, role), (picture.plot(UTILIZATION, left)[0], picture.role(UTILIZATION))]
    spans += [_field(picture, name) for name in fields]
    return row(spans, width)


def index_mark(picture: GpuPicture, count: int) -> Span:
    """The GPU's number; the selected one is marked while the panel has the focus."""
    digits = 2 if count > 10 else 1
    selected = is_selected(picture)
    text = f"{'>' if selected else ' '}{picture.reading.index:>{digits}} "
    return text if selected or width_matters(count) else text[1:], "accent" if selected else "label"


def width_matters(count: int) -> bool:
    """Several GPUs keep a column for the mark, so that nothing jumps when one is selected."""
    return count > 1


def is_selected(picture: GpuPicture) -> bool:
    options, gpus = picture.lens.options, picture.lens.gpus
    if options.focus != "gpus" or len(gpus) < 2:
        return False
    chosen = min(max(0, options.gpu_row), len(gpus) - 1)
    return gpus[chosen].uuid == picture.reading.uuid


def status_spans(picture: GpuPicture, width: int) -> list[Span]:
    """What is the matter with a GPU that gives no figures, and since when."""
    status, glyphs = picture.reading.status, picture.lens.glyphs
    calm = status.state in (GpuState.ASLEEP, GpuState.HIDDEN)
    mark = glyphs.dot if calm else "!" if status.state is GpuState.NOT_ANSWERING else glyphs.cross
    since = words.age(max(0.0, picture.lens.state.now_s - status.since_s))
    text = _DURATION.sub("", safe(status.message or str(status.state), glyphs))
    role = "dim" if calm else "warn" if status.state is GpuState.NOT_ANSWERING else "bad"
    room = width - 2 - len(since) - 3
    return [(f"{mark} ", role), (shorten(text, max(1, room), glyphs), role), (f" ({since})", "dim")]


def _field(picture: GpuPicture, name: str) -> Span:
    width = _WIDTHS[name]
    point, text = _FIGURES[name](picture)
    if point.stale and name == "util":
        text = words.age(point.age_s).replace(" ", "")
    if point.value is None or point.stale:
        role = "dim"
    elif name == "util":
        role = _loud_or(picture.role(UTILIZATION), UTILIZATION.role, "value")
    elif name == "power":
        role = _loud_or(picture.role(POWER), POWER.role, "value")
    else:
        role = "dim"
    return f"{text:>{width}}", role


def _loud_or(role: str, calm: str, value: str) -> str:
    return value if role == calm else role


def _util(picture: GpuPicture) -> tuple[Point, str]:
    point = picture.point("utilization_ratio")
    return point, f"{words.percent_number(point.value)}%"


def _power(picture: GpuPicture) -> tuple[Point, str]:
    point = picture.point("power_w")
    return point, f"{words.whole(point.value)}W"


def _memory(picture: GpuPicture) -> tuple[Point, str]:
    point = picture.point("memory_used_bytes")
    total = picture.reading.memory_total_bytes
    used = words.gib_whole(point.value)
    return point, f"{used}/{words.gib_whole(total)}G" if total else f"{used}G"


def _temperature(picture: GpuPicture) -> tuple[Point, str]:
    point = picture.point("temperature_c")
    return point, f"{words.whole(point.value)}{picture.lens.glyphs.degree[0]}"


def _state(picture: GpuPicture) -> tuple[Point, str]:
    point = picture.point("p_state")
    return point, words.DASH if point.value is None else f"P{point.value:.0f}"


def _clock(picture: GpuPicture) -> tuple[Point, str]:
    point = picture.point("sm_clock_mhz")
    return point, f"{words.whole(point.value)} MHz"


def _pcie(picture: GpuPicture) -> tuple[Point, str]:
    point = picture.point(PCIE_RX.key)
    return point, f"{picture.lens.glyphs.rx}{words.rate_short(point.value)}"


_FIGURES = {
    "util": _util,
    "power": _power,
    "memory": _memory,
    "temperature": _temperature,
    "state": _state,
    "clock": _clock,
    "pcie": _pcie,
}
