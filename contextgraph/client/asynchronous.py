"""`Client` for asyncio: each call is awaited, and runs in a thread."""

from collections.abc import Callable
from typing import Concatenate, ParamSpec

from contextgraph.client.client import DEADLINE, Client, RemoteNotes
from contextgraph.live import AsyncLiveRun, InThreads, LiveRun, in_thread

P = ParamSpec("P")


def _for_asyncio(
    begin: Callable[Concatenate[Client, P], LiveRun],
) -> "Callable[Concatenate[AsyncClient, P], AsyncLiveRun]":
    """*begin*, which sends nothing and so is not awaited."""

    def begun(client: "AsyncClient", /, *args: P.args, **kwargs: P.kwargs) -> AsyncLiveRun:
        return AsyncLiveRun(begin(client.wrapped, *args, **kwargs))

    return begun


class AsyncNotes(InThreads[RemoteNotes]):
    """The methods of `RemoteNotes` for asyncio."""

    remember = in_thread(RemoteNotes.remember)
    recall = in_thread(RemoteNotes.recall)
    snapshot = in_thread(RemoteNotes.snapshot)
    of = in_thread(RemoteNotes.of)
    forget = in_thread(RemoteNotes.forget)


class AsyncClient(InThreads[Client]):
    """The methods of `Client` for asyncio; ``async with AsyncClient(url, token) as memory:``."""

    def __init__(self, url: str, token: str | None = None, *, deadline: float = DEADLINE) -> None:
        super().__init__(Client(url, token, deadline=deadline))
        self.render = self.wrapped.render  # sends nothing
        self.notes = AsyncNotes(self.wrapped.notes)

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
    snapshot = in_thread(Client.snapshot)
    __aexit__ = in_thread(Client.__exit__)
