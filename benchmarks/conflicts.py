"""``python -m benchmarks.conflicts``: conflicts between notes, by 568 labelled pairs of statements.

The pairs are in `benchmarks/labels/notes`. `--wrong` lists the pairs of the development half that
are judged wrongly; those of the other half are only counted. Of the last 128 also what is shown of
what is recalled for a question that the pair answers: the later statement first, the earlier one
first, or it alone; with `--embedder local` compared by meaning.
"""

import argparse
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from contextgraph.inference.local import local_embedder
from contextgraph.knowledge import Notes, render_notes
from contextgraph.knowledge.conflict import Relation, Statement, Verdict, verdict
from contextgraph.store.sqlite import SqliteStore
from contextgraph.text import count_tokens

_PAIRS = Path(__file__).parent / "labels" / "notes" / "pairs.jsonl"
_NOW = datetime(2026, 1, 1, tzinfo=UTC)
CONFLICTS = {Relation.CONTRADICTS, Relation.SUPERSEDES}


@dataclass(frozen=True, slots=True)
class Pair:
    """Two statements about one repository, the label of *new*, and the half it belongs to.

    *question* is one that both answer, the later one rightly.
    """

    half: str
    relation: str
    old: str
    new: str
    question: str = ""

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


def recalled_first(pairs: Sequence[Pair], *, by_meaning: bool = False) -> Counter[str]:
    """Count which statement of each of *pairs* stands first in the text of five that are recalled.

    All pairs are notes of one repository of one person, the later ones three weeks later. Also how
    many others were brought along as later notes about the same, and the tokens of all texts.
    """
    first = Counter[str]()
    now = _NOW
    embedder = local_embedder("") if by_meaning else None
    store = SqliteStore(":memory:").notes
    notes = Notes(store, lambda: now, lambda: embedder, lambda: embedder)
    for at, text in enumerate([pair.old for pair in pairs] + [pair.new for pair in pairs]):
        now = _NOW + timedelta(days=21 * (at >= len(pairs)), hours=at)
        notes.remember(text, repo="acme/shop")
    for pair in filter(lambda pair: pair.question, pairs):
        found = notes.recall(pair.question, repo="acme/shop")
        text = render_notes(found)
        shown = sorted((one for one in (pair.old, pair.new) if one in text), key=text.index)
        alone = " alone" if shown == [pair.old] else ""
        which = "neither" if not shown else "later" if shown[0] == pair.new else "earlier"
        first[f"{which}{alone}"] += 1
        known = {one.note.content for one in found} | {pair.new}
        first["others"] += sum(one.later.content not in known for one in found if one.later)
        first["tokens"] += count_tokens(text)
    return first


def shown_to_judge(pairs: Sequence[Pair], *, by_meaning: bool = False) -> Counter[str]:
    """Count the conflicts among *pairs* that a judge is asked about, and its requests.

    The notes are those of `recalled_first`; the judge takes all for unrelated.
    """
    asked = list[tuple[str, str]]()

    def judge(new: str, old: str) -> Verdict:
        asked.append((new, old))
        return Verdict(Relation.UNRELATED, 1.0)

    now = _NOW
    embedder = local_embedder("") if by_meaning else None
    store = SqliteStore(":memory:").notes
    notes = Notes(store, lambda: now, lambda: embedder, lambda: embedder, judge)
    for at, text in enumerate([pair.old for pair in pairs] + [pair.new for pair in pairs]):
        now = _NOW + timedelta(days=21 * (at >= len(pairs)), hours=at)
        notes.remember(text, repo="acme/shop")
    conflicts = [pair for pair in pairs if pair.is_conflict]
    found = sum((pair.new, pair.old) in asked for pair in conflicts)
    return Counter({"conflicts": found, "of": len(conflicts), "requests": len(asked)})


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.conflicts", description=__doc__)
    parser.add_argument("--wrong", action="store_true")
    parser.add_argument("--embedder", choices=["", "local"], default="")
    options = parser.parse_args()
    wrong, by_meaning = options.wrong, options.embedder == "local"
    pairs = labelled_pairs()
    for half in dict.fromkeys(pair.half for pair in pairs):
        some = [pair for pair in pairs if pair.half == half]
        _measure(half, some)
        if any(pair.question for pair in some):
            first = recalled_first(some, by_meaning=by_meaning)
            shown = shown_to_judge(some, by_meaning=by_meaning)
            print("  shown to a judge: " + ", ".join(f"{k} {n}" for k, n in shown.items()))
            print("  shown first: " + ", ".join(f"{k} {n}" for k, n in sorted(first.items())))
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
