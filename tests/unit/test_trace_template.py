"""Templates and keywords of messages."""

import pytest

from contextgraph.trace.errors.keywords import keywords_of
from contextgraph.trace.errors.template import template_of


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("No module named 'oven'", "No module named 'dough.rise'"),
        ("File /a/b.py not found", "File oven.py not found"),
        (
            "bake() missing 1 required positional argument: 'heat'",
            "Oven.knead() missing 3 required positional arguments: 'n', 'm', and 'o'",
        ),
        ("<Oven object at 0x7f01aa> is cold", "<Oven object at 0x7f99> is cold"),
        ("404 for url: https://a.example/x?y=1", "404 for url: http://b.example"),
        ("index 3 is out of bounds for size 1.5", "index 12 is out of bounds for size 2"),
        ("needs flour 1.2.3", "needs flour 2.0rc1"),
        (
            "cannot access 'a b': No such file or directory",
            "cannot access ‘c’: No such file or directory",
        ),
    ],
)
def test_one_mistake_at_two_places_has_one_template(one, other):
    assert template_of(one) == template_of(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("unexpected indent", "unindent does not match any outer indentation level"),
        ("'x' object is not callable", "'x' object is not iterable"),
        ("got an unexpected keyword argument 'x'", "got multiple values for argument 'x'"),
    ],
)
def test_two_mistakes_of_one_class_have_two_templates(one, other):
    assert template_of(one) != template_of(other)


def test_a_template_names_what_it_masks():
    message = "cannot import name 'rise' from 'dough' (/bakery/dough.py)"

    assert template_of(message) == "cannot import name <name> from <name> (<path>)"


def test_a_template_is_short():
    assert len(template_of("flour " * 500)) <= 200


@pytest.mark.parametrize(
    ("message", "error_type", "keywords"),
    [
        ("No module named 'dough.rise'", "ModuleNotFoundError", ("dough.rise",)),
        ("'Oven' object has no attribute 'heat'", "AttributeError", ("Oven", "heat")),
        ("unexpected indent", "E999 IndentationError", ("indent",)),
        ("can't open file '/bakery/bake.py'", "python: can't open file", ("bake.py",)),
    ],
)
def test_keywords_are_names_rather_than_boilerplate(message, error_type, keywords):
    assert keywords_of(message, error_type)[: len(keywords)] == keywords


def test_an_empty_message_has_no_keywords():
    assert keywords_of("", "AssertionError") == ()
