"""Which GPUs work on one job together, and what that job is called."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from gpuwatch.diagnosis.window_builder import GpuMemory
from gpuwatch.model import ProcessKey

#: What a GPU's team follows from: equal for the GPUs of one job, the job's process, whether it can be asked.
_Sign = tuple[tuple[object, ...] | None, ProcessKey | None, bool]


@dataclass(slots=True)
class Teams:
    """By GPU uuid; drawn up anew when a job comes or goes, which is seldom."""

    members: dict[str, tuple[str, ...]] = field(default_factory=dict)  # itself among them, as they were found
    first: dict[str, str] = field(default_factory=dict)  # of the members whose readings are fresh
    job: dict[str, str] = field(default_factory=dict)  # "job:<pid>:<start>", or "gpu:<uuid>" without process
    _signs: list[_Sign] = field(default_factory=list)

    def update(self, gpus: Mapping[str, GpuMemory]) -> None:
        """Once a tick, after every GPU has taken its reading."""
        signs = [_sign(memory) for memory in gpus.values()]
        if signs == self._signs:
            return
        self._signs = signs
        by_group: dict[tuple[object, ...], list[str]] = {}
        for uuid, memory in gpus.items():
            by_group.setdefault(memory.group or (uuid,), []).append(uuid)
        for uuids in by_group.values():
            self._enter(tuple(uuids), gpus)

    def _enter(self, uuids: tuple[str, ...], gpus: Mapping[str, GpuMemory]) -> None:
        """A job is named after the process on the first of its GPUs."""
        first = next((uuid for uuid in uuids if not gpus[uuid].frozen), uuids[0])
        keys = [key for uuid in uuids if (key := _key(gpus[uuid])) is not None]
        job = f"job:{min(keys)[0]}:{min(keys)[1]}" if keys else None
        for uuid in uuids:
            self.members[uuid], self.first[uuid] = uuids, first
            self.job[uuid] = job or f"gpu:{uuid}"


def _key(memory: GpuMemory) -> ProcessKey | None:
    trainer = memory.tracker.trainer
    return None if trainer is None else trainer.key


def _sign(memory: GpuMemory) -> _Sign:
    return memory.group, _key(memory), bool(memory.frozen)
