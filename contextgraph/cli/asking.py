"""``contextgraph query``: what the memory knows for a state."""

from datetime import datetime
from typing import Annotated, Any

import typer

from contextgraph.cli.options import AsJson, Configuration, Store, Tenant, open_memory

PHASES = "understanding|locating|reproducing|fixing|testing|submitting"


def _option(flag: str, metavar: str, help_text: str) -> Any:
    """A flag without a default to show; typer itself types these Any."""
    return typer.Option(flag, metavar=metavar, help=help_text, show_default=False)


def query(  # noqa: PLR0913  (one parameter per flag)
    source: Annotated[
        str | None,
        typer.Argument(
            metavar="-", help="Read one state as JSON from standard input.", show_default=False
        ),
    ] = None,
    *,
    batch: Annotated[
        str | None, _option("--batch", "FILE", "Read states as JSON lines; - for standard input.")
    ] = None,
    repo: Annotated[str, _option("--repo", "OWNER/REPO", "The repository.")] = "",
    error: Annotated[
        str, _option("--error", "TEXT", "The error as it was shown; - for standard input.")
    ] = "",
    task: Annotated[str, _option("--task", "TEXT", "What is to be done, such as the issue.")] = "",
    phase: Annotated[
        str | None, _option("--phase", "PHASE", f"What the agent is about: {PHASES}.")
    ] = None,
    open_file: Annotated[str, _option("--open-file", "PATH", "The file being looked at.")] = "",
    last_action: Annotated[str, _option("--last-action", "TEXT", "The latest command.")] = "",
    last_outcome: Annotated[
        str, _option("--last-outcome", "TEXT", "What the latest command brought.")
    ] = "",
    repo_summary: Annotated[
        str, _option("--repo-summary", "TEXT", "What the repository is about.")
    ] = "",
    tool: Annotated[
        list[str] | None, _option("--tool", "NAME", "A tool the agent has (repeatable).")
    ] = None,
    instance: Annotated[
        str | None, _option("--instance", "ID", "The instance being worked on.")
    ] = None,
    exclude_instance: Annotated[
        list[str] | None,
        _option(
            "--exclude-instance",
            "ID",
            "Do not see runs of this instance (repeatable); 'same' means that of the state.",
        ),
    ] = None,
    as_of: Annotated[
        datetime | None,
        typer.Option(
            "--as-of",
            metavar="TIME",
            formats=["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M:%S%z"],
            help="See nothing newer, such as 2026-01-31 or 2026-01-31T12:00:00 (UTC).",
            show_default=False,
        ),
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", metavar="N", min=1, help="At most so many items of a kind.")
    ] = 5,
    configuration: Configuration = None,
    as_json: AsJson = False,
    store: Store = None,
    tenant: Tenant = None,
) -> None:
    """Ask what the memory knows for a state.

    The state comes from options, from one JSON object on standard input, or from a file of JSON
    lines (each may have a "key", which is handed back with its answer). Keys: task_description,
    repo, repo_summary, current_error, phase, tools, last_action, last_outcome, open_file,
    instance_id; all optional.

    \b
    Example:
      contextgraph query --repo owner/repo --error "ModuleNotFoundError: No module named 'yaml'"
      pytest 2>&1 | contextgraph query --repo owner/repo --error -
      contextgraph query --batch states.jsonl --json
    """
    from contextgraph.cli.answering import Guard, answer_all, exit_code
    from contextgraph.cli.questions import questions

    flags = {
        "repo": repo,
        "current_error": error,
        "task_description": task,
        "phase": phase,
        "open_file": open_file,
        "last_action": last_action,
        "last_outcome": last_outcome,
        "repo_summary": repo_summary,
        "tools": [*tool] if tool else None,
        "instance_id": instance,
    }
    asked = questions(source, batch, {name: value for name, value in flags.items() if value})
    guard = Guard(limit, tuple(exclude_instance or ()), as_of)
    with open_memory(store, tenant, read_only=True, configuration=configuration) as memory:
        answered = answer_all(memory, asked, guard, as_json=as_json)
    raise typer.Exit(exit_code(answered))
