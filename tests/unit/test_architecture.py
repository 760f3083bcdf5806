"""Layers, imports, locks and version of the project agree with one another."""

import ast
import re
import subprocess
import sys
import tomllib
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from pkgutil import walk_packages

import pytest

import contextgraph

ROOT = Path(__file__).parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
LOCKS = tuple(ROOT / "requirements" / name for name in ("runtime.txt", "server.txt", "dev.txt"))
# A quantifier with a `+` behind a group, behind what a placeholder may fill with one, or first.
POSSESSIVE_GROUP = re.compile(r"(?:\)|^(?!\+{3}))(?:[*+?]|\{\d*,?\d*\})\+")
POSSESSIVE = re.compile(r"[*+?}]\+")
NO_GROUP = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)  # escapes and classes
HEAVY = ("click", "networkx", "numpy", "pyarrow", "pydantic", "rich", "sklearn")


def modules() -> list[str]:
    found = walk_packages(contextgraph.__path__, "contextgraph.")
    return [module.name for module in found if not module.name.endswith("__main__")]


def packages() -> set[str]:
    """The packages and modules directly in `contextgraph`: each needs a layer."""
    root = ROOT / "contextgraph"
    folders = {path.parent.name for path in root.glob("*/__init__.py")}
    return folders | {path.stem for path in root.glob("*.py")} - {"__init__"}


def layers() -> list[str]:
    contracts = PYPROJECT["tool"]["importlinter"]["contracts"]
    found = next(contract["layers"] for contract in contracts if contract["id"] == "layers")
    return [name.strip() for layer in found for name in re.split("[|:]", layer)]


def locked(lock: Path) -> dict[str, str]:
    return dict(re.findall(r"^([\w.-]+)==([^ ;]+)", lock.read_text(), re.MULTILINE))


def imported_by(statement: str) -> set[str]:
    """The heavy libraries that a fresh interpreter has loaded after *statement*."""
    code = f"import sys\n{statement}\nprint(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    return set(HEAVY) & set(loaded.stdout.split())


def strings_in(path: Path) -> list[str]:
    """The strings in this module, with a group for each placeholder."""

    def text(node: ast.expr) -> str:
        return str(node.value) if isinstance(node, ast.Constant) else "()"

    nodes = list(ast.walk(ast.parse(path.read_text())))
    found = [text(node) for node in nodes if isinstance(node, ast.Constant)]
    joined = [node.values for node in nodes if isinstance(node, ast.JoinedStr)]
    return found + ["".join(map(text, parts)) for parts in joined]


def repeats_group_possessively(pattern: str) -> bool:
    return POSSESSIVE_GROUP.search(NO_GROUP.sub("x", pattern)) is not None


def test_every_package_has_a_layer() -> None:
    assert packages() <= {name.strip("()") for name in layers()}


def test_only_packages_that_do_not_exist_yet_are_optional() -> None:
    optional = {name.strip("()") for name in layers() if name.startswith("(")}
    assert packages() & optional == set()


def test_every_module_can_be_imported() -> None:
    for name in modules():
        import_module(name)


def test_every_exported_name_exists() -> None:
    assert [one for one in contextgraph.__all__ if getattr(contextgraph, one) is None] == []


def test_a_type_checker_knows_the_exported_names_and_no_others(tmp_path: Path) -> None:
    asked = tmp_path / "asked.py"
    names = ", ".join(contextgraph.__all__)
    asked.write_text(f"from contextgraph import {names}\nfrom contextgraph import Statee\n")
    only = ["--follow-imports=skip", f"--cache-dir={tmp_path}"]
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", *only, contextgraph.__file__, asked],
        capture_output=True, text=True, check=False, cwd=ROOT,
    )  # fmt: skip
    (wrong, _) = checked.stdout.splitlines()
    assert 'asked.py:2: error: Module "contextgraph" has no attribute "Statee"' in wrong


def test_importing_the_package_loads_no_heavy_library() -> None:
    assert imported_by("import contextgraph") == set()


def test_reaching_the_public_names_loads_no_heavy_library() -> None:
    assert imported_by("from contextgraph import *") == set()


def test_an_older_python_is_refused_in_one_line() -> None:
    code = "import sys; sys.version_info = (3, 10, 13); import contextgraph"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("contextgraph needs Python 3.11 or newer, this is 3.")
    assert done.stderr.count("\n") == 1


def test_the_installed_version_is_the_declared_one() -> None:
    assert version("contextgraph-memory") == PYPROJECT["project"]["version"]


def test_the_changelog_has_a_section_for_this_version() -> None:
    headings = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[0] in {"Unreleased", PYPROJECT["project"]["version"]}


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.stem)
def test_a_lock_holds_every_runtime_dependency(lock: Path) -> None:
    required = {re.split(r"[<>=]", entry)[0] for entry in PYPROJECT["project"]["dependencies"]}
    assert required <= locked(lock).keys()


def test_the_development_lock_extends_the_others() -> None:
    *others, development = (locked(lock) for lock in LOCKS)
    assert all(other.items() <= development.items() for other in others)


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.stem)
def test_a_lock_names_no_host(lock: Path) -> None:
    assert not re.search(r"://|--(extra-)?index-url|--find-links", lock.read_text())


def test_no_pattern_repeats_a_group_possessively() -> None:
    # Python 3.11.0 to 3.11.4 match `(?:ab?c)*+` wrongly (CPython issue 106052), and are in use:
    # Debian 12 has 3.11.2. `(?>(?:ab?c)*)` is the same, and right in all of them.
    found = {
        text: path.name
        for path in (ROOT / "contextgraph").rglob("*.py")
        if POSSESSIVE.search(path.read_text())
        for text in strings_in(path)
        if repeats_group_possessively(text)
    }
    assert found == {}


@pytest.mark.parametrize("pattern", ["(?:ab?c)*+", "(a|b)?+", "(?:ab){2,}+", "(?:ab){0,3}+c", "*+"])
def test_a_possessive_group_is_recognised(pattern: str) -> None:
    assert repeats_group_possessively(pattern)


@pytest.mark.parametrize(
    "pattern", [r"[^)]*+", r"\)*+", "[()]++", "(?>(?:ab?c)*)", "(a)+b+", r"\w++"]
)
def test_other_repetitions_are_not(pattern: str) -> None:
    assert not repeats_group_possessively(pattern)


def test_no_statement_numbers_its_placeholders() -> None:
    # Python 3.12.0 to 3.12.3 warn of `?1` where the values are a sequence.
    sources = (ROOT / "contextgraph" / "store" / "sqlite").glob("*.py")
    found = [text for path in sources for text in strings_in(path) if re.search(r"\?\d", text)]
    assert found == []


_ON_NEO4J = ("port", "statements")  # the schema has labels for people


def test_a_back_end_names_nothing_that_a_memory_is_about() -> None:
    named = {
        *("trajectory", "fragment", "methodology", "remedy", "recovered", "recovery", "repo"),
        *("repository", "advice", "exposure", "verdict", "lesson", "agent", "task", "outcome"),
    }
    files = [ROOT / "contextgraph" / "store" / "networkx.py"]
    files += (ROOT / "contextgraph" / "store" / "sqlite").glob("*.py")
    files += [ROOT / "contextgraph" / "store" / "port.py"]
    files += [ROOT / "contextgraph" / "store" / "neo4j" / f"{one}.py" for one in _ON_NEO4J]
    assert len(files) > 5
    found = {
        (path.name, word)
        for path in files
        for word in re.findall("[a-z]+", path.read_text().lower())
        if word in named
    }
    assert found == set()
