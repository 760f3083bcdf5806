"""``contextgraph learn``: from files of finished runs into the memory."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from contextgraph.cli.options import AsJson, Paths, Store, Tenant, open_memory
from contextgraph.cli.output import complain, emit

if TYPE_CHECKING:
    from contextgraph.cli.intake import Intake
    from contextgraph.cli.progress import Progress
    from contextgraph.errors import ReadError
    from contextgraph.memory import AgentMemory
    from contextgraph.model import Json


def learn(
    paths: Paths,
    outcomes: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            exists=True,
            help="A SWE-bench report, or a folder of them, that says which instances were solved.",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
    store: Store = None,
    tenant: Tenant = None,
) -> None:
    """Learn finished runs.

    Runs that are known already stay as they are, so the same command goes on where it was
    interrupted. Every run is stored durably before the next one is read.

    \b
    Example:
      contextgraph learn runs/ 'more/*.jsonl.gz'
      contextgraph learn runs/ --outcomes report.json
      cat run.traj | contextgraph learn -
    """
    from contextgraph.cli.intake import Intake
    from contextgraph.cli.progress import Progress
    from contextgraph.readers import size_of

    progress = Progress(lambda: size_of(paths))
    on_failure = _emit_failure if as_json else None
    intake = Intake(paths, outcomes, on_failure, progress.advance)
    counts: Counter[str] = Counter()
    try:
        with open_memory(store, tenant) as memory, memory.batch(), progress:
            _learn_all(memory, intake, counts, progress, as_json=as_json)
    except KeyboardInterrupt:
        stored = counts.total()
        complain(f"interrupted; {stored} trajectories are stored, the same command goes on there")
        raise
    finally:
        _conclude(counts, intake, as_json=as_json)
    raise typer.Exit(intake.exit_code)


def _learn_all(
    memory: "AgentMemory",
    intake: "Intake",
    counts: Counter[str],
    progress: "Progress",
    *,
    as_json: bool,
) -> None:
    from contextgraph.cli.interrupt import finishing
    from contextgraph.cli.records import learned_record

    for raw in intake:
        with finishing():
            receipt = memory.learn(raw)
            counts[receipt.status] += 1
            if as_json:
                emit(learned_record(raw, receipt))
        progress.count(counts.total())


def _emit_failure(error: "ReadError") -> None:
    from contextgraph.cli.records import failed_record

    emit(failed_record(error))


def _conclude(counts: Counter[str], intake: "Intake", *, as_json: bool) -> None:
    from contextgraph.model import LearnStatus

    if as_json:
        summary: dict[str, Json] = {str(status): counts[status] for status in LearnStatus}
        summary |= {"failed": intake.failed, "seconds": round(intake.seconds, 3)}
        emit({"summary": summary})
    elif counts or intake.failed:
        from contextgraph.cli.tables import show_learned

        show_learned(counts, intake.failed, intake.seconds)
