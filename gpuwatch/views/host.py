"""The machine around the GPUs: cores, pressure, memory, swap, disks, network, the job's main thread."""

from collections.abc import Sequence

from gpuwatch.model import ProcessRole
from gpuwatch.state import State
from gpuwatch.views import format as words
from gpuwatch.views.lens import Lens
from gpuwatch.views.options import Options
from gpuwatch.views.rows import Row, Span, blank, row, safe, width_of
from gpuwatch.views.spark import spark

HOST = "host:"
_LABEL = 7
#: A disk or an interface is chosen by its mean over this long, so that the choice does not jump.
CHOOSE_S = 60.0

Piece = list[Span]


def host(state: State, options: Options, width: int, height: int) -> list[Row]:
    """The panel `host`: with each more row, more of it."""
    if height < 1 or width < 1:
        return []
    lens = Lens(state, options)
    if lens.host is None:
        return [row([("the host has not been read yet", "dim")], width)]
    memory, pressure = _memory(lens), _pressure(lens)
    disk, net, job = _disk(lens, _busiest(lens, "disk", "busy_ratio")), _net(lens), _job(lens)
    if height == 1:
        rows = [_cpu(lens, width, [memory])]
    elif height == 2:
        rows = [_cpu(lens, width, []), _line("ram", [memory, disk, net, job, pressure], width)]
    else:
        rows = [_cpu(lens, width, [])]
        if height >= 4:
            rows += _cores(lens, width)
        rows.append(_line("ram", [memory, pressure, job], width))
        rows.append(_line("disk", [disk, net], width))
        others = [name for name in _disks(lens) if name != _busiest(lens, "disk", "busy_ratio")]
        rows += [_line("", [_disk(lens, name)], width) for name in others[: height - len(rows)]]
    return (rows + [blank(width)] * height)[:height]


def _line(label: str, pieces: Sequence[Piece], width: int) -> Row:
    """Pieces with two blanks between, as many as fit whole."""
    spans: Piece = [(label.ljust(_LABEL), "label")]
    left = width - _LABEL
    first = True
    for piece in pieces:
        need = width_of(piece) + (0 if first else 3)
        if not piece or need > left:
            continue
        if not first:
            spans.append(("   ", ""))
        spans += piece
        left -= need
        first = False
    return row(spans, width)


def _cpu(lens: Lens, width: int, more: Sequence[Piece]) -> Row:
    count = _core_count(lens)
    point = lens.point(HOST, "cpu_ratio")
    of = f" of {count}" if count else ""
    value: Piece = [(f" {words.percent(point.value):>5}{of}", "dim" if point.stale else "value")]
    for piece in more:
        if width_of(value) + width_of(piece) + 3 <= width // 2:
            value += [("   ", ""), *piece]
    cells = max(0, width - _LABEL - width_of(value))
    values = lens.cells(HOST, "cpu_ratio", cells)
    plot = spark(values, 0.0, 1.0, lens.glyphs, lens.blank(cells))
    return row([("cpu".ljust(_LABEL), "label"), (plot, "plot"), *value], width)


def _core_count(lens: Lens) -> int | None:
    reading, machine = lens.host, lens.state.machine
    if reading is not None and reading.core_ids:
        return len(reading.core_ids)
    return None if machine is None else machine.host.logical_cores


def _cores(lens: Lens, width: int) -> list[Row]:
    """One cell for each core now; more cores than cells share them, the busiest of each is drawn."""
    shares = list(lens.history.core_shares()) if lens.back == 0 else []
    if not shares:
        return []
    room = width - _LABEL - 14
    if room < 4:
        return []
    each = -(-len(shares) // room)
    groups = [shares[i : i + each] for i in range(0, len(shares), each)]
    values = [max((v for v in group if v is not None), default=None) for group in groups]
    busiest = max((share for share in shares if share is not None), default=None)
    text = f" busiest {words.percent(busiest):>5}"
    return [
        row(
            [
                ("cores".ljust(_LABEL), "label"),
                (spark(values, 0.0, 1.0, lens.glyphs), "plot"),
                (text, "value"),
            ],
            width,
        )
    ]


def _memory(lens: Lens) -> Piece:
    reading = lens.host
    assert reading is not None
    total, available = reading.memory_total_bytes, reading.memory_available_bytes
    used = total - available if total is not None and available is not None else None
    spans: Piece = [(f"{words.gib(used)}/{words.gib(total)} GiB", "value")]
    swap = reading.swap_used_bytes
    if swap is not None:
        spans += [("  swap ", "label"), (words.memory(swap) if swap else "0", "value")]
    moving = (lens.point(HOST, "swap_in_bytes_per_s").value or 0) + (
        lens.point(HOST, "swap_out_bytes_per_s").value or 0
    )
    if moving:
        spans += [(f" at {words.rate(moving)}", "warn")]
    return spans


def _pressure(lens: Lens) -> Piece:
    """Share of time in which somebody waited (PSI "some")."""
    spans: Piece = []
    for name in ("cpu", "io", "memory"):
        value = lens.point(HOST, f"{name}_pressure_ratio").value
        if value is not None:
            spans += [
                (f"{' ' if spans else ''}{name[:3]} ", "label"),
                (f"{words.percent(value):>5}", "value"),
            ]
    return [("pressure ", "label"), *spans] if spans else []


def _disks(lens: Lens) -> list[str]:
    return [disk.name for disk in lens.host.disks] if lens.host is not None else []


def _busiest(lens: Lens, kind: str, key: str) -> str | None:
    names = _disks(lens) if kind == "disk" else _networks(lens)
    if len(names) < 2:
        return names[0] if names else None
    return max(names, key=lambda name: lens.history.mean(f"{kind}:{name}", key, CHOOSE_S) or 0.0)


def _disk(lens: Lens, name: str | None) -> Piece:
    if name is None:
        return []
    entity = f"disk:{name}"
    read = lens.point(entity, "read_bytes_per_s").value
    write = lens.point(entity, "write_bytes_per_s").value
    busy = lens.point(entity, "busy_ratio").value
    return [
        (f"{safe(name, lens.glyphs)} ", "label"),
        ("r ", "label"),
        (f"{words.rate(read):>8}", "value"),
        (" w ", "label"),
        (f"{words.rate(write):>8}", "value"),
        (f"{words.percent(busy):>6}", "value"),
        (" busy", "label"),
    ]


def _networks(lens: Lens) -> list[str]:
    return [net.name for net in lens.host.networks] if lens.host is not None else []


def _net(lens: Lens) -> Piece:
    name = _busiest(lens, "net", "rx_bytes_per_s")
    if name is None:
        return []
    entity, glyphs = f"net:{name}", lens.glyphs
    rx, tx = lens.point(entity, "rx_bytes_per_s").value, lens.point(entity, "tx_bytes_per_s").value
    return [
        (f"{safe(name, glyphs)} ", "label"),
        (f"{glyphs.rx}{words.rate(rx):>8}", "value"),
        (f" {glyphs.tx}{words.rate(tx):>8}", "value"),
    ]


def _job(lens: Lens) -> Piece:
    """Main threads of the trainers and how many workers feed them."""
    trainers = [p for p in lens.processes if p.role is ProcessRole.TRAINER]
    if not trainers:
        return []
    points = [lens.point(f"process:{p.pid}:{p.start_ticks}", "main_cpu_cores").value for p in trainers]
    known = [value for value in points if value is not None]
    low, high = (words.percent_number(min(known)), words.percent(max(known))) if known else ("", "- %")
    main = f"{low}-{high}" if known and len(trainers) > 1 and f"{low} %" != high else high
    workers = sum(p.role is ProcessRole.WORKER for p in lens.processes)
    return [
        ("main ", "label"),
        (f"{main:>5}", "value"),
        ("  workers ", "label"),
        (str(workers), "value"),
    ]
