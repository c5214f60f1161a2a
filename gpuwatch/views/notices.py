"""What is said where figures should be: the empty states, the banners, the screen that is too small."""

from gpuwatch.model import DriverState, Event, Finding, JobState, Severity
from gpuwatch.state import State
from gpuwatch.views import format as words
from gpuwatch.views.lens import Lens
from gpuwatch.views.options import Options
from gpuwatch.views.rows import Row, Span, filled, row, safe, shorten, wrap

#: An event stays in the banner this long.
EVENT_S = 60.0
#: Events a person should see though no finding need be about them.
SHOWN_EVENTS = {
    "gpu-back": "ok",
    "gpu-added": "ok",
    "driver-back": "ok",
    "gpu-lost": "warn",
    "driver-lost": "warn",
    "xid": "warn",
    "clock-jump": "warn",
    "diagnosis-failed": "bad",
    "observer-dropped": "bad",
}


def no_gpu_rows(lens: Lens, width: int, height: int) -> list[Row]:
    """No GPU to show: why, and what to do, each in a sentence."""
    sample, glyphs = lens.state.sample, lens.glyphs
    if sample is None or (sample.driver.state is DriverState.STARTING and not sample.driver.message):
        return [row([(f"reading GPUs {glyphs.ellipsis}", "dim")], width)]
    driver = sample.driver
    diagnosis = lens.state.diagnosis
    if diagnosis is not None and driver.message and diagnosis.verdict.detail == driver.message:
        return [
            row([(shorten("No figures of a GPU; the host is shown below.", width, glyphs), "dim")], width)
        ]
    message = safe(driver.message, glyphs) or "No GPU is visible here."
    lines = [(text, "value") for text in wrap(message, width, max(1, height - 1), glyphs)]
    left = height - len(lines)
    if driver.advice and left > 0:
        lines += [(text, "accent") for text in wrap(safe(driver.advice, glyphs), width, left, glyphs)]
    return filled([row([line], width) for line in lines], width, height)


def banner_lines(state: State, options: Options) -> list[tuple[str, str]]:
    """(text, role) of what stands above the verdict: banners of the diagnosis, the driver, late events."""
    lens = Lens(state, options)
    lines: list[tuple[str, str]] = []
    diagnosis = state.diagnosis
    about: set[str] = set()
    for finding in diagnosis.findings if diagnosis is not None else ():
        if finding.banner:
            lines.append((_banner_text(lens, finding), _severity_role(finding.severity)))
            about.add(finding.rule)
    sample = state.sample
    driver = None if sample is None else sample.driver
    # With GPUs on the screen a driver in trouble is news; without them the GPU panel says it.
    if driver is not None and lens.gpus and driver.state is not DriverState.OK and driver.message:
        lines.append((f"{driver.message} {driver.advice}".strip(), "bad"))
    lines += [_event_line(lens, event) for event in _late_events(state) if event.kind not in about]
    return [(safe(text, lens.glyphs), role) for text, role in lines]


def _banner_text(lens: Lens, finding: Finding) -> str:
    step = finding.text.short_advice or next(iter(finding.text.advice), "")
    text = finding.text.title
    numbers = [str(index) for uuid in finding.gpus if (index := lens.index_of(uuid)) is not None]
    if numbers and len(lens.gpus) > 1 and "GPU" not in text:
        text = f"GPU {', '.join(numbers)}: {text}"
    return f"{text}; {step}" if step else text


def _severity_role(severity: Severity) -> str:
    return {Severity.CRITICAL: "bad", Severity.WARNING: "warn"}.get(severity, "value")


def _late_events(state: State) -> list[Event]:
    fresh = [e for e in state.events if e.kind in SHOWN_EVENTS and 0 <= state.now_s - e.time_s <= EVENT_S]
    return fresh[::-1]


def _event_line(lens: Lens, event: Event) -> tuple[str, str]:
    ago = words.age(max(0.0, lens.state.now_s - event.time_s))
    return f"{event.message} ({ago} ago)", SHOWN_EVENTS[event.kind]


def banner(state: State, options: Options, width: int, height: int) -> list[Row]:
    """The panel `banner`."""
    glyphs = Lens(state, options).glyphs
    rows: list[Row] = []
    for text, role in banner_lines(state, options)[: max(0, height)]:
        mark = {"bad": glyphs.cross, "warn": "!"}.get(role, glyphs.dot)
        rows.append(row([(f"{mark} ", role), (shorten(text, max(1, width - 2), glyphs), role)], width))
    return rows


def small(state: State, options: Options, width: int, height: int) -> list[Row]:
    """The panel `small`: the screen is below what can be laid out, so the verdict's word and its line."""
    glyphs = Lens(state, options).glyphs
    diagnosis = state.diagnosis
    if diagnosis is None:
        lines: list[Span] = [(f"reading{glyphs.ellipsis}", "dim")]
    else:
        verdict = diagnosis.verdict
        word = str(verdict.layer).upper() if verdict.layer is not None else ""
        role = _severity_role(verdict.severity)
        headline = safe(verdict.headline, glyphs)
        lines = [(word, role)] if word else []
        lines += [(text, "value") for text in wrap(headline, width, max(1, height - len(lines)), glyphs)]
    lines.append(("too small", "dim"))
    return filled([row([(shorten(t, width, glyphs), role)], width) for t, role in lines], width, height)


def waiting_for_work(state: State) -> float | None:
    """Seconds for which no GPU has had a job; None while one has."""
    jobs = state.diagnosis.jobs.values() if state.diagnosis is not None else ()
    if not jobs or any(job.state is not JobState.NO_JOB for job in jobs):
        return None
    return min(max(0.0, state.now_s - job.since_s) for job in jobs)
