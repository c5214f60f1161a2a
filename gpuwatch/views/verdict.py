"""The verdict: which layer, how much, why, and what to do next. With one row there is its headline."""

from collections.abc import Sequence

from gpuwatch.model import Severity, Verdict
from gpuwatch.state import State
from gpuwatch.views.glyphs import Glyphs
from gpuwatch.views.ledger_bar import bar_row, bar_rows
from gpuwatch.views.lens import Lens
from gpuwatch.views.options import Options
from gpuwatch.views.rows import Row, Span, blank, row, safe, shorten, width_of, wrap

ROLE = {Severity.CRITICAL: "bad", Severity.WARNING: "warn", Severity.NOTICE: "warn", Severity.STATE: "value"}
_REASON_LABEL = 10


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
    roomy = height >= 7
    bars = bar_rows(lens, width) if roomy else [bar_row(lens, width)]
    text_rows = height - len(bars)
    rows = _said(found, width, 2 if roomy and width < 100 else 1, lens.glyphs)
    left = text_rows - len(rows)
    details = _detail(found, width, min(left, 3 if roomy else 1), lens.glyphs)
    rows += details
    left -= len(details)
    why = reasons(found, width, left, lens.glyphs)
    return (rows + bars + why + [blank(width)] * height)[:height]


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
    if room < min(len(text), 24):  # the figure matters more than how sure it is
        lead = [*lead[:1], (" ", "")] if lead else []
        room = width - width_of(lead)
    return row([*lead, (shorten(text, max(1, room), glyphs), "title")], width)


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
    lines = wrap(safe(found.detail, glyphs), width - 1, most, glyphs)
    return [row([(" ", ""), (line, "value")], width) for line in lines]


def reasons(found: Verdict, width: int, most: int, glyphs: Glyphs) -> list[Row]:
    """because, wrong if, settle, do, then: each label once, as many rows as fit, one of each first."""
    parts = [
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
    return labelled(parts, width, most, glyphs)


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
