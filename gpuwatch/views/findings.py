"""The findings, worst first, one line each; with more rows their reasons, and those that have ended."""

from collections.abc import Sequence

from gpuwatch.model import Finding, Kind, Severity
from gpuwatch.state import State
from gpuwatch.views import format as words
from gpuwatch.views.glyphs import Glyphs
from gpuwatch.views.lens import Lens
from gpuwatch.views.options import Options, selected_index
from gpuwatch.views.rows import (
    Row,
    Span,
    blank,
    both_ends,
    cells,
    heading,
    row,
    safe,
    shorten,
    width_of,
    wrap,
)

ROLE = {Severity.CRITICAL: "bad", Severity.WARNING: "warn", Severity.NOTICE: "warn", Severity.STATE: "dim"}
#: From this many rows on the panel has a heading.
HEADING_FROM = 4
#: In one row of this width there is room for the finding and for its next step.
TITLE_AND_STEP_FROM = 72


def findings(state: State, options: Options, width: int, height: int) -> list[Row]:
    """The panel `findings`."""
    if height < 1 or width < 1:
        return []
    lens = Lens(state, options)
    found = lens.findings
    if not found:
        return _without(lens, width, height)
    chosen = selected_index(found, options)
    if height < HEADING_FROM and height < len(found) + 1:
        return _few_rows(lens, found, chosen, width, height)
    rows: list[Row] = []
    if height >= HEADING_FROM:
        focused = options.focus == "findings"
        rows.append(heading(f"findings {len(found)}", width, lens.glyphs, focused, _ignored(state)))
    left = height - len(rows)
    first = min(max(0, chosen - left + 1), max(0, len(found) - left))
    shown = found[first : first + left]
    details = _details(lens, shown, chosen - first, width, left - len(shown))
    for place, finding in enumerate(shown):
        rows.append(finding_line(lens, finding, width, first + place == chosen, place_of(chosen, found)))
        rows += details[place]
    rows += _ended(lens, width, height - len(rows))
    return (rows + [blank(width)] * height)[:height]


def place_of(chosen: int, found: Sequence[Finding]) -> str:
    """ "1/3"; nothing where there is only one."""
    return f"{chosen + 1}/{len(found)}" if len(found) > 1 else ""


def _few_rows(lens: Lens, found: Sequence[Finding], chosen: int, width: int, height: int) -> list[Row]:
    """One to three rows: the selected finding is always among them, its next step where it has room."""
    finding = found[chosen]
    place = place_of(chosen, found)
    if height == 1:
        return [_step_line(lens, finding, width, place)]
    if height == 2:
        return [finding_line(lens, finding, width, True, place), _do_row(lens, finding, width)]
    first = min(max(0, chosen - height + 1), len(found) - height)
    shown = range(first, first + height)
    return [finding_line(lens, found[i], width, i == chosen, place) for i in shown]


def _step_line(lens: Lens, finding: Finding, width: int, place: str) -> Row:
    """One row only: what to do where the verdict names this finding already, else the finding."""
    verdict = None if lens.state.diagnosis is None else lens.state.diagnosis.verdict
    same = verdict is not None and (verdict.rule, verdict.subject) == (finding.rule, finding.subject)
    step = short_step(finding, lens.glyphs)
    if not same or not step:
        return finding_line(lens, finding, width, True, place)
    if width >= TITLE_AND_STEP_FROM:
        return _title_and_step(lens, finding, width, step, place)
    end: list[Span] = [(f" {place}", "dim")] if place else []
    room = max(1, width - 4 - width_of(end))
    return both_ends([("do  ", "label"), (shorten(step, room, lens.glyphs), "accent")], end, width)


def _title_and_step(lens: Lens, finding: Finding, width: int, step: str, place: str) -> Row:
    glyphs = lens.glyphs
    mark = glyphs.severity[finding.severity]
    start: list[Span] = [(">", "accent"), (f"{mark} ", ROLE[finding.severity])]
    end: list[Span] = [("  do: ", "label"), (shorten(step, width // 2, glyphs), "accent")]
    if place:
        end.append((f"  {place}", "dim"))
    text = subject_words(lens, finding) + safe(finding.text.title, glyphs)
    room = max(1, width - width_of(start) - width_of(end) - 1)
    return both_ends([*start, (shorten(text, room, glyphs), "title")], end, width)


def _do_row(lens: Lens, finding: Finding, width: int) -> Row:
    step = short_step(finding, lens.glyphs)
    return row([(" do ", "label"), (shorten(step, max(1, width - 4), lens.glyphs), "accent")], width)


def short_step(finding: Finding, glyphs: Glyphs) -> str:
    text = finding.text
    return safe(text.short_advice or (text.advice[0] if text.advice else ""), glyphs)


def finding_line(lens: Lens, finding: Finding, width: int, selected: bool, place: str) -> Row:
    """Mark, which GPUs, title; at the right how sure and how much."""
    glyphs = lens.glyphs
    role = ROLE[finding.severity]
    start: list[Span] = [
        (">" if selected else " ", "accent"),
        (f"{glyphs.severity[finding.severity]} ", role),
    ]
    end = _weight(finding, place if selected else "")
    text = subject_words(lens, finding) + safe(finding.text.title, glyphs)
    room = width - width_of(start) - cells(end) - 1
    if room < min(cells(text), 24):  # the title matters more than its weight
        end = place if selected else ""
        room = width - width_of(start) - (cells(end) + 1 if end else 0)
    start.append((shorten(text, max(1, room), glyphs), "title" if selected else "value"))
    return both_ends(start, [(end, "dim")] if end else [], width)


def subject_words(lens: Lens, finding: Finding) -> str:
    """ "GPU 3: " where the finding is about some GPUs of several, and its title does not say which."""
    numbers = sorted(index for uuid in finding.gpus if (index := lens.index_of(uuid)) is not None)
    if not numbers or len(numbers) == len(lens.gpus) or "GPU " in finding.text.title:
        return ""
    noun = "GPU" if len(numbers) == 1 else "GPUs"
    return f"{noun} {number_ranges(numbers)}: "


def number_ranges(numbers: Sequence[int]) -> str:
    """ "0-3,6" for the sorted numbers 0 1 2 3 6."""
    parts: list[str] = []
    start = previous = numbers[0]
    for number in (*numbers[1:], None):
        if number is not None and number == previous + 1:
            previous = number
            continue
        parts.append(str(start) if start == previous else f"{start}-{previous}")
        if number is not None:
            start = previous = number
    return ",".join(parts)


def _weight(finding: Finding, place: str) -> str:
    share = ""
    if finding.kind is Kind.LOSS:
        share = words.ratio_range(finding.share_low_ratio, finding.share_ratio, finding.share_high_ratio)
    often = f"{finding.intermittent}x in 2 min" if finding.intermittent else ""
    return "  ".join(text for text in (str(finding.confidence), share, often, place) if text)


def _details(lens: Lens, shown: Sequence[Finding], chosen: int, width: int, spare: int) -> list[list[Row]]:
    """What to do and why under each finding, the selected one first, as far as `spare` rows reach."""
    result: list[list[Row]] = [[] for _ in shown]
    order = [chosen, *(i for i in range(len(shown)) if i != chosen)] if 0 <= chosen < len(shown) else []
    for index in order:
        rows = _why_rows(lens, shown[index], width, spare)
        result[index] = rows
        spare -= len(rows)
    return result


def _why_rows(lens: Lens, finding: Finding, width: int, most: int) -> list[Row]:
    glyphs = lens.glyphs
    because = safe("; ".join(finding.text.because), glyphs)
    step = short_step(finding, glyphs)
    room = max(1, width - 4)
    rows: list[Row] = []
    steps = wrap(f"do: {step}", room, min(2, most), glyphs) if step else []
    reasons = wrap(because, room, min(3, most - len(steps)), glyphs)
    rows += [row([("    ", ""), (line, "dim")], width) for line in reasons]
    rows += [row([("    ", ""), (line, "value")], width) for line in steps]
    return rows


def _ended(lens: Lens, width: int, most: int) -> list[Row]:
    diagnosis = lens.state.diagnosis
    ended = () if diagnosis is None else diagnosis.ended
    if most < 2 or not ended:
        return []
    rows = [row([(" ended", "dim")], width)]
    for finding in ended[: most - 1]:
        ended_s = finding.updated_s if finding.ended_s is None else finding.ended_s
        ago = words.age(max(0.0, lens.state.now_s - ended_s))
        lasted = words.span(max(0.0, ended_s - finding.started_s))
        end = f"{ago} ago, lasted {lasted}"
        text = subject_words(lens, finding) + safe(finding.text.title, lens.glyphs)
        text = shorten(text, max(1, width - 4 - len(end)), lens.glyphs)
        rows.append(both_ends([("   ", ""), (text, "dim")], [(end, "dim")], width))
    return rows


def _without(lens: Lens, width: int, height: int) -> list[Row]:
    """No finding: the verdict's own next step where it has one, and what has ended."""
    diagnosis, glyphs = lens.state.diagnosis, lens.glyphs
    action = safe(diagnosis.verdict.action, glyphs) if diagnosis is not None else ""
    rows: list[Row] = []
    if height >= HEADING_FROM:
        focused = lens.options.focus == "findings"
        rows.append(heading("findings 0", width, glyphs, focused, _ignored(lens.state)))
    stated = diagnosis is not None and diagnosis.verdict.layer is None and width >= TITLE_AND_STEP_FROM
    if action and not stated:
        rows.append(row([("do  ", "label"), (shorten(action, max(1, width - 4), glyphs), "accent")], width))
    else:
        text = "no findings" if diagnosis is not None else "no findings yet"
        rows.append(row([(f" {text}", "dim")], width))
    rows += _ended(lens, width, height - len(rows))
    return (rows + [blank(width)] * height)[:height]


def _ignored(state: State) -> str:
    return f"{len(state.ignored)} ignored" if state.ignored else ""
