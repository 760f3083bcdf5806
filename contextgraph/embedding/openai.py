"""Vectors from a server that speaks OpenAI's API."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from contextgraph.embedding.cache import VectorCache
from contextgraph.embedding.openai_answers import Answer, answer_in
from contextgraph.embedding.openai_models import RemoteModel
from contextgraph.errors import ContextGraphError, EmbeddingError
from contextgraph.model import Embeddings, Usage
from contextgraph.remote import Budget, Endpoint, Ledger, Patience
from contextgraph.text import clip_tokens, count_tokens, mask_secrets
from contextgraph.vectors import Vector

if TYPE_CHECKING:
    from openai import OpenAI

# The API takes 8,191 tokens a text, 2,048 texts and 300,000 tokens a request. `count_tokens` is an
# estimate: on 53 long texts of real runs there were at most 1.11 times as many (docs/embedding.md).
MOST_TOKENS = 7_000
_MOST_TEXTS_AT_ONCE = 256
_MOST_TOKENS_AT_ONCE = 60_000
_AT_ONCE = 4


@dataclass(frozen=True, slots=True)
class Purse:
    """Where vectors are bought: what is kept of them, noted, and may be spent."""

    cache: VectorCache
    ledger: Ledger
    budget: Budget


@dataclass(frozen=True, slots=True)
class RemoteEmbedder:
    """An `Embedder` by *model* at *endpoint*. Texts go out with their secrets masked, and cut."""

    model: RemoteModel
    endpoint: Endpoint
    purse: Purse
    patience: Patience
    alike: float | None = None

    @property
    def space(self) -> str:
        """The name of the space."""
        return self.model.space

    def calibrated(self, alike: float | None) -> "RemoteEmbedder":
        """The same with another bound on likeness."""
        return replace(self, alike=alike)

    def embed(self, texts: Sequence[str]) -> Embeddings:
        """A vector for each text, None for an empty one; what was bought before costs nothing.

        Raises `EmbeddingError` where the server does not answer as it should; what it answered
        before that is kept for the next time.
        """
        sent, cut = _fit_to_send(texts)
        asked = tuple(dict.fromkeys(text for text in sent if text))
        found = self.purse.cache.get(self.space, asked)
        missing = [text for text in asked if text not in found]
        try:
            usage = self._buy(missing, found)
        except ContextGraphError as error:
            raise EmbeddingError(f"{self.space}: {error}") from error
        return Embeddings(tuple(map(found.get, sent)), usage + Usage(cut=cut))

    def estimate(self, texts: Sequence[str]) -> Usage:
        """What `embed` of *texts* would take at most, about; nothing is sent."""
        sent, cut = _fit_to_send(texts)
        asked = tuple(dict.fromkeys(text for text in sent if text))
        found = self.purse.cache.get(self.space, asked)
        missing = [text for text in asked if text not in found]
        tokens = sum(map(count_tokens, missing))
        return Usage(len(list(_batches(missing))), tokens, self.model.cost(tokens), cut)

    def _buy(self, texts: Sequence[str], found: dict[str, Vector]) -> Usage:
        """Put the vectors of *texts* into *found*."""
        batches = list(_batches(texts))
        usage = Usage()
        if len(batches) == 1:
            return self._buy_batch(batches[0], found)
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(_AT_ONCE) as pool:
            for bought in pool.map(lambda batch: self._buy_batch(batch, found), batches):
                usage += bought
        return usage

    def _buy_batch(self, texts: Sequence[str], found: dict[str, Vector]) -> Usage:
        purse, model = self.purse, self.model
        with purse.budget.spending(model.cost(sum(map(count_tokens, texts)))) as tell:
            body = self.endpoint.call(lambda client: self._ask(client, texts), self.patience)
            usage = Usage(1, body.tokens, model.cost(body.tokens))
            tell(usage)
        purse.ledger.add(self.space, usage)
        purse.cache.put(self.space, body.vectors)
        found.update(body.vectors)
        return usage

    def _ask(self, client: "OpenAI", texts: Sequence[str]) -> Answer:
        from openai import omit

        # Compatible servers differ in what they call base64, and leave out what they do not know.
        response = client.embeddings.with_raw_response.create(
            input=list(texts),
            model=self.model.name,
            encoding_format="float",
            dimensions=self.model.dimensions if self.model.asks_length else omit,
        )
        return answer_in(response.content, texts, self.space)


def _fit_to_send(texts: Sequence[str]) -> tuple[list[str], int]:
    """*texts* as the server gets them, "" for those that say nothing; and how many were cut.

    Masked, for they leave the machine; valid, for a lone surrogate is none; not too long.
    """
    masked = [mask_secrets(text.encode("utf-8", "replace").decode()).strip() for text in texts]
    sent = [clip_tokens(text, MOST_TOKENS, at="end") for text in masked]
    return sent, sum(one != other for one, other in zip(masked, sent, strict=True))


def _batches(texts: Sequence[str]) -> Iterator[list[str]]:
    """*texts* in order, in parts that a request may have."""
    batch: list[str] = []
    tokens = 0
    for text in texts:
        count = count_tokens(text)
        if len(batch) >= _MOST_TEXTS_AT_ONCE or (batch and tokens + count > _MOST_TOKENS_AT_ONCE):
            yield batch
            batch, tokens = [], 0
        batch.append(text)
        tokens += count
    if batch:
        yield batch
