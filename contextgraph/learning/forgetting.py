"""Forgetting: one operation for all words of runs, sessions, sources and repositories."""

from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import datetime

from contextgraph.inference.fitting import forget_words
from contextgraph.knowledge.lessons import Lessons
from contextgraph.knowledge.notes import Notes
from contextgraph.knowledge.pages import remove_filled
from contextgraph.learning.writer import MemoryWriter
from contextgraph.model import (
    Holdings,
    LinkType,
    Note,
    RawTrajectory,
    Trajectory,
    Verdict,
    forgotten_name,
    is_subagent,
)
from contextgraph.model.values import batched, replace
from contextgraph.store.memory_store import Store
from contextgraph.text import masked_name
from contextgraph.trace.owners import Session

_AT_ONCE = 500


class Forgetting:
    """Removes from a memory all that was said and done in runs."""

    def __init__(
        self,
        store: Store,
        writer: MemoryWriter,
        lessons: Lessons,
        notes: Notes,
        clock: Callable[[], datetime],
    ) -> None:
        self._store, self._writer, self._lessons, self._notes = store, writer, lessons, notes
        self._now = clock

    def holdings(
        self, sessions: Collection[str], sources: Collection[str], repos: Collection[str]
    ) -> Holdings:
        """Return the runs and notes of *sessions*, of *sources*, and in *repos*.

        Lessons go with the runs in which they were said, and with their source.
        """
        runs, places = self._store.runs, {masked_name(repo).casefold() for repo in repos}
        with self._store.snapshot():  # a run that is learned again gets another id
            found = [run for repo in repos for run in runs.ids(repo=masked_name(repo))]
            found += (
                [run.id for run in self._runs() if run.contributor in sources] if sources else []
            )
            for run in runs.ids() if sessions else ():
                raw = runs.raw(run)
                if raw and (raw.session in sessions or raw.instance_id in sessions):
                    found.append(run)
            notes = self._store.notes.all() if sources or places else ()
            noted = [
                note.id
                for note in notes
                if not {note.contributor, note.source}.isdisjoint(sources)
                or (note.repo in places and not _is_said(note))
            ]
        return Holdings(tuple(dict.fromkeys(found)), tuple(noted))

    def forget(self, held: Holdings, sessions: Collection[str] = ()) -> int:
        """Remove *held* and all that only they taught, said or showed; return how many runs.

        Their logs are not learned again: those of *sessions* from nobody. The runs go last: an
        interrupted call that is repeated finds by them what is left.
        """
        runs = self._store.runs
        known = [run.trajectory_id for run in runs.learned(held.runs).values()]
        nodes = [*runs.trajectories(known).values()]
        self._decide(
            [forgotten_name(session) for session in sessions]
            + [_name_of(run) for run in nodes if run.session],
            is_forgotten=True,
        )
        notes = [*self._store.notes.get(held.notes)]
        self._disinherit(known, {run.repo for run in nodes})
        for run in known:
            self._lessons.remove_run(run)
        repos = {run.repo for run in nodes if run.repo}
        remove_filled(self._store.notes, repos)
        if since := min((run.learned_at for run in nodes), default=None):
            whole = {repo.casefold() for repo in repos if {*runs.ids(repo=repo)} <= {*known}}
            self._store.exposures.forget_texts({*map(str.casefold, repos), ""}, since, whole)
        if known or notes:
            forget_words(self._store, {*known, *notes})
        if notes:
            self._notes.forget(notes)
        removed = runs.forget(known)
        for run in known:  # what another process said of them meanwhile
            self._lessons.remove_run(run)
        return removed

    def forgotten(self, runs: Iterable[Trajectory]) -> list[str]:
        """Return the ids of those of *runs* whose sessions are not learned again."""
        names = dict[str, set[str]]()
        for run in runs:
            for name in _names_of(run):
                names.setdefault(name, set()).add(run.id)
        found = self._store.exposures.forgotten(names) if names else ()
        return sorted({run for name in found for run in names[name]})

    def learn_again(self, runs: Iterable[RawTrajectory], source: str = "") -> None:
        """Let the sessions of *runs*, supplied by *source*, be learned that were forgotten."""
        names = {name for run in runs for name in self._writer.forgotten_names(run, source)}
        self._decide(self._store.exposures.forgotten(names), is_forgotten=False)

    def _decide(self, names: Collection[str], *, is_forgotten: bool) -> None:
        if names:
            now = self._now()
            verdicts = [Verdict(name, is_forgotten, now) for name in dict.fromkeys(names)]
            self._store.exposures.decide(verdicts)

    def _disinherit(self, gone: Collection[str], repos: Iterable[str]) -> None:
        """Remove what later sessions in *repos* repeat of the sessions *gone*."""
        runs = self._store.runs
        raws = (runs.raw(run) for run in gone)
        beginnings = {digest for raw in raws if raw for digest in Session(raw).beginnings}
        if not beginnings:
            return
        for repo in repos:
            heirs = dict[str, RawTrajectory]()
            for run in runs.ids(repo=repo):
                raw = runs.raw(run) if run not in gone else None
                inherited = raw.inherited if raw else None
                if raw and inherited and not beginnings.isdisjoint(inherited.ends):
                    heirs[run] = _without_inherited(raw)
            self._writer.correct(heirs)

    def _runs(self) -> Iterator[Trajectory]:
        runs = self._store.runs
        for some in batched(runs.ids(), _AT_ONCE):
            yield from runs.trajectories(some).values()


def _names_of(run: Trajectory) -> Iterator[str]:
    """Yield by what the session of *run* is known where it, or this run of it, was forgotten."""
    parts = {None, run.run_at if is_subagent(run.agent) else None} if run.session else ()
    for contributor in {"", run.contributor}:
        for began in parts:
            yield forgotten_name(run.session, contributor, began)


def _name_of(run: Trajectory) -> str:
    """Return the name of the session of *run*; of a sub-agent its own, for the others stay."""
    began = run.run_at if is_subagent(run.agent) else None
    return forgotten_name(run.session, run.contributor, began)


def _is_said(note: Note) -> bool:
    return bool(note.targets(LinkType.SAID_IN))


def _without_inherited(raw: RawTrajectory) -> RawTrajectory:
    """Return *raw* without the words of the session that it goes on with."""
    assert raw.inherited
    task = "" if raw.inherited.with_request else raw.task
    return replace(raw, task=task, inherited=replace(raw.inherited, before=""))
