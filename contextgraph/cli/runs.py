"""Stored runs: ``contextgraph runs``, ``playbook`` and ``how``.

What people report: ``report``, ``outcome``, ``quarantine``, ``release`` and ``sources``.
"""

import sys
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Literal

import click

from contextgraph.cli.options import (
    Common,
    Repo,
    Workdir,
    argument,
    common_options,
    described,
    option,
    repository_here,
    time_option,
)
from contextgraph.cli.output import (
    fail,
    print_table,
    warn,
)
from contextgraph.model import SOURCE
from contextgraph.records import (
    history_record,
    playbook_record,
    record_of,
    run_record,
)
from contextgraph.text import (
    number_of,
    one_line,
    plain,
)

if TYPE_CHECKING:
    from contextgraph.memory import AgentMemory
    from contextgraph.model import (
        CommandHistory,
        CommandRecord,
        RepositoryPlaybook,
        Trajectory,
    )
    from contextgraph.ports import RunStore


_RUNS_AT_ONCE = 500
OWNER = "owner"
_FIRST, _END = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


@common_options()
def runs(
    common: Common,
    *,
    repo: Repo = None,
    agent: Annotated[str | None, option("--agent", "NAME", "Only runs of this agent.")] = None,
    outcome: Annotated[
        Literal["solved", "failed", "unknown"] | None,
        described(metavar="OUTCOME", help="solved, failed or unknown.", show_default=False),
    ] = None,
    since: Annotated[
        datetime | None, time_option("--since", "Only runs from then (ISO 8601, UTC).")
    ] = None,
    until: Annotated[
        datetime | None, time_option("--until", "Only runs before then (ISO 8601, UTC).")
    ] = None,
    limit: Annotated[int | None, option("--limit", "N", "At most N.", min=1)] = None,
) -> None:
    """List the runs in the memory, the newest first.

    A run without a time in its log counts as of when it was learned.

    \b
    Example:
      contextgraph runs --repo owner/repo --outcome solved
      contextgraph runs --since 2026-01-01 --limit 20
    """
    first, end = since or _FIRST, until or _END
    with common.open(read_only=True) as memory:
        runs = [
            run
            for run in _stored(memory.store.runs, repo)
            if agent in (None, run.agent)
            and outcome in (None, str(run.outcome))
            and first <= run.seen_at < end
        ]
        if repo and not runs and not memory.store.runs.ids(repo, limit=1):
            _unknown(memory, repo)
    runs.sort(key=lambda run: (run.seen_at, run.id), reverse=True)
    shown = runs[:limit]
    has_changes = any(run.change != "unknown" for run in shown)
    change = ("change",) if has_changes else ()
    columns = ("when", "outcome", *change, "steps", "agent", "instance")
    title = number_of(len(shown), "run") + (f" of {len(runs)}" if len(shown) < len(runs) else "")
    rows = (_run_row(run, has_changes=has_changes) for run in shown)
    records, empty = map(run_record, shown), "no such run"
    common.answer_rows(records, title, columns, rows, ("steps",), empty=empty)


def _stored(runs: "RunStore", repo: str | None) -> "Iterator[Trajectory]":
    ids = iter(runs.ids(repo=repo))
    while some := list(islice(ids, _RUNS_AT_ONCE)):
        yield from runs.trajectories(some).values()


def _run_row(run: "Trajectory", *, has_changes: bool) -> tuple[str, ...]:
    judged = (str(run.outcome), str(run.change)) if has_changes else (str(run.outcome),)
    return f"{run.seen_at:%Y-%m-%d}", *judged, f"{run.total_steps}", run.agent, run.instance_id


_ROWS, _SINGLE_ROWS = 10, 3
_PATH_WIDTH, _COMMAND_WIDTH, _REASON_WIDTH = 38, 42, 22
_WHOLE = 2_000

Repository = Annotated[
    str, option("--repo", "OWNER/REPO", "The repository.", "that of the current folder")
]


@common_options()
def playbook(
    common: Common,
    *,
    repo: Repository = "",
    task: Annotated[
        str, option("--task", "TEXT", "Rank the files for this task, such as an issue.")
    ] = "",
    workdir: Workdir = None,
) -> None:
    """Show what runs of a repository agree on, and its notes.

    Shows which files a task is likely to change, how tests are run, what does not
    run, which tests always fail, what is installed first. Counts are of tasks; several runs of one
    task count once.
    What an agent would be shown ("text") is only what at least two tasks agree on.

    \b
    Example:
      contextgraph playbook --repo owner/repo
      contextgraph playbook --repo owner/repo --task "Totals are wrong" --json
    """
    from contextgraph.advising.wording import render_playbook

    repo = repo or repository_here()
    with common.open(read_only=True) as memory:
        playbook = memory.playbook(repo, task, workdir=workdir)
        if not playbook:
            _unknown(memory, repo)
    record = {**playbook_record(playbook), "text": render_playbook(playbook)}
    common.answer(record, partial(_show_playbook, playbook))
    if playbook.degraded:
        warn(playbook.degraded)


@common_options()
def how(
    common: Common,
    command: Annotated[
        str, argument(metavar="COMMAND", help="A shell command.", show_default=False)
    ],
    *,
    repo: Repository = "",
) -> None:
    """Show how a command is run in a repository.

    Shows how often commands of this form worked, how they were typed, and what worked instead. The
    tests that they name, and scripts that a run wrote, may differ. Counts are of tasks.

    \b
    Example:
      contextgraph how "pytest tests/" --repo owner/repo
    """
    repo = repo or repository_here()
    with common.open(read_only=True) as memory:
        history = memory.how(repo, command)
        if not history.runs:
            _unknown(memory, repo)
    common.answer(history_record(history), partial(_show_history, history))


def _unknown(memory: "AgentMemory", repo: str) -> None:
    known = sum(memory.get_stats().counts.outcomes.values())
    fail(
        f"no run of {repo} in this memory of {number_of(known, 'run')}; "
        "`contextgraph runs` lists those there are"
    )


def _show_playbook(playbook: "RepositoryPlaybook") -> None:
    print_table("Pinned notes", ("note", "source"), ((n.content, n.source) for n in playbook.notes))
    tasks = f"{number_of(playbook.tasks, 'task')}, {number_of(playbook.runs, 'run')}"
    tasks += f"; most change {playbook.package}" if playbook.package_tasks > 1 else ""
    files = (
        (
            one_line(file.path, _PATH_WIDTH),
            f"{file.changed}",
            f"{file.opened}",
            f"{file.probability:.2f}",
            one_line(", ".join(file.symbols), _REASON_WIDTH - 6),
        )
        for file in playbook.files[:_ROWS]
    )
    columns = ("file", "changed", "opened", "probability", "functions")
    print_table(f"Files ({tasks})", columns, files, columns[1:4])
    _print_commands("Tests", playbook.tests)
    _print_commands("Set-up", playbook.setup)
    _print_commands("Scripts", playbook.scripts)
    failing = (
        (one_line(test.name, _PATH_WIDTH + 20), f"{test.tasks}") for test in playbook.failing_tests
    )
    print_table("Failed and not fixed", ("test", "tasks"), list(failing)[:_ROWS], ("tasks",))


def _show_history(history: "CommandHistory") -> None:
    if history.form is None:
        print(f"no run of {history.repo} gave such a command ({number_of(history.runs, 'run')})")
    else:
        _print_commands("This form", [history.form])
        _print_commands("As typed", history.ways)
    _print_commands("Other ways that ran", history.others)


def _print_commands(title: str, records: "Iterable[CommandRecord]") -> None:
    """A table of *records*: those of several tasks, and a few others."""
    columns = ("command", "ran", "of", "otherwise")
    given = list(records)
    single = [record for record in given if record.tried == 1][:_SINGLE_ROWS]
    shown = [record for record in given if record.tried > 1 or record in single][:_ROWS]
    print_table(title, columns, _command_rows(shown), columns[1:3])


def _command_rows(records: Sequence["CommandRecord"]) -> Iterator[tuple[str, ...]]:
    reasons = [record.error_type if record.worked < record.tried else "" for record in records]
    # In a pipe a command is whole, to be copied; the table folds it.
    narrow = _COMMAND_WIDTH + (0 if any(reasons) else _REASON_WIDTH)
    width = narrow if sys.stdout.isatty() else _WHOLE
    for record, reason in zip(records, reasons, strict=True):
        shown = one_line(reason, _REASON_WIDTH)
        if record.source is not None:
            shown = f"from one source ({record.source or OWNER}) {shown}".rstrip()
        yield one_line(record.line, width), f"{record.worked}", f"{record.tried}", shown


Advice = Annotated[
    str,
    argument(
        metavar="ID",
        help="Advice (adv_…) or a methodology (mth_…), as answers name them.",
        show_default=False,
    ),
]


@common_options("source")
def report(
    common: Common,
    context: Annotated[
        str,
        argument(metavar="CONTEXT", help="The id of an answer (ctx_…).", show_default=False),
    ],
    helped: Annotated[
        bool | None, described("--helped/--hurt", help="Whether it helped.", show_default=False)
    ] = None,
    item: Annotated[
        int | None,
        option("--item", "N", "Only the item of this number.", min=1),
    ] = None,
) -> None:
    """Report whether the advice of an answer helped.

    Advice is no longer shown if it clears an error far less often than runs do without it. An
    outcome is counted once for each answer, or each item of it.

    \b
    Example:
      contextgraph report ctx_5f0c2a4d9e1b7c3a --helped
      contextgraph report ctx_5f0c2a4d9e1b7c3a --hurt --item 2
    """
    if helped is None:
        raise click.BadParameter("give --helped or --hurt")
    with common.open(create=False) as memory:
        recorded = memory.report_outcome(context, helped, item)
    common.answer(
        {"context": context, "helped": helped, "item": item, "recorded": recorded},
        "recorded" if recorded else "",
    )
    if not recorded:
        of_it = f"{context} has no item {item}, it" if item else context
        fail(f"{of_it} is unknown, or its outcome was reported before")


@common_options()
def sources(
    common: Common,
    action: Annotated[
        Literal["list", "trust", "distrust"], argument(help="list, trust or distrust.")
    ] = "list",
    name: Annotated[str, argument(metavar="[NAME]", help="The source.", show_default=False)] = "",
) -> None:
    """List who supplied runs and reports, or distrust a source.

    Where any source is named, advice is active once two trusted ones agree; the owner, whose runs
    have no name, is one. What a distrusted source supplied counts for nothing from now on: runs,
    reports and notes stay stored, so that it can be trusted again.

    \b
    With --json one line per source: "name" ("" for the owner), "runs",
    "instances", "reports", "trusted".

    \b
    Example:
      contextgraph sources
      contextgraph sources distrust nightly
    """
    if bool(name) == (action == "list"):
        raise click.BadParameter("trust and distrust need the NAME of a source, list has none")
    with common.open(create=False) as memory:
        if action != "list":
            decide = memory.release if action == "trust" else memory.quarantine
            if not decide(f"{SOURCE}{name}"):
                fail(f"no run or report has the source {name}; contextgraph sources lists them")
            common.compile_for_hooks(memory, whole=True)
        known = [source for source in memory.sources() if not name or source.name == name]
    rows = (
        (
            source.name or f"({OWNER})",
            *(f"{source.runs}", f"{source.instances}", f"{source.reports}"),
            "yes" if source.trusted else "no",
        )
        for source in known
    )
    columns = ("source", "runs", "instances", "reports", "trusted")
    common.answer_rows(map(record_of, known), "Sources", columns, rows, columns[1:4])


@common_options()
def quarantine(common: Common, advice: Advice) -> None:
    """Never show an advice or a methodology again.

    This applies to every run that it comes from.

    \b
    Example:
      contextgraph quarantine adv_5f0c2a4d9e1b7c3a
    """
    _decide(common, advice, "quarantined")


@common_options()
def release(common: Common, advice: Advice) -> None:
    """Show quarantined advice or methodologies again.

    Earlier reports about it no longer count.

    \b
    Example:
      contextgraph release adv_5f0c2a4d9e1b7c3a
    """
    _decide(common, advice, "released")


def _decide(common: Common, advice: str, status: Literal["quarantined", "released"]) -> None:
    with common.open(create=False) as memory:
        decide = memory.quarantine if status == "quarantined" else memory.release
        if not decide(advice):
            fail(f"no advice or methodology has the id {advice}; query --json shows them")
        common.compile_for_hooks(memory, whole=True)
    common.answer({"advice": advice, "status": status}, f"{advice} is {status}")


@common_options()
def outcome(
    common: Common,
    instance: Annotated[str, argument(metavar="INSTANCE", help="The instance.")],
    result: Annotated[
        Literal["solved", "failed"], argument(metavar="solved|failed", help="Its outcome.")
    ],
    agent: Annotated[str, option("--agent", "NAME", "Only runs of this agent.")] = "",
    run: Annotated[str, option("--run", "ID", "Only the run of this id.")] = "",
) -> None:
    """Set by hand whether runs solved their task.

    It takes precedence over logs and reports, also over later ones. Where the instance has several
    runs, name the agent or the run.

    \b
    Example:
      contextgraph outcome owner__repo-12 solved
      contextgraph outcome owner__repo-12 failed --agent claude-code
    """
    with common.open(create=False) as memory:
        if not (agent or run):
            _refuse_several(memory.store.runs, instance)
        changed = list(memory.set_outcome(instance, result == "solved", agent=agent, run=run))
    if not changed:
        named = " ".join(filter(None, (instance, agent and f"by {agent}", run)))
        fail(f"no run of {named} in the memory; `contextgraph runs` lists those there are")
    common.answer(
        {"instance_id": instance, "outcome": result, "trajectories": [*changed]},
        f"{instance}: {number_of(len(changed), 'run')} {result}",
    )


def _refuse_several(runs: "RunStore", instance: str) -> None:
    of_instance = runs.trajectories(runs.ids(instance=instance)).values()
    if len(of_instance) > 1:
        for run in of_instance:
            click.echo(f"  {run.id}  {plain(run.agent) or 'no agent'}, {run.outcome}", err=True)
        fail(
            f"{instance} has {len(of_instance)} runs; name one by --run ID, "
            "or those of an --agent NAME"
        )
