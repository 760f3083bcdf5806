"""``python -m benchmarks.decisions FOLDER``: decisions of conversations, found by later requests.

FOLDER holds `sessions/*.jsonl` and `queries.jsonl` of sde-bench: lines with a `prompt` and the
sessions (`gold`) with the decision, of which the last counts. `--with` mixes in other logs.
"""

import argparse
import json
from pathlib import Path

from contextgraph import AgentMemory
from contextgraph.text import count_tokens


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
            shown = {one.note.session for one in context.statements}
            right += shown == {query["gold"][-1]}
            other += bool(shown - {query["gold"][-1]})
            tokens += count_tokens(memory.render(context))
    mean = tokens / len(asked)
    return f"{right} of {len(asked)} right, {other} with another conversation, {mean:.0f} tokens"


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.decisions", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--with", dest="others", action="append", default=[])
    given = parser.parse_args()
    print(measure(given.folder, given.others))


if __name__ == "__main__":
    main()
