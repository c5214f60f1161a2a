"""Texts of the rules about the software around the job."""

from gpuwatch.diagnosis.interface import Fires
from gpuwatch.diagnosis.texts.record import RuleText
from gpuwatch.diagnosis.texts.words import byte_rate, cores, facts, lines, number, process_name
from gpuwatch.diagnosis.window import Window
from gpuwatch.language import say
from gpuwatch.model import FindingText

_NOT_LOADED = {
    "build": "its PyTorch is built for the CPU only",
    "driver": "its PyTorch is built for CUDA, and the driver is not loaded",
    "context": "it holds a small context and the GPU idles",
    "": "it has no context on any GPU",
}


def _on_cpu(fires: Fires, window: Window) -> FindingText:
    used = number(fires.parameters, "cores") or 0.0
    titles = {
        "build": say("this process computes on the CPU: a CPU-only build of PyTorch"),
        "driver": say("this process computes on the CPU: the driver is not visible to it"),
    }
    return FindingText(
        title=titles.get(fires.variant, say("this process computes on the CPU, beside an idle GPU")),
        because=lines(
            process_name(fires.parameters),
            say("it uses {cores}", cores=cores(used)),
            say(_NOT_LOADED[fires.variant]),
        ),
        wrong_if=say("it prepares data or simulates, and is meant to"),
        settle=say('python -c "import torch; print(torch.version.cuda, torch.cuda.is_available())"'),
        advice=(
            say('python -c "import torch; print(torch.version.cuda, torch.cuda.is_available())"'),
            say("install the CUDA build, or start the container with its GPUs"),
            say("move the model and each batch to the device"),
        ),
        short_advice=say("is torch.cuda.is_available() true?"),
    )


def _mismatch(fires: Fires, window: Window) -> FindingText:
    runtime, driver = str(fires.parameters["runtime"]), str(fires.parameters["driver"])
    major = fires.variant == "major"
    return FindingText(
        title=say(
            "CUDA runtime {runtime} is newer than the driver's CUDA {driver}", runtime=runtime, driver=driver
        ),
        because=lines(
            say("driver {version}", version=window.machine.driver.version or "?"),
            say("a newer major version does not start")
            if major
            else say("a newer minor version works, without compiling for new cards"),
        ),
        wrong_if=say("a forward-compatibility driver is in use"),
        settle=say("nvidia-smi shows the driver's CUDA; torch.version.cuda the runtime's"),
        advice=(
            say("update the driver: it runs older runtimes too"),
            say("or choose a build whose CUDA is not newer than the driver's"),
            say("a toolkit on the machine is not needed for wheels"),
        ),
        short_advice=say("update the driver"),
    )


def _jit(fires: Fires, window: Window) -> FindingText:
    main, writes = facts(fires).get("main_cpu_cores", 0.0), facts(fires).get("write_bytes_per_s", 0.0)
    return FindingText(
        title=say("kernels are being built for this card"),
        because=lines(
            say("the main thread runs {cores} while the GPU idles", cores=cores(main)),
            say("the compiler is loaded, and {rate} are written", rate=byte_rate(writes)),
        ),
        wrong_if=say("it loads a checkpoint or a data set"),
        settle=say("does the second start go faster?"),
        advice=(
            say("use a build that lists this architecture"),
            say("keep the cache on a persistent disk; enlarge it: CUDA_CACHE_MAXSIZE"),
        ),
        short_advice=say("wait once; keep the cache"),
    )


def _shadow(fires: Fires, window: Window) -> FindingText:
    library, path = str(fires.parameters["library"]), str(fires.parameters["path"])
    variable = str(fires.parameters.get("variable", ""))
    return FindingText(
        title=say("another copy of {library} is loaded", library=library),
        because=lines(
            say("{path} is mapped", path=path),
            say("{variable} names its folder", variable=variable) if variable else None,
        ),
        wrong_if=say("a tuned container replaces it on purpose"),
        settle=say("run once with LD_LIBRARY_PATH unset: steps per second"),
        advice=(
            say("run once with LD_LIBRARY_PATH unset"),
            say("keep one source of CUDA libraries"),
            say("compare steps per second"),
        ),
        short_advice=say("unset LD_LIBRARY_PATH once"),
    )


def _switch(fires: Fires, window: Window) -> FindingText:
    name, value, cost = (str(fires.parameters.get(key, "")) for key in ("name", "value", "cost"))
    others = [found.key for found in fires.evidence if found.key != name and found.key.isupper()]
    wrapper = fires.variant == "wrapper"
    return FindingText(
        title=say("the job runs under {name}", name=name)
        if wrapper
        else say("a debugging switch is on: {name}={value}", name=name, value=value),
        because=lines(
            say("it slows down what it watches") if wrapper else say(cost) if cost else None,
            say("also set: {names}", names=", ".join(others)) if others else None,
        ),
        wrong_if=say("it is meant to be on for this run"),
        settle=say("the same run without it: steps per second"),
        advice=(
            say("unset it for the real run"),
            say("look into job scripts and shell start files"),
            say("compare steps per second"),
        ),
        short_advice=say("unset it, compare steps per second"),
    )


TEXTS: dict[str, RuleText] = {
    "not-on-gpu": RuleText(
        title="a training that computes on the CPU",
        label="on the CPU",
        render=_on_cpu,
        sees="A process with a training framework that keeps cores busy and no GPU.",
        decides="1.5 cores over a minute, older than 120 s, no context on any GPU (a warning); or a context below 600 MiB on a GPU "
        "below 3 % for 120 s (a notice). Not when it reads more than 20 MB/s or compiles.",
        unlike="Scripts that prepare data, simulations, an evaluation on the CPU.",
        steps=(
            'python -c "import torch; print(torch.version.cuda, torch.cuda.is_available())".',
            "Install the CUDA build, or start the container with its GPUs.",
            "Move the model and each batch to the device.",
        ),
        wrong_if="it prepares data or simulates, and is meant to.",
        settle="torch.cuda.is_available() in the same environment.",
        sources="The essay's fake GPU training; numbers are our own.",
    ),
    "driver-runtime-mismatch": RuleText(
        title="driver and CUDA runtime do not fit",
        label="versions",
        render=_mismatch,
        sees="The CUDA runtime the process has loaded against the CUDA of the driver.",
        decides="A newer major version is critical (it cannot start), a newer minor one (1 step suffices) a state. Age of the framework is not looked at.",
        unlike="The toolkit on the machine is irrelevant for wheels; forward-compatibility packages are fine.",
        steps=(
            "Update the driver: it runs older runtimes too.",
            "Or choose a build whose CUDA is not newer than the driver's.",
        ),
        wrong_if="a forward-compatibility driver is in use.",
        settle="compare nvidia-smi with torch.version.cuda.",
        sources="NVIDIA's compatibility documentation.",
    ),
    "arch-jit": RuleText(
        title="kernels are being built",
        label="compiling",
        render=_jit,
        sees="A starting job whose main thread is busy, with the driver's compiler loaded and a cache that grows.",
        decides="Main thread at 0.9 core and an idle GPU for a minute, 1 MiB a minute written by the process. The writes stand for the "
        "compute cache, which is not read. A state.",
        unlike="Compilation by torch.compile (child processes), a checkpoint that is loaded (reads).",
        steps=(
            "Use a build that lists this architecture.",
            "Keep the cache on a persistent disk; enlarge it: CUDA_CACHE_MAXSIZE.",
        ),
        wrong_if="it loads a checkpoint or a data set.",
        settle="does the second start go faster?",
        sources="Our own.",
    ),
    "library-shadowing": RuleText(
        title="another copy of a CUDA library is loaded",
        label="libraries",
        render=_shadow,
        sees="From which folders cuDNN, cuBLAS and NCCL are mapped.",
        decides="One of them from 2 folders or in two versions, or from outside although the framework brings its own.",
        unlike="Builds of a distribution or NVIDIA's containers, which have one copy.",
        steps=(
            "Run once with LD_LIBRARY_PATH unset.",
            "Keep one source of CUDA libraries.",
            "Compare steps per second.",
        ),
        wrong_if="a tuned container replaces it on purpose.",
        settle="run once with LD_LIBRARY_PATH unset.",
        sources="The essay; our own.",
    ),
    "debug-env-on": RuleText(
        title="a debugging switch is on",
        label="switches",
        render=_switch,
        sees="Nine names in the environment the job was started with, and profilers among its parents. Nothing else of the environment is kept.",
        decides="CUDA_LAUNCH_BLOCKING=1 is a warning; TORCH_DISTRIBUTED_DEBUG=DETAIL, NCCL_DEBUG=TRACE, CUBLAS_WORKSPACE_CONFIG, "
        "NVIDIA_TF32_OVERRIDE=0, PYTORCH_NO_CUDA_MEMORY_CACHING=1 and, with several GPUs, NCCL_P2P_DISABLE=1 and NCCL_IB_DISABLE=1 a "
        "notice, as is a profiler or sanitizer.",
        unlike="What the program sets itself is not seen.",
        steps=(
            "Unset it for the real run.",
            "Look into job scripts and shell start files.",
            "Compare steps per second.",
        ),
        wrong_if="it is meant to be on for this run.",
        settle="the same run without it.",
        sources="CUDA, NCCL and PyTorch documentation; the essay for P2P.",
    ),
}
