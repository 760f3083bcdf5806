"""Prose and code fall into words to search for."""

import pytest

from contextgraph.text import words


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("getattr_static", ["getattr_static", "getattr", "static"]),
        ("getHTTPResponse", ["gethttpresponse", "get", "http", "response"]),
        ("ValueError", ["valueerror", "value", "error"]),
        ("os.path.join", ["os", "path", "join"]),
        ("src/app/models.py", ["src", "app", "models", "py"]),
        ("MAX_SIZE", ["max_size", "max", "size"]),
        ("__init__", ["init"]),
        ("sha256 utf8", ["sha256", "utf8"]),
        ("line 404 of 7", ["line"]),
        ("The test was not in the list", ["test", "list"]),
        ("naïve_Straße", ["naïve_straße", "naïve", "straße"]),
        ("x y1", ["y1"]),
        ("error error", ["error", "error"]),
        ("", []),
        ("a" * 65, []),
        ("spam_" + "a" * 65, ["spam"]),
    ],
)
def test_a_text_gives_identifiers_and_their_parts(text, found):
    assert words(text) == found
