"""The ledger as a bar with its legend: same order, same colours, parts that sum to the whole."""

from collections.abc import Sequence
from dataclasses import dataclass

from gpuwatch.model import JobState, Ledger, LedgerKey, LedgerPart, Verdict
from gpuwatch.views.lens import Lens
from gpuwatch.views.rows import Row, Span, row, safe, width_of
from gpuwatch.views.spark import share_cells, whole_percents

#: From left to right: work first, then what it lost to, then what nobody knows.
ORDER = (
    LedgerKey.BUSY,
    LedgerKey.SLOWED,
    LedgerKey.WAITING,
    LedgerKey.WAITING_PEERS,
    LedgerKey.FOREIGN,
    LedgerKey.PAUSE,
    LedgerKey.IDLE,
    LedgerKey.UNKNOWN,
)
ROLES = {
    LedgerKey.BUSY: "bar_busy",
    LedgerKey.SLOWED: "bar_slow",
    LedgerKey.WAITING: "bar_wait",
    LedgerKey.WAITING_PEERS: "bar_peers",
    LedgerKey.FOREIGN: "bar_foreign",
    LedgerKey.PAUSE: "bar_pause",
    LedgerKey.IDLE: "bar_idle",
    LedgerKey.UNKNOWN: "bar_unknown",
}
_SHORT = {
    LedgerKey.BUSY: "busy",
    LedgerKey.SLOWED: "slow",
    LedgerKey.WAITING: "wait",
    LedgerKey.WAITING_PEERS: "peers",
    LedgerKey.FOREIGN: "others",
    LedgerKey.PAUSE: "pause",
    LedgerKey.IDLE: "idle",
    LedgerKey.UNKNOWN: "unknown",
}
_WORDS = {
    LedgerKey.BUSY: "busy",
    LedgerKey.SLOWED: "slowed",
    LedgerKey.WAITING: "waiting",
    LedgerKey.WAITING_PEERS: "for peers",
    LedgerKey.FOREIGN: "others",
    LedgerKey.PAUSE: "pause",
    LedgerKey.IDLE: "idle",
    LedgerKey.UNKNOWN: "unknown",
}


@dataclass(frozen=True, slots=True)
class Booked:
    """The mean of some GPUs' ledgers; `who` names them ("GPU 3", "8 GPUs")."""

    parts: tuple[LedgerPart, ...]
    window_s: float
    who: str


def booked(lens: Lens) -> Booked | None:
    """The ledger the verdict speaks of: its GPUs', else that of all GPUs with a job, else of all."""
    diagnosis = lens.state.diagnosis
    if diagnosis is None or not diagnosis.ledgers:
        return None
    wanted = _gpus_of(lens, diagnosis.verdict)
    ledgers = [ledger for uuid, ledger in diagnosis.ledgers.items() if uuid in wanted]
    if not ledgers:
        at_work = {uuid for uuid, job in diagnosis.jobs.items() if job.state is not JobState.NO_JOB}
        ledgers = [ledger for uuid, ledger in diagnosis.ledgers.items() if uuid in at_work]
    ledgers = ledgers or list(diagnosis.ledgers.values())
    return Booked(mean_parts(ledgers), max(one.window_s for one in ledgers), _who(lens, ledgers))


def _gpus_of(lens: Lens, verdict: Verdict) -> set[str]:
    for finding in lens.findings:
        if finding.rule == verdict.rule and finding.subject == verdict.subject:
            return set(finding.gpus)
    kind, _, name = (verdict.subject or "").partition(":")
    return {name} if kind == "gpu" else set()


def _who(lens: Lens, ledgers: Sequence[Ledger]) -> str:
    if len(ledgers) > 1:
        return f"{len(ledgers)} GPUs"
    index = lens.index_of(ledgers[0].gpu)
    return f"GPU {index}" if index is not None and len(lens.gpus) > 1 else ""


def mean_parts(ledgers: Sequence[Ledger]) -> tuple[LedgerPart, ...]:
    """The mean of ledgers, part by part, in the order of the bar. Sums to 1 as each of them does."""
    found: dict[tuple[LedgerKey, str], LedgerPart] = {}
    sums: dict[tuple[LedgerKey, str], float] = {}
    for ledger in ledgers:
        for part in ledger.parts:
            key = (part.key, part.label if part.key is LedgerKey.WAITING else "")
            found.setdefault(key, part)
            sums[key] = sums.get(key, 0.0) + part.ratio / len(ledgers)
    parts = [
        LedgerPart(part.key, sums[key], part.layer, part.cause, part.label)
        for key, part in found.items()
        if sums[key] > 0
    ]
    return tuple(sorted(parts, key=lambda part: (ORDER.index(part.key), -part.ratio)))


def bar(parts: Sequence[LedgerPart], width: int, lens: Lens) -> list[Span]:
    """The parts as cells, together exactly `width`."""
    cells = share_cells([part.ratio for part in parts], width)
    glyphs = lens.glyphs.ledger
    spans = [
        (glyphs[part.key] * count, ROLES[part.key]) for part, count in zip(parts, cells, strict=True) if count
    ]
    return spans or [(lens.glyphs.gap * width, "dim")]


def legend(parts: Sequence[LedgerPart], width: int, lens: Lens) -> list[Span]:
    """ "38 busy 58 waiting (data loader) 4 pause" in at most `width` cells.

    Names get shorter before anything is left out, then the smallest parts go first.
    """
    figures = whole_percents([part.ratio for part in parts])
    labelled = [(part, figure) for part, figure in zip(parts, figures, strict=True) if figure]
    spans = _joined([_with_label(lens, part, figure) for part, figure in labelled])
    if width_of(spans) <= width:
        return spans
    sums: dict[LedgerKey, int] = {}
    for part, figure in labelled:
        sums[part.key] = sums.get(part.key, 0) + figure
    spans = _joined([_with_word(lens, key, figure) for key, figure in sums.items()])
    if width_of(spans) <= width:
        return spans
    by_size = sorted(sums, key=lambda key: -sums[key])
    for count in range(len(by_size), 0, -1):
        spans = _joined([_short(key, sums[key]) for key in sums if key in by_size[:count]])
        if width_of(spans) <= width:
            return spans
    return []


def _joined(entries: Sequence[list[Span]]) -> list[Span]:
    spans: list[Span] = []
    for entry in entries:
        if spans:
            spans.append((" ", "") if len(entry) == 1 else ("  ", ""))
        spans += entry
    return spans


def _with_label(lens: Lens, part: LedgerPart, figure: int) -> list[Span]:
    name = _WORDS[part.key]
    if part.label and part.label not in (name, str(part.key)):
        name = f"{name} ({safe(part.label, lens.glyphs)})"
    return [(lens.glyphs.ledger[part.key], ROLES[part.key]), (f" {figure} {name}", "label")]


def _with_word(lens: Lens, key: LedgerKey, figure: int) -> list[Span]:
    return [(lens.glyphs.ledger[key], ROLES[key]), (f" {figure} {_WORDS[key]}", "label")]


def _short(key: LedgerKey, figure: int) -> list[Span]:
    return [(f"{figure} {_SHORT[key]}", ROLES[key])]


def bar_row(found: Booked, lens: Lens, width: int) -> Row:
    """Bar and legend in one row, at least half of it the bar."""
    words = legend(found.parts, max(0, width // 2 - 1), lens)
    if words:
        words = [(" ", ""), *words]
    return row([*bar(found.parts, width - width_of(words), lens), *words], width)


def bar_rows(found: Booked, lens: Lens, width: int) -> list[Row]:
    """The bar over the whole width, under it the legend and, at its end, what it is of."""
    window = f"% of {found.window_s:.0f} s"
    words = legend(found.parts, width, lens)
    tail: list[Span] = []
    for text in (f"{found.who}, {window}" if found.who else window, found.who, window):
        gap = width - width_of(words) - len(text)
        if text and gap >= 2:
            tail = [(" " * gap, ""), (text, "dim")]
            break
    return [row(bar(found.parts, width, lens), width), row([*words, *tail], width)]
