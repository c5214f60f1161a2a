"""`gpuwatch scenarios`: list scenarios, and score the diagnosis on folders of labelled ones."""

import argparse
import json
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

from gpuwatch.cli.main import EXIT_FAILED, EXIT_OK, EXIT_USAGE

if TYPE_CHECKING:
    from gpuwatch.scoring.labels import Labels
    from gpuwatch.scoring.measure import Outcome, Run
    from gpuwatch.sources.simulated import Scenario

#: How often a GPU's utilization can be read. The driver's own samples come five or six times a second;
#: without them there is one reading a tick.
CADENCES = ("6hz", "5hz", "1hz")
_SAMPLE_S = {"6hz": 1 / 6, "5hz": 0.2, "1hz": 1 / 6}
_ENDING = ".scn"


@dataclass(frozen=True, slots=True)
class Task:
    """One run to do in a process of its own."""

    path: str
    run: "Run"


def scenarios(options: argparse.Namespace) -> int:
    """`gpuwatch scenarios list` and `gpuwatch scenarios score`."""
    if options.action == "list":
        return _list(options)
    return _score(options)


def _list(options: argparse.Namespace) -> int:
    from gpuwatch.sources.simulated import ScenarioError, describe, load, scenario_names

    if not options.folders:
        names = {name: describe(name) for name in scenario_names()}
    else:
        try:
            paths = _paths(options.folders)
            names = {_name(path): load(path).description for path in paths}
        except (ScenarioError, OSError) as error:
            return _usage(_reason(error))
    width = max(map(len, names), default=0)
    for name, sentence in names.items():
        print(f"{name:<{width}}  {sentence}")
    return EXIT_OK


def _score(options: argparse.Namespace) -> int:
    from gpuwatch.scoring.labels import LabelError
    from gpuwatch.scoring.measure import Run
    from gpuwatch.scoring.table import as_json, as_text, score
    from gpuwatch.sources.simulated import ScenarioError

    try:
        options.folders = options.folders or ["tests/scenarios"]
        paths = _paths(options.folders)
        if not paths:
            return _usage(f"no scenario ({_ENDING}) in {', '.join(options.folders)}")
        if options.only:
            unknown = sorted(set(options.only) - {_name(path) for path in paths})
            if unknown:
                return _usage(f"no scenario {', '.join(unknown)} in {', '.join(options.folders)}")
            paths = [path for path in paths if _name(path) in options.only]
        labels = {path: _labels(path) for path in paths}
    except (ScenarioError, LabelError, OSError) as error:
        return _usage(_reason(error))
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    tasks = [
        Task(path, Run(_name(path), cadence, seed))
        for path in sorted(paths, key=lambda path: -labels[path].duration_s)
        if options.slow or not labels[path].slow
        for cadence in options.cadence
        for seed in seeds
    ]
    outcomes = _all(tasks, options.jobs)
    outcomes.sort(key=lambda outcome: (outcome.run.scenario, outcome.run.cadence, outcome.run.seed))
    scores = {
        cadence: score([outcome for outcome in outcomes if outcome.run.cadence == cadence])
        for cadence in options.cadence
    }
    if options.json:
        json.dump(as_json(scores), sys.stdout, ensure_ascii=False, allow_nan=False)
        print()
    else:
        print("\n".join(as_text(scores)))
    failed = [outcome for outcome in outcomes if outcome.problem]
    for outcome in failed:
        print(f"gpuwatch: {outcome.run.scenario}: {outcome.problem}", file=sys.stderr)
    return EXIT_FAILED if failed else EXIT_OK


def _all(tasks: list[Task], jobs: int | None) -> "list[Outcome]":
    workers = min(len(tasks), jobs or os.cpu_count() or 1)
    if workers <= 1:
        return [_run(task) for task in tasks]
    with ProcessPoolExecutor(workers) as pool:
        return list(pool.map(_run, tasks, chunksize=1))


def _run(task: Task) -> "Outcome":
    """Play one draw of a scenario through the whole program and measure what was said."""
    from gpuwatch.scoring.measure import Outcome, measure
    from gpuwatch.scoring.watch import watch
    from gpuwatch.sources.live import run_simulated
    from gpuwatch.sources.simulated.truth import idle_ratios

    try:
        scenario, labels = _drawn(task.path, task.run)
        watched = watch(run_simulated(scenario, labels.duration_s, seed=task.run.seed))
        stalls = {}
        if labels.stall == "auto":
            stalls = idle_ratios(scenario, max(0.0, labels.duration_s - 60.0), labels.duration_s)
        return measure(task.run, labels, watched, stalls)
    except Exception as error:
        return Outcome(task.run, problem=f"could not be played: {' '.join(str(error).split())[:200]}")


def _drawn(path: str, run: "Run") -> "tuple[Scenario, Labels]":
    from gpuwatch.scoring.draws import factors
    from gpuwatch.sources.simulated.parse import parse_scenario
    from gpuwatch.sources.simulated.vary import varied, without_samples

    text, labels = _text(path), _labels(path)
    scenario = varied(parse_scenario(text, path), factors(run.scenario, run.seed, labels.vary))
    if run.cadence == "1hz":
        scenario = without_samples(scenario)
    sample_s = scenario.util_sample_s if "util_sample_ms" in text else _SAMPLE_S[run.cadence]
    return replace(scenario, util_sample_s=sample_s, seed=scenario.seed + run.seed), labels


@cache
def _labels(path: str) -> "Labels":
    from gpuwatch.diagnosis.catalogue import PLACES
    from gpuwatch.scoring.labels import LabelError, parse_labels

    try:
        return parse_labels(_text(path), frozenset(PLACES))
    except LabelError as error:
        raise LabelError(f"{path}, {error}", 0) from None


@cache
def _text(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as stream:
        return stream.read()


def _paths(folders: list[str]) -> list[str]:
    """Scenario files in folders, or files themselves, in order of their names."""
    return sorted(path for folder in folders for path in _inside(folder))


def _inside(folder: str) -> Iterator[str]:
    if os.path.isfile(folder):
        yield folder
        return
    for entry in os.scandir(folder):
        if entry.name.endswith(_ENDING):
            yield entry.path


def _name(path: str) -> str:
    return os.path.basename(path).removesuffix(_ENDING)


def _reason(error: Exception) -> str:
    if isinstance(error, OSError):
        return f"cannot read {error.filename!r}: {error.strerror or error}"
    return str(error)


def _usage(sentence: str) -> int:
    print(f"gpuwatch: {sentence}", file=sys.stderr)
    return EXIT_USAGE
