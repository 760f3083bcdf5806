"""Hostile texts, made from patterns: each repeats what a repetition of the pattern takes."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from itertools import chain
from types import CodeType, FunctionType, ModuleType
from typing import Any

from msgspec import Struct, structs

from contextgraph.text.strings import Regex

# Type stubs do not agree whether the standard library has these.
code, parser = import_module("re._constants"), import_module("re._parser")

# A repetition that ends sooner cannot take long.
_MANY = 20
_CLASSES = {
    code.CATEGORY_DIGIT: "1",
    code.CATEGORY_SPACE: " ",
    code.CATEGORY_WORD: "a",
    code.CATEGORY_NOT_DIGIT: "a",
    code.CATEGORY_NOT_SPACE: "a",
    code.CATEGORY_NOT_WORD: "-",
}
_RUNS = " \t\n.'\"`/([{<-=:,a1A_\\⎯"
Node = tuple[Any, Any]


def hostile_texts(patterns: Iterable[re.Pattern[str]], length: int) -> Iterator[str]:
    """Texts of about *length* characters that the *patterns* may stumble over."""
    pairs = dict.fromkeys(chain.from_iterable(map(_repetitions, patterns)))
    for prefix, unit in pairs:
        yield prefix + unit * (length // len(unit)) + "\0"
        yield (prefix + unit) * (length // len(prefix + unit)) + "\0"
        yield f"{prefix}{unit}\n" * (length // len(f"{prefix}{unit}\n")) + "\0"
    for character in _RUNS:
        yield character * length + "\0"


def patterns_in(module: ModuleType) -> list[re.Pattern[str]]:
    """All patterns that *module* itself keeps, also within its collections and rows of tables."""
    hazards = (re.compile(one, re.IGNORECASE) for _, one in vars(module).get("_HAZARDS", ()))
    return [*chain.from_iterable(map(_patterns, vars(module).values())), *hazards]


def words_in(module: ModuleType) -> str:
    """The literals that functions of *module* look for before they try a pattern."""
    functions = [value for value in vars(module).values() if isinstance(value, FunctionType)]
    own = [one.__code__ for one in functions if one.__module__ == module.__name__]
    return "\n".join(dict.fromkeys(chain.from_iterable(map(_literals, own))))


def _literals(compiled: CodeType) -> Iterator[str]:
    for constant in compiled.co_consts:
        if isinstance(constant, CodeType):
            yield from _literals(constant)
        elif isinstance(constant, tuple | frozenset):
            yield from (one for one in constant if isinstance(one, str) and len(one) < 80)
        elif isinstance(constant, str) and len(constant) < 80:
            yield constant


def _patterns(value: object) -> Iterator[re.Pattern[str]]:
    if isinstance(value, Regex):
        yield re.compile(value.pattern, value.flags)
    elif isinstance(value, Struct) and isinstance(pattern := getattr(value, "pattern", None), str):
        yield re.compile(pattern, re.MULTILINE)
    elif isinstance(value, dict):
        yield from chain.from_iterable(map(_patterns, value.values()))
    elif isinstance(value, tuple | list | frozenset):
        yield from chain.from_iterable(map(_patterns, value))
    elif isinstance(value, Struct):
        yield from chain.from_iterable(map(_patterns, structs.astuple(value)))


def _repetitions(pattern: re.Pattern[str]) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    _example(parser.parse(pattern.pattern, pattern.flags), "", found)
    return found


def _example(nodes: Iterable[Node], before: str, found: list[tuple[str, str]]) -> str:
    """A text that *nodes* take; each long repetition in them is added to *found*."""
    made = ""
    for kind, value in nodes:
        if kind in _KINDS:
            made += _KINDS[kind](value, before + made, found)
    return made


def _repeat(value: Any, before: str, found: list[tuple[str, str]]) -> str:
    least, most, body = value
    unit = _example(body, before, found)
    if most >= _MANY:
        found.append((before, unit or "a"))
    return str(unit * max(least, min(1, most)))


def _branch(value: Any, before: str, found: list[tuple[str, str]]) -> str:
    examples = [_example(one, before, found) for one in value[1]]
    return examples[0]


def _one_of(members: Sequence[Node], before: str, found: list[tuple[str, str]]) -> str:
    if members[0][0] is code.NEGATE:
        taken = re.compile(f"[{''.join(map(_member, members[1:]))}]")
        return next((one for one in "ax1 .-/(:'\"_=\n" if not taken.match(one)), "é")
    kind, value = members[0]
    if kind is code.CATEGORY:
        return str(_CLASSES[value])
    return chr(value[0] if kind is code.RANGE else value)


def _member(node: Node) -> str:
    kind, value = node
    if kind is code.CATEGORY:
        return {"1": r"\d", " ": r"\s", "a": r"\w\S", "-": r"\W"}[_CLASSES[value]]
    if kind is code.RANGE:
        return f"{re.escape(chr(value[0]))}-{re.escape(chr(value[1]))}"
    return re.escape(chr(value))


_KINDS: dict[Any, Callable[[Any, str, list[tuple[str, str]]], str]] = {
    code.LITERAL: lambda value, before, found: chr(value),
    code.NOT_LITERAL: lambda value, before, found: "b" if value == ord("a") else "a",
    code.ANY: lambda value, before, found: "a",
    code.IN: _one_of,
    code.MAX_REPEAT: _repeat,
    code.MIN_REPEAT: _repeat,
    code.POSSESSIVE_REPEAT: _repeat,
    code.SUBPATTERN: lambda value, before, found: _example(value[3], before, found),
    code.ATOMIC_GROUP: _example,
    code.BRANCH: _branch,
    code.ASSERT: lambda value, before, found: _example(value[1], before, found) * (value[0] < 0),
}
