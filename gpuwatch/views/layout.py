"""Where each panel goes: a pure function of the size of the screen and of how much there is to show.

Rows are granted in the order of importance: verdict, its action, the GPUs, the checks, why, the host,
the processes. What is granted never overlaps and never leaves the screen; the verdict and the line of
the top finding are never dropped.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

#: Below this there is one box with the verdict's word.
LEAST_WIDTH, LEAST_HEIGHT = 20, 5
#: From here on the diagnosis stands left of the figures.
WIDE, WIDE_HEIGHT = 132, 20
#: One column of GPU rows needs this many cells to be readable.
GPU_COLUMN = 18
MOST_BANNERS = 3
#: Rows that stay for findings where the process table stands below them.
FINDINGS_ROOM = 10
#: Rows of one GPU with every metric on a row of its own.
FULL_GPU = 8


class Box(NamedTuple):
    name: str
    x: int
    y: int
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class Content:
    """How much there is to show, in counts."""

    gpus: int = 0
    mig: int = 0  # instances of all GPUs
    banners: int = 0
    findings: int = 0
    processes: int = 0  # rows of the table, its notes included
    verdict: int = 9  # rows of the verdict with one for each of its texts
    has_host: bool = True
    compact: bool = False  # one row for each GPU is wanted
    full: bool = False  # every metric of every GPU is wanted


#: Order from top to bottom, where there is one column.
STACK = ("head", "banner", "verdict", "checks", "gpus", "host", "procs", "findings", "foot")
LEFT = ("verdict", "checks", "findings", "procs")
RIGHT = ("gpus", "host", "procs")


def layout(width: int, height: int, content: Content) -> tuple[Box, ...]:
    """Boxes from top to bottom, left to right. Sizes are cells; nothing is granted on a screen of none."""
    if width < 1 or height < 1:
        return ()
    if width < LEAST_WIDTH or height < LEAST_HEIGHT:
        return (Box("small", 0, 0, width, height),)
    if width >= WIDE and height >= WIDE_HEIGHT:
        return _two_columns(width, height, content)
    return _one_column(width, height, content)


class _Rows:
    """Rows handed out one panel after another until none is left."""

    def __init__(self, height: int) -> None:
        self.left = height
        self.of: dict[str, int] = {}

    def grant(self, name: str, rows: int, least: int = 1) -> None:
        """Raise the panel to `rows`, or to what is left if that is at least `least` more."""
        more = rows - self.of.get(name, 0)
        given = min(more, self.left)
        if given >= min(least, more) and given > 0:
            self.of[name] = self.of.get(name, 0) + given
            self.left -= given

    def grant_whole(self, name: str, rows: int) -> None:
        """Raise the panel to `rows`, or not at all."""
        self.grant(name, rows, least=max(1, rows - self.of.get(name, 0)))


def _one_column(width: int, height: int, content: Content) -> tuple[Box, ...]:
    rows = _Rows(height)
    gpus, banners = content.gpus, min(content.banners, MOST_BANNERS)
    rows.grant("verdict", 1)
    rows.grant("findings", 1)
    rows.grant("gpus", 1)
    rows.grant("banner", min(1, banners))
    rows.grant("head", 1)
    rows.grant("checks", 1)
    rows.grant("foot", 1)
    # One row less where bar and legend share one, which they do as long as rows are few.
    said = max(1, content.verdict - 1)
    rows.grant("verdict", min(2, said))
    rows.grant("gpus", min(gpus, _modest(gpus, width)))
    rows.grant("verdict", min(3, said))
    rows.grant("gpus", _modest(gpus, width))
    rows.grant("banner", banners)
    if content.findings > 1 and gpus != 1:
        rows.grant("findings", 2)
    if width >= 78:
        rows.grant_whole("checks", 2)
    rows.grant("verdict", min(7, said), least=min(3, max(1, said - 3)))
    if content.has_host:
        rows.grant("host", 2)
    if not content.compact:
        rows.grant_whole("gpus", _rows_for(gpus, width, 2))
    rows.grant("findings", min(content.findings, 3))
    if gpus == 1:
        rows.grant("gpus", 6 + content.mig)
    _grant_gaps(rows, ("checks", "gpus", "host"))
    if content.processes:
        rows.grant("procs", _table_rows(min(content.processes, 4)), least=2)
    rows.grant("verdict", content.verdict + (0 if content.verdict < 6 else 1 if width >= 100 else 2))
    if not content.compact:
        rows.grant_whole("gpus", _rows_for(gpus, width, 5))
    rows.grant_whole("checks", 8 if width >= 58 else 4)
    if content.has_host:
        rows.grant("host", 5)
    rows.grant("procs", _table_rows(content.processes))
    rows.grant("findings", 2 * content.findings + 6)
    if not content.compact:
        rows.grant("gpus", gpus * FULL_GPU + content.mig)
    _grant_gaps(rows, ("findings", "procs"))
    if not content.compact and gpus:
        rows.grant("gpus", height)
    rows.grant("gap foot", rows.left)
    return tuple(_stack(STACK, rows, 0, 0, width))


def _modest(gpus: int, width: int) -> int:
    """The fewest rows that are still a good picture: five series for one GPU, a row for each of more."""
    if gpus <= 1:
        return 5 if gpus else 3
    if gpus > 2 and width < 72 and width // 2 >= GPU_COLUMN:
        return -(-gpus // 2)
    return _rows_for(gpus, width, 1)


def _rows_for(gpus: int, width: int, each: int) -> int:
    """Rows for `gpus` with `each` rows; more than eight stand in two columns where there is room."""
    columns = 2 if gpus > 8 and width >= 72 else 1
    return -(-gpus // columns) * each


def _table_rows(processes: int) -> int:
    """Rows of the process table; from four processes on it has a heading."""
    return processes + (2 if processes >= 4 else 1) if processes else 0


def _grant_gaps(rows: _Rows, above: Iterable[str]) -> None:
    """An empty row above each of these panels that is shown."""
    for name in above:
        if rows.of.get(name):
            rows.grant("gap " + name, 1)


def _two_columns(width: int, height: int, content: Content) -> tuple[Box, ...]:
    left_width = min(72, max(58, width * 3 // 8))
    right_x = left_width + 2
    outer = _Rows(height)
    outer.grant("head", 1)
    outer.grant("foot", 1)
    outer.grant("banner", min(content.banners, MOST_BANNERS))
    if height >= 30:
        outer.grant("gap verdict", 1)
    top = height - outer.left - outer.of["foot"]
    left, right = _left_rows(outer.left, content), _right_rows(outer.left, content)
    if _move_table(left, right, content):
        right = _right_rows(outer.left, replace(content, processes=0))
    boxes = list(_stack(("head", "banner"), outer, 0, 0, width))
    boxes += _stack(LEFT, left, 0, top, left_width)
    boxes += _stack(RIGHT, right, right_x, top, width - right_x)
    boxes.append(Box("foot", 0, height - 1, width, 1))
    return tuple(boxes)


def _move_table(left: _Rows, right: _Rows, content: Content) -> bool:
    """Put the process table under the findings where the GPUs leave it less room beside them.

    How many findings there are plays no part: the table must not wander when one comes or goes.
    """
    wanted = min(_table_rows(content.processes), left.of.get("findings", 0) - FINDINGS_ROOM - 1)
    if wanted <= right.of.get("procs", 0):
        return False
    left.of["findings"] -= wanted + 1
    left.of["procs"], left.of["gap procs"] = wanted, 1
    return True


def _left_rows(height: int, content: Content) -> _Rows:
    rows = _Rows(height)
    rows.grant("verdict", 3)
    rows.grant("findings", 2)
    rows.grant("checks", 8)
    rows.grant("verdict", 7)
    rows.grant("findings", min(content.findings, 4) + 1)
    _grant_gaps(rows, ("checks", "findings"))
    # By the height alone, so that nothing below moves when a text gets longer.
    rows.grant("verdict", 15 if height >= 44 else 12 if height >= 36 else 7)
    rows.grant("findings", height)
    return rows


def _right_rows(height: int, content: Content) -> _Rows:
    rows = _Rows(height)
    gpus = max(1, content.gpus)
    columns = 2 if content.gpus > 8 else 1
    each = -(-gpus // columns)
    rows.grant("gpus", each)
    if content.has_host:
        rows.grant("host", 2)
    if content.processes:
        rows.grant("procs", _table_rows(min(content.processes, 2)))
    if not content.compact:
        rows.grant("gpus", each * (5 if gpus > 1 else FULL_GPU), least=each)
    _grant_gaps(rows, ("host",))
    if content.has_host:
        rows.grant("host", 3)
    rows.grant("procs", _table_rows(min(content.processes, 8)))
    if content.has_host:
        rows.grant("host", 4)
    _grant_gaps(rows, ("procs",))
    if not content.compact:
        rows.grant("gpus", each * FULL_GPU + content.mig, least=each)
    rows.grant("procs", _table_rows(content.processes))
    rows.grant("gpus", height)
    return rows


def _stack(names: Iterable[str], rows: _Rows, x: int, y: int, width: int) -> Iterable[Box]:
    """The granted panels on top of one another, with the gaps granted above them."""
    for name in names:
        height = rows.of.get(name, 0)
        if height:
            y += rows.of.get("gap " + name, 0)
            yield Box(name, x, y, width, height)
            y += height
