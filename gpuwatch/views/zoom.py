"""One GPU over the whole screen: its charts with axes, its P-states, its processes, what it cannot tell."""

from collections.abc import Sequence

from gpuwatch.metrics import REASON_BITS, REASON_IDLE, metric
from gpuwatch.model import GpuReading
from gpuwatch.state import State
from gpuwatch.views import format as words
from gpuwatch.views.chart import AXIS_WIDTH, chart, time_axis
from gpuwatch.views.gpu_block import mig_rows
from gpuwatch.views.gpu_line import status_spans
from gpuwatch.views.gpu_series import P_STATE, GpuPicture
from gpuwatch.views.lens import Lens
from gpuwatch.views.notices import no_gpu_rows
from gpuwatch.views.options import Options
from gpuwatch.views.rows import Row, blank, heading, row, safe, shorten, side_by_side, wrap

#: From this width on the charts stand in two columns.
TWO_COLUMNS_FROM = 120
LEAST_ROWS, MOST_ROWS = 3, 8
_CHARTS = 6
_GAP = 2
#: What GPM and the rest offer beside the charts: metric, word.
_FACTS = (
    ("memory_utilization_ratio", "memory accessed"),
    ("sm_active_ratio", "SM active"),
    ("sm_occupancy_ratio", "occupancy"),
    ("tensor_ratio", "tensor"),
    ("dram_ratio", "DRAM"),
    ("fan_ratio", "fan"),
    ("memory_temperature_c", "memory temperature"),
    ("temperature_margin_c", "margin to slowdown"),
    ("memory_clock_mhz", "memory clock"),
    ("nvlink_rx_bytes_per_s", "NVLink rx"),
    ("nvlink_tx_bytes_per_s", "NVLink tx"),
    ("throttle_ratio", "throttled"),
)


def zoom_page(state: State, options: Options, width: int, height: int) -> list[Row]:
    """All rows of the page, which may be more than `height`."""
    lens = Lens(state, options)
    reading = zoomed(lens)
    if reading is None:
        return no_gpu_rows(lens, width, height)
    picture = GpuPicture(lens, reading)
    columns = 2 if width >= TWO_COLUMNS_FROM else 1
    chart_width = width if columns == 1 else (width - _GAP) // 2
    # The title, the fine row, the P-states and the time axis stand beside the charts.
    per_column = _CHARTS // columns
    rows = min(MOST_ROWS, max(LEAST_ROWS, (height - 8) // per_column - 1))
    charts = _charts(picture, chart_width, rows)
    result = _title(picture, width)
    left: list[Row] = []
    right: list[Row] = []
    for number, drawn in enumerate(charts):
        (left if columns == 1 or number < per_column else right).extend(drawn)
    if picture.has_fine:
        left.insert(rows + 1, _fine(picture, chart_width))
    left += [_states(picture, chart_width), time_axis(lens, chart_width)]
    if columns == 2:
        right += [_reasons_now(picture, chart_width), time_axis(lens, chart_width)]
        result += [
            row(spans, width) for spans in side_by_side([(left, chart_width), (right, chart_width)], _GAP)
        ]
    else:
        result += [*left, _reasons_now(picture, width)]
    return result + _below(picture, width)


def zoomed(lens: Lens) -> GpuReading | None:
    """The GPU that was chosen; the one of the selected row where none was; None without GPUs."""
    gpus = lens.gpus
    if not gpus:
        return None
    for gpu in gpus:
        if gpu.uuid == lens.options.zoomed_gpu:
            return gpu
    return gpus[min(max(0, lens.options.gpu_row), len(gpus) - 1)]


def _title(picture: GpuPicture, width: int) -> list[Row]:
    reading, info, glyphs = picture.reading, picture.info, picture.lens.glyphs
    texts = [f"GPU {reading.index}"]
    if info is not None:
        texts += [safe(info.name, glyphs), info.bus_id or ""]
        if info.compute_capability is not None:
            texts.append("compute {}.{}".format(*info.compute_capability))
    texts += [f"PCIe {picture.link()}" if picture.link() else "", picture.memory()]
    head = row([("  ".join(text for text in texts if text), "title")], width)
    if picture.ok:
        return [head, blank(width)]
    rows = [head, row(status_spans(picture, width), width)]
    advice = safe(reading.status.advice, glyphs)
    return rows + [row([("  " + line, "value")], width) for line in wrap(advice, width - 2, 2, glyphs)]


def _charts(picture: GpuPicture, width: int, rows: int) -> list[list[Row]]:
    lens, entity, info = picture.lens, picture.entity, picture.info
    total = picture.reading.memory_total_bytes

    def one(
        key: str, role: str, title: str, high: float | None = None, limit: float | None = None
    ) -> list[Row]:
        found = metric("gpu", key)
        return chart(lens, entity, found, width, rows, high=high, limit=limit, role=role, title=title)

    limit_w = picture.reading.power_limit_w
    highest_w = None if info is None else info.power_limit_max_w
    most_w = max((value for value in (highest_w, limit_w) if value), default=None)
    most_mhz = None if info is None else info.sm_clock_max_mhz
    hottest_c = picture.hottest_c
    return [
        one("utilization_ratio", "series1", "utilization"),
        one("power_w", "series2", "power", most_w, limit_w),
        one("sm_clock_mhz", "series3", "SM clock", most_mhz),
        one("temperature_c", "series4", "temperature", _hotter(hottest_c), hottest_c),
        one("pcie_rx_bytes_per_s", "series5", "PCIe to the GPU"),
        one("memory_used_bytes", "series1", "memory", None if total is None else float(total)),
    ]


def _hotter(limit_c: float | None) -> float:
    """The temperature axis ends a little above the point where the card slows itself down."""
    return 100.0 if limit_c is None else limit_c + 5


def _states(picture: GpuPicture, width: int) -> Row:
    strip = picture.plot(P_STATE, max(1, width - AXIS_WIDTH - 1))[0]
    return row([(f"{'P-state':>{AXIS_WIDTH}} ", "label"), (strip, "value")], width)


def _fine(picture: GpuPicture, width: int) -> Row:
    """Under the utilization: the driver's own samples, which are finer than a tick."""
    points, per_s = picture.fine(max(1, width - AXIS_WIDTH - 1))
    label = f"{per_s:.0f} a s" if per_s else "fine"
    return row([(f"{label:>{AXIS_WIDTH}} ", "dim"), (points if per_s else "", "series1")], width)


def _reasons_now(picture: GpuPicture, width: int) -> Row:
    """Why the clock is where it is, in the driver's terms."""
    bits = picture.point("event_reasons").value
    if bits is None:
        text = picture.reading.absent.get("event_reasons", words.DASH)
    else:
        text = reason_names(int(bits)) or "none"
    label = "clock event reasons "
    room = max(1, width - len(label))
    return row(
        [(label, "label"), (shorten(safe(text, picture.lens.glyphs), room, picture.lens.glyphs), "value")],
        width,
    )


def reason_names(bits: int) -> str:
    names = [name for bit, name in REASON_BITS.items() if bits & bit and bit != REASON_IDLE]
    if bits & REASON_IDLE:
        names.append(REASON_BITS[REASON_IDLE])
    return ", ".join(names)


def _below(picture: GpuPicture, width: int) -> list[Row]:
    lens, glyphs = picture.lens, picture.lens.glyphs
    facts = []
    for key, name in _FACTS:
        value = picture.point(key).value
        if value is not None:
            facts.append(f"{name} {words.quantity(value, metric('gpu', key).unit)}")
    rows = [row([(line, "value")], width) for line in wrap(safe(", ".join(facts), glyphs), width, 3, glyphs)]
    rows += mig_rows(picture, width)
    rows += [heading("processes on this GPU", width, glyphs), *_processes(lens, picture.reading, width)]
    absent = picture.reading.absent
    if absent:
        rows.append(heading("not available here", width, glyphs))
        for name, reason in sorted(absent.items()):
            text = f"{name.replace('_', ' ')}: {reason}"
            rows.append(
                row([(" ", ""), (shorten(safe(text, glyphs), max(1, width - 1), glyphs), "dim")], width)
            )
    return rows


def _processes(lens: Lens, reading: GpuReading, width: int) -> Sequence[Row]:
    if reading.processes is None:
        reason = reading.absent.get("processes", "the driver lists none here")
        return [row([(f" {safe(reason, lens.glyphs)}", "dim")], width)]
    if not reading.processes:
        return [row([(" none", "dim")], width)]
    known = {process.pid: process for process in lens.processes}
    sample = lens.state.sample
    hidden = sample is not None and (sample.hidden_processes > 0 or sample.processes is None)
    rows = []
    for entry in reading.processes:
        process = known.get(entry.pid)
        command = "not visible here (another namespace)" if hidden else "ended"
        command = command if process is None else process.command or process.name
        user = "" if process is None else process.user or ""
        share = "" if entry.sm_ratio is None else f"SM {words.percent(entry.sm_ratio)}"
        if entry.gpu_instance is not None:
            share = f"MIG {entry.gpu_instance} {share}".rstrip()
        text = (
            f" {entry.pid:>7} {entry.kind:<4} {words.memory(entry.memory_bytes):>9}  {share:<12}"
            f" {safe(user, lens.glyphs):<8} {safe(command, lens.glyphs)}"
        )
        rows.append(row([(shorten(text, width, lens.glyphs), "value")], width))
    return rows
