"""Stores of methodologies, recoveries and exposures on a Neo4j server."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from operator import attrgetter, itemgetter
from typing import Concatenate, ParamSpec

from msgspec.structs import asdict

from contextgraph import model
from contextgraph.ports import ALL, RECOVERY_LEVELS, OnDamaged
from contextgraph.store import rules
from contextgraph.store.neo4j.connection import (
    ERRORS,
    METHODOLOGIES,
    RECOVERIES,
    VERDICTS,
    Connection,
    NamedQueries,
    Parameters,
    Row,
    Transaction,
    exposure_of,
    exposure_row,
    fingerprint,
    methodology_of,
    moment,
    scope_parameters,
    time_of,
    where,
)
from contextgraph.store.neo4j.search import (
    CandidateCache,
    RecoveryKey,
    WordCountCache,
    memory_state,
)

# Deleted in one transaction, whose size the memory of a server limits.
NODES_AT_ONCE = 200


class Neo4jMethodologies:
    """`MethodologyStore` on a server; the docstrings of its methods are those of the protocol."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def get(
        self, ids: Sequence[str] = (), *, errors: Sequence[str] = ()
    ) -> Sequence[model.Methodology]:
        return self._read("methodologies", ids=sorted(set(ids)), errors=sorted(set(errors)))

    def ids(self, repo: str | None = None, after: str = "", limit: int = ALL) -> Sequence[str]:
        folded = repo and repo.casefold()
        return self._connection.collected("methodology_ids", repo=folded, after=after, limit=limit)

    def of_types(self, error_ids: Sequence[str]) -> Sequence[Sequence[model.Methodology]]:
        by_type: dict[tuple[str, str], list[model.Methodology]] = {}
        for row in self._connection.rows("methodologies_of_types", ids=sorted(set(error_ids))):
            of_type = by_type.setdefault((row["family"], row["error_type"]), [])
            of_type.append(methodology_of(row))
        return list(by_type.values())

    def for_error(
        self, signatures: Sequence[model.ErrorSignature], scope: model.Scope, limit: int
    ) -> Sequence[model.Methodology]:
        return self._read(
            "methodologies_for_error",
            fingerprints=list(map(fingerprint, signatures)),
            limit=max(0, limit),
            **scope_parameters(scope),
        )

    def put(
        self,
        methodologies: Sequence[model.Methodology],
        removed: Sequence[str] = (),
        resolved: Sequence[model.ResolvedBy] = (),
        similar: Sequence[model.SimilarTo] = (),
    ) -> int:
        def work(transaction: Transaction) -> int:
            revision = transaction.begin_change() + 1
            remove_methodologies(transaction, removed, revision)
            _put_nodes(transaction, methodologies)
            _put_resolved(transaction, methodologies, resolved)
            changed = _put_similar(transaction, similar) if similar else 0
            transaction.note_change(revisions=1)
            return changed

        return self._connection.write(work)

    def _read(self, name: str, /, **parameters: object) -> list[model.Methodology]:
        return list(map(methodology_of, self._connection.rows(name, **parameters)))


def remove_methodologies(transaction: Transaction, ids: Sequence[str], revision: int) -> None:
    """Delete methodologies with their edges, and all that they had superseded.

    The errors of what was superseded count as changed at *revision*.
    """
    if not ids:
        return
    with_superseded = transaction.rows("with_superseded", ids=ids)
    gone = [rules.RemovedMethodology(**row) for row in with_superseded]
    mark_changed(transaction, rules.made_stale(gone), (), revision)
    transaction.rows("remove_methodologies", ids=sorted(methodology.id for methodology in gone))


def mark_changed(
    transaction: Transaction, errors: Iterable[str], repos: Iterable[str | None], revision: int
) -> None:
    """Let errors and repositories be consolidated again, as changed at *revision*."""
    if ids := sorted(set(errors)):
        transaction.rows("mark_errors_changed", ids=ids, revision=revision)
    if named := sorted({repo for repo in repos if repo}):
        transaction.rows("mark_repos_changed", repos=named, revision=revision)


def _put_nodes(transaction: Transaction, methodologies: Sequence[model.Methodology]) -> None:
    """Write *methodologies* with their sources, replacing those with the same ids."""
    if not methodologies:
        return
    by_id = sorted(methodologies, key=lambda methodology: methodology.id)
    ids = [methodology.id for methodology in by_id]
    sources = [
        {"methodology_id": methodology.id, **asdict(source)}
        for methodology in methodologies
        for source in methodology.sources
    ]
    nodes = [{**METHODOLOGIES.of(methodology), "name": methodology.name} for methodology in by_id]
    transaction.write("put_methodologies", nodes)
    transaction.rows("unlink_methodologies", ids=ids)
    transaction.write("link_sources", sources)
    transaction.rows("link_superseded", ids=ids)


def _put_resolved(
    transaction: Transaction,
    methodologies: Sequence[model.Methodology],
    resolved: Sequence[model.ResolvedBy],
) -> None:
    """Write the edges between nodes that exist; a tombstone keeps none."""
    retired = [
        methodology.id
        for methodology in methodologies
        if methodology.status is model.MethodologyStatus.RETIRED
    ]
    if retired:
        transaction.rows("unlink_resolved", ids=sorted(retired))
    transaction.write("link_resolved", list(map(asdict, resolved)))


def _put_similar(transaction: Transaction, similar: Sequence[model.SimilarTo]) -> int:
    """Write `SIMILAR_TO` edges between fragments that exist; how many changed."""
    ids = {
        source.fragment_id for edge in similar for source in (edge.fragment, edge.representative)
    }
    fragments = transaction.rows("runs_of_fragments", ids=sorted(ids))
    present = {model.Source(row["trajectory_id"], row["id"]) for row in fragments}
    edges = [
        {
            "fragment": edge.fragment.fragment_id,
            "error_id": edge.error_id,
            "representative": edge.representative.fragment_id,
            "weight": edge.weight,
        }
        for edge in similar
        if {edge.fragment, edge.representative} <= present
    ]
    known = {
        (row["fragment"], row["error_id"]): (row["representative"], row["weight"])
        for row in transaction.rows("similar_to", rows=edges)
    }
    changed = [
        row for row in edges if _target(row) != known.get((row["fragment"], row["error_id"]))
    ]
    transaction.write("unlink_similar", changed)
    transaction.write("link_similar", [row for row in changed if _target(row)])
    return len(changed)


def _target(edge: Row | Mapping[str, object]) -> tuple[object, object] | None:
    """Representative and weight of *edge*, None where a fragment represents itself."""
    if edge["representative"] == edge["fragment"]:
        return None
    return edge["representative"], edge["weight"]


def remove_files(transaction: Transaction, files: Iterable[tuple[str, str]]) -> None:
    """Delete those of *files*, by repository and name, that no fragment touches any more."""
    distinct = [{"repo": repo, "name": name} for repo, name in sorted(set(files))]
    transaction.write("remove_untouched_files", distinct)


P = ParamSpec("P")

_PLACES = ("in_repo", "everywhere")


class Neo4jRecoveries:
    """`RecoveryStore` on a server; the docstrings of its methods are those of the protocol."""

    def __init__(self, connection: Connection, values: CandidateCache) -> None:
        self._connection = connection
        self._values = values
        self._words = WordCountCache(connection, "recovered_word_counts", attrgetter("recoveries"))

    def for_error(
        self, questions: Sequence[model.ErrorQuestion], limit: int
    ) -> Sequence[model.RecoveryCandidate]:
        if unknown := [
            question.level for question in questions if question.level not in RECOVERY_LEVELS
        ]:
            raise ValueError(f"recoveries cannot be looked up by {unknown[0]}")
        by_kind: dict[str, list[Parameters]] = {
            f"{level}_{place}": [] for level in RECOVERY_LEVELS for place in _PLACES
        }
        for number, question in enumerate(questions):
            by_kind[where(question.level, question.scope.repo)].append(
                {"number": number, **_question(question)}
            )
        answers = self._connection.rows("recoveries_for_error", limit=max(0, limit), **by_kind)
        in_order = sorted(answers, key=itemgetter("number"))
        keys = dict.fromkeys(RecoveryKey(*key) for row in in_order for key in row["found"])
        return list(self._values.recoveries(keys).values())

    def for_text(
        self, words: Sequence[str], scope: model.Scope, limit: int
    ) -> Sequence[model.RecoveryCandidate]:
        keys = self._connection.collected(
            "recoveries_for_text",
            words=self._words.terms(words, scope.repo),
            limit=max(0, limit),
            **scope_parameters(scope),
        )
        return list(self._values.recoveries([RecoveryKey(*key) for key in keys]).values())

    def of_fragments(self, fragment_ids: Iterable[str]) -> Sequence[model.RecoveryCandidate]:
        keys = self._connection.collected("recoveries_of_fragments", ids=sorted(set(fragment_ids)))
        return list(self._values.recoveries([RecoveryKey(*key) for key in keys]).values())

    def histories(
        self, error_ids: Sequence[str], limit: int, repo: str | None = None
    ) -> Sequence[model.ErrorHistory]:
        histories = self._connection.rows(
            "error_histories",
            ids=sorted(set(error_ids)),
            runs=limit,
            repo=None if repo is None else repo.casefold(),
        )
        return list(map(_error_history, histories))

    def errors(
        self,
        scope: model.Scope,
        limit: int,
        phase: model.Phase | None = None,
        runs: Iterable[str] | None = None,
    ) -> Sequence[model.ErrorTally]:
        ids = None if runs is None else sorted(set(runs))
        if phase is not None:
            name = where("common_errors_in_phase", scope.repo)
        elif ids is not None:
            name = "errors_of_runs"
        else:
            name = where("common_errors", scope.repo)
        tallies = self._connection.rows(
            name,
            phase=phase.value if phase else None,
            ids=ids,
            most=rules.TALLY_RUNS,
            limit=max(0, limit),
            **scope_parameters(scope),
        )
        return list(map(_tally, tallies))

    def error_steps(self) -> Mapping[str, Sequence[model.ErrorSteps]]:
        return {
            row["run"]: [
                model.ErrorSteps(fragment, error, error_type, tuple(steps))
                for fragment, error, error_type, steps in row["met"]
            ]
            for row in self._connection.rows("error_steps")
        }

    def similar_to(self, trajectory_id: str) -> Sequence[model.SimilarTo]:
        return [
            model.SimilarTo(
                row["error_id"],
                model.Source(row["run"], row["fragment"]),
                model.Source(row["other"], row["representative"]),
                row["weight"],
            )
            for row in self._connection.rows("similar_of_run", id=trajectory_id)
        ]

    def clean_up(self, error_ids: Sequence[str], keep: int) -> int:
        failed = self._connection.collected("errors_often_failed", ids=error_ids, keep=keep)
        pruned = sum(self._repeated(_prune_failed, error, keep) for error in failed)
        for start in range(0, len(error_ids), NODES_AT_ONCE):
            batch = sorted(error_ids[start : start + NODES_AT_ONCE])
            self._connection.write(Transaction.write, "count_errors", batch)
        return pruned + self._repeated(_remove_orphans)

    def _repeated(
        self, work: Callable[Concatenate[Transaction, P], int], *args: P.args, **kwargs: P.kwargs
    ) -> int:
        """How many nodes *work* deletes, a batch in each transaction."""
        total, deleted = 0, NODES_AT_ONCE
        while deleted >= NODES_AT_ONCE:
            deleted = self._connection.write(work, *args, **kwargs)
            total += deleted
        return total


def _prune_failed(transaction: Transaction, error_id: str, keep: int) -> int:
    """Delete some of the failed attempts at an error beyond the newest *keep*; how many."""
    transaction.begin_change()
    fragments = transaction.rows(
        "failed_fragments", error_id=error_id, keep=keep, limit=NODES_AT_ONCE
    )
    if fragments:
        transaction.rows("remove_fragments", ids=sorted(row["id"] for row in fragments))
        files = ((row["repo"], name) for row in fragments for name in row["files"])
        remove_files(transaction, files)
        transaction.note_change(revisions=1, removals=1)
    return len(fragments)


def _remove_orphans(transaction: Transaction) -> int:
    """Delete some of the methodologies that no fragment supports; how many."""
    revision = transaction.begin_change() + 1
    orphans = transaction.collected("orphans", limit=NODES_AT_ONCE)
    if orphans:
        remove_methodologies(transaction, orphans, revision)
        transaction.note_change(revisions=1)
    return len(orphans)


def _tally(row: Row) -> model.ErrorTally:
    error, trajectories = ERRORS.read(row["error"]), tuple(row["trajectories"])
    return model.ErrorTally(error, row["runs"], row["steps"], row["cleared"], trajectories)


def _question(question: model.ErrorQuestion) -> Parameters:
    signature = question.signature
    return {
        "fingerprint": fingerprint(signature),
        "family": signature.family.value,
        "error_type": signature.error_type,
        **scope_parameters(question.scope),
    }


def _error_history(row: Row) -> model.ErrorHistory:
    error = ERRORS.read(row["error"])
    return model.ErrorHistory(
        error=error,
        occurrences=tuple(
            model.ErrorOccurrence(
                run["trajectory_id"], run["repo"], model.TaskType(run["task_type"]), run["message"]
            )
            for run in row["met"]
        ),
        clearances=tuple(
            clearance for run in row["met"] for clearance in _clearances(run, error.id)
        ),
    )


def _clearances(run: Row, error_id: str) -> Iterator[model.Clearance]:
    by_step = sorted(run["cleared"], key=lambda one: (one[2]["error_step"], one[0]))
    for fragment, phase, edge in by_step:
        yield model.Clearance(
            recovered=RECOVERIES.read(edge, fragment_id=fragment, error_id=error_id),
            trajectory_id=run["trajectory_id"],
            repo=run["repo"],
            task_type=model.TaskType(run["task_type"]),
            outcome=model.Outcome(run["outcome"]),
            seen_at=time_of(run["seen_at"]),
            instance_id=run["instance_id"],
            contributor=run["contributor"] or "",
            phase=model.Phase(phase),
        )


class Neo4jExposures:
    """`ExposureStore` on a server; the docstrings of its methods are those of the protocol."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def add(self, exposures: Sequence[model.Exposure]) -> None:
        in_order = sorted(exposures, key=attrgetter("context_id"))
        contexts = [exposure_row(exposure) for exposure in in_order]
        self._connection.write(Transaction.write, "add_exposures", contexts)

    def report(
        self, context_id: str, helped: bool, item: int | None = None, source: str = ""
    ) -> bool:
        def work(transaction: Transaction) -> bool:
            transaction.begin_change()
            reported = [
                rules.with_report(exposure, helped, item, source)
                for exposure in exposures_by_id(transaction, [context_id])
            ]
            changed = [exposure for exposure in reported if exposure]
            put_reports(transaction, changed)
            return bool(changed)

        return self._connection.write(work)

    def record(self, advice: Sequence[str]) -> model.AdviceRecord:
        shown = self._connection.rows(
            "advice_record", names=sorted(set(advice)), limit=rules.REPORTS_USED
        )
        exposures = tuple(map(exposure_of, shown))
        errors = sorted({exposure.error_id for exposure in exposures if exposure.error_id})
        rates = self._connection.rows("base_rates", ids=errors) if errors else ()
        decided = self._connection.row("verdicts")
        return model.AdviceRecord(
            exposures,
            {row["error_id"]: (row["runs"], row["cleared"]) for row in rates},
            tuple(map(VERDICTS.read, decided["verdicts"] if decided else ())),
            decided["sources"] if decided else 0,
        )

    def of_session(self, session: str) -> Sequence[model.Exposure]:
        found = self._connection.rows("exposures_of_session", session=session)
        return list(map(exposure_of, found))

    def forget_session(self, session: str) -> None:
        self._connection.write(Transaction.write, "forget_session", [{"session": session}])

    def decide(self, verdicts: Sequence[model.Verdict]) -> None:
        decided = [VERDICTS.of(verdict) for verdict in sorted(verdicts, key=attrgetter("advice"))]
        self._connection.write(Transaction.write, "put_verdicts", decided)

    def gate(self) -> model.FittedGate | None:
        text = memory_state(self._connection).gate
        return None if text is None else rules.gate_of(text)

    def newest(self, limit: int, skip: int = 0, name: str = "") -> Sequence[model.Exposure]:
        named = {"limit": max(0, limit), "skip": skip, "name": name}
        found = self._connection.rows("newest_exposures", **named)
        return list(map(exposure_of, found))

    def tally(self, since: datetime) -> model.ShownTally:
        counted = self._connection.rows("exposure_tally", since=moment(since))
        return rules.tally_of(row["counts"] for row in counted)

    def all(self, on_damaged: OnDamaged | None = None) -> Iterator[model.Exposure]:
        return rules.paged(self._page, exposure_of, on_damaged)

    def _page(self, after: str, limit: int) -> Sequence[tuple[str, Row]]:
        later = self._connection.rows("exposures", after=after, limit=limit)
        return [(row["context"]["context_id"], row) for row in later]


def exposures_by_id(queries: NamedQueries, context_ids: Sequence[str]) -> list[model.Exposure]:
    """Return the contexts among these that were shown, by id."""
    return [*map(exposure_of, queries.rows("exposures_by_id", ids=context_ids))]


def forget_shown(transaction: Transaction, items: Sequence[str]) -> None:
    """Delete what was recorded of *items*, and the texts in which they were shown."""
    transaction.rows("empty_shown_texts", ids=items)
    transaction.rows("remove_shown_items", ids=items)


def put_reports(transaction: Transaction, reported: Sequence[model.Exposure]) -> None:
    """Write what is known by now of whether contexts and their items helped."""
    contexts: list[Parameters] = [
        {
            "context_id": exposure.context_id,
            "helped": exposure.helped,
            "source": exposure.source,
            "items": [[item.id, item.advice, item.helped] for item in exposure.items],
        }
        for exposure in sorted(reported, key=attrgetter("context_id"))
    ]
    transaction.write("put_reports", contexts)
