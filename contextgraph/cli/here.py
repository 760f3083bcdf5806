"""Operations of this machine for ``contextgraph call``: files, settings, tokens, experiments."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, redirect_stdout
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import click
from pydantic import DirectoryPath, Field

from contextgraph.cli.learn import Intake
from contextgraph.cli.output import PARTLY_DONE, warn
from contextgraph.cli.service import CLIENTS, server_command, token_file
from contextgraph.config import IN_MEMORY, Settings, settings_in_force
from contextgraph.errors import NotFoundError
from contextgraph.model.values import replace
from contextgraph.service.operations import Operation, Record, TokenScope
from contextgraph.service.operations.arguments import Name, Names, Share
from contextgraph.service.records import context_record, record_of
from contextgraph.text import number_of

if TYPE_CHECKING:
    from contextgraph.evaluation.measures import ReplayMoment
    from contextgraph.model import Json
    from contextgraph.service.tokens import Token

Paths = Annotated[
    tuple[str, ...],
    Field(min_length=1, description="Trajectory files, folders or globs; - for standard input."),
]
Count = Annotated[int, Field(ge=1)]
TokenPath = Annotated[
    Path | None, Field(description="The file of the tokens; by default beside the memory.")
]


def formats(settings: Settings) -> Record:
    """List the log formats that are read: how each is recognised, and what is kept of it."""
    from contextgraph.readers import all_formats

    return {
        "formats": [
            {
                "name": one.name,
                "recognised_by": one.description,
                "keeps": one.keeps,
                "experimental": one.experimental,
            }
            for one in all_formats().values()
        ]
    }


def config_show(settings: Settings) -> Record:
    """List the settings in force, and where each is set; secrets are masked."""
    return {"settings": [*map(record_of, settings_in_force())]}


def loops(
    settings: Settings,
    paths: Paths,
    memory: Annotated[
        Name | None, Field(description="A memory that suggests how to leave each loop.")
    ] = None,
) -> Iterator[Record]:
    """Yield the loops of each recorded run: repeated attempts without progress; learns nothing."""
    from contextgraph.memory.agent_memory import AgentMemory

    intake = Intake(paths, settings, is_shown=True)
    with ExitStack() as stack:
        opened = None
        if memory:
            named = replace(settings, store=memory)
            opened = stack.enter_context(AgentMemory.of_settings(named, read_only=True))
        for raw in intake:
            trace = AgentMemory.inspect(raw).trace
            found = opened.loop_detector.detect_all(trace) if opened else trace.loops
            records: list[Json] = [*map(record_of, found)]
            yield {"source": raw.source, "instance_id": raw.instance_id, "loops": records}
    raise click.exceptions.Exit(intake.exit_code)


def replay(
    settings: Settings,
    paths: Paths,
    memory: Annotated[
        Name, Field(description="The memory that learns the runs, by default one in RAM.")
    ] = ":memory:",
) -> Iterator[Record]:
    """Yield the advice at each start, error and loop of recorded runs, as if live; a summary last.

    The memory learns each run after it. Runs are in order of their start, else of the number in the
    instance id, else as given.
    """
    from contextgraph.evaluation.measures import Replay, ReplayMoment
    from contextgraph.memory.agent_memory import AgentMemory

    intake = Intake(paths, settings, is_shown=memory in IN_MEMORY)
    runs = [*intake]
    with AgentMemory.of_settings(replace(settings, store=memory)) as opened:
        replayed = Replay(opened, runs)
        for item in replayed:
            if isinstance(item, ReplayMoment):
                yield _moment(item)
        counts = replayed.counts
        summary = record_of(
            counts,
            seconds=round(counts.seconds, 3),
            failed=intake.counts.failed,
            skipped=intake.counts.skipped,
        )
    yield {"summary": summary}
    raise click.exceptions.Exit(intake.exit_code)


def _moment(moment: "ReplayMoment") -> Record:
    items: dict[str, Json] = {}
    if moment.loop is not None:
        escapes: list[Json] = [suggestion.text for suggestion in moment.escapes]
        items = {"loop": record_of(moment.loop), "escapes": escapes}
    elif moment.context is not None:
        shown = ("suggestions", "error_solutions", "similar_cases", "warnings", "degraded")
        record = context_record(moment.context, "")
        items = {name: record[name] for name in shown}
    return {
        "instance_id": moment.raw.instance_id,
        "step": moment.step,
        "kind": str(moment.kind),
        "answered": moment.answered,
        "items": items,
    }


def experiment_run(  # noqa: PLR0913, PLR0917  (one parameter per property of an experiment)
    settings: Settings,
    tasks: Annotated[Path, Field(description="Tasks, as JSON lines.")],
    out: Annotated[Path, Field(description="The folder of the experiment.")],
    agent: Annotated[Name, Field(description="The agent.")] = "mini-swe-agent",
    model: Annotated[Name | None, Field(description="The model, as the agent names it.")] = None,
    config: Annotated[
        Names, Field(description="As for mini: a file or key=value (default: mini.yaml).")
    ] = (),
    arms: Annotated[
        tuple[Literal["none", "placebo", "grep", "memory"], ...],
        Field(description="The arms that are compared."),
    ] = ("none", "placebo", "grep", "memory"),
    attempts: Annotated[Count, Field(description="Attempts at each task in each arm.")] = 3,
    share: Annotated[Share, Field(description="Share of the tasks to learn from.")] = 0.5,
    seed: Annotated[int, Field(description="The seed of all random draws.")] = 42,
    workers: Annotated[Count, Field(description="Attempts at the same time.")] = 1,
    retry_broken: Annotated[bool, Field(description="Retry broken attempts.")] = False,
) -> Iterator[Record]:
    """Run an experiment, or the rest of one that was interrupted; yields each attempt.

    A share of the tasks is attempted once, and learned into a memory in the folder. The others are
    attempted in each arm: none (no advice), memory (advice), placebo (at the same moments, about as
    many tokens of advice for another repository), grep (the agent may search the learned logs).
    Commands of the agent run on this machine, unless a task names an image.
    """
    from contextgraph.evaluation.experiment import (
        ARMS,
        Experiment,
        ExperimentFolder,
        Plan,
        agent_named,
        read_tasks,
    )

    plan = Plan(
        arms=[arm for arm in ARMS if arm in arms],
        tasks=read_tasks(tasks),
        attempts=attempts,
        share=share,
        seed=seed,
        settings={"config": [*config], "contextgraph": version("contextgraph-memory")},
    )
    work = Experiment(
        plan, agent_named(agent, model, [*config]), ExperimentFolder(out), workers=workers
    )
    broken, shown = 0, sys.stdout
    # What an agent's package prints must not come between the attempts.
    with redirect_stdout(sys.stderr):
        for attempt in work.run(retry_broken=retry_broken):
            broken += bool(attempt.error)
            with redirect_stdout(shown):
                yield record_of(attempt)
    if again := sum(map(len, work.left(retry_broken=True).values())):
        warn(f"{number_of(again, 'attempt')} broke: retry_broken=true repeats what broke")
    if broken or again:
        raise click.exceptions.Exit(PARTLY_DONE)


def experiment_report(
    settings: Settings,
    folder: Annotated[Path, Field(description="The folder of the experiment.")],
    html: Annotated[
        Path | None, Field(description="Also write an HTML page, which works offline.")
    ] = None,
) -> Record:
    """Return the results of an experiment so far.

    pass@k, steps, tokens and cost of each arm; how arms differ on the same tasks, with 95 %
    intervals (bootstrap by task) and McNemar's exact test. Broken attempts do not count.
    """
    from contextgraph.evaluation.experiment import ExperimentFolder
    from contextgraph.evaluation.experiment_report import report_on, write_report

    report = report_on(ExperimentFolder(folder))
    if html:
        write_report(html, report)
    return record_of(report)


def mcp_config(
    settings: Settings,
    client: Annotated[
        Literal["claude-code", "codex", "cursor", "vscode", "generic"],
        Field(description="The client."),
    ],
) -> Record:
    """Return the configuration by which an MCP client starts the server, and its file."""
    chosen, command = CLIENTS[client], server_command(settings)
    return {
        "client": client,
        "file": chosen.file,
        "configuration": chosen.configuration(command),
        "add": chosen.add_command(command) or None,
        "command": [*command],
    }


def learn_team(
    settings: Settings,
    folder: Annotated[DirectoryPath, Field(description="A folder of the repository.")],
) -> Record:
    """Take over the lessons in .contextgraph of a trusted repository; forget those of others.

    Done by `trust`, by `team sync`, and where they have changed when an agent starts.
    """
    from contextgraph.knowledge.team import root_of, trusts_lessons
    from contextgraph.memory.agent_memory import AgentMemory

    with AgentMemory.of_settings(settings) as memory:
        taken = memory.learn_team(folder)
    return record_of(taken, trusted=trusts_lessons(root_of(folder)))


def age_lessons(
    settings: Settings,
    folder: Annotated[DirectoryPath, Field(description="A folder of the repository.")],
) -> Record:
    """Silence lessons whose files, symbols or programs a repository lost, until they are reviewed.

    Done by `learn`, and where another commit is checked out when an agent starts.
    """
    from contextgraph.memory.agent_memory import AgentMemory

    with AgentMemory.of_settings(settings) as memory:
        return {"changed": memory.age_lessons(str(folder))}


def token_create(
    settings: Settings,
    scope: Annotated[tuple[TokenScope, ...], Field(description="read, write or admin.")] = (
        TokenScope.READ,
        TokenScope.WRITE,
    ),
    source: Annotated[
        Name, Field(description="Its owner, whom runs learned with it name.")
    ] = "http",
    tokens: TokenPath = None,
) -> Record:
    """Make a token for the service; it is returned once, only its hash is stored.

    It belongs to one tenant, and sees nothing of others.
    """
    made, text = token_file(settings, tokens).create([*scope], settings.tenant, source)
    return {"token": text, **_token(made)}


def token_list(settings: Settings, tokens: TokenPath = None) -> Record:
    """List the tokens of the service."""
    listed: list[Json] = [_token(one) for one in token_file(settings, tokens).all()]
    return {"tokens": listed}


def token_revoke(
    settings: Settings,
    identity: Annotated[Name, Field(description="The id, as token_list has it.")],
    tokens: TokenPath = None,
) -> Record:
    """Revoke a token; a running service refuses it from the next request on."""
    if not token_file(settings, tokens).revoke(identity):
        raise NotFoundError(f"no token {identity}; token_list lists those there are")
    return {"id": identity, "revoked": True}


def _token(token: "Token") -> "dict[str, Json]":
    return record_of(token, "hash")


_LINES: dict[Any, str] = {formats: "formats", config_show: "settings", token_list: "tokens"}
_FUNCTIONS: Sequence[Any] = (
    formats,
    config_show,
    loops,
    replay,
    experiment_run,
    experiment_report,
    mcp_config,
    learn_team,
    age_lessons,
    token_create,
    token_list,
    token_revoke,
)
OPERATIONS = {
    one.__name__: Operation(one, TokenScope.ADMIN, lines=_LINES.get(one, "")) for one in _FUNCTIONS
}
