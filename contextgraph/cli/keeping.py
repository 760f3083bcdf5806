"""``contextgraph rebuild``, ``migrate`` and ``forget``: what becomes of what is stored."""

from collections.abc import Collection, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Annotated

import typer

from contextgraph.cli.options import AsJson, Store, Tenant, open_memory
from contextgraph.cli.output import complain, emit

if TYPE_CHECKING:
    from contextgraph.memory import AgentMemory
    from contextgraph.model import Json, Trajectory

SHOWN = 10

Ids = Annotated[
    list[str] | None,
    typer.Argument(metavar="TRAJECTORY_ID", help="Runs by their id.", show_default=False),
]
Instances = Annotated[
    list[str] | None,
    typer.Option(
        "--instance", metavar="ID", help="All runs of it (repeatable).", show_default=False
    ),
]
Repos = Annotated[
    list[str] | None,
    typer.Option(
        "--repo", metavar="OWNER/REPO", help="All runs in it (repeatable).", show_default=False
    ),
]


def rebuild(as_json: AsJson = False, store: Store = None, tenant: Tenant = None) -> None:
    """Read all stored runs again, as this version reads logs.

    For after an update. Outcomes, learning times and credit stay. Each run is replaced in one
    transaction, so this can be interrupted and begun again; at the end the memory is consolidated.

    \b
    Example:
      contextgraph rebuild --store team.db
    """
    from contextgraph.text import number_of

    with open_memory(store, tenant, create=False) as memory:
        done = _rebuild_all(memory, len(memory.store.trajectory_ids()), as_json=as_json)
    if as_json:
        emit({"summary": {"updated": done}})
    else:
        print(f"read {number_of(done, 'stored trajectory')} again")


def _rebuild_all(memory: "AgentMemory", total: int, *, as_json: bool) -> int:
    from contextgraph.cli.progress import Progress
    from contextgraph.cli.records import receipt_record
    from contextgraph.text import number_of

    done = 0
    try:
        with Progress(lambda: total) as progress:
            for done, receipt in enumerate(memory.rebuild(), start=1):
                if as_json:
                    emit(receipt_record(receipt))
                progress.advance(1)
                progress.count(done)
    except KeyboardInterrupt:
        complain(f"interrupted; {done} of {number_of(total, 'trajectory')} read again")
        raise
    return done


def migrate(
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")
    ] = False,
    as_json: AsJson = False,
    store: Store = None,
    tenant: Tenant = None,
) -> None:
    """Bring the schema of a memory up to date.

    For after an update of this program. A memory on a server is refused until this is done; a file
    is also brought up to date when it is next written. Where there is no memory yet, an empty one
    is made.

    \b
    With --json one object: "migrations" [names, in order], "dry_run".

    \b
    Example:
      contextgraph migrate --store neo4j://localhost:7687 --dry-run
    """
    with open_memory(store, tenant) as memory:
        steps = memory.migrate(dry_run=dry_run)
    if as_json:
        emit({"migrations": list(steps), "dry_run": dry_run})
        return
    for step in steps:
        print(f"{'pending' if dry_run else 'applied'}: {step}")
    if not steps:
        print("the schema is up to date")


def forget(
    ids: Ids = None,
    instance: Instances = None,
    repo: Repos = None,
    everything: Annotated[bool, typer.Option("--all", help="All runs.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: AsJson = False,
    store: Store = None,
    tenant: Tenant = None,
) -> None:
    """Remove runs and what only they taught.

    Asks before it removes anything, unless --yes is given.

    \b
    Example:
      contextgraph forget --instance owner__repo-12
      contextgraph forget --repo owner/repo --yes
    """
    chosen = (ids or [], instance or [], repo or [])
    if not everything and not any(chosen):
        raise typer.BadParameter("say what: a trajectory id, --instance, --repo or --all")
    with open_memory(store, tenant, create=False) as memory:
        found = [run for run in _trajectories(memory) if everything or _is_among(run, *chosen)]
        if not found:
            named = ", ".join(chain.from_iterable(chosen))
            complain(
                f"no trajectory of {named} in the memory" if named else "the memory has no run"
            )
            raise typer.Exit(1)
        if not yes:
            _ask(found)
        removed = memory.forget(run.id for run in found)
    _say_forgotten(found, removed, as_json=as_json)


def _trajectories(memory: "AgentMemory") -> "list[Trajectory]":
    known = (memory.store.trajectory(identity) for identity in memory.store.trajectory_ids())
    return [trajectory for trajectory in known if trajectory]


def _is_among(
    run: "Trajectory", ids: Collection[str], instances: Collection[str], repos: Collection[str]
) -> bool:
    return run.id in ids or run.instance_id in instances or run.repo in repos


def _ask(found: "Sequence[Trajectory]") -> None:
    from contextgraph.text import number_of

    for run in found[:SHOWN]:
        typer.echo(f"  {run.id}  {run.name}", err=True)
    if len(found) > SHOWN:
        typer.echo(f"  and {len(found) - SHOWN} more", err=True)
    remedy = ""
    try:
        agreed = typer.confirm(f"Forget {number_of(len(found), 'trajectory')}?", err=True)
    except typer.Abort:  # standard input has ended, or Ctrl-C
        typer.echo(err=True)
        agreed, remedy = False, "; where nobody can be asked, give --yes"
    if not agreed:
        complain(f"nothing is forgotten{remedy}")
        raise typer.Exit(1)


def _say_forgotten(found: "Sequence[Trajectory]", removed: int, *, as_json: bool) -> None:
    from contextgraph.cli.records import trajectory_record
    from contextgraph.text import number_of

    if as_json:
        runs: list[Json] = [trajectory_record(run) for run in found]
        emit({"forgotten": removed, "trajectories": runs})
    else:
        print(f"forgot {number_of(removed, 'trajectory')} and what nothing else taught")
