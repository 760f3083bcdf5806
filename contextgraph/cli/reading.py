"""``contextgraph inspect`` and ``loops``: how runs are read; nothing is learned."""

from typing import TYPE_CHECKING, Annotated

import typer

from contextgraph.cli.options import AsJson, Paths, Tenant, open_memory
from contextgraph.cli.output import emit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contextgraph.cli.intake import Intake
    from contextgraph.model import LoopInfo
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
    """Show how runs are read: phases, errors, loops, recoveries.

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


def loops(
    paths: Paths,
    instance: Instances = None,
    as_json: AsJson = False,
    store: Annotated[
        str | None,
        typer.Option(
            "--store",
            metavar="ADDRESS",
            help="A memory that is asked for ways out of each loop.",
            show_default=False,
        ),
    ] = None,
    tenant: Tenant = None,
) -> None:
    """Show where runs went round in circles.

    Learns nothing. With a memory, what led out of such loops in runs of other instances is named.

    \b
    Example:
      contextgraph loops runs/
      contextgraph loops runs/ --store team.db
    """
    from contextgraph.cli.intake import Intake

    intake = Intake(paths)
    if store is None:
        for inspection in _inspected(intake, instance):
            _tell_loops(inspection, inspection.trace.loops, as_json=as_json)
    else:
        with open_memory(store, tenant, read_only=True) as memory:
            for inspection in _inspected(intake, instance):
                found = memory.loop_detector.detect_all(inspection.trace)
                _tell_loops(inspection, found, as_json=as_json)
    raise typer.Exit(intake.exit_code)


def _tell_loops(inspection: "Inspection", found: "tuple[LoopInfo, ...]", *, as_json: bool) -> None:
    if as_json:
        from contextgraph.cli.inspected import loops_record

        emit(loops_record(inspection, found))
    else:
        from contextgraph.cli.circling import show_loops

        show_loops(inspection.trace.raw.instance_id, found)


def _inspected(intake: "Intake", instances: list[str] | None) -> "Iterator[Inspection]":
    from contextgraph.memory import AgentMemory

    for raw in intake:
        if not instances or raw.instance_id in instances:
            yield AgentMemory.inspect(raw)
