"""What remedies have in common, once the code they quote is left out."""

import re

from contextgraph.text import words

_QUOTES = re.compile(r"`[^`]*`(?:,? ?`[^`]*`)*(?: …)?")
_REPEATING = (
    "repeated ",
    "ran the same command again",
    "sent the same edit again",
    "do the same once more",
)
_LEAST_LETTERS = 3

# The words that every account of a remedy is made of. A sentence that has no other once its code
# is taken out says nothing: "changed … to …; then it worked".
_FRAME = frozenset(
    "sent the text again with without and for lines instead changed then worked that error was "
    "gone came after further fixes command added removed used ran wrote there found first edited "
    "repeated opened did printed".split()
)


def in_general(what: str) -> str | None:
    """*what* (see `Recovery.what`) without the code it quotes; None where that says nothing."""
    general = _QUOTES.sub("…", what)
    told = {word for word in words(general) if len(word) >= _LEAST_LETTERS} - _FRAME
    return general if general == what or len(told) > 1 else None


def is_repetition(what: str) -> bool:
    """True where *what* was to try the same once more."""
    return what.startswith(_REPEATING)
