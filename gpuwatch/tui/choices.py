"""What a key does to the choices: pure functions from options to options.

Nothing here knows a screen; what is on it (how many rows a list has) comes in as a number.
"""

from collections.abc import Sequence
from dataclasses import replace

from gpuwatch.model import CHECKS, Finding, ProcessRole
from gpuwatch.state import State
from gpuwatch.views.options import PANELS_IN_ORDER, SCALES, SORTS, Options, select_finding, selected_index


def findings_of(state: State) -> tuple[Finding, ...]:
    """The findings one can select: active, worst first, banners apart."""
    found = state.diagnosis.findings if state.diagnosis is not None else ()
    return tuple(finding for finding in found if not finding.banner)


def selected_finding(state: State, options: Options) -> Finding | None:
    findings = findings_of(state)
    return findings[selected_index(findings, options)] if findings else None


def row_count(state: State, panel: str) -> int:
    """Rows one can select in a panel."""
    sample = state.sample
    if panel == "findings":
        return len(findings_of(state))
    if panel == "checks":
        return len(CHECKS)
    if panel == "gpus":
        return len(sample.gpus) if sample is not None else 0
    listed = sample.processes or () if sample is not None else ()
    # Workers and other children belong to their trainer's row.
    return sum(process.role not in (ProcessRole.WORKER, ProcessRole.CHILD) for process in listed)


def selected_row(state: State, options: Options, panel: str) -> int:
    """The selected row of a panel, within what it has now."""
    if panel == "findings":
        return selected_index(findings_of(state), options)
    row = {"checks": options.check_row, "gpus": options.gpu_row}.get(panel, options.process_row)
    return max(0, min(row, row_count(state, panel) - 1))


def select_row(state: State, options: Options, panel: str, row: int) -> Options:
    """Select a row of a panel, the nearest there is, and give the panel the focus."""
    row = max(0, min(row, row_count(state, panel) - 1))
    options = replace(options, focus=panel)
    if panel == "checks":
        return replace(options, check_row=row)
    if panel == "gpus":
        return replace(options, gpu_row=row)
    if panel == "procs":
        return replace(options, process_row=row)
    return select_finding(findings_of(state), replace(options, finding=None), row)


def move_row(state: State, options: Options, step: int) -> Options:
    """Up or down in the panel that has the focus; stops at the ends."""
    row = selected_row(state, options, options.focus)
    return select_row(state, options, options.focus, row + step)


def move_focus(options: Options, shown: Sequence[str], step: int) -> Options:
    """The next panel of those on the screen."""
    panels = [name for name in PANELS_IN_ORDER if name in shown]
    if not panels:
        return options
    if options.focus not in panels:
        return replace(options, focus=panels[0])
    return replace(options, focus=panels[(panels.index(options.focus) + step) % len(panels)])


def next_scale(options: Options, step: int) -> Options:
    """More or less time per cell; stops at the ends."""
    place = SCALES.index(options.ticks_per_cell) + step
    return replace(options, ticks_per_cell=SCALES[max(0, min(place, len(SCALES) - 1))])


def next_sort(options: Options, step: int) -> Options:
    return replace(options, sort=SORTS[(SORTS.index(options.sort) + step) % len(SORTS)])


def next_gpu(state: State, options: Options, step: int) -> Options:
    """Zoom on another GPU, around the end; the one selected where none is zoomed."""
    gpus = state.sample.gpus if state.sample is not None else ()
    if not gpus:
        return options
    uuids = [gpu.uuid for gpu in gpus]
    if options.zoomed_gpu in uuids:
        row = (uuids.index(options.zoomed_gpu) + step) % len(uuids)
    else:
        row = selected_row(state, options, "gpus")
    return replace(options, zoomed_gpu=uuids[row], gpu_row=row)
