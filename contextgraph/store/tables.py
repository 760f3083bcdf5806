"""The tables of a memory, and the rows that its values are stored as.

The declarations are all that a back end knows of a memory. Labels of nodes and types of relations
are those of docs/concepts.md; *shown* properties are for people who read the graph.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache, lru_cache, partial
from posixpath import splitext
from typing import Any, TypeVar, cast

import msgspec

from contextgraph import model
from contextgraph.errors import ReadError, StoreError
from contextgraph.model.values import replace
from contextgraph.store import rules
from contextgraph.store.port import VALUE, Drawn, Listing, Row, Scalar, Table
from contextgraph.text import digest, regex, stems, words
from contextgraph.trace import describe_remedy
from contextgraph.trace.owners import Session

Value = TypeVar("Value")
_NAME = 80
# Characters of a caption that a graph browser shows at least.
_CAPTION = 12
_LONG_WORD = 8
_NUMBER = regex(r"\d+$")
_CANDIDATES = 8_192


def file_key(repo: str, path: str) -> str:
    """Return the key of the file at *path*; one outside of the repository has none of its own."""
    return path if path.startswith(("/", "~", "..")) or not repo else f"{repo} {path}"


def file_shown(key: str) -> Mapping[str, Scalar]:
    """Return the properties of the node of the file with this *key*.

    A browser shows only the beginning of a caption, and of a long word less: a short name comes
    with its folder, of a long one its beginning and its end.
    """
    repo, _, path = key.rpartition(" ")
    folder, _, base = path.rpartition("/")
    stem, _ = splitext(base)
    if splitext(stem)[1]:  # a copy, such as tools.py.orig
        stem = base
    if len(path) <= _CAPTION:
        name = path
    elif len(stem) > _LONG_WORD:
        name = f"{stem[:3]}… {stem[-7:]} ({path})"
    else:
        name = f"{stem} {folder.rpartition('/')[2]} ({path})" if folder else path
    return {"name": name, "path": path, "repo": repo}


RUN = Table(
    "run",
    "Trajectory",
    {
        "repo": str, "instance_id": str, "agent": str, "task_type": str, "outcome": str,
        "solved": bool, "seen_at": datetime, "steps": int, "contributor": str, "change": str,
        "session": str, "is_part": bool, "ending": str, "course": str, "revision": int,
        "has_turns": bool,
    },
    (
        ("-seen_at", "key"),
        ("is_part", "-seen_at", "key"),
        ("is_part", "repo", "agent", "ending"),
        ("session",),
        ("-solved", "-seen_at", "key"),
        ("repo", "-solved", "-seen_at", "key"),
        ("agent", "-solved", "-seen_at", "key"),
        ("instance_id",),
        ("revision",),
        ("contributor",),
        ("has_turns", "repo"),
    ),
    scope="repo",
    part_of=("run", "key"),
    is_sized=True,
)  # fmt: skip
REPO = Table("repo", "Repository", {"runs": int}, (("runs",),))
RAW = Table("raw", "RawRun", part_of=("run", "key"), draws=True)
FACTS = Table("facts", "RunFacts", {"machine": str}, part_of=("run", "key"))
OPENING = Table(
    "opening",
    "Opening",
    {"digests": tuple},
    part_of=("run", "key"),
    listed={"digests": Listing("Mark", "BEGINS", lambda key: {"name": f"message {key[:8]}"})},
)
PASSAGE = Table(
    "passage",
    "Passage",
    {
        "run": str, "repo": str, "kind": str, "number": int, "step": int, "by_agent": bool,
        "said_at": datetime, "characters": int,
    },
    (("run",), ("said_at",)),
    scope="repo",
    part_of=("run", "run"),
    is_coarse=True,
    draws=True,
)  # fmt: skip
FORMER = Table("former", "FormerId", {"run": str}, (("run",),))
FRAGMENT = Table(
    "fragment",
    "Fragment",
    {
        "run": str, "repo": str, "instance_id": str, "seen_at": datetime, "place": int,
        "phase": str, "kind": str, "loop_command": str, "file_names": tuple,
    },
    (("run", "place"), ("repo", "phase", "seen_at"), ("loop_command", "seen_at")),
    part_of=("run", "run"),
    is_sized=True,
    draws=True,
    listed={"files": Listing("File", "TOUCHED", file_shown)},
)  # fmt: skip
ERROR = Table(
    "error",
    "ErrorPattern",
    # Of runs and cleared ones several of one task count once.
    {
        "family": str, "error_type": str, "fingerprint": str, "runs": int, "steps": int,
        "cleared": int, "described_by": str,
    },
    (("family", "error_type"), ("runs",)),
)  # fmt: skip
_OF_RUN: Mapping[str, type] = {
    "run": str, "repo": str, "instance_id": str, "seen_at": datetime,
}  # fmt: skip
MET = Table(
    "met",
    "MET",
    {**_OF_RUN, "steps": int, "cleared": int},
    (("target", "seen_at"), ("repo", "target", "seen_at"), ("source",)),
    ends=(RUN, ERROR),
    part_of=("run", "run"),
)
CAUSED = Table(
    "caused",
    "CAUSED_ERROR",
    {**_OF_RUN, "phase": str, "kind": str, "count": int},
    (("source",), ("target",), ("repo", "phase", "target")),
    ends=(FRAGMENT, ERROR),
    part_of=("run", "run"),
)
RECOVERED = Table(
    "recovered",
    "RECOVERED",
    {
        **_OF_RUN, "family": str, "error_type": str, "fingerprint": str, "verified": bool,
        "error_step": int,
    },
    (
        ("fingerprint", "-verified", "-seen_at", "key"),
        ("repo", "fingerprint", "-verified", "-seen_at", "key"),
        ("family", "-verified", "-seen_at", "key"),
        ("repo", "family", "-verified", "-seen_at", "key"),
        ("family", "error_type", "-verified", "-seen_at", "key"),
        ("repo", "family", "error_type", "-verified", "-seen_at", "key"),
        ("source",),
        ("target", "run"),
    ),
    ends=(FRAGMENT, ERROR),
    scope="repo",
    part_of=("run", "run"),
)  # fmt: skip
METHODOLOGY = Table(
    "methodology",
    "Methodology",
    {"error_id": str, "repo": str, "status": str, "superseded_by": str},
    (("error_id",), ("repo",), ("superseded_by",)),
    draws=True,
)
RESOLVED = Table(
    "resolved",
    "RESOLVED_BY",
    {"fingerprint": str},
    (("fingerprint",), ("target",), ("source",)),
    ends=(ERROR, METHODOLOGY),
)
DERIVED = Table(
    "derived",
    "DERIVED_FROM",
    _OF_RUN,
    (("source",), ("target",)),
    ends=(METHODOLOGY, FRAGMENT),
)
SIMILAR = Table(
    "similar",
    "SIMILAR_TO",
    {"run": str, "error_id": str},
    (("run",), ("source",), ("target",)),
    ends=(FRAGMENT, FRAGMENT),
)
CONTEXT = Table(
    "context",
    "Context",
    {
        "shown_at": datetime, "error_id": str, "helped": bool, "known": int, "cleared": int,
        "followed": int, "right": int, "wrong": int, "withheld": bool, "session": str,
        "tokens": int, "advice": int,
    },
    (("-shown_at", "key"), ("session", "shown_at")),
)  # fmt: skip
SHOWN = Table(
    "shown",
    "ShownItem",
    {"context": str, "item": str, "known": bool, "shown_at": datetime},
    (("item", "known", "shown_at"), ("item", "shown_at"), ("context",)),
    draws=True,
)
VERDICT = Table("verdict", "Verdict")
STALE = Table("stale", "Stale", {"kind": str, "subject": str, "revision": int}, (("revision",),))
STATE = Table("state", "MemoryState")
SPACE = Table("space", "Space", {"active": bool})
SPACE_MODEL = Table("space_model", "SpaceModel")
NOTE = Table(
    "note",
    "Note",
    {
        "repo": str, "kind": str, "live": bool, "created_at": datetime, "pinned": bool,
        "tags": tuple, "targets": tuple,
    },
    (("repo", "kind", "live", "created_at"), ("live", "kind", "created_at")),
    scope="repo",
    draws=True,
    listed={"targets": Listing("Target", "NAMES", lambda key: {"name": key.split(":", 2)[-1]})},
)  # fmt: skip

TABLES = (
    RUN, REPO, RAW, FACTS, OPENING, PASSAGE, FORMER, FRAGMENT, ERROR, MET, CAUSED, RECOVERED,
    METHODOLOGY, RESOLVED, DERIVED, SIMILAR, CONTEXT, SHOWN, VERDICT, STALE, STATE, SPACE,
    SPACE_MODEL, NOTE,
)  # fmt: skip


def text_of(value: object, name: str) -> str:
    """Return the text that *value* is stored as; raises `StoreError` about *name*."""
    try:
        return msgspec.json.encode(value).decode()
    except (UnicodeEncodeError, TypeError) as error:
        raise StoreError(f"{name} cannot be stored: {error}") from error


def value_of(kind: type[Value], text: str) -> Value:
    """Return the value of *kind* that is stored as *text*; raises `StoreError`."""
    try:
        return _decoder(cast(Hashable, kind)).decode(text)  # type: ignore[no-any-return]
    except (msgspec.DecodeError, ReadError) as error:
        raise StoreError(f"a stored {kind.__name__} is damaged: {error}") from error


def names_of(text: str) -> Mapping[str, model.JoinedName]:
    """Return the names of repositories that are stored as *text*; raises `StoreError`."""
    return value_of(dict[str, model.JoinedName], text)


@cache
def _decoder(kind: Hashable) -> Any:
    return msgspec.json.Decoder(cast(Any, kind))


def fingerprint(value: model.ErrorKind) -> str:
    """Return a key of errors of one family, type and template, short enough for an index."""
    family = model.recorded_family(value).value
    text = f"{family}\n{value.error_type}\n{value.template}"
    return digest(text, 16)


def run_row(run: model.Trajectory, revision: int) -> Row:
    """Return the row of a run that changed at *revision*."""
    return Row(
        RUN,
        run.id,
        {
            "repo": run.repo, "instance_id": run.instance_id, "agent": run.agent,
            "task_type": run.task_type.value, "outcome": run.outcome.value,
            "solved": bool(run.success), "seen_at": run.seen_at, "steps": run.total_steps,
            "contributor": run.contributor, "change": run.change_made.value, "session": run.session,
            "is_part": model.is_subagent(run.agent), "ending": run.ending.outcome.value,
            "course": text_of(run.course, f"run {run.id}") if run.course.steps else "",
            "revision": revision, "has_turns": run.has_turns,
        },
        text_of(run, f"run {run.id}"),
        words(rules.trajectory_text(run)),
        shown=partial(_run_shown, run),
    )  # fmt: skip


def _run_shown(run: model.Trajectory) -> Mapping[str, Scalar]:
    return {
        "name": run.name, "task": run.task, "summary": run.summary, "model": run.model,
        "exit_status": run.exit_status, "success": run.success, "files": run.files,
        "conditions": run.conditions, "first_edit": run.course.first_edit,
        "looped_steps": run.course.looped(run.course.steps),
        "source": run.source, "learned_at": run.learned_at,
        "outcome_source": run.outcome_source.value, "total_steps": run.total_steps,
    }  # fmt: skip


def repo_row(repo: str, runs: int) -> Row:
    """Return the row of a repository."""
    return Row(REPO, repo, {"runs": runs}, shown=partial(dict, name=repo))


def bundle_rows(packed: rules.PackedRun, revision: int) -> Iterator[Row]:
    """Yield the rows of a run, but for those of its errors: they belong to several runs."""
    bundle, run = packed.bundle, packed.bundle.trajectory
    yield run_row(run, revision)
    drawn = Drawn("HAS_RAW_RUN", RUN, run.id, incoming=True)
    yield Row(
        RAW,
        run.id,
        {},
        packed.raw,
        shown=partial(dict, name=f"log of {run.instance_id}"),
        drawn=(drawn,),
    )
    yield Row(
        FACTS,
        run.id,
        {"machine": packed.machine},
        packed.facts,
        shown=partial(dict, name=f"facts of {run.instance_id}"),
    )
    if former := bundle.owners_id:
        yield Row(FORMER, former, {"run": run.id}, shown=partial(dict, name=former))
    if marks := Session(bundle.raw).marks:
        name = f"opening of {run.instance_id}"
        yield Row(OPENING, run.id, {"digests": marks}, shown=partial(dict, name=name))
    of_run: dict[str, Scalar] = {
        "run": run.id, "repo": run.repo, "instance_id": run.instance_id, "seen_at": run.seen_at,
    }  # fmt: skip
    fragments = {fragment.id: fragment for fragment in bundle.fragments}
    for fragment in bundle.fragments:
        yield _fragment_row(fragment, of_run)
    for met in rules.met_errors(bundle):
        columns = {**of_run, "steps": met.steps, "cleared": int(met.cleared)}
        yield Row(
            MET, f"{run.id} {met.error.id}", columns, text_of(met.error, f"run {run.id}"),
            source=run.id, target=met.error.id, shown=partial(_met_shown, met.error),
        )  # fmt: skip
    for caused in bundle.caused:
        by = fragments[caused.fragment_id]
        columns = {
            **of_run, "phase": by.phase.value, "kind": by.fragment_type.value,
            "count": len(caused.steps),
        }  # fmt: skip
        yield Row(
            CAUSED, f"{caused.fragment_id} {caused.error_id}", columns,
            text_of(caused, f"run {run.id}"), source=caused.fragment_id, target=caused.error_id,
            shown=partial(_caused_shown, caused),
        )  # fmt: skip
    yield from map(_passage_row, packed.passages)
    errors = {error.id: error for error in bundle.errors}
    for recovered in bundle.recovered:
        yield _recovered_row(recovered, errors[recovered.error_id], run, of_run)


PASSAGE_COLUMNS = ("run", "number", "repo", "kind", VALUE, "said_at", "step", "by_agent")


def _passage_row(passage: model.Passage) -> Row:
    return Row(
        PASSAGE,
        passage.id,
        {
            "run": passage.run, "repo": passage.repo, "kind": passage.kind.value,
            "number": passage.number, "step": passage.step, "by_agent": passage.by_agent,
            "said_at": passage.said_at, "characters": len(passage.text),
        },
        passage.text,
        stems(passage.text),
        shown=lambda: {"name": passage.text[:_NAME], "speaker": passage.speaker},
        drawn=(Drawn("SAID", RUN, passage.run, incoming=True),),
    )  # fmt: skip


def passage_of(values: Sequence[Any]) -> model.Passage:
    """Return the passage whose `PASSAGE_COLUMNS` have these *values*."""
    run, number, repo, kind, text, said_at, step, by_agent = values
    return model.Passage(run, number, repo, model.PassageKind(kind), text, said_at, step, by_agent)


def _fragment_row(value: model.Fragment, of_run: Mapping[str, Scalar]) -> Row:
    return Row(
        FRAGMENT,
        value.id,
        {
            **of_run, "place": value.order, "phase": value.phase.value,
            "kind": value.fragment_type.value, "loop_command": value.loop_command,
            **_texts_of_fragment(value),
        },
        text_of(value, f"fragment {value.id}"),
        shown=partial(_fragment_shown, value, str(of_run["instance_id"])),
        drawn=(
            Drawn("HAS_FRAGMENT", RUN, value.trajectory_id, True, {"order": value.order}),
        ),
    )  # fmt: skip


def _fragment_shown(value: model.Fragment, instance: str) -> Mapping[str, Scalar]:
    # Runs of a task begin with the same steps: its number and theirs identify one.
    number = _NUMBER.search(instance)
    place = f"{number[0] if number else instance[-4:]} {value.start}-{value.end}"
    return {
        "name": f"{place} {value.name}",
        "start": value.start, "end": value.end,
        "fragment_type": value.fragment_type.value, "outcome": value.outcome.value,
        "description": value.description, "order": value.order,
        "loop_kind": value.loop_kind and value.loop_kind.value,
        "loop_cycle": value.loop_cycle or None, "loop_failing": value.loop_failing or None,
        "repetitions": value.repetitions or None,
        "loop_ending": value.loop_ending and value.loop_ending.value,
    }  # fmt: skip


def _texts_of_fragment(value: model.Fragment) -> Mapping[str, tuple[str, ...]]:
    return {
        "file_names": tuple(sorted(rules.file_names(value))),
        "files": tuple(sorted({file_key(value.repo, path) for path in value.files})),
    }


def _met_shown(error: model.ErrorPattern) -> Mapping[str, Scalar]:
    return {"message": error.context, "keywords": error.keywords}


def _caused_shown(caused: model.CausedError) -> Mapping[str, Scalar]:
    return {"steps": caused.steps, "locations": caused.locations}


def _recovered_row(
    done: model.Recovered,
    error: model.ErrorPattern,
    run: model.Trajectory,
    of_run: Mapping[str, Scalar],
) -> Row:
    remedy = describe_remedy(done.actions)
    candidate = model.RecoveryCandidate(
        *_recovered_fields(done),
        rules.scored_words(done.message, remedy, done.actions),
        error.family,
        error.error_type,
        error.template,
        run.id,
        run.instance_id,
        run.repo,
        run.contributor,
        run.agent,
        run.seen_at,
        done.advised,
    )
    return Row(
        RECOVERED,
        f"{done.fragment_id} {done.error_id} {done.error_step:08}",
        {
            **of_run, "family": error.family.value, "error_type": error.error_type,
            "fingerprint": fingerprint(error), "verified": done.verified,
            "error_step": done.error_step,
        },
        text_of(candidate, f"run {run.id}"),
        words(f"{done.message}\n{remedy}"),
        source=done.fragment_id,
        target=done.error_id,
        shown=partial(_recovered_shown, done, remedy),
    )  # fmt: skip


def _recovered_shown(
    done: model.Recovered | model.RecoveryCandidate, remedy: str
) -> Mapping[str, Scalar]:
    return {
        "cleared_step": done.cleared_step, "message": done.message, "location": done.location,
        "description": remedy, "workaround": done.workaround,
    }  # fmt: skip


def _candidate_shown(found: model.RecoveryCandidate) -> Mapping[str, Scalar]:
    return _recovered_shown(found, describe_remedy(found.actions))


def _recovered_fields(
    done: model.Recovered | model.RecoveryCandidate,
) -> tuple[
    str, str, int, int, str, str | None, tuple[model.RemedyAction, ...], bool, bool,
    tuple[str, ...],
]:  # fmt: skip
    return (
        done.fragment_id,
        done.error_id,
        done.error_step,
        done.cleared_step,
        done.message,
        done.location,
        done.actions,
        done.verified,
        done.workaround,
        done.circumstances,
    )


def recovered_of(candidate: model.RecoveryCandidate) -> model.Recovered:
    """Return the recovery in *candidate*."""
    return model.Recovered(*_recovered_fields(candidate), candidate.advised)


# A query at an error reads 170 candidates, mostly those of the queries before: decoding them took
# a sixth of it (`python -m benchmarks`, query in scope).
@lru_cache(_CANDIDATES)
def candidate_of(text: str) -> model.RecoveryCandidate:
    """Return the candidate that is stored as *text*; equal actions are one object."""
    candidate = value_of(model.RecoveryCandidate, text)
    return candidate._replace(actions=_actions(candidate.actions))


@lru_cache(_CANDIDATES)
def _actions(actions: tuple[model.RemedyAction, ...]) -> tuple[model.RemedyAction, ...]:
    return actions


def error_row(error: model.ErrorPattern, by: str, runs: int, steps: int, cleared: int) -> Row:
    """Return the row of an error as the run *by* described it, with sums over its runs."""
    return Row(
        ERROR,
        error.id,
        {
            "family": error.family.value, "error_type": error.error_type,
            "fingerprint": fingerprint(error), "runs": runs, "steps": steps, "cleared": cleared,
            "described_by": by,
        },
        text_of(error, f"error {error.id}"),
        shown=partial(_error_shown, error, runs),
    )  # fmt: skip


def _error_shown(error: model.ErrorPattern, runs: int) -> Mapping[str, Scalar]:
    # What one run of one repository showed of it stands at `MET`.
    return {
        "name": error.name, "template": error.template, "type": error.error_type,
        "frequency": runs,
    }  # fmt: skip


def methodology_row(value: model.Methodology) -> Row:
    """Return the row of a methodology, without its sources."""
    by = value.superseded_by
    return Row(
        METHODOLOGY,
        value.id,
        {
            "error_id": value.error_id, "repo": value.repo, "status": value.status.value,
            "superseded_by": by,
        },
        text_of(replace(value, sources=()), f"methodology {value.id}"),
        shown=partial(_methodology_shown, value),
        drawn=(Drawn("SUPERSEDES", METHODOLOGY, by, incoming=True),) if by else (),
    )  # fmt: skip


def _methodology_shown(value: model.Methodology) -> Mapping[str, Scalar]:
    return {
        "name": value.name, "situation": value.situation, "strategy": value.strategy,
        "confidence": value.confidence, "support": value.support, "frequency": value.frequency,
        "success_rate": value.success_rate, "avg_steps": value.avg_steps,
        "success_count": value.success_count, "failure_count": value.failure_count,
        "made_by": value.made_by,
    }  # fmt: skip


def resolved_row(edge: model.ResolvedBy, error_fingerprint: str) -> Row:
    """Return the row of an edge from an error to what resolves it."""
    return Row(
        RESOLVED,
        f"{edge.error_id} {edge.methodology_id}",
        {"fingerprint": error_fingerprint},
        text_of(edge, f"methodology {edge.methodology_id}"),
        source=edge.error_id,
        target=edge.methodology_id,
        shown=partial(_resolved_shown, edge),
    )


def _resolved_shown(edge: model.ResolvedBy) -> Mapping[str, Scalar]:
    return {
        "success_rate": edge.success_rate, "avg_steps": edge.avg_steps, "support": edge.support,
    }  # fmt: skip


def derived_row(methodology: str, source: model.Source, of_run: Mapping[str, Scalar]) -> Row:
    """Return the row of an edge from a methodology to a fragment that it was derived from."""
    return Row(
        DERIVED,
        f"{methodology} {source.fragment_id}",
        of_run,
        source=methodology,
        target=source.fragment_id,
    )


def similar_row(edge: model.SimilarTo) -> Row:
    """Return the row of an edge from a fragment to its representative."""
    return Row(
        SIMILAR,
        f"{edge.fragment.fragment_id} {edge.error_id}",
        {"run": edge.fragment.trajectory_id, "error_id": edge.error_id},
        text_of(edge, f"fragment {edge.fragment.fragment_id}"),
        source=edge.fragment.fragment_id,
        target=edge.representative.fragment_id,
        shown=lambda: {"weight": edge.weight},
    )


def context_rows(shown: model.Exposure) -> Iterator[Row]:
    """Yield the rows of a context: its own, and one for each name of its items."""
    known = shown.error_id is not None and shown.helped is not None
    cleared = known and bool(shown.helped)
    right = cleared and any(item.helped for item in shown.items)
    yield Row(
        CONTEXT,
        shown.context_id,
        {
            "shown_at": shown.shown_at, "error_id": shown.error_id or "", "helped": shown.helped,
            "known": int(known), "cleared": int(cleared), "right": int(right),
            "followed": int(any(item.helped is not None for item in shown.items)),
            "wrong": len(shown.items) if cleared and not right else 0,
            "withheld": bool(shown.is_withheld), "session": shown.session,
            "tokens": shown.tokens, "advice": int(shown.moment != model.INDEX_MOMENT),
        },
        text_of(shown, f"context {shown.context_id}"),
        shown=lambda: {"name": f"context {shown.context_id}", "source": shown.source},
    )  # fmt: skip
    names: dict[str, bool] = {}
    captions: dict[str, str] = {}
    for item in shown.items:
        caption = "; ".join(
            f"{pattern.kind.value.replace('_', ' ')} {pattern.target}".strip()
            for pattern in item.patterns
        )
        for name in (item.id, item.advice):
            names[name] = names.get(name, False) or item.helped is not None
            captions.setdefault(name, (caption or item.why or name)[:_NAME])
    helped = {item.id: item.helped for item in shown.items}
    for name, is_known in names.items():
        yield Row(
            SHOWN,
            f"{shown.context_id} {name}",
            {
                "context": shown.context_id, "item": name, "known": is_known,
                "shown_at": shown.shown_at,
            },
            shown=partial(
                dict, name=captions[name], helped=helped.get(name), is_advice=name not in helped
            ),
            drawn=(Drawn("SHOWED", CONTEXT, shown.context_id, incoming=True),),
        )  # fmt: skip


def verdict_row(verdict: model.Verdict) -> Row:
    """Return the row of a decision by hand."""
    return Row(
        VERDICT,
        verdict.advice,
        {},
        text_of(verdict, f"decision on {verdict.advice}"),
        shown=lambda: {
            "name": verdict.advice, "is_quarantined": verdict.is_quarantined,
            "decided_at": verdict.decided_at,
        },
    )  # fmt: skip


def stale_rows(kind: str, subjects: Iterable[str], revision: int) -> Iterator[Row]:
    """Yield the rows of errors or repositories that are to be looked at again."""
    for subject in subjects:
        columns: dict[str, Scalar] = {"kind": kind, "subject": subject, "revision": revision}
        yield Row(STALE, f"{kind} {subject}", columns, shown=partial(dict, name=subject))


def note_row(note: model.Note) -> Row:
    """Return the row of a note."""
    drawn = [
        Drawn(link.type.upper(), NOTE, link.target, properties={"weight": link.weight})
        for link in note.links
    ]
    drawn += [Drawn("CONTRADICTS", NOTE, other) for other in note.contradicts]
    if note.superseded_by:
        drawn.append(Drawn("SUPERSEDES", NOTE, note.superseded_by, incoming=True))
    return Row(
        NOTE,
        note.id,
        {
            "repo": note.repo, "kind": note.kind.value, "live": note.is_live,
            "created_at": note.created_at, "pinned": note.pinned,
            **_texts_of_note(note),
        },
        text_of(note, f"note {note.id}"),
        stems(rules.note_text(note)),
        shown=partial(_note_shown, note),
        drawn=drawn,
        labels=(note.kind.capitalize(),),
    )  # fmt: skip


def _texts_of_note(note: model.Note) -> Mapping[str, tuple[str, ...]]:
    return {
        "tags": tuple(sorted({*note.tags})),
        "targets": tuple(sorted({link.target for link in note.links})),
    }


def _note_shown(note: model.Note) -> Mapping[str, Scalar]:
    shown = f"[{note.security}]" if note.security.is_secret else note.content
    title = "" if note.security.is_secret else note.heading
    return {
        "name": (title or shown)[:_NAME], "content": shown, "source": note.source,
        "recalls": note.recalls, "superseded_by": note.superseded_by,
        "contradicts": note.contradicts, "credibility": note.credibility,
    }  # fmt: skip


_SHOWN: Mapping[str, Callable[[str, Mapping[str, Any]], Mapping[str, Scalar]]] = {
    RUN.name: lambda text, _: _run_shown(value_of(model.Trajectory, text)),
    FRAGMENT.name: lambda text, columns: _fragment_shown(
        value_of(model.Fragment, text), columns["instance_id"]
    ),
    ERROR.name: lambda text, columns: _error_shown(
        value_of(model.ErrorPattern, text), columns["runs"]
    ),
    METHODOLOGY.name: lambda text, _: _methodology_shown(value_of(model.Methodology, text)),
    NOTE.name: lambda text, _: _note_shown(rules.note_of(text)),
    MET.name: lambda text, _: _met_shown(value_of(model.ErrorPattern, text)),
    CAUSED.name: lambda text, _: _caused_shown(value_of(model.CausedError, text)),
    RECOVERED.name: lambda text, _: _candidate_shown(candidate_of(text)),
    RESOLVED.name: lambda text, _: _resolved_shown(value_of(model.ResolvedBy, text)),
    SIMILAR.name: lambda text, _: {"weight": value_of(model.SimilarTo, text).weight},
}


def shown_of(table: Table, text: str, columns: Mapping[str, Any]) -> Mapping[str, Scalar]:
    """Return what `Row.shown` gives for a row of *table*, by its stored *text* and *columns*."""
    return _SHOWN[table.name](text, columns) if table.name in _SHOWN else {}


def texts_of(table: Table, text: str) -> Mapping[str, tuple[str, ...]]:
    """Return the columns of several texts of the row of *table* that is stored as *text*."""
    if table is FRAGMENT:
        return _texts_of_fragment(value_of(model.Fragment, text))
    return _texts_of_note(rules.note_of(text)) if table is NOTE else {}
