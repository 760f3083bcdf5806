"""``python -m benchmarks``: the table, or with ``--json`` one object a line; ``board``: others.

Exits with 1 where a limit of what a new process takes is exceeded.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks import board, corpus, hooks, learning, query, startup
from benchmarks.measure import Row

SIZES = (1_000, 10_000, 100_000)


def main() -> None:
    """Measure and print."""
    if sys.argv[1:2] == ["board"]:
        board.main(sys.argv[2:])
        return
    options = _options()
    with TemporaryDirectory(prefix="contextgraph-benchmark-") as folder:
        missed = False
        for row in _rows(options, Path(folder)):
            print(json.dumps(row.record()) if options.json else line(row), flush=True)
            missed |= row.is_missed
    sys.exit(int(missed))


def _rows(options: argparse.Namespace, folder: Path) -> Iterator[Row]:
    raws = corpus.runs(options.data)
    sizes = SIZES[:1] if options.quick else SIZES
    if not options.startup:
        yield from learning.rows(raws, options.data, folder)
    yield from startup.rows(raws, folder)
    yield from hooks.rows(raws, folder)
    if options.startup:
        return
    yield from query.rows(raws, sizes, folder, options.seed)


def line(row: Row) -> str:
    """One line of the table."""
    ratio = f"{row.ratio:8.1f} x {row.baseline}" if row.ratio is not None else ""
    missed = ": missed" if row.is_missed else ""
    budget = f"(budget {row.budget}{missed})" if row.budget else ""
    return f"{row.what:<62} {row.value:>10.2f} {row.unit:<9} {ratio} {budget}".rstrip()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--data", type=Path, help="trajectories to measure on (default: examples)")
    parser.add_argument("--quick", action="store_true", help="only 1,000 fragments")
    parser.add_argument("--startup", action="store_true", help="only what a new process takes")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    parser.add_argument("--seed", type=int, default=0, help="choice of the states")
    return parser.parse_args()


if __name__ == "__main__":
    main()
