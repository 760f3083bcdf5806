"""Evidence, 0 to 1, computed from stored text alone: every store gives the same."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache

from contextgraph.model import (
    EXCEPTIONS,
    ErrorSignature,
    Family,
    Outcome,
    Recovered,
    RecoveryCandidate,
    ScopeLevel,
    SignatureLevel,
)
from contextgraph.text import quoted_names, words

# The head of an issue says what it is about; logs and code follow.
TASK_CHARS = 2_000
_REMEMBERED_TEXTS = 4_096
_NUMBER = re.compile(r"\b\d+\b")

# BM25 (Robertson & Zaragoza 2009) with the usual constants; the reference length stands for the
# average document, which a growing memory would have to recompute.
_K1, _B, _REFERENCE_WORDS = 1.2, 0.75, 150

_LEVEL = {
    SignatureLevel.PLACE: 0.85,
    SignatureLevel.TEMPLATE: 0.75,
    SignatureLevel.TYPE: 0.40,
    SignatureLevel.FAMILY: 0.10,
}
# What a message alike in its words adds at each level.
_LIKENESS = {
    SignatureLevel.PLACE: 0.15,
    SignatureLevel.TEMPLATE: 0.20,
    SignatureLevel.TYPE: 0.35,
    SignatureLevel.FAMILY: 0.30,
}
_OUTCOME = {Outcome.SOLVED: 1.0, Outcome.UNKNOWN: 0.96, Outcome.FAILED: 0.94}
_ELSEWHERE, _UNVERIFIED, _WORKAROUND = 0.85, 0.6, 0.75
_OF_CODE = EXCEPTIONS | {Family.EDIT_REJECTED}


def overlap(asked: Mapping[str, float], text: str) -> float:
    """How much of what is *asked* (word -> weight) *text* has, 0 to 1: BM25 over its maximum."""
    most = sum(asked.values()) * (_K1 + 1)
    if not most:
        return 0.0
    counted = word_counts(text)
    norm = _K1 * (1 - _B + _B * counted.total() / _REFERENCE_WORDS)
    # In a fixed order: floating-point sums depend on it.
    shared = sorted(asked.keys() & counted.keys())
    found = sum(asked[word] * counted[word] / (counted[word] + norm) for word in shared)
    return found * (_K1 + 1) / most


@lru_cache(_REMEMBERED_TEXTS)
def word_counts(text: str) -> Counter[str]:
    """The words in the head of *text* with their counts, in order; not to be changed."""
    return Counter(words(text[:TASK_CHARS]))


@lru_cache(_REMEMBERED_TEXTS)
def gist(advice: str) -> str:
    """What makes two advices the same: their words, whatever line numbers and counts they name."""
    return " ".join(words(_NUMBER.sub("", advice)))


def likeness(one: Collection[str], other: Iterable[str]) -> float:
    """Dice's coefficient of two sets of words, 0 to 1."""
    left, right = set(one), set(other)
    return 2 * len(left & right) / (len(left) + len(right)) if left and right else 0.0


def recovery_evidence(
    asked: ErrorSignature, candidate: RecoveryCandidate, repo: str
) -> tuple[float, SignatureLevel]:
    """How well a recorded recovery answers the error *asked*, and how exactly they agree."""
    level = _agreement(asked, candidate)
    alike = likeness(word_counts(asked.message), word_counts(candidate.recovered.message))
    evidence = _LEVEL[level] + _LIKENESS[level] * alike
    evidence *= _OUTCOME[candidate.trajectory.outcome]
    if scope_level(candidate.trajectory.repo, repo) is ScopeLevel.GENERAL:
        evidence *= _ELSEWHERE
    if not candidate.recovered.verified:
        evidence *= _UNVERIFIED
    if candidate.recovered.workaround:
        evidence *= _WORKAROUND
    return evidence, level


def on_topic(asked: ErrorSignature, recovered: Recovered) -> bool:
    """True where what was done names one of the keywords of the error *asked* about."""
    done = word_counts(" ".join((recovered.what, *recovered.actions)))
    return any(word in done for word in _words_of(asked.keywords))


def about_another(asked: ErrorSignature, recovered: Recovered) -> bool:
    """True where code was at fault, and what was cleared names other things than the error *asked*.

    What was done about one name is no help with another (docs/evaluation.md has the figures); that
    one path or command is not found often has the same reason as that another one is not.
    """
    if asked.family not in _OF_CODE:
        return False
    ours, theirs = set(quoted_names(asked.message)), set(quoted_names(recovered.message))
    return bool(ours and theirs and ours.isdisjoint(theirs))


@lru_cache(_REMEMBERED_TEXTS)
def _words_of(keywords: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(word for keyword in keywords for word in words(keyword))


def scope_level(repo: str, asked: str) -> ScopeLevel:
    """Whether evidence of *repo* is of the repository *asked* about."""
    return ScopeLevel.REPO if asked and repo == asked else ScopeLevel.GENERAL


def _agreement(asked: ErrorSignature, candidate: RecoveryCandidate) -> SignatureLevel:
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
