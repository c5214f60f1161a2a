"""The rule interface: a rule is a small pure function from a window of history to an outcome.

    def evaluate(window: Window, active: bool) -> Outcome

No clock, no I/O, no state: time comes in with the history. `active` tells whether the finding is
on screen already, so that a rule applies its exit condition (a laxer one) instead of its entry.
Adding a rule touches one file, its texts and its scenarios.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gpuwatch.model import Confidence, Evidence, JobState, Kind, Layer, Severity

if TYPE_CHECKING:
    from gpuwatch.diagnosis.window import Window


@dataclass(frozen=True, slots=True)
class Fires:
    """The condition holds. A loss may leave `severity` None: it then follows from its share."""

    confidence: Confidence
    evidence: tuple[Evidence, ...]
    severity: Severity | None = None
    kind: Kind | None = None  # None: the rule's usual kind
    layer: Layer | None = None  # None: the rule's own
    share_ratio: float | None = None
    share_low_ratio: float | None = None
    share_high_ratio: float | None = None
    coverage_ratio: float = 1.0  # how much of the idle time this cause explains
    variant: str = ""  # chooses between texts of one rule
    gpus: tuple[str, ...] | None = None  # None: the window's own GPU
    parameters: dict[str, float | str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Clear:
    """Looked, and the (exit) condition says no."""

    note: str = ""  # what was seen, for the check line: "gen 4 x16 under load"


@dataclass(frozen=True, slots=True)
class Abstain:
    """Cannot tell: a needed signal is missing. Listed as "not checked", never read as healthy."""

    reason: str
    seconds_left: float | None = None  # set when it is only a matter of more data


Outcome = Fires | Clear | Abstain


#: Data and code rules run in STEADY only; hardware rules mostly always.
STEADY = frozenset({JobState.STEADY})
STEADY_OR_EPISODE = frozenset({JobState.STEADY, JobState.EPISODE})
STEADY_OR_PAUSED = frozenset({JobState.STEADY, JobState.PAUSED})
ANY_STATE: frozenset[JobState] = frozenset(JobState)


@dataclass(frozen=True, slots=True)
class Rule:
    """One registered rule.

    `scope`: "gpu" (once per GPU), "job" (once per GPU with a job; the window has its processes) or
    "host" (once). `needs` names history series of the subject; without any point of them in the last
    30 s the engine abstains on the rule's behalf with the signal's own reason; "host:key" names a
    series of the host. `every_s` spaces evaluations; `enter_evaluations`/`exit_evaluations` ask for
    that many in a row. No finding starts or ends on stale data or on a lost GPU, so rules are not
    evaluated then, unless they are about just that (`without_data`). A "job" rule is not evaluated while
    the job's process is another namespace's, unless it can do without (`without_process`).
    """

    id: str
    number: int  # R-number, only to help reading
    scope: str
    kind: Kind
    evaluate: Callable[["Window", bool], Outcome]
    needs: tuple[str, ...] = ()
    states: frozenset[JobState] = ANY_STATE
    every_s: float = 1.0
    enter_evaluations: int = 1
    exit_evaluations: int = 1
    unavailable: str = ""  # why it cannot be built here; it then always abstains with this reason
    without_data: bool = False  # evaluated also while the GPU is lost or its data are stale
    on_events: bool = False  # also at once when the driver reports an event of this GPU
    of_team: bool = False  # says the same on every GPU of a job: asked on the first, for all of them
    without_process: bool = False  # evaluated also with `window.job` None, while the process is invisible
