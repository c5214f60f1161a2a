"""Samples in, pictures out: the half of the app that keys have no part in.

The sampling thread announces, this thread takes, feeds the session and repaints what changed: on a
sample, a key, a resize, and once a second while the newest sample is old. Nothing else repaints.
"""

import asyncio
import gc
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from rich.style import Style
from textual.driver import Driver
from textual.message import Message

from gpuwatch.model import Sample
from gpuwatch.state import State
from gpuwatch.tui import scene
from gpuwatch.tui.plan import TerminalPlan
from gpuwatch.tui.screens.board import Backdrop, Board
from gpuwatch.tui.terminal import FullScreenApp
from gpuwatch.tui.theme import styles
from gpuwatch.views.lens import stale_after_s
from gpuwatch.views.options import Options

if TYPE_CHECKING:
    from gpuwatch.session import Session

#: Samples during which a message stays in the foot line.
MESSAGE_TICKS = 6
#: Above this share of a core the screen is too dear beside a training; it then repaints half as often.
DEAR_RATIO = 0.05


class Viewing(FullScreenApp):
    """Shows `session`; `take` gives the samples that came since the last call, oldest first."""

    class Arrived(Message):
        """The sampler has something; posted from its thread."""

    def __init__(
        self,
        session: "Session",
        plan: TerminalPlan,
        *,
        take: Callable[[], Sequence[Sample]] = tuple,
        clock: Callable[[], float] = time.monotonic,
        driver_class: type[Driver] | None = None,
    ) -> None:
        super().__init__(driver_class=driver_class)
        self.animation_level = "none"
        self.session = session
        self.options = Options(ascii_only=plan.ascii_only, theme=plan.theme)
        self.state: State = session.state(clock())
        self.message = plan.hint
        self._message_until = self.state.tick + MESSAGE_TICKS
        self._take, self.clock = take, clock
        self._role_styles: Mapping[str, Style] = styles(plan.theme)
        self._stale: asyncio.TimerHandle | None = None
        self._spares = False
        self.on_ready: Callable[[], None] = lambda: None

    def get_default_screen(self) -> Board:
        return Board(
            scene.panels(self), lambda width, height: scene.boxes(self, width, height), self.role_styles
        )

    def role_styles(self) -> Mapping[str, Style]:
        return self._role_styles

    def on_mount(self) -> None:
        self.on_ready()
        self.call_after_refresh(self._settle)
        self.on_viewing_arrived()

    def _settle(self) -> None:
        # What is there after the first picture stays for good: out of the collector's way
        # (a full collection paused the screen for 15 to 30 ms otherwise).
        gc.collect()
        gc.freeze()

    def announce(self) -> None:
        """There are new samples to take. Safe in any thread, and never waits."""
        self.post_message(self.Arrived())

    def on_viewing_arrived(self) -> None:
        for sample in self._take():
            self.feed(sample, paint=False)
        self.paint_tick()

    def feed(self, sample: Sample, *, paint: bool = True) -> None:
        """Take one sample in, as the live program does for each that arrives."""
        state = self.session.feed(sample)
        if not self.options.frozen:
            self.state = state
        if self.message and state.tick >= self._message_until:
            self.message = ""
        self._watch_age(stale_after_s(sample.interval_s))
        if paint:
            self.paint_tick()

    def paint_tick(self) -> None:
        """Repaint after a sample; a frozen picture stands, only its age goes on."""
        cost = self.state.own_cpu_ratio
        if cost is not None and cost > DEAR_RATIO:
            if not self._spares:
                self._spares = True
                self.say(f"this program takes {100 * cost:.0f} % of a core: repainting half as often")
            if self.state.tick % 2:
                return
        self.paint(("head", "foot") if self.options.frozen else None)

    def show_age(self) -> None:
        """The newest sample is old: show how old, and again in a second."""
        if not self.options.frozen:
            self.state = self.session.state(self.clock())
            self.paint()
        self._watch_age(1.0)

    def _watch_age(self, seconds: float) -> None:
        if self._stale is not None:
            self._stale.cancel()
        self._stale = asyncio.get_running_loop().call_later(seconds, self.show_age)

    def paint(self, only: Collection[str] | None = None) -> None:
        """Repaint what changed on the screen in front, or what changed of some panels."""
        front = self.screen
        if isinstance(front, Backdrop):
            front.update(only)

    def choose(self, options: Options) -> None:
        """Take over what the user chose, and show it."""
        self.options = options
        self.message = ""
        self.paint()

    def say(self, message: str) -> None:
        """One line in the foot, until the next key or a few samples later."""
        self.message = message
        self._message_until = (self.session.latest or self.state).tick + MESSAGE_TICKS
        self.paint()
