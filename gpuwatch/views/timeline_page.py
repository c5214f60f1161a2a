"""The findings of this session in the order of time: when each began and ended, and how bad it was."""

from gpuwatch.language import say
from gpuwatch.model import Finding, Kind
from gpuwatch.state import State
from gpuwatch.views import format as words
from gpuwatch.views.findings import ROLE, subject_words
from gpuwatch.views.lens import Lens
from gpuwatch.views.options import Options
from gpuwatch.views.rows import Row, blank, both_ends, row, safe, shorten, width_of

_DAY_S = 86400


def timeline_page(state: State, options: Options, width: int, height: int) -> list[Row]:
    """All findings, newest first; those still on stand above. Times of day are the machine's own."""
    lens = Lens(state, options)
    diagnosis = state.diagnosis
    active = sorted(lens.findings, key=lambda finding: -finding.started_s)
    ended = () if diagnosis is None else diagnosis.ended
    rows = [row([(say("findings over time"), "title"), (f"  {len(active) + len(ended)}", "dim")], width)]
    if not active and not ended:
        return [*rows, blank(width), row([(say("no finding yet"), "dim")], width)]
    for finding in (*active, *ended):
        rows += _entry(lens, finding, width)
    return rows


def _entry(lens: Lens, finding: Finding, width: int) -> list[Row]:
    now_s = lens.state.now_s
    end_s = finding.ended_s
    span = words.span(max(0.0, (now_s if end_s is None else end_s) - finding.started_s))
    until = say("on") if end_s is None else time_of_day(lens.state, end_s)
    start = [
        (f"{time_of_day(lens.state, finding.started_s)} ", "value"),
        (f"{lens.glyphs.severity[finding.severity]} ", ROLE[finding.severity] if end_s is None else "dim"),
    ]
    end = f" {until}, {span}"
    text = subject_words(lens, finding) + safe(finding.text.title, lens.glyphs)
    room = max(1, width - width_of(start) - len(end))
    title = (shorten(text, room, lens.glyphs), "title" if end_s is None else "value")
    worst = _worst(finding)
    below = [row([("         ", ""), (shorten(worst, max(1, width - 9), lens.glyphs), "dim")], width)]
    return [both_ends([*start, title], [(end, "dim")], width), *(below if worst else [])]


def _worst(finding: Finding) -> str:
    parts = [f"{finding.severity}, {finding.confidence}, {finding.rule}"]
    if finding.kind is Kind.LOSS and finding.worst_share_ratio is not None:
        parts.append(say("at worst {share} of the time", share=words.percent(finding.worst_share_ratio)))
    return "; ".join(parts)


def time_of_day(state: State, monotonic_s: float) -> str:
    """ "14:02:33" on the clock of the machine that was watched; "--:--:--" before the first sample."""
    sample = state.sample
    if sample is None:
        return "--:--:--"
    offset_s = state.machine.utc_offset_s if state.machine is not None else 0.0
    second = int(sample.wall_s - sample.monotonic_s + monotonic_s + offset_s) % _DAY_S
    return f"{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}"
