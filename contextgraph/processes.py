"""Which process is meant, so that another one on the same machine can see that it has ended."""

import os
from functools import cache
from pathlib import Path

_PROC = Path("/proc")


def this_process() -> str:
    """A name of this process that no other has, on any machine; without blanks."""
    return _name(os.getpid())


def has_ended(process: str) -> bool:
    """Whether the *process* that `this_process` named is known to have ended.

    False where that cannot be seen: on another machine, in another container, without /proc.
    """
    machine, *number_and_start = process.rsplit(":", 2)
    if not machine or machine != _machine() or len(number_and_start) < 2:
        return False
    return _name(int(number_and_start[0])) != process


def _name(number: int) -> str:
    # A number is used again, but not by a process that started at the same time.
    return f"{_machine()}:{number}:{_started_at(number)}"


@cache
def _machine() -> str:
    """This start of this machine and what process numbers mean in it; empty where unknown."""
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
