"""The doors of the core: what it needs of a store, as small protocols.

Two stores must answer alike: same values, same order. Where a docstring names an order, ties are
broken by id, ascending. *limit* bounds the number of items; candidates are proposals, over-fetched
and in scope, and are scored above the port. All methods raise `StoreUnavailableError` when the
store cannot be reached and `StoreError` when it refuses.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Protocol, TypeAlias

from contextgraph.model import (
    Bundle,
    ErrorHistory,
    ErrorSignature,
    ErrorTally,
    Explanation,
    Fragment,
    FragmentCandidate,
    HealthCheck,
    Learned,
    LearnStatus,
    MemoryCounts,
    Methodology,
    MethodologyGroup,
    Near,
    Phase,
    RawTrajectory,
    RecoveryCandidate,
    ResolvedBy,
    RunTexts,
    RunVectors,
    Scope,
    SignatureLevel,
    SimilarTo,
    Space,
    Summary,
    TaskType,
    Trajectory,
    Unconsolidated,
)
from contextgraph.vectors import Vector


class Embedder(Protocol):
    """Turns texts into vectors of one space."""

    @property
    def space(self) -> str:
        """The name of the space, ``maker/model@dimensions``."""

    def embed(self, texts: Sequence[str]) -> Sequence[Vector | None]:
        """A vector for each text, None for a text that says nothing to this embedder.

        Raises `EmbeddingError` when texts cannot be embedded now.
        """


EmbedderSource: TypeAlias = Callable[[], Embedder | None]
"""The embedder of the space that is active now; None while there is none."""


class TrajectoryStore(Protocol):
    """Keeps what was learned.

    What it holds does not depend on the order of learning: an error that several runs met is told
    (keywords, context) in the words of the run of least id among those that are there.
    """

    def add_bundle(self, bundle: Bundle) -> LearnStatus:
        """Keep *bundle* whole and durably, or raise and keep nothing.

        A trajectory that is known by its id is left as it is (unchanged), unless its outcome was
        unknown and is now given: then outcome and exit status are taken over (updated).
        """

    def replace_bundle(self, bundle: Bundle) -> None:
        """Put *bundle* in the place of the trajectory of its id, in one transaction.

        When it was learned, its outcome, and counts of shown advice stay as they were. Raises
        `StoreError` where it is unknown: a run that was forgotten meanwhile does not come back.
        """

    def learned(self, trajectory_id: str) -> Learned | None:
        """What is held of the run of this id, None where it was never learned: cheap to ask."""

    def trajectory(self, trajectory_id: str) -> Trajectory | None:
        """The trajectory of this id, None where there is none."""

    def trajectory_ids(self) -> Sequence[str]:
        """All ids, ascending."""

    def raw_trajectory(self, trajectory_id: str) -> RawTrajectory | None:
        """The masked run as it was learned, with the outcome known by now."""

    def fragments_of(self, trajectory_id: str) -> Sequence[Fragment]:
        """The fragments of one run, in order."""

    def forget(self, trajectory_ids: Iterable[str]) -> int:
        """Remove these runs with all that only they support; how many were known.

        The credit of their fragments goes too, and no text of theirs is left behind.
        """

    def close(self) -> None:
        """Release files and connections; closing twice is harmless."""


class RetrievalStore(Protocol):
    """Proposes candidates for the channels.

    Of *words*, the eight rarest known ones count (ties by the word). The relevance of a text is the
    sum of what those it has are worth: 1 + round(1000 ln((1 + N) / n)), where n of all N texts of
    its kind have the word.
    """

    def recoveries_for_error(
        self, signature: ErrorSignature, level: SignatureLevel, scope: Scope, limit: int
    ) -> Sequence[RecoveryCandidate]:
        """Recoveries whose error agrees with *signature* at least at *level* (not PLACE).

        Verified ones first, then the newest run (`Trajectory.seen_at`), then by fragment id,
        error id, error step.
        """

    def recoveries_for_text(
        self, words: Sequence[str], scope: Scope, limit: int
    ) -> Sequence[RecoveryCandidate]:
        """Recoveries whose error message or description has any of *words*, most relevant first."""

    def trajectories_for_task(
        self, task_type: TaskType | None, scope: Scope, limit: int
    ) -> Sequence[Trajectory]:
        """Runs of this type of task (None: of any), solved ones first, then the newest."""

    def trajectories_for_text(
        self, words: Sequence[str], scope: Scope, limit: int
    ) -> Sequence[Trajectory]:
        """Runs whose task or summary has any of *words*, most relevant first."""

    def fragments_for_state(
        self, phase: Phase | None, file_name: str | None, scope: Scope, limit: int
    ) -> Sequence[FragmentCandidate]:
        """Fragments of this phase (None: any) that touch a file of this name, newest run first.

        *file_name* is the last part of a path, as agents name one file in several ways; a fragment
        touches its `files` and its `open_file`. None: any fragment.
        """

    def nearest_trajectories(
        self, vector: Vector, scope: Scope, limit: int
    ) -> Sequence[Near[Trajectory]]:
        """Runs by the cosine of their vector with *vector*, highest first.

        Cosines that are the same when rounded to four decimals tie. Raises `SpaceMismatchError`
        where *vector* is not of the active space.
        """

    def nearest_fragments(
        self, vector: Vector, scope: Scope, limit: int
    ) -> Sequence[Near[FragmentCandidate]]:
        """Fragments, in the same order."""

    def nearest_recoveries(
        self, vector: Vector, scope: Scope, limit: int
    ) -> Sequence[Near[RecoveryCandidate]]:
        """The recoveries of the *limit* nearest fragments, those of one by error id and step."""

    def methodologies_for_error(
        self, signature: ErrorSignature, scope: Scope, limit: int
    ) -> Sequence[Methodology]:
        """Those that resolve the error of this template, of the repository of *scope* or general.

        Those of a repository first, then by support, highest first. None that was derived from a
        run that *scope* hides.
        """

    def document_count(self) -> int:
        """How many trajectories there are: the N to `word_frequencies`."""

    def word_frequencies(self, words: Sequence[str]) -> Mapping[str, int]:
        """In how many trajectories (task or summary) each word occurs; 0 for unknown ones."""

    def common_errors(self, phase: Phase | None, scope: Scope, limit: int) -> Sequence[ErrorTally]:
        """Errors met in fragments of *phase* (None: any), those of most runs first."""

    def error_tally(self, signature: ErrorSignature, scope: Scope) -> ErrorTally | None:
        """How the error of this template went within *scope*; None where it was never met."""


class VectorStore(Protocol):
    """Keeps vectors by space; a query sees one space only, whatever is being prepared beside it."""

    def active_space(self) -> Space | None:
        """The space in which queries are answered; None while there is none."""

    def space_model(self, space: str) -> bytes | None:
        """What was stored with the space of this name."""

    def texts_to_embed(self, limit: int, space: str | None = None) -> Sequence[RunTexts]:
        """The texts of runs, by id: of all, or of those that have no vectors in *space* yet."""

    def prepare_space(self, space: Space, model: bytes | None) -> None:
        """Make room for vectors of *space* and keep its *model*; the active space stays.

        Where there is room already, only `Space.runs` is taken over.
        """

    def add_vectors(self, vectors: Mapping[str, RunVectors]) -> None:
        """Keep *vectors* by the id of their run.

        Runs that are gone, have other fragments by now, or have vectors of that space are passed
        over. Raises `StoreError` where the space was not prepared, or has been dropped since.
        """

    def switch_space(self, space: str) -> None:
        """Make *space* the active one and drop all others with their vectors, in one transaction.

        Raises `StoreError` as `add_vectors` does.
        """


class StatisticsStore(Protocol):
    """Counts."""

    def counts(self) -> MemoryCounts:
        """Nodes, relations, outcomes and repositories."""

    def error_frequency(self) -> Mapping[str, int]:
        """Error type -> in how many fragments it occurred, most frequent first, then by name."""

    def error_transitions(self) -> Mapping[str, Mapping[str, int]]:
        """Error type -> the error type that came next in the same run -> how often.

        Errors of one step follow each other by the ids of their patterns. Most frequent first, then
        by name, in both mappings.
        """

    def errors_of_runs(self, trajectory_ids: Iterable[str], limit: int) -> Sequence[ErrorTally]:
        """Errors met in these runs, those of most of them first; unknown ids count for nothing."""


class ExposureStore(Protocol):
    """Remembers what was shown, and what came of it."""

    def add_exposure(
        self,
        context_id: str,
        items: Sequence[str],
        shown_at: datetime,
        error_id: str | None = None,
    ) -> None:
        """Note that *items* (ids of fragments and methodologies) were shown as *context_id*.

        A context that is noted already stays as it is. *error_id* is the error that the items were
        to clear: `add_bundle` of a run in whose playbooks the context was found, and that met this
        error, reports whether the run cleared it.
        """

    def report_outcome(self, context_id: str, helped: bool) -> bool:
        """Credit or debit the items of a context; False where it is unknown or was reported."""

    def credit(self, items: Sequence[str]) -> Mapping[str, tuple[float, float]]:
        """Item id -> (times it was shown and helped, times it did not); (0, 0) for unknown ones.

        What was shown together shares each time in equal parts; rounded to four decimals.
        """


class Summarizer(Protocol):
    """Puts into words what clearances of one kind of error have in common."""

    def summarise(self, group: MethodologyGroup) -> Summary:
        """When *group* applies and what to do.

        One that depends on a model that may fail falls back to a template, and says so in
        `Summary.made_by`.
        """


class MethodologyStore(Protocol):
    """Keeps methodologies; those that are retired are tombstones, and never found for an error."""

    def methodologies_of(self, ids: Sequence[str]) -> Sequence[Methodology]:
        """Those of these ids, by id."""

    def methodology_ids(self) -> Sequence[str]:
        """All ids, ascending, tombstones as well."""

    def resolved_by(self, methodology_id: str) -> Sequence[ResolvedBy]:
        """The errors that a methodology resolves, by their ids."""


class ConsolidationStore(MethodologyStore, Protocol):
    """Says what has yet to be consolidated, and lets one work at a time."""

    def learned_since_consolidation(self) -> int:
        """How many trajectories were learned or updated since the last consolidation."""

    def take_lease(self, holder: str, now: datetime, until: datetime) -> datetime | None:
        """Take the lease; where another *holder* has one that has not expired, when that does."""

    def return_lease(self, holder: str) -> None:
        """Give the lease back; harmless where another has taken it meanwhile."""

    def unconsolidated(self, after: int | None = None) -> Unconsolidated:
        """What changed since the last consolidation, or revision *after*; error ids ascending."""

    def error_history(self, error_id: str, runs: int) -> ErrorHistory | None:
        """How the newest *runs* that met an error went with it; None where none did."""

    def methodologies_of_error(self, error_id: str) -> Sequence[Methodology]:
        """Those abstracted from an error, by id, tombstones as well."""

    def methodologies_of_type(self, error_id: str) -> Sequence[Methodology]:
        """Those of all errors of the family and type of this one, by id, tombstones as well."""

    def put_methodologies(
        self,
        methodologies: Sequence[Methodology],
        removed: Sequence[str],
        resolved: Sequence[ResolvedBy],
        similar: Sequence[SimilarTo],
    ) -> int:
        """Write all of it in one transaction; how many fragments were found alike.

        *resolved* take the place of edges between the same two; retired methodologies keep none.
        Those that a removed methodology had superseded go as well, and their
        errors count as changed.
        """

    def prune_failed_fragments(self, error_ids: Sequence[str], keep: int) -> int:
        """Delete failed attempts at each of these errors beyond the newest *keep*; how many.

        None that cleared an error goes.
        """

    def remove_orphans(self) -> int:
        """Delete methodologies that no fragment supports, tombstones excepted; how many."""

    def shown_methodologies(self) -> Sequence[str]:
        """Ids of methodologies of which it was reported whether they helped, ascending."""

    def mark_consolidated(self, revision: int) -> None:
        """Note that what changed up to *revision* is consolidated."""


class LearntStore(ConsolidationStore, ExposureStore, RetrievalStore, Protocol):
    """What consolidation needs of a store."""


class ProvenanceStore(Protocol):
    """Says where something comes from."""

    def explain(self, node_id: str) -> Explanation | None:
        """A node, or a context that was shown, with its edges; None where there is no such id."""


class HealthStore(Protocol):
    """Says whether the store is well."""

    def health(self) -> Sequence[HealthCheck]:
        """One check each for: reachable, schema version, integrity, writable, sizes.

        Never raises for a store that is ill: that is a check that failed, with its remedy.
        """


class GraphStore(
    TrajectoryStore,
    RetrievalStore,
    VectorStore,
    StatisticsStore,
    ExposureStore,
    ConsolidationStore,
    ProvenanceStore,
    HealthStore,
    Protocol,
):
    """All of it."""
