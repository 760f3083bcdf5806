"""``contextgraph setup``: from nothing to a memory that advises, in one command."""

import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING, Annotated

import click

from contextgraph.cli.learn import (
    Intake,
    Learning,
    Selection,
    learned_in,
    read_files,
)
from contextgraph.cli.options import (
    Common,
    Yes,
    common_options,
    flag,
    option,
)
from contextgraph.cli.output import (
    emit,
    print_box,
    print_text,
    styled,
    warn,
)
from contextgraph.errors import MemoryNotFoundError
from contextgraph.lazy import dataclass
from contextgraph.text import number_of, one_line

if TYPE_CHECKING:
    from contextgraph.agents.install import Agent
    from contextgraph.config import Settings
    from contextgraph.learning.statistics import Friction
    from contextgraph.memory import AgentMemory
    from contextgraph.model import CommandRecord, Json
    from contextgraph.readers import History

# So many repositories, commands of each, and errors stand on the card.
_REPOSITORIES, _COMMANDS, _ERRORS = 4, 2, 3
_WIDTH = 72


@common_options()
def setup(
    common: Common,
    yes: Yes = False,
    exclude: Annotated[
        list[str] | None, option("--exclude", "PATTERN", "Leave these files out (repeatable).")
    ] = None,
    no_agents: Annotated[bool, flag("--no-agents", "Connect no agent.")] = False,
) -> None:
    """Find the histories on this machine, learn them, connect agents.

    Asks before each step; nothing is written without a yes, and nothing leaves this machine. The
    newest sessions are learned first: Ctrl-C ends learning, and what is learned stays. Run it
    again at any time: only what is new is learned.

    \b
    Example:
      contextgraph setup
      contextgraph setup --yes --json
    """
    settings = common.settings()
    histories = _histories(exclude or ())
    asked = _Questions(yes=yes, as_json=common.as_json)
    _learn(common, settings, histories, asked)
    card = _card(common)
    if card and not common.as_json:
        _show_card(card)
    connected = [] if no_agents or settings.is_service else [*_connect(common, settings, asked)]
    steps = _next_steps(card, connected)
    if common.as_json:
        found: list[Json] = [
            {
                "agent": one.agent,
                "sessions": one.runs,
                "bytes": one.bytes,
                "folder": str(one.folder),
            }
            for one in histories
        ]
        emit(
            {
                "store": settings.address,
                "histories": found,
                "card": card.record() if card else None,
                "agents": [{**one} for one in connected],
                "try": [*steps],
            }
        )
        return
    print_text(("Try:", "bold"))
    for step in steps:
        print(f"  {step}")


@dataclass(frozen=True, slots=True)
class _Questions:
    """Asks the person; *yes* answers all, and without a terminal the answer is no."""

    yes: bool
    as_json: bool

    def agreed(self, question: str) -> bool:
        if self.yes:
            return True
        if self.as_json or not sys.stdin.isatty():
            warn(f"{question} no: without a terminal, use --yes")
            return False
        return click.confirm(question, default=True, err=True)


def _histories(exclude: Sequence[str]) -> "list[History]":
    from contextgraph.readers import discover

    return discover(exclude=exclude)


def _learn(
    common: Common, settings: "Settings", histories: "Sequence[History]", asked: _Questions
) -> None:
    """Learn the sessions that are new, the newest first."""
    known = read_files(settings)
    files = [file for history in histories for file in history.files]
    new = known.new(files, learned=partial(learned_in, common))
    if not common.as_json:
        for history in histories:
            print_text(f"{history.agent}: {number_of(history.runs, 'session')} in {history.folder}")
    if not files:
        warn("no history of a coding agent found; `contextgraph learn PATH` learns runs")
    elif not new:
        warn(f"nothing new in {number_of(len(files), 'file')}")
    elif asked.agreed(f"Learn {number_of(len(new), 'new file')} into {settings.address}?"):
        newest = sorted(new, key=_time_of, reverse=True)
        selection = Selection(never=settings.never_learned)
        intake = partial(Intake, discovered=True, selection=selection)
        learning = Learning(common, intake, known=known, is_quiet=True)
        try:
            learning.learn([str(file) for file in newest])
        except KeyboardInterrupt:
            warn("the rest is learned when you run this again")


def _time_of(file: Path) -> float:
    try:
        return file.stat().st_mtime
    except OSError:
        return 0.0


@dataclass(frozen=True, slots=True)
class _Card:
    """Summary of a memory, in a few lines; *message* is that of its first error in a run."""

    sessions: int
    steps: int
    repositories: "Mapping[str, int]"
    errors: "Sequence[Friction]"
    commands: "Mapping[str, Sequence[CommandRecord]]"
    message: str

    def record(self) -> "dict[str, Json]":
        """Return its JSON form."""
        return {
            "sessions": self.sessions,
            "steps": self.steps,
            "repositories": {**self.repositories},
            "errors": [
                {
                    "error": error.error,
                    "tasks": error.tasks,
                    "steps_lost": error.steps_lost,
                    "remedy": error.remedies[0].text if error.remedies else None,
                }
                for error in self.errors
            ],
            "commands": [
                {"repo": repo, "command": one.line, "worked": one.worked, "tried": one.tried}
                for repo, commands in self.commands.items()
                for one in commands
            ],
        }


def _card(common: Common) -> _Card | None:
    """Return what the memory knows; None where there is none."""
    try:
        with common.open(read_only=True) as memory:
            return _card_of(memory)
    except MemoryNotFoundError:
        return None


def _card_of(memory: "AgentMemory") -> _Card | None:
    from collections import Counter

    from contextgraph.ports import id_pages

    repositories, steps = Counter[str](), 0
    for ids in id_pages(memory.store.runs, 256):
        for run in memory.store.runs.trajectories(ids).values():
            repositories[run.repo] += 1
            steps += run.total_steps
    if not repositories:
        return None
    friction = memory.stats.get_friction("", _ERRORS * 4)
    common = dict(repositories.most_common(_REPOSITORIES))
    commands: dict[str, Sequence[CommandRecord]] = {}
    for repo in filter(None, common):
        playbook = memory.playbook(repo)
        agreed = [one for one in (*playbook.tests, *playbook.setup) if one.is_agreed]
        if agreed:
            commands[repo] = agreed[:_COMMANDS]
    costly = [error for error in friction if error.remedies and error.remedies[0].tasks > 1]
    return _Card(
        sessions=repositories.total(),
        steps=steps,
        repositories=dict(repositories.most_common()),
        errors=costly[:_ERRORS],
        commands=commands,
        message=_message(memory, costly[0]) if costly else "",
    )


def _message(memory: "AgentMemory", friction: "Friction") -> str:
    """Return *friction* as a run met it, with names where its template has placeholders."""
    (history,) = memory.store.recoveries.histories([friction.error_id], 1)
    error = history.error
    head = f"{error.error_type}: "
    return one_line(head + error.context.removeprefix(head), _WIDTH)


def _show_card(card: _Card) -> None:
    counts = (
        number_of(card.sessions, "session"),
        number_of(len(card.repositories), "repository"),
        number_of(card.steps, "step"),
    )
    lines = [styled((", ".join(counts), "bold"))]
    for repo, commands in card.commands.items():
        for one in commands:
            worked = f" worked in {one.worked} of {number_of(one.tried, 'task')}"
            lines.append(styled(f"{repo}: ", (one_line(one.line, _WIDTH), "green"), worked))
    for error in card.errors:
        steps = number_of(round(error.steps_lost or 0), "step")
        lost = f"{number_of(error.tasks, 'task')} lost {steps} each to "
        lines.append(styled(lost, (one_line(error.error, _WIDTH), "yellow")))
        lines.append(styled("  ", (one_line(error.remedies[0].text, _WIDTH), "green")))
    print_box("What the memory knows", *lines)


def _connect(
    common: Common, settings: "Settings", asked: _Questions
) -> "Iterator[dict[str, Json]]":
    """Offer hooks and tools for each agent on this machine; yield what is connected then."""
    from contextgraph.agents.install import chosen_agents
    from contextgraph.cli.installation import hooks_of, install_hooks
    from contextgraph.cli.service import server_command

    agents = chosen_agents([])
    if not agents:
        warn("no agent with hooks found here: Claude Code, Codex CLI, OpenHands")
    files = {agent.name: hooks_of(agent) for agent in agents}
    chosen = [
        agent
        for agent in agents
        if not files[agent.name].has_hooks()
        and asked.agreed(f"Advise {agent.name} by hooks in {files[agent.name].path}?")
    ]
    if chosen:
        install_hooks(common, settings, chosen)
    for agent in agents:
        file = files[agent.name]
        add = agent.tools_command(server_command(common))
        tools = _tools(agent, add, asked)
        if not common.as_json:
            hooks = "hooks installed" if file.has_hooks() else "no hooks"
            print(f"{agent.name}: {hooks}; tools (MCP): {tools}")  # commands stay whole
        yield {"agent": agent.name, "hooks": file.has_hooks(), "tools": tools}


def _tools(agent: "Agent", add: Sequence[str], asked: _Questions) -> str:
    """Offer the tools of the memory over MCP; return whether the agent has them, or what to do."""
    if agent.has_tools():
        return "installed"
    if not add:
        return "not offered"
    if find_spec("mcp") is None:
        return "install contextgraph-memory[mcp], then run setup again"
    if which(add[0]) is None:
        return f"run: {shlex.join(add)}"
    if not asked.agreed(f"Give {agent.name} the tools of the memory ({' '.join(add[:3])})?"):
        return "not installed"
    done = subprocess.run(add, capture_output=True, text=True, check=False)
    if done.returncode:
        warn(f"{add[0]}: {done.stderr.strip() or done.stdout.strip()}")
        return f"run: {shlex.join(add)}"
    return "installed"


def _next_steps(card: _Card | None, connected: "Sequence[Mapping[str, Json]]") -> list[str]:
    """Return the commands to try next."""
    if card is None:
        return ["contextgraph learn PATH      # files of runs", "contextgraph --help"]
    steps = []
    if card.errors:
        is_plain = card.message.isprintable() and not {*card.message} & {*'"$`\\!'}
        quoted = f'"{card.message}"' if is_plain else shlex.quote(card.message)
        steps.append(f"contextgraph query --error {quoted}")
    if repo := next(iter(card.commands), ""):
        steps.append(f"contextgraph playbook --repo {shlex.quote(repo)}")
    if any(one["hooks"] for one in connected):
        steps.append("contextgraph receipt         # after your next session")
    return [*steps, "contextgraph --help"]
