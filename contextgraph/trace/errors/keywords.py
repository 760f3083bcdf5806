"""What distinguishes one error message from others of its class."""

import re

KEYWORDS = 3
_READ = 1000
_QUOTED = re.compile(
    r"""(?<!\w)'([^'\n]{1,120})'|"([^"\n]{1,120})"|`([^`'\n]{1,120})[`']|‘([^’\n]{1,120})’"""
)
_IDENTIFIER = re.compile(r"[A-Za-z_][\w-]*(?:[./][\w-]+)*")
_CODE_LIKE = re.compile(r"\w_\w|[a-z][A-Z]|\w[./]\w|^[A-Z]{2,}$|__")
_WORD = re.compile(r"[A-Za-z][A-Za-z-]{2,}")
_BOILERPLATE = frozenset(
    "the and not for are was has had have can cannot could with from this that but you your its "
    "it's than then there their into only been does did don doesn name object type instance "
    "error errors exception traceback most recent call last file line module named attribute "
    "got given takes missing required positional keyword argument arguments failed failure "
    "unexpected invalid none true false expected value raise raised assert self code python "
    "found such directory must should while when during after before because using use please "
    "try".split()
)


def keywords_of(message: str, error_type: str) -> tuple[str, ...]:
    """At most three words that set *message* apart: names first, then telling words.

    Where a message has nothing but common words, these are better than none.
    """
    text = message[:_READ]
    candidates = [*_quoted_names(text), *_code_words(text), *_telling_words(text)]
    known = {error_type, error_type.rsplit(".", 1)[-1]}
    chosen = _distinct([word for word in candidates if word not in known])
    return tuple(chosen or _distinct(_WORD.findall(text)))


def _distinct(words: list[str]) -> list[str]:
    """The first few *words* of which none is part of another."""
    chosen: list[str] = []
    said = ""
    for word in words:
        if word.lower() not in said:
            chosen.append(word)
            said = f"{said} {word.lower()}"
        if len(chosen) == KEYWORDS:
            break
    return chosen


def _quoted_names(text: str) -> list[str]:
    quoted = (next(filter(None, match.groups())) for match in _QUOTED.finditer(text))
    return [_short(word) for part in quoted for word in _IDENTIFIER.findall(part)[:2]]


def _code_words(text: str) -> list[str]:
    words = (match.group() for match in _IDENTIFIER.finditer(text))
    return [_short(word) for word in words if _CODE_LIKE.search(word)]


def _telling_words(text: str) -> list[str]:
    words = (word.lower() for word in _WORD.findall(text))
    return [word for word in words if word not in _BOILERPLATE]


def _short(word: str) -> str:
    """The last part of a path; a dotted name stays whole."""
    return word.rsplit("/", 1)[-1][:60]
