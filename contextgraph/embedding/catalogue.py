"""From a name to its embedder."""

from dataclasses import dataclass

from contextgraph.embedding import tfidf
from contextgraph.embedding.local import MAKER as LOCAL, LocalEmbedder, local_embedder
from contextgraph.embedding.openai import Purse, RemoteEmbedder
from contextgraph.embedding.openai_models import MAKER as OPENAI, remote_model
from contextgraph.errors import SettingsError
from contextgraph.remote import PATIENT, Endpoint, Patience

NeuralEmbedder = LocalEmbedder | RemoteEmbedder


@dataclass(frozen=True, slots=True)
class Catalogue:
    """Makes embedders of their names.

    *endpoint* and *purse* are for those behind an API; *price*, in US dollars for a million tokens,
    takes the place of what is known.
    """

    endpoint: Endpoint
    purse: Purse
    price: float | None = None

    def named(self, name: str, patience: Patience = PATIENT) -> NeuralEmbedder | None:
        """The embedder that *name* means; None for ``tfidf``, which is fitted on each memory.

        Raises `SettingsError` for a name that means none. Nothing is opened yet.
        """
        maker, _, model = name.partition("/")
        if maker == tfidf.MAKER and not model:
            return None
        if maker == LOCAL:
            return local_embedder(model, self.purse.cache)
        if maker != OPENAI or not model:
            raise SettingsError(
                f"no embedder {name!r}; write tfidf, local, local/FOLDER or openai/MODEL[@N]"
            )
        found = remote_model(model, self.price)
        budget = self.purse.budget
        if budget.max_cost is not None and found.price is None:
            raise SettingsError(
                f"--max-cost needs the price of {name}; set embedding_price in contextgraph.toml "
                "(US dollars for a million tokens)"
            )
        return RemoteEmbedder(found, self.endpoint, self.purse, patience)
