"""``contextgraph explain``: where an advice, a run or a fragment comes from."""

from typing import Annotated

import typer

from contextgraph.cli.options import AsJson, Store, Tenant, open_memory
from contextgraph.cli.output import complain, emit

UNKNOWN = 1


def explain(
    node: Annotated[
        str,
        typer.Argument(
            metavar="ID",
            help="Of a methodology (mth_…), a trajectory (trj_…), a fragment (frg_…) or an error"
            " pattern (err_…), as answers name them.",
            show_default=False,
        ),
    ],
    as_json: AsJson = False,
    store: Store = None,
    tenant: Tenant = None,
) -> None:
    """Show where something that the memory said comes from.

    \b
    With --json one object: "id", "label", "name", "facts" {…}, "relations"
    [{"type", "direction", "id", "label", "name", …}].

    \b
    Example:
      contextgraph explain mth_5f0c2a4d9e1b7c3a6d8e0f12
    """
    with open_memory(store, tenant, read_only=True) as memory:
        found = memory.explain(node)
    if found is None:
        complain(f"nothing has the id {node}; query --json shows the ids of what it says")
        raise typer.Exit(UNKNOWN)
    if as_json:
        from contextgraph.cli.records import explanation_record

        emit(explanation_record(found))
    else:
        from contextgraph.cli.explained import show_explanation

        show_explanation(found)
