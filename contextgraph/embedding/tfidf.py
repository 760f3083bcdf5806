"""TF-IDF reduced by truncated SVD: meaning without an API, fitted on the memory's own texts."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

import orjson

from contextgraph.errors import EmbeddingError
from contextgraph.model import Embeddings
from contextgraph.text import words
from contextgraph.vectors import Vector

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from contextgraph.vectors import Floats

DIMENSIONS = 384
# 7,500 words by 384 float32 are 11.5 MB, stored with the memory and loaded by who asks it.
MOST_WORDS = 7_500
MAKER = "tfidf"
# From this cosine on, a past task of the repository was a related one about every second time.
SIMILARITY_THRESHOLD = 0.30
# Of the variance that five explain, two explain 99 %, in half the time.
ITERATIONS = 2

# Directions in which the texts fitted on hardly differ are noise.
_LEAST_SINGULAR_VALUE = 1e-3
_LEAST_LENGTH = 1e-4
_FEWEST_WORDS = 2
_ALIGNMENT = 64


@dataclass(frozen=True, eq=False, slots=True)
class TfidfModel:
    """A fitted model: an `Embedder` that needs no scikit-learn.

    *rows*: word -> its row in *directions* (float32, shape (words, 384)); *idf*: by row.
    """

    space: str
    rows: Mapping[str, int]
    idf: "Floats"
    directions: "Floats"

    @property
    def similarity_threshold(self) -> float:
        """Measured once for all: see docs/embedding.md."""
        return SIMILARITY_THRESHOLD

    @property
    def is_remote(self) -> bool:
        return False

    def embed(self, texts: Sequence[str]) -> Embeddings:
        """A vector for each text, None for one without a word that the model knows."""
        counted = [self._counted(text) for text in texts]
        found = iter(self._vectors([counts for counts in counted if counts]))
        return Embeddings(tuple(next(found) if counts else None for counts in counted))

    def _counted(self, text: str) -> Counter[int]:
        """The rows of the known words in *text*, and how often each occurs."""
        return Counter(row for row in map(self.rows.get, words(text)) if row is not None)

    def _vectors(self, counted: Sequence[Counter[int]]) -> list[Vector | None]:
        import numpy as np

        if not counted:
            return []
        rows = np.fromiter(chain.from_iterable(counted), dtype=np.intp)
        counts = np.fromiter(chain.from_iterable(c.values() for c in counted), dtype=np.float32)
        starts = np.cumsum([0, *map(len, counted[:-1])])
        weights = self.idf[rows] * (1 + np.log(counts))
        # No matrix product, for the reason that `contextgraph.vectors.products` has none.
        sums = np.add.reduceat(self.directions[rows] * weights[:, None], starts, axis=0)
        lengths = np.sqrt(np.vecdot(sums, sums))
        strong = lengths > _LEAST_LENGTH * np.sqrt(np.add.reduceat(weights * weights, starts))
        units = sums / np.where(strong, lengths, 1)[:, None]
        pairs = zip(units, strong.tolist(), strict=True)
        return [Vector(self.space, unit.tobytes()) if sure else None for unit, sure in pairs]

    def to_bytes(self) -> bytes:
        """The model to store: a line of JSON with the words by row, then *idf*, *directions*."""
        head = orjson.dumps({"space": self.space, "words": list(self.rows)})
        head += b" " * (-(len(head) + 1) % _ALIGNMENT) + b"\n"
        return head + self.idf.tobytes() + self.directions.tobytes()

    @classmethod
    def from_bytes(cls, data: bytes) -> "TfidfModel":
        """The model that `to_bytes` gave *data* for; raises `EmbeddingError` for anything else."""
        import numpy as np

        start = data.find(b"\n") + 1
        try:
            head = orjson.loads(data[:start])
            known = head["words"]
            numbers = np.frombuffer(data, dtype="<f4", offset=start)
            directions = numbers[len(known) :].reshape(len(known), DIMENSIONS)
        except (ValueError, KeyError, TypeError) as error:
            raise EmbeddingError(f"a stored TF-IDF model is damaged: {error}") from error
        return cls(head["space"], _by_row(known), numbers[: len(known)], directions)


def is_fitted(space: str) -> bool:
    """True where the space of this name was fitted on the memory itself."""
    return space.startswith(f"{MAKER}/")


def fit(texts: Iterable[str]) -> TfidfModel:
    """A model of *texts*, the same for the same texts; it knows no word where they share too few.

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
    """Where the words of *weights* (shape (texts, words)) point, shape (words, 384)."""
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
    digest = hashlib.sha256(orjson.dumps(known))
    for array in (idf, directions):
        digest.update(array.tobytes())
    space = f"{MAKER}/{digest.hexdigest()[:12]}@{DIMENSIONS}"
    return TfidfModel(space, _by_row(known), idf, directions)


def _by_row(known: Sequence[str]) -> dict[str, int]:
    return {word: row for row, word in enumerate(known)}
