"""Regular expressions that are compiled at first use."""

import re
from importlib import import_module
from pkgutil import walk_packages

import pytest

import contextgraph
from contextgraph.lazy import Regex, regex

_OPTIONAL = "contextgraph.store.", "contextgraph.agents.", "contextgraph.embedding."


def test_a_pattern_is_compiled_when_it_is_first_used():
    lazy = regex(r"(?P<word>\w+)", re.ASCII)
    assert vars(lazy).keys() == {"pattern", "flags"}
    assert lazy.findall("- one") == ["one"]
    assert lazy.sub("x", "a b") == "x x"
    assert lazy.flags & re.ASCII
    assert lazy.pattern == r"(?P<word>\w+)"


def test_no_module_compiles_a_pattern_when_it_is_imported():
    lazy = 0
    for found in walk_packages(contextgraph.__path__, "contextgraph."):
        if found.name.endswith("__main__"):
            continue
        try:
            module = import_module(found.name)
        except ImportError:
            if found.name.startswith(_OPTIONAL):  # of an extra that is not installed
                continue
            raise
        compiled = [name for name, value in vars(module).items() if isinstance(value, re.Pattern)]
        assert compiled == [], found.name
        lazy += sum(isinstance(value, Regex) for value in vars(module).values())
        for value in vars(module).values():
            if isinstance(value, Regex):
                re.compile(value.pattern, value.flags)
    assert lazy > 300


def test_a_pattern_that_is_none_fails_at_its_use():
    with pytest.raises(re.error):
        regex("(").search("")
