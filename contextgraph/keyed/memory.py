"""`set_memory`: entries under keys, on plain files that agents read with ls, grep and jq."""

import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from contextgraph.keyed.briefing import Briefing, brief
from contextgraph.keyed.entry import Envelope, checked_content, checked_source, is_expired
from contextgraph.keyed.files import KeyedFiles, Position
from contextgraph.keyed.keys import index_path, normalised_key

MAX_LOG_LINES = 100_000
BRIEF_TOKENS = 800

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SetReceipt:
    """What `set_memory` did: *status* is ``set``, ``removed`` or ``isolated``.

    *path* is the file of the entry, None where it was removed.
    """

    key: str
    seq: int
    status: Literal["set", "removed", "isolated"]
    path: Path | None


@dataclass(frozen=True, slots=True)
class CompactionReport:
    """How many lines the log had and has, how many live keys there are, how many had expired."""

    lines_before: int
    lines_after: int
    keys: int
    expired: int


class KeyedMemory:
    """Entries under keys in the folder *root*; processes and threads may share it.

    The log is the truth: a call is in it, durably, before `set_memory` returns. Log and state are
    compacted when the log has *max_log_lines*, and has doubled since the last time.
    """

    def __init__(
        self,
        root: Path,
        *,
        max_log_lines: int = MAX_LOG_LINES,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._files = KeyedFiles(root)
        self._max_log_lines = max_log_lines
        self._now = clock

    @property
    def root(self) -> Path:
        """The folder with the files; it exists once something was set."""
        return self._files.root

    def check_exists(self) -> None:
        """Raise `MemoryNotFoundError` where nothing was set yet; `brief` is empty then."""
        self._files.check_exists()

    def set_memory(
        self,
        key: str,
        json_content: object,
        source: object,
        *,
        untrusted: Literal["refuse", "isolate"] = "refuse",
    ) -> SetReceipt:
        """Store *json_content* under *key*, in place of what was there; None removes the key.

        *source* is a name or an object with ``kind``, ``name``, ``retrieved_at`` and ``locator``;
        all four are needed for what comes from the web, a tool or a file, and below ``/kb/``. What
        lacks them is refused, or stored below ``/untrusted``, which no brief shows. Secrets are
        masked. Raises `InvalidEntryError`, and `StoreError` where nothing could be stored.
        """
        normalised = normalised_key(key)
        content = checked_content(json_content)
        target, origin = checked_source(normalised, source, untrusted)
        valid = content is not None
        with self._files.writing(create=True) as position:
            now = max(self._now(), position.ts) if position.ts else self._now()
            envelope = Envelope(target, position.seq + 1, now, valid, origin, content)
            after = self._files.append(position, envelope)
            if after.log_lines >= max(self._max_log_lines, 2 * after.compacted_lines):
                self._compact(after, now)
        _log.info("set_memory %s %s valid=%s source=%s", target, now.isoformat(), valid, origin)
        status: Literal["set", "removed", "isolated"] = "set" if valid else "removed"
        return SetReceipt(
            target,
            envelope.seq,
            "isolated" if target != normalised else status,
            self._files.index / index_path(target) if valid else None,
        )

    def get(self, key: str) -> Envelope | None:
        """The latest entry of *key*, None where it was removed or never set."""
        with self._files.reading():
            return self._files.get(normalised_key(key))

    def keys(self, prefix: str = "/") -> list[str]:
        """The live keys that start with *prefix*, sorted."""
        with self._files.reading():
            keys = [str(envelope["key"]) for envelope in self._files.live()]
        return sorted(key for key in keys if key.startswith(prefix))

    def brief(
        self,
        token_limit: int = BRIEF_TOKENS,
        tags: Collection[str] = (),
        now: datetime | None = None,
        *,
        newest_first: bool = False,
    ) -> Briefing:
        """The entries to start a prompt with, best first, within *token_limit*.

        Expired entries (``expired_at`` before *now*) and those below ``/untrusted`` are left out.
        With *newest_first* only ties go by importance and matching *tags*.
        """
        with self._files.reading():
            records = self._files.live()
        now = now or self._now()
        briefing = brief(records, token_limit, tags, now, newest_first=newest_first)
        _log.info("brief of %d keys, %d left out", len(briefing.keys), briefing.omitted)
        return briefing

    def compact(self) -> CompactionReport:
        """Shorten the log to the live entries, archive the rest, and repair index and state.

        Expired entries are removed. The archive keeps every call until `forget`. Raises
        `MemoryNotFoundError` where nothing was set yet, as `forget` does.
        """
        with self._files.writing() as position:
            return self._compact(position, self._now())

    def forget(self, key: str) -> int:
        """Erase every trace of *key*, also in the archive; returns how many calls had set it."""
        with self._files.writing() as position:
            return self._files.erase(position, normalised_key(key))

    def check(self) -> list[str]:
        """Where index and state differ from the log, a line each; `compact` repairs it."""
        with self._files.reading():
            return self._files.differences()

    def _compact(self, position: Position, now: datetime) -> CompactionReport:
        live = self._files.logged_live()
        current = [envelope for envelope in live if not is_expired(envelope.content, now)]
        after = self._files.compact(position, current, now)
        report = CompactionReport(
            position.log_lines, after.log_lines, len(current), len(live) - len(current)
        )
        _log.info("compacted: %s", report)
        return report
