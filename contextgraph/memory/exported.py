"""The files that were exported from a memory: what it forgets goes from them, too."""

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

import msgspec
from msgspec import Struct

from contextgraph.config import Settings
from contextgraph.errors import ContextGraphError
from contextgraph.memory.wiring import build
from contextgraph.model import Envelope, Holdings
from contextgraph.model.values import replace
from contextgraph.system.processes import replacing

_File = Literal["archive", "backup", "graphml", "json", "atif", "requests", "agents-md"]
Form = _File | Literal["lessons", "patch", "branch", "report", "page"]
# Those that the memory writes as a whole, and the rules of a repository in its AGENTS.md.
_WHOLE = ("graphml", "json", "agents-md", "lessons")
# Lessons by their ids, each with the session and the step of what was said of it.
Said = Mapping[str, Collection[tuple[str, int]]]


class Export(Struct, frozen=True, omit_defaults=True):
    """A file or folder at *path*; *repo* is that of an AGENTS.md.

    Of lessons *path* is the top of their repository, of a branch its file in the folder of git;
    *lessons* are those proposed there. A report is a person's, a page is shown once and not kept.
    *is_stale*: it may have what the memory has forgotten, and could not be changed.
    """

    path: str
    form: Form
    repo: str = ""
    is_stale: bool = False
    lessons: tuple[str, ...] = ()


class Exports:
    """The files and folders that were exported on this machine from the memory of *settings*."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._record = Path(f"{settings.companion}.exports.json")

    def add(self, path: Path, form: Form, repo: str = "", lessons: Sequence[str] = ()) -> None:
        """Note that *path* holds what is in the memory, or *lessons* of it."""
        if self._settings.is_in_memory:
            return
        named, there = str(path.absolute()), self.there()
        before = (one.lessons for one in there if (one.path, one.form) == (named, form))
        new = Export(named, form, repo, lessons=(*next(before, ()), *lessons))
        known = [one for one in there if (one.path, one.form) != (named, form)]
        with suppress(OSError):  # where nothing can be written, nothing can be forgotten
            self._record.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._write(known, [*known, new])

    def there(self) -> Sequence[Export]:
        """Return the exports that still exist, in the order in which they were made."""
        return [one for one in self._known() if os.path.exists(one.path)]

    def missing(self) -> Sequence[str]:
        """Return paths at which nothing is any more: what was there may be elsewhere."""
        return [one.path for one in self._known() if not os.path.exists(one.path)]

    def _known(self) -> Sequence[Export]:
        try:
            return msgspec.json.decode(self._record.read_bytes(), type=list[Export])
        except (OSError, msgspec.DecodeError):
            return []

    def remove(self, held: Holdings, said: Said) -> None:
        """Remove *held*, which the memory is about to forget, from archives, backups and folders.

        So is what was *said* in these runs from lessons that a repository has or was proposed; what
        git has already is only named.
        What the memory writes as a whole, graphs and AGENTS.md, is stale until it is written again,
        also where the process ends before that.
        """
        known = self.there()
        self._write(known, [self._without(one, held, said) for one in known])

    def remove_entries(self, is_gone: Callable[[Envelope], bool]) -> None:
        """Remove the entries that *is_gone* names, and are about to be erased, from archives."""
        known = self.there()
        self._write(known, [self._without_entries(one, is_gone) for one in known])

    def rewrite(self, write: Callable[[Export], bool]) -> None:
        """Let *write* write each file again that is stale; it returns False for one that stays so.

        Archives, backups and folders stay as they are.
        """
        known = self.there()
        again = [
            replace(one, is_stale=False) if one.is_stale and self._is_written(one, write) else one
            for one in known
        ]
        self._write(known, again)

    def _is_written(self, export: Export, write: Callable[[Export], bool]) -> bool:
        try:
            return export.form in _WHOLE and write(export)
        except (OSError, ContextGraphError):
            return False

    def _write(self, known: Sequence[Export], exports: Sequence[Export]) -> None:
        if known == exports:
            return
        with replacing(self._record) as part:
            part.write_bytes(msgspec.json.encode(exports))

    def _without(self, export: Export, held: Holdings, said: Said) -> Export:
        path = Path(export.path)
        is_there = any(lesson in said for lesson in export.lessons)
        try:
            if export.form == "archive":
                archive_without(held, path, self._settings, path)
            elif export.form == "backup":
                self._from_memory(path, held)
            elif export.form == "lessons":
                return replace(export, is_stale=export.is_stale or _is_unsaid(path, said))
            elif export.form == "page" or (export.form == "patch" and is_there):
                path.unlink()
            elif export.form in ("patch", "branch"):
                return replace(export, is_stale=export.is_stale or is_there)
            elif export.form in (*_WHOLE, "report"):
                return replace(export, is_stale=True)
            else:
                for run in held.runs:
                    for file in path.glob(f"{run}*.*"):
                        file.unlink()
        except (OSError, ContextGraphError):
            return replace(export, is_stale=True)
        return export

    def _without_entries(self, export: Export, is_gone: Callable[[Envelope], bool]) -> Export:
        from contextgraph.store.archive import without_entries

        try:
            if export.form == "archive":
                without_entries(Path(export.path), is_gone)
        except (OSError, ContextGraphError):
            return replace(export, is_stale=True)
        return export

    def _from_memory(self, path: Path, held: Holdings) -> None:
        settings = replace(self._settings, store=str(path), auth=None, token=None, notes="")
        parts = build(settings, create=False, with_models=False)
        with closing(parts.store):
            parts.forgetting.forget(held)


def archive_without(held: Holdings, path: Path, settings: Settings, to: Path) -> None:
    """Write the archive at *path* to the file *to*, without *held* and what only they taught.

    It keeps the entries of keyed files.
    """
    from contextgraph.store.archive import export_memory, import_memory, read_header

    entries = list[Envelope]()

    def keep(found: Collection[Envelope]) -> int:
        entries.extend(found)
        return len(found)

    header = read_header(path)
    with TemporaryDirectory(prefix="contextgraph-") as folder:
        store = os.path.join(folder, "archive.db")
        alone = replace(settings, store=store, tenant="default", auth=None, token=None, notes="")
        parts = build(alone, with_models=False)
        with closing(parts.store) as copy:
            import_memory(copy, path, vectors=header.vectors, keyed=keep)
            parts.forgetting.forget(held)
            export_memory(copy, to, header.tenant, vectors=header.vectors, keyed=lambda: entries)


def _is_unsaid(root: Path, said: Said) -> bool:
    """Remove what was *said* from the lessons in the repository at *root*; False where none is.

    A lesson goes with the last that was said of it.
    """
    from contextgraph.knowledge.entries import entries_in, written

    changed = [entry for entry in entries_in(str(root)).listed if entry.lesson in said]
    for entry in changed:
        gone = said[entry.lesson]
        rest = tuple(one for one in entry.evidence if (one.session, one.step) not in gone)
        if rest:
            with replacing(root / entry.path) as part:
                part.write_text(written(replace(entry, evidence=rest)), encoding="utf-8")
        else:
            (root / entry.path).unlink()
    return bool(changed)
