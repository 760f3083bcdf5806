"""Vectors by the library litellm, which calls the embedding APIs of many providers."""

import os
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any

import orjson

from contextgraph.embedding.openai import (
    EmbeddingAnswer,
    RemoteEmbedder,
    answer_in,
)
from contextgraph.errors import MissingExtraError
from contextgraph.lazy import dataclass, replace
from contextgraph.model_api import failure_of
from contextgraph.remote import (
    Answer,
    Failure,
    Remote,
    RetryPolicy,
    UnusableAnswerError,
)

MAKER = "litellm"


@dataclass(frozen=True, slots=True)
class _Client:
    """The *library*; *timeout* in seconds is for one answer."""

    library: Any
    timeout: float | None = None

    def embed(self, model: str, texts: Sequence[str], dimensions: int | None) -> Any:
        """The answer, in the form of OpenAI."""
        return self.library.embedding(
            model,
            [*texts],
            dimensions=dimensions,
            encoding_format="float",
            timeout=self.timeout,
            max_retries=0,  # its retries know neither the other threads nor our time limits
        )

    def close(self) -> None:
        """Do nothing: the library keeps its connections."""


class LitellmEndpoint(Remote[_Client]):
    """The providers that litellm calls, with the keys that it finds in the environment."""

    def __init__(self) -> None:
        super().__init__(f"{MAKER}://providers")

    def _attempt(
        self, request: Callable[[_Client], Answer], client: _Client, policy: RetryPolicy
    ) -> Answer | Failure:
        import openai  # whose errors those of litellm extend

        try:
            return request(replace(client, timeout=policy.timeout))
        except (openai.APIError, UnusableAnswerError) as error:
            return failure_of(error, "", "the key of the provider")

    def _open(self) -> _Client:
        if find_spec(MAKER) is None:
            raise MissingExtraError(
                "litellm is not installed; install it, in an environment without the extra openai, "
                "with: pip install 'contextgraph-memory[litellm]'"
            )
        # Else an import asks a server for prices.
        os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
        # Else it loads the file .env of a checkout that its environment is in.
        os.environ.setdefault("LITELLM_MODE", "PRODUCTION")
        import litellm

        litellm.suppress_debug_info = True  # it prints advice on each failure
        return _Client(litellm)


@dataclass(frozen=True, slots=True)
class LitellmEmbedder(RemoteEmbedder):
    """A `RemoteEmbedder` whose model litellm calls."""

    def _embed(self, client: Any, texts: Sequence[str]) -> EmbeddingAnswer:
        dimensions = self.model.dimensions if self.model.send_dimensions else None
        answer = client.embed(self.model.name, texts, dimensions)
        return answer_in(orjson.dumps(answer.model_dump()), texts, self.space)
