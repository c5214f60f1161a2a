"""Loading the Python binding and the driver library; no other room of the program does either."""

import ctypes
import importlib
import re
import sys
from typing import Any

from gpuwatch.sources.tree import Tree

LIBRARY = "libnvidia-ml.so.1"
#: Where distributions, WSL, container runtimes and Nix put the library when the loader does not know.
LIBRARY_FOLDERS = (
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/lib/x86_64-linux-gnu",
    "/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/lib64",
    "/usr/lib",
    "/usr/lib/wsl/lib",
    "/usr/lib/nvidia",
    "/usr/lib64/nvidia",
    "/usr/local/nvidia/lib64",
    "/run/opengl-driver/lib",
)


class BindingError(Exception):
    """The binding cannot be used; the text says why in one sentence."""


def load_binding() -> Any:
    """The `pynvml` module. Any exception of its import is named, none passes (B014).

    Raises BindingError.
    """
    try:
        module: Any = importlib.import_module("pynvml")
    except Exception as error:
        raise BindingError(f"the Python binding pynvml fails to import: {_describe(error)}") from error
    if not hasattr(module, "nvmlInitWithFlags") or not hasattr(module, "nvmlDeviceGetFieldValues"):
        raise BindingError("the installed module pynvml is not the one of nvidia-ml-py")
    return module


def _describe(error: Exception) -> str:
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0]}" if text else type(error).__name__


def load_library(api: Any, tree: Tree) -> str | None:
    """Load the driver library by name, else by usual full paths (B002).

    Returns the full path when only that worked, None when the loader knew it. Raises the binding's
    LIBRARY_NOT_FOUND error.
    """
    try:
        api._LoadNvmlLibrary()
    except api.NVMLError:
        if sys.platform.startswith("linux"):
            for path in candidates(tree):
                try:
                    library = ctypes.CDLL(path)
                except OSError:
                    continue
                api.nvmlLib = library
                return path
        raise
    return None


def candidates(tree: Tree) -> list[str]:
    """Full paths to try: each folder with the plain name, then with the kernel module's version."""
    names = [LIBRARY]
    if version := kernel_module_version(tree):
        names.append(f"libnvidia-ml.so.{version}")
    return [f"{folder}/{name}" for name in names for folder in LIBRARY_FOLDERS]


def kernel_module_version(tree: Tree) -> str | None:
    """From /proc/driver/nvidia/version; None when no module is loaded or it is not visible."""
    try:
        line = tree.read("/proc/driver/nvidia/version").decode("utf-8", "replace").split("\n", 1)[0]
    except OSError:
        return None
    found = re.search(r"\b(\d{3,4}\.\d+(?:\.\d+)?)\b", line)
    return found.group(1) if found else None


def loaded_library(tree: Tree) -> str | None:
    """Path of the driver library that this process has mapped, with links resolved."""
    try:
        maps = tree.read("/proc/self/maps").decode("utf-8", "replace")
    except OSError:
        return None
    for line in maps.splitlines():
        if "libnvidia-ml.so" in line:
            return line[line.index("/") :].removesuffix(" (deleted)") if "/" in line else None
    return None


def library_version(path: str | None) -> str | None:
    """The version in a library's file name: libnvidia-ml.so.580.65.06."""
    found = re.search(r"\.so\.(\d{3,4}\.\d+(?:\.\d+)?)$", path or "")
    return found.group(1) if found else None


def version_tuple(version: str | None) -> tuple[int, ...]:
    """(580, 65, 6) of "580.65.06"; () when unknown, which is older than everything."""
    if not version:
        return ()
    return tuple(int(part) for part in re.findall(r"\d+", version))
