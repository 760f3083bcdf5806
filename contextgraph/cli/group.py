"""The commands as click knows them, made from the signatures of their functions."""

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from importlib import import_module
from inspect import Parameter, getdoc, signature
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, cast, get_args, get_origin

import click
from click.types import FuncParamType

from contextgraph.cli import (
    GATHERED,
    HOMES,
    SECTIONS,
    help_text,
)
from contextgraph.cli.output import (
    FAILED,
    STORE_UNAVAILABLE,
    accept_any_text,
    warn,
)
from contextgraph.errors import ContextGraphError, StoreUnavailableError

_CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 80}
INTERRUPTED = 130
_OF_PATHS = ("exists", "file_okay", "dir_okay")


def run(arguments: Sequence[str]) -> int:
    """Run the command line on *arguments*; return the exit code, each failure reported."""
    accept_any_text()
    try:
        # What is returned is a number where the command exits early.
        return app(args=[*arguments], prog_name="contextgraph", standalone_mode=False) or 0
    except click.ClickException as error:
        from contextgraph.text import mask_secrets

        message = error.message
        for argument in arguments:  # one in the wrong place is quoted
            message = message.replace(argument, mask_secrets(argument))
        cast(Any, error).message = mask_secrets(message)
        error.show()
        return error.exit_code
    except click.Abort as aborted:
        if isinstance(aborted.__cause__, KeyboardInterrupt):
            return INTERRUPTED
        warn("aborted")
        return FAILED
    except StoreUnavailableError as error:
        warn(str(error))
        return STORE_UNAVAILABLE
    except ContextGraphError as error:
        warn(str(error))
        return FAILED
    except SystemExit as done:
        return done.code if isinstance(done.code, int) else FAILED


class Described(click.Argument):
    """An argument with a description."""

    def __init__(self, name: str, description: str, **details: Any) -> None:
        super().__init__([name], **details)
        self.description = description


class DescribedCommand(click.Command):
    """A command whose help lists its arguments, too."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        described = [
            (parameter.make_metavar(ctx), parameter.description)
            for parameter in self.get_params(ctx)
            if isinstance(parameter, Described) and parameter.description
        ]
        if described:
            with formatter.section("Arguments"):
                formatter.write_dl(described)
        super().format_options(ctx, formatter)


class Commands(click.Group):
    """A group that makes each of its commands when it is needed.

    *homes* has the place of each, or the names of a command elsewhere (`HOMES`).
    """

    def __init__(self, name: str, homes: Mapping[str, Any], **details: Any) -> None:
        super().__init__(name, context_settings=_CONTEXT, **details)
        self.homes = homes

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for name in self.homes if name]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        home = self.homes.get(cmd_name) if cmd_name else None
        return _made(cmd_name, home) if home else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from difflib import get_close_matches

            near = get_close_matches(args[0], self.list_commands(ctx), n=1)
            if not near:
                raise
            raise click.UsageError(f"{error.message} Did you mean {near[0]!r}?", ctx) from error


class _Everything(Commands):
    """All commands; the help shows the first ones."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if gathered := GATHERED.get(cmd_name):
            homes = {name: _home(of) for name, of in gathered.items()}
            summary = SECTIONS["More"][cmd_name]
            return Commands(cmd_name, homes, help=summary, no_args_is_help=True)
        return super().get_command(ctx, cmd_name)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*self.homes, *GATHERED]

    def get_help(self, ctx: click.Context) -> str:
        return help_text()


def _home(name: str) -> Any:
    group, _, command = name.partition(" ")
    home = HOMES[group]
    return home[command] if command and not isinstance(home, str) else home


def _made(name: str, home: str | Mapping[str, str]) -> click.Command:
    if isinstance(home, str):
        return command_of(_function(home), name)
    if "" not in home:
        summary = import_module(f"contextgraph.cli.{next(iter(home.values())).split(':')[0]}")
        return Commands(name, home, help=summary.GROUPS[name], no_args_is_help=True)
    own = command_of(_function(home[""]), name)
    return Commands(
        name,
        home,
        params=own.params,
        callback=own.callback,
        help=own.help,
        invoke_without_command=True,
    )


def _function(home: str) -> Callable[..., object]:
    module, _, name = home.partition(":")
    function: Callable[..., object] = getattr(import_module(f"contextgraph.cli.{module}"), name)
    return function


def command_of(function: Callable[..., object], name: str) -> DescribedCommand:
    """Return the command *name* that calls *function*, with an option for each parameter."""
    return DescribedCommand(
        name,
        params=[_parameter(parameter) for parameter in signature(function).parameters.values()],
        callback=function,
        help=getdoc(function),
        context_settings=_CONTEXT,
    )


def _parameter(parameter: Parameter) -> click.Parameter:
    hint, marker = get_args(parameter.annotation)
    details: dict[str, Any] = dict(marker.details)
    choices = [choice for choice in get_args(hint) if choice is not NoneType]
    if get_origin(hint) in (Union, UnionType):
        (hint,) = choices
    is_list = get_origin(hint) is list
    if is_list:
        (hint,) = get_args(hint)
    elif get_origin(hint) is tuple:
        details["nargs"] = len(get_args(hint))
        hint = get_args(hint)[0]
    is_required = parameter.default is Parameter.empty
    details |= {"required": is_required, "type": _type(hint, details)}
    if not is_required and not is_list:
        details["default"] = parameter.default
    if marker.is_argument:
        details["nargs"] = -1 if is_list else 1
        description = details.pop("help", "")
        details.pop("show_default", None)
        return Described(parameter.name, description, **details)
    if hint is bool:
        del details["type"]
        details["is_flag"] = True
    shown = parameter.default if isinstance(parameter.default, int | float | str) else None
    details.setdefault("show_default", bool(shown) and hint is not bool)
    flags = marker.flags or (f"--{parameter.name.replace('_', '-')}",)
    return click.Option([parameter.name, *flags], multiple=is_list, **details)


def _type(hint: Any, details: dict[str, Any]) -> Any:
    """Return what click converts a text to *hint* with, taking the rules for it from *details*."""
    least, most = details.pop("min", None), details.pop("max", None)
    rules = {name: details.pop(name) for name in _OF_PATHS if name in details}
    if parser := details.pop("parser", None):
        return FuncParamType(parser)
    if get_origin(hint) is Literal:
        return click.Choice(get_args(hint))
    if isinstance(hint, type) and issubclass(hint, Enum):
        return click.Choice([str(member.value) for member in hint])
    if hint is Path:
        return click.Path(path_type=Path, **rules)
    if hint in (int, float) and (least is not None or most is not None):
        return (click.IntRange if hint is int else click.FloatRange)(least, most)
    return hint


def _print_version(_context: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"contextgraph {version('contextgraph-memory')}")
        raise click.exceptions.Exit


app = _Everything(
    "contextgraph",
    HOMES,
    no_args_is_help=True,
    params=[
        click.Option(
            ["-V", "--version"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_print_version,
        )
    ],
)
