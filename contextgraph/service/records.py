"""The JSON objects that the command line and the server answer with: see docs/cli.md.

They are those of `codec` with all fields; `_FORMS` says where a class has other keys.
"""

from typing import TYPE_CHECKING, Any, cast

from contextgraph import model
from contextgraph.model.codec import Forms, encoded, parts_of
from contextgraph.text import mask_secrets, masked_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from contextgraph.errors import ReadError
    from contextgraph.learning.statistics import Friction, MemoryStats
    from contextgraph.model import Json, RawTrajectory

    Parts = Mapping[str, object]


def record_of(value: object, /, *omitted: str, **changed: object) -> "dict[str, Json]":
    """Return a dataclass as JSON, but for the keys *omitted*; keys that are *changed* or more."""
    parts = _but(parts_of(value, _FORMS), *omitted)
    return cast("dict[str, Json]", encoded({**parts, **changed}, _FORMS))


def _but(parts: "Parts", *omitted: str) -> "dict[str, object]":
    return {key: parts[key] for key in parts if key not in omitted}


def _session(session: model.Session) -> "Parts":
    parts = _but(parts_of(session), "ending")
    ending = parts_of(session.ending)
    more = {"is_guess": session.is_guess, "all_steps": session.all_steps}
    return {**parts, **ending, **more}


def advice_record(figures: model.AdviceFigures) -> "dict[str, Json]":
    """Return the figures of what was shown; steps to one decimal."""
    known = _but(parts_of(figures), "saved", "ceiling")
    saved, ceiling = (round(steps, 1) + 0 for steps in (figures.saved, figures.ceiling))  # not -0.0
    return cast("dict[str, Json]", {**known, "steps_saved": saved, "ceiling": ceiling})


def _fragment(fragment: model.Fragment) -> "Parts":
    names = ("id", "start", "end", "phase", "outcome", "description")
    return {"type": fragment.fragment_type, **{name: getattr(fragment, name) for name in names}}


def _loop(loop: model.LoopInfo) -> "Parts":
    escapes = [suggestion.text for suggestion in loop.escape_suggestions]
    return {**parts_of(loop), "length": loop.length, "escape_suggestions": escapes}


def _usage(usage: model.Usage) -> "Parts":
    return {**parts_of(usage), "cost": round(usage.cost, 6)}


def _receipt(receipt: model.LearnReceipt) -> "Parts":
    return {
        **_but(parts_of(receipt), "outcome", "outcome_source", "usage", "continues"),
        "not_embedded": receipt.not_embedded or None,
        "tokens": receipt.usage.tokens,
        "cost": round(receipt.usage.cost, 6),
        "error": None,
    }


def _run(run: model.Trajectory) -> "Parts":
    return {
        "trajectory_id": run.id,
        **_but(parts_of(run), "id", "task", "summary", "total_steps"),
        "steps": run.total_steps,
        "outcome_source": run.outcome_source if run.success is not None else None,
        "contributor": run.contributor or None,
    }


def _command(record: model.CommandRecord) -> "Parts":
    return {**parts_of(record), "line": record.line, "error_type": record.error_type or None}


def _history(history: model.CommandHistory) -> "Parts":
    from contextgraph.advising.wording import render_warning

    return {**parts_of(history), "warning": render_warning(history) or None}


def _playbook_file(file: model.PlaybookFile) -> "Parts":
    return {
        **_but(parts_of(file), "changed"),
        "runs": file.changed,
        "probability": round(file.probability, 4),
    }


def _playbook(playbook: model.RepositoryPlaybook) -> "Parts":
    """Return what is known; "test_command" and the like need two tasks that agree."""
    counts: dict[str, object] = {"runs": playbook.runs, "tasks": playbook.tasks}
    parts: dict[str, object] = {"repo": playbook.repo, "files": playbook.files}
    for name, records in (("test_command", playbook.tests), ("import_command", playbook.scripts)):
        if agreed := next((command for command in records if command.is_agreed), None):
            parts[name] = agreed.line
            counts[name] = {"worked": agreed.worked, "tried": agreed.tried}
    if playbook.package:
        parts["package_dir"] = playbook.package
        counts["package_dir"] = playbook.package_tasks
    if setup := [command.line for command in playbook.setup if command.is_agreed]:
        parts["setup"] = setup
    if playbook.failing_tests:
        parts["failing_tests"] = [
            {"test": test.name, "tasks": test.tasks} for test in playbook.failing_tests
        ]
    commands = ("tests", "scripts", "setup")
    parts["commands"] = {name: getattr(playbook, name) for name in commands}
    notes = playbook.notes
    parts["notes"] = [{n: getattr(note, n) for n in ("id", "content", "source")} for note in notes]
    return {**parts, "counts": counts}


def _case(case: model.SimilarCase) -> "Parts":
    return {**parts_of(case), "changed": {"files": case.files, **parts_of(case.changed)}}


def _context(context: model.MemoryContext) -> "Parts":
    silenced = ("description", "advice", "probability", "step", "reason")
    return {
        **parts_of(context),
        "remedies": context.ranked,
        "suggestions": [*map(_suggestion, context.suggestions)],
        "error_solutions": context.error_solutions,
        "silenced": [
            {name: parts[name] for name in silenced} for parts in map(_remedy, context.silenced)
        ],
        "lessons": [*map(_quoted, context.lessons)],
    }


def _remedy(remedy: model.Remedy) -> "Parts":
    """Return the keys of a remedy, with its fate."""
    from contextgraph.trace import command_lines

    silence, by = remedy.silence, remedy.methodology
    return {
        **_but(parts_of(remedy), "silence"),
        "id": remedy.id,
        "actions": [*command_lines(remedy.actions)],
        "methodology": by.id if by else None,
        "probability": round(remedy.probability, 4),
        "fate": "silenced" if silence else "shown",
        "step": silence.step if silence else None,
        "reason": silence.reason if silence else None,
    }


def _suggestion(remedy: model.Remedy) -> "Parts":
    """Return the keys of a remedy that has a methodology."""
    by = remedy.methodology
    assert by is not None
    return {
        **_remedy(remedy),
        "situation": by.situation,
        "strategy": remedy.description,
        "confidence": by.confidence,
        "status": by.status,
        "scope": "general" if by.repo is None else "repo",
        "remedies": remedy.actions,
        "words": by.words,
    }


def _quoted(recollection: model.Recollection) -> "Parts":
    """Return the keys of a lesson that an agent is shown."""
    note, facts = recollection.note, recollection.note.lesson
    assert facts is not None
    return {
        "id": note.id,
        "kind": facts.kind,
        "text": note.content,
        "origin": facts.origin,
        "speaker": note.speaker,
        "session": note.session,
        "about": facts.about,
        "date": f"{note.created_at:%Y-%m-%d}",
        "probability": round(recollection.probability, 4),
    }


def _recalled(recollection: model.Recollection) -> "Parts":
    return {
        **parts_of(recollection.note),
        "score": round(recollection.score, 4),
        "probability": round(recollection.probability, 4),
        "why": {name: round(value, 4) for name, value in recollection.why.items()},
        **({"later": parts_of(recollection.later)} if recollection.later else {}),
    }


def _relation(edge: model.Relation) -> "Parts":
    parts = _but(parts_of(edge), "outgoing", "properties")
    return {**parts, "direction": "out" if edge.outgoing else "in", **edge.properties}


def _consolidation(report: model.ConsolidationReport) -> "Parts":
    return {
        **_but(parts_of(report), "usage"),
        **_usage(report.usage),
        "changed": report.changed,
        "seconds": round(report.seconds, 3),
        "not_worded": report.not_worded or None,
        "fault": report.fault or None,
    }


def _lesson(lesson: model.Lesson) -> "Parts":
    evidence = [
        {
            "session": one.session,
            "turn": one.step,
            "time": one.at,
            "speaker": one.speaker,
            "quote": one.quote,
            "context": one.context,
        }
        for one in lesson.evidence
    ]
    probability = round(lesson.probability, 4)
    return {**parts_of(lesson), "evidence": evidence, "probability": probability}


_FORMS: Forms = {
    model.CommandHistory: _history,
    model.CommandRecord: _command,
    model.ConsolidationReport: _consolidation,
    model.Fragment: _fragment,
    model.LearnReceipt: _receipt,
    model.Lesson: _lesson,
    model.LoopInfo: _loop,
    model.MemoryContext: _context,
    model.PlaybookFile: _playbook_file,
    model.Recollection: _recalled,
    model.Relation: _relation,
    model.Remedy: _remedy,
    model.RepositoryPlaybook: _playbook,
    model.Session: _session,
    model.SimilarCase: _case,
    model.Trajectory: _run,
    model.Usage: _usage,
}


def context_record(
    context: model.MemoryContext, text: str, key: "Json" = None, *, why: bool = False
) -> "dict[str, Json]":
    """Return the JSON object of an answer; *text* is what an agent would be shown.

    With *why* its remedies are all that were found, also those that were silenced.
    """
    remedies: dict[str, Any] = {"remedies": context.remedies} if why else {}
    return {"key": key, **record_of(context, **remedies), "text": text}


def learned_record(raw: "RawTrajectory", receipt: model.LearnReceipt) -> "dict[str, Json]":
    """Return the record of `learn` for a run that is stored."""
    run: dict[str, Json] = {
        "source": masked_name(raw.source),
        "instance_id": masked_name(raw.instance_id),
    }
    return {**run, **record_of(receipt), "records": 1}


def unread_record(error: "ReadError") -> "dict[str, Json]":
    """Return the record of `learn` for what cannot be read, or holds nothing to learn."""
    from contextgraph.readers import NotUnderstoodError, SkippedError

    if isinstance(error, NotUnderstoodError):
        record = not_learned_record(error.source, None, str(error), "not_understood")
        return {**record, "records": error.records, "version": error.version}
    status = "skipped" if isinstance(error, SkippedError) else "failed"
    return not_learned_record(error.source, None, str(error), status)


def not_learned_record(
    source: str | None, instance_id: str | None, error: str, status: str = "failed"
) -> "dict[str, Json]":
    """Return a record with the keys of a learned run: programs read each line in the same way."""
    return {
        "source": masked_name(source or "") or None,
        "instance_id": masked_name(instance_id or "") or None,
        "trajectory_id": None,
        "status": status,
        "fragments": 0,
        "error_patterns": 0,
        "to_embed": 0,
        "not_embedded": None,
        "copied": 0,
        "corrected": [],
        "tokens": 0,
        "cost": 0.0,
        "error": mask_secrets(error),
        "records": 1,
    }


def stats_record(
    stats: "MemoryStats",
    mistakes: "Sequence[model.MistakePattern]",
    sessions: model.Facets,
    **more: object,
) -> "dict[str, Json]":
    """Return the JSON object of `contextgraph stats`, with *more*.

    Its "sessions" count sub-agents within theirs and guess outcomes, its "counts" do neither.
    """
    counted = {"total": sessions.total, "outcomes": sessions.outcomes}
    return record_of(stats, common_mistakes=mistakes, sessions=counted, **more)


def friction_record(repo: str, frictions: "Iterable[Friction]") -> "dict[str, Json]":
    """Return the JSON object of `contextgraph call friction`."""
    records: list[Json] = [
        record_of(friction, share_cleared=round(friction.cleared / friction.tasks, 4))
        for friction in frictions
    ]
    return {"repo": repo or None, "friction": records}
