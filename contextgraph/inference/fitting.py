"""Fits and calibrates the TF-IDF space of a memory, and embeds runs."""

import hashlib
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import chain, repeat
from math import hypot, log
from operator import mul
from struct import Struct as Layout, unpack_from
from typing import TYPE_CHECKING, Self

import orjson
from msgspec import Struct

from contextgraph.errors import EmbeddingError
from contextgraph.model import (
    FITTED,
    NO_USAGE,
    PLAIN_WORK,
    Bundle,
    EmbeddedBundle,
    EmbeddedRun,
    Embeddings,
    NoteKind,
    Scope,
    Space,
    Trajectory,
    Usage,
    Vector,
    is_fitted,
    run_text,
)
from contextgraph.model.values import replace
from contextgraph.store.memory_store import ALL, Store
from contextgraph.store.protocols import Embedder, EmbedderSource
from contextgraph.text import TASK_CHARS, words

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from contextgraph.model import Floats


DIMENSIONS = 384
# On the own machine meaning is that of the beginning of a passage (about 55 tokens), at three times
# the speed of the whole: its words find the rest (docs/measurements.md).
_BEGINNING = 190
# 7,500 words by 384 float32 are 11.5 MB, stored with the memory and loaded by who asks it.
MOST_WORDS = 7_500
# From this cosine on, a past task of the repository was a related one about every second time.
SIMILARITY_THRESHOLD = 0.30
# Of the variance that five explain, two explain 99 %, in half the time.
ITERATIONS = 2

# Directions in which the texts fitted on hardly differ are noise.
_LEAST_SINGULAR_VALUE = 1e-3
_LEAST_LENGTH = 1e-4
_FEWEST_WORDS = 2
_ALIGNMENT = 64
_DIRECTION = Layout(f"<{DIMENSIONS}f")


class TfidfModel(Struct, frozen=True, eq=False):
    """A fitted model: an `Embedder` that needs no scikit-learn.

    *rows*: word -> its row; a word that was forgotten has none. *numbers* are little-endian
    float32: the rarity of each row, then the direction of each, 384 numbers.
    """

    space: str
    rows: Mapping[str, int]
    numbers: memoryview

    @property
    def similarity_threshold(self) -> float:
        """Measured once for all: see docs/embedding.md."""
        return SIMILARITY_THRESHOLD

    @property
    def is_remote(self) -> bool:
        return False

    @property
    def size(self) -> int:
        """The number of its rows."""
        return len(self.numbers) // (4 * (1 + DIMENSIONS))

    def without(self, forgotten: Collection[str]) -> Self:
        """Return the model without these words; the vectors of other texts stay as they are."""
        rows = {word: row for word, row in self.rows.items() if word not in forgotten}
        return replace(self, rows=rows)

    def embed(self, texts: Sequence[str]) -> Embeddings:
        """Return a vector for each text, None for one without a word that the model knows."""
        counted = [self._counted(text) for text in texts]
        known = [counts for counts in counted if counts]
        is_little = PLAIN_WORK.takes(DIMENSIONS * sum(map(len, known)))
        vectors = iter([*map(self._vector, known)] if is_little else self._vectors(known))
        return Embeddings(tuple(next(vectors) if counts else None for counts in counted))

    def _counted(self, text: str) -> Counter[int]:
        """The rows of the known words in *text*, and how often each occurs."""
        return Counter(row for row in map(self.rows.get, words(text)) if row is not None)

    def _vector(self, counts: Counter[int]) -> Vector | None:
        """Return what `_vectors` does, in plain Python."""
        idf = [unpack_from("<f", self.numbers, 4 * row)[0] for row in counts]
        weights = [rare * (1 + log(n)) for rare, n in zip(idf, counts.values(), strict=True)]
        first, size = 4 * self.size, 4 * DIMENSIONS
        directions = [_DIRECTION.unpack_from(self.numbers, first + size * row) for row in counts]
        sums = [sum(map(mul, weights, column)) for column in zip(*directions, strict=True)]
        length = hypot(*sums)
        if length <= _LEAST_LENGTH * hypot(*weights):
            return None
        return Vector(self.space, _DIRECTION.pack(*(number / length for number in sums)))

    def _vectors(self, counted: Sequence[Counter[int]]) -> list[Vector | None]:
        import numpy as np

        if not counted:
            return []
        numbers = np.frombuffer(self.numbers, dtype="<f4")
        idf, directions = numbers[: self.size], numbers[self.size :]
        directions = directions.reshape(-1, DIMENSIONS)
        rows = np.fromiter(chain.from_iterable(counted), dtype=np.intp)
        # In double precision, so that rounded numbers are those of `_vector`.
        counts = np.fromiter(chain.from_iterable(c.values() for c in counted), dtype=np.float64)
        starts = np.cumsum([0, *map(len, counted[:-1])])
        weights = idf[rows] * (1 + np.log(counts))
        # No matrix product, for the reason that `contextgraph.model.bundle.products` has none.
        sums = np.add.reduceat(directions[rows] * weights[:, None], starts, axis=0)
        lengths = np.sqrt(np.vecdot(sums, sums))
        strong = lengths > _LEAST_LENGTH * np.sqrt(np.add.reduceat(weights * weights, starts))
        units = sums / np.where(strong, lengths, 1)[:, None]
        pairs = zip(units, strong.tolist(), strict=True)
        return [
            Vector(self.space, unit.astype("<f4").tobytes()) if sure else None
            for unit, sure in pairs
        ]

    def to_bytes(self) -> bytes:
        """Return the model to store: a line of JSON with the words by row, then its numbers.

        A word that was forgotten is empty.
        """
        listed = [""] * self.size
        for word, row in self.rows.items():
            listed[row] = word
        head = orjson.dumps({"space": self.space, "words": listed})
        head += b" " * (-(len(head) + 1) % _ALIGNMENT) + b"\n"
        return head + self.numbers

    @classmethod
    def from_bytes(cls, data: bytes) -> "TfidfModel":
        """Return the model that `to_bytes` wrote as *data*; raises `EmbeddingError`."""
        start = data.find(b"\n") + 1
        try:
            head = orjson.loads(data[:start])
            space, listed = head["space"], head["words"]
            if (size := len(data) - start) != 4 * len(listed) * (1 + DIMENSIONS):
                raise ValueError(f"{size} bytes of numbers for {len(listed)} words")
            rows = _by_row(listed)
        except (ValueError, KeyError, TypeError) as error:
            raise EmbeddingError(f"a stored TF-IDF model is damaged: {error}") from error
        return cls(space, rows, memoryview(data)[start:])


def fit(texts: Iterable[str]) -> TfidfModel:
    """Return a model of *texts*, the same for the same; without words if they share too few.

    Imports scikit-learn, which takes a second.
    """
    import numpy as np
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectorizer = TfidfVectorizer(
        analyzer=words, sublinear_tf=True, min_df=2, max_features=MOST_WORDS, dtype=np.float32
    )
    try:
        weights = vectorizer.fit_transform(texts)
    except ValueError:  # no word is in two texts
        return _model([], np.zeros(0, "<f4"), np.zeros((0, DIMENSIONS), "<f4"))
    known = vectorizer.get_feature_names_out().tolist()
    return _model(known, vectorizer.idf_.astype("<f4"), _directions(weights))


def _directions(weights: "csr_array") -> "Floats":
    """Return directions of the words of *weights* (shape (texts, words)), shape (words, 384)."""
    import numpy as np
    from sklearn.decomposition import TruncatedSVD
    from threadpoolctl import threadpool_limits  # comes with scikit-learn

    texts, known = weights.shape
    directions = np.zeros((known, DIMENSIONS), dtype="<f4")
    if known < _FEWEST_WORDS:
        return directions
    size = min(DIMENSIONS, texts, known)
    # With more threads than idle cores this takes ten times as long. Texts that are all the same
    # have no variance that could be explained.
    with threadpool_limits(1), np.errstate(divide="ignore", invalid="ignore"):
        reduction = TruncatedSVD(size, n_iter=ITERATIONS, random_state=0).fit(weights)
    strong = reduction.singular_values_ > _LEAST_SINGULAR_VALUE * reduction.singular_values_[0]
    directions[:, :size] = (reduction.components_ * strong[:, None]).T
    return directions


def _model(known: Sequence[str], idf: "Floats", directions: "Floats") -> TfidfModel:
    """The model, its space named by a fingerprint of all that decides a vector."""
    numbers = idf.tobytes() + directions.tobytes()
    digest = hashlib.sha256(orjson.dumps(known) + numbers)
    space = f"{FITTED}/{digest.hexdigest()[:12]}@{DIMENSIONS}"
    return TfidfModel(space, _by_row(known), memoryview(numbers))


def _by_row(known: Sequence[str]) -> dict[str, int]:
    return {word: row for row, word in enumerate(known) if word}


def embedded(
    bundles: Sequence[Bundle], remote: bool, source: EmbedderSource
) -> list[EmbeddedBundle]:
    """Return *bundles* with their vectors, where the embedder is *remote* or is not, as requested.

    Unchanged for one of the other kind, while there is no space, or where the embedder fails:
    they are embedded later. What has a vector of its space stays as it is. The first result has
    the usage of all of them.
    """
    try:
        embedder = source() if bundles else None
        if embedder is None or embedder.is_remote is not remote:
            return [EmbeddedBundle(bundle) for bundle in bundles]
        missing = [bundle for bundle in bundles if not _is_in(embedder.space, bundle)]
        embeddings = embedder.embed([run_text(bundle.trajectory) for bundle in missing])
    except EmbeddingError as error:
        return [EmbeddedBundle(bundle, failure=str(error)) for bundle in bundles]
    usages, vectors = chain([embeddings.usage], repeat(NO_USAGE)), iter(embeddings.vectors)
    return [
        EmbeddedBundle(
            bundle
            if _is_in(embedder.space, bundle)
            else replace(bundle, embedded=EmbeddedRun(embedder.space, next(vectors))),
            took,
        )
        for bundle, took in zip(bundles, usages, strict=False)
    ]


def _is_in(space: str, bundle: Bundle) -> bool:
    return bundle.embedded is not None and bundle.embedded.space == space


FIRST_RUNS = 16
# Ids are hashes, so the first ones are a random sample, always the same.
MAX_RUNS = 1_000
_FIRST_BATCH, _MAX_BATCH = 16, 256
# The target duration of a batch: after each one results are stored and progress is reported.
_BATCH_SECONDS = 5.0

Progress = Callable[[int], None]


def fit_due(store: Store) -> bool:
    """Return True where `refit` is due: at 16 texts, and at twice as many as were fitted on.

    A memory whose space is not its own TF-IDF is never due.
    """
    active = store.vectors.active_space()
    return (active is None or is_fitted(active.name)) and _has_doubled(store, active)


def calibration_due(store: Store) -> bool:
    """Return True where `calibrate` is due: as `fit_due`, for a space other than the own TF-IDF."""
    active = store.vectors.active_space()
    return active is not None and not is_fitted(active.name) and _has_doubled(store, active)


def refit(store: Store, progress: Progress = lambda runs: None) -> str:
    """Fit a model on the memory, embed all runs with it and activate its space; the space's name.

    Queries use the old space until the switch, which is one transaction at the end; an interrupted
    call leaves the old space as it was. Raises `StoreError` where another process was faster.
    """
    sources = (store.vectors, store.notes)
    model = fit([text for source in sources for text in source.texts_to_embed(MAX_RUNS).values()])
    store.vectors.prepare(Space(model.space, text_count(store)), model.to_bytes())
    activate(store, model, progress)
    return model.space


def forget_words(store: Store, gone: Collection[str]) -> None:
    """Remove from the fitted model the words that no text of the memory has.

    Texts with the ids *gone* count as removed: a call that is interrupted before they are can be
    repeated.
    """
    active = store.vectors.active_space()
    if active is None or not is_fitted(active.name):
        return
    stored = store.vectors.space_model(active.name)
    if stored is None:
        return
    model = TfidfModel.from_bytes(stored)
    lost = {*model.rows}
    for source in (store.vectors, store.notes):
        for identity, text in source.texts_to_embed(ALL).items():
            if identity not in gone:
                lost -= {*words(text)}
    if lost:
        store.vectors.prepare(active, model.without(lost).to_bytes())


def activate(store: Store, embedder: Embedder, progress: Progress = lambda runs: None) -> Usage:
    """Embed all runs in the prepared space of *embedder*, and make it the active one.

    *progress* is called with the number of runs of each batch. An interrupted call continues when
    it is repeated.
    """
    usage = embed_missing(store, embedder, progress)
    store.vectors.switch(embedder.space)
    # Runs that others learned meanwhile have vectors of the old space.
    return usage + embed_missing(store, embedder, progress)


def embed_missing(
    store: Store, embedder: Embedder, progress: Progress = lambda runs: None
) -> Usage:
    """Embed the runs and notes that have no vectors in the space of *embedder* yet; the usage.

    *progress* is called with the number of each batch. No transaction is open meanwhile.
    """
    vectors, notes = store.vectors, store.notes
    runs = _embed_missing(vectors.texts_to_embed, vectors.add, embedder, progress)
    return runs + _embed_missing(notes.texts_to_embed, notes.add, embedder, progress)


def embed_passages(store: Store, embedder: Embedder, limit: int) -> int:
    """Embed at most *limit* passages that have no vector yet; how many there were.

    None in a fitted space: it knows no more of a passage than its words say. A server is sent the
    whole passage.
    """
    if is_fitted(embedder.space):
        return 0
    texts = store.passages.texts_to_embed(limit, embedder.space)
    end = None if embedder.is_remote else _BEGINNING
    vectors = embedder.embed([text[:end] for text in texts.values()]).vectors
    store.passages.add(embedder.space, dict(zip(texts, vectors, strict=True)))
    return len(texts)


def embed_nodes(store: Store, embedder: Embedder, progress: Progress = lambda runs: None) -> Usage:
    """Embed fragments and methodologies that have no vector yet, as `embed_missing` does runs."""
    vectors = store.vectors
    return _embed_missing(vectors.nodes_to_embed, vectors.add_nodes, embedder, progress)


def _embed_missing(
    to_embed: Callable[[int, str], Mapping[str, str]],
    add: Callable[[str, Mapping[str, Vector | None]], None],
    embedder: Embedder,
    progress: Progress,
) -> Usage:
    usage, size = NO_USAGE, _FIRST_BATCH
    while texts := to_embed(size, embedder.space):
        began = time.perf_counter()
        answer = embedder.embed([*texts.values()])
        add(embedder.space, dict(zip(texts, answer.vectors, strict=True)))
        usage += answer.usage
        progress(len(texts))
        seconds = time.perf_counter() - began
        size = min(2 * size, _MAX_BATCH) if seconds < _BATCH_SECONDS / 2 else size
        size = max(size // 2, 1) if seconds > 2 * _BATCH_SECONDS else size
    return usage


def catch_up(store: Store, source: EmbedderSource, progress: Progress) -> bool:
    """Fit the space of the memory where that is due, else embed what waits for it.

    Another space is calibrated where that is due. *progress* is called with the number of each
    batch. True where a model was fitted; raises `EmbeddingError`.
    """
    embedder = source()  # first of all: it may create the configured space
    if fit_due(store):
        refit(store, progress)
        return True
    if embedder is not None:
        embed_missing(store, embedder, progress)
        if calibration_due(store):
            calibrate(store, embedder)
    return False


def calibrate(store: Store, embedder: Embedder) -> Space:
    """Measure the similarity threshold of the active space, that of *embedder*.

    Raises `EmbeddingError` as the embedder does.
    """
    texts = text_count(store)
    space = Space(embedder.space, texts)
    if texts >= FIRST_RUNS:
        space = replace(space, similarity_threshold=_similarity_threshold(store, embedder))
        store.vectors.prepare(space, None)
    return space


def _has_doubled(store: Store, active: Space | None) -> bool:
    texts = text_count(store)
    return texts >= FIRST_RUNS and (active is None or texts >= 2 * active.runs)


def text_count(store: Store) -> int:
    """Count the texts with vectors: runs, and live notes but entities, which have names."""
    notes = store.notes.counts()
    texts = sum(notes.values()) - notes.get(NoteKind.ENTITY, 0)
    return store.runs.word_counts(()).total + texts


# The same quantile as the threshold that was measured for TF-IDF (docs/embedding.md).
QUANTILE = 0.95
# Ids are hashes, so the first ones are a random sample, always the same.
_SAMPLED_RUNS = 64
_NEAREST = 200
_MIN_PAIRS = 100
# Among identical tasks, similarity carries no information.
_MAX_THRESHOLD = 0.95


def _similarity_threshold(store: Store, embedder: Embedder) -> float | None:
    """The cosine that one in twenty pairs of runs of one repository exceeds.

    A pair is the task of one run and the stored vector of another, of another instance, as a
    query compares them. None where there are fewer than 100 pairs. The space must be active;
    raises `EmbeddingError` as the embedder does.
    """
    sample = store.vectors.texts_to_embed(_SAMPLED_RUNS)
    runs = [run for run in store.runs.trajectories(sample).values() if run.repo]
    vectors = embedder.embed([run.task[:TASK_CHARS] for run in runs]).vectors
    pairs = sorted(
        cosine
        for run, vector in zip(runs, vectors, strict=True)
        if vector
        for cosine in _cosines_in_repository(store, run, vector)
    )
    if len(pairs) < _MIN_PAIRS:
        return None
    return round(min(pairs[int(QUANTILE * len(pairs))], _MAX_THRESHOLD), 4)


def _cosines_in_repository(store: Store, run: Trajectory, vector: Vector) -> list[float]:
    others = Scope(run.repo, frozenset({run.instance_id}))
    return [near.cosine for near in store.vectors.nearest(vector, others, _NEAREST)]
