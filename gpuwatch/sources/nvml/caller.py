"""Every driver call goes through here, so that somebody else can see which one has not returned."""

from collections.abc import Callable
from typing import Any

#: A polling call that takes longer is stuck: its thread is abandoned, the GPU is skipped. A little
#: under two intervals of 1 s, so that the second tick after it began finds it.
STUCK_AFTER_S = 1.8
#: The same for a GPU that was stuck just before: less patience, the others wait meanwhile.
STUCK_AGAIN_AFTER_S = 0.5
#: Opening a GPU wakes it: 1-3 s without persistence mode are normal (driver persistence docs).
STUCK_AFTER_OPENING_S = 15.0


class Retired(BaseException):
    """Raised in an abandoned thread as soon as its call returns; nothing may catch it on the way."""


class Caller:
    """The calls of one thread. `call` is used by that thread, everything else may be read by others.

    `gpu` is the index of the GPU whose turn it is, None for calls about no GPU.
    """

    __slots__ = ("_now", "calls", "failed", "gpu", "limit_s", "name", "retired", "retired_for", "since_s")

    def __init__(self, monotonic_s: Callable[[], float]) -> None:
        self._now = monotonic_s
        self.calls = 0
        self.failed = 0
        self.gpu: int | None = None
        self.limit_s = STUCK_AFTER_S
        self.name: str | None = None
        self.since_s = 0.0
        self.retired = False
        self.retired_for: object = None  # what was in hand when the thread was given up

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Raises what the binding raises, or `Retired` when this thread was given up meanwhile."""
        if self.retired:
            raise Retired
        self.calls += 1
        self.since_s = self._now()
        self.name = function.__name__
        try:
            return function(*arguments)
        finally:
            self.name = None
            if self.retired:
                raise Retired

    def now_s(self) -> float:
        return self._now()

    def stuck_s(self, now_s: float) -> float:
        """Seconds the present call has not returned; 0 when there is none."""
        return 0.0 if self.name is None else max(0.0, now_s - self.since_s)
