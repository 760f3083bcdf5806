"""The memory that hooks read: a file on this machine, for a remote memory a copy of a repository.

Run as a program in the background, with the address, tenant and repository, it renews the copy.
"""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, nullcontext, suppress
from functools import cache
from itertools import groupby
from typing import TYPE_CHECKING

from contextgraph.agents.hook_files import HookFiles
from contextgraph.config import Settings, load_settings
from contextgraph.errors import StoreUnavailableError
from contextgraph.memory.wiring import Parts, build
from contextgraph.model import (
    Exposure,
    NoteKind,
    NoteScope,
    RawTrajectory,
    RunFilter,
    Scope,
    Trajectory,
)
from contextgraph.model.values import replace
from contextgraph.store.memory_store import ALL, ExposureStore
from contextgraph.store.sessions import OpenExposures

if TYPE_CHECKING:
    from contextgraph.memory.agent_memory import AgentMemory

# Of a repository: its solved runs, then others, its newest runs and notes; of what hooks
# showed the newest, which the remote memory may lack.
_RUNS, _NEWEST, _NOTES, _EXPOSURES = 200, 20, 2_000, 1_000


@contextmanager
def local_parts(
    settings: Settings, seconds: float, on_unavailable: Callable[[StoreUnavailableError], None]
) -> Iterator[Parts]:
    """Yield the parts of the memory of *settings* for a hook, without models.

    For a remote one its copy; of a service the sessions are asked, for which it has so many
    *seconds*, and *on_unavailable* is called where that was not enough.
    """
    sessions = _exposures_of_service(settings, seconds) if settings.is_service else None
    local = _of_copy(settings)
    parts = build(
        local,
        read_only=not os.path.exists(local.address),  # only keyed files, maybe
        create=False,
        with_models=False,
        sessions=sessions,
        on_unavailable=on_unavailable,
    )
    with closing(parts.store):
        yield parts


def _exposures_of_service(settings: Settings, seconds: float) -> OpenExposures:
    """Return what opens the exposures of a service: one client, made where one is asked for."""

    @cache
    def exposures() -> ExposureStore:
        from contextgraph.memory.agent_memory import AgentMemory

        return AgentMemory.of_settings(settings, deadline=seconds).store.exposures

    return lambda: nullcontext(exposures())


def _of_copy(settings: Settings) -> Settings:
    """*settings* of the copy of a remote memory; of a file they are the same."""
    if not settings.is_remote:
        return settings
    copy = HookFiles(settings).store
    return replace(settings, store=copy, tenant="default", auth=None, token=None, notes="")


def shown_by_hooks(settings: Settings) -> Sequence[Exposure]:
    """Return the newest of what hooks showed on this machine and a remote memory may lack."""
    if not (settings.is_remote and os.path.exists(HookFiles(settings).store)):
        return ()
    # A process that was killed may have left it empty.
    with closing(build(_of_copy(settings), with_models=False).store) as copy:
        return copy.exposures.newest(_EXPOSURES)


def note_shown(memory: "AgentMemory", settings: Settings) -> None:
    """Record in the remote *memory* what hooks showed on this machine, so that it is credited."""
    if shown := shown_by_hooks(settings):
        memory.store.exposures.add(shown)


def remove_copy(settings: Settings) -> None:
    """Remove the copy of a remote memory: something in it is to be forgotten."""
    if settings.is_remote:
        for ending in ("", "-wal", "-shm"):
            with suppress(FileNotFoundError):
                os.unlink(f"{HookFiles(settings).store}{ending}")


def copy_repository(source: "AgentMemory", copy: "AgentMemory", repo: str) -> None:
    """Bring what *copy* has of *repo* up to date with *source*.

    Runs, notes, statements and decisions by hand. What is interrupted is completed by the next
    call. Raises `StoreError`.
    """
    runs, scope = source.store.runs, Scope(repo)
    newest = runs.listed(RunFilter(repo=repo), _NEWEST)
    wanted = {run.id: run for run in (*runs.for_task(None, scope, _RUNS), *newest)}
    known = {run.id: run for run in copy.store.runs.for_task(None, scope, ALL)}
    new = [run for run in wanted.values() if not _is_same(run, known.get(run.id))]
    copy.forget({*known} - {*wanted} | {run.id for run in new})
    # Oldest first: a run whose log has no time gets that at which it is learned.
    new.sort(key=lambda run: (_contributor(run), run.seen_at))
    for contributor, group in groupby(new, _contributor):
        raws = (replace(raw, outcome=run.outcome) for run in group if (raw := runs.raw(run.id)))
        wanted_again = _again(copy, raws, contributor)
        for _ in copy.learn_many(wanted_again, source=contributor, on_error=lambda error: None):
            pass
    noted = NoteScope((repo.casefold(), ""), tuple(NoteKind))
    notes = {note.id: note for note in source.store.notes.newest(noted, _NOTES)}
    before = {note.id: note for note in copy.store.notes.newest(noted, ALL)}
    copy.store.notes.delete([*{*before} - {*notes}])
    copy.store.notes.change(new=[note for note in notes.values() if note != before.get(note.id)])
    copy.store.exposures.decide(source.store.exposures.record([]).verdicts)


def _again(
    copy: "AgentMemory", raws: Iterator[RawTrajectory], contributor: str
) -> Iterator[RawTrajectory]:
    """Yield *raws*, of whose sessions *copy* may have forgotten another log, not for the user."""
    for raw in raws:
        copy.learn_again([raw], contributor)
        yield raw


def _contributor(run: Trajectory) -> str:
    return run.contributor


def _is_same(run: Trajectory, copied: Trajectory | None) -> bool:
    return copied is not None and copied.outcome == run.outcome


def renewed(settings: Settings, repo: str) -> "AgentMemory":
    """Open the copy of *repo* in the remote memory of *settings*, brought up to date.

    Raises `StoreUnavailableError` where the remote memory does not answer.
    """
    from contextgraph.memory.agent_memory import AgentMemory

    with AgentMemory.of_settings(settings, create=False) as memory, ExitStack() as stack:
        copy = AgentMemory.of(build(_of_copy(settings), with_models=False))
        stack.callback(copy.close)
        note_shown(memory, settings)
        copy_repository(memory, copy, repo)
        stack.pop_all()
    return copy


if __name__ == "__main__":
    _address, _tenant, _repo = sys.argv[1:]
    renewed(load_settings(store=_address, tenant=_tenant), _repo).close()
