"""``contextgraph query``: advice for a state."""

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext, redirect_stdout
from dataclasses import fields
from datetime import datetime
from io import StringIO
from math import floor
from os.path import exists
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click
from msgspec import Struct

from contextgraph.cli.commands import (
    Common,
    Workdir,
    argument,
    common_options,
    described,
    flag,
    option,
    repository_here,
    time_option,
)
from contextgraph.cli.notes import (
    command_with_store,
    meant_repository,
    print_found,
    unknown_repository,
)
from contextgraph.cli.output import (
    FAILED,
    PARTLY_DONE,
    emit,
    print_panel,
    print_table,
    print_text,
    styled,
    warn,
)
from contextgraph.errors import InvalidStateError, ReadError, StoreError
from contextgraph.model.values import replace
from contextgraph.service.records import context_record, record_of
from contextgraph.text import fence, masked_name, number_of, one_line, regex

if TYPE_CHECKING:
    from rich.text import Text

    from contextgraph.memory.agent_memory import AgentMemory
    from contextgraph.model import (
        Found,
        Json,
        MemoryContext,
        Recollection,
        Remedy,
        SimilarCase,
        State,
        Why,
    )

_ACTION_WIDTH, _TEXT_WIDTH, _NAMED_RUNS, _NEAREST = 160, 600, 3, 3
_SOME_CHANCE = 0.005  # less would be shown as .00
_LINES, _LINE_WIDTH = 4, 150
_CLASS = regex(r"(?:\w+\.)*[A-Z]\w+(?:: |\s*$)")
_TRACEBACK = "Traceback (most recent call last):"
STDIN = "-"
SAME = "same"  # as an excluded instance: that of the state
PHASES = "understanding, locating, reproducing, fixing, testing or submitting"


@common_options("withhold", "configuration")
def query(  # noqa: PLR0913  (one parameter per flag)
    common: Common,
    source: Annotated[
        str | None,
        argument(
            "[ERROR]", "The error as printed, or a question; - for a state as JSON from stdin."
        ),
    ] = None,
    *,
    batch: Annotated[
        str | None, option("FILE", "Read states as JSON lines; - for standard input.")
    ] = None,
    repo: Annotated[
        str, option("OWNER/REPO", "The repository.", "that of the current folder, if known")
    ] = "",
    error: Annotated[
        str, option("TEXT", "The error as it was printed; - for standard input.")
    ] = "",
    task: Annotated[str, option("TEXT", "The task, such as the text of the issue.")] = "",
    phase: Annotated[str | None, option("PHASE", f"The phase of the work: {PHASES}.")] = None,
    open_file: Annotated[str, option("PATH", "The file being looked at.")] = "",
    last_action: Annotated[str, option("TEXT", "The latest command.")] = "",
    last_outcome: Annotated[str, option("TEXT", "The output of the latest command.")] = "",
    repo_summary: Annotated[str, option("TEXT", "A description of the repository.")] = "",
    tool: Annotated[list[str] | None, option("NAME", "A tool the agent has (repeatable).")] = None,
    instance: Annotated[str | None, option("ID", "The instance being worked on.")] = None,
    exclude_instances: Annotated[
        list[str] | None,
        described(
            "--exclude-instance",
            metavar="ID",
            help="Ignore runs of this instance (repeatable); 'same' means that of the state.",
        ),
    ] = None,
    as_of: Annotated[datetime | None, time_option("Ignore newer runs (ISO 8601, UTC).")] = None,
    limit: Annotated[
        int, described(metavar="N", min=1, help="At most this many items of each kind.")
    ] = 5,
    workdir: Workdir = None,
    no_record: Annotated[bool, flag("Do not record what was shown for `report`.")] = False,
    details: Annotated[
        bool, flag("All that was found, with figures and where it is from.")
    ] = False,
    why: Annotated[
        bool, flag("List what was found and not shown, with the step and the reason.")
    ] = False,
) -> None:
    """Show what the memory knows for a task, an error or a question.

    The state comes from ERROR and options, from one JSON object on standard input, or from a file
    of JSON lines (each may have a "key", which is returned with its answer). Keys:
    task_description, repo, repo_summary, current_error, phase, tools, last_action, last_outcome,
    open_file, instance_id, failed_actions, agent; all optional.

    \b
    Example:
      contextgraph query "No module named 'yaml'" --repo owner/repo
      contextgraph query "why did the importer skip half of the rows"
      pytest 2>&1 | contextgraph query --repo owner/repo --workdir . --error -
      contextgraph query --batch states.jsonl --json --no-record
    """
    may_ask = bool(source and source != STDIN and not task)
    if source and source != STDIN:
        if error:
            raise click.BadParameter("give the error as ERROR or by --error, not both")
        if exists(source):
            raise click.BadParameter(f"{source} is a file: query - < {source}, or --batch {source}")
        error, source = source, None
    flags = {
        "repo": repo,
        "current_error": error,
        "task_description": task,
        "phase": phase,
        "open_file": open_file,
        "last_action": last_action,
        "last_outcome": last_outcome,
        "repo_summary": repo_summary,
        "tools": tuple(tool or ()),
        "instance_id": instance,
    }
    states = questions(source, batch, {name: value for name, value in flags.items() if value})
    states = (replace(asked, may_ask=True) if may_ask else _raised(asked) for asked in states)
    bounds = Bounds(limit, tuple(exclude_instances or ()), as_of, workdir)
    here = "" if repo or source or batch else repository_here()
    answered: list[bool] | None = None
    try:
        with common.open(read_only=no_record, create=False) as memory:
            meant = here if here and memory.store.runs.ids(here, limit=1) else repo
            if meant and "/" not in meant:
                meant = meant_repository(memory, meant) or ""
            if meant != repo:
                states = (
                    replace(asked, state=replace(asked.state, repo=meant))
                    if asked.state.repo == repo
                    else asked
                    for asked in states
                )
            answered = [
                _answer(common, memory, question, bounds, details=details, why=why)
                for question in states
            ]
    except StoreError as failure:
        if answered is None:
            raise
        # Such as a file that may only be read: all states have their answers.
        warn(f"what was shown is not recorded for `report`: {failure}")
    if not all(answered):
        raise click.exceptions.Exit(PARTLY_DONE if any(answered) else FAILED)


class StateQuery(Struct, frozen=True):
    """A state to query; *key* is returned with its answer.

    *may_ask*: its error was not said to be one, and may be a question.
    """

    state: "State"
    key: "Json" = None
    may_ask: bool = False


def _raised(asked: StateQuery) -> StateQuery:
    """Read an error that begins with the name of a class as the last line of a traceback.

    By themselves, names that do not end in "Error" or "Exception", such as
    ``ImproperlyConfigured``, may be any words.
    """
    from contextgraph.trace import error_of

    state = asked.state
    if not _CLASS.match(state.current_error) or error_of(state):
        return asked
    return replace(
        asked, state=replace(state, current_error=f"{_TRACEBACK}\n{state.current_error}")
    )


def questions(source: str | None, batch: str | None, flags: dict[str, Any]) -> Iterator[StateQuery]:
    """Return the states from flags, standard input or *batch*, whichever was given.

    Raises a usage error unless exactly one was; `InvalidStateError` for an invalid state.
    """
    if sum(map(bool, (source, batch, flags))) != 1:
        raise click.BadParameter(
            "describe one state: an ERROR or options such as --task, a - or --batch"
        )
    if batch:
        if batch != STDIN and (not Path(batch).exists() or Path(batch).is_dir()):
            raise click.BadParameter(f"--batch {batch}: no such file")  # a named pipe is fine
        return _from_batch(batch)
    if source:
        return iter([_question(sys.stdin.buffer.read(), "standard input")])
    from contextgraph.model import Phase, State

    if flags.get("phase") not in (None, *Phase):
        raise click.BadParameter(f"--phase {flags['phase']!r} is not one of {', '.join(Phase)}")
    if flags.get("current_error") == STDIN:
        flags["current_error"] = sys.stdin.buffer.read().decode(errors="replace")
    return iter([StateQuery(State(**flags))])


def _from_batch(name: str) -> Iterator[StateQuery]:
    """The states in the JSON lines of a file, read lazily; blank lines are skipped."""
    source = "standard input" if name == STDIN else name
    with nullcontext(sys.stdin.buffer) if name == STDIN else Path(name).open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            if line.strip():
                yield _question(line, f"{source}: line {number}")


def _question(text: bytes, place: str) -> StateQuery:
    """The state in one JSON object; raises `InvalidStateError` with *place*."""
    import orjson

    try:
        record = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise InvalidStateError(f"{place}: not JSON: {error}") from error
    if not isinstance(record, dict):
        raise InvalidStateError(f"{place}: a state is a JSON object")
    key = record.pop("key", None)
    return StateQuery(_state(record, place), key)


def _state(record: "Mapping[str, Json]", place: str) -> "State":
    """The state with the values of *record*; null counts as absent.

    Raises `InvalidStateError` with *place* for an unknown key or a value of the wrong type.
    """
    from contextgraph.model import Phase, State
    from contextgraph.model.codec import decoded

    known = [item.name for item in fields(State)]
    given: dict[str, Json] = {key: value for key, value in record.items() if value is not None}
    if unknown := [key for key in given if key not in known]:
        names = ", ".join(known)
        raise InvalidStateError(f"{place}: unknown key {unknown[0]!r}; a state has: {names}")
    try:
        return decoded(State, given)
    except ReadError as error:
        phases = f"; known: {', '.join(Phase)}" if error.reason.startswith("phase: ") else ""
        raise InvalidStateError(f"{place}: {error.reason}{phases}") from error


class Bounds(Struct, frozen=True):
    """Limits of answers: their length, and the runs that they ignore."""

    limit: int
    exclude: tuple[str, ...] = ()
    as_of: datetime | None = None
    workdir: Path | None = None

    def query(self, memory: "AgentMemory", state: "State") -> "MemoryContext":
        """Ask *memory* for *state* within these bounds; empty where nothing answered."""
        named = [state.instance_id if name == SAME else name for name in self.exclude]
        excluded = [name for name in named if name]
        return memory.query(
            state,
            self.limit,
            exclude_instances=excluded,
            as_of=self.as_of,
            workdir=self.workdir,
        )

    def search(self, memory: "AgentMemory", state: "State") -> "Sequence[Found]":
        """Search for what *state* has in the place of an error, within these bounds."""
        named = {state.instance_id if name == SAME else name for name in self.exclude}
        found = memory.search(state.current_error, state.repo or None, limit=self.limit)
        return [
            one
            for one in found
            if one.session not in named and (self.as_of is None or one.time <= self.as_of)
        ]


def _answer(
    common: Common,
    memory: "AgentMemory",
    question: "StateQuery",
    bounds: Bounds,
    *,
    details: bool,
    why: bool,
) -> bool:
    """Print the answer; False where nothing could answer."""
    context = bounds.query(memory, question.state)
    asks = question.may_ask and not (context or context.error)
    found = [
        replace(one, command=command_with_store(common, one.command))
        for one in (bounds.search(memory, question.state) if asks else ())
    ]
    text = memory.render(context)  # recorded as shown
    if memory.withholds(context):
        context = replace(context, notes=())
    if common.as_json:
        record = context_record(context, text, question.key, why=why)
        emit(record | {"found": [*map(record_of, found)]} if asks else record)
    elif found:
        print_found(found)
    elif context:
        show = _show if details else _show_summary
        if sys.stdout.isatty():
            show(context)
        else:  # a program reads it, perhaps an agent
            with redirect_stdout(StringIO()) as shown:
                show(context)
            print(fence(shown.getvalue().rstrip("\n"), context.id))
    else:
        print_text(f"nothing useful known{_reason(memory, context, question, why=why)}")
    if why and context.silenced and not common.as_json:
        if details:
            print_panel("Found and not shown", map(_silenced, context.silenced))
        else:
            _show_silences(context.silenced)
    if why and not common.as_json:
        _show_unsaid(memory, question.state, context)
    for reason in context.degraded:
        warn(f"did not answer: {reason}")
    return bool(context) or not context.degraded


def _reason(
    memory: "AgentMemory", context: "MemoryContext", asked: StateQuery, *, why: bool
) -> str:
    """Return why nothing is shown."""
    state = asked.state
    repo = masked_name(state.repo)
    if repo and (unknown := unknown_repository(memory, repo)):
        return f": {unknown}"
    error = f" for {context.error.error_type}" if context.error else ""
    if silences := Counter(map(_silence, context.silenced)):
        (((_, reason), count),) = silences.most_common(1)
        found, most = silences.total(), f" ({count}: {reason})"
        hint = "" if why else "; --why lists the nearest, --why --details all"
        if found == 1:
            most, hint = f": {reason}", ""
        return f"{error}: {number_of(found, 'remedy')} found and not shown{most}{hint}"
    if state.current_error and context.error is None:
        if asked.may_ask:
            return ": no session, lesson or note is about it"
        return ": no error is recognised in the text"
    return f"{error}: no earlier run cleared it" if error else ""


def _show_summary(context: "MemoryContext") -> None:
    """Print what an agent would be shown, in about ten lines."""
    from contextgraph.advising.wording import agreement_of, caveat, lesson_lines, playbook_lines

    if context.playbook:
        lines = [line.text for line in playbook_lines(context.playbook)]
        for line in lines[:_LINES]:
            print_text(one_line(line, _LINE_WIDTH))
    for remedy in context.ranked:
        print_text((one_line(remedy.description, _LINE_WIDTH), "bold green"))
        seen = f"worked in {number_of(remedy.why.support, 'run')} in all"
        evidence = filter(None, (agreement_of(remedy.why), seen, caveat(remedy.why)))
        print_text((", ".join(evidence), "dim"), indent=2)
    for warning in context.warnings:
        print_text(one_line(warning.text, _LINE_WIDTH))
    cases = [case for case in context.similar_cases if case.is_shown]
    # The runs that cleared an error are counted beside its remedy.
    cases = [] if context.error else cases
    for case in cases[:_LINES]:
        title = one_line(case.title, _LINE_WIDTH)
        id_ = (f" ({case.trajectory_id})", "dim")
        where = "" if case.why.scope == "repo" else f"{case.repo}: "
        print_text((where, "bold"), title, id_)
        changed = f"changed {', '.join(case.files)}" if case.files else ""
        for line in filter(None, (case.cause, changed)):
            print_text(one_line(line, _LINE_WIDTH), indent=2)
    for note in context.notes[:_LINES]:
        print_text(f"{note.note.source}: {one_line(note.note.content, _LINE_WIDTH)}")
    for _, line in lesson_lines(context.lessons):
        print_text(one_line(line, _LINE_WIDTH))
    if hidden := len(context.similar_cases) - len(cases):
        more = "past tasks with this error" if context.error else "less similar past tasks"
        print_text((f"{hidden} {more}: --details", "dim"))
    opened = "; a task is opened by contextgraph inspect trj_..." if cases else ""
    print_text((f"context {context.id}{opened}", "dim"))


def _show(context: "MemoryContext") -> None:
    """Print the answer, each item with its reasons."""
    from contextgraph.advising.wording import lesson_lines, playbook_lines

    title = "What cleared this error" if context.error else "What has worked"
    if context.playbook:
        tasks = context.playbook.tasks
        source = f", from {number_of(tasks, 'earlier task')}" if tasks else ""
        lines = ([styled(line.text)] for line in playbook_lines(context.playbook))
        print_panel(f"Playbook{source}", lines)
    print_panel(title, map(_remedy, context.ranked))
    print_panel("Before this command", ([styled(one.text)] for one in context.warnings))
    print_panel("Similar runs", map(_case, context.similar_cases))
    print_panel("What people said", map(_note, context.notes))
    said = lesson_lines(context.lessons)
    print_panel("From earlier sessions", ([styled(line)] for _, line in said))
    print_text((f"context {context.id}", "dim"))


def _remedy(remedy: "Remedy") -> "list[Text]":
    from contextgraph.trace import command_lines

    text, by = styled(one_line(remedy.description, _TEXT_WIDTH)), remedy.methodology
    if by is None:
        kind = " (a workaround)" if remedy.workaround else ""
        run = _run(remedy.repo, remedy.instance_id)
        commands = command_lines(remedy.actions)
        return [
            styled((remedy.error_type, "bold red"), f"{kind} in {run}"),
            text,
            *(styled((f"$ {one_line(line, _ACTION_WIDTH)}", "green")) for line in commands),
            _why(remedy.why, remedy.score),
        ]
    figures = {"probability": remedy.probability, "confidence": by.confidence}
    known = [f"{name} {value:.2f}" for name, value in figures.items() if value]
    words = by.words
    return [
        styled((one_line(words.situation if words else by.situation, _TEXT_WIDTH), "bold")),
        text,
        *(styled(one_line(line, _TEXT_WIDTH)) for line in (words.lines if words else ())),
        styled((", ".join([*known, by.status]), "dim")),
        _why(remedy.why, remedy.score),
    ]


def _show_silences(remedies: "Sequence[Remedy]") -> None:
    """Print the remedies that came nearest to being shown, and how many each reason silenced."""
    possible = (remedy for remedy in remedies if remedy.probability >= _SOME_CHANCE)
    likely = sorted(possible, key=lambda remedy: -remedy.probability)[:_NEAREST]
    # Not rounded up to the bound that it misses.
    probabilities = (f"{floor(100 * one.probability) / 100:.2f}" for one in likely)
    rows = (
        (probability, one_line(one.description, _TEXT_WIDTH), *_silence(one)[1:])
        for probability, one in zip(probabilities, likely, strict=True)
    )
    columns = ("probability", "nearest to being shown", "reason")
    print_table("Found and not shown", columns, rows, columns[:1])
    reasons = Counter(map(_silence, remedies)).most_common()
    counts = ((f"{count}", *silence) for silence, count in reasons)
    print_table("Reasons", ("remedies", "step", "reason"), counts, ("remedies",))
    print_text(("--details lists each remedy with its reason", "dim"))


def _show_unsaid(memory: "AgentMemory", state: "State", context: "MemoryContext") -> None:
    """Print the lessons that are nearest to *state* and not shown, with the reasons.

    Those about a file are said before it is edited, those about a command before it is run.
    """
    from contextgraph.knowledge.recall import waits

    repo, least = state.repo or None, memory.retriever.gate.min_lesson_precision
    lessons, shown = memory.lessons, {one.note.id for one in context.lessons}
    request, file, command = state.task_description, state.open_file, state.last_action
    about = lessons.naming([file], repo=repo) if file else ()
    by_any = lessons.naming([file], repo=repo, written="") if file else ()
    always = {one.note.id for one in by_any}
    moments = (
        ("", lessons.for_request(request, repo=repo) if request else ()),
        ("said before any edit of the file", by_any),
        ("said before an edit about it", [one for one in about if one.note.id not in always]),
        ("said before the command", lessons.for_command(command, repo=repo) if command else ()),
    )
    rows = list[tuple[str, str, str]]()
    for reason, found in moments:
        for one in [each for each in found if each.note.id not in shown][:_NEAREST]:
            below = "no room" if one.probability >= least else f"below {least:g}"
            why = reason or ("waits for a review" if waits(one.note) else below)
            chance = "" if reason else f"{floor(100 * one.probability) / 100:.2f}"
            rows.append((chance, one_line(one.note.content, _TEXT_WIDTH), why))
    if rows:
        columns = ("probability", "lesson", "reason")
        print_table("Lessons found and not shown", columns, rows, columns[:1])


def _silenced(remedy: "Remedy") -> "list[Text]":
    """Return a remedy that is not shown, with the reason, its probability and its origin."""
    from contextgraph.trace import describe_remedy

    step, reason = _silence(remedy)
    # What only its own repository understands is not worded for another one.
    text = remedy.description or describe_remedy(remedy.actions)
    # None was computed of what cannot help.
    chance = f"probability {remedy.probability:.2f}; " if remedy.probability else ""
    origin = (
        f"{number_of(remedy.why.support, 'run')}, one of {_run(remedy.repo, remedy.instance_id)}"
    )
    return [
        styled(one_line(text, _TEXT_WIDTH)),
        styled((f"step '{step}': {reason}", "dim")),
        styled((f"{chance}{origin}", "dim")),
    ]


def _silence(remedy: "Remedy") -> tuple[str, str]:
    """Return the step and the reason of the silence of *remedy*."""
    assert remedy.silence is not None
    return remedy.silence.step.value, remedy.silence.reason


def _case(item: "SimilarCase") -> "list[Text]":
    outcome = "not solved" if item.outcome == "failed" else str(item.outcome)
    head = styled((_run(item.repo, item.instance_id), "bold"), f", outcome {outcome}")
    shown = "" if item.is_shown else ", not shown to agents"
    fragments = []
    for fragment in item.fragments:
        kind = fragment.fragment_type.replace("_", " ")
        steps = f"steps {fragment.start}-{fragment.end}, {kind}"
        what = one_line(fragment.description, _ACTION_WIDTH)
        fragments.append(styled((f"{steps}: {what}", "green")))
    return [
        head,
        styled(one_line(item.summary, _TEXT_WIDTH)),
        *fragments,
        styled((f"probability {item.probability:.2f}{shown}", "dim")),
        _why(item.why, item.score),
    ]


def _note(item: "Recollection") -> "list[Text]":
    note = item.note
    return [
        styled(one_line(note.content, _TEXT_WIDTH)),
        styled((f"{note.id}, {note.source}, probability {item.probability:.2f}", "dim")),
    ]


def _run(repo: str, instance_id: str) -> str:
    from contextgraph.model import repo_of

    named_by_id = not repo or repo_of(instance_id) == repo
    return instance_id if named_by_id else f"{repo}, {instance_id}"


def _why(why: "Why", score: float | None = None) -> "Text":
    from contextgraph.advising.wording import caveat, reason_of

    reasons = ["this repository" if why.scope == "repo" else "any repository"]
    if why.signature_level:
        reasons.append(f"same {why.signature_level}")
    if counts := reason_of(why):
        reasons.append(counts)
    reasons.append(caveat(why) or f"{number_of(why.support, 'run')} in all")
    if why.counts:
        reasons.append(f"spares {why.saves:.1f} steps")
    reasons += [f"{hit.channel} #{hit.rank} ({hit.score:.2f})" for hit in why.channels]
    if score is not None:
        reasons.append(f"score {score:.2f}")
    if why.trajectories:
        reasons.append(f"seen in {', '.join(why.trajectories[:_NAMED_RUNS])}")
    return styled((f"why: {'; '.join(reasons)}", "dim"))
