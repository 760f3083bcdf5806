"""The documents agree with the code."""

import ast
import json
import re
import tomllib
from pathlib import Path

import pytest

from contextgraph import config
from scripts import format_reference
from scripts.api_reference import reference

ROOT = Path(__file__).parents[2]
FENCED = re.MULTILINE | re.DOTALL
DOCUMENTS = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("*/README.md")]


def text_of(document: Path) -> str:
    return document.read_text(encoding="utf-8")


def test_the_api_reference_is_current() -> None:
    assert text_of(ROOT / "docs" / "api.md") == "\n".join(reference()), "run scripts/api-reference"


def test_the_reference_of_formats_is_current_and_names_each_sample() -> None:
    page = text_of(ROOT / "docs" / "format-reference.md")
    assert page == "\n".join(format_reference.reference()), "run scripts/api-reference"
    samples = ROOT / "tests" / "data" / "readers"
    named = json.loads(text_of(format_reference.VERSIONS))
    found = {folder.name: {one.name for one in folder.iterdir()} for folder in samples.iterdir()}
    assert {name: set(versions) for name, versions in named.items()} == found


def test_the_api_reference_has_the_methods_of_the_memory() -> None:
    headings = re.findall(r"^#+ `(.+)`$", text_of(ROOT / "docs" / "api.md"), re.MULTILINE)
    assert {"AgentMemory.open", "AgentMemory.query", "AgentMemory.learn", "read"} <= set(headings)
    rooms = {"Notes.recall", "Pages.search", "Lessons.of", "WorkingMemory.inject", "Items.save"}
    assert rooms | {"Note", "Recollection", "Entity", "Hybrid"} <= set(headings)


def test_the_api_reference_shows_what_is_read_as_such() -> None:
    text = text_of(ROOT / "docs" / "api.md")
    assert "```python\nnotes: Notes\n```" in text
    assert "```python\nsuccess: bool | None\n```" in text
    assert "field(" not in text


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_relative_link_leads_to_a_file_and_section(document: Path) -> None:
    for link, section in re.findall(r"\]\((?!\w+:)([^)#]*)#?([^)]*)\)", text_of(document)):
        target = document.parent / link if link else document
        assert target.exists(), link
        assert not section or section in sections_of(target), f"{link}#{section}"


def sections_of(document: Path) -> set[str]:
    """The anchors of the headings of *document*, as GitHub names them."""
    headings = re.findall(r"^#+ (.+)$", text_of(document), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", one).strip().lower().replace(" ", "-") for one in headings}


def test_the_command_line_page_lists_every_setting() -> None:
    table = re.findall(r"^\| (`\w+`.*?) \|", text_of(ROOT / "docs" / "cli.md"), re.MULTILINE)
    listed = {name for cell in table for name in re.findall(r"`(\w+)`", cell)}
    assert {*config._TEXTS, *config.NUMBERS} <= listed


@pytest.mark.parametrize("name", ["CONTRIBUTING.md", "docs/architecture.md"])
def test_every_file_that_a_guide_names_exists(name: str) -> None:
    """Names in capitals stand for any name; paths may start in the package or in a part of it."""
    names = re.findall(r"`([\w*-][\w./*-]*(?:/|\.py|\.md|\.cypher|\.txt))`", text_of(ROOT / name))
    patterns = [re.sub(r"[A-Z]{4,}(?!\.md)|000N__what", "*", name) for name in names]
    folders = (ROOT, ROOT / "contextgraph")
    missing = [one for one in patterns if not any([*home.glob(one)] for home in folders)]
    assert [one for one in missing if "/" in one or not [*ROOT.rglob(one)]] == []


def test_every_definition_that_contributing_names_exists() -> None:
    named = re.findall(r"`([\w/]+\.py):([\w.]+)`", text_of(ROOT / "CONTRIBUTING.md"))
    assert len(named) > 20
    missing = [one for one in named if not _defines(ROOT / "contextgraph" / one[0], one[1])]
    assert missing == []


def _defines(path: Path, name: str) -> bool:
    """Return True where the module at *path* defines *name*: ``f``, ``TABLE``, ``Class.method``."""
    statements = ast.parse(text_of(path)).body
    for part in name.split("."):
        found = [one for one in statements if part in _names(one)]
        statements = [inner for one in found if isinstance(one, ast.ClassDef) for inner in one.body]
        if not found:
            return False
    return True


def _names(statement: ast.stmt) -> list[str]:
    match statement:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]):
            return [name]
    return []


def test_every_test_that_the_checklist_names_exists() -> None:
    """Look in the files that its row names, or that its section names before the tables."""
    section, missing, count = set[str](), list[str](), 0
    for line in text_of(ROOT / "docs" / "checklist.md").splitlines():
        files = {*re.findall(r"`(tests/[\w/]+\.py)`", line)}
        if not line.startswith("|"):
            section = files if line.startswith("#") else section | files
            continue
        defined = "".join(text_of(ROOT / file) for file in files | section)
        names = re.findall(r"`(test_\w+)`", line)
        missing += [name for name in names if f"def {name}(" not in defined]
        count += len(names)
        benchmarks = re.findall(r"python -m benchmarks\.(\w+)", line)
        missing += [one for one in benchmarks if not (ROOT / f"benchmarks/{one}.py").exists()]
    assert missing == []
    assert count > 120


def test_each_promise_of_security_names_tests_that_exist() -> None:
    """A row of the table names, after each file, tests in it."""
    table = text_of(ROOT / "docs" / "security.md").partition("| threat |")[2].partition("\n\n")[0]
    promises = [line.rsplit(" | ", 1)[1] for line in table.splitlines()[2:]]
    assert len(promises) > 15
    for tests in promises:
        file, named = "", 0
        for name in re.findall(r"`(\S+)`", tests):
            file = name if name.endswith(".py") else file
            named += name != file
            assert name == file or f"def {name}(" in text_of(ROOT / file), name
        assert named, tests


def test_every_page_is_in_the_menu_of_the_site() -> None:
    menu = tomllib.loads(text_of(ROOT / "zensical.toml"))["project"]["nav"]
    listed = {page for section in menu for pages in section.values() for page in pages}
    assert {page.name for page in ROOT.glob("docs/*.md")} <= listed


def test_what_users_have_to_read_stays_short() -> None:
    """A word has a letter or a digit; examples and tables count.

    Not counted: the references generated from docstrings and formats, what was measured, and the
    table of the founding documents, which nobody reads from top to bottom.
    """
    built, measured = {"architecture.md"}, {"board.md", "measurements.md"}
    others = {"api.md", "checklist.md", "format-reference.md", *measured, *built}
    pages = [ROOT / "README.md", *ROOT.glob("docs/*.md")]
    words = {
        page.name: sum(any(map(str.isalnum, word)) for word in text_of(page).split())
        for page in pages
        if page.name not in others
    }
    assert sum(words.values()) <= 25_000, words


def test_the_first_example_of_the_readme_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (example, *_) = re.findall(r"^```python\n(.*?)^```", text_of(ROOT / "README.md"), FENCED)
    exec(example.replace("memory.db", str(tmp_path / "memory.db")), {})
    assert "PYTHONPATH=lib" in capsys.readouterr().out
