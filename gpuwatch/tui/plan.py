"""What may be sent to this terminal, decided once at start from what it says about itself.

Pure: environment, encoding and flags in, a plan out. No terminfo is read, so a missing entry on a
remote host changes nothing; the sequences used are the plain VT ones every emulator knows.
"""

from collections.abc import Mapping
from dataclasses import dataclass

#: Consoles that draw few characters besides ASCII.
PLAIN_GLYPH_TERMS = ("linux", "vt100", "vt102", "vt220", "ansi", "cons25", "sun")
#: First words of TERM that are known to be colour terminals; others get a hint.
KNOWN_TERMS = (
    *PLAIN_GLYPH_TERMS,
    *("xterm", "screen", "tmux", "rxvt", "alacritty", "kitty", "foot", "st", "stterm", "konsole"),
    *("gnome", "vte", "iterm", "iterm2", "putty", "cygwin", "eterm", "wezterm", "ghostty", "contour"),
    *("mlterm", "terminator", "mintty", "nsterm", "dvtm", "teraterm", "mosh", "zellij", "rio"),
)
THEMES = ("dark", "light", "ansi")


@dataclass(frozen=True, slots=True)
class Flags:
    """What the command line asked for."""

    ascii_only: bool = False
    no_color: bool = False
    theme: str | None = None  # one of THEMES, None: choose


@dataclass(frozen=True, slots=True)
class TerminalPlan:
    """`live` False: no escape sequence may be sent at all; `reason` says why, in a sentence."""

    live: bool
    theme: str = "dark"  # one of THEMES or "plain" (no colour at all)
    ascii_only: bool = False
    encoding: str = "utf-8"
    reason: str = ""
    hint: str = ""  # one line for the foot of the screen


def decide(environ: Mapping[str, str], encoding: str | None, isatty: bool, flags: Flags) -> TerminalPlan:
    """The plan for one terminal. `encoding` is that of the stream drawn on; None counts as ASCII."""
    if not isatty:
        return TerminalPlan(live=False, reason="the output is not a terminal")
    term = environ.get("TERM", "").lower()
    if term in ("", "dumb", "unknown"):
        said = f"TERM={term}" if term else "TERM is not set"
        return TerminalPlan(live=False, reason=f"this terminal cannot be drawn on ({said})")
    codec = (encoding or "ascii").lower()
    utf8 = codec.replace("-", "").replace("_", "") in ("utf8", "utf8sig")
    plain_glyphs = term.partition("-")[0] in PLAIN_GLYPH_TERMS
    return TerminalPlan(
        live=True,
        theme=_theme(environ, term, flags),
        ascii_only=flags.ascii_only or not utf8 or plain_glyphs,
        encoding="utf-8" if utf8 else codec,
        hint=_hint(term, utf8, flags),
    )


def _theme(environ: Mapping[str, str], term: str, flags: Flags) -> str:
    # https://no-color.org: only a value that is not empty counts.
    if flags.no_color or environ.get("NO_COLOR", ""):
        return "plain"
    if flags.theme is not None:
        return flags.theme
    return "dark" if _color_count(environ, term) >= 256 else "ansi"


def _color_count(environ: Mapping[str, str], term: str) -> int:
    """As Rich finds it, which turns our colours into what is sent: a suffix of TERM or COLORTERM."""
    if environ.get("COLORTERM", "").strip().lower() in ("truecolor", "24bit"):
        return 1 << 24
    return 256 if term.rpartition("-")[2] in ("256color", "kitty") else 16


def _hint(term: str, utf8: bool, flags: Flags) -> str:
    if not utf8 and not flags.ascii_only:
        return "drawing in ASCII: the locale is not UTF-8"
    if term.partition("-")[0] not in KNOWN_TERMS:
        return f"TERM={term[:24]} is not known here: using plain sequences"
    return ""
