"""One rule at one tick: whether it is due, whether it may look, and what it says."""

from collections.abc import Sequence
from dataclasses import dataclass

from gpuwatch.diagnosis.engine_windows import Windows
from gpuwatch.diagnosis.interface import Abstain, Outcome, Rule
from gpuwatch.diagnosis.lifecycle import Track
from gpuwatch.diagnosis.window import Window
from gpuwatch.diagnosis.window_builder import GpuMemory
from gpuwatch.model import JobState, JobStatus

#: A needed series must have a point this recently.
NEEDS_S = 30.0
#: Settled rules with this spacing, the usual one, look half as often.
HALVED_S = 5.0


@dataclass(slots=True)
class _Group:
    """Rules with one spacing."""

    every_s: float
    tracks: list[Track]
    due_s: float
    odd: bool = False  # every second turn


class Turns:
    """Whose turn it is among the rules of one GPU, or of the host.

    All look at the first tick, then those of one GPU together (they share its means), the GPUs in turn by
    `offset_s`. Settled ones leave out every second turn. Rules about a GPU that says nothing look at such
    ones only, and until it is over.
    """

    def __init__(self, tracks: Sequence[Track], offset_s: float | None) -> None:
        """`offset_s` None: the host's."""
        plain = [track for track in tracks if not track.rule.unavailable]
        self._silent = [track for track in plain if track.rule.without_data and offset_s is not None]
        self._awaiting = [track for track in plain if track.rule.on_events]
        by_spacing: dict[float, list[Track]] = {}
        for track in plain:
            if track not in self._silent:
                by_spacing.setdefault(track.rule.every_s, []).append(track)
        self._groups = [_Group(every_s, found, float("-inf")) for every_s, found in by_spacing.items()]
        self._offset_s = offset_s or 0.0

    def due(self, now: float, interval_s: float, frozen: bool, event: bool = False) -> list[Track]:
        """The tracks to look at in this tick; half an interval early counts, ticks are jittered.

        `event`: the driver has just reported one of this GPU.
        """
        found = [track for track in self._silent if frozen or track.on or track.outcome is None]
        for group in self._groups:
            if group.due_s == float("-inf"):
                group.due_s = now + (self._offset_s % group.every_s or group.every_s)
            elif now + 0.5 * interval_s < group.due_s:
                continue
            else:
                following = group.due_s + group.every_s
                group.due_s = following if following > now else now + group.every_s
            group.odd = not group.odd
            all_look = group.odd or group.every_s != HALVED_S
            found += group.tracks if all_look else [track for track in group.tracks if not track.settled]
        if event:
            found += [track for track in self._awaiting if track not in found]
        return found


def look(
    track: Track,
    windows: Windows,
    owner: str,
    memory: GpuMemory,
    now: float,
    said: Outcome | None = None,
) -> bool:
    """Evaluate a GPU's rule whose turn it is; False when it may not be looked at now.

    `said`: what the rule found already, asked about the first GPU of this job for all of them.
    """
    rule = track.rule
    if memory.frozen and not rule.without_data:
        return False
    status, trainer = memory.tracker.status, memory.tracker.trainer
    if status.state not in rule.states:
        if status.state is JobState.EPISODE:  # a pause in a job changes nothing
            return False
        track.close_gate(*_gate(status))
    elif said is not None:
        track.take(said, now)
    elif rule.scope != "job" or memory.job is not None:
        track.take(evaluate(rule, windows[owner], track.on), now)
    elif trainer is None:
        track.close_gate("no job on the GPU")
    elif trainer.process is None and rule.without_process:
        track.take(evaluate(rule, windows[owner], track.on), now)
    elif trainer.process is None:
        track.take(Abstain("the job's process cannot be seen from here"), now)
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
