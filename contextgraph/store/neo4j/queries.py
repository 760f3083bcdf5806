"""The named queries in the folder ``cypher``, loaded once."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from contextgraph.lazy import regex

_NAME = regex(r"^// name: (\w+)$", re.MULTILINE)


def cypher_folder() -> Path:
    """Where queries and migrations are: in the package, or beside it in a clone."""
    package = Path(__file__).parents[2]
    inside = package / "cypher"
    return inside if inside.is_dir() else package.parent / "cypher"


def query(name: str) -> str:
    """The text of the query of this name."""
    return queries()[name]


@cache
def queries() -> Mapping[str, str]:
    """All queries by name; raises `ValueError` where two have the same name."""
    by_name: dict[str, str] = {}
    for path in sorted((cypher_folder() / "queries").glob("*.cypher")):
        for name, text in _named(path.read_text(encoding="utf-8")):
            if name in by_name:
                raise ValueError(f"{path.name}: a second query named {name}")
            by_name |= _forms(name, text)
    return by_name


def statements(text: str) -> list[str]:
    """The statements of a migration, each ended by a semicolon at the end of a line."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("//")]
    parts = re.split(r";[ \t]*$", "\n".join(lines), flags=re.MULTILINE)
    return [part.strip() for part in parts if part.strip()]


def _forms(name: str, text: str) -> dict[str, str]:
    """A query by its name; one with lines for a scope in two forms, each with its own lines."""
    lines = text.splitlines()
    forms = {
        f"{name}{form}": "\n".join(line for line in lines if not line.endswith(f"// {other}"))
        for form, other in (("_in_repo", "everywhere"), ("_everywhere", "in_repo"))
    }
    return {name: text} if len({text, *forms.values()}) == 1 else forms


def _named(text: str) -> Iterator[tuple[str, str]]:
    """Name and text of each query; what precedes the first one describes the file."""
    _, *parts = _NAME.split(text)
    for name, body in zip(parts[::2], parts[1::2], strict=True):
        yield name, body.strip()
