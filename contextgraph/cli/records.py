"""JSON records that several commands share; each other record stands with its command."""

from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Iterable

    from contextgraph.model import Fragment, Json, LearnReceipt, LoopInfo, Usage


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
        "usage",
        not_embedded=receipt.not_embedded or None,
        tokens=receipt.usage.tokens,
        cost=round(receipt.usage.cost, 6),
        error=None,
    )


def usage_record(usage: "Usage") -> "dict[str, Json]":
    return {"tokens": usage.tokens, "cost": round(usage.cost, 6), "requests": usage.requests}
