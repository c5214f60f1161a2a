"""The state in whole sentences, line by line: for pipes, files, screen readers, and `snapshot`."""

from collections.abc import Iterator

from gpuwatch.metrics import REASON_IDLE
from gpuwatch.model import (
    CheckState,
    DriverState,
    Finding,
    GpuReading,
    GpuState,
    ProcessRole,
    Severity,
    severity_at_least,
)
from gpuwatch.state import State
from gpuwatch.views import format as words
from gpuwatch.views.checks import evidence, results_of
from gpuwatch.views.findings import short_step, subject_words
from gpuwatch.views.gpu_series import GpuPicture
from gpuwatch.views.head import gpu_names
from gpuwatch.views.ledger_bar import booked
from gpuwatch.views.lens import Lens
from gpuwatch.views.notices import banner_lines
from gpuwatch.views.options import Options
from gpuwatch.views.rows import safe, wrap
from gpuwatch.views.spark import whole_percents
from gpuwatch.views.verdict import layer_words
from gpuwatch.views.zoom import reason_names

LEAST_WIDTH = 20
#: Lines one sentence may take.
MOST_LINES = 12
_CHECK_WORDS = {
    CheckState.FINE: "fine",
    CheckState.NAMED: "CAUSE",
    CheckState.POSSIBLE: "possible",
    CheckState.WAITING: "waiting",
    CheckState.UNMEASURABLE: "not checked",
}


def plain(state: State, width: int, *, ascii_only: bool) -> list[str]:
    """Lines of at most `width` cells (20 at least), without trailing blanks."""
    lens = Lens(state, Options(ascii_only=ascii_only))
    width = max(LEAST_WIDTH, width)
    lines: list[str] = []
    for indent, text in _sentences(lens):
        if not text:
            if lines and lines[-1]:
                lines.append("")
            continue
        pad = " " * indent
        parts = wrap(safe(text, lens.glyphs), width - indent, MOST_LINES, lens.glyphs)
        lines += [(pad if number == 0 else pad + "  ") + part for number, part in enumerate(parts)][:1]
        rest = " ".join(parts[1:])
        lines += [pad + "  " + part for part in wrap(rest, width - indent - 2, MOST_LINES, lens.glyphs)]
    while lines and not lines[-1]:
        lines.pop()
    return lines


Sentences = Iterator[tuple[int, str]]  # indent, sentence; an empty one is a paragraph's end


def _sentences(lens: Lens) -> Sentences:
    yield from _machine(lens)
    if lens.state.sample is None:
        yield 0, "Nothing has been read yet."
        return
    yield 0, ""
    for text, _ in banner_lines(lens.state, lens.options):
        yield 0, f"Note: {text}"
    yield from _verdict(lens)
    yield 0, ""
    yield from _gpus(lens)
    yield from _host(lens)
    yield 0, ""
    yield from _findings(lens)
    yield from _checks(lens)


def _machine(lens: Lens) -> Sentences:
    machine = lens.state.machine
    if machine is None:
        yield 0, "gpuwatch"
        return
    parts = [f"gpuwatch on {machine.host.hostname}", gpu_names(lens)]
    if machine.driver.version:
        parts.append(f"driver {machine.driver.version}")
    if machine.label:
        parts.append(machine.label)
    if lens.state.recording:
        parts.append(lens.state.recording)
    yield 0, ", ".join(part for part in parts if part)


def _verdict(lens: Lens) -> Sentences:
    diagnosis = lens.state.diagnosis
    if diagnosis is None:
        yield 0, "Verdict: none yet."
        return
    verdict = diagnosis.verdict
    layer = layer_words(verdict)
    sure = f" ({verdict.confidence})" if verdict.confidence is not None else ""
    early = " (preliminary)" if verdict.preliminary else ""
    yield 0, f"Verdict: {f'{layer}{sure}: ' if layer else ''}{verdict.headline}{early}"
    for label, text in (
        ("", verdict.detail),
        ("Because", "; ".join(verdict.because)),
        ("Wrong if", verdict.wrong_if),
        ("Settle it by", verdict.settle),
        ("Do", verdict.action),
        ("Then", verdict.after_that),
    ):
        if text:
            yield 2, f"{label}: {text}" if label else text
    found = booked(lens)
    if found is not None:
        figures = whole_percents([part.ratio for part in found.parts])
        shares = [
            f"{figure} % {part.key}{f' ({part.label})' if part.label not in ('', str(part.key)) else ''}"
            for part, figure in zip(found.parts, figures, strict=True)
            if figure
        ]
        of = f" of {found.who}" if found.who else ""
        yield 2, f"Ledger of the last {found.window_s:.0f} s{of}: {', '.join(shares)}"


def _gpus(lens: Lens) -> Sentences:
    sample = lens.state.sample
    assert sample is not None
    if not sample.gpus and lens.state.diagnosis is None:  # else the verdict has said so
        driver = sample.driver
        if driver.state is not DriverState.OK or driver.message:
            yield 0, f"{driver.message or driver.state} {driver.advice}".strip()
        else:
            yield 0, "No GPU is visible here."
    for reading in sample.gpus:
        yield 0, _gpu(lens, reading)
        for instance in reading.mig:
            used, total = words.gib(instance.memory_used_bytes), words.gib(instance.memory_total_bytes)
            number = "?" if instance.gpu_instance is None else instance.gpu_instance
            active = (
                ""
                if instance.sm_active_ratio is None
                else f", SM active {words.percent(instance.sm_active_ratio)}"
            )
            yield 2, f"MIG {number} {instance.profile}: {used} of {total} GiB{active}"


def _gpu(lens: Lens, reading: GpuReading) -> str:
    """ "GPU 0 H100: utilization 98 %, power 487 of 700 W, ..."; what is not known says why."""
    picture = GpuPicture(lens, reading)
    name = f"GPU {reading.index}"
    if picture.info is not None:
        name += f" {picture.info.name.removeprefix('NVIDIA ')}"
    status = reading.status
    if status.state is not GpuState.OK:
        since = words.age(max(0.0, lens.state.now_s - status.since_s))
        advice = f"; {status.advice}" if status.advice else ""
        return f"{name}: {status.message or status.state}, for {since}{advice}"
    parts = [_utilization(picture)]
    for key, label, unit, limit in (
        ("power_w", "power", "W", reading.power_limit_w),
        ("sm_clock_mhz", "clock", "MHz", picture.info and picture.info.sm_clock_max_mhz),
        ("temperature_c", "temperature", lens.glyphs.degree, picture.hottest_c),
    ):
        value = picture.point(key).value
        if value is not None:
            over = f" ({100 * value / limit:.0f} %)" if limit and value > limit else ""
            parts.append(f"{label} {value:.0f}{f' of {limit:.0f}' if limit else ''} {unit}{over}")
    state = picture.point("p_state").value
    if state is not None:
        parts.append(f"P{state:.0f}")
    parts.append(f"memory {picture.memory().replace('/', ' of ')}")
    if picture.link():
        parts.append(f"PCIe {picture.link()}")
    for key, label in (("pcie_rx_bytes_per_s", "in"), ("pcie_tx_bytes_per_s", "out")):
        value = picture.point(key).value
        if value is not None:
            parts.append(f"{words.rate(value)} {label}")
    bits = picture.point("event_reasons").value
    reasons = reason_names(int(bits or 0) & ~REASON_IDLE)
    if reasons:
        parts.append(f"clock held by {reasons}")
    age_s = lens.state.now_s - reading.read_s
    stale = f" (read {words.age(age_s)} ago)" if age_s > lens.stale_s else ""
    return f"{name}: {', '.join(parts)}{stale}"


def _utilization(picture: GpuPicture) -> str:
    value = picture.point("utilization_ratio").value
    if value is not None:
        return f"utilization {words.percent(value)}"
    reason = picture.reading.absent.get("utilization_ratio")
    return f"utilization unknown ({reason})" if reason else "utilization unknown"


def _host(lens: Lens) -> Sentences:
    reading = lens.host
    if reading is None:
        return
    cpu = lens.point("host:", "cpu_ratio").value
    cores = f" of {len(reading.core_ids)} cores" if reading.core_ids else ""
    parts = [f"CPU {words.percent(cpu)}{cores}"]
    total, available = reading.memory_total_bytes, reading.memory_available_bytes
    if total is not None and available is not None:
        parts.append(f"memory {words.gib(total - available)} of {words.gib(total)} GiB")
    pressures = []
    for name in ("cpu", "io", "memory"):
        value = lens.point("host:", f"{name}_pressure_ratio").value
        if value is not None:
            pressures.append(f"{name} {words.percent(value)}")
    if pressures:
        parts.append(f"pressure {', '.join(pressures)}")
    trainers = [process for process in lens.processes if process.role is ProcessRole.TRAINER]
    if trainers:
        workers = sum(process.role is ProcessRole.WORKER for process in lens.processes)
        parts.append(f"{words.plural(len(trainers), 'trainer')} with {words.plural(workers, 'worker')}")
    yield 0, f"Host: {'; '.join(parts)}"


def _findings(lens: Lens) -> Sentences:
    found = lens.findings
    if lens.state.diagnosis is None:
        return
    if not found:
        yield 0, "Findings: none."
    for number, finding in enumerate(found, start=1):
        yield 0, f"Finding {number} of {len(found)}: {_finding(lens, finding)}"
        step = short_step(finding, lens.glyphs)
        if step and severity_at_least(finding.severity, Severity.NOTICE):
            yield 2, f"Do: {step}"


def _finding(lens: Lens, finding: Finding) -> str:
    share = words.ratio_range(finding.share_low_ratio, finding.share_ratio, finding.share_high_ratio)
    cost = f", costs {share} of the time" if share else ""
    return (
        f"{subject_words(lens, finding)}{finding.text.title} "
        f"({finding.severity}, {finding.confidence}{cost}; rule {finding.rule})"
    )


def _checks(lens: Lens) -> Sentences:
    if lens.state.diagnosis is None:
        return
    for result in results_of(lens.state):
        text = evidence(result, lens)
        yield 0, f"Check {result.check.label}: {_CHECK_WORDS[result.state]}{f'; {text}' if text else ''}"
