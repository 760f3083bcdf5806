"""The methods of a memory as requests, for `contextgraph.service.client`."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

import orjson
from fastapi import APIRouter, HTTPException, Response
from pydantic import JsonValue

from contextgraph.advising.loops import LoopDetector
from contextgraph.advising.pipeline import MemoryRetriever
from contextgraph.advising.playbook import Playbooks
from contextgraph.codec import encoded
from contextgraph.errors import OF_STORE, NeedsStoreError
from contextgraph.knowledge import (
    Candidates,
    Entities,
    Notes,
    Pages,
    shareable,
    shareable_snapshot,
    without_secret,
)
from contextgraph.learning import MemoryWriter
from contextgraph.learning.statistics import StatisticsEngine
from contextgraph.memory import AgentMemory
from contextgraph.model import (
    Exposure,
    Note,
    Recollection,
    Snapshot,
)
from contextgraph.ports import ExposureStore, RunStore
from contextgraph.service.access import Caller, Reader
from contextgraph.service.bodies import CallBody
from contextgraph.service.client import decoded_call
from contextgraph.service.tokens import Scope

router = APIRouter()

# Part of a memory -> its class, and its methods by the scope that they need.
METHODS: Mapping[str, tuple[type, Mapping[Scope, str]]] = {
    "": (
        AgentMemory,
        {
            Scope.READ: "explain",
            Scope.ADMIN: "consolidate forget maintain quarantine release retire",
        },
    ),
    "candidates": (Candidates, {Scope.READ: "of repeated", Scope.ADMIN: "accept reject"}),
    "entities": (
        Entities,
        {
            Scope.READ: "find_by_keywords find_tags get_entity get_related",
            Scope.WRITE: "add_entity add_relation set_entity_tags",
            Scope.ADMIN: "remove_entity remove_relation",
        },
    ),
    "loop_detector": (LoopDetector, {Scope.READ: "escapes_from"}),
    "notes": (
        Notes,
        {
            Scope.READ: "causes of rank recall snapshot",
            Scope.WRITE: "link remember",
            Scope.ADMIN: "archive forget pin prune reset restore",
        },
    ),
    "pages": (
        Pages,
        {
            Scope.READ: "get_index get_page references search",
            Scope.WRITE: "add_page update_page",
            Scope.ADMIN: "remove_page",
        },
    ),
    "retriever": (
        MemoryRetriever,
        {Scope.READ: "by_error by_state by_task retrieve"},
    ),
    "retriever.playbooks": (Playbooks, {Scope.READ: "content_hashes history of"}),
    "stats": (
        StatisticsEngine,
        {
            Scope.READ: "get_common_mistakes get_error_frequency get_error_transitions "
            "get_failure_patterns get_friction get_interventions get_outcomes_over_time "
            "get_solve_rates"
        },
    ),
    "store.exposures": (ExposureStore, {Scope.WRITE: "add"}),
    "store.runs": (RunStore, {Scope.READ: "for_task for_text ids learned raw trajectories"}),
    "writer": (MemoryWriter, {Scope.WRITE: "set_outcome"}),
}

_MOST = 100_000


@dataclass(frozen=True, slots=True)
class Operation:
    """A method of the *part* of a memory, and the scope of the tokens that may call it."""

    part: str
    method: Callable[..., Any]
    scope: Scope


def _operations() -> Iterator[tuple[str, Operation]]:
    for part, (kind, scopes) in METHODS.items():
        for scope, names in scopes.items():
            for name in names.split():
                yield f"{part}.{name}".lstrip("."), Operation(part, getattr(kind, name), scope)


OPERATIONS: Mapping[str, Operation] = dict(_operations())


@router.post("/v1/call/{operation}")
async def call(operation: str, body: CallBody, caller: Reader) -> Response:
    """A method of the library, such as `pages.search`: "value" is what it returns.

    Its arguments have their names in the library; values have the JSON form of the library. Notes
    come without confidential texts.
    """
    known_operation = OPERATIONS.get(operation)
    if known_operation is None:
        raise NeedsStoreError(f"{operation} {OF_STORE}")
    if not caller.token.allows(known_operation.scope):
        raise HTTPException(403, f"the token does not have the scope {known_operation.scope}")
    arguments = body.root
    if operation == "notes.remember":
        _take_source(arguments, caller)
    if any(isinstance(argument, int) and argument > _MOST for argument in arguments.values()):
        raise HTTPException(422, f"a number may be at most {_MOST:,}")
    # What administrators start may take minutes.
    run = caller.service.maintain if known_operation.scope is Scope.ADMIN else caller.service.answer
    record = await run(lambda: _answer(known_operation, caller.memory, arguments))
    return Response(orjson.dumps({"value": record}), media_type="application/json")


def _take_source(arguments: dict[str, JsonValue], caller: Caller) -> None:
    """Take the source of a note, and with it its credibility, from the token."""
    if arguments.get("source", "user") != "user" or arguments.get("credibility") is not None:
        raise HTTPException(403, "a service takes the source from the token; name none")
    if arguments.get("pinned") and not caller.token.allows(Scope.ADMIN):
        raise HTTPException(403, f"a pinned note needs a token with the scope {Scope.ADMIN}")
    arguments["source"] = f"agent:{caller.token.source}"


def _answer(
    operation: Operation, memory: AgentMemory, arguments: Mapping[str, JsonValue]
) -> JsonValue:
    target = attrgetter(operation.part)(memory) if operation.part else memory
    bound = decoded_call(operation.method, target, arguments)
    if shown := bound.arguments.get("exposures"):
        bound.arguments["exposures"] = tuple(map(_unreported, shown))
    value = getattr(target, operation.method.__name__)(*bound.args[1:], **bound.kwargs)
    if isinstance(value, Snapshot):
        value = shareable_snapshot(value, bound.arguments["max_tokens"])
    return encoded(_without_secrets(value))


def _unreported(exposure: Exposure) -> Exposure:
    """*exposure* as it was shown: what helped is reported with another scope."""
    items = (replace(item, helped=None) for item in exposure.items)
    return replace(exposure, helped=None, source="", items=tuple(items))


def _without_secrets(value: Any) -> Any:
    if isinstance(value, Note):
        return without_secret(value)
    if isinstance(value, Recollection):
        return shareable(value)
    return tuple(map(_without_secrets, value)) if isinstance(value, tuple) else value
