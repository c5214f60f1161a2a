"""The live dashboard: what each key does, and how the program comes and goes.

Actions make new choices and show them; what they are called is in `keys`.
"""

import asyncio
import os
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from textual.binding import Binding, BindingType
from textual.message import Message

from gpuwatch.state import State
from gpuwatch.tui import choices, scene
from gpuwatch.tui.export import data_directory, export_evidence, finding_lines
from gpuwatch.tui.keys import Where, commands
from gpuwatch.tui.panel import Panel
from gpuwatch.tui.plan import Flags, decide
from gpuwatch.tui.screens.dialog import Dialog
from gpuwatch.tui.screens.palette import Palette
from gpuwatch.tui.terminal import Driver, Leaving, driver_for, suspend
from gpuwatch.tui.theme import next_theme, styles
from gpuwatch.tui.tty import Tty
from gpuwatch.tui.viewing import Viewing
from gpuwatch.views.options import PANELS_IN_ORDER, select_finding

if TYPE_CHECKING:
    from gpuwatch.sampler import Sampler
    from gpuwatch.session import Session

#: Seconds the driver gets to close before it is left to itself.
CLOSE_S = 0.1


class Dashboard(Viewing):
    """The app. `leave` begins the end of the program with an exit status."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(key, action, priority=True)
        for key, action in (("ctrl+c", "leave"), ("ctrl+q", "leave"), ("ctrl+z", "suspend"))
    ]

    def __init__(self, *arguments: Any, leave: Callable[[int], object] | None = None, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._leave = leave or (lambda code: self.exit(return_code=code))
        self._mouse_on = True

    class Told(Message):
        """A line for the foot, from another thread."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    # Screens

    @property
    def dialog_kind(self) -> str | None:
        """What the dialog in front is about; None on the live screen."""
        return self.screen.kind if isinstance(self.screen, Dialog) else None

    def open(self, kind: str) -> None:
        """Show a dialog, in front of whatever is there; once."""
        if self.dialog_kind == kind:
            self.paint()
            return
        page, foot = scene.page(self, kind), scene.foot_line(self, Where.DIALOG)
        self.push_screen(Dialog(kind, page, foot, self.role_styles))

    def on_panel_clicked(self, event: Panel.Clicked) -> None:
        row = scene.row_at(self, event.panel, event.rows, event.x, event.y)
        if row is not None:
            self.choose(choices.select_row(self.state, self.options, event.panel, row))

    def on_panel_wheel(self, event: Panel.Wheel) -> None:
        if isinstance(self.screen, Dialog):
            self.screen.scroll_rows(3 * event.rows)
        elif event.panel in PANELS_IN_ORDER:
            row = choices.selected_row(self.state, self.options, event.panel) + event.rows
            self.choose(choices.select_row(self.state, self.options, event.panel, row))

    # Keys

    def action_leave(self) -> None:
        self._leave(0)

    def action_suspend(self) -> None:
        if isinstance(self._driver, Driver):
            suspend(self._driver)

    def action_redraw(self) -> None:
        if isinstance(self._driver, Driver):
            self._driver.write("\x1b[2J")
        self.screen.refresh(layout=True)

    def action_help(self) -> None:
        self.open("help")

    def action_palette(self) -> None:
        self.push_screen(Palette(commands(), self.run_command, self.role_styles))

    def run_command(self, action: str) -> None:
        self.call_next(self.run_action, f"app.{action}")

    def action_why(self) -> None:
        if self.options.focus == "gpus":
            self.action_zoom()
        else:
            self.open("check" if self.options.focus == "checks" else "finding")

    def action_finding(self, step: int) -> None:
        self.choose(select_finding(choices.findings_of(self.state), self.options, step))

    def action_check(self, number: int) -> None:
        self.choose(choices.select_row(self.state, self.options, "checks", number - 1))
        self.open("check")

    def action_checklist(self) -> None:
        self.open("checklist")

    def action_timeline(self) -> None:
        self.open("timeline")

    def action_panel(self, step: int) -> None:
        shown = [box.name for box in scene.boxes(self, *self.size)]
        self.choose(choices.move_focus(self.options, shown, step))

    def action_row(self, step: int) -> None:
        if isinstance(self.screen, Dialog):
            self.screen.scroll_rows(step)
        else:
            self.choose(choices.move_row(self.state, self.options, step))

    def action_end(self, direction: int) -> None:
        if direction > 0 and (self.options.back or self.options.frozen):
            self._thaw()
        self.action_row(direction * 10_000)

    def action_side(self, step: int) -> None:
        if self.dialog_kind == "zoom":
            self.choose(choices.next_gpu(self.state, self.options, step))
        elif self.dialog_kind is None:
            self.action_panel(step)

    def action_zoom(self) -> None:
        self.choose(choices.next_gpu(self.state, replace(self.options, zoomed_gpu=None), 0))
        self.open("zoom")

    def action_freeze(self) -> None:
        if self.options.frozen:
            self._thaw()
        else:
            self.choose(replace(self.options, frozen=True))

    def _thaw(self) -> None:
        self.state = self.session.state(self.clock())
        self.choose(replace(self.options, frozen=False, back=0))

    def action_time(self, cells: int) -> None:
        self._look_back(cells * self.options.ticks_per_cell)

    def action_minute(self, minutes: int) -> None:
        self._look_back(minutes * max(1, round(60 / self.session.history.interval_s)))

    def _look_back(self, ticks: int) -> None:
        """Into the past the view freezes, so that it stands still; back at the end it lives again."""
        back = max(0, self.options.back + ticks)
        if back == 0 and self.options.back:
            self._thaw()
        elif back:
            back = min(back, max(0, self.state.tick - 1))
            self.choose(replace(self.options, back=back, frozen=True))

    def action_scale(self, step: int) -> None:
        self.choose(choices.next_scale(self.options, step))

    def action_sort(self, step: int) -> None:
        self.choose(choices.next_sort(self.options, step))

    def action_reverse(self) -> None:
        self.choose(replace(self.options, reverse=not self.options.reverse))

    def action_density(self, density: str) -> None:
        self.choose(replace(self.options, density=density))

    def action_theme(self) -> None:
        theme = next_theme(self.options.theme)
        if theme == self.options.theme:
            self.say("no colours: NO_COLOR or --no-color is set")
            return
        self._role_styles = styles(theme)
        self.options = replace(self.options, theme=theme)
        self.say(f"theme: {theme}")
        self.screen.refresh(layout=True)

    def action_mouse(self) -> None:
        self._mouse_on = not self._mouse_on
        if isinstance(self._driver, Driver):
            self._driver.set_mouse(self._mouse_on)
        self.say("mouse on" if self._mouse_on else "mouse off: the terminal can select text; m turns it on")

    def action_copy(self) -> None:
        finding = choices.selected_finding(self.state, self.options)
        if finding is None:
            self.say("no finding to copy")
            return
        self.copy_to_clipboard("\n".join(finding_lines(finding)))
        self.say(f"copied, if the terminal allows it (OSC 52): {finding.text.title}")

    def action_export(self) -> None:
        directory = data_directory(os.environ)
        # A home directory on a slow network must not hold the screen.
        worker = threading.Thread(target=self._export, args=(self.state, directory), daemon=True)
        worker.start()

    def _export(self, state: State, directory: Path) -> None:
        try:
            message = f"evidence written: {export_evidence(state, directory)}"
        except OSError as error:
            message = f"evidence not written: {error.strerror or error}: {directory}"
        self.post_message(self.Told(message))

    def on_dashboard_told(self, event: Told) -> None:
        self.say(event.text)


def run_app(
    session: "Session",
    sampler: "Sampler",
    *,
    ascii_only: bool = False,
    no_color: bool = False,
    theme: str | None = None,
    closers: Sequence[Callable[[], None]] = (),
) -> int:
    """Show the dashboard until somebody leaves; returns the exit status.

    The sampler is started before this module is imported, so that the driver's start and this
    import go on side by side. `closers` end what must not be lost (a recording) as soon as
    leaving begins; they are called in another thread. Raises what made the screen fail.
    """
    plan = decide(os.environ, sys.stdout.encoding, True, Flags(ascii_only, no_color, theme))
    tty = Tty(plan.encoding)
    leaving = Leaving(tty.restore, closers)
    app = Dashboard(session, plan, take=sampler.take, leave=leaving.begin, driver_class=driver_for(tty))
    app.on_ready = lambda: leaving.attach(asyncio.get_running_loop(), lambda code: app.exit(return_code=code))
    session.observe(lambda _sample, _diagnosis: tty.trim_noise())
    leaving.start()
    tty.take()
    sampler.notify = app.announce
    try:
        app.run()
    finally:
        sampler.notify = None
        sampler.stop()
        noise = tty.give_back()
        code = leaving.finish()
    sys.stderr.write("".join(f"{line}\n" for line in noise))
    if app.failure is not None:
        raise app.failure
    if not sampler.join(CLOSE_S):
        # A driver call hangs. Python would not wait for the thread, the driver library's own end would.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    return code
