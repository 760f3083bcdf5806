"""The files that were exported from a memory: what it forgets goes from them, too."""

import os
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

import msgspec
from msgspec import Struct

from contextgraph.config import Settings
from contextgraph.errors import ContextGraphError
from contextgraph.model import Holdings
from contextgraph.model.values import replace
from contextgraph.store.graph import GraphFormat
from contextgraph.system.processes import replacing
from contextgraph.wiring import build

Form = Literal["archive", "backup", "graphml", "json", "atif", "requests", "agents-md"]


class Export(Struct, frozen=True, omit_defaults=True):
    """A file or folder at *path*; *repo* is that of an AGENTS.md.

    *is_stale*: it has what the memory has forgotten, and could not be changed.
    """

    path: str
    form: Form
    repo: str = ""
    is_stale: bool = False


class Exports:
    """The files and folders that were exported on this machine from the memory of *settings*."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._record = Path(f"{settings.companion}.exports.json")

    def add(self, path: Path, form: Form, repo: str = "") -> None:
        """Note that *path* holds what is in the memory."""
        if self._settings.is_in_memory:
            return
        new = Export(str(path.absolute()), form, repo)
        known = [one for one in self.there() if one.path != new.path]
        with suppress(OSError):  # where nothing can be written, nothing can be forgotten
            self._record.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._write([*known, new])

    def there(self) -> Sequence[Export]:
        """Return the exports that still exist, in the order in which they were made."""
        try:
            known = msgspec.json.decode(self._record.read_bytes(), type=list[Export])
        except (OSError, msgspec.DecodeError):
            return []
        return [one for one in known if os.path.exists(one.path)]

    def forget(self, held: Holdings, graph: Callable[[Path, GraphFormat], None]) -> None:
        """Remove *held*, which the memory has forgotten, from them; mark those that keep it.

        Archives, backups and folders lose these runs and notes; *graph* writes the graph of the
        memory to a file again. An AGENTS.md stays: people may have changed it.
        """
        if known := self.there():
            again = [self._without(one, held, graph) for one in known]
            if again != known:
                self._write(again)

    def _write(self, exports: Sequence[Export]) -> None:
        with replacing(self._record) as part:
            part.write_bytes(msgspec.json.encode(exports))

    def _without(
        self, export: Export, held: Holdings, graph: Callable[[Path, GraphFormat], None]
    ) -> Export:
        path = Path(export.path)
        try:
            if export.form == "archive":
                self._from_archive(path, held)
            elif export.form == "backup":
                self._from_memory(path, held)
            elif export.form == "graphml" or export.form == "json":  # noqa: PLR1714  (for mypy)
                graph(path, export.form)
            elif export.form in ("atif", "requests"):
                for run in held.runs:
                    for file in path.glob(f"{run}*.*"):
                        file.unlink()
        except (OSError, ContextGraphError):
            return replace(export, is_stale=True)
        return export

    def _from_memory(self, path: Path, held: Holdings) -> None:
        settings = replace(self._settings, store=str(path), auth=None, token=None, notes="")
        parts = build(settings, create=False, with_models=False)
        with closing(parts.store):
            parts.forgetting.forget(held)

    def _from_archive(self, path: Path, held: Holdings) -> None:
        from contextgraph.store.archive import export_memory, import_memory, read_header

        header = read_header(path)
        with TemporaryDirectory(prefix="contextgraph-") as folder:
            settings = replace(
                self._settings,
                store=os.path.join(folder, "archive.db"),
                tenant="default",
                auth=None,
                token=None,
                notes="",
            )
            parts = build(settings, with_models=False)
            with closing(parts.store) as store:
                import_memory(store, path, vectors=header.vectors)
                parts.forgetting.forget(held)
                export_memory(store, path, header.tenant, vectors=header.vectors)
