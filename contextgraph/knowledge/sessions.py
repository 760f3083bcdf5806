"""Key-value items with statistics of recalls, evicted by a policy; in an SQLite file or in RAM."""

import json
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, TypedDict
from uuid import uuid4

from msgspec import Struct

from contextgraph.errors import StoreError
from contextgraph.knowledge.forgetting import Evictable, EvictionPolicy, RecallStats
from contextgraph.model import Json
from contextgraph.model.values import checked, replace
from contextgraph.system.processes import create_private
from contextgraph.text import clip_tokens, count_tokens, mask_secrets, words

_TABLE = """CREATE TABLE IF NOT EXISTS item (
    scope TEXT, id TEXT, content TEXT NOT NULL, metadata TEXT NOT NULL, created_at TEXT NOT NULL,
    words INTEGER NOT NULL, recalls INTEGER NOT NULL DEFAULT 0, score REAL NOT NULL DEFAULT 0,
    recalled_at TEXT, PRIMARY KEY (scope, id)) WITHOUT ROWID"""
_SAVE = "INSERT OR REPLACE INTO item (scope, id, content, metadata, created_at, words) VALUES"
_RECALL = "UPDATE item SET recalls = recalls + 1, score = score + ?, recalled_at = ?"
_STATISTICS = "id, created_at, words, recalls, score, recalled_at"


class Item(Struct, frozen=True):
    """A text stored under an id, with the metadata of the caller."""

    id: str
    content: str
    metadata: Mapping[str, Json]
    created_at: datetime
    recalls: RecallStats


class ItemFile:
    """The SQLite file *path* that items are in; None: RAM, for as long as this object lives."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._ram = None if path else _connected(":memory:")

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Yield a connection; commit its changes unless the block fails as `StoreError`."""
        try:
            with self._lock:
                if self._ram is not None:
                    with self._ram:
                        yield self._ram
                    return
                assert self._path
                self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                create_private(self._path)
                with closing(_connected(self._path)) as connection, connection:
                    yield connection
        except (OSError, sqlite3.Error) as error:
            raise StoreError(f"items in {self._path}: {error}") from error

    def forget(self, scopes: Sequence[str]) -> None:
        """Erase the items of *scopes*, also from the file; nothing where there is none."""
        if self._path and not self._path.exists():
            return
        with self.transaction() as connection:
            connection.executemany("DELETE FROM item WHERE scope = ?", [(one,) for one in scopes])
        with self.transaction() as connection:
            connection.commit()
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()


def _connected(path: Path | str) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=30, check_same_thread=False)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA secure_delete = ON")  # what is deleted is overwritten
    connection.execute(_TABLE)
    return connection


@checked
class Items:
    """The items of one *scope*; threads and processes may share them.

    Where there is a policy of *eviction*, each `save` applies it; what has expired is not found.
    """

    def __init__(
        self,
        file: ItemFile,
        scope: str,
        eviction: EvictionPolicy | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._file = file
        self._scope = scope
        self._eviction = eviction
        self._now = clock

    def save(self, item_id: str, content: str, metadata: Mapping[str, Json] | None = None) -> None:
        """Store *content*, with secrets masked, under *item_id*, and reset its recalls."""
        now = self._now()
        masked = mask_secrets(content)
        row = (
            self._scope,
            item_id,
            masked,
            json.dumps(dict(metadata or {})),
            now.isoformat(),
            len({*words(masked)}),
        )
        with self._file.transaction() as connection:
            connection.execute(f"{_SAVE} (?, ?, ?, ?, ?, ?)", row)
            self._evict(connection, now)

    def get(self, item_id: str) -> Item | None:
        """Return the item *item_id*; None if there is none or it has expired."""
        items = self._select("id = ?", (item_id,))
        return items[0] if items else None

    def list(
        self, prefix: str = "", since: datetime | None = None, limit: int | None = None
    ) -> tuple[Item, ...]:
        """Return items whose id starts with *prefix*, latest first, saved at or after *since*."""
        earliest = since.astimezone(UTC).isoformat() if since else ""
        condition = "substr(id, 1, ?) = ? AND created_at >= ?"
        items = self._select(condition, (len(prefix), prefix, earliest))
        return items[:limit]

    def delete(self, item_id: str) -> bool:
        """Delete the item *item_id*; return False if there is none."""
        with self._file.transaction() as connection:
            return self._delete(connection, [item_id]) > 0

    def record_recall(self, item_id: str, score: float) -> None:
        """Record that the item *item_id* was recalled with *score*, 0 to 1."""
        with self._file.transaction() as connection:
            connection.execute(
                f"{_RECALL} WHERE scope = ? AND id = ?",
                (score, self._now().isoformat(), self._scope, item_id),
            )

    def _select(self, condition: str, values: tuple[object, ...]) -> tuple[Item, ...]:
        with self._file.transaction() as connection:
            rows = connection.execute(
                f"SELECT {_STATISTICS}, content, metadata FROM item WHERE scope = ? AND {condition}"
                " ORDER BY created_at DESC, id DESC",
                (self._scope, *values),
            ).fetchall()
        now = self._now()
        seen = [(_evictable(row[:6]), row[6], json.loads(row[7])) for row in rows]
        return tuple(
            Item(item.id, content, metadata, item.created_at, item.recalls)
            for item, content, metadata in seen
            if not (self._eviction and self._eviction.chosen([item], now))
        )

    def _evict(self, connection: sqlite3.Connection, now: datetime) -> None:
        if self._eviction:
            rows = connection.execute(
                f"SELECT {_STATISTICS} FROM item WHERE scope = ?", (self._scope,)
            ).fetchall()
            self._delete(connection, self._eviction.chosen([*map(_evictable, rows)], now))

    def _delete(self, connection: sqlite3.Connection, ids: Sequence[str]) -> int:
        done = connection.executemany(
            "DELETE FROM item WHERE scope = ? AND id = ?", [(self._scope, id_) for id_ in ids]
        )
        return done.rowcount


def _evictable(row: tuple[str, str, int, int, float, str | None]) -> Evictable:
    id_, created_at, count, recalls, score, recalled_at = row
    last = datetime.fromisoformat(recalled_at) if recalled_at else None
    stats = RecallStats(recalls, score, last)
    return Evictable(id_, datetime.fromisoformat(created_at), count, stats)


Strategy = Literal["sliding_window", "full"]
Role = Literal["system", "user", "assistant", "tool"]

MAX_TURNS = 40
KEEP_RECENT = 3
CONTEXT_WINDOW, RESERVED_TOKENS = 32_000, 4_000
# What is left of a tool result that is shortened.
_RESULT_TOKENS = 60


class ConversationWindow(TypedDict, total=False):
    """Limits of a conversation; see `Conversation`."""

    strategy: Strategy
    max_turns: int
    keep_recent: int
    context_window: int
    reserved_tokens: int


class Message(Struct, frozen=True):
    """A message, and when it was added; *name* is that of the tool that gave a result."""

    role: str
    content: str
    at: datetime
    name: str = ""


@checked
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
        """Return the messages, oldest first; tool results are shortened if they do not fit."""
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
