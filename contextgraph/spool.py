"""Stores runs as files while a server cannot be reached."""

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote, unquote

from contextgraph.config import data_folder
from contextgraph.errors import ReadError, SettingsError
from contextgraph.processes import replacing

if TYPE_CHECKING:
    from contextgraph.config import Settings
    from contextgraph.model import RawTrajectory


class WaitingRun(NamedTuple):
    """A run that waits in a file, and the name of who supplied it: see `AgentMemory.learn`."""

    path: Path
    raw: "RawTrajectory"
    source: str


class Spool:
    """The runs that wait for the memory of *settings*: one file each, readable by the owner only.

    They are stored as they were read, with secrets masked; those of a source in its own folder.
    """

    def __init__(self, settings: "Settings") -> None:
        memory = f"{settings.address}\n{settings.tenant}"
        name = hashlib.blake2b(memory.encode(), digest_size=8).hexdigest()
        self._source = settings.source
        self.folder = Path(data_folder(), "spool", name)

    def put(self, raw: "RawTrajectory", source: str = "") -> WaitingRun:
        """Store *raw* durably; the same run is stored once.

        *source* is by default that of the settings.
        """
        source = source or self._source
        import io

        from contextgraph.learning import masked
        from contextgraph.readers import write_jsonl

        record = io.BytesIO()
        write_jsonl([masked(raw, with_playbooks=True)[0]], record)
        name = hashlib.blake2b(record.getvalue(), digest_size=16).hexdigest()
        try:
            folder = self.folder / f"source-{quote(source, safe='')}" if source else self.folder
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            path = folder / f"{name}.jsonl"
            with replacing(path) as part, part.open("wb") as file:
                file.write(record.getvalue())
                file.flush()
                os.fsync(file.fileno())
            return WaitingRun(path, raw, source)
        except OSError as error:
            reason = error.strerror or error
            raise SettingsError(f"{self.folder} cannot be written: {reason}") from error

    def __iter__(self) -> Iterator[WaitingRun]:
        """Return the runs that wait now, oldest first; each is read on demand."""
        return self._read(sorted(self._files(), key=_modified_at))

    def _read(self, paths: list[Path]) -> Iterator[WaitingRun]:
        from contextgraph.readers import read

        for path in paths:
            try:
                runs = list(read(path))
            except ReadError:
                if path.exists():
                    raise
                continue  # another process has learned it
            for raw in runs:
                named = path.parent != self.folder
                source = unquote(path.parent.name.removeprefix("source-")) if named else ""
                yield WaitingRun(path, raw, source)

    def __len__(self) -> int:
        return len(self._files())

    def _files(self) -> list[Path]:
        return [*self.folder.glob("*.jsonl"), *self.folder.glob("source-*/*.jsonl")]


def _modified_at(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:  # another process has learned it
        return 0.0
