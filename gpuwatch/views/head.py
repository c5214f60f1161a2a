"""The first line: which machine, which GPUs, how old the figures are, what is recorded."""

import re

from gpuwatch.model import ProcessRole
from gpuwatch.state import State
from gpuwatch.views import format as words
from gpuwatch.views.glyphs import Glyphs
from gpuwatch.views.lens import Lens
from gpuwatch.views.options import Options
from gpuwatch.views.rows import Row, Span, cells, row, safe, shorten

#: Words of a marketing name that tell nothing beside others.
_EMPTY_WORDS = re.compile(r"\b(NVIDIA|GeForce|Tesla|Graphics|Device|HBM3e?|HBM2e?|PCIe)\b ?", re.IGNORECASE)


def head(state: State, options: Options, width: int, height: int) -> list[Row]:
    """The panel `head`, one row. What matters least is left out first; the label never is."""
    if height < 1:
        return []
    lens = Lens(state, options)
    label = (
        safe(state.machine.label, lens.glyphs) if state.machine is not None and state.machine.label else ""
    )
    age = _age(lens)
    # Room goes to these in turn; on the screen they stand in the order of `place`.
    wishes: list[tuple[int, Span]] = [(8, age)]
    if label:
        wishes.append((1, (label, "accent")))
    if state.recording:
        wishes.append((7, (safe(state.recording, lens.glyphs), "bad")))
    wishes.append((0, ("gpuwatch", "title")))
    wishes.append((2, (gpu_names(lens), "value")))
    wishes += [
        (place, (text, "dim"))
        for place, text in (
            (5, _job(lens)),
            (3, _driver(lens)),
            (4, _host(lens)),
            (6, _own(state)),
        )
    ]
    return [_arranged([wish for wish in wishes if wish[1][0]], width, lens.glyphs)]


def _arranged(wishes: list[tuple[int, Span]], width: int, glyphs: Glyphs) -> Row:
    kept: list[tuple[int, Span]] = []
    left = width
    for place, (text, role) in wishes:
        need = cells(text) + (2 if kept else 0)
        if need > left and place == 1:  # the label is shortened, never dropped
            text = shorten(text, max(1, left - 2), glyphs)
            need = cells(text) + 2
        if need <= left:
            kept.append((place, (text, role)))
            left -= need
    kept.sort(key=lambda wish: wish[0])
    start = [span for place, span in kept if place < 5]
    end = [span for place, span in kept if place >= 5]
    spans: list[Span] = []
    for number, span in enumerate((*start, *end)):
        if number:
            spans.append(("  " + (" " * left if number == len(start) else ""), ""))
        spans.append(span)
    if not start:
        spans.insert(0, (" " * left, ""))
    return row(spans, width)


def _age(lens: Lens) -> Span:
    """How old the picture is; calm while it is live."""
    state, options = lens.state, lens.options
    age_s = state.age_s
    if age_s is None:
        return "waiting", "dim"
    if options.back:
        return f"back {words.age(options.back * lens.history.interval_s)}", "accent"
    if options.frozen:
        return f"frozen {words.age(max(age_s, lens.back * lens.history.interval_s))}", "accent"
    if age_s > lens.stale_s:
        return f"no data for {words.age(age_s)}", "bad"
    return "live", "ok"


def gpu_names(lens: Lens) -> str:
    """ "8x H100 SXM 80G", "RTX 3090 24G", "2x A100 + 1x T4", "no GPU"."""
    machine = lens.state.machine
    if machine is None:
        return ""
    if not machine.gpus:
        return "no GPU"
    counts: dict[str, int] = {}
    for info in machine.gpus:
        name = short_name(safe(info.name, lens.glyphs))
        size = words.card_memory(info.memory_total_bytes) if info.memory_total_bytes else ""
        if size and not re.search(r"\d+ ?GB?\b", name):
            name = f"{name} {size}"
        counts[name] = counts.get(name, 0) + 1
    if len(counts) == 1 and len(machine.gpus) == 1:
        return next(iter(counts))
    return " + ".join(f"{count}{lens.glyphs.times} {name}" for name, count in counts.items())


def short_name(name: str) -> str:
    """ "NVIDIA H100 80GB HBM3" is "H100 80GB"."""
    return " ".join(_EMPTY_WORDS.sub("", name).split()) or name


def _driver(lens: Lens) -> str:
    machine = lens.state.machine
    version = None if machine is None else machine.driver.version
    return f"driver {safe(version, lens.glyphs)}" if version else ""


def _host(lens: Lens) -> str:
    machine = lens.state.machine
    return "" if machine is None else safe(machine.host.hostname, lens.glyphs)


def _job(lens: Lens) -> str:
    ages = [p.age_s for p in lens.processes if p.role is ProcessRole.TRAINER and p.age_s is not None]
    return f"job {words.clock_time(max(ages))}" if ages else ""


def _own(state: State) -> str:
    """What watching costs."""
    if state.own_cpu_ratio is None:
        return ""
    return f"own cpu {100 * state.own_cpu_ratio:.1f} %"
