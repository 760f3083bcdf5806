"""Keys and the files of their entries: readable, safe, and different for different keys."""

import logging
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import chain
from math import isfinite
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Literal, cast
from unicodedata import normalize

import orjson
from msgspec import Struct

from contextgraph.errors import InvalidEntryError, MemoryNotFoundError, ReadError, StoreError
from contextgraph.knowledge.forgetting import age_weight
from contextgraph.model import NEVER, Envelope, Json, Time
from contextgraph.model.codec import COMPLETE, decoded, encoded, from_bytes
from contextgraph.model.values import checked, replace
from contextgraph.system.processes import append, locked, private
from contextgraph.text import (
    clip,
    count_tokens,
    digest,
    fence,
    gives_instructions,
    iso_time,
    mask_after,
    mask_secrets,
    mixes_alphabets,
    neutral,
    regex,
    visible,
    without_private,
)

MAX_KEY_BYTES = 1_024
# File systems allow 255 bytes; the hash and the suffix need some of them.
_MAX_NAME_BYTES = 120
# Control characters, line ends, and halves of surrogate pairs, which no file name can hold.
_AGENT = "agent:"  # before the name of a source that is no person
_FORBIDDEN = regex("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_UNSAFE = regex(r"\A\.|[^\w.,+=-]")


def normalised_key(key: str) -> str:
    """Return *key* as it is stored: NFC, single slashes, none at the end, secrets masked.

    Raises `InvalidEntryError` for a key that does not start with ``/``, that is empty or too long,
    or that has a ``.`` or ``..`` segment, control characters or those that cannot be seen.
    """
    if not key.startswith("/"):
        raise InvalidEntryError(f"key {key!r} must start with /, as in /user/preference/style")
    if _FORBIDDEN.search(key) or visible(key) != key:
        raise InvalidEntryError(f"key {key!a} has control characters, a line end or hidden ones")
    # First as a whole: some secrets have a slash.
    whole = mask_secrets(normalize("NFC", key))
    segments = [mask_secrets(segment) for segment in whole.split("/") if segment]
    if not segments:
        raise InvalidEntryError(f"key {key!r} names nothing")
    if {".", ".."} & {*segments}:
        raise InvalidEntryError(f"key {key!r} has a . or .. segment")
    normalised = "/" + "/".join(segments)
    if (size := len(normalised.encode())) > MAX_KEY_BYTES:
        raise InvalidEntryError(f"a key has at most {MAX_KEY_BYTES:,} bytes, not {size:,}")
    return normalised


def index_path(key: str) -> PurePosixPath:
    """Return the path of the entry of a normalised *key*, below the index.

    The folders and the name are the segments, percent-encoded where a file name could not hold
    them; a hash of the key keeps the file of ``/a`` apart from the folder of ``/a/b``.
    """
    *folders, name = map(_file_name, key.split("/")[1:])
    return PurePosixPath(*folders, f"{name}@{digest(key, 6)}.json")


def _file_name(segment: str) -> str:
    encoded = _UNSAFE.sub(_percent_encoded, segment)
    if len(encoded.encode()) <= _MAX_NAME_BYTES:
        return encoded
    head = encoded.encode()[: _MAX_NAME_BYTES - 20].decode(errors="ignore")
    whole = re.sub(r"%.?\Z", "", head)
    return f"{whole}~{digest(segment, 6)}"


def _percent_encoded(match: "re.Match[str]") -> str:
    return "".join(f"%{byte:02X}" for byte in match[0].encode())


MAX_CONTENT = 64 * 1024
UNTRUSTED = "/untrusted"
_KNOWLEDGE = "/kb/"
_KINDS = ("user", "tool", "web", "file", "system", "agent")
EXTERNAL = frozenset({"tool", "web", "file"})
_LOCATOR = "locator (URL, path, query, event id or content hash)"


def time_of(value: object) -> datetime | None:
    """Return the ISO 8601 time in *value*, in UTC without a zone; None without one."""
    try:
        return iso_time(value) if isinstance(value, str) else None
    except ValueError:
        return None


def is_expired(content: Json, now: datetime) -> bool:
    """Return True if the *expired_at* of *content* is before *now*; no other field matters."""
    if not isinstance(content, dict) or "expired_at" not in content:
        return False
    expires = time_of(content["expired_at"])
    return expires is not None and expires < now


def checked_content(content: object) -> Json:
    """Return *content*, secrets masked; raises `InvalidEntryError` unless it is short JSON."""
    try:
        masked = _masked(content)
        size = len(orjson.dumps(masked))
    except (TypeError, UnicodeEncodeError, RecursionError) as error:
        raise InvalidEntryError(f"content is not JSON: {error}") from error
    if size > MAX_CONTENT:
        raise InvalidEntryError(f"content has {size:,} bytes; at most {MAX_CONTENT:,} are stored")
    return masked


def checked_source(
    key: str, source: object, untrusted: Literal["refuse", "isolate"]
) -> tuple[str, Json]:
    """Return the key to write to, and *source* with secrets masked.

    What comes from the web, a tool or a file, or goes below ``/kb/``, needs its provenance. Without
    it, it is refused, or else isolated below ``/untrusted``, which no brief shows. Raises
    `InvalidEntryError`.
    """
    if not isinstance(source, str | Mapping) or not source:
        raise InvalidEntryError("source must be a name, such as user, or an object with its kind")
    fields = source if isinstance(source, Mapping) else {"kind": source.strip().lower()}
    kind = fields.get("kind")
    if isinstance(source, Mapping) and kind not in _KINDS:
        raise InvalidEntryError(f"source.kind is {kind!r}; it must be one of {', '.join(_KINDS)}")
    masked = checked_content(source)
    needs_provenance = kind in EXTERNAL or key.startswith(_KNOWLEDGE)
    missing = _missing_provenance(fields) if needs_provenance else ""
    if not missing or key.startswith(f"{UNTRUSTED}/"):
        return key, masked
    if untrusted == "isolate":
        return UNTRUSTED + key, masked
    raise InvalidEntryError(f"source of {key} needs {missing}")


def _writer(source: Json) -> Json:
    """Return who wrote an entry of *source*, which may say where that was read as well."""
    return source.get("by", source) if isinstance(source, Mapping) else source


def is_by(entry: Envelope, sources: Collection[str]) -> bool:
    """Return whether an agent of one of *sources* has set *entry*."""
    return _writer(entry.source) in [f"{_AGENT}{source}" for source in sources]


def _folded(key: str) -> str:
    """Return *key* as a reader sees it: without differences of case, width or blanks."""
    return "".join(normalize("NFKC", key).casefold().split())


def _missing_provenance(source: Mapping[str, object]) -> str:
    """The first field that *source* lacks to be traced back; empty where it has all."""
    if source.get("kind") not in _KINDS:
        return f"kind ({', '.join(_KINDS)})"
    if not source.get("name"):
        return "name (of the tool, site, file or conversation)"
    if time_of(source.get("retrieved_at")) is None:
        return "retrieved_at (ISO 8601)"
    return "" if source.get("locator") else _LOCATOR


def _masked(value: object, name: str = "") -> Json:
    """*value* without private words and secrets, also those that only its field's *name* shows."""
    if isinstance(value, str):
        value = without_private(value)
        return mask_after(f'"{name}": "', value) if name else mask_secrets(value)
    if isinstance(value, Mapping):
        return {_field_name(key): _masked(field, _field_name(key)) for key, field in value.items()}
    if isinstance(value, list | tuple):
        return [_masked(member, name) for member in value]
    if isinstance(value, float) and not isfinite(value):
        raise TypeError(f"{value} is not a number of JSON")
    if value is None or isinstance(value, bool | int | float):
        return value
    raise TypeError(f"a {type(value).__name__} has no JSON form")


def _field_name(name: object) -> str:
    if not isinstance(name, str):
        raise TypeError(f"the name of a field must be a string, not {name!r}")
    return mask_secrets(name)


_OFFSET = "state_offset"
# Nanoseconds by which the time of a file may be behind the clock of who asks.
_CLOCK = 1_000_000_000
# The source of what a person changed in a file.
_BY_HAND: Json = {"kind": "user", "name": "edit by hand"}


class Position(Struct, frozen=True):
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
        self.damaged = root / "log.damaged"
        self._forgotten = root / "forgotten.jsonl"

    @contextmanager
    def writing(self, *, create: bool = False, adopt: bool = False) -> Iterator[Position]:
        """Exclude other readers and writers; repair first what a killed process left.

        With *adopt*, what a person changed in the index is logged first.

        Raises `StoreError` where the folder cannot be used, and `MemoryNotFoundError` where there
        is none, unless it is to *create* one.
        """
        if not create:
            self.check_exists()
        try:
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
            with locked(self.root / "lock"):
                position = self._repaired()
                if adopt and self._was_edited():
                    position = self._rebuild(self._adopted(position, self._entries()))
                yield position
        except OSError as error:
            raise StoreError(f"{self.root}: {error.strerror or error}") from error

    def check_exists(self) -> None:
        """Raise `MemoryNotFoundError` where nothing was set yet."""
        if not self.root.exists():
            raise MemoryNotFoundError(
                f"no keyed files at {self.root}; set an entry first: contextgraph call set"
            )

    @contextmanager
    def reading(self, *, adopt: bool = False) -> Iterator[None]:
        """Exclude writers; *adopt* as `writing`. Nothing is created where there is no memory."""
        if not self.root.exists():
            yield
            return
        try:
            with locked(self.root / "lock", shared=True):
                is_current = self._is_current(self._read_position())
                if is_current and not (adopt and self._was_edited()):
                    yield
                    return
        except OSError as error:
            raise StoreError(f"{self.root}: {error.strerror or error}") from error
        with self.writing(adopt=adopt):
            yield

    def append(self, position: Position, envelope: Envelope) -> Position:
        """Store *envelope*, which follows *position*: durably in the log, then index and state."""
        path = self.index / index_path(envelope.key)
        entry = self._entry(path)
        if path.exists() and not (entry and self._is_in_state(*entry)):
            position = self._adopted(position, [path])
            envelope = replace(envelope, seq=position.seq + 1)
        line = _line(envelope)
        is_new = not self.log.exists()
        append(self.log, line, sync=True)
        if is_new:
            _sync_folder(self.root)
        if not self._apply(envelope, line):
            return self._rebuild(position)
        return self._write_position(
            Position(
                envelope.seq,
                max(envelope.ts, position.ts or envelope.ts),
                position.log_bytes + len(line),
                position.log_lines + 1,
                position.compacted_lines,
            ),
            self._asked_at(),
        )

    def get(self, key: str) -> Envelope | None:
        """Return the envelope of a live *key*."""
        entry = self._entry(self.index / index_path(key))
        return entry[0] if entry else None

    def live(self) -> list[dict[str, Json]]:
        """Return the envelopes of all live keys as JSON objects, in no order."""
        if not self.state.exists():
            return []
        lines = self.state.read_bytes().split(b"\n")
        envelopes: list[dict[str, Json]] = orjson.loads(
            b"[%b]" % b",".join([line for line in lines if line[:1] == b"{"])
        )
        return envelopes

    def logged_live(self) -> list[Envelope]:
        """Return the envelopes of all live keys by the log, the latest last."""
        latest: dict[str, Envelope] = {}
        for envelope in _envelopes(self.log):
            latest.pop(envelope.key, None)
            latest[envelope.key] = envelope
        return [envelope for envelope in latest.values() if envelope.valid]

    def _was_edited(self) -> bool:
        """Return whether a person changed a file of the index since the last call.

        A writer looks at no file but that of its key, so that it costs the same with any number.
        """
        if not self._position.exists():
            return False
        begun, asked = time.time_ns() - _CLOCK, self._asked_at()
        changed = (path for path in self._entries() if path.stat().st_mtime_ns >= asked)
        entries = map(self._entry, changed)
        if not all(entry and self._is_in_state(*entry) for entry in entries):
            return True
        with suppress(OSError):  # who may only read asks again
            os.utime(self._position, ns=(begun, begun))
        return False

    def _asked_at(self) -> int:
        """Time of the last look at all files of the index, in nanoseconds."""
        return self._position.stat().st_mtime_ns if self._position.exists() else 0

    def _entries(self) -> list[Path]:
        return [*self.index.rglob("*.json")]

    def _adopted(self, position: Position, paths: Sequence[Path]) -> Position:
        """Log what a person changed in *paths* of the index as calls of the user.

        What cannot be read, or names no key, is kept beside it as `.orig`. A file of an earlier
        call is not a change: it is what a killed process left.
        """
        latest = {envelope.key: envelope for envelope in _envelopes(self.log)}
        archived = (_envelopes(log) for log in self.archive.glob("*.jsonl"))
        old = [*chain.from_iterable(archived)] if len(paths) > 1 else []
        for path in paths:
            if not path.exists():
                continue
            edited = self._edited(path)
            known = latest.get(edited.key) if edited else None
            if edited and (edited.seq < known.seq or edited == known if known else edited in old):
                continue
            if edited is None or path != self.index / index_path(edited.key):
                path.rename(path.with_name(f"{path.name}.orig"))
                _log.warning("%s: not an entry; kept as %s.orig", path, path.name)
                continue
            ts = max(edited.ts, position.ts or edited.ts)
            call = replace(edited, seq=position.seq + 1, ts=ts, valid=True, source=_BY_HAND)
            line = _line(call)
            append(self.log, line, sync=True)
            _log.warning("%s: an edit by hand was adopted", path)
            position = replace(
                position,
                seq=call.seq,
                ts=ts,
                log_bytes=position.log_bytes + len(line),
                log_lines=position.log_lines + 1,
            )
            self._replace(path, _entry_text(call, 0))
        return position

    def _edited(self, path: Path) -> Envelope | None:
        """The entry in a file of the index, checked as what is set; None for no entry."""
        try:
            envelope = from_bytes(Envelope, path.read_bytes())
            key = normalised_key(envelope.key)
            return replace(envelope, key=key, content=checked_content(envelope.content))
        except (ReadError, InvalidEntryError):
            return None

    def _set_aside(self) -> None:
        """Move lines of the log that are no calls to the file `log.damaged`."""
        if not self.log.exists():
            return
        lines = self.log.read_bytes().splitlines(keepends=True)
        calls = [line for line in lines if _is_call(line)]
        if len(calls) < len(lines):
            damaged = [line for line in lines if not _is_call(line)]
            append(self.damaged, b"".join(damaged), sync=True)
            self._replace(self.log, b"".join(calls), sync=True)
            _log.warning("%s: %d lines set aside in %s", self.log, len(damaged), self.damaged)

    def compact(self, position: Position, live: Sequence[Envelope], now: datetime) -> Position:
        """Reduce the log to *live*; archive its former content if that was more."""
        if len(live) < position.log_lines:
            self.archive.mkdir(mode=0o700, exist_ok=True)
            self._replace(self._new_log, b"".join(map(_line, live)), sync=True)
            self.log.rename(self.archive / f"log_{now:%Y%m%dT%H%M%S%f}_{position.seq}.jsonl")
            self._new_log.rename(self.log)
            _sync_folder(self.root)
        return self._rebuild(position, compacted=True)

    def erase(self, position: Position, keys: Collection[str], now: datetime) -> int:
        """Remove *keys* from all files, the archive too; returns how many envelopes they had.

        That they were forgotten *now* is kept by their digests.
        """
        removed = 0
        times = self.forgotten() | dict.fromkeys(map(digest, sorted(keys)), now)
        records = [orjson.dumps([name, at.isoformat()]) + b"\n" for name, at in times.items()]
        self._replace(self._forgotten, b"".join(records), sync=True)
        for log in (*self.archive.glob("*.jsonl"), self.log):
            envelopes = [*_envelopes(log)]
            others = [envelope for envelope in envelopes if envelope.key not in keys]
            if len(others) < len(envelopes):
                removed += len(envelopes) - len(others)
                self._replace(log, b"".join(map(_line, others)), sync=True)
        names = [orjson.dumps(key) for key in keys]
        if self.damaged.exists():
            lines = self.damaged.read_bytes().splitlines(keepends=True)
            others_there = [line for line in lines if not any(name in line for name in names)]
            self._replace(self.damaged, b"".join(others_there), sync=True)
        for path in [*self.index.rglob("*.orig")]:
            if any(name in path.read_bytes() for name in names):
                path.unlink()
        self._rebuild(position, adopt=False)
        return removed

    def forgotten(self) -> dict[str, datetime]:
        """Return when keys were forgotten last, by their digests; a damaged line is left out."""
        times = dict[str, datetime]()
        for line in self._forgotten.read_bytes().splitlines() if self._forgotten.exists() else ():
            with suppress(ValueError):
                name, at = orjson.loads(line)
                times[name] = datetime.fromisoformat(at)
        return times

    def set_by(self, sources: Collection[str]) -> set[str]:
        """Return the keys that agents of *sources* have ever set."""
        return {envelope.key for envelope in self.calls() if is_by(envelope, sources)}

    def calls(self) -> Iterator[Envelope]:
        """Yield the calls of the log and of its archive, not in their order."""
        logs = (self.log, *self.archive.glob("*.jsonl"))
        return chain.from_iterable(map(_envelopes, logs))

    def differences(self) -> list[str]:
        """Return differences of index and state from the log, in words; empty if they agree."""
        live = self.logged_live()
        expected = {self.index / index_path(envelope.key): envelope for envelope in live}
        wrong = [] if _same(self.live(), map(_record, live)) else [self.state]
        for path in {*expected, *self.index.rglob("*.json")}:
            entry = self._entry(path)
            if entry is None or entry[0] != expected.get(path):
                wrong.append(path)
        set_aside = [f"{self.damaged.name} has lines of the log that were no calls"]
        return sorted(
            [f"{path.relative_to(self.root)} differs from {self.log.name}" for path in wrong]
            + (set_aside if self.damaged.exists() else [])
            + [f"{path.relative_to(self.root)} is no entry" for path in self.index.rglob("*.orig")]
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

    def _rebuild(
        self, before: Position, *, compacted: bool = False, adopt: bool = True
    ) -> Position:
        """Write index and state again from the log; numbers and times go on after *before*."""
        self._set_aside()
        asked_at = self._asked_at()
        if adopt:
            asked_at = time.time_ns() - _CLOCK
            before = self._adopted(before, self._entries())
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
        return self._write_position(self._end_of_log(before, compacted), asked_at)

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
            self._replace(path, _entry_text(envelope, append(self.state, line)))
        elif before:
            self._remove(path)
        return True

    def _is_in_state(self, envelope: Envelope, offset: int) -> bool:
        """Return True if the line of *envelope* is in the state, so nobody changed its file."""
        line = _line(envelope)
        if not self.state.exists():
            return False
        with self.state.open("rb") as file:
            return os.pread(file.fileno(), len(line), offset) == line

    def _blank(self, envelope: Envelope, offset: int) -> bool:
        """Overwrite the line of *envelope* in the state with spaces, if it is there."""
        if not self._is_in_state(envelope, offset):
            return False
        with self.state.open("r+b") as file:
            os.pwrite(file.fileno(), b" " * (len(_line(envelope)) - 1), offset)
        return True

    def _entry(self, path: Path) -> tuple[Envelope, int] | None:
        """The envelope in a file of the index, and the offset of its line in the state."""
        try:
            record = orjson.loads(path.read_bytes())
            return decoded(Envelope, record), int(record[_OFFSET])
        except (FileNotFoundError, orjson.JSONDecodeError, ReadError, KeyError, ValueError):
            return None

    def _replace(
        self, path: Path, content: bytes, *, sync: bool = False, modified: int | None = None
    ) -> None:
        """Write the file *path* such that readers see the old or the new content.

        *modified* is its time, by default now.
        """
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(self._part, "wb", opener=private) as file:
            file.write(content)
            if sync:
                _sync(file)
        if modified is not None:
            os.utime(self._part, ns=(modified, modified))
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
            return from_bytes(Position, self._position.read_bytes())
        except (FileNotFoundError, ReadError):
            return None  # a machine that lost power may leave an empty file

    def _write_position(self, position: Position, asked_at: int) -> Position:
        content = orjson.dumps(encoded(position, COMPLETE))
        self._replace(self._position, content, modified=asked_at)
        return position


def _same(first: Iterable[dict[str, Json]], second: Iterable[dict[str, Json]]) -> bool:
    """Return True if both hold the same envelopes, in any order."""
    return sorted(map(orjson.dumps, first)) == sorted(map(orjson.dumps, second))


def _record(envelope: Envelope) -> dict[str, Json]:
    return cast("dict[str, Json]", encoded(envelope, COMPLETE))


def _line(envelope: Envelope) -> bytes:
    return orjson.dumps(_record(envelope)) + b"\n"


def _entry_text(envelope: Envelope, offset: int) -> bytes:
    return orjson.dumps({**_record(envelope), _OFFSET: offset}) + b"\n"


def _envelopes(log: Path) -> Iterator[Envelope]:
    """The envelopes of *log* in order, without lines that are none."""
    if not log.exists():
        return
    with log.open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                yield from_bytes(Envelope, line)
            except ReadError as error:
                _log.warning("%s: line %d: %s", log, number, error)


def _is_call(line: bytes) -> bool:
    try:
        from_bytes(Envelope, line)
    except ReadError:
        return False
    return True


def _sync(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


def _sync_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


HEADER, _FENCE = "[Agent Memory]", "keyed"
_UNTRUSTED = f"{UNTRUSTED}/"
_SUMMARY_CHARS = 200
_MOST_IMPORTANT, _DEFAULT_IMPORTANCE = 10.0, 5.0
_HALF_LIFE = timedelta(days=7)


class Briefing(Struct, frozen=True):
    """The *text* for a prompt, and its *keys*, best first.

    *omitted* counts current entries that did not fit.
    """

    text: str
    keys: tuple[str, ...]
    omitted: int


def brief(
    records: Sequence[Mapping[str, Json]],
    token_limit: int,
    tags: Collection[str],
    now: datetime,
    *,
    newest_first: bool,
) -> Briefing:
    """Return the best of *records*, envelopes as JSON objects, within *token_limit*.

    Recency, importance and matching tags count equally. With *newest_first* the latest entry comes
    first; ties go by importance, then tags. Of several writers each has as many as the others.
    """
    wanted = frozenset(tag.casefold() for tag in tags)
    current = [record for record in records if _is_shown(record, now)]
    rank = partial(_rank, wanted=wanted, now=now, newest_first=newest_first)
    turns = Counter[str]()
    by_turn = list[tuple[int, Mapping[str, Json]]]()
    for record in sorted(current, key=rank, reverse=True):
        writer = _of_agent(record)
        by_turn.append((turns[writer], record))
        turns[writer] += 1
    ranked = [record for _, record in sorted(by_turn, key=lambda one: one[0])]
    lines, left = [], token_limit - count_tokens(HEADER)
    for record in ranked:
        line = f"\n{_brief_line(record)}"
        left -= count_tokens(line)
        if left < 0:
            break
        lines.append(line)
    keys = tuple(str(record["key"]) for record in ranked[: len(lines)])
    return Briefing(HEADER + "".join(lines) if keys else "", keys, len(ranked) - len(keys))


def _is_shown(record: Mapping[str, Json], now: datetime) -> bool:
    key = cast(str, record["key"])
    return not key.startswith(_UNTRUSTED) and not is_expired(record["content"], now)


def _rank(
    record: Mapping[str, Json], wanted: frozenset[str], now: datetime, *, newest_first: bool
) -> tuple[float, ...]:
    """Sort key of *record*, highest first; later calls win ties."""
    age = now - datetime.fromisoformat(cast(str, record["ts"]))
    content, seq = record["content"], cast(int, record["seq"])
    fields = content if isinstance(content, dict) else {}
    importance = _importance(fields.get("importance")) / _MOST_IMPORTANT
    tags = _tag_overlap(fields.get("tags"), wanted) if wanted else 0.0
    if newest_first:
        return -age.total_seconds(), importance, tags, seq
    return age_weight(age, _HALF_LIFE) + importance + tags, seq


def _importance(value: Json) -> float:
    """An importance of 0 to 10; 5 where *value* is not a number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return _DEFAULT_IMPORTANCE
    return min(_MOST_IMPORTANT, max(0.0, float(value)))


def _tag_overlap(value: Json, wanted: frozenset[str]) -> float:
    """The share of the *wanted* tags, which are in lower case, that *value* has."""
    if not isinstance(value, list):
        return 0.0
    own = {tag.casefold() for tag in value if isinstance(tag, str)}
    return len(own & wanted) / len(wanted)


def _brief_line(record: Mapping[str, Json]) -> str:
    content = record["content"]
    kind = content.get("type") if isinstance(content, dict) else None
    of_agent = f"[{writer}]" if (writer := _of_agent(record)) else ""
    parts = (str(record["key"]), kind if isinstance(kind, str) else "", _summary(content), of_agent)
    return "- " + " ".join(" ".join(neutral(part).split()) for part in parts if part)


def _of_agent(record: Mapping[str, Json]) -> str:
    """Return the agent that wrote *record*; empty for the owner."""
    writer = _writer(record["source"])
    return writer if isinstance(writer, str) and writer.startswith(_AGENT) else ""


def _summary(content: Json) -> str:
    """Return *content* in a line: its summary, else its text, else its JSON."""
    fields = content if isinstance(content, dict) else {"text": content}
    named = (fields.get("summary"), fields.get("text"))
    written = (text for text in named if isinstance(text, str) and text.strip())
    text = next(written, "") or orjson.dumps(content).decode()
    if gives_instructions(text):
        return "(looks like an instruction to the agent: read the file before you trust it)"
    return clip(text, _SUMMARY_CHARS, at="end")


class CurrentEntry(Struct, frozen=True):
    """A live entry: its *line* in a brief, its whole *text*, and its file."""

    key: str
    path: Path
    ts: datetime
    line: str
    text: str


MAX_LOG_LINES = 100_000
BRIEF_TOKENS, START_TOKENS = 800, 300

_log = logging.getLogger(__name__)


class SetReceipt(Struct, frozen=True):
    """Result of `set_memory`: *status* is ``set``, ``removed`` or ``isolated``.

    *path* is the file of the entry, None if it was removed.
    """

    key: str
    seq: int
    status: Literal["set", "removed", "isolated"]
    path: Path | None


class CompactionReport(Struct, frozen=True):
    """Counts of a compaction: log lines before and after, live keys, and expired keys."""

    lines_before: int
    lines_after: int
    keys: int
    expired: int


@checked
class KeyedMemory:
    """Values under keys in the folder *root*, which processes and threads may share.

    The log is authoritative: it has each call, durably, before `set_memory` returns. Log and state
    are compacted when the log has *max_log_lines* lines and has doubled since the last time.
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
        """Raise `MemoryNotFoundError` if nothing was set yet."""
        self._files.check_exists()

    def set_memory(
        self,
        key: str,
        json_content: object,
        source: object,
        *,
        untrusted: Literal["refuse", "isolate"] = "refuse",
        only_of: str | None = None,
    ) -> SetReceipt:
        """Store *json_content* under *key*, replacing the earlier value; None removes the key.

        *source* is a name, or an object with ``kind``, ``name``, ``retrieved_at`` and ``locator``;
        all four are required for content from the web, a tool or a file, and below ``/kb/``.
        Content without them is refused, or stored below ``/untrusted``, which no brief shows.
        Secrets are masked. With *only_of*, a key that another source has set stays unchanged, and
        has none beside it that looks like it.
        Raises `InvalidEntryError`, and `StoreError` if nothing could be stored.
        """
        normalised = normalised_key(key)
        content = checked_content(json_content)
        target, origin = checked_source(normalised, source, untrusted)
        valid = content is not None
        with self._files.writing(create=True) as position:
            if only_of is not None and mixes_alphabets(target):
                raise InvalidEntryError(f"key {target!a} mixes alphabets: it may look like another")
            same = _folded(target) if only_of is not None else ""
            for known in self._files.live() if same else ():
                if _folded(str(known["key"])) == same and _writer(known["source"]) != only_of:
                    raise InvalidEntryError(f"{known['key']} was set by another source")
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
        """Return the latest entry of *key*; None if it was removed or never set."""
        with self._files.reading():
            return self._files.get(normalised_key(key))

    def keys(self, prefix: str = "/") -> list[str]:
        """Return the live keys that start with *prefix*, sorted."""
        with self._files.reading(adopt=True):
            keys = [str(envelope["key"]) for envelope in self._files.live()]
        return sorted(key for key in keys if key.startswith(prefix))

    def entries(self) -> list[Envelope]:
        """Return the latest call of each live key, in the order in which they were set."""
        with self._files.reading(adopt=True):
            return self._files.logged_live()

    def add(self, entries: Collection[Envelope]) -> int:
        """Set the *entries* of another memory of the owner, with their time and source.

        A key that is set here, or was removed or forgotten after its entry there was set, stays as
        it is.
        Returns how many were set. Raises `InvalidEntryError` before any is.
        """
        now = self._now()
        given = [
            replace(
                one,
                key=normalised_key(one.key),
                ts=min(one.ts, now),
                source=checked_content(one.source),
                content=checked_content(one.content),
            )
            for one in sorted(entries, key=lambda one: (one.ts, one.seq))
        ]
        with self._files.writing(create=True, adopt=True) as position:
            live = {one.key for one in self._files.logged_live()}
            last = {one.key: one.ts for one in sorted(self._files.calls(), key=lambda one: one.ts)}
            forgotten = self._files.forgotten()
            new = [
                one
                for one in given
                if one.key not in live
                and (one.key not in last or last[one.key] < one.ts)
                and one.ts > forgotten.get(digest(one.key), NEVER)
            ]
            after = position
            for one in new:
                after = self._files.append(after, replace(one, seq=after.seq + 1))
        _log.info("added %d of %d entries", len(new), len(given))
        return len(new)

    def set_by(self, sources: Collection[str]) -> set[str]:
        """Return the keys that agents of *sources* have ever set."""
        with self._files.reading():
            return self._files.set_by(sources)

    def current(self) -> list[CurrentEntry]:
        """Return the entries that a brief may show, in the order in which they were set."""
        with self._files.reading(adopt=True):
            records = self._files.live()
        now = self._now()
        return [
            CurrentEntry(
                key := str(record["key"]),
                self._files.index / index_path(key),
                datetime.fromisoformat(str(record["ts"])),
                _brief_line(record).removeprefix("- "),
                f"{key} {orjson.dumps(record['content']).decode()}",
            )
            for record in records
            if _is_shown(record, now)
        ]

    def brief(
        self,
        token_limit: int = BRIEF_TOKENS,
        tags: Collection[str] = (),
        now: Time | None = None,
        *,
        newest_first: bool = False,
    ) -> Briefing:
        """Return the entries to start a prompt with, best first, within *token_limit* tokens.

        Expired entries (``expired_at`` before *now*) and those below ``/untrusted`` are left out.
        With *newest_first*, importance and matching *tags* only break ties.
        """
        with self._files.reading(adopt=True):
            records = self._files.live()
        now = now or self._now()
        briefing = brief(records, token_limit, tags, now, newest_first=newest_first)
        _log.info("brief of %d keys, %d left out", len(briefing.keys), briefing.omitted)
        return briefing

    def for_prompt(self, max_tokens: int = START_TOKENS) -> str:
        """Return the brief for the start of a prompt, fenced as data; empty if nothing is set."""
        text = self.brief(max_tokens - count_tokens(fence("", _FENCE))).text
        return fence(text, _FENCE) if text else ""

    def compact(self) -> CompactionReport:
        """Reduce the log to the live entries, archive the rest, and repair index and state.

        Expired entries are removed. The archive keeps every call until `forget`. Raises
        `MemoryNotFoundError` if nothing was set yet.
        """
        with self._files.writing(adopt=True) as position:
            return self._compact(position, self._now())

    def forget(self, key: str) -> int:
        """Erase every trace of *key*, also in the archive; return how many calls had set it.

        Raises `MemoryNotFoundError` if nothing was set yet.
        """
        with self._files.writing() as position:
            return self._files.erase(position, {normalised_key(key)}, self._now())

    def forget_sources(self, sources: Collection[str]) -> int:
        """Erase the keys that agents of *sources* have set; returns how many calls had set them."""
        with self._files.writing() as position:
            keys = self._files.set_by(sources)
            return self._files.erase(position, keys, self._now()) if keys else 0

    def check(self) -> list[str]:
        """Return the differences of index and state from the log, one line each.

        `compact` repairs them.
        """
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
