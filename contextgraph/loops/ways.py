"""A way out of a loop, and how it is said."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum

from contextgraph.text import clip

SENTENCE_CHARS = 320
NAMED_RUNS = 2

_OTHER_LINES = re.compile(r"for lines (\d+:\d+) instead of (\d+:\d+)")


class Proof(IntEnum):
    """What a way out is known to have done, the strongest first."""

    LEFT_THE_LOOP = 0
    CLEARED_THE_ERROR = 1
    WORKED_FOR_SUCH_TASKS = 2
    LEFT_SUCH_A_LOOP = 3


_ACHIEVED = {
    Proof.LEFT_THE_LOOP: "left the same loop",
    Proof.CLEARED_THE_ERROR: "cleared this error",
    Proof.WORKED_FOR_SUCH_TASKS: "worked for such tasks",
    Proof.LEFT_SUCH_A_LOOP: "left such a loop",
}


@dataclass(frozen=True, slots=True)
class WayOut:
    """What was done (*what*), what it achieved, and where.

    *runs* maps instances to their repositories, newest first; *near*: one is of the repository
    that asks.
    """

    what: str
    proof: Proof
    near: bool
    runs: tuple[tuple[str, str], ...]

    @property
    def repositories(self) -> int:
        """In how many repositories it was seen."""
        return len({repo for _, repo in self.runs})


def said(way: WayOut) -> str:
    """The sentence for an agent's prompt, ending with where it comes from."""
    achieved = _ACHIEVED[way.proof]
    names = list(dict.fromkeys(instance for instance, _ in way.runs))
    more = f" and {len(names) - NAMED_RUNS} more" if len(names) > NAMED_RUNS else ""
    what = clip(_OTHER_LINES.sub(r"for other lines (\1 instead of \2)", way.what), SENTENCE_CHARS)
    return f"{what.rstrip('. ')} ({achieved} in {', '.join(names[:NAMED_RUNS])}{more})"


def merged(ways: Iterable[WayOut]) -> list[WayOut]:
    """*ways* with those that say the same made one, in the order in which they first come."""
    found: dict[str, WayOut] = {}
    for way in ways:
        same = _OTHER_LINES.sub("", way.what)
        before = found.get(same, way)
        runs = tuple(dict.fromkeys(before.runs + way.runs))
        near, proof = before.near or way.near, min(before.proof, way.proof)
        found[same] = WayOut(before.what, proof, near, runs)
    return list(found.values())
