"""Settings: flags over environment over ``contextgraph.toml`` over defaults."""

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path

from contextgraph.errors import SettingsError

ENV_PREFIX = "CONTEXTGRAPH_"
SETTINGS_FILE = "contextgraph.toml"
MEMORY_FILE = Path("contextgraph") / "memory.db"


@dataclass(frozen=True, slots=True)
class Settings:
    """What a memory is built from.

    *store* is a file, ``:memory:``, or a ``neo4j://`` or ``bolt://`` address; empty means
    ``contextgraph/memory.db`` under the user's data directory. *auth* is (user, password).
    """

    store: str = ""
    tenant: str = "default"
    auth: tuple[str, str] | None = field(default=None, repr=False)
    embedding_api_key: str | None = field(default=None, repr=False)

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


def load_settings(
    environment: Mapping[str, str] | None = None, folder: Path | None = None, **flags: str | None
) -> Settings:
    """The settings in force: *flags* that are not None, then environment, file, defaults.

    Raises `SettingsError` for a file that cannot be parsed or holds an unknown key.
    """
    environment = os.environ if environment is None else environment
    settings = _from_file((folder or Path.cwd()) / SETTINGS_FILE)
    settings = _with(settings, _from_environment(environment))
    return _with(settings, {key: value for key, value in flags.items() if value is not None})


def _from_file(path: Path) -> Settings:
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Settings()
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SettingsError(f"{path.name}: {error}") from error
    unknown = sorted(set(table) - {"store", "tenant"})
    if unknown:
        raise SettingsError(f"{path.name}: unknown key {unknown[0]!r}; known: store, tenant")
    wrong = sorted(key for key, value in table.items() if not isinstance(value, str))
    if wrong:
        raise SettingsError(f"{path.name}: {wrong[0]} must be a string")
    return _with(Settings(), table)


def _from_environment(environment: Mapping[str, str]) -> dict[str, str]:
    names = {"store": "STORE", "tenant": "TENANT"}
    return {
        key: environment[ENV_PREFIX + name]
        for key, name in names.items()
        if environment.get(ENV_PREFIX + name)
    }


def _with(settings: Settings, values: Mapping[str, str]) -> Settings:
    known = {item.name for item in fields(Settings)}
    unknown = sorted(set(values) - known)
    if unknown:
        raise SettingsError(f"unknown setting {unknown[0]!r}")
    return replace(settings, **values)  # type: ignore[arg-type]  # keys checked above
