"""``python -m benchmarks.keyed``: keyed files under 1,000 kills and 16 writers, and their speed.

Kills hit a writer at a random moment; after each one the files are checked, and in the end every
acknowledged call must be there. Exits with 1 otherwise.
"""

import argparse
import multiprocessing
import random
import sys
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory

import orjson

from contextgraph.knowledge.keyed import KeyedMemory

KEYS = 10_000
WRITERS, CALLS = 16, 100
_FORK = multiprocessing.get_context("fork")


def main() -> None:
    """Measure and print; exit with 1 where something acknowledged is lost."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.keyed", description=__doc__)
    parser.add_argument("--kills", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    lost = 0
    for measure in (lambda root: kill(root, options.kills, options.seed), write_at_once):
        with TemporaryDirectory(prefix="contextgraph-benchmark-") as folder:
            lost += measure(Path(folder))
    with TemporaryDirectory(prefix="contextgraph-benchmark-") as folder:
        speed(Path(folder))
    sys.exit(1 if lost else 0)


def kill(root: Path, kills: int, seed: int) -> int:
    """How many acknowledged calls are lost, and checks fail, when writers are killed."""
    chance = random.Random(seed)
    acknowledged: set[int] = set()
    failed = 0
    for number in range(kills):
        ours, theirs = _FORK.Pipe(duplex=False)
        writer = _FORK.Process(target=_write, args=(root, f"w{number % 5}", 10**9, theirs))
        writer.start()
        theirs.close()
        acknowledged |= {ours.recv() for _ in range(chance.randrange(8))}
        time.sleep(chance.uniform(0.0, 0.01))
        writer.kill()
        writer.join()
        acknowledged |= _received(ours)
        failed += bool(KeyedMemory(root).check())
    lost = len(acknowledged - _stored(root))
    print(f"kills {kills}: {len(acknowledged):,} calls acknowledged, {lost} lost, {failed} damaged")
    return lost + failed


def write_at_once(root: Path) -> int:
    """How many calls are lost when 16 processes write at once."""
    pipes = [_FORK.Pipe(duplex=False) for _ in range(WRITERS)]
    began = time.perf_counter()
    writers = [
        _FORK.Process(target=_write, args=(root, f"w{number}", CALLS, theirs))
        for number, (_, theirs) in enumerate(pipes)
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    seconds = time.perf_counter() - began
    calls = WRITERS * CALLS
    lost = calls - len(_stored(root))
    print(f"writers {WRITERS}: {calls:,} calls, {lost} lost, {calls / seconds:.0f}/s")
    return lost


def speed(root: Path) -> None:
    """How long a call, a brief and a compaction take with 10,000 keys."""
    memory = KeyedMemory(root)
    content = {"type": "note", "tags": ["a", "b"], "summary": "a careful review is needed " * 3}

    def fill() -> None:
        for number in range(KEYS):
            entry = {**content, "importance": number % 10}
            memory.set_memory(f"/user/{number % 97}/n{number}", entry, "user")

    def brief() -> None:
        for _ in range(10):
            memory.brief(tags=["a"])

    _timed(f"set_memory, mean of {KEYS:,}", fill, KEYS)
    _timed(f"brief, {KEYS:,} keys, mean of 10", brief, 10)
    _timed(f"check, {KEYS:,} keys", memory.check)
    (root / "position.json").unlink()
    _timed(f"repair, {KEYS:,} keys", memory.keys)
    fill()
    _timed(f"compact, {2 * KEYS:,} lines", memory.compact)


def _timed(what: str, work: Callable[[], object], count: int = 1) -> None:
    began, began_cpu = time.perf_counter(), time.process_time()
    work()
    wall, cpu = time.perf_counter() - began, time.process_time() - began_cpu
    print(f"{what}: {1000 * wall / count:.1f} ms ({1000 * cpu / count:.1f} ms of CPU)")


def _write(root: Path, writer: str, count: int, pipe: Connection) -> None:
    memory = KeyedMemory(root, max_log_lines=500)
    for number in range(count):
        content = None if number % 7 == 6 else {"number": number, "text": "x" * (number % 3000)}
        pipe.send(memory.set_memory(f"/{writer}/key{number % 5}", content, "agent").seq)


def _received(pipe: Connection) -> set[int]:
    """Return what the killed writer acknowledged; its last message may be cut."""
    received: set[int] = set()
    try:
        while pipe.poll():
            received.add(pipe.recv())
    except (EOFError, OSError):
        pass
    return received


def _stored(root: Path) -> set[int]:
    files = [*(root / "archive").glob("*.jsonl"), root / "log.jsonl"]
    return {orjson.loads(line)["seq"] for path in files for line in path.read_bytes().splitlines()}


if __name__ == "__main__":
    main()
