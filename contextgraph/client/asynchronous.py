"""`Client` for asyncio: each call is awaited, and runs in a thread."""

import asyncio
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Self

from contextgraph.client.client import DEADLINE, Client
from contextgraph.live import AsyncLiveRun
from contextgraph.model import (
    CommandHistory,
    LearnReceipt,
    LoopInfo,
    MemoryContext,
    RawTrajectory,
    RepositoryPlaybook,
    State,
)
from contextgraph.stats import MemoryStats


class AsyncClient:
    """The methods of `Client` for asyncio; ``async with AsyncClient(url, token) as memory:``."""

    def __init__(self, url: str, token: str | None = None, *, deadline: float = DEADLINE) -> None:
        self._client = Client(url, token, deadline=deadline)

    async def query(
        self,
        state: State,
        limit: int = 5,
        *,
        exclude_instances: Iterable[str] = (),
        as_of: datetime | None = None,
    ) -> MemoryContext:
        """As `Client.query`."""
        return await asyncio.to_thread(
            self._client.query, state, limit, exclude_instances=exclude_instances, as_of=as_of
        )

    def render(self, context: MemoryContext, max_tokens: int = 800) -> str:
        """As `Client.render`, which sends nothing."""
        return self._client.render(context, max_tokens)

    def live(self, *, repo: str, instance_id: str, task: str, agent: str = "") -> AsyncLiveRun:
        """As `Client.live`."""
        return AsyncLiveRun(
            self._client.live(repo=repo, instance_id=instance_id, task=task, agent=agent)
        )

    async def learn(self, raw: RawTrajectory) -> LearnReceipt:
        """As `Client.learn`."""
        return await asyncio.to_thread(self._client.learn, raw)

    async def playbook(self, repo: str, task: str = "") -> RepositoryPlaybook:
        """As `Client.playbook`."""
        return await asyncio.to_thread(self._client.playbook, repo, task)

    async def how(self, repo: str, command: str) -> CommandHistory:
        """As `Client.how`."""
        return await asyncio.to_thread(self._client.how, repo, command)

    async def check_loop(self, states: Sequence[State]) -> LoopInfo | None:
        """As `Client.check_loop`."""
        return await asyncio.to_thread(self._client.check_loop, states)

    async def report_outcome(self, context_id: str, helped: bool) -> bool:
        """As `Client.report_outcome`."""
        return await asyncio.to_thread(self._client.report_outcome, context_id, helped)

    async def set_outcome(
        self, instance_id: str, solved: bool, *, agent: str = "", run: str = ""
    ) -> Sequence[str]:
        """As `Client.set_outcome`."""
        return await asyncio.to_thread(
            self._client.set_outcome, instance_id, solved, agent=agent, run=run
        )

    async def get_stats(self) -> MemoryStats:
        """As `Client.get_stats`."""
        return await asyncio.to_thread(self._client.get_stats)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *raised: object) -> None:
        await asyncio.to_thread(self._client.close)
