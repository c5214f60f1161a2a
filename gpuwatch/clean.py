"""Strings from outside (process names, command lines, driver answers) made safe for a terminal."""

import unicodedata

_LINE = {0x0A: "␊", 0x0D: "␍", 0x09: " "}


def clean(text: str) -> str:
    """Replace control, format and surrogate characters; nothing that steers a terminal passes."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_safe(character) for character in text)


def _safe(character: str) -> str:
    code = ord(character)
    if code in _LINE:
        return _LINE[code]
    # Cc control, Cf format (bidi overrides, zero width), Cs lone surrogate, Co private, Zl/Zp lines
    if unicodedata.category(character) in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}:
        return "\N{REPLACEMENT CHARACTER}"
    return character


def decode(data: bytes | str | None) -> str:
    """Text from a driver or the kernel: bytes and str both come, undecodable bytes become U+FFFD."""
    if data is None:
        return ""
    text = data.decode("utf-8", "replace") if isinstance(data, bytes) else data
    return clean(text)
