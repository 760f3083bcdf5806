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
        """Store new runs, and outcomes of known runs that had none; return a status for each."""

    def replace(
        self, bundles: Mapping[str, model.Bundle], added: Sequence[model.Bundle] = ()
    ) -> Sequence[str]:
        """Replace known runs, by id; return their ids.

        A known outcome and the time of learning stay. Runs that are *added* are stored first, in
        the same transaction. `learned` knows the run by its former id; a run with the id of the
        bundle is replaced, too.
        """

    def set_outcome(self, trajectory_ids: Iterable[str], outcome: model.Outcome) -> int:
        """Set the outcome of these runs by hand; return how many had another one."""

    def learned(self, trajectory_ids: Sequence[str]) -> Mapping[str, model.Learned]:
        """Return what is stored of known runs, by the requested id, which may be a former one."""

    def trajectories(self, trajectory_ids: Iterable[str]) -> Mapping[str, model.Trajectory]:
        """Return runs by id, without unknown ones."""

    def ids(
        self,
        repo: str | None = None,
        instance: str | None = None,
        after: str = "",
        limit: int = ALL,
    ) -> Sequence[str]:
        """Return ids of runs greater than *after*, ascending.

        Only runs of *repo*, in upper or lower case, and of *instance*, where these are given.
        """

    def courses(self, scope: model.Scope, limit: int) -> Sequence[model.RunCourse]:
        """Return how runs with steps went whose outcome is known, by id."""

    def names(self) -> Mapping[str, model.JoinedName]:
        """Return the names of repositories that were joined with another, in lower case."""

    def set_names(self, names: Mapping[str, model.JoinedName]) -> None:
        """Put *names* in the place of those there are; runs keep theirs until they are replaced."""

    def opened(self, digests: Sequence[str], limit: int) -> Sequence[str]:
        """Return ids of runs that are found by one of *digests*: see `trace.owners`."""

    def raw(self, trajectory_id: str) -> model.RawTrajectory | None:
        """Return the masked run as it was learned, with its present outcome; None if unknown."""

    def facts(self, trajectory_ids: Iterable[str]) -> Mapping[str, model.RunFacts]:
        """Return by run id the facts about project and machine; they are stored with the run."""

    def fragments(self, trajectory_ids: Iterable[str]) -> Mapping[str, Sequence[model.Fragment]]:
        """Return the fragments of runs in their order, by run id, without unknown runs."""

    def find_fragments(
        self,
        scope: model.Scope,
        limit: int,
        *,
        phase: model.Phase | None = None,
        file_name: str | None = None,
        loop_command: str | None = None,
    ) -> Sequence[model.FragmentCandidate]:
        """Return fragments that meet all conditions, newest run first.

        *file_name* is without folders.
        """

    def for_task(
        self,
        task_type: model.TaskType | None,
        scope: model.Scope,
        limit: int,
        agent: str | None = None,
    ) -> Sequence[model.Trajectory]:
        """Return runs by type of task and *agent*, solved ones first, then the newest."""

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
        """Return names and numbers of runs of repositories, most runs first.

        Only names with *containing* in them, after *skip* others.
        """

    def for_text(
        self, words: Sequence[str], scope: model.Scope, limit: int
    ) -> Sequence[model.Trajectory]:
        """Return runs whose task or summary has any of *words*, most relevant first."""

    def word_counts(self, words: Sequence[str]) -> model.WordCounts:
        """Return the number of runs, and of runs with each of *words* in task or summary."""

    def archived(self, trajectory_id: str) -> model.Bundle | None:
        """Return all that is stored of a run, for `add`; None if it is unknown.

        Errors are in the order of their ids, recoveries in that of steps and ids.
        """

    def forget(self, trajectory_ids: Iterable[str]) -> int:
        """Remove runs and all that only they support; return how many were known.

        A server does so in several transactions, each of whole runs: after an error, call again.
        """


RECOVERY_LEVELS = (
    model.SignatureLevel.TEMPLATE,
    model.SignatureLevel.TYPE,
    model.SignatureLevel.FAMILY,
)
"""Levels at which errors may agree for their recoveries to be found together, closest first."""


def current_name(runs: RunStore, repo: str) -> str:
    """Return the present name of *repo*, which may have been joined with another one."""
    joined = runs.names().get(repo.casefold()) if repo else None
    return joined.now if joined else repo


class RecoveryStore(Protocol):
    """Proposes recoveries, and counts errors and what cleared them."""

    def for_error(
        self, questions: Sequence[model.ErrorQuestion], limit: int
    ) -> Sequence[model.RecoveryCandidate]:
        """Return recoveries from the errors of *questions* at `RECOVERY_LEVELS`, *limit* for each.

        Each recovery comes once, at its first question: verified ones first, then the newest run,
        then in the order of `of_fragments`.
        """

    def for_text(
        self, words: Sequence[str], scope: model.Scope, limit: int
    ) -> Sequence[model.RecoveryCandidate]:
        """Return recoveries with any of *words* in error or description, most relevant first."""

    def of_fragments(self, fragment_ids: Iterable[str]) -> Sequence[model.RecoveryCandidate]:
        """Return recoveries of fragments, ordered by fragment id, error id and error step."""

    def histories(
        self, error_ids: Sequence[str], limit: int, repo: str | None = None
    ) -> Sequence[model.ErrorHistory]:
        """Return for each known error, by id, outcomes of the newest *limit* runs that met it."""

    def errors(
        self,
        scope: model.Scope,
        limit: int,
        phase: model.Phase | None = None,
        runs: Iterable[str] | None = None,
        only: Sequence[str] = (),
    ) -> Sequence[model.ErrorTally]:
        """Return errors in *scope* with the number of runs that met them, most runs first.

        Only those in fragments of *phase*, of *runs* and with the ids *only*, where given.
        """

    def error_steps(self) -> Mapping[str, Sequence[model.ErrorSteps]]:
        """Return errors that fragments met, by run id, ordered by fragment id and error id."""

    def similar_to(self, trajectory_id: str) -> Sequence[model.SimilarTo]:
        """Return the `SIMILAR_TO` edges of the fragments of a run, by fragment and error."""

    def clean_up(self, error_ids: Sequence[str], keep: int) -> int:
        """Delete failed attempts at each error beyond the newest *keep*; return how many nodes.

        Active methodologies that no fragment supports go as well; fragments with a recovery stay.
        """


class TextVectors(Protocol):
    """The vectors of texts by space: of runs in a `VectorStore`, of live notes in a `NoteStore`.

    Entities have none: they are found by their names.
    """

    def texts_to_embed(
        self, limit: int, space: str | None = None, after: str = ""
    ) -> Mapping[str, str]:
        """Return texts by ids greater than *after*, ascending: all, or those without a vector.

        Without one is a text that is not embedded in *space*.
        """

    def add(self, space: str, vectors: Mapping[str, model.Vector | None]) -> None:
        """Store vectors of *space* by the ids of texts; None for a text that has none.

        A note has one vector, the last; a run keeps its first of each space that was prepared, and
        `StoreError` is raised for another space.
        """


class VectorStore(TextVectors, Protocol):
    """Stores vectors by space; queries use one space while another is prepared."""

    def active_space(self) -> model.Space | None:
        """Return the space in which queries are answered; None while there is none."""

    def space_model(self, space: str) -> bytes | None:
        """Return the model that was stored with a space, by its name; None without one."""

    def prepare(self, space: model.Space, model: bytes | None) -> None:
        """Allow vectors of *space* to be stored, and store its *model*.

        A known space gets the new fields; it keeps its model where none is given.
        """

    def switch(self, space: str) -> None:
        """Make *space* the active one and drop all others; raises `StoreError` as `add` does."""

    def nearest(self, vector: model.Vector, scope: model.Scope, limit: int) -> Sequence[model.Near]:
        """Return runs with their cosines, of four decimals, highest first.

        Raises `SpaceMismatchError` if the space of *vector* is not active.
        """

    def nodes_to_embed(self, limit: int, space: str) -> Mapping[str, str]:
        """Return texts of fragments and methodologies without a vector of *space*, by id."""

    def add_nodes(self, space: str, vectors: Mapping[str, model.Vector | None]) -> None:
        """Store vectors of fragments and methodologies; each has one, the last, until it is put."""

    def nearest_nodes(
        self, vector: model.Vector, node_type: NodeType, limit: int
    ) -> Mapping[tuple[str, str], model.Vector]:
        """Return vectors by (run, id), highest cosine, of four decimals, first.

        The run is that of a fragment; for a methodology it is empty.
        """


class MethodologyStore(Protocol):
    """Stores methodologies; retired ones are tombstones, which `for_error` skips."""

    def ids(self, repo: str | None = None, after: str = "", limit: int = ALL) -> Sequence[str]:
        """Return ids greater than *after*, ascending; only of *repo* (in any case), where given."""

    def get(
        self, ids: Sequence[str] = (), *, errors: Sequence[str] = ()
    ) -> Sequence[model.Methodology]:
        """Return methodologies with these ids or of these errors, by id."""

    def of_types(self, error_ids: Sequence[str]) -> Sequence[Sequence[model.Methodology]]:
        """Return groups of methodologies for errors of the same type and family.

        Each group is ordered by id, the groups by their first id.
        """

    def for_error(
        self, signatures: Sequence[model.ErrorSignature], scope: model.Scope, limit: int
    ) -> Sequence[model.Methodology]:
        """Return methodologies for the first of *signatures* whose template has any.

        Those of the repository of *scope* come before general ones, then the highest support.
        None is derived from a run that *scope* hides. They are without their `sources`.
        """

    def put(
        self,
        methodologies: Sequence[model.Methodology],
        removed: Sequence[str] = (),
        resolved: Sequence[model.ResolvedBy] = (),
        similar: Sequence[model.SimilarTo] = (),
    ) -> int:
        """Write methodologies and edges; return how many `SIMILAR_TO` edges changed.

        Retired methodologies lose their *resolved* edges. With a removed one go those that it had
        superseded, and their errors count as changed.
        """


def id_pages(store: RunStore | MethodologyStore, size: int) -> Iterator[Sequence[str]]:
    """Yield all ids in *store*, ascending, in pages of at most *size*."""
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
        """Record whether a context, or its *item* (from 1), helped.

        Return False if there is no such context or item, or a report of it is recorded already.
        """

    def of_session(self, session: str) -> Sequence[model.Exposure]:
        """Return the contexts that were shown or withheld in a session, oldest first."""

    def forget_session(self, session: str, only_of: str | None = None) -> None:
        """Empty `said` of the contexts of a session, whose agent no longer knows them.

        Only of contexts that were shown to the source *only_of*, if it is given.
        """

    def forget_texts(self, repos: Collection[str], since: datetime) -> None:
        """Remove the texts of contexts shown *since* then in these repositories ("": not known)."""

    def record(self, advice: Sequence[str]) -> model.AdviceRecord:
        """Return the evidence about advice or items: the newest 100 reported contexts of each."""

    def decide(self, verdicts: Sequence[model.Verdict]) -> None:
        """Store decisions made by hand; each replaces an earlier one about the same advice."""

    def gate(self) -> model.FittedGate | None:
        """Return the gate that the last consolidation fitted; None where none was."""

    def newest(self, limit: int, skip: int = 0, name: str = "") -> Sequence[model.Exposure]:
        """Return contexts that were shown or withheld, newest first, after *skip* newer ones.

        Only contexts with the id *name*, or with advice or an item of this id, if it is given.
        """

    def tally(
        self, since: datetime | None = None, until: datetime | None = None
    ) -> model.ShownTally:
        """Count what was shown from *since* to before *until*, by outcome."""

    def all(self, on_damaged: OnDamaged | None = None) -> Iterator[model.Exposure]:
        """Yield all contexts that were shown or withheld, by id, with a few in memory at a time.

        *on_damaged* is called for each that cannot be read; without it the first error is raised.
        """


class NoteStore(TextVectors, Protocol):
    """Stores notes with their vectors, and proposes those in a scope."""

    def change(
        self,
        ids: Sequence[str] = (),
        function: NoteChange = replace,
        new: Sequence[model.Note] = (),
    ) -> Sequence[model.Note]:
        """Store *new*, replace the known notes of *ids* by the result of *function*; return these.

        They are ordered by id. No other change comes between reading and writing; *function* may be
        called again. A note with another text waits to be embedded again.
        """

    def get(self, ids: Sequence[str]) -> Mapping[str, model.Note]:
        """Return notes by id, without unknown ones."""

    def for_text(
        self, words: Sequence[str], scope: model.NoteScope, limit: int
    ) -> Sequence[model.Note]:
        """Return notes with any of *words* (stems): most words first, then the newest."""

    def nearest(
        self, vectors: Sequence[model.Vector], scope: model.NoteScope, limit: int
    ) -> Sequence[Mapping[str, float]]:
        """Return for each of *vectors*, all of one space, cosines by the id of notes.

        Cosines have four decimals; the highest come first.
        """

    def newest(self, scope: model.NoteScope, limit: int) -> Sequence[model.Note]:
        """Return notes, the newest first, of equal times the greatest id."""

    def linking(self, ids: Sequence[str]) -> Sequence[model.Note]:
        """Return all notes with a link to one of *ids*, ordered by id."""

    def counts(self) -> Mapping[model.NoteKind, int]:
        """Return the number of live notes by kind, without kinds that have none."""

    def all(self, on_damaged: OnDamaged | None = None) -> Iterator[model.Note]:
        """Yield all notes, by id, with a few in memory at a time.

        *on_damaged* is called for each that cannot be read; without it the first error is raised.
        """

    def delete(self, ids: Sequence[str]) -> int:
        """Delete notes; return how many were known."""

    def close(self) -> None:
        """Release what it holds beside the `Store`, whose `close` calls this."""


class PassageStore(TextVectors, Protocol):
    """Stores what was said in runs; a passage goes with its run, and is written with it."""

    def get(self, ids: Sequence[str]) -> Mapping[str, model.Passage]:
        """Return passages by id, without unknown ones."""

    def word_counts(self, words: Sequence[str]) -> model.WordCounts:
        """Return the number of passages, and of passages with each of *words* (stems)."""

    def for_text(
        self, weights: Mapping[str, int], scope: model.PassageScope, limit: int
    ) -> Sequence[str]:
        """Return ids of passages with any of these stems.

        The highest sum of *weights* of stems comes first, then the newest.
        """

    def newest(self, scope: model.PassageScope, limit: int) -> Sequence[model.Passage]:
        """Return passages, the newest first, of equal times by id."""

    def cosines(self, vector: model.Vector, ids: Sequence[str]) -> Mapping[str, float]:
        """Return cosines, of four decimals, by id; without passages that have no such vector."""

    def nearest(
        self, vector: model.Vector, scope: model.PassageScope, limit: int
    ) -> Mapping[str, float]:
        """Return cosines, of four decimals, by the id of passages, highest first."""

    def counts(self, space: str | None = None) -> model.PassageCounts:
        """Return the number of passages, and of passages without a vector of *space*."""

    def keep(self, since: datetime | None, characters: int | None) -> int:
        """Delete passages said before *since*, and the oldest beyond so many *characters* in all.

        None is no limit. Return how many were deleted.
        """


class Indexed(NamedTuple):
    """The vector of a note, and the *digest* of the text that it was made of; None removes it."""

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
        """Store and remove vectors of *space*, in one transaction if the index has transactions."""

    def search(
        self, vector: model.Vector, repos: Sequence[str] | None, limit: int
    ) -> Sequence[Hit]:
        """Return notes with vectors of the same space in *repos* (None: all), nearest first."""

    def delete(self, ids: Sequence[str]) -> None:
        """Delete the vectors of these notes."""

    def count(self) -> int:
        """Return the number of vectors."""

    def close(self) -> None:
        """Release the connection."""


class AdminStore(Protocol):
    """Leases, health, schema, counts and provenance of the whole memory."""

    def counts(self) -> model.MemoryCounts:
        """Return the numbers of nodes, relations, outcomes and repositories."""

    def explain(self, node_id: str) -> model.Explanation | None:
        """Return a node, or a context that was shown, with its edges; None for an unknown id.

        An error has its edges to fragments of the newest 100 runs that met it.
        """

    def graph(self) -> "Graph":
        """Return a read-only graph of nodes and relations, as of this call; see `store.graph`."""

    def health(self, *, quick: bool = False) -> Sequence[model.HealthCheck]:
        """Check access, schema, integrity, writing and sizes; a failed check raises nothing.

        *quick* leaves out integrity, which reads everything, and writing.
        """

    def back_up(self, path: Path) -> None:
        """Copy one state of all tenants to the new file *path*; `StoreError` for a server."""

    def erase_deleted(self) -> None:
        """Rewrite the file without traces of what was deleted; nothing for a server."""

    def take_lease(
        self, holder: str, now: datetime, until: datetime | None, process: Process | None = None
    ) -> datetime | None:
        """Take or renew the lease, or release it (*until* is None).

        Return None, or the time until which another holder has it. A holder whose *process* has
        ended on this machine loses it.
        """

    def unconsolidated(self, after: int | None = None) -> model.Unconsolidated:
        """Return changes since the last consolidation, or since the revision *after*, ascending."""

    def mark_consolidated(self, revision: int, gate: model.FittedGate | None = None) -> None:
        """Record that all changes up to *revision* are consolidated, and the *gate* fitted then."""


class Store(Protocol):
    """The memory of one *tenant*: an object for each kind of content, all of one back end.

    A call returns `AdminStore.graph`. Within a *snapshot* the thread reads one state of a file, or
    the newest of a server.
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
        """True if a server computes the vectors; runs are stored before it is called."""

    def embed(self, texts: Sequence[str]) -> model.Embeddings:
        """Return a vector for each text, in their order; raises `EmbeddingError`."""


EmbedderSource: TypeAlias = Callable[[], Embedder | None]
"""Returns the embedder of the active space; None while there is none."""
