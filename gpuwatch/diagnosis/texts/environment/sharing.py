"""Texts of the rules about who else uses GPU and CPU, and about limits."""

from gpuwatch.diagnosis.interface import Fires
from gpuwatch.diagnosis.rules.environment import cpu_limits as limits
from gpuwatch.diagnosis.rules.environment import sharing as shared
from gpuwatch.diagnosis.texts.record import RuleText
from gpuwatch.diagnosis.texts.words import (
    cores,
    facts,
    gib,
    lines,
    number,
    percent,
    process_name,
    program,
    whole,
)
from gpuwatch.diagnosis.window import Window
from gpuwatch.model import FindingText


def _who(fires: Fires) -> str:
    pid, command = number(fires.parameters, "pid"), fires.parameters.get("command")
    named = f"pid {pid:.0f}" if pid is not None else "unknown"
    return f"{named}, {program(command)}" if isinstance(command, str) else named


def _shared(fires: Fires, window: Window) -> FindingText:
    values = facts(fires)
    memory = values.get("memory_bytes")
    held = gib(memory) if memory is not None else "memory"
    title = {
        "memory": f"another process holds {held} of the GPU's memory ({_who(fires)})",
        "hidden": f"a process outside this container holds {held} of the GPU's memory",
        "display": f"the display uses this GPU ({_who(fires)})",
    }.get(fires.variant, f"another process uses this GPU ({_who(fires)})")
    share, own = values.get("foreign_sm_ratio"), values.get("own_sm_ratio")
    works = ""
    if share is not None:
        works = f"others are active in {percent(share)} of the samples"
        works += f", the job in {percent(own)}" if own is not None else ""
    desktop = fires.variant == "display"
    return FindingText(
        title=title,
        because=lines(
            process_name(fires.parameters), works, f"it holds {held}" if memory is not None else ""
        ),
        wrong_if="it belongs to the same job and was started elsewhere",
        settle="nvidia-smi pmon -s um -d 5 shows the same processes",
        advice=(
            "move the display to another GPU or to the integrated one"
            if desktop
            else "choose a free GPU: CUDA_VISIBLE_DEVICES=<its uuid from nvidia-smi -L>",
            "ask its owner, or wait",
            "reserve GPUs through the scheduler, or set the compute mode to exclusive (admin)",
        ),
        short_advice="move the display elsewhere" if desktop else "choose a free GPU, or ask its owner",
    )


def _quota(fires: Fires, window: Window) -> FindingText:
    quota = number(fires.parameters, "quota_cores") or 0.0
    values = facts(fires)
    throttled = values.get("throttled_ratio", 0.0)
    stopped = values.get("throttled_s")
    have = f"{whole(quota)} core{'s' if quota > 1 else ''}"
    fed = fires.variant == "fed"
    return FindingText(
        title=f"the CPU quota of {have} is used up, the GPU is fed all the same"
        if fed
        else f"the CPU quota of {have} stops the job",
        because=lines(
            f"stopped in {percent(throttled)} of the quota's periods",
            f"{stopped:.1f} s of stopping in the last 30 s" if stopped is not None else "",
            f"the job uses {cores(values['tree_cpu_cores'])}" if "tree_cpu_cores" in values else "",
        ),
        wrong_if="the stops fall into moments in which the GPU works anyway",
        settle="raise the limit for one run: do the gaps go?",
        advice=(
            "raise the container's or job's CPU limit (--cpus, resources.limits.cpu, --cpus-per-task)",
            f"keep num_workers at {max(1, int(quota) - 1)} or less until then",
            "one thread per worker: OMP_NUM_THREADS=1, cv2.setNumThreads(0)",
        ),
        short_advice="raise the CPU limit",
    )


def _contention(fires: Fires, window: Window) -> FindingText:
    values = facts(fires)
    steal = fires.variant == "steal"
    named = f" ({_who(fires)})" if "pid" in fires.parameters else ""
    used = number(fires.parameters, "cores")
    others = values.get("others_ratio")
    return FindingText(
        title="the hypervisor takes CPU from this machine"
        if steal
        else f"other programs take the CPU{named}",
        because=lines(
            f"{percent(others)} of all cores go to others" if others is not None else "",
            f"{process_name(fires.parameters)}: {cores(used)}" if used is not None and not steal else "",
            f"{percent(values['cpu_steal_ratio'])} of CPU time stolen" if steal else "",
            f"the job waits {percent(values['tree_wait_ratio'])} of its time for a core"
            if "tree_wait_ratio" in values
            else "run-queue wait of the job cannot be read",
            f"CPU pressure {percent(values['cpu_pressure_ratio'])}" if "cpu_pressure_ratio" in values else "",
        ),
        wrong_if="the other programs belong to the job",
        settle="pause or lower them (nice) for a minute: do the gaps go?",
        advice=(
            "ask the provider for dedicated cores"
            if steal
            else "move the other programs elsewhere or lower them with nice",
            "fewer workers of one's own, so that fewer wait",
            "reserve cores through the scheduler or a cpuset",
        ),
        short_advice="ask the provider for real cores" if steal else "nice or move the other programs",
    )


TEXTS: dict[str, RuleText] = {
    "gpu-shared": RuleText(
        title="another process uses this GPU",
        label="others",
        render=_shared,
        sees="The driver's process list with memory, and each process's share of the driver's samples.",
        decides=f"A process outside the job with {shared.ENTER_RATIO:.0%} of the samples over a minute, at "
        f"least half a minute of them (ends under {shared.EXIT_RATIO:.0%} for a minute), or with "
        f"{shared.MEMORY_RATIO:.0%} of the memory and under {shared.QUIET_RATIO:.0%} of the "
        "samples. What the job loses is worded 'up to', because each sample names one process "
        "only.",
        unlike="Children of the job, its ranks, its session, container or batch job, an MPS server and "
        "an idle desktop are no neighbours. On a MIG instance the neighbour has its own part of "
        "the card.",
        steps=(
            "Choose a free card with CUDA_VISIBLE_DEVICES=GPU-<uuid>, ask the owner of the other "
            "program, or move the display to another GPU.",
        ),
        wrong_if="",
        settle="",
        sources="How the driver samples processes: NVIDIA's open kernel modules. Limits are our own.",
    ),
    "cpu-quota-throttled": RuleText(
        title="the CPU quota stops the job",
        label="CPU quota",
        render=_quota,
        sees="The control group with the tightest CPU quota above the job: its periods and stopped periods.",
        decides=f"{limits.THROTTLED_RATIO:.0%} of the periods stopped over 30 s and the job at "
        f"{limits.QUOTA_USED_RATIO:.0%} of its quota (ends under "
        f"{limits.THROTTLED_EXIT_RATIO:.0%}). A warning with gaps, critical with gaps from "
        f"{limits.THROTTLED_CRITICAL_RATIO:.0%}; a notice while the GPU is fed.",
        unlike="A narrow affinity mask is no quota; other programs need pressure, not a quota. Short "
        "bursts are stopped at a low average too, so both conditions must hold.",
        steps=(
            "Raise the container's or the job's CPU limit; until then keep workers below it, with one "
            "thread each.",
        ),
        wrong_if="",
        settle="",
        sources="The counters are those of the kernel's control groups; limits are our own.",
    ),
    "host-cpu-contention": RuleText(
        title="other programs take the CPU",
        label="other programs",
        render=_contention,
        sees="CPU use of everybody against the job's own, pressure stall information, the job's time "
        "in the run queue, and time stolen by a hypervisor.",
        decides=f"Others use {limits.OTHERS_RATIO:.0%} of the cores, pressure is "
        f"{limits.PRESSURE_RATIO:.0%} and the job waits {limits.DELAY_RATIO:.0%} of its time for a "
        f"core, over 30 s; or {limits.STEAL_RATIO:.0%} are stolen. It ends at half of each.",
        unlike="The job's own oversubscription: its workers and the ranks on other GPUs are not others.",
        steps=(
            "Move the other programs or lower them with nice; with steal, ask the provider for "
            "dedicated cores.",
        ),
        wrong_if="",
        settle="",
        sources="The limit for stolen time follows netdata's alarm; the rest is our own.",
    ),
}
