"""The files of hooks beside a memory: sessions that wait to be learned, and failures."""

import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from contextgraph.config import LESSONS
from contextgraph.model import LESSONS_FOLDER, HealthCheck
from contextgraph.system.processes import append, private, written_at
from contextgraph.system.working_tree import WorkingTree
from contextgraph.text import mask_secrets, number_of

if TYPE_CHECKING:
    from contextgraph.config import Settings

# How old the copy of a remote memory may be, in seconds.
_REFRESHED_AFTER = 3600
# Seconds until a person is shown again that a model wrote no lessons.
_ANNOUNCED_AGAIN_AFTER = 86_400


# An event of `contextgraph doctor`, answered with the address of the memory and nothing else.
CHECK_EVENT = "ContextGraphCheck"


class HookFiles:
    """The files beside the memory of *settings* that hooks use on this machine.

    *store* is the file that they read: the memory itself, or a copy of a remote one.
    """

    def __init__(self, settings: "Settings") -> None:
        base = settings.companion
        self.store = settings.local_file
        self.folder = f"{base}.hooks"
        self.queue = os.path.join(self.folder, "queue.jsonl")
        self.failures = os.path.join(self.folder, "failures.log")
        self._silence = os.path.join(self.folder, "silent")
        self._unannounced = os.path.join(self.folder, "distil")

    @property
    def are_used(self) -> bool:
        """Return True where a hook has used this memory, or is to."""
        return os.path.exists(self.folder)

    def mark_used(self) -> None:
        """Note that hooks use this memory."""
        os.makedirs(self.folder, 0o700, exist_ok=True)

    def be_silent(self) -> None:
        """Note that a service did not answer: see `is_silent`."""
        _write(self._silence)

    def is_silent(self, seconds: float) -> bool:
        """Return True for so many *seconds* after `be_silent`."""
        return written_at(self._silence) > time.time() - seconds

    def is_copy_due(self, repo: str) -> bool:
        """Return True where the copy of *repo* is old: the caller then renews it."""
        mark = self._mark("copied", repo)
        if os.path.exists(self.store) and written_at(mark) > time.time() - _REFRESHED_AFTER:
            return False
        _write(mark)
        return True

    def has_new_lessons(self, folder: str) -> bool:
        """Return True where trusted lessons around *folder* changed: the caller takes them over."""
        if not os.path.isdir(folder):
            return False
        root = os.fspath(WorkingTree.around(folder).root)
        place = os.path.join(root, LESSONS_FOLDER)
        if not (os.path.isdir(place) and LESSONS.has(root, None)):
            return False
        mark = self._mark("lessons", root)
        with os.scandir(place) as files:
            changed = max((written_at(place), *(written_at(file.path) for file in files)))
        if changed <= written_at(mark):
            return False
        _write(mark)
        return True

    def has_new_commit(self, folder: str, repo: str) -> bool:
        """Return True where another commit is checked out around *folder* than at the last call.

        The last call for any checkout of *repo* counts, since all have the same lessons.
        """
        from contextgraph.readers.repository import GitFolder

        found = GitFolder.around(folder) if os.path.exists(self.store) else None
        if not (found and (head := found.head())):
            return False
        mark = self._mark("commit", repo)
        with suppress(FileNotFoundError), open(mark, encoding="ascii") as file:
            if file.read() == head:
                return False
        _write(mark, head)
        return True

    def _mark(self, kind: str, of: str) -> str:
        """The file that notes when something of this *kind* was done last."""
        return os.path.join(self.folder, f"{kind}.{sha256(of.encode()).hexdigest()[:16]}")

    def enqueue(self, transcript: str) -> None:
        """Append the path of a finished session to those that wait to be learned."""
        append(self.queue, _line({"at": _now(), "transcript": transcript}))

    def fail(self, reason: str) -> None:
        """Append why a hook could not answer, secrets masked."""
        append(self.failures, _line({"at": _now(), "reason": mask_secrets(reason)[:500]}))

    def fail_to_distil(self, reason: str) -> None:
        """Log why a model wrote no lessons; a person is shown it when the next session starts."""
        self.fail(f"distil: {reason}")
        with (
            suppress(FileExistsError),
            open(self._unannounced, "x", encoding="utf-8", opener=private) as file,
        ):
            file.write(mask_secrets(reason)[:500])

    def unannounced(self) -> str:
        """Return why a model wrote no lessons, once and at most once a day; else empty."""
        announced = f"{self._unannounced}.announced"
        try:
            if written_at(announced) > time.time() - _ANNOUNCED_AGAIN_AFTER:
                os.unlink(self._unannounced)
                return ""
            os.replace(self._unannounced, announced)
            os.utime(announced)
            with open(announced, encoding="utf-8") as file:
                return file.read()
        except FileNotFoundError:
            return ""

    def failed(self) -> Sequence[str]:
        """Why hooks could not answer, the last reason last."""
        return [str(line.get("reason", "")) for line in _lines(self.failures)]

    def health(self) -> Iterator[HealthCheck]:
        """Check that hooks did not fail; nothing where none uses the memory."""
        if self.are_used:
            failed = self.failed()
            last = f", the last: {failed[-1]}" if failed else ""
            detail = f"{number_of(len(failed), 'failure')}{last}"
            remedy = f"see {self.failures}, then remove it"
            yield HealthCheck("hooks", not failed, detail, remedy)

    def waiting(self) -> Sequence[str]:
        """Return the queue files; more than one where learning was interrupted."""
        return sorted(_queues(self.folder))

    def take_queue(self) -> "Queue":
        """Return the transcripts that wait and are there.

        The queue is moved aside first, so that a line that is appended meanwhile is not lost. What
        an interrupted process left is taken as well.
        """
        aside = f"queue.{os.getpid()}.{os.urandom(4).hex()}.jsonl"
        with suppress(FileNotFoundError):  # nothing waits, or another process was faster
            os.rename(self.queue, os.path.join(self.folder, aside))
        taken = [path for path in self.waiting() if path != self.queue]
        lines = [line for path in taken for line in _lines(path)]
        transcripts = dict.fromkeys(Path(str(line["transcript"])) for line in lines)
        # Claude Code writes those of sub-agents into a folder beside that of their session.
        paths = dict.fromkeys(
            path for transcript in transcripts for path in (transcript, transcript.with_suffix(""))
        )
        there = tuple(str(path) for path in paths if path.is_file() or path.is_dir())  # no pipe
        return Queue(self, there, tuple(map(Path, taken)))


class Queue(Struct, frozen=True):
    """The *transcripts* that waited in *taken*, files of a queue of *files*."""

    files: HookFiles
    transcripts: tuple[str, ...] = ()
    taken: tuple[Path, ...] = ()

    def settle(self, failed: Iterable[str]) -> None:
        """Remove what was taken; transcripts with a file that *failed* to be learned wait again."""
        places = [Path(name) for name in failed]
        for transcript in self.transcripts:
            if any(place.is_relative_to(transcript) for place in places):
                self.files.enqueue(transcript)
        for path in self.taken:
            path.unlink(missing_ok=True)


def _queues(folder: str) -> Sequence[str]:
    names = os.listdir(folder) if os.path.isdir(folder) else ()
    found = (name for name in names if name.startswith("queue") and name.endswith(".jsonl"))
    return [os.path.join(folder, name) for name in found]


def _write(path: str, text: str = "") -> None:
    os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
    with open(path, "w", encoding="ascii", opener=private) as file:
        file.write(text)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _line(record: Mapping[str, str]) -> bytes:
    return json.dumps(record, separators=(",", ":")).encode() + b"\n"


def _lines(path: str) -> Iterator[dict[str, Any]]:
    """The objects in *path*; a line that was cut off is left out."""
    try:
        with open(path, "rb") as file:
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
