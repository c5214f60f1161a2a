"""NVML return codes by the names that scenarios use. The numbers are NVML's public ABI (nvml.h)."""

SUCCESS = 0
UNINITIALIZED = 1
INVALID_ARGUMENT = 2
NOT_SUPPORTED = 3
NO_PERMISSION = 4
NOT_FOUND = 6
INSUFFICIENT_SIZE = 7
TIMEOUT = 10
FUNCTION_NOT_FOUND = 13
VERSION_MISMATCH = 25

_TABLE = (
    (0, "SUCCESS", "Success"),
    (1, "UNINITIALIZED", "Uninitialized"),
    (2, "INVALID_ARGUMENT", "Invalid Argument"),
    (3, "NOT_SUPPORTED", "Not Supported"),
    (4, "NO_PERMISSION", "Insufficient Permissions"),
    (5, "ALREADY_INITIALIZED", "Already Initialized"),
    (6, "NOT_FOUND", "Not Found"),
    (7, "INSUFFICIENT_SIZE", "Insufficient Size"),
    (8, "INSUFFICIENT_POWER", "Insufficient External Power"),
    (9, "DRIVER_NOT_LOADED", "Driver Not Loaded"),
    (10, "TIMEOUT", "Timeout"),
    (11, "IRQ_ISSUE", "Interrupt Request Issue"),
    (12, "LIBRARY_NOT_FOUND", "NVML Shared Library Not Found"),
    (13, "FUNCTION_NOT_FOUND", "Function Not Found"),
    (14, "CORRUPTED_INFOROM", "Corrupted infoROM"),
    (15, "GPU_IS_LOST", "GPU is lost"),
    (16, "RESET_REQUIRED", "GPU requires reset"),
    (17, "OPERATING_SYSTEM", "GPU access blocked by the operating system"),
    (18, "LIB_RM_VERSION_MISMATCH", "Driver/library version mismatch"),
    (19, "IN_USE", "In use by another client"),
    (20, "MEMORY", "Insufficient Memory"),
    (21, "NO_DATA", "No data"),
    (22, "VGPU_ECC_NOT_SUPPORTED", "vGPU is not supported with ECC enabled"),
    (23, "INSUFFICIENT_RESOURCES", "Insufficient Resources"),
    (24, "FREQ_NOT_SUPPORTED", "Frequency not supported"),
    (25, "ARGUMENT_VERSION_MISMATCH", "Argument version mismatch"),
    (26, "DEPRECATED", "Function is deprecated"),
    (27, "NOT_READY", "System is not ready"),
    (28, "GPU_NOT_FOUND", "No GPUs were found"),
    (29, "INVALID_STATE", "Resource not in correct state"),
    (999, "UNKNOWN", "Unknown Error"),
)
BY_NAME = {name: code for code, name, _ in _TABLE}
_TEXTS = {code: text for code, _, text in _TABLE}


def error_text(code: int) -> str:
    """What `nvmlErrorString` says about a code."""
    return _TEXTS.get(code, "Unknown Error")
