"""``contextgraph consolidate``: bring up to date what many runs teach together."""

import typer

from contextgraph.cli.options import AsJson, Store, Tenant, open_memory
from contextgraph.cli.output import complain, emit


def consolidate(as_json: AsJson = False, store: Store = None, tenant: Tenant = None) -> None:
    """Abstract methodologies from what was learned, merge, measure, clean up.

    `learn` does so by itself; a second run right after changes nothing. Where another process is
    at it already, this one says so and leaves it at that.

    \b
    With --json one object: "started", "reason", "trajectories", "changed", "seconds",
    "steps" [{"name", "examined", "created", "updated", "removed"}].

    \b
    Example:
      contextgraph consolidate --store team.db
    """
    from contextgraph.cli.progress import Progress

    with open_memory(store, tenant, read_only=True) as existing:
        existing.store.document_count()  # raises where there is no memory: none is created here
    with open_memory(store, tenant) as memory, Progress(lambda: 1) as progress:
        report = memory.consolidate(lambda done, total: progress.count(done))
    if as_json:
        from contextgraph.cli.records import consolidation_record

        emit(consolidation_record(report))
    elif report.started:
        from contextgraph.cli.tables import show_consolidation

        show_consolidation(report)
    else:
        complain(report.reason)
    raise typer.Exit(0)
