"""Runs that wait as files while a server cannot be reached."""

import hashlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from contextgraph.errors import ReadError, SettingsError

if TYPE_CHECKING:
    from contextgraph.config import Settings
    from contextgraph.model import RawTrajectory


class Spool:
    """The runs that wait for the memory of *settings*: one file each, readable by the owner only.

    They are stored as they were read, with secrets masked.
    """

    def __init__(self, settings: "Settings") -> None:
        from platformdirs import user_data_path

        memory = f"{settings.address}\n{settings.tenant}"
        name = hashlib.blake2b(memory.encode(), digest_size=8).hexdigest()
        self.folder = user_data_path() / "contextgraph" / "spool" / name

    def put(self, raw: "RawTrajectory") -> Path:
        """Store *raw* durably and return its file; the same run is stored once."""
        import io

        from contextgraph.learning import masked
        from contextgraph.readers import write_jsonl

        record = io.BytesIO()
        write_jsonl([masked(raw, with_playbooks=True)[0]], record)
        name = hashlib.blake2b(record.getvalue(), digest_size=16).hexdigest()
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            part = self.folder / f"{name}.{os.getpid()}.{threading.get_ident()}.part"
            with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as file:
                file.write(record.getvalue())
                file.flush()
                os.fsync(file.fileno())
            return part.replace(self.folder / f"{name}.jsonl")
        except OSError as error:
            reason = error.strerror or error
            raise SettingsError(f"{self.folder} cannot be written: {reason}") from error

    def __iter__(self) -> Iterator["tuple[Path, RawTrajectory]"]:
        """The waiting runs with their files, oldest first."""
        from contextgraph.readers import read

        for path in sorted(self.folder.glob("*.jsonl"), key=_modified_at):
            try:
                found = list(read(path))
            except ReadError:
                if path.exists():
                    raise
                continue  # another process has learned it
            for raw in found:
                yield path, raw

    def __len__(self) -> int:
        return len(list(self.folder.glob("*.jsonl")))


def _modified_at(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:  # another process has learned it
        return 0.0
