"""The snapshot document: a promise to scripts."""

import json

import pytest

from gpuwatch.cli.main import main
from gpuwatch.history import History
from gpuwatch.report.snapshot import SCHEMA, snapshot_document
from gpuwatch.state import State


def test_before_the_first_sample_everything_is_null():
    document = snapshot_document(State(history=History(1.0), now_s=0.0))
    assert document["schema"] == SCHEMA
    assert document["time"] is None
    assert document["gpus"] == []
    assert document["diagnosis"] is None
    json.dumps(document, allow_nan=False)


@pytest.fixture(scope="module")
def starved():
    import contextlib
    import io

    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert main(["demo", "starved", "--json", "--after", "45"]) == 0
    return json.loads(out.getvalue())


def test_a_simulated_snapshot_names_the_cause(starved):
    assert starved["label"] == "simulated: starved"
    assert starved["diagnosis"]["verdict"]["rule"] == "loader-in-main-process"
    assert starved["diagnosis"]["verdict"]["layer"] == "data"


def test_figures_are_numbers_with_their_unit_in_the_key(starved):
    metrics = starved["gpus"][0]["metrics"]
    assert 0 < metrics["utilization_ratio"] < 1
    assert metrics["power_w"] > 50
    assert isinstance(metrics["p_state"], int)


def test_what_is_missing_is_null_and_says_why(starved):
    gpu = starved["gpus"][0]
    assert gpu["metrics"]["tensor_ratio"] is None
    assert gpu["absent"]["tensor_ratio"]


def test_ledger_parts_sum_to_one(starved):
    parts = starved["diagnosis"]["ledgers"][0]["parts"]
    assert sum(part["ratio"] for part in parts) == pytest.approx(1.0)
