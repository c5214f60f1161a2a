"""The windows of one tick, made when a rule asks for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, overload

from gpuwatch.diagnosis.window import Window

HOST = "host"


class Windows:
    """By owner: a GPU's uuid, or HOST. Most ticks look at a few of them only.

    `make` builds the window of a GPU, given those of the GPUs of its job and those of all others, `make_host`
    the host's, given those of all GPUs; both get the memo of host means that the windows of a tick share.
    `teams`: the GPUs of the same job, by GPU.
    """

    def __init__(
        self,
        gpus: tuple[str, ...],
        teams: Mapping[str, tuple[str, ...]],
        make: Callable[[str, Sequence[Window], Sequence[Window], dict[Any, Any]], Window],
        make_host: Callable[[Sequence[Window], dict[Any, Any]], Window],
    ) -> None:
        self.gpus = gpus
        self._teams = teams
        self._make, self._make_host = make, make_host
        self._present = frozenset(gpus)
        self._made: dict[str, Window] = {}
        self._host_memo: dict[Any, Any] = {}

    def __getitem__(self, owner: str) -> Window:
        found = self._made.get(owner)
        if found is None:
            found = self._made[owner] = self._host() if owner == HOST else self._gpu(owner)
        return found

    def _host(self) -> Window:
        return self._make_host(_Others(self, self.gpus), self._host_memo)

    def _gpu(self, uuid: str) -> Window:
        team = self._teams.get(uuid, ())
        siblings: Sequence[Window] = ()
        if len(team) > 1:  # GPUs that this tick has no reading of are not among them
            siblings = _Others(self, tuple(one for one in team if one != uuid and one in self._present))
        others: Sequence[Window] = ()
        if len(self.gpus) > 1:
            others = _Others(self, tuple(one for one in self.gpus if one != uuid))
        return self._make(uuid, siblings, others, self._host_memo)


class _Others(Sequence[Window]):
    """Other GPUs' windows, made when somebody looks at them."""

    __slots__ = ("_uuids", "_windows")

    def __init__(self, windows: Windows, uuids: tuple[str, ...]) -> None:
        self._windows, self._uuids = windows, uuids

    def __len__(self) -> int:
        return len(self._uuids)

    def __iter__(self) -> Iterator[Window]:
        return map(self._windows.__getitem__, self._uuids)

    @overload
    def __getitem__(self, place: int) -> Window: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Window]: ...
    def __getitem__(self, place: int | slice) -> Window | Sequence[Window]:
        if isinstance(place, slice):
            return [self._windows[uuid] for uuid in self._uuids[place]]
        return self._windows[self._uuids[place]]
