"""Fit the gate of similar tasks: ``python -m benchmarks.case_gate FOLDER QUESTIONS``.

FOLDER is that of ``contextgraph evaluate --related``: its past tasks are learned, its new ones are
asked about, with their repository and without, and a past task is right where people linked it.
QUESTIONS are JSON lines with a ``task`` that nothing answers; they are asked without a repository
and in the most frequent ones. Fits on half of both, by hash; prints the model of tasks of
``contextgraph/knowledge/fitted.json``, and what each bound admits of the other half.
"""

import argparse
from collections import Counter
from datetime import datetime
from hashlib import sha256
from pathlib import Path

import numpy as np
import orjson
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from benchmarks.measure import model_line
from contextgraph.advising.cases import ranking_of
from contextgraph.advising.channels import WEIGHTS, query_of
from contextgraph.advising.gate import CaseFeatures
from contextgraph.evaluation.judging import read_related
from contextgraph.memory.agent_memory import AgentMemory
from contextgraph.model import State

LIMIT = 10
REPOSITORIES = 3
BOUNDS = (0.1, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8)


def main() -> None:
    """Fit and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.case_gate", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("questions", type=Path)
    arguments = parser.parse_args()
    past, queries = read_related(arguments.folder)
    rows = map(orjson.loads, arguments.questions.read_bytes().splitlines())
    probes = [
        (query.task, repo, query.started_at, linked)
        for query, linked in queries
        for repo in (query.repo, "")
    ]
    repos = Counter(query.repo for query, _ in queries).most_common(REPOSITORIES)
    unlinked = [row["task"] for row in rows if "task" in row]
    probes += [
        (task, repo, None, frozenset()) for task in unlinked for repo, _ in (("", 0), *repos)
    ]
    with AgentMemory.open(":memory:") as memory:
        for _ in memory.learn_many(past):
            pass
        answers = [_answer(memory, *probe) for probe in probes]
    halves: tuple[list[NDArray[np.float64]], ...] = ([], [])
    for (task, *_), answer in zip(probes, answers, strict=True):
        halves[sha256(task.encode()).digest()[0] % 2].append(answer)
    fitted = np.concatenate(halves[0])
    model = LogisticRegression(C=10, max_iter=1_000).fit(fitted[:, :-1], fitted[:, -1])
    weights = dict(zip(CaseFeatures._fields, model.coef_[0].round(2).tolist(), strict=True))
    print(model_line("tasks", float(model.intercept_[0]), weights))
    _print_bounds(model, halves[1])


def _answer(
    memory: AgentMemory, task: str, repo: str, at: datetime | None, linked: frozenset[str]
) -> NDArray[np.float64]:
    """A row for each of the first past tasks found: the features, and whether it is right."""
    retriever = memory.retriever
    query = query_of(
        State(task_description=task, repo=repo),
        memory.store,
        embedder=retriever.embedder,
        asked_at=at,
    )
    searches = {name: retriever.channels[name].about_task for name in WEIGHTS}
    cases = {name: search(query, memory.store).cases for name, search in searches.items() if search}
    rows = [
        (*case.features.columns, case.hits[0].trajectory.instance_id in linked)
        for case in ranking_of(query, cases, WEIGHTS, LIMIT)
    ]
    return np.array(rows, dtype=float).reshape(-1, len(CaseFeatures._fields) + 1)


def _print_bounds(model: LogisticRegression, answers: list[NDArray[np.float64]]) -> None:
    print(f"{'bound':>6}{'answered':>10}{'first right':>13}{'items':>7}{'right':>7}")
    judged = [answer for answer in answers if len(answer)]
    probabilities = [model.predict_proba(answer[:, :-1])[:, 1] for answer in judged]
    for bound in BOUNDS:
        shown = [
            answer[by >= bound, -1]
            for answer, by in zip(judged, probabilities, strict=True)
            if by.max() >= bound
        ]
        first = np.mean([hits[0] for hits in shown])
        items = np.concatenate(shown)
        print(
            f"{bound:6.2f}{len(shown) / len(answers):10.2f}{first:13.2f}"
            f"{len(items) / len(shown):7.2f}{items.mean():7.2f}"
        )


if __name__ == "__main__":
    main()
