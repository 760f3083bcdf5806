"""Recorded and stored runs, and stored sessions: inspect, sessions and runs."""

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import click

from contextgraph.cli.commands import (
    Common,
    FollowLinks,
    Git,
    Paths,
    Repo,
    check_period,
    common_options,
    described,
    option,
    time_option,
)
from contextgraph.cli.notes import Opening, meant_repository, print_item, unknown_repository
from contextgraph.cli.output import FAILED, console, emit, fail, print_text, warn
from contextgraph.cli.timeline import show_timeline
from contextgraph.console.page import error_line
from contextgraph.model import Outcome, SessionFilter, is_subagent
from contextgraph.model.values import batched
from contextgraph.service.records import record_of
from contextgraph.text import neutral, number_of, one_line, regex

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from contextgraph.cli.learn import Intake
    from contextgraph.learning import Inspection
    from contextgraph.model import Json, RawTrajectory, Session, Trajectory
    from contextgraph.store.memory_store import RunStore
    from contextgraph.trace import Recovery, StepTrace


_RUN = "trj_"  # begins the id of a run
_ITEM = regex(r"(?:adv|ctx|entity|err|fact|frg|lesson|mth|note|page)_[\w-]+")

Instances = Annotated[list[str] | None, option("ID", "Only runs of this instance (repeatable).")]


@common_options("max_run_size")
def inspect(
    common: Common,
    paths: Paths,
    instance: Instances = None,
    step: Annotated[int | None, option("N", "Show step N in full.", min=0)] = None,
    html: Annotated[
        Path | None,
        option(
            "FILE", "Write an HTML page with a timeline instead; it works offline.", dir_okay=False
        ),
    ] = None,
    git: Git = False,
    follow_links: FollowLinks = False,
) -> None:
    """Show how runs are read: phases, errors, loops, recoveries.

    Learns nothing; files need no memory. PATH may be the id of a run in the memory, trj_..., or of
    anything else there, such as a remedy, lesson or note: then what is known of it is shown.

    \b
    Example:
      contextgraph inspect runs/owner__repo-12.traj
      contextgraph inspect runs.jsonl.gz --instance owner__repo-12 --step 7
      contextgraph inspect runs.jsonl.gz --instance owner__repo-12 --html run.html
    """
    from contextgraph.cli.learn import Intake

    named = [path for path in paths if not Path(path).exists()]
    ids = [path for path in named if path.startswith(_RUN)]
    items = [path for path in named if _ITEM.fullmatch(path)]
    _show_items(common, items)
    files = [path for path in paths if path not in (*ids, *items)]
    if items and not (ids or files):
        return
    intake = Intake(files, common.settings(), git=git, follow_links=follow_links, is_shown=True)
    stored = _stored_runs(common, ids) if ids else []
    if html:
        from contextgraph.console.page import run_view, write_page

        runs = count()  # zip takes no number after the last run
        views = (
            run_view(inspection, {})
            for inspection, _ in zip(_inspected(stored, intake, instance), runs, strict=False)
        )
        write_page(html, "run.html", views=views, comparing=False)
        common.exported(html)
        print(f"{html}: {number_of(next(runs), 'run')}")
        raise click.exceptions.Exit(intake.exit_code)
    is_shown, shown = common.as_json or step is None, set[str]()
    for inspection in _inspected(stored, intake, instance):
        raw = inspection.trace.raw
        if common.as_json:
            emit(inspection_record(inspection))
        elif step is not None:
            # The steps of its sub-agents have the same numbers.
            if not (raw.instance_id in shown and is_subagent(raw.agent)):
                is_shown |= _show_step(inspection, step)
            shown.add(raw.instance_id)
        else:
            show_timeline(inspection)
    raise click.exceptions.Exit(intake.exit_code if is_shown else FAILED)


def _show_items(common: Common, ids: "Sequence[str]") -> None:
    """Show what is known of the items of the memory with these *ids*."""
    if not ids:
        return
    with common.open(read_only=True) as memory:
        for one in ids:
            if common.as_json:
                found = memory.explain(one) or fail(f"{one} is not in this memory")
                emit(record_of(found))
            else:
                print_item(memory, one)


def _stored_runs(common: Common, ids: "Sequence[str]") -> "list[RawTrajectory]":
    """Return the runs of the memory with these *ids*; exits where one is not there."""
    with common.open(read_only=True) as memory:
        if memory.is_service:
            address = common.settings().address
            raise click.BadParameter(
                f"a run is read from a memory itself; {address}/pages/runs/{ids[0]} shows it"
            )
        found = [memory.store.runs.raw(one) for one in ids]
    for one, raw in zip(ids, found, strict=True):
        if raw is None:
            fail(f"no run {one} in this memory; `contextgraph runs --json` has the ids")
    return [raw for raw in found if raw]


def _inspected(
    stored: "Iterable[RawTrajectory]", intake: "Intake", instances: list[str] | None
) -> "Iterator[Inspection]":
    """Each run, of these *instances* where some are named; exits where there is none of them."""
    from contextgraph.memory.agent_memory import AgentMemory

    matched = False
    for raw in chain(stored, intake):
        if not instances or raw.instance_id in instances:
            matched = True
            yield AgentMemory.inspect(raw)
    if instances and intake.counts.runs and not matched:
        runs = number_of(intake.counts.runs, "run")
        fail(f"no run of {', '.join(instances)} among {runs}")


def _show_step(inspection: "Inspection", index: int) -> bool:
    """Print a step in full: thought, action, observation, error; false where there is no such."""
    screen, instance = console(), inspection.trace.raw.instance_id
    steps = [step for step in inspection.trace.steps if step.step.index == index]
    for step in steps:
        screen.rule(neutral(f"{instance} step {index}, {step.phase}"))
        for name, text in (
            ("thought", step.step.thought),
            ("action", step.step.action.text),
            ("observation", step.step.observation or ""),
            ("error", error_line(step)),
            *([("person", step.step.user_message)] if step.step.user_message else ()),
        ):
            print_text((name, "bold"))
            print_text(text.strip() or "none")
    if not steps:
        last = len(inspection.trace.steps) - 1
        warn(f"{instance}: no step {index}; the last is {last}")
    return bool(steps)


def inspection_record(inspection: "Inspection") -> "dict[str, Json]":
    """Return the JSON object of a run as it is read."""
    trace, raw = inspection.trace, inspection.trace.raw
    return {
        "source": raw.source,
        "source_format": raw.source_format,
        "instance_id": raw.instance_id,
        "repo": raw.repo,
        "task_type": str(trace.task_type),
        "outcome": str(raw.outcome),
        "change": str(raw.change),
        "total_steps": len(trace.steps),
        "steps": [_step_record(step) for step in trace.steps],
        "fragments": [record_of(fragment) for fragment in inspection.fragments],
        "loops": [record_of(loop) for loop in trace.loops],
        "recoveries": [_recovery_record(recovery) for recovery in trace.recoveries],
    }


def _step_record(step: "StepTrace") -> "dict[str, Json]":
    action, error = step.step.action, step.error
    return {
        "index": step.step.index,
        "phase": str(step.phase),
        "action": {"tool": action.tool, "text": action.text},
        "error": record_of(error, "error_type", "message", type=error.error_type)
        if error
        else None,
    }


def _recovery_record(recovery: "Recovery") -> "dict[str, Json]":
    from contextgraph.trace import command_lines, describe_remedy

    return record_of(
        recovery,
        "cleared_step",
        "error",
        "circumstances",
        recovered_step=recovery.cleared_step,
        type=recovery.error.error_type,
        what=describe_remedy(recovery.actions),
        actions=[*command_lines(recovery.actions)],
    )


@common_options()
def sessions(
    common: Common,
    *,
    repo: Repo = None,
    agent: Annotated[str, option("NAME", "Only sessions with this agent.")] = "",
    outcome: Annotated[
        Literal["solved", "failed", "unknown"] | None,
        option("OUTCOME", "solved, failed or unknown, known or guessed."),
    ] = None,
    since: Annotated[
        datetime | None, time_option("Only those from then on: 12h, 7d, 4w or ISO.")
    ] = None,
    until: Annotated[datetime | None, time_option("Only those before then.")] = None,
    limit: Annotated[int, described(metavar="N", min=1, help="At most N.")] = 20,
    open_id: Annotated[
        str | None,
        described(
            "--open",
            metavar="[ID]",
            is_flag=False,
            flag_value="",
            help="Open the session ID, or the newest: in its client, or the reader.",
        ),
    ] = None,
) -> None:
    """List the sessions in the memory, the newest first, and open one.

    Sub-agents are within their session. An outcome with "?" is guessed by how the session ended;
    --json says by what. --open goes on with a session in its client, in its folder, where that is
    here and keeps it; else it opens the reader. Outside of a terminal it prints the command.

    \b
    Example:
      contextgraph sessions --repo owner/repo --since 4w
      contextgraph sessions --outcome failed --json
      contextgraph sessions --open trj_3f9dab0652f816cc921c9992
    """
    if open_id is not None and common.settings().is_service:
        raise click.BadParameter("--open: sessions are opened from a memory itself")
    if since and until:
        check_period(since, until)
    with common.open(read_only=True) as memory:
        known = Outcome(outcome) if outcome else None
        wanted = SessionFilter(meant_repository(memory, repo), agent, known, since, until)
        shown = memory.sessions(wanted, limit)
        total = memory.session_facets(wanted, limit=0).total
        if repo and not total and (unknown := unknown_repository(memory, repo)):
            fail(unknown)
        if open_id is not None:
            session = memory.session(open_id) if open_id else next(iter(shown), None)
            if session is None:
                fail(f"no session {neutral(open_id)}; `contextgraph sessions` lists their ids")
            opening = Opening.of_run(common, memory, session.id)
            opening.show(common, memory)
    if open_id is not None:
        opening.enter()
    elif common.as_json:
        for session in shown:
            emit(record_of(session))
    else:
        _print_sessions(shown, total)


def _print_sessions(shown: "Sequence[Session]", total: int) -> None:
    of_all = f" of {total:,}" if len(shown) < total else ""
    print_text((f"{number_of(len(shown), 'session')}{of_all}", "bold"))
    for session in shown:
        print_text((f"{session.started_at:%Y-%m-%d %H:%M}  ", "dim"), one_line(session.title, 200))
        helpers = number_of(len(session.agents), "sub-agent") if session.agents else ""
        change = "" if session.change == "unknown" else f"change {session.change}"
        more = (session.id, session.repo, *session.facts, helpers, change)
        print_text((" · ".join(filter(None, more)), "dim"), indent=2)
    if shown:
        print_text(("open one: contextgraph sessions --open ID", "dim"))


_RUNS_AT_ONCE = 500
_FIRST, _END = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


@common_options()
def runs(
    common: Common,
    *,
    repo: Repo = None,
    agent: Annotated[str | None, option("NAME", "Only runs of this agent.")] = None,
    outcome: Annotated[
        Literal["solved", "failed", "unknown"] | None,
        option("OUTCOME", "solved, failed or unknown, known or guessed."),
    ] = None,
    since: Annotated[
        datetime | None, time_option("Only runs from then on: 12h, 7d, 4w or ISO.")
    ] = None,
    until: Annotated[datetime | None, time_option("Only runs before then.")] = None,
    limit: Annotated[int | None, option("N", "At most N.", min=1)] = None,
) -> None:
    """List the runs in the memory, the newest first.

    Those of sub-agents are listed by themselves.
    A run without a time in its log counts as of when it was learned.

    \b
    Example:
      contextgraph runs --repo owner/repo --outcome solved
      contextgraph runs --since 2026-01-01 --limit 20
    """
    first, end = since or _FIRST, until or _END
    with common.open(read_only=True) as memory:
        repo = meant_repository(memory, repo)
        runs = [
            run
            for run in _stored(memory.store.runs, repo)
            if agent in (None, run.agent)
            and outcome in (None, str(run.ending.outcome))
            and first <= run.seen_at < end
        ]
        if repo and not runs and (unknown := unknown_repository(memory, repo)):
            fail(unknown)
    runs.sort(key=lambda run: (run.seen_at, run.id), reverse=True)
    shown = runs[:limit]
    if common.as_json:
        for run in shown:
            emit(record_of(run))
    elif shown:
        _print_runs(shown, len(runs))
    else:
        print("no such run")


def _print_runs(shown: "Sequence[Trajectory]", total: int) -> None:
    of_all = f" of {total:,}" if len(shown) < total else ""
    print_text((f"{number_of(len(shown), 'run')}{of_all}", "bold"))
    for run in shown:
        print_text((f"{run.seen_at:%Y-%m-%d}  ", "dim"), run.title)
        change = f"change {run.change}" if run.change != "unknown" else ""
        steps = number_of(run.total_steps, "step")
        more = (run.id, run.repo, run.ending.text, run.agent, steps, change)
        print_text((" · ".join(filter(None, more)), "dim"), indent=2)


def _stored(runs: "RunStore", repo: str | None) -> "Iterator[Trajectory]":
    for some in batched(runs.ids(repo=repo), _RUNS_AT_ONCE):
        yield from runs.trajectories(some).values()
