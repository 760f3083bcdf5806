"""`Client` for asyncio: each call is awaited, and runs in a thread."""

from collections.abc import Callable
from typing import Concatenate, ParamSpec

from contextgraph.agents.live import (
    AsyncLiveRun,
    InThreads,
    LiveRun,
    in_thread,
)
from contextgraph.knowledge import (
    Entities,
    Notes,
    Pages,
    Statements,
)
from contextgraph.service.client import DEADLINE, Client

P = ParamSpec("P")


def _for_asyncio(
    begin: Callable[Concatenate[Client, P], LiveRun],
) -> "Callable[Concatenate[AsyncClient, P], AsyncLiveRun]":
    """*begin*, which sends nothing and so is not awaited."""

    def begun(client: "AsyncClient", /, *args: P.args, **kwargs: P.kwargs) -> AsyncLiveRun:
        return AsyncLiveRun(begin(client.wrapped, *args, **kwargs))

    return begun


class AsyncNotes(InThreads[Notes]):
    """The methods of `Notes` for asyncio."""

    remember = in_thread(Notes.remember)
    rank = in_thread(Notes.rank)
    recall = in_thread(Notes.recall)
    snapshot = in_thread(Notes.snapshot)
    link = in_thread(Notes.link)
    causes = in_thread(Notes.causes)
    of = in_thread(Notes.of)
    pin = in_thread(Notes.pin)
    archive = in_thread(Notes.archive)
    restore = in_thread(Notes.restore)
    prune = in_thread(Notes.prune)
    reset = in_thread(Notes.reset)
    forget = in_thread(Notes.forget)


class AsyncStatements(InThreads[Statements]):
    """The methods of `Statements` for asyncio."""

    of = in_thread(Statements.of)
    for_request = in_thread(Statements.for_request)
    naming = in_thread(Statements.naming)
    edit = in_thread(Statements.edit)
    accept = in_thread(Statements.accept)
    reject = in_thread(Statements.reject)


class AsyncPages(InThreads[Pages]):
    """The methods of `Pages` for asyncio."""

    add_page = in_thread(Pages.add_page)
    update_page = in_thread(Pages.update_page)
    get_page = in_thread(Pages.get_page)
    remove_page = in_thread(Pages.remove_page)
    get_index = in_thread(Pages.get_index)
    references = in_thread(Pages.references)
    search = in_thread(Pages.search)


class AsyncEntities(InThreads[Entities]):
    """The methods of `Entities` for asyncio."""

    add_entity = in_thread(Entities.add_entity)
    get_entity = in_thread(Entities.get_entity)
    remove_entity = in_thread(Entities.remove_entity)
    add_relation = in_thread(Entities.add_relation)
    remove_relation = in_thread(Entities.remove_relation)
    get_related = in_thread(Entities.get_related)
    find_by_keywords = in_thread(Entities.find_by_keywords)
    find_tags = in_thread(Entities.find_tags)
    set_entity_tags = in_thread(Entities.set_entity_tags)


class AsyncClient(InThreads[Client]):
    """The methods of `Client` for asyncio; ``async with AsyncClient(url, token) as memory:``."""

    def __init__(self, url: str, token: str | None = None, *, deadline: float = DEADLINE) -> None:
        super().__init__(Client(url, token, deadline=deadline))
        self.render = self.wrapped.render  # sends nothing
        self.notes = AsyncNotes(self.wrapped.notes)
        self.statements = AsyncStatements(self.wrapped.statements)
        self.pages = AsyncPages(self.wrapped.pages)
        self.entities = AsyncEntities(self.wrapped.entities)

    live = _for_asyncio(Client.live)
    query = in_thread(Client.query)
    learn = in_thread(Client.learn)
    playbook = in_thread(Client.playbook)
    how = in_thread(Client.how)
    before = in_thread(Client.before)
    check_loop = in_thread(Client.check_loop)
    report_outcome = in_thread(Client.report_outcome)
    set_outcome = in_thread(Client.set_outcome)
    get_stats = in_thread(Client.get_stats)
    explain = in_thread(Client.explain)
    quarantine = in_thread(Client.quarantine)
    release = in_thread(Client.release)
    forget = in_thread(Client.forget)
    retire = in_thread(Client.retire)
    consolidate = in_thread(Client.consolidate)
    maintain = in_thread(Client.maintain)
    graph = in_thread(Client.graph)
    export_graph = in_thread(Client.export_graph)
    export = in_thread(Client.export)
    snapshot = in_thread(Client.snapshot)
    __aexit__ = in_thread(Client.__exit__)
