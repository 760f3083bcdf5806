"""Processes that others see end, forks, and files that other users cannot read."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from glob import escape
from importlib import import_module
from pathlib import Path
from threading import RLock, get_ident

from contextgraph.lazy import dataclass

_PROC = Path("/proc")
# No thread forks while another one holds it: the child would wait for what that was doing.
FORKS_WAIT = RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=FORKS_WAIT.acquire,
        after_in_parent=FORKS_WAIT.release,
        after_in_child=FORKS_WAIT.release,
    )


def load(*modules: str) -> None:
    """Import *modules*, which are not imported with the library; no thread forks meanwhile.

    In a child process a module that another thread was importing stays locked for ever.
    """
    with FORKS_WAIT:
        for module in modules:
            import_module(module)


@dataclass(frozen=True, slots=True)
class Process:
    """A process that no other is equal to, on any machine.

    *machine* is one start of a machine and what process numbers mean in it, empty where unknown.
    A number is used again, but not by a process that *started_at* the same time (in ticks).
    """

    machine: str
    number: int
    started_at: str


def this_process() -> Process:
    """The process that calls this."""
    number = os.getpid()
    return Process(_machine(), number, _started_at(number))


def has_ended(process: Process) -> bool:
    """Whether *process* is known to have ended.

    False where that cannot be seen: on another machine, in another container, without /proc.
    """
    is_here = process.machine != "" and process.machine == _machine()
    return is_here and _started_at(process.number) != process.started_at


@cache
def _machine() -> str:
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{(_PROC / 'self/ns/pid').readlink()}"
    except OSError:
        return ""


def _started_at(number: int) -> str:
    """When a process started, in ticks since the machine did; empty where there is none."""
    try:
        status = (_PROC / str(number) / "stat").read_text()
    except OSError:
        return ""
    # The name of the program comes second, in brackets, and may contain anything.
    state, *fields = status.rpartition(")")[2].split()
    return "" if state in "ZX" else fields[18]


def create_private(path: Path) -> None:
    """Create the empty file *path*, which only its owner may read, unless there is one."""
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A new file that only its owner may read, which replaces *path* at the end of the block.

    Of the files that killed processes began for *path*, none stays.
    """
    for left in path.parent.glob(f"{escape(path.name)}.*.part"):
        if not _runs(left.name.split(".")[-3]):
            left.unlink(missing_ok=True)
    part = path.with_name(f"{path.name}.{os.getpid()}.{get_ident()}.part")
    try:
        create_private(part)
        yield part
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _runs(number: str) -> bool:
    """Return whether a process of this *number* runs here."""
    try:
        os.kill(int(number), 0)
    except (ProcessLookupError, ValueError):
        return False
    except PermissionError:
        pass
    return True
