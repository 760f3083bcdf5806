"""The journal of an experiment: one durable line of JSON for each attempt."""

import fcntl
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import orjson

from contextgraph.codec import decoded, encoded
from contextgraph.errors import SettingsError
from contextgraph.experiment.tasks import Part
from contextgraph.model import Json

Key: TypeAlias = tuple[Part, str, str, int]


@dataclass(frozen=True, slots=True)
class Shown:
    """Advice that an agent was shown after *step* commands."""

    step: int
    text: str
    tokens: int


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt of an agent at a task; *number* counts from 1.

    *steps* are calls of the model; *tokens* (read and written) and *cost* (US dollars) are None
    where the model does not say. A broken attempt has an *error* and counts for nothing.
    """

    part: Part
    arm: str
    instance_id: str
    number: int
    solved: bool = False
    exit_status: str = ""
    steps: int = 0
    tokens: int | None = None
    cost: float | None = None
    seconds: float = 0.0
    shown: tuple[Shown, ...] = ()
    error: str = ""

    @property
    def key(self) -> Key:
        """What names it within its experiment."""
        return self.part, self.arm, self.instance_id, self.number


class Journal:
    """The folder of an experiment: its settings, its attempts, logs and memory."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._attempts = folder / "attempts.jsonl"
        self._settings = folder / "experiment.json"

    @contextmanager
    def opened(self, settings: Mapping[str, Json]) -> Iterator[None]:
        """Let only this process add attempts of the experiment with *settings*.

        Raises `SettingsError` where another process does, or the folder has another experiment.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise SettingsError(f"another process works on {self.folder}") from error
            self._agree(settings)
            self._drop_cut_line()
            yield

    def settings(self) -> Mapping[str, Json]:
        """What the experiment was begun with. Raises `SettingsError` where there is none."""
        try:
            settings: dict[str, Json] = orjson.loads(self._settings.read_bytes())
        except OSError as error:
            raise SettingsError(f"{self.folder} contains no experiment") from error
        return settings

    def attempts(self) -> dict[Key, Attempt]:
        """The last record of each attempt."""
        if not self._attempts.exists():
            return {}
        lines = self._attempts.read_bytes().splitlines(keepends=True)
        attempts = (decoded(Attempt, orjson.loads(line)) for line in lines if line.endswith(b"\n"))
        return {attempt.key: attempt for attempt in attempts}

    def add(self, attempt: Attempt) -> None:
        """Add *attempt*; on return it is on disk."""
        line = orjson.dumps(encoded(attempt)) + b"\n"
        with self._attempts.open("ab") as file:
            file.write(line)
            file.flush()
            os.fsync(file.fileno())

    def _agree(self, settings: Mapping[str, Json]) -> None:
        """Write *settings*, or raise where the folder has others."""
        if not self._settings.exists():
            part = self._settings.with_suffix(".part")
            part.write_bytes(
                orjson.dumps(settings, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
            )
            part.replace(self._settings)
        known = self.settings()
        for name, value in settings.items():
            if known.get(name) != value:
                raise SettingsError(
                    f"{self.folder} holds an experiment with {name} {known.get(name)!r}, not"
                    f" {value!r}; name another folder with --out"
                )

    def _drop_cut_line(self) -> None:
        """A process that was killed may have written the last line in part."""
        if self._attempts.exists():
            content = self._attempts.read_bytes()
            os.truncate(self._attempts, content.rfind(b"\n") + 1)
