"""R44, R49, R50: long regular pauses, a run that became slower, a card that is held for nothing."""

from statistics import median

from gpuwatch.diagnosis.interface import Abstain, Clear, Fires, Outcome
from gpuwatch.diagnosis.rules.code.short_checkpoints import CHECKPOINT_BYTES_PER_S, written_gaps
from gpuwatch.diagnosis.rules.common import shape_evidence
from gpuwatch.diagnosis.rules.waiting import Waiting, waiting
from gpuwatch.diagnosis.window import Episode, Window
from gpuwatch.model import Confidence, Evidence, JobState, Severity

# -- episode-overhead: numbers our own
PAUSES_S, PAUSES_AGE_S = 1800.0, 600.0
PAUSES_LEAST, PAUSES_RATIO, PAUSES_EXIT_RATIO = 2, 0.05, 0.03
#: Before ten minutes: more pauses, all of one certain kind, that cost more.
YOUNG_LEAST, YOUNG_RATIO, YOUNG_AGE_S = 3, 0.10, 60.0
#: What a loader that takes seconds for a batch does not look like.
CERTAIN_KINDS = frozenset({"checkpoint", "epoch"})
EVALUATES_CORES, EVALUATES_READ = 0.80, 1e6

# -- slower-than-itself: a change counts from 10 % on (Greyhound accepts a change point from there)
PACE_STEADY_S, PACE_RECENT, PACE_BEST = 900.0, 4, 5
SLOWER, SLOWER_EXIT, SLOWER_WARNING = 0.10, 0.05, 0.15
PACE_SPREAD = 0.10  # of their median; else the pace is too uneven to compare

# -- gpu-held-idle: 15 min are our own
HELD_S, HELD_BYTES, HELD_UTILIZATION, HELD_CORES = 900.0, 500 * 1024**2, 0.03, 0.10


def episode_overhead(window: Window, active: bool) -> Outcome:
    """R44: pauses of 5 s and longer that sum up, or many short ones for checkpoints. A single one never
    alarms."""
    long = _long_pauses(window, active)
    if isinstance(long, Fires):
        return long
    return _short_checkpoints(window, active) or long


def _short_checkpoints(window: Window, active: bool) -> Fires | None:
    """The gaps of the last minute, where they are checkpoints."""
    job = window.job
    gaps = None if job is None else written_gaps(window, job, active)
    if gaps is None:
        return None
    found = waiting(window, active)
    if not isinstance(found, Waiting):
        return None
    seen = window.shape is not None and window.shape.buffered
    return Fires(
        Confidence.LIKELY if seen else Confidence.POSSIBLE,
        (
            *shape_evidence(window),
            Evidence("gap_count", "gaps with writing", float(gaps.count), "", ">= 3", 60.0),
            Evidence("write_bytes_per_s", "written in them", gaps.write_bytes_per_s, "B/s", ">= 20 MB/s"),
            Evidence("coverage_ratio", "of all idle time", gaps.coverage, "ratio", ">= 80 %", 60.0),
        ),
        share_ratio=found.share,
        share_low_ratio=found.low,
        share_high_ratio=found.high,
        coverage_ratio=gaps.coverage,
        variant="short",
        parameters={"share": found.share, "every_s": gaps.every_s, "pause_s": gaps.gap_s},
    )


def _long_pauses(window: Window, active: bool) -> Outcome:
    span = min(PAUSES_S, window.steady_s)
    ended = [one for one in window.episodes if one.end_s is not None and one.end_s > window.now_s - span]
    seconds = sum((one.end_s or 0.0) - max(one.start_s, window.now_s - span) for one in ended)
    share = seconds / span if span > 0 else 0.0
    if window.steady_s < PAUSES_AGE_S and not (active or _tells_early(window, ended, share)):
        return Abstain("pauses of the job", seconds_left=PAUSES_AGE_S - window.steady_s)
    if len(ended) < PAUSES_LEAST or share < (PAUSES_EXIT_RATIO if active else PAUSES_RATIO):
        return Clear(f"{share:.0%} of the time in pauses".replace("%", " %") if ended else "")
    kind = _kind(ended)
    if kind not in CERTAIN_KINDS and _waits_for_data(window):
        return Clear("these gaps are waiting for data")
    lengths = [(one.end_s or 0.0) - one.start_s for one in ended]
    writes = [one.write_bytes_per_s for one in ended if one.write_bytes_per_s is not None]
    evidence = [
        Evidence("pauses_ratio", "in pauses", share, "ratio", ">= 5 %", span),
        Evidence("pause_count", "pauses", float(len(ended)), "", ">= 2", span),
        Evidence("pause_s", "each about", median(lengths), "s"),
    ]
    if writes:
        evidence.append(
            Evidence("write_bytes_per_s", "written meanwhile", median(writes), "B/s", ">= 20 MB/s")
        )
    return Fires(
        Confidence.LIKELY,
        tuple(evidence),
        severity=Severity.WARNING if share >= SLOWER_WARNING else Severity.NOTICE,
        share_ratio=share,
        variant=kind,
        parameters={"share": share, "count": float(len(ended)), "pause_s": median(lengths)},
    )


def _waits_for_data(window: Window) -> bool:
    return any(rule.startswith("loader-") and rule != "loader-respawn" for rule in window.active)


def _tells_early(window: Window, ended: list[Episode], share: float) -> bool:
    kinds = {_kind_of(one) for one in ended}
    alike = len(ended) >= YOUNG_LEAST and len(kinds) == 1 and kinds <= CERTAIN_KINDS
    return alike and share >= YOUNG_RATIO and window.steady_s >= YOUNG_AGE_S


def _kind(episodes: list[Episode]) -> str:
    """What most of the pauses were: "checkpoint", "epoch", "evaluation" or "" for unknown."""
    kinds = [_kind_of(one) for one in episodes]
    best = max(set(kinds), key=lambda kind: (kinds.count(kind), kind))
    return best if kinds.count(best) * 2 > len(kinds) else ""


def _kind_of(one: Episode) -> str:
    if one.write_bytes_per_s is not None and one.write_bytes_per_s >= CHECKPOINT_BYTES_PER_S:
        return "checkpoint"
    if one.new_workers:
        return "epoch"
    runs = one.main_cpu_cores is not None and one.main_cpu_cores >= EVALUATES_CORES
    reads = one.read_bytes_per_s is not None and one.read_bytes_per_s >= EVALUATES_READ
    return "evaluation" if runs and reads else ""


def slower_than_itself(window: Window, active: bool) -> Outcome:
    """R49: the pace of the last minutes against the best five of this run."""
    if window.steady_s < PACE_STEADY_S:
        return Abstain("the pace of this run", seconds_left=PACE_STEADY_S - window.steady_s)
    alone = window.reading is not None and len(window.reading.processes or ()) <= 1
    periods = [(one.time_s, one.period_s) for one in window.paces if one.period_s is not None]
    rates = (
        [(one.time_s, 1.0 / one.rx_bytes_per_s) for one in window.paces if one.rx_bytes_per_s]
        if alone
        else []
    )
    series = periods if len(periods) >= PACE_RECENT + PACE_BEST else rates
    if len(series) < PACE_RECENT + PACE_BEST:
        return Abstain("neither a period of the pulses nor steady copies show how fast the job goes")
    recent = [value for _, value in series[-PACE_RECENT:]]
    earlier = series[:-PACE_RECENT]
    best, best_s = _best(earlier)
    if _spread(recent) > PACE_SPREAD or best is None:
        return Clear("the pace is uneven")
    worse = median(recent) / best - 1.0
    if worse < (SLOWER_EXIT if active else SLOWER):
        return Clear("as fast as before")
    changed_s = next(
        (time for time, value in series if time > best_s and value >= best * (1 + SLOWER / 2)), 0.0
    )
    return Fires(
        Confidence.POSSIBLE,
        (
            Evidence("slower_ratio", "slower by", worse, "ratio", ">= 10 %", 60.0 * PACE_RECENT),
            Evidence("changed_ago_s", "changed about", max(0.0, window.now_s - changed_s), "s"),
        ),
        severity=Severity.WARNING if worse >= SLOWER_WARNING else Severity.NOTICE,
        share_ratio=worse / (1 + worse),
        variant="" if series is periods else "copies",
        parameters={"slower": worse, "ago_s": max(0.0, window.now_s - changed_s)},
    )


def _best(series: list[tuple[float, float]]) -> tuple[float | None, float]:
    """Median of the best five minutes in a row that are even, and when they ended."""
    best, at = None, 0.0
    for start in range(len(series) - PACE_BEST + 1):
        part = [value for _, value in series[start : start + PACE_BEST]]
        if _spread(part) <= PACE_SPREAD and (best is None or median(part) < best):
            best, at = median(part), series[start + PACE_BEST - 1][0]
    return best, at


def _spread(values: list[float]) -> float:
    return (max(values) - min(values)) / median(values) if values and median(values) > 0 else 1.0


def gpu_held_idle(window: Window, active: bool) -> Outcome:
    """R50: memory is held, nothing runs on the GPU or the CPU, for a quarter of an hour."""
    status, job = window.status, window.job
    if status is None or status.state is not JobState.PAUSED or job is None:
        return Clear("")
    values = window.present("utilization_ratio", HELD_S)
    held = next(
        (
            p.memory_bytes
            for p in (window.reading.processes or () if window.reading else ())
            if p.pid == job.trainer.pid
        ),
        None,
    )
    if not values or held is None:
        return Abstain("memory of the process or utilization is not known")
    watched_s = len(values) * window.sample.interval_s
    if watched_s < 0.95 * HELD_S:
        return Abstain("how long the card rests", seconds_left=HELD_S - watched_s)
    if held < HELD_BYTES or max(values) >= HELD_UTILIZATION:
        return Clear("")
    cores = job.tree_cpu_cores
    if cores is None:
        return Abstain(f"CPU of the job: {window.why_absent('tree_cpu_cores')}")
    if cores >= HELD_CORES:
        return Clear("the job works on the CPU")
    notebook = "ipykernel" in job.trainer.command or "jupyter" in job.trainer.command
    return Fires(
        Confidence.MEASURED,
        (
            Evidence("held_bytes", "memory held", float(held), "B", ">= 500 MiB"),
            Evidence("idle_s", "nothing runs since", window.now_s - status.since_s + 120.0, "s", ">= 15 min"),
            Evidence("tree_cpu_cores", "the job uses", cores, "cores", "< 0.1", 30.0),
        ),
        severity=Severity.NOTICE,
        variant="notebook" if notebook else "",
        parameters={"held": float(held), "pid": float(job.trainer.pid), "command": job.trainer.command},
    )
