"""``contextgraph playbook`` and ``how``: what the runs of a repository agree on."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from contextgraph.cli.options import FAILED, AsJson, Store, Tenant, Workdir, open_memory, option
from contextgraph.cli.output import emit, one_line, print_table, warn
from contextgraph.cli.records import command_record, playbook_record
from contextgraph.text import number_of

if TYPE_CHECKING:
    from contextgraph.memory import AgentMemory
    from contextgraph.model import CommandHistory, CommandRecord, RepositoryPlaybook

_ROWS, _PATH_WIDTH, _COMMAND_WIDTH, _REASON_WIDTH = 10, 38, 46, 18

Repository = Annotated[
    str, typer.Option("--repo", metavar="OWNER/REPO", help="The repository.", show_default=False)
]


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

    Which files a task is likely to change, how tests are run, what does not run, which tests fail
    anyway, what is installed first. Counts are of tasks; several runs of one task count once. What
    an agent would be shown ("text") is only what at least two tasks agree on.

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
        _show(found)


def how(
    command: Annotated[
        str, typer.Argument(metavar="COMMAND", help="A shell line.", show_default=False)
    ],
    *,
    repo: Repository,
    as_json: AsJson = False,
    store: Store = None,
    tenant: Tenant = None,
) -> None:
    """Show how a command is really run in a repository.

    How commands of this form went, as they were typed, and what worked instead. The choice of tests
    and the names of scripts that runs made are left open. Counts are of tasks.

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
        warning = memory.before(repo, command)
    if as_json:
        emit(
            {
                "repo": repo,
                "command": command,
                "runs": found.runs,
                "form": command_record(found.form) if found.form else None,
                "first": command_record(found.first) if found.first else None,
                "exact": command_record(found.exact) if found.exact else None,
                "ways": [command_record(one) for one in found.ways],
                "others": [command_record(one) for one in found.others],
                "warning": warning,
            }
        )
    else:
        _show_history(found)


def _unknown(memory: "AgentMemory", repo: str) -> None:
    known = len(memory.store.runs.ids())
    warn(
        f"no run of {repo} in this memory of {number_of(known, 'run')}; "
        "`contextgraph runs` lists those there are"
    )
    raise typer.Exit(FAILED)


def _show(found: "RepositoryPlaybook") -> None:
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
        return
    _print_commands("This form", [found.form])
    _print_commands("As typed", found.ways)
    _print_commands("What ran instead", found.others)


def _print_commands(title: str, records: "Iterable[CommandRecord]") -> None:
    columns = ("command", "ran", "of", "otherwise")
    print_table(title, columns, _rows(list(records)[:_ROWS]), columns[1:3])


def _rows(records: "Iterable[CommandRecord]") -> Iterator[tuple[str, ...]]:
    for one in records:
        reason = one_line(one.error_type, _REASON_WIDTH)
        yield one_line(one.line, _COMMAND_WIDTH), f"{one.worked}", f"{one.tried}", reason
