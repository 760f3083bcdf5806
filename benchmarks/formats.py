"""How fast each format is read: ``python -m benchmarks.formats samples/ more/``.

Seconds of one processor, so that other work on the machine matters little. The floor is orjson on
the same bytes, decompressed: the least that any reader of JSON has to do.
"""

import argparse
import gzip
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from time import process_time

import orjson
import zstandard

from contextgraph.model import RawTrajectory
from contextgraph.readers import read
from contextgraph.readers.sources import SourceFile, sources

# Each source is read again until this much time has passed; a sample takes some milliseconds.
_AT_LEAST = 0.2


@dataclass(slots=True)
class Total:
    """A reading of one format: seconds of reading and of parsing."""

    runs: int = 0
    size: int = 0
    reading: float = 0.0
    parsing: float = 0.0


def main() -> None:
    """Print a line for each format."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.formats", description=__doc__)
    parser.add_argument("paths", nargs="+", help="trajectories, as of `contextgraph learn`")
    totals: defaultdict[str, Total] = defaultdict(Total)
    for path in parser.parse_args().paths:
        for source in sources(path):
            _add(totals, source)
    print(f"{'format':<22}{'runs':>6}{'MB':>8}{'runs/s':>8}{'MB/s':>7}{'x orjson':>10}")
    for name, total in sorted(totals.items()):
        rates = f"{total.runs / total.reading:>8,.0f}{total.size / 1e6 / total.reading:>7.0f}"
        floor = f"{total.reading / total.parsing:>10.1f}"
        print(f"{name:<22}{total.runs:>6}{total.size / 1e6:>8.2f}{rates}{floor}")


def _add(totals: dict[str, Total], source: SourceFile) -> None:
    runs = [run.source_format for run in _runs(source)]
    if not runs:
        return
    texts = [_text(Path(name)) for name in source.parts or [source.name]]
    total = totals[runs[0]]
    total.runs += len(runs)
    total.size += sum(map(len, texts))
    total.reading += _seconds(lambda: sum(1 for _ in _runs(source)))
    total.parsing += _seconds(lambda: [_parsed(text) for text in texts])


def _runs(source: SourceFile) -> Iterable[RawTrajectory]:
    return read(source, on_error=_pass, on_skip=_pass)


def _pass(_error: object) -> None:
    """Leave out what is not a run."""


def _text(file: Path) -> bytes:
    content = file.read_bytes()
    if content.startswith(b"\x1f\x8b"):
        return gzip.decompress(content)
    if content.startswith(b"\x28\xb5\x2f\xfd"):
        return zstandard.ZstdDecompressor().decompressobj().decompress(content)
    return content


def _parsed(text: bytes) -> object:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return [_line(line) for line in text.splitlines()]


def _line(line: bytes) -> object:
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError:
        return None


def _seconds(work: Callable[[], object]) -> float:
    started, times = process_time(), 0
    while (taken := process_time() - started) < _AT_LEAST:
        work()
        times += 1
    return taken / times


if __name__ == "__main__":
    main()
