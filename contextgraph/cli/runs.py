"""``contextgraph runs`` and ``outcome``: the runs in the memory, and what became of them."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from itertools import islice
from typing import TYPE_CHECKING, Annotated

import typer

from contextgraph.cli.options import FAILED, AsJson, Store, Tenant, open_memory, option
from contextgraph.cli.output import emit, plain, print_table, warn
from contextgraph.text import number_of

if TYPE_CHECKING:
    from contextgraph.model import Json, Trajectory
    from contextgraph.ports import RunStore

_RUNS_AT_ONCE = 500


class OutcomeName(StrEnum):
    """An outcome by which runs are listed."""

    SOLVED = "solved"
    FAILED = "failed"
    UNKNOWN = "unknown"


class GivenOutcome(StrEnum):
    """An outcome that is set by hand."""

    SOLVED = "solved"
    FAILED = "failed"


def runs(  # noqa: PLR0913  (one parameter per flag)
    *,
    repo: Annotated[str | None, option("--repo", "OWNER/REPO", "Only runs in it.")] = None,
    agent: Annotated[str | None, option("--agent", "NAME", "Only runs of it.")] = None,
    outcome: Annotated[
        OutcomeName | None,
        typer.Option(metavar="OUTCOME", help="solved, failed or unknown.", show_default=False),
    ] = None,
    since: Annotated[
        datetime | None, option("--since", "TIME", "Only runs from then (ISO 8601, UTC).")
    ] = None,
    until: Annotated[
        datetime | None, option("--until", "TIME", "Only runs before then (ISO 8601, UTC).")
    ] = None,
    limit: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="At most N.", show_default=False)
    ] = None,
    as_json: AsJson = False,
    store: Store = None,
    tenant: Tenant = None,
) -> None:
    """List the runs in the memory, the newest first.

    A run without a time in its log counts as of when it was learned.

    \b
    With --json one line per run: "trajectory_id", "instance_id", "repo", "agent",
    "model", "outcome", "outcome_source" (log, report or hand), "change" (held,
    reverted or unknown), "exit_status", "task_type", "steps", "files", "run_at",
    "learned_at", "source_format", "source".

    \b
    Example:
      contextgraph runs --repo owner/repo --outcome solved
      contextgraph runs --since 2026-01-01 --limit 20
    """
    chosen = Chosen(agent, outcome, _in_utc(since), _in_utc(until))
    with open_memory(store, tenant, read_only=True) as memory:
        found = [run for run in _stored(memory.store.runs, repo) if chosen.includes(run)]
    found.sort(key=lambda run: (run.seen_at, run.id), reverse=True)
    shown = found[:limit]
    if as_json:
        for run in shown:
            emit(run_record(run))
        return
    has_changes = any(run.change != "unknown" for run in shown)
    change = ("change",) if has_changes else ()
    columns = ("when", "outcome", *change, "steps", "agent", "instance")
    title = number_of(len(shown), "run") + (f" of {len(found)}" if len(shown) < len(found) else "")
    rows = (_row(run, has_changes=has_changes) for run in shown)
    print_table(title, columns, rows, numeric=("steps",))
    if not shown:
        print("no such run")


@dataclass(frozen=True, slots=True)
class Chosen:
    """Which runs are listed; None: all."""

    agent: str | None
    outcome: OutcomeName | None
    since: datetime | None
    until: datetime | None

    def includes(self, run: "Trajectory") -> bool:
        """Whether *run* is listed."""
        return (
            self.agent in (None, run.agent)
            and (self.outcome is None or str(run.outcome) == self.outcome.value)
            and (self.since is None or run.seen_at >= self.since)
            and (self.until is None or run.seen_at < self.until)
        )


def _in_utc(time: datetime | None) -> datetime | None:
    return time.replace(tzinfo=UTC) if time and time.tzinfo is None else time


def _stored(runs: "RunStore", repo: str | None) -> "Iterator[Trajectory]":
    ids = iter(runs.ids(repo=repo))
    while some := list(islice(ids, _RUNS_AT_ONCE)):
        yield from runs.trajectories(some).values()


def _row(run: "Trajectory", *, has_changes: bool) -> tuple[str, ...]:
    judged = (str(run.outcome), str(run.change)) if has_changes else (str(run.outcome),)
    return f"{run.seen_at:%Y-%m-%d}", *judged, f"{run.total_steps}", run.agent, run.instance_id


def run_record(run: "Trajectory") -> "dict[str, Json]":
    """The JSON object of a run in the memory."""
    return {
        "trajectory_id": run.id,
        "instance_id": run.instance_id,
        "repo": run.repo,
        "agent": run.agent,
        "model": run.model,
        "outcome": str(run.outcome),
        "outcome_source": str(run.outcome_source) if run.success is not None else None,
        "change": str(run.change),
        "exit_status": run.exit_status,
        "task_type": str(run.task_type),
        "steps": run.total_steps,
        "files": list(run.files),
        "run_at": run.run_at.isoformat() if run.run_at else None,
        "learned_at": run.learned_at.isoformat(),
        "source_format": run.source_format,
        "source": run.source,
    }


def outcome(
    instance: Annotated[str, typer.Argument(metavar="INSTANCE", help="The instance.")],
    result: Annotated[GivenOutcome, typer.Argument(metavar="solved|failed", help="Its outcome.")],
    agent: Annotated[str, option("--agent", "NAME", "Only runs of this agent.")] = "",
    run: Annotated[str, option("--run", "ID", "Only the run of this id.")] = "",
    as_json: AsJson = False,
    store: Store = None,
    tenant: Tenant = None,
) -> None:
    """Set by hand whether runs solved their task.

    It precedes what logs and reports say, also those that are learned later. Where the instance has
    several runs, name the agent or the run.

    \b
    With --json one object: "instance_id", "outcome", "trajectories" [ids of the
    runs].

    \b
    Example:
      contextgraph outcome owner__repo-12 solved
      contextgraph outcome owner__repo-12 failed --agent claude-code
    """
    with open_memory(store, tenant, create=False) as memory:
        if not (agent or run):
            _refuse_several(memory.store.runs, instance)
        solved = result is GivenOutcome.SOLVED
        changed = list(memory.set_outcome(instance, solved, agent=agent, run=run))
    if not changed:
        named = " ".join(filter(None, (instance, agent and f"by {agent}", run)))
        warn(f"no run of {named} in the memory; `contextgraph runs` lists those there are")
        raise typer.Exit(FAILED)
    if as_json:
        emit({"instance_id": instance, "outcome": result.value, "trajectories": [*changed]})
    else:
        print(f"{plain(instance)}: {number_of(len(changed), 'run')} {result.value}")


def _refuse_several(runs: "RunStore", instance: str) -> None:
    found = runs.trajectories(runs.ids(instance=instance)).values()
    if len(found) > 1:
        for one in found:
            typer.echo(f"  {one.id}  {plain(one.agent) or 'no agent'}, {one.outcome}", err=True)
        warn(f"{instance} has {len(found)} runs; name one by --run ID, or those of an --agent NAME")
        raise typer.Exit(FAILED)
