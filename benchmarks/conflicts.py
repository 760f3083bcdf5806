"""``python -m benchmarks.conflicts``: conflicts between notes, by 440 labelled pairs of statements.

The pairs are in `benchmarks/labels/notes`. `--wrong` lists the pairs of the development half that
are judged wrongly; those of the other half are only counted.
"""

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from contextgraph.governance import Relation, Statement, verdict

_PAIRS = Path(__file__).parent / "labels" / "notes" / "pairs.jsonl"
_NOW = datetime(2026, 1, 1, tzinfo=UTC)
CONFLICTS = {Relation.CONTRADICTS, Relation.SUPERSEDES}


@dataclass(frozen=True, slots=True)
class Pair:
    """Two statements about one repository, the label of *new*, and the half it belongs to."""

    half: str
    relation: str
    old: str
    new: str

    @property
    def is_conflict(self) -> bool:
        """Whether the two cannot both hold."""
        return self.relation in {"newer", "contradicts"}


def labelled_pairs() -> list[Pair]:
    """All pairs, in the order of their file."""
    return [Pair(**json.loads(line)) for line in _PAIRS.read_text("utf-8").splitlines()]


def conflict_judgement(pair: Pair) -> Relation:
    """Return the relation of the new statement of *pair* to the old one, by the heuristic."""
    new = Statement(pair.new, "agent:a", _NOW)
    old = Statement(pair.old, "agent:b", _NOW - timedelta(days=3))
    return verdict(new, old).relation


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.conflicts", description=__doc__)
    parser.add_argument("--wrong", action="store_true")
    wrong = parser.parse_args().wrong
    pairs = labelled_pairs()
    for half in ("development", "held", "other words"):
        _measure(half, [pair for pair in pairs if pair.half == half])
    for pair in pairs:
        if wrong and pair.half == "development" and not _is_right(pair):
            print(f"{pair.relation:12}{conflict_judgement(pair):12} {pair.old} | {pair.new}")


def _measure(half: str, pairs: Sequence[Pair]) -> None:
    flagged = [pair for pair in pairs if conflict_judgement(pair) in CONFLICTS]
    right = sum(pair.is_conflict for pair in flagged)
    recall = f"{right} of {sum(pair.is_conflict for pair in pairs)} conflicts found"
    same = [pair for pair in pairs if conflict_judgement(pair) is Relation.SAME]
    print(f"{half}: {recall}, {len(flagged) - right} of {len(flagged)} flags wrong")
    for label in ("newer", "contradicts", "same", "other"):
        chosen = [pair for pair in pairs if pair.relation == label]
        print(f"  {label}: {sum(map(_is_right, chosen))} of {len(chosen)}")
    print(f"  taken for the same: {len(same)}, of them {sum(map(_is_right, same))} rightly")


def _is_right(pair: Pair) -> bool:
    relation = conflict_judgement(pair)
    if pair.is_conflict:
        return relation in CONFLICTS
    return relation is (Relation.SAME if pair.relation == "same" else Relation.UNRELATED)


if __name__ == "__main__":
    main()
