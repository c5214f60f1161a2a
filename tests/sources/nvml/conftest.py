"""Fixtures of the NVML tests: a driver made of a table, and a source on it without threads."""

from collections.abc import Callable

import pytest
from fake_nvml import FakeApi, FakeTree, Time

from gpuwatch.sources.nvml import InlineNvml, NvmlTick, connection


class Rig:
    """One source on one fake driver, stepped by hand."""

    def __init__(self, api: FakeApi, tree: FakeTree, interval_s: float, only: frozenset[str | int] | None):
        self.api = api
        self.tree = tree
        self.time = Time()
        self.interval_s = interval_s
        self.source = InlineNvml(self.time.clock, tree, interval_s=interval_s, only=only)
        self.last: NvmlTick

    def tick(self, ticks: int = 1) -> NvmlTick:
        """Take so many ticks, one interval apart; the last one is returned and kept."""
        events = []
        for _ in range(ticks):
            self.last = self.source.tick(self.time.now_s, 0.0)
            events += self.last.events
            self.time.advance(self.interval_s)
        self.events = events
        return self.last


@pytest.fixture
def rig(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Rig]:
    def make(
        gpus: int = 1,
        *,
        files: dict[str, str] | None = None,
        interval_s: float = 1.0,
        only: frozenset[str | int] | None = None,
    ) -> Rig:
        api = FakeApi(gpus)
        monkeypatch.setattr(connection, "load_binding", lambda: api)
        return Rig(api, FakeTree(files), interval_s, only)

    return make
