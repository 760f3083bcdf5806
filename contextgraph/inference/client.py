"""The embedder of the founding design, by itself."""

from pathlib import Path

from contextgraph.config import load_settings, usage_log_file, vector_cache_file
from contextgraph.inference.api import EmbeddingCosts, RemoteEmbedder, VectorCache, remote_model
from contextgraph.store.protocols import Embedder
from contextgraph.system.remote import INTERACTIVE, Budget, Endpoint, UsageLog


class EmbeddingClient(RemoteEmbedder):
    """Client of the embeddings API of OpenAI, for a key and a model; `embed` returns vectors.

    It can be passed as an `EmbedderSource`: calling it returns the client.
    """

    def __init__(self, api_key: str = "", model: str = "text-embedding-3-small") -> None:
        settings = load_settings(embedding_api_key=api_key or None)
        costs = EmbeddingCosts(
            VectorCache(Path(vector_cache_file())),
            UsageLog(Path(usage_log_file()), settings.address),
            Budget(settings.max_cost),
        )
        endpoint = Endpoint(settings.api_url, settings.embedding_api_key)
        super().__init__(remote_model(model), endpoint, costs, INTERACTIVE)

    def __call__(self) -> Embedder:
        return self

    def calibrated(self, threshold: float | None) -> RemoteEmbedder:
        """Return an embedder of the same model with this *threshold* of similarity, a cosine."""
        return RemoteEmbedder(self.model, self.endpoint, self.costs, self.policy, threshold)
