"""How many loops end by themselves: ``python -m benchmarks.loops runs.jsonl.gz``."""

import argparse
from collections.abc import Iterator
from pathlib import Path

from contextgraph.readers import read
from contextgraph.trace import trace

# A loop ended by itself where the run went on for so many steps after its last repetition.
WENT_ON = 4
REPETITIONS = (3, 4, 5, 6, 8, 10, 15, 20)


def main() -> None:
    """Print the curve: of the loops that reached n repetitions, how many ended by themselves."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.loops", description=__doc__)
    parser.add_argument("runs", type=Path, help="any recorded runs")
    loops = list(_loops(parser.parse_args().runs))
    print("repetitions   loops   ended by themselves")
    for count in REPETITIONS:
        ended = [by_itself for repetitions, by_itself in loops if repetitions >= count]
        print(f"{count:>11} {len(ended):>7} {sum(ended) / max(1, len(ended)):>21.3f}")


def _loops(path: Path) -> Iterator[tuple[int, bool]]:
    """Repetitions of each loop, and whether its run went on after it."""
    for raw in read(path):
        traced = trace(raw)
        for loop in traced.loops:
            yield loop.repetitions, len(traced.steps) - 1 - loop.end >= WENT_ON


if __name__ == "__main__":
    main()
