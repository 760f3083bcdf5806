"""How many workers keep one writer busy: ``python -m benchmarks.workers runs.jsonl.gz``.

What `contextgraph learn --ray` does on a worker (read, mask, trace, cut) and in the process that
writes, in seconds of one processor, into an empty memory in a file.
"""

import argparse
import pickle
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

from contextgraph import AgentMemory
from contextgraph.learning import RUNS_AT_ONCE
from contextgraph.readers import read


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.workers", description=__doc__)
    parser.add_argument("path", help="trajectories")
    parser.add_argument("--limit", type=int, default=500, help="so many runs (500)")
    options = parser.parse_args()
    worker = AgentMemory.open(":memory:")
    started = process_time()
    raws = islice(read(options.path, on_error=lambda _error: None), options.limit)
    sent = [pickle.dumps(worker.writer.prepared(raw, ())) for raw in raws]
    of_worker = (process_time() - started) / len(sent)
    with TemporaryDirectory() as folder, AgentMemory.open(str(Path(folder, "m.db"))) as memory:
        started = process_time()
        with memory.batch(on_report=lambda _report: None):
            for at in range(0, len(sent), RUNS_AT_ONCE):
                some = map(pickle.loads, sent[at : at + RUNS_AT_ONCE])
                memory.writer.write_all([memory.writer.take(prepared) for prepared in some])
            of_writer = (process_time() - started) / len(sent)
    size = sum(map(len, sent)) / len(sent)
    print(f"a worker: {of_worker * 1000:.1f} ms a run, {1 / of_worker:.0f} runs/s")
    print(f"the writer: {of_writer * 1000:.1f} ms a run, {1 / of_writer:.0f} runs/s")
    print(f"sent: {size / 1000:.0f} kB a run")
    print(f"workers that keep one writer busy: {of_worker / of_writer:.1f}")


if __name__ == "__main__":
    main()
