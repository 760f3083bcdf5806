"""Vectors of notes in PostgreSQL (pgvector) or Qdrant; the notes themselves are in the store."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import RLock
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID, uuid5

from contextgraph.errors import EmbeddingError, MissingExtraError, StoreError, StoreUnavailableError
from contextgraph.model import COSINE_DECIMALS, Note, NoteScope, Vector, dimensions_of
from contextgraph.store import rules
from contextgraph.store.memory_store import NoteStore
from contextgraph.store.protocols import Hit, Indexed, VectorIndex
from contextgraph.system.remote import NOTES_ADDRESS, split_address
from contextgraph.text import digest

if TYPE_CHECKING:
    import psycopg
    from psycopg.sql import SQL, Composed
    from qdrant_client import QdrantClient

T = TypeVar("T")


class IndexedNotes(NoteStore):
    """The *notes* of a store with their vectors in *index*.

    A note is marked there as embedded in the space *at this index*: with another index, or none,
    it waits to be embedded again. While the index is away notes are found by their words.
    """

    def __init__(self, notes: NoteStore, index: VectorIndex) -> None:
        super().__init__(notes._port, notes._whole)
        self._index = index
        self._is_filled = False

    def nearest(
        self, vectors: Sequence[Vector], scope: NoteScope, limit: int
    ) -> Sequence[Mapping[str, float]]:
        return [self._nearest(vector, scope, limit) for vector in vectors]

    def _nearest(self, vector: Vector, scope: NoteScope, limit: int) -> Mapping[str, float]:
        limit = max(0, limit)
        # Of equal cosines those with the least ids come first: look at some more.
        most = 2 * limit + 10
        while True:
            with _embedding_errors():
                hits = self._index.search(vector, scope.repos, most)
            known = self.get([hit.id for hit in hits])
            ranked = [
                (-round(hit.cosine, COSINE_DECIMALS), hit.id)
                for hit in hits
                if (note := known.get(hit.id)) and scope.has(note)
                if scope.live in (None, note.is_live)
                if hit.digest == _digest(note)  # it waits to be embedded again
            ]
            if len(ranked) >= limit or len(hits) < most:
                return {id_: -cosine for cosine, id_ in sorted(ranked)[:limit]}
            most *= 4

    def texts_to_embed(
        self, limit: int, space: str | None = None, after: str = ""
    ) -> Mapping[str, str]:
        if space is None:
            return super().texts_to_embed(limit, None, after)
        try:
            self._forget_lost()
        except StoreError as error:
            logging.getLogger(__name__).warning("%s; notes wait to be embedded", error)
            return {}
        return super().texts_to_embed(limit, self._mark(space), after)

    def add(self, space: str, vectors: Mapping[str, Vector | None]) -> None:
        indexed = [
            Indexed(id_, note.repo, _digest(note), vectors[id_])
            for id_, note in sorted(self.get([*vectors]).items())
        ]
        with _embedding_errors():
            self._forget_lost()
            self._index.upsert(space, indexed)
        super().add(self._mark(space), dict.fromkeys(vectors))

    def _forget_lost(self) -> None:
        """Have all notes wait where the index was emptied: before the first of them is added."""
        if not self._is_filled:
            if not self._index.count():
                super().add("", dict.fromkeys(note.id for note in self.all()))
            self._is_filled = True

    def delete(self, ids: Sequence[str]) -> int:
        self._index.delete(ids)
        return super().delete(ids)

    def close(self) -> None:
        self._index.close()

    def _mark(self, space: str) -> str:
        return f"{space} at {self._index.name}"


@contextmanager
def _embedding_errors() -> Iterator[None]:
    """Turn the errors of an index into `EmbeddingError`: notes wait, or are found by words."""
    try:
        yield
    except StoreError as error:
        raise EmbeddingError(str(error)) from error


def _digest(note: Note) -> str:
    return digest(rules.note_text(note), 12)


_CONNECT_SECONDS = 10
_STATEMENT_MILLISECONDS = 60_000
_LOCK = 7_316_505  # while the table is created; no other program is likely to use it
_IN_THE_WAY = ("40001", "40P01")  # serialization failure, deadlock
_SCHEMA = """
CREATE EXTENSION IF NOT EXISTS vector;
CREATE TABLE contextgraph_vector (
    tenant text NOT NULL, id text COLLATE "C" NOT NULL, space text NOT NULL, repo text NOT NULL,
    digest text NOT NULL, vector vector NOT NULL, PRIMARY KEY (tenant, id)
);
CREATE INDEX ON contextgraph_vector (tenant, space, repo)"""
_UPSERT = """
INSERT INTO contextgraph_vector VALUES (%s, %s, %s, %s, %s, %s)
ON CONFLICT (tenant, id) DO UPDATE SET space = excluded.space, repo = excluded.repo,
    digest = excluded.digest, vector = excluded.vector"""
_SCOPE = "tenant = {tenant} AND space = {space}"
_IN_REPOS = " AND repo = ANY({repos})"
_NEAREST = """
SELECT id, digest, 1 - distance FROM (
    SELECT id, digest, {distance} AS distance FROM contextgraph_vector WHERE {scope}
    ORDER BY {order} LIMIT {most}
) found"""
# More vectors than these are searched by the index of their space, which is not exact.
_MOST_COMPARED = 20_000
_WIDEST = 1_000  # the most that pgvector looks at before it goes on from there


class PostgresIndex:
    """`VectorIndex` in the database at *address*, a URL as libpq knows it.

    A password is better set in ``PGPASSWORD`` or ``~/.pgpass``. Nothing is opened until first
    used. Threads share one connection; it is opened again after the server was away.
    """

    def __init__(self, address: str, tenant: str = "default") -> None:
        parts = split_address(address, NOTES_ADDRESS)
        host = parts.netloc.rpartition("@")[2]
        self.name = f"{parts.scheme}://{host}{parts.path}"  # without user, password and options
        self._address, self._tenant = address, tenant
        self._connection: psycopg.Connection[tuple[Any, ...]] | None = None
        self._lock = RLock()

    def upsert(self, space: str, vectors: Sequence[Indexed]) -> None:
        given = [
            (self._tenant, one.id, space, one.repo, one.digest, _literal(one.vector))
            for one in vectors
            if one.vector
        ]
        removed = [one.id for one in vectors if not one.vector]

        def work(cursor: "psycopg.Cursor[Any]") -> None:
            cursor.execute(_index_of(self._tenant, space))
            cursor.execute(
                "DELETE FROM contextgraph_vector WHERE tenant = %s AND id = ANY(%s)",
                (self._tenant, removed),
            )
            cursor.executemany(_UPSERT, given)

        self._run(work)

    def search(self, vector: Vector, repos: Sequence[str] | None, limit: int) -> Sequence[Hit]:
        from psycopg.sql import SQL, Literal

        scope = SQL(_SCOPE if repos is None else _SCOPE + _IN_REPOS).format(
            tenant=Literal(self._tenant),
            space=Literal(vector.space),
            repos=Literal([*repos] if repos else []),
        )
        compared = SQL(
            "SELECT count(*) FROM (SELECT 1 FROM contextgraph_vector WHERE {} LIMIT {}) compared"
        ).format(scope, Literal(_MOST_COMPARED + 1))
        distance = SQL("{} <=> {}").format(_typed(vector.space), Literal(_literal(vector)))
        # An expression is not searched by an index.
        exact = SQL("({}) + 0").format(distance)

        def work(cursor: "psycopg.Cursor[Any]") -> list[Hit]:
            [(count,)] = cursor.execute(compared).fetchall()
            cursor.execute("SET LOCAL hnsw.iterative_scan = strict_order")
            wide = Literal(min(limit, _WIDEST))
            cursor.execute(SQL("SET LOCAL hnsw.ef_search = {}").format(wide))
            order = exact if count <= _MOST_COMPARED else distance
            cursor.execute(
                SQL(_NEAREST).format(
                    distance=distance, scope=scope, order=order, most=Literal(limit)
                )
            )
            return [Hit(*row) for row in cursor]

        return self._run(work)

    def delete(self, ids: Sequence[str]) -> None:
        def work(cursor: "psycopg.Cursor[Any]") -> None:
            sql = "DELETE FROM contextgraph_vector WHERE tenant = %s AND id = ANY(%s)"
            cursor.execute(sql, (self._tenant, [*ids]))

        self._run(work)

    def count(self) -> int:
        sql = "SELECT count(*) FROM contextgraph_vector WHERE tenant = %s"
        [(count,)] = self._run(lambda cursor: cursor.execute(sql, (self._tenant,)).fetchall())
        return int(count)

    def close(self) -> None:
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _run(self, work: "Callable[[psycopg.Cursor[Any]], T]") -> T:
        """Run *work*, which may be repeated, in one transaction; again where that was lost."""
        driver = _postgres()
        with self._lock:
            is_repeated = False
            while True:
                try:
                    self._connection = self._connection or self._connected()
                    with self._connection.transaction(), self._connection.cursor() as cursor:
                        return work(cursor)
                except driver.Error as error:
                    is_lost = self._connection is not None and self._connection.closed
                    if is_lost:
                        self._connection = None
                    if is_repeated or not (is_lost or error.sqlstate in _IN_THE_WAY):
                        raise _postgres_failure(self.name, error) from error
                    is_repeated = True

    def _connected(self) -> "psycopg.Connection[tuple[Any, ...]]":
        connection: psycopg.Connection[tuple[Any, ...]] = _postgres().connect(
            self._address,
            connect_timeout=_CONNECT_SECONDS,
            # Plans for the values given: an index of vectors is of one space.
            prepare_threshold=None,
            options=f"-c statement_timeout={_STATEMENT_MILLISECONDS}",
        )
        try:
            with connection.transaction(), connection.cursor() as cursor:
                # Others may create the table at the same moment.
                cursor.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
                if not _exists(cursor, "contextgraph_vector"):
                    cursor.execute(_SCHEMA)
        except BaseException:
            connection.close()
            raise
        return connection


def _postgres() -> Any:
    try:
        import psycopg
    except ImportError as error:
        raise MissingExtraError("an index in PostgreSQL needs psycopg", "postgres") from error
    return psycopg


def _exists(cursor: "psycopg.Cursor[Any]", table: str) -> bool:
    [(exists,)] = cursor.execute("SELECT to_regclass(%s) IS NOT NULL", (table,)).fetchall()
    return bool(exists)


def _postgres_failure(name: str, error: "psycopg.Error") -> StoreError:
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
    name = digest(f"{tenant}\n{space}")
    return SQL(
        "CREATE INDEX IF NOT EXISTS {} ON contextgraph_vector USING hnsw ({} {}) "
        "WHERE tenant = {} AND space = {}"
    ).format(
        Identifier(f"contextgraph_hnsw_{name}"),
        _typed(space),
        SQL(f"{kind}_cosine_ops"),
        Literal(tenant),
        Literal(space),
    )


LOCAL = ":memory:"
_COLLECTION = "contextgraph_vectors"
_POINTS = UUID("6f0d4dd8-6d0c-4a0b-9f55-0d6a5f3f9a51")  # the namespace of the ids of points
_SECONDS = 30


class QdrantIndex:
    """`VectorIndex` on the server at *url*; with ``:memory:`` in this process, for tests.

    *key* is its key, where it needs one. Nothing is opened until first used. A write is
    acknowledged by the server once it is applied.
    """

    def __init__(self, url: str, tenant: str = "default", key: str | None = None) -> None:
        split_address(url, NOTES_ADDRESS)
        self.name, self._tenant, self._key = url, tenant, key
        self._opened: QdrantClient | None = None
        self._lock = RLock()

    def upsert(self, space: str, vectors: Sequence[Indexed]) -> None:
        models = _qdrant()
        name = _name_of(space)
        points = [
            models.PointStruct(
                id=self._point(one.id),
                vector={name: one.vector.numbers().tolist()},
                payload={
                    "tenant": self._tenant,
                    "id": one.id,
                    "space": name,
                    "repo": one.repo,
                    "digest": one.digest,
                },
            )
            for one in vectors
            if one.vector
        ]
        with self._client() as client:
            if not self._has(client, name):
                config = models.DenseVectorNameConfig(
                    dense=models.DenseVectorConfig(
                        size=dimensions_of(space), distance=models.Distance.COSINE
                    )
                )
                client.create_vector_name(_COLLECTION, name, config)
            self._delete(client, [one.id for one in vectors if not one.vector])
            if points:
                client.upsert(_COLLECTION, points, wait=True)

    def search(self, vector: Vector, repos: Sequence[str] | None, limit: int) -> Sequence[Hit]:
        name = _name_of(vector.space)
        with self._client() as client:
            if not self._has(client, name):
                return []
            points = client.query_points(
                _COLLECTION,
                query=vector.numbers().tolist(),
                using=name,
                query_filter=self._where(space=[name], repo=repos),
                limit=limit,
            ).points
        return [Hit(one.payload["id"], one.payload["digest"], one.score) for one in points]

    def delete(self, ids: Sequence[str]) -> None:
        with self._client() as client:
            self._delete(client, ids)

    def count(self) -> int:
        with self._client() as client:
            return int(client.count(_COLLECTION, self._where()).count)

    def close(self) -> None:
        with self._lock:
            if self._opened is not None:
                self._opened.close()
                self._opened = None

    def _point(self, id_: str) -> str:
        return str(uuid5(_POINTS, f"{self._tenant}\n{id_}"))

    def _delete(self, client: "QdrantClient", ids: Sequence[str]) -> None:
        if ids:
            client.delete(_COLLECTION, [*map(self._point, ids)], wait=True)

    def _where(self, **values: Sequence[str] | None) -> Any:
        """The points of the tenant whose payload has one of these *values* (None: any)."""
        models = _qdrant()
        given = {"tenant": [self._tenant], **values}
        return models.Filter(
            must=[
                models.FieldCondition(key=key, match=models.MatchAny(any=[*chosen]))
                for key, chosen in given.items()
                if chosen is not None
            ]
        )

    def _has(self, client: "QdrantClient", name: str) -> bool:
        vectors = client.get_collection(_COLLECTION).config.params.vectors
        return isinstance(vectors, dict) and name in vectors

    @contextmanager
    def _client(self) -> Iterator[Any]:
        """The client; what it raises meanwhile becomes a `StoreError`."""
        _qdrant()
        from qdrant_client.http.exceptions import ApiException

        with self._lock:
            try:
                self._opened = self._opened or self._open()
                yield self._opened
            except ApiException as error:
                raise _qdrant_failure(self.name, error) from error

    def _open(self) -> "QdrantClient":
        from qdrant_client import QdrantClient

        client = QdrantClient(
            self.name, api_key=self._key, timeout=_SECONDS, check_compatibility=False
        )
        if not client.collection_exists(_COLLECTION):
            client.create_collection(_COLLECTION, vectors_config={})
            for name in ("tenant", "space", "repo") if self.name != LOCAL else ():
                client.create_payload_index(_COLLECTION, name, _qdrant().PayloadSchemaType.KEYWORD)
        return client


def _qdrant() -> Any:
    try:
        from qdrant_client import models
    except ImportError as error:
        raise MissingExtraError("an index in Qdrant needs its client", "qdrant") from error
    return models


def _name_of(space: str) -> str:
    """The name of its vectors: part of an address, in which a space cannot stand."""
    return f"space_{digest(space)}"


def _qdrant_failure(name: str, error: Exception) -> StoreError:
    from qdrant_client.http.exceptions import UnexpectedResponse

    reason = " ".join(str(error).split())
    if not isinstance(error, UnexpectedResponse):
        return StoreUnavailableError(
            f"{name} cannot be reached; check the address and that the server runs: {reason}"
        )
    if error.status_code in (401, 403):
        return StoreError(f"{name} refuses the key; set QDRANT_API_KEY")
    kind = StoreUnavailableError if (error.status_code or 0) >= 500 else StoreError
    return kind(f"{name} did not do it: {reason}")
