"""The two sets of characters: Unicode blocks and marks, or nothing but ASCII.

No emoji, no double-width signs, no private-use icons. Every character here is one cell wide.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from gpuwatch.model import CheckState, LedgerKey, Severity


@dataclass(frozen=True, slots=True)
class Glyphs:
    """`levels` are the eight heights of a sparkline cell, lowest first; the lowest is not blank."""

    levels: str
    gap: str  # a tick without a value
    over: str  # a value far beyond the scale
    line: str
    ellipsis: str
    full: str  # a whole filled cell
    empty: str  # an unfilled cell of a bar
    limit: str  # a threshold drawn into a chart
    check: Mapping[CheckState, str]
    severity: Mapping[Severity, str]
    ledger: Mapping[LedgerKey, str]
    dot: str  # stands between two things
    rx: str  # to the GPU, into the host
    tx: str
    times: str
    degree: str
    cross: str


UNICODE = Glyphs(
    levels="▁▂▃▄▅▆▇█",
    gap="·",
    over="↑",
    line="─",
    ellipsis="…",
    full="█",
    empty="░",
    limit="╌",
    check={
        CheckState.FINE: "✓",
        CheckState.NAMED: "✗",
        CheckState.POSSIBLE: "!",
        CheckState.WAITING: "…",
        CheckState.UNMEASURABLE: "–",
    },
    severity={Severity.CRITICAL: "✗", Severity.WARNING: "✗", Severity.NOTICE: "!", Severity.STATE: "·"},
    ledger={
        LedgerKey.BUSY: "█",
        LedgerKey.SLOWED: "▓",
        LedgerKey.WAITING: "▒",
        LedgerKey.WAITING_PEERS: "▚",
        LedgerKey.FOREIGN: "╳",
        LedgerKey.PAUSE: "░",
        LedgerKey.IDLE: "·",
        LedgerKey.UNKNOWN: "?",
    },
    dot="·",
    rx="↓",
    tx="↑",
    times="×",
    degree="°C",
    cross="✗",
)

ASCII = Glyphs(
    levels="_-~=+*%#",
    gap=".",
    over="^",
    line="-",
    ellipsis="~",
    full="#",
    empty=".",
    limit="-",
    check={
        CheckState.FINE: "+",
        CheckState.NAMED: "x",
        CheckState.POSSIBLE: "!",
        CheckState.WAITING: "?",
        CheckState.UNMEASURABLE: "-",
    },
    severity={Severity.CRITICAL: "x", Severity.WARNING: "x", Severity.NOTICE: "!", Severity.STATE: "."},
    ledger={
        LedgerKey.BUSY: "#",
        LedgerKey.SLOWED: "%",
        LedgerKey.WAITING: "-",
        LedgerKey.WAITING_PEERS: "=",
        LedgerKey.FOREIGN: "x",
        LedgerKey.PAUSE: ":",
        LedgerKey.IDLE: ".",
        LedgerKey.UNKNOWN: "?",
    },
    dot="-",
    rx="<",
    tx=">",
    times="x",
    degree="C",
    cross="x",
)

#: What becomes of the characters of texts that reach an ASCII screen; one cell for one cell.
_ASCII_FOR = str.maketrans(
    {
        "×": "x",
        "·": "-",
        "–": "-",
        "—": "-",
        "−": "-",
        "…": "~",
        "→": ">",
        "←": "<",
        "≥": ">",
        "≤": "<",
        "µ": "u",
        "“": '"',
        "”": '"',
        "’": "'",
        "‘": "'",
        "⌀": "~",
        "\u00a0": " ",
    }
)


def glyphs_for(ascii_only: bool) -> Glyphs:
    return ASCII if ascii_only else UNICODE


def ascii_text(text: str) -> str:
    """`text` with characters an ASCII screen can show; a degree sign is left out."""
    if text.isascii():
        return text
    text = text.replace("°", "").translate(_ASCII_FOR)
    return text if text.isascii() else "".join(c if c.isascii() else "?" for c in text)
