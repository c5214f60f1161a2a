"""Texts of the rules about workers and main memory."""

from gpuwatch.diagnosis.interface import Fires
from gpuwatch.diagnosis.texts.record import RuleText
from gpuwatch.diagnosis.texts.words import (
    byte_rate,
    cores,
    duration,
    facts,
    gap_line,
    lines,
    number,
    percent,
    whole,
)
from gpuwatch.diagnosis.window import Window
from gpuwatch.language import say
from gpuwatch.model import FindingText


def _imbalance(fires: Fires, window: Window) -> FindingText:
    pid, mine = round(number(fires.parameters, "pid") or 0), number(fires.parameters, "cores") or 0.0
    others = number(fires.parameters, "others") or 0.0
    shape, count = window.shape, len(window.job.workers) if window.job is not None else 0
    period = shape.period_s if shape is not None else None
    return FindingText(
        title=say("one worker holds the others up (pid {pid})", pid=pid),
        because=lines(
            say("it uses {mine}, the others {others}", mine=cores(mine), others=cores(others)),
            say("batches come in order, so all wait for it"),
            None
            if period is None or not count
            else say(
                "the gaps come about every {period:.1f} s with {count} workers", period=period, count=count
            ),
        ),
        wrong_if=say("two loaders run side by side (training and validation)"),
        settle=say("py-spy dump --pid {pid} a few times", pid=pid),
        advice=(
            say("look at slow samples or shards"),
            say("in_order=False where the order is free"),
            say("balance the shards"),
        ),
        short_advice=say("look for slow samples or shards"),
    )


def _too_many(fires: Fires, window: Window) -> FindingText:
    count, usable = round(number(fires.parameters, "workers") or 0), number(fires.parameters, "cores") or 0.0
    pressure = facts(fires).get("cpu_pressure_ratio")
    each = facts(fires).get("worker_cpu_cores")
    return FindingText(
        title=say("more workers than useful: {count} on {cores} cores", count=count, cores=whole(usable)),
        because=lines(
            None if each is None else say("each uses {cores}", cores=cores(each)),
            None if pressure is None else say("CPU pressure {share}", share=percent(pressure)),
        ),
        wrong_if=say("they are busy for a moment only, at the start of an epoch"),
        settle=say("half as many workers: steps per second"),
        advice=(say("halve num_workers"), say("lower prefetch_factor"), say("watch steps per second")),
        short_advice=say("halve num_workers"),
    )


def _pageable(fires: Fires, window: Window) -> FindingText:
    return FindingText(
        title=say("batches are copied from memory that is not pinned"),
        because=lines(
            say("no pinning thread in a PyTorch that names its threads"),
            say("{rate} go to the GPU", rate=byte_rate(number(fires.parameters, "rx") or 0.0)),
            gap_line(window),
        ),
        wrong_if=say("the program pins its memory in another way"),
        settle=say("pin_memory=True for 100 steps"),
        advice=(
            say("pin_memory=True"),
            say(".to(device, non_blocking=True)"),
            say("watch main memory: pinned pages cannot be swapped"),
        ),
        short_advice=say("pin_memory=True, non_blocking=True"),
    )


def _respawn(fires: Fires, window: Window) -> FindingText:
    gap, interval = number(fires.parameters, "gap") or 0.0, number(fires.parameters, "interval") or 0.0
    return FindingText(
        title=say(
            "workers are started anew every {interval}, {gap} lost each time",
            interval=duration(interval),
            gap=duration(gap),
        ),
        because=lines(
            say(
                "{count} workers were replaced by new ones",
                count=round(number(fires.parameters, "workers") or 0),
            )
        ),
        wrong_if=say("a training and a validation loader take turns"),
        settle=say("persistent_workers=True for two epochs"),
        advice=(
            say("persistent_workers=True"),
            say("make the dataset cheaper to construct"),
            say("longer epochs"),
        ),
        short_advice=say("persistent_workers=True"),
    )


def _swapping(fires: Fires, window: Window) -> FindingText:
    pressure, available = (
        facts(fires).get("memory_pressure_ratio"),
        facts(fires).get("memory_available_bytes"),
    )
    return FindingText(
        title=say("the host is swapping"),
        because=lines(
            say("{rate} come back from swap", rate=byte_rate(number(fires.parameters, "rate") or 0.0)),
            None if pressure is None else say("memory pressure {share}", share=percent(pressure)),
            None if available is None else say("{size:.1f} GiB are available", size=available / 1024**3),
        ),
        wrong_if=say("old pages come back once, after a large program ended"),
        settle=say("half as many workers: does it end?"),
        advice=(
            say("fewer workers, less prefetching"),
            say("smaller caches in memory"),
            say("more main memory"),
        ),
        short_advice=say("fewer workers, less prefetching"),
    )


def _pressed(fires: Fires, window: Window) -> FindingText:
    left, available = number(fires.parameters, "left_s"), number(fires.parameters, "available") or 0.0
    group = facts(fires).get("group_ratio")
    titles = {
        "soon": say("main memory runs out in about {time}", time=duration(left or 0.0)),
        "group": say("the container's memory limit is nearly reached"),
        "": say("main memory is nearly full"),
    }
    return FindingText(
        title=titles[fires.variant],
        because=lines(
            say("{share} of memory available", share=percent(available)),
            None if group is None else say("{share} of the container's limit in use", share=percent(group)),
        ),
        wrong_if=say("a program fills it on purpose and stops"),
        settle=say("watch the memory of each process over an epoch"),
        advice=(
            say("arrays instead of Python lists in the data set (copy on write)"),
            say("fewer workers"),
            say("write a checkpoint before the limit"),
        ),
        short_advice=say("fewer workers; arrays, not lists"),
    )


TEXTS: dict[str, RuleText] = {
    "loader-worker-imbalance": RuleText(
        title="one worker holds the others up",
        label="slow worker",
        render=_imbalance,
        sees="CPU use of each worker while the GPU waits.",
        decides="At least 3 workers; one at 0.5 core or more and 2.5 times the others in 60 % of a minute (ends at 1.8 times), "
        "the others below 0.5 core.",
        unlike="Workers that take turns in being slow; two loaders with different work.",
        steps=(
            "Look at slow samples or shards.",
            "in_order=False where the order is free.",
            "Balance the shards.",
        ),
        wrong_if="two loaders run side by side.",
        settle="py-spy dump on the slow worker.",
        sources="2.5 times a fair share: gpuprof; the rest is our own.",
    ),
    "loader-too-many-workers": RuleText(
        title="more workers than useful",
        label="workers",
        render=_too_many,
        sees="The number of workers against the cores, and whether the machine suffers.",
        decides="More than 2 workers a core, or 4 and more below 0.15 core beside a saturated GPU; and CPU pressure 20 %, memory below "
        "10 %, or 1 MiB/s swapped in.",
        unlike="Idle workers alone cost little.",
        steps=("Halve num_workers.", "Lower prefetch_factor.", "Watch steps per second."),
        wrong_if="they are busy for a moment only.",
        settle="half as many workers: steps per second.",
        sources="200 % of the cores: SageMaker Debugger; the rest is our own.",
    ),
    "pageable-copies": RuleText(
        title="copies from memory that is not pinned",
        label="copies",
        render=_pageable,
        sees="Whether PyTorch's pinning thread is there, and what the main thread does in the gaps while data are copied.",
        decides="Thread names visible but no pinning thread; workers present; 200 MB/s to the GPU; the main thread at 0.3 to 0.9 core in "
        "the gaps.",
        unlike="A full link; a main process that prepares data itself.",
        steps=(
            "pin_memory=True.",
            ".to(device, non_blocking=True).",
            "Watch main memory: pinned pages cannot be swapped.",
        ),
        wrong_if="the program pins its memory in another way.",
        settle="pin_memory=True for 100 steps.",
        sources="PyTorch's source and tuning guide; thresholds are our own.",
    ),
    "loader-respawn": RuleText(
        title="workers are restarted every epoch",
        label="respawn",
        render=_respawn,
        sees="The set of worker processes over half an hour.",
        decides="All workers replaced at least 2 times, each with 2 s or more of an idle GPU, together 3 % of the time.",
        unlike="Training and validation loaders that take turns.",
        steps=("persistent_workers=True.", "Make the dataset cheaper to construct.", "Longer epochs."),
        wrong_if="a training and a validation loader take turns.",
        settle="persistent_workers=True for two epochs.",
        sources="PyTorch's documentation; numbers are our own.",
    ),
    "host-swapping": RuleText(
        title="the host is swapping",
        label="swapping",
        render=_swapping,
        sees="Pages that come back from swap, and whether anybody waits for memory.",
        decides="1 MiB/s swapped in over 10 s with memory pressure of 5 % (ends when nothing is for 30 s); critical where everybody "
        "waits 10 % of the time.",
        unlike="Swap that is merely used; reads of files.",
        steps=("Fewer workers, less prefetching.", "Smaller caches in memory.", "More main memory."),
        wrong_if="old pages come back once.",
        settle="half as many workers.",
        sources="1 MB/s: gpuprof; pressure: kernel documentation, limits our own.",
    ),
    "host-ram-pressure": RuleText(
        title="main memory runs out",
        label="main memory",
        render=_pressed,
        sees="Available memory, the control group's limit, and where both are heading.",
        decides="Less than 10 % available for 30 s (ends at 15 %), or 90 % of the limit without the page cache (ends at 80 %); a notice when a "
        "steady fall over 10 min reaches zero within 30 min.",
        unlike="The page cache is no pressure; it is given back.",
        steps=(
            "Arrays instead of Python lists in the data set (copy on write).",
            "Fewer workers.",
            "Write a checkpoint before the limit.",
        ),
        wrong_if="a program fills it on purpose and stops.",
        settle="watch the memory of each process over an epoch.",
        sources="10 and 15 %, 90 and 80 %: netdata's alarms; the forecast is our own.",
    ),
}
