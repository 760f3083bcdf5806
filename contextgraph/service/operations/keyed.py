"""Values under keys, on plain files beside the memory."""

from typing import Annotated

from pydantic import Field, JsonValue

from contextgraph.knowledge.keyed import KeyedMemory
from contextgraph.model.values import replace
from contextgraph.service.operations import Record, TokenScope, operation
from contextgraph.service.operations.arguments import Name, Tags, Tokens
from contextgraph.service.records import record_of
from contextgraph.text import fence

Key = Annotated[Name, Field(description="A path such as /user/preference/style.")]


@operation(TokenScope.READ, "GET /v1/keyed/brief")
def brief(
    keyed: KeyedMemory,
    tags: Annotated[Tags, Field(description="Prefer entries with this tag.")] = (),
    max_tokens: Tokens = 800,
    newest_first: Annotated[
        bool, Field(description="Order by time, then importance, then tags.")
    ] = False,
) -> Record:
    """Return the keyed entries to know at the start of a task, best first."""
    briefing = keyed.brief(max_tokens, tags, newest_first=newest_first)
    text = fence(briefing.text, "keyed") if briefing.text else ""
    return record_of(replace(briefing, text=text))


@operation(
    TokenScope.WRITE,
    "POST /v1/keyed",
    own="isolate",
    source="agent:{}",
    has_provenance=True,
    creates=True,
    example={"key": "/user/preference/style", "json_content": {"summary": "small commits"}},
)
def set_(
    keyed: KeyedMemory,
    key: Key,
    json_content: Annotated[JsonValue, Field(description="The value; null removes it.")],
    *,
    source: Annotated[
        JsonValue, Field(description="A name, or an object with kind, name, retrieved_at, locator.")
    ] = "user",
    isolate: Annotated[
        bool, Field(description="Without a complete source, store it below /untrusted.")
    ] = False,
    is_owner: bool = True,
    only_of: str | None = None,
) -> Record:
    """Store JSON under a key, or remove the key by null; secrets are masked."""
    receipt = keyed.set_memory(
        key,
        json_content,
        source,
        untrusted="isolate" if isolate else "refuse",
        only_of=None if only_of is None else f"agent:{only_of}",
    )
    if not is_owner:  # the path is of this machine
        return {"key": receipt.key, "status": receipt.status}
    return record_of(receipt, path=str(receipt.path) if receipt.path else None)


@operation(TokenScope.ADMIN)
def compact(keyed: KeyedMemory) -> Record:
    """Move earlier calls of `set` to the archive, remove expired entries, and repair files."""
    return record_of(keyed.compact())
