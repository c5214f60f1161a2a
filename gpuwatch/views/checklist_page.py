"""The essay's eight rows in the essay's own numbering, answered from what was measured here."""

from dataclasses import dataclass

from gpuwatch.language import mark, say
from gpuwatch.model import CheckResult, CheckState, JobState, Ledger, LedgerSpans, Shape, ShapeKind
from gpuwatch.state import State
from gpuwatch.views import format as words
from gpuwatch.views.checks import MARK_ROLE, evidence, results_of
from gpuwatch.views.ledger_bar import bar, legend, mean_parts
from gpuwatch.views.lens import Lens
from gpuwatch.views.options import Options
from gpuwatch.views.rows import Row, blank, row, safe, shorten, wrap

_INDENT = 3
_TENSOR = "tensor-cores-idle"


@dataclass(frozen=True, slots=True)
class _Question:
    """One row: its number in the essay ("" for what stands in the text only), and our check."""

    number: str
    text: str
    check: str
    rule: str = ""  # a single rule stands for the row where it has something to say


#: Row 1 is the ledger itself.
_FIRST = mark("Is the GPU kept busy?")
_QUESTIONS = (
    _Question("2", mark("Are the tensor cores in use?"), "cod", _TENSOR),
    _Question("3", mark("Does the data loader keep up?"), "ldr"),
    _Question("4", mark("Is the disk or the network the limit?"), "dsk"),
    _Question("5", mark("Has the PCIe link its lanes and its speed?"), "lnk"),
    _Question("6", mark("Does heat or a power limit hold the clock?"), "pow"),
    _Question("7", mark("Do driver, CUDA and framework fit?"), "env"),
    _Question("8", mark("Do several GPUs wait for each other?"), "mgp"),
    _Question("", mark("Are the CPU cores free, and the card not shared?"), "cpu"),
    _Question("", mark("Does the training step itself leave time?"), "cod"),
)


def checklist_page(state: State, options: Options, width: int, height: int) -> list[Row]:
    """All rows of the page, which may be more than `height`."""
    lens = Lens(state, options)
    rows = [row([(say("the checklist, in the order of the essay"), "title")], width), blank(width)]
    rows += _first(lens, width)
    results = {result.check.key: result for result in results_of(state)}
    for question in _QUESTIONS:
        rows += _row(lens, question, results[question.check], width)
    return rows


def _first(lens: Lens, width: int) -> list[Row]:
    """Row 1: how busy the GPUs are, over the last minute, the last 15 minutes and the whole run."""
    rows = [row([("1  ", "accent"), (say(_FIRST), "title")], width)]
    spans = _spans(lens)
    if not spans:
        return [*rows, row([("   ", ""), (say("not measured yet"), "dim")], width)]
    for name, ledgers in (
        (say("last minute"), [one.minute for one in spans]),
        (say("last 15 min"), [one.quarter for one in spans]),
        (say("whole run"), [one.run for one in spans]),
    ):
        rows += _ledger(lens, name, ledgers, width)
    shape = _shape_words(lens)
    return [*rows, *(row([("   ", ""), (line, "dim")], width) for line in shape), blank(width)]


def _spans(lens: Lens) -> list[LedgerSpans]:
    """Those of the GPUs with a job, else of all."""
    diagnosis = lens.state.diagnosis
    if diagnosis is None:
        return []
    at_work = [
        diagnosis.spans[uuid]
        for uuid, job in diagnosis.jobs.items()
        if job.state is not JobState.NO_JOB and uuid in diagnosis.spans
    ]
    return at_work or [diagnosis.spans[uuid] for uuid in diagnosis.ledgers if uuid in diagnosis.spans]


def _ledger(lens: Lens, name: str, ledgers: list[Ledger], width: int) -> list[Row]:
    parts = mean_parts(ledgers)
    seen_s = max(ledger.window_s for ledger in ledgers)
    label = f"   {name:<12}{words.span(seen_s):>6}  "
    room = max(1, width - len(label))
    return [
        row([(label, "label"), *bar(parts, room, lens)], width),
        row([(" " * len(label), ""), *legend(parts, room, lens)], width),
    ]


def _shape_words(lens: Lens) -> list[str]:
    """The sawtooth as measured, for each GPU that shows one."""
    diagnosis = lens.state.diagnosis
    found = []
    for uuid, shape in (diagnosis.shapes if diagnosis is not None else {}).items():
        text = _sawtooth(shape)
        index = lens.index_of(uuid)
        if text and index is not None:
            found.append(f"GPU {index}: {text}" if len(lens.gpus) > 1 else text)
    return found


def _sawtooth(shape: Shape) -> str:
    if shape.kind is not ShapeKind.PULSED or shape.stall_ratio is None:
        return ""
    parts = [
        say(
            "saw-tooth between {low} and {high}",
            low=words.percent(shape.low_ratio),
            high=words.percent(shape.high_ratio),
        )
    ]
    if shape.period_s is not None:
        parts.append(say("about every {period:.1f} s", period=shape.period_s))
    share = words.ratio_range(shape.stall_low_ratio, shape.stall_ratio, shape.stall_high_ratio)
    parts.append(say("{share} of the time lost", share=share))
    if shape.resolution_s is not None:
        parts.append(say("seen every {step:.2f} s", step=shape.resolution_s))
    return ", ".join(parts)


def _row(lens: Lens, question: _Question, result: CheckResult, width: int) -> list[Row]:
    state, text = _answer(lens, question, result)
    glyphs = lens.glyphs
    head = row(
        [
            (f"{question.number:<2} ", "accent"),
            (f"{glyphs.check[state]} ", MARK_ROLE[state]),
            (shorten(say(question.text), max(1, width - 5), glyphs), "title"),
        ],
        width,
    )
    room = max(1, width - _INDENT - 2)
    return [head, *(row([("     ", ""), (line, "dim")], width) for line in wrap(text, room, 3, glyphs))]


def _answer(lens: Lens, question: _Question, result: CheckResult) -> tuple[CheckState, str]:
    """The single rule's word where the row stands on one, else the check's."""
    diagnosis = lens.state.diagnosis
    if question.rule and diagnosis is not None:
        for finding in lens.findings:
            if finding.rule == question.rule:
                return CheckState.POSSIBLE, safe(finding.text.title, lens.glyphs)
        for missing in diagnosis.not_checked:
            if missing.rule == question.rule:
                return CheckState.UNMEASURABLE, safe(missing.reason, lens.glyphs)
    return result.state, evidence(result, lens)
