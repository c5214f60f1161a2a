"""The eight checks, always in the same places: marks alone, with names, or with their evidence."""

from collections.abc import Sequence

from gpuwatch.model import CHECKS, Check, CheckResult, CheckState
from gpuwatch.state import State
from gpuwatch.views import format as words
from gpuwatch.views.lens import Lens
from gpuwatch.views.options import Options
from gpuwatch.views.rows import Row, Span, blank, row, safe, shorten

MARK_ROLE = {
    CheckState.FINE: "ok",
    CheckState.NAMED: "bad",
    CheckState.POSSIBLE: "warn",
    CheckState.WAITING: "dim",
    CheckState.UNMEASURABLE: "dim",
}
NAME_ROLE = {CheckState.NAMED: "bad", CheckState.POSSIBLE: "warn", CheckState.FINE: "value"}
#: From this width on a row of its own holds the evidence too.
EVIDENCE_FROM = 58
_NAME = max(len(check.label) for check in CHECKS)
_SHORT_WIDTH, _NAMED_WIDTH = 39, 19


def checks(state: State, options: Options, width: int, height: int) -> list[Row]:
    """The panel `checks`."""
    if height < 1 or width < 1:
        return []
    lens = Lens(state, options)
    results = results_of(state)
    if height < 2 or width < 2 * _NAMED_WIDTH:
        return [_short(lens, results, width)]
    per_row = 4 if width >= 4 * _NAMED_WIDTH else 2
    if height >= len(results):
        per_row = 1
    elif height * per_row < len(results):
        return [_short(lens, results, width)]
    if per_row == 1:
        rows = [_full(lens, result, width) for result in results]
    else:
        rows = [_named(lens, results[i : i + per_row], width) for i in range(0, len(results), per_row)]
    return (rows + [blank(width)] * height)[:height]


def results_of(state: State) -> tuple[CheckResult, ...]:
    """One result for each check, also before the first look."""
    found = state.diagnosis.checks if state.diagnosis is not None else ()
    by_key = {result.check.key: result for result in found}
    waiting = "not looked yet"
    return tuple(by_key.get(check.key) or CheckResult(check, CheckState.WAITING, waiting) for check in CHECKS)


def _short(lens: Lens, results: Sequence[CheckResult], width: int) -> Row:
    """Mark and three letters each; the one that is named stands in capitals."""
    gap = " " if width >= _SHORT_WIDTH else ""
    letters = 3 if width >= _SHORT_WIDTH - 7 else 0
    spans: list[Span] = []
    for number, result in enumerate(results):
        mark = lens.glyphs.check[result.state]
        name = result.check.key[:letters]
        named = result.state is CheckState.NAMED
        role = MARK_ROLE[result.state]
        spans.append((mark, role))
        spans.append((name.upper() if named else name, NAME_ROLE.get(result.state, "dim")))
        if gap and number < len(results) - 1:
            spans.append((gap, ""))
    return row(spans, width)


def _named(lens: Lens, results: Sequence[CheckResult], width: int) -> Row:
    column = width // len(results)
    spans: list[Span] = []
    for result in results:
        spans += _mark_and_name(lens, result, column)
    return row(spans, width)


def _mark_and_name(lens: Lens, result: CheckResult, width: int) -> list[Span]:
    named = result.state is CheckState.NAMED
    label = result.check.label.upper() if named else result.check.label
    room = width - 2
    text = shorten(label, room - 1, lens.glyphs)
    left = result.seconds_left
    if left is not None and len(text) + len(words.age(left)) + 2 <= room:
        text += f" {words.age(left)}"
    return [
        (f"{lens.glyphs.check[result.state]} ", MARK_ROLE[result.state]),
        (f"{text:<{room}}", NAME_ROLE.get(result.state, "dim")),
    ]


def _full(lens: Lens, result: CheckResult, width: int) -> Row:
    selected = lens.options.focus == "checks" and lens.options.check_row == result.check.number - 1
    mark: Span = (">" if selected else " ", "accent")
    name_width = _NAME + 4
    spans = [mark, *_mark_and_name(lens, result, name_width)]
    room = width - 1 - name_width
    if width >= EVIDENCE_FROM and room > 0:
        text = shorten(evidence(result, lens), room, lens.glyphs)
        spans.append((text, "dim" if result.state in (CheckState.FINE, CheckState.UNMEASURABLE) else "value"))
    return row(spans, width)


def evidence(result: CheckResult, lens: Lens) -> str:
    """What was seen, or why nothing could be."""
    text = safe(result.evidence, lens.glyphs)
    if result.state is CheckState.WAITING and result.seconds_left is not None:
        return f"{text}, {words.age(result.seconds_left)}" if text else words.age(result.seconds_left)
    return text


def check_at(number: int) -> Check:
    """The check with this digit, 1 to 8."""
    return CHECKS[number - 1]
