"""Templates and keywords of messages."""

import pytest

from contextgraph.trace.signature import keywords_of, template_of


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
        ("File name dough/rise.py not found.", "File name Dough not found."),
        ("Mock object has no attribute 'heat'", "'Oven' object has no attribute 'bake'"),
        ("unrecognized arguments: --hot", "unrecognized arguments: -v --cold"),
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


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            "IndentationError: expected an indented block",
            "IndentationError: expected an indented block after 'if' statement on line 3",
        ),
        (
            "SyntaxError: EOL while scanning string literal",
            "SyntaxError: unterminated string literal (detected at line 7)",
        ),
        ("SyntaxError: invalid syntax", "SyntaxError: invalid syntax. Perhaps you forgot a comma?"),
        ("cannot import name 'a'", "cannot import name 'b' from 'oven' (/bakery/oven.py)"),
        ("name 'x' is not defined", "name 'y' is not defined. Did you mean: 'yy'?"),
    ],
)
def test_one_mistake_has_one_template_in_all_versions_of_python(old, new):
    assert template_of(old) == template_of(new)


def test_a_template_names_what_it_masks():
    message = "the oven of 'rise' (/bakery/dough.py) took 12 loaves"

    assert template_of(message) == "the oven of <name> (<path>) took <number> loaves"


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
