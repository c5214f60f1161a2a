"""What a person reads when the driver or a GPU is in another state than "ok"."""

import sys

from gpuwatch.model import DriverState, DriverStatus, GpuState, GpuStatus
from gpuwatch.sources.nvml import errors
from gpuwatch.sources.nvml.binding import (
    LIBRARY,
    LIBRARY_FOLDERS,
    kernel_module_version,
    library_version,
    loaded_library,
)
from gpuwatch.sources.tree import Tree

_DEMO = "`gpuwatch demo` shows the program on a simulated GPU"
_KERNEL_LOG = "look for NVRM lines in the kernel log (dmesg, journalctl -k)"


def driver_status(code: int, tree: Tree, since_s: float) -> DriverStatus:
    """The state after initialisation failed, or the driver stopped, with an NVML return value."""
    state, message, advice = _driver_words(code, tree)
    return DriverStatus(state, message, advice, since_s, code)


def _driver_words(code: int, tree: Tree) -> tuple[DriverState, str, str]:
    if code == errors.LIBRARY_NOT_FOUND:
        return _no_library(tree)
    if code == errors.DRIVER_NOT_LOADED:
        return (
            DriverState.NOT_LOADED,
            "The NVIDIA driver is installed, but its kernel module is not loaded.",
            "Load it (modprobe nvidia) or reboot; Secure Boot refuses unsigned modules.",
        )
    if code == errors.VERSION_MISMATCH:
        return _mismatch(tree)
    if code == errors.NO_PERMISSION:
        return (
            DriverState.NO_PERMISSION,
            "This user may not open the NVIDIA device files.",
            "Check the permissions of /dev/nvidia* and, in a container or job, its device rules.",
        )
    if code == errors.OPERATING_SYSTEM:
        return _blocked(tree)
    if code == errors.UNKNOWN:
        return (
            DriverState.ERROR,
            "The NVIDIA driver answers with an unknown error (999).",
            "In a container the device access was probably withdrawn: restart it, or check its cgroup "
            f"device rules; else {_KERNEL_LOG}.",
        )
    return (
        DriverState.ERROR,
        f"The NVIDIA driver cannot be used: {errors.text(code)} ({code}).",
        f"{_KERNEL_LOG[0].upper()}{_KERNEL_LOG[1:]}.",
    )


def _no_library(tree: Tree) -> tuple[DriverState, str, str]:
    state = DriverState.NO_LIBRARY
    if sys.platform == "darwin":
        return state, "There is no NVIDIA driver on this system.", f"{_DEMO}."
    version = kernel_module_version(tree)
    if version:
        return (
            state,
            f"The NVIDIA kernel module {version} is loaded, but its library {LIBRARY} is not here.",
            "In a container: start it with the GPUs and with `utility` among NVIDIA_DRIVER_CAPABILITIES; "
            "else install the driver's libraries.",
        )
    if _is_wsl(tree):
        return (
            state,
            f"No NVIDIA driver library was found ({LIBRARY}, also not in /usr/lib/wsl/lib).",
            "Install the NVIDIA driver on Windows and update WSL; no driver belongs inside the guest.",
        )
    return (
        state,
        f"No NVIDIA driver library was found ({LIBRARY}, also in {len(LIBRARY_FOLDERS)} usual folders).",
        f"Install the NVIDIA driver, or start the container with the GPUs; {_DEMO}.",
    )


def _mismatch(tree: Tree) -> tuple[DriverState, str, str]:
    library = library_version(loaded_library(tree)) or "of another version"
    kernel = kernel_module_version(tree) or "of another version"
    return (
        DriverState.MISMATCH,
        f"The driver was updated under the running kernel: library {library}, kernel module {kernel}.",
        "Reboot, or reload the nvidia kernel modules; if that is done already, start gpuwatch again.",
    )


def _blocked(tree: Tree) -> tuple[DriverState, str, str]:
    message = "Access to the GPUs is blocked by the operating system."
    if _is_wsl(tree):
        return (
            DriverState.NO_PERMISSION,
            message,
            "Under WSL, data-centre cards in TCC mode are refused: the Windows side decides.",
        )
    return DriverState.NO_PERMISSION, message, "Check the device rules of the container, job or sandbox."


def _is_wsl(tree: Tree) -> bool:
    try:
        return b"microsoft" in tree.read("/proc/version").lower()
    except OSError:
        return False


def binding_status(reason: str, since_s: float) -> DriverStatus:
    return DriverStatus(
        DriverState.BINDING,
        f"{reason[0].upper()}{reason[1:]}.",
        "Install it anew: pip uninstall pynvml; pip install --force-reinstall nvidia-ml-py",
        since_s,
    )


def own_fault(error: Exception, since_s: float) -> DriverStatus:
    """A mistake in this program, not in the driver."""
    return DriverStatus(
        DriverState.ERROR,
        f"Reading the GPUs failed inside gpuwatch ({type(error).__name__}: {str(error)[:80]}).",
        "Please report it; the next tick is tried all the same.",
        since_s,
    )


def no_gpus_status(since_s: float) -> DriverStatus:
    return DriverStatus(
        DriverState.NO_GPUS,
        "The NVIDIA driver runs, but it sees no GPU (yet).",
        f"Waiting for one to appear; if one is installed, {_KERNEL_LOG}.",
        since_s,
    )


def none_chosen(count: int, since_s: float) -> DriverStatus:
    """There are GPUs, but not those that were asked for."""
    there = "the one GPU here is" if count == 1 else f"the {count} GPUs here are"
    return DriverStatus(
        DriverState.NO_GPUS,
        f"None of the chosen GPUs is here; {there} left out.",
        "Without --gpus all are shown; nvidia-smi -L lists them.",
        since_s,
    )


def driver_hangs(call: str, seconds: float, since_s: float) -> DriverStatus:
    return DriverStatus(
        DriverState.NOT_ANSWERING,
        f"The NVIDIA driver gives no answer to {call} for {seconds:.0f} s.",
        f"Figures go on when it returns; {_KERNEL_LOG}.",
        since_s,
        errors.TIMEOUT,
    )


def gpu_hangs(call: str, seconds: float, since_s: float) -> GpuStatus:
    return GpuStatus(
        GpuState.NOT_ANSWERING,
        f"no answer to {call} for {seconds:.0f} s",
        f"the other GPUs go on; {_KERNEL_LOG}",
        since_s,
        errors.TIMEOUT,
    )


def gpu_answered_late(seconds: float, since_s: float) -> GpuStatus:
    return GpuStatus(
        GpuState.NOT_ANSWERING,
        f"answered only after {seconds:.0f} s",
        f"it is asked again soon; {_KERNEL_LOG}",
        since_s,
        errors.TIMEOUT,
    )


def gpu_status(code: int, since_s: float) -> GpuStatus:
    """The state of a GPU that could not be opened, or stopped, with an NVML return value."""
    if code == errors.GPU_IS_LOST:
        return GpuStatus(
            GpuState.LOST,
            "lost: it does not answer on the bus any more",
            "look for Xid 79 in the kernel log; power, heat, seating and risers are the usual causes; "
            "a reboot brings it back",
            since_s,
            code,
        )
    if code == errors.RESET_REQUIRED:
        return GpuStatus(
            GpuState.LOST,
            "needs a reset",
            "stop what runs on it, then nvidia-smi --gpu-reset -i N as root, or reboot",
            since_s,
            code,
        )
    if code == errors.NO_PERMISSION:
        return GpuStatus(
            GpuState.HIDDEN,
            "hidden from this session (no permission)",
            "the job or container was not given this GPU",
            since_s,
            code,
        )
    advice = "check the power cables of this card" if code == errors.INSUFFICIENT_POWER else _KERNEL_LOG
    return GpuStatus(GpuState.NO_HANDLE, f"no handle: {errors.text(code)}", advice, since_s, code)


def gpu_asleep(since_s: float, released: bool) -> GpuStatus:
    return GpuStatus(
        GpuState.ASLEEP,
        "let go so that it can sleep (on battery, nothing runs on it)"
        if released
        else "asleep (runtime suspend)",
        "its figures return when a program wakes it; gpuwatch does not",
        since_s,
    )
