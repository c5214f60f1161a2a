"""The layout: no overlap, inside the screen, the verdict and the top finding never dropped."""

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuwatch.views.gpus import choose_grid
from gpuwatch.views.layout import LEAST_HEIGHT, LEAST_WIDTH, Content, layout

CONTENT = st.builds(
    Content,
    gpus=st.integers(0, 16),
    mig=st.integers(0, 28),
    banners=st.integers(0, 6),
    findings=st.integers(0, 12),
    processes=st.integers(0, 60),
    verdict=st.integers(1, 10),
    has_host=st.booleans(),
    compact=st.booleans(),
    full=st.booleans(),
)


def overlap(a, b):
    return a.x < b.x + b.width and b.x < a.x + a.width and a.y < b.y + b.height and b.y < a.y + a.height


@settings(max_examples=400)
@given(st.integers(1, 300), st.integers(1, 100), CONTENT)
def test_boxes_lie_inside_the_screen_and_never_overlap(width, height, content):
    boxes = layout(width, height, content)
    assert boxes
    for box in boxes:
        assert box.width >= 1
        assert box.height >= 1
        assert 0 <= box.x <= width - box.width
        assert 0 <= box.y <= height - box.height
    assert not any(overlap(a, b) for a, b in combinations(boxes, 2))
    assert len({box.name for box in boxes}) == len(boxes)


@settings(max_examples=400)
@given(st.integers(LEAST_WIDTH, 300), st.integers(LEAST_HEIGHT, 100), CONTENT)
def test_verdict_finding_and_gpus_are_always_there(width, height, content):
    names = {box.name for box in layout(width, height, content)}
    assert {"verdict", "findings", "gpus"} <= names
    assert "banner" in names or not content.banners


@given(st.integers(1, 300), st.integers(1, 100), CONTENT)
def test_below_the_floor_there_is_one_box(width, height, content):
    if width < LEAST_WIDTH or height < LEAST_HEIGHT:
        assert [box.name for box in layout(width, height, content)] == ["small"]


@given(st.integers(LEAST_WIDTH, 300), st.integers(8, 100), CONTENT)
def test_the_foot_is_the_last_row(width, height, content):
    foot = [box for box in layout(width, height, content) if box.name == "foot"]
    assert [(box.y, box.height) for box in foot] == [(height - 1, 1)]


def heights(width, height, **content):
    return {box.name: box.height for box in layout(width, height, Content(**content))}


def test_one_gpu_at_40x12_has_its_five_series():
    found = heights(40, 12, gpus=1, findings=3, processes=1)
    assert found == {"head": 1, "verdict": 3, "checks": 1, "gpus": 5, "findings": 1, "foot": 1}


def test_eight_gpus_at_40x12_have_a_place_each():
    found = heights(40, 12, gpus=8, findings=3, processes=8)
    assert found["gpus"] == 4
    assert found["verdict"] == 3


def test_sixteen_gpus_at_80x24_have_a_place_each_and_the_reasons_too():
    found = heights(80, 24, gpus=16, findings=1, processes=16)
    assert found["gpus"] >= 8
    assert found["verdict"] >= 6


def test_a_wide_screen_has_two_columns():
    boxes = {box.name: box for box in layout(160, 50, Content(gpus=8, findings=3, processes=8))}
    assert boxes["verdict"].x == 0
    assert boxes["gpus"].x > boxes["verdict"].width
    assert boxes["checks"].height == 8
    assert boxes["gpus"].height >= 40


def test_the_process_table_stands_below_the_findings_where_the_gpus_leave_no_room():
    boxes = {box.name: box for box in layout(160, 50, Content(gpus=8, findings=1, processes=8))}
    assert boxes["procs"].x == 0
    assert boxes["procs"].height == 10  # heading, names, eight rows
    one = {box.name: box for box in layout(160, 50, Content(gpus=1, findings=1, processes=1))}
    assert one["procs"].x > 0


def test_the_process_table_does_not_wander_with_the_findings():
    places = {
        next(
            box
            for box in layout(160, 50, Content(gpus=8, findings=count, processes=8))
            if box.name == "procs"
        )
        for count in range(12)
    }
    assert len(places) == 1


@pytest.mark.parametrize("size", [(60, 15), (80, 24), (100, 30), (160, 50), (300, 80)])
@pytest.mark.parametrize("count", [8, 16])
def test_b086_b089_every_gpu_has_its_row_where_the_tall_form_does_not_fit(size, count):
    width, height = size
    box = next(box for box in layout(width, height, Content(gpus=count, findings=3)) if box.name == "gpus")
    grid = choose_grid(count, box.width, box.height)
    assert grid.rows >= 1
    assert grid.columns * grid.width <= box.width
    assert -(-count // grid.columns) * grid.rows <= box.height


@given(st.integers(1, 16), st.integers(1, 300), st.integers(1, 100), st.sampled_from(["auto", "compact"]))
def test_a_grid_never_needs_more_than_it_has(count, width, height, density):
    grid = choose_grid(count, width, height, density)
    assert grid.columns * grid.width + (grid.columns - 1) <= width
    assert -(-count // grid.columns) * grid.rows <= height
    assert density == "auto" or grid.rows <= 1


def test_no_screen_has_no_boxes():
    assert layout(0, 10, Content()) == ()
