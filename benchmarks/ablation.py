"""Ablation of each part of the advice: ``python -m benchmarks.ablation runs.jsonl.gz``.

Of each path the part that ``contextgraph evaluate`` learns by default is learned; every error that
was cleared in it is asked about with its own instance hidden. Prints clearance@1/3/5 of the
ranking, how often the shipped gate answers and how often its first item is right; and by how much
each part raises these, with 95 % intervals: a rule that is switched off, a feature of
the gate that is left out where the regression is fitted again (by ten folds of instances; no
answers). Then the same of the ranking of files at starts: localisation@1/3/5 of the learned runs
that have a patch and a known repository.

With ``--steps`` instead the net steps that all texts save the runs of the other part, by the
convention of docs/evaluation.md: facts of each scope and cause left out, and what interrupts shown
from a probability of .5 on. ``--runs`` says how many runs are replayed.
"""

import argparse
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import TypeAlias
from unittest.mock import patch

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, cross_val_predict

from benchmarks.gate import FOLDS, learned_part, moments_of
from contextgraph.advising import playbook
from contextgraph.advising.cases import file_features
from contextgraph.advising.gate import CONSERVATIVE, probability
from contextgraph.evaluation.baselines import RecoveryBaselines
from contextgraph.evaluation.judging import files_to_find
from contextgraph.evaluation.measures import Share, difference, summed
from contextgraph.evaluation.saving import LiveReplays
from contextgraph.knowledge.fitted import fitted
from contextgraph.learning import masked
from contextgraph.learning.gate_fitting import JudgedRemedy, shares_of
from contextgraph.memory.agent_memory import AgentMemory
from contextgraph.model import Cause, Likeness, MachineFact, RawTrajectory, RunLosses
from contextgraph.trace import trace

PLACES = (1, 3, 5)
_EVIDENCE = "contextgraph.advising.evidence"
_OF_FILES = (*fitted("files").weights,)


@dataclass(frozen=True, slots=True)
class JudgedFile:
    """A file that was ranked for the task of *instance*, and whether its patch changes it."""

    instance: str
    features: Mapping[str, float]
    is_right: bool


Judged: TypeAlias = JudgedRemedy | JudgedFile
Moments: TypeAlias = Sequence[tuple[str, Sequence[Judged]]]
Facts: TypeAlias = tuple[MachineFact, ...]
Measure: TypeAlias = Callable[[Sequence[Judged]], Share]


def _always(*_: object, **__: object) -> bool:
    return True


def _never(*_: object, **__: object) -> bool:
    return False


RULES: Mapping[str, Callable[[], AbstractContextManager[object]]] = {
    "evidence": lambda: patch(f"{_EVIDENCE}.is_supported", _always),
    "evidence: of the cause": lambda: patch(f"{_EVIDENCE}.shows_cause", _always),
    "evidence: of an import": lambda: patch(f"{_EVIDENCE}._is_importable", _always),
    "evidence: of a package": lambda: patch(f"{_EVIDENCE}._is_imported", _always),
    "evidence: never in general terms": lambda: patch(f"{_EVIDENCE}._NEVER_IN_GENERAL", ()),
    "done before": lambda: patch(f"{_EVIDENCE}.was_tried", _never),
    "what contradicts the state": lambda: patch(f"{_EVIDENCE}._contradicts", _never),
    "circumstances": lambda: patch(f"{_EVIDENCE}._weight", lambda *_: 1.0),
    "other names in general terms": lambda: patch(f"{_EVIDENCE}.about_another", _never),
    "an instance of doubt": lambda: patch("contextgraph.advising.counts._DOUBT", 1e-9),
    "errors of the family": lambda: patch("contextgraph.advising.channels.ENOUGH_OF_TYPE", 0),
}


_FACTS = f"{playbook.__name__}.machine_facts"
_choose = playbook.machine_facts
Losses: TypeAlias = Sequence[RunLosses]


def _here_alone(here: Losses, _: Losses) -> Facts:
    return _choose(here, ())


def _anywhere_alone(_: Losses, anywhere: Losses) -> Facts:
    return _choose((), anywhere)


def _no_facts(_: Losses, __: Losses) -> Facts:
    return ()


def _without(cause: Cause) -> Callable[[], AbstractContextManager[object]]:
    """Leave out the facts of *cause*."""

    def others(here: Losses, anywhere: Losses) -> Facts:
        return tuple(fact for fact in _choose(here, anywhere) if fact.cause is not cause)

    return lambda: patch(_FACTS, others)


PARTS: Mapping[str, Callable[[], AbstractContextManager[object]]] = {
    "scope: facts of the environment": lambda: patch(_FACTS, _here_alone),
    "scope: facts of the repository": lambda: patch(_FACTS, _anywhere_alone),
    "scope: all facts": lambda: patch(_FACTS, _no_facts),
    **{f"cause: {cause}": _without(cause) for cause in Cause if cause is not Cause.FOLDER},
    "gate: .7 in place of .5": lambda: patch("contextgraph.advising.pipeline.SURE", 0.5),
}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ablation", description=__doc__)
    parser.add_argument("paths", nargs="+", type=Path, help="recorded runs, a corpus each")
    parser.add_argument("--steps", action="store_true", help="net steps saved in place of ranks")
    parser.add_argument("--runs", type=int, default=100, help="of each corpus, with --steps")
    arguments = parser.parse_args()
    for path in arguments.paths:
        with AgentMemory.open(":memory:") as memory:
            runs, others = learned_part(path, memory)
            if arguments.steps:
                _print_saved(path.name, memory, runs, others[: arguments.runs])
                continue
            _print_corpus(path.name, runs, memory)
            if moments := _files(runs, memory):
                _print_files(moments)


def _print_corpus(name: str, runs: Sequence[RawTrajectory], memory: AgentMemory) -> None:
    whole = moments_of(runs, memory)
    clearance, shown = _figures(whole, CLEARANCE), _figures(whole, SHOWN)
    print(f"{name}: {len(whole)} errors, clearance@1/3/5 {clearance}, answered/right {shown}")
    for rule, without in RULES.items():
        with without():
            _print_part(f"rule: {rule}", whole, moments_of(runs, memory), SHOWN)
    _print_features(whole, tuple(Likeness))


def _print_saved(
    name: str,
    memory: AgentMemory,
    learned: Sequence[RawTrajectory],
    runs: Sequence[RawTrajectory],
) -> None:
    """Print the net steps that *runs* save with each of `PARTS`, and how much it adds."""
    known = RecoveryBaselines()
    for raw in learned:
        known.add(trace(masked(raw)[0]))
    whole = _saved(memory, known, runs)
    steps = sum(share.amount for share in whole.values()) / len(runs)
    print(f"{name}: {len(runs)} runs, {steps:.2f} steps a run", flush=True)
    for part, without in PARTS.items():
        with without():
            less = _saved(memory, known, runs)
        gap = difference({one: (less[one], share) for one, share in whole.items()}, seed=0)
        print(f"  {part:36} {gap.value:+.2f} ({gap.low:+.2f} to {gap.high:+.2f})", flush=True)


def _saved(
    memory: AgentMemory, known: RecoveryBaselines, runs: Sequence[RawTrajectory]
) -> Mapping[str, Share]:
    """Instance -> the net steps that what is said saves its runs."""
    replays = LiveReplays(memory, known)
    for raw in runs:
        replays.replay(raw, frozenset())
    return summed((one.instance_id, Share(one.net(), 1)) for one in replays.results())


def _files(runs: Sequence[RawTrajectory], memory: AgentMemory) -> Moments:
    """The files that are ranked at the start of each run, where its patch shows which are right."""
    moments = []
    for raw in runs:
        known = memory.retriever.playbooks.runs(raw.repo, frozenset({raw.instance_id}))
        if known and (right := files_to_find(raw)):
            ranked = file_features(known, raw.task).items()
            name = raw.instance_id
            judged = [JudgedFile(name, of, path in right) for path, of in ranked]
            moments.append((name, judged))
    return moments


def _print_files(moments: Moments) -> None:
    fitted = _print_features(moments, _OF_FILES)
    known = [
        (
            name,
            [file for file in files if not isinstance(file, JudgedFile) or file.features["used"]],
        )
        for name, files in moments
    ]
    _print_part("files of listings", fitted, _fitted(known, _OF_FILES, _OF_FILES))


def _print_features(moments: Moments, names: Sequence[str]) -> Moments:
    """Print what each of the features brings; *moments* in the order of all of them."""
    fitted = _fitted(moments, names, names)
    print(f"  fitted again: {len(fitted)} moments, @1/3/5 {_figures(fitted, CLEARANCE)}")
    for feature in names:
        others = [name for name in names if name != feature]
        _print_part(f"feature {feature}", fitted, _fitted(moments, others, names))
    return fitted


def _fitted(moments: Moments, features: Sequence[str], names: Sequence[str]) -> Moments:
    """*moments* in the order of a regression on *features*, fitted on other instances.

    *names* are those of all features, in the order of the features of each.
    """
    columns = [names.index(feature) for feature in features]
    judged = [candidate for _, moment in moments for candidate in moment]
    by = cross_val_predict(
        LogisticRegression(max_iter=5_000),
        np.array([_values(candidate) for candidate in judged])[:, columns],
        [candidate.is_right for candidate in judged],
        groups=[candidate.instance for candidate in judged],
        cv=GroupKFold(FOLDS),
        method="predict_proba",
    )[:, 1]
    scores = iter(by.tolist())
    scored = [
        (name, [(next(scores), candidate) for candidate in moment]) for name, moment in moments
    ]
    return [
        (name, [candidate for _, candidate in sorted(moment, key=lambda pair: -pair[0])])
        for name, moment in scored
    ]


def _values(judged: Judged) -> tuple[float, ...]:
    return tuple(judged.features.values() if isinstance(judged, JudgedFile) else shares_of(judged))


def _print_part(name: str, whole: Moments, without: Moments, more: Sequence[Measure] = ()) -> None:
    """By how much the part raises clearance and *more*, which *without* it is not there."""
    figures = []
    for measure in (*CLEARANCE, *more):
        before, after = _by_instance(without, measure), _by_instance(whole, measure)
        gap = difference(
            {instance: (before[instance], after[instance]) for instance in after}, seed=0
        )
        figures.append(f"{gap.value:+.3f} ({gap.low:+.3f} to {gap.high:+.3f})")
    print(f"  {name:36}", "  ".join(figures), flush=True)


def _by_instance(moments: Moments, measure: Measure) -> Mapping[str, Share]:
    return summed((instance, measure(ranked)) for instance, ranked in moments)


def _figures(moments: Moments, measures: Sequence[Measure]) -> str:
    """Each of *measures*, of all *moments*."""
    shares = [[*_by_instance(moments, measure).values()] for measure in measures]
    return "/".join(
        f"{sum(x.amount for x in of_measure) / sum(x.of for x in of_measure):.3f}"
        for of_measure in shares
    )


def _is_hit(ranked: Sequence[Judged], k: int) -> Share:
    return Share(any(candidate.is_right for candidate in ranked[:k]), 1)


def _answered(ranked: Sequence[Judged]) -> Share:
    return Share(_first_shown(ranked) is not None, 1)


def _right(ranked: Sequence[Judged]) -> Share:
    first = _first_shown(ranked)
    return Share(first is not None and first.is_right, first is not None)


def _first_shown(ranked: Sequence[Judged]) -> JudgedRemedy | None:
    """The most probable of *ranked* that the shipped gate admits."""
    by = [
        (probability(remedy.counts), remedy)
        for remedy in ranked
        if isinstance(remedy, JudgedRemedy) and remedy.is_supported
    ]
    admitted = [pair for pair in by if pair[0] >= CONSERVATIVE.min_precision]
    return max(admitted, key=itemgetter(0))[1] if admitted else None


CLEARANCE: Sequence[Measure] = [partial(_is_hit, k=k) for k in PLACES]
SHOWN: Sequence[Measure] = [_answered, _right]


if __name__ == "__main__":
    main()
