"""Arguments for the operations of the ports, drawn by the names or types of their parameters."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from inspect import Parameter, signature
from typing import Any

from hypothesis import strategies as st

from contextgraph.model import (
    Bundle,
    ErrorQuestion,
    Exposure,
    Link,
    Note,
    NoteKind,
    NoteScope,
    Outcome,
    PassageScope,
    RunFilter,
    RunOrder,
    Scope,
    SessionFilter,
    SignatureLevel,
    Space,
    Vector,
    Verdict,
    WordCounts,
)
from contextgraph.model.values import replace
from contextgraph.store import memory_store
from tests.strategies import (
    ADVICE_IDS,
    CONTEXT_IDS,
    ERROR_IDS,
    FILE_NAMES,
    FRAGMENT_IDS,
    INSTANCES,
    ITEM_IDS,
    LOOP_COMMANDS,
    METHODOLOGY_IDS,
    REPOSITORIES,
    SIGNATURES,
    SPACES,
    TRAJECTORY_IDS,
    VOCABULARY,
    WORDS,
    abstracted,
    bundles,
    scopes,
    shown_items,
    times,
    vectors,
)

NOTE_IDS = tuple(f"note_{number}" for number in range(7))
PASSAGE_IDS = tuple(f"{run}:000{number}" for run in TRAJECTORY_IDS for number in range(2))
NOTE_SPACES = ("test/notes@3", "test/others@3")
NODE_IDS = (*TRAJECTORY_IDS, *ITEM_IDS, *ERROR_IDS, *CONTEXT_IDS)
_NOW = datetime(2026, 3, 1, tzinfo=UTC)
_TAGS = st.lists(st.sampled_from(["cache", "ci"]), max_size=2, unique=True).map(tuple)
_LINKS = st.lists(
    st.builds(Link, st.just("follows"), st.sampled_from(NOTE_IDS)), max_size=2, unique=True
).map(tuple)
_STEMS = ("cach", "pars", "naïv", "数据", "sqlite", "absent")
_SESSIONS = ("", "5f0c", "5f0c/a1")
_LEVELS = (SignatureLevel.TEMPLATE, SignatureLevel.TYPE)
_VECTORS = ((1, 0, 0), (0, 1, 0), (1, 1, 0), (1, 0.5, 0.2))


def some(values: Sequence[Any]) -> st.SearchStrategy[list[Any]]:
    """A few of *values*, or none, each once, also one that nothing has."""
    return st.lists(st.sampled_from((*values, "absent")), max_size=5, unique=True)


def moments() -> st.SearchStrategy[datetime]:
    """Few, so that they tie."""
    return st.integers(0, 9).map(lambda minutes: _NOW + timedelta(minutes=minutes))


@st.composite
def notes(draw: st.DrawFn) -> list[Note]:
    """Notes with different ids: what is put again differs in what may change."""
    text = st.lists(st.sampled_from((*VOCABULARY, "数据库", "SQLite")), min_size=1, max_size=4)
    return [
        Note(
            id=id_,
            content=" ".join(draw(text)),
            repo=draw(st.sampled_from(REPOSITORIES)),
            source="user",
            created_at=_NOW + timedelta(days=draw(st.integers(0, 2))),
            tags=draw(_TAGS),
            archived_at=draw(st.none() | st.just(_NOW)),
            superseded_by=draw(st.none() | st.just("note_1")),
            kind=draw(st.sampled_from(NoteKind)),
            pinned=draw(st.booleans()),
            links=draw(_LINKS),
        )
        for id_ in NOTE_IDS[: draw(st.integers(0, 5))]
    ]


def _note_scopes() -> st.SearchStrategy[NoteScope]:
    repos = st.lists(
        st.sampled_from((*REPOSITORIES, "no/where")), min_size=1, max_size=2, unique=True
    )
    kinds = st.lists(st.sampled_from(NoteKind), min_size=1, max_size=2, unique=True)
    return st.builds(
        NoteScope,
        st.none() | repos.map(tuple),
        kinds.map(tuple),
        _TAGS,
        st.booleans(),
        st.none() | st.booleans(),
    )


@st.composite
def _exposures(draw: st.DrawFn) -> list[Exposure]:
    """Contexts that were shown or withheld, at different times."""
    chosen = draw(st.lists(st.sampled_from(CONTEXT_IDS), max_size=3, unique=True))
    return [
        replace(
            Exposure.of(
                context,
                draw(shown_items()),
                draw(moments()),
                draw(st.none() | st.sampled_from(ERROR_IDS)),
                is_withheld=draw(st.none() | st.booleans()),
            ),
            session=draw(st.sampled_from(_SESSIONS)),
            moment=draw(st.sampled_from(["", "index"])),
            said=tuple(draw(st.lists(st.sampled_from(VOCABULARY), max_size=2))),
        )
        for context in chosen
    ]


def _as_archived(bundle: Bundle) -> Bundle:
    """*bundle* of a run that met its errors more often than its fragments show."""
    return replace(bundle, met={error.id: n for n, error in enumerate(bundle.errors)})


@st.composite
def _vectors_of_runs(draw: st.DrawFn) -> tuple[str, dict[str, Vector | None]]:
    space = draw(st.sampled_from(SPACES)).name
    runs = st.sampled_from((*TRAJECTORY_IDS, "absent"))
    return space, draw(st.dictionaries(runs, st.none() | vectors(space), max_size=4))


@st.composite
def _vectors_of_nodes(draw: st.DrawFn) -> tuple[str, dict[str, Vector | None]]:
    space = draw(st.sampled_from(SPACES)).name
    nodes = st.sampled_from((*FRAGMENT_IDS, *METHODOLOGY_IDS, "absent"))
    return space, draw(st.dictionaries(nodes, st.none() | vectors(space), max_size=6))


@st.composite
def _vectors_of_notes(draw: st.DrawFn) -> tuple[str, dict[str, Vector | None]]:
    space = draw(st.sampled_from(NOTE_SPACES))
    found = draw(st.dictionaries(st.sampled_from(NOTE_IDS), st.none() | st.sampled_from(_VECTORS)))
    return space, {id_: one and Vector.of(space, one) for id_, one in found.items()}


@st.composite
def _vectors_of_passages(draw: st.DrawFn) -> tuple[str, dict[str, Vector | None]]:
    space = draw(st.sampled_from(SPACES)).name
    some_vectors = st.none() | vectors(space)
    return space, draw(st.dictionaries(st.sampled_from(PASSAGE_IDS), some_vectors))


def _changed(note: Note) -> Note:
    return replace(note, links=(Link("supersedes", "note_6", 0.5),), archived_at=None)


_BUNDLES = bundles() | bundles().map(_as_archived)
_SPACE_NAMES = st.sampled_from([space.name for space in SPACES])
# All required arguments of an operation, where one depends on the other.
_TOGETHER: dict[str, st.SearchStrategy[tuple[Any, ...]]] = {
    "vectors.add": _vectors_of_runs(),
    "vectors.add_nodes": _vectors_of_nodes(),
    "notes.add": _vectors_of_notes(),
    "passages.add": _vectors_of_passages(),
    "methodologies.put": abstracted().map(
        lambda one: (one.methodologies, one.removed, one.resolved, one.similar)
    ),
}
# By operation, object or name of the parameter, the first of these that is here; else by its type.
_VALUES: dict[str, st.SearchStrategy[Any]] = {
    "advice": some((*ADVICE_IDS[1:], *ITEM_IDS)),
    "agent": st.none() | st.sampled_from(("agent", "absent")),
    "after": st.sampled_from(("", TRAJECTORY_IDS[1], "note_2", "z")),
    "admin.after": st.none() | st.just(0),  # revisions are numbers of one store
    "bundles": st.lists(_BUNDLES, max_size=3),
    "added": st.lists(_BUNDLES, max_size=3),
    "runs.replace.bundles": st.dictionaries(st.sampled_from(TRAJECTORY_IDS), _BUNDLES, max_size=3),
    "containing": st.sampled_from(("", "Engine", "nothing")),
    "counts": st.none()
    | st.builds(
        WordCounts,
        st.just(9),
        st.dictionaries(st.sampled_from((*WORDS, *_STEMS)), st.integers(0, 9)),
    ),
    "context": st.sampled_from((*CONTEXT_IDS, "never shown")),
    "error_ids": some(ERROR_IDS),
    "errors": some(ERROR_IDS),
    "exposures": _exposures(),
    "file_name": st.none() | st.sampled_from(FILE_NAMES),
    "fragment_ids": some(FRAGMENT_IDS),
    "function": st.just(_changed),
    "holder": st.sampled_from("ab"),
    "ids": some(METHODOLOGY_IDS),
    "notes.ids": some(NOTE_IDS),
    "passages.ids": some(PASSAGE_IDS),
    "characters": st.none() | st.sampled_from((0, 40, 10_000)),
    "passages.keep.since": st.none() | times(),
    "passages.counts.space": st.none() | _SPACE_NAMES,
    "run": st.sampled_from((*TRAJECTORY_IDS, "absent")),
    "weights": st.dictionaries(st.sampled_from(_STEMS), st.integers(1, 3), max_size=3),
    "passages.words": some(_STEMS),
    "instance": st.none() | st.sampled_from((*INSTANCES, "absent")),
    "item": st.none() | st.integers(0, 3),
    "keep": st.integers(0, 2),
    "limit": st.sampled_from((50, 3, 1, 0)),
    "loop_command": st.none() | st.sampled_from((*LOOP_COMMANDS, "absent")),
    "model": st.none() | st.binary(max_size=8),
    "name": st.sampled_from(("", *ADVICE_IDS[1:], *ITEM_IDS)),
    "new": notes(),
    "node_id": st.sampled_from(NODE_IDS),
    "notes": notes(),
    "now": moments(),
    "process": st.none(),
    "scopes": st.lists(scopes(), max_size=3),
    # A server plans each combination of their forms.
    "questions": st.lists(
        st.builds(ErrorQuestion, st.sampled_from(SIGNATURES), st.sampled_from(_LEVELS), scopes()),
        max_size=3,
    ),
    "repo": st.none() | st.sampled_from((*REPOSITORIES, "Ada/Engine", "nobody/nothing")),
    "only": some(ERROR_IDS),
    "runs": st.none() | some(TRAJECTORY_IDS),
    "since": moments(),
    "signatures": st.lists(st.sampled_from(SIGNATURES), max_size=4),
    "skip": st.sampled_from((0, 1, 50)),
    "source": st.sampled_from(("", "ci")),
    "space": _SPACE_NAMES,
    "notes.space": st.sampled_from(NOTE_SPACES),
    "trajectory_id": st.sampled_from((*TRAJECTORY_IDS, "absent")),
    "trajectory_ids": some(TRAJECTORY_IDS),
    "until": st.none() | moments(),
    "vector": st.sampled_from(SPACES).flatmap(lambda space: vectors(space.name)),
    "notes.vectors": st.sampled_from(NOTE_SPACES).flatmap(
        lambda space: st.lists(
            st.builds(Vector.of, st.just(space), st.sampled_from(_VECTORS)), max_size=3
        )
    ),
    "verdicts": st.lists(
        st.builds(Verdict, st.sampled_from(ADVICE_IDS[1:]), st.booleans(), times())
    ),
    "words": some(WORDS),
    "notes.words": some(_STEMS),
}
_TYPES: dict[Any, st.SearchStrategy[Any]] = {
    RunFilter: st.builds(
        RunFilter,
        st.none() | st.sampled_from((*REPOSITORIES, "Ada/Engine", "nobody/nothing")),
        st.sampled_from(("", "agent", "absent")),
        st.none() | st.sampled_from(Outcome),
        st.none() | times(),
        st.sampled_from(RunOrder),
    ),
    SessionFilter: st.builds(
        SessionFilter,
        st.none() | st.sampled_from((*REPOSITORIES, "Ada/Engine", "nobody/nothing")),
        st.sampled_from(("", "agent", "absent")),
        st.none() | st.sampled_from(Outcome),
        st.none() | times(),
        st.none() | times(),
        st.sampled_from(RunOrder),
    ),
    Scope: scopes(),
    NoteScope: _note_scopes(),
    PassageScope: st.builds(
        PassageScope,
        st.none() | st.lists(st.sampled_from(REPOSITORIES), max_size=2, unique=True).map(tuple),
        st.none() | some(TRAJECTORY_IDS).map(tuple),
        st.none() | times(),
        st.none() | times(),
    ),
    Space: st.builds(
        replace,
        st.sampled_from(SPACES),
        runs=st.integers(0, 9),
        similarity_threshold=st.none() | st.floats(0, 1),
    ),
}


@dataclass(frozen=True, slots=True)
class Call:
    """A call of an operation, such as ``runs.add``."""

    operation: str
    arguments: tuple[object, ...]
    named: dict[str, object]


def objects() -> dict[str, type]:
    """The kinds of the objects of a store, by the name of the object."""
    kinds = memory_store.Store.__annotations__.items()
    return {name: kind for name, kind in kinds if isinstance(kind, type)}


def operations() -> list[str]:
    """The methods of these objects, such as ``runs.add``."""
    return [
        f"{name}.{operation}"
        for name, protocol in objects().items()
        for operation in dir(protocol)
        if not operation.startswith("_")
    ]


def calls(operation: str) -> st.SearchStrategy[Call]:
    """Calls of an operation, also without arguments that have a default."""
    name, _, method = operation.partition(".")
    _, *parameters = signature(getattr(objects()[name], method)).parameters.values()
    required = [one for one in parameters if one.default is Parameter.empty]
    optional = {one.name: _values(operation, one) for one in parameters if one not in required}
    given = _TOGETHER.get(operation)
    if given is None:
        given = st.tuples(*(_values(operation, one) for one in required))
        return st.builds(
            Call, st.just(operation), given, st.fixed_dictionaries({}, optional=optional)
        )
    return st.builds(Call, st.just(operation), given, st.just({}))


def _values(operation: str, parameter: Parameter) -> st.SearchStrategy[Any]:
    name = parameter.name
    keys = (f"{operation}.{name}", f"{operation.partition('.')[0]}.{name}", name)
    known = next((_VALUES[key] for key in keys if key in _VALUES), None)
    if known is not None and not (name == "space" and parameter.annotation is Space):
        return known
    found = _TYPES.get(parameter.annotation)
    return st.from_type(parameter.annotation) if found is None else found
