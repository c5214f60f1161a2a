"""Network interfaces: /proc/net/dev, with their speed where the driver knows it.

Bridges, bonds, VLANs and tunnels repeat what their physical interface counts, so only the bottom
of a stack is kept; in a container that is the one interface it has.
"""

import re

from gpuwatch.clean import decode
from gpuwatch.model import NetworkReading
from gpuwatch.sources.tree import Tree

_NOT_PHYSICAL = re.compile(
    r"lo|(veth|docker|br-|br\d|virbr|vmbr|cni|flannel|cali|cilium|lxc|lxd|tunl|tun|tap|wg|tailscale|zt|ifb|dummy"
    r"|sit|gre|erspan|ip6|bond|team|vlan|macvtap|vxlan|kube|nodelocaldns|ovs).*|.*[.@].*"
)
_SPEED_S = 30.0
_RECEIVED, _SENT = 0, 8  # columns behind the colon


class NetworkReader:
    """Byte counters per interface, once per tick. Unused interfaces (0 bytes both ways) are left out."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._names: dict[bytes, str | None] = {}  # None: not of interest
        self._speeds: dict[str, float | None] = {}
        self._looked_s = -_SPEED_S

    def read(self, now_s: float) -> tuple[NetworkReading, ...]:
        """OSError without /proc/net/dev. A line that is not understood is left out."""
        if now_s - self._looked_s >= _SPEED_S:
            self._looked_s = now_s
            self._speeds.clear()
        readings = []
        for line in self._tree.read("/proc/net/dev").split(b"\n"):
            head, colon, tail = line.rpartition(b":")
            name = self._name(head.strip()) if colon else None
            if name is None:
                continue
            words = tail.split()
            if len(words) <= _SENT or not (words[_RECEIVED].isdigit() and words[_SENT].isdigit()):
                continue
            received, sent = int(words[_RECEIVED]), int(words[_SENT])
            if received or sent:
                readings.append(NetworkReading(name, received, sent, self._speed(name)))
        return tuple(readings)

    def _name(self, raw: bytes) -> str | None:
        if raw not in self._names:
            name = decode(raw)
            self._names[raw] = None if not name or _NOT_PHYSICAL.fullmatch(name) else name
        return self._names[raw]

    def _speed(self, name: str) -> float | None:
        if name not in self._speeds:
            self._speeds[name] = _read_speed(self._tree, name)
        return self._speeds[name]


def _read_speed(tree: Tree, name: str) -> float | None:
    """Bytes per second; the file holds Mbit/s, -1 where unknown, and refuses while the link is down."""
    try:
        megabits = int(tree.read(f"/sys/class/net/{name}/speed"))
    except (OSError, ValueError):
        return None
    return megabits * 1e6 / 8 if megabits > 0 else None
