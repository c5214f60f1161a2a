"""The verdict: which layer, how much, why, and what to do next. With one row there is its headline."""

import re
from collections.abc import Sequence

from gpuwatch.model import Diagnosis, Severity, Verdict
from gpuwatch.state import State
from gpuwatch.views.glyphs import Glyphs, glyphs_for
from gpuwatch.views.ledger_bar import bar_row, bar_rows, booked
from gpuwatch.views.lens import Lens
from gpuwatch.views.options import Options
from gpuwatch.views.rows import Row, Span, blank, cells, row, safe, shorten, width_of, wrap

ROLE = {Severity.CRITICAL: "bad", Severity.WARNING: "warn", Severity.NOTICE: "warn", Severity.STATE: "value"}
_REASON_LABEL = 10
#: From this many rows on texts may take two rows and the ledger's legend has one of its own.
ROOMY_FROM = 8
#: Where not all reasons fit, these go first to last.
_BY_IMPORTANCE = ("because", "do", "wrong if", "settle")
#: What a headline can do without on a narrow screen, in this order.
_THE_GPUS = re.compile(r"^GPUs? (?!\d)")
_SPARE_WORDS = (" of the time", " (preliminary)", "the ", " of its speed", " of their speed")


def verdict(state: State, options: Options, width: int, height: int) -> list[Row]:
    """The panel `verdict`. Rows in the order of importance: headline, bar, detail, then why."""
    if height < 1 or width < 1:
        return []
    lens = Lens(state, options)
    if state.diagnosis is None:
        return _waiting(lens, width, height)
    found = state.diagnosis.verdict
    if height == 1:
        return [_headline(found, width, lens.glyphs)]
    roomy = height >= ROOMY_FROM
    ledger = booked(lens)
    bars: list[Row] = []
    if ledger is not None:
        bars = bar_rows(ledger, lens, width) if roomy else [bar_row(ledger, lens, width)]
    text_rows = height - len(bars)
    rows = _said(found, width, 2 if roomy and width < 100 else 1, lens.glyphs)
    left = text_rows - len(rows)
    most = 3 if roomy or ledger is None else 1
    # Without a ledger it is a state, whose next step comes before the rest of the explanation.
    step = 1 if ledger is None and found.action and left > 1 else 0
    details = _detail(found, width, min(left - step, most), lens.glyphs)
    rows += details
    left -= len(details)
    why = reasons(found, width, left, lens.glyphs)
    return (rows + bars + why + [blank(width)] * height)[:height]


def rows_wanted(diagnosis: Diagnosis) -> int:
    """Rows with one for each text, and two for the ledger."""
    found = diagnosis.verdict
    return (
        1
        + bool(found.detail)
        + (2 if diagnosis.ledgers else 0)
        + len(reason_texts(found, glyphs_for(False)))
        # A state explains itself in its detail, which may take another row.
        + (bool(found.detail) and not diagnosis.ledgers)
    )


def _waiting(lens: Lens, width: int, height: int) -> list[Row]:
    sample = lens.state.sample
    text = f"reading GPUs {lens.glyphs.ellipsis}"
    if sample is not None and sample.driver.message:
        text = safe(sample.driver.message, lens.glyphs)
    lines = wrap(text, width, height, lens.glyphs)
    return [row([(line, "dim")], width) for line in lines]


def layer_words(found: Verdict) -> str:
    """ "DATA", "DATA + HARDWARE" where two are level, "" for a state."""
    if found.layer is None:
        return ""
    names = [str(found.layer).upper()]
    if found.second_layer is not None and found.second_layer is not found.layer:
        names.append(str(found.second_layer).upper())
    return " + ".join(names)


def _lead(found: Verdict) -> list[Span]:
    """What stands before the headline: the layer and how sure it is."""
    word = layer_words(found)
    if not word:
        return []
    spans: list[Span] = [(word, ROLE[found.severity]), ("  ", "")]
    if found.confidence is not None:
        spans += [(str(found.confidence), "dim"), ("  ", "")]
    return spans


def _headline(found: Verdict, width: int, glyphs: Glyphs) -> Row:
    lead = _lead(found)
    text = safe(found.headline, glyphs)
    if found.preliminary:
        text += " (preliminary)"
    room = width - width_of(lead)
    text = tightened(text, room)
    if lead and cells(text) > room:  # the figure matters more than how sure it is
        lead = [lead[0], (" ", "")]
        room = width - width_of(lead)
        text = _THE_GPUS.sub("", text) if cells(text) > room else text
    return row([*lead, (shorten(text, max(1, room), glyphs), "title")], width)


def tightened(text: str, width: int) -> str:
    """`text` without words that can be spared, as far as it does not fit."""
    for spare in _SPARE_WORDS:
        if cells(text) > width:
            text = text.replace(spare, "", 1)
    return text


def _said(found: Verdict, width: int, most: int, glyphs: Glyphs) -> list[Row]:
    """The headline, in two rows where one would cut it."""
    lead = _lead(found)
    text = safe(found.headline, glyphs) + (" (preliminary)" if found.preliminary else "")
    if most < 2 or width_of(lead) + len(text) <= width:
        return [_headline(found, width, glyphs)]
    first = wrap(text, max(1, width - width_of(lead)), 2, glyphs)
    rest = text[len(first[0]) :].strip()
    rows = [row([*lead, (first[0], "title")], width)]
    return rows + [row([(line, "title")], width) for line in wrap(rest, width, 1, glyphs)]


def _detail(found: Verdict, width: int, most: int, glyphs: Glyphs) -> list[Row]:
    text = safe(found.detail, glyphs)
    head, _, tail = text.rpartition("; ")
    if most == 1 and cells(text) > width - 1 and head:
        # What it is worth stands last and should not be what is cut off.
        tail = "; " + tail.partition(", ")[0]
        if cells(tail) <= (width - 1) // 2:
            text = shorten(head, width - 1 - cells(tail), glyphs) + tail
    lines = wrap(text, width - 1, most, glyphs)
    return [row([(" ", ""), (line, "value")], width) for line in lines]


def reasons(found: Verdict, width: int, most: int, glyphs: Glyphs) -> list[Row]:
    """because, wrong if, settle, do, then: each label once, the most telling where not all fit."""
    parts = reason_texts(found, glyphs)
    first = [part for part in parts if part[0] != "then"]
    kept = sorted(first, key=lambda part: _BY_IMPORTANCE.index(part[0]))[: max(0, most)]
    rows = labelled([part for part in first if part in kept], width, most, glyphs)
    # What comes after that is told once these have been told whole.
    return rows + labelled(parts[len(first) :], width, most - len(rows), glyphs)


def reason_texts(found: Verdict, glyphs: Glyphs) -> list[tuple[str, str]]:
    """(label, text) of what the verdict has to say for itself."""
    return [
        (label, safe(text, glyphs))
        for label, text in (
            ("because", "; ".join(found.because)),
            ("wrong if", found.wrong_if),
            ("settle", found.settle),
            ("do", found.action),
            ("then", found.after_that),
        )
        if text
    ]


def labelled(parts: Sequence[tuple[str, str]], width: int, most: int, glyphs: Glyphs) -> list[Row]:
    """Texts with a label before each; rows beyond one for each go to the first ones that need them."""
    if not parts or most < 1:
        return []
    parts = parts[:most]
    room = max(1, width - _REASON_LABEL - 1)
    spare = most - len(parts)
    rows: list[Row] = []
    for label, text in parts:
        lines = wrap(text, room, 1 + spare, glyphs)
        spare -= len(lines) - 1
        role = "accent" if label == "do" else "value"
        for number, line in enumerate(lines):
            name = f" {label}" if number == 0 else ""
            rows.append(row([(name.ljust(_REASON_LABEL + 1), "label"), (line, role)], width))
    return rows
