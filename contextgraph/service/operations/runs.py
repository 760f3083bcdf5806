"""Stored runs, and what those of a repository agree on."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from contextgraph.errors import InvalidArgumentError, NotFoundError
from contextgraph.learning.statistics import Friction, MemoryStats
from contextgraph.memory.agent_memory import AgentMemory
from contextgraph.model import CommandHistory, Outcome, RepositoryPlaybook
from contextgraph.model.values import replace
from contextgraph.service.operations import Record, TokenScope, operation
from contextgraph.service.operations.arguments import (
    After,
    AsOf,
    Identities,
    Identity,
    Ignored,
    Machine,
    Most,
    Name,
    Names,
    OnlyAgent,
    OnlyRepository,
    PageSize,
    Repository,
    Text,
)
from contextgraph.service.records import friction_record, record_of, stats_record
from contextgraph.text import masked_name


def _without_runs(record: Record) -> int:
    """Return 1 where the repository of a playbook or a command is unknown."""
    runs = record["counts"]["runs"] if "counts" in record else record["runs"]  # type: ignore[index,call-overload]
    return 0 if runs else 1


def _playbook_record(known: RepositoryPlaybook, *_: object) -> Record:
    from contextgraph.advising.wording import render_playbook

    return record_of(known, text=render_playbook(known))


@operation(
    TokenScope.READ,
    "POST /v1/playbook",
    own="workdir",
    form=_playbook_record,
    exit_code=_without_runs,
)
def playbook(
    memory: AgentMemory,
    repo: Repository,
    task: Annotated[
        Text, Field(description="Rank the files for this task, such as an issue.")
    ] = "",
    *,
    exclude_instances: Ignored = (),
    as_of: AsOf = None,
    agent: OnlyAgent = "",
    environment: Machine = None,
    workdir: Annotated[
        Path | None, Field(description="A checkout; what it does not have is left out.")
    ] = None,
) -> RepositoryPlaybook:
    """Return what the runs of a repository agree on: likely files, test command, set-up."""
    return memory.playbook(
        repo,
        task,
        exclude_instances=exclude_instances,
        as_of=as_of,
        workdir=workdir,
        agent=agent,
        environment=environment.environment() if environment else None,
    )


@operation(TokenScope.READ, "POST /v1/how", exit_code=_without_runs)
def how(
    memory: AgentMemory,
    repo: Repository,
    command: Annotated[Text, Field(description="A shell command.")],
    *,
    exclude_instances: Ignored = (),
    as_of: AsOf = None,
    agent: OnlyAgent = "",
    environment: Machine = None,
) -> CommandHistory:
    """Return how a command is run in a repository, with a warning if it never worked."""
    return memory.how(
        repo,
        command,
        exclude_instances=exclude_instances,
        as_of=as_of,
        agent=agent,
        environment=environment.environment() if environment else None,
    )


def _stats_record(stats: MemoryStats, given: Mapping[str, Any], memory: AgentMemory) -> Record:
    mistakes = memory.stats.get_common_mistakes(given.get("situation", ""), given.get("repo", ""))
    return stats_record(stats, mistakes, memory.session_facets(), plots=(), people=None)


@operation(TokenScope.READ, "GET /v1/stats", form=_stats_record)
def stats(
    memory: AgentMemory,
    repo: Annotated[
        OnlyRepository,
        Field(
            description="Failures and mistakes in this repository (owner/repo); all else is of the "
            "whole memory."
        ),
    ] = "",
    situation: Annotated[
        Name,
        Field(
            description="Failures in a phase, in a type of task, at a file, or in tasks about some "
            "words."
        ),
    ] = "",
) -> MemoryStats:
    """Return counts, errors and error sequences, as `contextgraph stats --json`."""
    # What models cost is counted on this machine, for all tenants.
    return replace(memory.stats.get_counts(repo), usage={})


@operation(
    TokenScope.READ,
    "GET /v1/friction",
    form=lambda found, given, _: friction_record(masked_name(given.get("repo", "")), found),
)
def friction(
    memory: AgentMemory, repo: OnlyRepository = "", limit: Most = 10
) -> Sequence[Friction]:
    """Return the errors that two tasks or more met, by the steps that they cost, with remedies."""
    return memory.stats.get_friction(masked_name(repo), limit)


@operation(TokenScope.READ, "GET /v1/trajectories")
def trajectories(
    memory: AgentMemory,
    repo: Name = "",
    instance: Name = "",
    after: After = "",
    limit: PageSize = 50,
) -> Record:
    """List runs by id: a page of those with an id above *after*."""
    runs = memory.store.runs
    ids = runs.ids(repo or None, instance or None, after=after, limit=limit + 1)
    page = runs.trajectories(ids[:limit])
    return {"trajectories": [*map(record_of, page.values())], "next": next_page(ids, limit)}


def next_page(ids: Sequence[str], limit: int) -> str | None:
    """Return *after* of the next page, where *ids* are one more than fit on this one."""
    return ids[limit - 1] if len(ids) > limit else None


@operation(TokenScope.READ, "GET /v1/trajectories/{identity}")
def trajectory(memory: AgentMemory, identity: Identity, steps: bool = False) -> Record:
    """Return a run with its fragments; with *steps* also "run", as its own format keeps it."""
    from contextgraph.readers import to_record

    runs = memory.store.runs
    known = runs.learned([identity]).get(identity)
    run = runs.trajectories([known.trajectory_id]).get(known.trajectory_id) if known else None
    if run is None:
        raise NotFoundError(f"no run {identity}; trajectories lists those there are")
    fragments = runs.fragments([run.id]).get(run.id, ())
    record = record_of(run, task=run.task, summary=run.summary, fragments=fragments)
    raw = runs.raw(run.id) if steps else None
    return {**record, "run": to_record(raw)} if raw else record


def _outcome_record(changed: Sequence[str], given: Mapping[str, Any], _: object) -> Record:
    outcome = Outcome.SOLVED if given["solved"] else Outcome.FAILED
    named = {"instance_id": masked_name(given["instance_id"]), "outcome": outcome.value}
    return {**named, "trajectories": [*changed]}


@operation(
    TokenScope.WRITE,
    "POST /v1/outcomes",
    form=_outcome_record,
    missing="no such run of {instance_id} in the memory",
    example={"instance_id": "acme__shop-7", "solved": True},
)
def outcome(
    memory: AgentMemory,
    instance_id: Annotated[Name, Field(description="The instance.")],
    solved: Annotated[bool, Field(description="Whether it solved its task.")],
    agent: Annotated[Name, Field(description="Only runs of this agent.")] = "",
    run: Annotated[Name, Field(description="Only the run of this id.")] = "",
    *,
    only_of: str | None = None,
) -> Sequence[str]:
    """Set whether an instance was solved, in place of what logs and reports say.

    If it has several runs, name the *run* or the *agent*.
    """
    return memory.set_outcome(instance_id, solved, agent=agent, run=run, only_of=only_of)


Former = Annotated[Name, Field(description="The name that is not to be used any more.")]


@operation(TokenScope.ADMIN)
def repositories_join(
    memory: AgentMemory,
    former: Former,
    now: Annotated[Name, Field(description="The name by which the repository goes.")],
) -> Record:
    """Treat a repository that was renamed as the one of its new name."""
    return {"former": former, "now": now, "runs": memory.join_repository(former, now)}


@operation(TokenScope.ADMIN)
def repositories_split(memory: AgentMemory, former: Former) -> Record:
    """Undo repositories_join."""
    return {"former": former, "runs": memory.split_repository(former)}


def _forgotten_record(runs: int, given: Mapping[str, Any], _: object) -> Record:
    if not any(given.values()):
        raise InvalidArgumentError(
            "name what to forget: trajectory_ids, notes, sessions, sources or repos"
        )
    # The number is of runs: notes, sessions and sources may be gone without any.
    if not runs and set(filter(given.get, given)) == {"trajectory_ids"}:
        raise NotFoundError("nothing of that is known; trajectories lists the runs there are")
    return {"forgotten": runs}


@operation(TokenScope.ADMIN, "POST /v1/forget", form=_forgotten_record, takes_long=True)
def forget(
    memory: AgentMemory,
    trajectory_ids: Identities = (),
    notes: Identities = (),
    sessions: Annotated[Names, Field(description="All of these sessions.")] = (),
    sources: Annotated[Names, Field(description="All that these sources supplied.")] = (),
    repos: Annotated[Names, Field(description="All about these repositories.")] = (),
) -> int:
    """Remove runs and notes, and everything that only they support."""
    return memory.forget(
        trajectory_ids, notes=notes, sessions=sessions, sources=sources, repos=repos
    )
