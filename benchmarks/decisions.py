"""``python -m benchmarks.decisions FOLDER``: decisions of conversations, found by later requests.

FOLDER holds `sessions/*.jsonl` and `queries.jsonl` of sde-bench: lines with a `prompt` and the
sessions (`gold`) with the decision, of which the last counts. `--with` mixes in other logs.

``--fit benchmarks/judged/statements.jsonl`` prints the model of decisions of ``fitted.json``, and
how many statements are right if each project is rated with the weights of the others.
"""

import argparse
import json
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression

from benchmarks.measure import model_line
from contextgraph import AgentMemory
from contextgraph.fitted import fitted
from contextgraph.knowledge.durability import SURE
from contextgraph.text import count_tokens

_REGULARISATION = 0.3


def measure(folder: Path, others: list[str]) -> str:
    """Return how many requests were shown the newest decision, or another one, and the tokens."""
    asked = [
        json.loads(line) for line in (folder / "queries.jsonl").read_text("utf-8").splitlines()
    ]
    right = other = tokens = 0
    with AgentMemory.open(":memory:") as memory:
        for logs in (str(folder / "sessions"), *others):
            memory.learn(logs)
        for query in asked:
            context = memory.decided(query["prompt"])
            shown = {one.note.session for one in context.lessons}
            right += shown == {query["gold"][-1]}
            other += bool(shown - {query["gold"][-1]})
            tokens += count_tokens(memory.render(context))
    mean = tokens / len(asked)
    return f"{right} of {len(asked)} right, {other} with another conversation, {mean:.0f} tokens"


def fit(judged: Path) -> str:
    """Return the weights fitted on *judged*, and how well those of the other projects do."""
    rows = [json.loads(line) for line in judged.read_text("utf-8").splitlines()]
    names = [*fitted("decisions").weights]
    found = np.array([[row["signs"].get(name, 0.0) for name in names] for row in rows])
    right = np.array([row["verdict"] == "right" for row in rows])
    taken = np.array([row["taken"] for row in rows])
    alone = np.array([row["stands_alone"] for row in rows])
    projects = np.array([row["project"] for row in rows])
    rated = np.zeros(len(rows))
    for project in sorted({*projects.tolist()}):
        own = projects == project
        model = LogisticRegression(C=_REGULARISATION, max_iter=2_000)
        model.fit(found[~own], right[~own])
        rated[own] = model.predict_proba(found[own])[:, 1]
    sure = taken & alone & (rated >= SURE)
    counts = [int(count) for some in (taken, sure) for count in (right[some].sum(), some.sum())]
    model = LogisticRegression(C=_REGULARISATION, max_iter=2_000).fit(found, right)
    weights = dict(zip(names, model.coef_[0].round(2).tolist(), strict=True))
    return "\n".join(
        [
            model_line("decisions", float(model.intercept_[0]), weights),
            "{} of {} right; sure: {} of {}".format(*counts),
        ]
    )


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.decisions", description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--fit", type=Path, help="what readers said of statements")
    parser.add_argument("--with", dest="others", action="append", default=[])
    given = parser.parse_args()
    if given.fit:
        print(fit(given.fit))
    if given.folder:
        print(measure(given.folder, given.others))


if __name__ == "__main__":
    main()
