"""Keyed files outlive killed processes, and many processes that write at once."""

import os
import random
import subprocess
import sys
from pathlib import Path

from contextgraph.knowledge.keyed import KeyedMemory

WRITE = """
import sys
from pathlib import Path
from contextgraph.knowledge.keyed import KeyedMemory
writer, count = sys.argv[2], int(sys.argv[3])
memory = KeyedMemory(Path(sys.argv[1]), max_log_lines=50)
for number in range(count):
    content = None if number % 7 == 6 else {"writer": writer, "number": number}
    receipt = memory.set_memory(f"/{writer}/key{number % 5}", content, "agent")
    print(receipt.seq, flush=True)
"""
CALLS = 40


def writing(root: Path, writer: str, count: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITE, str(root), writer, str(count)]
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
        process = writing(tmp_path, f"writer{attempt % 3}", 10_000)
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
    processes = [writing(tmp_path, f"writer{number}", CALLS) for number in range(16)]
    printed = [process.communicate()[0] for process in processes]

    assert [process.returncode for process in processes] == [0] * 16
    acknowledged = sorted(int(line) for text in printed for line in text.splitlines())
    assert acknowledged == sequence_numbers(tmp_path) == [*range(1, 16 * CALLS + 1)]
    memory = KeyedMemory(tmp_path)
    assert memory.check() == []
    for number in range(16):
        last = memory.get(f"/writer{number}/key{(CALLS - 1) % 5}")
        assert last
        assert last.content == {"writer": f"writer{number}", "number": CALLS - 1}
