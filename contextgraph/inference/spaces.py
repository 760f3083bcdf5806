"""The embedding space of a memory: active space, change of space, health, and its lease."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from uuid import uuid4

from msgspec import Struct, field

from contextgraph.errors import EmbeddingError, LeaseLostError, SettingsError, StoreError
from contextgraph.inference.api import (
    LITELLM,
    OPENAI,
    EmbeddingCosts,
    LitellmEmbedder,
    LitellmEndpoint,
    RemoteEmbedder,
    remote_model,
)
from contextgraph.inference.fitting import (
    TfidfModel,
    activate,
    calibrate,
    catch_up,
    embed_passages,
    refit,
    text_count,
)
from contextgraph.inference.local import MAKER as LOCAL, LocalEmbedder, local_embedder
from contextgraph.model import FITTED, NO_USAGE, Embeddings, HealthCheck, Space, Usage, is_fitted
from contextgraph.store.memory_store import Store
from contextgraph.store.protocols import Embedder, TextVectors
from contextgraph.system.processes import this_process
from contextgraph.system.remote import BACKGROUND, BATCH, Endpoint, RetryPolicy

LEASE = timedelta(minutes=5)
RENEWAL_SECONDS = 60.0
_POLL_SECONDS = 0.5


class Lease:
    """The lease of *store*, held by this object until it is released, expires or is lost.

    That of a process that ended on this machine is free at once. After any other crash, or while a
    machine sleeps, a lease expires and another process may take over.
    What it held is not worked on any longer then: `check` before each write.
    """

    def __init__(self, store: Store, now: Callable[[], datetime]) -> None:
        self._store = store
        self._now = now
        self._holder = uuid4().hex
        self._expires_at: datetime | None = None
        self._lost = False

    def acquire(self) -> datetime | None:
        """Take the lease; where another process holds it, when that lease expires."""
        now = self._now()
        held_until = self._store.admin.take_lease(self._holder, now, now + LEASE, this_process())
        if held_until is None:
            self._expires_at = now + LEASE
        return held_until

    def check(self) -> None:
        """Renew the lease for another `LEASE`.

        Raises `LeaseLostError` where it expired meanwhile, or another process has it: what is not
        written by now must not be written any more.
        """
        expired = self._expires_at is None or self._now() >= self._expires_at
        self._lost = self._lost or expired or self.acquire() is not None
        if self._lost:
            raise LeaseLostError(
                "the lease of the memory was lost: this process did not renew it in time, or "
                "another process took over"
            )

    def release(self) -> None:
        """Give it back; harmless where another process took over."""
        self._store.admin.take_lease(self._holder, self._now(), until=None)


@contextmanager
def renewing(lease: Lease, every: float = RENEWAL_SECONDS) -> Iterator[None]:
    """Renew an acquired *lease* in a thread, each *every* seconds, and release it at the end."""
    stop = threading.Event()
    thread = threading.Thread(target=_renew_until, args=(stop, lease, every), daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        lease.release()


@contextmanager
def exclusive(
    store: Store,
    now: Callable[[], datetime],
    waiting: Callable[[datetime], None],
) -> Iterator[Lease]:
    """Hold the lease of *store*, renewed meanwhile.

    Waits for another holder; *waiting* is called with the time at which that lease expires,
    whenever it changes.
    """
    lease = Lease(store, now)
    expires_at: datetime | None = None
    while (held_until := lease.acquire()) is not None:
        if held_until != expires_at:
            expires_at = held_until
            waiting(held_until)
        time.sleep(_POLL_SECONDS)
    with renewing(lease):
        yield lease


def _renew_until(stop: threading.Event, lease: Lease, every: float) -> None:
    while not stop.wait(every):
        try:
            lease.check()
        except LeaseLostError:
            return  # the next `check` raises it again
        except StoreError:
            continue  # busy or out of reach: tried again before the lease expires


NeuralEmbedder = LocalEmbedder | RemoteEmbedder


class EmbedderFactory(Struct, frozen=True):
    """Creates embedders by name.

    *endpoint*, *providers* (those of litellm) and *costs* are for those behind an API; *price*, in
    US dollars for a million tokens, overrides the published one.
    """

    endpoint: Endpoint
    costs: EmbeddingCosts
    price: float | None = None
    providers: LitellmEndpoint = field(default_factory=LitellmEndpoint)

    def create(self, name: str, policy: RetryPolicy = BACKGROUND) -> NeuralEmbedder | None:
        """Return the embedder called *name*; None for ``tfidf``, which is fitted on each memory.

        Raises `SettingsError` for an unknown name. Nothing is opened yet.
        """
        maker, _, model = name.partition("/")
        if maker == FITTED and not model:
            return None
        if maker == LOCAL:
            return local_embedder(model, self.costs.cache)
        if maker not in (OPENAI, LITELLM) or not model:
            raise SettingsError(
                f"no embedder {name!r}; write tfidf, local, local/FOLDER, openai/MODEL[@N] or "
                "litellm/PROVIDER/MODEL@N"
            )
        remote = remote_model(model, self.price, maker)
        budget = self.costs.budget
        if budget.max_cost is not None and remote.price is None:
            raise SettingsError(
                f"--max-cost needs the price of {name}; set embedding_price in contextgraph.toml "
                "(US dollars for a million tokens)"
            )
        if maker == LITELLM:
            return LitellmEmbedder(remote, self.providers, self.costs, policy)
        return RemoteEmbedder(remote, self.endpoint, self.costs, policy)


class ActiveEmbedder:
    """An `EmbedderSource` for *store*: loads a model once, and again after the space was switched.

    *configured* is used for its own space, and with *initialize* also for a memory without a
    space, which then gets that one. None: the memory's own TF-IDF.
    """

    def __init__(
        self,
        store: Store,
        embedders: EmbedderFactory,
        configured: NeuralEmbedder | None = None,
        *,
        policy: RetryPolicy = BACKGROUND,
        initialize: bool = False,
    ) -> None:
        self._store = store
        self._embedders = embedders
        self._configured = configured
        self._policy = policy
        self._initialize_empty = initialize
        self._loaded: tuple[Space, Embedder] | None = None

    def __call__(self) -> Embedder | None:
        """The embedder; raises `EmbeddingError` where it cannot be made."""
        active = self._store.vectors.active_space()
        if active is None and self._initialize_empty and self._configured is not None:
            active = self._initialize(self._configured)
        if active is None:
            return None
        # Read once: another thread may replace it.
        loaded = self._loaded
        if loaded is None or _identity(loaded[0]) != _identity(active):
            try:
                loaded = self._loaded = (active, self._load(active))
            except EmbeddingError:
                # Another process may have dropped that space with its model meanwhile.
                if self._store.vectors.active_space() == active:
                    raise
                return self()
        return loaded[1]

    def embed(self, texts: Sequence[str]) -> Embeddings:
        """Embed *texts* in the active space; raises `EmbeddingError` while there is none."""
        embedder = self()
        if embedder is None:
            raise EmbeddingError("the memory has no embedding space yet: it is fitted on 16 runs")
        return embedder.embed(texts)

    def _initialize(self, configured: NeuralEmbedder) -> Space | None:
        self._store.vectors.prepare(Space(configured.space, 0), None)
        try:
            self._store.vectors.switch(configured.space)
        except StoreError:
            # Another process may have chosen a space first.
            if self._store.vectors.active_space() is None:
                raise
        return self._store.vectors.active_space()

    def _load(self, active: Space) -> Embedder:
        if is_fitted(active.name):
            model = self._store.vectors.space_model(active.name)
            if model is None:
                raise EmbeddingError(f"the model of space {active.name} is missing; {_REMEDY}")
            return TfidfModel.from_bytes(model)
        return self._neural(active.name).calibrated(active.similarity_threshold)

    def _neural(self, space: str) -> NeuralEmbedder:
        if self._configured is not None and self._configured.space == space:
            return self._configured
        try:
            embedder = self._embedders.create(space, self._policy)
        except SettingsError as error:
            raise EmbeddingError(f"no embedder for space {space} ({error}); {_REMEDY}") from error
        assert embedder is not None  # only `tfidf` by itself is none
        return embedder


_REMEDY = "run: contextgraph call reembed"


def _identity(space: Space) -> tuple[str, float | None]:
    return space.name, space.similarity_threshold


REEMBED = "contextgraph call reembed"
_RUNS_AT_ONCE = 256
# They take two seconds.
_PASSAGES_AT_ONCE = 64


class ReembeddingPlan(Struct, frozen=True):
    """A plan of `reembed`: *runs* still to embed, all *texts*, at most *usage*.

    *space* is ``tfidf`` where the model has yet to be fitted.
    """

    space: str
    runs: int
    texts: int
    usage: Usage


class Reembedding(Struct, frozen=True):
    """The result of `reembed`: *runs* were embedded with *usage*, and *space* is active."""

    space: Space
    runs: int
    usage: Usage


class EmbeddingSpaceManager:
    """Plans, changes and checks the space of a memory.

    *configured* is the name of the configured embedder, or ""; *embedder* is what queries use.
    """

    def __init__(
        self,
        store: Store,
        embedders: EmbedderFactory,
        configured: str,
        embedder: ActiveEmbedder,
        now: Callable[[], datetime],
    ) -> None:
        self._store = store
        self._embedders = embedders
        self._configured = configured
        self.embedder = embedder
        self._now = now

    def plan(self, name: str = "") -> ReembeddingPlan:
        """Estimate what `reembed` with the embedder *name* would use; nothing is embedded."""
        target = self._target(name)
        if target is None:
            runs = self._store.runs.word_counts(()).total
            return ReembeddingPlan(FITTED, runs, text_count(self._store), NO_USAGE)
        counts, usage = [], NO_USAGE
        for source in (self._store.vectors, self._store.notes):
            texts = 0
            for batch in _waiting(source, target.space):
                texts += len(batch)
                usage += target.estimate(batch)
            counts.append(texts)
        return ReembeddingPlan(target.space, counts[0], sum(counts), usage)

    def reembed(
        self,
        name: str = "",
        progress: Callable[[int], None] = lambda runs: None,
        waiting: Callable[[datetime], None] = lambda until: None,
    ) -> Reembedding:
        """Embed all runs with the embedder *name* ("": the configured one) and activate its space.

        *progress* is called with the number of runs of each batch, *waiting* with the time at
        which the lease of another process expires. An interrupted call can be repeated: it
        continues. Raises `EmbeddingError` where the embedder fails; the old space stays active
        until the new one is complete.
        """
        done, usage = 0, NO_USAGE
        with exclusive(self._store, self._now, waiting) as lease:

            def count(runs: int) -> None:
                nonlocal done
                lease.check()
                done += runs
                progress(runs)

            target = self._target(name)
            if target:
                usage = self._move_to(target, count)
            else:
                refit(self._store, count)
        active = self._store.vectors.active_space()
        assert active is not None  # it was activated above
        return Reembedding(active, done, usage)

    def catch_up(self, check: Callable[[], None] = lambda: None) -> int:
        """Fit or calibrate the space where that is due, and embed what waits; how many texts.

        *check* is called after each batch. Raises `EmbeddingError`.
        """
        done = 0

        def count(texts: int) -> None:
            nonlocal done
            check()
            done += texts

        catch_up(self._store, self.embedder, count)
        return done

    def embed_passages(self, progress: Callable[[int], None] = lambda passages: None) -> int:
        """Embed passages that have no vector yet; how many.

        *progress* is called with the number of each batch. What an interrupted call has done stays.
        Nothing in the memory's own TF-IDF. Raises `EmbeddingError`.
        """
        done, embedder = 0, self.embedder()
        while embedder is not None:
            # Between batches others may consolidate, or embed the next one.
            with exclusive(self._store, self._now, lambda until: None):
                passages = embed_passages(self._store, embedder, _PASSAGES_AT_ONCE)
            if not passages:
                break
            done += passages
            progress(passages)
        return done

    def waiting(self) -> int:
        """Return the number of runs without vectors in the active space."""
        active = self._store.vectors.active_space()
        return sum(map(len, _waiting(self._store.vectors, active.name))) if active else 0

    def mismatch(self) -> str:
        """Return a message if the configured embedder is not of the active space, else ""."""
        active = self._store.vectors.active_space()
        if not self._configured or active is None:
            return ""
        target = self._embedders.create(self._configured)
        is_so = target.space == active.name if target else is_fitted(active.name)
        if is_so:
            return ""
        return (
            f"{self._configured} is configured, but the space of the memory is {active.name}; "
            f"to change it, run: {REEMBED}"
        )

    def health(self) -> Iterator[HealthCheck]:
        """Check that texts can be embedded now: embeds one word.

        Nothing where the store is unhealthy: its own checks say so.
        """
        try:
            yield self._check()
        except EmbeddingError as error:
            yield HealthCheck("embedding", False, str(error), "see docs/embedding.md")
        except StoreError:
            return

    def _check(self) -> HealthCheck:
        mismatch = self.mismatch()
        if mismatch:
            return HealthCheck("embedding", False, mismatch, REEMBED)
        embedder = self.embedder()
        if embedder is None:
            later = f"consolidation fits {FITTED} from 16 runs on"
            if self._configured:
                later = f"it will be {self._configured}"
            return HealthCheck("embedding", True, f"no space yet; {later}")
        embedder.embed(["doctor"])
        threshold = embedder.similarity_threshold
        bound = (
            f"{threshold:.2f}"
            if threshold
            else "not calibrated yet, so it admits nothing by itself"
        )
        return HealthCheck("embedding", True, f"{embedder.space}; similarity threshold: {bound}")

    def _target(self, name: str) -> NeuralEmbedder | None:
        return self._embedders.create(name or self._configured or FITTED, BATCH)

    def _move_to(self, target: NeuralEmbedder, progress: Callable[[int], None]) -> Usage:
        active = self._store.vectors.active_space()
        if active is None or active.name != target.space:
            self._store.vectors.prepare(Space(target.space, 0), None)
        usage = activate(self._store, target, progress)
        calibrate(self._store, target)
        return usage


def _waiting(source: TextVectors, space: str) -> Iterator[list[str]]:
    """The texts of *source* without a vector of *space*, a few in memory at a time."""
    after = ""
    while batch := source.texts_to_embed(_RUNS_AT_ONCE, space, after):
        yield list(batch.values())
        after = max(batch)
