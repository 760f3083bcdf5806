"""When a memory's own TF-IDF space is due, and how it takes the place of the one before."""

from itertools import chain

from contextgraph.embedding.runs import embed_runs, texts_of
from contextgraph.embedding.tfidf import MAKER, fit
from contextgraph.model import Space
from contextgraph.ports import Embedder, GraphStore, VectorStore

# Real runs have about eight fragments: some hundred texts.
FIRST_RUNS = 16
# Ids are fingerprints, so those that come first are a random sample, always the same.
MOST_RUNS = 1_000
_RUNS_AT_ONCE = 256


def fit_due(store: GraphStore) -> bool:
    """Whether to `refit`: at 16 runs, and whenever there are twice as many as were fitted on.

    A memory whose space is not its own TF-IDF is never due.
    """
    runs = store.document_count()
    if runs < FIRST_RUNS:
        return False
    active = store.active_space()
    if active is None:
        return True
    return active.name.startswith(f"{MAKER}/") and runs >= 2 * active.runs


def refit(store: GraphStore) -> str:
    """Fit a model on the memory, embed all runs anew, and switch over; the name of the space.

    Until the switch, in one transaction at the end, queries are answered in the space of before;
    what is interrupted leaves that as it was. Raises `StoreError` where another process was faster.
    """
    runs = store.document_count()
    model = fit(chain.from_iterable(map(texts_of, store.texts_to_embed(MOST_RUNS))))
    store.prepare_space(Space(model.space, runs), model.to_bytes())
    embed_missing(store, model)
    store.switch_space(model.space)
    # What others learned meanwhile, in the space of before.
    embed_missing(store, model)
    return model.space


def embed_missing(store: VectorStore, embedder: Embedder) -> int:
    """Embed the runs that have no vectors in the space of *embedder* yet; how many there were."""
    count = 0
    while found := store.texts_to_embed(_RUNS_AT_ONCE, embedder.space):
        vectors, _ = embed_runs(found, embedder)
        store.add_vectors(vectors)
        count += len(found)
    return count
