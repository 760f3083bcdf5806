"""Vectors and their spaces."""

import math

import pytest

from contextgraph.errors import SpaceMismatchError
from contextgraph.model import Vector, cosines, dimensions_of

SPACE = "made/here@3"


def test_a_vector_has_unit_length() -> None:
    vector = Vector.of(SPACE, [3.0, 0.0, 4.0])
    assert vector.numbers().tolist() == pytest.approx([0.6, 0.0, 0.8])


def test_cosines_are_those_of_the_angles() -> None:
    vector = Vector.of(SPACE, [1.0, 0.0, 0.0])
    others = [
        Vector.of(SPACE, numbers) for numbers in ([2, 0, 0], [1, 1, 0], [0, 0, 5], [-1, 0, 0])
    ]
    assert cosines(vector, others) == pytest.approx([1.0, math.sqrt(0.5), 0.0, -1.0], abs=1e-5)


def test_nothing_compared_gives_nothing() -> None:
    assert cosines(Vector.of(SPACE, [1.0, 0.0, 0.0]), []) == []


def test_vectors_of_two_spaces_are_not_compared() -> None:
    one, other = Vector.of(SPACE, [1.0, 0.0, 0.0]), Vector.of("made/there@3", [1.0, 0.0, 0.0])
    with pytest.raises(SpaceMismatchError, match=r"made/there@3 cannot be compared with .*here@3"):
        cosines(one, [one, other])


def test_a_vector_has_as_many_numbers_as_its_space() -> None:
    with pytest.raises(SpaceMismatchError, match="2 numbers is not of space made/here@3"):
        Vector.of(SPACE, [1.0, 0.0])


@pytest.mark.parametrize("numbers", [[0.0, 0.0, 0.0], [math.nan, 0.0, 0.0], [math.inf, 0.0, 0.0]])
def test_numbers_without_a_direction_give_no_vector(numbers: list[float]) -> None:
    with pytest.raises(ValueError, match="no direction"):
        Vector.of(SPACE, numbers)


@pytest.mark.parametrize("name", ["", "tfidf", "@3", "tfidf/x@", "tfidf/x@0", "tfidf/x@-3"])
def test_a_space_names_its_maker_and_dimensions(name: str) -> None:
    with pytest.raises(SpaceMismatchError, match="names no space"):
        dimensions_of(name)
