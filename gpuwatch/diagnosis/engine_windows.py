"""The windows of one tick, made when a rule asks for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, overload

from gpuwatch.diagnosis.window import Window

HOST = "host"


class Windows:
    """By owner: a GPU's uuid, or HOST. Most ticks look at one or two GPUs only.

    `make` builds the plain window of a GPU, `make_host` the host's, given those of all GPUs; both get the
    memo of host means that the windows of a tick share. `groups` are equal for the GPUs of one job.
    """

    def __init__(
        self,
        gpus: tuple[str, ...],
        groups: Mapping[str, tuple[object, ...]],
        make: Callable[[str, dict[Any, Any]], Window],
        make_host: Callable[[Sequence[Window], dict[Any, Any]], Window],
    ) -> None:
        self.gpus = gpus
        self._groups = groups
        self._make, self._make_host = make, make_host
        self._plain: dict[str, Window] = {}
        self._whole: dict[str, Window] = {}
        self._host_memo: dict[Any, Any] = {}

    def plain(self, uuid: str) -> Window:
        """Without the other GPUs."""
        found = self._plain.get(uuid)
        if found is None:
            found = self._plain[uuid] = self._make(uuid, self._host_memo)
        return found

    def __getitem__(self, owner: str) -> Window:
        found = self._whole.get(owner)
        if found is None:
            found = self._whole[owner] = self._host() if owner == HOST else self._with_others(owner)
        return found

    def _host(self) -> Window:
        return self._make_host(_Others(self, self.gpus), self._host_memo)

    def _with_others(self, uuid: str) -> Window:
        window = self.plain(uuid)
        if len(self.gpus) < 2:
            return window
        own = self._groups.get(uuid)
        others = tuple(other for other in self.gpus if other != uuid)
        siblings = (
            tuple(other for other in others if self._groups.get(other) == own) if own is not None else ()
        )
        return replace(window, siblings=_Others(self, siblings), others=_Others(self, others))


class _Others(Sequence[Window]):
    """Other GPUs' windows, made when somebody looks at them."""

    __slots__ = ("_uuids", "_windows")

    def __init__(self, windows: Windows, uuids: tuple[str, ...]) -> None:
        self._windows, self._uuids = windows, uuids

    def __len__(self) -> int:
        return len(self._uuids)

    @overload
    def __getitem__(self, place: int) -> Window: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Window]: ...
    def __getitem__(self, place: int | slice) -> Window | Sequence[Window]:
        if isinstance(place, slice):
            return [self._windows.plain(uuid) for uuid in self._uuids[place]]
        return self._windows.plain(self._uuids[place])
