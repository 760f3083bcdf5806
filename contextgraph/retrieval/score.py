"""Similarity of texts, and how exactly errors and repositories agree."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from math import log

from contextgraph.model import (
    EXCEPTIONS,
    ErrorSignature,
    Family,
    Recovered,
    RecoveryCandidate,
    ScopeLevel,
    SignatureLevel,
)
from contextgraph.text import clip, quoted_names, words

# The head of an issue says what it is about; logs and code follow.
TASK_CHARS = 2_000
_TITLE_CHARS, _TITLE_AGAIN = 120, 2
_REMEMBERED_TEXTS = 4_096

# BM25 (Robertson & Zaragoza 2009) with the usual constants; the reference length stands for the
# average document, which a growing memory would have to recompute.
_K1, _B, _REFERENCE_WORDS = 1.2, 0.75, 150

_OF_CODE = EXCEPTIONS | {Family.EDIT_REJECTED}


def overlap(asked: Mapping[str, float], counted: Counter[str]) -> float:
    """How much of what is *asked* (word -> weight) is *counted*, 0 to 1: BM25 over its maximum."""
    most = sum(asked.values()) * (_K1 + 1)
    if not most:
        return 0.0
    norm = _K1 * (1 - _B + _B * counted.total() / _REFERENCE_WORDS)
    # In a fixed order: floating-point sums depend on it.
    shared = sorted(asked.keys() & counted.keys())
    found = sum(asked[word] * counted[word] / (counted[word] + norm) for word in shared)
    return found * (_K1 + 1) / most


def bm25(asked: Collection[str], texts: Sequence[Counter[str]]) -> list[float]:
    """The BM25 of each of *texts* for the words *asked*; they are the collection for their rarity.

    Stores that propose the same texts thereby lead to the same scores.
    """
    met = Counter(word for text in texts for word in text.keys() & asked)
    mean = sum(text.total() for text in texts) / max(1, len(texts))
    rarity = {word: log(1 + (len(texts) - n + 0.5) / (n + 0.5)) for word, n in met.items()}
    return [_bm25(text, rarity, mean) for text in texts]


def _bm25(text: Counter[str], rarity: Mapping[str, float], mean: float) -> float:
    norm = _K1 * (1 - _B + _B * text.total() / mean) if mean else 0.0
    # In a fixed order: floating-point sums depend on it.
    shared = sorted(rarity.keys() & text.keys())
    return sum(rarity[word] * text[word] * (_K1 + 1) / (text[word] + norm) for word in shared)


@lru_cache(_REMEMBERED_TEXTS)
def word_counts(text: str) -> Counter[str]:
    """The words in the head of *text* with their counts, in order; not to be changed."""
    return Counter(words(text[:TASK_CHARS]))


def title_of(task: str) -> str:
    """The first line of *task*, clipped."""
    return clip(task.strip().partition("\n")[0], _TITLE_CHARS)


@lru_cache(_REMEMBERED_TEXTS)
def task_counts(task: str, files: tuple[str, ...]) -> Counter[str]:
    """The words of a past task by field, as in BM25F: its title three times, its *files* once.

    Not to be changed.
    """
    counted = word_counts(task).copy()
    for _ in range(_TITLE_AGAIN):
        counted.update(words(title_of(task)))
    for file in files:
        counted.update(words(file))
    return counted


def emphasised(weights: Mapping[str, float], task: str) -> dict[str, float]:
    """*weights* of the words of *task*: those of its title double, and whole identifiers."""
    title = frozenset(words(title_of(task)))
    return {
        word: weight * (2 if word in title else 1) * (2 if "_" in word else 1)
        for word, weight in weights.items()
    }


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
