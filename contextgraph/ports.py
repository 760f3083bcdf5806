"""What the core needs of a store, of embedders and of summarizers, as small protocols.

All stores give the same answers: the same values in the same order. Where a docstring names an
order, ties are broken by id, ascending. *limit* bounds the number of items. What a store proposes
is in scope and more than will be shown; it is scored above this layer. Every store method raises
`StoreUnavailableError` when the store cannot be reached and `StoreError` when it refuses.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeAlias

from contextgraph.model import (
    AdviceRecord,
    Bundle,
    Embeddings,
    ErrorHistory,
    ErrorQuestion,
    ErrorSignature,
    ErrorTally,
    Explanation,
    Exposure,
    FittedGate,
    Fragment,
    FragmentCandidate,
    HealthCheck,
    Learned,
    LearnStatus,
    MemoryCounts,
    Methodology,
    MethodologyGroup,
    Near,
    Note,
    NoteKind,
    NoteScope,
    Outcome,
    Phase,
    RawTrajectory,
    RecoveryCandidate,
    ResolvedBy,
    Scope,
    SimilarTo,
    Space,
    Summary,
    TaskType,
    Trajectory,
    Unconsolidated,
    Usage,
    Verdict,
    WordCounts,
    Wording,
)
from contextgraph.processes import Process
from contextgraph.vectors import Vector

if TYPE_CHECKING:
    from networkx import MultiDiGraph

    Graph: TypeAlias = MultiDiGraph[str]

_NOTES_AT_ONCE = 500
_CONTEXTS_AT_ONCE = 256


class RunStore(Protocol):
    """Stores runs with their fragments, and proposes past runs.

    The content does not depend on the order of learning: an error that several runs met has the
    keywords and the context of the run with the least id.

    Of *words*, the eight rarest known ones count (ties by the word). The relevance of a text is the
    sum of the weights of its words: 1 + round(1000 ln((1 + N) / n)), where n of all N texts of
    its kind have the word. On a server n and N may lag behind by 1 % of the texts.
    """

    def add(self, bundles: Sequence[Bundle]) -> Sequence[LearnStatus]:
        """Store all *bundles* durably, in one transaction; the status of each.

        Where one cannot be stored it raises, and none of them is. A vector is stored where its
        space has been prepared.

        A run that is known by its id stays as it is (unchanged), unless its outcome was unknown
        and is now given: then outcome and exit status are taken over (updated).
        """

    def replace(self, bundles: Mapping[str, Bundle]) -> Sequence[str]:
        """Replace each run, by its id, by its bundle: one after the other, in one transaction.

        The ids of those that were replaced: a run that was forgotten meanwhile does not come back.
        The time of learning and a known outcome stay as they were; contexts that a bundle was shown
        are reported, as by `add`. `learned` knows the run by its former id as well; another run of
        the id of the bundle is replaced, too.
        """

    def set_outcome(self, trajectory_ids: Iterable[str], outcome: Outcome) -> int:
        """Set the outcome of these runs by hand, whatever it was, in one transaction.

        Returns how many runs this changed. Unknown ids count for nothing.
        """

    def learned(self, trajectory_ids: Sequence[str]) -> Mapping[str, Learned]:
        """Requested id, which may be a former one -> what is stored of the run; cheap.

        Unknown ids are missing.
        """

    def trajectories(self, trajectory_ids: Iterable[str]) -> Mapping[str, Trajectory]:
        """Run id -> its trajectory, by id, without unknown ids."""

    def ids(
        self,
        repo: str | None = None,
        instance: str | None = None,
        *,
        after: str = "",
        limit: int | None = None,
    ) -> Sequence[str]:
        """The ids of all runs, or of those of *repo* (in any case) and of *instance*, ascending.

        Only ids greater than *after*; at most *limit* (None: all).
        """

    def raw(self, trajectory_id: str) -> RawTrajectory | None:
        """The masked run as it was learned, with the outcome known by now."""

    def fragments(self, trajectory_ids: Iterable[str]) -> Mapping[str, Sequence[Fragment]]:
        """Run id -> its fragments, in order; none for unknown ids."""

    def forget(self, trajectory_ids: Iterable[str]) -> int:
        """Remove these runs and all that only they support; how many were known.

        The credit of their fragments goes too, and none of their text is left behind. When it is
        interrupted some of many runs may be gone, each of them whole; calling it again does the
        rest.
        """

    def for_task(
        self, task_type: TaskType | None, scope: Scope, limit: int
    ) -> Sequence[Trajectory]:
        """Runs of this type of task (None: of any), solved ones first, then the newest."""

    def for_text(self, words: Sequence[str], scope: Scope, limit: int) -> Sequence[Trajectory]:
        """Runs whose task or summary has any of *words*, most relevant first."""

    def fragments_for_state(
        self, phase: Phase | None, file_name: str | None, scope: Scope, limit: int
    ) -> Sequence[FragmentCandidate]:
        """Fragments of this phase (None: any) that touch a file of this name, newest run first.

        *file_name* is the last part of a path, as agents name one file in several ways; a fragment
        touches its `files` and its `open_file`. None: any fragment.
        """

    def loop_fragments(self, command: str, scope: Scope, limit: int) -> Sequence[FragmentCandidate]:
        """Fragments that are loops of this command (`Fragment.loop_command`), newest run first."""

    def word_counts(self, words: Sequence[str]) -> WordCounts:
        """How many runs there are, and in how many (task or summary) each of *words* occurs."""

    def archived(self, trajectory_id: str) -> Bundle | None:
        """All that is stored of a run, with its vector in the active space, for `add`.

        Fragments may have been pruned. Errors are by id, recoveries by step, fragment and error.
        """


class RecoveryStore(Protocol):
    """Proposes recoveries, and counts errors and what cleared them."""

    def for_error(
        self, questions: Sequence[ErrorQuestion], limit: int
    ) -> Sequence[RecoveryCandidate]:
        """Recoveries from the errors of *questions*, at most *limit* of each.

        Their level is TEMPLATE or TYPE. Each once, those of the first question first. For one
        question verified ones come first, then the newest run (`Trajectory.seen_at`), then by
        fragment id, error id and error step.
        """

    def for_text(
        self, words: Sequence[str], scope: Scope, limit: int
    ) -> Sequence[RecoveryCandidate]:
        """Recoveries whose error message or description has any of *words*, most relevant first."""

    def of_runs(self, trajectory_ids: Iterable[str]) -> Sequence[RecoveryCandidate]:
        """The recoveries of these runs, by fragment id, error id and error step."""

    def histories(self, error_ids: Sequence[str], runs: int) -> Sequence[ErrorHistory]:
        """How the newest *runs* that met each of these errors went with it, by id of the error.

        Errors that no run met have none.
        """

    def errors(
        self,
        scope: Scope,
        limit: int,
        *,
        phase: Phase | None = None,
        runs: Iterable[str] | None = None,
    ) -> Sequence[ErrorTally]:
        """Errors met within *scope*, in fragments of *phase* (None: any), most runs first.

        Only those of *runs* (by id; unknown ones count for nothing) where these are given.
        """

    def frequency(self) -> Mapping[str, int]:
        """Error type -> in how many fragments it occurred, most frequent first, then by name."""

    def transitions(self) -> Mapping[str, Mapping[str, int]]:
        """Error type -> the error type that came next in the same run -> how often.

        Errors of one step follow each other by the ids of their patterns. Most frequent first, then
        by name, in both mappings.
        """

    def similar_to(self, trajectory_id: str) -> Sequence[SimilarTo]:
        """The `SIMILAR_TO` edges of the fragments of a run, by fragment and error."""

    def clean_up(self, error_ids: Sequence[str], keep: int) -> int:
        """Delete failed attempts at each of these errors beyond the newest *keep*; and orphans.

        No fragment that cleared an error is deleted. Orphans are methodologies that no fragment
        supports, tombstones excepted. Returns how many nodes were deleted. When it is interrupted
        some are gone; calling it again does the rest.
        """


class VectorStore(Protocol):
    """Stores vectors by space; a query sees one space, whatever is being prepared beside it."""

    def active_space(self) -> Space | None:
        """The space in which queries are answered; None while there is none."""

    def space_model(self, space: str) -> bytes | None:
        """The model that was stored with the space of this name."""

    def prepare(self, space: Space, model: bytes | None) -> None:
        """Let vectors of *space* be stored, and store its *model*; the active space stays.

        For a space that is prepared already, only its other fields are taken over.
        """

    def switch(self, space: str) -> None:
        """Make *space* the active one and drop all others with their vectors, in one transaction.

        Raises `StoreError` as `add` does.
        """

    def texts_to_embed(
        self, limit: int, space: str | None = None, after: str = ""
    ) -> Mapping[str, str]:
        """Run id -> its `run_text`, by id: of all runs, or of those without a vector in *space*.

        Only of ids greater than *after*. A text for which the embedder has no vector counts as
        embedded. In a space that was not prepared no run has a vector.
        """

    def add(self, space: str, vectors: Mapping[str, Vector | None]) -> None:
        """Store vectors of *space* by the ids of runs, in one transaction.

        Runs that are gone or have a vector of that space already are skipped. Raises `StoreError`
        where the space was not prepared, or has been dropped since.
        """

    def nearest(self, vector: Vector, scope: Scope, limit: int) -> Sequence[Near]:
        """Runs by the cosine of their vector with *vector*, highest first.

        Cosines that are equal when rounded to four decimals tie. Raises `SpaceMismatchError` where
        *vector* is not of the active space.
        """


class MethodologyStore(Protocol):
    """Stores methodologies; retired ones are tombstones, which `for_error` skips."""

    def get(self, ids: Sequence[str] = (), *, errors: Sequence[str] = ()) -> Sequence[Methodology]:
        """Those of these ids, and those of these errors, by id, tombstones as well."""

    def ids(
        self, repo: str | None = None, *, after: str = "", limit: int | None = None
    ) -> Sequence[str]:
        """All ids, or those of *repo* (in any case), ascending, tombstones as well.

        *after* and *limit* are as of `RunStore.ids`.
        """

    def of_types(self, error_ids: Sequence[str]) -> Sequence[Sequence[Methodology]]:
        """Those of all errors with the family and type of one of these, tombstones as well.

        One sequence for each type that has some: by id, and types by their first.
        """

    def for_error(
        self, signatures: Sequence[ErrorSignature], scope: Scope, limit: int
    ) -> Sequence[Methodology]:
        """Those that resolve the error of the first of these templates that has any.

        Without their `sources`, which can be many.
        Of the repository of *scope* or general; those of a repository first, then by support,
        highest first. None that was derived from a run that *scope* hides.
        """

    def put(
        self,
        methodologies: Sequence[Methodology],
        removed: Sequence[str] = (),
        resolved: Sequence[ResolvedBy] = (),
        similar: Sequence[SimilarTo] = (),
    ) -> int:
        """Write all of it in one transaction; how many `SIMILAR_TO` edges changed.

        *resolved* replace the edges between the same two nodes; retired methodologies lose theirs.
        What a removed methodology had superseded is removed as well, and its errors count as
        changed.
        """


class ExposureStore(Protocol):
    """Records what was shown and whether it helped."""

    def add(self, exposures: Sequence[Exposure]) -> None:
        """Record contexts that were shown; those that are recorded already stay as they are.

        When a run is learned that was shown a context and met its error, whether the run cleared
        the error is reported, and for each item that it tried whether that did.
        """

    def report(
        self, context_id: str, helped: bool, item: int | None = None, source: str = ""
    ) -> bool:
        """Record that *source* reported whether a context, or its *item* (from 1), helped.

        False where it is unknown or was reported.
        """

    def record(self, advice: Sequence[str]) -> AdviceRecord:
        """What is known of these advices, or of items with these ids; contexts by id.

        Of each the newest 100 contexts (by time, then by id) in which its effect is known.
        """

    def decide(self, verdicts: Sequence[Verdict]) -> None:
        """Store decisions made by hand; each replaces an earlier one about the same advice."""

    def contexts(self, after: str, limit: int) -> Sequence[Exposure]:
        """Contexts that were shown, by id: the first ones that are greater than *after*."""


def every_exposure(store: "Store") -> Iterator[Exposure]:
    """All contexts that were shown or withheld, by id."""
    after = ""
    while page := store.exposures.contexts(after, _CONTEXTS_AT_ONCE):
        yield from page
        after = page[-1].context_id


class NoteStore(Protocol):
    """Stores notes with their vectors, and proposes those in a scope."""

    def put(self, notes: Sequence[Note]) -> None:
        """Store *notes*, each in place of the one with its id.

        One whose text differs from that one waits to be embedded again.
        """

    def change(
        self, ids: Sequence[str], function: Callable[[Note], Note], new: Sequence[Note] = ()
    ) -> Sequence[Note]:
        """Store *new* as `put` does, and each known note of *ids* as *function* returns it.

        In one transaction that excludes other changes; *function* may be called again. What
        is stored of *ids*, by id.
        """

    def get(self, ids: Sequence[str]) -> Mapping[str, Note]:
        """The known ones of *ids*, by id."""

    def for_text(self, words: Sequence[str], scope: NoteScope, limit: int) -> Sequence[Note]:
        """Live notes in *scope* that have any of *words*, which are stems.

        Those with the most of them first, of these the newest.
        """

    def nearest(self, vector: Vector, scope: NoteScope, limit: int) -> Mapping[str, float]:
        """Ids of live notes in *scope* with the cosine of their vector with *vector*.

        Highest first; those that are equal when rounded to four decimals by id. Notes without a
        vector in the space of *vector* are not found.
        """

    def newest(self, scope: NoteScope, limit: int) -> Sequence[Note]:
        """Live notes in *scope*, the newest first, of equal times the greatest id."""

    def linking(self, ids: Sequence[str]) -> Sequence[Note]:
        """All notes with a link to one of *ids*, by id."""

    def counts(self) -> Mapping[NoteKind, int]:
        """How many live notes there are of each kind that has some."""

    def page(self, after: str, limit: int) -> Sequence[Note]:
        """All notes, by id: the first ones that are greater than *after*."""

    def texts_to_embed(
        self, limit: int, space: str | None = None, after: str = ""
    ) -> Mapping[str, str]:
        """Note id -> its text, by id: of all live notes, or of those without a vector in *space*.

        Only of ids greater than *after*. A text for which the embedder has no vector counts as
        embedded.
        """

    def add(self, space: str, vectors: Mapping[str, Vector | None]) -> None:
        """Store vectors of *space* by the ids of notes, in place of those of another space.

        Notes that are gone are skipped.
        """

    def delete(self, ids: Sequence[str]) -> int:
        """Delete notes; how many were known."""

    def close(self) -> None:
        """Release what it holds beside the `Store`, whose `admin.close` releases all else."""


def every_note(store: NoteStore) -> Iterator[Note]:
    """All notes, by id."""
    after = ""
    while page := store.page(after, _NOTES_AT_ONCE):
        yield from page
        after = page[-1].id


class AdminStore(Protocol):
    """Snapshots, leases, health, schema, counts and provenance of the whole memory."""

    @property
    def tenant(self) -> str:
        """The part of the store that this memory is."""

    def snapshot(self) -> AbstractContextManager[None]:
        """In this block the thread reads one state of the memory, whatever is written meanwhile.

        Nothing can be written in it; nesting is harmless. A server that has no snapshots
        answers each question from its newest state.
        """

    def counts(self) -> MemoryCounts:
        """Nodes, relations, outcomes and repositories."""

    def explain(self, node_id: str) -> Explanation | None:
        """A node, or a context that was shown, with its edges; None for an unknown id."""

    def graph(self) -> "Graph":
        """The nodes and relations of the memory, without their texts; see `store.graph`.

        A read-only view, cheap to request again: each call brings it and the views of before up to
        date. Take a copy to change it, or where another thread may request it meanwhile.
        """

    def health(self) -> Sequence[HealthCheck]:
        """One check each for: reachable, schema version, integrity, writable, sizes.

        Never raises for an unhealthy store: that is a failed check with its remedy.
        """

    def migrate(self, *, dry_run: bool = False) -> Sequence[str]:
        """Apply pending migrations, creating the memory where there is none; their names, in order.

        Several processes may do so at once. With *dry_run* nothing is applied.
        """

    def back_up(self, path: Path) -> None:
        """Copy one state of all tenants to the new file *path*, whatever is written meanwhile.

        Raises `StoreError` where *path* exists or cannot be written, and for a server.
        """

    def erase_deleted(self) -> None:
        """Leave nothing in the files of what was deleted or replaced.

        Takes the time and the disk space of a copy. A server reuses its files as it sees fit.
        """

    def take_lease(
        self, holder: str, now: datetime, until: datetime | None, process: Process | None = None
    ) -> datetime | None:
        """Take or renew the lease, or release it (*until* None).

        When another *holder* has it, nothing changes, and the time at which it expires is returned.
        A holder whose *process* has ended on this machine has it no longer.
        """

    def unconsolidated(self, after: int | None = None) -> Unconsolidated:
        """What changed since the last consolidation, or since revision *after*.

        Error ids and names of repositories are ascending; runs without one count for no repository.
        """

    def mark_consolidated(self, revision: int, gate: FittedGate | None = None) -> None:
        """Record that all changes up to *revision* are consolidated, and the *gate* fitted then."""

    def gate(self) -> FittedGate | None:
        """The gate that was fitted last; None where none was."""

    def close(self) -> None:
        """Release files and connections; closing twice is harmless."""


class Store(Protocol):
    """A memory: one object for each need, all of one backend."""

    @property
    def runs(self) -> RunStore:
        """Runs with their fragments."""

    @property
    def recoveries(self) -> RecoveryStore:
        """Recoveries, and errors with what cleared them."""

    @property
    def vectors(self) -> VectorStore:
        """Vectors by space."""

    @property
    def methodologies(self) -> MethodologyStore:
        """Methodologies."""

    @property
    def exposures(self) -> ExposureStore:
        """What was shown, and whether it helped."""

    @property
    def notes(self) -> NoteStore:
        """Notes of people and agents."""

    @property
    def admin(self) -> AdminStore:
        """Snapshots, leases, health, schema, counts and provenance of the whole memory."""


class Summarizer(Protocol):
    """Words what clearances of one kind of error, or runs without an error, have in common."""

    def summarize(self, group: MethodologyGroup) -> Summary:
        """When *group* applies and what to do; never fails."""


class ModelSummarizer(Protocol):
    """A language model that rewords methodologies: slow, priced, and it may fail."""

    @property
    def name(self) -> str:
        """The model and the version of its prompt; stored with what it worded."""

    def reword(self, group: MethodologyGroup, *, interactive: bool = False) -> Wording:
        """*group* in the model's words, or why they cannot be used; *interactive*: fail soon.

        Raises `RemoteError` where the model does not answer, or the budget is spent.
        """

    def prompt(self, group: MethodologyGroup) -> str:
        """What is sent to the model about *group*."""

    def estimate(self, group: MethodologyGroup) -> Usage:
        """About what `reword` uses; nothing is sent."""


class Embedder(Protocol):
    """Turns texts into vectors of one space."""

    @property
    def space(self) -> str:
        """The name of the space, ``maker/model@dimensions``."""

    @property
    def similarity_threshold(self) -> float | None:
        """The cosine from which tasks of one repository count as similar; None while unknown."""

    @property
    def is_remote(self) -> bool:
        """Whether a server gives the vectors: runs are stored before it is asked."""

    def embed(self, texts: Sequence[str]) -> Embeddings:
        """A vector for each text, in their order.

        Raises `EmbeddingError` when texts cannot be embedded now.
        """


EmbedderSource: TypeAlias = Callable[[], Embedder | None]
"""The embedder of the space that is active now; None while there is none."""
