"""A cross-section of the corpus with three draws each: most of it found, nothing healthy alarmed.

The whole is `gpuwatch scenarios score`; this part keeps a change from breaking it unseen.
"""

import json
from pathlib import Path

import pytest

from gpuwatch.cli.main import main
from gpuwatch.diagnosis.catalogue import PLACES
from gpuwatch.scoring.labels import parse_labels

FOLDER = Path(__file__).resolve().parent.parent / "scenarios"
SHORT_S = 200.0
EVERY = 5

pytestmark = pytest.mark.slow


def cross_section():
    """Every fifth of the short ones with one GPU."""
    short = [
        str(path)
        for path in sorted(FOLDER.glob("*.scn"))
        if parse_labels(path.read_text("utf-8"), frozenset(PLACES)).duration_s <= SHORT_S
        and " x " not in path.read_text("utf-8").partition("gpus = ")[2].partition("\n")[0]
    ]
    return short[::EVERY]


def test_three_draws_of_a_cross_section(capsys):
    files = cross_section()
    assert len(files) >= 10
    arguments = [
        "scenarios",
        "score",
        *files,
        "--seeds",
        "3",
        "--first-seed",
        "31",
        "--cadence",
        "6hz",
        "--json",
    ]
    assert main(arguments) == 0
    document = json.loads(capsys.readouterr().out)
    total, notes = document["total"], [run for run in document["runs"] if run["notes"]]
    assert total["recall"] >= 0.95, notes
    assert total["false_warnings_healthy"] == 0, notes
    assert total["layer_right"] >= 0.93, notes
    assert total["time_to_verdict_s"] <= 45.0, notes
