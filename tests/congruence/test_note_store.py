"""Every store keeps and proposes notes in the same way."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import strategies as st

from contextgraph.model import Link, Note, NoteKind, NoteScope
from contextgraph.vectors import Vector
from tests.congruence.pairs import NOTE_PAIRS, congruent
from tests.strategies import REPOSITORIES, VOCABULARY, WORDS
from tests.twins import Twins

NOW = datetime(2026, 3, 1, tzinfo=UTC)
SPACE, OTHER = "test/notes@3", "test/others@3"
TEXTS = st.lists(st.sampled_from((*VOCABULARY, "数据库", "SQLite")), min_size=1, max_size=4)
NAMES = tuple(f"note_{number}" for number in range(7))
IDS = st.lists(st.sampled_from(NAMES), max_size=4)
TAGS = st.lists(st.sampled_from(["cache", "ci"]), max_size=2, unique=True).map(tuple)
LINKS = st.lists(
    st.builds(Link, st.just("follows"), st.sampled_from(NAMES)), max_size=2, unique=True
).map(tuple)
searched = st.lists(st.sampled_from((*WORDS, "数据", "sqlite")), max_size=4)
repos = st.none() | st.lists(
    st.sampled_from((*REPOSITORIES, "no/where")), min_size=1, max_size=2, unique=True
).map(tuple)
kinds = st.lists(st.sampled_from(NoteKind), min_size=1, max_size=2, unique=True).map(tuple)
scopes = st.builds(NoteScope, repos, kinds, TAGS, st.booleans())
VECTORS = st.sampled_from([(1, 0, 0), (0, 1, 0), (1, 1, 0), (1, 0.5, 0.2)])
embedded = st.dictionaries(st.sampled_from(NAMES), st.none() | VECTORS, max_size=5)


@st.composite
def notes(draw: st.DrawFn) -> list[Note]:
    """Notes with different ids: what is put again differs in what may change."""
    return [
        Note(
            id=id_,
            content=" ".join(draw(TEXTS)),
            repo=draw(st.sampled_from(REPOSITORIES)),
            source="user",
            created_at=NOW + timedelta(days=draw(st.integers(0, 2))),
            tags=draw(TAGS),
            archived_at=draw(st.none() | st.just(NOW)),
            superseded_by=draw(st.none() | st.just("note_1")),
            kind=draw(st.sampled_from(NoteKind)),
            pinned=draw(st.booleans()),
            links=draw(LINKS),
        )
        for id_ in NAMES[: draw(st.integers(0, 5))]
    ]


@congruent(NOTE_PAIRS, before=notes(), scope=scopes)
def test_notes_put(twins: Twins, before: list[Note], scope: NoteScope) -> None:
    twins.write("notes.put", before)
    twins.write("notes.put", [replace(one, content="cache it", tags=()) for one in before])
    twins.ask("notes.page", "", 10)
    twins.ask("notes.for_text", ["cach", "pars"], scope, 10)


@congruent(NOTE_PAIRS, before=notes(), ids=IDS, new=notes())
def test_notes_change(twins: Twins, before: list[Note], ids: list[str], new: list[Note]) -> None:
    def changed(note: Note) -> Note:
        return replace(note, links=(Link("supersedes", "note_6", 0.5),), archived_at=None)

    twins.write("notes.put", before)
    twins.write("notes.change", ids, changed, new)
    twins.ask("notes.page", "", 10)
    twins.ask("notes.linking", ids)
    twins.ask("notes.linking", ["note_6"])


@congruent(NOTE_PAIRS, given=notes(), ids=IDS)
def test_notes_get(twins: Twins, given: list[Note], ids: list[str]) -> None:
    twins.write("notes.put", given)
    twins.ask("notes.get", ids)
    twins.ask("notes.linking", ids)


@congruent(NOTE_PAIRS, given=notes(), words=searched, scope=scopes, limit=st.integers(0, 4))
def test_notes_for_text(
    twins: Twins, given: list[Note], words: list[str], scope: NoteScope, limit: int
) -> None:
    twins.write("notes.put", given)
    twins.ask("notes.for_text", words, scope, limit)
    twins.ask("notes.newest", scope, limit)


@congruent(
    NOTE_PAIRS,
    given=notes(),
    vectors=embedded,
    near=VECTORS,
    scope=scopes,
    limit=st.integers(0, 4),
)
def test_notes_nearest(
    twins: Twins,
    given: list[Note],
    vectors: dict[str, tuple[float, ...] | None],
    near: tuple[float, ...],
    scope: NoteScope,
    limit: int,
) -> None:
    made = {id_: one and Vector.of(SPACE, one) for id_, one in vectors.items()}
    twins.write("notes.put", given)
    twins.write("notes.add", OTHER, dict.fromkeys(made))
    twins.write("notes.add", SPACE, made)
    twins.ask("notes.nearest", Vector.of(SPACE, near), scope, limit)
    twins.ask("notes.nearest", Vector.of(OTHER, near), scope, limit)
    twins.ask("notes.texts_to_embed", limit, SPACE, "note_1")
    twins.write("notes.put", [replace(one, content="other") for one in given[:1]])
    twins.ask("notes.texts_to_embed", 10, SPACE)


@congruent(
    NOTE_PAIRS, given=notes(), after=st.sampled_from(("", "note_2", "z")), limit=st.integers(0, 4)
)
def test_notes_page(twins: Twins, given: list[Note], after: str, limit: int) -> None:
    twins.write("notes.put", given)
    twins.ask("notes.page", after, limit)
    twins.ask("notes.counts")


@congruent(NOTE_PAIRS, given=notes(), ids=IDS, scope=scopes)
def test_notes_delete(twins: Twins, given: list[Note], ids: list[str], scope: NoteScope) -> None:
    twins.write("notes.put", given)
    twins.write("notes.delete", ids)
    twins.ask("notes.page", "", 10)
    twins.ask("notes.linking", ids)
    twins.ask("notes.for_text", ["cach"], scope, 10)
    twins.write("notes.put", given)
    twins.ask("notes.for_text", ["cach"], scope, 10)
