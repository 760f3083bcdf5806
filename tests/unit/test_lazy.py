"""Regular expressions and dataclasses that are made at first use."""

import copy
import dataclasses
import inspect
import marshal
import operator
import os
import pickle
import re
import subprocess
import sys
import zlib
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from unittest.mock import patch

import pytest

import contextgraph.trace
from contextgraph import lazy
from contextgraph.lazy import Patterns, Regex, regex
from contextgraph.model import Action, State, Step

ROOT = str(Path(__file__).parents[2])
_OPTIONAL = "contextgraph.store.", "contextgraph.agents.", "contextgraph.embedding."


def test_a_pattern_is_compiled_when_it_is_first_used():
    word = regex(r"(?P<word>\w+)", re.ASCII)
    assert vars(word).keys() == {"pattern", "flags"}
    assert word.findall("- one") == ["one"]
    assert word.sub("x", "a b") == "x x"
    assert word.flags & re.ASCII
    assert word.pattern == r"(?P<word>\w+)"


def test_no_module_compiles_a_pattern_when_it_is_imported():
    count = 0
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
        for value in vars(module).values():
            if isinstance(value, Regex):
                re.compile(value.pattern, value.flags)
                count += 1
    assert count > 300


def test_a_pattern_that_is_none_fails_at_its_use():
    with pytest.raises(re.error):
        regex("(").search("")


def _made_by(decorator, field):
    @decorator(frozen=True, slots=True, order=True)
    class Base:
        """A value."""

        number: int
        name: str = "a"

        def __post_init__(self) -> None:
            if self.number < 0:
                raise ValueError("negative")

    @decorator(frozen=True, slots=True)
    class Value(Base):
        """A value with more."""

        names: list[str] = field(default_factory=list, hash=False)
        noted: str = field(default="b", compare=False, repr=False)
        made: int = field(default=3, init=False)

    @decorator(slots=True)
    class Mutable:
        """A value that changes."""

        number: int

    @decorator(frozen=True, slots=True, eq=False)
    class Identity:
        """A value like no other."""

    return Base, Value, Mutable, Identity


@pytest.mark.parametrize(
    "observed",
    [
        lambda base, value, *_: [repr(base(1)), repr(value(1, "n", ["x"], "y"))],
        lambda base, value, *_: [str(inspect.signature(one)) for one in (base, value)],
        lambda base, *_: [compare(base(1), base(2)) for compare in (operator.lt, operator.ge)],
        lambda _, value, *__: [
            value(1) == value(1, noted="c"),
            value(1) == value(2),
            value(1) == 1,
        ],
        lambda _, value, *__: hash(value(1, names=["x"])) == hash(value(1, noted="c")),
        lambda _, value, *__: dataclasses.asdict(value(1, names=["x"])),
        lambda _, value, *__: [
            (one.name, one.type, one.compare, one.init) for one in dataclasses.fields(value)
        ],
        lambda _, value, *__: repr(dataclasses.replace(value(1), number=2)),
        lambda _, value, *__: repr(copy.deepcopy(value(1, names=["x"]))),
        lambda base, value, *_: [value.__match_args__, value.__slots__, base.__slots__],
        lambda _, value, *__: value(1).names is value(1).names,
        lambda _, __, mutable, ___: [mutable.__hash__, mutable(1) == mutable(1)],
        lambda _, __, ___, identity: [identity() == identity(), len({identity(), identity()})],
        lambda *classes: [one.__dataclass_params__.frozen for one in classes],
    ],
)
def test_a_dataclass_is_as_that_of_the_standard_library(observed: Callable[..., object]):
    lazily, standard = (
        _made_by(lazy.dataclass, lazy.field),
        _made_by(dataclasses.dataclass, dataclasses.field),
    )
    assert observed(*lazily) == observed(*standard)


def test_a_frozen_value_refuses_changes_and_a_mutable_one_takes_them():
    base, value, mutable, _ = _made_by(lazy.dataclass, lazy.field)
    for one in (base(1), value(1)):
        with pytest.raises(dataclasses.FrozenInstanceError):
            one.number = 2
        with pytest.raises(dataclasses.FrozenInstanceError):
            del one.number
    changed = mutable(1)
    changed.number = 2
    assert changed == mutable(2)
    with pytest.raises(ValueError, match="negative"):
        value(-1)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'number'"):
        value()


def test_values_are_replaced_and_pickled():
    step = Step(0, "why", Action("bash", "ls", {"command": "ls"}), "out")
    assert pickle.loads(pickle.dumps(step)) == step
    assert lazy.replace(step, thought="") == dataclasses.replace(step, thought="") != step
    assert dataclasses.is_dataclass(State)
    with pytest.raises(TypeError):
        lazy.replace(step, unknown=1)  # type: ignore[call-arg]


def test_kept_patterns_are_those_that_compiling_gives(tmp_path):
    known = {
        (value.pattern, value.flags)
        for module in walk_packages(contextgraph.trace.__path__, "contextgraph.trace.")
        for value in vars(import_module(module.name)).values()
        if isinstance(value, Regex)
    }
    first = Patterns()
    first.keep(str(tmp_path / "cache" / "patterns"))
    for pattern, flags in known:
        first.compile(pattern, flags)
    first.save()

    again = Patterns()
    again.keep(str(tmp_path / "cache" / "patterns"))
    with patch.object(re, "compile", side_effect=AssertionError):
        kept = {one: again.compile(*one) for one in known}
    assert len(known) > 100
    assert all(kept[one] == re.compile(*one) for one in known)


@pytest.mark.skipif(os.name != "posix", reason="files have no owner")
def test_patterns_that_others_can_write_or_that_stand_in_the_folder_are_not_used(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    first = Patterns()
    first.keep(str(tmp_path / "patterns"))
    first.compile("a+")
    first.save()
    file = tmp_path / "patterns"
    assert file.stat().st_mode & 0o777 == 0o600

    for path, mode, is_used in (
        (file, 0o600, True),
        (file, 0o622, False),
        ("patterns", 0o600, False),
    ):
        file.chmod(mode)
        kept = Patterns()
        kept.keep(str(path))
        with patch.object(re, "compile", side_effect=AssertionError):
            if is_used:
                assert kept.compile("a+").fullmatch("aa")
            else:
                with pytest.raises(AssertionError):
                    kept.compile("a+")


def test_a_hook_loads_no_module_that_takes_longer_than_its_answer():
    costly = {"contextlib", "datetime", "importlib", "pathlib", "signal", "sqlite3", "typing"}
    line = "from contextgraph.agents import hook; import contextgraph.trace.actions"
    costly |= {"contextgraph.model.error", "contextgraph.model.trajectory"}
    program = [sys.executable, "-I", "-S", "-c"]
    loaded = subprocess.run(
        [*program, f"import sys; sys.path.append({ROOT!r}); {line}; print(*sys.modules)"],
        check=True,
        capture_output=True,
        text=True,
    )
    assert "contextgraph.trace.actions" in loaded.stdout.split()
    assert costly.isdisjoint(loaded.stdout.split())


@pytest.mark.parametrize("is_whole", [True, False])
@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no form",
        marshal.dumps([1]),
        marshal.dumps({("a+", 0): (32, [1, 2], 0, {}, ())}),
        marshal.dumps({("a+", 0): (32, b"12", 0, {}, ())}),
        marshal.dumps({("a+", 0): ()}),
    ],
)
def test_damaged_forms_of_patterns_are_compiled_and_written_again(tmp_path, content, is_whole):
    file = tmp_path / "patterns"
    content = zlib.crc32(content).to_bytes(4, "big") + content if is_whole else content
    file.write_bytes(content)
    file.chmod(0o600)
    kept = Patterns()
    kept.keep(str(file))
    assert kept.compile("a+").fullmatch("aa")
    kept.save()
    assert file.read_bytes() != content
