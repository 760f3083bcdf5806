"""The part of an observation that shows its error."""

from contextgraph.model import ErrorSignature
from contextgraph.trace.signature import signature_of

EXCERPT_CHARS = 2_000
_AROUND = 900
_MARK = "\n[…]\n"


def excerpt_of(observation: str, error: ErrorSignature) -> str:
    """At most 2,000 characters of *observation* by which *error* is recognised again."""
    text = observation.strip()
    if len(text) <= EXCERPT_CHARS:
        return text
    shown = text[-EXCERPT_CHARS:]
    for shown in _candidates(text, error):
        if _shows(shown, error):
            return shown
    return _head_and_tail(text)


def _candidates(text: str, error: ErrorSignature) -> tuple[str, ...]:
    at = text.rfind(error.message[:80]) if error.message else -1
    around = () if at < 0 else (_around(text, at),)
    return (*around, _from_line(text, EXCERPT_CHARS), text[:EXCERPT_CHARS], _head_and_tail(text))


def _around(text: str, at: int) -> str:
    start = max(0, at - 2 * _AROUND)
    start = text.rfind("\n", 0, start) + 1 if start else 0
    return text[start : max(at + EXCERPT_CHARS - 2 * _AROUND, start + EXCERPT_CHARS)][
        :EXCERPT_CHARS
    ]


def _from_line(text: str, limit: int) -> str:
    """The end of *text*, from the start of a line where there is one."""
    tail = text[-limit:]
    return tail.partition("\n")[2] or tail


def _head_and_tail(text: str) -> str:
    return f"{text[:_AROUND]}{_MARK}{_from_line(text, _AROUND)}"


def _shows(shown: str, error: ErrorSignature) -> bool:
    found = signature_of(shown)
    if found is None:
        return False
    return (found.family, found.error_type, found.template) == (
        error.family,
        error.error_type,
        error.template,
    )
