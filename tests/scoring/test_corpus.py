"""The corpus: every file is labelled, and a few of them are played from the driver up."""

from pathlib import Path

import pytest

from gpuwatch.cli.main import main
from gpuwatch.diagnosis.catalogue import PLACES
from gpuwatch.scoring.labels import parse_labels
from gpuwatch.sources.simulated.parse import parse_scenario

FOLDER = Path(__file__).resolve().parent.parent / "scenarios"
FILES = sorted(FOLDER.glob("*.scn"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_file_is_read_and_says_what_is_right(path):
    text = path.read_text("utf-8")
    labels = parse_labels(text, frozenset(PLACES))
    assert parse_scenario(text, str(path)).description
    assert labels.expects or labels.forbids or labels.healthy


def test_most_rules_are_required_somewhere():
    required = {
        rule
        for path in FILES
        for expect in parse_labels(path.read_text("utf-8"), frozenset(PLACES)).expects
        for rule in expect.rules
    }
    assert len(required) >= 0.75 * len(PLACES), sorted(set(PLACES) - required)


def test_one_scenario_scores_full_marks(capsys):
    assert (
        main(["scenarios", "score", str(FOLDER / "P01-loader-main.scn"), "--seeds", "1", "--jobs", "1"]) == 0
    )
    printed = capsys.readouterr().out
    assert "loader-in-main-process         3      3       0      0" in printed


def test_wrong_usage_is_one_sentence(tmp_path, capsys):
    assert main(["scenarios", "score", str(tmp_path)]) == 2
    assert "no scenario" in capsys.readouterr().err
    (tmp_path / "x.scn").write_text("# x\n#expect nothing-known\ngpus = rtx3090\n")
    assert main(["scenarios", "score", str(tmp_path)]) == 2
    assert "line 2: there is no finding" in capsys.readouterr().err
    assert main(["scenarios", "score", str(tmp_path / "none")]) == 2
    assert "cannot read" in capsys.readouterr().err


def test_list_names_the_scenarios(capsys):
    assert main(["scenarios", "list", str(FOLDER)]) == 0
    assert "P01-loader-main" in capsys.readouterr().out
