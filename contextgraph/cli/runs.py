"""Recorded and stored runs: inspect, loops, formats, runs, playbook, how; reports about them."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from itertools import count, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import click

from contextgraph.cli.commands import (
    Common,
    FollowLinks,
    Git,
    Paths,
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
    FAILED,
    console,
    emit,
    fail,
    print_box,
    print_table,
    print_text,
    styled,
    warn,
)
from contextgraph.model import SOURCE, is_subagent
from contextgraph.page import error_line, loop_line, recovery_line
from contextgraph.records import record_of
from contextgraph.text import number_of, one_line, plain

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.text import Text

    from contextgraph.cli.learn import Intake
    from contextgraph.learning import Inspection
    from contextgraph.memory import AgentMemory
    from contextgraph.model import (
        CommandHistory,
        CommandRecord,
        Fragment,
        Json,
        LoopInfo,
        RepositoryPlaybook,
        Trajectory,
    )
    from contextgraph.ports import RunStore
    from contextgraph.trace import Recovery, StepTrace


_PHASE_WIDTH = 15
# Of a loop, the first and the last steps are shown; `--json` has all.
_LOOP_HEAD, _LOOP_TAIL = 9, 2
_OUTCOME_STYLES = {"completed": "cyan", "recovered": "green", "failed": "red"}
_REPEATED_WIDTH, _SUGGESTION_WIDTH, _SIGNATURES_SHOWN = 90, 500, 2

SuggestingStore = Annotated[
    str | None, option("ADDRESS", "A memory that suggests how to leave each loop.")
]
Instances = Annotated[list[str] | None, option("ID", "Only runs of this instance (repeatable).")]


@common_options("max_run_size", without=("store", "tenant"))
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

    Learns nothing and needs no memory.

    \b
    Example:
      contextgraph inspect runs/owner__repo-12.traj
      contextgraph inspect runs.jsonl.gz --instance owner__repo-12 --step 7
      contextgraph inspect runs.jsonl.gz --instance owner__repo-12 --html run.html
    """
    from contextgraph.cli.learn import Intake

    intake = Intake(paths, common.settings(), git=git, follow_links=follow_links)
    if html:
        from contextgraph.page import run_view, write_page

        runs = count()  # zip takes no number after the last run
        views = (
            run_view(inspection, {})
            for inspection, _ in zip(_inspected(intake, instance), runs, strict=False)
        )
        write_page(html, "run.html", views=views, comparing=False)
        print(f"{html}: {number_of(next(runs), 'run')}")
        raise click.exceptions.Exit(intake.exit_code)
    is_shown, shown = common.as_json or step is None, set[str]()
    for inspection in _inspected(intake, instance):
        raw = inspection.trace.raw
        if common.as_json:
            emit(inspection_record(inspection))
        elif step is not None:
            # The steps of its sub-agents have the same numbers.
            if not (raw.instance_id in shown and is_subagent(raw.agent)):
                is_shown |= _show_step(inspection, step)
            shown.add(raw.instance_id)
        else:
            _show_timeline(inspection)
    raise click.exceptions.Exit(intake.exit_code if is_shown else FAILED)


@common_options("max_run_size", store=SuggestingStore)
def loops(
    common: Common, paths: Paths, instance: Instances = None, follow_links: FollowLinks = False
) -> None:
    """Show the loops of runs: repeated attempts without progress.

    Learns nothing. With a memory, shows what ended such loops in runs of other instances.

    \b
    Example:
      contextgraph loops runs/
      contextgraph loops runs/ --store team.db
    """
    from contextgraph.cli.learn import Intake

    intake = Intake(paths, common.settings(), follow_links=follow_links)
    loops: list[Sequence[LoopInfo]] = []
    with ExitStack() as stack:
        memory = None
        if common.store is not None:
            memory = stack.enter_context(common.open(read_only=True))
        for inspection in _inspected(intake, instance):
            trace = inspection.trace
            loops.append(memory.loop_detector.detect_all(trace) if memory else trace.loops)
            raw = trace.raw
            records: list[Json] = [record_of(loop) for loop in loops[-1]]
            common.answer(
                {"source": raw.source, "instance_id": raw.instance_id, "loops": records},
                partial(_show_loops, raw.instance_id, loops[-1]),
            )
    if loops and not common.as_json:
        found = [loop for of_run in loops for loop in of_run]
        stuck = sum(loop.severity == "stuck" for loop in found)
        total = f"{number_of(len(found), 'loop')} ({stuck} stuck)"
        print(f"{total} in {sum(map(bool, loops))} of {number_of(len(loops), 'run')}")
    raise click.exceptions.Exit(intake.exit_code)


def _inspected(intake: "Intake", instances: list[str] | None) -> "Iterator[Inspection]":
    """Each run of *intake*, or of these *instances*; exits where there is none of them."""
    from contextgraph.memory import AgentMemory

    matched = False
    for raw in intake:
        if not instances or raw.instance_id in instances:
            matched = True
            yield AgentMemory.inspect(raw)
    if instances and intake.counts.runs and not matched:
        runs = number_of(intake.counts.runs, "run")
        fail(f"no run of {', '.join(instances)} among {runs}")


def _show_timeline(inspection: "Inspection") -> None:
    """Print the run fragment by fragment: steps with their errors, loops and recoveries."""
    screen, trace, raw = console(), inspection.trace, inspection.trace.raw
    task = next((line for line in raw.task.splitlines() if line.strip()), "no task text")
    errors = sum(1 for step in trace.steps if step.error)
    facts = [raw.repo or "no repository", trace.task_type, f"outcome {raw.outcome}"]
    facts += [f"change {raw.change}"] if raw.change != "unknown" else []
    facts += [number_of(len(trace.steps), "step"), number_of(len(inspection.fragments), "fragment")]
    facts += [number_of(errors, "error"), number_of(len(trace.recoveries), "recovery")]
    facts += [number_of(len(trace.loops), "loop")]
    title = styled(f"{one_line(task, 200)}\n{' · '.join(facts)}\n{raw.source}")
    print_box(raw.instance_id, title)
    for fragment in inspection.fragments:
        kind = fragment.fragment_type.replace("_", " ")
        border = styled(
            ("┌ ", "dim"),
            (f"{kind}, {fragment.outcome}", f"bold {_OUTCOME_STYLES[fragment.outcome]}"),
            (f"  {fragment.start}-{fragment.end}  ", "dim"),
            (one_line(fragment.description, 240), "italic"),
        )
        screen.print(border, no_wrap=True, overflow="ellipsis")
        folded = _folded(fragment)
        for step in trace.steps[fragment.start : fragment.end + 1]:
            if step.index == folded.start and folded:
                print_text((f"│       … {len(folded)} more steps of this loop", "dim"))
            if step.index not in folded:
                for line in _lines(step, inspection, screen.width):
                    screen.print(line, no_wrap=True, overflow="ellipsis")
    if raw.is_talk:
        for turn in raw.steps:
            print_text(("agent  ", "dim"), one_line(turn.thought, screen.width - 7))
            if turn.user_message:
                print_text(("person ", "dim"), one_line(turn.user_message, screen.width - 7))
    elif not inspection.fragments:
        print_text(("no steps", "dim"))
    print_text()


def _show_step(inspection: "Inspection", index: int) -> bool:
    """Print a step in full: thought, action, observation, error; false where there is no such."""
    screen, instance = console(), inspection.trace.raw.instance_id
    steps = [step for step in inspection.trace.steps if step.step.index == index]
    for step in steps:
        screen.rule(plain(f"{instance} step {index}, {step.phase}"))
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


def _folded(fragment: "Fragment") -> range:
    """The steps in the middle of a long loop."""
    if fragment.fragment_type != "loop":
        return range(0)
    return range(fragment.start + _LOOP_HEAD, fragment.end + 1 - _LOOP_TAIL)


def _lines(step: "StepTrace", inspection: "Inspection", width: int) -> "Iterator[Text]":
    index = step.step.index
    person = f" · person: {step.step.user_message}" if step.step.user_message else ""
    spoken = f"{step.step.thought or step.step.observation or ''}{person}"
    for loop in inspection.trace.loops:
        if loop.start == index:
            yield styled(("│      ", "dim"), (f"↻ {loop_line(loop)}", "yellow"))
    yield styled(
        ("│ ", "dim"),
        f"{index:>4}  ",
        (f"{step.phase:<{_PHASE_WIDTH}}", "blue"),
        one_line(step.step.action.text or spoken, width) or "(no action)",
    )
    if step.error:
        yield styled(("│        ", "dim"), (f"✗ {error_line(step)}", "red"))
    for recovery in (*inspection.trace.recoveries, *inspection.trace.left_behind):
        if recovery.cleared_step == index:
            yield styled(("│        ", "dim"), (f"✓ {recovery_line(recovery)}", "green"))


def _show_loops(instance: str, loops: "Sequence[LoopInfo]") -> None:
    """Print each loop: where it is, what was repeated, and the escape suggestions."""
    if not loops:
        print_text((f"{instance}: no loop", "dim"))
        return
    print_text((f"{instance}: {number_of(len(loops), 'loop')}", "bold"))
    for loop in loops:
        print_text(f"  {loop_line(loop)}")
        for signature in loop.signatures[:_SIGNATURES_SHOWN]:
            print_text((one_line(signature, _REPEATED_WIDTH), "dim"), indent=4)
        for escape in loop.escape_suggestions:
            text = f"suggestion: {one_line(escape.text, _SUGGESTION_WIDTH)}"
            print_text((text, "green"), indent=4)


def inspection_record(inspection: "Inspection") -> "dict[str, Json]":
    """The JSON object of a run as it is read."""
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


@common_options(without=("store", "tenant"))
def formats(common: Common) -> None:
    """List the log formats that can be read.

    Shows how each is recognised and what is read from it. A format is recognised by content, not
    by file name. Experimental ones follow published descriptions and were not tested on logs of
    real runs.

    \b
    Example:
      contextgraph formats
    """
    from contextgraph.readers import all_formats

    for one in all_formats().values():
        if common.as_json:
            known = {"name": one.name, "recognised_by": one.description, "keeps": one.keeps}
            emit({**known, "experimental": one.experimental})
            continue
        print_text((one.name, "bold"), (" (experimental)" if one.experimental else "", "yellow"))
        print_text(("recognised by: ", "dim"), one.description, indent=2)
        print_text(("keeps: ", "dim"), one.keeps, indent=2)


_RUNS_AT_ONCE = 500
OWNER = "owner"
_FIRST, _END = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


@common_options()
def runs(
    common: Common,
    *,
    repo: Repo = None,
    agent: Annotated[str | None, option("NAME", "Only runs of this agent.")] = None,
    outcome: Annotated[
        Literal["solved", "failed", "unknown"] | None,
        option("OUTCOME", "solved, failed or unknown."),
    ] = None,
    since: Annotated[datetime | None, time_option("Only runs from then (ISO 8601, UTC).")] = None,
    until: Annotated[datetime | None, time_option("Only runs before then (ISO 8601, UTC).")] = None,
    limit: Annotated[int | None, option("N", "At most N.", min=1)] = None,
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
    rows = (
        (
            *(f"{run.seen_at:%Y-%m-%d}", str(run.outcome)),
            *([str(run.change)] if has_changes else []),
            *(f"{run.total_steps}", run.agent, run.instance_id),
        )
        for run in shown
    )
    records, empty = map(record_of, shown), "no such run"
    common.answer_rows(records, title, columns, rows, ("steps",), empty=empty)


def _stored(runs: "RunStore", repo: str | None) -> "Iterator[Trajectory]":
    ids = iter(runs.ids(repo=repo))
    while some := list(islice(ids, _RUNS_AT_ONCE)):
        yield from runs.trajectories(some).values()


_ROWS, _SINGLE_ROWS = 10, 3
_PATH_WIDTH, _COMMAND_WIDTH, _REASON_WIDTH = 38, 42, 22
_WHOLE = 2_000

Repository = Annotated[str, option("OWNER/REPO", "The repository.", "that of the current folder")]


@common_options(operation="playbook")
def playbook(
    common: Common, *, repo: Repository = "", task: str, workdir: Workdir = None, **given: Any
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
        playbook = memory.playbook(repo, task, workdir=workdir, **given)
        if not playbook:
            _unknown(memory, repo)
    record = record_of(playbook, text=render_playbook(playbook))
    common.answer(record, partial(_show_playbook, playbook, is_ranked=bool(task)))
    if playbook.degraded:
        warn(playbook.degraded)


@common_options(operation="how")
def how(common: Common, *, repo: Repository = "", **given: Any) -> None:
    """Show how a command is run in a repository.

    Shows how often commands of this form worked, how they were typed, and what worked instead. The
    tests that they name, and scripts that a run wrote, may differ. Counts are of tasks.

    \b
    Example:
      contextgraph how "pytest tests/" --repo owner/repo
    """
    repo = repo or repository_here()
    with common.open(read_only=True) as memory:
        history = memory.how(repo, **given)
        if not history.runs:
            _unknown(memory, repo)
    common.answer(record_of(history), partial(_show_history, history))


def _unknown(memory: "AgentMemory", repo: str) -> None:
    known = sum(memory.get_stats().counts.outcomes.values())
    fail(
        f"no run of {repo} in this memory of {number_of(known, 'run')}; "
        "`contextgraph runs` lists those there are"
    )


def _show_playbook(playbook: "RepositoryPlaybook", *, is_ranked: bool) -> None:
    print_table("Pinned notes", ("note", "source"), ((n.content, n.source) for n in playbook.notes))
    tasks = f"{number_of(playbook.tasks, 'task')}, {number_of(playbook.runs, 'run')}"
    tasks += f"; most change {playbook.package}" if playbook.package_tasks > 1 else ""
    files = (
        (
            one_line(file.path, _PATH_WIDTH),
            f"{file.changed}",
            f"{file.opened}",
            *([f"{file.probability:.2f}"] if is_ranked else []),  # of a task: without one near 0
            one_line(", ".join(file.symbols), _REASON_WIDTH - 6),
        )
        for file in playbook.files[:_ROWS]
    )
    figures = ("changed", "opened", *(["probability"] if is_ranked else []))
    print_table(f"Files ({tasks})", ("file", *figures, "functions"), files, figures)
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


@common_options("source", operation="reports")
def report(
    common: Common,
    *,
    context: str,
    helped: Annotated[
        bool | None, described("--helped/--hurt", help="Whether it helped.", show_default=False)
    ] = None,
    item: int | None,
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
        Literal["list", "trust", "distrust"],
        argument("[list|trust|distrust]", "list, trust or distrust."),
    ] = "list",
    name: Annotated[str, argument("[NAME]", "The source.")] = "",
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


@common_options(operation="decide", without=("decision",))
def quarantine(common: Common, *, identity: str) -> None:
    """Never show a piece of advice again.

    This applies to every run that it comes from; a line of a start, to its repository.

    \b
    Example:
      contextgraph quarantine adv_5f0c2a4d9e1b7c3a
    """
    _decide(common, identity, "quarantined")


@common_options(operation="decide", without=("decision",))
def release(common: Common, *, identity: str) -> None:
    """Show quarantined advice or methodologies again.

    Earlier reports about it no longer count.

    \b
    Example:
      contextgraph release adv_5f0c2a4d9e1b7c3a
    """
    _decide(common, identity, "released")


def _decide(common: Common, advice: str, status: Literal["quarantined", "released"]) -> None:
    with common.open(create=False) as memory:
        common.note_shown(memory, forgetting=True)  # a session that goes on is not learned yet
        decide = memory.quarantine if status == "quarantined" else memory.release
        if not decide(advice):
            fail(f"nothing that was shown has the id {advice}; `contextgraph receipt` shows them")
    undone = "; `contextgraph release` shows it again" if status == "quarantined" else ""
    common.answer({"advice": advice, "status": status}, f"{advice} is {status}{undone}")


@common_options(operation="outcomes")
def outcome(
    common: Common, *, instance_id: str, outcome: Literal["solved", "failed"], agent: str, run: str
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
        runs = memory.store.runs
        several = (
            [] if agent or run else [*runs.trajectories(runs.ids(instance=instance_id)).values()]
        )
        if len(several) > 1:
            for one in several:
                click.echo(f"  {one.id}  {plain(one.agent) or 'no agent'}, {one.outcome}", err=True)
            fail(
                f"{instance_id} has {len(several)} runs; name one by --run ID, "
                "or those of an --agent NAME"
            )
        changed = list(memory.set_outcome(instance_id, outcome == "solved", agent=agent, run=run))
    if not changed:
        named = " ".join(filter(None, (instance_id, agent and f"by {agent}", run)))
        fail(f"no run of {named} in the memory; `contextgraph runs` lists those there are")
    common.answer(
        {"instance_id": instance_id, "outcome": outcome, "trajectories": [*changed]},
        f"{instance_id}: {number_of(len(changed), 'run')} {outcome}",
    )
