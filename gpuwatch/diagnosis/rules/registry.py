"""How a rule is registered: the engine's record of it, with its number from the one table."""

from collections.abc import Callable

from gpuwatch.diagnosis.catalogue import NUMBERS
from gpuwatch.diagnosis.interface import ANY_STATE, Outcome, Rule
from gpuwatch.diagnosis.window import Window
from gpuwatch.model import JobState, Kind


def rule(
    rule_id: str,
    scope: str,
    kind: Kind,
    evaluate: Callable[[Window, bool], Outcome],
    *,
    needs: tuple[str, ...] = (),
    states: frozenset[JobState] = ANY_STATE,
    every_s: float = 5.0,
    enter: int = 1,
    leave: int = 1,
    without_data: bool = False,
    without_process: bool = False,
    on_events: bool = False,
    of_team: bool = False,
) -> Rule:
    """A rule that can be built here. KeyError for an id without a place in the catalogue."""
    return Rule(
        id=rule_id,
        number=NUMBERS[rule_id],
        scope=scope,
        kind=kind,
        evaluate=evaluate,
        needs=needs,
        states=states,
        every_s=every_s,
        enter_evaluations=enter,
        exit_evaluations=leave,
        without_data=without_data,
        without_process=without_process,
        on_events=on_events,
        of_team=of_team,
    )
