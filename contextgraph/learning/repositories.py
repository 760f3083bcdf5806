"""Names of one repository that are joined in a memory, and split again."""

from collections.abc import Sequence

from contextgraph.errors import NotFoundError, SettingsError
from contextgraph.learning.writer import MemoryWriter
from contextgraph.model import JoinedName, LinkType, Note, RawTrajectory
from contextgraph.model.values import replace
from contextgraph.store.memory_store import Store, current_name

# Of a folder whose runs had no better name; one of more runs is joined by hand.
_MOST_PROVEN = 1_000


class Repositories:
    """The names of repositories in a memory."""

    def __init__(self, store: Store, writer: MemoryWriter) -> None:
        self._store, self._writer = store, writer

    def join(self, former: str, now: str) -> Sequence[str]:
        """Treat all runs of *former*, also later ones, as runs of *now*.

        Return ids of runs with a changed name. A repeated call completes an interrupted one.
        Raises `SettingsError` for names that are joined already.
        """
        former, now = former.casefold(), current_name(self._store.runs, now).casefold()
        if not former or not now or former == now:
            raise SettingsError(f"{former or 'nothing'} and {now or 'nothing'} are no two names")
        names = dict(self._store.runs.names())
        # Lessons go with the runs in which they were said.
        notes = (note for note in self._store.notes.all() if note.repo == former)
        moved = [note.id for note in notes if not note.targets(LinkType.SAID_IN)]
        before = names[former].notes if former in names else ()
        names = {
            name: replace(joined, now=now) if joined.now == former else joined
            for name, joined in names.items()
        }
        names[former] = JoinedName(now, (*before, *moved))
        self._store.runs.set_names(names)
        self._rename_notes(moved, now)
        return self._rewritten(self._store.runs.ids(repo=former))

    def split(self, former: str) -> Sequence[str]:
        """Take back that *former* was joined; return the ids of the runs that have that name again.

        Raises `NotFoundError` where it was not.
        """
        former = former.casefold()
        names = dict(self._store.runs.names())
        joined = names.pop(former, None)
        if joined is None:
            raise NotFoundError(f"{former} was not joined with another repository")
        self._store.runs.set_names(names)
        self._rename_notes(joined.notes, former)
        runs = self._store.runs
        return self._rewritten(
            [
                run
                for run in runs.ids(repo=joined.now)
                if (raw := runs.raw(run)) and raw.repo.casefold() == former
            ]
        )

    def join_proven(self, raws: Sequence[RawTrajectory]) -> Sequence[str]:
        """Join names of folders without a remote with the names that new remotes give.

        *raws* were read here, where their folders are. Return the ids of the runs that changed
        their name.
        """
        from contextgraph.readers.repository import local_name, repository_name

        runs, renamed = self._store.runs, list[str]()
        for folder, repo in {(raw.folder, raw.repo) for raw in raws}:
            local = local_name(folder).casefold()
            if not local or repo.casefold() == local or repository_name(folder) != repo:
                continue
            ids = runs.ids(repo=local, limit=_MOST_PROVEN)
            stored = [runs.raw(run) for run in ids]
            if ids and all(raw is not None and raw.folder == folder for raw in stored):
                renamed += self.join(local, repo)
        return renamed

    def _rename_notes(self, ids: Sequence[str], repo: str) -> None:
        def renamed(note: Note) -> Note:
            return replace(note, repo=repo)

        if ids:
            self._store.notes.change([*ids], renamed)

    def _rewritten(self, ids: Sequence[str]) -> Sequence[str]:
        return [receipt.trajectory_id for receipt in self._writer.rewrite(ids)]
