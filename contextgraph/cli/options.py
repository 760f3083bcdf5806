"""Options shared by commands: the memory, its settings, and the form of the output."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Concatenate, NamedTuple, ParamSpec, cast

import click

from contextgraph.agents.sessions import HookFiles
from contextgraph.cli.output import emit, print_table
from contextgraph.config import (
    ENV_PREFIX,
    Settings,
    load_settings,
    settings_in_force,
)
from contextgraph.lazy import Field, dataclass, field, fields, replace
from contextgraph.text import plain

if TYPE_CHECKING:
    from contextgraph.config import SettingInForce
    from contextgraph.knowledge.keyed import KeyedMemory
    from contextgraph.memory import AgentMemory
    from contextgraph.model import Json

P = ParamSpec("P")


class Marker(NamedTuple):
    """The description of an option or argument in the annotation of a parameter."""

    flags: tuple[str, ...]
    details: Mapping[str, Any]
    is_argument: bool = False


def described(*flags: str, **details: Any) -> Marker:
    """Describe an option; without *flags* it is called as its parameter."""
    return Marker(flags, details)


def argument(**details: Any) -> Marker:
    """Describe an argument."""
    return Marker((), details, is_argument=True)


def option(flag: str, metavar: str, help_text: str, default: str = "", **details: Any) -> Marker:
    """Describe an option with a value; *default* is the text that the help shows for it."""
    shown = default or False
    return described(flag, metavar=metavar, help=help_text, show_default=shown, **details)


def flag(name: str, help_text: str) -> Marker:
    """Describe an option without a value."""
    return described(name, help=help_text)


def time_option(flag: str, help_text: str) -> Any:
    """A flag for a time in ISO 8601; one without a zone is UTC."""
    return option(flag, "TIME", help_text, parser=time_of)


def time_of(text: str) -> datetime:
    try:
        time = datetime.fromisoformat(text)
        return time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)
    except (ValueError, OverflowError) as error:
        raise click.BadParameter(
            f"{text!r} is not a time such as 2026-01-31 or 2026-01-31T12:00:00"
        ) from error


FollowLinks = Annotated[
    bool, flag("--follow-links", "Follow links that lead out of a named folder.")
]
Workdir = Annotated[
    Path | None,
    option(
        "--workdir",
        "FOLDER",
        "The checkout; files and symbols that it does not have are left out.",
        exists=True,
        file_okay=False,
    ),
]
Git = Annotated[
    bool,
    flag(
        "--git",
        "Check in git repositories on this machine whether later commits kept or reverted"
        " the changes of runs.",
    ),
]
Strict = Annotated[bool, flag("--strict", "Stop at a damaged run, instead of skipping it.")]
Yes = Annotated[bool, described("--yes", "-y", help="Do not ask for confirmation.")]
Repo = Annotated[str | None, option("--repo", "OWNER/REPO", "Only this repository.")]
AboutRepo = Annotated[str, option("--repo", "OWNER/REPO", "The repository it is about.")]
Tags = Annotated[list[str] | None, option("--tag", "TAG", "A tag (repeatable).")]
Limit = Annotated[int, described("--limit", metavar="N", min=1, help="At most N.")]
Tokens = Annotated[int, described(metavar="N", min=1, help="At most N tokens.")]
Question = Annotated[
    str, argument(metavar="QUESTION", help="What to look for.", show_default=False)
]
Paths = Annotated[
    list[str],
    argument(
        metavar="PATH",
        help="Trajectory files, folders or globs; - for standard input.",
        show_default=False,
    ),
]
# The memory of a command that uses one in RAM by default.
TemporaryStore = Annotated[
    str | None,
    option(
        "--store", "ADDRESS", "The memory: a file, or a neo4j:// or bolt:// address.", ":memory:"
    ),
]


def repository_here() -> str:
    """Return the repository of the current folder, as the hooks of agents name it."""
    from contextgraph.readers.repository import repository_name

    return repository_name(str(Path.cwd()))


def _option_of(setting: "Field[Any]") -> Any:
    """The option of a setting, as its field describes it."""
    details = dict(setting.metadata)
    help_text = f"{details.pop('help')} (or {ENV_PREFIX}{setting.name.upper()})."
    name = f"--{setting.name.replace('_', '-')}"
    made = option(name, details.pop("metavar"), help_text, details.pop("shown"), **details)
    is_number = setting.type in (float, float | None)
    return Annotated[float | None, made] if is_number else Annotated[str | None, made]


# Options that are also settings: each command names those that it has.
SETTINGS: Mapping[str, Any] = {
    setting.name: _option_of(setting) for setting in fields(Settings) if setting.metadata
}
_COMMON: Mapping[str, Any] = {
    "as_json": Annotated[bool, flag("--json", "Print JSON lines for programs.")],
    "store": Annotated[
        str | None,
        option(
            "--store",
            "ADDRESS",
            "The memory: a file, :memory:, or an address with neo4j://, bolt:// or http://"
            " (or CONTEXTGRAPH_STORE).",
            "contextgraph/memory.db in the user's data directory",
        ),
    ],
    "tenant": Annotated[
        str | None,
        option(
            "--tenant",
            "NAME",
            "The tenant whose memory it is (or CONTEXTGRAPH_TENANT).",
            "default",
        ),
    ],
}


@dataclass(frozen=True, slots=True)
class Common:
    """Values of the common options; *flags* are settings, None where not given."""

    as_json: bool = False
    store: str | None = None
    tenant: str | None = None
    flags: Mapping[str, Any] = field(default_factory=dict)

    def settings(self) -> Settings:
        """The settings in force with these options."""
        return load_settings(**self._given())

    def settings_in_force(self) -> "list[SettingInForce]":
        """These settings one by one, and where each is set."""
        return settings_in_force(**self._given())

    def _given(self) -> dict[str, Any]:
        return {"store": self.store or None, "tenant": self.tenant, **self.flags}

    def or_temporary(self) -> "Common":
        """These, with a memory in RAM where none is named."""
        return replace(self, store=self.store or ":memory:")

    def open(self, *, read_only: bool = False, create: bool = True) -> "AgentMemory":
        """The memory that is named; with *read_only*, or without *create*, it must exist."""
        from contextgraph.memory import AgentMemory

        settings = self.settings()
        given = {"tenant": self.tenant, **self.flags}
        if settings.is_service and (names := [name for name in given if given[name] is not None]):
            named = ", ".join(f"--{name.replace('_', '-')}" for name in names)
            raise click.BadParameter(f"{named}: {settings.address} has its own; leave this out")
        return AgentMemory.of_settings(settings, read_only=read_only, create=create)

    def keyed(self) -> "KeyedMemory":
        """The keyed files beside the memory that is named."""
        from contextgraph.wiring import keyed_memory

        return keyed_memory(self.settings())

    def compile_for_hooks(
        self,
        memory: "AgentMemory",
        *,
        whole: bool = False,
        consolidated: Collection[str] | None = None,
        repos: Collection[str] = (),
    ) -> None:
        """Bring the advice of hooks on this machine up to date, where any use *memory*.

        *whole*, *consolidated* and *repos* are as in `compile_advice`.
        """
        from contextgraph.agents.compile import compile_advice

        files = HookFiles(self.settings())
        if files.are_used and not memory.is_service:
            compile_advice(
                memory, Path(files.advice), whole=whole, consolidated=consolidated, repos=repos
            )

    def answer(self, record: "Mapping[str, Json]", text: str | Callable[[], object]) -> None:
        """Print *record* for programs, or else *text* for people: a function prints it."""
        if self.as_json:
            emit(record)
        elif callable(text):
            text()
        elif text:
            print(plain(text))

    def answer_rows(
        self,
        records: "Iterable[Mapping[str, Json]]",
        title: str,
        columns: Sequence[str],
        rows: Iterable[Sequence[str]],
        numeric: Iterable[str] = (),
        *,
        empty: str = "nothing found",
    ) -> None:
        """Print *records* for programs, or else a table of *rows*, *empty* without any."""
        if self.as_json:
            for record in records:
                emit(record)
            return
        shown = list(rows)
        print_table(title, columns, shown, numeric)
        if not shown:
            print(empty)


def _parameter(name: str, annotation: Any) -> Parameter:
    default = False if name == "as_json" else None
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def common_options(
    *settings: str, without: Collection[str] = (), store: Any = None
) -> Callable[[Callable[Concatenate[Common, P], None]], Callable[..., None]]:
    """Decorate a command: it gets `Common` as its first argument, and the options for that.

    These are *settings*, --json, --store and --tenant, but for those it is *without*; *store*
    replaces the description of --store.
    """
    chosen = [name for name in _COMMON if name not in without]
    described = {**SETTINGS, **_COMMON, **({"store": store} if store else {})}
    added = [_parameter(name, described[name]) for name in (*settings, *chosen)]

    def decorate(function: Callable[Concatenate[Common, P], None]) -> Callable[..., None]:
        @wraps(function)
        def run(**given: Any) -> None:
            flags = {name: given.pop(name) for name in settings}
            common = Common(flags=flags, **{name: given.pop(name) for name in chosen})
            cast(Any, function)(common, **given)

        # The options of a command are made from its signature.
        _, *own = signature(function).parameters.values()
        shown = [parameter.replace(kind=Parameter.KEYWORD_ONLY) for parameter in own]
        cast(Any, run).__signature__ = signature(function).replace(parameters=[*shown, *added])
        return run

    return decorate
