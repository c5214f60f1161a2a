"""R58, R59, R63, R64: what driver and kernel report: Xid events, memory errors, stuck processes."""

from gpuwatch.clean import clean
from gpuwatch.diagnosis.interface import Abstain, Clear, Fires, Outcome
from gpuwatch.diagnosis.rules.waiting import UNSEEN_JOB
from gpuwatch.diagnosis.window import Window
from gpuwatch.model import Confidence, Evidence, JobState, Severity

#: Classes after NVIDIA's Xid catalogue; the division is our own. 63 only marks a row and waits for a reset.
CRITICAL_XIDS = frozenset({48, 62, 64, 74, 79, 95, 119, 120, 140})
PROGRAM_XIDS = frozenset({13, 31, 43, 45})

#: Xids about memory rows: double-bit, remapping recorded or failed, contained and uncontained errors.
MEMORY_XIDS = {48: "errors", 63: "pending", 64: "failed", 94: "errors", 95: "errors"}

STUCK_S, STUCK_POINTS = 60.0, 6
DATA_CENTRE = ("data centre", "tesla", "nvidia")


def xid(window: Window, active: bool) -> Outcome:
    """R58: the driver logged an error in the last ten minutes; the worst of them speaks."""
    found = [event for event in window.events if event.kind == "xid" and event.code is not None]
    if not found:
        return Clear("no Xid since the start")
    worst = min(found, key=lambda event: (_rank(event.code or 0), -event.time_s))
    code = worst.code or 0
    severity = (Severity.CRITICAL, Severity.WARNING, Severity.NOTICE)[_rank(code)]
    return Fires(
        Confidence.MEASURED,
        (
            Evidence("xid", "Xid", float(code)),
            Evidence("ago_s", "ago", max(0.0, window.now_s - worst.time_s), "s"),
            Evidence("message", "the driver says", clean(worst.message)),
            Evidence("count", "events", float(len(found)), "", "", 600.0),
        ),
        severity=severity,
        variant="program" if code in PROGRAM_XIDS else "",
        parameters={"code": float(code), "message": clean(worst.message)},
    )


def _rank(code: int) -> int:
    return 0 if code in CRITICAL_XIDS else 2 if code in PROGRAM_XIDS else 1


def ecc_remap(window: Window, active: bool) -> Outcome:
    """R59: memory errors that were not corrected, or rows that wait for being replaced."""
    reading = window.reading
    if reading is None:
        return Clear("")
    known = (
        reading.ecc_uncorrected_count,
        reading.remap_failed,
        reading.remap_pending,
        reading.retired_pending,
        reading.remapped_uncorrected_count,
    )
    if all(value is None for value in known):
        return Abstain("the card has no error-correcting memory, or it is off")
    evidence = [
        Evidence(key, label, float(value))
        for key, label, value in (
            (
                "ecc_uncorrected_count",
                "uncorrected errors since the driver started",
                reading.ecc_uncorrected_count,
            ),
            ("remapped_uncorrected_count", "rows replaced", reading.remapped_uncorrected_count),
        )
        if value is not None
    ]
    if reading.remap_failed:
        return _memory("failed", Severity.CRITICAL, evidence)
    if reading.ecc_uncorrected_count:
        return _memory("errors", Severity.CRITICAL, evidence)
    if reading.remap_pending or reading.retired_pending:
        return _memory("pending", Severity.WARNING, evidence)
    # The event comes at once, the counters are read once in a while.
    logged = [event.code for event in window.events if event.kind == "xid" and event.code in MEMORY_XIDS]
    if logged:
        code = logged[-1] or 0
        variant = MEMORY_XIDS[code]
        severity = Severity.WARNING if variant == "pending" else Severity.CRITICAL
        return _memory(variant, severity, [Evidence("xid", "Xid", float(code)), *evidence])
    return Clear("no memory errors")


def _memory(variant: str, severity: Severity, evidence: list[Evidence]) -> Fires:
    return Fires(Confidence.MEASURED, tuple(evidence), severity=severity, variant=variant)


def stuck_process(window: Window, active: bool) -> Outcome:
    """R63: a process of the job has not left the kernel for a minute."""
    job = window.job
    if job is None:
        return Abstain(UNSEEN_JOB)
    for process in (job.trainer, *job.workers):
        if process.state != "D":
            continue
        values = window.history.present(
            f"process:{process.pid}:{process.start_ticks}", "blocked_ratio", STUCK_S
        )
        watched_s = len(values) * window.sample.interval_s
        if len(values) < STUCK_POINTS or watched_s < 0.9 * STUCK_S or min(values) < 1.0:
            continue
        mounts = (process.facts.data_mounts or ()) if process.facts is not None else ()
        return Fires(
            Confidence.LIKELY,
            (
                Evidence("blocked_s", f"pid {process.pid} in the kernel for", watched_s, "s", ">= 60 s"),
                *(
                    Evidence("mount", "its data lie on", f"{one.filesystem} at {one.path}")
                    for one in mounts[:1]
                ),
            ),
            severity=Severity.WARNING,
            parameters={"pid": float(process.pid), "command": clean(process.command)},
        )
    return Clear("")


def persistence_off(window: Window, active: bool) -> Outcome:
    """R64: the driver unloads between jobs. A state, on data-centre cards only."""
    info = window.info
    if info is None or info.persistence_mode is None:
        return Abstain("persistence mode is not known")
    if info.persistence_mode or (info.brand or "") not in DATA_CENTRE:
        return Clear("")
    if window.status is None or window.status.state is not JobState.NO_JOB:
        return Clear("")
    return Fires(
        Confidence.MEASURED,
        (Evidence("persistence_mode", "persistence mode", "off"),),
        severity=Severity.STATE,
    )
