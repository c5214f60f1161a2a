"""The right-hand sides of scenario lines: values with faults, numbers, sets of GPUs."""

import math
import re

from gpuwatch.sources.simulated.codes import BY_NAME
from gpuwatch.sources.simulated.language import ExpressionParser, Node, ScenarioError
from gpuwatch.sources.simulated.scenario import Fault
from gpuwatch.sources.simulated.waveforms import Compiler

_FAULT = re.compile(r"(?i:ERR:)|delay=|hang(?!\w)")
#: Long enough to be for ever, as the C driver has it.
_HANG_S = 3600.0


def parse_expression(text: str, place: int = 0) -> tuple[Node, int]:
    """The expression and the last place used in it (places seed noise and must differ)."""
    parser = ExpressionParser(text.strip(), place=place)
    return parser.parse(), parser.place


def parse_number(text: str) -> float:
    """An expression that needs no time and no GPU."""
    node, _ = parse_expression(text)
    return Compiler().wave(node).at(0.0)


def parse_value(text: str, place: int) -> tuple[Node | None, tuple[Fault, ...], int]:
    """`[expression] {; fault}`: the expression is None where only faults are given."""
    node: Node | None = None
    faults: list[Fault] = []
    for part in filter(None, (part.strip() for part in text.split(";"))):
        if _FAULT.match(part):
            faults.append(parse_fault(part))
        else:
            node, place = parse_expression(part, place)
    return node, tuple(faults), place


def parse_fault(text: str) -> Fault:
    """`ERR:NAME`, `delay=50ms` or `hang`, each with `@from`, `@from..to` and `%probability`."""
    text, _, percent = text.partition("%")
    probability = parse_number(percent) / 100 if percent.strip() else 1.0
    text, at, span = text.partition("@")
    start, end = -math.inf, math.inf
    if at:
        first, dots, last = span.partition("..")
        start = parse_number(first)
        end = parse_number(last) if dots else math.inf
    text = text.strip()
    error, delay_s = None, 0.0
    if text[:4].upper() == "ERR:":
        error = BY_NAME.get(text[4:].upper())
        if error is None:
            raise ScenarioError(f'unknown error "{text[4:]}"')
    elif text.startswith("delay="):
        value = parse_number(text[6:])
        delay_s = value if text.endswith("s") else value / 1000  # a bare number is milliseconds
    elif text == "hang":
        delay_s = _HANG_S
    else:
        raise ScenarioError(f'cannot read fault "{text}"')
    return Fault(error, delay_s, start, end, probability)


def parse_gpu_set(text: str, count: int) -> frozenset[int]:
    """`0,2,4-7` or `*`."""
    found: set[int] = set()
    for part in filter(None, re.split(r"[ ,]+", text.strip())):
        if part == "*":
            found.update(range(count))
            continue
        span = re.fullmatch(r"(\d+)(?:-(\d+))?", part)
        if not span:
            raise ScenarioError(f'bad GPU list at "{part}"')
        for index in range(int(span.group(1)), int(span.group(2) or span.group(1)) + 1):
            if index >= count:
                raise ScenarioError(f"there is no GPU {index}")
            found.add(index)
    return frozenset(found)


def parse_xids(text: str) -> list[tuple[float, int]]:
    """`20:79, 31:13`: seconds and Xid code."""
    events = []
    for part in text.split(","):
        found = re.fullmatch(r"\s*([\d.]+)\s*:\s*(\d+)\s*", part)
        if not found:
            raise ScenarioError(f'xid wants seconds:code, not "{part.strip()}"')
        events.append((float(found.group(1)), int(found.group(2))))
    return events
