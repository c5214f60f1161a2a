"""Reading `#host` settings with their defaults."""

from gpuwatch.sources.simulated.language import Node
from gpuwatch.sources.simulated.parse_values import parse_expression
from gpuwatch.sources.simulated.scenario import Settings
from gpuwatch.sources.simulated.waveforms import Compiler
from gpuwatch.sources.simulated.waves import Wave


class Reader:
    """Settings of the machine, a job or a process, compiled for one GPU (or none)."""

    def __init__(self, settings: Settings, compiler: Compiler) -> None:
        self._settings = settings
        self._compiler = compiler

    def has(self, key: str) -> bool:
        return key in self._settings

    def wave(self, key: str, default: str) -> Wave:
        return self._compiler.wave(self._node(key, default))

    def number(self, key: str, default: str) -> float:
        return self.wave(key, default).at(0.0)

    def text(self, key: str, default: str) -> str:
        value = self._settings.get(key, default)
        return value if isinstance(value, str) else default

    def on(self, key: str, default: bool) -> bool:
        return self.text(key, "on" if default else "off") not in ("off", "0", "no")

    def _node(self, key: str, default: str) -> Node:
        value = self._settings.get(key)
        return parse_expression(default)[0] if value is None or isinstance(value, str) else value
