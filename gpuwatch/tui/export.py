"""The evidence of this moment in two files: sentences for people, JSON for programs."""

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path

from gpuwatch.model import Finding
from gpuwatch.state import State

#: Columns of the text file: what fits into a mail or an issue.
TEXT_WIDTH = 100


def data_directory(environ: Mapping[str, str]) -> Path:
    """Where this program keeps its files (XDG base directories; relative paths do not count)."""
    base = environ.get("XDG_DATA_HOME", "")
    root = Path(base) if base.startswith("/") else Path(environ.get("HOME") or ".") / ".local" / "share"
    return root / "gpuwatch"


def export_evidence(state: State, directory: Path) -> Path:
    """Write `evidence-<date>-<time>.txt` and `.json`; returns the text file's path.

    The files are complete or not there. Raises OSError.
    """
    from gpuwatch.report.snapshot import snapshot_document
    from gpuwatch.views.plain import plain

    directory.mkdir(parents=True, exist_ok=True)
    wall_s = state.sample.wall_s if state.sample is not None else 0.0
    stem = directory / time.strftime("evidence-%Y%m%d-%H%M%S", time.localtime(wall_s))
    document = json.dumps(snapshot_document(state), ensure_ascii=False, allow_nan=False, indent=1)
    _write_whole(stem.with_suffix(".json"), document + "\n")
    lines = plain(state, TEXT_WIDTH, ascii_only=False)
    text = stem.with_suffix(".txt")
    _write_whole(text, "\n".join(lines) + "\n")
    return text


def finding_lines(finding: Finding) -> list[str]:
    """A finding as plain sentences."""
    text = finding.text
    lines = [text.title, *(f"because {reason}" for reason in text.because)]
    lines += [f"wrong if {text.wrong_if}"] if text.wrong_if else []
    lines += [f"settle it by {text.settle}"] if text.settle else []
    return lines + [f"do: {step}" for step in text.advice]


def _write_whole(path: Path, text: str) -> None:
    unfinished = path.with_name(path.name + ".part")
    unfinished.write_text(text, encoding="utf-8", errors="replace")
    os.replace(unfinished, path)
