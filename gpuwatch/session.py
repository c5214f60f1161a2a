"""The spine: takes samples, feeds history and diagnosis, tells observers.

It does not know where samples come from. Used from one thread, the one that draws.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import replace

from gpuwatch.diagnosis.engine import Engine
from gpuwatch.history import History
from gpuwatch.model import Diagnosis, Event, Machine, OwnCost, Sample, Verdict
from gpuwatch.state import State

#: Told of every sample and what was made of it.
Observer = Callable[[Sample, Diagnosis | None], None]

MOST_EVENTS = 100
#: The monitor's own cost is a mean over this long; what starting up cost is not a part of it.
OWN_COST_S, STARTUP_S = 60.0, 5.0
#: A mean over less says more about the moment than about the cost.
LEAST_COST_S = 10.0


class Session:
    """One sitting before one source. `latest` is None until the first sample came."""

    def __init__(self, interval_s: float = 1.0, ignored: frozenset[str] = frozenset()) -> None:
        self.history = History(interval_s)
        self.latest: State | None = None
        self._ignored = ignored
        self._engine = Engine(ignored=ignored)
        self._machine: Machine | None = None
        self._events: deque[Event] = deque(maxlen=MOST_EVENTS)
        self._observers: list[Observer] = []
        self._own = _OwnCost()
        self._diagnosis_problem = ""

    def observe(self, observer: Observer) -> None:
        """Tell `observer` of every sample from now on. One that raises is dropped, with an event."""
        self._observers.append(observer)

    def feed(self, sample: Sample) -> State:
        """Take the next sample; returns what there is to see now."""
        if sample.machine is not None:
            self._machine = sample.machine
        self._events.extend(sample.events)
        self.history.append(sample)
        self._own.add(sample)
        diagnosis = self._diagnose(sample)
        self._tell(sample, diagnosis)
        self.latest = State(
            history=self.history,
            now_s=sample.monotonic_s,
            tick=self.history.count,
            machine=self._machine,
            sample=sample,
            diagnosis=diagnosis,
            events=tuple(self._events),
            own_cpu_ratio=self._own.cpu_ratio,
            own_rss_bytes=None if sample.own is None else sample.own.rss_bytes,
            ignored=self._ignored,
        )
        return self.latest

    def state(self, now_s: float) -> State:
        """The newest state seen from the moment `now_s` (monotonic), so that its age shows."""
        if self.latest is None:
            return State(history=self.history, now_s=now_s, ignored=self._ignored)
        return replace(self.latest, now_s=now_s)

    def _diagnose(self, sample: Sample) -> Diagnosis | None:
        if self._machine is None:
            return None
        try:
            diagnosis: Diagnosis = self._engine.evaluate(self.history, sample, self._machine)
        except Exception as error:
            # The figures on the screen are still right; say that the verdict is missing, and why.
            problem = f"the diagnosis failed: {_sentence(error)}"
            if problem != self._diagnosis_problem:
                self._diagnosis_problem = problem
                self._events.append(Event(sample.monotonic_s, "diagnosis-failed", problem))
            return Diagnosis(sample.monotonic_s, Verdict(problem))
        return diagnosis

    def _tell(self, sample: Sample, diagnosis: Diagnosis | None) -> None:
        for observer in tuple(self._observers):
            try:
                observer(sample, diagnosis)
            except Exception as error:
                self._observers.remove(observer)
                name = getattr(observer, "__qualname__", type(observer).__name__)
                message = f"{name} failed and is told nothing more: {_sentence(error)}"
                self._events.append(Event(sample.monotonic_s, "observer-dropped", message))


class _OwnCost:
    """CPU of this program as a share of one core, over the last minute."""

    def __init__(self) -> None:
        self._first_s: float | None = None
        self._points: deque[tuple[float, OwnCost]] = deque()

    def add(self, sample: Sample) -> None:
        if sample.own is None:
            return
        if self._first_s is None:
            self._first_s = sample.monotonic_s
        points = self._points
        if points and points[0][0] < self._first_s + STARTUP_S <= sample.monotonic_s:
            points.clear()
        points.append((sample.monotonic_s, sample.own))
        # The oldest point kept is the youngest that is a minute old, so the span is a full minute.
        while len(points) > 1 and points[1][0] <= sample.monotonic_s - OWN_COST_S:
            points.popleft()

    @property
    def cpu_ratio(self) -> float | None:
        if len(self._points) < 2:
            return None
        (start_s, start), (end_s, end) = self._points[0], self._points[-1]
        span_s = end_s - start_s
        return (end.cpu_s - start.cpu_s) / span_s if span_s >= LEAST_COST_S else None


def _sentence(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
