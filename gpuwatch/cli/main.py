"""The command line: `gpuwatch` and its commands. Each command is imported only when it runs."""

import argparse
import math
import os
import sys
from collections.abc import Callable, Sequence

from gpuwatch import __version__

EXIT_OK = 0
EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_NO_GPU = 3
EXIT_INTERRUPTED = 130
EXIT_BROKEN_PIPE = 141

INTERVAL_MIN_S, INTERVAL_MAX_S = 0.2, 60.0
#: Below this the driver is asked faster than it renews its own values (signals-nvml §14).
INTERVAL_BUSY_S = 0.25
LONGEST_LOOK_S = 86400.0

DESCRIPTION = """\
Says why a deep-learning training is slow: hardware, environment, data or code.
Run it in a second terminal beside the training; nothing there has to change.
Without a command it shows the live dashboard, or prints one snapshot as text
when its output is not a terminal."""

EPILOG = """\
exit status: 0 done, 1 failed while running, 2 wrong usage, 3 no GPU that can be
read where one is required, 130 interrupted"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status. A traceback is shown only with --debug."""
    arguments = sys.argv[1:] if argv is None else list(argv)
    options = build_parser().parse_args(arguments)
    try:
        return _dispatch(options)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader went away (`| head`). Keep the interpreter from complaining at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_BROKEN_PIPE
    except Exception as error:
        if options.debug:
            raise
        print(f"gpuwatch: {_one_sentence(error)} (--debug shows where)", file=sys.stderr)
        return EXIT_FAILED


def _dispatch(options: argparse.Namespace) -> int:
    from gpuwatch.cli import commands

    if options.interval < INTERVAL_BUSY_S:
        print(
            f"gpuwatch: an interval of {options.interval:g} s asks the driver more often than it renews its "
            "values and may slow the training it watches",
            file=sys.stderr,
        )
    problem = commands.unknown_rule(options.ignore)
    if problem is not None:
        print(f"gpuwatch: {problem}", file=sys.stderr)
        return EXIT_USAGE
    handler = getattr(commands, options.command or "live")
    result: int = handler(options)
    return result


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="gpuwatch",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        parents=[_common_options()],
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"gpuwatch {__version__}")
    parser.set_defaults(
        command=None,
        interval=1.0,
        gpus=None,
        pid=None,
        user=None,
        ignore=[],
        ascii=False,
        no_color=False,
        theme=None,
        debug=False,
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    # Options of its own for each: set_defaults above reaches into the ones it is given.
    _add_demo(commands, _common_options())
    _add_snapshot(commands, _common_options())
    _add_explain(commands, _common_options())
    _add_scenarios(commands)
    return parser


def _common_options() -> argparse.ArgumentParser:
    # SUPPRESS: an option given before the command must not be undone by the command's own default.
    common = argparse.ArgumentParser(add_help=False, argument_default=argparse.SUPPRESS, allow_abbrev=False)
    group = common.add_argument_group("what to watch")
    group.add_argument(
        "--interval",
        type=_seconds(INTERVAL_MIN_S, INTERVAL_MAX_S),
        metavar="S",
        help="seconds between samples, 0.2 to 60 (default 1)",
    )
    group.add_argument(
        "--gpus", type=_gpu_list, metavar="LIST", help="only these GPUs: indices or UUIDs, as in 0,2"
    )
    group.add_argument("--pid", type=_pid, metavar="PID", help="judge only this training process")
    group.add_argument("--user", metavar="NAME", help="judge only training processes of this user")
    group.add_argument(
        "--ignore",
        action="append",
        metavar="RULE",
        help="leave this finding out (repeatable); it stays counted",
    )
    look = common.add_argument_group("how it looks")
    look.add_argument("--ascii", action="store_true", help="draw with ASCII characters only")
    look.add_argument(
        "--no-color", action="store_true", help="no colours (also: NO_COLOR in the environment)"
    )
    look.add_argument("--theme", choices=("dark", "light", "ansi"), help="colour theme (key T changes it)")
    look.add_argument("--debug", action="store_true", help="show a traceback when something fails")
    return common


def _add_demo(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]", common: argparse.ArgumentParser
) -> None:
    demo = commands.add_parser(
        "demo",
        parents=[common],
        allow_abbrev=False,
        help="the same program on a simulated driver; needs no GPU",
        description="Show a simulated training: the real program on a simulated driver and host.",
    )
    demo.add_argument(
        "scenario", nargs="?", default="starved", metavar="SCENARIO", help="name or file (default starved)"
    )
    demo.add_argument("--list", action="store_true", help="list the scenarios and what they show")
    demo.add_argument(
        "--after",
        type=_seconds(0, LONGEST_LOOK_S),
        default=60.0,
        metavar="S",
        help="without a terminal: print the snapshot after this much simulated time (default 60)",
    )
    demo.add_argument("--json", action="store_true", help="print the snapshot as JSON")


def _add_snapshot(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]", common: argparse.ArgumentParser
) -> None:
    snapshot = commands.add_parser(
        "snapshot",
        parents=[common],
        allow_abbrev=False,
        help="print what can be seen now, once, as text or JSON",
        description="Watch for a moment, print once, leave. Rates and causes get better with a longer look.",
    )
    snapshot.add_argument("--json", action="store_true", help="one JSON document, schema gpuwatch.snapshot/1")
    snapshot.add_argument(
        "--for",
        dest="look_s",
        type=_seconds(0, LONGEST_LOOK_S),
        default=2.0,
        metavar="S",
        help="how long to look before printing (default 2; causes need 30 to 60)",
    )
    snapshot.add_argument("--require-gpu", action="store_true", help="exit with 3 when no GPU can be read")


def _add_explain(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]", common: argparse.ArgumentParser
) -> None:
    explain = commands.add_parser(
        "explain",
        parents=[common],
        allow_abbrev=False,
        help="what a finding means, how it is decided, what to do",
        description="Explain one finding by its name, as in: gpuwatch explain loader-in-main-process",
    )
    explain.add_argument("rule", nargs="?", metavar="RULE", help="name of the finding; none lists them all")


def _add_scenarios(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    scenarios = commands.add_parser(
        "scenarios",
        allow_abbrev=False,
        help="list scenarios, or score the diagnosis on labelled ones",
        description="Play scenario files through the whole program in simulated time and measure how often "
        "what it says is right. tests/scenarios/FORMAT.md describes the files and their labels.",
    )
    scenarios.add_argument(
        "action", choices=("list", "score"), help="list what there is, or score folders of labelled files"
    )
    scenarios.add_argument(
        "folders", nargs="*", metavar="DIR", help="folders or files (score: default tests/scenarios)"
    )
    scenarios.add_argument(
        "--seeds", type=_count(1, 1000), default=5, metavar="N", help="draws of each scenario (default 5)"
    )
    scenarios.add_argument(
        "--first-seed", type=_count(0, 10**9), default=1, metavar="N", help="seed 0: as written (default 1)"
    )
    scenarios.add_argument(
        "--cadence",
        type=_cadences,
        default=("6hz", "5hz", "1hz"),
        metavar="LIST",
        help="how often utilization is read: 6hz, 5hz, 1hz (default all three)",
    )
    scenarios.add_argument("--only", type=lambda text: text.split(","), metavar="NAMES", help="only these")
    scenarios.add_argument("--slow", action="store_true", help="also those marked as slow")
    scenarios.add_argument("--json", action="store_true", help="one JSON document, schema gpuwatch.score/1")
    scenarios.add_argument("--jobs", type=_count(1, 1024), metavar="N", help="processes (default: one a CPU)")
    scenarios.add_argument("--debug", action="store_true", help="show a traceback when something fails")


def _count(low: int, high: int) -> Callable[[str], int]:
    """A parser of whole numbers within bounds."""

    def parse(text: str) -> int:
        if not text.isascii() or not text.isdigit() or not low <= int(text) <= high:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {low} to {high}")
        return int(text)

    return parse


def _cadences(text: str) -> tuple[str, ...]:
    from gpuwatch.cli.scenarios import CADENCES

    wanted = tuple(part.strip() for part in text.split(","))
    for part in wanted:
        if part not in CADENCES:
            raise argparse.ArgumentTypeError(f"{part!r} is none of {', '.join(CADENCES)}")
    return wanted


def _seconds(low: float, high: float) -> Callable[[str], float]:
    """A parser of seconds within bounds."""

    def parse(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if math.isnan(value):
            raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds")
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f"{text} s is outside {low:g} to {high:g} seconds")
        return value

    return parse


def _pid(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a process id")
    return int(text)


def _gpu_list(text: str) -> tuple[int | str, ...]:
    wanted = [part.strip() for part in text.split(",")]
    if not all(wanted):
        raise argparse.ArgumentTypeError(f"{text!r} is not a list like 0,2 or GPU-8a1b...")
    for part in wanted:
        if not (part.isascii() and part.isdigit()) and not part.lower().startswith(("gpu-", "mig-")):
            raise argparse.ArgumentTypeError(f"{part!r} is neither a GPU index nor a UUID")
    return tuple(int(part) if part.isdigit() else part for part in wanted)


def _one_sentence(error: Exception) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return text[:300]


if __name__ == "__main__":
    sys.exit(main())
