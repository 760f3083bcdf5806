"""Protocols of stores and embedders.

All stores give the same answers: the same values in the same order. Where a docstring names an
order, ties are broken by id, ascending. *limit* bounds the number of items; a filter that is None
admits all; unknown ids count for nothing. What a store proposes is in *scope* and more than will be
shown; it is scored above this layer. A write is one transaction unless stated otherwise. Each
raises `StoreUnavailableError` when the store cannot be reached and `StoreError` when it refuses.
"""

import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, TypeAlias

from contextgraph import model
from contextgraph.errors import StoreError
from contextgraph.model.values import replace
from contextgraph.system.processes import Process

if TYPE_CHECKING:
    from networkx import MultiDiGraph

    Graph: TypeAlias = MultiDiGraph[str]

# As a limit: all items.
ALL = sys.maxsize
NoteChange: TypeAlias = Callable[[model.Note], model.Note]
NodeType: TypeAlias = Literal["Fragment", "Methodology"]
OnDamaged: TypeAlias = Callable[[str, StoreError], None]
"""Called with the id of what cannot be read, and why."""


class RunStore(Protocol):
    """Stores runs with their fragments, and proposes past runs.

    Nothing depends on the order of learning: an error that several runs met has the keywords and
    the context of the run with the least id. `text.word_weights` says how relevant words are.
    """

    def add(self, bundles: Sequence[model.Bundle]) -> Sequence[model.LearnStatus]:
        """Store new runs, and what is now known of the outcomes of others; the status of each."""

    def replace(
        self, bundles: Mapping[str, model.Bundle], added: Sequence[model.Bundle] = ()
    ) -> Sequence[str]:
        """Replace known runs, by id; their ids. A known outcome and the time of learning stay.

        Runs that are *added* are stored first, in the same transaction.
        `learned` knows the run by its former id; a run with the id of the bundle is replaced, too.
        """

    def set_outcome(self, trajectory_ids: Iterable[str], outcome: model.Outcome) -> int:
        """Set the outcome of these runs by hand, whatever it was; how many this changed."""

    def learned(self, trajectory_ids: Sequence[str]) -> Mapping[str, model.Learned]:
        """Requested id, which may be a former one -> what is stored of the known run."""

    def trajectories(self, trajectory_ids: Iterable[str]) -> Mapping[str, model.Trajectory]:
        """The known ones of these runs, by id."""

    def ids(
        self,
        repo: str | None = None,
        instance: str | None = None,
        after: str = "",
        limit: int = ALL,
    ) -> Sequence[str]:
        """The ids of runs of *repo* (in any case) and of *instance*, those greater than *after*."""

    def courses(self, scope: model.Scope, limit: int) -> Sequence[model.RunCourse]:
        """Return how runs with steps went whose outcome is known, by id."""

    def names(self) -> Mapping[str, model.JoinedName]:
        """Return the names of repositories that were joined with another, in lower case."""

    def set_names(self, names: Mapping[str, model.JoinedName]) -> None:
        """Put *names* in the place of those there are; runs keep theirs until they are replaced."""

    def opened(self, digests: Sequence[str], limit: int) -> Sequence[str]:
        """Return ids of runs that are found by one of *digests*: see `trace.owners`."""

    def raw(self, trajectory_id: str) -> model.RawTrajectory | None:
        """The masked run as it was learned, with the outcome known by now."""

    def facts(self, trajectory_ids: Iterable[str]) -> Mapping[str, model.RunFacts]:
        """What the known ones of these runs show of their project and machine, by id.

        One row for each run, with one encoded value, written and removed with the run.
        """

    def fragments(self, trajectory_ids: Iterable[str]) -> Mapping[str, Sequence[model.Fragment]]:
        """Run id -> its fragments, in order; none for unknown ids."""

    def find_fragments(
        self,
        scope: model.Scope,
        limit: int,
        *,
        phase: model.Phase | None = None,
        file_name: str | None = None,
        loop_command: str | None = None,
    ) -> Sequence[model.FragmentCandidate]:
        """Fragments with all of this, newest run first; *file_name* is without folders."""

    def for_task(
        self,
        task_type: model.TaskType | None,
        scope: model.Scope,
        limit: int,
        agent: str | None = None,
    ) -> Sequence[model.Trajectory]:
        """Runs of this type of task and *agent* (None: any), solved ones first, then the newest."""

    def listed(
        self, wanted: model.RunFilter, limit: int, skip: int = 0
    ) -> Sequence[model.Trajectory]:
        """Return the runs that *wanted* admits, in its order, from the one after *skip* others."""

    def sessions(
        self, wanted: model.SessionFilter, limit: int, skip: int = 0
    ) -> Sequence[model.Session]:
        """Return the sessions that *wanted* admits, in its order, from the one after *skip* others.

        Sub-agents are in the session that has the same instance, and the same id at the client.
        """

    def session(self, name: str) -> model.Session | None:
        """Return the session whose run, or that of a sub-agent, is *name*, or its id at the client.

        The newest of several; None where there is none.
        """

    def facets(self, wanted: model.SessionFilter, limit: int = 20) -> model.Facets:
        """Count the sessions that *wanted* admits, by each value that at least one has.

        At most *limit* values, most first.
        """

    def repositories(
        self, limit: int, skip: int = 0, containing: str = ""
    ) -> Sequence[tuple[str, int]]:
        """Repositories with *containing* in their name, and how many runs each has, most first."""

    def for_text(
        self, words: Sequence[str], scope: model.Scope, limit: int
    ) -> Sequence[model.Trajectory]:
        """Runs whose task or summary has any of *words*, most relevant first."""

    def word_counts(self, words: Sequence[str]) -> model.WordCounts:
        """How many runs there are, and in how many (task or summary) each of *words* occurs."""

    def archived(self, trajectory_id: str) -> model.Bundle | None:
        """All that is stored of a run, for `add`: errors by id, recoveries by step and ids."""

    def forget(self, trajectory_ids: Iterable[str]) -> int:
        """Remove these runs and all that only they support; how many were known.

        A server does so in several transactions, each of whole runs: after an error call it again.
        """


RECOVERY_LEVELS = (
    model.SignatureLevel.TEMPLATE,
    model.SignatureLevel.TYPE,
    model.SignatureLevel.FAMILY,
)
"""How exactly errors may agree whose recoveries are found together."""


def current_name(runs: RunStore, repo: str) -> str:
    """Return the name by which *repo* goes now, as it may have been joined with another one."""
    joined = runs.names().get(repo.casefold()) if repo else None
    return joined.now if joined else repo


class RecoveryStore(Protocol):
    """Proposes recoveries, and counts errors and what cleared them."""

    def for_error(
        self, questions: Sequence[model.ErrorQuestion], limit: int
    ) -> Sequence[model.RecoveryCandidate]:
        """Recoveries from the errors of *questions* (at `RECOVERY_LEVELS`), *limit* of each.

        Each once, by question; verified ones first, then the newest run, then as by `of_fragments`.
        """

    def for_text(
        self, words: Sequence[str], scope: model.Scope, limit: int
    ) -> Sequence[model.RecoveryCandidate]:
        """Recoveries whose error message or description has any of *words*, most relevant first."""

    def of_fragments(self, fragment_ids: Iterable[str]) -> Sequence[model.RecoveryCandidate]:
        """The recoveries of these fragments, by fragment id, error id and error step."""

    def histories(
        self, error_ids: Sequence[str], limit: int, repo: str | None = None
    ) -> Sequence[model.ErrorHistory]:
        """Return outcomes of the newest runs (of *repo*) that met each error, by its id."""

    def errors(
        self,
        scope: model.Scope,
        limit: int,
        phase: model.Phase | None = None,
        runs: Iterable[str] | None = None,
        only: Sequence[str] = (),
    ) -> Sequence[model.ErrorTally]:
        """Errors met in *scope*, in fragments of *phase*, by *runs* (ids); most runs first.

        Of those with the ids *only*, if any are given.
        """

    def error_steps(self) -> Mapping[str, Sequence[model.ErrorSteps]]:
        """Run id -> the errors that its fragments met, by fragment id and error id."""

    def similar_to(self, trajectory_id: str) -> Sequence[model.SimilarTo]:
        """The `SIMILAR_TO` edges of the fragments of a run, by fragment and error."""

    def clean_up(self, error_ids: Sequence[str], keep: int) -> int:
        """Delete failed attempts at each error beyond the newest *keep*; how many nodes went.

        Active methodologies that no fragment supports go as well; fragments with a recovery stay.
        """


class TextVectors(Protocol):
    """The vectors of texts by space: of runs in a `VectorStore`, of live notes in a `NoteStore`.

    Entities have none: they are found by their names.
    """

    def texts_to_embed(
        self, limit: int, space: str | None = None, after: str = ""
    ) -> Mapping[str, str]:
        """Id greater than *after* -> text: of all, or of those not embedded in *space* yet."""

    def add(self, space: str, vectors: Mapping[str, model.Vector | None]) -> None:
        """Store vectors of *space* by the ids of texts; None for a text that has none.

        A note has one vector, the last; a run keeps its first of each space that was prepared, and
        `StoreError` is raised for another space.
        """


class VectorStore(TextVectors, Protocol):
    """Stores vectors by space; a query sees one space, whatever is being prepared beside it."""

    def active_space(self) -> model.Space | None:
        """The space in which queries are answered; None while there is none."""

    def space_model(self, space: str) -> bytes | None:
        """The model that was stored with the space of this name."""

    def prepare(self, space: model.Space, model: bytes | None) -> None:
        """Let vectors of *space* be stored, with its *model*.

        Of a known one its fields change, and its model where one is given.
        """

    def switch(self, space: str) -> None:
        """Make *space* the active one and drop all others; raises `StoreError` as `add` does."""

    def nearest(self, vector: model.Vector, scope: model.Scope, limit: int) -> Sequence[model.Near]:
        """Runs by cosine, to four decimals; `SpaceMismatchError` if that space is not active."""

    def nodes_to_embed(self, limit: int, space: str) -> Mapping[str, str]:
        """Id -> text of fragments and methodologies not embedded in *space* yet."""

    def add_nodes(self, space: str, vectors: Mapping[str, model.Vector | None]) -> None:
        """Store vectors of fragments and methodologies; each has one, the last, until it is put."""

    def nearest_nodes(
        self, vector: model.Vector, node_type: NodeType, limit: int
    ) -> Mapping[tuple[str, str], model.Vector]:
        """(Id of the run of a fragment, else empty; id) -> vector, by cosine to four decimals."""


class MethodologyStore(Protocol):
    """Stores methodologies; retired ones are tombstones, which `for_error` skips."""

    def ids(self, repo: str | None = None, after: str = "", limit: int = ALL) -> Sequence[str]:
        """The ids of those of *repo* (in any case), those greater than *after*."""

    def get(
        self, ids: Sequence[str] = (), *, errors: Sequence[str] = ()
    ) -> Sequence[model.Methodology]:
        """Return methodologies with these ids or of these errors, by id."""

    def of_types(self, error_ids: Sequence[str]) -> Sequence[Sequence[model.Methodology]]:
        """Return those of each type (and family) of these errors: by id, types by their first."""

    def for_error(
        self, signatures: Sequence[model.ErrorSignature], scope: model.Scope, limit: int
    ) -> Sequence[model.Methodology]:
        """Those that resolve the error of the first of these templates that has any.

        Of the repository of *scope* first, then general ones, by support, highest first; none that
        was derived from a run that *scope* hides. Without their `sources`.
        """

    def put(
        self,
        methodologies: Sequence[model.Methodology],
        removed: Sequence[str] = (),
        resolved: Sequence[model.ResolvedBy] = (),
        similar: Sequence[model.SimilarTo] = (),
    ) -> int:
        """Write all of it; how many `SIMILAR_TO` edges changed. Retired ones lose their *resolved*.

        What a removed one had superseded is removed as well, and its errors count as changed.
        """


def id_pages(store: RunStore | MethodologyStore, size: int) -> Iterator[Sequence[str]]:
    """All ids in *store* in ascending order, at most *size* in memory at a time."""
    after = ""
    while ids := store.ids(after=after, limit=size):
        yield ids
        after = ids[-1]


class ExposureStore(Protocol):
    """Records what was shown and whether it helped.

    When a run is learned that was shown a context and met its error, whether the run cleared the
    error is reported, and for each item that it tried whether that did.
    """

    def add(self, exposures: Sequence[model.Exposure]) -> None:
        """Record contexts that were shown; recorded ones stay as they are."""

    def report(
        self, context_id: str, helped: bool, item: int | None = None, source: str = ""
    ) -> bool:
        """Record whether a context, or its *item* (from 1), helped; False: unknown, or known."""

    def of_session(self, session: str) -> Sequence[model.Exposure]:
        """Return the contexts that were shown or withheld in a session, oldest first."""

    def forget_session(self, session: str, only_of: str | None = None) -> None:
        """Empty `said` of the contexts of a session, whose agent no longer knows them.

        Of those that were shown to the source *only_of*, if given.
        """

    def forget_texts(self, repos: Collection[str], since: datetime) -> None:
        """Remove the texts of contexts shown *since* then in these repositories ("": not known)."""

    def record(self, advice: Sequence[str]) -> model.AdviceRecord:
        """Return evidence about advice or items: of each its newest 100 reported contexts."""

    def decide(self, verdicts: Sequence[model.Verdict]) -> None:
        """Store decisions made by hand; each replaces an earlier one about the same advice."""

    def gate(self) -> model.FittedGate | None:
        """Return the gate that the last consolidation fitted; None where none was."""

    def newest(self, limit: int, skip: int = 0, name: str = "") -> Sequence[model.Exposure]:
        """Return contexts that were shown or withheld, newest first, after *skip* newer ones.

        With a *name* those that have this advice or item, or the one with this id.
        """

    def tally(
        self, since: datetime | None = None, until: datetime | None = None
    ) -> model.ShownTally:
        """Count what was shown from *since* to before *until*, by outcome."""

    def all(self, on_damaged: OnDamaged | None = None) -> Iterator[model.Exposure]:
        """All contexts that were shown or withheld, by id, a few of them in memory at a time.

        Those that cannot be read are given to *on_damaged*; without it the first is raised.
        """


class NoteStore(TextVectors, Protocol):
    """Stores notes with their vectors, and proposes those in a scope."""

    def change(
        self,
        ids: Sequence[str] = (),
        function: NoteChange = replace,
        new: Sequence[model.Note] = (),
    ) -> Sequence[model.Note]:
        """Store *new*, and each known note of *ids* as *function* returns it; the latter, by id.

        No other change comes between reading and writing; *function* may be called again. A note
        whose text has changed waits to be embedded again.
        """

    def get(self, ids: Sequence[str]) -> Mapping[str, model.Note]:
        """The known ones of *ids*, by id."""

    def for_text(
        self, words: Sequence[str], scope: model.NoteScope, limit: int
    ) -> Sequence[model.Note]:
        """Live notes with any of *words* (stems): with most of them first, then the newest."""

    def nearest(
        self, vectors: Sequence[model.Vector], scope: model.NoteScope, limit: int
    ) -> Sequence[Mapping[str, float]]:
        """For each of *vectors*, of one space, live notes -> cosine, to 4 decimals, best first."""

    def newest(self, scope: model.NoteScope, limit: int) -> Sequence[model.Note]:
        """Live notes, the newest first, of equal times the greatest id."""

    def linking(self, ids: Sequence[str]) -> Sequence[model.Note]:
        """All notes with a link to one of *ids*, by id."""

    def counts(self) -> Mapping[model.NoteKind, int]:
        """How many live notes there are of each kind that has some."""

    def all(self, on_damaged: OnDamaged | None = None) -> Iterator[model.Note]:
        """All notes, by id, a few of them in memory at a time.

        Those that cannot be read are given to *on_damaged*; without it the first is raised.
        """

    def delete(self, ids: Sequence[str]) -> int:
        """Delete notes; how many were known."""

    def close(self) -> None:
        """Release what it holds beside the `Store`, whose `close` calls this."""


class PassageStore(TextVectors, Protocol):
    """Stores what was said in runs; a passage goes with its run, and is written with it."""

    def get(self, ids: Sequence[str]) -> Mapping[str, model.Passage]:
        """Return the known ones of *ids*, by id."""

    def word_counts(self, words: Sequence[str]) -> model.WordCounts:
        """Return in how many passages each of *words* (stems) occurs."""

    def for_text(
        self, weights: Mapping[str, int], scope: model.PassageScope, limit: int
    ) -> Sequence[str]:
        """Return ids by the sum of the weights of their stems, then the newest."""

    def newest(self, scope: model.PassageScope, limit: int) -> Sequence[model.Passage]:
        """Return the passages that were said last, the newest first, of equal times by id."""

    def cosines(self, vector: model.Vector, ids: Sequence[str]) -> Mapping[str, float]:
        """Return id -> cosine, to 4 decimals, of those of *ids* with a vector of its space."""

    def nearest(
        self, vector: model.Vector, scope: model.PassageScope, limit: int
    ) -> Mapping[str, float]:
        """Return id -> cosine, to 4 decimals, best first."""

    def counts(self, space: str | None = None) -> model.PassageCounts:
        """Return how many passages there are, and how many have no vector of *space* yet."""

    def keep(self, since: datetime | None, characters: int | None) -> int:
        """Keep what was said since then, the newest of so many characters (None: no limit).

        Return how many others were deleted.
        """


class Indexed(NamedTuple):
    """The vector of the note *id* of *repo*, whose text had this *digest*; None to remove it."""

    id: str
    repo: str
    digest: str
    vector: model.Vector | None


class Hit(NamedTuple):
    """A note that a search found."""

    id: str
    digest: str
    cosine: float


class VectorIndex(Protocol):
    """Finds the vectors of one tenant that are nearest to another; each id has one, the last.

    Raises `StoreUnavailableError` where it cannot be reached, `StoreError` where it refuses.
    """

    name: str

    def upsert(self, space: str, vectors: Sequence[Indexed]) -> None:
        """Store and remove vectors of *space*, in one transaction where there are such."""

    def search(
        self, vector: model.Vector, repos: Sequence[str] | None, limit: int
    ) -> Sequence[Hit]:
        """Vectors of the same space in *repos* (None: all), the nearest first."""

    def delete(self, ids: Sequence[str]) -> None:
        """Delete the vectors of these notes."""

    def count(self) -> int:
        """The number of vectors."""

    def close(self) -> None:
        """Release the connection."""


class AdminStore(Protocol):
    """Leases, health, schema, counts and provenance of the whole memory."""

    def counts(self) -> model.MemoryCounts:
        """Nodes, relations, outcomes and repositories."""

    def explain(self, node_id: str) -> model.Explanation | None:
        """A node, or a context that was shown, with its edges; None for an unknown id.

        Of an error, the edges to fragments of the newest 100 runs that met it.
        """

    def graph(self) -> "Graph":
        """A read-only view of nodes, notes among them, and relations; see `store.graph`.

        Each call updates it.
        """

    def health(self, *, quick: bool = False) -> Sequence[model.HealthCheck]:
        """Reachable, schema version, integrity, writable, sizes; one that fails raises nothing.

        A *quick* answer is without integrity, which reads everything, and writable, which writes.
        """

    def back_up(self, path: Path) -> None:
        """Copy one state of all tenants to the new file *path*; `StoreError` for a server."""

    def erase_deleted(self) -> None:
        """Rewrite the file without traces of what was deleted; nothing for a server."""

    def take_lease(
        self, holder: str, now: datetime, until: datetime | None, process: Process | None = None
    ) -> datetime | None:
        """Take, renew or (*until* None) release the lease; until when another holder has it.

        A holder whose *process* has ended on this machine has it no longer.
        """

    def unconsolidated(self, after: int | None = None) -> model.Unconsolidated:
        """Return changes since the last consolidation, or since revision *after*; ascending."""

    def mark_consolidated(self, revision: int, gate: model.FittedGate | None = None) -> None:
        """Record that all changes up to *revision* are consolidated, and the *gate* fitted then."""


class Store(Protocol):
    """A memory: one object for each need, all of one backend, and the *tenant* that it is of.

    Called, it returns `AdminStore.graph`. In the block of a *snapshot* the thread reads one state
    of a file, or the newest of a server.
    """

    tenant: str
    snapshot: Callable[[], AbstractContextManager[object]]
    runs: RunStore
    recoveries: RecoveryStore
    vectors: VectorStore
    methodologies: MethodologyStore
    exposures: ExposureStore
    notes: NoteStore
    passages: PassageStore
    admin: AdminStore

    def __call__(self) -> "Graph":
        return self.admin.graph()

    def close(self) -> None:
        """Release files and connections; closing twice is harmless."""


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
        """Whether a server computes the vectors; runs are stored before it is called."""

    def embed(self, texts: Sequence[str]) -> model.Embeddings:
        """A vector for each text, in their order; raises `EmbeddingError` if that fails."""


EmbedderSource: TypeAlias = Callable[[], Embedder | None]
"""The embedder of the space that is active now; None while there is none."""
