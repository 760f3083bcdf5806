"""The files of a keyed memory: the log is the truth, index and state follow from it.

``log.jsonl``      the latest call for each live key at the last compaction, and every call since
``index/…``        one file for each live key
``state.jsonl``    the latest envelope of each live key, one a line; blank where one was replaced
``archive/…``      what compactions took out of the log
``position.json``  how much of the log is in index and state: less where a process was killed
"""

import fcntl
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import BinaryIO, cast

import orjson

from contextgraph.codec import decoded, encoded
from contextgraph.errors import MemoryNotFoundError, ReadError, StoreError
from contextgraph.keyed.entry import Envelope
from contextgraph.keyed.keys import index_path
from contextgraph.model import Json

_OFFSET = "state_offset"


@dataclass(frozen=True, slots=True)
class Position:
    """Index and state hold the calls up to *seq*, the first *log_bytes* of the log.

    *compacted_lines* is how many lines the last compaction left.
    """

    seq: int = 0
    ts: datetime | None = None
    log_bytes: int = 0
    log_lines: int = 0
    compacted_lines: int = 0


class KeyedFiles:
    """The files in the folder *root*, for the one who holds its lock: `writing` and `reading`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.log = root / "log.jsonl"
        self.state = root / "state.jsonl"
        self.index = root / "index"
        self.archive = root / "archive"
        self._position = root / "position.json"
        self._new_log = root / "log.jsonl.new"
        self._part = root / "part"

    @contextmanager
    def writing(self, *, create: bool = False) -> Iterator[Position]:
        """Exclude other readers and writers; repair first what a killed process left.

        Raises `StoreError` where the folder cannot be used, and `MemoryNotFoundError` where there
        is none, unless it is to *create* one.
        """
        if not create:
            self.check_exists()
        try:
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
            with _locked(self.root / "lock", fcntl.LOCK_EX):
                yield self._repaired()
        except OSError as error:
            raise StoreError(f"{self.root}: {error.strerror or error}") from error

    def check_exists(self) -> None:
        """Raise `MemoryNotFoundError` where nothing was set yet."""
        if not self.root.exists():
            raise MemoryNotFoundError(
                f"no keyed files at {self.root}; set an entry first: contextgraph set --help"
            )

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Exclude writers. Nothing is created where there is no memory yet."""
        if not self.root.exists():
            yield
            return
        try:
            with _locked(self.root / "lock", fcntl.LOCK_SH):
                if self._is_current(self._read_position()):
                    yield
                    return
        except OSError as error:
            raise StoreError(f"{self.root}: {error.strerror or error}") from error
        with self.writing():
            yield

    def append(self, position: Position, envelope: Envelope) -> Position:
        """Store *envelope*, which follows *position*: durably in the log, then index and state."""
        line = _line(envelope)
        is_new = not self.log.exists()
        _append(self.log, line, sync=True)
        if is_new:
            _sync_folder(self.root)
        if not self._apply(envelope, line):
            return self._rebuild(position)
        return self._write_position(
            Position(
                envelope.seq,
                envelope.ts,
                position.log_bytes + len(line),
                position.log_lines + 1,
                position.compacted_lines,
            )
        )

    def get(self, key: str) -> Envelope | None:
        """The envelope of a live *key*."""
        entry = self._entry(self.index / index_path(key))
        return entry[0] if entry else None

    def live(self) -> list[dict[str, Json]]:
        """The envelopes of all live keys as objects of JSON, in no order."""
        if not self.state.exists():
            return []
        lines = self.state.read_bytes().split(b"\n")
        envelopes: list[dict[str, Json]] = orjson.loads(
            b"[%b]" % b",".join([line for line in lines if line[:1] == b"{"])
        )
        return envelopes

    def logged_live(self) -> list[Envelope]:
        """The envelopes of all live keys by the log, the latest last."""
        latest: dict[str, Envelope] = {}
        for envelope in _envelopes(self.log):
            latest.pop(envelope.key, None)
            latest[envelope.key] = envelope
        return [envelope for envelope in latest.values() if envelope.valid]

    def compact(self, position: Position, live: Sequence[Envelope], now: datetime) -> Position:
        """Let the log hold only *live*, and archive what it held if that was more."""
        if len(live) < position.log_lines:
            self.archive.mkdir(exist_ok=True)
            self._replace(self._new_log, b"".join(map(_line, live)), sync=True)
            self.log.rename(self.archive / f"log_{now:%Y%m%dT%H%M%S%f}_{position.seq}.jsonl")
            self._new_log.rename(self.log)
            _sync_folder(self.root)
        return self._rebuild(position, compacted=True)

    def erase(self, position: Position, key: str) -> int:
        """Remove *key* from all files, the archive too; returns how many envelopes it had."""
        removed = 0
        for log in (*self.archive.glob("*.jsonl"), self.log):
            envelopes = [*_envelopes(log)]
            others = [envelope for envelope in envelopes if envelope.key != key]
            if len(others) < len(envelopes):
                removed += len(envelopes) - len(others)
                self._replace(log, b"".join(map(_line, others)), sync=True)
        self._rebuild(position)
        return removed

    def differences(self) -> list[str]:
        """Where index and state differ from the log, in words; empty where they agree."""
        live = self.logged_live()
        expected = {self.index / index_path(envelope.key): envelope for envelope in live}
        wrong = [] if _same(self.live(), map(_record, live)) else [self.state]
        for path in {*expected, *self.index.rglob("*.json")}:
            entry = self._entry(path)
            if entry is None or entry[0] != expected.get(path):
                wrong.append(path)
        return sorted(
            f"{path.relative_to(self.root)} differs from {self.log.name}" for path in wrong
        )

    def _repaired(self) -> Position:
        if self._new_log.exists() and not self.log.exists():
            self._new_log.rename(self.log)  # killed between the two steps of a compaction
        position = self._read_position()
        if position and self._is_current(position):
            return position
        if self.log.exists():
            # What ends without a line end was never acknowledged.
            os.truncate(self.log, self.log.read_bytes().rfind(b"\n") + 1)
        return self._rebuild(position or Position())

    def _is_current(self, position: Position | None) -> bool:
        size = self.log.stat().st_size if self.log.exists() else 0
        return position is not None and position.log_bytes == size

    def _rebuild(self, before: Position, *, compacted: bool = False) -> Position:
        """Write index and state again from the log; numbers and times go on after *before*."""
        offset, state, entries = 0, [], {}
        for envelope in self.logged_live():
            entries[self.index / index_path(envelope.key)] = _entry_text(envelope, offset)
            state.append(_line(envelope))
            offset += len(state[-1])
        self._replace(self.state, b"".join(state))
        for path in [*self.index.rglob("*.json")]:
            if path not in entries:
                self._remove(path)
        for path, text in entries.items():
            if not path.exists() or path.read_bytes() != text:
                self._replace(path, text)
        return self._write_position(self._end_of_log(before, compacted))

    def _end_of_log(self, before: Position, compacted: bool) -> Position:
        seq, ts, lines = before.seq, before.ts, 0
        for envelope in _envelopes(self.log):
            lines += 1
            seq, ts = max(seq, envelope.seq), max(ts or envelope.ts, envelope.ts)
        archived = [int(path.stem.rpartition("_")[2]) for path in self.archive.glob("log_*.jsonl")]
        size = self.log.stat().st_size if self.log.exists() else 0
        compacted_count = lines if compacted else before.compacted_lines
        return Position(max((seq, *archived)), ts, size, lines, compacted_count)

    def _apply(self, envelope: Envelope, line: bytes) -> bool:
        """Bring index and state up to date with the last *line* of the log.

        False where another program changed them, so that they have to be written again.
        """
        path = self.index / index_path(envelope.key)
        before = self._entry(path)
        if path.exists() and not (before and self._blank(*before)):
            return False
        if envelope.valid:
            self._replace(path, _entry_text(envelope, _append(self.state, line)))
        elif before:
            self._remove(path)
        return True

    def _blank(self, envelope: Envelope, offset: int) -> bool:
        """Overwrite the line of *envelope* in the state with spaces, if it is there."""
        line = _line(envelope)
        if not self.state.exists():
            return False
        with self.state.open("r+b") as file:
            if os.pread(file.fileno(), len(line), offset) != line:
                return False
            os.pwrite(file.fileno(), b" " * (len(line) - 1), offset)
        return True

    def _entry(self, path: Path) -> tuple[Envelope, int] | None:
        """The envelope in a file of the index, and the offset of its line in the state."""
        try:
            record = orjson.loads(path.read_bytes())
            return decoded(Envelope, record), int(record[_OFFSET])
        except (FileNotFoundError, orjson.JSONDecodeError, ReadError, KeyError, ValueError):
            return None

    def _replace(self, path: Path, content: bytes, *, sync: bool = False) -> None:
        """Write the file *path* such that readers see the old or the new content."""
        path.parent.mkdir(parents=True, exist_ok=True)
        with self._part.open("wb") as file:
            file.write(content)
            if sync:
                _sync(file)
        self._part.rename(path)

    def _remove(self, path: Path) -> None:
        """Remove the file of a key, and the folders that are empty then."""
        path.unlink()
        for folder in path.parents:
            if folder == self.index or any(folder.iterdir()):
                break
            folder.rmdir()

    def _read_position(self) -> Position | None:
        try:
            return decoded(Position, orjson.loads(self._position.read_bytes()))
        except (FileNotFoundError, orjson.JSONDecodeError, ReadError):
            return None  # a machine that lost power may leave an empty file

    def _write_position(self, position: Position) -> Position:
        self._replace(self._position, orjson.dumps(encoded(position, complete=True)))
        return position


@contextmanager
def _locked(path: Path, operation: int) -> Iterator[None]:
    with path.open("rb" if path.exists() else "ab") as file:
        fcntl.flock(file, operation)
        yield


def _same(first: Iterable[dict[str, Json]], second: Iterable[dict[str, Json]]) -> bool:
    """Whether both hold the same envelopes, in any order."""
    return sorted(map(orjson.dumps, first)) == sorted(map(orjson.dumps, second))


def _record(envelope: Envelope) -> dict[str, Json]:
    return cast("dict[str, Json]", encoded(envelope, complete=True))


def _line(envelope: Envelope) -> bytes:
    return orjson.dumps(_record(envelope)) + b"\n"


def _entry_text(envelope: Envelope, offset: int) -> bytes:
    return orjson.dumps({**_record(envelope), _OFFSET: offset}) + b"\n"


def _envelopes(log: Path) -> Iterator[Envelope]:
    """The envelopes of *log* in order; raises `StoreError` for a line that is none."""
    if not log.exists():
        return
    with log.open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                yield decoded(Envelope, orjson.loads(line))
            except (orjson.JSONDecodeError, ReadError) as error:
                raise StoreError(f"{log}: line {number}: {error}; repair or remove it") from error


def _append(path: Path, content: bytes, *, sync: bool = False) -> int:
    """Append *content* to the file *path*; returns where it begins."""
    with path.open("ab") as file:
        start = file.tell()
        file.write(content)
        if sync:
            _sync(file)
    return start


def _sync(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


def _sync_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
