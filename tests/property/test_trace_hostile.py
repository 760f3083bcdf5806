"""The time to read a run is linear in its length, for any text."""

import inspect
import re
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib import import_module
from pkgutil import walk_packages
from time import process_time

import pytest

import contextgraph.text
import contextgraph.trace
from contextgraph.model import Action, RawTrajectory, Step
from contextgraph.trace import trace
from contextgraph.trace.programs import Recogniser
from contextgraph.trace.signature import recognise
from tests.deadline import deadline
from tests.hostile import hostile_texts, patterns_in, words_in

SHORT, LONG = 500, 2_000
# What costs less than this, in seconds, is not worth a second look.
NOTHING = 0.004
# Four times the text costs about four times as much; nine is half way to the square.
STEEP = 9.0
MODULES = [
    module.name
    for package in (contextgraph.trace, contextgraph.text)
    for module in walk_packages(package.__path__, f"{package.__name__}.")
    if patterns_in(import_module(module.name))
]


def seconds(work: Callable[[str], object], text: str) -> float:
    started = process_time()
    with suppress(ValueError):  # a text may be refused
        work(text)
    return process_time() - started


def is_steep(work: Callable[[str], object], short: str, long: str) -> bool:
    # A machine that others use, too, is slow now and then: what seems steep is tried again.
    for _ in range(3):
        taken = seconds(work, long)
        if taken < NOTHING or taken <= STEEP * seconds(work, short):
            return False
    return True


def functions_of_text(name: str) -> list[Callable[[str], object]]:
    """The public functions of a module that take one text."""
    module = import_module(name)
    public = [
        function
        for key, function in inspect.getmembers(module, inspect.isfunction)
        if function.__module__ == name and not key.startswith("_")
    ]
    return [function for function in public if takes_one_text(function)]


def takes_one_text(function: Callable[[str], object]) -> bool:
    needed = [
        parameter.annotation
        for parameter in inspect.signature(function).parameters.values()
        if parameter.default is parameter.empty
    ]
    return needed == [str] and not inspect.isgeneratorfunction(function)


@pytest.mark.parametrize("name", MODULES)
def test_four_times_the_text_takes_about_four_times_as_long(name):
    module = import_module(name)
    patterns, words = patterns_in(module), words_in(module)
    pairs = zip(hostile_texts(patterns, SHORT), hostile_texts(patterns, LONG), strict=True)
    functions = functions_of_text(name)
    steep = [
        (function.__name__, long[:60])
        for short, long in pairs
        for function in functions
        if is_steep(function, f"{short}\n{words}", f"{long}\n{words}")
    ]

    assert steep == []


def recognisers_in(value: object) -> list[Recogniser]:
    """The rows that a value of a module holds: one, or a table of them."""
    if isinstance(value, tuple):
        return [row for member in value for row in recognisers_in(member)]
    return [value] if isinstance(value, Recogniser) and value.pattern else []


ROWS = {
    row.pattern: row
    for name in MODULES
    for value in vars(import_module(name)).values()
    for row in recognisers_in(value)
}


@pytest.mark.parametrize("row", ROWS.values(), ids=[row.words[0] for row in ROWS.values()])
def test_a_row_of_a_table_takes_four_times_as_long_for_four_times_the_text(row):
    patterns = [re.compile(one, re.MULTILINE) for one in (row.pattern, row.frame) if one]
    patterns += [row.reasons] if row.reasons else []
    word = row.words[0]
    steep = [
        long[:60]
        for short, long in zip(
            hostile_texts(patterns, 4 * SHORT), hostile_texts(patterns, 4 * LONG), strict=True
        )
        if is_steep(row.find, f"{word}\n{short}\n{word}", f"{word}\n{long}\n{word}")
    ]

    assert steep == []


@pytest.mark.parametrize("command", ["python bake.py", "git push", "pip install dough", "ls"])
@pytest.mark.parametrize(
    "unit",
    [
        " ",
        "a",
        "a: ",
        "error: a\n",
        "Error:\n",
        "[ERROR] a\n",
        "1:1: ",
        "Error processing line 1 of a",
        "Error processing line 1 of a\n a\n ",
    ],
)
def test_an_observation_of_a_megabyte_is_recognised_in_a_second(command, unit):
    text = unit * (1_000_000 // len(unit))
    words = "\n".join(row.words[0] for row in ROWS.values())

    taken = min(
        seconds(lambda shown: recognise(Action("bash", command), shown), f"{text}\n{words}")
        for _ in range(2)
    )

    assert taken < 1


def a_run_full_of(text: str) -> RawTrajectory:
    """A run whose task, thoughts, actions and answers are all *text*."""
    steps = (
        Step(0, text, Action("bash", f"python bake.py\n{text}"), text),
        Step(1, text, Action("bash", text), f"Traceback (most recent call last):\n{text}"),
        Step(2, text, Action("bash", f"edit 1:2\n{text}\nend_of_edit"), f"ERRORS:\n- {text}"),
        Step(3, text, Action("bash", "python bake.py"), "done"),
    )
    return RawTrajectory("own", "bakery__oven-1", "bakery/oven", text, steps, patch=text)


# What is traced has no secrets any more; their rules are tried above, and by the tests of masking.
WHOLE_RUNS = [name for name in MODULES if not name.endswith((".masking", ".secret_rules"))]


@cache
def first_of_each() -> dict[str, list[tuple[str, str]]]:
    """The short and long texts of each module that no module before it has."""
    found, seen = {}, set[tuple[str, str]]()
    for name in WHOLE_RUNS:
        patterns = patterns_in(import_module(name))
        # A run has each text eight times.
        short, long = hostile_texts(patterns, SHORT // 2), hostile_texts(patterns, LONG // 2)
        pairs = zip(short, long, strict=True)
        found[name] = [pair for pair in dict.fromkeys(pairs) if pair not in seen]
        seen.update(found[name])
    return found


@pytest.mark.parametrize("name", WHOLE_RUNS)
def test_a_run_full_of_it_is_read_in_time(name):
    steep = [
        long[:60]
        for short, long in first_of_each()[name]
        if is_steep(lambda text: trace(a_run_full_of(text)), short, long)
    ]

    assert steep == []


@pytest.mark.parametrize("unit", [" ", "a", "1.", "'", "/", "(["])
def test_two_megabytes_without_a_line_end_are_read(unit):
    run = a_run_full_of(unit * (250_000 // len(unit)))  # eight times

    with deadline():
        assert len(trace(run).steps) == 4
