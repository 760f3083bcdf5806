"""Whether what was done in another run bears on the loop at hand."""

import keyword
import re
from collections.abc import Iterable

from contextgraph.model import ErrorSignature
from contextgraph.text import words

_QUOTED = re.compile(r"`([^`]*)`")
_LEAST_LETTERS = 3
_COMMON = frozenset(word.lower() for word in (*keyword.kwlist, "self", "print"))


def names_of(action: str, error: ErrorSignature) -> frozenset[str]:
    """The words by which a trouble is known: of the *action* repeated and of its *error*.

    The command itself is one of them only where the error names it (`find.: command not found`):
    else it is the same in every loop of its kind.
    """
    return _names((action,)) - _names(action.split()[:1]) | _names((error.message,))


def bears_on(what: str, names: frozenset[str], *, near: bool) -> bool:
    """True where *what* may be said of a trouble known by *names*.

    The code that it quotes must name something that the trouble names too, from another repository
    two things. What quotes no code bears on any.
    """
    quoted = _QUOTED.findall(what)
    return not quoted or len(_names(quoted) & names) >= (1 if near else 2)


def _names(texts: Iterable[str]) -> frozenset[str]:
    found = {word for text in texts for word in words(text)}
    return frozenset(word for word in found if len(word) >= _LEAST_LETTERS and word not in _COMMON)
