"""Reading, tracing and storing runs.

``python -m benchmarks.learning --beside CHECKOUT --data runs.jsonl.gz`` compares the processor time
that learning takes here with that of another version of this repository: fresh processes learn the
same runs in turns, a few each, into files of their own, without consolidation. Prints milliseconds
a run and the median ratio of the turns with its 95 % interval. The other version gets what its
records can hold of each run.
"""

import argparse
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import process_time
from unittest.mock import patch

import orjson
import zstandard

from benchmarks.corpus import EXAMPLES, START, renamed
from benchmarks.measure import Row, Version, percentile, ratio_of, seconds
from contextgraph import AgentMemory
from contextgraph.learning import bundle_of
from contextgraph.model import RawTrajectory
from contextgraph.readers import read, to_record, write_jsonl

LEAST_RUNS, MOST_RUNS = 100, 300
ROUNDS = 7
FINISHED = 20
_RUNS_IN_TURN = 5
# Runs of the records of the first argument are learned, so many for each line of the input.
_LEARNER = """
with TemporaryDirectory() as folder, AgentMemory.open(f"{folder}/memory.db") as memory:
    raws = iter(runs_of(sys.argv[1]))
    for line in sys.stdin:
        started = process_time()
        for _ in range(int(line)):
            memory.writer.write(next(raws))
        print(process_time() - started, flush=True)
"""


def rows(raws: Sequence[RawTrajectory], data: Path | None, folder: Path) -> Iterator[Row]:
    """Reading files, tracing runs, learning them durably, and the command that does all of it."""
    yield from _reading(raws, data, folder)
    yield from _tracing(raws)
    many = raws if len(raws) >= LEAST_RUNS else list(renamed(raws, LEAST_RUNS))
    yield from _learning(many[:MOST_RUNS], folder)
    yield from _finishing(raws, folder)
    yield from _safeguards(many[:MOST_RUNS], folder)
    yield from _command(many, folder)


def _reading(raws: Sequence[RawTrajectory], data: Path | None, folder: Path) -> Iterator[Row]:
    path = data
    if path is None or path.suffix != ".jsonl":
        path = folder / "runs.jsonl"
        with path.open("wb") as file:
            write_jsonl(raws, file)
    lines = path.read_bytes().splitlines()
    baseline = seconds(lambda: [orjson.loads(line) for line in lines])
    taken = seconds(lambda: sum(1 for _ in read(path)))
    megabytes = path.stat().st_size / 1e6
    yield Row("read JSONL", megabytes / taken, "MB/s", "orjson of the same lines", taken / baseline)


def _tracing(raws: Sequence[RawTrajectory]) -> Iterator[Row]:
    taken = seconds(lambda: [bundle_of(raw, START) for raw in raws]) / len(raws)
    steps = sum(len(raw.steps) for raw in raws) / len(raws)
    size = sum(_characters(raw) for raw in raws) / len(raws) / 1000
    parsed = [orjson.dumps(to_record(raw)) for raw in raws]
    baseline = seconds(lambda: [orjson.loads(line) for line in parsed]) / len(raws)
    what = f"mask, trace and segment a run of {steps:.0f} steps, {size:.0f} kB"
    budget = "3 ms at 29 steps, 65 kB"
    yield Row(what, taken * 1000, "ms a run", "orjson of the same run", taken / baseline, budget)


def _learning(many: Sequence[RawTrajectory], folder: Path) -> Iterator[Row]:
    count = len(many)
    baseline = seconds(lambda: _plain_inserts(many, folder), repeat=1)
    with AgentMemory.open(str(folder / "learned.db")) as memory:
        taken = seconds(lambda: [memory.writer.write(raw) for raw in many], repeat=1)
        memory.consolidate()
        again = seconds(lambda: [memory.learn(raw) for raw in many], repeat=1)
    name = "one compressed row and one synced commit a run"
    yield Row(
        "learn, durable, without consolidation",
        count / taken,
        "runs/s",
        name,
        taken / baseline,
        "200 runs/s",
    )
    yield Row("learn again, unchanged", count / again, "runs/s", name, again / baseline)


def _finishing(raws: Sequence[RawTrajectory], folder: Path) -> Iterator[Row]:
    """The end of a live run after which consolidation is due: each 16th of a memory."""
    more = renamed(raws, 16 * FINISHED)
    taken = []
    for _ in range(FINISHED):
        with AgentMemory.open(str(folder / "finished.db")) as memory:  # waits for consolidation
            for raw in islice(more, 16):
                run = memory.live(repo=raw.repo, instance_id=raw.instance_id, task=raw.task)
                for step in raw.steps:
                    run.observe(step.action, step.observation or "", exit_code=step.exit_code)
                last = seconds(run.finish, repeat=1)
            taken.append(last * 1000)
    taken.sort()
    for share in (0.5, 0.95):
        what = f"LiveRun.finish at the 16th run, p{share * 100:.0f} of {FINISHED}"
        yield Row(what, percentile(taken, share), "ms", budget="50 ms")


def _safeguards(many: Sequence[RawTrajectory], folder: Path) -> Iterator[Row]:
    """Measure the share of masking, credit, checksums and the bounds of files in learning.

    Each is left out in turn, right before a round with all of them.
    """
    path = folder / "safeguards.jsonl"
    with path.open("wb") as file:
        write_jsonl(many, file)

    def learned() -> float:
        with TemporaryDirectory(dir=folder) as own, AgentMemory.open(f"{own}/memory.db") as memory:
            started = process_time()
            for raw in read(path):
                memory.writer.write(raw)
            return process_time() - started

    for name, left_out in _SAFEGUARDS.items():
        shares = []
        for _ in range(ROUNDS):
            with left_out():
                without = learned()
            shares.append(1 - without / learned())
        yield Row(f"{name}, processor time of learning", 100 * median(shares), "%")


@contextmanager
def _without(name: str, instead: Callable[..., object]) -> Iterator[None]:
    with patch(name, instead):
        yield


_SAFEGUARDS: Mapping[str, Callable[[], AbstractContextManager[None]]] = {
    "masking of secrets": partial(
        _without, "contextgraph.learning.bundle.masked", lambda raw: (raw, {})
    ),
    "credit of what was shown": partial(
        _without, "contextgraph.store.memory_store._Changes.report_shown", lambda *_: None
    ),
    "checksums of stored rows": partial(
        _without, "contextgraph.store.sqlite.schema.Schema.create_triggers", lambda *_: None
    ),
    "bounds of JSON": partial(_without, "contextgraph.system.intake._is_deeper", lambda *_: False),
}


def _command(raws: Sequence[RawTrajectory], folder: Path) -> Iterator[Row]:
    """Time the command of users: a process that reads, learns and consolidates."""
    path = folder / "learn.jsonl"
    with path.open("wb") as file:
        write_jsonl(raws, file)
    command = [sys.executable, "-m", "contextgraph", "learn", str(path), "--json"]
    command += ["--store", str(folder / "command.db")]
    work = partial(subprocess.run, command, check=True, capture_output=True)
    taken = seconds(work, repeat=1)
    yield Row(
        f"contextgraph learn, {len(raws):,} runs",
        len(raws) / taken,
        "runs/s",
        budget="120 runs/s",
    )


def _plain_inserts(many: Sequence[RawTrajectory], folder: Path) -> None:
    connection = sqlite3.connect(folder / "baseline.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("CREATE TABLE runs (id INTEGER PRIMARY KEY, raw BLOB)")
    compress = zstandard.ZstdCompressor(level=1).compress
    for raw in many:
        text = "\n".join(f"{step.action.text}\n{step.observation}" for step in raw.steps)
        blob = compress(text.encode("utf-8", "replace"))
        connection.execute("INSERT INTO runs (raw) VALUES (?)", (blob,))
    connection.close()


def _characters(raw: RawTrajectory) -> int:
    return sum(
        len(step.thought) + len(step.action.text) + len(step.observation or "")
        for step in raw.steps
    )


def _turns(raws: Sequence[RawTrajectory], beside: Path, folder: Path) -> Iterator[list[float]]:
    """Processor time of each turn, here and beside it; who begins changes."""
    path = folder / "records.jsonl"
    with path.open("wb") as file:
        write_jsonl(raws, file)
    with ExitStack() as stack:
        here, other = (
            Version(checkout, _LEARNER, [path], stack)
            for checkout in (Path(__file__).parents[1], beside)
        )
        for turn, at in enumerate(range(0, len(raws), _RUNS_IN_TURN)):
            count = min(_RUNS_IN_TURN, len(raws) - at)
            order = (here, other) if turn % 2 else (other, here)
            taken = {learner: learner.answer(count)[0] for learner in order}
            yield [taken[here] / count, taken[other] / count]


def main() -> None:
    """Compare with another version and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.learning", description=__doc__)
    parser.add_argument("--beside", type=Path, required=True, help="a checkout of another version")
    parser.add_argument("--data", type=Path, help="trajectories to learn (default: examples)")
    parser.add_argument("--runs", type=int, default=200, help="so many of them (200)")
    parser.add_argument("--rounds", type=int, default=3, help="processes of each version (3)")
    options = parser.parse_args()
    raws = list(islice(read(options.data or EXAMPLES, on_error=lambda _: None), options.runs))
    turns: list[list[float]] = []
    for _ in range(options.rounds):
        with TemporaryDirectory() as folder:
            turns += _turns(raws, options.beside, Path(folder))
    here, other = (1000 * sum(times) / len(turns) for times in zip(*turns, strict=True))
    print(f"{len(raws)} runs, {len(turns)} turns of {_RUNS_IN_TURN} runs")
    print(f"here {here:.1f} ms a run, beside {other:.1f} ms a run")
    print(f"ratio {ratio_of(turns)}")


if __name__ == "__main__":
    main()
