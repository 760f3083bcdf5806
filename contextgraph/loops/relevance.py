"""Whether what cleared an error in another run concerns the loop at hand."""

import keyword
from collections.abc import Iterable

from contextgraph.model import ErrorSignature, ErrorSolution, Family, RemedyAction, RemedyKind
from contextgraph.text import words
from contextgraph.trace import is_retry

_AGAINST_TIMEOUTS = frozenset({RemedyKind.RUN, RemedyKind.SET_ENV, RemedyKind.CONFIGURE})
_MIN_LETTERS = 3
_COMMON_WORDS = frozenset(word.lower() for word in (*keyword.kwlist, "self", "print"))


def names_of_loop(action: str, error: ErrorSignature) -> frozenset[str]:
    """The names in a repeated *action* and in its *error*.

    The command itself is one of them only where the error names it (`find.: command not found`):
    else it is the same in every loop of its kind.
    """
    return _names((action,)) - _names(action.split()[:1]) | _names((error.message,))


def concerns(actions: Iterable[RemedyAction], names: frozenset[str]) -> bool:
    """True where *actions* share a name with *names*, or name nothing; an edit must share one."""
    own = _names(
        text
        for action in actions
        for text in (
            action.target,
            action.replaced,
            *action.values_of("command"),
            *action.values_of("with"),
        )
    )
    return bool(own & names) or not (own or is_resent(actions))


def can_escape(solution: ErrorSolution, error: ErrorSignature) -> bool:
    """False for another try, and for what can have nothing to do with a time-out."""
    kinds = {action.kind for action in solution.actions}
    if error.family is Family.TIMEOUT:
        return kinds <= _AGAINST_TIMEOUTS
    return not is_retry(solution.actions)


def is_resent(actions: Iterable[RemedyAction]) -> bool:
    """True where an edit was sent again: its lines and its text belong to that edit only."""
    return all(action.kind is RemedyKind.RESEND for action in actions)


def _names(texts: Iterable[str]) -> frozenset[str]:
    found = {word for text in texts for word in words(text)}
    return frozenset(
        word for word in found if len(word) >= _MIN_LETTERS and word not in _COMMON_WORDS
    )
