"""Whole screens: exact sizes in any state, only known roles, ASCII where asked, the verdict at every size."""

from dataclasses import fields, replace
from functools import cache
from random import Random

import fabric
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuwatch.history import History
from gpuwatch.model import DriverState, DriverStatus, GpuReading, GpuState, GpuStatus
from gpuwatch.state import State
from gpuwatch.views.compose import PANELS, compose
from gpuwatch.views.glyphs import ASCII, UNICODE
from gpuwatch.views.help import help_page
from gpuwatch.views.options import DENSITIES, PANELS_IN_ORDER, SORTS, Options
from gpuwatch.views.pages import check_page, finding_page
from gpuwatch.views.plain import plain
from gpuwatch.views.roles import ROLES
from gpuwatch.views.rows import cells, text_of
from gpuwatch.views.zoom import zoom_page

HELP = (("General", "? h F1", "this page"), ("General", "q", "quit"), ("Move", "tab", "next panel"))
NUMBERS = [
    field.name
    for field in fields(GpuReading)
    if field.name not in ("uuid", "index", "read_s", "status", "processes", "mig", "absent", "power_source")
    and not field.name.endswith(("_burst", "_ratios"))
]
DRIVERS = [
    DriverStatus(
        DriverState.NO_LIBRARY, "No NVIDIA driver library was found.", "Install the driver; `gpuwatch demo`."
    ),
    DriverStatus(
        DriverState.NO_PERMISSION, "This user may not open the device files.", "Check /dev/nvidia*."
    ),
    DriverStatus(DriverState.STARTING),
    DriverStatus(
        DriverState.NOT_ANSWERING, "The driver gives no answer for 12 s.", "Look at the kernel log.", 5000.0
    ),
]


def holes(seed):
    """Readings with values missing, odd, or GPUs gone, differently each second."""

    def change(second, index, given):
        rng = Random(f"{seed} {second} {index}")
        if rng.random() < 0.05:
            return None
        result = dict(given)
        for name in NUMBERS:
            if rng.random() < 0.3:
                result[name] = None
            elif rng.random() < 0.03:
                result[name] = rng.choice([0, 1, 10**9])
        result["absent"] = {
            name: "not supported by this card" for name in NUMBERS if result.get(name) is None
        }
        if rng.random() < 0.1:
            state = rng.choice(list(GpuState))
            result["status"] = GpuStatus(
                state, "no answer to nvmlDeviceGetPowerUsage for 4 s", "wait", 5000.0
            )
        return result

    return change


@cache
def states() -> tuple[State, ...]:
    """One of everything, from nothing read yet to a broken machine."""
    found = [State(History(), 100.0), fabric.Fabric(gpus=0, seconds=1).state()]
    found += [fabric.Fabric(gpus=0, seconds=5, driver=driver).state() for driver in DRIVERS]
    found += [
        fabric.Fabric(gpus=n, seconds=70, workers=2, label="simulated: x").state() for n in (1, 2, 4, 8, 16)
    ]
    found += [fabric.Fabric(gpus=n, seconds=40, change=holes(n)).state() for n in (1, 3, 8)]
    found.append(fabric.Fabric(gpus=2, seconds=20, mig=7, hidden_processes=3).state())
    wide = fabric.Fabric(
        gpus=2, seconds=9, user="训练用户名很长", command="python 训练.py \x1b[31m\u202e{index}"
    )
    found.append(wide.state(recording="REC 2:10", ignored=frozenset({"gpu-shared"})))
    busy = fabric.Fabric(gpus=1, seconds=3).state(None)
    many = [fabric.lever(f"rule-{n}", f"finding number {n}", started_s=5000.0 + n) for n in range(12)]
    banner = fabric.finding("gpu-lost", banner=True)
    found.append(replace(busy, diagnosis=fabric.starved(1, busy.now_s, [banner, *many])))
    found.append(replace(busy, diagnosis=fabric.healthy(1, busy.now_s), now_s=busy.now_s + 500))
    found.append(
        replace(busy, diagnosis=None, events=(fabric.event("gpu-back", "GPU 0 is back", busy.now_s),))
    )
    return tuple(found)


STATES = st.integers(0, 17).map(lambda i: states()[i % len(states())])
OPTIONS = st.builds(
    Options,
    ascii_only=st.booleans(),
    focus=st.sampled_from(PANELS_IN_ORDER),
    gpu_row=st.integers(0, 20),
    process_row=st.integers(0, 20),
    check_row=st.integers(0, 7),
    ticks_per_cell=st.sampled_from([1, 2, 60]),
    back=st.sampled_from([0, 1, 30, 5000]),
    frozen=st.booleans(),
    density=st.sampled_from(DENSITIES),
    sort=st.sampled_from(SORTS),
    reverse=st.booleans(),
)


def assert_rows(rows, width, height, options):
    assert len(rows) <= height
    for row in rows:
        text = "".join(piece for piece, _ in row)
        assert cells(text) == width, text
        assert {role for _, role in row} <= set(ROLES)
        assert text.isprintable()
        assert not options.ascii_only or text.isascii(), text


@settings(max_examples=250, deadline=None)
@given(STATES, OPTIONS, st.integers(1, 300), st.integers(1, 100))
def test_every_screen_has_its_exact_size(state, options, width, height):
    rows = compose(state, options, width, height, fabric.KEYS)
    assert len(rows) == height
    assert_rows(rows, width, height, options)


@settings(max_examples=250, deadline=None)
@given(STATES, OPTIONS, st.sampled_from(sorted(PANELS)), st.integers(1, 200), st.integers(1, 60))
def test_every_panel_fits_whatever_box_it_gets(state, options, name, width, height):
    assert_rows(PANELS[name](state, options, width, height), width, height, options)


@settings(max_examples=120, deadline=None)
@given(STATES, OPTIONS, st.integers(1, 8), st.integers(1, 200), st.integers(1, 60))
def test_every_page_has_its_width(state, options, number, width, height):
    for rows in (
        finding_page(state, options, width, height),
        check_page(state, options, number, width, height),
        zoom_page(state, options, width, height),
        help_page(HELP, state, options, width, height),
    ):
        assert rows
        assert_rows(rows, width, len(rows), options)


@settings(max_examples=60, deadline=None)
@given(STATES, st.integers(1, 200), st.booleans())
def test_plain_lines_fit_and_steer_nothing(state, width, ascii_only):
    for line in plain(state, width, ascii_only=ascii_only):
        assert cells(line) <= max(20, width)
        assert line.isprintable()
        assert line == line.rstrip()
        assert not ascii_only or line.isascii()


SIZES = [(20, 5), (40, 12), (60, 16), (80, 24), (120, 30), (160, 50), (240, 70)]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("gpus", [1, 2, 8, 16])
def test_layer_and_figure_of_the_verdict_are_on_every_screen(size, gpus):
    text = "\n".join(
        text_of(compose(fabric.Fabric(gpus=gpus, seconds=4).state(), Options(), *size, fabric.KEYS))
    )
    assert "DATA" in text
    assert "58-66 %" in text
    assert size[0] < 40 or "num_workers=4" in text


@pytest.mark.parametrize("size", [(10, 3), (19, 40), (80, 4)])
def test_below_the_floor_the_verdicts_word_is_left(size):
    assert "DATA" in text_of(compose(fabric.Fabric(seconds=2).state(), Options(), *size))[0]


@pytest.mark.parametrize("options", [Options(), Options(ascii_only=True)], ids=["unicode", "ascii"])
def test_without_colours_every_question_is_still_answered(options):
    text = "\n".join(text_of(compose(fabric.Fabric(gpus=2).state(), options, 160, 50, fabric.KEYS)))
    glyphs = ASCII if options.ascii_only else UNICODE
    for words in ("DATA", "likely", "DATA LOADER", "wrong if", "settle", "main thread", "GPU 0", "GPU 1"):
        assert words in text
    assert f"{glyphs.severity[fabric.Severity.WARNING]} batches" in text
    assert "38 busy" in text


@pytest.mark.parametrize("size", SIZES)
def test_the_label_is_always_visible(size):
    state = fabric.Fabric(seconds=3, label="simulated: starved").state()
    assert "simulated" in "\n".join(text_of(compose(state, Options(), *size, fabric.KEYS)))


def test_drawing_is_pure():
    state = fabric.Fabric(gpus=4).state()
    before = state.history.count
    assert compose(state, Options(), 160, 50) == compose(state, Options(), 160, 50)
    assert state.history.count == before


def test_a_frozen_view_stays_while_history_grows():
    made = fabric.Fabric(gpus=2, seconds=60)
    state = made.state()
    options = Options(frozen=True)
    panels = ("gpus", "verdict", "checks", "findings", "procs")
    before = [PANELS[name](state, options, 100, 20) for name in panels]
    for second in range(60, 65):
        state.history.append(made.sample(second))
    assert [PANELS[name](state, options, 100, 20) for name in panels] == before
    assert "frozen" in text_of(PANELS["head"](state, options, 100, 1))[0]
