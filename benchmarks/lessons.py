"""``python -m benchmarks.lessons``: lessons that people give, and requests that need them.

``--sessions FOLDER --read FOLDER`` are logs of sessions, and ``requests/`` and ``answers/`` of
readers who wrote down their lessons; ``--talks FOLDER`` are `sessions/*.jsonl` and `queries.jsonl`
of sde-bench: lines with a `prompt` and the sessions (`gold`) with the decision, of which the last
counts. ``--answers FOLDER`` are answers to the requests that `benchmarks.moments` writes.
``--fit`` prints the model `lessons` of ``fitted.json`` and how well it ranks sentences of
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

from benchmarks.corpus import sessions_of
from benchmarks.measure import model_line
from benchmarks.moments import REPO, WAVES, Row, Waves, answers_in, digest, keep_read, steps_of
from contextgraph import AgentMemory, RawTrajectory
from contextgraph.knowledge.distil import Request, checked, nearest, session_of
from contextgraph.knowledge.extraction import sentences_in, sentences_of, statements_in
from contextgraph.knowledge.last import to_review
from contextgraph.knowledge.sentences import MODEL, SURE, Place, features
from contextgraph.model import Lesson, LessonStatus, Origin, is_subagent
from contextgraph.model.values import replace
from contextgraph.text import count_tokens, stems

_JUDGED = Path(__file__).parent / "judged" / "statements.jsonl"
_RECURRING = Path(__file__).parent / "judged" / "recurring.jsonl"
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
            name = digest(text)
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
        digest(said.text)
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
    heard = {digest(text) for run in own for text, _ in sentences_of(run)} & judged.keys()
    right = {one for one in heard if judged[one]}
    kept = {
        digest(said.text): said.is_sure for run in own for said in statements_in(run).statements
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


class Recurring(NamedTuple):
    """A rule that a person stated in several sessions: session -> turns.

    *is_wanted*: a reader of the sessions listed it; others were right among what was proposed.
    """

    said: Mapping[str, Sequence[int]]
    is_wanted: bool

    def is_said_by(self, one: Lesson, steps: Mapping[str, Sequence[int]]) -> bool:
        """Return whether *one* rests on turns of two of the sessions."""
        own = {
            session: {steps[session][turn] for turn in turns if turn < len(steps[session])}
            for session, turns in self.said.items()
        }
        return len({it.session for it in one.evidence if it.step in own.get(it.session, ())}) > 1


def labelled_again(is_held: bool) -> tuple[list[Recurring], dict[str, list[Row]]]:
    """Return the rules that recur, and session -> the lessons that a reader said its turns say."""
    rules, again = list[Recurring](), defaultdict[str, list[Row]](list)
    for row in map(json.loads, _RECURRING.read_text("utf-8").splitlines()):
        if "confirms" in row:
            again[row["session"]].append(row)
        elif row["held"] == is_held:
            said = {one["session"]: one["turns"] for one in row["said"]}
            rules.append(Recurring(said, row["is_wanted"]))
    return rules, again


def said_again(
    memory: AgentMemory, run: RawTrajectory, run_id: str, rows: Sequence[Row]
) -> Iterator[bool]:
    """Confirm the lessons of *rows* in *memory*; yield whether the request of *run* gives each."""
    session = session_of(run, run_id)
    for part, turns in enumerate(session.parts if session else ()):
        assert session is not None
        listed = memory.lessons.of(run.repo)
        known = [
            one
            for one in listed
            if one.status is LessonStatus.ACTIVE or one.origin is Origin.DISTILLED
        ]
        request = Request(session, part, nearest(session, part, known), "")
        for turn in turns:
            for row in (one for one in rows if steps_of(run)[one["turn"]] == turn.step):
                given = [one for one in request.given if digest(one.text) == row["confirms"]]
                yield bool(given)
                for one in given:
                    meant = {*stems(one.text)}
                    quote = max(sentences_in(turn.text), key=lambda it: len(meant & {*stems(it)}))
                    item = {"turn": turn.number, "quote": quote}
                    answer = json.dumps([{"confirms": one.id, "evidence": [item]}])
                    memory.lessons.keep(checked(answer, request).kept, run.repo)


def recurring(
    runs: Sequence[RawTrajectory],
    is_held: bool,
    answers: Mapping[str, Sequence[Row]],
    folder: Path | None = None,
) -> str:
    """Return how many rules that recur in *runs* are known to, and how many known ones are right.

    With *answers*, what readers wrote of each session is kept, and what the reader of the labels
    says that its turns say again; with a *folder* the answers to requests there, instead.
    """
    rules, again = labelled_again(is_held)
    runs = [replace(run, repo=REPO) for run in runs]
    own = {run.instance_id: run for run in reversed(runs) if not is_subagent(run.agent)}
    steps, given = {name: steps_of(run) for name, run in own.items()}, list[bool]()
    order = sorted(own.values(), key=lambda run: (run.started_at or 0, run.instance_id))
    waves = Waves(folder, [(order, WAVES[is_held])]) if folder else None
    with AgentMemory.open(":memory:") as memory:
        for run in runs:
            if waves and run.started_at:
                waves.ask(memory, run.started_at)
            name, run_id = run.instance_id, memory.learn(run).trajectory_id
            if own.get(name) is run and waves:
                waves.keep(memory, run)
            elif own.get(name) is run and name in answers:
                given += said_again(memory, run, run_id, again[name])
                keep_read(memory, run, run_id, answers[name])
        known = memory.lessons.of(REPO, status=[LessonStatus.ACTIVE], recurring=True)
    wanted = [one for one in rules if one.is_wanted]
    found = [any(one.is_said_by(lesson, steps) for lesson in known) for one in wanted]
    right = [any(one.is_said_by(lesson, steps) for one in rules) for lesson in known]
    asked = f"; {sum(given)} of {len(given)} that a reader confirms are given" if given else ""
    return f"{sum(found)} of {len(wanted)}, right {sum(right)} of {len(right)}{asked}"


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
    parser.add_argument("--answers", type=Path, help="requests and answers of benchmarks.moments")
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
    _print_recurring(part, given)
    print("requests about decisions:", measure_talks(given.talks))


def _print_recurring(part: Sequence[RawTrajectory], given: argparse.Namespace) -> None:
    print("rules that recur, known:", recurring(part, given.held, {}))
    if given.answers:
        print("with --answers:", recurring(part, given.held, {}, given.answers))
    answers = answers_in(given.read)
    print("with the lessons and confirmations of readers:", recurring(part, given.held, answers))


def _is_held(run: RawTrajectory) -> bool:
    return blake2b(run.instance_id.encode(), digest_size=1).digest()[0] % 3 == 0


if __name__ == "__main__":
    main()
