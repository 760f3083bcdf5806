"""The embedder of the space that is active in a memory."""

from contextgraph.embedding.catalogue import Catalogue, NeuralEmbedder
from contextgraph.embedding.tfidf import TfidfModel, is_fitted
from contextgraph.errors import EmbeddingError, SettingsError, StoreError
from contextgraph.model import Space
from contextgraph.ports import Embedder, VectorStore
from contextgraph.remote import PATIENT, Patience


class ActiveEmbedder:
    """An `EmbedderSource` for *store*: loads a model once, and anew when the space is switched.

    *chosen* is the embedder that was configured: used for its own space, and where *begins* also
    for a memory that has none yet, which is given that space. None: the memory's own TF-IDF.
    """

    def __init__(
        self,
        store: VectorStore,
        catalogue: Catalogue,
        chosen: NeuralEmbedder | None = None,
        *,
        patience: Patience = PATIENT,
        begins: bool = False,
    ) -> None:
        self._store = store
        self._catalogue = catalogue
        self._chosen = chosen
        self._patience = patience
        self._begins = begins
        self._loaded: tuple[Space, Embedder] | None = None

    def __call__(self) -> Embedder | None:
        """The embedder; raises `EmbeddingError` where it cannot be made."""
        active = self._store.active_space()
        if active is None and self._begins and self._chosen is not None:
            active = self._begin(self._chosen)
        if active is None:
            return None
        # Read once: another thread may put in another meanwhile.
        loaded = self._loaded
        if loaded is None or _identity(loaded[0]) != _identity(active):
            loaded = self._loaded = (active, self._load(active))
        return loaded[1]

    def _begin(self, chosen: NeuralEmbedder) -> Space | None:
        self._store.prepare_space(Space(chosen.space, 0), None)
        try:
            self._store.switch_space(chosen.space)
        except StoreError:
            # Another process, with another choice, may have been first.
            if self._store.active_space() is None:
                raise
        return self._store.active_space()

    def _load(self, active: Space) -> Embedder:
        if is_fitted(active.name):
            model = self._store.space_model(active.name)
            if model is None:
                raise EmbeddingError(f"the model of space {active.name} is gone; {_REMEDY}")
            return TfidfModel.from_bytes(model)
        return self._neural(active.name).calibrated(active.alike)

    def _neural(self, space: str) -> NeuralEmbedder:
        if self._chosen is not None and self._chosen.space == space:
            return self._chosen
        try:
            found = self._catalogue.named(space, self._patience)
        except SettingsError as error:
            raise EmbeddingError(f"no embedder for space {space} ({error}); {_REMEDY}") from error
        assert found is not None  # only `tfidf` by itself is none
        return found


_REMEDY = "embed the memory anew with: contextgraph reembed"


def _identity(space: Space) -> tuple[str, float | None]:
    return space.name, space.alike
