"""``contextgraph export`` and ``import``: a memory as a file, from any store into any other."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from contextgraph.cli.options import AsJson, Store, Tenant, open_memory
from contextgraph.cli.output import complain, emit

if TYPE_CHECKING:
    from collections.abc import Callable

    from contextgraph.cli.progress import Progress

WithVectors = Annotated[
    bool,
    typer.Option(
        "--with-vectors/--without-vectors",
        help="Vectors too, or let the memory that reads them embed its texts itself.",
    ),
]


def export(
    path: Annotated[
        Path, typer.Argument(metavar="FILE", help="The file to write; .zst compresses it.")
    ],
    vectors: WithVectors = True,
    as_json: AsJson = False,
    store: Store = None,
    tenant: Tenant = None,
) -> None:
    """Write a memory to a file.

    Runs with what was read from them, methodologies, credit, vectors. The file has one JSON object
    a line, and is there whole in the end or as it was before. It holds the masked runs themselves:
    guard it like the memory.

    \b
    Example:
      contextgraph export team.jsonl.zst --store team.db
    """
    from contextgraph.cli.progress import Progress
    from contextgraph.text import number_of

    began = time.monotonic()
    with open_memory(store, tenant, read_only=True) as memory:
        total = len(memory.store.trajectory_ids())
        with Progress(lambda: total) as progress:
            done = memory.export(path, vectors=vectors, progress=_told(progress))
    seconds = round(time.monotonic() - began, 3)
    if as_json:
        emit(
            {
                "runs": done.runs,
                "methodologies": done.methodologies,
                "exposures": done.exposures,
                "seconds": seconds,
            }
        )
    else:
        print(
            f"wrote {number_of(done.runs, 'trajectory')}, "
            f"{number_of(done.methodologies, 'methodology')} and "
            f"{number_of(done.exposures, 'exposure')} to {path} in {seconds:.1f} s"
        )


def import_(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="A file that `export` wrote.")],
    vectors: WithVectors = True,
    as_json: AsJson = False,
    store: Store = None,
    tenant: Tenant = None,
) -> None:
    """Read a file that `export` wrote into a memory.

    What the memory holds stays. The whole file is checked first: where a line is damaged nothing is
    imported. What is known already stays as it is, so the same command goes on where it was
    interrupted.

    \b
    Example:
      contextgraph import team.jsonl.zst --store neo4j://memory.example:7687
    """
    from contextgraph.archive import count_runs
    from contextgraph.cli.progress import Progress
    from contextgraph.text import number_of

    began = time.monotonic()
    total = count_runs(path)
    try:
        with open_memory(store, tenant) as memory, Progress(lambda: total) as progress:
            done = memory.import_archive(path, vectors=vectors, progress=_told(progress))
    except KeyboardInterrupt:
        complain("interrupted; the same command goes on there")
        raise
    seconds = round(time.monotonic() - began, 3)
    if done.vectors_of:
        complain(
            f"vectors of {done.vectors_of} are left out, the memory has another space; "
            "contextgraph reembed makes its own"
        )
    if as_json:
        emit(
            {
                "created": done.created,
                "updated": done.updated,
                "unchanged": done.unchanged,
                "methodologies": done.methodologies,
                "exposures": done.exposures,
                "seconds": seconds,
            }
        )
    else:
        runs = number_of(done.created + done.updated + done.unchanged, "trajectory")
        print(
            f"{runs}: {done.created} new, {done.updated} with an outcome now, "
            f"{done.unchanged} known; {number_of(done.methodologies, 'methodology')}, "
            f"{number_of(done.exposures, 'exposure')}; {seconds:.1f} s"
        )


def _told(progress: "Progress") -> "Callable[[int, int], None]":
    before = 0

    def told(done: int, total: int) -> None:
        nonlocal before
        progress.advance(done - before)
        progress.count(done)
        before = done

    return told
