"""Fit and measure playbooks: ``python -m benchmarks.playbook runs.jsonl.gz more/``.

Of each path the part that ``contextgraph evaluate`` learns by default is learned. The ranking of
files is fitted on it, each run with its own instance hidden; the other part judges what is
shipped. Prints the model of files of ``contextgraph/knowledge/fitted.json``,
and per path: how often a file to change that the task does not name is among the first 1, 3 and 5,
beside baselines; how often the files shown have one; how often the first test command that ran is
that of the playbook; the commands warned against; tokens and milliseconds.

With ``--starts`` instead the steps that starts save, net: all runs are learned, and each is
replayed with its own instance hidden; by halves, the last bit of the hash of the instance. The
first half was tuned on.
"""

import argparse
import posixpath
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from time import perf_counter

import numpy as np
from sklearn.linear_model import LogisticRegression

from benchmarks.measure import model_line
from contextgraph.advising.cases import file_features, files_shown
from contextgraph.advising.channels import without_counts_of
from contextgraph.advising.wording import render_playbook
from contextgraph.evaluation.baselines import (
    RecoveryBaselines,
    TaskBaselines,
    files_in,
    files_most_frequent,
)
from contextgraph.evaluation.evaluation import split
from contextgraph.evaluation.judging import files_to_find
from contextgraph.evaluation.measures import MomentKind, Share, estimate, summed
from contextgraph.evaluation.saving import LiveReplays
from contextgraph.knowledge.fitted import fitted
from contextgraph.learning import masked
from contextgraph.memory.agent_memory import AgentMemory
from contextgraph.model import ActionKind, RawTrajectory, RunFacts
from contextgraph.readers import read
from contextgraph.text import count_tokens
from contextgraph.trace import facts_of, read_steps, trace

SHARE = 0.7
PLACES = (1, 3, 5)
_LIMIT = 10


@dataclass(frozen=True, slots=True)
class Corpus:
    """A memory of the *learned* runs, and the runs that are *judged*."""

    name: str
    memory: AgentMemory
    learned: Sequence[RawTrajectory]
    judged: Sequence[RawTrajectory]


def main() -> None:
    """Fit, measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.playbook", description=__doc__)
    parser.add_argument("paths", nargs="+", type=Path, help="recorded runs, a corpus each")
    parser.add_argument("--starts", action="store_true", help="the steps that starts save")
    given = parser.parse_args()
    if given.starts:
        for path in given.paths:
            _starts(path.name, [*read(path, on_error=_report, on_skip=_report)])
        return
    corpora = [_corpus(path) for path in given.paths]
    _fit(corpora)
    for corpus in corpora:
        print(f"\n{corpus.name}: {len(corpus.learned)} runs learned, {len(corpus.judged)} judged")
        _localisation(corpus)
        _test_commands(corpus)
        _warnings(corpus)
        _length(corpus)


def _corpus(path: Path) -> Corpus:
    learned, judged = split(read(path, on_error=_report, on_skip=_report), SHARE)
    memory = AgentMemory.open(":memory:")
    for _ in memory.learn_many(learned):
        pass
    return Corpus(path.name, memory, learned, judged)


def _report(error: Exception) -> None:
    print(f"left out: {error}", file=sys.stderr)


def _fit(corpora: Sequence[Corpus]) -> None:
    rows: list[tuple[float, ...]] = []
    right: list[bool] = []
    for corpus in corpora:
        for raw in corpus.learned:
            runs = corpus.memory.retriever.playbooks.runs(raw.repo, frozenset({raw.instance_id}))
            if files := files_to_find(raw):
                for path, features in file_features(runs, raw.task).items():
                    if posixpath.basename(path) not in raw.task:
                        rows.append((*features.values(),))
                        right.append(path in files)
    regression = LogisticRegression(max_iter=1000).fit(np.array(rows), right)
    print(f"{len(rows)} files, {sum(right)} of them changed")
    coefficients = regression.coef_[0].round(2).tolist()
    weights = dict(zip(fitted("files").weights, coefficients, strict=True))
    print(model_line("files", float(regression.intercept_[0]), weights))


def _localisation(corpus: Corpus) -> None:
    tasks = TaskBaselines()
    for raw in corpus.learned:
        tasks.add(raw)
    ranks: dict[str, list[int | None]] = {"playbook": [], "most frequent": [], "bm25 in scope": []}
    shown = right_shown = reachable = 0
    for raw in corpus.judged:
        known = corpus.memory.playbook(raw.repo, raw.task, exclude_instances=[raw.instance_id])
        files = files_to_find(raw)
        if not (known and files):
            continue
        hidden = {raw.instance_id}
        near, _ = tasks.bm25(raw.task, _LIMIT, hidden, raw.repo, in_scope=True)
        frequent = files_most_frequent(tasks.of(raw.repo, hidden)).items
        answers = ([file.path for file in known.files], frequent, files_in(near))
        for name, answer in zip(ranks, answers, strict=True):
            right = (place for place, path in enumerate(answer, start=1) if path in files)
            ranks[name].append(next(right, None))
        suggested = files_shown(known)
        shown += bool(suggested)
        right_shown += any(file.path in files for file in suggested)
        reachable += any(file.path in files for file in known.files)
    for name, places in ranks.items():
        hits = (sum(place is not None and place <= k for place in places) for k in PLACES)
        shares = "/".join(f"{hit / max(1, len(places)):.3f}" for hit in hits)
        print(f"  a file to change @1/3/5, {len(places)} runs, {name}: {shares}")
    print(f"  files shown in {shown} of them, right in {right_shown}; reachable in {reachable}")


def _test_commands(corpus: Corpus) -> None:
    same = count = 0
    for raw in corpus.judged:
        known = corpus.memory.playbook(raw.repo, exclude_instances=[raw.instance_id])
        agreed = next((command for command in known.tests if command.is_agreed), None)
        uses = facts_of(raw, read_steps(raw)).commands
        first = next((use for use in uses if use.kind is ActionKind.TEST and use.ran), None)
        if agreed and first:
            count += 1
            same += agreed.command.split(" <")[0] == first.form.split(" <")[0]
    print(f"  first test command that ran is that of the playbook: {same} of {count}")


def _warnings(corpus: Corpus) -> None:
    succeeded = failed = right = wrong = 0
    for raw in corpus.judged:
        facts = facts_of(raw, read_steps(raw))
        succeeded += sum(not use.error_type for use in facts.commands)
        failed += sum(not use.ran for use in facts.commands)
        for fails in _warned(corpus.memory, raw, facts):
            right, wrong = right + fails, wrong + (not fails)
    share = wrong / max(1, succeeded)
    print(
        f"  warned against {right} of {failed} commands that did not run, and against {wrong} of "
        f"{succeeded} that succeeded ({share:.2%})"
    )


def _warned(memory: AgentMemory, raw: RawTrajectory, facts: RunFacts) -> Iterator[bool]:
    """Whether each command failed that a live run would have been warned against."""
    known: set[str] = set()
    for use in facts.commands:
        if use.form not in known:
            hidden = [raw.instance_id]
            if memory.before(raw.repo, use.text, exclude_instances=hidden):
                known.add(use.form)
                yield bool(use.error_type)
            if use.ran:
                known.add(use.form)


def _starts(name: str, runs: Sequence[RawTrajectory]) -> None:
    memory, known = AgentMemory.open(":memory:"), RecoveryBaselines()
    memory.retriever.channels = without_counts_of(
        memory.retriever.channels, {raw.repo for raw in runs}
    )
    for raw in runs:
        memory.learn(raw)
        known.add(trace(masked(raw)[0]))
    for half in range(2):
        replays = LiveReplays(memory, known)
        for raw in runs:
            if blake2b(raw.instance_id.encode(), digest_size=8).digest()[-1] % 2 == half:
                replays.replay(raw, frozenset())
        results = replays.results()
        saved = [(one.instance_id, Share(one.net(MomentKind.START), 1)) for one in results]
        said = [text for one in results for text in one.said if text.kind is MomentKind.START]
        if mean := estimate(summed(saved), seed=0):
            print(
                f"{name}, half {half + 1}: {mean.value:.2f} ({mean.low:.2f} to {mean.high:.2f}) "
                f"steps of {len(results)} runs; {len(said)} starts, "
                f"{sum(text.tokens for text in said) / max(1, len(said)):.0f} tokens, "
                f"{sum(text.wrong for text in said)} items wrong"
            )


def _length(corpus: Corpus) -> None:
    tokens: list[int] = []
    warm: list[float] = []
    for raw in corpus.judged:
        start = perf_counter()
        known = corpus.memory.playbook(raw.repo, raw.task, exclude_instances=[raw.instance_id])
        warm.append((perf_counter() - start) * 1000)
        if text := render_playbook(known):
            tokens.append(count_tokens(text))
    mean, most = (sum(tokens) / len(tokens), max(tokens)) if tokens else (0, 0)
    print(
        f"  {len(tokens)} playbooks shown, {mean:.0f} tokens (at most {most}); "
        f"{np.percentile(warm, 95):.1f} ms at the 95th percentile"
    )


if __name__ == "__main__":
    main()
