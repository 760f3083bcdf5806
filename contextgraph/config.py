"""Settings: options precede environment variables, ``contextgraph.toml`` and defaults.

There are two such files: the user's own, and one in the current folder. The latter may come with a
clone: until the user trusts it (`trust`), it sets nothing, and never what is kept of sessions.
"""

import os
import re
import sys
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from typing import TYPE_CHECKING, Annotated

from msgspec import Struct, field, structs

from contextgraph.errors import ReadError, SettingsError
from contextgraph.model.values import replace
from contextgraph.system.intake import content
from contextgraph.text import digest, mask_secrets, plain

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Any

    from contextgraph.model import RawTrajectory

ENV_PREFIX = "CONTEXTGRAPH_"
SETTINGS_FILE = "contextgraph.toml"
NEO4J_USER = "neo4j"  # the user that a new server has


# The embedder where only an API key is given.
OPENAI_EMBEDDER = "openai/text-embedding-3-small"

_SECRETS = {
    "token": f"{ENV_PREFIX}TOKEN",
    "qdrant_key": "QDRANT_API_KEY",
    "embedding_api_key": "OPENAI_API_KEY",
}
_FROM_ENVIRONMENT_ONLY = {"api_url": "OPENAI_BASE_URL", **_SECRETS}
_NOT_PRINTED = ("auth", "notes", *_FROM_ENVIRONMENT_ONLY)
# The setting with the server that a secret is for.
_SERVER_OF = {"token": "store", "auth": "store", "qdrant_key": "notes"}
_LONGEST_FILE = 1 << 16
_IS_LINUX = sys.platform.startswith("linux")

DEFAULT_TENANT = "default"
DEFAULT = "default"  # the configuration that changes nothing, unless the file defines it
_CONFIGURATIONS = "configurations"


class Configuration(Struct, frozen=True):
    """A named variant of retrieval, for ablation; empty fields leave the defaults.

    *channels* are those in use, *weights* theirs in the fusion, *gate* the thresholds that differ.
    """

    name: str = DEFAULT
    channels: tuple[str, ...] = ()
    weights: Mapping[str, float] = field(default_factory=dict)
    gate: Mapping[str, float] = field(default_factory=dict)
    embedder: str = ""
    summarizer: str = ""


class Offered(Struct, frozen=True):
    """A setting that commands offer as an option, with its default as *shown* and its limits."""

    metavar: str
    help: str
    shown: str = ""
    min: float | None = None
    max: float | None = None


# A store as a graph of networkx, which `AgentMemory.graph` shows.
GRAPH = "networkx:"
IN_MEMORY = (":memory:", GRAPH)


class Settings(Struct, frozen=True):
    """The settings that a memory is built from.

    *store* is a file, ``:memory:``, ``networkx:`` (a graph in RAM), or a ``neo4j://`` or
    ``bolt://`` address; empty means ``contextgraph/memory.db`` under the user's data directory.
    *auth* is (user, password); from the environment only, as ``CONTEXTGRAPH_NEO4J_USER`` and
    ``CONTEXTGRAPH_NEO4J_PASSWORD``.
    *embedder* is ``tfidf``, ``local``, ``local/FOLDER``, ``openai/MODEL[@DIMENSIONS]`` or
    ``litellm/PROVIDER/MODEL@DIMENSIONS``; empty means that of the active space. *summarizer* is
    ``template`` or ``openai/MODEL``; empty means the template. *conflict_judge*, ``openai/MODEL``,
    says which notes contradict each other; empty means by their words only. *embedding_price*,
    *prompt_price* and *answer_price* are US dollars per million tokens and override the published
    ones; *max_cost* limits one process. *keyed_root* is the folder of keyed files, in it one for
    each tenant; empty means one beside the memory. *notes* is where vectors of notes are searched,
    ``postgresql://`` or ``qdrant+http(s)://``; empty means in *store*. Secrets are sent over http
    to this machine and to the *http_hosts*, separated by commas. *withhold* applies to answers
    at errors. Maintenance keeps *max_notes* notes, and unused ones for *note_retention* days;
    consolidation keeps *max_said* megabytes of what was said, and what was said in the last
    *said_retention* days (0: all).
    *announce* ``off``: hooks show the person nothing of the advice that an agent is given.
    *session* is that of the agent which the MCP server of this process serves.
    *node_vectors* ``on``: consolidation stores vectors of fragments and methodologies as well.
    *distil* is the model that writes the lessons of finished sessions: ``openai/MODEL``,
    ``claude``, ``codex``, ``gemini``, ``opencode``, or a command that reads standard input;
    ``agent`` is the running agent, by a tool; empty means none. It may use *distil_tokens* a day.
    """

    store: str = ""
    tenant: str = DEFAULT_TENANT
    auth: tuple[str, str] | None = None
    token: str | None = None
    qdrant_key: str | None = None
    embedding_api_key: str | None = None
    embedder: Annotated[
        str,
        Offered(
            "NAME",
            "tfidf, local, local/FOLDER, openai/MODEL or litellm/PROVIDER/MODEL@N; the last two "
            "are sent masked tasks, notes and passages of sessions",
            "that of the memory",
        ),
    ] = ""
    api_url: str = ""
    embedding_price: float | None = None
    summarizer: Annotated[str, Offered("NAME", "template or openai/MODEL", "template")] = ""
    conflict_judge: str = ""
    prompt_price: float | None = None
    answer_price: float | None = None
    max_cost: Annotated[float | None, Offered("DOLLARS", "The most to spend on models", min=0)] = (
        None
    )
    max_run_size: Annotated[
        float, Offered("MIB", "The most that one run may have, decompressed", "256", min=1)
    ] = 256
    keyed_root: str = ""
    notes: str = ""
    http_hosts: str = ""
    configuration: Annotated[
        Configuration, Offered("NAME", "One of [configurations] in contextgraph.toml", DEFAULT)
    ] = Configuration()
    source: Annotated[str, Offered("NAME", "The source to record")] = ""
    withhold: Annotated[
        float, Offered("SHARE", "Withhold this share of answers to compare", min=0, max=1)
    ] = 0.0
    announce: str = "on"
    session: str = ""
    conversations: str = "on"
    node_vectors: str = "off"
    never_learn: str = ""
    distil: str = ""
    distil_tokens: float = 100_000
    max_said: float = 0
    said_retention: float = 0
    max_notes: float = 10_000
    note_retention: float = 365

    def __repr__(self) -> str:
        shown = (name for name in self.__struct_fields__ if name not in _NOT_PRINTED)
        return f"Settings({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"

    @property
    def never_learned(self) -> tuple[str, ...]:
        """The repositories and folders whose runs are never learned."""
        named = (name.strip() for name in self.never_learn.split(","))
        return tuple(os.path.expanduser(name).rstrip("/\\") for name in named if name)

    @property
    def is_remote(self) -> bool:
        """True where *store* is the address of a server."""
        return "://" in self.store

    @property
    def is_service(self) -> bool:
        """True where *store* is a service, reached over HTTP."""
        return self.store.startswith(("http://", "https://"))

    def secret_for(self, url: str, secret: str | None, given: str) -> str | None:
        """Return *secret*, to be sent to *url*; *given* names the setting that has the URL.

        Raises `SettingsError` where that would send it in the clear to a host that the user did not
        name in *http_hosts*.
        """
        if not secret:
            return secret
        from contextgraph.system.remote import is_loopback, split_address

        parts = split_address(url, given)
        hosts = [host.strip() for host in self.http_hosts.split(",")]
        is_readable = parts.scheme == "http" and not is_loopback(parts.hostname or "")
        if is_readable and parts.hostname not in hosts:
            raise SettingsError(
                f"{mask_secrets(url)} would get a secret over http, which others can read on "
                f"the way: use https, or set CONTEXTGRAPH_HTTP_HOSTS={parts.hostname}"
            )
        return secret

    @property
    def address(self) -> str:
        """The place of the memory, defaults applied."""
        return self.store or str(default_memory())

    @property
    def companion(self) -> str:
        """The path that files which belong to the memory begin with; absolute.

        That of its file without the suffix; for a server, one in the user's data directory.
        """
        if not self.is_remote:
            path, _ = os.path.splitext(os.path.join(os.getcwd(), self.address))
            return path if self.tenant == DEFAULT_TENANT else f"{path}.{self.tenant}"
        return os.path.join(data_folder(), "servers", digest(f"{self.address}\n{self.tenant}"))

    @property
    def local_file(self) -> str:
        """The file that hooks read: the memory, or their copy of a remote one."""
        return f"{self.companion}.db" if self.is_remote else self.address

    @property
    def is_in_memory(self) -> bool:
        """True for a memory that ends with its process."""
        return self.address in IN_MEMORY

    @property
    def keyed_folder(self) -> str:
        """The folder of what `set_memory` stores. Raises `SettingsError` where there is none."""
        if self.keyed_root:
            from urllib.parse import quote

            return os.path.join(self.keyed_root, quote(self.tenant, safe="").replace(".", "%2E"))
        if self.is_in_memory:
            raise SettingsError("keyed files need a folder beside a memory in RAM; set keyed_root")
        return f"{self.companion}.keyed"


# The settings that commands offer as options.
OFFERED: "Mapping[str, Offered]" = {
    name: kind.__metadata__[0]
    for name, kind in Settings.__annotations__.items()
    if hasattr(kind, "__metadata__")
}
_KINDS = {
    name: kind.__origin__ if name in OFFERED else kind
    for name, kind in Settings.__annotations__.items()
}
# What ``contextgraph.toml`` may hold.
_TEXTS = tuple(
    name
    for name, kind in _KINDS.items()
    if kind in (str, Configuration) and name not in _FROM_ENVIRONMENT_ONLY
)
NUMBERS = tuple(name for name, kind in _KINDS.items() if kind in (float, float | None))
# Texts with commas in an environment variable, also lists in a file.
_LISTS = frozenset({"http_hosts", "never_learn"})
# What is kept of sessions, also of those that end elsewhere: for the owner's own file alone.
_OF_THE_OWNER = frozenset(
    {"max_run_size", "conversations", "never_learn", "max_said", "said_retention"}
)
# A limit below its floor would drop runs without a trace.
_FLOORS = {name: offered.min for name, offered in OFFERED.items() if offered.min}
_KNOWN = (*_TEXTS, *NUMBERS, _CONFIGURATIONS)
_VARIABLES = {
    **{key: ENV_PREFIX + key.upper() for key in (*_TEXTS, *NUMBERS)},
    **_FROM_ENVIRONMENT_ONLY,
}
# What the environment of an agent sets for its hooks; a clone's settings of the agent may fill it.
_OF_AGENTS = frozenset({"announce", "session", *_FROM_ENVIRONMENT_ONLY})


class SettingInForce(Struct, frozen=True):
    """The *value* of a setting, secrets masked, and its *origin*.

    That is ``option``, an environment variable, ``contextgraph.toml`` (of the current folder), the
    path of the user's file, a configuration in either, or ``default``.
    """

    name: str
    value: str | float | None
    origin: str


def user_settings_file() -> str:
    """Return the settings file of the user, for all folders."""
    return os.path.join(_user_folder("config"), SETTINGS_FILE)


def data_folder() -> str:
    """Return the folder of the memory, and of all else that is kept for the user."""
    return _user_folder("data")


def default_memory() -> str:
    """Return the memory file used when none is named."""
    return os.path.join(data_folder(), "memory.db")


def vector_cache_file() -> str:
    """Return the file in which vectors of models are cached."""
    return os.path.join(_user_folder("cache"), "vectors.db")


def usage_log_file() -> str:
    """Return the file in which the usage of models is counted."""
    return os.path.join(data_folder(), "spent.db")


_XDG = {"config": "~/.config", "data": "~/.local/share", "cache": "~/.cache"}


def _user_folder(kind: str) -> str:
    if _IS_LINUX:  # as platformdirs has it, whose import takes longer than most of a hook
        folder = os.environ.get(f"XDG_{kind.upper()}_HOME", "").strip() or _XDG[kind]
        return os.path.join(os.path.expanduser(folder), "contextgraph")
    import platformdirs

    return os.path.join(getattr(platformdirs, f"user_{kind}_dir")(), "contextgraph")


def load_settings(
    environment: Mapping[str, str] | None = None,
    folder: "Path | str | None" = None,
    **flags: str | float | None,
) -> Settings:
    """Return the settings in force: *flags* that are not None, then environment, files, defaults.

    The file in *folder* precedes the user's where it is trusted; else one warning names what is
    ignored. A *configuration* named by any of these overrides
    environment and files. Raises `SettingsError` for a trusted file that cannot be parsed or holds
    an unknown key, and for a configuration that is used and wrong.
    """
    return _loaded(environment, folder, flags)[0]


def environment_of_hooks() -> dict[str, str]:
    """Return the environment of this process as hooks and what they start see it.

    Without the settings that say what is kept, and where: a clone may set those of its agent.
    """
    left = {name for key, name in _VARIABLES.items() if key not in _OF_AGENTS}
    return {name: value for name, value in os.environ.items() if name not in left}


def ignored_by_hooks(settings: Settings) -> list[str]:
    """Return the variables of this environment that do not change the *settings* of hooks."""
    values = structs.asdict(settings) | {"configuration": settings.configuration.name}
    return [
        name
        for key, name in _VARIABLES.items()
        if key not in _OF_AGENTS
        and (given := os.environ.get(name))
        and given not in (values[key], f"{values[key]:g}" if key in NUMBERS else "")
    ]


def settings_in_force(
    environment: Mapping[str, str] | None = None,
    folder: "Path | str | None" = None,
    **flags: str | float | None,
) -> list[SettingInForce]:
    """Return each setting that `load_settings` loads, with its origin. Raises the same errors."""
    settings, origins = _loaded(environment, folder, flags)
    values = structs.asdict(settings)
    values |= {"store": settings.address, "configuration": settings.configuration.name}
    values |= {name: "set" for name in ("auth", *_SECRETS) if values[name]}
    return [
        SettingInForce(
            name,
            mask_secrets(value) or None if isinstance(value, str) else value,
            origins.get(name, "default"),
        )
        for name, value in values.items()
    ]


def _loaded(
    environment: Mapping[str, str] | None,
    folder: "Path | str | None",
    flags: Mapping[str, str | float | None],
) -> tuple[Settings, dict[str, str]]:
    """The settings in force, and where those are set that are not defaults."""
    environment = os.environ if environment is None else environment
    user, folder = user_settings_file(), folder or os.getcwd()
    text = _content(user)
    general, configurations = _parsed(os.path.basename(user), text) if text else ({}, {})
    for key in ("store", "keyed_root"):  # relative to the file
        value = str(general.get(key, ""))
        if value and "://" not in value and value not in IN_MEMORY:
            general[key] = os.path.join(os.path.dirname(user), os.path.expanduser(value))
    table, own_configurations = _from_project(folder)
    configurations |= own_configurations
    variables = {
        key: _number(name, key, environment[name]) if key in NUMBERS else environment[name]
        for key, name in _VARIABLES.items()
        if environment.get(name)
    }
    given = {key: value for key, value in flags.items() if value is not None}
    for key in given.keys() & NUMBERS:
        _check_floor(f"{key}: {given[key]!r}", key, float(given[key]))
    values = {**general, **table, **variables}
    name = given.get("configuration") or values.get("configuration") or DEFAULT
    chosen = _named(str(name), configurations)
    chosen_values = {
        key: value for key in ("embedder", "summarizer") if (value := getattr(chosen, key))
    }
    values |= {**chosen_values, **given}
    values.pop("configuration", None)
    auth = _auth(environment)
    origins = {
        **dict.fromkeys(general, user),
        **dict.fromkeys(table, SETTINGS_FILE),
        **{key: _VARIABLES[key] for key in variables},
        **dict.fromkeys(chosen_values, f"configuration {chosen.name}"),
        **dict.fromkeys(given, "option"),
        **({"auth": f"{ENV_PREFIX}NEO4J_PASSWORD"} if auth else {}),
    }
    settings = replace(_with(Settings(), values), auth=auth, configuration=chosen)
    return _without_unbound_secrets(settings, origins, folder), origins


def _without_unbound_secrets(
    settings: Settings, origins: Mapping[str, str], folder: "Path | str"
) -> Settings:
    """*settings* without secrets for a server that only the file in *folder* names."""
    for secret, server in _SERVER_OF.items():
        if not getattr(settings, secret) or origins.get(server) != SETTINGS_FILE:
            continue
        settings = replace(settings, **{secret: None})
        path = plain(os.path.join(folder, SETTINGS_FILE))
        _warn_once(
            f"{path}: {origins[secret]} is not sent to the {server} "
            f"that it names; to send it, name the {server} in {ENV_PREFIX}{server.upper()} or in "
            f"{user_settings_file()}"
        )
    return settings


def _named(name: str, configurations: Mapping[str, object]) -> Configuration:
    if name != DEFAULT and name not in configurations:
        known = ", ".join(sorted({DEFAULT, *configurations}))
        raise SettingsError(f"no configuration {name!r} in {SETTINGS_FILE}; known: {known}")
    # Only the one in use is checked: a mistake in another one must not stop this process.
    return _configuration(name, configurations[name]) if name in configurations else Configuration()


def _from_project(folder: "Path | str") -> "tuple[dict[str, str | float], dict[str, Any]]":
    """The settings of the file in *folder* where it is trusted, else none."""
    path = plain(os.path.join(folder, SETTINGS_FILE))
    try:
        file = ProjectFile.in_folder(folder)
    except SettingsError as error:
        _warn_once(f"{path} is ignored: {error}")
        return {}, {}
    if file is None:
        return {}, {}
    if file.is_trusted:
        table, configurations = file.parsed()
        if left := sorted(_OF_THE_OWNER & table.keys()):
            _warn_once(f"{path}: ignored {', '.join(left)}; set this in {user_settings_file()}")
        return {key: table[key] for key in table if key not in _OF_THE_OWNER}, configurations
    import tomllib

    try:
        table = tomllib.loads(file.content.decode())
    except (ValueError, RecursionError):  # an agent that starts in a clone must not stop at it
        ignored = ["its content"]
    else:
        ignored = [key if key in _KNOWN else repr(plain(key)[:40]) for key in table]
    if ignored:
        _warn_once(
            f"{path}: ignored {', '.join(ignored[:9])}; a file of a folder sets this only after "
            f"you read it and run: contextgraph trust {plain(str(folder))}"
        )
    return {}, {}


def _content(path: str) -> bytes | None:
    """The content of a settings file; None without one. Raises `SettingsError`, never waits."""
    try:
        return content(path, _LONGEST_FILE)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise SettingsError(f"{os.path.basename(path)}: {reason}") from error


def _parsed(name: str, text: bytes) -> "tuple[dict[str, str | float], dict[str, Any]]":
    """The settings in *text* and its configurations. Raises `SettingsError`."""
    import tomllib

    try:
        table = tomllib.loads(text.decode())
    except (ValueError, RecursionError) as error:
        raise SettingsError(f"{name}: {error}") from error
    _check_keys(name, table, _KNOWN)
    configurations = _table(f"{name}: {_CONFIGURATIONS}", table.pop(_CONFIGURATIONS, {}))
    for key in _LISTS & table.keys():
        if isinstance(table[key], list):
            table[key] = ",".join(map(str, table[key]))
    for key, value in sorted(table.items()):
        if key in _TEXTS and not isinstance(value, str):
            raise SettingsError(f"{name}: {key} must be a string")
        if key in NUMBERS and not _is_number(value):
            raise SettingsError(f"{name}: {key} must be a number")
        if key in NUMBERS:
            _check_floor(f"{name}: {key}", key, value)
    return table, configurations


class ProjectFile(Struct, frozen=True):
    """The settings file at *path*, in a folder that may be a clone, with its *content*."""

    path: str
    content: bytes

    @classmethod
    def in_folder(cls, folder: "Path | str") -> "ProjectFile | None":
        """Read the file in *folder*; None without one. Raises `SettingsError`."""
        path = os.path.join(os.path.realpath(folder), SETTINGS_FILE)
        found = _content(path)
        return None if found is None else cls(path, found)

    def settings(self) -> dict[str, str | float]:
        """Return what it sets once it is trusted; raises `SettingsError` where it is wrong."""
        found, configurations = self.parsed()
        table = {key: value for key, value in found.items() if key not in _OF_THE_OWNER}
        return table | ({_CONFIGURATIONS: ", ".join(configurations)} if configurations else {})

    def parsed(self) -> "tuple[dict[str, str | float], dict[str, Any]]":
        """Return its settings and its configurations; raises `SettingsError` where it is wrong."""
        return _parsed(os.path.basename(self.path), self.content)

    @property
    def is_trusted(self) -> bool:
        """True where the user trusted this content at this place."""
        return TRUSTED_SETTINGS.has(self._folder, self._digest)

    def trust(self) -> None:
        """Let it set everything, as long as its content stays."""
        TRUSTED_SETTINGS.add(self._folder, self._digest)

    @property
    def _folder(self) -> str:
        return os.path.dirname(self.path)

    @property
    def _digest(self) -> str:
        from hashlib import sha256

        return sha256(self.content).hexdigest()


def trusted_folders() -> dict[str, bool]:
    """Return the folders whose file was trusted, and whether that is still its content."""

    def is_trusted(folder: str) -> bool:
        try:
            file = ProjectFile.in_folder(folder)
        except SettingsError:
            return False
        return file is not None and file.is_trusted

    return {folder: is_trusted(folder) for folder in TRUSTED_SETTINGS.contents()}


class TrustedFolders(Struct, frozen=True):
    """Folders that the user trusts with something; the records of them are in the folder *name*."""

    name: str

    def add(self, folder: "Path | str", content: str = "") -> None:
        """Trust *folder* with what it holds: the *content* of a file, the name of a repository."""
        record = self._record(folder)
        record.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        record.write_bytes(os.fsencode(os.path.realpath(folder)) + b"\0" + content.encode())

    def has(self, folder: "Path | str", content: str | None = "") -> bool:
        """Return whether *folder* itself is trusted, and held *content* when it was; None: any."""
        try:
            _, _, held = self._record(folder).read_bytes().partition(b"\0")
        except FileNotFoundError:
            return False
        return content is None or held == content.encode()

    def contents(self) -> dict[str, str]:
        """Return the trusted folders, sorted, with what each held."""
        return {name: content for name, content, _ in sorted(self._read())}

    def revoke(self, folder: "Path") -> list[str]:
        """Trust *folder* and what is below it no longer; return which of these were trusted."""
        place = os.path.join(folder.resolve(), "")
        found = [(name, rec) for name, _, rec in self._read() if f"{name}/".startswith(place)]
        for _, record in found:
            record.unlink()
        return sorted(name for name, _ in found)

    def _read(self) -> "Iterator[tuple[str, str, Path]]":
        """Yield each trusted folder, what it held, and its record."""
        for record in self._folder.glob("*"):
            name, _, content = record.read_bytes().partition(b"\0")
            yield os.fsdecode(name), content.decode(), record

    def _record(self, folder: "Path | str") -> "Path":
        from hashlib import sha256

        return self._folder / sha256(os.fsencode(os.path.realpath(folder))).hexdigest()

    @property
    def _folder(self) -> "Path":
        from pathlib import Path

        return Path(data_folder(), self.name)


TRUSTED_SETTINGS = TrustedFolders("trusted-settings")
"""Folders whose settings file is used, as long as its content stays."""
HISTORIES = TrustedFolders("trusted-histories")
"""Folders in which histories of agents are the owner's own, in checkouts, too."""
LESSONS = TrustedFolders("trusted-lessons")
"""Repositories whose files of lessons are taken over."""


@cache
def _warn_once(text: str) -> None:
    _warn(text)


def _warn(text: str) -> None:
    import logging  # not for each hook

    logging.getLogger(__name__).warning(text)


def _configuration(name: str, given: object) -> Configuration:
    """The configuration that a table of the file describes."""
    from contextgraph.model.codec import decoded

    where = f"{SETTINGS_FILE}: {_CONFIGURATIONS}.{name}"
    table = _table(where, given)
    known = tuple(item.name for item in structs.fields(Configuration) if item.name != "name")
    _check_keys(where, table, known)
    for part in ("weights", "gate"):
        for key, number in _table(f"{where}: {part}", table.get(part, {})).items():
            if not _is_number(number):
                raise SettingsError(f"{where}: {part}.{key}: {number!r} is not a number")
    try:
        return decoded(Configuration, {**table, "name": name})
    except ReadError as error:
        raise SettingsError(f"{where}: {error.reason}") from error


def _table(where: str, given: object) -> "dict[str, Any]":
    if not isinstance(given, dict):
        raise SettingsError(f"{where} must be a table")
    return given


def _check_keys(where: str, table: Mapping[str, object], known: Sequence[str]) -> None:
    unknown = sorted(set(table) - set(known))
    if unknown:
        raise SettingsError(f"{where}: unknown key {unknown[0]!r}; known: {', '.join(known)}")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _number(name: str, key: str, value: str) -> float:
    try:
        number = float(value)
    except ValueError as error:
        raise SettingsError(f"{name}: {value!r} is not a number") from error
    _check_floor(f"{name}: {value!r}", key, number)
    return number


def _check_floor(named: str, key: str, number: float) -> None:
    floor = _FLOORS.get(key, 0)
    if not number >= floor:
        raise SettingsError(
            f"{named} must {f'be at least {floor}' if floor else 'not be negative'}"
        )


def _auth(environment: Mapping[str, str]) -> tuple[str, str] | None:
    password = environment.get(f"{ENV_PREFIX}NEO4J_PASSWORD")
    return (
        (environment.get(f"{ENV_PREFIX}NEO4J_USER") or NEO4J_USER, password) if password else None
    )


def _with(settings: Settings, values: Mapping[str, str | float]) -> Settings:
    known = {*Settings.__struct_fields__}
    unknown = sorted(set(values) - known)
    if unknown:
        raise SettingsError(f"unknown setting {unknown[0]!r}")
    return replace(settings, **values)


RUNNING_AGENT = "agent"
"""The setting *distil* where an agent asks for the requests by a tool, and answers them."""
REQUEST_MARK = "[contextgraph: request for lessons]"
"""The first line of requests to a model, by which the log of a client that was asked is known."""
NEVER_LEARNED = "never learned: the setting never_learn names its repository or folder"
_OWN_REQUEST = "never learned: a request of this memory to a model"


def reason_not_to_learn(run: "RawTrajectory", never: Sequence[str]) -> str:
    """Why *run* is not learned; empty for others.

    It is of a repository or in a folder that is *never* learned, or a request of the memory itself.
    """
    if run.task.lstrip().startswith(REQUEST_MARK):
        return _OWN_REQUEST
    folders = {run.folder, *(step.cwd for step in run.steps if step.cwd)} if never else set[str]()
    is_excluded = any(
        fnmatchcase(run.repo.lower(), pattern.lower())
        or fnmatchcase(run.repo.lower(), f"*/{pattern.lower()}")  # on another host
        or any(f"{place}/".startswith(f"{pattern}/") for place in (*folders, run.source))
        # Claude Code names the folder of a session's log after the one that it worked in.
        or (os.path.isabs(pattern) and f"{re.sub(r'[^A-Za-z0-9]', '-', pattern)}/" in run.source)
        for pattern in never
    )
    return NEVER_LEARNED if is_excluded else ""
