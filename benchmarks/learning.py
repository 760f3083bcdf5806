"""Reading, understanding and storing runs."""

import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

import orjson
import zstandard

from benchmarks.material import START, renamed
from benchmarks.measure import Row, seconds
from contextgraph import AgentMemory
from contextgraph.model import RawTrajectory
from contextgraph.readers import read, to_record, write_jsonl
from contextgraph.writing import bundle_of


def rows(found: Sequence[RawTrajectory], data: Path | None, folder: Path) -> Iterator[Row]:
    """Reading, reading a run for errors and fragments, and learning it durably."""
    yield from _reading(found, data, folder)
    yield from _understanding(found)
    yield from _learning(found, folder)


def _reading(found: Sequence[RawTrajectory], data: Path | None, folder: Path) -> Iterator[Row]:
    path = data
    if path is None or path.suffix != ".jsonl":
        path = folder / "runs.jsonl"
        with path.open("wb") as file:
            write_jsonl(found, file)
    lines = path.read_bytes().splitlines()
    floor = seconds(lambda: [orjson.loads(line) for line in lines])
    taken = seconds(lambda: sum(1 for _ in read(path)))
    megabytes = path.stat().st_size / 1e6
    yield Row("read JSONL", megabytes / taken, "MB/s", "orjson of the same lines", taken / floor)


def _understanding(found: Sequence[RawTrajectory]) -> Iterator[Row]:
    taken = seconds(lambda: [bundle_of(raw, START) for raw in found]) / len(found)
    steps = sum(len(raw.steps) for raw in found) / len(found)
    size = sum(_characters(raw) for raw in found) / len(found) / 1000
    parsed = [orjson.dumps(to_record(raw)) for raw in found]
    floor = seconds(lambda: [orjson.loads(line) for line in parsed]) / len(found)
    what = f"mask, read, cut a run of {steps:.0f} steps, {size:.0f} kB"
    budget = "4 ms at 29 steps, 65 kB"
    yield Row(what, taken * 1000, "ms a run", "orjson of the same run", taken / floor, budget)


def _learning(found: Sequence[RawTrajectory], folder: Path) -> Iterator[Row]:
    count = min(300, max(100, len(found)))
    many = list(renamed(found, count))
    floor = seconds(lambda: _bare_inserts(many, folder), repeat=1)
    with AgentMemory.open(str(folder / "learned.db")) as memory:
        taken = seconds(lambda: [memory.writer.write(raw) for raw in many], repeat=1)
        whole = taken + seconds(memory.consolidate, repeat=1)
        again = seconds(lambda: [memory.learn(raw) for raw in many], repeat=1)
    name = "one compressed row and one synced commit a run"
    yield Row("learn, durable", count / taken, "runs/s", name, taken / floor, "100 runs/s")
    what = "the same, with fitting the space and consolidating at the end"
    yield Row(what, count / whole, "runs/s", name, whole / floor)
    yield Row("learn again, unchanged", count / again, "runs/s", name, again / floor)


def _bare_inserts(many: Sequence[RawTrajectory], folder: Path) -> None:
    connection = sqlite3.connect(folder / "floor.db", isolation_level=None)
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
