"""Search by words and by vectors: the word index, and `VectorStore` in SQLite."""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from sqlite3 import Cursor
from typing import TYPE_CHECKING, NamedTuple

import orjson
from msgspec import Struct

from contextgraph.errors import StoreError
from contextgraph.model import (
    EmbeddedRun,
    Near,
    Scope,
    Space,
    Vector,
    WordCounts,
    dimensions_of,
    products,
    run_text,
)
from contextgraph.ports import NodeType
from contextgraph.store import rules
from contextgraph.store.sqlite.database import Database, SqlScope, Transaction, run_of, text_of
from contextgraph.text import regex, word_weights, words as words_of

# Counting one word takes 0.01 ms at 30,000 texts.
_MOST_COUNTS = 100_000
# A text that was found is read in whole for less than going through the texts of a common word.
_READ_WHOLE = 64
# So many pages of an index are merged at once: 0.1 s. Words are found in a third of the time.
_MERGED_AT_ONCE = 500
_PLAIN = regex(r"[a-z0-9_]+")


def add_texts(
    transaction: Transaction,
    table: str,
    place: int,
    texts: Iterable[tuple[int, str]],
    split: Callable[[str], Sequence[str]] = words_of,
) -> None:
    """Index each text of *table* under its key: its distinct words, and its repository."""
    transaction.write_all(
        f"INSERT INTO {table}_text (rowid, words) VALUES (?, ?)",
        [(key, f"{_document(transaction.tenant, split(text))} @{place}") for key, text in texts],
    )


def remove_texts(transaction: Transaction, table: str, first: int, last: int) -> None:
    """Remove the texts with keys from *first* to *last* from the index."""
    keys = transaction.rows(
        f"SELECT rowid FROM {table}_text WHERE rowid BETWEEN ? AND ?", (first, last)
    )
    transaction.write_all(f"DELETE FROM {table}_text WHERE rowid = ?", keys)


def compact(transaction: Transaction) -> None:
    """Rewrite all indexes without the words of removed texts."""
    for table in ("trajectory", "recovered", "note"):
        transaction.write(f"INSERT INTO {table}_text ({table}_text) VALUES ('optimize')")


def merge(transaction: Transaction) -> None:
    """Merge segments of the indexes, which grow in number with each run that is added."""
    for table in ("trajectory", "recovered"):
        for option, value in (("usermerge", 2), ("merge", _MERGED_AT_ONCE)):
            transaction.write(
                f"INSERT INTO {table}_text ({table}_text, rank) VALUES (?, ?)", (option, value)
            )


def texts_with(
    transaction: Transaction, table: str, places: Sequence[int] | None, word: str
) -> list[int]:
    """The keys of the texts with *word*; *places* are keys of repositories, None for all."""
    named = " OR ".join(f'"@{place}"' for place in places or ())
    scope = "" if places is None else f"({named}) AND "
    # A row for each key would take three times as long to fetch.
    ((keys,),) = transaction.rows(
        f"SELECT group_concat(rowid) FROM {table}_text WHERE {table}_text MATCH ?",
        (f'{scope}"{_token(transaction.tenant, word)}"',),
    )
    rowids: list[int] = orjson.loads(f"[{keys or ''}]")
    return rowids


class Indexed(NamedTuple):
    """A table with an index of words, and its column with the key of the run."""

    table: str
    run: str


def most_relevant(
    transaction: Transaction,
    indexed: Indexed,
    scope: SqlScope,
    weights: Mapping[str, int],
    limit: int,
    first: Callable[[Sequence[int], int], list[int]],
) -> list[int]:
    """The keys of the *limit* texts in *scope* with the most weight.

    *first* gives so many of some keys, in the order of their ids, by which ties are broken.
    """
    counts = _heaviest(transaction, indexed, scope, weights, limit)
    least = min(counts.values(), default=0)
    above = first([key for key, weight in counts.items() if weight > least], limit)
    ties = [key for key, weight in counts.items() if weight == least]
    return [
        *sorted(above, key=counts.__getitem__, reverse=True),
        *first(ties, limit - len(above)),
    ]


def _heaviest(
    transaction: Transaction,
    indexed: Indexed,
    scope: SqlScope,
    weights: Mapping[str, int],
    limit: int,
) -> dict[int, int]:
    """The texts in *scope* with the most weight, and all that tie with the last: key -> weight."""
    if limit < 1:
        return {}
    places = None if scope.repository is None else [scope.repository]
    # Which of them are in another scope than a repository is known only in the end.
    is_filtered = scope.has_as_of or scope.has_excluded
    counts: dict[int, int] = {}
    rest = dict(weights)
    for word, weight in weights.items():
        left = sum(rest.values())
        if not is_filtered and (least := _least(counts, limit)):
            counts = {key: known for key, known in counts.items() if known + left >= least}
            if least > left and len(counts) <= _READ_WHOLE:
                _add_rest(transaction, indexed.table, counts, rest)  # no other text comes near
                break
        for key in texts_with(transaction, indexed.table, places, word):
            counts[key] = counts.get(key, 0) + weight
        del rest[word]
    if is_filtered:
        counts = {key: counts[key] for key in _visible(transaction, indexed, scope, counts)}
    least = _least(counts, limit)
    return {key: known for key, known in counts.items() if known >= least}


def _least(counts: Mapping[int, int], limit: int) -> int:
    """The weight of the text at place *limit*, 0 where there are no so many."""
    return sorted(counts.values())[-limit] if len(counts) >= limit else 0


def _add_rest(
    transaction: Transaction, table: str, counts: dict[int, int], weights: Mapping[str, int]
) -> None:
    """Add to the weight of each text in *counts* that of those of *weights* which it has."""
    tokens = {_token(transaction.tenant, word): weight for word, weight in weights.items()}
    texts = transaction.rows(
        f"SELECT rowid, words FROM {table}_text WHERE rowid IN (SELECT value FROM json_each(?))",
        (str([*counts]),),
    )
    for key, text in texts:
        counts[key] += sum(tokens[token] for token in tokens.keys() & text.split())


def _visible(
    transaction: Transaction, indexed: Indexed, scope: SqlScope, keys: Iterable[int]
) -> list[int]:
    """Return the *keys* in *scope*."""
    sql = (
        f"SELECT r.key FROM json_each(:keys) AS named CROSS JOIN {indexed.table} r "
        f"ON r.key = named.value WHERE {scope.where('r', indexed.run)}"
    )
    return transaction.column(sql, {**scope.parameters, "keys": str([*keys])})


class WordIndex:
    """In how many texts of one tenant a word occurs: counted on demand, then kept up to date."""

    def __init__(self, table: str) -> None:
        self._table = table
        self._lock = threading.Lock()
        self._counts: dict[str, int] = {}
        self._total = 0
        self._revision = self._removals = self._newest = -1

    def counts(self, transaction: Transaction, words: Sequence[str]) -> WordCounts:
        """The number of texts, and for each distinct word in how many of them it occurs."""
        tenant = transaction.tenant
        tokens = {word: _token(tenant, word) for word in dict.fromkeys(words)}
        with self._lock:
            if self._caught_up(transaction):
                if len(self._counts) > _MOST_COUNTS:
                    self._counts = {}
                unknown = [token for token in tokens.values() if token not in self._counts]
                self._counts.update(self._read(transaction, unknown))
                return WordCounts(
                    self._total, {word: self._counts[token] for word, token in tokens.items()}
                )
        total, _ = self._added_since(transaction, -1)
        counts = self._read(transaction, [*tokens.values()])
        return WordCounts(total, {word: counts[token] for word, token in tokens.items()})

    def weights(self, transaction: Transaction, words: Sequence[str]) -> dict[str, int]:
        """The rarest known words with their weights, see `word_weights`."""
        counts = self.counts(transaction, words)
        return word_weights(counts.total, counts.by_word)

    def _caught_up(self, transaction: Transaction) -> bool:
        """Count what was added since; False for a reader of an older state than was counted."""
        revision, removals = transaction.revision()
        if revision < self._revision:
            return False
        if revision > self._revision:
            if removals != self._removals:
                self._counts, self._total, self._newest = {}, 0, -1
            added, newest = self._added_since(transaction, self._newest)
            if added and self._counts:
                for text in transaction.column(
                    f"SELECT words FROM {self._table}_text WHERE rowid > ?", (self._newest,)
                ):
                    for token in self._counts.keys() & text.split():
                        self._counts[token] += 1
            self._total, self._newest = self._total + added, newest
            self._revision, self._removals = revision, removals
        return True

    def _added_since(self, transaction: Transaction, key: int) -> tuple[int, int]:
        """How many texts have a greater *key*, and the greatest key."""
        row = transaction.row(
            f"SELECT count(*), max(key) FROM {self._table} WHERE tenant = ? AND key > ?",
            (transaction.tenant, key),
        )
        added, newest = row or (0, None)
        return added, key if newest is None else newest

    def _read(self, transaction: Transaction, tokens: Sequence[str]) -> dict[str, int]:
        if not tokens:  # most often: the words of a run recur at its next steps
            return {}
        # One statement: one for each token would take twice as long.
        known = transaction.rows(
            f"SELECT value, doc FROM json_each(?) CROSS JOIN {self._table}_word ON term = value",
            (orjson.dumps(tokens).decode(),),
        )
        return {**dict.fromkeys(tokens, 0), **dict(known)}


def _document(tenant: int, words: Sequence[str]) -> str:
    # What `words_of` gives is in lower case: where it is ASCII it is plain.
    return " ".join(
        f"{tenant}_{word}" if word.isascii() else _token(tenant, word)
        for word in dict.fromkeys(words)
    )


def _token(tenant: int, word: str) -> str:
    """*word* as one term of *tenant* that no tokenizer takes apart or changes."""
    if _PLAIN.fullmatch(word):
        return f"{tenant}_{word}"
    return f"{tenant}@{word.encode('utf-8', 'surrogatepass').hex()}"


if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from contextgraph.model import Floats

    Numbers = NDArray[np.int64]

_NEWER = """
SELECT v.trajectory, t.place, t.seen_at, v.key, v.data
FROM vectors v CROSS JOIN trajectory t ON t.key = v.trajectory
WHERE v.key > ? AND v.space = ? ORDER BY v.key"""
_PRESENT = "SELECT key FROM vectors WHERE space = ?"
_RUN, _PLACE, _SEEN_AT, _KEY = range(4)
_GONE = 0
_RUNS_AT_ONCE = 256
# Copying so large a part of the rows costs more than multiplying all of them.
_LARGE_PART = 4


class VectorRows(Struct, frozen=True):
    """*count* rows of *vectors*, each with run, repository, time and key in *about*.

    Rows beyond *count* are free; rows of the run _GONE are of vectors that were dropped.
    """

    vectors: "Floats"
    about: "Numbers"
    count: int


class Matrix:
    """The vectors of one space: loaded at the first query, then extended by what is learned."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rows: VectorRows | None = None
        self._space = self._newest = self._revision = self._removals = -1

    def nearest(
        self, transaction: Transaction, space: int, scope: SqlScope, vector: Vector, limit: int
    ) -> list[tuple[int, Vector]]:
        """The keys of the runs in *scope* nearest to *vector*, best first, ties by id.

        *space* is the key of its space, whose vectors replace those of another one.
        """
        import numpy as np

        rows = self._caught_up(transaction, space, dimensions_of(vector.space))
        inside = np.flatnonzero(_within(transaction, rows, scope))
        if limit < 1 or not len(inside):
            return []
        cosines = np.round(_multiplied(rows, inside, vector), rules.COSINE_DECIMALS)
        if len(cosines) > limit:
            least = np.partition(cosines, -limit)[-limit]
            inside, cosines = inside[cosines >= least], cosines[cosines >= least]
        keys = rows.about[_RUN, inside].tolist()
        ids = _ids(transaction, keys)
        # A run without an id was added after this reader began.
        ranked = sorted(
            (-value, ids[key], key, row)
            for value, key, row in zip(cosines.tolist(), keys, inside.tolist(), strict=True)
            if key in ids
        )
        return [
            (key, Vector(vector.space, rows.vectors[row].tobytes()))
            for _, _, key, row in ranked[:limit]
        ]

    def _caught_up(self, transaction: Transaction, space: int, dimensions: int) -> VectorRows:
        with self._lock:
            if self._rows is None or space != self._space:
                sql = "SELECT count(*) FROM vectors WHERE space = ?"
                self._rows = _allocated(dimensions, transaction.number(sql, (space,)))
                self._space, self._newest, self._revision, self._removals = space, -1, -1, -1
            revision, removals = transaction.revision()
            rows = self._rows = self._with_newer(transaction, self._rows)
            if revision > self._revision:
                if self._removals not in (-1, removals):
                    rows = self._rows = _only(rows, transaction.column(_PRESENT, (space,)))
                self._revision, self._removals = revision, removals
            return rows

    def _with_newer(self, transaction: Transaction, rows: VectorRows) -> VectorRows:
        newer = transaction.connection.execute(_NEWER, (self._newest, self._space))
        while batch := newer.fetchmany(_RUNS_AT_ONCE):
            rows = _extended(rows, *_parsed(batch, rows.vectors.shape[1]))
            self._newest = batch[-1][_KEY]
        return rows


def _allocated(dimensions: int, size: int) -> VectorRows:
    import numpy as np

    about = np.zeros((4, size), dtype=np.int64)
    return VectorRows(np.empty((size, dimensions), dtype=np.float32), about, 0)


def _parsed(
    batch: Sequence[tuple[int, int, int, int, bytes]], dimensions: int
) -> "tuple[Floats, Numbers]":
    """The vectors of runs that have one, with what is known about each."""
    import numpy as np

    numbers = np.frombuffer(b"".join(row[-1] for row in batch), "<f4").reshape(-1, dimensions)
    about = np.array([row[:-1] for row in batch], dtype=np.int64).T
    has_vector = numbers.any(axis=1)
    return numbers[has_vector], about[:, has_vector]


def _extended(rows: VectorRows, vectors: "Floats", about: "Numbers") -> VectorRows:
    """*rows* and more; readers of *rows* can go on reading them."""
    count = rows.count + len(vectors)
    if count > len(rows.vectors):
        larger = _allocated(rows.vectors.shape[1], count + count // 2)
        larger.vectors[: rows.count] = rows.vectors[: rows.count]
        larger.about[:, : rows.count] = rows.about[:, : rows.count]
        rows = VectorRows(larger.vectors, larger.about, rows.count)
    rows.vectors[rows.count : count] = vectors
    rows.about[:, rows.count : count] = about
    return VectorRows(rows.vectors, rows.about, count)


def _only(rows: VectorRows, present: Sequence[int]) -> VectorRows:
    """*rows* without vectors whose keys are not *present*: of removed or re-embedded runs."""
    import numpy as np

    about = rows.about.copy()
    is_present = np.isin(about[_KEY], np.array(present, dtype=np.int64))
    about[_RUN, ~is_present] = _GONE
    return VectorRows(rows.vectors, about, rows.count)


def _within(transaction: Transaction, rows: VectorRows, scope: SqlScope) -> "NDArray[np.bool_]":
    import numpy as np

    about = rows.about[:, : rows.count]
    inside: NDArray[np.bool_] = about[_RUN] != _GONE
    if scope.repository is not None:
        inside &= about[_PLACE] == scope.repository
    if scope.has_as_of:
        inside &= about[_SEEN_AT] <= scope.parameters["as_of"]
    if scope.has_excluded:
        excluded = np.array(transaction.excluded(scope), dtype=np.int64)
        inside &= ~np.isin(about[_RUN], excluded)
    return inside


def _multiplied(rows: VectorRows, inside: "NDArray[np.intp]", vector: Vector) -> "Floats":
    if len(inside) > rows.count // _LARGE_PART:
        return products(rows.vectors[: rows.count], vector)[inside]
    return products(rows.vectors[inside], vector)


def _ids(transaction: Transaction, keys: Sequence[int]) -> dict[int, str]:
    sql = "SELECT key, id FROM trajectory WHERE key IN (SELECT value FROM json_each(?))"
    return dict(transaction.rows(sql, (str(keys),)))


_ACTIVE = "SELECT key, name, runs, similarity_threshold FROM space WHERE tenant = ? AND active"
_NOT_EMBEDDED = (
    "AND NOT EXISTS (SELECT 1 FROM vectors v WHERE v.trajectory = t.key AND v.space = :space)"
)
_TO_EMBED = """
SELECT t.key FROM trajectory t WHERE t.tenant = :tenant AND t.id > :after {not_embedded}
ORDER BY t.id LIMIT :limit"""
_NODES_TO_EMBED = """
SELECT id, description, action_sequence FROM fragment
WHERE tenant = :tenant AND space IS NOT :space
UNION ALL SELECT id, situation, json_array(strategy) FROM methodology
WHERE tenant = :tenant AND space IS NOT :space ORDER BY id LIMIT :limit"""
_NODE_TABLES = ("fragment", "methodology")
_NODES_OF_SPACE = "FROM {} WHERE tenant = ? AND space = ? AND vector IS NOT NULL"
_ROWS_OF_A_SPACE = (
    ("vectors", "space"),
    ("space_model", "space"),
    ("space", "key"),
)


class SqliteVectors:
    """`VectorStore`; the docstrings of its methods are those of the protocol."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def active_space(self) -> Space | None:
        with self._database.reading() as transaction:
            active = _active(transaction)
            return active[1] if active else None

    def space_model(self, space: str) -> bytes | None:
        with self._database.reading() as transaction:
            row = transaction.row(
                "SELECT m.data FROM space s JOIN space_model m ON m.space = s.key "
                "WHERE s.tenant = ? AND s.name = ?",
                (transaction.tenant, space),
            )
            return None if row is None else row[0]

    def prepare(self, space: Space, model: bytes | None) -> None:
        dimensions_of(space.name)  # raises where the name has none
        with self._database.writing() as transaction:
            is_new = not _space_key(transaction, space.name)
            key = transaction.number(
                "INSERT INTO space (tenant, name, runs, similarity_threshold, active) "
                "VALUES (?, ?, ?, ?, 0) "
                "ON CONFLICT DO UPDATE SET runs = excluded.runs, "
                "similarity_threshold = excluded.similarity_threshold "
                "RETURNING key",
                (transaction.tenant, space.name, space.runs, space.similarity_threshold),
            )
            if is_new and model is not None:
                transaction.write("INSERT INTO space_model VALUES (?, ?)", (key, model))

    def switch(self, space: str) -> None:
        with self._database.writing() as transaction:
            active = _prepared(transaction, space)
            others = transaction.rows(
                "SELECT key FROM space WHERE tenant = ? AND key <> ?", (transaction.tenant, active)
            )
            for table, column in _ROWS_OF_A_SPACE:
                transaction.write_all(f"DELETE FROM {table} WHERE {column} = ?", others)
            transaction.write("UPDATE space SET active = 1 WHERE key = ?", (active,))

    def texts_to_embed(
        self, limit: int, space: str | None = None, after: str = ""
    ) -> Mapping[str, str]:
        with self._database.reading() as transaction:
            key = _space_key(transaction, space) if space is not None else 0
            keys = transaction.column(
                _TO_EMBED.format(not_embedded=_NOT_EMBEDDED if key else ""),
                {
                    "tenant": transaction.tenant,
                    "limit": max(0, limit),
                    "after": after,
                    "space": key,
                },
            )
            runs = transaction.trajectories(keys)
            return {runs[key].id: run_text(runs[key]) for key in keys}

    def add(self, space: str, vectors: Mapping[str, Vector | None]) -> None:
        with self._database.writing() as transaction:
            _prepared(transaction, space)
            for trajectory_id, vector in vectors.items():
                if run := run_of(transaction, trajectory_id):
                    insert_vector(transaction, run.key, EmbeddedRun(space, vector))

    def nearest(self, vector: Vector, scope: Scope, limit: int) -> Sequence[Near]:
        with self._database.reading() as transaction:
            active = _active(transaction)
            rules.check_space(active[1] if active else None, vector)
            assert active is not None  # or the check has raised
            within = transaction.scoped(scope)
            matrix = self._database.cached(Matrix)
            near = dict(matrix.nearest(transaction, active[0], within, vector, limit))
            runs = transaction.trajectories(list(near))
            return [Near(runs[key], own) for key, own in near.items()]

    def nodes_to_embed(self, limit: int, space: str) -> Mapping[str, str]:
        with self._database.reading() as transaction:
            named = {"tenant": transaction.tenant, "space": space, "limit": max(0, limit)}
            found = transaction.rows(_NODES_TO_EMBED, named)
        return {id_: " ".join((head, *orjson.loads(parts))) for id_, head, parts in found}

    def add_nodes(self, space: str, vectors: Mapping[str, Vector | None]) -> None:
        with self._database.writing() as transaction:
            for table in _NODE_TABLES:
                transaction.write_all(
                    f"UPDATE {table} SET space = ?, vector = ? WHERE tenant = ? AND id = ?",
                    [
                        (space, vector and vector.data, transaction.tenant, id_)
                        for id_, vector in vectors.items()
                    ],
                )

    def nearest_nodes(
        self, vector: Vector, node_type: NodeType, limit: int
    ) -> Mapping[tuple[str, str], Vector]:
        within = _NODES_OF_SPACE.format(node_type.lower())
        of_run = "coalesce((SELECT t.id FROM trajectory t WHERE t.key = trajectory), '')"
        run = of_run if node_type == "Fragment" else "''"
        with self._database.reading() as transaction:
            named = (transaction.tenant, vector.space)
            cursor = transaction.connection.execute(f"SELECT id, vector {within}", named)
            (near,) = nearest_of(cursor, [vector], limit)
            sql = f"SELECT id, {run}, vector {within} AND id IN (SELECT value FROM json_each(?))"
            known = {
                id_: (of, data)
                for id_, of, data in transaction.rows(sql, (*named, text_of([*near])))
            }
        return {(known[id_][0], id_): Vector(vector.space, known[id_][1]) for id_ in near}


def _active(transaction: Transaction) -> tuple[int, Space] | None:
    """The active space, after its key."""
    row = transaction.row(_ACTIVE, (transaction.tenant,))
    return None if row is None else (row[0], Space(*row[1:]))


def _space_key(transaction: Transaction, name: str) -> int:
    return transaction.number(
        "SELECT key FROM space WHERE tenant = ? AND name = ?", (transaction.tenant, name)
    )


def _prepared(transaction: Transaction, name: str) -> int:
    key = _space_key(transaction, name)
    if not key:
        raise StoreError(f"space {name} was not prepared, or another one has replaced it since")
    return key


def insert_vector(transaction: Transaction, run: int, embedded: EmbeddedRun) -> None:
    """Write the vector of a run, unless its space has been dropped or has one of the run."""
    data = embedded.vector.data if embedded.vector else bytes(4 * dimensions_of(embedded.space))
    transaction.write(
        "INSERT OR IGNORE INTO vectors (trajectory, space, data) "
        "SELECT ?, key, ? FROM space WHERE tenant = ? AND name = ?",
        (run, data, transaction.tenant, embedded.space),
    )


_VECTORS_AT_ONCE = 4_096


def nearest_of(cursor: Cursor, vectors: Sequence[Vector], limit: int) -> list[dict[str, float]]:
    """Return for each of *vectors* the ids of the nearest rows (id, vector), with cosines.

    The rows of *cursor* are read once.
    """
    import numpy as np

    ids: list[str] = []
    parts = [np.empty((len(vectors), 0), dtype="<f4")]
    while some := cursor.fetchmany(_VECTORS_AT_ONCE):
        ids += [id_ for id_, _ in some]
        numbers = np.frombuffer(b"".join(data for _, data in some), dtype="<f4")
        rows = numbers.reshape(len(some), -1)
        parts.append(np.stack([products(rows, vector) for vector in vectors]))
    names = np.array(ids)
    nearest = []
    for row in np.round(np.concatenate(parts, axis=1).astype(float), rules.COSINE_DECIMALS):
        first = np.lexsort((names, -row))[: max(0, limit)]
        nearest.append(dict(zip(names[first].tolist(), row[first].tolist(), strict=True)))
    return nearest
