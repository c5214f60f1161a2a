"""The one sampling thread, and how samples get from it to whoever draws."""

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import replace

from gpuwatch.model import DriverState, DriverStatus, Event, Sample
from gpuwatch.sources.base import Clock, Source
from gpuwatch.sources.schedule import ticks

#: Samples kept for somebody who does not take them; the oldest go, what they announced is kept.
MOST_WAITING = 120


class Sampler:
    """Samples `source` in a thread of its own. Everything but the thread's body returns at once.

    `notify` is called from the sampling thread after each sample; it must neither block nor raise.
    It may be set later: what came before then waits to be taken.
    """

    def __init__(
        self,
        source: Source,
        *,
        interval_s: float = 1.0,
        clock: Clock | None = None,
        seed: int | None = None,
        notify: Callable[[], None] | None = None,
    ) -> None:
        self.interval_s = interval_s
        self.notify = notify
        self._clock = clock or Clock()
        self._source = _Unfailing(source, self._clock, interval_s)
        self._seed = seed
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._waiting: deque[Sample] = deque()
        # A daemon: a driver call that never returns must not keep the program from ending.
        self._thread = threading.Thread(target=self._run, name="gpuwatch-sampler", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Ask for the end. The thread closes the source when its present tick is done."""
        self._stop.set()

    def join(self, timeout_s: float) -> bool:
        """Wait for the source to be closed; False when it is not (a driver call hangs)."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def take(self) -> tuple[Sample, ...]:
        """The samples since the last call, oldest first. Feed all of them, draw the last."""
        with self._lock:
            samples = tuple(self._waiting)
            self._waiting.clear()
        return samples

    def _run(self) -> None:
        self._source.open()
        try:
            for sample in ticks(self._source, self._clock, self._stop.wait, self.interval_s, self._seed):
                self._hand_over(sample)
                if self._stop.is_set():
                    break
        finally:
            self._source.close()

    def _hand_over(self, sample: Sample) -> None:
        with self._lock:
            self._waiting.append(sample)
            if len(self._waiting) > MOST_WAITING:
                oldest = self._waiting.popleft()
                self._waiting[0] = _with_news_of(oldest, self._waiting[0])
        notify = self.notify
        if notify is not None:
            notify()


def _with_news_of(lost: Sample, kept: Sample) -> Sample:
    """What is said only once must not be lost with the sample that said it."""
    return replace(kept, events=lost.events + kept.events, machine=kept.machine or lost.machine)


class _Unfailing:
    """A source whose failures are data: one sentence in the driver's status, the last readings kept."""

    def __init__(self, source: Source, clock: Clock, interval_s: float) -> None:
        self._source = source
        self._clock = clock
        self._last = Sample(-1, 0.0, 0.0, interval_s)
        self._problem: str | None = None  # of the last attempt, None when it went well
        self._since_s = 0.0
        self._opened = False
        self._news: list[Event] = []
        self._told: set[str] = set()

    def open(self) -> None:
        try:
            self._source.open()
            self._opened = True
            self._problem = None
        except Exception as error:
            self._note(error)

    def sample(self, deadline_s: float) -> Sample:
        if not self._opened:
            self.open()
        if self._opened:
            try:
                self._last = self._source.sample(deadline_s)
                self._problem = None
                return self._with_news(self._last)
            except Exception as error:
                self._note(error)
        now_s = self._clock.monotonic_s()
        self._last = replace(
            self._last,
            number=self._last.number + 1,
            monotonic_s=now_s,
            wall_s=self._clock.wall_s(),
            late_s=max(0.0, now_s - deadline_s),
            duration_s=0.0,
            driver=DriverStatus(DriverState.ERROR, self._problem or "", since_s=self._since_s),
            thread_bursts=(),
            events=(),
            machine=None,
        )
        return self._last

    def between(self) -> float | None:
        if not self._opened:
            return None
        try:
            return self._source.between()
        except Exception as error:
            sentence = f"reading between two ticks failed: {_text(error)}"
            if sentence not in self._told:
                self._told.add(sentence)
                self._news.append(Event(self._clock.monotonic_s(), "sampling-failed", sentence))
            return None

    def close(self) -> None:
        try:
            self._source.close()
        except Exception as error:
            self._note(error)

    def _with_news(self, sample: Sample) -> Sample:
        if not self._news:
            return sample
        events, self._news = (*sample.events, *self._news), []
        return replace(sample, events=events)

    def _note(self, error: Exception) -> None:
        if self._problem is None:
            self._since_s = self._clock.monotonic_s()
        self._problem = f"sampling failed: {_text(error)}"


def _text(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
