"""What a state asks for, worked out once for all channels."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from math import log

from contextgraph.model import ErrorSignature, Scope, State, TaskType
from contextgraph.ports import EmbedderSource, RetrievalStore
from contextgraph.retrieval.score import overlap, word_counts
from contextgraph.text import words
from contextgraph.trace import signature_of, task_type_of

TASK_WORDS = 160
ERROR_WORDS = 40


def no_embedder() -> None:
    """An `EmbedderSource` for a memory without vectors."""


@dataclass(frozen=True, slots=True)
class Query:
    """A state as the channels need it.

    *scopes* are tried in order, the repository before all. *weights* says how much each of
    *task_words* counts: rare words, and those said often, count for more. *embedder* gives what
    turns texts into vectors.
    """

    state: State
    signature: ErrorSignature | None
    task_type: TaskType | None
    task_words: tuple[str, ...]
    error_words: tuple[str, ...]
    weights: Mapping[str, float]
    scopes: tuple[Scope, ...]
    embedder: EmbedderSource
    _overlaps: dict[str, float] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def scope(self) -> Scope:
        """The nearest scope."""
        return self.scopes[0]

    def overlap(self, task: str) -> float:
        """How much of what is asked another *task* has, 0 to 1; channels find the same ones."""
        known = self._overlaps.get(task)
        if known is None:
            known = self._overlaps[task] = overlap(self.weights, task)
        return known


def query_of(
    state: State,
    store: RetrievalStore,
    exclude_instances: frozenset[str] = frozenset(),
    as_of: datetime | None = None,
    embedder: EmbedderSource = no_embedder,
) -> Query:
    """What *state* asks of *store*."""
    signature = signature_of(state.current_error) if state.current_error.strip() else None
    asked = word_counts(state.task_description)
    task_words = tuple(asked)[:TASK_WORDS]
    error_words = tuple(dict.fromkeys(words(signature.message)))[:ERROR_WORDS] if signature else ()
    everywhere = Scope(None, exclude_instances, as_of)
    return Query(
        state=state,
        signature=signature,
        task_type=task_type_of(state.task_description) if task_words else None,
        task_words=task_words,
        error_words=error_words,
        weights=weights_of({word: asked[word] for word in task_words}, store),
        scopes=(Scope(state.repo, exclude_instances, as_of), everywhere)
        if state.repo
        else (everywhere,),
        embedder=embedder,
    )


def weights_of(asked: Mapping[str, int], store: RetrievalStore) -> dict[str, float]:
    """BM25's inverse document frequency, ln(1 + (N - n + 0.5) / (n + 0.5)), times 1 + ln(count)."""
    if not asked:
        return {}
    total, frequencies = store.document_count(), store.word_frequencies(tuple(asked))
    return {
        word: (1 + log(count)) * log(1 + (total - n + 0.5) / (n + 0.5))
        for word, count in asked.items()
        for n in [frequencies[word]]
    }
