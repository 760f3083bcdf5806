"""``contextgraph stats`` and ``doctor``: what is in the memory, and whether it is well."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from contextgraph.cli.options import AsJson, Store, Tenant, open_memory
from contextgraph.cli.output import emit
from contextgraph.cli.plots import draw


def stats(
    top: Annotated[int, typer.Option("--top", metavar="N", min=1, help="Rows in each table.")] = 15,
    repo: Annotated[
        str,
        typer.Option(
            "--repo", metavar="OWNER/REPO", help="What goes wrong in it.", show_default=False
        ),
    ] = "",
    situation: Annotated[
        str,
        typer.Option(
            "--situation",
            metavar="WORDS",
            help="What goes wrong in a phase, at a type of task, at a file, or at tasks about some"
            " words.",
            show_default=False,
        ),
    ] = "",
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            file_okay=False,
            help="Draw errors, transitions and outcomes over time into it.",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
    store: Store = None,
    tenant: Tenant = None,
) -> None:
    """Show what is in the memory: counts, errors, what follows.

    \b
    With --json one object: "counts" {"nodes", "edges", "outcomes", "methodologies",
    "repositories"}, "error_frequency" {type: fragments},
    "transitions" {type: {next type: probability}},
    "common_mistakes" [{"description", "count", "cleared"}] of the repository and situation,
    "failure_patterns" [{"condition", "what", "count", "prevented"}] of the repository,
    "usage" {model: {"requests", "tokens", "cost"}} of models behind an API, from this machine,
    "plots" [file].

    \b
    Example:
      contextgraph stats --top 5
      contextgraph stats --repo owner/repo --situation testing
      contextgraph stats --plot pictures/
    """
    with open_memory(store, tenant, read_only=True) as memory:
        found = memory.get_stats()
        patterns = memory.stats.get_failure_patterns(repo) if repo else found.failure_patterns
        mistakes = memory.stats.get_common_mistakes(situation, repo)
        drawn = draw(memory.stats, plot) if plot else []
    if as_json:
        from contextgraph.cli.records import stats_record

        emit(stats_record(replace(found, failure_patterns=patterns), mistakes, drawn))
        return
    from contextgraph.cli.tables import show_mistakes, show_stats

    if repo or situation:
        within = " ".join(filter(None, (repo and f"in {repo}", situation and f"at {situation!r}")))
        show_mistakes(within, mistakes, patterns if not situation else (), top)
    else:
        show_stats(found, top)
    for file in drawn:
        print(f"drawn: {file}")


def doctor(as_json: AsJson = False, store: Store = None, tenant: Tenant = None) -> None:
    """Check the memory and this installation; name remedies.

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
