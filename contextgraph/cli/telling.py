"""``contextgraph stats`` and ``doctor``: what is in the memory, and whether it is well."""

from typing import Annotated

import typer

from contextgraph.cli.options import AsJson, Store, Tenant, open_memory
from contextgraph.cli.output import emit


def stats(
    top: Annotated[int, typer.Option("--top", metavar="N", min=1, help="Rows in each table.")] = 15,
    as_json: AsJson = False,
    store: Store = None,
    tenant: Tenant = None,
) -> None:
    """Show what is in the memory: counts, errors, transitions, failure patterns.

    \b
    With --json one object: "counts" {"nodes", "edges", "outcomes", "repositories"},
    "error_frequency" {type: fragments}, "transitions" {type: {next type: probability}},
    "failure_patterns" [{"condition", "what", "count", "prevented"}].

    \b
    Example:
      contextgraph stats --top 5
    """
    with open_memory(store, tenant, read_only=True) as memory:
        found = memory.get_stats()
    if as_json:
        from contextgraph.cli.records import stats_record

        emit(stats_record(found))
    else:
        from contextgraph.cli.tables import show_stats

        show_stats(found, top)


def doctor(as_json: AsJson = False, store: Store = None, tenant: Tenant = None) -> None:
    """Check the memory and this installation; says what to do about what is ill.

    \b
    With --json one object: "ok", "store", "checks" [{"name", "ok", "detail", "remedy"}],
    "versions" {name: version}, "extras" {name: installed}. Exit code 1 when something is ill.

    \b
    Example:
      contextgraph doctor
    """
    from contextgraph.cli.checkup import check_up, checkup_record

    found = check_up(store, tenant)
    if as_json:
        emit(checkup_record(found))
    else:
        from contextgraph.cli.tables import show_checkup

        show_checkup(found)
    raise typer.Exit(0 if found.ok else 1)
