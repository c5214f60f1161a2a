"""Every key once, on the app itself: no terminal, no thread, no real time."""

import pytest
from showing import Shown, samples, show

from gpuwatch.views.options import SCALES


@pytest.mark.parametrize("key", ["q", "ctrl+c", "ctrl+q"])
def test_quit(key: str) -> None:
    async def script(shown: Shown) -> None:
        await shown.press(key)
        assert shown.left_with == [0]

    show(script)


@pytest.mark.parametrize("key", ["ctrl+c", "ctrl+q"])
def test_quit_from_a_dialog(key: str) -> None:
    async def script(shown: Shown) -> None:
        await shown.press("question_mark", key)
        assert shown.left_with == [0]

    show(script)


@pytest.mark.parametrize("key", ["question_mark", "h", "f1"])
@pytest.mark.parametrize("back", ["escape", "q", "backspace"])
def test_help_and_back(key: str, back: str) -> None:
    async def script(shown: Shown) -> None:
        before = shown.text()
        await shown.press(key)
        assert shown.app.dialog_kind == "help"
        assert "back" in shown.foot()
        assert shown.text() != before
        await shown.press(back)
        assert shown.app.dialog_kind is None
        assert shown.text() == before
        assert shown.left_with == []

    show(script)


def test_an_unknown_key_does_nothing_at_all() -> None:
    async def script(shown: Shown) -> None:
        before = shown.text()
        await shown.press("x", "R", "K", "ctrl+t", "f9", "u", "9")
        assert shown.text() == before
        assert shown.left_with == []

    show(script)


def test_back_in_time_and_forward_to_now() -> None:
    async def script(shown: Shown) -> None:
        await shown.press("left_square_bracket", "left_square_bracket")
        assert (shown.app.options.back, shown.app.options.frozen) == (2, True)
        assert "back" in shown.lines()[0]
        await shown.press("right_square_bracket", "right_square_bracket")
        assert (shown.app.options.back, shown.app.options.frozen) == (0, False)
        await shown.press("right_square_bracket", "right_curly_bracket")
        assert (shown.app.options.back, shown.app.options.frozen) == (0, False)

    show(script)


def test_a_minute_back_stops_at_the_first_sample() -> None:
    async def script(shown: Shown) -> None:
        await shown.press("left_curly_bracket", "left_curly_bracket")
        assert shown.app.options.back == shown.app.state.tick - 1
        await shown.press("G")
        assert (shown.app.options.back, shown.app.options.frozen) == (0, False)

    show(script)


def test_scale_steps_and_stops() -> None:
    async def script(shown: Shown) -> None:
        await shown.press("plus")
        assert shown.app.options.ticks_per_cell == SCALES[1]
        await shown.press(*["plus"] * 9)
        assert shown.app.options.ticks_per_cell == SCALES[-1]
        await shown.press(*["minus"] * 9)
        assert shown.app.options.ticks_per_cell == SCALES[0]

    show(script)


def test_tab_goes_through_the_panels_on_the_screen() -> None:
    async def script(shown: Shown) -> None:
        seen = [shown.app.options.focus]
        for _ in range(4):
            await shown.press("tab")
            seen.append(shown.app.options.focus)
        assert sorted(seen[:4]) == ["checks", "findings", "gpus", "procs"]
        assert seen[4] == seen[0]
        await shown.press("shift+tab")
        assert shown.app.options.focus == seen[3]
        await shown.press("right", "l", "left")
        assert shown.app.options.focus == seen[0 + 0] or shown.app.options.focus in seen

    show(script, size=(160, 50))


def test_rows_move_and_stop_at_the_ends() -> None:
    async def script(shown: Shown) -> None:
        while shown.app.options.focus != "gpus":
            await shown.press("tab")
        await shown.press("down", "j", "j", "k")
        assert shown.app.options.gpu_row == 2
        await shown.press("G")
        assert shown.app.options.gpu_row == 7
        await shown.press("down")
        assert shown.app.options.gpu_row == 7
        await shown.press("pageup")
        assert shown.app.options.gpu_row == 0
        await shown.press("pagedown", "g")
        assert shown.app.options.gpu_row == 0
        await shown.press("end", "home", "up")
        assert shown.app.options.gpu_row == 0

    show(script, scenario="straggler", size=(160, 50))


@pytest.mark.parametrize("number", range(1, 9))
def test_digits_open_the_checks(number: int) -> None:
    async def script(shown: Shown) -> None:
        await shown.press(str(number))
        assert shown.app.dialog_kind == "check"
        assert shown.app.options.check_row == number - 1
        other = number % 8 + 1
        await shown.press(str(other))  # from one check to another, not on top of it
        assert shown.app.options.check_row == other - 1
        await shown.press("q")
        assert shown.app.dialog_kind is None

    show(script)


def test_n_goes_round_the_findings() -> None:
    async def script(shown: Shown) -> None:
        keys = []
        for key in ("n", "N", "n"):
            await shown.press(key)
            keys.append(shown.app.options.finding)
        assert keys[0] is not None
        await shown.press("enter")
        assert shown.app.dialog_kind == "finding"
        await shown.press("n")
        assert shown.app.dialog_kind == "finding"

    show(script, fed=60)


def test_enter_opens_what_has_the_focus() -> None:
    async def script(shown: Shown) -> None:
        for focus, kind in (("findings", "finding"), ("checks", "check"), ("gpus", "zoom")):
            while shown.app.options.focus != focus:
                await shown.press("tab")
            await shown.press("enter")
            assert shown.app.dialog_kind == kind
            await shown.press("escape")

    show(script, fed=60, size=(160, 50))


def test_zoom_goes_from_gpu_to_gpu() -> None:
    async def script(shown: Shown) -> None:
        await shown.press("z")
        assert shown.app.dialog_kind == "zoom"
        uuids = [gpu.uuid for gpu in samples("straggler", 60)[0].gpus]
        assert shown.app.options.zoomed_gpu == uuids[0]
        await shown.press("right", "l")
        assert shown.app.options.zoomed_gpu == uuids[2]
        await shown.press("left", "left", "left")
        assert shown.app.options.zoomed_gpu == uuids[-1]
        await shown.tick()  # a dialog lives on
        await shown.press("q")
        assert shown.app.dialog_kind is None

    show(script, scenario="straggler")


def test_processes_are_sorted_and_turned() -> None:
    async def script(shown: Shown) -> None:
        assert shown.app.options.sort == "gpu"
        await shown.press("full_stop")
        assert shown.app.options.sort == "pid"
        await shown.press("comma", "comma")
        assert shown.app.options.sort == "read"
        await shown.press("slash")
        assert shown.app.options.reverse
        await shown.press("slash")
        assert not shown.app.options.reverse

    show(script)


def test_density() -> None:
    async def script(shown: Shown) -> None:
        for key, density in (("f", "full"), ("c", "compact"), ("a", "auto")):
            await shown.press(key)
            assert shown.app.options.density == density

    show(script)


def test_enter_without_a_finding_opens_a_page_that_says_so() -> None:
    async def script(shown: Shown) -> None:
        await shown.press("enter")
        assert shown.app.dialog_kind == "finding"
        assert "no finding" in shown.text().lower()

    show(script, fed=3)


def test_mouse_key_says_what_it_did() -> None:
    async def script(shown: Shown) -> None:
        await shown.press("m")
        assert "mouse off" in shown.foot()
        await shown.press("m")
        assert "mouse on" in shown.foot()
        await shown.tick(7)
        assert "mouse" not in shown.foot()

    show(script)


def test_redraw_and_suspend_need_no_terminal() -> None:
    async def script(shown: Shown) -> None:
        before = shown.text()
        await shown.press("ctrl+l", "ctrl+z")
        assert shown.text() == before

    show(script)


def test_copy_takes_the_whole_finding() -> None:
    async def script(shown: Shown) -> None:
        await shown.press("y")
        copied = shown.app.clipboard
        assert "because" in copied
        assert "do: " in copied
        assert "copied" in shown.foot()

    show(script, fed=60)


def test_copy_without_a_finding_says_so() -> None:
    async def script(shown: Shown) -> None:
        await shown.press("y")
        assert "no finding" in shown.foot()

    show(script, fed=3)


def test_palette_runs_a_command_by_name() -> None:
    async def script(shown: Shown) -> None:
        await shown.press("ctrl+p")
        assert "command" in shown.lines()[0]
        await shown.press(*"freeze", "enter")
        assert shown.app.options.frozen

    show(script)


def test_palette_is_left_without_a_command() -> None:
    async def script(shown: Shown) -> None:
        before = shown.text()
        await shown.press("ctrl+p", *"zzzz", "down", "up", "enter")
        assert shown.text() == before
        await shown.press("ctrl+p", "a", "backspace", "backspace")
        assert shown.text() == before
        await shown.press("ctrl+p", "escape")
        assert shown.text() == before

    show(script)
