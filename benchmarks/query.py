"""Queries against memories of several sizes, and the memory of the process.

``python -m benchmarks.query --beside CHECKOUT --data runs.jsonl.gz`` compares the processor time of
queries in one repository with that of another version of this repository: at the start of a run, at
errors, and at any step. In each round a fresh process of each version is asked the same states in
turns; a state counts with the least of its times. Prints p50 and p95 and the ratio with its 95 %
interval, over choices of the states. With ``--loops 16`` so many threads of one process each follow
a run instead, query at each step and learn it at the end: p50 and p95 of the time that passes, and
the processor time of all, learning too, by the number of queries.
"""

import argparse
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from random import Random
from statistics import median
from tempfile import TemporaryDirectory

from benchmarks import corpus
from benchmarks.corpus import bundles
from benchmarks.measure import Row, Version, cost, percentile, ratio_of
from contextgraph import AgentMemory, State
from contextgraph.model import RawTrajectory, Scope, Space, Vector, dimensions_of
from contextgraph.model.values import replace
from contextgraph.readers import write_jsonl
from contextgraph.trace import states_of

QUERIES = 200
LARGEST = 100_000  # fragments: the size that the budgets are for
RUNS_FOLLOWED = 20
_CHOICES = 1000  # of states, for an interval
# An empty memory is filled with runs of the file; the first line is answered when it is complete.
_FILLED = """
from itertools import islice

from benchmarks.corpus import bundles
from contextgraph.trace import states_of

path, store, fragments = sys.argv[1], sys.argv[2], int(sys.argv[3])
raws = runs_of(path)
memory = AgentMemory.open(store)
if not memory.store.admin.counts().nodes.get("Trajectory"):
    made = bundles(raws, fragments)
    while some := list(islice(made, 32)):
        memory.store.runs.add(some)
    memory.consolidate()
input()
print(flush=True)
"""
# Each line of the input is a run and one of its steps.
_QUERIES = f"""{_FILLED}
states = [list(states_of(raw)) for raw in raws]
memory.query(states[0][0])
for line in sys.stdin:
    run, step = map(int, line.split())
    started = process_time()
    memory.query(states[run][step])
    print(process_time() - started, flush=True)
"""
# Each line of the input is the first run, and how many are followed at once.
_LOOPS = f"""{_FILLED}
from threading import Thread

def follow(raw, taken):
    for state in states_of(raw):
        started = perf_counter()
        memory.query(state)
        taken.append(perf_counter() - started)
    memory.learn(raw)

memory.query(next(states_of(raws[0])))
for line in sys.stdin:
    first, count = map(int, line.split())
    taken, before = [], process_time()
    loops = [Thread(target=follow, args=(raw, taken)) for raw in raws[first : first + count]]
    for loop in loops:
        loop.start()
    for loop in loops:
        loop.join()
    taken.sort()
    p50, p95 = taken[len(taken) // 2], taken[int(len(taken) * 0.95)]
    print(p50, p95, (process_time() - before) / len(taken), flush=True)
"""
WORDS = "total cents tests import module path file class error fix".split()


def rows(
    raws: Sequence[RawTrajectory], sizes: Sequence[int], folder: Path, seed: int
) -> Iterator[Row]:
    """p50 and p95 of queries in one repository and over all, at each number of fragments.

    In processor time, as multiples of reading one run by its id.
    """
    for size in sizes:
        path = folder / f"memory{size}.db"
        with AgentMemory.open(str(path)) as memory:
            for bundle in bundles(raws, size):
                memory.store.runs.add([bundle])
            memory.consolidate()
            baseline = _lookup(path)
            scoped = states_about(raws, seed, "acme/shop0")
            yield from _measured(
                memory, scoped, f"query in scope, {size:,} fragments", baseline, size
            )
            unscoped = states_about(raws, seed, "")
            yield from _measured(
                memory, unscoped, f"query unscoped, {size:,} fragments", baseline, size
            )
            yield from _kept(path, size, memory.store.vectors.active_space())
            memory.get_stats()  # loads the graph
            yield Row(f"process memory, {size:,} fragments", _resident(), "MB", budget="700 MB")


def _measured(
    memory: AgentMemory, states: Sequence[State], what: str, baseline: float, size: int
) -> Iterator[Row]:
    memory.query(states[0])
    calls = [partial(memory.query, state) for state in states]
    name = "reading one run by its id"
    for turn in ("", ", the same states again"):
        costs = [cost(call) for call in calls]
        _, taken, counted = (sorted(of_all) for of_all in zip(*costs, strict=True))
        for share in (0.5, 0.95):
            value = percentile(taken, share)
            is_budgeted = share > 0.9 and size == LARGEST and not turn
            budget = ("5 ms" if states[0].repo else "20 ms") if is_budgeted else ""
            label = f"{what}{turn}, p{share * 100:.0f}"
            yield Row(label, value * 1000, "ms", name, value / baseline, budget)
            yield Row(f"{label}, instructions", percentile(counted, share) / 1e6, "million")


def _kept(path: Path, size: int, space: Space | None) -> Iterator[Row]:
    """Processor time of each answer that is kept while the memory does not change, made and kept.

    One that costs as much again is not worth keeping.
    """
    with AgentMemory.open(str(path)) as memory:
        store = memory.store
        calls: dict[str, Callable[[], object]] = {
            "courses of 400 runs": lambda: store.runs.courses(Scope(), 400),
            "counts of ten words": lambda: store.runs.word_counts(WORDS),
            "graph of the memory": memory.graph,
        }
        if space is not None:
            vector = Vector.of(space.name, [1.0] * dimensions_of(space.name))
            calls["twenty nearest runs"] = lambda: store.vectors.nearest(vector, Scope(), 20)
        for what, call in calls.items():
            made, kept = cost(call), cost(call)
            label = f"{what}, {size:,} fragments, kept"
            ratio = made.processor / kept.processor
            yield Row(label, kept.processor * 1000, "ms", "as much when made", ratio)


def states_about(raws: Sequence[RawTrajectory], seed: int, repo: str) -> list[State]:
    """States of *raws*, half of them with an error, as if in *repo*."""
    states = [state for raw in raws for state in states_of(raw)]
    with_error = [state for state in states if state.current_error] or states
    chosen = Random(seed).choices(with_error, k=QUERIES // 2) + Random(seed).choices(
        states, k=QUERIES // 2
    )
    return [replace(state, repo=repo) for state in chosen]


def states_step_by_step(raws: Sequence[RawTrajectory], seed: int, repo: str) -> list[State]:
    """The states of some runs of *raws* in order, as if in *repo*, as an agent queries."""
    chosen = Random(seed).sample(raws, min(RUNS_FOLLOWED, len(raws)))
    return [replace(state, repo=repo) for raw in chosen for state in states_of(raw)]


def _lookup(path: Path) -> float:
    """Processor time of reading one run by its id, in seconds."""
    connection = sqlite3.connect(path)
    ids = [row[0] for row in connection.execute("SELECT key FROM run LIMIT 200")]
    sql = "SELECT * FROM run WHERE tenant = 1 AND key = ?"
    reads = [partial(lambda id_: connection.execute(sql, (id_,)).fetchone(), id_) for id_ in ids]
    middle = percentile(sorted(cost(read).processor for read in reads), 0.5)
    connection.close()
    return middle


def _resident() -> float:
    """Resident memory of this process, in MB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1000
    return float("nan")


def _at_moments(raws: Sequence[RawTrajectory], count: int) -> Iterator[tuple[str, list[str]]]:
    """Yield *count* states of each kind by name: each a line of a run and one of its steps."""
    states = [[*states_of(raw)] for raw in raws]
    steps = [(run, step) for run, of_run in enumerate(states) for step in range(len(of_run))]
    at_error = [(run, step) for run, step in steps if states[run][step].current_error]
    at_start = [(run, 0) for run in range(len(raws))]
    chance = Random(0)
    for name, some in (("start", at_start), ("error", at_error), ("mixed", steps)):
        chosen = chance.sample(some, min(count, len(some)))
        yield name, [f"{run} {step}" for run, step in chosen]


def _asked(
    versions: Sequence[Version], lines: Sequence[str], first: int = 0
) -> list[list[list[float]]]:
    """Return what each of *versions* answers to each line, in turns; who begins changes."""
    answers = []
    for number, line in enumerate(lines, first):
        way = 1 if number % 2 else -1
        answers.append([version.answer(line) for version in versions[::way]][::way])
    return answers


def _compared(name: str, pairs: Sequence[Sequence[float]], share: float) -> str:
    """One line: a percentile of *pairs* (here, beside), and its ratio over choices of them."""

    def of(some: Sequence[Sequence[float]]) -> list[float]:
        return [percentile(sorted(times), share) for times in zip(*some, strict=True)]

    chance = Random(0)
    chosen = (of(chance.choices(pairs, k=len(pairs))) for _ in range(_CHOICES))
    ratios = sorted(here / beside for here, beside in chosen)
    low, high = percentile(ratios, 0.025), percentile(ratios, 0.975)
    here, beside = of(pairs)
    times = f"here {here * 1000:.1f} ms, beside {beside * 1000:.1f} ms"
    return (
        f"{name} p{share * 100:.0f}: {times}, ratio {here / beside:.2f} ({low:.2f} to {high:.2f})"
    )


def _print_queries(options: argparse.Namespace, raws: Sequence[RawTrajectory], path: Path) -> None:
    asked = [*_at_moments(raws, options.states)]
    rounds = []
    for _ in range(options.rounds):
        with ExitStack() as stack:
            versions = _versions(options, _QUERIES, path, stack)
            rounds.append([_asked(versions, lines) for _, lines in asked])
    for number, (name, _) in enumerate(asked):
        times = zip(*(of_kinds[number] for of_kinds in rounds), strict=True)
        pairs = [[min(of)[0] for of in zip(*of_state, strict=True)] for of_state in times]
        for share in (0.5, 0.95):
            print(_compared(name, pairs, share))


def _print_loops(options: argparse.Namespace, path: Path) -> None:
    figures = []
    for number in range(options.rounds):
        with ExitStack() as stack:
            versions = _versions(options, _LOOPS, path, stack)
            line = f"{number * options.loops} {options.loops}"
            figures.append(_asked(versions, [line], first=number)[0])
    for position, name in enumerate(("p50", "p95", "processor time a query")):
        pairs = [[of_one[position] for of_one in of_round] for of_round in figures]
        here, beside = (1000 * median(times) for times in zip(*pairs, strict=True))
        print(f"{options.loops} loops {name}: here {here:.0f} ms, beside {beside:.0f} ms", end=", ")
        print(f"ratio {ratio_of(pairs)}")


def _versions(
    options: argparse.Namespace, script: str, path: Path, stack: ExitStack
) -> list[Version]:
    """Return fresh processes, of this version and the other, once their memories are filled."""
    stores = options.stores or [path.with_name(f"{name}.db") for name in ("here", "beside")]
    versions = []
    for checkout, store in zip((Path(__file__).parents[1], options.beside), stores, strict=True):
        versions.append(Version(checkout, script, [path, store, options.fragments], stack))
        versions[-1].answer()
    return versions


def main() -> None:
    """Compare with another version and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.query", description=__doc__)
    parser.add_argument("--beside", type=Path, required=True, help="a checkout of another version")
    parser.add_argument("--data", type=Path, help="trajectories to measure on (default: examples)")
    parser.add_argument("--fragments", type=int, default=LARGEST, help="in each memory (100,000)")
    parser.add_argument("--stores", nargs=2, help="memories, filled if empty (temporary files)")
    parser.add_argument("--states", type=int, default=QUERIES, help="of each kind (200)")
    parser.add_argument("--loops", type=int, default=0, help="follow so many runs at once instead")
    parser.add_argument("--rounds", type=int, default=3, help="processes of each version (3)")
    options = parser.parse_args()
    # Not as sessions of a client: each would be a copy of those in the memory that are made of it.
    raws = [replace(raw, repo="acme/shop0", session="") for raw in corpus.runs(options.data)]
    with TemporaryDirectory() as folder:
        path = Path(folder, "runs.jsonl")
        with path.open("wb") as file:
            write_jsonl(raws, file)
        if options.loops:
            _print_loops(options, path)
        else:
            _print_queries(options, raws, path)


if __name__ == "__main__":
    main()
