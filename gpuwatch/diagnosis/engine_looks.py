"""One rule at one tick: whether it is due, whether it may look, and what it says."""

from gpuwatch.diagnosis.interface import Abstain, Outcome, Rule
from gpuwatch.diagnosis.lifecycle import Track
from gpuwatch.diagnosis.window import Window
from gpuwatch.diagnosis.window_builder import GpuMemory
from gpuwatch.model import JobState, JobStatus

#: A needed series must have a point this recently.
NEEDS_S = 30.0
#: Spreads the evaluations of rules with longer spacing over the ticks (golden section).
_SPREAD = 0.618


def due(track: Track, window: Window) -> bool:
    """Whether it is this rule's tick; half an interval early counts, ticks are jittered.

    All look at the first tick, then each at its own phase.
    """
    every_s = track.rule.every_s
    now = window.now_s
    if track.due_s == float("-inf"):
        track.due_s = now + every_s * ((_SPREAD * track.rule.number) % 1.0)
        return True
    if now + 0.5 * window.sample.interval_s < track.due_s:
        return False
    following = track.due_s + every_s
    track.due_s = following if following > now else now + every_s
    return True


def look(track: Track, window: Window, memory: GpuMemory) -> bool:
    """Evaluate a GPU's rule whose turn it is; False when it may not be looked at now."""
    rule = track.rule
    if memory.frozen and not rule.without_data:
        return False
    status, trainer = memory.tracker.status, memory.tracker.trainer
    if status.state not in rule.states:
        if status.state is JobState.EPISODE:  # a pause in a job changes nothing
            return False
        track.close_gate(*_gate(status))
    elif rule.scope != "job" or window.job is not None:
        track.take(evaluate(rule, window, track.on), window.now_s)
    elif trainer is None:
        track.close_gate("no job on the GPU")
    elif trainer.process is None and rule.without_process:
        track.take(evaluate(rule, window, track.on), window.now_s)
    elif trainer.process is None:
        track.take(Abstain("the job's process cannot be seen from here"), window.now_s)
    else:
        track.close_gate("the job was just found")
    return True


def _gate(status: JobStatus) -> tuple[str, float | None]:
    if status.state is JobState.NO_JOB:
        return "no job on the GPU", None
    if status.state is JobState.STARTING:
        return "the job is starting", None
    if status.state is JobState.WARMUP:
        return "warming up", status.remaining_s
    if status.state is JobState.PAUSED:
        return "the job pauses", None
    return f"{status.state.value}: not judged", None


def evaluate(rule: Rule, window: Window, active: bool) -> Outcome:
    """The rule's outcome; an abstention where a needed signal is missing or the rule itself fails."""
    missing = _missing(rule, window)
    if missing is not None:
        return missing
    try:
        return rule.evaluate(window, active)
    except Exception as problem:  # one broken rule must not end the diagnosis; it is listed
        return Abstain(f"rule failed: {type(problem).__name__}: {problem}")


def _missing(rule: Rule, window: Window) -> Abstain | None:
    for need in rule.needs:
        entity, key = (window.entity, need) if ":" not in need else ("host:", need.partition(":")[2])
        if window.history.last(entity, key, NEEDS_S) is None:
            return Abstain(window.why_absent(key))
    return None
