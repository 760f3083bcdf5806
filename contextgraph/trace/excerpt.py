"""The part of an observation that shows its error."""

from collections.abc import Iterator

from contextgraph.model import ErrorSignature, Family
from contextgraph.trace.errors.signature import signature_of

EXCERPT_CHARS = 2_000
_PART = 640
_MARK = "\n[…]\n"
_SCATTERED = frozenset({Family.TEST_FAILURE, Family.BUILD, Family.ENVIRONMENT})
_HEADINGS = ("Traceback (most recent call last)", "\n____", "\n=====", "\nFAIL", "\nERROR")


def excerpt_of(observation: str, error: ErrorSignature) -> str:
    """At most 2,000 characters of *observation* by which *error* is recognised again."""
    text = observation.strip()
    if len(text) <= EXCERPT_CHARS:
        return text
    shown = (one for one in _candidates(text, error) if _shows(one, error))
    return next(shown, _parts(text, (0, -_PART)))


def _candidates(text: str, error: ErrorSignature) -> Iterator[str]:
    """Cuts of *text*, from what most errors need to what few do."""
    at = text.rfind(error.message.partition("\n")[0][:80])
    if at < 0 or error.family is Family.EDIT_REJECTED:
        yield text[:EXCERPT_CHARS]
    yield _parts(text, (at - 2 * _PART, at - _PART, at))
    yield _parts(text, (-3 * _PART, -2 * _PART, -_PART))
    yield _parts(text, (0, at - _PART // 2, -_PART))
    yield _parts(text, (_heading(text), at - _PART // 2, -_PART))
    yield _parts(text, (0, _PART, 2 * _PART))


def _heading(text: str) -> int:
    """Where the first report of a test or traceback starts."""
    found = (text.find(mark) for mark in _HEADINGS)
    return min((at for at in found if at >= 0), default=0)


def _parts(text: str, starts: tuple[int, ...]) -> str:
    """The parts of *text* from *starts* on, each to the end of its last line, marked where cut."""
    shown, done = "", 0
    for start in sorted(max(0, len(text) + at if at < 0 else at) for at in starts):
        begin = max(done, text.rfind("\n", 0, start) + 1, start - _PART // 4)
        shown += (
            text[begin : begin + _PART] if begin == done else _MARK + text[begin : begin + _PART]
        )
        done = begin + _PART
    return shown[:EXCERPT_CHARS]


def _shows(shown: str, error: ErrorSignature) -> bool:
    if error.family not in _SCATTERED and error.message[:80] in shown:
        # Recognising costs more than cutting, and what is shown in one place survives the cut.
        return True
    found = signature_of(shown)
    if found is None:
        return False
    return (found.family, found.error_type, found.template) == (
        error.family,
        error.error_type,
        error.template,
    )
