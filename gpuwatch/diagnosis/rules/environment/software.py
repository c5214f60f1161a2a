"""R14 to R18: the software around the job: a CPU build, versions that do not fit, switches left on."""

import re

from gpuwatch.clean import clean
from gpuwatch.diagnosis.interface import Abstain, Clear, Fires, Outcome
from gpuwatch.diagnosis.rules.waiting import UNSEEN_JOB
from gpuwatch.diagnosis.window import Window
from gpuwatch.model import (
    Confidence,
    Evidence,
    JobState,
    ProcessFacts,
    ProcessReading,
    ProcessRole,
    Severity,
)

# -- not-on-gpu: numbers our own
CPU_CORES, CPU_S, CPU_AGE_S = 1.5, 60.0, 120.0
PREPARES_BYTES_PER_S = 20e6
SMALL_CONTEXT_BYTES, SILENT_UTILIZATION, SILENT_S = 600 * 1024**2, 0.03, 120.0

# -- arch-jit: one busy core, an idle GPU, and a cache that is written
JIT_CORES, JIT_S, JIT_BYTES_PER_S = 0.90, 60.0, 1024**2 / 60
JIT_LIBRARY = "libnvidia-ptxjitcompiler"

# -- library-shadowing
SHADOWED = ("libcudnn", "libcublas", "libnccl")
_VERSION = re.compile(r"\.so\.(\d+(?:\.\d+)*)$")

# -- debug-env-on: what each costs
SWITCHES: dict[str, tuple[str, str]] = {
    # name: (value that is meant, what it costs); "" means any value
    "CUDA_LAUNCH_BLOCKING": ("1", "every launch waits for its kernel"),
    "TORCH_DISTRIBUTED_DEBUG": ("DETAIL", "each collective is checked"),
    "NCCL_DEBUG": ("TRACE", "every call is logged"),
    "CUBLAS_WORKSPACE_CONFIG": ("", "deterministic kernels, which may be slower"),
    "NVIDIA_TF32_OVERRIDE": ("0", "no TF32"),
    "NCCL_P2P_DISABLE": ("1", "no direct path between the GPUs"),
    "NCCL_IB_DISABLE": ("1", "no InfiniBand"),
    "PYTORCH_NO_CUDA_MEMORY_CACHING": ("1", "each tensor is allocated by the driver"),
}
WARNS = "CUDA_LAUNCH_BLOCKING"
OF_SEVERAL_GPUS = ("NCCL_P2P_DISABLE", "NCCL_IB_DISABLE")
_COMPILERS = ("cc1plus", "nvcc", "cicc", "ptxas", "ninja", "cmake")


def not_on_gpu(window: Window, active: bool) -> Outcome:
    """R14: a training framework computes on the CPU while a GPU is there and not used by it. Host scope."""
    if not window.others:
        return Clear("")
    listed = {
        entry.pid for one in window.others for entry in (one.reading.processes or () if one.reading else ())
    }
    hidden = any(one.reading is not None and one.reading.processes is None for one in window.others)
    seen = False
    for process in window.sample.processes or ():
        facts = process.facts
        if process.role is not ProcessRole.OTHER or facts is None or not facts.frameworks:
            continue
        seen = True
        cores = window.history.mean(_entity(process), "cpu_cores", CPU_S)
        if process.pid in listed or hidden or process.name in _COMPILERS:
            continue
        if (
            cores is None
            or cores < CPU_CORES * (0.7 if active else 1.0)
            or (process.age_s or 0.0) < CPU_AGE_S
        ):
            continue
        reads = window.history.mean(_entity(process), "read_chars_per_s", CPU_S)
        if reads is not None and reads > PREPARES_BYTES_PER_S:
            continue
        return _on_cpu(process, facts, cores)
    for one in window.others:
        found = _silent_context(one)
        if found is not None:
            return found
    return Clear("" if not seen else "the framework computes on the GPU")


def _on_cpu(process: ProcessReading, facts: ProcessFacts, cores: float) -> Fires:
    libraries = facts.libraries or ()
    has_cuda = any(name.startswith("libtorch_cuda") for name in libraries)
    has_driver = any(name.startswith("libcuda.so") for name in libraries)
    torch = "torch" in (facts.frameworks or ())
    variant = "build" if torch and not has_cuda else "driver" if torch and not has_driver else ""
    return Fires(
        Confidence.LIKELY,
        (
            Evidence("cpu_cores", f"pid {process.pid} uses", cores, "cores", ">= 1.5", CPU_S),
            Evidence("context", "context on a GPU", "none"),
            Evidence("build", "its framework", _build(variant)),
        ),
        severity=Severity.WARNING,
        variant=variant,
        parameters={
            "pid": float(process.pid),
            "command": clean(process.command or process.name),
            "cores": cores,
        },
    )


def _build(variant: str) -> str:
    return {"build": "built for the CPU only", "driver": "built for CUDA, driver not loaded"}.get(
        variant, "loaded"
    )


def _silent_context(window: Window) -> Fires | None:
    """A small context, an idle GPU and busy cores for two minutes: model or batch stay on the CPU."""
    job, status = window.job, window.status
    if job is None or window.reading is None or status is None or status.state is JobState.SERVING:
        return None
    held = next((p.memory_bytes for p in window.reading.processes or () if p.pid == job.trainer.pid), None)
    cores = job.tree_cpu_cores
    if held is None or held >= SMALL_CONTEXT_BYTES or cores is None or cores < CPU_CORES:
        return None
    if (job.trainer.age_s or 0.0) < CPU_AGE_S + SILENT_S:
        return None
    values = window.present("utilization_ratio", SILENT_S)
    if len(values) * window.sample.interval_s < 0.9 * SILENT_S or max(values) >= SILENT_UTILIZATION:
        return None
    if (job.tree_read_bytes_per_s or 0.0) > PREPARES_BYTES_PER_S:
        return None
    if any(child.name in _COMPILERS for child in job.children):
        return None
    return Fires(
        Confidence.POSSIBLE,
        (
            Evidence("held_bytes", "memory held on the GPU", float(held), "B", "< 600 MiB"),
            Evidence("tree_cpu_cores", "the job uses", cores, "cores", ">= 1.5", 30.0),
        ),
        severity=Severity.NOTICE,
        variant="context",
        parameters={"pid": float(job.trainer.pid), "command": clean(job.trainer.command), "cores": cores},
    )


def _entity(process: ProcessReading) -> str:
    return f"process:{process.pid}:{process.start_ticks}"


def _facts(window: Window) -> ProcessFacts | Abstain:
    job = window.job
    if job is None:
        return Abstain(UNSEEN_JOB)
    facts = job.trainer.facts
    if facts is None:
        return Abstain("its libraries have not been read yet", seconds_left=5.0)
    return facts


def driver_runtime_mismatch(window: Window, active: bool) -> Outcome:
    """R15: the CUDA runtime of the process is newer than the driver's CUDA."""
    facts = _facts(window)
    if isinstance(facts, Abstain):
        return facts
    if facts.library_paths is None:
        return Abstain(facts.absent.get("libraries", "its libraries cannot be read"))
    driver = window.machine.driver.cuda_version
    if driver is None:
        return Abstain("the driver's CUDA version is not known")
    if any("/compat/" in path and "libcuda.so" in path for path in facts.library_paths):
        return Clear("a forward-compatibility driver is loaded")
    found = _runtime(facts.library_paths)
    if found is None:
        return Clear("no CUDA runtime of its own is loaded")
    has = tuple(int(part) for part in driver.split(".")[:2])
    if found[0] > has[0]:
        return _mismatch(window, found, driver, Severity.CRITICAL, "major")
    if len(found) > 1 and len(has) > 1 and found[:2] > has[:2]:
        return _mismatch(window, found, driver, Severity.STATE, "minor")
    return Clear(f"runtime {'.'.join(map(str, found))}, driver CUDA {driver}")


def _runtime(paths: tuple[str, ...]) -> tuple[int, ...] | None:
    """Version in the name of the mapped runtime library, as far as the name says."""
    for path in paths:
        if path.rpartition("/")[2].startswith("libcudart"):
            match = _VERSION.search(path)
            if match:
                return tuple(int(part) for part in match.group(1).split("."))[:2]
    return None


def _mismatch(
    window: Window, runtime: tuple[int, ...], driver: str, severity: Severity, variant: str
) -> Fires:
    text = ".".join(map(str, runtime))
    return Fires(
        Confidence.LIKELY,
        (
            Evidence("runtime", "CUDA runtime of the process", text),
            Evidence("driver_cuda", "CUDA of the driver", driver),
            Evidence("driver", "driver", window.machine.driver.version or "?"),
        ),
        severity=severity,
        variant=variant,
        parameters={"runtime": text, "driver": driver},
    )


def arch_jit(window: Window, active: bool) -> Outcome:
    """R16: kernels are compiled for this card while the job starts. A state."""
    facts = _facts(window)
    if isinstance(facts, Abstain):
        return facts
    job = window.job
    assert job is not None
    if facts.libraries is None:
        return Abstain(facts.absent.get("libraries", "its libraries cannot be read"))
    if not any(name.startswith(JIT_LIBRARY) for name in facts.libraries):
        return Clear("")
    writes = window.history.mean(_entity(job.trainer), "write_bytes_per_s", JIT_S)
    busy = window.mean("utilization_ratio", JIT_S)
    if job.main_cpu_cores is None or writes is None or busy is None:
        return Abstain("CPU, writes or utilization of the start are not known")
    if job.main_cpu_cores < JIT_CORES or busy > 0.02 or writes < JIT_BYTES_PER_S:
        return Clear("")
    return Fires(
        Confidence.POSSIBLE,
        (
            Evidence("main_cpu_cores", "main thread", job.main_cpu_cores, "cores", ">= 0.9", 30.0),
            Evidence("write_bytes_per_s", "written meanwhile", writes, "B/s", ">= 1 MiB/min", JIT_S),
        ),
        severity=Severity.STATE,
    )


def library_shadowing(window: Window, active: bool) -> Outcome:
    """R17: another copy of a CUDA library is loaded beside, or instead of, the framework's own."""
    facts = _facts(window)
    if isinstance(facts, Abstain):
        return facts
    paths = facts.library_paths
    if paths is None:
        return Abstain(facts.absent.get("libraries", "its libraries cannot be read"))
    wheel = any("/site-packages/nvidia/" in path or "/dist-packages/nvidia/" in path for path in paths)
    for base in SHADOWED:
        copies = [path for path in paths if re.match(rf"{base}\.so", path.rpartition("/")[2])]
        folders = {path.rpartition("/")[0] for path in copies}
        versions = {match.group(1) for path in copies if (match := _VERSION.search(path))}
        outside = [path for path in copies if "/nvidia/" not in path and "/torch/lib" not in path]
        if len(folders) > 1 or len(versions) > 1 or (wheel and outside):
            return _shadowed(base, copies, outside, facts)
    return Clear("one copy of each CUDA library")


def _shadowed(base: str, copies: list[str], outside: list[str], facts: ProcessFacts) -> Fires:
    path = (outside or copies)[0]
    variable = (facts.environment or {}).get("LD_LIBRARY_PATH", "")
    folder = path.rpartition("/")[0]
    blamed = "LD_LIBRARY_PATH" if folder and folder in variable.split(":") else ""
    return Fires(
        Confidence.POSSIBLE,
        (
            *(Evidence(f"copy{place}", base, clean(copy)) for place, copy in enumerate(copies[:3])),
            *([Evidence("variable", "named by", blamed)] if blamed else []),
        ),
        severity=Severity.NOTICE,
        parameters={"library": base, "path": clean(path), "variable": blamed},
    )


def debug_env_on(window: Window, active: bool) -> Outcome:
    """R18: a switch for debugging was set when the job started, or a profiler runs it."""
    facts = _facts(window)
    if isinstance(facts, Abstain):
        return facts
    if facts.environment is None:
        return Abstain(facts.absent.get("environment", "its environment cannot be read"))
    several = bool(window.siblings)
    on = {
        name: facts.environment[name]
        for name, (value, _) in SWITCHES.items()
        if name in facts.environment
        and (not value or facts.environment[name] == value)
        and (several or name not in OF_SEVERAL_GPUS)
    }
    wrappers = facts.wrappers or ()
    if not on and not wrappers:
        return Clear("no debugging switch is set")
    first = next(iter(on), "")
    return Fires(
        Confidence.POSSIBLE,
        (
            *(Evidence(name, name, clean(value)) for name, value in on.items()),
            *(Evidence(f"wrapper_{name}", "runs under", clean(name)) for name in wrappers),
        ),
        severity=Severity.WARNING if WARNS in on else Severity.NOTICE,
        variant="" if on else "wrapper",
        parameters={
            "name": WARNS if WARNS in on else first or wrappers[0],
            "value": clean(on.get(WARNS if WARNS in on else first, "")),
            "cost": SWITCHES[WARNS if WARNS in on else first][1] if on else "",
        },
    )
