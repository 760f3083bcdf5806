"""Settings: options precede environment variables, ``contextgraph.toml`` and defaults."""

import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from contextgraph.errors import ReadError, SettingsError
from contextgraph.text import mask_secrets

ENV_PREFIX = "CONTEXTGRAPH_"
SETTINGS_FILE = "contextgraph.toml"
NEO4J_USER = "neo4j"  # the user that a new server has
_log = logging.getLogger(__name__)


# The embedder where only an API key is given.
OPENAI_EMBEDDER = "openai/text-embedding-3-small"

# Settings of earlier versions: ignored with a warning.
_REMOVED = {"summarize": "language models word methodologies only since version 0.2"}
_REMOVED_THRESHOLDS = dict.fromkeys(
    (
        *("recovery", "repositories_elsewhere", "other_names", "runs_for_warning"),
        *("runs_for_methodology", "success_for_methodology"),
        *("case_in_repo", "case_elsewhere", "similar_in_repo"),
    ),
    "min_precision and min_case_precision replace it since version 0.2",
)
_SECRETS = {
    "token": f"{ENV_PREFIX}TOKEN",
    "qdrant_key": "QDRANT_API_KEY",
    "embedding_api_key": "OPENAI_API_KEY",
}
_FROM_ENVIRONMENT_ONLY = {"api_url": "OPENAI_BASE_URL", **_SECRETS}

DEFAULT = "default"  # the configuration that changes nothing, unless the file defines it
_CONFIGURATIONS = "configurations"


@dataclass(frozen=True, slots=True)
class Configuration:
    """A named variant of retrieval, for ablation; empty fields leave the defaults.

    *channels* are those in use, *weights* theirs in the fusion, *gate* the thresholds that differ.
    """

    name: str = DEFAULT
    channels: tuple[str, ...] = ()
    weights: Mapping[str, float] = field(default_factory=dict)
    gate: Mapping[str, float] = field(default_factory=dict)
    embedder: str = ""
    summarizer: str = ""


def _offered(metavar: str, text: str, shown: str = "", **limits: float) -> Mapping[str, Any]:
    """Metadata of a setting that commands offer as an option, with its default as *shown*."""
    return {"metavar": metavar, "help": text, "shown": shown, **limits}


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings that a memory is built from.

    *store* is a file, ``:memory:``, or a ``neo4j://`` or ``bolt://`` address; empty means
    ``contextgraph/memory.db`` under the user's data directory. *auth* is (user, password); from the
    environment only, as ``CONTEXTGRAPH_NEO4J_USER`` and ``CONTEXTGRAPH_NEO4J_PASSWORD``.
    *embedder* is ``tfidf``, ``local``, ``local/FOLDER``, ``openai/MODEL[@DIMENSIONS]`` or
    ``litellm/PROVIDER/MODEL@DIMENSIONS``; empty means that of the active space. *summarizer* is
    ``template`` or ``openai/MODEL``; empty means the template. *conflict_judge*, ``openai/MODEL``,
    says which notes contradict each other; empty means by their words only. *embedding_price*,
    *prompt_price* and *answer_price* are US dollars per million tokens and override the published
    ones; *max_cost* limits one process. *keyed_root* is the folder of keyed files, in it one for
    each tenant; empty means one beside the memory. *notes* is where notes are, at ``postgresql://``
    or ``qdrant+http(s)://``; empty means in *store*. *withhold* applies to answers at errors.
    Maintenance keeps *max_notes* notes, and unused ones for *note_retention* days.
    """

    store: str = ""
    tenant: str = "default"
    auth: tuple[str, str] | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    qdrant_key: str | None = field(default=None, repr=False)
    embedding_api_key: str | None = field(default=None, repr=False)
    embedder: str = field(
        default="",
        metadata=_offered(
            "NAME",
            "tfidf, local, local/FOLDER, openai/MODEL or litellm/PROVIDER/MODEL@N",
            "that of the memory",
        ),
    )
    api_url: str = field(default="", repr=False)
    embedding_price: float | None = None
    summarizer: str = field(
        default="", metadata=_offered("NAME", "template or openai/MODEL", "template")
    )
    conflict_judge: str = ""
    prompt_price: float | None = None
    answer_price: float | None = None
    max_cost: float | None = field(
        default=None, metadata=_offered("DOLLARS", "The most to spend on models", min=0)
    )
    max_run_size: float = field(
        default=256,
        metadata=_offered("MIB", "The most that one run may have, decompressed", "256", min=1),
    )
    keyed_root: str = ""
    notes: str = field(default="", repr=False)
    configuration: Configuration = field(
        default=Configuration(),
        metadata=_offered("NAME", "One of [configurations] in contextgraph.toml", DEFAULT),
    )
    source: str = field(default="", metadata=_offered("NAME", "The source to record"))
    withhold: float = field(
        default=0.0,
        metadata=_offered("SHARE", "Withhold this share of answers to compare", min=0, max=1),
    )
    max_notes: float = 10_000
    note_retention: float = 365

    @property
    def is_remote(self) -> bool:
        """True where *store* is the address of a server."""
        return "://" in self.store

    @property
    def is_service(self) -> bool:
        """True where *store* is a service, reached over HTTP."""
        return self.store.startswith(("http://", "https://"))

    @property
    def address(self) -> str:
        """Where the memory is, defaults applied."""
        return self.store or str(default_memory())

    @property
    def companion(self) -> Path:
        """The path that files which belong to the memory begin with; absolute.

        That of its file without the suffix; for a server, one in the user's data directory.
        """
        if not self.is_remote:
            path = Path(self.address).absolute().with_suffix("")
            return (
                path if self.tenant == "default" else path.with_name(f"{path.name}.{self.tenant}")
            )
        from hashlib import blake2b

        from platformdirs import user_data_path

        server = blake2b(f"{self.address}\n{self.tenant}".encode(), digest_size=8).hexdigest()
        return user_data_path() / "contextgraph" / "servers" / server

    @property
    def keyed_folder(self) -> Path:
        """The folder of what `set_memory` stores. Raises `SettingsError` where there is none."""
        if self.keyed_root:
            from urllib.parse import quote

            return Path(self.keyed_root) / quote(self.tenant, safe="").replace(".", "%2E")
        if self.address == ":memory:":
            raise SettingsError("keyed files need a folder beside a memory in RAM; set keyed_root")
        return self.companion.with_name(f"{self.companion.name}.keyed")


# What ``contextgraph.toml`` may hold.
_TEXTS = tuple(
    item.name
    for item in fields(Settings)
    if item.type in (str, Configuration) and item.name not in _FROM_ENVIRONMENT_ONLY
)
_NUMBERS = tuple(item.name for item in fields(Settings) if item.type in (float, float | None))
_VARIABLES = {
    **{key: ENV_PREFIX + key.upper() for key in (*_TEXTS, *_NUMBERS)},
    **_FROM_ENVIRONMENT_ONLY,
}


@dataclass(frozen=True, slots=True)
class SettingInForce:
    """The *value* of a setting, secrets masked, and its *origin*.

    That is ``option``, an environment variable, ``contextgraph.toml``, a configuration in it, or
    ``default``.
    """

    name: str
    value: str | float | None
    origin: str


def default_memory() -> Path:
    """The memory file used when none is named."""
    from platformdirs import user_data_path

    return user_data_path() / "contextgraph" / "memory.db"


def vector_cache_file() -> Path:
    """The file in which vectors of models are cached."""
    from platformdirs import user_cache_path

    return user_cache_path() / "contextgraph" / "vectors.db"


def usage_log_file() -> Path:
    """The file in which the usage of models is counted."""
    from platformdirs import user_data_path

    return user_data_path() / "contextgraph" / "spent.db"


def load_settings(
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
    **flags: str | float | None,
) -> Settings:
    """The settings in force: *flags* that are not None, then environment, file, defaults.

    A *configuration* named by any of these overrides environment and file. Raises `SettingsError`
    for a file that cannot be parsed or holds an unknown key, and for a configuration that is used
    and wrong.
    """
    return _loaded(environment, folder, flags)[0]


def settings_in_force(
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
    **flags: str | float | None,
) -> list[SettingInForce]:
    """Each setting that `load_settings` loads, with its origin. Raises the same errors."""
    settings, origins = _loaded(environment, folder, flags)
    values = {item.name: getattr(settings, item.name) for item in fields(settings)}
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
    folder: Path | None,
    flags: Mapping[str, str | float | None],
) -> tuple[Settings, dict[str, str]]:
    """The settings in force, and where those are set that are not defaults."""
    environment = os.environ if environment is None else environment
    table, configurations = _from_file((folder or Path.cwd()) / SETTINGS_FILE)
    variables = _from_environment(environment)
    given = {key: value for key, value in flags.items() if value is not None}
    values = {**table, **variables}
    name = given.get("configuration") or values.get("configuration") or DEFAULT
    chosen = _named(str(name), configurations)
    chosen_values = {
        key: value for key in ("embedder", "summarizer") if (value := getattr(chosen, key))
    }
    values |= {**chosen_values, **given}
    values.pop("configuration", None)
    auth = _auth(environment)
    origins = {
        **dict.fromkeys(table, SETTINGS_FILE),
        **{key: _VARIABLES[key] for key in variables},
        **dict.fromkeys(chosen_values, f"configuration {chosen.name}"),
        **dict.fromkeys(given, "option"),
        **({"auth": f"{ENV_PREFIX}NEO4J_PASSWORD"} if auth else {}),
    }
    settings = _with(Settings(), values)
    return replace(settings, auth=auth, configuration=chosen), origins


def _named(name: str, configurations: Mapping[str, object]) -> Configuration:
    if name != DEFAULT and name not in configurations:
        known = ", ".join(sorted({DEFAULT, *configurations}))
        raise SettingsError(f"no configuration {name!r} in {SETTINGS_FILE}; known: {known}")
    # Only the one in use is checked: a mistake in another one must not stop this process.
    return _configuration(name, configurations[name]) if name in configurations else Configuration()


def _from_file(path: Path) -> tuple[dict[str, str | float], dict[str, Any]]:
    try:
        content = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}, {}
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path.name}: {error}") from error
    import tomllib

    try:
        table = tomllib.loads(content)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{path.name}: {error}") from error
    _drop_removed(path.name, table, _REMOVED)
    _check_keys(path.name, table, (*_TEXTS, *_NUMBERS, _CONFIGURATIONS))
    configurations = _table(f"{path.name}: {_CONFIGURATIONS}", table.pop(_CONFIGURATIONS, {}))
    for key, value in sorted(table.items()):
        if key in _TEXTS and not isinstance(value, str):
            raise SettingsError(f"{path.name}: {key} must be a string")
        if key in _NUMBERS and not _is_number(value):
            raise SettingsError(f"{path.name}: {key} must be a number")
        if key in _NUMBERS and not value >= 0:
            raise SettingsError(f"{path.name}: {key} must not be negative")
    return table, configurations


def _configuration(name: str, given: object) -> Configuration:
    """The configuration that a table of the file describes."""
    from contextgraph.codec import decoded

    where = f"{SETTINGS_FILE}: {_CONFIGURATIONS}.{name}"
    table = _table(where, given)
    known = tuple(item.name for item in fields(Configuration) if item.name != "name")
    _check_keys(where, table, known)
    if "gate" in table:
        table["gate"] = _table(f"{where}: gate", table["gate"])
        _drop_removed(f"{where}: gate", table["gate"], _REMOVED_THRESHOLDS)
    try:
        return decoded(Configuration, {**table, "name": name})
    except ReadError as error:
        raise SettingsError(f"{where}: {error.reason}") from error


def _drop_removed(where: str, table: dict[str, Any], removed: Mapping[str, str]) -> None:
    """Remove settings of earlier versions from *table*, with a warning."""
    for key in sorted(table.keys() & removed.keys()):
        del table[key]
        _log.warning(f"{where}: the setting {key!r} is ignored: {removed[key]}")


def _table(where: str, given: object) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise SettingsError(f"{where} must be a table")
    return given


def _check_keys(where: str, table: Mapping[str, object], known: Sequence[str]) -> None:
    unknown = sorted(set(table) - set(known))
    if unknown:
        raise SettingsError(f"{where}: unknown key {unknown[0]!r}; known: {', '.join(known)}")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _from_environment(environment: Mapping[str, str]) -> dict[str, str | float]:
    for key, reason in _REMOVED.items():
        if environment.get(name := ENV_PREFIX + key.upper()):
            _log.warning(f"the variable {name} is ignored: {reason}")
    return {
        key: _number(name, environment[name]) if key in _NUMBERS else environment[name]
        for key, name in _VARIABLES.items()
        if environment.get(name)
    }


def _number(name: str, value: str) -> float:
    try:
        number = float(value)
    except ValueError as error:
        raise SettingsError(f"{name}: {value!r} is not a number") from error
    if not number >= 0:
        raise SettingsError(f"{name}: {value!r} must not be negative")
    return number


def _auth(environment: Mapping[str, str]) -> tuple[str, str] | None:
    password = environment.get(f"{ENV_PREFIX}NEO4J_PASSWORD")
    return (
        (environment.get(f"{ENV_PREFIX}NEO4J_USER") or NEO4J_USER, password) if password else None
    )


def _with(settings: Settings, values: Mapping[str, str | float]) -> Settings:
    known = {item.name for item in fields(Settings)}
    unknown = sorted(set(values) - known)
    if unknown:
        raise SettingsError(f"unknown setting {unknown[0]!r}")
    return replace(settings, **values)  # type: ignore[arg-type]  # keys checked above
