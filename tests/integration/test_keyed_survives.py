"""Keyed files outlive killed processes, and many processes that write at once."""

import os
import random
import subprocess
import sys
from pathlib import Path

from contextgraph.knowledge.keyed import KeyedMemory

# Each writer is a process of its own, which the first starts once it has imported everything.
WRITE = """
import os, sys
from pathlib import Path
from contextgraph.knowledge.keyed import KeyedMemory
root, count, *others, writer = sys.argv[1:]
for other in others:
    if not os.fork():
        writer, others = other, []
        break
memory = KeyedMemory(Path(root), max_log_lines=50)
for number in range(int(count)):
    content = None if number % 7 == 6 else {"writer": writer, "number": number}
    receipt = memory.set_memory(f"/{writer}/key{number % 5}", content, "agent")
    # One write: the lines of processes do not mix.
    os.write(1, b"%d\\n" % receipt.seq)
assert [os.wait()[1] for _ in others] == [0] * len(others)
"""
CALLS = 40


def writing(root: Path, count: int, *writers: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITE, str(root), str(count), *writers]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


def sequence_numbers(root: Path) -> list[int]:
    """Return the number of each call in log and archive; live ones may be in both."""
    files = [*(root / "archive").glob("*.jsonl"), root / "log.jsonl"]
    lines = [line for path in files for line in path.read_text().splitlines()]
    return sorted({int(line.split('"seq":')[1].split(",")[0]) for line in lines})


def test_nothing_acknowledged_is_lost_when_processes_are_killed(tmp_path: Path) -> None:
    chance = random.Random(3)
    acknowledged: list[int] = []
    for attempt in range(12):
        process = writing(tmp_path, 10_000, f"writer{attempt % 3}")
        assert process.stdout
        wanted = chance.randrange(1, 40)
        acknowledged += [int(process.stdout.readline()) for _ in range(wanted)]
        process.kill()
        rest, _ = process.communicate()
        acknowledged += [int(line) for line in rest.splitlines(keepends=True) if "\n" in line]
        memory = KeyedMemory(tmp_path)
        assert memory.check() == []
        stored = sequence_numbers(tmp_path)
        assert stored == [*range(1, len(stored) + 1)]
        assert {*acknowledged} <= {*stored}
        assert len({*acknowledged}) == len(acknowledged)


def test_sixteen_processes_write_at_once_and_lose_nothing(tmp_path: Path) -> None:
    process = writing(tmp_path, CALLS, *(f"writer{number}" for number in range(16)))
    printed, _ = process.communicate()

    assert process.returncode == 0
    acknowledged = sorted(map(int, printed.splitlines()))
    assert acknowledged == sequence_numbers(tmp_path) == [*range(1, 16 * CALLS + 1)]
    memory = KeyedMemory(tmp_path)
    assert memory.check() == []
    for number in range(16):
        last = memory.get(f"/writer{number}/key{(CALLS - 1) % 5}")
        assert last
        assert last.content == {"writer": f"writer{number}", "number": CALLS - 1}
