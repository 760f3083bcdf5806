"""Words, identifiers, quoted names and token counts."""

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from itertools import chain, pairwise

from contextgraph.lazy import TYPE_CHECKING, patterns, regex

if TYPE_CHECKING:
    from typing import Literal

_LONGEST = 64
_HAN = "[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f]"
_IDENTIFIER = rf"\w{{2,}}|{_HAN}"
# The same for ASCII, in half the time.
_ASCII_IDENTIFIER = regex(r"[A-Za-z0-9_]{2,}")
_SCRIPTS = rf"(?P<han>{_HAN}+)|(?:(?!{_HAN})[^_])+"
# Names whose capitals do not begin words.
_NAMES = "SQLite|MySQL|GraphQL|GitHub|GitLab|YouTube|LaTeX|NumPy|SciPy|PyPI|OAuth|macOS|iOS"
# HTTPServer -> HTTP, Server; sha256sum -> sha256, sum; digits stay with the letters before them.
_PART = regex(rf"(?:{_NAMES})(?![a-z])[0-9]*|[A-Z]+(?![a-z])[0-9]*|[A-Z]?[a-z]+[0-9]*|[0-9]+")
_STOP_WORDS = frozenset(
    "a an and are as at be been but by can did do does for from had has have how i if in into is "
    "it its me my no not of on or our so such than that the their then there these they this to "
    "was we were what when where which while who why will with would you your".split()
)


@cache
def compiled(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """Return *pattern*, compiled when it is first needed: few processes need all patterns."""
    return patterns.compile(pattern, flags)


def words(text: str) -> list[str]:
    """Return the words of *text* in order, in lower case, with repeats.

    An identifier gives itself and then its parts: `getattr_static` gives `getattr_static`,
    `getattr`, `static`. Chinese gives each pair of neighbouring characters, a single one itself.
    Numbers, single letters, common English words and words longer than 64 characters are left out.
    """
    identifiers = _ASCII_IDENTIFIER if text.isascii() else compiled(_IDENTIFIER)
    return list(chain.from_iterable(map(_words_of, identifiers.findall(text))))


@lru_cache(maxsize=1 << 16)
def _words_of(identifier: str) -> tuple[str, ...]:
    if not identifier.isascii():
        return tuple(_foreign_words(identifier))
    parts = [part.lower() for part in _PART.findall(identifier)]
    whole = identifier.strip("_").lower()
    candidates = parts if parts == [whole] else [whole, *parts]
    return tuple(filter(_is_significant, candidates))


def _foreign_words(identifier: str) -> Iterator[str]:
    """The words of an identifier with other characters than ASCII; Han runs as bigrams."""
    segments = [*compiled(_SCRIPTS).finditer(identifier)]
    if len(segments) > 1 and not any(segment["han"] for segment in segments):
        yield from filter(_is_significant, [identifier.strip("_").lower()])
    for segment in segments:
        text = segment[0]
        if segment["han"]:
            yield from map("".join, pairwise(text)) if len(text) > 1 else text
        elif text.isascii():
            yield from _words_of(text)
        else:
            yield from filter(_is_significant, [text.lower()])


def _is_significant(word: str) -> bool:
    return 1 < len(word) <= _LONGEST and not word.isdigit() and word not in _STOP_WORDS


def stems(text: str) -> list[str]:
    """`words` of *text* without their English endings: `running tests` gives `run`, `test`."""
    return [*map(stem, words(text))]


@lru_cache(maxsize=1 << 16)
def stem(word: str) -> str:
    """*word* without its English ending; unchanged unless it has only ASCII letters."""
    if not (word.isascii() and word.isalpha()):
        return word
    from snowballstemmer import stemmer

    # One for each word: it has a state while it works, and most words are met again.
    stemmed: str = stemmer("english").stemWord(word)
    return stemmed


_READ = 600
_NAME = regex(
    r"""['"`‘](?P<quoted>[A-Za-z_./~][\w./-]*)['"`’]
    |\bNo\ module\ named\ (?P<module>[\w.]+)
    |\b(?:Directory|File\ name|File)\ (?P<path>\S+)\ not\ found
    |\bcd:\ (?P<folder>\S+):\ No\ such""",
    re.VERBOSE,
)


@lru_cache(8192)
def quoted_names(message: str) -> tuple[str, ...]:
    """The names and paths that *message* quotes, in order, each once."""
    names = (match[match.lastgroup or 0] for match in _NAME.finditer(message[:_READ]))
    return tuple(dict.fromkeys(names))


def subject_of(message: str) -> str:
    """Return the names in *message* that set it apart within its template; may be empty."""
    return ", ".join(quoted_names(message)[:2])


def number_of(count: int, noun: str) -> str:
    """*count* of an English *noun*: ``1 run``, ``0 recoveries``, ``2,000 runs``."""
    if count == 1:
        return f"1 {noun}"
    ends_in_y = noun.endswith("y") and noun[-2] not in "aeiou"
    return f"{count:,} {noun[:-1]}ies" if ends_in_y else f"{count:,} {noun}s"


# Measured on code: 2.7 characters a token; prose has more, so the estimate errs on the high side.
_CHARACTERS, _TOKENS = 27, 10


def count_tokens(text: str) -> int:
    """Return about how many tokens *text* has, rather too many than too few.

    An estimate from lengths only: 2.7 ASCII characters a token, as in code (English prose has
    more), and half a token for each byte of any other character.
    """
    if text.isascii():
        return -(-len(text) * _TOKENS // _CHARACTERS)
    narrow = len(text.encode("ascii", "ignore"))
    wide_bytes = len(text.encode("utf-8", "surrogatepass")) - narrow
    return -(-(narrow * _TOKENS * 2 + wide_bytes * _CHARACTERS) // (_CHARACTERS * 2))


def clip_tokens(text: str, max_tokens: int, *, at: "Literal['middle', 'end']" = "middle") -> str:
    """Return *text*, cut so that `count_tokens` of it is at most *max_tokens*."""
    if count_tokens(text) <= max_tokens:
        return text
    low, high = 0, min(len(text), max(0, max_tokens) * _CHARACTERS // _TOKENS)
    while low < high:
        middle = (low + high + 1) // 2
        if count_tokens(clip(text, middle, at=at)) <= max_tokens:
            low = middle
        else:
            high = middle - 1
    return clip(text, low, at=at)


def clip(text: str, max_chars: int, *, at: "Literal['middle', 'end']" = "middle") -> str:
    """Return *text*, cut at the middle or at the end to at most *max_chars* characters.

    The cut shows as `… [N characters cut] …`; where that does not fit, only the head is left.
    """
    if len(text) <= max_chars:
        return text
    rest = max_chars - len(_mark(len(text)))
    if rest < 0:
        return text[: max(0, max_chars)]
    tail = rest // 2 if at == "middle" else 0
    head = rest - tail
    return text[:head] + _mark(len(text) - rest) + text[len(text) - tail :]


def _mark(cut: int) -> str:
    return f"… [{cut} characters cut] …"
