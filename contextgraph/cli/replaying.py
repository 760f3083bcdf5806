"""``contextgraph replay``: recorded runs as if live; what memory would have said."""

from typing import TYPE_CHECKING, Annotated

import typer

from contextgraph.cli.options import AsJson, Configuration, Paths, Tenant, open_memory
from contextgraph.cli.output import complain, emit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contextgraph.cli.progress import Progress
    from contextgraph.model import RawTrajectory
    from contextgraph.replay import Walk

IN_MEMORY = ":memory:"

OwnStore = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="ADDRESS",
        help="The memory: a file, or a neo4j:// or bolt:// address.",
        show_default=IN_MEMORY,
    ),
]


def replay(
    paths: Paths,
    configuration: Configuration = None,
    as_json: AsJson = False,
    store: OwnStore = None,
    tenant: Tenant = None,
) -> None:
    """Walk recorded runs as if live, and show what would be said.

    Asks at each start and error, warns of loops, then learns. Shows what memory would have said.
    Without --store a memory that is forgotten at the end is filled; one that is named learns the
    runs, and learning is resumed where it was interrupted. Runs are ordered by their start where
    all tell it, else by the number in the instance id within each repository, else as they come.

    \b
    With --json one line per moment: "instance_id", "step" (so many were done), "kind" (start,
    error, loop), "answered", "items" (as in query; of a loop its record and "escapes"); last
    "summary" {"order", "runs", "moments", "answered", "learned", "failed", "seconds"}.

    \b
    Example:
      contextgraph replay runs.jsonl.gz
      contextgraph replay runs/ --store team.db --json
    """
    from contextgraph.cli.intake import Intake
    from contextgraph.cli.progress import Progress
    from contextgraph.text import number_of

    intake = Intake(paths)
    runs = list(intake)
    progress = Progress(lambda: len(runs))
    with open_memory(store or IN_MEMORY, tenant, configuration=configuration) as memory, progress:
        walk = memory.replay(runs)
        try:
            _show_all(walk, runs, progress, as_json=as_json)
        except KeyboardInterrupt:
            complain(f"interrupted after {walk.tally.runs} of {number_of(len(runs), 'run')}")
            raise
        finally:
            _conclude(walk, intake.failed, as_json=as_json)
    raise typer.Exit(intake.exit_code)


def _show_all(
    walk: "Walk", runs: "Sequence[RawTrajectory]", progress: "Progress", *, as_json: bool
) -> None:
    from contextgraph.cli.judged import show_spoken, spoken_record
    from contextgraph.replay import Spoken

    for told in walk:
        if not isinstance(told, Spoken):
            progress.advance(1)
            progress.count(walk.tally.runs)
        elif as_json:
            emit(spoken_record(told))
        elif told.answered:
            show_spoken(told)


def _conclude(walk: "Walk", failed: int, *, as_json: bool) -> None:
    from contextgraph.cli.judged import show_tally, tally_record

    if as_json:
        emit({"summary": {**tally_record(walk.tally), "failed": failed}})
    elif walk.tally.runs:
        show_tally(walk.tally)
