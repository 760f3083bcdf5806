"""Records of hooks: received events and shown advice, one JSON Lines file for each session."""

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence

from contextgraph.lazy import TYPE_CHECKING, dataclass, fields, regex
from contextgraph.text import mask_secrets

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from contextgraph.config import Settings
    from contextgraph.model import Exposure, Json
    from contextgraph.ports import Store


_UNSAFE = regex(r"[^A-Za-z0-9_-]")
_NAME_CHARS = 100
_EMPTY = ("", (), None)
# Sessions that were not written to for so long are removed when their lines are noted.
_RETENTION = 90 * 86_400  # seconds
_MOST_BYTES = 1 << 19
# Seconds: how old the advice of a server may be; how long a file is written to after compiling.
_REFRESHED_AFTER, _CLOSED_WITHIN = 3600, 2


@dataclass(frozen=True, slots=True)
class HookRecord:
    """One event of a session: which error the agent met, and what it was shown.

    *folder* is a checksum of the folder that the agent worked in. *family*, *error_type* and
    *template* are those of the error. *text* is without its fence; it is empty, like *context*,
    where nothing was shown; *is_withheld*: see `Exposure`. *forgets*: what was shown before left
    the context of the agent. Times are ISO 8601, in UTC.
    """

    at: str
    event: str
    agent: str
    session: str = ""
    subagent: str = ""
    folder: str = ""
    repo: str = ""
    family: str = ""
    error_type: str = ""
    template: str = ""
    context: str = ""
    text: str = ""
    items: "tuple[Json, ...]" = ()
    is_withheld: bool | None = None
    forgets: bool | None = None

    def repeats(self, other: "HookRecord") -> bool:
        """Whether the error of *other* was met again, later in the same session."""
        mine = (self.session, self.subagent, self.family, self.error_type, self.template)
        its = (other.session, other.subagent, other.family, other.error_type, other.template)
        is_met = self.event.startswith("PostToolUse")
        return is_met and mine == its and self.at > other.at


class HookFiles:
    """The files beside the memory of *settings* that hooks read and append to."""

    def __init__(self, settings: "Settings") -> None:
        base = settings.companion
        self._memory = None if settings.is_remote else settings.address
        self.advice = f"{base}.advice.db"
        self.folder = f"{base}.hooks"
        self.queue = os.path.join(self.folder, "queue.jsonl")
        self.failures = os.path.join(self.folder, "failures.log")
        self.sessions = os.path.join(self.folder, "sessions")

    @property
    def are_used(self) -> bool:
        """Whether a hook has used this memory, or is to."""
        return os.path.exists(self.folder) or os.path.exists(self.advice)

    def mark_used(self) -> None:
        """Have whatever changes the memory from now on compile its advice, though there is none."""
        _make_folder(self.folder)

    @property
    def is_outdated(self) -> bool:
        """Whether the memory was written to, maybe by a library, since its advice was compiled."""
        compiled = _written_at(self.advice)
        if self._memory is None:
            return compiled < time.time() - _REFRESHED_AFTER
        written = max(_written_at(self._memory), _written_at(f"{self._memory}-wal"))
        return compiled + _CLOSED_WITHIN < written

    def append(self, record: HookRecord) -> None:
        """Append *record*, whose text is masked, to the file of its session."""
        values = {field.name: getattr(record, field.name) for field in fields(record)}
        written = {name: value for name, value in values.items() if value not in _EMPTY}
        of_error = {"error_type", "template"} & written.keys()
        written |= {name: mask_secrets(written[name]) for name in of_error}
        _append(self._of(record.session), written)

    def records(self, session: str | None = None) -> Iterator[HookRecord]:
        """The records of one session, or of all of them, the oldest session first."""
        if session is not None:
            paths = [self._of(session)]
        else:
            paths = sorted(_files(self.sessions), key=_written_at)
        names = {field.name for field in fields(HookRecord)}
        for path in paths:
            # A hook has no time for more than the last events of a long session.
            for line in _lines(path, _MOST_BYTES if session is not None else None):
                known = {name: value for name, value in line.items() if name in names}
                known["items"] = tuple(known.get("items", ()))
                yield HookRecord(**known)

    def enqueue(self, transcript: str) -> None:
        """Append the path of a finished session to those that wait to be learned."""
        _append(self.queue, {"at": now(), "transcript": transcript})

    def fail(self, reason: str) -> None:
        """Append why a hook could not answer, secrets masked."""
        _append(self.failures, {"at": now(), "reason": mask_secrets(reason)[:500]})

    def failed(self) -> Sequence[str]:
        """Why hooks could not answer, the last reason last."""
        return [str(line.get("reason", "")) for line in _lines(self.failures)]

    def waiting(self) -> Sequence[str]:
        """The queue files; more than one where learning was interrupted."""
        return sorted(_files(self.folder, "queue"))

    def take_queue(self) -> "tuple[Sequence[str], Sequence[Path]]":
        """The transcripts that wait and are there, and the files to remove once they are learned.

        The queue is moved aside first, so that a line that is appended meanwhile is not lost. What
        an interrupted process left is taken as well.
        """
        from pathlib import Path

        if os.path.exists(self.queue):
            aside = f"queue.{os.getpid()}.{os.urandom(4).hex()}.jsonl"
            os.rename(self.queue, os.path.join(self.folder, aside))
        taken = [path for path in self.waiting() if path != self.queue]
        lines = [line for path in taken for line in _lines(path)]
        transcripts = dict.fromkeys(Path(str(line["transcript"])) for line in lines)
        # Claude Code writes those of sub-agents into a folder beside that of their session.
        paths = dict.fromkeys(
            path for transcript in transcripts for path in (transcript, transcript.with_suffix(""))
        )
        return [str(path) for path in paths if path.exists()], [Path(path) for path in taken]

    def note_shown(self, store: "Store") -> None:
        """Record in *store* what was shown, so that it is credited when the session is learned."""
        if shown := [_exposure(record) for record in self.records() if record.context]:
            store.exposures.add(shown)
        self._remove_old()

    def _remove_old(self) -> None:
        """Remove the files of sessions that ended long ago."""
        oldest = time.time() - _RETENTION
        for path in _files(self.sessions):
            if _written_at(path) < oldest:
                os.unlink(path)

    def _of(self, session: str) -> str:
        name = _UNSAFE.sub("_", session)[:_NAME_CHARS] or "_"
        return os.path.join(self.sessions, f"{name}.jsonl")


def _exposure(record: HookRecord) -> "Exposure":
    from datetime import datetime

    from contextgraph.codec import decoded
    from contextgraph.learning import error_id
    from contextgraph.model import (
        ErrorSignature,
        Exposure,
        Family,
        ShownItem,
    )

    error = None
    if record.family:
        family = Family(record.family)
        error = error_id(ErrorSignature(family, record.error_type, "", record.template))
    items = [decoded(ShownItem, item) for item in record.items]
    return Exposure.of(
        record.context,
        items,
        datetime.fromisoformat(record.at),
        error,
        is_withheld=record.is_withheld,
        text=record.text,
    )


def _files(folder: str, beginning: str = "") -> Sequence[str]:
    """The files of lines in *folder* whose names have this *beginning*."""
    names = os.listdir(folder) if os.path.isdir(folder) else ()
    found = (name for name in names if name.startswith(beginning) and name.endswith(".jsonl"))
    return [os.path.join(folder, name) for name in found]


def _make_folder(path: str) -> None:
    os.makedirs(path, mode=0o700, exist_ok=True)


def _written_at(path: str) -> float:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0


def now() -> str:
    """The time as records have it: ISO 8601, in UTC, with milliseconds."""
    at = time.time_ns() // 1_000_000
    whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at // 1000))
    return f"{whole}.{at % 1000:03}+00:00"


def _append(path: str, record: Mapping[str, object]) -> None:
    """Append one line in one write, so that lines of several processes do not mix."""
    _make_folder(os.path.dirname(path))
    line = json.dumps(record, separators=(",", ":")).encode() + b"\n"
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(file, line)
    finally:
        os.close(file)


def _lines(path: str, most: int | None = None) -> "Iterator[dict[str, Any]]":
    """The objects in *path*, or in its last *most* bytes; a line that was cut off is left out."""
    try:
        with open(path, "rb") as file:
            if most is not None and (size := os.path.getsize(path)) > most:
                file.seek(size - most)
            content = file.read()
    except FileNotFoundError:
        return
    for line in content.splitlines():
        try:
            value = json.loads(line)
        except ValueError:
            continue
        if isinstance(value, dict):
            yield value
