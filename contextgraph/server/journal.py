"""Live runs as files, so that a server that is killed loses no step that it has answered."""

import fcntl
import os
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import orjson

from contextgraph.codec import decoded, encoded
from contextgraph.learning import masked
from contextgraph.model import RawTrajectory, Step
from contextgraph.readers import from_record, to_record
from contextgraph.spool import WaitingRun

_LOCK = "lock"


class Journal:
    """The live runs of one process: a file each in a folder that it holds a lock on.

    The first line is who supplied the run, the second the run without steps, each other line a
    step of it; secrets are masked.
    """

    def __init__(self, folder: Path) -> None:
        self._parent = folder
        self._folder = folder / f"{uuid4().hex}.server"
        self._lock: int | None = None
        self._opening = threading.Lock()
        self._written: dict[str, int] = {}

    def write(self, identity: str, run: RawTrajectory, source: str) -> None:
        """Append those steps of *run* that are not written yet."""
        self._open()
        done = self._written.get(identity, 0)
        new = masked(replace(run, steps=run.steps[done:]), with_playbooks=True)[0]
        head = [orjson.dumps(source), orjson.dumps(to_record(replace(new, steps=())))]
        lines = [] if done else head
        lines += [orjson.dumps(encoded(step)) for step in new.steps]
        with open(self._folder / identity, "ab") as file:
            file.writelines(line + b"\n" for line in lines)
        self._written[identity] = len(run.steps)

    def remove(self, identity: str) -> None:
        """Forget a run that is finished and safe elsewhere."""
        self._written.pop(identity, None)
        (self._folder / identity).unlink(missing_ok=True)

    def close(self) -> None:
        """Remove the folder, which holds no run any more."""
        if self._lock is not None:
            (self._folder / _LOCK).unlink()
            os.close(self._lock)
            self._folder.rmdir()

    def abandoned(self) -> Iterator[WaitingRun]:
        """The runs of processes that are gone; for one process at a time."""
        for lock in self._parent.glob(f"*.server/{_LOCK}"):
            with open(lock, "rb") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    continue  # its process is at work
                yield from map(_read, lock.parent.glob("live_*"))
                lock.unlink()
                lock.parent.rmdir()

    def _open(self) -> None:
        with self._opening:
            if self._lock is None:
                # Under another name until it is locked, or it would seem to be abandoned.
                new = self._folder.with_suffix(".new")
                new.mkdir(mode=0o700, parents=True)
                self._lock = os.open(new / _LOCK, os.O_WRONLY | os.O_CREAT, 0o600)
                fcntl.flock(self._lock, fcntl.LOCK_EX)
                new.rename(self._folder)


def _read(path: Path) -> WaitingRun:
    """The run in a file; a step that was not written whole was not answered either."""
    source, first, *rest = path.read_bytes().split(b"\n")[:-1]
    steps = tuple(decoded(Step, orjson.loads(line)) for line in rest)
    raw = replace(from_record(orjson.loads(first)), steps=steps)
    return WaitingRun(path, raw, orjson.loads(source))
