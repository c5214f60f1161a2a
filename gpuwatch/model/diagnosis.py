"""What the diagnosis says: shapes, job states, findings, ledger, verdict, checks."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from gpuwatch.model.sample import ProcessKey


class Layer(StrEnum):
    HARDWARE = "hardware"
    ENVIRONMENT = "environment"
    DATA = "data"
    CODE = "code"


#: The order of search: the earlier look is the cheaper one.
LAYERS = (Layer.HARDWARE, Layer.ENVIRONMENT, Layer.DATA, Layer.CODE)


class Severity(StrEnum):
    STATE = "state"  # explains, never alarms
    NOTICE = "notice"
    WARNING = "warning"
    CRITICAL = "critical"


SEVERITIES = (Severity.STATE, Severity.NOTICE, Severity.WARNING, Severity.CRITICAL)


def severity_at_least(severity: Severity, floor: Severity) -> bool:
    return SEVERITIES.index(severity) >= SEVERITIES.index(floor)


class Kind(StrEnum):
    LOSS = "loss"  # a measured share of wall time
    RISK = "risk"  # health
    OPPORTUNITY = "opportunity"  # may be faster, the gain cannot be measured from outside
    STATE = "state"


class Confidence(StrEnum):
    MEASURED = "measured"  # a counter says so
    LIKELY = "likely"  # two independent signals
    POSSIBLE = "possible"  # one signal, or gaps unresolved


class JobState(StrEnum):
    NO_JOB = "no job"
    STARTING = "starting"
    WARMUP = "warm-up"
    STEADY = "steady"
    EPISODE = "episode"  # a pause of 5 s or more inside a steady job
    PAUSED = "paused"
    SERVING = "serving"


@dataclass(frozen=True, slots=True)
class JobStatus:
    """The job on one GPU. `trainer` is None where no compute process is visible."""

    gpu: str
    state: JobState
    since_s: float
    trainer: ProcessKey | None = None
    remaining_s: float | None = None  # of warm-up, where it is known


class ShapeKind(StrEnum):
    IDLE = "idle"
    SATURATED = "saturated"
    PULSED = "pulsed"
    EPISODIC = "episodic"
    FLAT_LOW = "flat-low"
    FLAT_HIGH = "flat-high"
    VARIABLE = "variable"
    UNKNOWN = "unknown"  # too few points


@dataclass(frozen=True, slots=True)
class Shape:
    """The utilization of a window as a measured object. Ratios 0..1, times in seconds."""

    kind: ShapeKind
    sample_count: int = 0
    duration_s: float = 0.0
    resolution_s: float | None = None  # spacing of the points
    buffered: bool = False  # from the driver's own sub-second samples
    mean_ratio: float | None = None
    low_ratio: float | None = None
    high_ratio: float | None = None
    stall_ratio: float | None = None
    stall_low_ratio: float | None = None  # interval of the stall share
    stall_high_ratio: float | None = None
    cycles: int = 0
    period_s: float | None = None  # only where it can be told
    regular: bool | None = None
    gap_median_s: float | None = None
    gap_p90_s: float | None = None
    standard_deviation_ratio: float | None = None


@dataclass(frozen=True, slots=True)
class Evidence:
    """One measured fact behind a finding. `value` is raw, in `unit`; views format it."""

    key: str  # "gapcpu_main_cores", a name that stays
    label: str
    value: float | str | None
    unit: str = ""
    threshold: str = ""  # in words: ">= 0.8"
    window_s: float | None = None
    metric: str | None = None  # the history series to draw, if there is one


@dataclass(frozen=True, slots=True)
class FindingText:
    title: str  # one line, without a full stop
    because: tuple[str, ...] = ()
    wrong_if: str = ""
    settle: str = ""
    advice: tuple[str, ...] = ()  # steps, the first is the next one to take
    short_advice: str = ""  # the first step in at most 36 characters


@dataclass(frozen=True, slots=True)
class Finding:
    """An event with a start and an end. (rule, subject, started_s) is its identity."""

    rule: str
    subject: str  # "gpu:<uuid>", "host", "job:<pid>:<start>"
    gpus: tuple[str, ...]
    layer: Layer
    check: str
    kind: Kind
    severity: Severity
    confidence: Confidence
    started_s: float
    updated_s: float
    text: FindingText
    process: ProcessKey | None = None
    ended_s: float | None = None
    share_ratio: float | None = None  # of wall time, for a loss
    share_low_ratio: float | None = None
    share_high_ratio: float | None = None
    worst_share_ratio: float | None = None
    speedup: float | None = None  # "about", if the named cause vanished
    speedup_max: float | None = None  # "at most"
    evidence: tuple[Evidence, ...] = ()
    parameters: Mapping[str, float | str] = field(default_factory=dict)
    intermittent: int | None = None  # times in two minutes, once it flaps
    banner: bool = False  # shown above the verdict
    preliminary: bool = False


class LedgerKey(StrEnum):
    """In booking order; every moment is booked once."""

    UNKNOWN = "unknown"
    WAITING_PEERS = "waiting for other GPUs"
    FOREIGN = "taken by others"
    SLOWED = "slowed"
    BUSY = "busy"
    PAUSE = "pause"
    WAITING = "waiting"  # for the cause named in the part, or unattributed
    IDLE = "idle"  # no job


@dataclass(frozen=True, slots=True)
class LedgerPart:
    key: LedgerKey
    ratio: float
    layer: Layer | None = None
    cause: str | None = None  # rule id
    label: str = ""  # "data loader", "heat", "not proven"


@dataclass(frozen=True, slots=True)
class Ledger:
    """Where one GPU's time of the window went. The parts sum to 1."""

    gpu: str
    window_s: float
    parts: tuple[LedgerPart, ...]


@dataclass(frozen=True, slots=True)
class LedgerSpans:
    """The same subject's ledger over the last minute, the last 15 minutes, and since its job began."""

    minute: Ledger
    quarter: Ledger
    run: Ledger


@dataclass(frozen=True, slots=True)
class NotChecked:
    rule: str
    check: str
    reason: str
    subject: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """One line, and the three lines under it. `layer` is None for a state ("warming up, 34 s")."""

    headline: str  # "the GPU waits 58-66 % of the time"
    detail: str = ""  # "batches are prepared in the main process (0 workers); about 2.6x, at most 2.9x"
    layer: Layer | None = None
    second_layer: Layer | None = None  # named too when the lead is under 5 points
    confidence: Confidence | None = None
    severity: Severity = Severity.STATE
    rule: str | None = None
    subject: str | None = None
    because: tuple[str, ...] = ()
    wrong_if: str = ""
    settle: str = ""
    action: str = ""  # the next step, one line
    after_that: str = ""
    since_s: float = 0.0
    preliminary: bool = False


class CheckState(StrEnum):
    FINE = "fine"  # looked, nothing found
    NAMED = "named"  # a cause is named here
    POSSIBLE = "possible"  # possible cause, or the next lever
    WAITING = "waiting"  # not enough data yet
    UNMEASURABLE = "unmeasurable"


@dataclass(frozen=True, slots=True)
class Check:
    number: int
    key: str  # "ldr"
    label: str  # "data loader"
    layer: Layer


#: The essay's rows, always in this order: position is learned.
CHECKS = (
    Check(1, "pow", "power and heat", Layer.HARDWARE),
    Check(2, "lnk", "PCIe link", Layer.HARDWARE),
    Check(3, "env", "software", Layer.ENVIRONMENT),
    Check(4, "cpu", "CPU and sharing", Layer.ENVIRONMENT),
    Check(5, "ldr", "data loader", Layer.DATA),
    Check(6, "dsk", "disk and network", Layer.DATA),
    Check(7, "cod", "training code", Layer.CODE),
    Check(8, "mgp", "several GPUs", Layer.CODE),
)


@dataclass(frozen=True, slots=True)
class CheckResult:
    check: Check
    state: CheckState
    evidence: str  # "no limit in 10 min; 61-64 °C", or the reason why not
    seconds_left: float | None = None
    rule: str | None = None  # the finding behind it


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The result of one tick."""

    time_s: float
    verdict: Verdict
    checks: tuple[CheckResult, ...] = ()
    findings: tuple[Finding, ...] = ()  # active, worst first
    ended: tuple[Finding, ...] = ()  # newest first
    ledgers: Mapping[str, Ledger] = field(default_factory=dict)  # by GPU uuid
    jobs: Mapping[str, JobStatus] = field(default_factory=dict)
    shapes: Mapping[str, Shape] = field(default_factory=dict)
    not_checked: tuple[NotChecked, ...] = ()
    spans: Mapping[str, LedgerSpans] = field(default_factory=dict)  # by GPU uuid, and "job:<pid>:<start>"
