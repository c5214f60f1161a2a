"""Memory, swap, paging and pressure: /proc/meminfo, /proc/vmstat, /proc/pressure.

Each parser returns fields of `HostReading`; a field that the file does not have is left out.
"""

import errno

from gpuwatch.sources.host.text import number_after
from gpuwatch.sources.tree import Tree

Fields = dict[str, int]

_MEMINFO = {
    "memory_total_bytes": b"\nMemTotal:",
    "memory_available_bytes": b"\nMemAvailable:",
    "memory_cached_bytes": b"\nCached:",
    "swap_total_bytes": b"\nSwapTotal:",
}
_VMSTAT = {
    "major_fault_count": b"\npgmajfault ",
    "oom_kill_count": b"\noom_kill ",  # since 4.13
    "refault_count": b"\nworkingset_refault_file ",  # since 5.9; before, file and anon in one
}
_VMSTAT_PAGES = {"swap_in_bytes": b"\npswpin ", "swap_out_bytes": b"\npswpout "}

MEMINFO_FIELDS = (*_MEMINFO, "swap_used_bytes")
VMSTAT_FIELDS = (*_VMSTAT, *_VMSTAT_PAGES)
PRESSURE_FIELDS = {
    "cpu": ("cpu_pressure_us", None),  # "full" of the whole system is always 0 for cpu (psi.rst)
    "io": ("io_pressure_us", "io_full_pressure_us"),
    "memory": ("memory_pressure_us", "memory_full_pressure_us"),
}


def parse_meminfo(data: bytes) -> Fields:
    """Bytes; the file counts in KiB."""
    data = b"\n" + data
    fields = {name: 1024 * value for name, value in _numbers(data, _MEMINFO)}
    free = number_after(data, b"\nSwapFree:")
    total = fields.get("swap_total_bytes")
    if free is not None and total is not None and 1024 * free <= total:
        fields["swap_used_bytes"] = total - 1024 * free
    return fields


def parse_vmstat(data: bytes, page_bytes: int) -> Fields:
    """Counters since boot; pages become bytes."""
    data = b"\n" + data
    fields = dict(_numbers(data, _VMSTAT))
    if "refault_count" not in fields:
        older = number_after(data, b"\nworkingset_refault ")
        if older is not None:
            fields["refault_count"] = older
    fields.update((name, page_bytes * value) for name, value in _numbers(data, _VMSTAT_PAGES))
    return fields


def _numbers(data: bytes, keys: dict[str, bytes]) -> list[tuple[str, int]]:
    found = ((name, number_after(data, key)) for name, key in keys.items())
    return [(name, value) for name, value in found if value is not None]


def read_pressure(tree: Tree, resource: str) -> Fields:
    """Microseconds in which at least one task ("some") or every task ("full") waited. OSError."""
    data = tree.read(f"/proc/pressure/{resource}")
    some, full = PRESSURE_FIELDS[resource]
    fields: Fields = {}
    for kind, name in ((b"some ", some), (b"full ", full)):
        at = data.find(kind)
        value = None if at < 0 or name is None else number_after(data, b"total=", at)
        if name is not None and value is not None:
            fields[name] = value
    return fields


def why_no_pressure(error: OSError) -> str:
    """PSI can be left out of a kernel or be compiled in and off (CONFIG_PSI_DEFAULT_DISABLED)."""
    if isinstance(error, FileNotFoundError):
        return "pressure stall information is off in this kernel"
    if error.errno == errno.EOPNOTSUPP:
        return "pressure stall information is switched off (kernel option psi=1 turns it on)"
    if isinstance(error, PermissionError):
        return "not allowed to read /proc/pressure"
    return f"pressure stall information could not be read ({error.strerror or 'no reason given'})"
