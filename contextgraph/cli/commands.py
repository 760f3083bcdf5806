"""The commands as click knows them, made from the signatures of functions; options they share."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from enum import Enum, StrEnum
from importlib import import_module
from inspect import Parameter, getdoc, signature
from itertools import pairwise, takewhile
from pathlib import Path
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    NamedTuple,
    Union,
    cast,
    get_args,
    get_origin,
)

import click
from click.types import FuncParamType
from msgspec import Struct, field

from contextgraph.cli import HOMES, help_text
from contextgraph.cli.output import (
    FAILED,
    STORE_UNAVAILABLE,
    accept_any_text,
    emit,
    print_table,
    warn,
)
from contextgraph.config import (
    ENV_PREFIX,
    NUMBERS,
    OFFERED,
    Offered,
    Settings,
    environment_of_hooks,
    load_settings,
    settings_in_force,
)
from contextgraph.errors import ContextGraphError, MemoryNotFoundError, StoreUnavailableError
from contextgraph.model.values import replace
from contextgraph.text import meant, neutral

if TYPE_CHECKING:
    from contextgraph.config import SettingInForce
    from contextgraph.knowledge.keyed import KeyedMemory
    from contextgraph.memory.agent_memory import AgentMemory
    from contextgraph.memory.exported import Form
    from contextgraph.model import Json


class Marker(NamedTuple):
    """The description of an option or argument in the annotation of a parameter."""

    flags: tuple[str, ...]
    details: Mapping[str, Any]
    is_argument: bool = False


def described(*flags: str, **details: Any) -> Marker:
    """Describe an option; without *flags* it is called as its parameter."""
    return Marker(flags, details)


def argument(metavar: str, help_text: str, **details: Any) -> Marker:
    """Describe an argument."""
    return Marker((), {"metavar": metavar, "help": help_text, **details}, is_argument=True)


def option(metavar: str, help_text: str, default: str = "", **details: Any) -> Marker:
    """Describe an option with a value; *default* is the text that the help shows for it."""
    return described(metavar=metavar, help=help_text, show_default=default or False, **details)


def flag(help_text: str) -> Marker:
    """Describe an option without a value."""
    return described(help=help_text)


def time_option(help_text: str, default: str = "") -> Marker:
    """Describe an option with a time in ISO 8601, UTC without a zone, or so long ago: 12h, 7d."""
    return option("TIME", help_text, default, parser=time_of)


def time_of(text: str) -> datetime:
    """Return the time that *text* names; raises `click.BadParameter` where it names none."""
    from contextgraph.knowledge.asked import time_in

    try:
        return time_in(text, datetime.now(UTC))
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


def check_period(since: datetime, until: datetime) -> None:
    """Raise `click.BadParameter` where no time is between *since* and *until*."""
    if since >= until:
        raise click.BadParameter(
            f"--since {since:%Y-%m-%d %H:%M} is not before --until {until:%Y-%m-%d %H:%M}"
        )


FollowLinks = Annotated[bool, flag("Follow links that lead out of a named folder.")]
Workdir = Annotated[
    Path | None,
    option(
        "FOLDER",
        "The checkout; files and symbols that it does not have are left out.",
        exists=True,
        file_okay=False,
    ),
]
Git = Annotated[
    bool,
    flag(
        "Check in git repositories on this machine whether later commits kept or reverted"
        " the changes of runs; learn the reasons in the histories of trusted ones.",
    ),
]
Strict = Annotated[bool, flag("Stop at a damaged run, instead of skipping it.")]
Yes = Annotated[bool, described("--yes", "-y", help="Do not ask for confirmation.")]
Repo = Annotated[str | None, option("OWNER/REPO", "Only this repository.")]
Tags = Annotated[list[str] | None, option("TAG", "A tag (repeatable).")]
Limit = Annotated[int, described("--limit", metavar="N", min=1, help="At most N.")]
Tokens = Annotated[int, described(metavar="N", min=1, help="At most N tokens.")]
Question = Annotated[str, argument("QUESTION", "What to look for.")]
Paths = Annotated[
    list[str], argument("PATH", "Trajectory files, folders or globs; - for standard input.")
]
# The memory of a command that uses one in RAM by default.
TemporaryStore = Annotated[
    str | None,
    option("ADDRESS", "The memory: a file, or a neo4j:// or bolt:// address.", ":memory:"),
]


def repository_here(folder: Path | None = None) -> str:
    """Return the repository of *folder*, else the current one, as the hooks of agents name it."""
    from contextgraph.readers.repository import repository_name

    return repository_name(str(folder or Path.cwd()))


def _option_of(name: str, offered: Offered) -> Any:
    """Return the option of a setting."""
    help_text = f"{offered.help} (or {ENV_PREFIX}{name.upper()})."
    limits = {
        bound: value for bound in ("min", "max") if (value := getattr(offered, bound)) is not None
    }
    made = option(offered.metavar, help_text, offered.shown, **limits)
    return Annotated[float | None, made] if name in NUMBERS else Annotated[str | None, made]


# Options that are also settings: each command names those that it has.
SETTINGS: Mapping[str, Any] = {name: _option_of(name, one) for name, one in OFFERED.items()}
_COMMON: Mapping[str, Any] = {
    "as_json": Annotated[bool, described("--json", help="Print JSON lines for programs.")],
    "store": Annotated[
        str | None,
        option(
            "ADDRESS",
            "The memory: a file, :memory:, or an address with neo4j://, bolt:// or http://"
            " (or CONTEXTGRAPH_STORE).",
            "contextgraph/memory.db in the user's data directory",
        ),
    ],
    "tenant": Annotated[
        str | None,
        option(
            "NAME",
            "The tenant whose memory it is (or CONTEXTGRAPH_TENANT).",
            "default",
        ),
    ],
}


class Common(Struct, frozen=True):
    """Values of the common options; *flags* are settings, None where not given.

    *as_hooks*: the environment does not say what is kept.
    """

    as_json: bool = False
    store: str | None = None
    tenant: str | None = None
    flags: Mapping[str, Any] = field(default_factory=dict)
    as_hooks: bool = False

    def settings(self) -> Settings:
        """Return the settings in force with these options."""
        return load_settings(environment_of_hooks() if self.as_hooks else None, **self._given())

    def of_ended(self) -> "Common":
        """Return these options for the sessions that ended: learned by the settings of hooks."""
        settings = self.settings()
        named = {"store": settings.address}
        if not settings.is_service:
            named["tenant"] = settings.tenant
        return replace(self, as_hooks=True, **named)

    def settings_in_force(self) -> "list[SettingInForce]":
        """Return these settings one by one, with where each is set."""
        return settings_in_force(**self._given())

    def _given(self) -> dict[str, Any]:
        return {"store": self.store or None, "tenant": self.tenant, **self.flags}

    def or_temporary(self) -> "Common":
        """Return these options with a memory in RAM where none is named."""
        return replace(self, store=self.store or ":memory:")

    def open(self, *, read_only: bool = False, create: bool = True) -> "AgentMemory":
        """Return the memory that is named; with *read_only*, or without *create*, it must exist."""
        from contextgraph.memory.agent_memory import AgentMemory

        settings = self.settings()
        given = {"tenant": self.tenant, **self.flags}
        if settings.is_service and (names := [name for name in given if given[name] is not None]):
            named = ", ".join(f"--{name.replace('_', '-')}" for name in names)
            raise click.BadParameter(f"{named}: {settings.address} has its own; leave this out")
        return AgentMemory.of_settings(settings, read_only=read_only, create=create)

    def open_repository(self, repo: str) -> "AgentMemory":
        """Return the memory that is named, to be read; of a service its copy of *repo*, renewed."""
        settings = self.settings()
        if not settings.is_service:
            return self.open(read_only=True)
        from contextgraph.agents.local_copy import renewed

        return renewed(settings, repo)

    def keyed(self) -> "KeyedMemory":
        """Return the keyed files beside the memory that is named."""
        from contextgraph.memory.wiring import keyed_memory

        return keyed_memory(self.settings())

    def exported(
        self, path: Path, form: "Form" = "report", repo: str = "", lessons: Sequence[str] = ()
    ) -> None:
        """Record that the file or folder at *path* was written: what is forgotten goes from it."""
        from contextgraph.memory.exported import Exports

        Exports(self.settings()).add(path, form, repo, lessons)

    def note_shown(self, memory: "AgentMemory", *, forgetting: bool = False) -> None:
        """Record in the remote *memory* what hooks showed on this machine: to credit it.

        Where something is to be forgotten, hooks forget all of their copy of it.
        """
        settings = self.settings()
        if settings.is_remote:
            from contextgraph.agents.local_copy import note_shown, remove_copy

            note_shown(memory, settings)
            if forgetting:
                remove_copy(settings)

    def answer(self, record: "Mapping[str, Json]", text: str | Callable[[], object]) -> None:
        """Print *record* for programs, or else *text* for people: a function prints it."""
        if self.as_json:
            emit(record)
        elif callable(text):
            text()
        elif text:
            print(neutral(text))

    def answer_rows(
        self,
        records: "Iterable[Mapping[str, Json]]",
        title: str,
        columns: Sequence[str],
        rows: Iterable[Sequence[str]],
    ) -> None:
        """Print *records* for programs, or else a table of *rows*; "none" without any."""
        if self.as_json:
            for record in records:
                emit(record)
            return
        shown = list(rows)
        print_table(title, columns, shown)
        if not shown:
            print("none")


class CommandFunction(Struct, frozen=True):
    """A function that is called with `Common` and with the values of its options.

    *names* returns what its first argument may be, where that is one of some names.
    """

    function: Callable[..., None]
    common: Sequence[str]
    settings: Sequence[str]
    store: Any
    names: Callable[[], Collection[str]] = tuple

    def __call__(self, **given: Any) -> None:
        """Call the function."""
        flags = {name: given.pop(name) for name in self.settings}
        common = Common(flags=flags, **{name: given.pop(name) for name in self.common})
        self.function(common, **given)

    def parameters(self) -> Iterator[Parameter]:
        """Yield a parameter for each option, with a `Marker` in its annotation."""
        _, *own = signature(self.function).parameters.values()
        yield from own
        described = {**SETTINGS, **_COMMON, **({"store": self.store} if self.store else {})}
        for name in (*self.settings, *self.common):
            default = False if name == "as_json" else None
            yield Parameter(
                name, Parameter.KEYWORD_ONLY, default=default, annotation=described[name]
            )


def common_options(
    *settings: str,
    without: Collection[str] = (),
    store: Any = None,
    names: Callable[[], Collection[str]] = tuple,
) -> Callable[[Callable[..., None]], CommandFunction]:
    """Decorate a command: it gets `Common` as its first argument, and the options for that.

    These are *settings*, --json, --store and --tenant, *without* some; *store* replaces the
    description of --store. *names* are those of `CommandFunction`.
    """
    chosen = [name for name in _COMMON if name not in without]

    def decorate(function: Callable[..., None]) -> CommandFunction:
        return CommandFunction(function, chosen, settings, store, names)

    return decorate


_CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 80}
INTERRUPTED = 130
UNREAD = "the lessons of {0} are read only after: contextgraph trust {0}"
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
        # A program that reads the answer reads one without values.
        if isinstance(error, click.UsageError) and "--json" in takewhile("--".__ne__, arguments):
            emit({})
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
        if isinstance(error, MemoryNotFoundError):
            report_unread(Path.cwd())
        return FAILED
    except SystemExit as done:
        return done.code if isinstance(done.code, int) else FAILED


def report_unread(folder: Path) -> None:
    """Print why the lessons in files around *folder* are not known, unless they are, or none."""
    from contextgraph.knowledge.entries import entries_in
    from contextgraph.knowledge.team import root_of, trusts_lessons

    root = root_of(folder)
    if not trusts_lessons(root) and entries_in(root).listed:
        warn(UNREAD.format(root))


class Described(click.Argument):
    """An argument with a description."""

    def __init__(self, name: str, description: str, **details: Any) -> None:
        super().__init__([name], **details)
        self.description = description


class DescribedCommand(click.Command):
    """A command whose help lists its arguments, too; a text with spaces is never an option.

    Such as the error "-bash: tox: command not found".
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        takes_value = {
            name
            for parameter in self.get_params(ctx)
            if isinstance(parameter, click.Option) and not parameter.is_flag
            for name in parameter.opts
        }
        texts = [
            place
            for place, (before, text) in enumerate(pairwise(["", *args]))
            if text.startswith("-")
            and " " in text.partition("=")[0]
            and before not in takes_value
            and "--" not in args[:place]
        ]
        if texts:
            others = [text for place, text in enumerate(args) if place not in texts]
            args = [*others, *([] if "--" in others else ["--"]), *(args[place] for place in texts)]
        return super().parse_args(ctx, args)

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
    """The group of all commands; it makes each when it is needed. *homes* are as `HOMES`."""

    def __init__(self, name: str, homes: Mapping[str, str], **details: Any) -> None:
        super().__init__(name, context_settings=_CONTEXT, **details)
        self.homes = homes

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*self.homes]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.homes:
            return None
        module, _, name = self.homes[cmd_name].partition(":")
        function: CommandFunction = getattr(import_module(f"contextgraph.cli.{module}"), name)
        return DescribedCommand(
            cmd_name,
            params=[_parameter(parameter) for parameter in function.parameters()],
            callback=function,
            help=getdoc(function.function),
            context_settings=_CONTEXT,
        )

    def get_help(self, ctx: click.Context) -> str:
        return help_text()

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            called = cast(click.Command, self.get_command(ctx, "call"))
            names = [*self.homes, *cast(CommandFunction, called.callback).names()]
            hint = "`contextgraph call --list`: others."
            if near := meant(args[0], names):
                hint = f"Did you mean {near if near in self.homes else f'call {near}'!r}?"
            raise click.UsageError(f"{error.message} {hint}", ctx) from error


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
        return Described(parameter.name, description, **details)
    if hint is bool:
        del details["type"]
        details["is_flag"] = True
    shown = parameter.default if isinstance(parameter.default, int | float | str) else None
    if isinstance(shown, StrEnum):
        details["default"] = shown.value
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


app = click.version_option(
    None,
    "-V",
    "--version",
    package_name="contextgraph-memory",
    prog_name="contextgraph",
    message="%(prog)s %(version)s",
)(Commands("contextgraph", HOMES, no_args_is_help=True))
