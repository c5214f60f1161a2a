"""What each command does: the only place that wires rooms together. Imports stay inside."""

import argparse
import json
import os
import shutil
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypedDict

from gpuwatch.cli.main import EXIT_NO_GPU, EXIT_OK, EXIT_USAGE

if TYPE_CHECKING:
    from gpuwatch.session import Session
    from gpuwatch.sources.base import Source
    from gpuwatch.state import State


class Selection(TypedDict):
    """How a source is opened."""

    interval_s: float
    gpus: tuple[int | str, ...] | None
    pid: int | None
    user: str | None


def live(options: argparse.Namespace) -> int:
    """The dashboard on this machine; one text snapshot when there is no terminal to draw on."""
    why_not = _no_screen_because(options)
    if why_not is not None:
        if why_not:
            print(f"gpuwatch: {why_not}; printing one snapshot instead", file=sys.stderr)
        return _print_snapshot(options, _live(options), look_s=2.0)
    return _show(options, _live(options))


def demo(options: argparse.Namespace) -> int:
    """The same dashboard on a simulated driver and host."""
    from gpuwatch.sources.simulated import ScenarioError, describe, load, scenario_names

    if options.list:
        width = max(map(len, scenario_names()))
        for name in scenario_names():
            print(f"{name:<{width}}  {describe(name)}")
        return EXIT_OK
    try:
        load(options.scenario)
    except (ScenarioError, OSError, KeyError) as error:
        print(f"gpuwatch: {_scenario_problem(options.scenario, error)}", file=sys.stderr)
        return EXIT_USAGE
    if options.json or _no_screen_because(options) is not None:
        return _print_simulated(options)
    from gpuwatch.sources.live import simulated_source

    return _show(options, simulated_source(options.scenario, **_selection(options)))


def snapshot(options: argparse.Namespace) -> int:
    """Look for a moment and print once."""
    return _print_snapshot(options, _live(options), look_s=options.look_s)


def explain(options: argparse.Namespace) -> int:
    """The words behind a finding."""
    from gpuwatch.diagnosis.texts import explain as explain_rule
    from gpuwatch.diagnosis.texts import listing

    if options.rule is None:
        print("\n".join(listing()))
        return EXIT_OK
    try:
        print(explain_rule(options.rule))
    except KeyError as error:
        print(f"gpuwatch: {error.args[0]}", file=sys.stderr)
        return EXIT_USAGE
    return EXIT_OK


def scenarios(options: argparse.Namespace) -> int:
    """Labelled scenarios: what there is, and how right the diagnosis is on them."""
    from gpuwatch.cli.scenarios import scenarios as run_scenarios

    return run_scenarios(options)


def unknown_rule(rules: Sequence[str]) -> str | None:
    """A sentence about the first name in `rules` that is no finding, None when all are known."""
    if not rules:
        return None
    from difflib import get_close_matches

    from gpuwatch.diagnosis.catalogue import PLACES

    for rule in rules:
        if rule not in PLACES:
            near = get_close_matches(rule, PLACES, 3)
            hint = f"; near it: {', '.join(near)}" if near else "; gpuwatch explain lists them"
            return f"--ignore: there is no finding {rule!r}{hint}"
    return None


def _live(options: argparse.Namespace) -> "Source":
    from gpuwatch.sources.live import live_source

    return live_source(**_selection(options))


def _selection(options: argparse.Namespace) -> Selection:
    return {
        "interval_s": options.interval,
        "gpus": options.gpus,
        "pid": options.pid,
        "user": options.user,
    }


def _session(options: argparse.Namespace) -> "Session":
    from gpuwatch.session import Session

    return Session(interval_s=options.interval, ignored=frozenset(options.ignore))


def _no_screen_because(options: argparse.Namespace) -> str | None:
    """Why no live screen can be drawn; None when it can, "" when that needs no word (a pipe)."""
    from gpuwatch.tui.plan import Flags, decide

    if not sys.stdout.isatty() or not sys.stdin.isatty():
        return ""
    if os.name != "posix":
        return "the live screen needs a Unix terminal"
    plan = decide(
        os.environ, sys.stdout.encoding, True, Flags(options.ascii, options.no_color, options.theme)
    )
    return None if plan.live else plan.reason


def _show(options: argparse.Namespace, source: "Source") -> int:
    from gpuwatch.sampler import Sampler

    # The driver starts in the sampling thread while this one imports the screen.
    sampler = Sampler(source, interval_s=options.interval)
    sampler.start()
    from gpuwatch.tui.app import run_app

    return run_app(
        _session(options),
        sampler,
        ascii_only=options.ascii,
        no_color=options.no_color,
        theme=options.theme,
    )


def _print_snapshot(options: argparse.Namespace, source: "Source", look_s: float) -> int:
    import time

    session = _session(options)
    source.open()
    try:
        start = time.monotonic()
        state = session.feed(source.sample(start))
        due = start
        # Two samples at least: every rate is a difference.
        while state.tick < 2 or time.monotonic() - start < look_s:
            due += min(options.interval, max(0.2, look_s))
            _wait_until(source, due)
            state = session.feed(source.sample(due))
    finally:
        source.close()
    return _write(options, state)


def _wait_until(source: "Source", due_s: float) -> None:
    import time

    while (left := due_s - time.monotonic()) > 0:
        pause = source.between()
        time.sleep(min(left, pause) if pause is not None else left)


def _print_simulated(options: argparse.Namespace) -> int:
    """Simulated time needs no waiting: the snapshot after `--after` seconds, at once."""
    from gpuwatch.sources.live import run_simulated

    session = _session(options)
    for sample in run_simulated(options.scenario, options.after, **_selection(options)):
        session.feed(sample)
    state = session.latest
    if state is None:
        return EXIT_NO_GPU
    return _write(options, state)


def _write(options: argparse.Namespace, state: "State") -> int:
    if getattr(options, "json", False):
        from gpuwatch.report.snapshot import snapshot_document

        json.dump(snapshot_document(state), sys.stdout, ensure_ascii=False, allow_nan=False)
        sys.stdout.write("\n")
    else:
        from gpuwatch.views.plain import plain

        encoding = (sys.stdout.encoding or "ascii").lower().replace("-", "")
        ascii_only = options.ascii or encoding not in ("utf8", "utf8sig")
        width = shutil.get_terminal_size((100, 40)).columns
        for line in plain(state, width, ascii_only=ascii_only):
            print(line)
    sys.stdout.flush()
    if getattr(options, "require_gpu", False) and (state.sample is None or not state.sample.gpus):
        message = "no GPU" if state.sample is None else state.sample.driver.message or "no GPU"
        print(f"gpuwatch: {message}", file=sys.stderr)
        return EXIT_NO_GPU
    return EXIT_OK


def _scenario_problem(name: str, error: Exception) -> str:
    from gpuwatch.sources.simulated import scenario_names

    if isinstance(error, (KeyError, FileNotFoundError)):
        return f"no scenario {name!r}; there are {', '.join(scenario_names())}, or give a file"
    if isinstance(error, OSError):
        return f"cannot read {name!r}: {error.strerror or error}"
    return str(error)
