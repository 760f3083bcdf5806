"""Words of prose and code, for full-text search and lexical scoring."""

import re
from functools import lru_cache
from itertools import chain

_LONGEST = 64
_IDENTIFIER = re.compile(r"\w{2,}")
# The same for ASCII, in half the time.
_ASCII_IDENTIFIER = re.compile(r"[A-Za-z0-9_]{2,}")
# HTTPServer -> HTTP, Server; sha256sum -> sha256, sum; digits stay with the letters before them.
_PART = re.compile(r"[A-Z]+(?![a-z])[0-9]*|[A-Z]?[a-z]+[0-9]*|[0-9]+")
_STOP_WORDS = frozenset(
    "a an and are as at be been but by can did do does for from had has have how i if in into is "
    "it its me my no not of on or our so such than that the their then there these they this to "
    "was we were what when where which while who why will with would you your".split()
)


def words(text: str) -> list[str]:
    """Return the words of *text* in order, in lower case, repeats kept.

    An identifier gives itself and then its parts: `getattr_static` gives `getattr_static`,
    `getattr`, `static`. Numbers, single letters, common English words and words longer than 64
    characters are left out.
    """
    identifiers = _ASCII_IDENTIFIER if text.isascii() else _IDENTIFIER
    return list(chain.from_iterable(map(_words_of, identifiers.findall(text))))


@lru_cache(maxsize=1 << 16)
def _words_of(identifier: str) -> tuple[str, ...]:
    parts = [part.lower() for part in _parts(identifier)]
    whole = identifier.strip("_").lower()
    candidates = parts if parts == [whole] else [whole, *parts]
    return tuple(word for word in candidates if _is_wanted(word))


def _parts(identifier: str) -> list[str]:
    if identifier.isascii():
        return _PART.findall(identifier)
    return [part for part in identifier.split("_") if part]


def _is_wanted(word: str) -> bool:
    return 1 < len(word) <= _LONGEST and not word.isdigit() and word not in _STOP_WORDS
