"""Similarity of texts, and how exactly errors and repositories agree."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import chain
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
from contextgraph.text import quoted_names, words

# The head of an issue says what it is about; logs and code follow.
TASK_CHARS = 2_000
_REMEMBERED_TEXTS = 4_096

# BM25 (Robertson & Zaragoza 2009) with the usual constants; the reference length stands for the
# average document, which a growing memory would have to recompute.
_K1, _B, _REFERENCE_WORDS = 1.2, 0.75, 150

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


def bm25(asked: Collection[str], texts: Sequence[Counter[str]]) -> list[float]:
    """The BM25 of each of *texts* for the words *asked*; they are the collection for their rarity.

    Stores that propose the same texts thereby lead to the same scores.
    """
    # In a fixed order: floating-point sums depend on it.
    words_asked = sorted(set(asked))
    shared = [[word for word in words_asked if word in text] for text in texts]
    met = Counter(chain.from_iterable(shared))
    lengths = [text.total() for text in texts]
    mean = sum(lengths) / max(1, len(texts))
    rarity = {word: log(1 + (len(texts) - n + 0.5) / (n + 0.5)) for word, n in met.items()}
    return [
        _bm25([(rarity[word], text[word]) for word in hits], length / mean if mean else 0.0)
        for text, hits, length in zip(texts, shared, lengths, strict=True)
    ]


def _bm25(hits: Iterable[tuple[float, int]], length: float) -> float:
    """The score of a text of this relative *length*, by rarity and number of each shared word."""
    norm = _K1 * (1 - _B + _B * length)
    return sum(rarity * count * (_K1 + 1) / (count + norm) for rarity, count in hits)


@lru_cache(_REMEMBERED_TEXTS)
def word_counts(text: str) -> Counter[str]:
    """The words in the head of *text* with their counts, in order; not to be changed."""
    return Counter(words(text[:TASK_CHARS]))


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
