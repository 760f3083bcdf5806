"""``contextgraph call``: any operation by its name, with the JSON record as the answer."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from inspect import getdoc
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click
import orjson
from pydantic import ValidationError

from contextgraph.cli import here
from contextgraph.cli.commands import Common, argument, common_options, described
from contextgraph.cli.output import DONE, emit, warn
from contextgraph.errors import MemoryNotFoundError
from contextgraph.service.operations import Operation, TokenScope, operations
from contextgraph.service.operations.arguments import faults
from contextgraph.text import mask_secrets, meant

if TYPE_CHECKING:
    from contextgraph.config import Settings
    from contextgraph.knowledge.keyed import KeyedMemory
    from contextgraph.memory.agent_memory import AgentMemory
    from contextgraph.service.operations import Record
    from contextgraph.service.operations.arguments import Arguments

_FROM_FILE = "@"


def callable_operations() -> Mapping[str, Operation]:
    """Return the operations of a memory, and of this machine, by name."""
    of_memory = {name: one for name, one in operations().items() if one.subject != "run"}
    return dict(sorted({**of_memory, **here.OPERATIONS}.items()))


@common_options(without=("as_json",), names=callable_operations)
def call(
    common: Common,
    name: Annotated[str, argument("[OPERATION]", "Its name.")] = "",
    arguments: Annotated[
        list[str] | None,
        argument(
            "[ARGUMENT=VALUE]...",
            "Its arguments. A value is text or JSON; of a list repeat it. @FILE reads the value"
            " from a file (@-: standard input), @@ is one @.",
        ),
    ] = None,
    *,
    listed: Annotated[
        bool, described("--list", help="List the operations, or the arguments of one.")
    ] = False,
) -> None:
    """Call an operation of the memory and print its JSON.

    A list is printed line by line. The exit code is 1 where what is named is not there, or nothing
    was changed.

    \b
    Example:
      contextgraph call --list
      contextgraph call remember content="CI uses Python 3.11" repo=acme/shop
      contextgraph call playbook repo=acme/shop task=@issue.md
      contextgraph call recall question="which python does CI use" limit=3
    """
    known = callable_operations()
    if listed:
        for one in [_named(known, name)] if name else known.values():
            print(_described(one) if name else _in_a_line(one))
        return
    if not name:
        raise click.UsageError("name an operation; --list names them all")
    chosen = _named(known, name)
    given = _checked(chosen, arguments or ())
    raise click.exceptions.Exit(_print(common, chosen, given))


def _named(known: Mapping[str, Operation], name: str) -> Operation:
    plain = name.replace(".", "_")
    if plain not in known:
        near = meant(plain, known)
        hint = f" Did you mean {near!r}?" if near else " --list names them all."
        raise click.UsageError(f"No operation {name!r}.{hint}")
    return known[plain]


def _checked(operation: Operation, arguments: Sequence[str]) -> dict[str, Any]:
    """Return the values of *arguments* by name, as the operation takes them."""
    model = operation.arguments
    texts: dict[str, list[str]] = {}
    for one in arguments:
        name, is_pair, text = one.partition("=")
        if not is_pair:
            raise click.UsageError(f"{mask_secrets(one)!r} is not ARGUMENT=VALUE")
        if name not in model.model_fields:
            near = meant(name, model.model_fields)
            hint = f"Did you mean {near!r}?" if near else "It has"
            fields = ", ".join(model.model_fields) or "none"
            raise click.UsageError(
                f"{operation.name} has no argument {name!r}. {hint}{'' if near else f' {fields}.'}"
            )
        texts.setdefault(name, []).append(_text(text))
    properties = model.model_json_schema()["properties"] if texts else {}
    given = {name: _value(properties[name], some) for name, some in texts.items()}
    try:
        return model.model_validate(given).given()
    except ValidationError as error:
        lines = (f"{one['at']}: {one['reason']}" for one in faults(error.errors()))
        raise click.UsageError(f"{operation.name}: {'; '.join(lines)}") from error


def _text(given: str) -> str:
    """Return the text of a value: of a file where it begins with @."""
    if not given.startswith(_FROM_FILE):
        return given
    name = given.removeprefix(_FROM_FILE)
    if name.startswith(_FROM_FILE):
        return name
    if name == "-":
        return sys.stdin.read()
    try:
        return Path(name).read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise click.UsageError(f"{name} cannot be read: {error.strerror or error}") from error


def _value(schema: Mapping[str, Any], texts: Sequence[str]) -> Any:
    """Return the value that *texts* stand for, by the *schema* of the argument."""
    kinds = [one.get("type") for one in schema.get("anyOf", [schema])]
    if "array" in kinds:
        if len(texts) == 1 and texts[0].lstrip().startswith("["):
            return _json(texts[0])
        (items,) = (one["items"] for one in schema.get("anyOf", [schema]) if "items" in one)
        return [_value(items, [text]) for text in texts]
    if len(texts) > 1:
        raise click.UsageError(f"{schema.get('title')} is given more than once")
    return texts[0] if "string" in kinds else _json(texts[0])


def _json(text: str) -> Any:
    """Return the value of JSON, or else the text itself."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text


def _print(common: Common, operation: Operation, given: Mapping[str, Any]) -> int:
    """Print the records of an operation; return the exit code."""
    last: Record | None = None
    with _opened(common, operation) as memory:
        value = operation.function(memory or _subject(common, operation), **given)
        records = value if isinstance(value, Iterator) else [operation.record(value, given, memory)]
        for last in records:
            lines = last[operation.lines] if operation.lines else [last]
            for line in lines:  # type: ignore[union-attr]
                emit(line)  # type: ignore[arg-type]
    code = DONE if last is None else operation.exit_code(last)
    if code and (repo := given.get("repo")):
        listed = "`contextgraph sessions` lists the repositories there are"
        warn(f"{operation.name}: nothing is known of it in {repo}; {listed}")
    return code


def _subject(common: Common, operation: Operation) -> "Settings | KeyedMemory":
    if operation.subject == "settings":
        return common.settings()
    keyed = common.keyed()
    if operation.creates or keyed.root.exists():
        return keyed
    if operation.scope is TokenScope.READ:
        # As a service answers: a memory may have no entries.
        with suppress(MemoryNotFoundError), common.open(read_only=True) as memory:
            memory.store.runs.ids(limit=1)
            return keyed
    keyed.check_exists()
    return keyed


def _opened(common: Common, operation: Operation) -> "AgentMemory | nullcontext[None]":
    if operation.subject != "memory":
        return nullcontext()
    reads = operation.scope is TokenScope.READ
    return common.open(read_only=reads, create=operation.creates)


def _in_a_line(operation: Operation) -> str:
    fields = operation.arguments.model_fields.items()
    arguments = (f"{name}=" if one.is_required() else f"[{name}=]" for name, one in fields)
    return " ".join((operation.name, *arguments))


def _described(operation: Operation) -> str:
    lines = [_in_a_line(operation), "", getdoc(operation.function) or ""]
    for name, one in operation.arguments.model_fields.items():
        need = "" if one.is_required() else f" ({_default(operation.arguments, name)})"
        lines.append(f"\n  {name}{need}: {one.description or ''}".rstrip(": "))
    return "\n".join(lines)


def _default(model: "type[Arguments]", name: str) -> str:
    default = model.model_fields[name].default
    return "not given" if default in (None, "", ()) else str(default)
