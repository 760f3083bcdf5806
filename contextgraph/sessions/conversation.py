"""The messages of one conversation, within a window, with old tool results shortened."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal, TypedDict
from uuid import uuid4

from contextgraph.model import Json
from contextgraph.sessions.items import Item, Items
from contextgraph.text import clip_tokens, count_tokens

Strategy = Literal["sliding_window", "full"]
Role = Literal["system", "user", "assistant", "tool"]

MAX_TURNS = 40
KEEP_RECENT = 3
CONTEXT_WINDOW, RESERVED_TOKENS = 32_000, 4_000
# What is left of a tool result that is shortened.
_RESULT_TOKENS = 60


class ConversationWindow(TypedDict, total=False):
    """What a conversation keeps and shows; see `Conversation`."""

    strategy: Strategy
    max_turns: int
    keep_recent: int
    context_window: int
    reserved_tokens: int


@dataclass(frozen=True, slots=True)
class Message:
    """A message, and when it was added; *name* is that of the tool that gave a result."""

    role: str
    content: str
    at: datetime
    name: str = ""


class Conversation:
    """The messages of a conversation in *items*; a turn is a user message and what follows it.

    ``sliding_window`` keeps the last *max_turns* turns, and messages of the system; ``full`` keeps
    all. What exceeds *context_window* less *reserved_tokens* is met by shortening tool results, the
    oldest first, never those of the last *keep_recent* turns.
    """

    def __init__(
        self,
        items: Items,
        *,
        strategy: Strategy = "sliding_window",
        max_turns: int = MAX_TURNS,
        keep_recent: int = KEEP_RECENT,
        context_window: int = CONTEXT_WINDOW,
        reserved_tokens: int = RESERVED_TOKENS,
    ) -> None:
        if max_turns < 1:
            raise ValueError(f"max_turns must be at least 1, not {max_turns}")
        self._items = items
        self._max_turns = max_turns if strategy == "sliding_window" else None
        self._keep_recent = keep_recent
        self._max_tokens = context_window - reserved_tokens
        self._last_number = 0

    def add_message(self, role: Role, content: str, *, name: str = "") -> None:
        """Store a message, with secrets masked, and remove the turns that are too old then."""
        self._last_number = max(self._last_number + 1, time.time_ns())
        metadata: dict[str, Json] = {"role": role, "name": name}
        self._items.save(f"{self._last_number:020}-{uuid4().hex[:8]}", content, metadata)
        if role == "user" and self._max_turns is not None:
            self._evict(self._max_turns)

    def get_history(self) -> tuple[Message, ...]:
        """The messages, the oldest first, with tool results shortened where they do not fit."""
        messages = [_message(item) for item in self._stored()]
        excess = sum(count_tokens(message.content) for message in messages) - self._max_tokens
        for index in range(_start_of_last(messages, self._keep_recent)):
            if excess <= 0:
                break
            message = messages[index]
            if message.role == "tool":
                shorter = clip_tokens(message.content, _RESULT_TOKENS)
                excess -= count_tokens(message.content) - count_tokens(shorter)
                messages[index] = replace(message, content=shorter)
        return tuple(messages)

    def _evict(self, max_turns: int) -> None:
        stored = self._stored()
        starts = [item.id for item in stored if item.metadata["role"] == "user"]
        for item in stored:
            is_old = len(starts) > max_turns and item.id < starts[-max_turns]
            if is_old and item.metadata["role"] != "system":
                self._items.delete(item.id)

    def _stored(self) -> list[Item]:
        return sorted(self._items.list(), key=lambda item: item.id)


def _message(item: Item) -> Message:
    role, name = str(item.metadata["role"]), str(item.metadata["name"])
    return Message(role, item.content, item.created_at, name)


def _start_of_last(messages: Sequence[Message], turns: int) -> int:
    """Where the last *turns* turns of *messages* start."""
    starts = [index for index, message in enumerate(messages) if message.role == "user"]
    if turns < 1:
        return len(messages)
    return starts[-turns] if len(starts) >= turns else 0
