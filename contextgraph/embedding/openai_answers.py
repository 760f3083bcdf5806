"""Reading what a server answers to a request for embeddings, believing nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from contextgraph.remote import UnusableAnswerError
from contextgraph.vectors import Vector, dimensions_of


@dataclass(frozen=True, slots=True)
class Answer:
    """The vectors of the texts that were sent, and the tokens that the server counted."""

    vectors: Mapping[str, Vector]
    tokens: int


def answer_in(body: bytes, texts: Sequence[str], space: str) -> Answer:
    """The vectors of *texts* in the *body* of an answer, checked; raises `UnusableAnswerError`."""
    try:
        answer: Any = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise UnusableAnswerError(f"the answer is no JSON ({error})", again=True) from error
    try:
        rows = sorted(answer["data"], key=lambda row: row["index"])
        numbers = [row["embedding"] for row in rows]
        tokens = int((answer.get("usage") or {}).get("prompt_tokens") or 0)
        sizes = {len(one) for one in numbers}
        places = [row["index"] for row in rows]
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise UnusableAnswerError(
            f"the answer has no embeddings in it ({type(error).__name__}: {error})", again=True
        ) from error
    if places != list(range(len(texts))):
        reason = f"{len(texts)} texts were sent, and {len(places)} embeddings came back"
        raise UnusableAnswerError(reason, again=True)
    if sizes != {dimensions_of(space)}:
        given = "/".join(map(str, sorted(sizes)))
        reason = f"it gives {given} numbers, not {dimensions_of(space)}; name it MODEL@{given}"
        raise UnusableAnswerError(reason, again=False)
    try:
        vectors = [Vector.of(space, one) for one in numbers]
    except (ValueError, TypeError) as error:
        raise UnusableAnswerError(f"an embedding is unusable: {error}", again=True) from error
    return Answer(dict(zip(texts, vectors, strict=True)), tokens)
