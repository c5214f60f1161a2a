import re

import pytest

from gpuwatch.diagnosis import texts
from gpuwatch.diagnosis.interface import Fires
from gpuwatch.diagnosis.rules import RULES
from gpuwatch.diagnosis.texts.words import (
    byte_rate,
    cores,
    gib,
    percent,
    process_name,
    program,
    range_of,
    whole,
)
from gpuwatch.model import Confidence


def test_every_built_rule_has_texts_in_the_same_order():
    assert list(texts.TEXTS) == [rule.id for rule in RULES]
    assert list(texts.titles()) == [rule.id for rule in RULES]


@pytest.mark.parametrize("rule", [rule.id for rule in RULES])
def test_each_explanation_says_what_how_what_not_and_whence(rule):
    words = texts.explain(rule)
    assert words.startswith(f"{rule} (R")
    for head in ("What it sees.", "How it decides.", "What it is not.", "Where this comes from."):
        assert head in words
    assert max(map(len, words.splitlines())) <= 100
    assert not re.search(r"\d%", words)
    assert "{" not in words
    assert "/work" not in words
    assert len(texts.label(rule)) <= 16
    assert re.search(r"\d", words)  # at least one threshold


def test_thresholds_in_explanations_are_those_of_the_rules():
    words = " ".join(texts.explain("loader-in-main-process").split())
    assert "0.8 core or more of main thread in the gaps (ends under 0.6)" in words
    assert "10 of 30 s" in texts.explain("thermal-throttle")
    assert "50 MB/s" in texts.explain("pcie-gen-reduced")


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ("loader-in-main", "loader-in-main-process"),
        ("thermal", "thermal-throttle"),
        ("pcie", "pcie-width-reduced"),
        ("zzz", "the rules are hw-slowdown"),
        ("tensor-cores", "tensor-cores-idle"),
        ("", "the rules are"),
    ],
)
def test_an_unknown_rule_gets_a_sentence_with_near_names(asked, words):
    with pytest.raises(KeyError) as error:
        texts.explain(asked)
    assert words in error.value.args[0]


def test_labels_of_rules_without_texts_are_their_ids():
    assert texts.label("no-such-rule") == "no-such-rule"
    assert texts.label("loader-in-main-process") == "main process"


def test_figures_are_rounded_to_what_was_measured():
    assert [cores(value) for value in (0.966, 1.0, 1.5, 14.2)] == [
        "0.97 core",
        "1.00 core",
        "1.50 cores",
        "14 cores",
    ]
    assert [byte_rate(value) for value in (61.2e6, 1.54e9, 900.0, 25e9)] == [
        "61 MB/s",
        "1.5 GB/s",
        "900 B/s",
        "25 GB/s",
    ]
    assert [whole(value) for value in (16.0, 1.5)] == ["16", "1.5"]
    assert (gib(6 * 1024**3), gib(300 * 1024**2)) == ("6.0 GiB", "300 MiB")
    assert percent(0.664) == "66 %"


def test_a_share_is_a_range_where_it_has_an_interval():
    def fires(**shares: float) -> Fires:
        return Fires(Confidence.LIKELY, (), **shares)

    assert range_of(fires(share_ratio=0.62, share_low_ratio=0.58, share_high_ratio=0.66)) == "58-66 %"
    assert range_of(fires(share_ratio=0.62, share_low_ratio=0.62, share_high_ratio=0.62)) == "62 %"
    assert range_of(fires(share_ratio=0.62)) == "62 %"
    assert range_of(fires()) == "a part"


def test_programs_are_short_safe_and_without_their_folder():
    assert program("/usr/bin/python3 /home/bob/train.py --lr 1") == "python3 /home/bob/train.py"
    assert len(program("python " + "x" * 100)) == 28
    assert "\x1b" not in program("evil\x1b[31m name")
    assert program("") == "?"
    assert (
        process_name({"pid": 7.0, "command": "python a.py", "user": "bob"}) == "pid 7, python a.py, user bob"
    )
