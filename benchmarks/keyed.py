"""``python -m benchmarks.keyed``: keyed files under 16 writers, and their speed.

Exits with 1 where a call of a writer is lost. ``python -m benchmarks.kills`` kills them.
"""

import multiprocessing
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import orjson

from contextgraph.knowledge.keyed import KeyedMemory

KEYS = 10_000
WRITERS, CALLS = 16, 100
_FORK = multiprocessing.get_context("fork")


def main() -> None:
    """Measure and print; exit with 1 where a call is lost."""
    with TemporaryDirectory(prefix="contextgraph-benchmark-") as folder:
        lost = write_at_once(Path(folder))
    with TemporaryDirectory(prefix="contextgraph-benchmark-") as folder:
        speed(Path(folder))
    sys.exit(1 if lost else 0)


def write_at_once(root: Path) -> int:
    """How many calls are lost when 16 processes write at once."""
    began = time.perf_counter()
    writers = [
        _FORK.Process(target=_write, args=(root, f"w{number}", CALLS)) for number in range(WRITERS)
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


def _write(root: Path, writer: str, count: int) -> None:
    memory = KeyedMemory(root, max_log_lines=500)
    for number in range(count):
        content = None if number % 7 == 6 else {"number": number, "text": "x" * (number % 3000)}
        memory.set_memory(f"/{writer}/key{number % 5}", content, "agent")


def _stored(root: Path) -> set[int]:
    files = [*(root / "archive").glob("*.jsonl"), root / "log.jsonl"]
    return {orjson.loads(line)["seq"] for path in files for line in path.read_bytes().splitlines()}


if __name__ == "__main__":
    main()
