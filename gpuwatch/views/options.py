"""What the user chose to look at. Frozen; a key makes a new one."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from gpuwatch.model import Finding

#: A finding's identity: rule, subject, start.
FindingKey = tuple[str, str, float]

#: Seconds of ticks one plot cell stands for, as `+` and `-` go through them.
SCALES = (1, 2, 5, 15, 60)
DENSITIES = ("auto", "full", "compact")
#: Panels that take the focus, in the order of `tab`.
PANELS_IN_ORDER = ("findings", "checks", "gpus", "procs")
#: Columns by which processes can be sorted.
SORTS = ("gpu", "pid", "user", "vram", "cpu", "read")


@dataclass(frozen=True, slots=True)
class Options:
    """`back` counts ticks before the newest; `*_row` is the selected row of a list, 0 the first."""

    ascii_only: bool = False
    theme: str = "dark"
    finding: FindingKey | None = None  # None: the first, which is the worst
    focus: str = "findings"
    gpu_row: int = 0
    process_row: int = 0
    check_row: int = 0
    ticks_per_cell: int = 1
    back: int = 0
    frozen: bool = False
    density: str = "auto"
    sort: str = "gpu"
    reverse: bool = False
    zoomed_gpu: str | None = None  # uuid


def finding_key(finding: Finding) -> FindingKey:
    return (finding.rule, finding.subject, finding.started_s)


def selected_index(findings: Sequence[Finding], options: Options) -> int:
    """Place of the selected finding; 0 where it has ended meanwhile."""
    for index, finding in enumerate(findings):
        if finding_key(finding) == options.finding:
            return index
    return 0


def select_finding(findings: Sequence[Finding], options: Options, step: int) -> Options:
    """Options with the finding `step` places further selected, around the end."""
    if not findings:
        return replace(options, finding=None)
    index = (selected_index(findings, options) + step) % len(findings)
    return replace(options, finding=finding_key(findings[index]))
