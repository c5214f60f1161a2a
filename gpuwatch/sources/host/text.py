"""Small helpers for the text that /proc and /sys hand out, and for saying why something is missing."""

#: Ticks per second of every time in /proc (USER_HZ; 100 on all platforms that have NVIDIA drivers).
TICKS_PER_S = 100

#: What a reader may meet in a file: gone, forbidden, or not what it should be.
UNREADABLE = (OSError, ValueError, IndexError)


def number_after(data: bytes, key: bytes, start: int = 0) -> int | None:
    """The whole number that follows the first `key` at or after `start`; None where there is none."""
    at = data.find(key, start)
    if at < 0:
        return None
    word = data[at + len(key) : at + len(key) + 40].split(None, 1)
    return int(word[0]) if word and word[0].isdigit() else None


def why(error: Exception, path: str) -> str:
    """One sentence for the reader's `absent` mapping."""
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return f"{path} does not exist here"
    if isinstance(error, PermissionError):
        return f"not allowed to read {path}"
    if isinstance(error, ProcessLookupError):
        return "the process has ended"
    if isinstance(error, OSError):
        return f"{path} could not be read ({error.strerror or type(error).__name__})"
    return f"{path} was not understood"
