"""Whole screens as text, compared with the files beside this one.

python tests/views/test_views_goldens.py    write them anew, after looking at the difference
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import fabric
import pytest

from gpuwatch.model import Diagnosis, DriverState, DriverStatus, Verdict
from gpuwatch.state import State
from gpuwatch.views.compose import compose
from gpuwatch.views.options import Options
from gpuwatch.views.pages import finding_page
from gpuwatch.views.plain import plain
from gpuwatch.views.rows import text_of
from gpuwatch.views.zoom import zoom_page

GOLDENS = Path(__file__).parent / "goldens"


def screen(width: int, height: int, state: Callable[[], State], **options: object) -> Callable[[], list[str]]:
    return lambda: text_of(compose(state(), Options(**options), width, height, fabric.KEYS))  # type: ignore[arg-type]


def starved(gpus: int, **fields: object) -> Callable[[], State]:
    return lambda: fabric.Fabric(gpus=gpus, **fields).state()  # type: ignore[arg-type]


def no_driver() -> State:
    driver = DriverStatus(
        DriverState.NO_LIBRARY,
        "No NVIDIA driver library was found.",
        "Install the driver; `gpuwatch demo` shows it.",
    )
    state = fabric.Fabric(gpus=0, seconds=30, driver=driver).state()
    verdict = Verdict("no NVIDIA driver on this machine", driver.message, action=driver.advice)
    return replace(state, diagnosis=Diagnosis(state.now_s, verdict))


def lost() -> State:
    def change(second: int, index: int, given: dict[str, object]) -> dict[str, object]:
        return {**given, "status": fabric.lost()} if index == 1 and second >= 70 else given

    return fabric.Fabric(gpus=2, change=change).state()


CASES: dict[str, Callable[[], list[str]]] = {
    "starved-1gpu-40x12": screen(40, 12, starved(1)),
    "starved-8gpus-40x12": screen(40, 12, starved(8)),
    "starved-2gpus-60x16": screen(60, 16, starved(2)),
    "starved-1gpu-80x24": screen(80, 24, starved(1)),
    "starved-8gpus-80x24": screen(80, 24, starved(8, label="simulated: starved")),
    "starved-16gpus-80x24": screen(80, 24, starved(16)),
    "starved-4gpus-120x30": screen(120, 30, starved(4, workers=4)),
    "starved-1gpu-160x50": screen(160, 50, starved(1)),
    "starved-8gpus-160x50": screen(160, 50, starved(8)),
    "starved-16gpus-240x70": screen(240, 70, starved(16, workers=2)),
    "ascii-2gpus-80x24": screen(80, 24, starved(2), ascii_only=True),
    "mig-1gpu-80x30": screen(80, 30, starved(1, mig=3)),
    "nothing-read-80x24": screen(80, 24, lambda: fabric.Fabric(seconds=0).state()),
    "no-driver-80x24": screen(80, 24, no_driver),
    "no-driver-40x12": screen(40, 12, no_driver),
    "lost-2gpus-80x24": screen(80, 24, lost),
    "finding-100x40": lambda: text_of(finding_page(starved(2)(), Options(), 100, 40)),
    "zoom-160x50": lambda: text_of(zoom_page(starved(2)(), Options(), 160, 50)),
    "plain-100": lambda: plain(starved(2)(), 100, ascii_only=False),
}


def written(name: str) -> str:
    return "\n".join(line.rstrip() for line in CASES[name]()) + "\n"


@pytest.mark.parametrize("name", CASES)
def test_the_picture_is_the_one_that_was_looked_at(name: str) -> None:
    assert written(name) == (GOLDENS / f"{name}.txt").read_text("utf-8")


def test_no_picture_is_left_over() -> None:
    assert {path.stem for path in GOLDENS.glob("*.txt")} == set(CASES)


if __name__ == "__main__":
    GOLDENS.mkdir(exist_ok=True)
    for case in CASES:
        (GOLDENS / f"{case}.txt").write_text(written(case), "utf-8")
