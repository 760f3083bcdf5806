"""Sessions in the SQLite databases of coding agents, in the shape of their exports."""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from contextgraph.errors import ReadError
from contextgraph.readers.fields import loads

_MAGIC = b"SQLite format 3\0"


def is_database(head: bytes) -> bool:
    """Whether a file that starts with *head* is an SQLite database."""
    return head.startswith(_MAGIC)


def sessions_in(name: str, max_size: int) -> Iterator[tuple[int, dict[str, Any]]]:
    """The sessions in the database *name*, numbered from 1, in the order in which they began.

    Read without locking out the agent that writes it. Raises ReadError where *name* is not a file
    on disk, no database of a known agent, damaged, or holds a value of more than *max_size* bytes.
    """
    with _opened(name) as connection:
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, max_size)
        yield from enumerate(_KINDS[_kind(name, connection)].read(connection), 1)


def count_sessions(name: str) -> int:
    """The number of sessions in the database *name*; raises ReadError as `sessions_in`."""
    with _opened(name) as connection:
        counted = connection.execute(_KINDS[_kind(name, connection)].counting)
        return int(counted.fetchone()[0])


@contextmanager
def _opened(name: str) -> Iterator[sqlite3.Connection]:
    if not Path(name).is_file():
        raise ReadError(name, "", "a database can be read from a file only")
    try:
        uri = f"{Path(name).absolute().as_uri()}?mode=ro"
        with closing(sqlite3.connect(uri, uri=True)) as connection:
            connection.row_factory = sqlite3.Row
            yield connection
    except (sqlite3.Error, KeyError, ValueError) as error:
        raise ReadError(name, "", f"database cannot be read: {error}") from error


def _kind(name: str, connection: sqlite3.Connection) -> str:
    """The agent whose database *connection* is, by its tables."""
    rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    tables = {row["name"] for row in rows}
    for agent, kind in _KINDS.items():
        if kind.tables <= tables:
            return agent
    names = ", ".join(sorted(tables)[:8]) or "none"
    raise ReadError(name, "", f"not the database of a known agent; tables: {names}")


def _opencode(connection: sqlite3.Connection) -> Iterator[dict[str, Any]]:
    for session in _rows(connection, "SELECT * FROM session ORDER BY time_created, id"):
        messages = []
        rows = _rows(
            connection,
            "SELECT id, data FROM message WHERE session_id = ? ORDER BY time_created, id",
            session["id"],
        )
        for row in rows:
            parts = _rows(
                connection, "SELECT data FROM part WHERE message_id = ? ORDER BY id", row["id"]
            )
            messages.append(
                {"info": _json(row["data"]), "parts": [_json(part["data"]) for part in parts]}
            )
        yield {"info": session, "messages": messages}


def _goose(connection: sqlite3.Connection) -> Iterator[dict[str, Any]]:
    for session in _rows(connection, "SELECT * FROM sessions ORDER BY created_at, id"):
        rows = _rows(
            connection, "SELECT * FROM messages WHERE session_id = ? ORDER BY id", session["id"]
        )
        messages = [
            {
                "role": row.get("role"),
                "created": row.get("created_timestamp"),
                "content": _json(row.get("content_json")),
            }
            for row in rows
        ]
        described = session.get("description") or session.get("name") or ""
        yield {
            "id": session["id"],
            "description": described,
            "working_dir": session.get("working_dir"),
            "messages": messages,
        }


def _cursor(connection: sqlite3.Connection) -> Iterator[dict[str, Any]]:
    composers = _rows(
        connection,
        "SELECT key, value FROM cursorDiskKV WHERE key LIKE 'composerData:%' ORDER BY key",
    )
    for composer in composers:
        id_ = composer["key"].partition(":")[2]
        facts = _json(composer["value"])
        rows = _rows(
            connection,
            "SELECT key, value FROM cursorDiskKV WHERE key >= ? AND key < ? ORDER BY rowid",
            f"bubbleId:{id_}:",
            f"bubbleId:{id_};",
        )
        by_id = {row["key"].rpartition(":")[2]: _json(row["value"]) for row in rows}
        if not by_id:
            continue
        listed = facts.get("fullConversationHeadersOnly") if isinstance(facts, dict) else None
        order = [
            header.get("bubbleId") for header in listed or () if isinstance(header, dict)
        ] or list(by_id)
        bubbles = [by_id[bubble] for bubble in order if bubble in by_id]
        yield {"composerId": id_, "bubbles": [b for b in bubbles if isinstance(b, dict)]}


class _Kind(NamedTuple):
    """The tables by which a database is recognised, how its sessions are read and counted."""

    tables: frozenset[str]
    read: Callable[[sqlite3.Connection], Iterator[dict[str, Any]]]
    counting: str


_KINDS = {
    "opencode": _Kind(
        frozenset({"session", "message", "part"}), _opencode, "SELECT count(*) FROM session"
    ),
    "goose": _Kind(frozenset({"sessions", "messages"}), _goose, "SELECT count(*) FROM sessions"),
    "cursor": _Kind(
        frozenset({"cursorDiskKV"}),
        _cursor,
        "SELECT count(*) FROM cursorDiskKV WHERE key LIKE 'composerData:%'",
    ),
}


def _rows(connection: sqlite3.Connection, query: str, *values: str) -> Sequence[dict[str, Any]]:
    return [dict(row) for row in connection.execute(query, values)]


def _json(value: object) -> Any:
    """The value of a JSON *value*; None where a row is empty or damaged, as some are."""
    if not isinstance(value, str | bytes):
        return None
    try:
        return loads(value)
    except ValueError:
        return None
