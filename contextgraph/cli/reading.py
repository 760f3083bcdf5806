"""``contextgraph inspect`` and ``loops``: how runs are read; nothing is learned."""

from typing import TYPE_CHECKING, Annotated

import typer

from contextgraph.cli.options import AsJson, Paths
from contextgraph.cli.output import emit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contextgraph.cli.intake import Intake
    from contextgraph.writing import Inspection

Instances = Annotated[
    list[str] | None,
    typer.Option(
        "--instance", metavar="ID", help="Only runs of it (repeatable).", show_default=False
    ),
]


def inspect(
    paths: Paths,
    instance: Instances = None,
    step: Annotated[
        int | None,
        typer.Option("--step", metavar="N", min=0, help="Show step N in full.", show_default=False),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show how runs are read: steps, phases, errors, fragments, loops, recoveries.

    Learns nothing and needs no memory.

    \b
    Example:
      contextgraph inspect runs/owner__repo-12.traj
      contextgraph inspect runs.jsonl.gz --instance owner__repo-12 --step 7
    """
    from contextgraph.cli.intake import Intake

    intake = Intake(paths)
    for inspection in _inspected(intake, instance):
        if as_json:
            from contextgraph.cli.inspected import inspection_record

            emit(inspection_record(inspection))
        elif step is not None:
            from contextgraph.cli.timeline import show_step

            show_step(inspection, step)
        else:
            from contextgraph.cli.timeline import show_timeline

            show_timeline(inspection)
    raise typer.Exit(intake.exit_code)


def loops(paths: Paths, instance: Instances = None, as_json: AsJson = False) -> None:
    """Show where runs went round in circles.

    Learns nothing and needs no memory.

    \b
    Example:
      contextgraph loops runs/
    """
    from contextgraph.cli.intake import Intake

    intake = Intake(paths)
    for inspection in _inspected(intake, instance):
        if as_json:
            from contextgraph.cli.inspected import loops_record

            emit(loops_record(inspection))
        else:
            from contextgraph.cli.timeline import show_loops

            show_loops(inspection)
    raise typer.Exit(intake.exit_code)


def _inspected(intake: "Intake", instances: list[str] | None) -> "Iterator[Inspection]":
    from contextgraph.memory import AgentMemory

    for raw in intake:
        if not instances or raw.instance_id in instances:
            yield AgentMemory.inspect(raw)
