"""JSON records that several commands share; each other record stands with its command."""

from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Iterable

    from contextgraph.model import (
        CommandRecord,
        Fragment,
        Json,
        LearnReceipt,
        LoopInfo,
        RepositoryPlaybook,
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
            escape_suggestions=[one.text for one in loop.escape_suggestions],
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


def usage_record(usage: "Usage") -> "dict[str, Json]":
    return {"tokens": usage.tokens, "cost": round(usage.cost, 6), "requests": usage.requests}


def command_record(record: "CommandRecord") -> "dict[str, Json]":
    return record_of(record, error_type=record.error_type or None)


def playbook_record(playbook: "RepositoryPlaybook") -> "dict[str, Json]":
    """What is known; "test_command" and the like are only what at least two tasks agree on."""
    counts: dict[str, Json] = {"runs": playbook.runs, "tasks": playbook.tasks}
    known: dict[str, Json] = {}
    for name, records in (("test_command", playbook.tests), ("import_command", playbook.scripts)):
        if agreed := next((one for one in records if one.is_agreed), None):
            known[name] = agreed.line
            counts[name] = {"worked": agreed.worked, "tried": agreed.tried}
    if playbook.package:
        known["package_dir"] = playbook.package
        counts["package_dir"] = playbook.package_tasks
    if setup := [one.line for one in playbook.setup if one.is_agreed]:
        known["setup"] = [*setup]
    if playbook.failing_tests:
        known["failing_tests"] = [
            {"test": one.name, "tasks": one.tasks} for one in playbook.failing_tests
        ]
    return {
        "repo": playbook.repo,
        "files": [
            {
                "path": one.path,
                "runs": one.changed,
                "opened": one.opened,
                "probability": round(one.probability, 4),
                "symbols": list(one.symbols),
            }
            for one in playbook.files
        ],
        **known,
        "commands": {
            "tests": [command_record(one) for one in playbook.tests],
            "scripts": [command_record(one) for one in playbook.scripts],
            "setup": [command_record(one) for one in playbook.setup],
        },
        "counts": counts,
    }
