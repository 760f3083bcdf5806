"""The API reference in Markdown, from the source of the public names."""

import ast
import inspect
from collections.abc import Iterator
from enum import Enum
from textwrap import dedent
from types import UnionType
from typing import Any

import contextgraph
from contextgraph import readers
from contextgraph.agents.live import WorkingMemory
from contextgraph.knowledge import (
    Entities,
    Entity,
    Lessons,
    MaintenancePolicy,
    NewLesson,
    NoteProperties,
    Notes,
    Page,
    PageFound,
    Pages,
    render_notes,
)
from contextgraph.knowledge.forgetting import Capacity, Hybrid, RecallValue, Ttl
from contextgraph.knowledge.keyed import (
    Briefing,
    CompactionReport,
    CurrentEntry,
    KeyedMemory,
    SetReceipt,
)
from contextgraph.knowledge.pages import RelatedEntity
from contextgraph.knowledge.sessions import Conversation, ConversationWindow, Item, Items, Message
from contextgraph.model import (
    About,
    Found,
    Lesson,
    LessonFacts,
    Link,
    MaintenanceReport,
    Note,
    NoteReceipt,
    Quotation,
    Recollection,
    Snapshot,
)

WIDTH = 96
PACKAGE = "contextgraph"
PROPERTIES = ("property", "cached_property", "CachedPart")
ROOMS = (
    *(Notes, Note, NoteProperties, Link, NoteReceipt, Recollection, Snapshot, Found),
    *(MaintenancePolicy, MaintenanceReport, Lessons, NewLesson, Pages, Page, PageFound),
    *(Lesson, LessonFacts, About, Quotation),
    *(Entities, Entity, RelatedEntity),
    *(KeyedMemory, CurrentEntry, SetReceipt, Briefing, CompactionReport),
    *(
        WorkingMemory,
        Conversation,
        ConversationWindow,
        Message,
        Items,
        Item,
        Ttl,
        Capacity,
        RecallValue,
        Hybrid,
    ),
)
HEADER = """\
# API reference

Written by `scripts/api-reference` from the docstrings; do not edit. Changes of these names are in
the [changelog](../CHANGELOG.md).
"""


def main() -> None:
    """Print the reference."""
    print("\n".join(reference()), end="")


def reference() -> Iterator[str]:
    """The blocks of the document: the façade first, then the values that it takes and gives."""
    yield HEADER
    yield "## `contextgraph`\n"
    names = [name for name in contextgraph.__all__ if name != "AgentMemory"]
    for name in ["AgentMemory", *names]:
        value = getattr(contextgraph, name)
        if inspect.isclass(value) and value.__name__ == name:
            yield from class_blocks(value)
        else:
            kinds = value.__args__ if isinstance(value, UnionType) else (value,)
            named = " or ".join(f"`{kind.__name__}`" for kind in kinds)
            yield f"### `{name}`\n\nAnother name of {named}.\n"
    yield "## `contextgraph.knowledge`\n"
    yield from function_blocks(source_of(render_notes), "###", "")
    for room in ROOMS:
        yield from class_blocks(room)
    yield "## `contextgraph.readers`\n"
    yield from function_blocks(source_of(readers.read), "###", "")


def source_of(value: object) -> Any:
    """The syntax tree of a class or function, its annotations without quotes."""
    node = ast.parse(dedent(inspect.getsource(value))).body[0]  # type: ignore[arg-type]  # a class or function
    for inner in ast.walk(node):
        for name in ("annotation", "returns"):
            annotation = getattr(inner, name, None)
            if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
                setattr(inner, name, ast.parse(annotation.value, mode="eval").body)
    return node


def class_blocks(value: type) -> Iterator[str]:
    """Docstring, fields or values, and the documented public methods, then those of its bases."""
    node, *bases = [
        source_of(base) for base in value.__mro__ if base.__module__.startswith(PACKAGE)
    ]
    yield f"### `{node.name}`\n\n{ast.get_docstring(node)}\n"
    fields = [field_of(entry) for entry in node.body if isinstance(entry, ast.AnnAssign)]
    is_enum = issubclass(value, Enum)
    values = [entry.value for entry in node.body if isinstance(entry, ast.Assign) and is_enum]
    members = [
        f"`{ast.unparse(constant)}`" for constant in values if isinstance(constant, ast.Constant)
    ]
    if fields:
        yield code("\n".join(fields))
    if members:
        yield "Values: " + ", ".join(members) + "\n"
    for entry in node.body:
        if isinstance(entry, ast.FunctionDef) and entry.name == "__init__":
            yield code(signature(entry).replace("__init__", node.name))
    for entry in (entry for owner in (node, *bases) for entry in owner.body):
        if isinstance(entry, ast.FunctionDef) and is_documented(entry):
            yield from function_blocks(entry, "####", f"{node.name}.")


def field_of(entry: ast.AnnAssign) -> str:
    """A field with its default; of one made by `field` without how it is compared and stored."""
    given = entry.value
    if isinstance(given, ast.Call) and ast.unparse(given.func).endswith("field"):
        defaults = {word.arg: word.value for word in given.keywords}
        default = defaults.get("default")
        return ast.unparse(ast.AnnAssign(entry.target, entry.annotation, default, simple=1))
    return ast.unparse(entry)


def is_documented(node: ast.FunctionDef) -> bool:
    """True for what users call: public, and with a docstring."""
    return not node.name.startswith("_") and ast.get_docstring(node) is not None


def function_blocks(node: ast.FunctionDef, level: str, owner: str) -> Iterator[str]:
    """Name, signature and docstring of a function, method or property."""
    yield f"{level} `{owner}{node.name}`\n"
    yield code(signature(node))
    yield f"{ast.get_docstring(node)}\n"


def signature(node: ast.FunctionDef) -> str:
    """How *node* is called, as a property is read; one parameter a line where it is long."""
    result = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    if any(ast.unparse(decorator) in PROPERTIES for decorator in node.decorator_list):
        return f"{node.name}{result.replace(' ->', ':')}"
    parameters = [text for text in parameters_of(node.args) if text not in {"self", "cls"}]
    line = f"{node.name}({', '.join(parameters)}){result}"
    if len(line) <= WIDTH:
        return line
    return "\n".join([f"{node.name}(", *(f"    {text}," for text in parameters), f"){result}"])


def parameters_of(arguments: ast.arguments) -> Iterator[str]:
    """Each parameter with its annotation and default."""
    absent = [None] * (len(arguments.args) - len(arguments.defaults))
    for argument, default in zip(arguments.args, [*absent, *arguments.defaults], strict=True):
        yield parameter(argument, default)
    if arguments.kwonlyargs:
        yield "*"
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        yield parameter(argument, default)
    if arguments.kwarg:
        yield f"**{ast.unparse(arguments.kwarg)}"


def parameter(argument: ast.arg, default: ast.expr | None) -> str:
    """One parameter."""
    return ast.unparse(argument) + (f" = {ast.unparse(default)}" if default else "")


def code(text: str) -> str:
    """A block of Python."""
    return f"```python\n{text}\n```\n"


if __name__ == "__main__":
    main()
