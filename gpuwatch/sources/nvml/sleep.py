"""Laptop GPUs that suspend: seen through sysfs and /proc alone, which does not wake them.

An open NVML handle keeps such a GPU awake (5-25 W), and any call wakes a sleeping one.
"""

from gpuwatch.clean import decode
from gpuwatch.sources.tree import Tree

_GPUS = "/proc/driver/nvidia/gpus"
_SUPPLIES = "/sys/class/power_supply"
#: On battery: let go after so long without a process; look again at a released GPU after so long
#: (it suspends 6-10 s after the last handle is closed).
IDLE_RELEASE_S = 30.0
PEEK_AFTER_S = 15.0
#: Letting go had no effect: do not try again for a while.
RELEASE_AGAIN_S = 600.0


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


class Rest:
    """When to keep away from the driver so that a laptop GPU can sleep."""

    def __init__(self, gate: SleepGate, now_s: float) -> None:
        self._gate = gate
        self._used_s = now_s  # last moment with a process on a GPU, or after a decision
        self._released_s: float | None = None
        self._no_release_before_s = now_s

    def connected(self, now_s: float) -> None:
        self._used_s = now_s
        self._released_s = None

    def keep_away(self, bus_ids: list[str], now_s: float) -> bool:
        """Whether to stay disconnected: everything sleeps, or was let go just now."""
        if bus_ids and all(self._gate.asleep(bus_id) for bus_id in bus_ids):
            self._released_s = None  # whoever wakes it next has a reason
            return True
        if self._released_s is None:
            return False
        if now_s - self._released_s < PEEK_AFTER_S:
            return True
        # It did not fall asleep: something else keeps it awake, so holding it costs nothing.
        self._no_release_before_s = now_s + RELEASE_AGAIN_S
        return False

    def let_go(self, bus_ids: list[str], busy: bool, now_s: float) -> bool:
        """Whether to disconnect now: on battery, all could sleep, and nothing ran for a while."""
        if busy:
            self._used_s = now_s
        if now_s - self._used_s < IDLE_RELEASE_S or now_s < self._no_release_before_s:
            return False
        self._used_s = now_s  # ask the kernel again only after another while
        if not self._gate.on_battery() or not all(self._gate.may_sleep(bus_id) for bus_id in bus_ids):
            return False
        self._released_s = now_s
        return True
