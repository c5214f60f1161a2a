"""NVML return values (nvml.h, nvmlReturn_t): what each means here, in words and in consequences."""

from typing import Any

SUCCESS = 0
UNINITIALIZED = 1
INVALID_ARGUMENT = 2
NOT_SUPPORTED = 3
NO_PERMISSION = 4
NOT_FOUND = 6
INSUFFICIENT_POWER = 8
DRIVER_NOT_LOADED = 9
TIMEOUT = 10
IRQ_ISSUE = 11
LIBRARY_NOT_FOUND = 12
FUNCTION_NOT_FOUND = 13
CORRUPTED_INFOROM = 14
GPU_IS_LOST = 15
RESET_REQUIRED = 16
OPERATING_SYSTEM = 17
VERSION_MISMATCH = 18
NO_DATA = 21
ARGUMENT_VERSION_MISMATCH = 25
DEPRECATED = 26
NOT_READY = 27
GPU_NOT_FOUND = 28
UNKNOWN = 999
#: Not NVML's: the binding itself failed on the answer (bytes that are no text, a wrong type).
UNREADABLE = -1

#: The signal does not exist on this GPU or driver; asking again is pointless until a new init.
PERMANENT = frozenset(
    {INVALID_ARGUMENT, NOT_SUPPORTED, FUNCTION_NOT_FOUND, ARGUMENT_VERSION_MISMATCH, DEPRECATED}
)
#: This GPU is gone for every call; the others are not.
GPU_FATAL = frozenset({GPU_IS_LOST, RESET_REQUIRED, GPU_NOT_FOUND})
#: Every handle is void: shut down and initialise again.
DRIVER_FATAL = frozenset({UNINITIALIZED, DRIVER_NOT_LOADED, VERSION_MISMATCH})
#: No new value now; neither an error nor unsupported.
QUIET = frozenset({SUCCESS, NOT_FOUND, TIMEOUT, NO_DATA, NOT_READY})

_TEXTS = {
    UNINITIALIZED: "the driver connection was closed",
    INVALID_ARGUMENT: "not offered by this driver",
    NOT_SUPPORTED: "not supported by this GPU",
    NO_PERMISSION: "no permission to read this",
    NOT_FOUND: "nothing new from the driver",
    INSUFFICIENT_POWER: "the GPU lacks external power: a power cable is missing or loose",
    DRIVER_NOT_LOADED: "the kernel module is not loaded",
    TIMEOUT: "the driver call timed out",
    IRQ_ISSUE: "the GPU's interrupts do not arrive",
    LIBRARY_NOT_FOUND: "the driver library was not found",
    FUNCTION_NOT_FOUND: "this driver version does not offer it",
    CORRUPTED_INFOROM: "the GPU's configuration memory is corrupted",
    GPU_IS_LOST: "the GPU is lost",
    RESET_REQUIRED: "the GPU needs a reset",
    OPERATING_SYSTEM: "blocked by the operating system",
    VERSION_MISMATCH: "driver library and kernel module differ",
    NO_DATA: "no data from the driver",
    ARGUMENT_VERSION_MISMATCH: "this driver version does not know this request",
    DEPRECATED: "removed from this driver version",
    NOT_READY: "the driver is not ready",
    GPU_NOT_FOUND: "the GPU is not there any more",
    UNKNOWN: "unknown driver error 999",
    UNREADABLE: "the driver's answer is unreadable",
}


def text(code: int) -> str:
    """A short reason in words; codes without one keep their number."""
    return _TEXTS.get(code) or f"driver error {code}"


class MissingFunctionError(Exception):
    """The installed binding does not know this function."""


class FieldError(Exception):
    """A field value came back with a return value other than success."""

    def __init__(self, code: int) -> None:
        super().__init__(text(code))
        self.value = code


def code_of(error: BaseException) -> int:
    """The NVML return value behind an exception of the binding.

    `NVMLLibraryMismatchError` is no `NVMLError` and stands for a missing symbol; text that cannot
    be decoded and values that do not fit their field raise Python's own exceptions.
    """
    value: Any = getattr(error, "value", None)
    if isinstance(value, int):
        return value
    if isinstance(error, MissingFunctionError) or type(error).__name__ == "NVMLLibraryMismatchError":
        return FUNCTION_NOT_FOUND
    return UNREADABLE
