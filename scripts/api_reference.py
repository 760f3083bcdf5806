"""The API reference in Markdown, from the source of the public names."""

import ast
import inspect
from collections.abc import Iterator
from textwrap import dedent
from types import UnionType
from typing import Any

import contextgraph
from contextgraph import readers
from contextgraph.knowledge.keyed import KeyedMemory
from contextgraph.knowledge.notes import Notes
from contextgraph.knowledge.pages import Entities, Pages

WIDTH = 96
PACKAGE = "contextgraph"
PROPERTIES = ("property", "cached_property")
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
    for room in (Notes, Pages, Entities, KeyedMemory):
        yield from class_blocks(room)
    yield "## `contextgraph.readers`\n"
    yield from function_blocks(source_of(readers.read), "###", "")


def source_of(value: object) -> Any:
    """The syntax tree of a class or function."""
    return ast.parse(dedent(inspect.getsource(value))).body[0]  # type: ignore[arg-type]  # a class or function


def class_blocks(value: type) -> Iterator[str]:
    """Docstring, fields or values, and the documented public methods, then those of its bases."""
    node, *bases = [
        source_of(base) for base in value.__mro__ if base.__module__.startswith(PACKAGE)
    ]
    yield f"### `{node.name}`\n\n{ast.get_docstring(node)}\n"
    fields = [ast.unparse(entry) for entry in node.body if isinstance(entry, ast.AnnAssign)]
    values = [entry.value for entry in node.body if isinstance(entry, ast.Assign)]
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
