"""What is sent to which terminal, as a table."""

import pytest

from gpuwatch.tui.plan import Flags, TerminalPlan, decide

UTF8 = "utf-8"


def plan(
    term: str | None = "xterm-256color",
    encoding: str | None = UTF8,
    isatty: bool = True,
    flags: Flags = Flags(),
    **environ: str,
) -> TerminalPlan:
    variables = dict(environ)
    if term is not None:
        variables["TERM"] = term
    return decide(variables, encoding, isatty, flags)


@pytest.mark.parametrize(
    ("term", "environ", "theme", "ascii_only"),
    [
        ("xterm-256color", {}, "dark", False),
        ("screen-256color", {}, "dark", False),
        ("tmux-256color", {}, "dark", False),
        ("xterm-kitty", {}, "dark", False),
        ("xterm", {"COLORTERM": "truecolor"}, "dark", False),
        ("xterm", {"COLORTERM": "24bit"}, "dark", False),
        ("xterm", {}, "ansi", False),
        ("screen", {}, "ansi", False),
        ("xterm-16color", {}, "ansi", False),
        ("linux", {}, "ansi", True),
        ("vt100", {}, "ansi", True),
        ("vt220", {}, "ansi", True),
        ("xterm-256color", {"NO_COLOR": "1"}, "plain", False),
        ("linux", {"NO_COLOR": "yes"}, "plain", True),
        # An empty NO_COLOR does not count (no-color.org).
        ("xterm-256color", {"NO_COLOR": ""}, "dark", False),
    ],
)
def test_theme_and_glyphs_by_terminal(
    term: str, environ: dict[str, str], theme: str, ascii_only: bool
) -> None:
    made = plan(term, **environ)
    assert made.live
    assert (made.theme, made.ascii_only) == (theme, ascii_only)
    assert made.hint == ""


@pytest.mark.parametrize("encoding", ["utf-8", "UTF-8", "utf8", "utf_8", "UTF-8-SIG"])
def test_utf8_in_all_spellings_draws_unicode(encoding: str) -> None:
    made = plan(encoding=encoding)
    assert not made.ascii_only
    assert made.encoding == "utf-8"


@pytest.mark.parametrize("encoding", ["iso-8859-1", "latin-1", "ascii", "ANSI_X3.4-1968", "euc-jp"])
def test_other_encodings_draw_ascii_and_say_so(encoding: str) -> None:
    made = plan(encoding=encoding)
    assert made.ascii_only
    assert "".encode(made.encoding) == b""  # a codec that exists
    assert "UTF-8" in made.hint


def test_a_stream_without_encoding_draws_ascii() -> None:
    assert plan(encoding=None).ascii_only


def test_flags_win() -> None:
    assert plan(flags=Flags(ascii_only=True)) == TerminalPlan(live=True, theme="dark", ascii_only=True)
    assert plan(flags=Flags(theme="light")).theme == "light"
    assert plan("xterm", flags=Flags(theme="dark")).theme == "dark"
    assert plan(flags=Flags(no_color=True)).theme == "plain"
    assert plan(flags=Flags(no_color=True, theme="light")).theme == "plain"


def test_b079_no_terminal_entry_is_needed() -> None:
    # The decision reads TERM and nothing else: no terminfo directory, no capability.
    assert plan("tmux", TERMINFO="/nowhere", TERMINFO_DIRS="").live


def test_b080_a_wrong_term_inside_tmux_still_draws() -> None:
    made = plan("xterm-256color", TMUX="/socket,1,0")
    assert made.live
    assert made.hint == ""


@pytest.mark.parametrize("term", ["st-256color", "xterm-ghostty", "foot", "alacritty"])
def test_b082_terminals_without_an_entry_on_this_host_are_known(term: str) -> None:
    made = plan(term)
    assert made.live
    assert made.hint == ""


def test_b082_an_unknown_terminal_falls_back_with_one_hint() -> None:
    made = plan("my-own-terminal")
    assert made.live
    assert made.theme == "ansi"
    assert "my-own-terminal" in made.hint
    assert "\n" not in made.hint
    assert len(plan("x" * 500).hint) < 80


@pytest.mark.parametrize("term", ["dumb", "DUMB", "unknown", "", None])
def test_b083_nothing_is_drawn_on_a_dumb_terminal(term: str | None) -> None:
    made = plan(term)
    assert not made.live
    assert "TERM" in made.reason


def test_b083_nothing_is_drawn_into_a_pipe() -> None:
    made = plan(isatty=False)
    assert not made.live
    assert made.reason
