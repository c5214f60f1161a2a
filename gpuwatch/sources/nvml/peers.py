"""Between the GPUs of one machine: may they read each other's memory, and which way do they take?

Asked once per pair, after a tick was handed over: nobody waits for it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from gpuwatch.model import GpuInfo
from gpuwatch.sources.nvml import errors
from gpuwatch.sources.nvml.caller import STUCK_AFTER_S, Caller
from gpuwatch.sources.nvml.poller import judge

FIELDS = ("peer_access", "peer_path")
#: More GPUs than this in one machine would make hundreds of calls.
MOST_GPUS = 16
#: nvml.h, nvmlGpuP2PStatus_t
ACCESS = {
    0: "ok",
    1: "chipset not supported",
    2: "GPU not supported",
    3: "IOH topology not supported",
    4: "disabled by regkey",
    5: "not supported",
}
#: nvml.h, nvmlGpuTopologyLevel_t
PATHS = {
    0: "internal",
    10: "single switch",
    20: "multiple switches",
    30: "host bridge",
    40: "node",
    50: "system",
}
#: nvmlGpuP2PCapsIndex_t. Not the binding's constant: that is the tuple (0,) in every release so far.
_READ = 0
#: In the inventory until the answers are there; the only reason a single GPU ever gets.
NOT_ASKED = "asked after the first reading, where there are 2 to 16 GPUs"
#: Work between two ticks; the rest of the pairs waits for the next pause.
_BUDGET_S = 0.1


@dataclass(slots=True)
class _Question:
    """One function about a pair, with its answers by pair of uuids."""

    function: str
    arguments: tuple[int, ...]
    words: Mapping[int, str]
    answers: dict[frozenset[str], str] = field(default_factory=dict)
    asked: set[frozenset[str]] = field(default_factory=set)
    reason: str = ""  # why an answer is missing

    def ask(self, api: Any, one: "Peer", other: "Peer", caller: Caller) -> None:
        """Raises GpuGoneError or DriverGoneError."""
        pair = frozenset((one.uuid, other.uuid))
        if pair in self.asked:
            return
        self.asked.add(pair)
        function: Callable[..., Any] | None = getattr(api, self.function, None)
        try:
            if function is None:
                raise errors.MissingFunctionError(self.function)
            code = caller.call(function, one.handle, other.handle, *self.arguments)
        except Exception as error:
            failure = errors.code_of(error)
            self.reason = errors.text(failure)
            judge(failure, caller)
        else:
            self.answers[pair] = self.words.get(code, f"unknown ({code})")

    def of(self, uuid: str, others: list[str]) -> dict[str, str]:
        found = ((other, self.answers.get(frozenset((uuid, other)))) for other in others)
        return {other: answer for other, answer in found if answer is not None}


@dataclass(frozen=True, slots=True)
class Peer:
    index: int
    uuid: str
    handle: Any


class Peers:
    """All pairs of one connection; what was answered, or refused, is not asked again."""

    def __init__(self) -> None:
        self._access = _Question("nvmlDeviceGetP2PStatus", (_READ,), ACCESS)
        self._path = _Question("nvmlDeviceGetTopologyCommonAncestor", (), PATHS)
        self._told: tuple[str, ...] = ()

    def look(self, api: Any, gpus: list[Peer], caller: Caller) -> bool:
        """True when all pairs are known and nobody was told yet. Raises GpuGoneError or DriverGoneError."""
        uuids = tuple(gpu.uuid for gpu in gpus)
        if uuids == self._told or not 2 <= len(gpus) <= MOST_GPUS:
            return False
        end_s = caller.now_s() + _BUDGET_S
        for place, one in enumerate(gpus):
            caller.gpu, caller.limit_s = one.index, STUCK_AFTER_S
            for other in gpus[place + 1 :]:
                for question in (self._access, self._path):
                    question.ask(api, one, other, caller)
                if caller.now_s() > end_s:
                    return False
        self._told = uuids
        return True

    def tell(self, info: GpuInfo) -> GpuInfo:
        """The same GPU with what is known of its way to the others."""
        others = [uuid for uuid in self._told if uuid != info.uuid]
        absent = {name: reason for name, reason in info.absent.items() if name not in FIELDS}
        found = []
        for name, question in zip(FIELDS, (self._access, self._path), strict=True):
            answers = question.of(info.uuid, others)
            found.append(answers)
            if len(answers) < len(others):
                absent[name] = question.reason
        return replace(info, peer_access=found[0], peer_path=found[1], absent=absent)
