"""R19 and R21: the job gets less CPU than it asks for: a quota, or other programs on the host."""

from gpuwatch.clean import clean
from gpuwatch.diagnosis.interface import Abstain, Clear, Fires, Outcome
from gpuwatch.diagnosis.rules.common import idle_coverage, pulsed
from gpuwatch.diagnosis.rules.waiting import RUNS_IN_GAPS, main_gap, wanted_in_gaps
from gpuwatch.diagnosis.window import JobView, Window
from gpuwatch.model import Confidence, Evidence, JobState, ProcessReading, ProcessRole, Severity

WINDOW_S = 30.0
UNSEEN_JOB = "the job's process cannot be seen from here"

# -- cpu-quota-throttled: counters of the control group (kernel, cgroup-v2.rst); numbers our own.
#    Short bursts are throttled at a low average too, hence both conditions.
THROTTLED_RATIO, THROTTLED_EXIT_RATIO = 0.20, 0.05
QUOTA_USED_RATIO = 0.85
THROTTLED_CRITICAL_RATIO = 0.60
#: Attribution needs ticks in which throttling was felt.
THROTTLED_TICK_RATIO = 0.05

# -- host-cpu-contention: steal after netdata's alarm; the rest is our own judgement
OTHERS_RATIO, PRESSURE_RATIO, DELAY_RATIO = 0.40, 0.20, 0.20
STEAL_RATIO = 0.10
EXIT_PART = 0.5
TOP_PROCESSES = 3


def cpu_quota_throttled(window: Window, active: bool) -> Outcome:
    """R19: the control group's CPU quota stops the job for part of each period."""
    job = window.job
    if job is None:
        return Abstain(UNSEEN_JOB)
    cgroup = job.trainer.cgroup
    if cgroup is None:
        reason = job.trainer.absent.get("cgroup", "not told")
        return Abstain(f"control group: {reason}")
    quota = cgroup.quota_cores
    if quota is None:
        return Clear("no CPU quota")
    throttled = window.history.mean(_entity(job.trainer), "throttled_ratio", WINDOW_S)
    if throttled is None:
        if cgroup.throttled_periods is None:
            return Abstain("the control group does not count throttled periods")
        return Abstain("counting throttled periods", seconds_left=WINDOW_S)
    used = job.tree_cpu_cores
    if used is None:
        return Abstain(f"CPU of the job: {window.why_absent('tree_cpu_cores')}")
    holds = throttled >= (THROTTLED_EXIT_RATIO if active else THROTTLED_RATIO)
    if not holds or (not active and used < QUOTA_USED_RATIO * quota):
        return Clear(f"quota of {quota:g} cores is enough")
    return _throttled(window, job, quota, throttled, used)


def _throttled(window: Window, job: JobView, quota: float, throttled: float, used: float) -> Fires:
    waits = pulsed(window) and throttled >= THROTTLED_RATIO
    starting = window.status is not None and window.status.state is JobState.STARTING
    severity = Severity.STATE if starting else Severity.NOTICE
    share, coverage = None, 0.0
    if waits and window.shape is not None:
        share = window.shape.stall_ratio
        values = window.history.values(_entity(job.trainer), "throttled_ratio", WINDOW_S)
        felt = [None if value != value else value >= THROTTLED_TICK_RATIO for value in values]
        coverage = min(idle_coverage(window, felt, WINDOW_S) or 0.0, _queueing_part(window))
        severity = Severity.CRITICAL if throttled >= THROTTLED_CRITICAL_RATIO else Severity.WARNING
    spent_s = _throttled_s(window, job.trainer)
    evidence = (
        Evidence("quota_cores", "CPU quota", quota, "cores"),
        Evidence("tree_cpu_cores", "the job uses", used, "cores", f">= {QUOTA_USED_RATIO:.0%} of it", 30.0),
        Evidence("throttled_ratio", "periods throttled", throttled, "ratio", ">= 20 %", WINDOW_S),
        *(
            [Evidence("throttled_s", "stopped for", spent_s, "s", "", WINDOW_S)]
            if spent_s is not None
            else []
        ),
        *([Evidence("stall_ratio", "GPU waits", share, "ratio", "", 60.0)] if share is not None else []),
    )
    shape = window.shape
    return Fires(
        confidence=Confidence.MEASURED,
        evidence=evidence,
        severity=severity,
        share_ratio=share,
        share_low_ratio=shape.stall_low_ratio if share is not None and shape is not None else None,
        share_high_ratio=shape.stall_high_ratio if share is not None and shape is not None else None,
        coverage_ratio=coverage,
        variant="" if waits else "fed",
        parameters={"quota_cores": quota, "used_cores": used, "throttled_ratio": throttled},
    )


def _throttled_s(window: Window, trainer: ProcessReading) -> float | None:
    values = window.history.present(_entity(trainer), "throttled_s_per_s", WINDOW_S)
    return sum(values) * window.sample.interval_s if values else None


def _entity(process: ProcessReading) -> str:
    return f"process:{process.pid}:{process.start_ticks}"


def host_cpu_contention(window: Window, active: bool) -> Outcome:
    """R21: programs outside the job, or the hypervisor, take the cores it wants."""
    job = window.job
    if job is None:
        return Abstain(UNSEEN_JOB)
    part = EXIT_PART if active else 1.0
    steal = window.host_mean("cpu_steal_ratio", WINDOW_S)
    if steal is not None and steal >= part * STEAL_RATIO:
        return _contended(window, job, None, steal, "steal")
    others = _others_ratio(window, job)
    if others is None:
        return Abstain("CPU use of the machine or of the job is not known")
    pressure, delay = window.host_mean("cpu_pressure_ratio", WINDOW_S), job.tree_wait_ratio
    if others < part * OTHERS_RATIO:
        return Clear("no other program takes the CPU")
    if pressure is None and delay is None:
        return Abstain("neither CPU pressure nor run-queue wait can be read")
    if pressure is not None and pressure < part * PRESSURE_RATIO:
        return Clear("other programs leave cores free")
    if delay is not None and delay < part * DELAY_RATIO:
        return Clear("the job gets its cores in spite of others")
    return _contended(window, job, others, steal or 0.0, "")


def _others_ratio(window: Window, job: JobView) -> float | None:
    """Share of all cores used by processes outside the job and its ranks on other GPUs."""
    total = window.host_mean("cpu_ratio", WINDOW_S)
    cores = window.machine.host.logical_cores
    if total is None or not cores or job.tree_cpu_cores is None:
        return None
    own = job.tree_cpu_cores
    for sibling in window.siblings:
        same = sibling.job is None or sibling.job.trainer.key == job.trainer.key
        if not same and sibling.job is not None:
            own += sibling.job.tree_cpu_cores or 0.0
    return max(0.0, total - own / cores)


def _queueing_part(window: Window) -> float:
    """Of the gaps in which the main thread prepares data itself: the part it spends without a core."""
    gap = main_gap(window)
    if gap is None or gap.gap_wait_cores is None or wanted_in_gaps(gap) < RUNS_IN_GAPS:
        return 1.0
    return max(0.0, min(1.0, gap.gap_wait_cores / wanted_in_gaps(gap)))


def _contended(window: Window, job: JobView, others: float | None, steal: float, variant: str) -> Fires:
    shape = window.shape
    waits = pulsed(window) and shape is not None
    share = shape.stall_ratio if waits and shape is not None else None
    coverage = 0.0
    if waits:
        key, least = ("cpu_steal_ratio", STEAL_RATIO) if variant else ("cpu_pressure_ratio", PRESSURE_RATIO)
        values = window.history.values("host:", key, WINDOW_S)
        felt = [None if value != value else value >= EXIT_PART * least for value in values]
        coverage = min(idle_coverage(window, felt, WINDOW_S) or 0.0, _queueing_part(window))
    both = window.host_mean("cpu_pressure_ratio", WINDOW_S) is not None and job.tree_wait_ratio is not None
    evidence = (
        *([Evidence("others_ratio", "others use", others, "ratio", ">= 40 %", 30.0)] if others else []),
        Evidence(
            "cpu_pressure_ratio",
            "CPU pressure",
            window.host_mean("cpu_pressure_ratio", WINDOW_S),
            "ratio",
            ">= 20 %",
            WINDOW_S,
        ),
        Evidence(
            "tree_wait_ratio", "the job waits for a core", job.tree_wait_ratio, "ratio", ">= 20 %", 30.0
        ),
        *([Evidence("cpu_steal_ratio", "steal", steal, "ratio", ">= 10 %", 30.0)] if steal else []),
        *_top_processes(window),
    )
    parameters: dict[str, float | str] = {"steal_ratio": steal}
    if others is not None:
        parameters["others_ratio"] = others
    top = _busiest(window)
    if top:
        parameters |= {"pid": float(top[0][1].pid), "command": clean(top[0][1].command or top[0][1].name)}
        parameters["cores"] = top[0][0]
    return Fires(
        confidence=Confidence.LIKELY if both or variant else Confidence.POSSIBLE,
        evidence=evidence,
        severity=Severity.WARNING if waits else Severity.STATE,  # a fed GPU loses nothing by it
        share_ratio=share,
        share_low_ratio=shape.stall_low_ratio if share is not None and shape is not None else None,
        share_high_ratio=shape.stall_high_ratio if share is not None and shape is not None else None,
        coverage_ratio=coverage,
        variant=variant,
        parameters=parameters,
    )


def _busiest(window: Window) -> list[tuple[float, ProcessReading]]:
    """(cores, process) of the programs outside all jobs that use most CPU, busiest first."""
    found = []
    for process in window.sample.processes or ():
        if process.role is ProcessRole.OTHER or process.role is ProcessRole.GRAPHICS:
            cores = window.history.mean(_entity(process), "cpu_cores", WINDOW_S)
            if cores is not None:
                found.append((cores, process))
    found.sort(key=lambda pair: -pair[0])
    return found[:TOP_PROCESSES]


def _top_processes(window: Window) -> tuple[Evidence, ...]:
    return tuple(
        Evidence(f"pid_{process.pid}_cores", clean(process.command or process.name), cores, "cores", "", 30.0)
        for cores, process in _busiest(window)
    )
