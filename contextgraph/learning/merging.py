"""Finds duplicates: methodologies of one scope, fragments of one repository."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations, groupby

from contextgraph.embedding import Lease, is_fitted
from contextgraph.errors import EmbeddingError
from contextgraph.learning.changes import (
    Changes,
    StepCounts,
    in_batches,
    resolved_by,
)
from contextgraph.learning.grouping import ConsolidationPolicy
from contextgraph.model import (
    Clearance,
    Methodology,
    MethodologyStatus,
    SimilarTo,
    Source,
)
from contextgraph.ports import EmbedderSource, Store
from contextgraph.ranking import dice
from contextgraph.text import words
from contextgraph.trace import describe_remedy
from contextgraph.vectors import Vector, cosines


class Similarity:
    """How similar the advice of two methodologies is, 0 to 1, by words and by vectors.

    Each text is split and embedded once; `prepare` embeds those of many methodologies together.
    Only vectors of the memory's own TF-IDF space are used: others have no threshold.
    """

    def __init__(self, embedder: EmbedderSource) -> None:
        self._embedder = embedder
        self._words: dict[str, frozenset[str]] = {}
        self._vectors: dict[str, Vector | None] = {}

    def prepare(self, methodologies: Iterable[Methodology]) -> None:
        """Embed what *methodologies* advise, in one request."""
        texts = {text for methodology in methodologies for text in _texts(methodology)}
        new = sorted(texts - self._vectors.keys())
        if new:
            self._vectors.update(zip(new, self._embedded(new), strict=True))

    def of(self, methodology: Methodology, other: Methodology) -> float:
        """The lesser of the similarity of all remedies and that of the first ones.

        Each is the greater of Dice's coefficient and the cosine. The same remedies in another order
        are other advice.
        """
        if methodology.remedies == other.remedies:
            return 1.0
        self.prepare((methodology, other))
        pairs = zip(_texts(methodology), _texts(other), strict=True)
        return min(max(self._dice(a, b), self._cosine(a, b)) for a, b in pairs)

    def _dice(self, first: str, second: str) -> float:
        for text in (first, second):
            if text not in self._words:
                self._words[text] = frozenset(words(text))
        return dice(self._words[first], self._words[second])

    def _cosine(self, text: str, other: str) -> float:
        first, second = self._vectors[text], self._vectors[other]
        return cosines(first, [second])[0] if first and second else 0.0

    def _embedded(self, texts: Sequence[str]) -> Sequence[Vector | None]:
        try:
            embedder = self._embedder()
            if embedder is not None and is_fitted(embedder.space):
                return embedder.embed(texts).vectors
        except EmbeddingError:
            pass  # the words decide; the next consolidation compares again
        return [None] * len(texts)


def _texts(methodology: Methodology) -> tuple[str, str]:
    """All remedies of *methodology* in words, and the first one."""
    texts = [describe_remedy((remedy,)) for remedy in methodology.remedies]
    return "\n".join(texts), texts[0] if texts else ""


def merge(
    store: Store,
    error_ids: Sequence[str],
    policy: ConsolidationPolicy,
    similarity: Similarity,
    lease: Lease,
    counts: StepCounts,
) -> None:
    """Let the better supported of two similar methodologies replace the other for its errors.

    Compared are those of errors of the types of *error_ids*.
    """
    seen: set[str] = set()
    for batch in in_batches(error_ids):
        changes = Changes()
        of_types = store.methodologies.of_types(batch)
        new = [
            known
            for known in of_types
            if not seen.issuperset(methodology.id for methodology in known)
        ]
        similarity.prepare(
            methodology for known in new for methodology in known if _is_alive(methodology)
        )
        for known in new:
            seen.update(methodology.id for methodology in known)
            counts.examined += len(known)
            counts.removed += _merge(known, policy, similarity, changes)
        lease.check()
        changes.write(store)


def _merge(
    known: Sequence[Methodology],
    policy: ConsolidationPolicy,
    similarity: Similarity,
    changes: Changes,
) -> int:
    """Add to *changes* which of those *known* of one type of error are replaced; how many are."""
    pairs = list(_duplicates(known, policy, similarity))
    for stays, goes in pairs:
        # What that one had itself replaced follows on.
        for methodology in (goes, *(merged for merged in known if merged.superseded_by == goes.id)):
            retired = replace(methodology, status=MethodologyStatus.RETIRED, superseded_by=stays.id)
            changes.methodologies.append(retired)
            changes.resolved.append(resolved_by(methodology, stays.id))
    return len(pairs)


def _duplicates(
    methodologies: Sequence[Methodology], policy: ConsolidationPolicy, similarity: Similarity
) -> Iterator[tuple[Methodology, Methodology]]:
    """(the one that stays, the one that goes) of those of one scope, keyword and type of task.

    The better supported stays; ties by id.
    """
    gone: set[str] = set()
    for _, group in groupby(sorted(filter(_is_alive, methodologies), key=_scope), key=_scope):
        ranked = sorted(group, key=lambda methodology: (-methodology.support, methodology.id))
        for stays, goes in combinations(ranked, 2):
            if (
                gone.isdisjoint((stays.id, goes.id))
                and similarity.of(stays, goes) >= policy.similarity_threshold
            ):
                gone.add(goes.id)
                yield stays, goes


def _is_alive(methodology: Methodology) -> bool:
    return methodology.status is not MethodologyStatus.RETIRED


def _scope(methodology: Methodology) -> tuple[str, str, str]:
    return methodology.repo or "", methodology.keyword, methodology.task_type or ""


def similar_fragments(
    error_id: str, clearances: Iterable[Clearance], policy: ConsolidationPolicy
) -> Iterator[SimilarTo]:
    """Each fragment with the newest one of its repository that cleared the error in the same way.

    *clearances* are the newest first.
    """
    by_repo: dict[str, list[Clearance]] = {}
    for clearance in clearances:
        by_repo.setdefault(clearance.repo, []).append(clearance)
    similar = {
        source: SimilarTo(error_id, source, head, weight)
        for in_repo in by_repo.values()
        for source, head, weight in _with_heads(in_repo, policy.similarity_threshold)
    }
    yield from similar.values()


def _with_heads(
    clearances: Sequence[Clearance], threshold: float
) -> Iterator[tuple[Source, Source, float]]:
    """Each fragment, its representative and their similarity."""
    if len(clearances) == 1:
        yield clearances[0].source, clearances[0].source, 1.0
        return
    heads: list[tuple[Source, frozenset[str]]] = []
    for clearance in clearances:
        own = frozenset(words(describe_remedy(clearance.recovered.actions)))
        weight, head = max(
            ((_close(own, of_head), head) for head, of_head in heads),
            key=lambda weighted: weighted[0],
            default=(0.0, clearance.source),
        )
        if weight < threshold:
            weight, head = 1.0, clearance.source
            heads.append((head, own))
        yield clearance.source, head, round(weight, 4)


def _close(first: frozenset[str], second: frozenset[str]) -> float:
    """Their coefficient, 0 where their sizes already show that it is small."""
    shorter, longer = sorted((len(first), len(second)))
    return dice(first, second) if 2 * shorter > longer else 0.0
