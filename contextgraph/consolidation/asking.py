"""Asking a language model about many things, a few at once."""

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

from contextgraph.errors import MissingExtraError, RemoteError
from contextgraph.model import NO_USAGE, Usage, Wording

Item = TypeVar("Item")
Said = TypeVar("Said")
Answers = list[Wording[Said] | None]

# Asked at once, and written together: a killed process loses no more answers.
_AT_ONCE = 4
BATCH = 8


@dataclass(slots=True)
class Reworded:
    """What asking took, how many methodologies and runs still wait, and why.

    Once there is a *reason*, nothing more is asked. *unusable* counts answers that cannot be used
    and are not asked for again, *fault* is what was wrong with one of them.
    """

    usage: Usage = NO_USAGE
    waiting: int = 0
    runs_waiting: int = 0
    reason: str = ""
    unusable: int = 0
    fault: str = ""


def asked(
    items: Sequence[Item],
    ask: Callable[[Item], Wording[Said]],
    done: Reworded,
    within: timedelta | None = None,
) -> Iterator[tuple[Sequence[Item], Answers[Said]]]:
    """*items* in batches with what was said of each, None for what was not asked or answered.

    No request is begun after *within*. What it takes is counted in *done*.
    """
    ends = None if within is None else time.monotonic() + within.total_seconds()
    for start in range(0, len(items), BATCH):
        batch = items[start : start + BATCH]
        if not done.reason and ends is not None and time.monotonic() > ends:
            done.reason = "learning does not wait for a model any longer"
        yield batch, [None] * len(batch) if done.reason else _answers(batch, ask, done)


def _answers(
    batch: Sequence[Item], ask: Callable[[Item], Wording[Said]], done: Reworded
) -> Answers[Said]:
    def said_of(item: Item) -> Wording[Said] | str:
        try:
            return ask(item)
        except (RemoteError, MissingExtraError) as error:
            return str(error)

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        answers = list(pool.map(said_of, batch))
    for answer in answers:
        if not isinstance(answer, Wording):
            done.reason = answer
            continue
        done.usage += answer.usage
        if answer.words is None:
            done.unusable += 1
            done.fault = answer.reason
    return [answer if isinstance(answer, Wording) else None for answer in answers]
