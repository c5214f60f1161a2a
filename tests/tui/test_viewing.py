"""What the app shows as samples, sizes and themes come: no terminal, no thread, no real time."""

from dataclasses import replace

import pytest
from showing import Shown, show

from gpuwatch.tui.plan import TerminalPlan


def test_first_picture_before_any_sample() -> None:
    async def script(shown: Shown) -> None:
        assert "gpuwatch" in shown.text()
        assert "? help" in shown.foot()
        await shown.tick()
        assert "RTX 3090" in shown.text()

    show(script, fed=0)


def test_the_finding_is_on_the_screen() -> None:
    async def script(shown: Shown) -> None:
        assert "main process" in shown.text()
        assert "simulated: starved" in shown.lines()[0]

    show(script, fed=60)


@pytest.mark.parametrize("key", ["space", "p"])
def test_a_frozen_view_stands_while_sampling_goes_on(key: str) -> None:
    async def script(shown: Shown) -> None:
        await shown.press(key)
        assert "frozen" in shown.lines()[0]
        still = shown.lines()[1:]
        await shown.tick(5)
        assert shown.lines()[1:] == still
        # A resize draws the frozen moment anew, not the present one.
        tick = shown.app.state.tick
        await shown.pilot.resize_terminal(120, 40)
        assert shown.app.state.tick == tick
        await shown.press(key)
        assert "live" in shown.lines()[0]
        assert shown.app.state.tick == tick + 5
        assert shown.lines()[1:] != still

    show(script)


def test_a_stale_sample_shows_its_age() -> None:
    async def script(shown: Shown) -> None:
        await shown.tick()
        assert "live" in shown.lines()[0]
        await shown.wait(12)
        assert "12 s" in shown.lines()[0]
        await shown.wait(1)
        assert "13 s" in shown.lines()[0]
        await shown.tick()
        assert "live" in shown.lines()[0]

    show(script)


def test_theme_changes_every_colour_and_says_so() -> None:
    async def script(shown: Shown) -> None:
        before = shown.app.role_styles()[""]
        await shown.press("T")
        assert shown.app.options.theme == "light"
        assert "theme: light" in shown.foot()
        assert shown.app.role_styles()[""] != before
        await shown.press("T", "T")
        assert shown.app.options.theme == "dark"

    show(script)


def test_without_colour_the_theme_key_explains_itself() -> None:
    async def script(shown: Shown) -> None:
        await shown.press("T")
        assert "no colours" in shown.foot()
        assert shown.app.options.theme == "plain"

    show(script, plan=TerminalPlan(live=True, theme="plain"))


def test_ascii_only_draws_ascii_only() -> None:
    async def script(shown: Shown) -> None:
        assert shown.text().isascii()
        for key in ("question_mark", "escape", "z", "escape", "1", "escape", "enter", "escape", "ctrl+p"):
            await shown.press(key)
            assert shown.text().isascii(), key

    show(script, fed=60, plan=TerminalPlan(live=True, ascii_only=True))


def test_a_screen_that_costs_too_much_paints_every_second_sample() -> None:
    async def script(shown: Shown) -> None:
        feed = shown.app.session.feed
        dear = lambda sample: replace(feed(sample), own_cpu_ratio=0.08)  # noqa: E731 - the stand-in
        shown.app.session.feed = dear  # type: ignore[method-assign] # what it would measure
        paints: list[int] = []
        paint = shown.app.paint

        def counted(only: object = None) -> None:
            paints.append(shown.app.state.tick)
            paint()

        shown.app.paint = counted  # type: ignore[method-assign] # only counted
        await shown.tick(1)
        assert "8 % of a core" in shown.foot()
        paints.clear()
        await shown.tick(6)
        assert len(paints) == 3
        assert all(tick % 2 == 0 for tick in paints)

    show(script)


@pytest.mark.parametrize("key", ["question_mark", "enter", "z", "1", "ctrl+p"])
def test_resize_while_a_dialog_is_open(key: str) -> None:
    async def script(shown: Shown) -> None:
        await shown.press(key)
        for width, height in ((40, 12), (1, 1), (300, 90), (19, 4), (80, 24)):
            await shown.pilot.resize_terminal(width, height)
            assert len(shown.lines()) == height
        await shown.press("escape")
        assert "gpuwatch" in shown.text()
        assert len(shown.lines()) == 24

    show(script, fed=60)


def test_b085_every_size_down_to_one_cell() -> None:
    async def script(shown: Shown) -> None:
        for width, height in ((1, 1), (2, 50), (200, 1), (20, 5), (19, 5), (20, 4), (40, 12), (240, 70)):
            await shown.pilot.resize_terminal(width, height)
            await shown.tick()
            assert [len(line) for line in shown.lines()] == [width] * height

    show(script)


def test_b086_keys_work_on_a_large_screen_with_many_gpus() -> None:
    async def script(shown: Shown) -> None:
        for width, height in ((60, 15), (300, 80)):
            await shown.pilot.resize_terminal(width, height)
            await shown.tick(2)
        await shown.press("q")
        assert shown.left_with == [0]

    show(script, scenario="straggler", size=(300, 80))


def test_click_selects_and_wheel_moves() -> None:
    async def script(shown: Shown) -> None:
        lines = shown.lines()
        y = next(y for y, line in enumerate(lines) if "training code" in line)
        await shown.pilot.click(offset=(lines[y].index("training code"), y))
        assert (shown.app.options.focus, shown.app.options.check_row) == ("checks", 6)
        pid = next(y for y, line in enumerate(lines) if "train.py" in line)
        await shown.pilot.click(offset=(lines[pid].index("train.py"), pid))
        assert shown.app.options.focus == "procs"

    show(script, size=(160, 50), fed=60)
