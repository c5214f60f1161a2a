"""The NVML source: one polling thread of its own, so that a hanging driver hangs nothing else.

The sampler's thread asks for a tick, waits briefly and goes on with what is known. A thread that is
stuck in a call about one GPU is abandoned; a fresh one goes on with the other GPUs and skips that
one until the stuck call returns.
"""

import threading

from gpuwatch.sources.base import Clock
from gpuwatch.sources.nvml.caller import Caller, Retired
from gpuwatch.sources.nvml.collector import Collector, NvmlTick
from gpuwatch.sources.tree import Tree

#: The driver's sample rings hold about 10 s; with longer intervals they are emptied in between.
DRAIN_EVERY_S = 5.0
#: How long `close` waits for the thread to give everything back.
CLOSE_WAIT_S = 0.2


class NvmlSource:
    """`start` once, then `tick` from one thread, then `close`. Nothing here raises for the driver."""

    def __init__(
        self,
        clock: Clock,
        tree: Tree,
        *,
        interval_s: float = 1.0,
        only: frozenset[str | int] | None = None,
    ) -> None:
        self._clock = clock
        self._collector = Collector(clock, tree, interval_s, only, threaded=True)
        self._condition = threading.Condition()
        self._wanted = 0  # ticks asked for
        self._done = 0  # ticks taken
        self._closed = False
        self._caller = Caller(clock.monotonic_s)
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start polling; returns at once."""
        self._begin()

    def _begin(self) -> None:
        self._caller = Caller(self._clock.monotonic_s)
        self._thread = threading.Thread(
            target=self._run, args=(self._caller,), name="gpuwatch-nvml", daemon=True
        )
        self._thread.start()

    def tick(self, deadline_s: float, wait_s: float) -> NvmlTick:
        """Ask for one tick and wait at most `wait_s` for it; the newest known is returned.

        `deadline_s` is when the tick was due; a tick still running counts for it.
        """
        self._abandon_stuck_thread()
        with self._condition:
            if self._wanted == self._done:
                self._wanted += 1
            target = self._wanted
            self._condition.notify_all()
            self._condition.wait_for(lambda: self._done >= target or self._closed, wait_s)
        return self._collector.view(self._caller, self._clock.monotonic_s())

    def _abandon_stuck_thread(self) -> None:
        if self._collector.retire(self._caller, self._clock.monotonic_s()):
            with self._condition:
                self._done = self._wanted  # the tick it was busy with never ends
            self._begin()

    def drain(self) -> None:
        """Nothing to do: the thread drains by itself."""

    def close(self) -> None:
        """Give the driver back; a hung thread is left behind (it is a daemon)."""
        with self._condition:
            self._closed = True
            self._condition.notify_all()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(CLOSE_WAIT_S)

    # -- the polling thread ---------------------------------------------------------------------

    def _run(self, caller: Caller) -> None:
        try:
            while self._next(caller):
                pass
            self._collector.close(caller)
        except Retired:
            pass  # another thread has taken over already
        if caller.retired:
            self._collector.returned(caller)

    def _next(self, caller: Caller) -> bool:
        with self._condition:
            asked = self._condition.wait_for(
                lambda: self._wanted > self._done or self._closed or caller.retired, DRAIN_EVERY_S
            )
            if self._closed:
                return False
            target = self._wanted
        if caller.retired:
            raise Retired
        if not asked:
            self._collector.drain(caller)
            return True
        self._collector.run(caller)
        with self._condition:
            if not caller.retired:
                self._done = max(self._done, target)
                self._condition.notify_all()
        self._collector.idle_work(caller)
        return True


class InlineNvml:
    """The same without threads: every call on the caller's, for tests and simulated time."""

    def __init__(
        self,
        clock: Clock,
        tree: Tree,
        *,
        interval_s: float = 1.0,
        only: frozenset[str | int] | None = None,
    ) -> None:
        self._clock = clock
        self._collector = Collector(clock, tree, interval_s, only, threaded=False)
        self._caller = Caller(clock.monotonic_s)

    def start(self) -> None:
        """Nothing to start."""

    def tick(self, deadline_s: float, wait_s: float) -> NvmlTick:
        """One tick, however long the driver takes."""
        self._collector.run(self._caller)
        tick = self._collector.view(self._caller, self._clock.monotonic_s())
        self._collector.idle_work(self._caller)
        return tick

    def drain(self) -> None:
        """Empty the driver's sample rings; call at least every 5 s when ticks are further apart."""
        self._collector.drain(self._caller)

    def close(self) -> None:
        self._collector.close(self._caller)
