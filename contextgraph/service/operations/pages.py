"""Pages that refer to each other."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from contextgraph.errors import NotFoundError
from contextgraph.knowledge.pages import Page, PageFound
from contextgraph.memory.agent_memory import AgentMemory
from contextgraph.service.operations import Record, TokenScope, operation
from contextgraph.service.operations.arguments import (
    LongText,
    Most,
    Name,
    Names,
    OnlyRepository,
    Question,
    Repository,
    Tags,
    Text,
)
from contextgraph.service.records import record_of

_Page = Annotated[Name, Field(description="The id of the page.")]


# For a shell and for agents, who give a page field by field; a client sends a `Page` to `add_page`
# and `update_page`, which say whether there was one.
@operation(TokenScope.WRITE, creates=True)
def pages_put(  # noqa: PLR0913, PLR0917  (one parameter per property of a page)
    memory: AgentMemory,
    page_id: _Page,
    title: Annotated[Text, Field(description="Its title.")],
    content: Annotated[LongText, Field(description="Its content, as Markdown.")],
    summary: Annotated[Text, Field(description="Its content in a line.")] = "",
    repo: Repository = "",
    tags: Tags = (),
    references: Annotated[Names, Field(description="Pages that it refers to.")] = (),
    mentions: Annotated[Names, Field(description="Entities in it.")] = (),
    *,
    only_of: str | None = None,
) -> Record:
    """Store a page, replacing the one with this id; secrets are masked."""
    page = Page(page_id, title, summary, content, tags, references, mentions, repo=repo)
    try:
        memory.pages.update_page(page, only_of)
    except NotFoundError:
        memory.pages.add_page(page, only_of)
    return record_of(memory.pages.get_page(page_id))


@operation(TokenScope.READ, "POST /v1/pages/get_page")
def pages_get(memory: AgentMemory, page_id: _Page) -> Page:
    """Return a page."""
    return memory.pages.get_page(page_id)


@operation(TokenScope.READ, "POST /v1/pages/get_index", lines="pages")
def pages_list(memory: AgentMemory, repo: OnlyRepository | None = None) -> Sequence[Page]:
    """List pages by id, without their content."""
    return memory.pages.get_index(repo)


@operation(
    TokenScope.READ,
    "POST /v1/pages/search",
    form=lambda found, *_: {
        "pages": [record_of(one.page, score=round(one.score, 4)) for one in found]
    },
    lines="pages",
)
def pages_search(
    memory: AgentMemory,
    question: Question,
    repo: Annotated[Name | None, Field(description="Pages of this repository first.")] = None,
    limit: Most = 5,
) -> Sequence[PageFound]:
    """Return the pages that share most words with a question."""
    return memory.pages.search(question, repo=repo, limit=limit)


@operation(
    TokenScope.ADMIN,
    "POST /v1/pages/remove_page",
    key="removed",
    exit_code=lambda record: 0 if record["removed"] else 1,
)
def pages_remove(memory: AgentMemory, page_id: _Page) -> bool:
    """Delete a page."""
    return memory.pages.remove_page(page_id)
