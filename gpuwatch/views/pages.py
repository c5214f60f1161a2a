"""The pages over the live screen about one finding and one check. They may be longer than the screen."""

from gpuwatch.metrics import METRICS, metric
from gpuwatch.model import CheckState, Evidence, Finding, Kind
from gpuwatch.state import State
from gpuwatch.views import format as words
from gpuwatch.views.chart import chart, time_axis
from gpuwatch.views.checks import MARK_ROLE, evidence, results_of
from gpuwatch.views.findings import ROLE, finding_line, subject_words
from gpuwatch.views.lens import Lens
from gpuwatch.views.options import Options, selected_index
from gpuwatch.views.rows import Row, blank, heading, row, safe, shorten, wrap
from gpuwatch.views.verdict import labelled

MOST_TEXT_ROWS = 40
CHART_ROWS = 6
#: What each check looks at, by its key.
ANSWERS = {
    "pow": "whether heat, a power limit or the hardware itself holds the clock down, and for how long",
    "lnk": "whether the PCIe link has the generation and the lanes that card and slot can do",
    "env": "whether driver, CUDA and framework of the running process fit the card and one another",
    "cpu": "how many cores the job may use, whether they are contended, and who else uses the card",
    "ldr": "whether batches are ready in time: workers, main process, pinned memory, prefetching",
    "dsk": "whether the data comes from the disk or the network too slowly",
    "cod": "what the training step itself leaves unused: tensor cores, precision, batch, launches, pauses",
    "mgp": "whether several GPUs wait for each other",
}


def finding_page(state: State, options: Options, width: int, height: int) -> list[Row]:
    """The selected finding with everything known about it."""
    lens = Lens(state, options)
    found = lens.findings
    if not found:
        return [row([("no finding is active", "dim")], width)]
    finding = found[selected_index(found, options)]
    glyphs = lens.glyphs
    title = subject_words(lens, finding) + safe(finding.text.title, glyphs)
    rows = [
        row([(f"{glyphs.severity[finding.severity]} ", ROLE[finding.severity]), (line, "title")], width)
        if number == 0
        else row([("  ", ""), (line, "title")], width)
        for number, line in enumerate(wrap(title, max(1, width - 2), 3, glyphs))
    ]
    rows += [row([(line, "dim")], width) for line in wrap(_facts(lens, finding), width, 3, glyphs)]
    rows.append(blank(width))
    rows += labelled(_texts(lens, finding), width, MOST_TEXT_ROWS, glyphs)
    rows += _evidence_rows(lens, finding, width)
    rows += _chart(lens, finding, width, min(CHART_ROWS, max(3, height // 5)))
    return rows


def _facts(lens: Lens, finding: Finding) -> str:
    now_s = lens.state.now_s
    parts = [
        str(finding.layer),
        str(finding.severity),
        str(finding.confidence),
        f"rule {finding.rule}",
        f"for {words.age(max(0.0, now_s - finding.started_s))}",
    ]
    if finding.kind is Kind.LOSS:
        share = words.ratio_range(finding.share_low_ratio, finding.share_ratio, finding.share_high_ratio)
        if share:
            parts.append(f"costs {share} of the time")
        if finding.worst_share_ratio is not None:
            parts.append(f"at worst {words.percent(finding.worst_share_ratio)}")
    if finding.speedup is not None:
        gain = f"worth about {finding.speedup:.1f}x"
        if finding.speedup_max is not None:
            gain += f", at most {finding.speedup_max:.1f}x"
        parts.append(gain)
    if finding.preliminary:
        parts.append("preliminary")
    return safe("; ".join(parts), lens.glyphs)


def _texts(lens: Lens, finding: Finding) -> list[tuple[str, str]]:
    text, glyphs = finding.text, lens.glyphs
    parts = [("because" if number == 0 else "", line) for number, line in enumerate(text.because)]
    parts += [("wrong if", text.wrong_if), ("settle", text.settle)]
    parts += [("do" if number == 0 else "", line) for number, line in enumerate(text.advice)]
    return [(label, safe(line, glyphs)) for label, line in parts if line]


def _evidence_rows(lens: Lens, finding: Finding, width: int) -> list[Row]:
    """What was measured, what it was compared with, over how long."""
    if not finding.evidence:
        return []
    rows = [blank(width), heading("evidence", width, lens.glyphs)]
    name_width = min(max(len(one.label) for one in finding.evidence), max(8, width // 3))
    for one in finding.evidence:
        label = shorten(safe(one.label, lens.glyphs), name_width, lens.glyphs)
        spans = [
            (f" {label:<{name_width}}  ", "label"),
            (f"{safe(words.quantity(one.value, one.unit), lens.glyphs):>12}", "value"),
        ]
        note = ", ".join(
            text
            for text in (
                safe(one.threshold, lens.glyphs),
                "" if one.window_s is None else f"over {words.span(one.window_s)}",
            )
            if text
        )
        rows.append(row([*spans, (f"  {note}" if note else "", "dim")], width))
    return rows


def _chart(lens: Lens, finding: Finding, width: int, height: int) -> list[Row]:
    """The first series the evidence names, as it went."""
    for one in finding.evidence:
        place = _series_of(one, finding)
        if place is None:
            continue
        entity, key = place
        found = metric(entity.partition(":")[0], key)
        rows = [blank(width)]
        index = lens.index_of(entity.partition(":")[2])
        where = f"GPU {index} " if index is not None and len(lens.gpus) > 1 else ""
        rows += chart(lens, entity, found, width, height, title=f"{where}{found.label}")
        return [*rows, time_axis(lens, width)]
    return []


_KEYS = {kind: frozenset(entry.key for entry in entries) for kind, entries in METRICS.items()}


def _series_of(one: Evidence, finding: Finding) -> tuple[str, str] | None:
    if not one.metric:
        return None
    if one.metric.startswith("host:"):
        key = one.metric.removeprefix("host:")
        return ("host:", key) if key in _KEYS["host"] else None
    if finding.gpus and one.metric in _KEYS["gpu"]:
        return f"gpu:{finding.gpus[0]}", one.metric
    return ("host:", one.metric) if one.metric in _KEYS["host"] else None


def check_page(state: State, options: Options, number: int, width: int, height: int) -> list[Row]:
    """Check `number` (1 to 8): what it looks at, what it saw, and what could not be looked at."""
    lens = Lens(state, options)
    glyphs = lens.glyphs
    result = results_of(state)[number - 1]
    rows = [
        row(
            [(f"{number}  ", "dim"), (result.check.label, "title"), (f"  {result.check.layer}", "dim")], width
        )
    ]
    answer = f"looks at {ANSWERS[result.check.key]}"
    rows += [row([(line, "dim")], width) for line in wrap(answer, width, 3, glyphs)]
    rows.append(blank(width))
    mark = glyphs.check[result.state]
    text = evidence(result, lens) or _STATE_WORDS[result.state]
    lines = wrap(f"{_STATE_WORDS[result.state]}: {text}", max(1, width - 2), 4, glyphs)
    for place, line in enumerate(lines):
        rows.append(
            row([(f"{mark} " if place == 0 else "  ", MARK_ROLE[result.state]), (line, "value")], width)
        )
    found = [finding for finding in lens.findings if finding.check == result.check.key]
    if found:
        rows += [blank(width), heading("findings", width, glyphs)]
        rows += [finding_line(lens, finding, width, False, "") for finding in found]
    diagnosis = state.diagnosis
    missing = [one for one in (diagnosis.not_checked if diagnosis else ()) if one.check == result.check.key]
    if missing:
        rows += [blank(width), heading("not checked", width, glyphs)]
        for one in missing:
            index = lens.index_of(one.subject.partition(":")[2]) if one.subject else None
            where = f" (GPU {index})" if index is not None else ""
            note = shorten(safe(f"{one.rule}{where}: {one.reason}", glyphs), max(1, width - 1), glyphs)
            rows.append(row([(" ", ""), (note, "dim")], width))
    return rows


_STATE_WORDS = {
    CheckState.FINE: "looked, and fine",
    CheckState.NAMED: "a cause is named",
    CheckState.POSSIBLE: "possible, or the next lever",
    CheckState.WAITING: "not enough data yet",
    CheckState.UNMEASURABLE: "cannot be measured here",
}
