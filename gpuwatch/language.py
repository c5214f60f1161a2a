"""The reader's language: every sentence of the program passes through here.

A message is a literal English text with named placeholders. Until a catalogue of translations is
installed, it is its own translation.
"""

import gettext

_translations: gettext.NullTranslations = gettext.NullTranslations()


def install(translations: gettext.NullTranslations) -> None:
    """Use these translations from now on."""
    global _translations
    _translations = translations


def say(message: str, /, **values: object) -> str:
    """The message in the reader's language, with its named values filled in.

    `say("{count} workers at {cores} each", count=4, cores="0.97 core")`. Figures come formatted.
    """
    text = _translations.gettext(message)
    return text.format(**values) if values else text


def mark(message: str, /) -> str:
    """A message that is translated where it is shown, not where it stands (a table at import time)."""
    return message
