"""The queries of the folder ``cypher``: named once, used, and each within one tenant."""

import re
from pathlib import Path

import pytest

import contextgraph
from contextgraph.store.neo4j.schema import cypher_folder, queries, statements

STORE = Path(contextgraph.__file__).parent / "store" / "neo4j"
# About the server or the database, not about a memory in it.
WITHOUT_TENANT = {
    "prepare_for_replanning",
    # Their full-text queries include a term that only texts of the tenant have.
    "recovered_word_counts",
    "trajectory_word_counts",
    "offline_indexes",
    "index_names",
    "record_schema",
    "schema_number",
    "server",
    "vector_indexes",
    "vector_properties",
}


def names_in_the_code() -> set[str]:
    text = "\n".join(path.read_text() for path in STORE.rglob("*.py"))
    return set(re.findall(r'"([a-z_]+)"', text))


@pytest.mark.parametrize("name", queries())
def test_every_query_is_used(name: str) -> None:
    of_both_forms = re.sub(r"_(in_repo|everywhere)$", "", name)
    assert of_both_forms in names_in_the_code()


def test_every_query_that_is_asked_for_is_there() -> None:
    text = "\n".join(path.read_text() for path in STORE.rglob("*.py"))
    used = set(
        re.findall(
            r"""(?:\.(?:rows|row|found|write|_read|_fragments)\(|\bquery\(|\bwhere\()\s*"(\w+)\"""",
            text,
        )
    )
    known = {re.sub(r"_(in_repo|everywhere)$", "", name) for name in queries()} | queries().keys()
    assert len(used) > 50
    assert used <= known


def test_each_form_of_a_query_has_its_own_lines() -> None:
    assert "n.repo IN $repos" in queries()["newest_notes_in_repo"]
    assert "n.id > ''" not in queries()["newest_notes_in_repo"]
    assert "n.repo IN $repos" not in queries()["newest_notes_everywhere"]
    assert "n.id > ''" in queries()["newest_notes_everywhere"]


@pytest.mark.parametrize("name", sorted(queries().keys() - WITHOUT_TENANT))
def test_every_query_names_the_tenant(name: str) -> None:
    assert "$tenant" in queries()[name]


@pytest.mark.parametrize("path", sorted(cypher_folder().rglob("*.cypher")), ids=lambda p: p.name)
def test_every_statement_is_literal(path: Path) -> None:
    # `:$(…)` is a label or type that the server computes of a value.
    assert not re.search(r"%s|\{\}|(?<!:)\$\(", path.read_text())


def test_statements_end_at_semicolons() -> None:
    text = "// about\nCREATE (a)\n  // why\n  SET a.x = ';';\n\nCREATE (b);\n"
    assert statements(text) == ["CREATE (a)\n  SET a.x = ';'", "CREATE (b)"]
