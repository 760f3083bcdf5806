"""A memory as a file of JSON lines: exported from any store, imported into any store.

Both take constant memory. The file is compressed for ``.zst``. Its first line is a header, the last
one counts the lines before it, so that a truncated file is detected. An archive is what somebody
says of runs: all of it counts only where its reader vouches for it, else `contributions` does.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain, groupby, islice
from pathlib import Path
from typing import IO, Any, TypeAlias, TypeVar, cast

from msgspec import Struct

from contextgraph.errors import DamagedRunError, ReadError, StoreError
from contextgraph.model import (
    ARCHIVE,
    ARCHIVE_FORMAT,
    Bundle,
    ChangeStatus,
    Envelope,
    Exposure,
    Json,
    Learned,
    LearnStatus,
    Methodology,
    Note,
    NoteKind,
    OutcomeSource,
    RawTrajectory,
    ResolvedBy,
    SimilarTo,
    Space,
    Verdict,
)
from contextgraph.model.codec import decoded, encoded, json_bytes
from contextgraph.model.values import batched, replace
from contextgraph.store.memory_store import Store
from contextgraph.store.protocols import OnDamaged
from contextgraph.system.intake import MAX_DEPTH, lines, loads
from contextgraph.system.processes import replacing
from contextgraph.trace import facts_of_run, trace

VERSION = 3
# Version 2 has no facts of runs: they are read from the logs in it.
_WITHOUT_FACTS = 2
# A run is nested a few levels deep in its line.
_DEPTH = MAX_DEPTH + 20


class Header(Struct, frozen=True):
    """The first line: the tenant, and how much it held when the export began."""

    format: str
    version: int
    tenant: str
    vectors: bool
    runs: int
    methodologies: int


class SpaceLine(Struct, frozen=True, omit_defaults=True):
    """The active space with its model."""

    space: Space
    model: bytes | None = None


class RunLine(Struct, frozen=True, omit_defaults=True):
    """A run; *steps* is `Bundle.met`."""

    bundle: Bundle
    steps: Mapping[str, int]


class MethodologyLine(Struct, frozen=True, omit_defaults=True):
    """A methodology with the edges to it."""

    methodology: Methodology
    resolved: tuple[ResolvedBy, ...]


class SimilarLine(Struct, frozen=True, omit_defaults=True):
    """The `SIMILAR_TO` edges of the fragments of one run."""

    similar: tuple[SimilarTo, ...]


class ConsolidatedLine(Struct, frozen=True, omit_defaults=True):
    """All of the archive was consolidated."""


class EndLine(Struct, frozen=True, omit_defaults=True):
    """The last line: the number of lines before it."""

    lines: int


Line: TypeAlias = (
    SpaceLine
    | RunLine
    | MethodologyLine
    | SimilarLine
    | Exposure
    | Verdict
    | Note
    | Envelope
    | ConsolidatedLine
    | EndLine
)
Kind = TypeVar("Kind")
_KINDS: dict[str, type[Line]] = {
    "space": SpaceLine,
    "run": RunLine,
    "methodology": MethodologyLine,
    "similar": SimilarLine,
    "exposure": Exposure,
    "verdict": Verdict,
    # A note has its own kind, which is also that of its line.
    **dict.fromkeys(NoteKind, Note),
    "keyed": Envelope,
    "consolidated": ConsolidatedLine,
    "end": EndLine,
}
_NAMES = {**{kind: name for name, kind in _KINDS.items()}, Note: NoteKind.NOTE}


@contextmanager
def writing(path: Path) -> Iterator[IO[bytes]]:
    """Open a file that replaces *path* when it is complete; compressed for ``.zst``.

    Raises `StoreError` where it cannot be written.
    """
    import zstandard

    opened = zstandard.open if path.suffix == ".zst" else open
    try:
        with replacing(path) as part, opened(part, "wb") as file:
            yield file
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror or error}") from error


def write_line(file: IO[bytes], value: Header | Line) -> None:
    """Write *value*; raises `StoreError` for a text that is not valid Unicode."""
    record = encoded(value)
    assert isinstance(record, dict)  # all lines are Structs
    kind = {} if isinstance(value, Header) else {"kind": _NAMES[type(value)]}
    file.write(json_bytes({**kind, **record}, "a line of the archive") + b"\n")


def read_header(path: Path) -> Header:
    """Return the first line of *path*; raises `ReadError` unless it is of a known version."""
    record = _parsed(path, 1, next(lines(path), b""))
    if record.get("format") != ARCHIVE_FORMAT:
        raise ReadError(str(path), "line 1", f"is not the first line of a {ARCHIVE_FORMAT}")
    if record.get("version") not in (VERSION, _WITHOUT_FACTS):
        raise ReadError(
            str(path),
            "line 1",
            f"is of format {record.get('version')}, this version reads {VERSION}; "
            "import it with the version that wrote it",
        )
    return _decoded(path, 1, Header, record)


def read_lines(path: Path) -> Iterator[Line]:
    """Yield all lines but the first and the last.

    Raises `ReadError` with the line that is damaged, or where the file was truncated.
    """
    number, ended = 1, False
    version = read_header(path).version
    for number, text in enumerate(islice(lines(path), 1, None), start=2):
        record = _parsed(path, number, text)
        kind = _KINDS.get(str(record.get("kind", "")))
        if kind is None or ended:
            raise ReadError(str(path), f"line {number}", "is of an unknown kind")
        if kind is RunLine and version == _WITHOUT_FACTS:
            line: Line = _with_facts(path, number, record)
        else:
            line = _decoded(path, number, kind, record)
        if not isinstance(line, EndLine):
            yield line
        elif line.lines != number - 1:
            reason = f"{number - 1} lines came before the last one, not {line.lines}"
            raise ReadError(str(path), f"line {number}", reason)
        else:
            ended = True
    if not ended:
        raise ReadError(str(path), f"line {number}", "is the last one: the file was cut off")


def _with_facts(path: Path, number: int, record: dict[str, Json]) -> RunLine:
    """Return a run of version 2 with the facts that its log shows."""
    if isinstance(bundle := record.get("bundle"), dict):
        bundle["facts"] = {}
    line = _decoded(path, number, RunLine, record)
    facts = facts_of_run(trace(line.bundle.raw))
    return replace(line, bundle=replace(line.bundle, facts=facts))


def _parsed(path: Path, number: int, text: bytes) -> dict[str, Json]:
    try:
        record = loads(text, _DEPTH)
    except ValueError as error:
        raise ReadError(str(path), f"line {number}", f"is not JSON: {error}") from error
    if not isinstance(record, dict):
        raise ReadError(str(path), f"line {number}", "is not an object")
    return record


def _decoded(path: Path, number: int, kind: type[Kind], record: dict[str, Json]) -> Kind:
    try:
        return decoded(kind, record)
    except ReadError as error:
        raise ReadError(str(path), f"line {number}", error.reason) from error


Item = TypeVar("Item")

_IMPORT_BATCH = 32

Progress: TypeAlias = Callable[[int, int], None]
ReadAgain: TypeAlias = Callable[[RawTrajectory], Bundle]
"""Makes of a masked run what it teaches."""


class Exported(Struct, frozen=True):
    """Numbers of what was written; *keyed* is that of entries of keyed files."""

    runs: int
    methodologies: int
    exposures: int
    notes: int = 0
    keyed: int = 0


class Imported(Struct):
    """Numbers of what was read.

    *vectors_of* is a space whose vectors the memory could not take over, nor make by its own,
    *left_out* the number of lines that only an owner may import, *forgotten* that of runs which
    are not learned again, *keyed* that of entries that were set, and *keyed_left_out* that of those
    for which the memory has no folder.
    """

    created: int = 0
    updated: int = 0
    unchanged: int = 0
    methodologies: int = 0
    exposures: int = 0
    notes: int = 0
    left_out: int = 0
    forgotten: int = 0
    keyed: int = 0
    keyed_left_out: int = 0
    vectors_of: str = ""


def _no_progress(done: int, total: int) -> None:
    pass


def export_memory(
    store: Store,
    path: Path,
    tenant: str,
    *,
    vectors: bool = True,
    progress: Progress = _no_progress,
    on_damaged: OnDamaged | None = None,
    read_again: ReadAgain | None = None,
    keyed: Callable[[], Collection[Envelope]] = tuple,
) -> Exported:
    """Write all that *store* holds to *path*, which is complete in the end or as it was before.

    *progress* is called with the number of runs written and of all runs. Runs that are forgotten
    meanwhile may be missing, runs that are learned meanwhile are not included. *on_damaged* gets
    the id of each run whose log cannot be read and which is left out; without it the first is
    raised. With *read_again*, all else that is damaged is left out in the same way, and a run
    whose log alone can be read is made of that. *keyed* returns the entries of keyed
    files. Raises `StoreError` where the file cannot be written.
    """
    source = _Source(store, on_damaged, read_again)
    runs = store.runs.ids()
    methodologies = source.tried("methodologies", store.methodologies.ids) or ()
    # What is learned from here on is not part of this file.
    consolidated = source.tried("consolidation", partial(_is_consolidated, store)) or False
    counts: Counter[type] = Counter()
    with writing(path) as file:
        header = Header(ARCHIVE_FORMAT, VERSION, tenant, vectors, len(runs), len(methodologies))
        write_line(file, header)
        stored = source.lines(runs, methodologies, vectors=vectors)
        for line in chain(stored, source.tried("keyed files", keyed) or ()):
            write_line(file, line)
            counts[type(line)] += 1
            if isinstance(line, RunLine):
                progress(counts[RunLine], len(runs))
        if consolidated:
            write_line(file, ConsolidatedLine())
        write_line(file, EndLine(1 + counts.total() + consolidated))
    kinds = (RunLine, MethodologyLine, Exposure, Note, Envelope)
    return Exported(*(counts[kind] for kind in kinds))


def _is_consolidated(store: Store) -> bool:
    changed = store.admin.unconsolidated()
    return not (changed.trajectories or changed.error_ids or changed.repos)


class _Source(Struct, frozen=True):
    """Reads *store*, as `export_memory` says."""

    store: Store
    on_damaged: OnDamaged | None
    read_again: ReadAgain | None

    def lines(
        self, runs: Sequence[str], methodologies: Sequence[str], *, vectors: bool
    ) -> Iterator[Line]:
        store = self.store
        active = store.vectors.active_space
        space = self.tried("vectors", active) if vectors else None
        if space:
            model = self.tried("vectors", partial(store.vectors.space_model, space.name))
            yield SpaceLine(space, model)
        for run in filter(None, map(self._run, runs)):
            embedded = run.embedded if space else None
            yield RunLine(replace(run, met=None, embedded=embedded), run.met or {})
        for id_ in methodologies:
            if line := self.tried(id_, partial(_methodology_line, store, id_)):
                yield line
        for id_ in runs:
            if similar := self.tried(id_, partial(store.recoveries.similar_to, id_)):
                yield SimilarLine(tuple(similar))
        skipped = self.on_damaged if self.read_again else None
        yield from self._until_damaged("contexts", store.exposures.all(skipped))
        yield from self.tried("verdicts", store.exposures.decisions) or ()
        yield from self._until_damaged("notes", store.notes.all(skipped))

    def tried(self, name: str, read: Callable[[], Item]) -> Item | None:
        """Return what *read* does; None where that is damaged and is to be left out."""
        try:
            return read()
        except (StoreError, ReadError) as error:
            if self.on_damaged is None or self.read_again is None:
                raise
            reason = str(error) if name in str(error) else f"{name}: {error}"
            self.on_damaged(name, StoreError(reason))
            return None

    def _until_damaged(self, name: str, items: Iterator[Item]) -> Iterator[Item]:
        """Yield *items* as far as they can be read."""
        end = object()
        while (item := self.tried(name, partial(next, items, end))) not in (end, None):
            yield cast(Item, item)

    def _run(self, id_: str) -> Bundle | None:
        try:
            return self.store.runs.archived(id_)
        except DamagedRunError as error:
            if self.on_damaged is None:
                raise
            self.on_damaged(id_, error)
            return None
        except (StoreError, ReadError) as error:
            if self.on_damaged is None or self.read_again is None:
                raise
            run = self.tried(id_, partial(self.store.runs.raw, id_))
            if run is None:
                return None
            self.on_damaged(id_, StoreError(f"run {id_} is damaged, and made of its log: {error}"))
            return self.read_again(run)


def _methodology_line(store: Store, id_: str) -> MethodologyLine | None:
    known = store.methodologies.get([id_])
    return MethodologyLine(known[0], _resolved_by(store, id_)) if known else None


def _resolved_by(store: Store, methodology_id: str) -> tuple[ResolvedBy, ...]:
    """The errors that a methodology resolves, by their ids."""
    node = store.admin.explain(methodology_id)
    edges = [edge for edge in node.relations if edge.type == "RESOLVED_BY"] if node else []
    return tuple(
        decoded(
            ResolvedBy,
            {"error_id": edge.id, "methodology_id": methodology_id, **edge.properties},
        )
        for edge in edges
    )


def contributions(path: Path) -> Iterator[RawTrajectory | Note | None]:
    """Yield the runs and notes in *path* as anybody may bring them, None for all other lines.

    Of a run its log, with the outcome that it is said to have; of notes the text and its time.
    Pins, verdicts, reports of outcomes and what was derived from the runs are not among them.
    """
    for line in read_lines(path):
        if isinstance(line, RunLine):
            yield replace(
                line.bundle.raw,
                outcome=line.bundle.trajectory.outcome,
                outcome_source=OutcomeSource.LOG,
                change=ChangeStatus.UNKNOWN,
                advised={},
                origin="",
            )
        elif isinstance(line, Note) and line.kind is NoteKind.NOTE and line.is_live:
            yield line
        else:
            yield None


def source_of(path: Path) -> str:
    """Return the source that an archive is by default: it is named after its file."""
    name = "".join(one if one.isalnum() and one.isascii() else "-" for one in path.stem)
    return f"{ARCHIVE}{name.removesuffix('-jsonl')[:100]}"


def without_entries(path: Path, is_gone: Callable[[Envelope], bool]) -> None:
    """Remove the entries of keyed files that *is_gone* names from the archive at *path*."""

    def is_kept(line: Line) -> bool:
        return not (isinstance(line, Envelope) and is_gone(line))

    if all(map(is_kept, read_lines(path))):
        return
    with writing(path) as file:
        write_line(file, replace(read_header(path), version=VERSION))
        written = 1
        for line in filter(is_kept, read_lines(path)):
            write_line(file, line)
            written += 1
        write_line(file, EndLine(written))


def import_memory(
    store: Store,
    path: Path,
    *,
    vectors: bool = True,
    progress: Progress = _no_progress,
    keyed: Callable[[Collection[Envelope]], int] | None = None,
) -> Imported:
    """Read *path* into *store*, beside what it holds: what is known already stays as it is.

    The whole file is read once before anything is written: where a line is damaged, `ReadError`
    names it, and nothing was imported. *progress* is called with the number of runs imported and
    of all runs. A memory with a space of its own keeps that, and its new runs wait to be embedded.
    *keyed* takes the entries of keyed files first, and returns how many it set; without it they are
    left out.
    """
    header = read_header(path)
    entries = [line for line in read_lines(path) if isinstance(line, Envelope)]
    added = keyed(entries) if keyed and entries else 0
    done = _Importer(store, vectors, header.runs, progress).run(read_lines(path))
    done.keyed, done.keyed_left_out = added, 0 if keyed else len(entries)
    return done


class _Importer:
    """Writes lines in their order, those of one kind in batches."""

    def __init__(self, store: Store, vectors: bool, total: int, progress: Progress) -> None:
        self._store, self._progress, self._total = store, progress, total
        self._vectors = vectors
        self._space = ""
        self._done = Imported()
        # Runs that may have to be consolidated, unless an interrupted import left them so.
        self._waiting = set[str]() if _is_consolidated(store) else {*store.runs.ids()}

    def run(self, lines: Iterable[Line]) -> Imported:
        for kind, of_kind in groupby(lines, key=type):
            for batch in batched(of_kind, _IMPORT_BATCH):
                self._write(kind, batch)
        return self._done

    def _write(self, kind: type[Line], batch: list[Any]) -> None:
        """Write lines of one *kind*."""
        if kind is SpaceLine:
            self._put_spaces(batch)
        elif kind is RunLine:
            self._put_runs([replace(line.bundle, met=line.steps) for line in batch])
        elif kind is MethodologyLine:
            self._put_methodologies(batch)
        elif kind is SimilarLine:
            similar = [edge for line in batch for edge in line.similar]
            self._store.methodologies.put((), similar=similar)
        elif kind is Exposure:
            self._store.exposures.add(batch)
            self._done.exposures += len(batch)
        elif kind is Verdict:
            known = {one.advice: one.decided_at for one in self._store.exposures.decisions()}
            new = [one for one in batch if known.get(one.advice, one.decided_at) <= one.decided_at]
            self._store.exposures.decide(new)
        elif kind is Note:
            self._put_notes(batch)
        elif kind is ConsolidatedLine and not self._waiting:
            self._store.admin.mark_consolidated(self._store.admin.unconsolidated().revision)

    def _put_spaces(self, lines: list[SpaceLine]) -> None:
        for line in lines if self._vectors else ():
            active = self._store.vectors.active_space()
            if active and active.name != line.space.name:
                self._done.vectors_of = line.space.name
                continue
            self._space = line.space.name
            if active is None:
                self._store.vectors.prepare(line.space, line.model)
                self._store.vectors.switch(line.space.name)

    def _put_runs(self, runs: list[Bundle]) -> None:
        given = runs if self._space else [replace(run, embedded=None) for run in runs]
        known = self._store.runs.learned([run.trajectory.id for run in given])
        named = [_known_as(run, known) for run in given]
        counts = Counter(self._store.runs.add(named))
        self._waiting.difference_update(run.trajectory.id for run in named)
        self._done.created += counts[LearnStatus.CREATED]
        self._done.updated += counts[LearnStatus.UPDATED]
        self._done.unchanged += counts[LearnStatus.UNCHANGED]
        self._progress(self._done.created + self._done.updated + self._done.unchanged, self._total)

    def _put_notes(self, notes: list[Note]) -> None:
        known = self._store.notes.get([note.id for note in notes])
        new = [note for note in notes if note.id not in known]
        self._store.notes.change(new=new)
        self._done.notes += len(new)

    def _put_methodologies(self, lines: list[MethodologyLine]) -> None:
        edges = [edge for line in lines for edge in line.resolved]
        self._store.methodologies.put([line.methodology for line in lines], resolved=edges)
        self._done.methodologies += len(lines)


def _known_as(run: Bundle, known: Mapping[str, Learned]) -> Bundle:
    """*run* under the id that it has in the memory, where it was archived under a former one."""
    if run.trajectory.id not in known:
        return run
    own = known[run.trajectory.id].trajectory_id
    return replace(run, trajectory=replace(run.trajectory, id=own))
