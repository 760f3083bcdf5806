"""Every store keeps and proposes notes in the same way."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import strategies as st

from contextgraph.model import Note
from tests.congruence.pairs import congruent
from tests.strategies import REPOSITORIES, VOCABULARY, WORDS
from tests.twins import Twins

NOW = datetime(2026, 3, 1, tzinfo=UTC)
TEXTS = st.lists(st.sampled_from((*VOCABULARY, "数据库", "SQLite")), min_size=1, max_size=4)
searched = st.lists(st.sampled_from((*WORDS, "数据", "sqlite")), max_size=4)
repos = st.sampled_from((None, *REPOSITORIES, "no/where"))
IDS = st.lists(st.integers(0, 6).map("note_{}".format), max_size=4)


@st.composite
def notes(draw: st.DrawFn) -> list[Note]:
    """Notes with different ids: what is put again differs in what may change."""
    return [
        Note(
            id=f"note_{number}",
            content=" ".join(draw(TEXTS)),
            repo=draw(st.sampled_from(REPOSITORIES)),
            source="user",
            created_at=NOW + timedelta(days=draw(st.integers(0, 2))),
            tags=tuple(draw(st.lists(st.sampled_from(["cache", "ci"]), max_size=1))),
            archived_at=draw(st.none() | st.just(NOW)),
            superseded_by=draw(st.none() | st.just("note_1")),
        )
        for number in range(draw(st.integers(0, 5)))
    ]


@congruent(before=notes())
def test_notes_put(twins: Twins, before: list[Note]) -> None:
    twins.write("notes.put", before)
    twins.write("notes.put", [replace(one, confirmed=2, archived_at=None) for one in before])
    twins.ask("notes.page", "", 10)
    twins.ask("notes.for_text", ["cache", "parse"], None, 10)


@congruent(given=notes(), ids=IDS)
def test_notes_get(twins: Twins, given: list[Note], ids: list[str]) -> None:
    twins.write("notes.put", given)
    twins.ask("notes.get", ids)


@congruent(given=notes(), words=searched, repo=repos, limit=st.integers(0, 4))
def test_notes_for_text(
    twins: Twins, given: list[Note], words: list[str], repo: str | None, limit: int
) -> None:
    twins.write("notes.put", given)
    twins.ask("notes.for_text", words, repo, limit)


@congruent(given=notes(), after=st.sampled_from(("", "note_2", "z")), limit=st.integers(0, 4))
def test_notes_page(twins: Twins, given: list[Note], after: str, limit: int) -> None:
    twins.write("notes.put", given)
    twins.ask("notes.page", after, limit)


@congruent(given=notes(), ids=IDS)
def test_notes_delete(twins: Twins, given: list[Note], ids: list[str]) -> None:
    twins.write("notes.put", given)
    twins.write("notes.delete", ids)
    twins.ask("notes.page", "", 10)
    twins.ask("notes.for_text", ["cache"], None, 10)
    twins.write("notes.put", given)
    twins.ask("notes.for_text", ["cache"], None, 10)
