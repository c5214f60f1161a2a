"""The scenarios that come with the program, and loading one by name, path or text."""

from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

from gpuwatch.sources.simulated.parse import parse_scenario
from gpuwatch.sources.simulated.scenario import Scenario

_FOLDER = files(__package__) / "scenarios"
_ENDING = ".scn"


@cache
def scenario_names() -> tuple[str, ...]:
    """Names of the scenarios that come with the program."""
    names = [entry.name.removesuffix(_ENDING) for entry in _FOLDER.iterdir() if entry.name.endswith(_ENDING)]
    return tuple(sorted(names))


def describe(name: str) -> str:
    """The sentence a scenario says about itself."""
    return load(name).description


def scenario_path(name: str) -> Traversable:
    """Where a scenario that comes with the program lies."""
    return _FOLDER / (name + _ENDING)


def load(scenario: str) -> Scenario:
    """A scenario by its name, by a path, or as a text of several lines.

    ScenarioError for a mistake in it; FileNotFoundError for a name or path that is not there.
    """
    if "\n" in scenario:
        return parse_scenario(scenario)
    if scenario in scenario_names():
        path = scenario_path(scenario)
        return parse_scenario(path.read_text("utf-8"), str(path))
    with open(scenario, encoding="utf-8", errors="replace") as stream:
        return parse_scenario(stream.read(), scenario)
