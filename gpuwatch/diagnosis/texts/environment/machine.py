"""Texts of the rules about cores, memory and cards around the job."""

from gpuwatch.diagnosis.interface import Fires
from gpuwatch.diagnosis.texts.record import RuleText
from gpuwatch.diagnosis.texts.words import cores, facts, gib, lines, number, percent, whole
from gpuwatch.diagnosis.window import Window
from gpuwatch.language import say
from gpuwatch.model import FindingText


def _numa(fires: Fires, window: Window) -> FindingText:
    node, remote = round(number(fires.parameters, "node") or 0), number(fires.parameters, "remote") or 0.0
    return FindingText(
        title=say("the process works on another NUMA node than its GPU's"),
        because=lines(
            say("the GPU belongs to node {node}", node=node),
            say("{share} of the job's CPU time is spent elsewhere", share=percent(remote)),
        ),
        wrong_if=say("the node has no cores left for it"),
        settle=say("numactl --cpunodebind={node} --membind={node}: steps per second", node=node),
        advice=(
            say("numactl --cpunodebind={node} --membind={node}", node=node),
            say("the launcher's own binding, for each rank"),
            say("compare steps per second: the gain is often small"),
        ),
        short_advice=say("numactl --cpunodebind={node}", node=node),
    )


def _mask(fires: Fires, window: Window) -> FindingText:
    mask, online = number(fires.parameters, "mask") or 0.0, number(fires.parameters, "online") or 0.0
    used, pressure = facts(fires).get("tree_cpu_cores"), facts(fires).get("cpu_pressure_ratio")
    return FindingText(
        title=say("this job may use {mask} of {online} cores", mask=whole(mask), online=whole(online)),
        because=lines(
            None if used is None else say("it uses {cores} of them", cores=cores(used)),
            None if pressure is None else say("CPU pressure {share}", share=percent(pressure)),
        ),
        wrong_if=say("the other cores belong to somebody else"),
        settle=say("run once with more cores: steps per second"),
        advice=(
            say("--cpus-per-task in the scheduler; taskset -p shows the mask"),
            say("unset stray KMP_AFFINITY and GOMP_CPU_AFFINITY"),
            say("until then no more workers than these cores"),
        ),
        short_advice=say("ask for more cores"),
    )


def _threads(fires: Fires, window: Window) -> FindingText:
    threads, usable = number(fires.parameters, "threads") or 0.0, number(fires.parameters, "cores") or 0.0
    system = facts(fires).get("system_ratio")
    return FindingText(
        title=say(
            "workers run {threads} threads on {cores} cores", threads=round(threads), cores=whole(usable)
        ),
        because=lines(
            None
            if system is None
            else say("{share} of the CPU time goes to the kernel", share=percent(system)),
            say("CPU pressure {share}", share=percent(facts(fires).get("cpu_pressure_ratio", 0.0))),
        ),
        wrong_if=say("the kernel's time goes into reading files"),
        settle=say("OMP_NUM_THREADS=1 for one run"),
        advice=(
            say("cv2.setNumThreads(0) where workers start"),
            say("OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 for workers"),
            say("no more workers than cores"),
        ),
        short_advice=say("OMP_NUM_THREADS=1 for workers"),
    )


def _clock(fires: Fires, window: Window) -> FindingText:
    clock, most = number(fires.parameters, "clock") or 0.0, number(fires.parameters, "most") or 0.0
    return FindingText(
        title=say("the CPU runs at {clock} of {most} MHz", clock=round(clock), most=round(most)),
        because=lines(
            say("cores are throttled by heat") if fires.variant == "hot" else None,
            say("the governor is powersave") if fires.variant == "governor" else None,
            say("main thread or workers keep a core busy all the time"),
        ),
        wrong_if=say("all cores are busy and share the power"),
        settle=say("the performance profile for one run"),
        advice=(say("the performance profile"), say("a laptop on mains"), say("the cooling of the CPU")),
        short_advice=say("performance profile, CPU cooling"),
    )


def _ghost(fires: Fires, window: Window) -> FindingText:
    held, orphans = number(fires.parameters, "bytes") or 0.0, str(fires.parameters.get("orphans", ""))
    return FindingText(
        title=say("{size} of GPU memory are held by nobody listed", size=gib(held)),
        because=lines(
            say("left-over workers: pid {pids}", pids=orphans)
            if orphans
            else say("no process accounts for it"),
        ),
        wrong_if=say("a container or another user's process is hidden from here"),
        settle=say("fuser -v /dev/nvidia* as administrator"),
        advice=(
            say("end the left-over workers, after asking their owner")
            if orphans
            else say("look for left-over processes"),
            say("administrator: fuser -v /dev/nvidia*"),
            say("last resort: reset the card or reboot"),
        ),
        short_advice=say("end left-over workers") if orphans else say("fuser -v /dev/nvidia*"),
    )


def _shm(fires: Fires, window: Window) -> FindingText:
    ratio, total = number(fires.parameters, "ratio") or 0.0, number(fires.parameters, "total") or 0.0
    small = fires.variant == "small"
    return FindingText(
        title=say("shared memory for the workers is small: {size}", size=gib(total))
        if small
        else say("shared memory for the workers is {share} full", share=percent(ratio)),
        because=lines(say("{share} of {size} in /dev/shm are used", share=percent(ratio), size=gib(total))),
        wrong_if=say("another program fills /dev/shm"),
        settle=say("df -h /dev/shm while it trains"),
        advice=(
            say("--shm-size=8g or --ipc=host for the container"),
            say("fewer workers, or less prefetching"),
            say("smaller batches in flight"),
        ),
        short_advice=say("--shm-size=8g or --ipc=host"),
    )


def _free(fires: Fires, window: Window) -> FindingText:
    index, uuid = round(number(fires.parameters, "number") or 0), str(fires.parameters["uuid"])
    return FindingText(
        title=say("GPU {number} ({name}) is free", number=index, name=str(fires.parameters["name"])),
        because=lines(
            say("nothing has run there for two minutes"),
            say("the scheduler assigned this card to the job") if fires.variant == "assigned" else None,
        ),
        wrong_if=say("it is kept for somebody"),
        settle=say("one run on the other card: steps per second"),
        advice=(
            say("CUDA_VISIBLE_DEVICES={uuid}", uuid=uuid),
            say("CUDA_DEVICE_ORDER=PCI_BUS_ID, so that numbers match nvidia-smi"),
            say("ask the scheduler for a card of its own"),
        ),
        short_advice=say("move to GPU {number}", number=index),
    )


def _spill(fires: Fires, window: Window) -> FindingText:
    used, traffic = number(fires.parameters, "used") or 0.0, number(fires.parameters, "traffic") or 0.0
    return FindingText(
        title=say("GPU memory spills into main memory"),
        because=lines(
            say("{used} of the memory used", used=percent(used)),
            say("PCIe {traffic} in use all the time", traffic=percent(traffic)),
        ),
        wrong_if=say("the data set is streamed to the card on purpose"),
        settle=say("a smaller batch: is it suddenly fast?"),
        advice=(
            say("a smaller batch, or activation checkpointing"),
            say("driver setting: prefer no system memory fallback"),
            say("end other GPU programs"),
        ),
        short_advice=say("a smaller batch"),
    )


TEXTS: dict[str, RuleText] = {
    "numa-remote": RuleText(
        title="on the wrong NUMA node",
        label="NUMA",
        render=_numa,
        sees="On which cores main process and workers ran, against the GPU's NUMA node.",
        decides="70 % of their CPU time over a minute on other nodes (ends below 50 %), and pulses or 20 % of the link in use.",
        unlike="A job that is bound to the right node; machines that do not say where the GPU belongs.",
        steps=(
            "numactl with the GPU's node for cores and memory.",
            "The launcher's own binding, for each rank.",
            "Compare steps per second: the gain is often small.",
        ),
        wrong_if="the node has no cores left for it.",
        settle="numactl on the GPU's node for one run.",
        sources="NVML's CPU affinity; 70 % is our own.",
    ),
    "cpu-mask-narrow": RuleText(
        title="few of the machine's cores allowed",
        label="core mask",
        render=_mask,
        sees="The cores the job may use, against the machine's and its GPUs.",
        decides="Less than half of a fair share (cores per GPU), and 90 % of them in use, or CPU pressure of 10 % with a job that queues "
        "(ends below 5 %). A warning beside a waiting GPU.",
        unlike="A deliberate fair share; a quota, which leaves the mask whole; a GPU that works steadily at 85 % or more.",
        steps=(
            "--cpus-per-task in the scheduler; taskset -p shows the mask.",
            "Unset stray KMP_AFFINITY and GOMP_CPU_AFFINITY.",
            "Until then no more workers than these cores.",
        ),
        wrong_if="the other cores belong to somebody else.",
        settle="run once with more cores.",
        sources="Our own.",
    ),
    "thread-oversubscription": RuleText(
        title="more threads than cores",
        label="threads",
        render=_threads,
        sees="Threads of the workers, CPU pressure, and how much of the CPU time goes to the kernel.",
        decides="More than 4 threads a core, pressure of 30 % (ends below 15 %) and 20 % of the CPU time in the kernel.",
        unlike="Sleeping threads are harmless; decoding is user time.",
        steps=(
            "cv2.setNumThreads(0) where workers start.",
            "OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 for workers.",
            "No more workers than cores.",
        ),
        wrong_if="the kernel's time goes into reading files.",
        settle="OMP_NUM_THREADS=1 for one run.",
        sources="Cases of mmdetection and PaddleSeg (9 and 18 % slower); thresholds are our own.",
    ),
    "cpu-governor": RuleText(
        title="the CPU is held at a low clock",
        label="CPU clock",
        render=_clock,
        sees="The clock of busy cores against their highest, the governor, and thermal throttling.",
        decides="Beside a finding of the CPU's side, with a core at 0.95: below 60 % of the highest clock for a minute, or below 90 % with "
        "throttling or a pinning powersave governor.",
        unlike="powersave is the normal governor of intel_pstate and amd-pstate.",
        steps=("The performance profile.", "A laptop on mains.", "The cooling of the CPU."),
        wrong_if="all cores are busy and share the power.",
        settle="the performance profile for one run.",
        sources="Kernel documentation; thresholds are our own.",
    ),
    "ghost-memory": RuleText(
        title="GPU memory held by nobody listed",
        label="ghost memory",
        render=_ghost,
        sees="Memory in use against what the listed processes and the driver hold.",
        decides="1 GiB and 5 % of the memory unaccounted for during a minute (ends below 512 MiB), beyond 700 MiB for the driver. "
        "Beside a listed job, and without left-over workers, 25 %.",
        unlike="Other users' processes, which are listed; containers that hide processes.",
        steps=(
            "End left-over workers, after asking their owner.",
            "Administrator: fuser -v /dev/nvidia*.",
            "Last resort: reset the card or reboot.",
        ),
        wrong_if="a container or another user's process is hidden from here.",
        settle="fuser -v /dev/nvidia* as administrator.",
        sources="Reports of orphaned workers; numbers are our own.",
    ),
    "shm-nearly-full": RuleText(
        title="shared memory for the workers is short",
        label="/dev/shm",
        render=_shm,
        sees="Size and use of /dev/shm while workers hand batches over through it.",
        decides="90 % used (ends below 80 %) is a warning; 64 MiB or less in a container a notice.",
        unlike="Main memory that is short, of which it is a part.",
        steps=(
            "--shm-size=8g or --ipc=host for the container.",
            "Fewer workers, or less prefetching.",
            "Smaller batches in flight.",
        ),
        wrong_if="another program fills /dev/shm.",
        settle="df -h /dev/shm while it trains.",
        sources="90 and 80 % in netdata's way; 64 MiB is Docker's default.",
    ),
    "wrong-gpu": RuleText(
        title="a better card is free",
        label="other card",
        render=_free,
        sees="The other cards of the machine, their models and what runs on them.",
        decides="Another card without a job for 120 s and 5 % of memory used, at least as good while this one is shared, or better by a quarter.",
        unlike="A card that a scheduler assigned.",
        steps=(
            "CUDA_VISIBLE_DEVICES with the other card's uuid.",
            "CUDA_DEVICE_ORDER=PCI_BUS_ID, so that numbers match nvidia-smi.",
            "Ask the scheduler for a card of its own.",
        ),
        wrong_if="it is kept for somebody.",
        settle="one run on the other card.",
        sources="The essay; numbers are our own.",
    ),
    "sysmem-spill": RuleText(
        title="GPU memory spills into main memory",
        label="spilling",
        render=_spill,
        sees="A full card and steady traffic over the link, on Windows and WSL.",
        decides="97 % used for a minute (ends below 93 %) and 30 % of the link in use, without a cause in the loader.",
        unlike="Linux reports an error instead.",
        steps=(
            "A smaller batch, or activation checkpointing.",
            "Driver setting: prefer no system memory fallback.",
            "End other GPU programs.",
        ),
        wrong_if="the data set is streamed to the card on purpose.",
        settle="a smaller batch: is it suddenly fast?",
        sources="Reports of WSL users; numbers are our own.",
    ),
}
