"""``python -m benchmarks.store_agreement``: do all stores give the same answers?

Learns the same runs into a file, networkx and a Neo4j server, queries all with the same states, and
compares candidates, answers, what is recalled, graphs, and of the file and the server the lines of
``contextgraph query --batch --json``. ``--server`` names the server, CONTEXTGRAPH_NEO4J_PASSWORD
its password; without it, it is left out. The runs belong to a tenant of their own, which is emptied
at the end.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from itertools import count, islice
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from uuid import uuid4

from benchmarks.corpus import EXAMPLES, START
from contextgraph import AgentMemory, State
from contextgraph.config import load_settings
from contextgraph.memory.wiring import build
from contextgraph.model import RawTrajectory, Scope, Vector
from contextgraph.readers import read
from contextgraph.text import words
from contextgraph.trace import states_of

LIMIT = 20


@dataclass(frozen=True, slots=True)
class Agreement:
    """How many answers were equal; recall is of the candidates that the file proposed.

    *same_order* is the share of vector queries with the same results in the same order,
    *same_recalled* the number of states whose task recalls the same entities and notes.
    """

    states: int
    same_answers: int
    same_recalled: int
    full_text_recall: float
    vector_recall: float
    same_order: float


def opened(address: str, tenant: str = "default") -> AgentMemory:
    """The memory at *address*, with a clock that counts: scores depend on learning times."""
    ticks = count()
    settings = load_settings(store=address, tenant=tenant)
    return AgentMemory.of(build(settings, clock=lambda: START + timedelta(seconds=next(ticks))))


def learn(memory: AgentMemory, runs: Iterable[RawTrajectory]) -> float:
    """Learn *runs* one by one, consolidated at the end; seconds."""
    began = time.perf_counter()
    for _ in memory.learn_many(runs):
        pass
    return time.perf_counter() - began


def some_states(runs: Iterable[RawTrajectory], count: int, seed: int) -> list[State]:
    """*count* of all states of *runs*, half of them with an error."""
    states = [state for raw in runs for state in states_of(raw)]
    with_error = [state for state in states if state.current_error]
    chance = Random(seed)
    return chance.choices(with_error, k=count // 2) + chance.choices(states, k=count - count // 2)


def agreement(file: AgentMemory, other: AgentMemory, states: Sequence[State]) -> Agreement:
    """Compare the answers of *other* with those of *file*."""
    same = sum(file.query(state) == other.query(state) for state in states)
    recalled = sum(_recalled(file, state) == _recalled(other, state) for state in states)
    text = [
        _recall(question(file), question(other))
        for state in states
        for question in _text_questions(state)
    ]
    vector_questions = list(_vector_questions(file, states))
    near = [_recall(question(file), question(other)) for question in vector_questions]
    in_order = [question(file) == question(other) for question in vector_questions]
    return Agreement(len(states), same, recalled, _mean(text), _mean(near), _mean(in_order))


def _recalled(memory: AgentMemory, state: State) -> list[tuple[str, float]]:
    """Recall about the task of *state*; scores are rounded further than age changes them."""
    found = memory.notes.recall(state.task_description, repo=state.repo, limit=LIMIT)
    return [(one.note.id, round(one.score, 2)) for one in found]


def same_lines(folder: Path, states: Sequence[State], *memories: tuple[str, str]) -> int:
    """For how many of *states* the command line prints the same line with each of *memories*.

    *memories* are (address, tenant); ids of contexts do not count. *folder* is for the queries.
    """
    batch = folder / "states.jsonl"
    batch.write_text("".join(json.dumps(asdict(state)) + "\n" for state in states))
    answers = [_lines(batch, address, tenant) for address, tenant in memories]
    return sum(len(set(of_one)) == 1 for of_one in zip(*answers, strict=True))


def _lines(batch: Path, address: str, tenant: str) -> list[str]:
    command = [sys.executable, "-m", "contextgraph", "query", "--batch", str(batch), "--json"]
    command += ["--store", address, "--tenant", tenant]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return [line.replace(json.loads(line)["id"], "ctx_") for line in done.stdout.splitlines()]


Question = Callable[[AgentMemory], Sequence[str]]


def _runs_by_text(terms: Sequence[str], scope: Scope) -> Question:
    return lambda memory: [run.id for run in memory.store.runs.for_text(terms, scope, LIMIT)]


def _recoveries_by_text(terms: Sequence[str], scope: Scope) -> Question:
    return lambda memory: [
        f"{recovery.fragment_id} {recovery.error_step}"
        for recovery in memory.store.recoveries.for_text(terms, scope, LIMIT)
    ]


def _nearest(vector: Vector, scope: Scope) -> Question:
    return lambda memory: [
        near.trajectory.id for near in memory.store.vectors.nearest(vector, scope, LIMIT)
    ]


def _text_questions(state: State) -> Iterator[Question]:
    terms = list(words(f"{state.task_description}\n{state.current_error}"))
    for scope in (Scope(), Scope(repo=state.repo)):
        yield _runs_by_text(terms, scope)
        yield _recoveries_by_text(terms, scope)


def _vector_questions(file: AgentMemory, states: Sequence[State]) -> Iterator[Question]:
    """Neighbours of runs, one for each state, in a repository and in all."""
    ids = file.store.runs.ids()
    for number, state in enumerate(states):
        run = file.store.runs.archived(ids[number % len(ids)])
        embedded = run.embedded if run else None
        if embedded and embedded.vector:
            yield _nearest(embedded.vector, Scope())
            yield _nearest(embedded.vector, Scope(repo=state.repo))


def _recall(wanted: Sequence[str], returned: Sequence[str]) -> float:
    return len({*wanted} & {*returned}) / len(wanted) if wanted else 1.0


def _mean(shares: Sequence[float]) -> float:
    return sum(shares) / len(shares) if shares else 1.0


def main() -> None:
    """Measure and print."""
    options = _options()
    runs = list(islice(_shuffled(options.data, options.seed), options.runs))
    tenant = f"agreement-{uuid4().hex}"
    with TemporaryDirectory(prefix="contextgraph-agreement-") as name:
        path = f"{name}/memory.db"
        with opened(path) as file:
            learned = learn(file, runs)
            print(json.dumps({"runs": len(runs), "file_per_second": round(len(runs) / learned, 1)}))
            states = some_states(runs, options.states, options.seed)
            with opened("networkx:") as graph:
                print(json.dumps(_measured("networkx", file, graph, runs, states)), flush=True)
            if not options.server:
                return
            with opened(options.server, tenant) as server:
                try:
                    print(json.dumps(_measured("server", file, server, runs, states)), flush=True)
                    both = (path, "default"), (options.server, tenant)
                    same = same_lines(Path(name), states, *both)
                    print(json.dumps({"states": len(states), "same_lines": same}))
                finally:
                    server.forget(server.store.runs.ids())


def _measured(
    name: str,
    file: AgentMemory,
    other: AgentMemory,
    runs: Sequence[RawTrajectory],
    states: Sequence[State],
) -> dict[str, float | int | bool | str]:
    """Compare *other*, the store *name*, with *file* after both learned *runs*."""
    seconds = learn(other, runs)
    agreed = agreement(file, other, states)
    return {
        "store": name,
        "per_second": round(len(runs) / seconds, 1),
        "same_counts": file.store.admin.counts() == other.store.admin.counts(),
        "same_space": file.store.vectors.active_space() == other.store.vectors.active_space(),
        "states": agreed.states,
        "same_answers": agreed.same_answers,
        "same_recalled": agreed.same_recalled,
        "full_text_recall": round(agreed.full_text_recall, 4),
        "vector_recall": round(agreed.vector_recall, 4),
        "same_order": round(agreed.same_order, 4),
    }


def _shuffled(data: Path, seed: int) -> list[RawTrajectory]:
    runs = list(read(data))
    Random(seed).shuffle(runs)
    return runs


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.store_agreement", description=__doc__
    )
    parser.add_argument("--server", help="bolt:// or neo4j:// address")
    parser.add_argument("--data", type=Path, default=EXAMPLES, help="trajectories to learn")
    parser.add_argument("--runs", type=int, default=200, help="how many of them")
    parser.add_argument("--states", type=int, default=200, help="how many states to query")
    parser.add_argument("--seed", type=int, default=0, help="choice of runs and states")
    return parser.parse_args()


if __name__ == "__main__":
    main()
