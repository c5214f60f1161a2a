"""The evidence of a moment as files, and the words of a finding."""

import json
from pathlib import Path

import pytest
from showing import Shown, samples, show

from gpuwatch.session import Session
from gpuwatch.tui.export import data_directory, export_evidence, finding_lines


def state_of(fed: int) -> object:
    session = Session()
    for sample in samples("starved", 60)[:fed]:
        session.feed(sample)
    return session.latest


def test_data_directory_follows_the_base_directories() -> None:
    assert data_directory({"XDG_DATA_HOME": "/data", "HOME": "/home/a"}) == Path("/data/gpuwatch")
    assert data_directory({"HOME": "/home/a"}) == Path("/home/a/.local/share/gpuwatch")
    assert data_directory({"XDG_DATA_HOME": "not/absolute", "HOME": "/home/a"}).is_relative_to("/home/a")


def test_text_and_json_tell_the_same_moment(tmp_path: Path) -> None:
    state = state_of(60)
    path = export_evidence(state, tmp_path / "deep" / "er")  # type: ignore[arg-type] # a State
    text = path.read_text()
    document = json.loads(path.with_suffix(".json").read_text())
    assert "main process" in text
    assert document["diagnosis"]["verdict"]["rule"] == "loader-in-main-process"
    assert document["label"] == "simulated: starved"
    assert sorted(p.suffix for p in path.parent.iterdir()) == [".json", ".txt"]  # nothing half written


def test_a_place_that_cannot_be_written_raises_oserror(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file"):
        export_evidence(state_of(3), tmp_path / "file" / "below")  # type: ignore[arg-type] # a State


def test_a_finding_as_sentences() -> None:
    state = state_of(60)
    finding = state.diagnosis.findings[0]  # type: ignore[attr-defined] # a State
    lines = finding_lines(finding)
    assert lines[0] == finding.text.title
    assert all(line.strip() for line in lines)


def test_the_key_writes_and_names_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))

    async def script(shown: Shown) -> None:
        await shown.press("e")
        for _ in range(200):  # written by another thread
            if "evidence" in shown.foot():
                break
            await shown.pilot.pause(0.01)
        assert "evidence written: " in shown.foot()
        assert len(list((tmp_path / "gpuwatch").iterdir())) == 2

    show(script, fed=60, size=(200, 50))


def test_the_key_says_why_nothing_was_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gpuwatch").touch()
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))

    async def script(shown: Shown) -> None:
        await shown.press("e")
        for _ in range(200):
            if "evidence" in shown.foot():
                break
            await shown.pilot.pause(0.01)
        assert "not written" in shown.foot()

    show(script, size=(200, 50))
