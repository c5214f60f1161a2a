"""Labels of scenarios: read as written, refused with the line where they are wrong."""

import pytest

from gpuwatch.model import Confidence, Layer, Severity
from gpuwatch.scoring.labels import LabelError, parse_labels

RULES = frozenset({"loader-in-main-process", "gpu-starved", "thermal-throttle"})


def labels(text):
    return parse_labels(text, RULES)


def test_every_label_is_read():
    found = labels(
        """# A sentence.
#duration 240
#onset 60
#expect loader-in-main-process|gpu-starved severity>=warning confidence=likely share=0.5..0.7 by=100
#expect thermal-throttle severity=notice gpu=3 from=40
#forbid thermal-* at=warning after=200
#allow gpu-starved
#verdict data|code rule=gpu-starved at=180
#stall auto
#vary main.read 0.1 cores
#fixed duty
#slow
gpus = rtx3090
"""
    )
    assert (found.duration_s, found.onset_s, found.slow, found.stall) == (240.0, 60.0, True, "auto")
    first, second = found.expects
    assert first.rules == ("loader-in-main-process", "gpu-starved")
    assert (first.severity_min, first.severity_max) == (Severity.WARNING, Severity.CRITICAL)
    assert (first.confidences, first.share, first.by_s) == ((Confidence.LIKELY,), (0.5, 0.7), 100.0)
    assert (second.severity_min, second.severity_max) == (Severity.NOTICE, Severity.NOTICE)
    assert (second.gpu, second.from_s) == (3, 40.0)
    assert found.forbids[0].matches("thermal-throttle")
    assert not found.forbids[0].matches("gpu-starved")
    assert (found.forbids[0].severity, found.forbids[0].after_s) == (Severity.WARNING, 200.0)
    assert (found.layers, found.verdict_rules) == ((Layer.DATA, Layer.CODE), ("gpu-starved",))
    assert found.verdict_at_s == 180.0
    assert found.vary == {"period": 0.3, "noise": 0.3, "main.read": 0.1, "cores": 0.3}


@pytest.mark.parametrize(
    "line",
    [
        "#expect no-such-rule",
        "#expect gpu-starved severity>=loud",
        "#expect gpu-starved often",
        "#forbid",
        "#verdict weather",
        "#duration soon",
        "#verdict data when=now",
        "#allow gpu-starved until=3",
    ],
)
def test_a_wrong_label_names_its_line(line):
    with pytest.raises(LabelError, match="line 2"):
        labels(f"# A sentence.\n{line}\n")


def test_a_file_without_labels_asks_for_nothing():
    found = labels("gpus = rtx3090\nutil = 50 # expect nothing\n")
    assert (found.expects, found.forbids, found.layers, found.healthy) == ([], [], (), False)
