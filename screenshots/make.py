"""Make the pictures in this folder from the real program on simulated time.

    python screenshots/make.py            write every SVG, and PNG where a converter is found
    python screenshots/make.py --check    exit 1 if a committed SVG is not what the program draws now

Nothing here is drawn by hand: a scenario, a moment, a size, some keys.
"""

import argparse
import asyncio
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Shot:
    name: str
    scenario: str
    width: int
    height: int
    after_s: float = 90.0
    keys: tuple[str, ...] = ()
    theme: str = "dark"


SHOTS = (
    Shot("starved-160x50", "starved", 160, 50),
    Shot("starved-80x24", "starved", 80, 24),
    Shot("starved-40x12", "starved", 40, 12),
    Shot("why-120x36", "starved", 120, 36, keys=("enter",)),
    Shot("straggler-160x50", "straggler", 160, 50),
    Shot("gpus16-80x24", str(HERE / "gpus16.scn"), 80, 24),
    Shot("thermal-120x36-light", "thermal", 120, 36, after_s=150.0, theme="light"),
    Shot("help-100x40", "healthy", 100, 40, keys=("question_mark",)),
)


async def draw(shot: Shot) -> str:
    """The SVG of one shot: simulated time, so the same picture every time."""
    from gpuwatch.session import Session
    from gpuwatch.sources.live import run_simulated
    from gpuwatch.tui.app import Dashboard
    from gpuwatch.tui.plan import TerminalPlan

    session = Session(interval_s=1.0)
    samples = list(run_simulated(shot.scenario, shot.after_s))
    for sample in samples[:-1]:
        session.feed(sample)
    plan = TerminalPlan(live=True, theme=shot.theme)
    app = Dashboard(session, plan, clock=lambda: samples[-1].monotonic_s)
    async with app.run_test(size=(shot.width, shot.height)) as pilot:
        app.feed(samples[-1])
        await pilot.pause()
        await pilot.press(*shot.keys)
        await pilot.pause()
        return stable(app.export_screenshot(title="gpuwatch"))


def stable(svg: str) -> str:
    """Without what changes from run to run: the generated ids; and in a font people have."""
    svg = re.sub(r"terminal-\d+", "terminal-0", svg)
    svg = re.sub(r"@font-face\s*{.*?}\s*", "", svg, flags=re.DOTALL)
    return re.sub(r"font-family:\s*[^;]*;", "font-family: 'DejaVu Sans Mono', monospace;", svg)


def to_png(svg: Path) -> bool:
    """One PNG beside the SVG; False when no converter is at hand."""
    png = svg.with_suffix(".png")
    script = os.environ.get("GPUWATCH_SVG_TO_PNG")
    if script:
        subprocess.run([*script.split(), str(svg), str(png)], check=True)
        return True
    resvg = shutil.which("resvg")
    if resvg:
        subprocess.run([resvg, str(svg), str(png)], check=True)
        return True
    return False


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true")
    parser.add_argument("names", nargs="*", help="only these")
    options = parser.parse_args()
    os.environ.pop("NO_COLOR", None)
    stale = []
    for shot in SHOTS:
        if options.names and shot.name not in options.names:
            continue
        svg = asyncio.run(draw(shot))
        path = HERE / f"{shot.name}.svg"
        if options.check:
            if not path.exists() or path.read_text("utf-8") != svg:
                stale.append(shot.name)
            continue
        path.write_text(svg, "utf-8")
        made_png = to_png(path)
        print(f"{path.name}{' and .png' if made_png else ''}")
    if stale:
        print(f"not current: {', '.join(stale)}; run python screenshots/make.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
