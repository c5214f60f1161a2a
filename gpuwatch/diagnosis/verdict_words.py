"""The words of a verdict. Figures are rounded to what was measured; states say what they wait for."""

from collections.abc import Sequence
from dataclasses import replace

from gpuwatch.diagnosis.verdict_facts import Choice, GpuFacts, TickFacts
from gpuwatch.model import DriverState, DriverStatus, Finding, JobState, LedgerKey, Verdict

#: Above this share a factor would be a guess.
MOSTLY_RATIO = 0.80
MAX_BECAUSE = 4
LATE = "straggler-card"
#: With more idle time of unknown cause than this, "nothing slows it" would say too much.
IDLE_RATIO = 0.15
#: Work that nobody is listed for is worth a word from here on.
WORKS_RATIO = 0.2

_DRIVER_WORDS = {
    DriverState.STARTING: "reading the GPUs",
    DriverState.NO_LIBRARY: "no NVIDIA driver on this machine",
    DriverState.NOT_LOADED: "the NVIDIA driver is not loaded",
    DriverState.MISMATCH: "driver and its library differ in version",
    DriverState.NO_PERMISSION: "no permission to read the GPUs",
    DriverState.NO_GPUS: "no GPU here",
    DriverState.NOT_ANSWERING: "the driver does not answer",
    DriverState.BINDING: "the NVML binding cannot be loaded",
    DriverState.ERROR: "the driver reports an error",
}
#: The state furthest on the way to being judged speaks for the machine.
_STATE_ORDER = (JobState.WARMUP, JobState.STARTING, JobState.PAUSED, JobState.SERVING, JobState.NO_JOB)


def no_driver(driver: DriverStatus) -> Verdict:
    words = _DRIVER_WORDS.get(driver.state, driver.state.value)
    detail = driver.message if driver.message != words else ""
    return Verdict(headline=words, detail=detail, action=driver.advice)


def state_of(facts: TickFacts) -> Verdict:
    """No job is steady anywhere: say what the one furthest on is doing."""
    if not facts.gpus:
        return Verdict(headline=_DRIVER_WORDS[DriverState.NO_GPUS])
    gpu = min(facts.gpus, key=lambda gpu: (_order(gpu), gpu.index))
    since = facts.now_s - gpu.status.since_s
    state = gpu.status.state
    if state is JobState.NO_JOB and max(other.ratio(LedgerKey.BUSY) for other in facts.gpus) >= WORKS_RATIO:
        works = "the GPU works" if len(facts.gpus) == 1 else "the GPUs work"
        return Verdict(
            headline=f"{works}, but no process is listed",
            detail="it may run in another container or pid namespace; judged all the same in half a minute",
        )
    if state is JobState.NO_JOB:
        where = "the GPU" if len(facts.gpus) == 1 else "the GPUs"
        return Verdict(headline=f"no job on {where}", detail="start training; it is picked up by itself")
    if state is JobState.STARTING:
        return Verdict(
            headline=f"the job is starting, {seconds(since)}",
            detail="judged once the GPU has worked for 10 s and warmed up for a minute",
        )
    if state is JobState.WARMUP:
        left = gpu.status.remaining_s
        if left is None:
            return Verdict(headline="warming up", detail="kernels are being compiled")
        return Verdict(headline=f"warming up, {seconds(left)}", detail="not judged until then")
    if state is JobState.PAUSED:
        return Verdict(
            headline=f"the job pauses: no work on the GPU for {seconds(since + 120)}",
            detail="not judged while it pauses",
        )
    return Verdict(headline="serving: not judged", detail="an inference server waits for its clients")


def _order(gpu: GpuFacts) -> int:
    state = gpu.status.state
    return _STATE_ORDER.index(state) if state in _STATE_ORDER else 0


def looking(facts: TickFacts, wait_s: float | None) -> Verdict:
    """A steady job, too early for a verdict; `wait_s` None: the cause of visible waiting is sought."""
    judged = [gpu for gpu in facts.gpus if gpu.judged]
    if wait_s is not None:
        return Verdict(
            headline=f"watching the job, {seconds(max(1.0, wait_s))} to a first verdict", detail=_busy(judged)
        )
    waiting = max(gpu.ratio(LedgerKey.WAITING) for gpu in judged)
    return Verdict(
        headline=f"{'the GPU' if len(facts.gpus) == 1 else 'a GPU'} waits {percent(waiting)} of the time",
        detail="looking for the cause",
        preliminary=True,
    )


def nothing_lost(
    facts: TickFacts, judged: Sequence[GpuFacts], lever: Finding | None, preliminary: bool
) -> Verdict:
    which = "this GPU" if len(facts.gpus) == 1 else "these GPUs"
    worst = max(judged, key=lambda gpu: gpu.ratio(LedgerKey.WAITING))
    headline = f"nothing outside the model slows {which}"
    if worst.ratio(LedgerKey.WAITING) >= IDLE_RATIO:
        idle = percent(worst.ratio(LedgerKey.WAITING))
        headline = f"{who(facts, [worst.uuid])} idles {idle} of the time, no cause found outside the model"
    return Verdict(
        headline=headline,
        detail=_busy(judged) if lever is None else f"{_busy(judged)}; next lever: {lever.text.title}",
        action="" if lever is None else first_step(lever),
        preliminary=preliminary,
    )


def unmeasured(judged: Sequence[GpuFacts], lever: Finding | None) -> Verdict:
    """Utilization is unknown, which is not the same as idle or busy."""
    reason = next((gpu.unmeasured for gpu in judged if gpu.unmeasured), "most of the last minute is missing")
    return Verdict(
        headline="utilization cannot be read here: not judged",
        detail=reason if lever is None else f"{reason}; next lever: {lever.text.title}",
        action="" if lever is None else first_step(lever),
    )


def risk(finding: Finding) -> Verdict:
    return _of_finding(finding, finding.text.title, "", finding.preliminary)


def plain_finding(facts: TickFacts, finding: Finding, preliminary: bool) -> Verdict:
    """A warning whose cost cannot be seen from outside."""
    headline = finding.text.title
    alike = [gpu for other in facts.findings if other.rule == finding.rule for gpu in other.gpus]
    named = who(facts, alike)
    if named.startswith(("GPU ", "GPUs ")) and "GPU" not in headline:
        headline = f"{named}: {headline}"
    return _of_finding(finding, headline, "what it costs cannot be measured from outside", preliminary)


def lost_time(
    facts: TickFacts,
    choice: Choice,
    share: float,
    candidates: Sequence[Finding],
    after: str,
    preliminary: bool,
) -> Verdict:
    """A loss with its cause. `share` is the ledger's, used where the finding has no interval."""
    finding, key = choice.loss.finding, choice.loss.key
    named = finding.gpus or (choice.loss.gpu.uuid,)
    subject = who(facts, named)
    amount = share_range(finding, share)
    several = subject.startswith(("the GPUs", "GPUs"))
    waits, loses, pauses = ("wait", "lose", "pause") if several else ("waits", "loses", "pauses")
    headline = {
        LedgerKey.WAITING: f"{subject} {waits} {amount} of the time",
        LedgerKey.SLOWED: f"{subject} {loses} {amount} of {'their' if several else 'its'} speed",
        LedgerKey.FOREIGN: f"others take up to {amount} of {subject}",
        LedgerKey.WAITING_PEERS: f"{subject} {waits} {amount} of the time for each other"
        if finding.rule != LATE
        else f"{subject} is late: the others wait {amount} of the time for it",
        LedgerKey.PAUSE: f"{subject} {pauses} {amount} of the time",
    }[key]
    detail = finding.text.title.removeprefix("the GPU waits, ")  # the headline says so
    if candidates:
        detail += "; possible: " + ", ".join(other.text.title for other in candidates)
    gain = gain_words(finding)
    verdict = _of_finding(finding, headline, f"{detail}; {gain}" if gain else detail, preliminary)
    return replace(verdict, second_layer=choice.second_layer, after_that=after)


def _of_finding(finding: Finding, headline: str, detail: str, preliminary: bool) -> Verdict:
    return Verdict(
        headline=headline,
        detail=detail,
        layer=finding.layer,
        confidence=finding.confidence,
        severity=finding.severity,
        rule=finding.rule,
        subject=finding.subject,
        because=finding.text.because[:MAX_BECAUSE],
        wrong_if=finding.text.wrong_if,
        settle=finding.text.settle,
        action=first_step(finding),
        preliminary=preliminary,
    )


def first_step(finding: Finding) -> str:
    return finding.text.short_advice or (finding.text.advice[0] if finding.text.advice else "")


def gain_words(finding: Finding) -> str:
    """What the named cause is worth; no factor where it would be a guess."""
    if finding.share_ratio is not None and finding.share_ratio > MOSTLY_RATIO:
        return "mostly waiting"
    if finding.speedup is None or finding.speedup < 1.05:
        return ""
    words = f"about {finding.speedup:.1f}x"
    if finding.speedup_max is not None and finding.speedup_max >= finding.speedup + 0.05:
        words += f", at most {finding.speedup_max:.1f}x"
    return words


def share_range(finding: Finding, share: float) -> str:
    low, high = finding.share_low_ratio, finding.share_high_ratio
    if low is None or high is None:
        return percent(finding.share_ratio if finding.share_ratio is not None else share)
    first, last = round(low * 100), round(high * 100)
    return f"{first} %" if first >= last else f"{first}-{last} %"


def percent(ratio: float) -> str:
    return f"{round(ratio * 100)} %"


def seconds(value: float) -> str:
    """Whole seconds up to two minutes, then minutes, then hours."""
    whole = max(0, round(value))
    if whole < 120:
        return f"{whole} s"
    return f"{whole // 60} min" if whole < 7200 else f"{whole // 3600} h"


def who(facts: TickFacts, uuids: Sequence[str]) -> str:
    """ "the GPU", "GPU 5", "GPUs 2 and 5", "the GPUs": how these GPUs are named in a sentence."""
    if len(facts.gpus) <= 1:
        return "the GPU"
    named = sorted(gpu.index for gpu in facts.gpus if gpu.uuid in uuids)
    at_work = sum(gpu.judged for gpu in facts.gpus)
    if len(named) > 1 and len(named) >= at_work:
        return "the GPUs"
    if len(named) <= 1:
        return f"GPU {named[0]}" if named else "a GPU"
    return "GPUs " + ", ".join(str(index) for index in named[:-1]) + f" and {named[-1]}"


def _busy(gpus: Sequence[GpuFacts]) -> str:
    shares = [_busy_ratio(gpu) for gpu in gpus if gpu.ratio(LedgerKey.UNKNOWN) < 1]
    if not shares:
        return ""
    low, high = round(min(shares) * 100), round(max(shares) * 100)
    return f"busy {low} % of the time" if low == high else f"busy {low}-{high} % of the time"


def _busy_ratio(gpu: GpuFacts) -> float:
    keys = (LedgerKey.BUSY, LedgerKey.SLOWED, LedgerKey.FOREIGN, LedgerKey.WAITING_PEERS)
    measured = 1 - gpu.ratio(LedgerKey.UNKNOWN)
    return sum(gpu.ratio(key) for key in keys) / measured
