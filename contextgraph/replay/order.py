"""The order in which recorded runs happened, as far as their logs tell."""

import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from enum import StrEnum

from contextgraph.model import RawTrajectory

_NUMBER = re.compile(r"(\d+)\Z")


class RunOrder(StrEnum):
    """What the order of runs was taken from."""

    STARTED_AT = "started_at"
    INSTANCE_NUMBER = "instance_number"
    INPUT = "input"


def in_order(runs: Iterable[RawTrajectory]) -> tuple[Sequence[RawTrajectory], RunOrder]:
    """*runs* as they happened, and what that was taken from.

    By their start where all tell it; else by the number in the instance id, within each repository
    (issues are numbered in order; the repositories take turns as they come in the input); else as
    they came.
    """
    given = list(runs)
    started = [raw.started_at for raw in given]
    if given and all(started):
        return sorted(given, key=_started), RunOrder.STARTED_AT
    if given and all(number_of(raw.instance_id) is not None for raw in given):
        return _numbered(given), RunOrder.INSTANCE_NUMBER
    return given, RunOrder.INPUT


def number_of(instance_id: str) -> int | None:
    """The number that *instance_id* ends in; None where it ends otherwise."""
    match = _NUMBER.search(instance_id)
    return int(match[1]) if match else None


def is_later(one: RawTrajectory, other: RawTrajectory) -> bool:
    """True where *one* is known to have happened after *other* began."""
    if one.started_at and other.started_at:
        return one.started_at > other.started_at
    if not one.repo or one.repo != other.repo:
        return False
    number, other_number = number_of(one.instance_id), number_of(other.instance_id)
    return number is not None and other_number is not None and number > other_number


def _started(raw: RawTrajectory) -> datetime:
    assert raw.started_at is not None
    return raw.started_at


def _numbered(given: Sequence[RawTrajectory]) -> list[RawTrajectory]:
    """Each place of a repository in *given* taken by its runs in the order of their numbers."""
    by_repo: dict[str, list[RawTrajectory]] = {}
    for raw in given:
        by_repo.setdefault(raw.repo, []).append(raw)
    queues = {
        repo: iter(sorted(runs, key=lambda raw: number_of(raw.instance_id) or 0))
        for repo, runs in by_repo.items()
    }
    return [next(queues[raw.repo]) for raw in given]
