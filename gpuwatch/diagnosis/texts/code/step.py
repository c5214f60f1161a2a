"""Texts of the rules about the training step: launches, waits inside it, and what it leaves unused."""

from gpuwatch.diagnosis.interface import Fires
from gpuwatch.diagnosis.texts.record import RuleText
from gpuwatch.diagnosis.texts.words import cores, facts, gap_line, lines, number, percent
from gpuwatch.diagnosis.window import Window
from gpuwatch.language import say
from gpuwatch.model import FindingText


def _share(fires: Fires, key: str) -> str:
    value = facts(fires).get(key)
    return "?" if value is None else percent(value)


def _launch(fires: Fires, window: Window) -> FindingText:
    sm = facts(fires).get("sm_active_ratio")
    main = facts(fires).get("main_cpu_cores")
    return FindingText(
        title=say("the GPU gets many small jobs, faster than the CPU can send them"),
        because=lines(
            say(
                "busy {busy} of the time and steady, at {power} of its power range",
                busy=_share(fires, "utilization_ratio"),
                power=_share(fires, "power_ratio"),
            ),
            None if main is None else say("the main thread runs {cores} all the time", cores=cores(main)),
            say(
                "memory is accessed only {share} of the time", share=_share(fires, "memory_utilization_ratio")
            ),
            None if sm is None else say("its multiprocessors are active {share}", share=percent(sm)),
        ),
        wrong_if=say("the model is simply small for this card"),
        settle=say("profile 10 steps: are there gaps between the kernels?"),
        advice=(
            say("a larger batch, as far as memory allows"),
            say("torch.compile or CUDA graphs; fused or foreach optimizers"),
            say("profile 10 steps and look for .item() and tiny kernels"),
        ),
        short_advice=say("a larger batch, or torch.compile"),
    )


def _sync(fires: Fires, window: Window) -> FindingText:
    return FindingText(
        title=say("CPU and GPU seem to wait for each other inside the step"),
        because=lines(gap_line(window), say("workers, disk and network rest")),
        wrong_if=say("the step does work on the CPU that it needs"),
        settle=say('torch.cuda.set_sync_debug_mode("warn") for one run'),
        advice=(
            say('torch.cuda.set_sync_debug_mode("warn") for one run'),
            say("log every N steps; no .item(), .cpu() or print in each"),
            say("profile 10 steps"),
        ),
        short_advice=say("find .item() and .cpu() in the step"),
    )


def _batch(fires: Fires, window: Window) -> FindingText:
    peak = number(fires.parameters, "peak") or 0.0
    power = facts(fires).get("power_ratio")
    return FindingText(
        title=say("there is room for a larger batch: {peak} of memory used", peak=percent(peak)),
        because=lines(
            say("never more than {peak} of its memory since the job is steady", peak=percent(peak)),
            None if power is None else say("power stands at {share} of its range", share=percent(power)),
        ),
        wrong_if=say("the batch size is a part of the recipe"),
        settle=say("double the batch and compare samples per second, not utilization"),
        advice=(
            say("double the batch and compare samples per second"),
            say("adjust the learning rate with it"),
            say("aim at 70 to 90 % of the memory"),
        ),
        short_advice=say("try twice the batch size"),
    )


def _tensor(fires: Fires, window: Window) -> FindingText:
    partly = fires.variant == "partly"
    return FindingText(
        title=say("the tensor cores work little") if partly else say("the tensor cores are idle"),
        because=lines(
            say("tensor cores active {share}", share=_share(fires, "tensor_ratio")),
            say("FP32 units active {share}", share=_share(fires, "fp32_ratio")),
            say("multiprocessors active {share}", share=_share(fires, "sm_active_ratio")),
        ),
        wrong_if=say("the work is FP64, integer, or bound by memory"),
        settle=say("one short run with bfloat16 autocast: steps per second and loss"),
        advice=(
            say('one line first: torch.set_float32_matmul_precision("high")'),
            say('torch.autocast("cuda", dtype=torch.bfloat16); float16 needs a GradScaler'),
            say("compare the loss on a short run; sizes in multiples of 8"),
        ),
        short_advice=say("bfloat16 autocast on a short run"),
    )


def _bandwidth(fires: Fires, window: Window) -> FindingText:
    traffic = number(fires.parameters, "traffic") or 0.0
    return FindingText(
        title=say("the GPU's memory sets the speed, not what feeds it"),
        because=lines(
            say("{signal} {share} of the time", signal=fires.parameters["signal"], share=percent(traffic))
        ),
        wrong_if=say("the accesses are short: the figure counts time, not bytes"),
        settle=say("torch.compile on a short run: does it get faster?"),
        advice=(
            say("fuse elementwise operations: torch.compile"),
            say("bfloat16 activations, channels_last for convolutions"),
        ),
        short_advice=say("torch.compile, bfloat16 activations"),
    )


TEXTS: dict[str, RuleText] = {
    "launch-bound": RuleText(
        title="many small kernels: the CPU cannot launch them fast enough",
        label="launches",
        render=_launch,
        sees="A steady middle utilization at low power, with the main thread at full speed and nobody loading.",
        decides="Utilization of 20 to 95 % with a spread of 10 points at most, power up to 45 % of its range (ends "
        "above 55 %), memory accessed up to 25 % of the time, the main thread at 0.95 core in 80 % of a minute, "
        "workers below 0.5 core. Likely where the card measures less than 30 % of SM activity.",
        unlike="A loader in the main process pulses and reads; a fed GPU near its power limit may have a spinning "
        "main thread too; several GPUs that wait for each other access no memory.",
        steps=(
            "A larger batch, as far as memory allows.",
            "torch.compile or CUDA graphs; fused or foreach optimizers.",
            "Profile 10 steps and look for .item() and tiny kernels.",
        ),
        wrong_if="the model is simply small for this card.",
        settle="profile 10 steps and look at the gaps between kernels.",
        sources="Share of kernel launch: XProf (3 and 15 %); SM < 25 %: KempnerPulse; power and memory: our own.",
    ),
    "batch-headroom": RuleText(
        title="room for a larger batch",
        label="batch",
        render=_batch,
        sees="The largest memory use since the job is steady, and how far the kernels fill the card.",
        decides="After 5 min: at most 60 % of memory ever used (ends above 70 %), and SM activity below 60 %, or "
        "occupancy below 25 %, or without these counters utilization below 85 % or power below 50 % of its range.",
        unlike="Frameworks that take all memory in advance; a job that waits for data comes first.",
        steps=(
            "Double the batch and compare samples per second.",
            "Adjust the learning rate with it.",
            "Aim at 70 to 90 % of the memory.",
        ),
        wrong_if="the batch size is a part of the recipe.",
        settle="twice the batch on a short run: samples per second, not utilization.",
        sources="p95 < 70 of CPU, GPU and memory: SageMaker Debugger; the rest is our own.",
    ),
    "tensor-cores-idle": RuleText(
        title="tensor cores idle",
        label="tensor cores",
        render=_tensor,
        sees="Activity of the matrix units beside that of the FP32 units, where the card measures both.",
        decides="Over 2 min: tensor cores below 3 % (ends above 8 %) with FP32 above 10 % and multiprocessors "
        "above 50 % is likely; below 15 % and below FP32 is possible. Without these counters it is not checked.",
        unlike="TF32 convolutions use tensor cores without autocast; FP64 and integer work has no use for them.",
        steps=(
            'One line first: torch.set_float32_matmul_precision("high").',
            'torch.autocast("cuda", dtype=torch.bfloat16); float16 needs a GradScaler.',
            "Compare the loss on a short run; sizes in multiples of 8.",
        ),
        wrong_if="the work is FP64, integer, or bound by memory.",
        settle="one short run with bfloat16 autocast.",
        sources="Exactly-zero rule and capability 7.0: PyTorch Kineto; 15 and 50 %: KempnerPulse; 3 % is our own.",
    ),
    "sync-stalls": RuleText(
        title="waits inside the step",
        label="sync",
        render=_sync,
        sees="A GPU in pulses whose main thread runs through a part of the gaps while everything else rests.",
        decides="Main thread at 0.2 to 0.8 core in the gaps and at 0.9 or more while the GPU works, workers below "
        "0.3 core, I/O pressure below 10 %, one GPU. Always possible only.",
        unlike="A collate function in the main process fills the gaps (0.8 core and more).",
        steps=(
            'torch.cuda.set_sync_debug_mode("warn") for one run.',
            "Log every N steps; no .item(), .cpu() or print in each.",
            "Profile 10 steps.",
        ),
        wrong_if="the step does work on the CPU that it needs.",
        settle="one run with the synchronisation warnings on.",
        sources="PyTorch's tuning guide; numbers are our own.",
    ),
    "memory-bandwidth-bound": RuleText(
        title="limited by GPU memory speed",
        label="GPU memory",
        render=_bandwidth,
        sees="A GPU that works all the time and spends it on its memory.",
        decides="Utilization of 90 % over a minute, and DRAM active 60 % with tensor cores below 30 %, or without "
        "these counters memory accessed 70 % of the time at 40 to 90 % of the power range. A state, no alarm.",
        unlike="Launch-bound work accesses little memory; waiting for other GPUs almost none.",
        steps=(
            "Fuse elementwise operations: torch.compile.",
            "bfloat16 activations, channels_last for convolutions.",
        ),
        wrong_if="the accesses are short: the figure counts time, not bytes.",
        settle="torch.compile on a short run.",
        sources="70 against 50: XProf; 50 against 80: KempnerPulse; without counters our own.",
    ),
}
