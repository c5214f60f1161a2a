"""The command line: usage, exit statuses, and what may not be imported."""

import subprocess
import sys

import pytest

from gpuwatch import __version__
from gpuwatch.cli import commands
from gpuwatch.cli.main import EXIT_BROKEN_PIPE, EXIT_FAILED, EXIT_INTERRUPTED, EXIT_USAGE, build_parser, main


def parse(*arguments):
    return build_parser().parse_args(list(arguments))


def test_an_option_before_the_command_survives_it():
    assert parse("--interval", "0.5", "snapshot").interval == 0.5
    assert parse("snapshot", "--interval", "0.5").interval == 0.5
    assert parse("snapshot").interval == 1.0


def test_gpu_list_takes_indices_and_uuids():
    assert parse("--gpus", "0,2").gpus == (0, 2)
    assert parse("--gpus", "GPU-8a1b, 3").gpus == ("GPU-8a1b", 3)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--interval", "0.1"], "0.2 to 60"),
        (["--interval", "nan"], "not a number"),
        (["--interval", "61"], "0.2 to 60"),
        (["--interval", "soon"], "not a number"),
        (["--gpus", "0,,2"], "not a list"),
        (["--gpus", "first"], "neither a GPU index nor a UUID"),
        (["--pid", "0"], "not a process id"),
        (["--pid", "-3"], ""),
        (["snapshot", "--for", "-1"], ""),
        (["snapshot", "--for", "1e9"], "0 to 86400"),
        (["no-such-command"], "invalid choice"),
        (["--theme", "pink"], "invalid choice"),
        (["--inter"], "unrecognized"),
    ],
)
def test_wrong_usage_is_one_sentence_and_exit_2(arguments, word, capsys):
    with pytest.raises(SystemExit) as error:
        main(arguments)
    assert error.value.code == EXIT_USAGE
    captured = capsys.readouterr()
    assert captured.out == ""
    assert word in captured.err
    assert "Traceback" not in captured.err


def test_version(capsys):
    with pytest.raises(SystemExit) as error:
        main(["--version"])
    assert error.value.code == 0
    assert capsys.readouterr().out == f"gpuwatch {__version__}\n"


def test_help_names_every_command(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    text = capsys.readouterr().out
    for word in ("demo", "snapshot", "explain", "exit status"):
        assert word in text


def test_a_failure_is_one_sentence(monkeypatch, capsys):
    def fail(_options):
        raise RuntimeError("the disk\nis on fire")

    monkeypatch.setattr(commands, "live", fail)
    assert main([]) == EXIT_FAILED
    captured = capsys.readouterr()
    assert captured.err == "gpuwatch: the disk is on fire (--debug shows where)\n"


def test_a_failure_shows_its_traceback_on_request(monkeypatch):
    def fail(_options):
        raise RuntimeError("boom")

    monkeypatch.setattr(commands, "live", fail)
    with pytest.raises(RuntimeError, match="boom"):
        main(["--debug"])


def test_ctrl_c_has_its_own_status(monkeypatch):
    def interrupt(_options):
        raise KeyboardInterrupt

    monkeypatch.setattr(commands, "live", interrupt)
    assert main([]) == EXIT_INTERRUPTED


def test_a_fast_interval_is_warned_about_b094(monkeypatch, capsys):
    monkeypatch.setattr(commands, "live", lambda _options: 0)
    assert main(["--interval", "0.2"]) == 0
    assert "may slow the training" in capsys.readouterr().err
    assert main(["--interval", "0.25"]) == 0
    assert capsys.readouterr().err == ""


def test_a_closed_pipe_ends_quietly():
    code = "from gpuwatch.cli.main import main; import sys; sys.exit(main(['demo', '--list']))"
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0
    )
    process.stdout.close()
    errors = process.stderr.read()
    process.stderr.close()
    assert process.wait(timeout=60) in (EXIT_BROKEN_PIPE, 0)
    assert b"Traceback" not in errors
    assert b"Exception ignored" not in errors


def test_explain_an_unknown_rule(capsys):
    assert main(["explain", "loader-in-main-proces"]) == EXIT_USAGE
    assert "loader-in-main-process" in capsys.readouterr().err


def test_explain_lists_all_rules_by_layer(capsys):
    from gpuwatch.diagnosis.texts import TEXTS

    assert main(["explain"]) == 0
    lines = capsys.readouterr().out.splitlines()
    heads = [line for line in lines if line and not line.startswith(" ")]
    assert heads == ["hardware", "environment", "data", "code"]
    assert sorted(line.split()[0] for line in lines if line.startswith("  ")) == sorted(TEXTS)


def test_explain_a_rule(capsys):
    assert main(["explain", "loader-in-main-process"]) == 0
    assert "num_workers" in capsys.readouterr().out


def test_demo_list(capsys):
    assert main(["demo", "--list"]) == 0
    text = capsys.readouterr().out
    for name in (
        "starved",
        "workers",
        "disk",
        "thermal",
        "power-cap",
        "pcie-x4",
        "straggler",
        "healthy",
        "mixed",
    ):
        assert any(line.split()[0] == name for line in text.splitlines())


def test_demo_of_an_unknown_scenario(capsys):
    assert main(["demo", "no-such-thing"]) == EXIT_USAGE
    error = capsys.readouterr().err
    assert "no-such-thing" in error
    assert "starved" in error


def test_ignoring_an_unknown_finding(capsys):
    assert main(["--ignore", "loader-in-main", "demo", "--list"]) == EXIT_USAGE
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "loader-in-main-process" in captured.err


def test_gpus_that_are_not_there_are_told(capsys):
    assert main(["--gpus", "7", "demo", "--after", "3"]) == 0
    assert "None of the chosen GPUs is here" in capsys.readouterr().out


def test_a_folder_is_no_scenario(capsys, tmp_path):
    assert main(["demo", str(tmp_path)]) == EXIT_USAGE
    error = capsys.readouterr().err
    assert "cannot read" in error
    assert "Errno" not in error
