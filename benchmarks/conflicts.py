"""``python -m benchmarks.conflicts``: conflicts between notes, by 1,409 labelled pairs.

The pairs are in `benchmarks/labels/notes`. `--wrong` lists the pairs of the development half that
are judged wrongly; those of the other half are only counted. Of 128 also what is shown of what is
recalled for a question that the pair answers: the later statement first, the earlier one first, or
it alone; with `--embedder local` compared by meaning. `--fit` prints the models `same` and
`conflicts` of ``fitted.json``, fitted on the pairs that are not held back, and what models of nine
tenths of them find in the last.
"""

import argparse
import json
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression

from benchmarks.measure import model_line
from contextgraph.inference.local import local_embedder
from contextgraph.knowledge import Notes, render_notes
from contextgraph.knowledge.conflict import (
    CONFLICT_MODEL,
    SAME_MODEL,
    Relation,
    Statement,
    Verdict,
    features,
    may_conflict,
    verdict,
)
from contextgraph.knowledge.extraction import sentences_in
from contextgraph.model import FittedModel
from contextgraph.store.sqlite import SqliteStore
from contextgraph.text import count_tokens, dice, stems

_PAIRS = Path(__file__).parent / "labels" / "notes" / "pairs.jsonl"
_NOW = datetime(2026, 1, 1, tzinfo=UTC)
CONFLICTS = {Relation.CONTRADICTS, Relation.SUPERSEDES}
# Two statements of different pairs hold beside each other unless they are similar, as do two
# sentences of the documentation; they are many, and count less than a pair.
_OTHERS, _WEIGHT, _SIMILAR = 8_000, 0.05, 0.6
_DOCS = Path(__file__).parents[1] / "docs"
_REGULARISATION, _FEWEST, _LEAST_WEIGHT, _FOLDS = 1.0, 2, 0.25, 10


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


class Example(NamedTuple):
    """The *features*, relation and weight of a pair, and the *folds* of its statements."""

    features: Mapping[str, float]
    relation: str
    folds: frozenset[int]
    weight: float = 1.0


def examples(pairs: Sequence[Pair]) -> list[Example]:
    """Return *pairs*, and statements of different ones that are about something else.

    Pairs that have a statement in common are of one fold.
    """
    group = {text: text for pair in pairs for text in (pair.old, pair.new)}
    for pair in pairs:
        one, other = group[pair.old], group[pair.new]
        group.update({text: one for text, name in group.items() if name == other})
    rng = random.Random(0)
    names = sorted({*group.values()})
    rng.shuffle(names)
    fold = {text: names.index(name) % _FOLDS for text, name in group.items()}
    found = [
        Example(features(pair.new, pair.old), pair.relation, frozenset({fold[pair.old]}))
        for pair in pairs
        if may_conflict(pair.new, pair.old)
    ]
    said = [*group]
    for number, text in enumerate(_sentences_of_docs()):
        group[text], fold[text] = f"sentence {number}", number % _FOLDS
    texts = {text: {*stems(text)} for text in group}
    longer = [
        (text, f"{text.rstrip('.')} and {other}")
        for text, other in zip(said, said[1:] + said[:1], strict=True)
    ]
    others = [
        (text, other)
        for text, words in texts.items()
        for other, its in texts.items()
        if group[text] != group[other]
        and 0 < dice(words, its) < _SIMILAR
        and may_conflict(text, other)
    ]
    others = rng.sample(others, _OTHERS) + [pair for pair in longer if may_conflict(*pair)]
    return found + [
        Example(
            features(new, old),
            "other",
            frozenset({fold[old], fold.get(new, fold[old])}),
            _WEIGHT,
        )
        for old, new in others
    ]


def _sentences_of_docs() -> dict[str, None]:
    lines = (line for path in sorted(_DOCS.glob("*.md")) for line in path.read_text().splitlines())
    prose = (line for line in lines if line[:1].isalpha())
    return dict.fromkeys(sentence for line in prose for sentence in sentences_in(line))


def fit(known: Sequence[Example], labels: frozenset[str]) -> FittedModel:
    """Fit a regression that separates *known* examples with one of *labels* from others.

    A word counts that several pairs have, and what has hardly any weight is left out.
    """
    counts = Counter(name for one in known if one.weight == 1 for name in one.features)
    names = [name for name, count in sorted(counts.items()) if count >= _FEWEST]
    weights = dict[str, float]()
    for _ in range(2):
        column = {name: at for at, name in enumerate(names)}
        cells = [
            (row, column[name], value)
            for row, one in enumerate(known)
            for name, value in one.features.items()
            if value and name in column
        ]
        rows, columns, values = zip(*cells, strict=True)
        matrix = csr_matrix((values, (rows, columns)), shape=(len(known), len(names)))
        model = LogisticRegression(C=_REGULARISATION, solver="liblinear", max_iter=2_000)
        right = [one.relation in labels for one in known]
        model.fit(matrix, right, sample_weight=[one.weight for one in known])
        weights = dict(zip(names, model.coef_[0].round(2).tolist(), strict=True))
        names = [name for name in names if abs(weights[name]) >= _LEAST_WEIGHT]
    return FittedModel(float(model.intercept_[0]), weights)


_LABELS = {SAME_MODEL: frozenset({"same"}), CONFLICT_MODEL: frozenset({"newer", "contradicts"})}


def _fit(pairs: Sequence[Pair]) -> None:
    """Print the models, and how many pairs are found by models of the other folds."""
    known = examples(pairs)
    for name, labels in _LABELS.items():
        rated = list[tuple[float, bool]]()
        for at in range(_FOLDS):
            model = fit([one for one in known if at not in one.folds], labels)
            rated += [
                (model.probability(one.features), one.relation in labels)
                for one in known
                if at in one.folds and one.weight == 1
            ]
        for least in (0.5, 0.6, 0.7, 0.75, 0.8, 0.9):
            flagged = [is_right for likely, is_right in rated if likely >= least]
            found = f"{sum(flagged)} of {sum(is_right for _, is_right in rated)} found"
            print(f"{name} from {least}: {found}, {len(flagged) - sum(flagged)} wrong")
        model = fit(known, labels)
        print(model_line(name, model.intercept, model.weights))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.conflicts", description=__doc__)
    parser.add_argument("--wrong", action="store_true")
    parser.add_argument("--fit", action="store_true")
    parser.add_argument("--embedder", choices=["", "local"], default="")
    options = parser.parse_args()
    wrong, by_meaning = options.wrong, options.embedder == "local"
    pairs = labelled_pairs()
    if options.fit:
        _fit([pair for pair in pairs if not pair.half.endswith("held")])
        return
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
