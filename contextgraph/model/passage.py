"""Passages: what people and agents said in a run, in parts that are found and shown."""

from enum import StrEnum

from msgspec import Struct

from contextgraph.model.step import Time


class PassageKind(StrEnum):
    """Kinds of passage, by what it is a part of."""

    TASK = "task"
    TURN = "turn"
    """what a person wrote after the task"""
    REPLY = "reply"
    """what an agent wrote without doing anything"""
    THOUGHT = "thought"
    """what an agent wrote before it did something"""
    TITLE = "title"
    COMMIT = "commit"
    """the message of a commit"""


class Passage(Struct, frozen=True, omit_defaults=True):
    """A part of about 600 characters of what was said in *run*, after its step *step* (-1: before).

    *by_agent*: an agent said so, else a person. *number* is its place among those of the run.
    """

    run: str
    number: int
    repo: str
    kind: PassageKind
    text: str
    said_at: Time
    step: int = -1
    by_agent: bool = False

    @property
    def id(self) -> str:
        """The id: that of the run and the place in it."""
        return _id(self.run, self.number)

    @property
    def speaker(self) -> str:
        """The speaker, as a person names them."""
        return "agent" if self.by_agent else "user"


def _id(run: str, number: int) -> str:
    return f"{run}:{number:04}"


def passage_place(passage: str) -> tuple[str, int]:
    """Return the run of the passage with this id, and its place among those of the run."""
    run, _, number = passage.rpartition(":")
    return run, int(number)


def passages_beside(passage: str, most: int) -> list[str]:
    """Return the ids that *most* passages before the one of this id have, and as many after it.

    They are of the same run, but not always of the same turn.
    """
    run, number = passage_place(passage)
    first, last = max(0, number - most), number + most
    return [_id(run, place) for place in range(first, last + 1)]


class PassageScope(Struct, frozen=True):
    """Passages of one of *repos* and one of *runs* (None: of all), said in a time.

    From *since* on, *until* included. Names of repositories are in lower case.
    """

    repos: tuple[str, ...] | None = None
    runs: tuple[str, ...] | None = None
    since: Time | None = None
    until: Time | None = None


class PassageCounts(Struct, frozen=True):
    """The number of *passages* and of their characters, and how many are *waiting* for a vector."""

    passages: int
    characters: int
    waiting: int = 0
