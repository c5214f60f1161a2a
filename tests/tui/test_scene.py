"""Which row is under a click, for every panel and density, from the picture itself."""

from dataclasses import dataclass, field, replace

import pytest
from showing import samples

from gpuwatch.session import Session
from gpuwatch.state import State
from gpuwatch.tui import scene
from gpuwatch.views.options import Options


@dataclass
class Viewer:
    state: State
    options: Options = field(default_factory=Options)
    message: str = ""


def viewer(scenario: str = "starved", fed: int = 60) -> Viewer:
    session = Session()
    for sample in samples(scenario, 60)[:fed]:
        session.feed(sample)
    assert session.latest is not None
    return Viewer(session.latest)


def rows_by_line(made: Viewer, panel: str, width: int, height: int, x: int = 4) -> list[int | None]:
    rows = scene.panels(made)[panel](width, height)
    return [scene.row_at(made, panel, rows, x, y) for y in range(len(rows))]


@pytest.mark.parametrize("height", [8, 9, 12])
def test_checks_one_below_the_other(height: int) -> None:
    assert rows_by_line(viewer(), "checks", 60, height)[:8] == list(range(8))


def test_checks_in_columns_and_in_one_line() -> None:
    made = viewer()
    rows = scene.panels(made)["checks"](80, 2)
    assert [scene.row_at(made, "checks", rows, x, 0) for x in (2, 22, 42, 62)] == [0, 1, 2, 3]
    assert [scene.row_at(made, "checks", rows, x, 1) for x in (2, 22, 42, 62)] == [4, 5, 6, 7]
    line = scene.panels(made)["checks"](40, 1)
    assert [scene.row_at(made, "checks", line, 5 * n + 1, 0) for n in range(8)] == list(range(8))


@pytest.mark.parametrize("density", ["auto", "full", "compact"])
@pytest.mark.parametrize(
    ("width", "height"), [(97, 40), (97, 16), (80, 8), (60, 4), (40, 4), (60, 5), (80, 3)]
)
def test_a_click_on_a_gpu_selects_the_gpu_that_is_drawn_there(width: int, height: int, density: str) -> None:
    made = viewer("straggler")
    made.options = replace(made.options, density=density)
    rows = scene.panels(made)["gpus"](width, height)
    for y, row in enumerate(rows):
        text = "".join(piece for piece, _ in row)
        for x in range(0, width, 7):
            found = scene.row_at(made, "gpus", rows, x, y)
            assert found is None or 0 <= found < 8
        if text.startswith("GPU ") and text[4].isdigit():
            assert scene.row_at(made, "gpus", rows, 0, y) == int(text[4])


def test_a_finding_owns_its_reasons() -> None:
    found = rows_by_line(viewer(), "findings", 60, 12)
    assert found[0] is None  # the heading
    assert found[1:4] == [0, 0, 0]


def test_a_process_line_and_nothing_else() -> None:
    made = viewer()
    rows = scene.panels(made)["procs"](100, 6)
    lines = ["".join(piece for piece, _ in row) for row in rows]
    found = [scene.row_at(made, "procs", rows, 4, y) for y in range(len(rows))]
    assert [row for line, row in zip(lines, found, strict=True) if "train.py" in line] == [0]
    assert {row for line, row in zip(lines, found, strict=True) if "train.py" not in line} == {None}


def test_outside_and_other_panels_select_nothing() -> None:
    made = viewer()
    rows = scene.panels(made)["head"](80, 1)
    assert scene.row_at(made, "head", rows, 3, 0) is None
    assert scene.row_at(made, "checks", rows, 3, 7) is None


def test_the_foot_names_keys_or_the_message() -> None:
    made = viewer()
    foot = scene.panels(made)["foot"]
    assert "q quit" in "".join(piece for piece, _ in foot(80, 1)[0])
    made.message = "something happened"
    assert "something happened" in "".join(piece for piece, _ in foot(80, 1)[0])
