"""The JSON objects that the command line and the server answer with: see docs/cli.md."""

from typing import TYPE_CHECKING, cast

from contextgraph.text import mask_secrets, masked_name

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from contextgraph.errors import ReadError
    from contextgraph.knowledge import Statement
    from contextgraph.learning.statistics import (
        Friction,
        Interventions,
        MemoryStats,
    )
    from contextgraph.model import (
        CommandHistory,
        CommandRecord,
        ConsolidationReport,
        Explanation,
        Fragment,
        Json,
        LearnReceipt,
        LoopInfo,
        MemoryContext,
        MistakePattern,
        RawTrajectory,
        Recollection,
        Remedy,
        RepositoryPlaybook,
        Trajectory,
        Usage,
    )


def record_of(value: object, /, *omitted: str, **changed: "Json") -> "dict[str, Json]":
    """The fields of a dataclass but for those *omitted*; keys that are *changed* or more."""
    from contextgraph.codec import encoded

    record = cast("dict[str, Json]", encoded(value, complete=True))
    return {**{key: record[key] for key in record if key not in omitted}, **changed}


def fragment_record(fragment: "Fragment") -> "dict[str, Json]":
    return {
        "start": fragment.start,
        "end": fragment.end,
        "type": fragment.fragment_type.value,
        "phase": fragment.phase.value,
        "outcome": fragment.outcome.value,
        "description": fragment.description,
    }


def loop_records(loops: "Iterable[LoopInfo]") -> "list[Json]":
    return [
        record_of(
            loop,
            length=loop.length,
            escape_suggestions=[suggestion.text for suggestion in loop.escape_suggestions],
        )
        for loop in loops
    ]


def receipt_record(receipt: "LearnReceipt") -> "dict[str, Json]":
    return record_of(
        receipt,
        "outcome",
        "outcome_source",
        "usage",
        not_embedded=receipt.not_embedded or None,
        tokens=receipt.usage.tokens,
        cost=round(receipt.usage.cost, 6),
        error=None,
    )


def learned_record(raw: "RawTrajectory", receipt: "LearnReceipt") -> "dict[str, Json]":
    """The record of `learn` for a run that is stored."""
    run: dict[str, Json] = {
        "source": masked_name(raw.source),
        "instance_id": masked_name(raw.instance_id),
    }
    return {**run, **receipt_record(receipt), "records": 1}


def unread_record(error: "ReadError") -> "dict[str, Json]":
    """The record of `learn` for what cannot be read, or holds nothing to learn."""
    from contextgraph.readers import SkippedError

    status = "skipped" if isinstance(error, SkippedError) else "failed"
    return not_learned_record(error.source, None, str(error), status)


def not_learned_record(
    source: str | None, instance_id: str | None, error: str, status: str = "failed"
) -> "dict[str, Json]":
    """A record with the keys of a learned run, so that programs read every line the same way."""
    return {
        "source": masked_name(source or "") or None,
        "instance_id": masked_name(instance_id or "") or None,
        "trajectory_id": None,
        "status": status,
        "fragments": 0,
        "error_patterns": 0,
        "to_embed": 0,
        "not_embedded": None,
        "tokens": 0,
        "cost": 0.0,
        "error": mask_secrets(error),
        "records": 1,
    }


def usage_record(usage: "Usage") -> "dict[str, Json]":
    return {"tokens": usage.tokens, "cost": round(usage.cost, 6), "requests": usage.requests}


def command_record(record: "CommandRecord") -> "dict[str, Json]":
    return record_of(record, error_type=record.error_type or None)


def history_record(history: "CommandHistory") -> "dict[str, Json]":
    """The JSON object of `contextgraph how`."""
    from contextgraph.advising.wording import render_warning

    single = {"form": history.form, "first": history.first, "exact": history.exact}
    several = {"ways": history.ways, "others": history.others}
    lists: dict[str, Json] = {name: [*map(command_record, of)] for name, of in several.items()}
    return record_of(
        history,
        warning=render_warning(history) or None,
        **{name: command_record(command) if command else None for name, command in single.items()},
        **lists,
    )


def playbook_record(playbook: "RepositoryPlaybook") -> "dict[str, Json]":
    """Return the playbook; "test_command" and the like need two tasks that agree."""
    known, counts = _agreed(playbook)
    commands = {
        "tests": playbook.tests,
        "scripts": playbook.scripts,
        "setup": playbook.setup,
        "checks": playbook.checks,
    }
    return {
        "repo": playbook.repo,
        "files": [
            {
                "path": file.path,
                "runs": file.changed,
                "opened": file.opened,
                "probability": round(file.probability, 4),
                "symbols": list(file.symbols),
                "freshness": str(file.freshness),
            }
            for file in playbook.files
        ],
        **known,
        "commands": {name: [*map(command_record, all_)] for name, all_ in commands.items()},
        "notes": [
            {"id": note.id, "content": note.content, "source": note.source}
            for note in playbook.notes
        ],
        "counts": counts,
    }


def _agreed(playbook: "RepositoryPlaybook") -> "tuple[dict[str, Json], dict[str, Json]]":
    """Return what at least two tasks agree on, with the counts of runs and tasks."""
    counts: dict[str, Json] = {"runs": playbook.runs, "tasks": playbook.tasks}
    known: dict[str, Json] = {}
    for name, records in (("test_command", playbook.tests), ("import_command", playbook.scripts)):
        if agreed := next((command for command in records if command.is_agreed), None):
            known[name] = agreed.line
            counts[name] = {"worked": agreed.worked, "tried": agreed.tried}
    if playbook.package:
        known["package_dir"] = playbook.package
        counts["package_dir"] = playbook.package_tasks
    if setup := [command.line for command in playbook.setup if command.is_agreed]:
        known["setup"] = [*setup]
    if playbook.failing_tests:
        known["failing_tests"] = [
            {"test": test.name, "tasks": test.tasks} for test in playbook.failing_tests
        ]
    return known, counts


def context_record(
    context: "MemoryContext", text: str, key: "Json" = None, *, why: bool = False
) -> "dict[str, Json]":
    """Return the JSON object of an answer; *text* is what an agent would be shown.

    With *why* its remedies are all that were found, also those that were silenced.
    """

    cases: list[Json] = [
        record_of(
            item,
            fragments=[
                {"id": fragment.id, **fragment_record(fragment)} for fragment in item.fragments
            ],
            changed=record_of(item.changed, files=[*item.files]),
        )
        for item in context.similar_cases
    ]
    playbook = playbook_record(context.playbook) if context.playbook else None
    lists = record_of(
        context,
        remedies=[*map(remedy_record, context.remedies if why else context.ranked)],
        suggestions=[*map(_suggestion_record, context.suggestions)],
        error_solutions=[*map(_solution_record, context.error_solutions)],
        similar_cases=cases,
        playbook=playbook,
        notes=[*map(recalled_record, context.notes)],
        silenced=[*map(_silenced_record, context.silenced)],
        statements=[*map(shown_statement_record, context.statements)],
    )
    return {"key": key, **lists, "text": text}


def remedy_record(remedy: "Remedy") -> "dict[str, Json]":
    """Return the JSON object of a remedy, with its fate."""
    from contextgraph.trace import command_lines

    silence, by = remedy.silence, remedy.methodology
    return record_of(
        remedy,
        *("silence", "features"),
        id=remedy.id,
        actions=[*command_lines(remedy.actions)],
        methodology=by.id if by else None,
        probability=round(remedy.probability, 4),
        steps=round(remedy.steps, 2),
        fate="silenced" if silence else "shown",
        step=silence.step.value if silence else None,
        reason=silence.reason if silence else None,
    )


def _silenced_record(remedy: "Remedy") -> "dict[str, Json]":
    """Return what was silenced, at which step, and why."""
    record = remedy_record(remedy)
    return {
        name: record[name] for name in ("description", "advice", "probability", "step", "reason")
    }


def _solution_record(remedy: "Remedy") -> "dict[str, Json]":
    """Return the JSON object of a remedy without a methodology."""
    from contextgraph.trace import command_lines

    return record_of(
        remedy,
        *("methodology", "features", "silence", "steps"),
        actions=[*command_lines(remedy.actions)],
    )


def _suggestion_record(remedy: "Remedy") -> "dict[str, Json]":
    """Return the JSON object of a remedy that has a methodology."""
    record, by = record_of(remedy), remedy.methodology
    assert by is not None
    names = ("why", "score", "rank", "probability", "advice", "freshness")
    return {
        "id": by.id,
        "situation": by.situation,
        "strategy": remedy.description,
        "confidence": by.confidence,
        "status": by.status.value,
        "scope": "general" if by.repo is None else "repo",
        "remedies": record["actions"],
        "words": record_of(by)["words"],
        **{name: record[name] for name in names},
    }


def shown_statement_record(recollection: "Recollection") -> "dict[str, Json]":
    """The JSON object of a statement that an agent is shown."""
    note = recollection.note
    return {
        "id": note.id,
        "kind": note.statement_kind,
        "text": note.content,
        "speaker": note.speaker,
        "date": f"{note.created_at:%Y-%m-%d}",
        "session": note.session,
        "about": [*note.about],
        "probability": round(recollection.probability, 4),
    }


def statement_record(statement: "Statement") -> "dict[str, Json]":
    """The JSON object of a statement with every time it was made."""
    note = statement.note
    return {
        "id": note.id,
        "kind": note.statement_kind,
        "text": note.content,
        "context": note.summary,
        "speaker": note.speaker,
        "time": note.created_at.isoformat(),
        "session": note.session,
        "repo": note.repo,
        "about": [*note.about],
        "superseded_by": statement.superseded_by,
        "occurrences": [
            {"session": one.session, "time": one.time.isoformat(), "text": one.text}
            for one in statement.occurrences
        ],
    }


def run_record(run: "Trajectory") -> "dict[str, Json]":
    """The JSON object of a run in the memory."""
    return record_of(
        run,
        *("id", "task", "summary", "total_steps"),
        trajectory_id=run.id,
        steps=run.total_steps,
        outcome_source=str(run.outcome_source) if run.success is not None else None,
        contributor=run.contributor or None,
    )


def stats_record(
    stats: "MemoryStats",
    mistakes: "Iterable[MistakePattern]",
    plots: "Iterable[Path]",
    people: "Interventions | None" = None,
) -> "dict[str, Json]":
    """The JSON object of `contextgraph stats`."""
    return {
        "counts": record_of(stats.counts),
        "error_frequency": dict(stats.error_frequency),
        "transitions": {error: dict(nexts) for error, nexts in stats.transitions.items()},
        "common_mistakes": [record_of(mistake) for mistake in mistakes],
        "failure_patterns": [record_of(pattern) for pattern in stats.failure_patterns],
        "usage": {model: usage_record(used) for model, used in stats.usage.items()},
        "withholding": record_of(stats.withholding),
        "notes": None
        if stats.notes is None
        else {kind.value: count for kind, count in stats.notes.items()},
        "gate": record_of(stats.gate) if stats.gate else None,
        "plots": [str(file) for file in plots],
        "people": record_of(people) if people else None,
    }


def friction_record(repo: str, frictions: "Iterable[Friction]") -> "dict[str, Json]":
    """The JSON object of `contextgraph friction`."""
    records: list[Json] = [
        record_of(friction, share_cleared=round(friction.cleared / friction.tasks, 4))
        for friction in frictions
    ]
    return {"repo": repo or None, "friction": records}


def recalled_record(recollection: "Recollection") -> "dict[str, Json]":
    """The JSON object of `contextgraph recall`, of one note."""
    why: dict[str, Json] = {name: round(value, 4) for name, value in recollection.why.items()}
    return record_of(
        recollection.note,
        score=round(recollection.score, 4),
        probability=round(recollection.probability, 4),
        why=why,
    )


def explanation_record(explanation: "Explanation") -> "dict[str, Json]":
    """The JSON object of `contextgraph explain`."""
    relations: list[Json] = [
        record_of(
            edge,
            "outgoing",
            "properties",
            direction="out" if edge.outgoing else "in",
            **edge.properties,
        )
        for edge in explanation.relations
    ]
    return record_of(explanation, relations=relations)


def consolidation_record(report: "ConsolidationReport") -> "dict[str, Json]":
    """The JSON object of `contextgraph consolidate`."""
    return record_of(
        report,
        "usage",
        changed=report.changed,
        seconds=round(report.seconds, 3),
        not_worded=report.not_worded or None,
        fault=report.fault or None,
        **usage_record(report.usage),
    )
