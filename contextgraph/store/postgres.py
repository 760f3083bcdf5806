"""Notes in PostgreSQL with pgvector: one connection for each process, retries, tables."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from threading import RLock
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar
from urllib.parse import urlsplit

from contextgraph.errors import (
    MissingExtraError,
    SchemaError,
    StoreError,
    StoreUnavailableError,
)
from contextgraph.lazy import replace
from contextgraph.model import (
    Note,
    NoteKind,
    NoteScope,
)
from contextgraph.ports import NoteChange, OnDamaged
from contextgraph.store import rules
from contextgraph.store.columns import json_of
from contextgraph.text import stems
from contextgraph.vectors import Vector, dimensions_of

if TYPE_CHECKING:
    from psycopg.sql import SQL, Composed


if TYPE_CHECKING:
    import psycopg

    Cursor: TypeAlias = psycopg.Cursor[tuple[Any, ...]]

T = TypeVar("T")

_CONNECT_SECONDS = 10
_STATEMENT_MILLISECONDS = 60_000
_VERSION = 1
_LOCK = 7_316_505  # of the migration; no other program is likely to use it
# `words` is searched by place: those of one repository are not mixed with those of others.
_SCHEMA = """
CREATE EXTENSION IF NOT EXISTS vector;
CREATE TABLE contextgraph_version (version integer NOT NULL);
CREATE TABLE contextgraph_place (
    key integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant text NOT NULL, repo text NOT NULL, kind text NOT NULL, UNIQUE (tenant, repo, kind)
);
CREATE TABLE contextgraph_note (
    key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant text NOT NULL, id text COLLATE "C" NOT NULL, place integer NOT NULL,
    live boolean NOT NULL, pinned boolean NOT NULL, created_at timestamptz NOT NULL,
    tags text[] NOT NULL, targets text[] NOT NULL, data text NOT NULL,
    space text, vector vector, UNIQUE (tenant, id)
);
CREATE INDEX ON contextgraph_note (place, created_at) WHERE live;
CREATE INDEX ON contextgraph_note USING gin (targets);
CREATE TABLE contextgraph_note_word (
    place integer NOT NULL, word text COLLATE "C" NOT NULL, note bigint NOT NULL
        REFERENCES contextgraph_note ON DELETE CASCADE,
    PRIMARY KEY (place, word, note)
);
CREATE INDEX ON contextgraph_note_word (note);
INSERT INTO contextgraph_version VALUES (1)"""
_IN_THE_WAY = ("40001", "40P01")  # serialization failure, deadlock


class Connection:
    """The database at *address*, opened when it is first used. Threads share one connection.

    It is opened again after the server was away.
    """

    def __init__(self, address: str) -> None:
        parts = urlsplit(address)
        host = parts.netloc.rpartition("@")[2]
        self.name = f"{parts.scheme}://{host}{parts.path}"  # without user, password and options
        self._address = address
        self._connection: psycopg.Connection[tuple[Any, ...]] | None = None
        self._lock = RLock()

    def run(self, work: Callable[["Cursor"], T]) -> T:
        """Run *work* in one transaction.

        It is tried once more where nothing was committed: the connection was lost before that, or
        another writer was in the way.
        """
        with self._lock, _store_errors(self.name):
            try:
                return self._once(work)
            except _NotCommittedError:
                return self._once(work, is_last=True)

    def _once(self, work: Callable[["Cursor"], T], *, is_last: bool = False) -> T:
        connection = self._connection = self._connection or self._connected()
        try:
            with connection.cursor() as cursor:
                result = work(cursor)
        except BaseException as error:
            if connection.closed:
                self._connection = None
            else:
                connection.rollback()
            is_retried = connection.closed or getattr(error, "sqlstate", None) in _IN_THE_WAY
            if is_retried and not is_last:
                raise _NotCommittedError from error
            raise
        try:
            connection.commit()
        finally:
            if connection.closed:
                self._connection = None
        return result

    def _connected(self) -> "psycopg.Connection[tuple[Any, ...]]":
        connection: psycopg.Connection[tuple[Any, ...]] = _driver().connect(
            self._address,
            connect_timeout=_CONNECT_SECONDS,
            # Plans for the values given: an index of vectors is of one space.
            prepare_threshold=None,
            options=f"-c statement_timeout={_STATEMENT_MILLISECONDS}",
        )
        try:
            _migrate(connection, self.name)
        except BaseException:
            connection.close()
            raise
        return connection

    def close(self) -> None:
        """Release the connection."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None


class _NotCommittedError(Exception):
    """Another attempt is worth it."""


def _driver() -> Any:
    try:
        import psycopg
    except ImportError as error:
        raise MissingExtraError(
            "notes in PostgreSQL need psycopg; install it with: "
            "pip install 'contextgraph-memory[postgres]'"
        ) from error
    return psycopg


def _migrate(connection: "psycopg.Connection[Any]", name: str) -> None:
    """Create the tables where there are none; others may do so at the same moment."""
    with connection.transaction(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        (exists,) = row_of(cursor, "SELECT to_regclass('contextgraph_version') IS NOT NULL", ())
        if not exists:
            cursor.execute(_SCHEMA)
        (version,) = row_of(cursor, "SELECT version FROM contextgraph_version", ())
    if version != _VERSION:
        raise SchemaError(f"{name} has notes of schema {version}, this version needs {_VERSION}")


def row_of(cursor: "Cursor", sql: str, given: Sequence[object]) -> tuple[Any, ...]:
    """The only row of a statement that gives one."""
    row: tuple[Any, ...] | None = cursor.execute(sql, given).fetchone()
    assert row is not None  # each of these statements gives one
    return row


@contextmanager
def _store_errors(name: str) -> Iterator[None]:
    """Turn what the driver raises into a `StoreError` about *name*."""
    try:
        yield
    except StoreError:
        raise
    except _driver().Error as error:
        raise _failure(name, error) from error


def _failure(name: str, error: "psycopg.Error") -> StoreError:
    from psycopg import OperationalError, errors

    reason = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, errors.FeatureNotSupported | errors.UndefinedFile):
        return StoreError(f"{name} lacks the extension pgvector; install it on the server")
    if isinstance(error, errors.InsufficientPrivilege):
        return StoreError(f"{name} does not allow this user to do that: {reason}")
    if isinstance(error, OperationalError) and error.sqlstate is None:
        return StoreUnavailableError(
            f"{name} cannot be reached; check the address and that the server runs: {reason}"
        )
    if isinstance(error, OperationalError):
        return StoreUnavailableError(f"{name} did not do it; try again: {reason}")
    return StoreError(f"{name} refused it: {reason}")


# What is written comes as one JSON array of rows, so that many notes take as few statements as one.
_PLACES = """
INSERT INTO contextgraph_place (tenant, repo, kind)
SELECT DISTINCT %(tenant)s, r.repo, r.kind
FROM jsonb_to_recordset(%(rows)s::jsonb) AS r(repo text, kind text) ORDER BY 2, 3
ON CONFLICT DO NOTHING"""
_PUT = """
INSERT INTO contextgraph_note
    (tenant, id, place, live, pinned, created_at, tags, targets, data)
SELECT p.tenant, r.id, p.key, r.live, r.pinned, r.created_at, r.tags, r.targets, r.data
FROM jsonb_to_recordset(%(rows)s::jsonb) AS r(id text, repo text, kind text, live boolean,
    pinned boolean, created_at timestamptz, tags text[], targets text[], data text)
JOIN contextgraph_place p ON p.tenant = %(tenant)s AND p.repo = r.repo AND p.kind = r.kind
ORDER BY r.id COLLATE "C"
ON CONFLICT (tenant, id) DO UPDATE SET place = excluded.place, live = excluded.live,
    pinned = excluded.pinned, created_at = excluded.created_at, tags = excluded.tags,
    targets = excluded.targets, data = excluded.data"""
_NO_VECTORS = """
UPDATE contextgraph_note SET space = NULL, vector = NULL
WHERE tenant = %(tenant)s AND id = ANY(%(ids)s)"""
_NO_WORDS = """
DELETE FROM contextgraph_note_word WHERE note IN (
    SELECT key FROM contextgraph_note WHERE tenant = %(tenant)s AND id = ANY(%(ids)s))"""
_WORDS = """
INSERT INTO contextgraph_note_word
SELECT n.place, word, n.key
FROM jsonb_to_recordset(%(rows)s::jsonb) AS r(id text, words text[])
JOIN contextgraph_note n ON n.tenant = %(tenant)s AND n.id = r.id CROSS JOIN unnest(r.words) word"""
_OF_IDS = """
SELECT data FROM contextgraph_note WHERE tenant = %s AND id = ANY(%s) ORDER BY id"""
# Without other criteria, only those with most words can be among the first.
_FOR_TEXT = """
SELECT n.data FROM (
    SELECT note, count(*) AS found FROM contextgraph_note_word
    WHERE place = ANY(%(places)s) AND word = ANY(%(words)s)
    GROUP BY note ORDER BY found DESC FETCH FIRST %(most)s ROWS WITH TIES
) f JOIN contextgraph_note n ON n.key = f.note
WHERE n.tags @> %(tags)s AND (n.pinned OR NOT %(pinned)s)
ORDER BY f.found DESC, n.created_at DESC, n.id LIMIT %(limit)s"""
_NEWEST = """
SELECT data FROM contextgraph_note WHERE place = ANY(%(places)s) AND live AND tags @> %(tags)s
    AND (pinned OR NOT %(pinned)s)
ORDER BY created_at DESC, id DESC LIMIT %(limit)s"""
_NEAREST = """
SELECT id, 1 - distance FROM (
    SELECT id, {distance} AS distance FROM contextgraph_note n
    WHERE tenant = {tenant} AND space = {space} AND vector IS NOT NULL AND live
        AND place = ANY({places}) AND tags @> {tags} AND (pinned OR NOT {pinned})
    ORDER BY {order} LIMIT {most}
) found"""
# More vectors than these are searched by the index of their space, which is not exact.
_MOST_COMPARED = 20_000
_WIDEST = 1_000  # the most that pgvector looks at before it goes on from there
_TO_EMBED = """
SELECT data FROM contextgraph_note WHERE tenant = %s AND live AND id > %s
AND (%s::text IS NULL OR space IS DISTINCT FROM %s) ORDER BY id LIMIT %s"""
_ALL = 2**31


class PostgresNotes:
    """`NoteStore` in the database at *address*; its methods are those of the protocol.

    *address* is a URL as libpq knows it; a password is better set in ``PGPASSWORD`` or
    ``~/.pgpass``. Nothing is opened until first used. Threads share one connection; it is opened
    again after the server was away.
    """

    def __init__(self, address: str, tenant: str = "default") -> None:
        self._connection, self._tenant = Connection(address), tenant

    def change(
        self, ids: Sequence[str] = (), function: NoteChange = replace, new: Sequence[Note] = ()
    ) -> Sequence[Note]:
        def work(cursor: "Cursor") -> list[Note]:
            self._put_all(cursor, new)
            stored = _notes(cursor, f"{_OF_IDS} FOR UPDATE", (self._tenant, [*ids]))
            changed = [function(note) for note in stored]
            self._put_all(cursor, changed)
            return changed

        return self._connection.run(work)

    def get(self, ids: Sequence[str]) -> Mapping[str, Note]:
        notes = self._connection.run(lambda cursor: _notes(cursor, _OF_IDS, (self._tenant, [*ids])))
        return {note.id: note for note in notes}

    def for_text(self, words: Sequence[str], scope: NoteScope, limit: int) -> Sequence[Note]:
        most = _ALL if scope.tags or scope.pinned else max(1, limit)
        extra = {"words": [*{*words}], "most": most, "limit": max(0, limit)}
        return self._connection.run(
            lambda cursor: _notes(cursor, _FOR_TEXT, self._within(cursor, scope, extra))
        )

    def nearest(self, vector: Vector, scope: NoteScope, limit: int) -> Mapping[str, float]:
        # Of equal cosines those with the least ids come first: look at some more.
        most = max(0, limit) * 2 + 10

        def work(cursor: "Cursor") -> list[tuple[str, float]]:
            cursor.execute(self._nearest(cursor, vector, scope, most))
            return cursor.fetchall()

        ranked = [
            (-round(cosine, rules.COSINE_DECIMALS), id_)
            for id_, cosine in self._connection.run(work)
        ]
        return {id_: -cosine for cosine, id_ in sorted(ranked)[: max(0, limit)]}

    def newest(self, scope: NoteScope, limit: int) -> Sequence[Note]:
        extra = {"limit": max(0, limit)}
        return self._connection.run(
            lambda cursor: _notes(cursor, _NEWEST, self._within(cursor, scope, extra))
        )

    def linking(self, ids: Sequence[str]) -> Sequence[Note]:
        sql = (
            "SELECT data FROM contextgraph_note WHERE targets && %s::text[] AND tenant = %s "
            "ORDER BY id"
        )
        return self._connection.run(lambda cursor: _notes(cursor, sql, ([*ids], self._tenant)))

    def counts(self) -> Mapping[NoteKind, int]:
        sql = (
            "SELECT kind, count(*) FROM contextgraph_note n JOIN contextgraph_place p "
            "ON p.key = n.place WHERE p.tenant = %s AND live GROUP BY kind ORDER BY kind"
        )
        counts = self._connection.run(
            lambda cursor: cursor.execute(sql, (self._tenant,)).fetchall()
        )
        return {NoteKind(kind): count for kind, count in counts}

    def all(self, on_damaged: OnDamaged | None = None) -> Iterator[Note]:
        return rules.paged(self._page, rules.note_of, on_damaged)

    def _page(self, after: str, limit: int) -> Sequence[tuple[str, str]]:
        sql = (
            "SELECT id, data FROM contextgraph_note WHERE tenant = %s AND id > %s "
            "ORDER BY id LIMIT %s"
        )
        given = (self._tenant, after, limit)
        return self._connection.run(lambda cursor: cursor.execute(sql, given).fetchall())

    def texts_to_embed(
        self, limit: int, space: str | None = None, after: str = ""
    ) -> Mapping[str, str]:
        given = (self._tenant, after, space, space, max(0, limit))
        notes = self._connection.run(lambda cursor: _notes(cursor, _TO_EMBED, given))
        return {note.id: rules.note_text(note) for note in notes}

    def add(self, space: str, vectors: Mapping[str, Vector | None]) -> None:
        given = [
            (space, _literal(vector) if vector else None, self._tenant, id_)
            for id_, vector in sorted(vectors.items())
        ]

        def work(cursor: "Cursor") -> None:
            cursor.execute(_index_of(self._tenant, space))
            cursor.executemany(
                "UPDATE contextgraph_note SET space = %s, vector = %s WHERE tenant = %s "
                "AND id = %s",
                given,
            )

        self._connection.run(work)

    def delete(self, ids: Sequence[str]) -> int:
        sql = "DELETE FROM contextgraph_note WHERE tenant = %s AND id = ANY(%s)"
        return self._connection.run(
            lambda cursor: cursor.execute(sql, (self._tenant, [*ids])).rowcount
        )

    def close(self) -> None:
        self._connection.close()

    def _put_all(self, cursor: "Cursor", notes: Iterable[Note]) -> None:
        given = {note.id: note for note in notes}
        before = {note.id: note for note in _notes(cursor, _OF_IDS, (self._tenant, [*given]))}
        for sql in (_PLACES, _PUT):
            self._write(cursor, sql, rows=json_of([_row(note) for note in given.values()]))
        texts = {id_: rules.note_text(note) for id_, note in given.items()}
        other = [id_ for id_, note in before.items() if rules.note_text(note) != texts[id_]]
        self._write(cursor, _NO_VECTORS, ids=other)
        searched = [
            note
            for note in given.values()
            if note.id not in before or _searched(before[note.id]) != _searched(note)
        ]
        self._write(cursor, _NO_WORDS, ids=[note.id for note in searched])
        words = ((note.id, {*stems(texts[note.id])}) for note in searched if note.is_live)
        rows = [{"id": id_, "words": [*note_words]} for id_, note_words in words]
        self._write(cursor, _WORDS, rows=json_of(rows))

    def _write(self, cursor: "Cursor", sql: str, **given: object) -> None:
        if any(value not in ([], "[]") for value in given.values()):
            cursor.execute(sql, {"tenant": self._tenant, **given})

    def _within(
        self, cursor: "Cursor", scope: NoteScope, extra: Mapping[str, object]
    ) -> dict[str, object]:
        """*extra*, with the parameters of *scope*."""
        cursor.execute(
            "SELECT key FROM contextgraph_place WHERE tenant = %s AND kind = ANY(%s) "
            "AND (%s::text[] IS NULL OR repo = ANY(%s))",
            (self._tenant, [*scope.kinds], *[scope.repos and [*scope.repos]] * 2),
        )
        places = [key for (key,) in cursor]
        return {"places": places, "tags": [*scope.tags], "pinned": scope.pinned, **extra}

    def _nearest(self, cursor: "Cursor", vector: Vector, scope: NoteScope, most: int) -> "Composed":
        """The query for the vectors in *scope*: by the index where these are many."""
        from psycopg.sql import SQL, Literal

        given = self._within(cursor, scope, {})
        (compared,) = row_of(
            cursor,
            "SELECT count(*) FROM (SELECT 1 FROM contextgraph_note WHERE live "
            "AND place = ANY(%s) LIMIT %s) compared",
            (given["places"], _MOST_COMPARED + 1),
        )
        cursor.execute("SET LOCAL hnsw.iterative_scan = strict_order")
        cursor.execute(SQL("SET LOCAL hnsw.ef_search = {}").format(Literal(min(most, _WIDEST))))
        distance = SQL("{} <=> {}").format(_typed(vector.space), Literal(_literal(vector)))
        # An expression is not searched by an index.
        exact = SQL("({}) + 0").format(distance)
        return SQL(_NEAREST).format(
            distance=distance,
            tenant=Literal(self._tenant),
            space=Literal(vector.space),
            places=Literal(given["places"]),
            tags=SQL("{}::text[]").format(Literal(given["tags"])),
            pinned=Literal(scope.pinned),
            order=exact if compared <= _MOST_COMPARED else distance,
            most=Literal(most),
        )


def _notes(cursor: "Cursor", sql: str, given: Any) -> list[Note]:
    cursor.execute(sql, given)
    return [rules.note_of(data) for (data,) in cursor]


def _row(note: Note) -> dict[str, object]:
    return {
        "id": note.id,
        "repo": note.repo,
        "kind": note.kind,
        "live": note.is_live,
        "pinned": note.pinned,
        "created_at": note.created_at.isoformat(),
        "tags": [*note.tags],
        "targets": sorted({link.target for link in note.links}),
        "data": json_of(note),
    }


def _searched(note: Note) -> tuple[object, ...]:
    """Return what the stored words of *note* depend on."""
    return note.is_live, note.repo, note.kind, rules.note_text(note)


def _literal(vector: Vector) -> str:
    return str(vector.numbers().tolist())


def _typed(space: str) -> "Composed | SQL":
    """The column of vectors with the size of those of *space*, as indexes need it."""
    from psycopg.sql import SQL, Literal

    dimensions = dimensions_of(space)
    # pgvector has indexes of `vector` up to 2,000 dimensions, of `halfvec` up to 4,000.
    kind = SQL("vector" if dimensions <= 2_000 else "halfvec")
    return SQL("(vector::{}({}))").format(kind, Literal(dimensions))


def _index_of(tenant: str, space: str) -> "Composed":
    """The statement that creates the index of the vectors of *space*, where there is none."""
    from psycopg.sql import SQL, Identifier, Literal

    if dimensions_of(space) > 4_000:
        return SQL("SELECT {}").format(Literal(1))
    kind = "vector" if dimensions_of(space) <= 2_000 else "halfvec"
    name = blake2b(f"{tenant}\n{space}".encode(), digest_size=8).hexdigest()
    return SQL(
        "CREATE INDEX IF NOT EXISTS {} ON contextgraph_note USING hnsw ({} {}) "
        "WHERE live AND tenant = {} AND space = {}"
    ).format(
        Identifier(f"contextgraph_vector_{name}"),
        _typed(space),
        SQL(f"{kind}_cosine_ops"),
        Literal(tenant),
        Literal(space),
    )
