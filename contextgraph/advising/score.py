"""Similarity of errors and repositories, and weights of the words of a task."""

from collections import Counter
from collections.abc import Mapping
from functools import lru_cache

from contextgraph.model import (
    EXCEPTIONS,
    ErrorSignature,
    Family,
    RecoveryCandidate,
    ScopeLevel,
    SignatureLevel,
)
from contextgraph.ranking import FixedCounts, word_counts
from contextgraph.text import (
    clip,
    quoted_names,
    words,
)

_TITLE_CHARS, _TITLE_AGAIN = 120, 2
_REMEMBERED_TASKS = 4_096

SAME_TEMPLATE = frozenset({SignatureLevel.PLACE, SignatureLevel.TEMPLATE})
_OF_CODE = EXCEPTIONS | {Family.EDIT_REJECTED}


def title_of(task: str) -> str:
    """The first line of *task*, clipped."""
    return clip(task.strip().partition("\n")[0], _TITLE_CHARS)


@lru_cache(_REMEMBERED_TASKS)
def task_counts(task: str, files: tuple[str, ...]) -> FixedCounts:
    """The words of a past task by field, as in BM25F: its title three times, its *files* once."""
    counted = Counter(word_counts(task))
    for _ in range(_TITLE_AGAIN):
        counted.update(words(title_of(task)))
    for file in files:
        counted.update(words(file))
    return FixedCounts(counted)


def emphasised(weights: Mapping[str, float], task: str) -> dict[str, float]:
    """*weights* of the words of *task*: those of its title double, and whole identifiers."""
    title = frozenset(words(title_of(task)))
    return {
        word: weight * (2 if word in title else 1) * (2 if "_" in word else 1)
        for word, weight in weights.items()
    }


def about_another(current: ErrorSignature, candidate: RecoveryCandidate) -> bool:
    """True where code was at fault, and what was cleared names other things than *current*.

    What was done about one name does not help with another (figures: docs/evaluation.md), nor
    is the package of another module; that one path or command is not found often has the same
    reason as that another one is not.
    """
    if current.family not in _OF_CODE and not current.error_type.endswith("No module named"):
        return False
    ours, theirs = set(quoted_names(current.message)), set(quoted_names(candidate.message))
    return bool(ours and theirs and ours.isdisjoint(theirs))


def scope_level(repo: str, current: str) -> ScopeLevel:
    """Whether evidence of *repo* is of the *current* repository."""
    same = current and repo.casefold() == current.casefold()
    return ScopeLevel.REPO if same else ScopeLevel.GENERAL


def signature_level(current: ErrorSignature, candidate: RecoveryCandidate) -> SignatureLevel:
    """How exactly the *current* error and that of *candidate* agree."""
    level = current.agreement(candidate, candidate.location)
    if level in SAME_TEMPLATE and not _is_specific(current.template):
        return SignatureLevel.TYPE
    return level or SignatureLevel.FAMILY


@lru_cache(_REMEMBERED_TASKS)
def _is_specific(template: str) -> bool:
    """False where a template is all placeholders, so that agreeing on it means nothing."""
    bare = "".join("" if part.startswith("<") else part for part in template.split())
    return any(letter.isalpha() for letter in bare)
