"""The panel of all GPUs: what each shows in how many rows, and what is said where figures are missing."""

from dataclasses import replace

import fabric
import pytest

from gpuwatch.metrics import metric
from gpuwatch.model import (
    Burst,
    Confidence,
    DriverState,
    DriverStatus,
    Evidence,
    GpuProcess,
    GpuState,
    GpuStatus,
    Severity,
)
from gpuwatch.views.chart import chart, nice_top
from gpuwatch.views.gpu_series import CLOCK, PCIE_RX, POWER, UTILIZATION, GpuPicture
from gpuwatch.views.gpus import gpus
from gpuwatch.views.lens import Lens
from gpuwatch.views.options import Options
from gpuwatch.views.plain import plain
from gpuwatch.views.procs import procs
from gpuwatch.views.rows import cells, text_of
from gpuwatch.views.zoom import reason_names, zoom_page

GIB = fabric.GIB


def panel(state, width=80, height=5, **options):
    return text_of(gpus(state, Options(**options), width, height))


def constant(**values):
    return lambda _second, _index, given: {**given, **values}


def roles_of(rows, text):
    return {role for row in rows for piece, role in row if text in piece}


def test_one_gpu_in_five_rows_has_the_five_series_and_its_memory_as_a_number():
    rows = panel(fabric.Fabric().state(), 40, 5)
    assert [row.split()[0] for row in rows] == ["util", "power", "clock", "state", "pcie↓"]
    assert "38/80 GiB" in rows[3]
    assert "P2" in rows[3]


@pytest.mark.parametrize(
    ("height", "labels"),
    [
        (2, ["0", "1"]),
        (4, ["0", "power", "1", "power"]),
        (10, ["GPU", "util", "power", "clock", "pcie↓"] * 2),
        (16, ["GPU", "util", "power", "clock", "pcie↓", "vram", "temp", "throt"] * 2),
    ],
)
def test_the_height_decides_how_much_each_gpu_gets(height, labels):
    rows = panel(fabric.Fabric(gpus=2).state(), 80, height)
    assert [row.split()[0] for row in rows] == labels


def test_units_and_limits_stand_beside_the_values():
    text = "\n".join(panel(fabric.Fabric().state(), 100, 9))
    for figure in ("170/700 W", "1755/1980 MHz", "38.2/80.0 GiB", "61/87 °C", "/63.0 GB/s"):
        assert figure in text


def test_a_value_older_than_three_seconds_is_dim_and_has_its_age():
    def old(second, _index, given):
        return {**given, "read_s": fabric.START_S + min(second, 80)}

    state = fabric.Fabric(change=old).state()
    rows = gpus(state, Options(), 80, 5)
    assert all(row.endswith("9 s") for row in text_of(rows)[:3])
    assert roles_of(rows, "493 W") == {"dim"}
    assert "9s" in panel(state, 80, 1)[0]


def test_values_older_than_a_minute_are_not_shown():
    def gone(second, _index, given):
        return given if second < 20 else None

    made = fabric.Fabric(gpus=1, seconds=100, change=gone)
    picture = GpuPicture(Lens(made.state(), Options()), made.gpu(0, 0, fabric.START_S))
    assert picture.point("power_w").value is None


@pytest.mark.parametrize(
    ("state", "mark", "role"),
    [
        (GpuState.LOST, "✗", "bad"),
        (GpuState.NOT_ANSWERING, "!", "warn"),
        (GpuState.ASLEEP, "·", "dim"),
        (GpuState.HIDDEN, "·", "dim"),
    ],
)
@pytest.mark.parametrize("height", [2, 10])
def test_b019_b022_one_bad_card_costs_one_row(state, mark, role, height):
    status = GpuStatus(state, "it says why", "and what to do", fabric.START_S + 77)

    def bad(second, index, given):
        return {**given, "status": status} if index == 1 and second >= 77 else given

    rows = gpus(fabric.Fabric(gpus=2, change=bad).state(), Options(), 80, height)
    text = text_of(rows)
    row = next(row for row in text if "it says why" in row)
    assert f"{mark} it says why" in row
    assert "12 s" in row
    assert role in roles_of(rows, "it says why")
    assert "170" in "\n".join(text[: height // 2])  # the other card goes on


def test_b028_a_hanging_card_keeps_its_past_on_screen():
    status = GpuStatus(
        GpuState.NOT_ANSWERING, "no answer to nvmlDeviceGetPowerUsage for 2 s", "", fabric.START_S + 80
    )

    def hung(second, _index, given):
        return given if second < 80 else {**given, "read_s": fabric.START_S + 79, "status": status}

    rows = panel(fabric.Fabric(change=hung).state(), 80, 5)
    assert "no answer to nvmlDeviceGetPowerUsage (9 s)" in rows[0]
    assert "█" in rows[1]
    assert rows[1].endswith("10 s")


def test_b011_a_missing_signal_says_why_in_its_own_row():
    change = constant(power_w=None, absent={"power_w": "the driver needs root for this"})
    rows = panel(fabric.Fabric(change=change).state(), 80, 5)
    assert "the driver needs root for this" in rows[1]
    assert rows[1].split()[-2:] == ["-", "W"]
    assert "98" in rows[0] or "0 %" in rows[0]


def test_b025_no_data_is_a_dash_and_never_an_extreme():
    state = fabric.Fabric(change=constant(utilization_ratio=None, power_w=None)).state()
    rows = panel(state, 80, 5)
    assert rows[0].split()[-2:] == ["-", "%"]
    lens = Lens(state, Options())
    title = text_of(chart(lens, f"gpu:{fabric.uuid(0)}", metric("gpu", "power_w"), 80, 4))[0]
    assert "no data" in title
    assert "min" not in title


def test_b038_unknown_process_memory_is_a_dash_and_the_card_is_right():
    listed = (GpuProcess(2100, "C", None),)
    change = constant(processes=listed, memory_total_bytes=16 * GIB, memory_used_bytes=14 * GIB)
    state = fabric.Fabric(change=change).state()
    assert "14/16 GiB" in panel(state, 60, 5)[3]
    row = next(row for row in text_of(procs(state, Options(), 100, 5)) if "2100" in row)
    assert row.split()[3] == "-"


def test_b056_draw_above_the_limit_is_shown_as_it_is():
    change = constant(power_w=228.8, power_limit_w=210.0)
    state = fabric.Fabric(
        change=change, info={"power_limit_default_w": None, "power_limit_max_w": None}
    ).state()
    rows = panel(state, 80, 5)
    assert "229/210 W" in rows[1]
    assert rows[1].count("█") == rows[0].count("█") + rows[0].count("▁")
    assert "power 229 of 210 W (109 %)" in " ".join(plain(state, 200, ascii_only=False))


def test_b058_a_spike_leaves_the_scale_alone():
    def spike(second, _index, given):
        return {**given, "power_w": 90_000.0} if second == 60 else {**given, "power_w": 350.0}

    row = panel(fabric.Fabric(change=spike).state(), 80, 5)[1]
    assert row.count("↑") == 1
    assert set(row) & set("▁▂▃▄▅▆▇█") == {"▅"}


def test_b088_sixteen_gpus_have_a_summary_and_each_can_be_reached():
    state = fabric.Fabric(gpus=16).state()
    rows = panel(state, 40, 3)
    assert rows[0].startswith("16 GPUs")
    seen = {
        int(row[1:3]) for chosen in range(16) for row in panel(state, 40, 3, gpu_row=chosen, focus="gpus")[1:]
    }
    assert seen == set(range(16))


def test_b142_figures_of_several_cards_are_never_added():
    change = constant(power_w=308.0, power_limit_w=330.0)
    state = fabric.Fabric(gpus=2, change=change).state()
    for height in (1, 2, 4, 20):
        assert "616" not in "\n".join(panel(state, 80, height))
    assert "616" not in "\n".join(plain(state, 100, ascii_only=False))


def test_b046_b047_mig_instances_stand_under_their_gpu_without_power():
    rows = panel(fabric.Fabric(gpus=2, mig=2).state(), 80, 16)
    instances = [row for row in rows if "MIG" in row]
    assert len(instances) == 4
    assert "1g.10gb" in instances[0]
    assert "3.0/10.0 GiB" in instances[0]
    assert not any(" W " in row for row in instances)


def test_b037_b031_utilization_that_is_not_offered_is_not_nought():
    reason = "not offered while MIG is on"
    state = fabric.Fabric(
        change=constant(utilization_ratio=None, absent={"utilization_ratio": reason})
    ).state()
    assert reason in panel(state, 80, 5)[0]
    assert f"utilization unknown ({reason})" in " ".join(plain(state, 200, ascii_only=False))


def test_b064_b065_a_pid_without_a_process_gets_no_name():
    listed = (GpuProcess(30094, "C", GIB),)
    ended = fabric.Fabric(change=constant(processes=listed)).state()
    assert any("30094" in row and "ended" in row for row in text_of(zoom_page(ended, Options(), 100, 40)))
    hidden = fabric.Fabric(change=constant(processes=listed), hidden_processes=1).state()
    assert any(
        "30094" in row and "not visible here" in row for row in text_of(zoom_page(hidden, Options(), 100, 40))
    )
    assert "--pid=host" in "\n".join(text_of(procs(hidden, Options(), 120, 6)))


def test_b070_the_zoom_names_the_bus_address():
    state = fabric.Fabric(info={"bus_id": "0000:01:00.0"}).state()
    assert "0000:01:00.0" in text_of(zoom_page(state, Options(), 120, 40))[0]


def test_b074_wide_names_keep_the_columns_of_the_process_table():
    rows = text_of(procs(fabric.Fabric(user="训练", command="训练.py").state(), Options(), 80, 4))
    plain_rows = text_of(procs(fabric.Fabric(user="ab", command="ab.py").state(), Options(), 80, 4))
    place = [cells(row[: row.index("38.2G")]) for row in (rows[1], plain_rows[1])]
    assert place[0] == place[1]


def test_b061_the_process_table_states_the_base_of_its_cpu_figures():
    rows = text_of(procs(fabric.Fabric(gpus=4).state(), Options(), 100, 8))
    assert "100 % cpu is one core" in rows[0]


def test_a_series_a_finding_stands_on_is_loud_and_only_that_one():
    slow = fabric.lever(
        "thermal-throttle",
        severity=Severity.WARNING,
        confidence=Confidence.MEASURED,
        gpus=(fabric.uuid(1),),
        evidence=(Evidence("clock_mhz", "clock", 1200.0, "MHz", "", 60.0, "sm_clock_mhz"),),
    )
    state = fabric.Fabric(gpus=2).state()
    diagnosis = replace(fabric.healthy(2, state.now_s), findings=(slow,))
    lens = Lens(replace(state, diagnosis=diagnosis), Options())
    calm, loud = (GpuPicture(lens, reading) for reading in lens.gpus)
    assert loud.role(CLOCK) == "warn"
    assert loud.role(POWER) == calm.role(CLOCK) == "plot"
    assert calm.role(UTILIZATION) == "series1"


def test_a_notice_free_state_colours_nothing():
    state = fabric.Fabric(gpus=2).state()
    quiet = replace(state, diagnosis=fabric.healthy(2, state.now_s))
    roles = {role for row in gpus(quiet, Options(), 80, 10) for _, role in row}
    assert not roles & {"warn", "bad"}


def test_the_scale_of_pcie_is_the_links_own():
    lens = Lens(fabric.Fabric(info={"pcie_generation_max": 3, "pcie_width_max": 4}).state(), Options())
    picture = GpuPicture(lens, lens.gpus[0])
    assert picture.scale(PCIE_RX)[1] == pytest.approx(3.94e9, rel=0.01)
    assert picture.limit(PCIE_RX) == "3.94"


def test_the_fine_row_shows_pulses_shorter_than_a_tick_and_marks_holes():
    def bursts(second, _index, given):
        times = tuple(fabric.START_S + second + step / 6 for step in range(-5, 1) if second != 85)
        return {**given, "utilization_burst": Burst(times, (1.0, 0.0, 1.0, 0.0, 1.0, 0.0)[: len(times)])}

    lens = Lens(fabric.Fabric(change=bursts).state(), Options())
    points, per_s = GpuPicture(lens, lens.gpus[0]).fine(40)
    assert per_s == pytest.approx(6.0, abs=0.1)
    assert points.endswith("█▁█▁█▁█▁█▁█▁█▁█▁█▁")
    assert points.count("·") == 6
    rows = panel(fabric.Fabric(change=bursts).state(), 80, 7)
    assert any(row.startswith("fine") for row in rows)


@pytest.mark.parametrize("back", [1, 10, 60])
def test_looking_back_shows_the_values_of_that_moment(back):
    made = fabric.Fabric()
    shown = panel(made.state(), 80, 5, back=back)[1]
    then = made.gpu(made.seconds - 1 - back, 0, 0.0)
    assert then is not None
    assert f"{then.power_w:.0f}/700 W" in shown


def test_more_ticks_per_cell_show_a_longer_past():
    def step(second, _index, given):
        return {**given, "utilization_ratio": 1.0 if second < 30 else 0.0}

    state = fabric.Fabric(change=step).state()
    assert "█" not in panel(state, 40, 5)[0]
    assert "█" in panel(state, 40, 5, ticks_per_cell=5)[0]


@pytest.mark.parametrize(
    ("value", "top"), [(0.0, 1.0), (1.0, 1.0), (1.2, 2.0), (210e6, 500e6), (0.03, 0.05), (7.0, 10.0)]
)
def test_axes_end_at_round_numbers(value, top):
    assert nice_top(value) == pytest.approx(top)


def test_no_gpu_is_a_sentence_and_an_action():
    driver = DriverStatus(
        DriverState.NO_GPUS, "The NVIDIA driver runs, but it sees no GPU (yet).", "Waiting for one."
    )
    state = replace(fabric.Fabric(gpus=0, seconds=2, driver=driver).state(), diagnosis=None)
    assert [row.rstrip() for row in panel(state, 80, 4)] == [driver.message, driver.advice]


def test_the_zoom_follows_the_chosen_gpu():
    state = fabric.Fabric(gpus=4).state()
    assert text_of(zoom_page(state, Options(zoomed_gpu=fabric.uuid(2)), 100, 40))[0].startswith("GPU 2")
    assert text_of(zoom_page(state, Options(gpu_row=3), 160, 50))[0].startswith("GPU 3")


def test_event_reasons_are_named():
    assert reason_names(0x24) == "SW power cap, SW thermal slowdown"
    assert reason_names(0x1) == "idle"
    assert reason_names(0) == ""
