"""``python -m benchmarks.lessons``: lessons that people give, and requests that need them.

``--sessions FOLDER --read FOLDER`` are logs of sessions, and ``requests/`` and ``answers/`` of
readers who wrote down their lessons; ``--talks FOLDER`` are `sessions/*.jsonl` and `queries.jsonl`
of sde-bench: lines with a `prompt` and the sessions (`gold`) with the decision, of which the last
counts. ``--fit`` prints the model `lessons` of ``fitted.json`` and how well it ranks sentences of
sessions that it was not fitted on. Without ``--held`` the last third of the sessions in time, and
a third of the talks by a hash of their name, is not read.
"""

import argparse
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set as AbstractSet
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from benchmarks.measure import model_line
from contextgraph import AgentMemory, RawTrajectory
from contextgraph.knowledge.extraction import sentences_of, statements_in
from contextgraph.knowledge.last import to_review
from contextgraph.knowledge.sentences import MODEL, SURE, Place, features
from contextgraph.model import LessonStatus
from contextgraph.readers import read
from contextgraph.text import count_tokens, stems

_JUDGED = Path(__file__).parent / "judged" / "statements.jsonl"
_EXAMPLES = Path(__file__).parent / "labels" / "lessons" / "sentences.jsonl"
_WRITTEN, _WORDS = "written", ("word ", "first ")
# A word counts that both real projects have, or one of them and several examples.
_REGULARISATION, _FEWEST, _EXEMPLARY = 0.3, 4, 3
# A sentence says a lesson that a reader wrote if it has so much of its stems.
_SAYS, _TUNED = 0.3, 2 / 3


Matrix: TypeAlias = np.ndarray[tuple[int, int], np.dtype[np.float64]]


class Sentence(NamedTuple):
    """A sentence of a person: its project, session, features, and whether it is a lesson."""

    project: str
    session: str
    text: str
    features: Mapping[str, float]
    is_lesson: bool


class Written(NamedTuple):
    """A lesson that a reader wrote, and the words of a person that it rests on."""

    text: str
    kind: str
    quotes: Sequence[str]


def sessions_of(folder: Path) -> list[RawTrajectory]:
    """Return the sessions in *folder* in order of time; of one there may be several copies."""
    ignored: list[object] = []
    found = read(str(folder), on_error=ignored.append, on_skip=ignored.append)
    dated = [run for run in found if run.started_at]
    return sorted(dated, key=lambda run: (run.started_at or 0, run.instance_id))


def written_in(folder: Path) -> dict[str, list[Written]]:
    """Session -> the lessons that readers wrote of it."""
    found: defaultdict[str, list[Written]] = defaultdict(list)
    for path in sorted((folder / "answers").glob("*.json")):
        request = (folder / "requests" / f"{path.stem}.txt").read_text("utf-8")
        session = request.split()[1]
        found[session] += [
            Written(one["lesson"], one["kind"], [said["quote"] for said in one["evidence"]])
            for one in json.loads(path.read_text("utf-8"))
            if "lesson" in one
        ]
    return found


def labelled(
    runs: Sequence[RawTrajectory], project: str, written: Mapping[str, Sequence[Written]]
) -> Iterator[Sentence]:
    """Yield the sentences of *runs* that were judged, or whose sessions were read."""
    verdicts = {
        row["id"]: row["verdict"]
        for row in map(json.loads, _JUDGED.read_text("utf-8").splitlines())
    }
    known: set[str] = set()
    for run in runs:
        for text, place in sentences_of(run):
            name = _digest(text)
            verdict = verdicts.get(name)
            if name in known or (verdict is None and run.instance_id not in written):
                continue
            known.add(name)
            says = any(_says(text, one) for one in written.get(run.instance_id, ()))
            yield Sentence(
                project, run.instance_id, text, features(text, place), verdict == "right" or says
            )


def written_sentences(real: Sequence[Sentence]) -> list[Sentence]:
    """Return the sentences that were written as examples: short rules, orders of the moment.

    They stand in no turn, and their form says nothing: it is the mean of that of the *real* ones.
    """
    forms = [name for name in real[0].features if not name.startswith(_WORDS)]
    means = {name: float(np.mean([one.features[name] for one in real])) for name in forms}
    rows = map(json.loads, _EXAMPLES.read_text("utf-8").splitlines())
    return [
        Sentence(
            _WRITTEN,
            row["text"],
            row["text"],
            {**features(row["text"], Place(row["text"])), **means},
            row["is_lesson"],
        )
        for row in rows
    ]


def _says(text: str, lesson: Written) -> bool:
    """Return whether *text* is evidence of *lesson* that says it by itself."""
    own, meant = {*stems(text)}, {*stems(lesson.text)}
    words = {*re.findall(r"\w+", text.lower())}
    quoted = any(
        len(words & said) >= 0.7 * len(words) and len(words & said) >= 0.5 * len(said)
        for said in ({*re.findall(r"\w+", quote.lower())} for quote in lesson.quotes)
    )
    return quoted and len(own & meant) >= _SAYS * len(meant)


class Fitted(NamedTuple):
    """A model of sentences: its *intercept*, and a weight for each of the features *names*."""

    names: Sequence[str]
    intercept: float
    weights: Sequence[float]

    def rated(self, known: Sequence[Sentence]) -> list[float]:
        """Return the probability of each of *known* sentences."""
        evidence = self.intercept + _matrix(known, self.names) @ np.array(self.weights)
        rated: list[float] = (1 / (1 + np.exp(-evidence))).tolist()
        return rated


def fit(known: Sequence[Sentence]) -> Fitted:
    """Return the model of *known* sentences.

    Each project has a weight of its own while it is fitted: how many of its sentences are lessons
    says nothing of another one. The intercept is that of the mean of the real projects.
    """
    names = names_in(known)
    projects = sorted({one.project for one in known})
    owners = np.array([[float(one.project == name) for name in projects] for one in known])
    model = LogisticRegression(C=_REGULARISATION, max_iter=3_000)
    model.fit(np.hstack([_matrix(known, names), owners]), [one.is_lesson for one in known])
    weights = model.coef_[0].tolist()
    own = dict(zip(projects, weights[len(names) :], strict=True))
    real = [value for name, value in own.items() if name != _WRITTEN]
    return Fitted(names, float(model.intercept_[0]) + sum(real) / len(real), weights[: len(names)])


def names_in(known: Sequence[Sentence]) -> list[str]:
    """Return the features of *known* sentences by which they are rated."""
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for one in known:
        for name in one.features:
            counts[name][one.project] += 1
    real = {one.project for one in known} - {_WRITTEN}

    def is_known(name: str) -> bool:
        having = [counts[name][project] for project in real]
        is_common = all(having) and sum(having) >= _FEWEST
        is_exemplary = any(having) and counts[name][_WRITTEN] >= _EXEMPLARY
        return not name.startswith(_WORDS) or is_common or is_exemplary

    return [name for name in counts if is_known(name)]


def _matrix(
    known: Sequence[Sentence], names: Sequence[str]
) -> "np.ndarray[tuple[int, int], np.dtype[np.float64]]":
    return np.array([[one.features.get(name, 0.0) for name in names] for one in known])


def auc(known: Sequence[Sentence], rated: Sequence[float]) -> str:
    """Return how well *rated* ranks *known* sentences, of all projects and of each."""
    parts = {"all": known, **{one.project: () for one in known}}
    shown = []
    for name in parts:
        some = [index for index, one in enumerate(known) if name in ("all", one.project)]
        labels = [known[index].is_lesson for index in some]
        value = roc_auc_score(labels, [rated[index] for index in some])
        shown.append(f"{name} {value:.3f} ({sum(labels)} of {len(labels)})")
    return ", ".join(shown)


def rated_elsewhere(known: Sequence[Sentence], folds: int = 5) -> list[float]:
    """Return the probability of each of *known* by a model of other sessions."""
    fold = [int(blake2b(one.session.encode()).hexdigest(), 16) % folds for one in known]
    rated = [0.0] * len(known)
    for number in range(folds):
        others = [one for one, own in zip(known, fold, strict=True) if own != number]
        model = fit(others)
        places = [index for index, own in enumerate(fold) if own == number]
        probable = model.rated([known[index] for index in places])
        for index, value in zip(places, probable, strict=True):
            rated[index] = value
    return rated


def sure_alone(runs: Sequence[RawTrajectory], held: AbstractSet[str], is_held: bool) -> str:
    """Return how many sentences that are active at once a reader took for lessons by themselves."""
    rows = map(json.loads, _JUDGED.read_text("utf-8").splitlines())
    judged = {row["id"]: row["verdict"] == "right" and row["stands_alone"] for row in rows}
    sure = {
        _digest(said.text)
        for run in runs
        if (run.instance_id in held) == is_held
        for said in statements_in(run).statements
        if said.is_sure
    }
    read = [judged[one] for one in sure if one in judged]
    return f"{sum(read)} of {len(read)}; {len(sure) - len(read)} were not judged"


def durable(runs: Sequence[RawTrajectory], held: AbstractSet[str], is_held: bool) -> str:
    """Return how many sentences that a reader called lessons are kept, and are kept as active.

    And the share of lessons among the kept sentences that were judged.
    """
    rows = map(json.loads, _JUDGED.read_text("utf-8").splitlines())
    judged = {row["id"]: row["verdict"] == "right" for row in rows}
    own = [run for run in runs if (run.instance_id in held) == is_held]
    heard = {_digest(text) for run in own for text, _ in sentences_of(run)} & judged.keys()
    right = {one for one in heard if judged[one]}
    kept = {
        _digest(said.text): said.is_sure for run in own for said in statements_in(run).statements
    }
    active = {one for one, is_sure in kept.items() if is_sure}
    return (
        f"{len(right & kept.keys())} of {len(right)}, active {len(right & active)}; right of those"
        f" kept: {len(right & kept.keys())} of {len(heard & kept.keys())},"
        f" active {len(right & active)} of {len(heard & active)}"
    )


def offered(
    runs: Sequence[RawTrajectory], written: Mapping[str, Sequence[Written]], firsts: Sequence[int]
) -> str:
    """Return how many of the *firsts* that wait for a review say a lesson that a reader wrote."""
    with AgentMemory.open(":memory:") as memory:
        for _ in memory.learn_many(runs):
            pass
        waiting = to_review(memory.lessons.of(None, status=[LessonStatus.PROPOSED]))
    right = [
        any(_says(one.text, lesson) for lesson in written.get(one.evidence[0].session, ()))
        for one in waiting
    ]
    return ", ".join(f"{sum(right[:first])} of {len(right[:first])}" for first in firsts)


def _digest(text: str) -> str:
    letters = "".join(re.findall(r"[^\W_]", text.lower()))
    return blake2b(letters.encode(), digest_size=6).hexdigest()


def measure_talks(folder: Path) -> str:
    """Return how many requests were shown the newest decision, or another one, and the tokens.

    And the mean share of the words of a decision that were shown.
    """
    lines = (folder / "queries.jsonl").read_text("utf-8").splitlines()
    right = other = tokens = 0
    said = 0.0
    with AgentMemory.open(":memory:") as memory:
        memory.learn(str(folder / "sessions"))
        for query in map(json.loads, lines):
            context = memory.decided(query["prompt"])
            shown = {one.note.session for one in context.lessons}
            right += shown == {query["gold"][-1]}
            other += bool(shown - {query["gold"][-1]})
            text, decided = memory.render(context), {*stems(query["policy"])}
            tokens += count_tokens(text)
            said += len(decided & {*stems(text)}) / len(decided)
    mean, share = tokens / len(lines), said / len(lines)
    return (
        f"{right} of {len(lines)} right, {other} with another one, {share:.2f} of its words,"
        f" {mean:.0f} tokens"
    )


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.lessons", description=__doc__)
    parser.add_argument("--sessions", type=Path, required=True)
    parser.add_argument("--read", type=Path, required=True)
    parser.add_argument("--talks", type=Path, required=True)
    parser.add_argument("--fit", action="store_true")
    parser.add_argument("--held", action="store_true")
    given = parser.parse_args()
    runs, written = sessions_of(given.sessions), written_in(given.read)
    runs = [run for run in runs if run.instance_id in written]
    talks = sessions_of(given.talks / "sessions")
    named = [*dict.fromkeys(run.instance_id for run in runs)]
    held = {*named[int(_TUNED * len(named)) :]}
    held |= {run.instance_id for run in talks if _is_held(run)}
    known = [*labelled(runs, "team", written), *labelled(talks, "talks", {})]
    known += written_sentences(known)
    tuned = [one for one in known if one.session not in held]
    if given.fit:
        model = fit(tuned)
        weights = {
            name: round(one, 2) for name, one in zip(model.names, model.weights, strict=True)
        }
        shown = {name: weights[name] for name in sorted(weights) if weights[name]}
        print(model_line(MODEL, model.intercept, shown))
        rated = rated_elsewhere(tuned)
        print("AUC on sessions not fitted on:", auc(tuned, rated))
        for least in (0.2, 0.3, 0.4, SURE, 0.6, 0.7):
            rates = zip(tuned, rated, strict=True)
            chosen = [one for one, value in rates if value >= least and one.project != _WRITTEN]
            right = sum(one.is_lesson for one in chosen)
            print(f"from {least}: {right} of {len(chosen)} are lessons")
        if given.held:
            rest = [one for one in known if one.session in held]
            values = model.rated(rest)
            print("AUC on the part held out:", auc(rest, values))
    print("sure sentences, judged as standing alone:", sure_alone(runs + talks, held, given.held))
    print("sentences that are lessons, kept:", durable(runs + talks, held, given.held))
    part = [run for run in runs if (run.instance_id in held) == given.held]
    print("first to review that are lessons:", offered(part, written, (10, 20, 40, 80)))
    print("requests about decisions:", measure_talks(given.talks))


def _is_held(run: RawTrajectory) -> bool:
    return blake2b(run.instance_id.encode(), digest_size=1).digest()[0] % 3 == 0


if __name__ == "__main__":
    main()
