"""Laptop GPUs that suspend: seen through sysfs and /proc alone, which does not wake them.

An open NVML handle keeps such a GPU awake (5-25 W), and any call wakes a sleeping one.
"""

from gpuwatch.clean import decode
from gpuwatch.sources.tree import Tree

_GPUS = "/proc/driver/nvidia/gpus"
_SUPPLIES = "/sys/class/power_supply"


class SleepGate:
    """What the kernel says about the power of the NVIDIA GPUs. Never raises."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree

    def bus_ids(self) -> list[str]:
        """All GPUs of the loaded kernel module in bus order, as 0000:01:00.0; [] when unknown."""
        try:
            return sorted(self._tree.list(_GPUS))
        except OSError:
            return []

    def asleep(self, bus_id: str) -> bool:
        return self._text(f"/sys/bus/pci/devices/{bus_id}/power/runtime_status") in (
            "suspended",
            "suspending",
        )

    def may_sleep(self, bus_id: str) -> bool:
        """Whether the kernel would suspend this GPU if nobody used it."""
        return self._text(f"/sys/bus/pci/devices/{bus_id}/power/control") == "auto"

    def on_battery(self) -> bool:
        """False when there is no battery or no way to tell."""
        try:
            names = self._tree.list(_SUPPLIES)
        except OSError:
            return False
        mains = [name for name in names if self._text(f"{_SUPPLIES}/{name}/type") in ("Mains", "USB")]
        online = [self._text(f"{_SUPPLIES}/{name}/online") for name in mains]
        if "1" in online:
            return False
        batteries = [name for name in names if self._text(f"{_SUPPLIES}/{name}/type") == "Battery"]
        return any(self._text(f"{_SUPPLIES}/{name}/status") == "Discharging" for name in batteries)

    def identity(self, bus_id: str) -> tuple[str | None, str | None]:
        """(name, uuid) as the kernel module knows them; the uuid of a GPU never opened is unknown."""
        fields = {}
        for line in self._text(f"{_GPUS}/{bus_id}/information").splitlines():
            key, _, value = line.partition(":")
            fields[key.strip()] = value.strip()
        name, uuid = fields.get("Model"), fields.get("GPU UUID", "")
        return (decode(name) or None, uuid if uuid.startswith("GPU-") and "?" not in uuid else None)

    def _text(self, path: str) -> str:
        try:
            return self._tree.read(path).decode("utf-8", "replace").strip()
        except OSError:
            return ""
