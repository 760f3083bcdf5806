"""``contextgraph runs``, ``playbook`` and ``how``: the runs, and what they agree on."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from itertools import islice
from typing import TYPE_CHECKING, Annotated

import typer

from contextgraph.cli.options import FAILED, AsJson, Store, Tenant, Workdir, open_memory, option
from contextgraph.cli.output import emit, print_table, warn
from contextgraph.records import history_record, playbook_record, run_record
from contextgraph.text import number_of, one_line

if TYPE_CHECKING:
    from contextgraph.memory import AgentMemory
    from contextgraph.model import CommandHistory, CommandRecord, RepositoryPlaybook, Trajectory
    from contextgraph.ports import RunStore


_RUNS_AT_ONCE = 500


class OutcomeName(StrEnum):
    """An outcome by which runs are listed."""

    SOLVED = "solved"
    FAILED = "failed"
    UNKNOWN = "unknown"


def runs(  # noqa: PLR0913  (one parameter per flag)
    *,
    repo: Annotated[
        str | None, option("--repo", "OWNER/REPO", "Only runs in this repository.")
    ] = None,
    agent: Annotated[str | None, option("--agent", "NAME", "Only runs of this agent.")] = None,
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
    rows = (_run_row(run, has_changes=has_changes) for run in shown)
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


def _run_row(run: "Trajectory", *, has_changes: bool) -> tuple[str, ...]:
    judged = (str(run.outcome), str(run.change)) if has_changes else (str(run.outcome),)
    return f"{run.seen_at:%Y-%m-%d}", *judged, f"{run.total_steps}", run.agent, run.instance_id


_ROWS, _PATH_WIDTH, _COMMAND_WIDTH, _REASON_WIDTH = 10, 38, 46, 18

Repository = Annotated[str, option("--repo", "OWNER/REPO", "The repository.")]


def playbook(
    *,
    repo: Repository,
    task: Annotated[
        str, option("--task", "TEXT", "Rank the files for this task, such as an issue.")
    ] = "",
    workdir: Workdir = None,
    as_json: AsJson = False,
    store: Store = None,
    tenant: Tenant = None,
) -> None:
    """Show what the runs of a repository agree on.

    Shows which files a task is likely to change, how tests are run, what does not run, which tests
    always fail, what is installed first. Counts are of tasks; several runs of one task count once.
    What an agent would be shown ("text") is only what at least two tasks agree on.

    \b
    With --json one object: "repo", "files" [{"path", "runs", "opened",
    "probability", "symbols"}], "test_command", "import_command", "package_dir",
    "setup" [], "failing_tests" [] where known, "commands" {"tests", "scripts",
    "setup"}, "counts", "text".

    \b
    Example:
      contextgraph playbook --repo owner/repo
      contextgraph playbook --repo owner/repo --task "Totals are wrong" --json
    """
    from contextgraph.retrieval import render_playbook

    with open_memory(store, tenant, read_only=True) as memory:
        found = memory.playbook(repo, task, workdir=workdir)
        if not found:
            _unknown(memory, repo)
    if as_json:
        emit({**playbook_record(found), "text": render_playbook(found)})
    else:
        _show_playbook(found)


def how(
    command: Annotated[
        str, typer.Argument(metavar="COMMAND", help="A shell command.", show_default=False)
    ],
    *,
    repo: Repository,
    as_json: AsJson = False,
    store: Store = None,
    tenant: Tenant = None,
) -> None:
    """Show how a command is run in a repository.

    Shows how often commands of this form worked, how they were typed, and what worked instead. The
    tests that they name, and scripts that a run wrote, may differ. Counts are of tasks.

    \b
    With --json one object: "repo", "command", "runs", "form", "first" (of each
    run), "exact", "ways" [], "others" [], "warning"; a form or way has "command",
    "folder", "worked", "tried", "error_type".

    \b
    Example:
      contextgraph how "pytest tests/" --repo owner/repo
    """
    with open_memory(store, tenant, read_only=True) as memory:
        found = memory.how(repo, command)
        if not found.runs:
            _unknown(memory, repo)
    if as_json:
        emit(history_record(found))
    else:
        _show_history(found)


def _unknown(memory: "AgentMemory", repo: str) -> None:
    known = sum(memory.get_stats().counts.outcomes.values())
    warn(
        f"no run of {repo} in this memory of {number_of(known, 'run')}; "
        "`contextgraph runs` lists those there are"
    )
    raise typer.Exit(FAILED)


def _show_playbook(found: "RepositoryPlaybook") -> None:
    tasks = f"{number_of(found.tasks, 'task')}, {number_of(found.runs, 'run')}"
    files = (
        (
            one_line(one.path, _PATH_WIDTH),
            f"{one.changed}",
            f"{one.opened}",
            f"{one.probability:.2f}",
            one_line(", ".join(one.symbols), _REASON_WIDTH - 6),
        )
        for one in found.files[:_ROWS]
    )
    columns = ("file", "changed", "opened", "probability", "functions")
    print_table(f"Files ({tasks})", columns, files, columns[1:4])
    _print_commands("Tests", found.tests)
    _print_commands("Set-up", found.setup)
    _print_commands("Scripts", found.scripts)
    failing = (
        (one_line(one.name, _PATH_WIDTH + 20), f"{one.tasks}") for one in found.failing_tests
    )
    print_table("Failed and not fixed", ("test", "tasks"), list(failing)[:_ROWS], ("tasks",))


def _show_history(found: "CommandHistory") -> None:
    if found.form is None:
        print(f"no run of {found.repo} gave such a command ({number_of(found.runs, 'run')})")
    else:
        _print_commands("This form", [found.form])
        _print_commands("As typed", found.ways)
    _print_commands("What ran instead", found.others)


def _print_commands(title: str, records: "Iterable[CommandRecord]") -> None:
    columns = ("command", "ran", "of", "otherwise")
    print_table(title, columns, _command_rows(list(records)[:_ROWS]), columns[1:3])


def _command_rows(records: "Iterable[CommandRecord]") -> Iterator[tuple[str, ...]]:
    for one in records:
        reason = one_line(one.error_type, _REASON_WIDTH)
        yield one_line(one.line, _COMMAND_WIDTH), f"{one.worked}", f"{one.tried}", reason
