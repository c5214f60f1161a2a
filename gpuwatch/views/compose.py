"""All panels by name, and the whole screen from them: what tests, snapshots and screenshots draw."""

from collections.abc import Callable, Mapping, Sequence

from gpuwatch.model import ProcessRole
from gpuwatch.state import State
from gpuwatch.views.checks import checks
from gpuwatch.views.findings import findings
from gpuwatch.views.foot import foot
from gpuwatch.views.gpus import gpus
from gpuwatch.views.head import head
from gpuwatch.views.host import host
from gpuwatch.views.layout import Box, Content, layout
from gpuwatch.views.notices import banner, banner_lines, small
from gpuwatch.views.options import Options
from gpuwatch.views.procs import procs
from gpuwatch.views.rows import Row, Span, row
from gpuwatch.views.verdict import rows_wanted, verdict

PanelView = Callable[[State, Options, int, int], list[Row]]

#: `foot` is not among them: it needs the keys, which the screen has.
PANELS: Mapping[str, PanelView] = {
    "head": head,
    "banner": banner,
    "verdict": verdict,
    "checks": checks,
    "gpus": gpus,
    "host": host,
    "procs": procs,
    "findings": findings,
    "small": small,
}


def content_of(state: State, options: Options) -> Content:
    """How much there is to lay out."""
    sample, diagnosis = state.sample, state.diagnosis
    found = () if diagnosis is None else diagnosis.findings
    readings = () if sample is None else sample.gpus
    listed = () if sample is None or sample.processes is None else sample.processes
    hidden = (ProcessRole.WORKER, ProcessRole.CHILD)
    return Content(
        gpus=len(readings),
        mig=sum(len(reading.mig) for reading in readings),
        banners=len(banner_lines(state, options)),
        findings=sum(not finding.banner for finding in found),
        processes=sum(process.role not in hidden for process in listed)
        + (sample is not None and sample.hidden_processes > 0),
        verdict=1 if diagnosis is None else rows_wanted(diagnosis),
        has_host=sample is None or sample.host is not None,
        compact=options.density == "compact",
        full=options.density == "full",
    )


def compose(
    state: State,
    options: Options,
    width: int,
    height: int,
    keys: Sequence[tuple[str, str]] = (),
    message: str = "",
) -> list[Row]:
    """The screen as `height` rows of `width` cells."""
    boxes = layout(width, height, content_of(state, options))
    lines: list[list[tuple[int, int, Row]]] = [[] for _ in range(height)]
    for box in boxes:
        for y, drawn in enumerate(_draw(box, state, options, keys, message)):
            lines[box.y + y].append((box.x, box.width, drawn))
    return [_line(pieces, width) for pieces in lines]


def _draw(
    box: Box, state: State, options: Options, keys: Sequence[tuple[str, str]], message: str
) -> list[Row]:
    if box.name == "foot":
        return foot(keys, message, box.width, box.height, ascii_only=options.ascii_only)
    return PANELS[box.name](state, options, box.width, box.height)


def _line(pieces: Sequence[tuple[int, int, Row]], width: int) -> Row:
    spans: list[Span] = []
    x = 0
    for start, size, drawn in sorted(pieces, key=lambda piece: piece[0]):
        if start > x:
            spans.append((" " * (start - x), ""))
        spans.extend(drawn)
        x = start + size
    return row(spans, width)
