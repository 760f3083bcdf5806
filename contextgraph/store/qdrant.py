"""`NoteStore` in Qdrant.

A note is a point: its words are a sparse vector of ones, so that the score of a search is how many
of them are shared; its dense vector is named after its space.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from threading import RLock
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid5

from contextgraph.errors import (
    MissingExtraError,
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
    from qdrant_client import QdrantClient, models

_COLLECTION = "contextgraph_notes"
_WORDS = "words"
_POINTS = UUID("6f0d4dd8-6d0c-4a0b-9f55-0d6a5f3f9a51")  # the namespace of the ids of points
_SECONDS = 30
_AT_ONCE = 1_000
# So many points are looked at to put those with equal scores in order.
_MOST_TIED = 10_000
_INDEXES = {
    **dict.fromkeys(("tenant", "kind", "repo", "tags", "targets", "space"), "keyword"),
    **dict.fromkeys(("live", "pinned"), "bool"),
    "created_at": "float",
}
LOCAL = ":memory:"


class QdrantNotes:
    """`NoteStore` on the server at *url*; its methods are those of the protocol.

    With ``:memory:`` it is in this process, without a server: for tests.

    ``QDRANT_API_KEY`` is its key, where it needs one. Nothing is opened until first used. A write
    is acknowledged by the server once it is applied, and `change` is not a transaction: of two
    processes that change the same note at the same moment, the later one decides.
    """

    def __init__(self, url: str, tenant: str = "default", key: str | None = None) -> None:
        self._url, self._tenant, self._key = url, tenant, key
        self._opened: QdrantClient | None = None
        self._lock = RLock()

    def change(
        self, ids: Sequence[str] = (), function: NoteChange = replace, new: Sequence[Note] = ()
    ) -> Sequence[Note]:
        with self._client() as client:
            self._upsert(client, new)
            changed = [function(note) for note in self._notes(client, ids)]
            self._upsert(client, changed)
            return changed

    def get(self, ids: Sequence[str]) -> Mapping[str, Note]:
        with self._client() as client:
            return {note.id: note for note in self._notes(client, ids)}

    def for_text(self, words: Sequence[str], scope: NoteScope, limit: int) -> Sequence[Note]:
        if not words:
            return []

        def read(client: "QdrantClient", most: int) -> list[tuple[float, Note]]:
            points = client.query_points(
                _COLLECTION,
                query=sparse_vector(words),
                using=_WORDS,
                query_filter=self._within(scope),
                limit=most,
            ).points
            return [(-round(point.score), _note_of(point.payload)) for point in points]

        return [note for _, note in self._ranked(read, limit)]

    def nearest(self, vector: Vector, scope: NoteScope, limit: int) -> Mapping[str, float]:
        models = _models()
        with self._client() as client:
            if not self._has(client, vector.space):
                return {}
            points = client.query_points(
                _COLLECTION,
                query=vector.numbers().tolist(),
                using=_name_of(vector.space),
                query_filter=models.Filter(
                    must=[self._within(scope), _is("space", [vector.space])]
                ),
                # Of equal cosines those with the least ids come first: look at some more.
                limit=2 * max(0, limit) + 10,
                with_payload=["id"],
            ).points
        ranked = sorted(
            (-round(point.score, rules.COSINE_DECIMALS), _id(point)) for point in points
        )
        return {id_: -cosine for cosine, id_ in ranked[: max(0, limit)]}

    def newest(self, scope: NoteScope, limit: int) -> Sequence[Note]:
        models = _models()

        def read(client: "QdrantClient", most: int) -> list[tuple[float, Note]]:
            points, _ = client.scroll(
                _COLLECTION,
                scroll_filter=self._within(scope),
                order_by=models.OrderBy(key="created_at", direction=models.Direction.DESC),
                limit=most,
            )
            notes = (_note_of(point.payload) for point in points)
            return [(-note.created_at.timestamp(), note) for note in notes]

        return [note for _, note in self._ranked(read, limit, greatest_id=True)]

    def linking(self, ids: Sequence[str]) -> Sequence[Note]:
        with self._client() as client:
            points = self._all(client, _is("targets", ids))
        return sorted((_note_of(point.payload) for point in points), key=lambda note: note.id)

    def counts(self) -> Mapping[NoteKind, int]:
        with self._client() as client:
            counts = {
                kind: client.count(_COLLECTION, self._within(NoteScope(kinds=(kind,)))).count
                for kind in sorted(NoteKind)
            }
        return {kind: count for kind, count in counts.items() if count}

    def all(self, on_damaged: OnDamaged | None = None) -> Iterator[Note]:
        with self._client() as client:
            ids = sorted(map(_id, self._all(client, payload=["id"])))

        def page(after: str, limit: int) -> list[tuple[str, str]]:
            start = bisect_right(ids, after)
            with self._client() as client:
                points = self._points(client, ids[start : start + limit])
            return sorted((point.payload["id"], point.payload["data"]) for point in points)

        return rules.paged(page, rules.note_of, on_damaged)

    def texts_to_embed(
        self, limit: int, space: str | None = None, after: str = ""
    ) -> Mapping[str, str]:
        models = _models()
        embedded = [_is("space", [space])] if space else []
        live = models.Filter(must=[_is("live", True)], must_not=embedded)
        with self._client() as client:
            ids = sorted(id_ for id_ in map(_id, self._all(client, live, ["id"])) if id_ > after)
            notes = self._notes(client, ids[: max(0, limit)])
        return {note.id: rules.note_text(note) for note in notes}

    def add(self, space: str, vectors: Mapping[str, Vector | None]) -> None:
        models = _models()
        with self._client() as client:
            known = [note.id for note in self._notes(client, [*vectors])]
            if not known:
                return
            self._prepare(client, space)
            points: list[int | str | UUID] = [self._point(id_) for id_ in known]
            client.delete_vectors(_COLLECTION, [_name_of(space)], points, wait=True)
            given = [
                models.PointVectors(
                    id=self._point(id_), vector={_name_of(space): vector.numbers().tolist()}
                )
                for id_ in known
                if (vector := vectors[id_]) is not None
            ]
            if given:
                client.update_vectors(_COLLECTION, given, wait=True)
            client.set_payload(_COLLECTION, {"space": space}, points, wait=True)

    def delete(self, ids: Sequence[str]) -> int:
        with self._client() as client:
            known: list[int | str | UUID] = [
                self._point(note.id) for note in self._notes(client, ids)
            ]
            if known:
                client.delete(_COLLECTION, known, wait=True)
            return len(known)

    def close(self) -> None:
        with self._lock:
            if self._opened is not None:
                self._opened.close()
                self._opened = None

    def _upsert(self, client: "QdrantClient", notes: Iterable[Note]) -> None:
        """Store *notes*; those whose text stays keep their vector."""
        models = _models()
        given = {note.id: note for note in notes}
        before = {_id(point): point for point in self._points(client, [*given], with_vectors=True)}
        points = []
        for note in given.values():
            payload, vectors = self._payload(note), {}
            known = before.get(note.id)
            if known and rules.note_text(_note_of(known.payload)) == rules.note_text(note):
                payload["space"] = known.payload["space"]
                vectors = {**known.vector}
            vectors[_WORDS] = sparse_vector(stems(rules.note_text(note)))
            points.append(
                models.PointStruct(id=self._point(note.id), payload=payload, vector=vectors)
            )
        if points:
            client.upsert(_COLLECTION, points, wait=True)

    def _payload(self, note: Note) -> dict[str, Any]:
        return {
            "tenant": self._tenant,
            "id": note.id,
            "kind": note.kind,
            "repo": note.repo,
            "tags": [*note.tags],
            "targets": sorted({link.target for link in note.links}),
            "live": note.is_live,
            "pinned": note.pinned,
            "created_at": note.created_at.timestamp(),
            "space": None,
            "data": json_of(note),
        }

    def _point(self, id_: str) -> str:
        return str(uuid5(_POINTS, f"{self._tenant}\n{id_}"))

    def _points(
        self, client: "QdrantClient", ids: Sequence[str], *, with_vectors: bool = False
    ) -> list[Any]:
        points: list[int | str | UUID] = [self._point(id_) for id_ in {*ids}]
        if not points:
            return []
        return client.retrieve(_COLLECTION, points, with_vectors=with_vectors)

    def _notes(self, client: "QdrantClient", ids: Sequence[str]) -> list[Note]:
        notes = [_note_of(point.payload) for point in self._points(client, ids)]
        return sorted(notes, key=lambda note: note.id)

    def _all(
        self,
        client: "QdrantClient",
        condition: "models.Condition | None" = None,
        payload: bool | Sequence[str] = True,
    ) -> Iterator[Any]:
        """All points of the tenant that meet *condition*."""
        models = _models()
        conditions = [part for part in (_is("tenant", [self._tenant]), condition) if part]
        where, offset = models.Filter(must=conditions), None
        while True:
            chosen = payload if isinstance(payload, bool) else [*payload]
            points, offset = client.scroll(
                _COLLECTION, where, limit=_AT_ONCE, offset=offset, with_payload=chosen
            )
            yield from points
            if offset is None:
                return

    def _ranked(
        self,
        read: Callable[["QdrantClient", int], list[tuple[float, Note]]],
        limit: int,
        *,
        greatest_id: bool = False,
    ) -> list[tuple[float, Note]]:
        """The first *limit* by score, age and id; *read* gives so many, in the order of scores.

        The server orders by score only: more are requested until no tie is cut.
        """
        most = 2 * max(0, limit) + 10
        with self._client() as client:
            while True:
                ranked = read(client, most)
                tied = len(ranked) == most and ranked[max(0, limit - 1)][0] == ranked[-1][0]
                if not tied or most >= _MOST_TIED:
                    break
                most *= 4
        ranked.sort(key=lambda scored: scored[1].id, reverse=greatest_id)
        ranked.sort(key=lambda scored: (scored[0], -scored[1].created_at.timestamp()))
        return ranked[: max(0, limit)]

    def _within(self, scope: NoteScope) -> "models.Filter":
        conditions = [
            _is("tenant", [self._tenant]),
            _is("live", True),
            _is("kind", scope.kinds),
            *(_is("tags", [tag]) for tag in scope.tags),
        ]
        if scope.repos is not None:
            conditions.append(_is("repo", scope.repos))
        if scope.pinned:
            conditions.append(_is("pinned", True))
        where: models.Filter = _models().Filter(must=conditions)
        return where

    def _has(self, client: "QdrantClient", space: str) -> bool:
        vectors = client.get_collection(_COLLECTION).config.params.vectors
        return isinstance(vectors, dict) and _name_of(space) in vectors

    def _prepare(self, client: "QdrantClient", space: str) -> None:
        models = _models()
        if not self._has(client, space):
            config = models.DenseVectorNameConfig(
                dense=models.DenseVectorConfig(
                    size=dimensions_of(space), distance=models.Distance.COSINE
                )
            )
            client.create_vector_name(_COLLECTION, _name_of(space), config)

    @contextmanager
    def _client(self) -> Iterator["QdrantClient"]:
        """The client; what it raises meanwhile becomes a `StoreError`."""
        from qdrant_client.http.exceptions import ApiException

        with self._lock:
            try:
                if self._opened is None:
                    self._opened = self._open()
                yield self._opened
            except ApiException as error:
                raise _failure(self._url, error) from error

    def _open(self) -> "QdrantClient":
        from qdrant_client import QdrantClient

        client = QdrantClient(
            self._url, api_key=self._key, timeout=_SECONDS, check_compatibility=False
        )
        if not client.collection_exists(_COLLECTION):
            client.create_collection(
                _COLLECTION,
                vectors_config={},
                sparse_vectors_config={_WORDS: _models().SparseVectorParams()},
            )
            for name, kind in _INDEXES.items() if self._url != LOCAL else ():
                client.create_payload_index(_COLLECTION, name, _models().PayloadSchemaType(kind))
        return client


def _models() -> Any:
    try:
        from qdrant_client import models
    except ImportError as error:
        raise MissingExtraError(
            "notes in Qdrant need its client; install it with: "
            "pip install 'contextgraph-memory[qdrant]'"
        ) from error
    return models


def _is(name: str, value: bool | Sequence[str]) -> "models.FieldCondition":
    made = _models()
    given = {"value": value} if isinstance(value, bool) else {"any": [*value]}
    kind = made.MatchValue if isinstance(value, bool) else made.MatchAny
    condition: models.FieldCondition = made.FieldCondition(key=name, match=kind(**given))
    return condition


def sparse_vector(words: Iterable[str]) -> "models.SparseVector":
    """A sparse vector with the weight 1 for each of *words*."""
    numbers = {
        int.from_bytes(blake2b(word.encode(), digest_size=4).digest(), "big") for word in words
    }
    sparse: models.SparseVector = _models().SparseVector(
        indices=sorted(numbers), values=[1.0] * len(numbers)
    )
    return sparse


def _name_of(space: str) -> str:
    """The name of its vectors: part of an address, in which a space cannot stand."""
    return f"space_{blake2b(space.encode(), digest_size=8).hexdigest()}"


def _id(point: Any) -> str:
    id_: str = point.payload["id"]
    return id_


def _note_of(payload: Any) -> Note:
    return rules.note_of(payload["data"])


def _failure(name: str, error: Exception) -> StoreError:
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
