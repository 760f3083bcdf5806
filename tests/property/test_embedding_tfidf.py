"""The TF-IDF model: equal to that of scikit-learn, and to itself read from its bytes."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from contextgraph.errors import EmbeddingError
from contextgraph.inference.fitting import DIMENSIONS, ITERATIONS, MOST_WORDS, TfidfModel, fit
from contextgraph.text import words
from tests.profiles import examples

WORDS = (
    "cache", "getattr_static", "parseHeader", "indent", "Überlauf", "日本語", "KeyError", "x86",
    "session", "migrate", "tests/test_core.py", "the", "3", "",
)  # fmt: skip
texts = st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join)
corpora = st.lists(texts, min_size=3, max_size=20)
MODEL = fit([" ".join(WORDS[start : start + 5]) for start in range(10)])


def reference(corpus: list[str], queries: list[str]) -> NDArray[np.float64]:
    """The vectors of *queries* by scikit-learn, shape (texts, 384)."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectorizer = TfidfVectorizer(
        analyzer=words, sublinear_tf=True, min_df=2, max_features=MOST_WORDS, dtype=np.float32
    )
    weights = vectorizer.fit_transform(corpus)
    with threadpool_limits(1), np.errstate(divide="ignore", invalid="ignore"):
        reduction = TruncatedSVD(
            min(DIMENSIONS, *weights.shape), n_iter=ITERATIONS, random_state=0
        ).fit(weights)
    weak = reduction.singular_values_ <= 1e-3 * reduction.singular_values_[0]
    reduction.components_[weak] = 0
    found = np.zeros((len(queries), DIMENSIONS))
    found[:, : len(weak)] = reduction.transform(vectorizer.transform(queries))
    return found


@given(corpus=corpora, queries=st.lists(texts, min_size=1, max_size=8))
@settings(max_examples=examples(0.4))
def test_it_embeds_as_scikit_learn_does(corpus: list[str], queries: list[str]) -> None:
    model = fit(corpus)
    assume(len(model.rows) > 1)
    found = reference(corpus, queries)
    lengths = np.linalg.norm(found, axis=1)
    expected = found / np.where(lengths, lengths, 1)[:, None]
    for vector, like, length in zip(model.embed(queries).vectors, expected, lengths, strict=True):
        if vector is not None:
            np.testing.assert_allclose(vector.numbers(), like, atol=1e-4 if length < 0.1 else 1e-5)
        else:
            assert length < 1e-3


@given(corpus=corpora, queries=st.lists(texts, min_size=1, max_size=8))
@settings(max_examples=examples(0.2))
def test_its_bytes_give_the_same_model(corpus: list[str], queries: list[str]) -> None:
    model = fit(corpus)
    again = TfidfModel.from_bytes(model.to_bytes())
    assert again.space == model.space
    assert again.embed(queries).vectors == model.embed(queries).vectors


@given(queries=st.lists(texts, max_size=6))
@settings(max_examples=examples(0.4))
def test_a_text_has_the_same_vector_in_any_batch(queries: list[str]) -> None:
    single = [MODEL.embed([text]).vectors[0] for text in queries]
    assert list(MODEL.embed(queries).vectors) == single


@given(corpus=corpora)
@settings(max_examples=examples(0.2))
def test_the_same_texts_give_the_same_space(corpus: list[str]) -> None:
    assert fit(corpus).to_bytes() == fit(corpus).to_bytes()


@given(queries=texts)
@settings(max_examples=examples(0.3))
def test_a_text_without_a_known_word_has_no_vector(queries: str) -> None:
    model = fit(["alpha beta", "alpha gamma", "beta gamma"])
    assert model.embed([queries, "", "alpha"]).vectors[:2] == (None, None)
    assert model.embed(["alpha"]).vectors != (None,)


@pytest.mark.parametrize("corpus", [["alpha", "beta"], [], ["", "the of"], ["alpha", "alpha"]])
def test_texts_that_share_too_few_words_give_an_empty_model(corpus: list[str]) -> None:
    model = fit(corpus)
    assert model.embed(["alpha", "beta", ""]).vectors == (None, None, None)
    assert TfidfModel.from_bytes(model.to_bytes()).space == model.space


@pytest.mark.parametrize("data", [b"", b"{}\n", b'{"space": "x@384", "words": ["a"]}\n1234'])
def test_bytes_of_something_else_are_refused(data: bytes) -> None:
    with pytest.raises(EmbeddingError, match="damaged"):
        TfidfModel.from_bytes(data)


def test_embedding_needs_no_scikit_learn() -> None:
    model = fit(["alpha beta", "alpha gamma", "beta gamma"])
    code = (
        "import sys\nfrom contextgraph.inference.fitting import TfidfModel\n"
        "model = TfidfModel.from_bytes(sys.stdin.buffer.read())\n"
        "assert model.embed(['alpha']).vectors[0]\n"
        "print({'sklearn', 'scipy'} & set(sys.modules))"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, input=model.to_bytes(), capture_output=True, check=True)
    assert done.stdout.strip() == b"set()"
