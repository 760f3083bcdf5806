"""Which migrations a schema on a server lacks: decided without a server."""

from pathlib import Path

import pytest

from contextgraph.errors import SchemaError
from contextgraph.store.neo4j.schema import REPLACED, Migration, migrations, missing_of

INDEX = "CREATE INDEX one IF NOT EXISTS\nFOR (n:One) ON (n.id)"
FIRST = Migration("V0001__first", (INDEX,))
SECOND = Migration("V0002__second", ("MATCH (n:One) SET n.two = 2",))


def record(*steps: Migration) -> dict[str, str]:
    return {step.name: step.checksum for step in steps}


def written(folder: Path, **files: str) -> tuple[Migration, ...]:
    for name, text in files.items():
        (folder / f"{name}.cypher").write_text(text)
    return migrations(folder)


def test_a_new_database_needs_every_step_in_order() -> None:
    assert missing_of((FIRST, SECOND), {}) == (FIRST, SECOND)


def test_only_what_is_not_recorded_is_missing_of() -> None:
    assert missing_of((FIRST, SECOND), record(FIRST)) == (SECOND,)
    assert missing_of((FIRST, SECOND), record(SECOND, FIRST)) == ()


def test_a_memory_of_a_later_version_is_refused() -> None:
    with pytest.raises(SchemaError, match=r"has V0002__second, .* upgrade contextgraph-memory"):
        missing_of((FIRST,), record(FIRST, SECOND))


def test_steps_of_versions_between_releases_are_replaced_by_those_of_0_2() -> None:
    first, *steps_of_0_2 = migrations()
    between = dict.fromkeys(REPLACED, "checksum")
    assert missing_of(migrations(), record(first) | between) == tuple(steps_of_0_2)
    assert missing_of(migrations(), record(*migrations()) | between) == ()


def test_a_step_that_was_edited_after_it_was_applied_is_refused() -> None:
    edited = Migration(FIRST.name, (INDEX.replace("id", "key"),))
    with pytest.raises(SchemaError, match=r"V0001__first\.cypher is not what was applied"):
        missing_of((edited, SECOND), record(FIRST))


def test_statements_are_read_one_by_one_and_comments_do_not_count(tmp_path: Path) -> None:
    text = (
        f"// What for.\n{INDEX};\n\n// And another; with a semicolon.\nDROP INDEX two IF EXISTS;\n"
    )
    (step,) = written(tmp_path, V0001__first=text)
    assert step.statements == (INDEX, "DROP INDEX two IF EXISTS")
    (again,) = written(tmp_path, V0001__first=text.replace("What for", "Another comment"))
    assert again.checksum == step.checksum


def test_steps_are_read_in_order_of_their_numbers(tmp_path: Path) -> None:
    found = written(tmp_path, V0002__second="MATCH (n) SET n.x = 1;", V0001__first=f"{INDEX};")
    assert [step.name for step in found] == ["V0001__first", "V0002__second"]


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("V0002__first", f"{INDEX};", "expected V0001__<name>.cypher"),
        ("first", f"{INDEX};", "expected V0001__<name>.cypher"),
        ("V0001__first", "// nothing\n", "no statement"),
        ("V0001__first", f"{INDEX};\nMATCH (n) SET n.x = 1;", "file without data"),
    ],
)
def test_a_file_that_is_not_a_migration_is_named(
    tmp_path: Path, name: str, text: str, reason: str
) -> None:
    with pytest.raises(SchemaError, match=reason):
        written(tmp_path, **{name: text})


def test_the_steps_of_this_version_can_be_read() -> None:
    """Each can be applied again: it may have been interrupted."""
    steps = migrations()
    assert steps[0].name == "V0001__memory"
    for step in steps:
        schema = [text for text in step.statements if text.startswith(("CREATE", "DROP"))]
        assert all("IF NOT EXISTS" in text or "IF EXISTS" in text for text in schema)
