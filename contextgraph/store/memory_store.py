"""The store of a memory, written once above the primitives of `store.port`.

All back ends give the same answers: the same values in the same order. Where a docstring names an
order, ties are broken by id, ascending. *limit* bounds the number of items; a filter that is None
admits all; unknown ids count for nothing. What a store proposes is in *scope* and more than will be
shown; it is scored above this layer. A write is one transaction unless stated otherwise. Each
raises `StoreUnavailableError` when the store cannot be reached and `StoreError` when it refuses.
"""

import sys
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime, timedelta
from functools import lru_cache, partial, wraps
from itertools import chain, islice
from math import inf
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Literal,
    NamedTuple,
    ParamSpec,
    Protocol,
    TypeAlias,
    TypeVar,
)

import orjson

from contextgraph import model
from contextgraph.errors import StoreError
from contextgraph.model import dimensions_of, node_text, run_text
from contextgraph.model.values import batched, replace
from contextgraph.store import rules, tables
from contextgraph.store.port import (
    KEY,
    SOURCE,
    TARGET,
    VALUE,
    Count,
    Is,
    Port,
    Question,
    Reads,
    Row,
    Table,
    Term,
    Transaction,
)
from contextgraph.store.protocols import OnDamaged
from contextgraph.system.processes import Process
from contextgraph.text import word_weights

if TYPE_CHECKING:
    from contextgraph.store.protocols import Graph

# As a limit: all items.
ALL = sys.maxsize
NoteChange: TypeAlias = Callable[[model.Note], model.Note]
NodeType: TypeAlias = Literal["Fragment", "Methodology"]
RECOVERY_LEVELS = (
    model.SignatureLevel.TEMPLATE,
    model.SignatureLevel.TYPE,
    model.SignatureLevel.FAMILY,
)
"""Levels at which errors may agree for their recoveries to be found together, closest first."""

Kind = TypeVar("Kind")
Removed = tuple[list[str], list[str]]
# Nodes and relations that are counted, by what a person calls them.
_NODES = (tables.RUN, tables.FRAGMENT, tables.ERROR, tables.METHODOLOGY)
_FIRST = datetime.min.replace(tzinfo=UTC)
_EDGES = (tables.CAUSED, tables.RECOVERED, tables.RESOLVED, tables.DERIVED, tables.SIMILAR)
# Forgotten in one transaction, whose size the memory of a server limits: a hundred runs of 100 kB
# each took 31 MB.
RUNS_AT_ONCE = 256
NOTES_AT_ONCE = 1_000
_INFORMATIVE = {kind.value: place for place, kind in enumerate(model.INFORMATIVE_FIRST)}
_CONSOLIDATED, _GATE, _LEASE, _NAMES = "consolidated", "gate", "lease", "names"
_ORDERS = {
    model.RunOrder.NEWEST: "-seen_at",
    model.RunOrder.INSTANCE: "instance_id",
    model.RunOrder.REPO: "repo",
    model.RunOrder.AGENT: "agent",
    model.RunOrder.OUTCOME: "outcome",
    model.RunOrder.STEPS: "-steps",
}


def _most(limit: int) -> int | None:
    return None if limit >= ALL else max(0, limit)


def _keyed(keys: Iterable[str], column: str = KEY) -> Term:
    return Term(column, Is.IN, sorted({*keys}))


def _equal(column: str, value: object) -> Term:
    return Term(column, Is.EQUAL, value)


def _within(scope: model.Scope, agent: str | None = None) -> list[Term]:
    """Return the terms of *scope* about the columns that all rows of runs have.

    With *agent*, of rows of the runs themselves.
    """
    terms = [] if scope.repo is None else [_equal("repo", scope.repo)]
    if agent is not None:
        terms.append(_equal("agent", agent))
    if scope.exclude_instances:
        terms.append(Term("instance_id", Is.NOT_IN, (*sorted(scope.exclude_instances),)))
    if scope.as_of is not None:
        terms.append(Term("seen_at", Is.MOST, scope.as_of))
    return terms


_SOLVED_FIRST = ("-solved", "-seen_at")


def _without_facts(run: str) -> StoreError:
    return StoreError(f"run {run} has no facts: contextgraph call rebuild makes them")


def _admitted(wanted: model.SessionFilter) -> list[Term]:
    """Return the terms of *wanted*."""
    terms = [_equal("is_part", False), *_within(model.Scope(wanted.repo))]
    if wanted.agent:
        terms.append(_equal("agent", wanted.agent))
    if wanted.outcome is not None:
        terms.append(_equal("ending", wanted.outcome.value))
    if wanted.contributor is not None:
        terms.append(_equal("contributor", wanted.contributor))
    return [*terms, *_period("seen_at", wanted.since, wanted.until)]


def _period(column: str, since: datetime | None, until: datetime | None) -> Iterator[Term]:
    """Yield the terms of the times from *since* to before *until*."""
    if since is not None:
        yield Term(column, Is.LEAST, since)
    if until is not None:
        # Before the first time that can be written there is none.
        last = until - timedelta(microseconds=1) if until.replace(tzinfo=UTC) > _FIRST else until
        yield Term(column, Is.MOST, last)


def _one(port: Reads, question: Question) -> list[tuple[Any, ...]]:
    return port.find([question])[0]


def _values(
    port: Reads, table: Table, keys: Iterable[str], read: Callable[[str], Kind]
) -> dict[str, Kind]:
    """Return the known rows of *keys*, by key, ascending."""
    named = sorted({*keys})
    if not named:
        return {}
    found = _one(port, Question(table, (Term(KEY, Is.IN, named),), (KEY,), wanted=(KEY, VALUE)))
    return {key: read(text) for key, text in found}


def _groups(port: Reads, table: Table, terms: Sequence[Term], by: str) -> dict[Any, int]:
    return dict(port.count([Count(table, terms, (by,))])[0])


def _total(port: Reads, table: Table, *terms: Term) -> int:
    found = port.count([Count(table, terms)])[0]
    return int(found[0][0]) if found else 0


_verdict = partial(tables.value_of, model.Verdict)


@lru_cache(4_096)
def _run(text: str) -> model.Trajectory:
    return tables.value_of(model.Trajectory, text)


@lru_cache(4_096)
def _course(text: str) -> model.Course:
    return tables.value_of(model.Course, text)


# The starts of a repository read the facts of the same runs, 32 of it and 160 of the agent. Reading
# them again was a tenth of a start, and half of what the collector of garbage went through.
_facts = lru_cache(256)(partial(tables.value_of, model.RunFacts))
_machine = lru_cache(4_096)(partial(tables.value_of, model.RunMachine))


def _fragment(text: str) -> model.Fragment:
    return tables.value_of(model.Fragment, text)


def _error(text: str) -> model.ErrorPattern:
    return tables.value_of(model.ErrorPattern, text)


def _exposure(text: str) -> model.Exposure:
    return tables.value_of(model.Exposure, text)


def _methodology(text: str) -> model.Methodology:
    return tables.value_of(model.Methodology, text)


def _runs(port: Reads, ids: Iterable[str]) -> dict[str, model.Trajectory]:
    return _values(port, tables.RUN, ids, _run)


class _Changes:
    """Adding, judging, replacing and forgetting runs, in one transaction."""

    def __init__(self, port: Transaction) -> None:
        self.port = port

    def add(self, given: Sequence[rules.PackedRun]) -> list[model.LearnStatus]:
        """Write what is new, and outcomes that were unknown; return the status of each."""
        runs = [one.bundle.trajectory for one in given]
        statuses, changed = rules.learning(runs, self._known(run.id for run in runs))
        pairs = zip(given, statuses, strict=True)
        self._insert_all([one for one, status in pairs if status is model.LearnStatus.CREATED])
        if changed:
            self._set_outcomes([changed[run] for run in sorted(changed)])
        return statuses

    def set_outcome(self, ids: Iterable[str], outcome: model.Outcome) -> int:
        """Set the outcome of runs by hand; return how many had another one."""
        changed = [
            replace(run, outcome=outcome, outcome_source=model.OutcomeSource.HAND)
            for run in self._known(ids).values()
            if (run.outcome, run.outcome_source) != (outcome, model.OutcomeSource.HAND)
        ]
        if changed:
            self._set_outcomes(changed)
        return len(changed)

    def replace(self, given: Mapping[str, rules.PackedRun]) -> list[str]:
        """Replace runs by *given*, by their ids; return those that were known.

        A stored run of the new id is replaced, too; what was known of the outcome stays.
        """
        return [former for group in rules.independent(given) for former in self._replace_all(group)]

    def forget(self, ids: Iterable[str]) -> int:
        """Remove these runs and all that only they support; return how many were known."""
        known = sorted(self._known(ids))
        if known:
            self._remove_unused(self._remove(known, forgotten=True))
        return len(known)

    def _insert_all(self, runs: Sequence[rules.PackedRun]) -> None:
        for run in runs:
            rules.check_bundle(run.bundle)
        if runs:
            self._insert(runs)
            self.report_shown([run.bundle for run in runs])

    def report_shown(self, bundles: Sequence[model.Bundle]) -> None:
        """Report the contexts that these runs were shown: whether they cleared their errors."""
        if ids := sorted({seen.context_id for bundle in bundles for seen in bundle.exposures}):
            shown = _values(self.port, tables.CONTEXT, ids, _exposure).values()
            reported = rules.reports_of(bundles, [*shown])
            self.port.put(chain.from_iterable(map(tables.context_rows, reported)))

    def _replace_all(self, given: Mapping[str, rules.PackedRun]) -> list[str]:
        ids = {former: (former, one.bundle.trajectory.id) for former, one in given.items()}
        stored = self._known(chain.from_iterable(ids.values()))
        # The run itself comes first: its outcome counts.
        known = {
            former: [stored[run] for run in dict.fromkeys(both) if run in stored]
            for former, both in ids.items()
            if former in stored
        }
        if not known:
            return []
        runs = [
            replace(given[former], bundle=rules.with_history(given[former].bundle, before))
            for former, before in known.items()
        ]
        for run in runs:
            rules.check_bundle(run.bundle)
        removed = self._remove(
            [run.id for before in known.values() for run in before], forgotten=False
        )
        self._insert_all(runs)
        self._rename({former: ids[former][1] for former in known if ids[former][1] != former})
        self._remove_unused(removed)
        return [*known]

    def _known(self, ids: Iterable[str]) -> Mapping[str, model.Trajectory]:
        return _runs(self.port, ids)

    def _insert(self, runs: Sequence[rules.PackedRun]) -> None:
        revision = self.port.revision()
        added = Counter(filter(None, (run.bundle.trajectory.repo for run in runs)))
        met: dict[str, list[tuple[model.Trajectory, rules.MetError]]] = {}
        for run in runs:
            for one in rules.met_errors(run.bundle):
                met.setdefault(one.error.id, []).append((run.bundle.trajectory, one))
        described = (KEY, VALUE, "runs", "steps", "cleared", "described_by")
        repos, errors, spaces = self.port.find(
            [
                Question(tables.REPO, (_keyed(added),), wanted=(KEY, "runs")),
                Question(tables.ERROR, (_keyed(met),), wanted=described),
                Question(tables.SPACE, wanted=(KEY,)),
            ]
        )
        added.update(dict(repos))
        self.port.put(
            chain(
                (tables.repo_row(repo, count) for repo, count in added.items()),
                _error_rows(met, {row[0]: row for row in errors}, self._met_before(runs)),
                chain.from_iterable(tables.bundle_rows(run, revision) for run in runs),
            )
        )
        for (space,) in spaces:
            embedded = {
                one.bundle.trajectory.id: one.bundle.embedded.vector
                for one in runs
                if one.bundle.embedded and one.bundle.embedded.space == space
            }
            if embedded:
                self.port.put_vectors(tables.RUN, space, embedded)

    def _met_before(self, runs: Sequence[rules.PackedRun]) -> Mapping[tuple[str, str], bool]:
        """Return whether stored runs of the same tasks cleared an error, by error and task."""
        instances = {run.bundle.trajectory.instance_id for run in runs}
        stored = _one(
            self.port, Question(tables.RUN, [_keyed(instances, "instance_id")], wanted=(KEY,))
        )
        wanted = (TARGET, "instance_id", "cleared")
        named = [_keyed((run for (run,) in stored), SOURCE)]
        before: dict[tuple[str, str], bool] = {}
        for error, task, cleared in _one(self.port, Question(tables.MET, named, wanted=wanted)):
            before[error, task] = before.get((error, task), False) or bool(cleared)
        return before

    def _set_outcomes(self, runs: Sequence[model.Trajectory]) -> None:
        known = self._known(run.id for run in runs)
        revision = self.port.revision()
        self.port.put(tables.run_row(rules.as_judged(known[run.id], run), revision) for run in runs)

    def _rename(self, ids: Mapping[str, str]) -> None:
        if ids:
            earlier = _one(
                self.port,
                Question(tables.FORMER, (_keyed(ids, "run"),), wanted=(KEY, "run")),
            )
            now = {former: ids[run] for former, run in earlier} | dict(ids)
            self.port.put(
                Row(tables.FORMER, former, {"run": run}, shown=partial(dict, name=former))
                for former, run in now.items()
            )

    def _remove(self, ids: Sequence[str], *, forgotten: bool) -> Removed:
        """Remove runs with what was derived from them; return their errors and repositories.

        Where they are *forgotten*, their former ids go, and that they or their fragments were
        shown.
        """
        port, named = self.port, [_keyed(ids, "run")]
        fragments, passages, met, repos, recovered = port.find(
            [
                Question(tables.FRAGMENT, named, wanted=(KEY,)),
                Question(tables.PASSAGE, named, wanted=(KEY,)),
                Question(tables.MET, [_keyed(ids, SOURCE)], wanted=(TARGET,)),
                Question(tables.RUN, [_keyed(ids)], wanted=("repo",)),
                Question(tables.FORMER, named, wanted=(KEY,)),
            ]
        )
        errors, places = sorted({error for (error,) in met}), sorted({repo for (repo,) in repos})
        own = [fragment for (fragment,) in fragments]
        port.put(tables.stale_rows("error", errors, port.revision()))
        port.put(tables.stale_rows("repo", places, port.revision()))
        derived = _one(port, Question(tables.DERIVED, [_keyed(own, TARGET)], wanted=(SOURCE,)))
        methodologies = _remove_methodologies(port, {methodology for (methodology,) in derived})
        port.delete(tables.FRAGMENT, own)
        port.delete(tables.PASSAGE, [passage for (passage,) in passages])
        port.delete(tables.RAW, ids)
        port.delete(tables.FACTS, ids)
        port.delete(tables.OPENING, ids)
        port.delete(tables.RUN, ids)
        if forgotten:
            port.delete(tables.FORMER, [former for (former,) in recovered])
            _forget_shown(port, {*ids, *own, *methodologies})
        return errors, places

    def _remove_unused(self, removed: Removed) -> None:
        """Remove errors and repositories that no run has any more."""
        port, (errors, repos) = self.port, removed
        kept = _groups(port, tables.RUN, [_keyed(repos, "repo")], "repo")
        gone = [repo for repo in repos if repo not in kept]
        port.delete(tables.STALE, [f"repo {repo}" for repo in gone])
        port.delete(tables.REPO, gone)
        port.put(tables.repo_row(repo, runs) for repo, runs in kept.items() if repo)
        met = _counts_of_tasks(port, [_keyed(errors, TARGET)])
        port.delete(tables.ERROR, [error for error in errors if error not in met])
        first = port.find(
            [
                Question(tables.MET, [_equal(TARGET, error)], (SOURCE,), 1, (TARGET, SOURCE, VALUE))
                for error in met
            ]
        )
        port.put(tables.error_row(_error(text), by, *met[error]) for ((error, by, text),) in first)


def _counts_of_tasks(port: Reads, where: Sequence[Term]) -> dict[str, tuple[int, int, int]]:
    """Return for each error the tasks that met it, the steps of their runs, and who cleared it."""
    counted: dict[str, tuple[int, int, int]] = {}
    each = Count(tables.MET, where, (TARGET, "instance_id"), ("steps", "cleared"))
    for error, _, _, steps, cleared in port.count([each])[0]:
        tasks, of_all, of_cleared = counted.get(error, (0, 0, 0))
        counted[error] = tasks + 1, of_all + steps, of_cleared + (cleared > 0)
    return counted


def _error_rows(
    met: Mapping[str, Sequence[tuple[model.Trajectory, rules.MetError]]],
    known: Mapping[str, tuple[Any, ...]],
    before: Mapping[tuple[str, str], bool],
) -> Iterator[Row]:
    """Yield the rows of errors as those *known* are once these runs have *met* them.

    *before* says of tasks with stored runs that met an error whether one of these cleared it.
    """
    for error, of_runs in met.items():
        run, first = min(of_runs, key=lambda one: one[0].id)
        by, described, sums = run.id, first.error, (0, 0, 0)
        if stored := known.get(error):
            sums = stored[2:5]
            if stored[5] < by:
                described, by = _error(stored[1]), stored[5]
        tasks = {run.instance_id for run, _ in of_runs}
        cleared = {run.instance_id for run, one in of_runs if one.cleared}
        own = (
            sum((error, task) not in before for task in tasks),
            sum(one.steps for _, one in of_runs),
            sum(not before.get((error, task), False) for task in cleared),
        )
        total = (sums[0] + own[0], sums[1] + own[1], sums[2] + own[2])
        yield tables.error_row(described, by, *total)


def _forget_shown(port: Transaction, ids: set[str]) -> None:
    """Remove what was recorded of items with these *ids*, and the texts that showed them."""
    found = _one(port, Question(tables.SHOWN, [_keyed(ids, "item")], wanted=("context",)))
    contexts = _values(port, tables.CONTEXT, (context for (context,) in found), _exposure)
    for shown in contexts.values():
        items = tuple(item for item in shown.items if item.id not in ids)
        if items != shown.items:
            _put_contexts(port, [replace(shown, items=items, text="", said=())])


def _without_text(shown: model.Exposure) -> model.Exposure:
    """Return *shown* without words of the memory: its items keep their ids and outcomes."""
    items = tuple(replace(item, patterns=(), why="") for item in shown.items)
    return replace(shown, items=items, text="", said=())


def _put_contexts(port: Transaction, contexts: Sequence[model.Exposure]) -> None:
    """Put contexts in place of those of their ids."""
    ids = [shown.context_id for shown in contexts]
    before = _one(port, Question(tables.SHOWN, [_keyed(ids, "context")], wanted=(KEY,)))
    port.delete(tables.SHOWN, [key for (key,) in before])
    port.put(chain.from_iterable(map(tables.context_rows, contexts)))


def _remove_methodologies(port: Transaction, ids: Iterable[str]) -> Collection[str]:
    """Remove methodologies and what they superseded; return their ids.

    The errors of that are stale then.
    """
    wanted = (KEY, "error_id", "superseded_by")
    found = _one(port, Question(tables.METHODOLOGY, [_keyed(ids)], wanted=wanted))
    removed: dict[str, rules.RemovedMethodology] = {}
    while new := [rules.RemovedMethodology(*row) for row in found if row[0] not in removed]:
        removed |= {one.id: one for one in new}
        named = [_keyed((one.id for one in new), "superseded_by")]
        found = _one(port, Question(tables.METHODOLOGY, named, wanted=wanted))
    if removed:
        stale = rules.made_stale(removed.values())
        port.put(tables.stale_rows("error", stale, port.revision()))
        port.delete(tables.METHODOLOGY, removed)
    return removed


def _relevant(
    port: Reads,
    table: Table,
    words: Sequence[str],
    scope: model.Scope,
    limit: int,
    counts: model.WordCounts | None = None,
) -> list[str]:
    """Return the keys of rows in *scope* with any of *words*, the most relevant first."""
    if limit < 1:
        return []
    known = counts or port.word_counts(table, words)
    weights = word_weights(known.total, known.by_word)
    return [key for key, _ in port.search(table, weights, _within(scope), limit)]


P = ParamSpec("P")
Part = TypeVar("Part", bound="_Part")


def _of_one_state(
    method: Callable[Concatenate[Part, P], Kind],
) -> Callable[Concatenate[Part, P], Kind]:
    """Let a method whose answer takes several questions see one state."""

    @wraps(method)
    def call(self: Part, /, *arguments: P.args, **named: P.kwargs) -> Kind:
        return self._port.read(lambda: method(self, *arguments, **named))

    return call


class _Erasing(Protocol):
    """Deletes *some* rows in a transaction; returns how many."""

    def __call__(self, port: Transaction, some: Sequence[str]) -> int: ...


class _Part:
    """A part of the store."""

    def __init__(self, port: Port, whole: "_Whole") -> None:
        self._port, self._whole = port, whole

    def _in_batches(self, work: _Erasing, keys: Iterable[str], size: int) -> int:
        """Return the sum of what *work* returns, in a transaction that erases *size* keys."""
        batches = batched(sorted({*keys}), size)
        return sum(self._port.write(partial(work, some=batch), erasing=True) for batch in batches)

    def _in_order(
        self, table: Table, keys: Sequence[str], read: Callable[[str], Kind]
    ) -> list[Kind]:
        """Return the values of rows in the order of their keys; unknown ones are left out."""
        known = _values(self._port, table, keys, read)
        return [known[key] for key in keys if key in known]


def _recoveries_of(fragment_ids: Iterable[str]) -> Question:
    """Return the question for the recoveries of fragments, by fragment, error and error step."""
    return Question(
        tables.RECOVERED, [_keyed(fragment_ids, SOURCE)], (SOURCE, TARGET, "error_step")
    )


class _Standing(NamedTuple):
    """Facts about the whole memory that most queries need.

    *states* are values by key, *verdicts* all decisions by hand on advice and sources,
    *contributors* the first and the last name.
    """

    states: Mapping[str, str]
    verdicts: Sequence[str]
    contributors: frozenset[str]


class _Snapshots(threading.local):
    """The number of snapshots that a thread is in, and what it has read in them."""

    depth = 0
    standing: _Standing | None = None


class _Whole:
    """Reads what is asked of the memory as a whole in one call, once in a snapshot.

    A query needs it in three places: of its five round trips to a server three were for these.
    """

    def __init__(self, port: Port) -> None:
        self._port = port
        self._snapshots = _Snapshots()

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """In this block the thread reads one state."""
        own = self._snapshots
        with self._port.snapshot():
            own.depth += 1
            try:
                yield
            finally:
                own.depth -= 1
                if not own.depth:
                    own.standing = None

    def standing(self) -> _Standing:
        """Return the state of the snapshot that the thread is in, or that of now."""
        own = self._snapshots
        if own.standing is not None:
            return own.standing
        named, wanted = [Term("contributor", Is.ABOVE, "")], ("contributor",)
        states, verdicts, first, last = self._port.find(
            [
                Question(tables.STATE, (), (KEY,), wanted=(KEY, VALUE)),
                Question(tables.VERDICT, [Term(KEY, Is.MOST, model.FORGOTTEN)], (KEY,)),
                Question(tables.RUN, named, ("contributor",), 1, wanted),
                Question(tables.RUN, named, ("-contributor",), 1, wanted),
            ]
        )
        found = _Standing(
            dict(states),
            [text for (text,) in verdicts],
            frozenset(name for (name,) in (*first, *last)),
        )
        if own.depth:
            own.standing = found
        return found


class RunStore(_Part):
    """Stores runs with their fragments, and proposes past runs.

    Nothing depends on the order of learning: an error that several runs met has the keywords and
    the context of the run with the least id. `text.word_weights` says how relevant words are.
    """

    _courses: tuple[tuple[int, model.Scope, int] | None, Sequence[model.RunCourse]] = (None, ())

    def add(
        self, bundles: Sequence[model.Bundle], unless: Collection[str] = ()
    ) -> Sequence[model.LearnStatus]:
        """Store new runs, and outcomes of known runs that had none; return a status for each.

        Store none and return nothing where one of the names *unless* is that of a session which was
        forgotten.
        """
        packed = rules.pack(bundles)
        return self._port.write(
            lambda port: (
                ()
                if any(
                    one.is_quarantined
                    for one in _values(port, tables.VERDICT, unless, _verdict).values()
                )
                else _Changes(port).add(packed)
            )
        )

    def replace(
        self, bundles: Mapping[str, model.Bundle], added: Sequence[model.Bundle] = ()
    ) -> Sequence[str]:
        """Replace known runs, by id; return their ids.

        A known outcome and the time of learning stay. Runs that are *added* are stored first, in
        the same transaction. `learned` knows the run by its former id; a run with the id of the
        bundle is replaced, too.
        """
        given = dict(zip(bundles, rules.pack(bundles.values()), strict=True))
        new = rules.pack(added)

        def work(port: Transaction) -> Sequence[str]:
            changes = _Changes(port)
            changes.add(new)
            return changes.replace(given)

        return self._port.write(work)

    def set_outcome(self, trajectory_ids: Iterable[str], outcome: model.Outcome) -> int:
        """Set the outcome of these runs by hand; return how many had another one."""
        ids = [*trajectory_ids]
        return self._port.write(lambda port: _Changes(port).set_outcome(ids, outcome))

    @_of_one_state
    def learned(self, trajectory_ids: Sequence[str]) -> Mapping[str, model.Learned]:
        """Return what is stored of known runs, by the requested id, which may be a former one."""
        asked = sorted({*trajectory_ids})
        former = dict(
            _one(self._port, Question(tables.FORMER, [_keyed(asked)], wanted=(KEY, "run")))
        )
        runs = _runs(self._port, {*asked, *former.values()})
        if not runs:  # as for nearly all that is learned
            return {}
        named = {one: one if one in runs else former.get(one, one) for one in asked}
        counts = self._port.count(
            [
                Count(tables.FRAGMENT, [_keyed(runs, "run")], ("run",)),
                Count(tables.MET, [_keyed(runs, SOURCE)], (SOURCE,)),
            ]
        )
        fragments: dict[str, int] = dict(counts[0])
        errors: dict[str, int] = dict(counts[1])
        active = _space(_one(self._port, _ACTIVE))
        embedded: set[str] = set()
        if active is not None:
            terms = [_keyed(runs), Term(KEY, Is.EMBEDDED, active.name)]
            embedded = {
                key for (key,) in _one(self._port, Question(tables.RUN, terms, wanted=(KEY,)))
            }
        return {
            name: model.Learned(
                trajectory_id=run.id,
                outcome=run.outcome,
                is_open=run.outcome is model.Outcome.UNKNOWN and run.exit_status is None,
                fragments=fragments.get(run.id, 0),
                error_patterns=errors.get(run.id, 0),
                to_embed=0 if run.id in embedded else 1,
                outcome_source=run.outcome_source,
                change=run.change,
            )
            for name, run in ((name, runs[own]) for name, own in named.items() if own in runs)
        }

    def trajectories(self, trajectory_ids: Iterable[str]) -> Mapping[str, model.Trajectory]:
        """Return runs by id, without unknown ones."""
        return _runs(self._port, trajectory_ids)

    def ids(
        self,
        repo: str | None = None,
        instance: str | None = None,
        after: str = "",
        limit: int = ALL,
    ) -> Sequence[str]:
        """Return ids of runs greater than *after*, ascending.

        Only runs of *repo*, in upper or lower case, and of *instance*, where these are given.
        """
        terms = [*_within(model.Scope(repo)), Term(KEY, Is.ABOVE, after)]
        if instance is not None:
            terms.append(_equal("instance_id", instance))
        found = _one(self._port, Question(tables.RUN, terms, (KEY,), _most(limit), (KEY,)))
        return [key for (key,) in found]

    @_of_one_state
    def courses(self, scope: model.Scope, limit: int) -> Sequence[model.RunCourse]:
        """Return how runs with steps went whose outcome is known, by id."""
        # Most queries for a task ask for the same 400: `benchmarks.query` measures them read again.
        asked = (self._port.revision(), scope, limit)
        known, courses = self._courses
        if known == asked:
            return courses
        terms = [
            *_within(scope),
            Term("outcome", Is.NOT_IN, [model.Outcome.UNKNOWN.value]),
            Term("course", Is.NOT_IN, [""]),
        ]
        wanted = (KEY, "outcome", "course")
        found = _one(self._port, Question(tables.RUN, terms, (KEY,), _most(limit), wanted))
        solved = model.Outcome.SOLVED.value
        courses = [
            model.RunCourse(run, outcome == solved, _course(text)) for run, outcome, text in found
        ]
        self._courses = (asked, courses)
        return courses

    def names(self) -> Mapping[str, model.JoinedName]:
        """Return the names of repositories that were joined with another, in lower case."""
        text = self._whole.standing().states.get(_NAMES)
        return tables.names_of(text) if text else {}

    def set_names(self, names: Mapping[str, model.JoinedName]) -> None:
        """Put *names* in the place of those there are; runs keep theirs until they are replaced."""
        row = Row(tables.STATE, _NAMES, {}, tables.text_of(names, "names of repositories"))
        self._port.write(lambda port: port.put([row]))

    def opened(self, digests: Sequence[str], limit: int) -> Sequence[str]:
        """Return ids of runs that are found by one of *digests*: see `trace.owners`."""
        terms = [Term("digests", Is.HAS_ANY, sorted({*digests}))]
        found = _one(self._port, Question(tables.OPENING, terms, (KEY,), _most(limit), (KEY,)))
        return [key for (key,) in found]

    def raw(self, trajectory_id: str) -> model.RawTrajectory | None:
        """Return the masked run as it was learned, with its present outcome; None if unknown."""
        runs, raws = self._port.find(
            [
                Question(tables.RUN, [_equal(KEY, trajectory_id)]),
                Question(tables.RAW, [_equal(KEY, trajectory_id)]),
            ]
        )
        if not runs or not raws:
            return None
        return rules.as_judged(rules.unpacked(raws[0][0], trajectory_id), _run(runs[0][0]))

    @_of_one_state
    def facts(self, trajectory_ids: Iterable[str]) -> Mapping[str, model.RunFacts]:
        """Return by run id the facts about project and machine; they are stored with the run."""
        named = [*trajectory_ids]
        known = _values(self._port, tables.FACTS, named, _facts)
        others = [_keyed(run for run in named if run not in known)]
        for (run,) in _one(self._port, Question(tables.RUN, others, limit=1, wanted=(KEY,))):
            raise _without_facts(run)
        return known

    @_of_one_state
    def facts_and_fragments(
        self, facts_of: Collection[str], fragments_of: Sequence[str], most: int | None = None
    ) -> tuple[Mapping[str, model.RunFacts], Mapping[str, Sequence[model.Fragment]]]:
        """Return `facts` of some runs and `fragments` of others, in one call."""
        of_runs, wanted = [_keyed(fragments_of, "run")], ("run", "kind", VALUE)
        facts, fragments = self._port.find(
            [
                Question(tables.FACTS, [_keyed(facts_of)], (KEY,), wanted=(KEY, VALUE)),
                Question(tables.FRAGMENT, of_runs, ("run", "place"), wanted=wanted),
            ]
        )
        known: Mapping[str, model.RunFacts] = {key: _facts(text) for key, text in facts}
        if len(known) < len({*facts_of}):
            known = self.facts(facts_of)
        by_run: dict[str, list[tuple[str, str]]] = {one: [] for one in fragments_of}
        for run, kind, text in fragments:
            by_run[run].append((kind, text))
        if most is not None:
            for of_run in by_run.values():
                of_run.sort(key=lambda one: _INFORMATIVE[one[0]])
                del of_run[max(0, most) :]
        return known, {run: [_fragment(text) for _, text in own] for run, own in by_run.items()}

    @_of_one_state
    def losses(
        self, scope: model.Scope, limit: int, agent: str | None = None
    ) -> Sequence[model.RunLosses]:
        """Return what runs of *agent* lost by their machine: the runs of `for_task`, as ordered."""
        wanted = (KEY, "instance_id", "repo", "contributor")
        runs = _one(
            self._port,
            Question(tables.RUN, _within(scope, agent), _SOLVED_FIRST, _most(limit), wanted),
        )
        if not runs:
            return []
        named = _keyed(run for run, *_ in runs)
        known = dict(_one(self._port, Question(tables.FACTS, [named], wanted=(KEY, "machine"))))
        for run, *_ in runs:
            if run not in known:
                raise _without_facts(run)
        machines = [_machine(known[run]) for run, *_ in runs]
        return [
            model.RunLosses(instance, of, machine.losses, machine.environment, contributor)
            for (_, instance, of, contributor), machine in zip(runs, machines, strict=True)
        ]

    @_of_one_state
    def with_turns(self, repo: str) -> Sequence[str]:
        """Return the ids of sessions of *repo* in which a person wrote more than the task.

        With their sub-agents.
        """
        terms = [*_within(model.Scope(repo)), _equal("has_turns", True)]
        wanted = (KEY, "instance_id")
        found = dict(_one(self._port, Question(tables.RUN, terms, (KEY,), wanted=wanted)))
        instances = {instance for instance in found.values() if instance}
        if not instances:
            return [*found]
        parts = [_keyed(instances, "instance_id"), _equal("is_part", True)]
        of_agents = _one(self._port, Question(tables.RUN, parts, wanted=(KEY,)))
        return sorted({*found, *(run for (run,) in of_agents)})

    def fragments(
        self,
        trajectory_ids: Iterable[str],
        most: int | None = None,
    ) -> Mapping[str, Sequence[model.Fragment]]:
        """Return the fragments of runs in their order, by run id, without unknown runs.

        With *most* only so many of each run: the most informative ones first.
        """
        return self.facts_and_fragments((), [*trajectory_ids], most)[1]

    def moments(
        self, trajectory_ids: Iterable[str], fragment_ids: Collection[str]
    ) -> tuple[
        Mapping[str, model.Trajectory],
        Mapping[str, model.Fragment],
        Sequence[model.RecoveryCandidate],
    ]:
        """Return runs and fragments by id, and the recoveries as `of_fragments`, in one call."""
        wanted = (KEY, VALUE)
        runs, fragments, recoveries = self._port.find(
            [
                Question(tables.RUN, [_keyed(trajectory_ids)], wanted=wanted),
                Question(tables.FRAGMENT, [_keyed(fragment_ids)], wanted=wanted),
                _recoveries_of(fragment_ids),
            ]
        )
        return (
            {key: _run(text) for key, text in runs},
            {key: _fragment(text) for key, text in fragments},
            [tables.candidate_of(text) for (text,) in recoveries],
        )

    @_of_one_state
    def find_fragments(
        self,
        scope: model.Scope,
        limit: int,
        *,
        phase: model.Phase | None = None,
        file_name: str | None = None,
        loop_command: str | None = None,
    ) -> Sequence[model.FragmentCandidate]:
        """Return fragments that meet all conditions, newest run first.

        *file_name* is without folders.
        """
        terms = _within(scope)
        if phase is not None:
            terms.append(_equal("phase", phase.value))
        if file_name is not None:
            terms.append(Term("file_names", Is.HAS, (file_name,)))
        if loop_command is not None:
            if not loop_command:
                return []
            terms.append(_equal("loop_command", loop_command))
        found = _one(
            self._port,
            Question(tables.FRAGMENT, terms, ("-seen_at",), _most(limit), ("run", VALUE)),
        )
        runs = _runs(self._port, {run for run, _ in found})
        return [model.FragmentCandidate(_fragment(text), runs[run]) for run, text in found]

    def for_task(
        self,
        task_type: model.TaskType | None,
        scope: model.Scope,
        limit: int,
        agent: str | None = None,
    ) -> Sequence[model.Trajectory]:
        """Return runs by type of task and *agent*, solved ones first, then the newest."""
        terms = _within(scope, agent)
        if task_type is not None:
            terms.append(_equal("task_type", task_type.value))
        found = _one(self._port, Question(tables.RUN, terms, _SOLVED_FIRST, _most(limit)))
        return [_run(text) for (text,) in found]

    def listed(self, wanted: model.RunFilter, limit: int) -> Sequence[model.Trajectory]:
        """Return the runs that *wanted* admits, in its order."""
        terms = _within(model.Scope(wanted.repo))
        if wanted.agent:
            terms.append(_equal("agent", wanted.agent))
        if wanted.outcome is not None:
            terms.append(_equal("outcome", wanted.outcome.value))
        if wanted.since is not None:
            terms.append(Term("seen_at", Is.LEAST, wanted.since))
        question = Question(tables.RUN, terms, (_ORDERS[wanted.order],), _most(limit))
        return [_run(text) for (text,) in _one(self._port, question)]

    @_of_one_state
    def sessions(
        self, wanted: model.SessionFilter, limit: int, skip: int = 0
    ) -> Sequence[model.Session]:
        """Return the sessions that *wanted* admits, in its order, from the one after *skip* others.

        Sub-agents are in the session that has the same instance, and the same id at the client.
        """
        most = _most(min(ALL, skip + max(0, limit)))
        order = {**_ORDERS, model.RunOrder.OUTCOME: "ending"}[wanted.order]
        # Reads no values of skipped rows.
        found = _one(self._port, Question(tables.RUN, _admitted(wanted), (order,), most, (KEY,)))
        return self._with_parts(self._in_order(tables.RUN, [key for (key,) in found[skip:]], _run))

    @_of_one_state
    def session(self, name: str) -> model.Session | None:
        """Return the session whose run, or that of a sub-agent, is *name*, or its id at the client.

        The newest of several; None where there is none.
        """
        runs = [
            _run(text) for (text,) in _one(self._port, Question(tables.RUN, [_equal(KEY, name)]))
        ]
        if not runs or model.is_subagent(runs[0].agent):
            named = [_equal("session", runs[0].session if runs else name), _equal("is_part", False)]
            named += [_equal("instance_id", run.instance_id) for run in runs]
            newest = _one(self._port, Question(tables.RUN, named, ("-seen_at",), 1)) if name else ()
            runs = [_run(text) for (text,) in newest]
        return next(iter(self._with_parts(runs)), None)

    def _with_parts(self, runs: Sequence[model.Trajectory]) -> Sequence[model.Session]:
        """Return the sessions of *runs*, with their sub-agents."""
        names = sorted({run.session for run in runs if run.session})
        terms = [Term("session", Is.IN, names), _equal("is_part", True)]
        parts = defaultdict[tuple[str, str], list[model.Trajectory]](list)
        for (text,) in _one(self._port, Question(tables.RUN, terms, (KEY,))) if names else ():
            part = _run(text)
            parts[part.session, part.instance_id].append(part)
        return [
            model.Session.of(run, tuple(parts.get((run.session, run.instance_id), ())))
            for run in runs
        ]

    @_of_one_state
    def facets(self, wanted: model.SessionFilter, limit: int = 20) -> model.Facets:
        """Count the sessions that *wanted* admits, by each value that at least one has.

        At most *limit* values, most first.
        """
        # One reading of the rows counts them by each column.
        columns, most = ("repo", "agent", "ending") if limit > 0 else (), _most(max(0, limit))
        (groups,) = self._port.count([Count(tables.RUN, _admitted(wanted), columns)])
        counts = [Counter[str](), Counter[str](), Counter[str]()]
        for *values, number in groups:
            for counted, value in zip(counts, values, strict=False):
                counted[value] += number
        ordered = (sorted(one.items(), key=lambda item: (-item[1], item[0])) for one in counts)
        total = sum(number for *_, number in groups)
        return model.Facets(total, *(dict(one[:most]) for one in ordered))

    def repositories(
        self, limit: int, skip: int = 0, containing: str = ""
    ) -> Sequence[tuple[str, int]]:
        """Return names and numbers of runs of repositories, most runs first.

        Only names with *containing* in them, after *skip* others.
        """
        most = _most(min(ALL, skip + max(0, limit))) if not containing else None
        question = Question(tables.REPO, (), ("-runs",), most, (KEY, "runs"))
        named = [row for row in _one(self._port, question) if containing.casefold() in row[0]]
        return [(repo, runs) for repo, runs in named[skip : skip + max(0, limit)]]

    @_of_one_state
    def for_text(
        self,
        words: Sequence[str],
        scope: model.Scope,
        limit: int,
        counts: model.WordCounts | None = None,
    ) -> Sequence[model.Trajectory]:
        """Return runs whose task or summary has any of *words*, most relevant first.

        *counts* are those of *words* where they are known; they are asked for otherwise.
        """
        keys = _relevant(self._port, tables.RUN, words, scope, limit, counts)
        return self._in_order(tables.RUN, keys, _run)

    @_of_one_state
    def word_counts(self, words: Sequence[str]) -> model.WordCounts:
        """Return the number of runs, and of runs with each of *words* in task or summary."""
        return self._port.word_counts(tables.RUN, words)

    @_of_one_state
    def archived(self, trajectory_id: str) -> model.Bundle | None:
        """Return all that is stored of a run, for `add`; None if it is unknown.

        Errors are in the order of their ids, recoveries in that of steps and ids.
        """
        raw = self.raw(trajectory_id)
        if raw is None:
            return None
        of_run, named = [_equal("run", trajectory_id)], [_equal(SOURCE, trajectory_id)]
        runs, fragments, met = self._port.find(
            [
                Question(tables.RUN, [_equal(KEY, trajectory_id)]),
                Question(tables.FRAGMENT, of_run, ("place",)),
                Question(tables.MET, named, (TARGET,), wanted=(TARGET, VALUE, "steps")),
            ]
        )
        parts = tuple(_fragment(text) for (text,) in fragments)
        of_parts = [_keyed((part.id for part in parts), SOURCE)]
        caused, recovered = self._port.find(
            [
                Question(tables.CAUSED, of_parts),
                Question(tables.RECOVERED, of_parts, ("error_step", SOURCE, TARGET)),
            ]
        )
        order = {fragment.id: place for place, fragment in enumerate(parts)}
        edges = [tables.value_of(model.CausedError, text) for (text,) in caused]
        active = _space(_one(self._port, _ACTIVE))
        vectors = self._port.vectors(tables.RUN, active.name, [trajectory_id]) if active else {}
        return model.Bundle(
            trajectory=_run(runs[0][0]),
            fragments=parts,
            errors=tuple(_error(text) for _, text, _ in met),
            caused=tuple(sorted(edges, key=lambda one: (order[one.fragment_id], one.error_id))),
            recovered=tuple(
                tables.recovered_of(tables.candidate_of(text)) for (text,) in recovered
            ),
            raw=raw,
            facts=self.facts([trajectory_id])[trajectory_id],
            embedded=(
                model.EmbeddedRun(active.name, vectors[trajectory_id])
                if active and trajectory_id in vectors
                else None
            ),
            met={error: steps for error, _, steps in met},
        )

    def forget(self, trajectory_ids: Iterable[str]) -> int:
        """Remove runs and all that only they support; return how many were known.

        A server does so in several transactions, each of whole runs: after an error, call again.
        """

        def work(port: Transaction, some: Sequence[str]) -> int:
            return _Changes(port).forget(some)

        return self._in_batches(work, trajectory_ids, RUNS_AT_ONCE)


class RecoveryStore(_Part):
    """Proposes recoveries, and counts errors and what cleared them."""

    def for_error(
        self, questions: Sequence[model.ErrorQuestion], limit: int
    ) -> Sequence[model.RecoveryCandidate]:
        """Return recoveries from the errors of *questions* at `RECOVERY_LEVELS`, *limit* for each.

        Each recovery comes once, at its first question: verified ones first, then the newest run,
        then in the order of `of_fragments`.
        """
        return _candidates(self._port.find(_recovered(questions, limit)))

    @_of_one_state
    def for_text(
        self, words: Sequence[str], scope: model.Scope, limit: int
    ) -> Sequence[model.RecoveryCandidate]:
        """Return recoveries with any of *words* in error or description, most relevant first."""
        keys = _relevant(self._port, tables.RECOVERED, words, scope, limit)
        return self._in_order(tables.RECOVERED, keys, tables.candidate_of)

    def of_fragments(self, fragment_ids: Iterable[str]) -> Sequence[model.RecoveryCandidate]:
        """Return recoveries of fragments, ordered by fragment id, error id and error step."""
        found = _one(self._port, _recoveries_of(fragment_ids))
        return [tables.candidate_of(text) for (text,) in found]

    @_of_one_state
    def histories(
        self, error_ids: Sequence[str], limit: int, repo: str | None = None
    ) -> Sequence[model.ErrorHistory]:
        """Return for each known error, by id, outcomes of the newest *limit* runs that met it."""
        errors = _values(self._port, tables.ERROR, error_ids, _error)
        scope = _within(model.Scope(repo))
        newest = self._port.find(
            [
                Question(
                    tables.MET,
                    [_equal(TARGET, error), *scope],
                    ("-seen_at", SOURCE),
                    _most(limit),
                    (SOURCE, VALUE, "steps"),
                )
                for error in errors
            ]
        )
        runs = _runs(self._port, (run for met in newest for run, *_ in met))
        cleared = self._port.find(
            [
                Question(
                    tables.RECOVERED,
                    [_equal(TARGET, error), _keyed((run for run, *_ in met), "run")],
                    ("error_step", SOURCE),
                    wanted=("run", VALUE),
                )
                for error, met in zip(errors, newest, strict=True)
            ]
        )
        fragments = {
            tables.candidate_of(text).fragment_id for found in cleared for _, text in found
        }
        phases = dict(
            _one(self._port, Question(tables.FRAGMENT, [_keyed(fragments)], wanted=(KEY, "phase")))
        )
        return [
            _history(
                error, [(runs[run], _error(text), steps) for run, text, steps in met], found, phases
            )
            for error, met, found in zip(errors.values(), newest, cleared, strict=True)
        ]

    @_of_one_state
    def errors(
        self,
        scope: model.Scope,
        limit: int,
        phase: model.Phase | None = None,
        runs: Iterable[str] | None = None,
        only: Sequence[str] = (),
    ) -> Sequence[model.ErrorTally]:
        """Return errors in *scope* with the number of tasks that met them, most tasks first.

        Only those in fragments of *phase*, of *runs* and with the ids *only*, where given.
        """
        terms, most = _within(scope), _most(limit)
        named = [_keyed(only, TARGET)] if only else []
        if phase is not None:
            terms += named
            rows, newest = self._errors_in_phase(terms, limit, phase, runs)
        else:
            if runs is not None:
                terms.append(_keyed(runs, SOURCE))
            if terms:
                terms += named
                counts = _counts_of_tasks(self._port, terms).items()
                ordered = sorted(counts, key=lambda one: (-one[1][0], one[0]))[: max(0, limit)]
                rows = [(error, *of_error) for error, of_error in ordered]
            else:
                wanted = (KEY, "runs", "steps", "cleared")
                known = [_keyed(only)] if only else ()
                rows = _one(self._port, Question(tables.ERROR, known, ("-runs",), most, wanted))
            newest = self._port.find(
                [
                    Question(
                        tables.MET,
                        [_equal(TARGET, error), *terms],
                        ("-seen_at", SOURCE),
                        rules.TALLY_RUNS,
                        (SOURCE,),
                    )
                    for error, *_ in rows
                ]
            )
        errors = _values(self._port, tables.ERROR, (row[0] for row in rows), _error)
        return [
            model.ErrorTally(errors[error], count, steps, cleared, tuple(run for (run,) in met))
            for (error, count, steps, cleared), met in zip(rows, newest, strict=True)
        ]

    def tasks(
        self, scopes: Sequence[model.Scope], error_ids: Sequence[str]
    ) -> Sequence[tuple[int, int]]:
        """Return for each scope how many tasks in it met these errors, and how many cleared them.

        A task counts once for each error.
        """
        return [*map(_tasks_of, scopes, self._port.find(_of_tasks(scopes, error_ids)))]

    def _errors_in_phase(
        self, terms: list[Term], limit: int, phase: model.Phase, runs: Iterable[str] | None
    ) -> tuple[list[tuple[Any, ...]], list[list[tuple[Any, ...]]]]:
        """Return errors with their counts, and for each its newest runs."""
        terms = [*terms, _equal("phase", phase.value)]
        if runs is not None:
            terms.append(_keyed(runs, "run"))
        wanted = (TARGET, "run", "instance_id", "count")
        caused = _one(
            self._port, Question(tables.CAUSED, terms, ("-seen_at", "run"), wanted=wanted)
        )
        met: dict[str, Counter[str]] = {}
        tasks: dict[str, set[str]] = {}
        for error, run, task, steps in caused:
            met.setdefault(error, Counter())[run] += steps
            tasks.setdefault(error, set()).add(task)
        chosen = sorted(met.items(), key=lambda one: (-len(tasks[one[0]]), one[0]))[: max(0, limit)]
        cleared = self._port.find(
            [
                Question(
                    tables.MET,
                    [_equal(TARGET, error), _keyed(of_error, SOURCE), _equal("cleared", 1)],
                    wanted=("instance_id",),
                )
                for error, of_error in chosen
            ]
        )
        rows = [
            (error, len(tasks[error]), of_error.total(), len({*clear}))
            for (error, of_error), clear in zip(chosen, cleared, strict=True)
        ]
        return rows, [[(run,) for run in of_error][: rules.TALLY_RUNS] for _, of_error in chosen]

    @_of_one_state
    def error_steps(self) -> Mapping[str, Sequence[model.ErrorSteps]]:
        """Return errors that fragments met, by run id, ordered by fragment id and error id."""
        types = dict(_one(self._port, Question(tables.ERROR, wanted=(KEY, "error_type"))))
        found = _one(
            self._port, Question(tables.CAUSED, (), ("run", SOURCE, TARGET), wanted=("run", VALUE))
        )
        by_run: dict[str, list[model.ErrorSteps]] = {}
        for run, text in found:
            edge = tables.value_of(model.CausedError, text)
            met = model.ErrorSteps(
                edge.fragment_id, edge.error_id, types[edge.error_id], edge.steps
            )
            by_run.setdefault(run, []).append(met)
        return by_run

    def similar_to(self, trajectory_id: str) -> Sequence[model.SimilarTo]:
        """Return the `SIMILAR_TO` edges of the fragments of a run, by fragment and error."""
        terms = [_equal("run", trajectory_id)]
        found = _one(self._port, Question(tables.SIMILAR, terms, (SOURCE, "error_id")))
        return [tables.value_of(model.SimilarTo, text) for (text,) in found]

    def clean_up(self, error_ids: Sequence[str], keep: int) -> int:
        """Delete failed attempts at each error beyond the newest *keep*; return how many nodes.

        Active methodologies that no fragment supports go as well; fragments with a recovery stay.
        """

        def work(port: Transaction) -> int:
            pruned = sum(_prune(port, error, keep) for error in error_ids)
            wanted = (KEY,)
            active = Term("status", Is.NOT_IN, [model.MethodologyStatus.RETIRED.value])
            known = _one(port, Question(tables.METHODOLOGY, [active], wanted=wanted))
            supported = {key for (key,) in _one(port, Question(tables.DERIVED, wanted=(SOURCE,)))}
            orphans = [key for (key,) in known if key not in supported]
            _remove_methodologies(port, orphans)
            return pruned + len(orphans)

        return self._port.write(work)


def _recovered(questions: Sequence[model.ErrorQuestion], limit: int) -> list[Question]:
    """Return what is asked for recoveries, *limit* for each of *questions*."""
    if unknown := [
        question.level for question in questions if question.level not in RECOVERY_LEVELS
    ]:
        raise ValueError(f"recoveries cannot be found by {unknown[0]}")
    # Ties go by the key, which is made of the fragment, the error and the step.
    order = ("-verified", "-seen_at")
    asked = dict.fromkeys((*_agreeing(one), *_within(one.scope)) for one in questions)
    return [Question(tables.RECOVERED, where, order, _most(limit)) for where in asked]


def _candidates(found: Iterable[list[tuple[Any, ...]]]) -> Sequence[model.RecoveryCandidate]:
    """Return each recovery once, at its first question."""
    texts = dict.fromkeys(text for (text,) in chain.from_iterable(found))
    return [*map(tables.candidate_of, texts)]


def _resolved(signatures: Sequence[model.ErrorSignature]) -> list[Question]:
    """Return what is asked for the methodologies of each of *signatures*."""
    return [
        Question(
            tables.RESOLVED,
            [_equal("fingerprint", tables.fingerprint(signature))],
            wanted=(TARGET,),
        )
        for signature in signatures
    ]


def _of_tasks(scopes: Sequence[model.Scope], error_ids: Sequence[str]) -> list[Question]:
    """Return what is asked for the tasks in each scope that met these errors."""
    wanted = (TARGET, "instance_id", "cleared")
    return [
        Question(tables.MET, [*terms, _keyed(error_ids, TARGET)], wanted=wanted)
        if (terms := _within(scope))
        else Question(tables.ERROR, [_keyed(error_ids)], wanted=("runs", "cleared"))
        for scope in scopes
    ]


def _tasks_of(scope: model.Scope, met: Sequence[tuple[Any, ...]]) -> tuple[int, int]:
    """Return how many tasks *met* errors, each counted once for each, and how many cleared them.

    They are what `_of_tasks` found in *scope*.
    """
    if not _within(scope):
        return sum(tasks for tasks, _ in met), sum(cleared for _, cleared in met)
    tasks = {(error, task) for error, task, _ in met}
    return len(tasks), len({(error, task) for error, task, cleared in met if cleared})


def _agreeing(question: model.ErrorQuestion) -> list[Term]:
    signature = question.signature
    if question.level is model.SignatureLevel.TEMPLATE:
        return [_equal("fingerprint", tables.fingerprint(signature))]
    of_family = [_equal("family", model.recorded_family(signature).value)]
    if question.level is model.SignatureLevel.FAMILY:
        return of_family
    return [*of_family, _equal("error_type", signature.error_type)]


def _history(
    error: model.ErrorPattern,
    met: Sequence[tuple[model.Trajectory, model.ErrorPattern, int]],
    cleared: Sequence[tuple[str, str]],
    phases: Mapping[str, str],
) -> model.ErrorHistory:
    by_run: dict[str, list[model.Recovered]] = {}
    for run, text in cleared:
        by_run.setdefault(run, []).append(tables.recovered_of(tables.candidate_of(text)))
    return model.ErrorHistory(
        error=error,
        occurrences=tuple(
            model.ErrorOccurrence(
                run.id, run.instance_id, run.repo, run.task_type, own.context, steps
            )
            for run, own, steps in met
        ),
        clearances=tuple(
            model.Clearance(
                recovered,
                run.id,
                run.repo,
                run.task_type,
                run.outcome,
                run.seen_at,
                run.instance_id,
                run.contributor,
                model.Phase(phases[recovered.fragment_id]),
            )
            for run, *_ in met
            for recovered in by_run.get(run.id, ())
        ),
    )


def _prune(port: Transaction, error: str, keep: int) -> int:
    """Delete failed attempts at an error beyond the newest *keep*; return how many."""
    failed = model.FragmentType.FAILED_ATTEMPT.value
    terms = [_equal(TARGET, error), _equal("kind", failed)]
    found = _one(port, Question(tables.CAUSED, terms, ("-seen_at", SOURCE), wanted=(SOURCE,)))
    fragments = [fragment for (fragment,) in found]
    if len(fragments) <= keep:
        return 0
    named = [_keyed(fragments, SOURCE)]
    cleared = {key for (key,) in _one(port, Question(tables.RECOVERED, named, wanted=(SOURCE,)))}
    return port.delete(tables.FRAGMENT, [one for one in fragments if one not in cleared][keep:])


_ACTIVE = Question(tables.SPACE, [_equal("active", True)])


def _space(found: Sequence[tuple[Any, ...]]) -> model.Space | None:
    """Return the active space from what `_ACTIVE` found."""
    return tables.value_of(model.Space, found[0][0]) if found else None


def _space_row(space: model.Space, is_active: bool) -> Row:
    text = tables.text_of(space, f"space {space.name}")
    return Row(
        tables.SPACE, space.name, {"active": is_active}, text, shown=partial(dict, name=space.name)
    )


def _check_prepared(port: Reads, space: str) -> str:
    """Return what is stored of *space*; raises `StoreError` where it was not prepared."""
    found = _one(port, Question(tables.SPACE, [_equal(KEY, space)]))
    if not found:
        raise StoreError(f"space {space} was not prepared, or another one has replaced it since")
    text: str = found[0][0]
    return text


class VectorStore(_Part):
    """Stores vectors by space; queries use one space while another is prepared."""

    def active_space(self) -> model.Space | None:
        """Return the space in which queries are answered; None while there is none."""
        return _space(_one(self._port, _ACTIVE))

    def space_model(self, space: str) -> bytes | None:
        """Return the model that was stored with a space, by its name; None without one."""
        found = _one(self._port, Question(tables.SPACE_MODEL, [_equal(KEY, space)]))
        return bytes(found[0][0]) if found else None

    def prepare(self, space: model.Space, model: bytes | None) -> None:
        """Allow vectors of *space* to be stored, and store its *model*.

        A known space gets the new fields; it keeps its model where none is given.
        """
        dimensions_of(space.name)  # raises where the name has none

        def work(port: Transaction) -> None:
            known = _one(
                port, Question(tables.SPACE, [_equal(KEY, space.name)], wanted=("active",))
            )
            port.put([_space_row(space, bool(known and known[0][0]))])
            if model is not None:
                port.put([Row(tables.SPACE_MODEL, space.name, {}, model)])

        self._port.write(work)

    def switch(self, space: str) -> None:
        """Make *space* the active one and drop all others; raises `StoreError` as `add` does."""

        def work(port: Transaction) -> None:
            stored = tables.value_of(model.Space, _check_prepared(port, space))
            others = Term(KEY, Is.NOT_IN, [space])
            for table in (tables.SPACE, tables.SPACE_MODEL):
                gone = _one(port, Question(table, [others], wanted=(KEY,)))
                port.delete(table, [key for (key,) in gone])
            port.put([_space_row(stored, True)])
            port.drop_vectors(tables.RUN, None, keep=space)

        self._port.write(work)

    def texts_to_embed(
        self, limit: int, space: str | None = None, after: str = ""
    ) -> Mapping[str, str]:
        terms = [Term(KEY, Is.ABOVE, after)]
        if space is not None:
            terms.append(Term(KEY, Is.NOT_EMBEDDED, space))
        found = _one(self._port, Question(tables.RUN, terms, (KEY,), _most(limit)))
        return {run.id: run_text(run) for run in (_run(text) for (text,) in found)}

    def add(self, space: str, vectors: Mapping[str, model.Vector | None]) -> None:
        def work(port: Transaction) -> None:
            _check_prepared(port, space)
            terms = [_keyed(vectors), Term(KEY, Is.NOT_EMBEDDED, space)]
            new = _one(port, Question(tables.RUN, terms, wanted=(KEY,)))
            port.put_vectors(tables.RUN, space, {key: vectors[key] for (key,) in new})

        self._port.write(work)

    @_of_one_state
    def nearest(self, vector: model.Vector, scope: model.Scope, limit: int) -> Sequence[model.Near]:
        """Return runs with their cosines, of four decimals, highest first.

        Raises `SpaceMismatchError` if the space of *vector* is not active.
        """
        (near,) = self._port.nearest(tables.RUN, [vector], _within(scope), max(0, limit))
        spaces, found = self._port.find(
            [_ACTIVE, Question(tables.RUN, [_keyed(near)], wanted=(KEY, VALUE))]
        )
        rules.check_space(_space(spaces), vector)
        runs = {key: _run(text) for key, text in found}
        return [model.Near(runs[key], cosine) for key, cosine in near.items() if key in runs]

    def nodes_to_embed(self, limit: int, space: str) -> Mapping[str, str]:
        """Return texts of fragments and methodologies without a vector of *space*, by id."""
        terms, most = [Term(KEY, Is.NOT_EMBEDDED, space)], _most(limit)
        fragments, methodologies = self._port.find(
            [
                Question(table, terms, (KEY,), most)
                for table in (tables.FRAGMENT, tables.METHODOLOGY)
            ]
        )
        nodes: list[model.Fragment | model.Methodology] = [
            *(_fragment(text) for (text,) in fragments),
            *(_methodology(text) for (text,) in methodologies),
        ]
        nodes.sort(key=lambda node: node.id)
        return {node.id: node_text(node) for node in nodes[: max(0, limit)]}

    def add_nodes(self, space: str, vectors: Mapping[str, model.Vector | None]) -> None:
        """Store vectors of fragments and methodologies; each has one, the last, until it is put."""

        def work(port: Transaction) -> None:
            for table in (tables.FRAGMENT, tables.METHODOLOGY):
                known = _one(port, Question(table, [_keyed(vectors)], wanted=(KEY,)))
                port.drop_vectors(table, [key for (key,) in known])
                port.put_vectors(table, space, {key: vectors[key] for (key,) in known})

        self._port.write(work)

    @_of_one_state
    def nearest_nodes(
        self, vector: model.Vector, node_type: NodeType, limit: int
    ) -> Mapping[tuple[str, str], model.Vector]:
        """Return vectors by (run, id), highest cosine, of four decimals, first.

        The run is that of a fragment; for a methodology it is empty.
        """
        table = tables.FRAGMENT if node_type == "Fragment" else tables.METHODOLOGY
        if limit < 1:
            return {}
        (near,) = self._port.nearest(table, [vector], (), limit)
        stored = self._port.vectors(table, vector.space, near)
        runs: dict[str, str] = {}
        if table is tables.FRAGMENT:
            runs = dict(_one(self._port, Question(table, [_keyed(near)], wanted=(KEY, "run"))))
        return {(runs.get(key, ""), key): one for key in near if (one := stored[key])}


class MethodologyStore(_Part):
    """Stores methodologies; retired ones are tombstones, which `for_error` skips."""

    def ids(self, repo: str | None = None, after: str = "", limit: int = ALL) -> Sequence[str]:
        """Return ids greater than *after*, ascending; only of *repo* (in any case), where given."""
        terms = [Term(KEY, Is.ABOVE, after), *_within(model.Scope(repo))]
        found = _one(self._port, Question(tables.METHODOLOGY, terms, (KEY,), _most(limit), (KEY,)))
        return [key for (key,) in found]

    @_of_one_state
    def get(
        self, ids: Sequence[str] = (), *, errors: Sequence[str] = ()
    ) -> Sequence[model.Methodology]:
        """Return methodologies with these ids or of these errors, by id."""
        found = self._port.find(
            [
                Question(tables.METHODOLOGY, [_keyed(ids)], wanted=(KEY, VALUE)),
                Question(tables.METHODOLOGY, [_keyed(errors, "error_id")], wanted=(KEY, VALUE)),
            ]
        )
        return self._with_sources(dict(chain.from_iterable(found)))

    def _with_sources(self, texts: Mapping[str, str]) -> list[model.Methodology]:
        """Return methodologies with those of their sources that are stored, by id."""
        edges = _one(
            self._port,
            Question(tables.DERIVED, [_keyed(texts, SOURCE)], wanted=(SOURCE, "run", TARGET)),
        )
        sources: dict[str, list[model.Source]] = {}
        for methodology, run, fragment in edges:
            sources.setdefault(methodology, []).append(model.Source(run, fragment))
        return [
            replace(_methodology(texts[key]), sources=tuple(sorted(sources.get(key, ()))))
            for key in sorted(texts)
        ]

    @_of_one_state
    def of_types(self, error_ids: Sequence[str]) -> Sequence[Sequence[model.Methodology]]:
        """Return groups of methodologies for errors of the same type and family.

        Each group is ordered by id, the groups by their first id.
        """
        wanted = ("family", "error_type")
        types = {*_one(self._port, Question(tables.ERROR, [_keyed(error_ids)], wanted=wanted))}
        asked = [
            Question(
                tables.ERROR,
                [_equal("family", family), _equal("error_type", error_type)],
                wanted=(KEY, *wanted),
            )
            for family, error_type in sorted(types)
        ]
        kinds = {key: kind for key, *kind in chain.from_iterable(self._port.find(asked))}
        by_type: dict[object, list[model.Methodology]] = {}
        for methodology in self.get(errors=[*kinds]):
            by_type.setdefault(tuple(kinds[methodology.error_id]), []).append(methodology)
        return [*by_type.values()]

    @_of_one_state
    def for_error(
        self, signatures: Sequence[model.ErrorSignature], scope: model.Scope, limit: int
    ) -> Sequence[model.Methodology]:
        """Return methodologies for the first of *signatures* whose template has any.

        Those of the repository of *scope* come before general ones, then the highest support.
        None is derived from a run that *scope* hides. They are without their `sources`.
        """
        return self._fitting(self._port.find(_resolved(signatures)), scope, limit)

    def _fitting(
        self, resolved: Sequence[list[tuple[Any, ...]]], scope: model.Scope, limit: int
    ) -> Sequence[model.Methodology]:
        """Return what `for_error` does, from what was *resolved* for each signature."""
        resolving = [{key for (key,) in found} for found in resolved]
        named = {*chain.from_iterable(resolving)}
        if not named:
            return []
        status = Term("status", Is.NOT_IN, [model.MethodologyStatus.RETIRED.value])
        known = _one(
            self._port,
            Question(tables.METHODOLOGY, [_keyed(named), status], wanted=(KEY, "repo", VALUE)),
        )
        hidden = self._hidden(named, scope)
        fitting = {
            key: text
            for key, repo, text in known
            if key not in hidden and (scope.repo is None or repo in (None, scope.repo))
        }
        first = next((keys & fitting.keys() for keys in resolving if keys & fitting.keys()), set())
        found = [_methodology(fitting[key]) for key in first]
        found.sort(key=lambda one: (one.repo is None, -one.support, one.id))
        return found[: max(0, limit)]

    @_of_one_state
    def with_recoveries(
        self,
        signatures: Sequence[model.ErrorSignature],
        scopes: Sequence[model.Scope],
        limit: int,
        questions: Sequence[model.ErrorQuestion],
        most: int,
        error_ids: Sequence[str],
    ) -> tuple[
        Sequence[model.Methodology], Sequence[model.RecoveryCandidate], Sequence[tuple[int, int]]
    ]:
        """Return `for_error` in the first of *scopes*, what `RecoveryStore.for_error` does of the
        *questions*, at most *most* for each, and `RecoveryStore.tasks`: all asked for in one call.
        Without a scope there are no methodologies.
        """
        asked = (_resolved(signatures), _recovered(questions, most), _of_tasks(scopes, error_ids))
        found = iter(self._port.find([*chain.from_iterable(asked)]))
        resolved, recovered, met = ([*islice(found, len(one))] for one in asked)
        known = self._fitting(resolved, scopes[0], limit) if scopes else []
        return known, _candidates(recovered), [*map(_tasks_of, scopes, met)]

    def _hidden(self, methodologies: Iterable[str], scope: model.Scope) -> set[str]:
        """Return those that were derived from a run that *scope* hides."""
        if not scope.exclude_instances and scope.as_of is None:
            return set()
        wanted = (SOURCE, "instance_id", "seen_at")
        edges = _one(
            self._port, Question(tables.DERIVED, [_keyed(methodologies, SOURCE)], wanted=wanted)
        )
        return {
            key
            for key, instance, seen_at in edges
            if instance in scope.exclude_instances
            or (scope.as_of is not None and seen_at > scope.as_of)
        }

    def put(
        self,
        methodologies: Sequence[model.Methodology],
        removed: Sequence[str] = (),
        resolved: Sequence[model.ResolvedBy] = (),
        similar: Sequence[model.SimilarTo] = (),
    ) -> int:
        """Write methodologies and edges; return how many `SIMILAR_TO` edges changed.

        Retired methodologies lose their *resolved* edges. With a removed one go those that it had
        superseded, and their errors count as changed.
        """

        def work(port: Transaction) -> int:
            _remove_methodologies(port, removed)
            _put_methodologies(port, methodologies)
            ids = {edge.methodology_id for edge in resolved}
            known = {
                k for (k,) in _one(port, Question(tables.METHODOLOGY, [_keyed(ids)], wanted=(KEY,)))
            }
            errors = dict(
                _one(
                    port,
                    Question(
                        tables.ERROR,
                        [_keyed(edge.error_id for edge in resolved)],
                        wanted=(KEY, "fingerprint"),
                    ),
                )
            )
            port.put(
                tables.resolved_row(edge, errors[edge.error_id])
                for edge in resolved
                if edge.methodology_id in known and edge.error_id in errors
            )
            return _put_similar(port, similar)

        return self._port.write(work)


def _put_methodologies(port: Transaction, methodologies: Sequence[model.Methodology]) -> None:
    """Put methodologies over those of their ids, with their sources."""
    values = {value.id: value for value in methodologies}
    retired = {
        key for key, value in values.items() if value.status is model.MethodologyStatus.RETIRED
    }
    derived, resolved = port.find(
        [
            Question(tables.DERIVED, [_keyed(values, SOURCE)], wanted=(KEY,)),
            Question(tables.RESOLVED, [_keyed(retired, TARGET)], wanted=(KEY,)),
        ]
    )
    port.delete(tables.DERIVED, [key for (key,) in derived])
    port.delete(tables.RESOLVED, [key for (key,) in resolved])
    port.put(map(tables.methodology_row, values.values()))
    port.drop_vectors(tables.METHODOLOGY, [*values])
    sources = {source for value in values.values() for source in value.sources}
    stored = _of_fragments(port, sources)
    port.put(
        tables.derived_row(value.id, source, stored[source])
        for value in values.values()
        for source in value.sources
        if source in stored
    )


def _of_fragments(
    port: Reads, sources: Iterable[model.Source]
) -> dict[model.Source, dict[str, Any]]:
    """Return the columns of their run for those of *sources* that are stored."""
    named = {*sources}
    columns = ("run", "repo", "instance_id", "seen_at")
    found = _one(
        port,
        Question(
            tables.FRAGMENT,
            [_keyed(source.fragment_id for source in named)],
            wanted=(KEY, *columns),
        ),
    )
    known = {
        model.Source(row[1], row[0]): dict(zip(columns, row[1:], strict=True)) for row in found
    }
    return {source: known[source] for source in named if source in known}


def _put_similar(port: Transaction, similar: Sequence[model.SimilarTo]) -> int:
    """Put relations between stored fragments, one for each error; return how many changed."""
    stored = _of_fragments(
        port, (end for edge in similar for end in (edge.fragment, edge.representative))
    )
    known = {
        f"{edge.fragment.fragment_id} {edge.error_id}": edge
        for edge in similar
        if edge.fragment in stored and edge.representative in stored
    }
    before = _values(
        port, tables.SIMILAR, known, lambda text: tables.value_of(model.SimilarTo, text)
    )
    changed = {
        key: edge
        for key, edge in known.items()
        if (None if edge.fragment == edge.representative else edge) != before.get(key)
    }
    port.delete(tables.SIMILAR, [key for key in changed if key in before])
    port.put(
        tables.similar_row(edge)
        for edge in changed.values()
        if edge.fragment != edge.representative
    )
    return len(changed)


class ExposureStore(_Part):
    """Records what was shown and whether it helped.

    When a run is learned that was shown a context and met its error, whether the run cleared the
    error is reported, and for each item that it tried whether that did.
    """

    def add(self, exposures: Sequence[model.Exposure]) -> None:
        """Record contexts that were shown; recorded ones stay as they are."""
        given = {one.context_id: one for one in reversed(exposures)}

        def work(port: Transaction) -> None:
            known = _one(port, Question(tables.CONTEXT, [_keyed(given)], wanted=(KEY,)))
            new = given.keys() - {key for (key,) in known}
            port.put(chain.from_iterable(tables.context_rows(given[key]) for key in sorted(new)))

        self._port.write(work)

    def report(self, context: str, helped: bool, item: int | None = None, source: str = "") -> bool:
        """Record whether the *context* of this id, or its *item* (from 1), helped.

        Return False if there is no such context or item, or a report of it is recorded already.
        """

        def work(port: Transaction) -> bool:
            known = _values(port, tables.CONTEXT, [context], _exposure)
            reported = [rules.with_report(shown, helped, item, source) for shown in known.values()]
            changed = [shown for shown in reported if shown]
            port.put(chain.from_iterable(map(tables.context_rows, changed)))
            return bool(changed)

        return self._port.write(work)

    @_of_one_state
    def record(self, advice: Sequence[str]) -> model.AdviceRecord:
        """Return the evidence about advice or items: the newest 100 reported contexts of each."""
        is_known, whole = _equal("known", True), self._whole.standing()
        # Most advice was never shown.
        ever = _groups(self._port, tables.SHOWN, [_keyed(advice, "item"), is_known], "item")
        found = self._port.find(
            [
                Question(
                    tables.SHOWN,
                    [_equal("item", name), is_known],
                    ("-shown_at", "-context"),
                    rules.REPORTS_USED,
                    ("context",),
                )
                for name in ever
            ]
        )
        contexts = {context for rows in found for (context,) in rows}
        shown = _values(self._port, tables.CONTEXT, contexts, _exposure)
        errors = {one.error_id for one in shown.values() if one.error_id}
        rates: list[tuple[Any, ...]] = []
        if errors:
            wanted = (KEY, "runs", "cleared")
            rates = _one(
                self._port, Question(tables.ERROR, [_keyed(errors)], (KEY,), wanted=wanted)
            )
        return model.AdviceRecord(
            tuple(shown.values()),
            {error: (runs, cleared) for error, runs, cleared in rates},
            tuple(tables.value_of(model.Verdict, text) for text in whole.verdicts),
            len(whole.contributors),
        )

    def decide(self, verdicts: Sequence[model.Verdict]) -> None:
        """Store decisions made by hand; each replaces an earlier one about the same advice."""
        self._port.write(lambda port: port.put(map(tables.verdict_row, verdicts)))

    def decisions(self) -> Sequence[model.Verdict]:
        """Return all decisions by hand, also on sessions that were forgotten."""
        found = _one(self._port, Question(tables.VERDICT, (), (KEY,)))
        return [tables.value_of(model.Verdict, text) for (text,) in found]

    def forgotten(self, names: Collection[str]) -> frozenset[str]:
        """Return those of *names*, as `forgotten_name` gives them, that are not learned again."""
        found = _values(self._port, tables.VERDICT, names, _verdict)
        return frozenset(name for name, verdict in found.items() if verdict.is_quarantined)

    def gate(self) -> model.MemoryGate | None:
        """Return the gate that the last consolidation fitted; None where none was."""
        text = self._whole.standing().states.get(_GATE)
        return rules.gate_of(text) if text else None

    @_of_one_state
    def newest(self, limit: int, skip: int = 0, name: str = "") -> Sequence[model.Exposure]:
        """Return contexts that were shown or withheld, newest first, after *skip* newer ones.

        Only contexts with the id *name*, or with advice or an item of this id, if it is given.
        """
        most = _most(min(ALL, skip + max(0, limit)))
        if not name:
            question = Question(tables.CONTEXT, (), ("-shown_at",), most)
            return [_exposure(text) for (text,) in _one(self._port, question)[skip:]]
        shown, own = self._port.find(
            [
                Question(
                    tables.SHOWN, [_equal("item", name)], ("-shown_at", "context"), most,
                    ("context",),
                ),
                Question(tables.CONTEXT, [_equal(KEY, name)], wanted=(KEY,)),
            ]
        )  # fmt: skip
        ids = {key for (key,) in (*shown, *own)}
        found = [*_values(self._port, tables.CONTEXT, ids, _exposure).values()]
        found.sort(key=lambda one: (-one.shown_at.timestamp(), one.context_id))
        return found[skip : skip + max(0, limit)]

    def sessions_shown(self, items: Collection[str]) -> Mapping[str, int]:
        """Return how many sessions were shown each of *items*, of its newest 100 contexts."""
        names = sorted({*items})
        found = self._port.find(
            [
                Question(
                    tables.SHOWN, [_equal("item", name)], ("-shown_at", "-context"),
                    rules.REPORTS_USED, ("context",),
                )
                for name in names
            ]
        )  # fmt: skip
        contexts = {context for rows in found for (context,) in rows}
        was_shown = [_keyed(contexts), _equal("withheld", False)]
        asked = Question(tables.CONTEXT, was_shown, wanted=(KEY, "session"))
        sessions = dict[str, str](_one(self._port, asked) if contexts else ())
        return {
            name: len({sessions[one] or one for (one,) in rows if one in sessions})
            for name, rows in zip(names, found, strict=True)
        }

    def of_session(self, session: str, only_of: str | None = None) -> Sequence[model.Exposure]:
        """Return the contexts that were shown or withheld in a session, oldest first.

        Only those that were shown to the source *only_of*, if it is given.
        """
        if not session:
            return []
        question = Question(tables.CONTEXT, [_equal("session", session)], ("shown_at",))
        known = (_exposure(text) for (text,) in _one(self._port, question))
        return [one for one in known if only_of in (None, one.shown_to)]

    def forget_session(self, session: str, only_of: str | None = None) -> None:
        """Empty `said` of the contexts of a session, whose agent no longer knows them.

        Only of contexts that were shown to the source *only_of*, if it is given.
        """
        shown = [one for one in self.of_session(session, only_of) if one.said]
        if shown:
            emptied = [replace(one, said=()) for one in shown]
            self._port.write(lambda port: _put_contexts(port, emptied))

    def forget_texts(
        self, repos: Collection[str], since: datetime, names: Collection[str] = ()
    ) -> None:
        """Remove the texts of contexts shown *since* then in these repositories ("": not known).

        Also the *names* of those that have nothing left.
        """
        asked = Question(tables.CONTEXT, [Term("shown_at", Is.LEAST, since)])
        shown = [_exposure(text) for (text,) in _one(self._port, asked)]
        emptied = [one.context_id for one in shown if one.repo.casefold() in repos]

        def work(port: Transaction, some: Sequence[str]) -> int:
            contexts = _values(port, tables.CONTEXT, some, _exposure).values()
            emptied = map(_without_text, contexts)
            _put_contexts(
                port,
                [replace(one, repo="") if one.repo.casefold() in names else one for one in emptied],
            )
            return len(contexts)

        self._in_batches(work, emptied, RUNS_AT_ONCE)

    def tally(
        self, since: datetime | None = None, until: datetime | None = None
    ) -> model.ShownTally:
        """Count what was shown from *since* to before *until*, by outcome."""
        terms = [_equal("withheld", False), *_period("shown_at", since, until)]
        sums = ("advice", "known", "cleared", "followed", "right", "wrong", "tokens")
        counted = self._port.count([Count(tables.CONTEXT, terms, ("error_id",), sums)])[0]
        return rules.tally_of(counted)

    def all(self, on_damaged: OnDamaged | None = None) -> Iterator[model.Exposure]:
        """Yield all contexts that were shown or withheld, by id, with a few in memory at a time.

        *on_damaged* is called for each that cannot be read; without it the first error is raised.
        """
        return _all(self._port, tables.CONTEXT, _exposure, on_damaged)


def _all(
    port: Reads, table: Table, read: Callable[[str], Kind], on_damaged: OnDamaged | None
) -> Iterator[Kind]:
    """Yield all values in *table*, by key, a few of them in memory at a time."""

    def page(after: str, limit: int) -> Sequence[tuple[str, str]]:
        terms = [Term(KEY, Is.ABOVE, after)]
        return [*_one(port, Question(table, terms, (KEY,), limit, (KEY, VALUE)))]

    return rules.paged(page, read, on_damaged)


class NoteStore(_Part):
    """Stores notes with their vectors, and proposes those in a scope."""

    def change(
        self,
        ids: Sequence[str] = (),
        function: NoteChange = replace,
        new: Sequence[model.Note] = (),
    ) -> Sequence[model.Note]:
        """Store *new*, replace the known notes of *ids* by the result of *function*; return these.

        They are ordered by id. No other change comes between reading and writing; *function* may be
        called again. A note with another text waits to be embedded again.
        """

        def work(port: Transaction) -> Sequence[model.Note]:
            _put_notes(port, new)
            changed = [
                function(note) for note in _values(port, tables.NOTE, ids, rules.note_of).values()
            ]
            _put_notes(port, changed)
            return changed

        return self._port.write(work)

    def get(self, ids: Sequence[str]) -> Mapping[str, model.Note]:
        """Return notes by id, without unknown ones."""
        return _values(self._port, tables.NOTE, ids, rules.note_of)

    @_of_one_state
    def word_counts(self, words: Sequence[str]) -> model.WordCounts:
        """Return the number of notes, and of notes with each of *words* (stems)."""
        return self._port.word_counts(tables.NOTE, words)

    @_of_one_state
    def for_text(
        self,
        words: Sequence[str],
        scope: model.NoteScope,
        limit: int,
        counts: model.WordCounts | None = None,
    ) -> Sequence[model.Note]:
        """Return notes with any of *words* (stems): the rarest words first, then the newest.

        A note that begins with a long request has many common ones. *counts* are those of *words*
        where they are known; they are asked for otherwise.
        """
        if limit < 1:
            return []
        known = counts or self._port.word_counts(tables.NOTE, words)
        weights = word_weights(known.total, known.by_word, len(words), inf)
        order = ("-created_at",)
        found = self._port.search(tables.NOTE, weights, _notes_in(scope), limit, order)
        return self._in_order(tables.NOTE, [key for key, _ in found], rules.note_of)

    def nearest(
        self, vectors: Sequence[model.Vector], scope: model.NoteScope, limit: int
    ) -> Sequence[Mapping[str, float]]:
        """Return for each of *vectors*, all of one space, cosines by the id of notes.

        Cosines have four decimals; the highest come first.
        """
        if not vectors:
            return []
        return self._port.nearest(tables.NOTE, vectors, _notes_in(scope), max(0, limit))

    def newest(self, scope: model.NoteScope, limit: int) -> Sequence[model.Note]:
        """Return notes, the newest first, of equal times the greatest id."""
        order = ("-created_at", f"-{KEY}")
        found = _one(self._port, Question(tables.NOTE, _notes_in(scope), order, _most(limit)))
        return [rules.note_of(text) for (text,) in found]

    def linking(self, ids: Sequence[str]) -> Sequence[model.Note]:
        """Return all notes with a link to one of *ids*, ordered by id."""
        if not ids:
            return []
        terms = [Term("targets", Is.HAS_ANY, sorted({*ids}))]
        return [
            rules.note_of(text)
            for (text,) in _one(self._port, Question(tables.NOTE, terms, (KEY,)))
        ]

    def counts(self) -> Mapping[model.NoteKind, int]:
        """Return the number of live notes by kind, without kinds that have none."""
        counted = _groups(self._port, tables.NOTE, [_equal("live", True)], "kind")
        return {model.NoteKind(kind): counted[kind] for kind in sorted(counted)}

    def all(self, on_damaged: OnDamaged | None = None) -> Iterator[model.Note]:
        """Yield all notes, by id, with a few in memory at a time.

        *on_damaged* is called for each that cannot be read; without it the first error is raised.
        """
        return _all(self._port, tables.NOTE, rules.note_of, on_damaged)

    def texts_to_embed(
        self, limit: int, space: str | None = None, after: str = ""
    ) -> Mapping[str, str]:
        terms = [
            Term(KEY, Is.ABOVE, after),
            _equal("live", True),
            Term("kind", Is.NOT_IN, [model.NoteKind.ENTITY.value]),
        ]
        if space is not None:
            terms.append(Term(KEY, Is.NOT_EMBEDDED, space))
        found = _one(self._port, Question(tables.NOTE, terms, (KEY,), _most(limit), (KEY, VALUE)))
        return {key: rules.note_text(rules.note_of(text)) for key, text in found}

    def add(self, space: str, vectors: Mapping[str, model.Vector | None]) -> None:
        def work(port: Transaction) -> None:
            known = _one(port, Question(tables.NOTE, [_keyed(vectors)], wanted=(KEY,)))
            port.drop_vectors(tables.NOTE, [key for (key,) in known])
            port.put_vectors(tables.NOTE, space, {key: vectors[key] for (key,) in known})

        self._port.write(work)

    def delete(self, ids: Sequence[str]) -> int:
        """Delete notes; return how many were known."""

        def work(port: Transaction, some: Sequence[str]) -> int:
            _forget_shown(port, {*some})
            return port.delete(tables.NOTE, some)

        return self._in_batches(work, ids, NOTES_AT_ONCE)

    def close(self) -> None:
        """Nothing is held beside the port."""


def _notes_in(scope: model.NoteScope) -> list[Term]:
    """Return the terms of notes in *scope*."""
    kinds = [kind.value for kind in scope.kinds]
    terms = [
        Term("live", Is.IN, [False, True]) if scope.live is None else _equal("live", scope.live),
        # Of one kind, an index gives the order.
        _equal("kind", *kinds) if len(kinds) == 1 else _keyed(kinds, "kind"),
    ]
    if scope.repos is not None:
        terms.append(_keyed(scope.repos, "repo"))
    if scope.tags:
        terms.append(Term("tags", Is.HAS, sorted({*scope.tags})))
    if scope.pinned:
        terms.append(_equal("pinned", True))
    return terms


def _put_notes(port: Transaction, notes: Sequence[model.Note]) -> None:
    """Put notes; those whose text has changed lose their vector."""
    values = {note.id: note for note in notes}
    before = _values(port, tables.NOTE, values, rules.note_of)
    port.put(map(tables.note_row, values.values()))
    changed = [
        key for key, note in before.items() if rules.note_text(note) != rules.note_text(values[key])
    ]
    port.drop_vectors(tables.NOTE, changed)


class PassageStore(_Part):
    """Stores what was said in runs; a passage goes with its run, and is written with it."""

    def get(self, ids: Sequence[str]) -> Mapping[str, model.Passage]:
        """Return passages by id, without unknown ones."""
        if not ids:
            return {}
        wanted = (KEY, *tables.PASSAGE_COLUMNS)
        found = _one(self._port, Question(tables.PASSAGE, [_keyed(ids)], (KEY,), wanted=wanted))
        return {key: tables.passage_of(values) for key, *values in found}

    @_of_one_state
    def word_counts(self, words: Sequence[str]) -> model.WordCounts:
        """Return the number of passages, and of passages with each of *words* (stems)."""
        return self._port.word_counts(tables.PASSAGE, words)

    def for_text(
        self, weights: Mapping[str, int], scope: model.PassageScope, limit: int
    ) -> Mapping[str, int]:
        """Return the sums of *weights* of stems by the id of passages with any of these stems.

        The highest sum comes first, then the newest.
        """
        if limit < 1:
            return {}
        where = _passages_in(scope)
        return dict(self._port.search(tables.PASSAGE, weights, where, limit, ("-said_at",)))

    def of_runs(self, run_ids: Collection[str]) -> Mapping[str, int]:
        """Return the number of passages by run."""
        (groups,) = self._port.count([Count(tables.PASSAGE, [_keyed(run_ids, "run")], ("run",))])
        return dict(groups)

    def newest(self, scope: model.PassageScope, limit: int) -> Sequence[model.Passage]:
        """Return passages, the newest first, of equal times by id."""
        question = Question(
            tables.PASSAGE,
            _passages_in(scope),
            ("-said_at",),
            _most(limit),
            tables.PASSAGE_COLUMNS,
        )
        return [*map(tables.passage_of, _one(self._port, question))]

    def cosines(self, vector: model.Vector, ids: Sequence[str]) -> Mapping[str, float]:
        """Return cosines, of four decimals, by id; without passages that have no such vector."""
        stored = self._port.vectors(tables.PASSAGE, vector.space, ids)
        known = {key: one for key, one in stored.items() if one is not None}
        return dict(zip(known, model.rounded_cosines(vector, [*known.values()]), strict=True))

    def nearest(
        self, vector: model.Vector, scope: model.PassageScope, limit: int
    ) -> Mapping[str, float]:
        """Return cosines, of four decimals, by the id of passages, highest first."""
        if limit < 1:
            return {}
        return self._port.nearest(tables.PASSAGE, [vector], _passages_in(scope), limit)[0]

    def counts(self, space: str | None = None) -> model.PassageCounts:
        """Return the number of passages, and of passages without a vector of *space*."""
        counts = [Count(tables.PASSAGE, sums=("characters",))]
        if space is not None:
            counts.append(Count(tables.PASSAGE, [Term(KEY, Is.NOT_EMBEDDED, space)]))
        every, *waiting = self._port.count(counts)
        passages, characters = every[0] if every else (0, 0)
        waits = waiting[0][0][0] if waiting and waiting[0] else 0
        return model.PassageCounts(passages, characters, waits)

    def texts_to_embed(
        self, limit: int, space: str | None = None, after: str = ""
    ) -> Mapping[str, str]:
        terms = [Term(KEY, Is.ABOVE, after)]
        if space is not None:
            terms.append(Term(KEY, Is.NOT_EMBEDDED, space))
        question = Question(tables.PASSAGE, terms, (KEY,), _most(limit), (KEY, VALUE))
        return dict(_one(self._port, question))

    def add(self, space: str, vectors: Mapping[str, model.Vector | None]) -> None:
        coarse = {key: one and one.coarse() for key, one in vectors.items()}

        def work(port: Transaction) -> None:
            known = _one(port, Question(tables.PASSAGE, [_keyed(coarse)], wanted=(KEY,)))
            port.drop_vectors(tables.PASSAGE, [key for (key,) in known], keep=space)
            port.put_vectors(tables.PASSAGE, space, {key: coarse[key] for (key,) in known})

        self._port.write(work)

    def keep(self, since: datetime | None, characters: int | None) -> int:
        """Delete passages said before *since*, and the oldest beyond so many *characters* in all.

        None is no limit. Return how many were deleted.
        """

        def work(port: Transaction) -> int:
            terms = [] if since is None else [Term("said_at", Is.LEAST, since)]
            ordered = Question(tables.PASSAGE, terms, ("-said_at",), None, (KEY, "characters"))
            kept: set[str] = set()
            size = 0
            for key, own in _one(port, ordered):
                size += own
                if characters is not None and size > characters:
                    break
                kept.add(key)
            every = _one(port, Question(tables.PASSAGE, (), (KEY,), wanted=(KEY,)))
            return port.delete(tables.PASSAGE, [key for (key,) in every if key not in kept])

        return self._port.write(work, erasing=True)


def _passages_in(scope: model.PassageScope) -> list[Term]:
    terms = []
    if scope.repos is not None:
        terms.append(_keyed(scope.repos, "repo"))
    if scope.runs is not None:
        terms.append(_keyed(scope.runs, "run"))
    if scope.since is not None:
        terms.append(Term("said_at", Is.LEAST, scope.since))
    if scope.until is not None:
        terms.append(Term("said_at", Is.MOST, scope.until))
    return terms


class AdminStore(_Part):
    """Leases, health, schema, counts and provenance of the whole memory."""

    # The graph that was read last, and the revision before that.
    _graph: "tuple[int, Graph | None]" = (-1, None)

    @_of_one_state
    def counts(self) -> model.MemoryCounts:
        """Return the numbers of nodes, relations, outcomes and repositories."""
        port = self._port
        outcomes = _groups(port, tables.RUN, (), "outcome")
        changes = _groups(port, tables.RUN, (), "change")
        statuses = _groups(port, tables.METHODOLOGY, (), "status")
        nodes = {table.label: _total(port, table) for table in _NODES}
        edges = {table.label: _total(port, table) for table in _EDGES}
        superseding = Term("superseded_by", Is.ABOVE, "")
        named = _one(port, Question(tables.METHODOLOGY, [superseding], wanted=("superseded_by",)))
        superseded = [by for (by,) in named]
        known = {
            key
            for (key,) in _one(
                port, Question(tables.METHODOLOGY, [_keyed(superseded)], wanted=(KEY,))
            )
        }
        return model.MemoryCounts(
            nodes=nodes,
            edges={
                "HAS_FRAGMENT": nodes[tables.FRAGMENT.label],
                **{
                    kind: edges[kind]
                    for kind in ("CAUSED_ERROR", "RECOVERED", "RESOLVED_BY", "DERIVED_FROM")
                },
                "SUPERSEDES": sum(by in known for by in superseded),
                "SIMILAR_TO": edges["SIMILAR_TO"],
            },
            outcomes={one.value: outcomes.get(one.value, 0) for one in model.Outcome},
            changes={one.value: changes.get(one.value, 0) for one in model.ChangeStatus},
            methodologies={
                one.value: statuses.get(one.value, 0) for one in model.MethodologyStatus
            },
            repositories=_total(port, tables.REPO),
        )

    @_of_one_state
    def explain(self, node_id: str) -> model.Explanation | None:
        """Return a node, or a context that was shown, with its edges; None for an unknown id.

        An error has its edges to fragments of the newest 100 runs that met it.
        """
        from contextgraph.store.graph import name_of, relations

        port = self._port
        contexts = _values(port, tables.CONTEXT, [node_id], _exposure)
        if contexts:
            return self._explain_context(contexts[node_id])
        nodes = port.find([Question(table, [_keyed([node_id])], wanted=(KEY,)) for table in _NODES])
        table = next((table for table, rows in zip(_NODES, nodes, strict=True) if rows), None)
        if table is None:
            return None
        newest: list[str] | None = None
        if table is tables.ERROR:
            terms = [_equal(TARGET, node_id)]
            order, wanted = ("-seen_at", SOURCE), (SOURCE,)
            question = Question(tables.MET, terms, order, rules.EXPLAINED_RUNS, wanted)
            runs = [run for (run,) in _one(self._port, question)]
            own = Question(tables.FRAGMENT, [_keyed(runs, "run")], wanted=(KEY,))
            newest = [key for (key,) in _one(self._port, own)]
        facts = self._facts(node_id, table.label)
        known = {name: fact for name, fact in facts.items() if fact is not None}
        return model.Explanation(
            node_id,
            table.label,
            name_of(port, table, node_id),
            known,
            rules.in_order(relations(port, table, node_id, newest)),
        )

    def _explain_context(self, shown: model.Exposure) -> model.Explanation:
        ids = [item.id for item in shown.items]
        known = {
            key: (tables.FRAGMENT.label, value.name)
            for key, value in _values(self._port, tables.FRAGMENT, ids, _fragment).items()
        }
        known |= {
            key: (tables.METHODOLOGY.label, value.name)
            for key, value in _values(self._port, tables.METHODOLOGY, ids, _methodology).items()
        }
        return rules.explained_context(shown, known)

    def _facts(self, node: str, label: str) -> dict[str, model.Json]:
        port = self._port
        if label == tables.RUN.label:
            return _facts_of_run(_runs(port, [node])[node])
        if label == tables.FRAGMENT.label:
            value = _values(port, tables.FRAGMENT, [node], _fragment)[node]
            return {
                "first_step": value.start, "last_step": value.end,
                "fragment_type": value.fragment_type.value, "phase": value.phase.value,
                "outcome": value.outcome.value, "description": value.description,
                "repo": value.repo, "open_file": value.open_file,
            }  # fmt: skip
        if label == tables.METHODOLOGY.label:
            return _facts_of_methodology(
                _values(port, tables.METHODOLOGY, [node], _methodology)[node]
            )
        wanted = (KEY, VALUE, "runs", "cleared")
        found = _one(self._port, Question(tables.ERROR, [_equal(KEY, node)], wanted=wanted))
        # A LookupError has it read again where another process deleted the node meanwhile.
        text, runs, cleared = {key: values for key, *values in found}[node]
        error = _error(text)
        return {
            "family": error.family.value, "error_type": error.error_type,
            "template": error.template, "tasks": runs, "cleared": cleared,
        }  # fmt: skip

    def graph(self) -> "Graph":
        """Return a read-only graph of nodes and relations, as of this call; see `store.graph`.

        It is read again where anything has changed (`python -m benchmarks`, graph of the memory).
        """
        from contextgraph.store.graph import graph_of

        revision, graph = self._port.revision(), self._graph[1]
        if graph is None or revision != self._graph[0]:
            graph = self._port.read(partial(graph_of, self._port))
            self._graph = revision, graph
        return graph

    def health(self, *, quick: bool = False) -> Sequence[model.HealthCheck]:
        """Check access, schema, integrity, writing and sizes; a failed check raises nothing.

        *quick* leaves out integrity, which reads everything, and writing.
        """
        return self._port.health(quick=quick)

    def back_up(self, path: Path) -> None:
        """Copy one state of all tenants to the new file *path*; `StoreError` for a server."""
        self._port.back_up(path)

    def erase_deleted(self) -> None:
        """Rewrite the file without traces of what was deleted; nothing for a server."""
        self._port.erase_deleted()

    def take_lease(
        self, holder: str, now: datetime, until: datetime | None, process: Process | None = None
    ) -> datetime | None:
        """Take or renew the lease, or release it (*until* is None).

        Return None, or the time until which another holder has it. A holder whose *process* has
        ended on this machine loses it.
        """

        def work(port: Transaction) -> datetime | None:
            found = _one(port, Question(tables.STATE, [_equal(KEY, _LEASE)]))
            lease = _lease(found[0][0]) if found else None
            if lease and not lease.is_free_for(holder, now):
                return lease.expires_at
            if until:
                text = tables.text_of(
                    [
                        holder,
                        until,
                        process and [process.machine, process.number, process.started_at],
                    ],
                    "the lease",
                )
                port.put([Row(tables.STATE, _LEASE, {}, text)])
            else:
                port.delete(tables.STATE, [_LEASE])
            return None

        return self._port.write(work)

    @_of_one_state
    def unconsolidated(self, after: int | None = None) -> model.Unconsolidated:
        """Return changes since the last consolidation, or since the revision *after*, ascending."""
        port = self._port
        revision = port.revision()
        found = _one(self._port, Question(tables.STATE, [_equal(KEY, _CONSOLIDATED)]))
        consolidated = int(found[0][0]) if found else 0
        since, marked = (consolidated, -1) if after is None else (after, after)
        runs, stale = port.find(
            [
                Question(tables.RUN, [Term("revision", Is.ABOVE, since)], wanted=(KEY, "repo")),
                Question(
                    tables.STALE,
                    [Term("revision", Is.ABOVE, marked)],
                    wanted=("kind", "subject"),
                ),
            ]
        )
        ids = [run for run, _ in runs]
        met = _one(self._port, Question(tables.MET, [_keyed(ids, SOURCE)], wanted=(TARGET,)))
        errors = {error for (error,) in met}
        errors |= {subject for kind, subject in stale if kind == "error"}
        repos = {repo for _, repo in runs}
        repos |= {subject for kind, subject in stale if kind == "repo"}
        return model.Unconsolidated(
            revision, len(runs), tuple(sorted(errors)), tuple(sorted(repos - {""}))
        )

    def mark_consolidated(self, revision: int, gate: model.MemoryGate | None = None) -> None:
        """Record that all changes up to *revision* are consolidated, and the *gate* fitted then."""

        def work(port: Transaction) -> None:
            rows = [Row(tables.STATE, _CONSOLIDATED, {}, str(revision))]
            if gate is not None:
                rows.append(Row(tables.STATE, _GATE, {}, tables.text_of(gate, "the gate")))
            port.put(rows)
            terms = [Term("revision", Is.MOST, revision)]
            gone = _one(port, Question(tables.STALE, terms, wanted=(KEY,)))
            port.delete(tables.STALE, [key for (key,) in gone])

        self._port.write(work)


def _lease(text: str) -> rules.StoredLease:
    holder, until, process = orjson.loads(text)
    own = Process(*process) if process else None
    return rules.StoredLease(holder, datetime.fromisoformat(until), own)


def _facts_of_run(value: model.Trajectory) -> dict[str, model.Json]:
    return {
        "instance_id": value.instance_id, "repo": value.repo,
        "task_type": value.task_type.value, "outcome": value.ending.outcome.value,
        "outcome_source": value.ending.basis.value, "exit_status": value.exit_status,
        "total_steps": value.total_steps, "summary": value.summary, "agent": value.agent,
        "model": value.model, "source": value.source,
        "contributor": value.contributor or None,
        "seen_at": f"{value.seen_at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC",
    }  # fmt: skip


def _facts_of_methodology(value: model.Methodology) -> dict[str, model.Json]:
    return {
        "situation": value.situation, "strategy": value.strategy, "repo": value.repo,
        "keyword": value.keyword, "task_type": value.task_type and value.task_type.value,
        "status": value.status.value, "confidence": value.confidence,
        "support": value.support, "repositories": value.repositories,
        "frequency": value.frequency, "success_rate": value.success_rate,
        "avg_steps": value.avg_steps, "shown_and_helped": value.success_count,
        "shown_and_did_not": value.failure_count, "made_by": value.made_by,
        "superseded_by": value.superseded_by,
    }  # fmt: skip


class Store:
    """The memory of one *tenant* above a *port*: an object for each kind of content.

    A call returns `AdminStore.graph`. Within a *snapshot* the thread reads one state of a file, or
    the newest of a server.
    """

    runs: RunStore
    recoveries: RecoveryStore
    vectors: VectorStore
    methodologies: MethodologyStore
    exposures: ExposureStore
    notes: NoteStore
    passages: PassageStore
    admin: AdminStore

    def __init__(self, port: Port) -> None:
        whole = _Whole(port)
        self._port, self.tenant = port, port.tenant
        self.snapshot: Callable[[], AbstractContextManager[object]] = whole.snapshot
        self.runs = RunStore(port, whole)
        self.recoveries = RecoveryStore(port, whole)
        self.vectors = VectorStore(port, whole)
        self.methodologies = MethodologyStore(port, whole)
        self.exposures = ExposureStore(port, whole)
        self.notes = NoteStore(port, whole)
        self.passages = PassageStore(port, whole)
        self.admin = AdminStore(port, whole)

    def __call__(self) -> "Graph":
        return self.admin.graph()

    def waiting_passages(self) -> int:
        """Count the passages that have no vector yet in a space that is not the memory's own."""
        active = self.vectors.active_space()
        if active is None or model.is_fitted(active.name):
            return 0
        return self.passages.counts(active.name).waiting

    def close(self) -> None:
        """Release files and connections; closing twice is harmless."""
        self.notes.close()
        self._port.close()


def current_name(runs: RunStore, repo: str) -> str:
    """Return the present name of *repo*, which may have been joined with another one."""
    joined = runs.names().get(repo.casefold()) if repo else None
    return joined.now if joined else repo


def id_pages(store: RunStore | MethodologyStore, size: int) -> Iterator[Sequence[str]]:
    """Yield all ids in *store*, ascending, in pages of at most *size*."""
    after = ""
    while ids := store.ids(after=after, limit=size):
        yield ids
        after = ids[-1]
