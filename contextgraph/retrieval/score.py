"""How exactly errors and repositories agree."""

from contextgraph.model import (
    EXCEPTIONS,
    ErrorSignature,
    Family,
    Recovered,
    RecoveryCandidate,
    ScopeLevel,
    SignatureLevel,
)
from contextgraph.text import quoted_names

_OF_CODE = EXCEPTIONS | {Family.EDIT_REJECTED}


def about_another(asked: ErrorSignature, recovered: Recovered) -> bool:
    """True where code was at fault, and what was cleared names other things than the error *asked*.

    What was done about one name is no help with another (docs/evaluation.md has the figures); that
    one path or command is not found often has the same reason as that another one is not.
    """
    if asked.family not in _OF_CODE:
        return False
    ours, theirs = set(quoted_names(asked.message)), set(quoted_names(recovered.message))
    return bool(ours and theirs and ours.isdisjoint(theirs))


def scope_level(repo: str, asked: str) -> ScopeLevel:
    """Whether evidence of *repo* is of the repository *asked* about."""
    same = asked and repo.casefold() == asked.casefold()
    return ScopeLevel.REPO if same else ScopeLevel.GENERAL


def signature_level(asked: ErrorSignature, candidate: RecoveryCandidate) -> SignatureLevel:
    """How exactly the error *asked* about and that of *candidate* agree."""
    level = asked.agreement(
        ErrorSignature(
            family=candidate.error.family,
            error_type=candidate.error.error_type,
            message=candidate.recovered.message,
            template=candidate.error.template,
            keywords=candidate.error.keywords,
            location=candidate.recovered.location,
        )
    )
    if level in (SignatureLevel.PLACE, SignatureLevel.TEMPLATE) and not _says_something(asked):
        return SignatureLevel.TYPE
    return level or SignatureLevel.FAMILY


def _says_something(asked: ErrorSignature) -> bool:
    """False where a template is all placeholders, so that agreeing on it means nothing."""
    bare = "".join("" if part.startswith("<") else part for part in asked.template.split())
    return any(letter.isalpha() for letter in bare)
