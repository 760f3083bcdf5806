"""Live runs for asyncio; other values in threads by the same means."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar

from contextgraph.agents.live import LiveRun

T_co = TypeVar("T_co", covariant=True)
P = ParamSpec("P")
R = TypeVar("R")


class InThreads(Generic[T_co]):
    """A value whose methods are awaited: `in_thread` makes each of them."""

    def __init__(self, wrapped: T_co) -> None:
        self.wrapped = wrapped

    async def __aenter__(self) -> Self:
        return self


def in_thread(
    method: Callable[Concatenate[T_co, P], R],
) -> Callable[Concatenate[InThreads[T_co], P], Coroutine[Any, Any, R]]:
    """Return *method* for asyncio, with the same parameters: it runs in a thread."""

    @wraps(method)
    async def call(self: InThreads[T_co], /, *args: P.args, **kwargs: P.kwargs) -> R:
        # By name, since a subclass of the wrapped class may override it.
        called: Callable[P, R] = getattr(self.wrapped, method.__name__)
        return await asyncio.to_thread(called, *args, **kwargs)

    return call


class AsyncLiveRun(InThreads[LiveRun]):
    """A `LiveRun` for asyncio: every method is awaited and runs in a thread.

    ``async with AsyncLiveRun(memory.live(…)) as run:`` has the methods `start`, `observe`,
    `before`, `check_submit` and `finish`, with the same parameters.
    """

    start = in_thread(LiveRun.start)
    observe = in_thread(LiveRun.observe)
    before = in_thread(LiveRun.before)
    check_submit = in_thread(LiveRun.check_submit)
    finish = in_thread(LiveRun.finish)
    __aexit__ = in_thread(LiveRun.__exit__)
