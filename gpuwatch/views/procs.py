"""The process table: who is on which GPU, what its main thread and its workers do, and on how much CPU.

Columns give way from the least telling one on. CPU is counted as `top` counts it: 100 % is one core.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from gpuwatch.model import ProcessKey, ProcessReading, ProcessRole
from gpuwatch.state import State
from gpuwatch.views import format as words
from gpuwatch.views.findings import number_ranges
from gpuwatch.views.lens import Lens
from gpuwatch.views.notices import waiting_for_work
from gpuwatch.views.options import Options
from gpuwatch.views.rows import Row, Span, blank, cells, clip, crop, filled, heading, row, safe, shorten

LEAST_COMMAND, ROOMY_COMMAND = 12, 24
#: Workers whose CPU is summed up for one row; more cost more than they tell.
MOST_WORKERS = 64
HEADING_FROM = 6


@dataclass(frozen=True, slots=True)
class Entry:
    """One row: a process with what it holds on the GPUs."""

    process: ProcessReading
    gpus: tuple[int, ...]
    memory_bytes: int | None
    workers: tuple[ProcessReading, ...]


class Table:
    """What the columns are computed from."""

    def __init__(self, lens: Lens) -> None:
        self.lens = lens
        self._on: dict[int, list[tuple[int, int | None]]] = {}
        for gpu in lens.gpus:
            for entry in gpu.processes or ():
                self._on.setdefault(entry.pid, []).append((gpu.index, entry.memory_bytes))
        self._workers: dict[ProcessKey, list[ProcessReading]] = {}
        for process in lens.processes:
            if process.role is ProcessRole.WORKER and process.trainer is not None:
                self._workers.setdefault(process.trainer, []).append(process)

    def entries(self) -> list[Entry]:
        """Everything but workers and other children, which belong to their trainer's row."""
        listed = [p for p in self.lens.processes if p.role not in (ProcessRole.WORKER, ProcessRole.CHILD)]
        return [self._entry(process) for process in listed]

    def _entry(self, process: ProcessReading) -> Entry:
        held = self._on.get(process.pid, [])
        sizes = [size for _, size in held if size is not None]
        return Entry(
            process,
            tuple(sorted({index for index, _ in held})),
            sum(sizes) if sizes else None,
            tuple(self._workers.get(process.key, ())),
        )

    def metric(self, process: ProcessReading, key: str) -> float | None:
        return self.lens.point(f"process:{process.pid}:{process.start_ticks}", key).value

    def sum_of(self, processes: Sequence[ProcessReading], key: str) -> float | None:
        values = [self.metric(process, key) for process in processes[:MOST_WORKERS]]
        known = [value for value in values if value is not None]
        return sum(known) if known else None


def _workers_text(table: Table, entry: Entry) -> str:
    """ "4x97%": how many, and the mean CPU of one."""
    if entry.process.role is not ProcessRole.TRAINER:
        return ""
    count = len(entry.workers)
    if not count:
        return "0"
    total = table.sum_of(entry.workers, "cpu_cores")
    mean = "" if total is None else f" {100 * total / min(count, MOST_WORKERS):.0f}%"
    return f"{count}{table.lens.glyphs.times}{mean.strip()}" if mean else str(count)


def _cores_text(key: str) -> Callable[[Table, Entry], str]:
    return lambda table, entry: words.percent_number(table.metric(entry.process, key))


def _gpu_text(_table: Table, entry: Entry) -> str:
    return number_ranges(entry.gpus) if entry.gpus else words.DASH


def _memory_text(_table: Table, entry: Entry) -> str:
    return words.memory_short(entry.memory_bytes) if entry.gpus else ""


def _user_text(table: Table, entry: Entry) -> str:
    user = entry.process.user
    if user is None:
        user = words.DASH if entry.process.uid is None else str(entry.process.uid)
    return safe(user, table.lens.glyphs)


def _read_text(table: Table, entry: Entry) -> str:
    """Of the process and its workers together, all read calls, cached ones too."""
    return words.rate_short(table.sum_of((entry.process, *entry.workers), "read_chars_per_s"))


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    title: str
    width: int
    text: Callable[[Table, Entry], str]
    left: bool = False


#: From left to right.
COLUMNS = (
    Column("pid", "pid", 7, lambda _table, entry: str(entry.process.pid)),
    Column("user", "user", 8, _user_text, left=True),
    Column("gpu", "gpu", 4, _gpu_text),
    Column("vram", "vram", 6, _memory_text),
    Column("cpu", "cpu%", 5, _cores_text("cpu_cores")),
    Column("main", "main%", 5, _cores_text("main_cpu_cores")),
    Column("workers", "workers", 8, _workers_text),
    Column("wait", "wait%", 5, _cores_text("wait_ratio")),
    Column("read", "read/s", 6, _read_text),
)
#: What is kept when there is little room, the most telling first.
_KEPT = ("pid", "gpu", "vram", "cpu", "workers", "user", "main", "wait", "read")


def procs(state: State, options: Options, width: int, height: int) -> list[Row]:
    """The panel `procs`."""
    if height < 1 or width < 1:
        return []
    lens = Lens(state, options)
    table = Table(lens)
    entries = ordered(table, options)
    columns = _columns(width)
    focused = options.focus == "procs"
    notes = _notes(lens, entries, width)[: max(0, height - 1)]
    rows: list[Row] = []
    if height >= HEADING_FROM:
        title = f"processes {len(entries)}"
        rows.append(heading(title, width, lens.glyphs, focused, f"by {options.sort}, 100 % cpu is one core"))
    if entries:
        rows.append(_header(columns, width, options))
    fit = max(0, height - len(rows) - len(notes))
    chosen = min(max(0, options.process_row), max(0, len(entries) - 1))
    top = min(max(0, chosen - fit + 1), max(0, len(entries) - fit))
    for place, entry in enumerate(entries[top : top + fit], start=top):
        rows.append(_entry_row(table, entry, columns, width, focused and place == chosen))
    if len(entries) > fit and fit and not notes and not focused:
        more = len(entries) - fit + 1
        rows[-1] = row([(f" {lens.glyphs.ellipsis} {more} more", "dim")], width)
    rows += notes
    return filled(rows + [blank(width)] * height, width, height)


def ordered(table: Table, options: Options) -> list[Entry]:
    """The rows in the chosen order: trainers by GPU first, or by the chosen column."""
    entries = table.entries()
    sort = _SORTS.get(options.sort, _by_gpu)
    return sorted(entries, key=lambda entry: sort(table, entry), reverse=options.reverse)


def _by_gpu(_table: Table, entry: Entry) -> tuple[object, ...]:
    return (not entry.gpus, entry.gpus, entry.process.pid)


def _largest_first(value: float | None) -> float:
    return -value if value is not None else 1.0


_SORTS: Mapping[str, Callable[[Table, Entry], tuple[object, ...]]] = {
    "gpu": _by_gpu,
    "pid": lambda _table, entry: (entry.process.pid,),
    "user": lambda table, entry: (_user_text(table, entry), entry.process.pid),
    "vram": lambda _table, entry: (_largest_first(entry.memory_bytes), entry.process.pid),
    "cpu": lambda table, entry: (_largest_first(table.metric(entry.process, "cpu_cores")), entry.process.pid),
    "read": lambda table, entry: (
        _largest_first(table.sum_of((entry.process, *entry.workers), "read_chars_per_s")),
        entry.process.pid,
    ),
}


def _columns(width: int) -> list[Column]:
    by_name = {column.name: column for column in COLUMNS}
    kept: set[str] = set()
    left = width - 1
    for name in _KEPT:
        need = by_name[name].width + 1
        least = LEAST_COMMAND if len(kept) < 4 else ROOMY_COMMAND
        if left - need < least:
            break
        kept.add(name)
        left -= need
    return [column for column in COLUMNS if column.name in kept]


def _header(columns: Sequence[Column], width: int, options: Options) -> Row:
    spans: list[Span] = [(" ", "")]
    for column in columns:
        role = "accent" if column.name == options.sort else "label"
        spans.append((_cell(column.title, column), role))
    spans.append((" command", "label"))
    return row(spans, width)


def _cell(text: str, column: Column) -> str:
    """`text` in its column with a blank before it; what is too long is cut at the right."""
    if column.left:
        return " " + crop(text, column.width)
    return " " + " " * (column.width - cells(text)) + crop(text, min(column.width, cells(text)))


def _entry_row(table: Table, entry: Entry, columns: Sequence[Column], width: int, selected: bool) -> Row:
    glyphs = table.lens.glyphs
    role = "selected" if selected else "value" if entry.gpus else "dim"
    fixed = "".join(_cell(column.text(table, entry), column) for column in columns)
    used = 1 + sum(column.width + 1 for column in columns)
    process = entry.process
    room = max(1, width - used - 1)
    command = crop(clip(safe(process.command or process.name, glyphs), room, glyphs), room)
    return row([(">" if selected else " ", "accent"), (fixed, role), (f" {command}", role)], width)


def _notes(lens: Lens, entries: Sequence[Entry], width: int) -> list[Row]:
    """What the table cannot show, in a sentence."""
    sample, glyphs = lens.state.sample, lens.glyphs
    texts: list[str] = []
    if sample is None:
        return []
    if sample.processes is None:
        texts.append("processes cannot be read here")
    elif not any(entry.gpus for entry in entries) and not sample.hidden_processes and lens.gpus:
        waiting = waiting_for_work(lens.state)
        since = "" if waiting is None else f", waiting for work for {words.age(waiting)}"
        texts.append(f"no process on the GPU{'s' if len(lens.gpus) > 1 else ''}{since}")
    if sample.hidden_processes:
        count = words.plural(sample.hidden_processes, "GPU process").replace("processs", "processes")
        verb = "is" if sample.hidden_processes == 1 else "are"
        texts.append(f"{count} {verb} not visible here (another container?); --pid=host shows them")
    return [row([(" ", ""), (shorten(text, max(1, width - 1), glyphs), "dim")], width) for text in texts]
