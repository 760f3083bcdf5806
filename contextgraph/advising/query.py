"""What the channels search for, and what they find."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from itertools import islice
from math import log

from contextgraph.advising.gate import SHIPPED, stored_gate
from contextgraph.advising.score import (
    emphasised,
    scope_level,
    task_counts,
)
from contextgraph.model import (
    ErrorSignature,
    FittedGate,
    Fragment,
    Methodology,
    Recollection,
    RecoveryCandidate,
    Scope,
    ScopeLevel,
    State,
    TaskType,
    Trajectory,
)
from contextgraph.ports import EmbedderSource, Store
from contextgraph.ranking import (
    overlap,
    rarity,
    word_counts,
)
from contextgraph.text import masked_name, words
from contextgraph.trace import (
    Names,
    error_of,
    names_in,
    task_type_of,
)

TASK_WORDS = 160
ERROR_WORDS = 40
_REMEMBERED_TASKS = 64


def no_embedder() -> None:
    """An `EmbedderSource` for a memory without vectors."""


@dataclass(frozen=True, slots=True)
class Query:
    """A state as the channels need it.

    *scopes* are tried in order, the repository before all. *weights* says how much each of
    *task_words* counts: more for rare and frequent words, those of the title and identifiers.
    Both are empty beside an error.
    *embedder* gives what turns texts into vectors. *gate* is the one that was fitted on the memory,
    else the shipped one. *recoveries* are those of the same kind of error, once a channel has
    searched them.
    """

    state: State
    signature: ErrorSignature | None
    names: Names
    task_words: tuple[str, ...]
    error_words: tuple[str, ...]
    weights: Mapping[str, float]
    scopes: tuple[Scope, ...]
    embedder: EmbedderSource
    gate: FittedGate
    recoveries: list[RecoveryCandidate] = field(default_factory=list, init=False, compare=False)
    _overlaps: dict[str, float] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def task_type(self) -> TaskType | None:
        """The type of the task; None where it has no words."""
        return _task_type(self.state.task_description)

    @property
    def is_at_error(self) -> bool:
        """True for a query about an error, recognised or not."""
        return self.signature is not None or bool(self.state.current_error.strip())

    @property
    def scope(self) -> Scope:
        """The nearest scope."""
        return self.scopes[0]

    def overlap(self, run: Trajectory) -> float:
        """How much of the query the task of *run* has, 0 to 1; channels find the same ones."""
        known = self._overlaps.get(run.id)
        if known is None:
            known = self._overlaps[run.id] = overlap(self.weights, task_counts(run.task, run.files))
        return known


@lru_cache(_REMEMBERED_TASKS)
def _task_type(task: str) -> TaskType | None:
    return task_type_of(task) if word_counts(task) else None


def query_of(
    state: State,
    store: Store,
    exclude_instances: frozenset[str] = frozenset(),
    as_of: datetime | None = None,
    embedder: EmbedderSource = no_embedder,
    *,
    error: ErrorSignature | None = None,
) -> Query:
    """What *state* asks of *store*; *error* is its error where that is recognised already."""
    signature = error
    if signature is None and state.current_error.strip():
        signature = error_of(state)
    # Beside an error tasks are not compared.
    weights = {} if signature else _weights_in_task(state.task_description, store)
    exclude_instances = frozenset(map(masked_name, exclude_instances))
    everywhere = Scope(None, exclude_instances, as_of)
    here = (Scope(state.repo, exclude_instances, as_of),) if state.repo else ()
    return Query(
        state=state,
        signature=signature,
        names=names_in(signature.error_type, signature.message) if signature else Names(),
        task_words=tuple(weights),
        error_words=_error_words(signature.message) if signature else (),
        weights=weights,
        scopes=(*here, everywhere),
        embedder=embedder,
        gate=(signature and stored_gate(store)) or SHIPPED,
    )


def _error_words(message: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(words(message)))[:ERROR_WORDS]


def _weights_in_task(task: str, store: Store) -> dict[str, float]:
    """The first words of *task*, in order, with their weights."""
    terms = dict(islice(word_counts(task).items(), TASK_WORDS))
    return emphasised(weights_of(terms, store), task)


def weights_of(terms: Mapping[str, int], store: Store) -> dict[str, float]:
    """The rarity of each of *terms* in the tasks of *store*, times 1 + ln(count)."""
    if not terms:
        return {}
    counts = store.runs.word_counts(tuple(terms))
    return {
        word: (1 + log(count)) * rarity(counts.by_word[word], counts.total)
        for word, count in terms.items()
    }


# Candidates taken from the store per question; scores decide among them.
OVERFETCH = 48
_SAME_REPO, _SAME_TYPE = 0.15, 0.05


@dataclass(frozen=True, slots=True)
class CaseHit:
    """A past run that a channel found, with its evidence (0 to 1) and the similarity of its task.

    *similarity* is the cosine of the vectors, where vectors were compared.
    """

    trajectory: Trajectory
    evidence: float
    task_overlap: float
    fragments: tuple[Fragment, ...] = ()
    similarity: float = 0.0


@dataclass(frozen=True, slots=True)
class Findings:
    """What one channel found: *degraded* says what it could not do, and why.

    Recoveries are candidates in no order that counts; the rest is best first.
    """

    recoveries: tuple[RecoveryCandidate, ...] = ()
    cases: tuple[CaseHit, ...] = ()
    methodologies: tuple[Methodology, ...] = ()
    notes: tuple[Recollection, ...] = ()
    degraded: str = ""


Channel = Callable[[Query, Store], Findings]


def ranked_cases(query: Query, trajectories: Iterable[Trajectory]) -> tuple[CaseHit, ...]:
    """*trajectories*, each once, by how well they fit *query*."""
    unique = {trajectory.id: trajectory for trajectory in trajectories}
    return best_first([case_hit(query, trajectory) for trajectory in unique.values()])


def case_hit(query: Query, trajectory: Trajectory, similarity: float = 0.0) -> CaseHit:
    """How well *trajectory* fits *query*: the similarity of the tasks, then repository and type.

    *similarity* is the cosine of the vectors, where a channel compares them.
    """
    shared = query.overlap(trajectory)
    near = scope_level(trajectory.repo, query.state.repo) is ScopeLevel.REPO
    evidence = (1 - _SAME_REPO - _SAME_TYPE) * max(shared, similarity) + _SAME_REPO * near
    evidence += _SAME_TYPE * (trajectory.task_type is query.task_type)
    return CaseHit(trajectory, evidence, shared, similarity=similarity)


def best_first(hits: Sequence[CaseHit]) -> tuple[CaseHit, ...]:
    """*hits* by evidence, ties by id."""
    return tuple(sorted(hits, key=lambda hit: (-hit.evidence, hit.trajectory.id)))
