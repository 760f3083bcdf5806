"""Counts what sessions and commits have in common.

Programs that fail or that people refuse, files that go together.
"""

import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence, Set as AbstractSet
from datetime import datetime
from typing import NamedTuple

from contextgraph.model import (
    About,
    Action,
    LessonFacts,
    LessonKind,
    Origin,
    Quotation,
    RawTrajectory,
)
from contextgraph.text import regex
from contextgraph.trace.actions import EDITOR_TOOLS, KIND_OF_TOOL, SHELL_TOOLS
from contextgraph.trace.shell import Command, commands_in

# Files go together where this share of the commits that changed the one changed the other, counting
# so many more that did not, and of the last ones; and so many times as often as others. Wider
# commits say nothing. Nine in ten findings are right so (`python -m benchmarks.together`).
_TOGETHER, _LAST, _LIFT, _WIDEST = 0.8, 5, 2.0, 30
_APART_FROM_FILE, _APART_FROM_NEW = 2, 1
_MOST_TOGETHER = 4
_TEST = regex(r"(?i:(?:^|[/_.-])tests?(?:[/_.-]|$)|(?:^|[/_.-])specs?[/_.-])")
# As shells say that there is no such program, and steps in which another one takes its place.
_NOT_FOUND = regex(
    r"^\S*?:?(?:\s*(?:line )?\d+:)?\s*(?:command not found: (?P<last>[\w.+-]+)"
    r"|(?P<first>[\w.+-]+): (?:command )?not found)\s*$",
    re.MULTILINE,
)
_SOON, _STEM, _READ = 4, 4, 500
# Of what was refused in one session so much is a rule: the others are of the moment.
_REFUSED_ONCE = 0.3
_ASKS = regex(r"(?i:ask|question)")
_VERB = regex(r"[a-z][a-z-]+")


class Commit(NamedTuple):
    """A commit of a repository: the *files* that it changed, and those of them that it *added*."""

    id: str
    author: str
    at: datetime
    message: str
    files: Sequence[str]
    added: Sequence[str]


def program_not_found(text: str) -> str:
    """Return the program that a shell did not find, as *text* says; empty where it does not."""
    missing = _NOT_FOUND.search(text)
    return (missing["last"] or missing["first"]) if missing else ""


def failing_programs(
    run: RawTrajectory, run_id: str, now: datetime
) -> Iterator[tuple[str, LessonFacts]]:
    """Yield the programs that the shell of *run*, which has the id *run_id*, did not find.

    One session shows little: as any lesson it waits until another one shows the same. *now* is the
    time of steps without one.
    """
    for place, step in enumerate(run.steps):
        missing = _NOT_FOUND.search((step.observation or "")[-_READ:])
        name = program_not_found(missing[0]) if missing else ""
        programs = [command.program for command in commands_in(step.action.text)] if name else []
        # An alias fails by the name of what it stands for.
        program = next((one for one in programs if one and name.startswith(one)), "")
        if not program or not missing:
            continue
        text = f"`{program}` does not run on this machine: the shell does not find `{name}`."
        said = Quotation(
            missing[0].strip(),
            run_id,
            run.instance_id,
            step.index,
            step.timestamp or now,
            "shell",
            _instead(run, place, program),
        )
        about = About(programs=(program,))
        yield text, LessonFacts(LessonKind.FACT, Origin.COUNTED, about, (said,))


def refused_calls(
    run: RawTrajectory, run_id: str, now: datetime
) -> Iterator[tuple[str, LessonFacts]]:
    """Yield the programs and tools that a person refused whenever the agent of *run* called them.

    With the words that they said instead. One refusal may be of the moment, so it waits until
    another session has the same. *run_id* and *now* are as in `failing_programs`.
    """
    calls = [(step, _called(step.action)) for step in run.steps]
    ran = {name for step, names in calls if not step.denied for name in names}
    for step, names in calls:
        # Of several parts of a line it is not known which one was refused.
        if step.denied and len(refused := {*names} - ran) == 1:
            [name] = refused
            call = " ".join(step.action.text.split())[:_READ]
            words = " ".join((step.user_message or "").split())[:_READ]
            at = step.timestamp or now
            said = Quotation(
                words or call, run_id, run.instance_id, step.index, at, context=f"`{call}`"
            )
            about = About(programs=(name,))
            text = f"People refused the agent's call of `{name}`: ask before it."
            kind, origin = LessonKind.RULE, Origin.COUNTED
            yield text, LessonFacts(kind, origin, about, (said,), probability=_REFUSED_ONCE)


def _called(action: Action) -> list[str]:
    """The programs of a shell line, or the tool, unless it asks, or changes or reads files."""
    if action.tool.lower() in SHELL_TOOLS:
        programs = (names[-1] for command in commands_in(action.text) if (names := named(command)))
        return [program for program in programs if program not in ("cd", "export")]
    is_of_files = action.tool.lower() in KIND_OF_TOOL or action.tool.lower() in EDITOR_TOOLS
    return [] if is_of_files or _ASKS.search(action.tool) else [action.tool]


def named(command: Command) -> list[str]:
    """Return the name of the program of *command*, and with the word after it where that is plain.

    Such a word says what the program is to do. `./tool` and `/opt/bin/tool` are one program.
    """
    name = os.path.basename(command.program)
    _, *words = command.text.split() or [""]
    is_verb = " " not in name and words and _VERB.fullmatch(words[0])
    return [name, f"{name} {words[0]}"] if name and is_verb else [name] if name else []


def _instead(run: RawTrajectory, place: int, program: str) -> str:
    """The program of a like name that ran soon after the step at *place*; empty for none."""
    for step in run.steps[place + 1 : place + 1 + _SOON]:
        if step.is_error or _NOT_FOUND.search((step.observation or "")[-_READ:]):
            continue
        for command in commands_in(step.action.text):
            typed = next(iter(command.text.split()), "")
            if typed != program and os.path.basename(typed).startswith(program[:_STEM]):
                return typed
    return ""


def checklists(
    commits: Sequence[Commit], there: AbstractSet[str]
) -> Iterator[tuple[str, LessonFacts]]:
    """Yield which files are changed together: with one, and with what is new in a folder.

    What is new are files of one kind, or folders. Not what a test is changed with: it follows what
    it tests. *commits* begin with the newest.
    """
    narrow = [one for one in commits if len(one.files) <= _WIDEST]
    changed, adding = defaultdict[str, list[Commit]](list), defaultdict[str, list[Commit]](list)
    known: set[str] = set()
    for one in reversed(narrow):
        for name in there & {*one.files}:
            changed[name].append(one)
        folders = {os.path.dirname(name) for name in one.added} - {""}
        for pattern in {_kind_of(name) for name in one.added} - {""}:
            adding[pattern].append(one)
        for parent in {os.path.dirname(folder) for folder in folders - known} - {""}:
            adding[f"{parent}/"].append(one)
        known |= {os.path.dirname(name) for name in one.files}

    def others(ones: Sequence[Commit], own: str, apart: int) -> list[tuple[str, int]]:
        counts = Counter(name for one in ones for name in there & {*one.files})
        last = ones[-_LAST:]
        found = [
            (name, count)
            for name, count in counts.items()
            if own not in (name, _kind_of(name))
            and count >= _TOGETHER * (len(ones) + apart)
            and count * len(narrow) >= _LIFT * len(ones) * len(changed[name])
            and sum(name in one.files for one in last) >= _TOGETHER * len(last)
        ]
        return sorted(found, key=lambda pair: (-pair[1], pair[0]))[:_MOST_TOGETHER]

    for name, ones in sorted(changed.items()):
        if not _TEST.search(name) and (found := others(ones, name, _APART_FROM_FILE)):
            yield _checklist(f"`{name}` is changed together with", name, ones, found)
    for path, ones in sorted(adding.items()):
        if found := others(ones, path, _APART_FROM_NEW):
            new = f"folder in `{path[:-1]}`" if path.endswith("/") else f"`{path}`"
            yield _checklist(f"A new {new} goes with a change of", path, ones, found)


def _kind_of(name: str) -> str:
    """The pattern of the files of the kind of *name* in its folder; empty where it has no kind."""
    folder, suffix = os.path.dirname(name), os.path.splitext(name)[1]
    return f"{folder}/*{suffix}" if folder and suffix else ""


def _checklist(
    head: str, path: str, commits: Sequence[Commit], found: Sequence[tuple[str, int]]
) -> tuple[str, LessonFacts]:
    text = f"{head} {' and '.join(f'`{name}`' for name, _ in found)}."
    newest = max(commits, key=lambda one: one.at)
    counted = ", ".join(f"{count} of {len(commits)}: {name}" for name, count in found)
    said = Quotation(counted, "", newest.id[:12], -1, newest.at, "commits")
    about = About(paths=(path,))
    return text, LessonFacts(LessonKind.CHECKLIST, Origin.COUNTED, about, (said,), is_active=True)
