"""One tick of diagnosis: job states, windows, rules, findings, ledgers, checks, verdict.

Pure: time comes in with the samples, so an hour can be diagnosed in a second and comes out the same.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpuwatch.diagnosis.checks import check_results, not_checked
from gpuwatch.diagnosis.engine_ledgers import all_spans
from gpuwatch.diagnosis.engine_looks import Turns, evaluate, look
from gpuwatch.diagnosis.engine_suppression import suppressed
from gpuwatch.diagnosis.engine_teams import Teams
from gpuwatch.diagnosis.engine_windows import HOST, Windows
from gpuwatch.diagnosis.interface import Abstain, Clear, Outcome, Rule
from gpuwatch.diagnosis.jobs import JobTracker
from gpuwatch.diagnosis.ledger_causes import Label, attribute, claims_of
from gpuwatch.diagnosis.ledger_parts import NOBODY, Claimed
from gpuwatch.diagnosis.lifecycle import Track
from gpuwatch.diagnosis.lifecycle_findings import FindingBook, Key, Member, Render, worst_first
from gpuwatch.diagnosis.verdict import VerdictMaker
from gpuwatch.diagnosis.verdict_facts import GpuFacts, TickFacts
from gpuwatch.diagnosis.window import Window
from gpuwatch.diagnosis.window_builder import GpuMemory
from gpuwatch.history import History
from gpuwatch.model import (
    CheckResult,
    Diagnosis,
    Event,
    Finding,
    Layer,
    Ledger,
    LedgerSpans,
    Machine,
    NotChecked,
    ProcessKey,
    ProcessReading,
    Sample,
    Verdict,
)

#: Check lines and the list of what was not checked are drawn up this often, and when findings change.
LISTS_EVERY_S = 2.0
#: Ledgers of the last quarter of an hour and of the run move slowly.
SPANS_EVERY_S = 10.0
#: Rules about things that happened once look back this far.
EVENTS_S = 600.0


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The rules, where each belongs (layer and check), its texts, and its name in the ledger bar."""

    rules: tuple[Rule, ...]
    places: Mapping[str, tuple[Layer, str]]
    render: Render
    label: Label


def built_in() -> Catalogue:
    """The product's own rules and texts."""
    from gpuwatch.diagnosis.catalogue import PLACES
    from gpuwatch.diagnosis.rules import RULES
    from gpuwatch.diagnosis.texts import label, render

    return Catalogue(RULES, PLACES, render, label)


class Engine:
    """Diagnoses one machine, tick by tick. `evaluate` needs the samples in order of time.

    `rules` None: the built-in ones. `ignored` rules are not evaluated and listed as not checked.
    Raises KeyError for a rule without a place in the catalogue.
    """

    def __init__(
        self,
        rules: tuple[Rule, ...] | None = None,
        ignored: Collection[str] = frozenset(),
        catalogue: Catalogue | None = None,
    ) -> None:
        self._catalogue = catalogue or built_in()
        chosen = self._catalogue.rules if rules is None else rules
        places = self._catalogue.places
        self._ignored = {rule.id: places[rule.id][1] for rule in chosen if rule.id in ignored}
        self._rules = tuple(rule for rule in chosen if rule.id not in ignored)
        self._ruled = frozenset(places[rule.id][1] for rule in self._rules if not rule.unavailable)
        self._gpus: dict[str, GpuMemory] = {}
        self._teams = Teams()
        self._by_check: dict[str, list[Track]] = {}  # all tracks
        self._tracks: dict[str, list[Track]] = {HOST: self._new_tracks(None, ("host",))}
        self._turns: dict[str, Turns] = {HOST: Turns(self._tracks[HOST], None)}
        self._members: dict[str, dict[str, Member]] = {}  # active on each GPU, by rule; and on the host
        self._explained: dict[str, frozenset[Key]] = {}  # findings of each GPU that yield to another
        self._claimed: dict[str, Claimed] = {}
        self._touched: set[str] = set()  # owners with a track that is or was on, evaluated in this tick
        self._book = FindingBook(places, self._catalogue.render)
        self._verdicts = VerdictMaker()
        self._findings: tuple[Finding, ...] = ()
        self._checks: tuple[CheckResult, ...] = ()
        self._not_checked: tuple[NotChecked, ...] = ()
        self._lists_due_s = self._spans_due_s = float("-inf")
        self._ledgers: dict[str, Ledger] = {}
        self._spans: dict[str, LedgerSpans] = {}
        self._verdict = Verdict("")
        self._events: tuple[Event, ...] = ()  # the last EVENTS_S, oldest first

    def evaluate(self, history: History, sample: Sample, machine: Machine) -> Diagnosis:
        """Diagnose this tick; `history` has taken `sample` already."""
        now = sample.monotonic_s
        if sample.events or (self._events and now - self._events[0].time_s > EVENTS_S):
            recent = (*self._events, *sample.events)
            self._events = tuple(event for event in recent if now - event.time_s <= EVENTS_S)
        by_pid = {process.pid: process for process in sample.processes or ()}
        states_changed = self._observe(history, sample, machine, by_pid)
        windows = self._windows(history, sample, machine, by_pid)
        for owner in (*windows.gpus, HOST):
            self._look(owner, windows, now, sample)
        changed = self._collect(windows, now)
        if changed or states_changed or now + 0.5 * sample.interval_s >= self._lists_due_s:
            self._lists_due_s = now + LISTS_EVERY_S
            self._draw(sample, now)
        return Diagnosis(
            time_s=now,
            verdict=self._verdict,
            checks=self._checks,
            findings=self._findings,
            ended=tuple(self._book.ended),
            ledgers=self._ledgers,
            jobs={uuid: memory.tracker.status for uuid, memory in self._gpus.items()},
            shapes={uuid: memory.shape for uuid, memory in self._gpus.items()},
            not_checked=self._not_checked,
            spans=self._spans,
        )

    def _draw(self, sample: Sample, now: float) -> None:
        """Ledgers, verdict and lists: a minute's summary need not be drawn up each second."""
        self._ledgers = {
            uuid: memory.ledger.ledger(uuid, self._claimed.get(uuid, NOBODY))
            for uuid, memory in self._gpus.items()
        }
        self._verdict = self._verdicts.make(self._facts(sample, self._ledgers))
        self._checks = check_results(self._by_check, self._findings, self._ruled)
        self._not_checked = not_checked(self._all_tracks(), self._ignored, len(self._gpus))
        if now >= self._spans_due_s:
            self._spans_due_s = now + SPANS_EVERY_S
            self._spans = all_spans(self._gpus, self._claimed, self._teams.job, now)

    # -- windows

    def _observe(
        self, history: History, sample: Sample, machine: Machine, by_pid: Mapping[int, ProcessReading]
    ) -> bool:
        """Every GPU takes its reading; True when a job's state changed."""
        infos = {info.uuid: info for info in machine.gpus}
        relatives = _by_trainer(sample)
        changed = False
        for reading in sample.gpus:
            uuid = reading.uuid
            memory = self._memory(uuid)
            before = memory.tracker.status
            peers = len(self._teams.members.get(uuid, ())) > 1
            claims = claims_of(self._members.get(uuid, {}), peers)
            claimed = self._claimed.get(uuid, NOBODY)
            memory.observe(history, sample, reading, infos.get(uuid), by_pid, claims, claimed)
            if memory.new_job:
                self._forget_job(uuid)
            trainer = memory.tracker.trainer
            kin = relatives.get(trainer.key, ()) if trainer is not None and trainer.key is not None else ()
            memory.refresh(history, sample, machine, kin)
            changed = changed or memory.tracker.status is not before
        self._teams.update(self._gpus)
        return changed

    def _windows(
        self, history: History, sample: Sample, machine: Machine, by_pid: Mapping[int, ProcessReading]
    ) -> Windows:
        """The windows of this tick's GPUs, and the host's under HOST."""
        infos = {info.uuid: info for info in machine.gpus}
        readings = {reading.uuid: reading for reading in sample.gpus}
        host_rules = frozenset(self._members.get(HOST, ()))

        def make(
            uuid: str, siblings: Sequence[Window], others: Sequence[Window], host_memo: dict[Any, Any]
        ) -> Window:
            return self._gpus[uuid].window(
                history,
                sample,
                machine,
                infos.get(uuid),
                readings[uuid],
                host_rules.union(self._members.get(uuid, ())),
                self._events,
                siblings,
                others,
                by_pid,
                host_memo,
            )

        def make_host(gpus: Sequence[Window], host_memo: dict[Any, Any]) -> Window:
            return Window(
                history,
                sample,
                machine,
                sample.monotonic_s,
                "host:",
                active=host_rules,
                others=gpus,
                by_pid=by_pid,
                events=self._events,
                host_memo=host_memo,
            )

        return Windows(tuple(readings), self._teams.members, make, make_host)

    def _look(self, owner: str, windows: Windows, now: float, sample: Sample) -> None:
        """Evaluate the rules of one GPU, or of the host, whose turn it is."""
        memory = self._gpus.get(owner)
        frozen = memory is not None and bool(memory.frozen)
        event = any(event.gpu == owner for event in sample.events)
        for track in self._turns[owner].due(now, sample.interval_s, frozen, event):
            was_shown = track.shown
            if memory is not None:
                looked = look(track, windows, owner, memory, now, self._said(track.rule, owner))
            elif sample.host is not None or track.rule.without_data:
                looked = True
                track.take(evaluate(track.rule, windows[HOST], track.on), now)
            else:
                looked = False
            if looked and (was_shown or track.shown):
                self._touched.add(owner)

    def _said(self, rule: Rule, owner: str) -> Outcome | None:
        """What a rule about all GPUs of a job found when it was asked about the first of them."""
        first = self._teams.first[owner] if rule.of_team else owner
        if first == owner:
            return None
        return next(track.outcome for track in self._tracks[first] if track.rule is rule)

    def _memory(self, uuid: str) -> GpuMemory:
        memory = self._gpus.get(uuid)
        if memory is None:
            offset_s = float(len(self._gpus) % 5)
            memory = GpuMemory(uuid, f"gpu:{uuid}", offset_s, JobTracker(uuid))
            self._gpus[uuid] = memory
            self._tracks[uuid] = self._new_tracks(uuid, ("gpu", "job"))
            self._turns[uuid] = Turns(self._tracks[uuid], offset_s)
        return memory

    def _new_tracks(self, uuid: str | None, scopes: tuple[str, ...]) -> list[Track]:
        tracks = []
        for rule in self._rules:
            if rule.scope in scopes:
                track = Track(rule, self._catalogue.places[rule.id][1], uuid)
                if rule.unavailable:
                    track.outcome = Abstain(rule.unavailable)
                tracks.append(track)
                self._by_check.setdefault(track.check, []).append(track)
        return tracks

    def _all_tracks(self) -> Iterator[Track]:
        for tracks in self._tracks.values():
            yield from tracks

    def _forget_job(self, uuid: str) -> None:
        self._touched.add(uuid)
        for track in self._tracks[uuid]:
            if track.rule.scope == "job":
                track.reset()
                if not track.rule.unavailable:
                    track.outcome = None

    # -- findings

    def _collect(self, windows: Windows, now: float) -> bool:
        """Turn the tracks that are on into findings; True when the set changed.

        What was not evaluated in this tick stays as it was: nothing ends unseen.
        """
        touched, self._touched = self._touched, set()
        if not touched:
            return False
        if HOST in touched:
            touched = set(windows.gpus)
            self._members[HOST] = self._on(HOST, windows[HOST])
        for owner in windows.gpus:
            if owner in touched:
                self._sort_out(owner, self._on(owner, windows[owner]))
        visible: dict[Key, list[Member]] = {}
        for owner, members in self._members.items():
            for rule, member in members.items():
                visible.setdefault((rule, self._subject(owner, member.track.rule.scope)), []).append(member)
        explained = {key for keys in self._explained.values() for key in keys}
        changed = self._book.update(visible, explained, now)
        self._findings = worst_first(tuple(self._book.active.values()))
        return changed

    def _on(self, owner: str, window: Window) -> dict[str, Member]:
        return {
            track.rule.id: Member(track, track.fires, window)
            for track in self._tracks[owner]
            if track.shown and track.fires is not None
        }

    def _sort_out(self, owner: str, members: dict[str, Member]) -> None:
        """Keep roots, set symptoms aside, and see who claims which part of the ledger."""
        everything = {**self._members.get(HOST, {}), **members}
        dropped = suppressed(everything.keys(), self._attribute(everything).waiting_coverage)
        dropped |= self._fading(owner, members)
        self._explained[owner] = frozenset(
            (rule, self._subject(owner, everything[rule].track.rule.scope)) for rule in dropped
        )
        self._members[owner] = {rule: member for rule, member in members.items() if rule not in dropped}
        kept = {rule: member for rule, member in everything.items() if rule not in dropped}
        self._claimed[owner] = self._attribute(kept)

    def _fading(self, owner: str, members: Mapping[str, Member]) -> set[str]:
        """Symptoms set aside until now whose rule no longer fires: they end as quietly as they stood, also
        when their cause ends first."""
        explained = {rule for rule, _ in self._explained.get(owner, ())}
        return {
            rule
            for rule, member in members.items()
            if rule in explained and isinstance(member.track.outcome, Clear)
        }

    def _subject(self, owner: str, scope: str) -> str:
        """A job's findings are one for all its GPUs: named after the process on the first of them."""
        if owner == HOST:
            return HOST
        return self._teams.job[owner] if scope == "job" else f"gpu:{owner}"

    def _attribute(self, members: Mapping[str, Member]) -> Claimed:
        return attribute(members, self._catalogue.places, self._catalogue.label)

    def _facts(self, sample: Sample, ledgers: Mapping[str, Ledger]) -> TickFacts:
        gpus = []
        for reading in sample.gpus:
            memory = self._gpus[reading.uuid]
            gpus.append(
                GpuFacts(
                    uuid=reading.uuid,
                    index=reading.index,
                    status=memory.tracker.status,
                    steady_s=memory.tracker.steady_s,
                    ledger=ledgers[reading.uuid],
                    findings={
                        finding.rule: finding
                        for finding in reversed(self._findings)
                        if finding.subject in (HOST, self._teams.job[reading.uuid])
                        or reading.uuid in finding.gpus
                    },
                    unmeasured=reading.absent.get("utilization_ratio", ""),
                )
            )
        return TickFacts(sample.monotonic_s, sample.driver, tuple(gpus), self._findings)


def _by_trainer(sample: Sample) -> dict[ProcessKey, list[ProcessReading]]:
    """The processes of each job without its trainer, by the trainer's key."""
    found: dict[ProcessKey, list[ProcessReading]] = {}
    for process in sample.processes or ():
        if process.trainer is not None and process.key != process.trainer:
            found.setdefault(process.trainer, []).append(process)
    return found
