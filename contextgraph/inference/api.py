"""Vectors from an API, cached on disk by the hash of the text."""

import hashlib
import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from http import HTTPStatus
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import orjson
from msgspec import Struct

from contextgraph.errors import ContextGraphError, EmbeddingError, MissingExtraError, SettingsError
from contextgraph.model import TOKENS_PER_PRICE, Embeddings, Usage, Vector, dimensions_of
from contextgraph.model.values import batched, replace
from contextgraph.system.remote import (
    Answer,
    Budget,
    Failure,
    Remote,
    RetryPolicy,
    UnusableAnswerError,
    UsageLog,
    failure_of,
    in_side_file,
)
from contextgraph.text import clip_tokens, count_tokens, mask_secrets

# 100,000 vectors of 1,536 dimensions are 0.6 GB; beyond that the oldest tenth is deleted.
MAX_VECTORS = 100_000
_BATCH = 500
_TABLE = """CREATE TABLE IF NOT EXISTS vector (
    key INTEGER PRIMARY KEY, space TEXT NOT NULL, text BLOB NOT NULL, data BLOB NOT NULL,
    UNIQUE (space, text))"""
_SHRINK = "DELETE FROM vector WHERE key < (SELECT max(key) FROM vector) - ?"


class VectorCache:
    """The vectors of texts by space, in the SQLite file *path*; None: no cache.

    Threads and processes may share the file. Failures are logged and count as cache misses.
    """

    def __init__(self, path: Path | None, max_vectors: int = MAX_VECTORS) -> None:
        self._path = path
        self._max = max_vectors

    def get(self, space: str, texts: Sequence[str]) -> dict[str, Vector]:
        """Return the cached vectors of *texts*, by text."""
        texts_by_digest = {_digest(text): text for text in texts}

        def read(connection: sqlite3.Connection) -> dict[str, Vector]:
            vectors = {}
            for some in batched(texts_by_digest, _BATCH):
                marks = ", ".join("?" * len(some))
                for digest, data in connection.execute(
                    f"SELECT text, data FROM vector WHERE space = ? AND text IN ({marks})",
                    (space, *some),
                ):
                    vectors[texts_by_digest[digest]] = Vector(space, data)
            return vectors

        return in_side_file(self._path, _TABLE, read, {})

    def put(self, space: str, vectors: Mapping[str, Vector]) -> None:
        """Store *vectors*, given by text."""
        rows = [(space, _digest(text), vector.data) for text, vector in vectors.items()]

        def write(connection: sqlite3.Connection) -> None:
            connection.executemany(
                "INSERT OR IGNORE INTO vector (space, text, data) VALUES (?, ?, ?)", rows
            )
            first, last = connection.execute("SELECT min(key), max(key) FROM vector").fetchone()
            if last - first >= self._max:
                connection.execute(_SHRINK, (self._max - self._max // 10,))

        if rows:
            in_side_file(self._path, _TABLE, write, None)


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


OPENAI = "openai"


class _Known(Struct, frozen=True):
    """A model of OpenAI: dimensions, US dollars for a million tokens."""

    dimensions: int
    price: float
    can_shorten: bool


# Prices as published in 2026; --max-cost uses them.
_KNOWN = {
    "text-embedding-3-small": _Known(1536, 0.02, True),
    "text-embedding-3-large": _Known(3072, 0.13, True),
    "text-embedding-ada-002": _Known(1536, 0.10, False),
}


class RemoteModel(Struct, frozen=True):
    """A model behind an API; *price* is for a million tokens, None where it is unknown.

    *maker* calls it. *send_dimensions*: whether requests have to name the number of dimensions.
    """

    name: str
    dimensions: int
    price: float | None
    send_dimensions: bool
    maker: str = OPENAI

    @property
    def space(self) -> str:
        """The name of its space."""
        return f"{self.maker}/{self.name}@{self.dimensions}"

    def cost(self, tokens: int) -> float:
        """US dollars for *tokens*, 0 where the price is not known."""
        return tokens * (self.price or 0.0) / TOKENS_PER_PRICE


def remote_model(name: str, price: float | None = None, maker: str = OPENAI) -> RemoteModel:
    """Return the model *name* (``model`` or ``model@dimensions``), at *price* if given.

    Raises `SettingsError` where its dimensions are unknown.
    """
    model, at, size = name.rpartition("@") if "@" in name else (name, "", "")
    known = _KNOWN.get(model)
    if at and not (size.isdecimal() and int(size)):
        raise SettingsError(f"{maker}/{name}: {size!r} is not a number of dimensions")
    if not model or not (at or known):
        raise SettingsError(
            f"{maker}/{name}: its dimensions are unknown; write {maker}/{model or 'MODEL'}@N"
        )
    if known is None:
        return RemoteModel(model, int(size), price, send_dimensions=False, maker=maker)
    dimensions = int(size) if size else known.dimensions
    if dimensions > known.dimensions or (dimensions < known.dimensions and not known.can_shorten):
        raise SettingsError(f"{maker}/{name}: {model} has {known.dimensions} dimensions")
    its_price = known.price if price is None else price
    return RemoteModel(model, dimensions, its_price, dimensions != known.dimensions, maker)


# The API accepts 8,191 tokens a text, 2,048 texts and 300,000 tokens a request. `count_tokens` is
# an estimate: 53 long texts of real runs had at most 1.11 times as many (docs/embedding.md).
MAX_TOKENS = 7_000
_MAX_BATCH_TEXTS = 256
_MAX_BATCH_TOKENS = 60_000
_PARALLEL_REQUESTS = 4
# No model has a context this small: a server that refuses such a text refuses something else.
_SHORT_TOKENS = 16
_TEXTS = "input"  # the argument with the texts of a request
# Statuses with which servers refuse too many texts, too long ones, and unknown arguments; servers
# of llama.cpp fail where a text exceeds their batch.
_REFUSALS = {
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    HTTPStatus.UNPROCESSABLE_ENTITY,
    HTTPStatus.INTERNAL_SERVER_ERROR,
}


class Accepted(Struct):
    """The form of request that a server accepts: changed where it refuses more.

    *texts* of one request, *tokens* of one text, and the names of optional arguments that it
    refused. Without *lists* it takes one text, as a string.
    """

    texts: int = _MAX_BATCH_TEXTS
    tokens: int = MAX_TOKENS
    lists: bool = True
    refused: frozenset[str] = frozenset()


class EmbeddingCosts(Struct, frozen=True):
    """The parts that calls of an embedding API share: cache of vectors, usage log, budget."""

    cache: VectorCache
    usage_log: UsageLog
    budget: Budget


class RemoteEmbedder:
    """An `Embedder` that calls *model* at *endpoint*; secrets are masked before texts are sent."""

    def __init__(
        self,
        model: RemoteModel,
        endpoint: Remote[Any],
        costs: EmbeddingCosts,
        policy: RetryPolicy,
        similarity_threshold: float | None = None,
        accepted: Accepted | None = None,
    ) -> None:
        self.model = model
        self.endpoint = endpoint
        self.costs = costs
        self.policy = policy
        self.similarity_threshold = similarity_threshold
        self.accepted = accepted or Accepted()

    @property
    def space(self) -> str:
        """The name of the space."""
        return self.model.space

    def calibrated(self, threshold: float | None) -> "RemoteEmbedder":
        """This embedder with another similarity threshold."""
        parts = (self.model, self.endpoint, self.costs, self.policy)
        return type(self)(*parts, threshold, self.accepted)

    @property
    def is_remote(self) -> bool:
        return True

    def embed(self, texts: Sequence[str]) -> Embeddings:
        """Return a vector for each text, None for an empty one; cached vectors cost nothing.

        Raises `EmbeddingError` where the server fails; what it answered before that is cached.
        """
        sent, cut = _prepared(texts)
        vectors, missing = self._cached(sent)
        try:
            usage = self._request(missing, vectors)
        except ContextGraphError as error:
            raise EmbeddingError(f"{self.space}: {error}") from error
        return Embeddings(tuple(map(vectors.get, sent)), usage + Usage(cut=cut))

    def estimate(self, texts: Sequence[str]) -> Usage:
        """About what `embed` of *texts* would use at most; nothing is sent."""
        sent, cut = _prepared(texts)
        _, missing = self._cached(sent)
        tokens = sum(map(count_tokens, missing))
        return Usage(len(list(_batches(missing))), tokens, self.model.cost(tokens), cut)

    def _cached(self, texts: Sequence[str]) -> tuple[dict[str, Vector], list[str]]:
        """The cached vectors of *texts*, and those of them, each once, that have none."""
        unique = tuple(dict.fromkeys(filter(None, texts)))
        vectors = self.costs.cache.get(self.space, unique)
        return vectors, [text for text in unique if text not in vectors]

    def _request(self, texts: Sequence[str], vectors: dict[str, Vector]) -> Usage:
        """Request the vectors of *texts* into *vectors*."""
        batches = list(_batches(texts))
        usage = Usage()
        if len(batches) == 1:
            return self._request_batch(batches[0], vectors)
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(_PARALLEL_REQUESTS) as pool:
            for batch_usage in pool.map(lambda batch: self._request_batch(batch, vectors), batches):
                usage += batch_usage
        return usage

    def _request_batch(self, texts: Sequence[str], vectors: dict[str, Vector]) -> Usage:
        costs, model = self.costs, self.model
        with costs.budget.reserve(model.cost(sum(map(count_tokens, texts)))) as settle:
            answer = self.endpoint.call(lambda client: self._embed(client, texts), self.policy)
            usage = Usage(1, answer.tokens, model.cost(answer.tokens), answer.cut)
            settle(usage)
        costs.usage_log.add(self.space, usage)
        costs.cache.put(self.space, answer.vectors)
        vectors.update(answer.vectors)
        return usage

    def _embed(self, client: Any, texts: Sequence[str]) -> "EmbeddingAnswer":
        """The vectors of *texts*, requested in a form that the server accepts."""
        accepted = self.accepted
        clipped = [clip_tokens(text, accepted.tokens, at="end") for text in texts]
        vectors: dict[str, Vector] = {}
        tokens = start = 0
        while start < len(texts):
            some = clipped[start : start + accepted.texts]
            answer = self._sent(client, some)
            if answer is None:  # *accepted* has changed
                return self._embed(client, texts)
            vectors.update(zip(texts[start:], answer.vectors, strict=False))
            tokens += answer.tokens
            start += len(some)
        cut = sum(whole != text for whole, text in zip(texts, clipped, strict=True))
        return EmbeddingAnswer(vectors, tokens, cut)

    def _sent(self, client: Any, texts: Sequence[str]) -> "_Rows | None":
        """The vectors of *texts*; None where the server refused them and accepts another form."""
        from openai import APIStatusError

        try:
            return self._send(client, texts, self._optional(), listed=self.accepted.lists)
        except APIStatusError as error:
            if error.status_code not in _REFUSALS or not self._adapted(client, texts, error):
                raise
            return None

    def _adapted(self, client: Any, texts: Sequence[str], error: Exception) -> bool:
        """Find a form in which the server accepts *texts*, which it refused; False: there is none.

        A single text, a short one, one that is not in a list where the *error* names that argument,
        and one without optional arguments show what it refuses.
        """
        import logging  # not for each query

        log = logging.getLogger(__name__)
        accepted, once = self.accepted, self._without_retries(client)
        longest = max(texts, key=count_tokens)
        if len(texts) > 1 and self._accepts(once, longest):
            accepted.texts = min(accepted.texts, len(texts) // 2)
            log.info("%s accepts at most %d texts a request", self.endpoint.name, accepted.texts)
            return True
        short = clip_tokens(longest, _SHORT_TOKENS, at="end")
        if short != longest and self._accepts(once, short):
            tokens = count_tokens(longest)
            while not self._accepts(once, clip_tokens(longest, tokens, at="end")):
                tokens = max(tokens * 3 // 4, _SHORT_TOKENS)
            accepted.tokens = min(accepted.tokens, tokens)
            log.warning("%s: texts are cut at about %d tokens", self.endpoint.name, tokens)
            return True
        is_named = _TEXTS in str(error)
        if accepted.lists and is_named and self._accepts(once, short, listed=False):
            accepted.lists, accepted.texts = False, 1
            log.info("%s accepts one text a request, as a string", self.endpoint.name)
            return True
        for name in self._optional():
            if self._accepts(once, short, without=name):
                accepted.refused |= {name}
                log.info("%s is asked without the argument %s", self.endpoint.name, name)
                return True
        return False

    def _accepts(self, client: Any, text: str, *, without: str = "", listed: bool = True) -> bool:
        """Return True where the server answers a request for *text* alone."""
        from openai import APIStatusError

        arguments = self._optional()
        arguments.pop(without, None)
        try:
            self._send(client, [text], arguments, listed=listed and self.accepted.lists)
        except APIStatusError as error:
            if error.status_code not in _REFUSALS:
                raise
            return False
        return True

    def _optional(self) -> dict[str, object]:
        """The arguments of a request that a server may not know, without those that it refused."""
        arguments: dict[str, object] = {"encoding_format": "float"}
        if self.model.send_dimensions:
            arguments["dimensions"] = self.model.dimensions
        refused = self.accepted.refused
        return {name: value for name, value in arguments.items() if name not in refused}

    def _without_retries(self, client: Any) -> Any:
        return client.with_options(max_retries=0)

    def _send(
        self, client: Any, texts: Sequence[str], arguments: Mapping[str, object], *, listed: bool
    ) -> "_Rows":
        """The vectors of *texts*; the client's own method always names an encoding."""
        from httpx2 import Response

        given = [*texts] if listed else texts[0]
        body = {_TEXTS: given, "model": self.model.name, **arguments}
        response = client.post("/embeddings", cast_to=Response, body=body)
        return answer_in(response.content, len(texts), self.space)


def _prepared(texts: Sequence[str]) -> tuple[list[str], int]:
    """*texts* as they are sent, and how many were cut.

    Secrets are masked, lone surrogates replaced, long texts cut; blank texts become "".
    """
    masked = [mask_secrets(text.encode("utf-8", "replace").decode()).strip() for text in texts]
    sent = [clip_tokens(text, MAX_TOKENS, at="end") for text in masked]
    return sent, sum(whole != clipped for whole, clipped in zip(masked, sent, strict=True))


def _batches(texts: Sequence[str]) -> Iterator[list[str]]:
    """*texts* in order, in batches within the limits of one request."""
    batch: list[str] = []
    tokens = 0
    for text in texts:
        count = count_tokens(text)
        if len(batch) >= _MAX_BATCH_TEXTS or (batch and tokens + count > _MAX_BATCH_TOKENS):
            yield batch
            batch, tokens = [], 0
        batch.append(text)
        tokens += count
    if batch:
        yield batch


class EmbeddingAnswer(Struct, frozen=True):
    """The vectors by text, the tokens that the server counted, and how many texts were cut."""

    vectors: Mapping[str, Vector]
    tokens: int
    cut: int = 0


class _Rows(Struct, frozen=True):
    """The vectors of one request in the order of its texts, and the tokens that were counted."""

    vectors: Sequence[Vector]
    tokens: int


def answer_in(body: bytes, texts: int, space: str) -> _Rows:
    """Return vectors in the *body* of an answer to *texts*; raises `UnusableAnswerError`."""
    try:
        answer: Any = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise UnusableAnswerError(f"the answer is not JSON ({error})", retry=True) from error
    try:
        # Some servers number no rows: those are in the order of the texts.
        by_place = {row.get("index", place): row for place, row in enumerate(answer["data"])}
        rows = [by_place[place] for place in sorted(by_place)]
        numbers = [row["embedding"] for row in rows]
        tokens = int((answer.get("usage") or {}).get("prompt_tokens") or 0)
        sizes = {len(number) for number in numbers}
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise UnusableAnswerError(
            f"the answer holds no embeddings ({type(error).__name__}: {error})", retry=True
        ) from error
    if sorted(by_place) != list(range(texts)):
        reason = f"{texts} texts were sent, {len(rows)} embeddings were returned"
        raise UnusableAnswerError(reason, retry=True)
    if sizes != {dimensions_of(space)}:
        given = "/".join(map(str, sorted(sizes)))
        reason = f"it has {given} dimensions, not {dimensions_of(space)}; write MODEL@{given}"
        raise UnusableAnswerError(reason, retry=False)
    return _Rows(_vectors(numbers, space), tokens)


def _vectors(numbers: Sequence[Any], space: str) -> list[Vector]:
    try:
        return [Vector.of(space, number) for number in numbers]
    except (ValueError, TypeError) as error:
        raise UnusableAnswerError(f"an embedding is unusable: {error}", retry=True) from error


LITELLM = "litellm"


class _Client(Struct, frozen=True):
    """The *library*; *timeout* in seconds is for one answer."""

    library: Any
    timeout: float | None = None
    retries: int = 0

    def embed(self, model: str, given: str | list[str], arguments: Mapping[str, object]) -> Any:
        """Return the answer, in the form of OpenAI."""
        limits = {"timeout": self.timeout, "max_retries": self.retries}
        return self.library.embedding(model, given, **arguments, **limits)

    def close(self) -> None:
        """Do nothing: the library keeps its connections."""


class LitellmEndpoint(Remote[_Client]):
    """The providers that litellm calls, with the keys that it finds in the environment."""

    def __init__(self) -> None:
        super().__init__(f"{LITELLM}://providers")

    def _attempt(
        self, request: Callable[[_Client], Answer], client: _Client, policy: RetryPolicy
    ) -> Answer | Failure:
        import openai  # whose errors those of litellm extend

        try:
            return request(replace(client, timeout=policy.timeout, retries=policy.retries))
        except (openai.APIError, UnusableAnswerError) as error:
            return failure_of(error, "", "the key of the provider")

    def _open(self) -> _Client:
        if find_spec(LITELLM) is None:
            problem = (
                "litellm is not installed, which needs an environment without the extra openai"
            )
            raise MissingExtraError(problem, "litellm")
        # Else an import asks a server for prices.
        os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
        # Else it loads the file .env of a checkout that its environment is in.
        os.environ.setdefault("LITELLM_MODE", "PRODUCTION")
        import litellm

        litellm.suppress_debug_info = True  # it prints advice on each failure
        return _Client(litellm)


class LitellmEmbedder(RemoteEmbedder):
    """A `RemoteEmbedder` whose model litellm calls."""

    def _without_retries(self, client: _Client) -> _Client:
        return replace(client, retries=0)

    def _send(
        self, client: Any, texts: Sequence[str], arguments: Mapping[str, object], *, listed: bool
    ) -> _Rows:
        given = [*texts] if listed else texts[0]
        answer = client.embed(self.model.name, given, arguments)
        return answer_in(orjson.dumps(answer.model_dump()), len(texts), self.space)
