"""Texts of the rules about the run as a whole: memory, pauses, pace, a card held for nothing."""

from gpuwatch.diagnosis.interface import Fires
from gpuwatch.diagnosis.texts.record import RuleText
from gpuwatch.diagnosis.texts.words import (
    byte_rate,
    duration,
    facts,
    gib,
    lines,
    number,
    percent,
    process_name,
)
from gpuwatch.diagnosis.window import Window
from gpuwatch.language import say
from gpuwatch.model import FindingText


def _full(fires: Fires, window: Window) -> FindingText:
    used, falls = number(fires.parameters, "used") or 0.0, number(fires.parameters, "falls") or 0.0
    retries = fires.variant == "retries"
    return FindingText(
        title=say("the allocator frees GPU memory and takes it again")
        if retries
        else say("GPU memory is at its limit ({used})", used=percent(used)),
        because=lines(
            say("{used} of the memory is used", used=percent(used)),
            say("it fell by a tenth and came back {times} times in a minute", times=round(falls))
            if retries
            else None,
        ),
        wrong_if=say("the framework takes the memory in advance"),
        settle=say("a slightly smaller batch: do the hiccups go?"),
        advice=(
            say("PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"),
            say("a smaller batch, or activation checkpointing"),
            say("end other programs on this card"),
        ),
        short_advice=say("expandable_segments:True"),
    )


def _growth(fires: Fires, window: Window) -> FindingText:
    slope, left = number(fires.parameters, "slope") or 0.0, number(fires.parameters, "left_s") or 0.0
    grown = number(fires.parameters, "grown") or 0.0
    return FindingText(
        title=say(
            "GPU memory grows by {slope} a minute, full in about {left}",
            slope=gib(slope),
            left=duration(left),
        ),
        because=lines(say("it grew by {grown} and never came back", grown=gib(grown))),
        wrong_if=say("shapes still grow towards their largest in the first epoch"),
        settle=say("log torch.cuda.memory_allocated() once an epoch"),
        advice=(
            say("keep no graph in logs: loss.item(), not loss"),
            say("drop stored outputs"),
            say("pad or bucket variable shapes"),
        ),
        short_advice=say("loss.item() in logs, no kept outputs"),
    )


_PAUSES = {"checkpoint": "checkpoints", "epoch": "epoch changes", "evaluation": "evaluation on the CPU"}


def _short_pauses(fires: Fires) -> FindingText:
    every, pause = number(fires.parameters, "every_s") or 0.0, number(fires.parameters, "pause_s") or 0.0
    seen = facts(fires)
    return FindingText(
        title=say("checkpoints hold up the GPU, about every {time}", time=duration(every)),
        because=lines(
            say("gaps of about {length}, and in them the process writes", length=f"{pause:.1f} s"),
            say("{rate} written meanwhile", rate=byte_rate(seen.get("write_bytes_per_s") or 0.0)),
            say(
                "{share} of all idle time lies in such gaps", share=percent(seen.get("coverage_ratio") or 0.0)
            ),
        ),
        wrong_if=say("the process writes something else there (logs, predictions, a cache)"),
        settle=say("a minute with checkpoints switched off"),
        advice=(
            say("save less often"),
            say("write checkpoints asynchronously: copy to host memory, let a thread write"),
            say("to a fast local disk first, and from there to the shared one"),
        ),
        short_advice=say("save less often, or asynchronously"),
    )


def _pauses(fires: Fires, window: Window) -> FindingText:
    if fires.variant == "short":
        return _short_pauses(fires)
    share, count = number(fires.parameters, "share") or 0.0, number(fires.parameters, "count") or 0.0
    pause, written = number(fires.parameters, "pause_s") or 0.0, facts(fires).get("write_bytes_per_s")
    what = say(_PAUSES.get(fires.variant, "pauses of unknown kind"))
    return FindingText(
        title=say("{share} of the time goes into {what}", share=percent(share), what=what),
        because=lines(
            say("{count} pauses of about {length}", count=round(count), length=duration(pause)),
            None if written is None else say("{rate} written meanwhile", rate=byte_rate(written)),
        ),
        wrong_if=say("the pauses are wanted as they are"),
        settle=say("one hour with half as many of them"),
        advice=(
            say("write checkpoints asynchronously, or to a fast local disk"),
            say("validate less often, and on the GPU"),
            say("persistent_workers=True"),
        ),
        short_advice={
            "checkpoint": say("asynchronous checkpoints"),
            "epoch": say("persistent_workers=True"),
            "evaluation": say("validate on the GPU, less often"),
        }.get(fires.variant, say("see what the job does in its pauses")),
    )


def _slower(fires: Fires, window: Window) -> FindingText:
    slower, ago = number(fires.parameters, "slower") or 0.0, number(fires.parameters, "ago_s") or 0.0
    return FindingText(
        title=say(
            "this run changed about {ago} ago: {slower} slower", ago=duration(ago), slower=percent(slower)
        ),
        because=lines(
            say("fewer bytes are copied to the card a second")
            if fires.variant == "copies"
            else say("a step, as seen in the pulses, takes longer than in the best minutes")
        ),
        wrong_if=say("the work itself changed: sequence length, batch, unfrozen layers"),
        settle=say("compare with a fresh start of the same run"),
        advice=(
            say("look at what changed at that minute: clock, temperature, neighbours, cache"),
            say("restart the workers once"),
            say("compare with a fresh run"),
        ),
        short_advice=say("what changed at that minute?"),
    )


def _held(fires: Fires, window: Window) -> FindingText:
    held = number(fires.parameters, "held") or 0.0
    idle = facts(fires).get("idle_s") or 0.0
    return FindingText(
        title=say("the card is held but unused, {held} for {idle}", held=gib(held), idle=duration(idle)),
        because=lines(process_name(fires.parameters), say("nothing runs on the GPU, nor on the CPU")),
        wrong_if=say("it waits for somebody on purpose (a debugger, a person)"),
        settle=say("ask its owner"),
        advice=(
            say("a notebook left open: restart its kernel"),
            say("release the card before long work on the CPU"),
            say("a time limit in the scheduler"),
        ),
        short_advice=say("restart the notebook's kernel")
        if fires.variant
        else say("end it, or release the card"),
    )


TEXTS: dict[str, RuleText] = {
    "episode-overhead": RuleText(
        title="pauses: checkpoints, validation, epochs",
        label="pauses",
        render=_pauses,
        sees="Pauses of 5 s and longer inside the steady job, and what was written, read and computed in them.",
        decides="Two pauses or more that sum up to 5 % of the last half hour (ends below 3 %); a warning from 15 %. "
        "20 MB/s written makes a checkpoint, other worker processes an epoch, a main thread at 0.8 core that reads "
        "an evaluation. Before ten minutes three of one kind are needed, and 10 %. Shorter gaps count as "
        "checkpoints where the process writes 20 MB/s in three of them or more, which hold 80 % of the idle time.",
        unlike="A single pause never counts; short gaps are the loader's; validation on the GPU is not seen here.",
        steps=(
            "Write checkpoints asynchronously, or to a fast local disk.",
            "Validate less often, and on the GPU.",
            "persistent_workers=True.",
        ),
        wrong_if="the pauses are wanted as they are.",
        settle="one hour with half as many of them.",
        sources="The idea of a pause as an event: trainpulse; numbers are our own.",
    ),
    "vram-near-limit": RuleText(
        title="GPU memory at its limit",
        label="memory",
        render=_full,
        sees="How full the card's memory is, and whether the allocator frees and takes it again.",
        decides="98 % for 30 s (ends below 93 %) is a notice; three falls by a tenth within a minute a warning.",
        unlike="A steady 95 % is good for PyTorch; JAX and TensorFlow take the memory in advance.",
        steps=(
            "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True.",
            "A smaller batch, or activation checkpointing.",
            "End other programs on this card.",
        ),
        wrong_if="the framework takes the memory in advance.",
        settle="a slightly smaller batch: do the hiccups go?",
        sources="90 %: PyTorch Kineto, 92 and 97 %: TraceML; later on purpose, our own.",
    ),
    "vram-growth": RuleText(
        title="GPU memory grows",
        label="memory growth",
        render=_growth,
        sees="A steady rise of the memory in use, by a slope that single jumps do not move.",
        decides="More than 0.5 % of the memory a minute over 15 min, at least 512 MiB and 5 % in all, rising in 80 % "
        "of the minutes, not before 5 min of steady work; a warning when it is full within 30 min.",
        unlike="Caching allocators step up and stay; the first epoch may still meet larger shapes.",
        steps=(
            "Keep no graph in logs: loss.item(), not loss.",
            "Drop stored outputs.",
            "Pad or bucket variable shapes.",
        ),
        wrong_if="shapes still grow towards their largest in the first epoch.",
        settle="log torch.cuda.memory_allocated() once an epoch.",
        sources="512 MiB and 6 %: TraceML; the rest is our own.",
    ),
    "slower-than-itself": RuleText(
        title="this run became slower",
        label="slower",
        render=_slower,
        sees="The pace of the last minutes against the best five minutes of the same run.",
        decides="10 % worse for 4 min (ends below 5 %), after 15 min of steady work, both evenly paced; a warning "
        "from 15 %. The pace is the period of the pulses, or the bytes copied to the card.",
        unlike="A schedule that changes sequence length or unfreezes layers changes the pace rightly.",
        steps=(
            "Look at what changed at that minute: clock, temperature, neighbours, cache.",
            "Restart the workers once.",
            "Compare with a fresh run.",
        ),
        wrong_if="the work itself changed.",
        settle="a fresh start of the same run.",
        sources="10 % as the least change: Greyhound; the rest is our own.",
    ),
    "gpu-held-idle": RuleText(
        title="a card held but unused",
        label="held idle",
        render=_held,
        sees="A process that keeps GPU memory while neither GPU nor CPU work for it.",
        decides="500 MiB or more, utilization below 3 % for 15 min, the job below 0.1 core.",
        unlike="Servers wait for requests; a hung collective shows 100 % utilization.",
        steps=(
            "A notebook left open: restart its kernel.",
            "Release the card before long work on the CPU.",
            "A time limit in the scheduler.",
        ),
        wrong_if="it waits for somebody on purpose.",
        settle="ask its owner.",
        sources="Idle allocations in cluster traces (Alibaba, Princeton jobstats); 15 min are our own.",
    ),
}
