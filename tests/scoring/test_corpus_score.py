"""The corpus with three draws, each at another cadence: most of it found, nothing healthy alarmed.

`gpuwatch scenarios score` runs all draws at all cadences; this part keeps a change from breaking it unseen.
"""

import json
from pathlib import Path

import pytest

from gpuwatch.cli.main import main
from gpuwatch.diagnosis.catalogue import PLACES
from gpuwatch.scoring.labels import parse_labels

FOLDER = Path(__file__).resolve().parent.parent / "scenarios"
#: Longer ones, a tenth of all, would take half of the time.
SHORT_S = 300.0

pytestmark = pytest.mark.slow


def short_ones():
    return [
        str(path)
        for path in sorted(FOLDER.glob("*.scn"))
        if parse_labels(path.read_text("utf-8"), frozenset(PLACES)).duration_s <= SHORT_S
    ]


@pytest.mark.parametrize(
    ("seed", "cadence", "recall"), [(51, "6hz", 0.95), (52, "5hz", 0.95), (53, "1hz", 0.80)]
)
def test_a_draw_of_the_corpus(seed, cadence, recall, capsys):
    files = short_ones()
    assert len(files) >= 90
    choice = ["--seeds", "1", "--first-seed", str(seed), "--cadence", cadence]
    assert main(["scenarios", "score", *files, *choice, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    total, notes = document["total"], [run for run in document["runs"] if run["notes"]]
    assert total["recall"] >= recall, notes
    assert total["false_warnings_healthy"] == 0, notes
    assert total["false_notices_per_healthy_hour"] <= 1, notes
    assert total["layer_right"] >= 0.93, notes
    assert total["time_to_verdict_s"] <= 45.0, notes
    assert total["flaps_per_3min"] <= 1, notes
