"""Settings: flags over environment over ``contextgraph.toml`` over defaults."""

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path

from contextgraph.errors import SettingsError

ENV_PREFIX = "CONTEXTGRAPH_"
SETTINGS_FILE = "contextgraph.toml"
NEO4J_USER = "neo4j"  # whom a new server knows
MEMORY_FILE = Path("contextgraph") / "memory.db"
VECTORS_FILE = Path("contextgraph") / "vectors.db"
SPENT_FILE = Path("contextgraph") / "spent.db"

# What is meant where only a key is given.
OPENAI_EMBEDDER = "openai/text-embedding-3-small"

# What ``contextgraph.toml`` may hold. A key is no such thing: it belongs into the environment.
_TEXTS = ("store", "tenant", "embedder", "summarizer")
_NUMBERS = ("embedding_price", "prompt_price", "answer_price", "max_cost")
_OPENAI = {"embedding_api_key": "OPENAI_API_KEY", "api_url": "OPENAI_BASE_URL"}


@dataclass(frozen=True, slots=True)
class Settings:
    """What a memory is built from.

    *store* is a file, ``:memory:``, or a ``neo4j://`` or ``bolt://`` address; empty means
    ``contextgraph/memory.db`` under the user's data directory. *auth* is (user, password); from the
    environment only, as ``CONTEXTGRAPH_NEO4J_USER`` and ``CONTEXTGRAPH_NEO4J_PASSWORD``.
    *embedder* is ``tfidf``, ``local``, ``local/FOLDER`` or ``openai/MODEL[@DIMENSIONS]``; empty
    means the one whose space the memory has. *summarizer* is ``template`` or ``openai/MODEL``;
    empty means the template. *embedding_price*, *prompt_price* and *answer_price* are US dollars
    for a million tokens where they are not the known ones, *max_cost* how many dollars may be
    spent on models before the memory is opened again.
    """

    store: str = ""
    tenant: str = "default"
    auth: tuple[str, str] | None = field(default=None, repr=False)
    embedding_api_key: str | None = field(default=None, repr=False)
    embedder: str = ""
    api_url: str = field(default="", repr=False)
    embedding_price: float | None = None
    summarizer: str = ""
    prompt_price: float | None = None
    answer_price: float | None = None
    max_cost: float | None = None

    @property
    def is_remote(self) -> bool:
        """True where *store* is the address of a server."""
        return "://" in self.store

    @property
    def address(self) -> str:
        """Where the memory is, defaults applied."""
        return self.store or str(default_memory())


def default_memory() -> Path:
    """The memory file used when none is named."""
    from platformdirs import user_data_path

    return user_data_path() / MEMORY_FILE


def bought_vectors() -> Path:
    """Where vectors are kept that an API made."""
    from platformdirs import user_cache_path

    return user_cache_path() / VECTORS_FILE


def spent() -> Path:
    """Where it is noted what models took."""
    from platformdirs import user_data_path

    return user_data_path() / SPENT_FILE


def load_settings(
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
    **flags: str | float | None,
) -> Settings:
    """The settings in force: *flags* that are not None, then environment, file, defaults.

    Raises `SettingsError` for a file that cannot be parsed or holds an unknown key.
    """
    environment = os.environ if environment is None else environment
    settings = _from_file((folder or Path.cwd()) / SETTINGS_FILE)
    settings = _with(settings, _from_environment(environment))
    settings = replace(settings, auth=_auth(environment))
    return _with(settings, {key: value for key, value in flags.items() if value is not None})


def _from_file(path: Path) -> Settings:
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Settings()
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SettingsError(f"{path.name}: {error}") from error
    unknown = sorted(set(table) - set(_TEXTS) - set(_NUMBERS))
    if unknown:
        known = ", ".join((*_TEXTS, *_NUMBERS))
        raise SettingsError(f"{path.name}: unknown key {unknown[0]!r}; known: {known}")
    for key, value in sorted(table.items()):
        if key in _TEXTS and not isinstance(value, str):
            raise SettingsError(f"{path.name}: {key} must be a string")
        if key in _NUMBERS and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise SettingsError(f"{path.name}: {key} must be a number")
    return _with(Settings(), table)


def _from_environment(environment: Mapping[str, str]) -> dict[str, str | float]:
    names = {key: ENV_PREFIX + key.upper() for key in (*_TEXTS, *_NUMBERS)} | _OPENAI
    return {
        key: _number(name, environment[name]) if key in _NUMBERS else environment[name]
        for key, name in names.items()
        if environment.get(name)
    }


def _number(name: str, value: str) -> float:
    try:
        return float(value)
    except ValueError as error:
        raise SettingsError(f"{name}: {value!r} is no number") from error


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
