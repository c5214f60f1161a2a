"""The expressions of the scenario language: values over time, as a tree, and their parser.

The language is the one of the C test driver, so that one file can drive both: numbers with units,
`+ - * / < > <= >=`, brackets, waveform functions, names of metrics and constants of the GPU model.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field


class ScenarioError(Exception):
    """A mistake in a scenario: one sentence with the file and the line it stands in."""

    def __init__(self, reason: str, file: str = "scenario", line: int = 0) -> None:
        super().__init__(f"{file}:{line}: {reason}" if line else f"{file}: {reason}")
        self.reason = reason
        self.file = file
        self.line = line


@dataclass(frozen=True, slots=True)
class Number:
    value: float


@dataclass(frozen=True, slots=True)
class Time:
    """`t`: seconds since the start."""


@dataclass(frozen=True, slots=True)
class Constant:
    """A property of the GPU: its index (`gpu`) or a figure of its model."""

    name: str


@dataclass(frozen=True, slots=True)
class Reference:
    """Another metric of the same GPU, or `procs_mem`, the memory of its processes."""

    name: str


@dataclass(frozen=True, slots=True)
class Binary:
    operator: str
    left: "Node"
    right: "Node"


@dataclass(frozen=True, slots=True)
class Call:
    """`arguments` in the function's order, None where an optional one was left out.

    `keys` are the times in front of a colon (`steps`, `lin`); `place` seeds noise, and `path` is the
    file behind `busy()`.
    """

    name: str
    arguments: tuple["Node | None", ...]
    keys: tuple["Node | None", ...] = ()
    place: int = 0
    path: str | None = None


Node = Number | Time | Constant | Reference | Binary | Call

_METRIC_WORDS = (
    "util mem_util enc dec jpg ofa mem_used mem_reserved bar1_used temp mem_temp hotspot fan fan_rpm power"
    " power_limit energy clock_sm clock_mem clock_video pstate throttle violation pcie_tx pcie_rx"
    " pcie_counters pcie_gen pcie_gen_max pcie_width pcie_width_max pcie_replay nvlink nvlink_tx nvlink_rx"
    " nvlink_crc nvlink_replay nvlink_recovery ecc_mode ecc_corr ecc_uncorr ecc_corr_agg ecc_uncorr_agg"
    " retired_sbe retired_dbe retired_pending remap_corr remap_uncorr remap_pending remap_failure gpm"
    " sm_active sm_occupancy tensor dram fp64 fp32 fp16 integer persistence compute_mode display_active"
    " display_mode power_source procs proc_util samples fields telemetry device"
)
METRICS = tuple(_METRIC_WORDS.split())
_MODEL_WORDS = (
    "p_default p_idle p_min p_max t_idle t_load t_slowdown t_gpu_max sm_max sm_boost sm_base sm_idle"
    " mem_max mem_idle mem_total reserved gen width links pstate_idle pstate_load"
)
MODEL_CONSTANTS = tuple(_MODEL_WORDS.split())
#: Bits of the clock event reasons (nvml.h), and two words for switches.
NAMED_NUMBERS = {
    "idle": 0x1,
    "app_clocks": 0x2,
    "sw_power_cap": 0x4,
    "hw_slowdown": 0x8,
    "sync_boost": 0x10,
    "sw_thermal": 0x20,
    "hw_thermal": 0x40,
    "hw_power_brake": 0x80,
    "display_clock": 0x100,
    "on": 1,
    "off": 0,
}

_MANY = 64
_WAVE = ("low", "high", "period", "phase")
#: name: (fewest, most, names of the arguments)
FUNCTIONS: Mapping[str, tuple[int, int, tuple[str, ...]]] = {
    "square": (3, 5, ("low", "high", "period", "duty", "phase")),
    "saw": (3, 4, _WAVE),
    "sine": (3, 4, _WAVE),
    "tri": (3, 4, _WAVE),
    "noise": (1, 2, ("amp", "cell")),
    "ramp": (4, 4, ("from", "to", "start", "end")),
    "steps": (1, _MANY, ()),
    "lin": (1, _MANY, ()),
    "loop": (2, 2, ("period", "x")),
    "shift": (2, 2, ("x", "by")),
    "min": (2, _MANY, ()),
    "max": (2, _MANY, ()),
    "clamp": (3, 3, ("x", "low", "high")),
    "if": (3, 3, ()),
    "avg": (2, 2, ("x", "window")),
    "lag": (2, 2, ("x", "tau")),
    "pergpu": (2, 2, ("low", "high")),
    "floor": (1, 1, ()),
    "mod": (2, 2, ()),
    "abs": (1, 1, ()),
    "busy": (0, 1, ("slot",)),
    "busy_power": (0, 1, ("slot",)),
    "busy_membw": (0, 1, ("slot",)),
    "busy_h2d": (0, 1, ("slot",)),
    "busy_d2h": (0, 1, ("slot",)),
    "busy_mem": (0, 1, ("slot",)),
    "busy_pid": (0, 1, ("slot",)),
}

_NUMBER = re.compile(r"(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")
_UNITS = {
    "Ki": 1024.0,
    "Mi": 1024.0**2,
    "Gi": 1024.0**3,
    "Ti": 1024.0**4,
    "K": 1e3,
    "M": 1e6,
    "G": 1e9,
    "T": 1e12,
    "MHz": 1.0,
    "GHz": 1e3,
    "ms": 1e-3,
    "s": 1.0,
    "min": 60.0,
    "h": 3600.0,
    "W": 1.0,
    "C": 1.0,
    "%": 1.0,
}
_UNIT = re.compile(r"(?:([KMGT]i?)B?|MHz|GHz|ms|min|[shWC])(?![A-Za-z0-9_])|%")
_WORD = re.compile(r"[A-Za-z_]\w*")
_KEYWORD = re.compile(r"([A-Za-z_]\w*) *=(?!=)")
_DEEPEST = 100


@dataclass(slots=True)
class ExpressionParser:
    """Reads one expression. `names` are the metrics that may be referred to."""

    text: str
    names: frozenset[str] = frozenset(METRICS)
    place: int = 0
    position: int = 0
    depth: int = field(default=0)

    def parse(self) -> Node:
        """The whole text as one expression; ScenarioError with the reason otherwise."""
        node = self._comparison()
        self._skip()
        if self.position < len(self.text):
            raise ScenarioError(f'left over: "{self.text[self.position :][:24]}"')
        return node

    def _skip(self) -> None:
        while self.position < len(self.text) and self.text[self.position] in " \t":
            self.position += 1

    def _peek(self) -> str:
        self._skip()
        return self.text[self.position : self.position + 1]

    def _take(self, character: str) -> bool:
        if self._peek() != character:
            return False
        self.position += 1
        return True

    def _comparison(self) -> Node:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise ScenarioError("brackets nest too deep")
        node = self._sum()
        operator = self._peek()
        if operator and operator in "<>":
            self.position += 1
            if self.text[self.position : self.position + 1] == "=":
                self.position += 1
                operator += "="
            node = Binary(operator, node, self._sum())
        self.depth -= 1
        return node

    def _sum(self) -> Node:
        node = self._product()
        while (operator := self._peek()) and operator in "+-":
            self.position += 1
            node = Binary(operator, node, self._product())
        return node

    def _product(self) -> Node:
        node = self._atom()
        while (operator := self._peek()) and operator in "*/":
            self.position += 1
            node = Binary(operator, node, self._atom())
        return node

    def _atom(self) -> Node:
        signs = 0
        while self._take("-"):
            signs += 1
        node = self._bare_atom()
        return Binary("-", Number(0.0), node) if signs % 2 else node

    def _bare_atom(self) -> Node:
        if self._take("("):
            node = self._comparison()
            if not self._take(")"):
                raise ScenarioError("missing )")
            return node
        number = _NUMBER.match(self.text, self.position)
        if number:
            self.position = number.end()
            return Number(float(number.group()) * self._unit())
        word = _WORD.match(self.text, self.position)
        if not word:
            rest = self.text[self.position :][:20]
            raise ScenarioError(f'cannot read "{rest}"' if rest else "a value is missing")
        self.position = word.end()
        return self._named(word.group())

    def _unit(self) -> float:
        unit = _UNIT.match(self.text, self.position)
        if not unit:
            return 1.0
        self.position = unit.end()
        return _UNITS[unit.group(1) or unit.group()]

    def _named(self, word: str) -> Node:
        if word in FUNCTIONS and self._peek() == "(":
            self.position += 1
            return self._call(word)
        if word == "t":
            return Time()
        if word == "gpu" or word in MODEL_CONSTANTS:
            return Constant(word)
        if word in NAMED_NUMBERS:
            return Number(float(NAMED_NUMBERS[word]))
        if word == "procs_mem" or word in self.names:
            return Reference(word)
        raise ScenarioError(f'unknown name "{word}"')

    def _call(self, name: str) -> Node:
        fewest, most, words = FUNCTIONS[name]
        self.place += 1
        place = self.place
        path = self._path() if name.startswith("busy") else None
        arguments: dict[int, Node] = {}
        keys: dict[int, Node] = {}
        count = 0
        more = not self._take(")") if path is None else self._more(name)
        while more:
            if count >= most:
                raise ScenarioError(f"too many arguments to {name}()")
            slot = self._slot(count, words)
            value = self._comparison()
            if self._take(":"):
                keys[slot] = value
                value = self._comparison()
            arguments[slot] = value
            count += 1
            more = self._more(name)
        length = max(arguments, default=-1) + 1
        if length < fewest:
            raise ScenarioError(f"{name}() needs {fewest} arguments")
        for slot in range(fewest if words else length):
            if slot not in arguments:
                raise ScenarioError(f"{name}(): argument {slot + 1} is missing")
        places = range(length)
        return Call(name, tuple(map(arguments.get, places)), tuple(map(keys.get, places)), place, path)

    def _more(self, name: str) -> bool:
        if self._take(","):
            return True
        if self._take(")"):
            return False
        raise ScenarioError(f"expected , or ) in {name}()")

    def _slot(self, position: int, words: tuple[str, ...]) -> int:
        self._skip()
        keyword = _KEYWORD.match(self.text, self.position)
        if not keyword or keyword.group(1) not in words:
            return position
        self.position = keyword.end()
        return words.index(keyword.group(1))

    def _path(self) -> str:
        """The first argument of busy(): a path in quotes, or up to a comma or bracket."""
        self._skip()
        found = re.compile(r'"([^"]+)"|([^",)]+)').match(self.text, self.position)
        if not found:
            raise ScenarioError("busy() wants a path first")
        self.position = found.end()
        return found.group(1) or found.group(2).strip()
