"""Databases of SQLite in which agents keep their sessions, read as what others may have written."""

import os
import sqlite3
import stat
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, Self

from contextgraph.errors import ReadError
from contextgraph.system.intake import MAX_RATIO, MAX_RUN_SIZE, loads, opened
from contextgraph.text import regex

_MAGIC = b"SQLite format 3\0"
# The byte at the end of so many says that a database has a write-ahead log.
_HEAD, _WAL = 20, b"\2"
_VIRTUAL = regex(r"(?i)\s*create\s+virtual\b")
_SECONDS, _MOST_COPIED = 600.0, 4 * MAX_RUN_SIZE
_STEPS_AT_ONCE = 100_000
# Of a row beside its texts, and the least that a value may have.
_ROW_BYTES, _LEAST_LENGTH = 500, 1 << 20
# Null is before numbers, these before texts, these before bytes: as SQLite orders them.
_RANKS = {type(None): 0, int: 1, float: 1, str: 2, bytes: 3}


def is_database(head: bytes) -> bool:
    """Return True if a file that starts with *head* is an SQLite database."""
    return head.startswith(_MAGIC)


class Database:
    """A database, for reading plain `tables` of it.

    No view, virtual table, generated column or function of its schema is evaluated, and nothing is
    sorted or stored by SQLite. Reading ends after so many seconds, or bytes of rows. Nothing is
    written beside it: one that a client left with a journal is copied. Its methods raise
    `ReadError`.
    """

    def __init__(self, path: str, most: int) -> None:
        self._path = path
        with self._reporting():
            with opened(path) as file:
                size = os.fstat(file.fileno()).st_size
                logs_ahead = file.read(_HEAD)[-1:] == _WAL
            for ending in ("-wal", "-shm", "-journal"):
                beside = f"{path}{ending}"
                if os.path.lexists(beside) and not stat.S_ISREG(os.lstat(beside).st_mode):
                    raise ReadError(path, "", "a journal beside the database is not a file")
            journal = f"{path}-wal"
            has_journal = os.path.exists(journal)
            size += os.path.getsize(journal) if has_journal else 0
            self._left = max(most, MAX_RATIO * size)
            self._until = time.monotonic() + _SECONDS
            self._close = ExitStack()
            with ExitStack() as opening:
                place, access = Path(path).absolute(), "mode=ro"
                if has_journal and not os.path.exists(f"{path}-shm"):
                    if size > _MOST_COPIED:
                        raise ReadError(path, "", "too large to be read without its client")
                    copies = Path(opening.enter_context(TemporaryDirectory()))
                    for name in (path, journal):
                        with opened(name) as file, open(copies / Path(name).name, "xb") as copy:
                            copyfileobj(file, copy)
                    place = copies / place.name
                elif has_journal:
                    access += "&readonly_shm=1"
                elif logs_ahead:  # else SQLite makes a journal
                    access += "&immutable=1"
                self._connection = opening.enter_context(
                    closing(sqlite3.connect(f"{place.as_uri()}?{access}", uri=True))
                )
                self._prepare(max(_LEAST_LENGTH, min(most, size)))
                self._close = opening.pop_all()

    def _prepare(self, longest: int) -> None:
        connection = self._connection
        connection.row_factory = sqlite3.Row
        # No value of an honest file is longer than the file.
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, longest)
        connection.set_progress_handler(self._is_late, _STEPS_AT_ONCE)
        for pragma in ("temp_store = MEMORY", "trusted_schema = OFF", "query_only = ON"):
            connection.execute(f"PRAGMA {pragma}")
        found = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'")
        names = [row["name"] for row in found if not _VIRTUAL.match(row["sql"] or "")]
        computed = "SELECT count(*) FROM pragma_table_xinfo(?) WHERE hidden != 0"
        self.tables = frozenset(
            name for name in names if not connection.execute(computed, (name,)).fetchone()[0]
        )
        connection.set_authorizer(self._allowed)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close.close()

    def rows(self, query: str, *values: str, by: Sequence[str] = ()) -> list[dict[str, Any]]:
        """Return the rows of a selection from `tables`, in the order of the columns *by*."""
        rows = list[dict[str, Any]]()
        with self._reporting():
            for row in self._connection.execute(query, values):
                texts = (len(one) for one in row if isinstance(one, str | bytes))
                self._left -= _ROW_BYTES + sum(texts)
                if self._left < 0:
                    raise ReadError(self._path, "", "a database with more rows than its size has")
                rows.append(dict(row))
        return sorted(rows, key=lambda row: [_ranked(row.get(name)) for name in by])

    def _allowed(self, action: int, first: str | None, second: str | None, *_: object) -> int:
        is_allowed = (
            action == sqlite3.SQLITE_SELECT
            or (action == sqlite3.SQLITE_READ and first in self.tables)
            or (action == sqlite3.SQLITE_FUNCTION and second in ("count", "like"))
        )
        return sqlite3.SQLITE_OK if is_allowed else sqlite3.SQLITE_DENY

    def _is_late(self) -> bool:
        return time.monotonic() > self._until

    @contextmanager
    def _reporting(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise ReadError(self._path, "", f"database cannot be read: {reason}") from error


def _ranked(value: Any) -> tuple[int, Any]:
    return _RANKS[type(value)], 0 if value is None else value


def sessions_in(name: str, max_size: int) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the sessions in the database *name*, numbered from 1, in the order in which they began.

    Read without locking out the agent that writes it. Raises ReadError where *name* is no database
    of a known agent, damaged, lacks a column, or holds a value of more than *max_size* bytes.
    """
    with Database(name, max_size) as database:
        try:
            yield from enumerate(_kind(name, database).read(database), 1)
        except KeyError as error:
            raise ReadError(name, "", f"a table has no column {error}") from error


def count_sessions(name: str) -> int:
    """Return the number of sessions in the database *name*; raises ReadError as `sessions_in`."""
    with Database(name, MAX_RUN_SIZE) as database:
        (counted,) = database.rows(_kind(name, database).counting)
        return int(next(iter(counted.values())))


def _kind(name: str, database: Database) -> "_Kind":
    """The kind of *database*, by its tables."""
    for kind in _KINDS:
        if kind.tables <= database.tables:
            return kind
    names = ", ".join(sorted(database.tables)[:8]) or "none"
    raise ReadError(name, "", f"not the database of a known agent; tables: {names}")


def _opencode(database: Database) -> Iterator[dict[str, Any]]:
    """Sessions of OpenCode 2, then those that only the tables of earlier versions have.

    OpenCode 2 leaves these tables in the file as they were when it took them over.
    """
    folders = {}
    if "project" in database.tables:
        projects = database.rows("SELECT id, worktree FROM project")
        folders = {row["id"]: row["worktree"] for row in projects}
    newer = set[str]()
    if database.tables >= _OPENCODE_2:
        for session in database.rows("SELECT * FROM session_v2", by=("time_created", "id")):
            newer.add(session["id"])
            info = {**session, "worktree": folders.get(session["project_id"])}
            yield {"info": info, "messages": _opencode_2_messages(database, session["id"])}
    if not database.tables >= _OPENCODE_1:
        return
    for session in database.rows("SELECT * FROM session", by=("time_created", "id")):
        if session["id"] in newer:
            continue
        messages = []
        rows = database.rows(
            "SELECT id, time_created, data FROM message WHERE session_id = ?",
            session["id"],
            by=("time_created", "id"),
        )
        for row in rows:
            of_message = "SELECT id, data FROM part WHERE message_id = ?"
            parts = database.rows(of_message, row["id"], by=("id",))
            messages.append({"info": _row(row), "parts": [_row(part) for part in parts]})
        info = {**session, "worktree": folders.get(session.get("project_id"))}
        yield {"info": info, "messages": messages}


def _row(row: Mapping[str, Any]) -> Any:
    """The JSON of a *row*, with its id, which stands in a column of its own alone."""
    data = _json(row["data"])
    return {"id": row["id"], **data} if isinstance(data, dict) else data


def _opencode_2_messages(database: Database, session: str) -> list[dict[str, Any]]:
    rows = database.rows(
        "SELECT id, type, seq, time_created, data FROM session_message WHERE session_id = ?",
        session,
        by=("seq", "id"),
    )
    messages = []
    for row in rows:
        data = _json(row["data"])
        facts = {name: row[name] for name in ("id", "type", "time_created")}
        messages.append({**(data if isinstance(data, dict) else {}), **facts})
    return messages


def _goose(database: Database) -> Iterator[dict[str, Any]]:
    for session in database.rows("SELECT * FROM sessions", by=("created_at", "id")):
        of_session = "SELECT * FROM messages WHERE session_id = ?"
        rows = database.rows(of_session, session["id"], by=("id",))
        messages = [
            {
                "id": row.get("message_id"),
                "role": row.get("role"),
                "created": row.get("created_timestamp"),
                "content": _json(row.get("content_json")),
                "metadata": _json(row.get("metadata_json")),
            }
            for row in rows
        ]
        described = session.get("description") or session.get("name") or ""
        yield {
            "id": session["id"],
            "description": described,
            "working_dir": session.get("working_dir"),
            "session_type": session.get("session_type"),
            "model_config": _json(session.get("model_config_json")),
            "messages": messages,
        }


def _cursor(database: Database) -> Iterator[dict[str, Any]]:
    chosen = "SELECT key FROM cursorDiskKV WHERE key LIKE 'composerData:%'"
    for composer in database.rows(chosen, by=("key",)):
        if not isinstance(composer["key"], str):
            continue
        id_ = composer["key"].partition(":")[2]
        of_key = "SELECT value FROM cursorDiskKV WHERE key = ?"
        facts = next((_json(row["value"]) for row in database.rows(of_key, composer["key"])), None)
        rows = database.rows(
            "SELECT rowid AS row, key, value FROM cursorDiskKV WHERE key >= ? AND key < ?",
            f"bubbleId:{id_}:",
            f"bubbleId:{id_};",
            by=("row",),
        )
        by_id = {row["key"].rpartition(":")[2]: _json(row["value"]) for row in rows}
        if not by_id:
            continue
        listed = facts.get("fullConversationHeadersOnly") if isinstance(facts, dict) else None
        order = [
            header.get("bubbleId") for header in listed or () if isinstance(header, dict)
        ] or list(by_id)
        bubbles = [by_id[bubble] for bubble in order if bubble in by_id]
        yield {
            "composerId": id_,
            "createdAt": facts.get("createdAt") if isinstance(facts, dict) else None,
            "bubbles": [b for b in bubbles if isinstance(b, dict)],
        }


class _Kind(NamedTuple):
    """The tables by which a database is recognised, how its sessions are read and counted."""

    tables: frozenset[str]
    read: Callable[[Database], Iterator[dict[str, Any]]]
    counting: str


_OPENCODE_1 = frozenset({"session", "message", "part"})
_OPENCODE_2 = frozenset({"session_v2", "session_message"})
_KINDS = (
    _Kind(
        _OPENCODE_1 | _OPENCODE_2,
        _opencode,
        "SELECT count(*) FROM (SELECT id FROM session UNION SELECT id FROM session_v2)",
    ),
    _Kind(_OPENCODE_2, _opencode, "SELECT count(*) FROM session_v2"),
    _Kind(_OPENCODE_1, _opencode, "SELECT count(*) FROM session"),
    _Kind(frozenset({"sessions", "messages"}), _goose, "SELECT count(*) FROM sessions"),
    _Kind(
        frozenset({"cursorDiskKV"}),
        _cursor,
        "SELECT count(*) FROM cursorDiskKV WHERE key LIKE 'composerData:%'",
    ),
)


def _json(value: object) -> Any:
    """The value of a JSON *value*; None where a row is empty or damaged, as some are."""
    if not isinstance(value, str | bytes):
        return None
    try:
        return loads(value)
    except ValueError:
        return None
