"""The embedder of the space that is active in a memory."""

from contextgraph.embedding.tfidf import MAKER, TfidfModel
from contextgraph.errors import EmbeddingError
from contextgraph.model import Space
from contextgraph.ports import Embedder, VectorStore


class ActiveEmbedder:
    """An `EmbedderSource` for *store*: loads a model once, and anew when the space is switched."""

    def __init__(self, store: VectorStore) -> None:
        self._store = store
        self._loaded: Embedder | None = None

    def __call__(self) -> Embedder | None:
        """The embedder; raises `EmbeddingError` where it cannot be made."""
        active = self._store.active_space()
        if active is None:
            return None
        # Read once: another thread may put in another meanwhile.
        loaded = self._loaded
        if loaded is None or loaded.space != active.name:
            loaded = self._loaded = self._load(active)
        return loaded

    def _load(self, active: Space) -> Embedder:
        maker = active.name.partition("/")[0]
        model = self._store.space_model(active.name)
        if maker != MAKER or model is None:
            raise EmbeddingError(f"no embedder for space {active.name}; embed the memory anew")
        return TfidfModel.from_bytes(model)
