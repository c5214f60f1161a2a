"""The app without a terminal, a thread or real time: samples are fed, keys are pressed."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import cache

from textual import events
from textual.pilot import Pilot

from gpuwatch.model import Sample
from gpuwatch.session import Session
from gpuwatch.sources.live import run_simulated
from gpuwatch.tui.app import Dashboard
from gpuwatch.tui.panel import Panel
from gpuwatch.tui.plan import TerminalPlan

Script = Callable[["Shown"], Awaitable[None]]


@cache
def samples(scenario: str = "starved", seconds: int = 45) -> tuple[Sample, ...]:
    return tuple(run_simulated(scenario, seconds))


class Shown:
    """What a test holds: the app, its pilot, the clock and the samples still to come."""

    def __init__(self, app: Dashboard, pilot: Pilot[None], later: list[Sample], now: list[float]) -> None:
        self.app, self.pilot = app, pilot
        self._later, self._now = later, now
        self.left_with: list[int] = []

    async def press(self, *keys: str) -> None:
        """As the driver would tell of them; the pilot's own way sleeps after each key."""
        for key in keys:
            character = " " if key == "space" else key if len(key) == 1 else None
            event = events.Key(key, character)
            event.set_sender(self.app)
            self.app.post_message(event)
            await self.settle()

    async def settle(self) -> None:
        """Until every message is handled; a new screen takes a few rounds to be laid out."""
        for _ in range(4):
            await self.pilot.pause(0)

    async def tick(self, count: int = 1) -> None:
        for _ in range(count):
            sample = self._later.pop(0)
            self._now[0] = sample.monotonic_s
            self.app.feed(sample)
        await self.settle()

    async def wait(self, seconds: float) -> None:
        """Time goes by without a sample."""
        self._now[0] += seconds
        self.app.show_age()
        await self.settle()

    def lines(self) -> list[str]:
        """The screen in front as text."""
        width, height = self.app.size
        grid = [[" "] * width for _ in range(height)]
        for panel in self.app.screen.query(Panel):
            region = panel.region
            if not region.area or not panel.display:
                continue
            for y, strip in enumerate(panel.render_lines(region.reset_offset)):
                for x, character in enumerate(strip.text):
                    grid[region.y + y][region.x + x] = character
        lines = ["".join(row) for row in grid]
        assert not any("cannot be drawn" in line for line in lines), lines
        return lines

    def text(self) -> str:
        return "\n".join(self.lines())

    def foot(self) -> str:
        return self.lines()[-1]


def show(
    script: Script,
    *,
    scenario: str = "starved",
    fed: int = 40,
    seconds: int = 60,
    size: tuple[int, int] = (100, 40),
    plan: TerminalPlan | None = None,
) -> None:
    """Run `script` on an app that has been fed `fed` of the scenario's samples."""

    async def run() -> None:
        taken = list(samples(scenario, seconds))
        session = Session()
        for sample in taken[:fed]:
            session.feed(sample)
        now = [taken[fed - 1].monotonic_s if fed else 0.0]
        left: list[int] = []
        app = Dashboard(session, plan or TerminalPlan(live=True), clock=lambda: now[0], leave=left.append)
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            shown = Shown(app, pilot, taken[fed:], now)
            shown.left_with = left
            await script(shown)
        if app.failure is not None:
            raise app.failure

    asyncio.run(run())
