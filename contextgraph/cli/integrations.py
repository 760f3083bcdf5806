"""``contextgraph hook``, ``integrations`` and ``log``: advice in the sessions of coding agents."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast

import typer

from contextgraph.cli.options import Common, common_options, flag
from contextgraph.cli.output import emit, print_text, warn
from contextgraph.text import number_of

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from contextgraph.config import Settings
    from contextgraph.integrations.install import Agent, Installation, SettingsFile
    from contextgraph.integrations.sessions import HookRecord
    from contextgraph.memory import AgentMemory
    from contextgraph.model import Json


@common_options(without=("as_json",))
def hook(common: Common) -> None:
    """Answer an agent's hook event.

    The event is one JSON object on standard input, as Claude Code, Codex CLI or OpenHands writes
    it; the answer on standard output is what that agent expects, or nothing. The exit code is 0.
    `contextgraph integrations install` makes an agent call this.

    \b
    Example:
      echo '{"hook_event_name": "SessionStart", "cwd": "."}' | contextgraph hook
    """
    from contextgraph.integrations.hook import main

    main(common.store, common.tenant)


@common_options()
def integrations(
    common: Common,
    action: Annotated[
        Literal["list", "install", "uninstall"], typer.Argument(help="list, install or uninstall.")
    ] = "list",
    agents: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[AGENT]...",
            help="claude-code, codex-cli or openhands; or --auto.",
            show_default=False,
        ),
    ] = None,
    *,
    auto: Annotated[bool, flag("--auto", "All agents that are found on this machine.")] = False,
    project: Annotated[
        bool, flag("--project", "Settings of the project in this folder, not of the user.")
    ] = False,
) -> None:
    """Connect coding agents to the memory.

    install adds hooks to the settings of an agent and leaves all other entries as they are;
    uninstall removes them again. The agent then gets advice at the start of a session, at prompts,
    before commands and after failures, and its finished sessions are learned. See docs/hooks.md.
    mini-swe-agent, SWE-agent, the OpenAI Agents SDK and LangGraph need no settings: docs/ has a
    page on each.

    \b
    With --json one line per agent: "agent", "path", "installed", "changed".

    \b
    Example:
      contextgraph integrations install claude-code
      contextgraph integrations install --auto
      contextgraph integrations uninstall claude-code
    """
    from contextgraph.integrations.install import Installation, chosen_agents, hook_command

    if action != "list" and bool(agents) == auto:
        raise typer.BadParameter("name an agent, or give --auto")
    settings = common.settings()
    if settings.is_service and action == "install":
        raise typer.BadParameter(
            f"hooks read a file beside the store, and {settings.address} is a service: give its "
            "agents the tools at /mcp instead"
        )
    folder = Path.cwd() if project else None
    # Named for good: a file contextgraph.toml in a checkout must not choose another memory.
    address = None if project and not common.store else _absolute(settings)
    command = hook_command(address, is_shared=project)
    for agent in chosen_agents(agents or [], all_known=action == "list"):
        file = _settings_file(agent, folder)
        changed = False
        if action == "install":
            changed = file.install(agent, command)
        elif action == "uninstall":
            changed = file.uninstall()
        _report(common, Installation(agent.name, file.path, file.has_hooks(), changed), agent)
    if action == "install":
        _compile_now(common, settings)


@common_options()
def log(
    common: Common,
    limit: Annotated[
        int, typer.Option("--limit", metavar="N", min=1, help="The newest N answers.")
    ] = 50,
) -> None:
    """Show the advice that hooks gave agents.

    Shows when, in which session and at which event it was given, and what happened next: whether
    the error was met again in the session, and, once that is learned, whether it was cleared.

    \b
    With --json one line per answer, oldest first: "at", "event", "agent",
    "session", "subagent", "folder" (a checksum), "repo", "family", "error_type",
    "template", "context", "text", "items", "is_withheld", "forgets" (what was
    shown before left the context), "met_again" (times), "cleared" (true, false,
    or null where it is not known).

    \b
    Example:
      contextgraph log --limit 10
    """
    from contextgraph.integrations.sessions import HookFiles

    settings = common.settings()
    records = list(HookFiles(settings).records())
    shown = [record for record in records if record.text][-limit:]
    cleared = _cleared(common) if shown else {}
    for record in shown:
        line = _line(record, records, cleared.get(record.context))
        if common.as_json:
            emit(line)
        else:
            _show(record, line)
    if not shown and not common.as_json:
        print("no advice was shown yet; `contextgraph integrations install` connects an agent")


def compile_for_hooks(
    memory: "AgentMemory",
    settings: "Settings",
    *,
    whole: bool = False,
    consolidated: "Collection[str] | None" = None,
    repos: "Collection[str]" = (),
) -> None:
    """Bring compiled advice up to date, where hooks use the memory of *settings*.

    *whole*, *consolidated* and *repos* are as of `compile_advice`.
    """
    from contextgraph.integrations.compile import compile_advice
    from contextgraph.integrations.sessions import HookFiles

    files = HookFiles(settings)
    if files.are_used and not memory.is_service:
        compile_advice(memory, files.advice, whole=whole, consolidated=consolidated, repos=repos)


def _absolute(settings: "Settings") -> str:
    return settings.address if settings.is_remote else str(Path(settings.address).absolute())


def _settings_file(agent: "Agent", folder: Path | None) -> "SettingsFile":
    from platformdirs import user_data_path

    from contextgraph.integrations.install import SettingsFile

    backups = user_data_path() / "contextgraph" / "integrations"
    return SettingsFile(agent.settings_file(folder), backups)


def _report(common: Common, done: "Installation", agent: "Agent") -> None:
    if common.as_json:
        emit({**asdict(done), "path": str(done.path)})
        return
    state = "installed" if done.installed else "not installed"
    print(f"{done.agent}: {state}, {done.path}")
    if done.installed and done.changed and agent.note:
        warn(agent.note)


def _compile_now(common: Common, settings: "Settings") -> None:
    """Compile what the memory knows so far, so that the next session gets it."""
    from contextgraph.errors import MemoryNotFoundError
    from contextgraph.integrations.compile import compile_advice
    from contextgraph.integrations.sessions import HookFiles

    try:
        with common.open(create=False) as memory:
            warn(f"compiling advice from {number_of(len(memory.store.runs.ids()), 'run')}")
            done = compile_advice(memory, HookFiles(settings).advice)
    except MemoryNotFoundError:
        warn("the memory is empty: finished sessions are learned, or use contextgraph learn")
    else:
        warn(f"advice on {number_of(done.errors, 'error')} in {done.path}")


def _cleared(common: Common) -> "dict[str, bool | None]":
    """Context -> whether its error was cleared, of those whose session was learned."""
    from contextgraph.errors import MemoryNotFoundError

    known: dict[str, bool | None] = {}
    try:
        with common.open(read_only=True) as memory:
            known = {one.context_id: one.helped for one in memory.store.exposures.all()}
    except MemoryNotFoundError:
        return {}
    return known


def _line(
    shown: "HookRecord", records: "Sequence[HookRecord]", cleared: bool | None
) -> "dict[str, Json]":
    again = [record for record in records if shown.family and record.repeats(shown)]
    record: dict[str, Json] = {**asdict(shown), "items": [*shown.items]}
    return {**record, "met_again": len(again), "cleared": cleared}


def _show(shown: "HookRecord", line: "dict[str, Json]") -> None:
    what = [
        shown.at[:19].replace("T", " "),
        shown.agent,
        shown.session[:8],
        shown.event,
        shown.repo,
    ]
    outcome = {True: "cleared", False: "not cleared", None: ""}[
        cast("bool | None", line["cleared"])
    ]
    again = f"met again: {line['met_again']}" if line["met_again"] else ""
    error = f"{shown.error_type}: {shown.template}" if shown.family else ""
    print_text((" · ".join(filter(None, what)), "bold"))
    if noted := " · ".join(filter(None, (error, outcome, again))):
        print_text((f"  {noted}", "dim"))
    print_text("\n".join(f"  {row}" for row in shown.text.splitlines()))
