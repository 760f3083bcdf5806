"""Cypher for the primitives of `store.port`: one text for each form of a question.

A row of a node table is a node of its label, a row of an edge table a relation of its type; both
have the columns as properties. Texts are made of names in declarations, never of values.
"""

from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache

from contextgraph.model import COSINE_DECIMALS, UNDECIDED
from contextgraph.store.neo4j.schema import PROPERTIES, words_index
from contextgraph.store.port import (
    COMPARED,
    KEY,
    RANGES,
    SOURCE,
    TARGET,
    VALUE,
    Form,
    Is,
    Table,
    serving,
)

_CONDITIONS = {
    Is.EQUAL: "{own} = q.{value}",
    Is.IN: "{own} IN q.{value}",
    Is.NOT_IN: "({own} IS NULL OR NOT {own} IN q.{value})",
    Is.LEAST: "{own} >= q.{value}",
    Is.MOST: "{own} <= q.{value}",
    Is.ABOVE: "{own} > q.{value}",
    Is.HAS: "all(one IN q.{value} WHERE one IN {own})",
    Is.HAS_ANY: "any(one IN q.{value} WHERE one IN {own})",
    Is.NULL: "{own} IS NULL",
    Is.EMBEDDED: "q.{value} IN coalesce(n.embedded, [])",
    Is.NOT_EMBEDDED: "NOT q.{value} IN coalesce(n.embedded, [])",
}
# What an index can hold is left of a node for a moment after it was deleted: this is in none.
IS_WHOLE = "n.value IS NOT NULL"


def own(column: str) -> str:
    """Return the property of a row *n*."""
    return f"n.{PROPERTIES.get(column, column)}"


def _pattern(table: Table, where: Form = ()) -> str:
    if table.ends is None:
        return f"(n:{table.label})"
    expanded = {column for column, how in where if _is_expanded(table, where, column, how)}
    first = f"(a:{table.ends[0].label})" if SOURCE in expanded else "()"
    last = f"(b:{table.ends[1].label})" if TARGET in expanded else "()"
    return f"{first}-[n:{table.label}]->{last}"


@lru_cache(1_000)
def _is_expanded(table: Table, where: Form, column: str, how: Is) -> bool:
    """Return whether edges are found from the nodes at this end, as no index has more to offer."""
    if table.ends is None or column not in (SOURCE, TARGET) or how not in (Is.EQUAL, Is.IN):
        return False
    index = serving(table, where, ())
    return (index is not None and index.columns == (column,)) or not any(
        column in longer and len(longer) > 1 for longer in table.indexes
    )


@lru_cache(1_000)
def match(table: Table, where: Form, order: tuple[str, ...] = ()) -> str:
    """Return the clauses that find the rows *n* which the terms of a question *q* admit."""
    for place, (column, how) in enumerate(where):
        if column in table.listed and how in (Is.HAS, Is.HAS_ANY):
            label, kind, _ = table.listed[column]
            value = f"= q.w{place}[0]" if how is Is.HAS else f"IN q.w{place}"
            return (
                f"MATCH (o:{label})<-[:{kind}]-(n:{table.label}) "
                f"WHERE o.tenant = $tenant AND o.id {value} WITH DISTINCT n "
                f"WHERE {_conditions(table, where)}"
            )
    terms = [_conditions(table, where)]
    if any(_is_expanded(table, where, column, how) for column, how in where):
        return f"MATCH {_pattern(table, where)} WHERE {terms[0]}"
    hint = ""
    if not any(column == KEY and how in COMPARED for column, how in where):
        # An index serves where something is said of all its columns; all nodes are read else.
        index = serving(table, where, order)
        said = {column for column, how in where if how in (*COMPARED, *RANGES)}
        columns = [column.removeprefix("-") for column in index.columns] if index else [KEY]
        others = [column for column in columns if column not in said]
        terms += [f"{own(column)} IS NOT NULL" for column in others]
        if index:
            # The planner prefers that of the keys where its counts are old.
            named = ", ".join(PROPERTIES.get(one, one) for one in ("tenant", *columns))
            hint = f" USING INDEX n:{table.label}({named})"
    return f"MATCH {_pattern(table)}{hint} WHERE {' AND '.join(terms)}"


def _conditions(table: Table, where: Form, is_expanded: bool = True) -> str:
    terms = ["n.tenant = $tenant"]
    for place, (column, how) in enumerate(where):
        named = own(column)
        if is_expanded and _is_expanded(table, where, column, how):
            node = "a" if column == SOURCE else "b"
            terms.append(f"{node}.tenant = $tenant")
            named = f"{node}.id"
        terms.append(_CONDITIONS[how].format(own=named, value=f"w{place}"))
    return " AND ".join(terms)


@lru_cache(1_000)
def ordered(table: Table, where: Form, order: tuple[str, ...]) -> str:
    """Return the order of rows *n*, ties by key; an index gives it where one can."""
    index = serving(table, where, order)
    first = " DESC" if order and order[0].startswith("-") else ""
    parts = [
        f"{own(column)}{first}"
        for column in (("tenant", *index.compared) if index and index.order else ())
    ]
    for column in (*order, KEY):
        name = column.removeprefix("-")
        parts.append(f"{own(name)} DESC" if name != column else own(name))
    return ", ".join(dict.fromkeys(parts))


def is_checked(wanted: Sequence[str]) -> bool:
    """Return whether an answer says of each row that it was read whole."""
    return not {*wanted} <= {KEY, SOURCE, TARGET, VALUE}


@lru_cache(1_000)
def found(
    table: Table,
    where: Form,
    order: tuple[str, ...],
    wanted: tuple[str, ...],
    place: int,
    is_limited: bool,
) -> str:
    """Return the text that answers all questions of one form, the one number *place* of a call."""
    parts = [own(column) for column in wanted] + ([IS_WHOLE] if is_checked(wanted) else [])
    limit = f" LIMIT $limit{place}" if is_limited else ""
    return (
        f"UNWIND $asked[{place}] AS q CALL (q) {{ {match(table, where, order)} "
        f"WITH n ORDER BY {ordered(table, where, order)}{limit} "
        f"RETURN collect([{', '.join(parts)}]) AS found }} RETURN q.number AS number, found"
    )


@lru_cache(1_000)
def counted(
    table: Table,
    where: Form,
    by: tuple[str, ...],
    sums: tuple[str, ...],
    place: int,
    is_limited: bool,
) -> str:
    """Return the text that answers the count number *place* of a call."""
    groups = [f"{own(column)} AS by{number}" for number, column in enumerate(by)]
    added = [f"sum({own(column)}) AS sum{number}" for number, column in enumerate(sums)]
    keys = [f"by{number}" for number in range(len(by))]
    names = ", ".join([*keys, "rows", *(f"sum{number}" for number in range(len(sums)))])
    limit = f" LIMIT $limit{place}" if is_limited else ""
    return (
        f"WITH $asked[{place}] AS q CALL (q) {{ {match(table, where)} "
        f"WITH {', '.join([*groups, 'count(*) AS rows', *added])} "
        f"ORDER BY {', '.join(['rows DESC', *keys])}{limit} "
        f"RETURN collect([{names}]) AS found }} RETURN {place} AS number, found"
    )


def _words_of(table: Table) -> str:
    kind, name = ("Relationships", "relationship") if table.ends else ("Nodes", "node")
    return f"CALL db.index.fulltext.query{kind}('{words_index(table)}', word.query) YIELD {name}"


@lru_cache(1_000)
def searched(table: Table, where: Form, order: tuple[str, ...]) -> str:
    """Return the text that finds rows by the weights of their words."""
    return (
        f"WITH $q AS q UNWIND $words AS word {_words_of(table)} AS n "
        "WITH q, n, sum(word.weight) AS weight "
        f"WHERE {_conditions(table, where, is_expanded=False)} "
        f"WITH n, weight ORDER BY weight DESC, {ordered(table, (), order)} LIMIT $limit "
        "RETURN collect([n.id, weight]) AS found"
    )


@lru_cache(100)
def words_counted(table: Table, place: int) -> str:
    """Return the text that counts the rows with each word, as number *place* of a call."""
    return (
        f"UNWIND $words AS word CALL (word) {{ {_words_of(table)} AS n RETURN count(*) AS rows }} "
        f"RETURN {place} AS number, collect([word.word, rows]) AS found"
    )


_SLOT = "MATCH (s:VectorSlot {tenant: $tenant, table: $table, space: $space})"


def _near(vector: str) -> str:
    """Return how the nearest are chosen; with the *vector* where its cosine is undecided.

    A vector is read once: the server decodes it at each use of the property.
    """
    scale = 10**COSINE_DECIMALS
    return (
        f"WITH n, {vector} AS numbers WHERE numbers IS NOT NULL "
        "WITH n, numbers, 2 * vector.similarity.cosine(numbers, $vectors[number]) - 1 AS cosine "
        f"ORDER BY round(cosine, {COSINE_DECIMALS}) DESC, n.id LIMIT $limit "
        f"RETURN collect([n.id, cosine, CASE WHEN abs(cosine * {scale} - floor(cosine * {scale}) "
        f"- 0.5) < {UNDECIDED} THEN numbers END]) AS found }} RETURN number, found "
        "ORDER BY number"
    )


@lru_cache(100)
def vectors_of(table: Table) -> str:
    """Return the text that reads the vectors of rows in a space."""
    return (
        f"{_SLOT} UNWIND $keys AS key MATCH (n:{table.label} {{tenant: $tenant, id: key}}) "
        "WHERE $space IN n.embedded RETURN collect([key, n[s.property]]) AS found"
    )


@lru_cache(1_000)
def nearest(table: Table, where: Form) -> str:
    """Return the text that compares all rows that a question admits, none where they are many."""
    return (
        f"{_SLOT} WITH $q AS q, s CALL (q) {{ "
        f"{match(table, where)} WITH n LIMIT $most + 1 RETURN count(n) AS rows }} "
        "WITH q, s, rows WHERE rows <= $most "
        "UNWIND range(0, size($vectors) - 1) AS number CALL (q, s, number) { "
        f"{match(table, where)} {_near('n[s.property]')}"
    )


@lru_cache(1_000)
def nearest_by_index(table: Table, where: Form, property_: str) -> str:
    """Return the text that looks at the nearest of all by the vector index.

    Its scores are of vectors of one byte a number: the best of them are compared again.
    """
    return (
        f"{_SLOT} WHERE s.property = '{property_}' WITH $q AS q "
        "UNWIND range(0, size($vectors) - 1) AS number CALL (q, number) { "
        "CALL db.index.vector.queryNodes($index, $nearest, $vectors[number]) "
        "YIELD node AS n, score "
        f"WITH n, score WHERE {_conditions(table, where)} "
        f"WITH n ORDER BY score DESC LIMIT 3 * $limit + 50 {_near(f'n.{property_}')}"
    )


# Changes.


@lru_cache(100)
def known(table: Table, place: int) -> str:
    """Return the text that finds those of $keys that are stored, as number *place* of a call."""
    return (
        f"UNWIND $keys[{place}] AS key MATCH {_pattern(table)} "
        f"WHERE n.tenant = $tenant AND n.id = key RETURN {place} AS number, collect(key) AS found"
    )


@lru_cache(100)
def times_of(table: Table) -> tuple[str, ...]:
    """Return the columns of times."""
    return tuple(name for name, kind in table.columns.items() if kind is datetime)


def _times(table: Table) -> str:
    """Return how texts become times: for the driver to write one takes as long as a row."""
    return "".join(f", n.{name} = datetime(row.times.{name})" for name in times_of(table))


@lru_cache(1_000)
def put(table: Table, place: int) -> str:
    """Return the text that puts nodes or edges, as number *place* of a call."""
    made = f"MERGE (n:{table.label} {{tenant: $tenant, id: row.id}})"
    if table.ends:
        first, last = (end.label for end in table.ends)
        made = (
            f"MATCH (a:{first} {{tenant: $tenant, id: row.source}}) "
            f"MATCH (b:{last} {{tenant: $tenant, id: row.target}}) "
            f"CREATE (a)-[n:{table.label} {{tenant: $tenant, id: row.id}}]->(b)"
        )
    return (
        f"UNWIND $rows[{place}] AS row CALL (row) {{ {made} "
        f"SET n += row.properties{_times(table)} RETURN 1 AS one }} {_counted_as(place)}"
    )


def _counted_as(place: int) -> str:
    return f"RETURN {place} AS number, count(*) AS put"


@lru_cache(100)
def labelled(table: Table) -> str:
    """Return the text that gives nodes their further labels."""
    return (
        "UNWIND $rows AS row CALL (row) { "
        f"MATCH (n:{table.label} {{tenant: $tenant, id: row.id}}) "
        f"WITH n, row, [one IN labels(n) WHERE one <> '{table.label}'] AS before "
        "REMOVE n:$(before) SET n:$(row.labels) }"
    )


@lru_cache(100)
def edges_deleted(table: Table) -> str:
    """Return the text that deletes edges, and returns their keys."""
    return (
        f"UNWIND $keys AS key MATCH ()-[n:{table.label}]->() "
        "WHERE n.tenant = $tenant AND n.id = key DELETE n RETURN collect(key) AS found"
    )


@lru_cache(100)
def nodes_deleted(table: Table) -> str:
    """Return the text that deletes nodes, with the relations at them, and returns their keys.

    Properties are removed first: an index may return a node that the transaction has deleted.
    """
    return (
        f"UNWIND $keys AS key MATCH (n:{table.label} {{tenant: $tenant, id: key}}) "
        "SET n = {} DETACH DELETE n RETURN collect(key) AS found"
    )


@lru_cache(100)
def unlisted(table: Table, column: str) -> str:
    """Return the text that takes the texts of a column from rows; those of no other row go."""
    label, kind, _ = table.listed[column]
    return (
        f"UNWIND $keys AS key MATCH (:{table.label} {{tenant: $tenant, id: key}})"
        f"-[r:{kind}]->(o:{label}) DELETE r WITH DISTINCT o "
        f"WHERE NOT EXISTS {{ (o)<-[:{kind}]-() }} DELETE o"
    )


@lru_cache(1_000)
def listed(table: Table, column: str, place: int) -> str:
    """Return the text that relates rows to a node for each text of a column, as `put`."""
    label, kind, _ = table.listed[column]
    return (
        f"UNWIND $rows[{place}] AS row MATCH (n:{table.label} {{tenant: $tenant, id: row.id}}) "
        f"CALL (row, n) {{ UNWIND row.texts AS text "
        f"MERGE (o:{label} {{tenant: $tenant, id: text[0]}}) ON CREATE SET o += text[1] "
        f"CREATE (n)-[:{kind}]->(o) }} {_counted_as(place)}"
    )


@lru_cache(100)
def undrawn(table: Table) -> str:
    """Return the text that deletes the relations that rows have drawn."""
    return (
        f"UNWIND $keys AS key MATCH (n:{table.label} {{tenant: $tenant, id: key}})-[r]-() "
        "WHERE r.from_its_start = (startNode(r) = n) DELETE r"
    )


@lru_cache(1_000)
def drawn(table: Table, other: str, is_incoming: bool, has_properties: bool, place: int) -> str:
    """Return the text that draws relations between rows and those that they name, as `put`."""
    arrow = "(b)-[r:$(row.type) {from_its_start: false}]->(a)"
    if not is_incoming:
        arrow = "(a)-[r:$(row.type) {from_its_start: true}]->(b)"
    properties = " SET r += row.properties" if has_properties else ""
    return (
        f"UNWIND $rows[{place}] AS row CALL (row) {{ "
        f"MATCH (a:{table.label} {{tenant: $tenant, id: row.id}}) "
        f"MATCH (b:{other} {{tenant: $tenant, id: row.other}}) "
        f"CREATE {arrow}{properties} }} {_counted_as(place)}"
    )


SLOTS = """
MATCH (s:VectorSlot {tenant: $tenant, table: $table})
RETURN s.space AS space, s.property AS property ORDER BY property"""
TAKE_SLOT = """
MERGE (s:VectorSlot {tenant: $tenant, table: $table, space: $space})
SET s.property = $property, s.name = $table + ' in ' + $space"""
DROP_SLOTS = """
MATCH (s:VectorSlot {tenant: $tenant, table: $table}) WHERE s.space IN $spaces DELETE s"""


@lru_cache(100)
def embedded_any(table: Table) -> str:
    """Return the text that finds a row with a vector in a space."""
    return (
        f"MATCH (n:{table.label}) WHERE n.tenant = $tenant AND n.id IS NOT NULL "
        "AND $space IN n.embedded RETURN n.id AS id LIMIT 1"
    )


@lru_cache(100)
def vectors_put(table: Table) -> str:
    """Return the text that stores vectors in $property of rows."""
    return (
        "UNWIND $rows AS row CALL (row) { "
        f"MATCH (n:{table.label} {{tenant: $tenant, id: row.id}}) "
        "WITH n, row, coalesce(n.embedded, []) AS before "
        "SET n.embedded = [one IN before WHERE one <> $space] + [$space], n[$property] = null "
        "WITH n, row WHERE row.vector IS NOT NULL "
        "CALL db.create.setNodeVectorProperty(n, $property, row.vector) }"
    )


@lru_cache(100)
def vectors_dropped(table: Table, is_of_all: bool) -> str:
    """Return the text that deletes the vectors of a space from rows, or from all."""
    within = "n.id IS NOT NULL" if is_of_all else "n.id IN $keys"
    return (
        f"MATCH (n:{table.label}) WHERE n.tenant = $tenant AND {within} "
        "AND $space IN n.embedded SET n[$property] = null "
        "SET n.embedded = [o IN n.embedded WHERE o <> $space]"
    )


def together(texts: Sequence[str]) -> str:
    """Return the text that gives the answers of *texts* as one row: each costs the driver time.

    With the revision of the last deletion before them, and those of deletion and change after
    them: answers of several calls fit where nothing was deleted between. `properties` reads the
    node again: the server may keep a property that it has read.
    """
    parts = "\nUNION ALL\n".join(texts)
    return (
        "MATCH (m:Memory {tenant: $tenant}) WITH m, m.removed_at AS before "
        f"CALL (m) {{ {parts} }} "
        "WITH m, before, collect([number, found]) AS found WITH found, before, properties(m) AS m "
        "RETURN found, before, m.removed_at AS removed_at, m.revision AS revision"
    )


REVISION = "MATCH (m:Memory {tenant: $tenant}) RETURN m.revision AS revision"
COUNT_CHANGE = """
MATCH (m:Memory {tenant: $tenant})
SET m.revision = $revision,
    m.removed_at = CASE WHEN $removed THEN $revision ELSE m.removed_at END"""


@lru_cache(100)
def rows_of(table: Table) -> str:
    """Return the text that counts all rows."""
    return (
        f"MATCH (n:{table.label}) WHERE n.tenant = $tenant AND n.id IS NOT NULL "
        "RETURN count(n) AS rows"
    )


@lru_cache(100)
def without(table: Table, part: Table, column: str) -> str:
    """Return the text that counts the nodes whose *part* is not stored."""
    return (
        f"MATCH (n:{table.label}) WHERE n.tenant = $tenant AND n.id IS NOT NULL AND NOT EXISTS {{ "
        f"MATCH (p:{part.label} {{tenant: $tenant, id: {own(column)}}}) }} RETURN count(n) AS rows"
    )
