"""Entries of AGENTS.md or a skill, from what the runs of a repository agree on."""

import re
from collections.abc import Iterator, Sequence
from difflib import unified_diff
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from contextgraph import model
from contextgraph.advising.wording import playbook_lines, remedy_line
from contextgraph.agents.install import inside
from contextgraph.errors import SettingsError
from contextgraph.memory.agent_memory import AgentMemory
from contextgraph.model.values import replace
from contextgraph.system.intake import content
from contextgraph.text import gives_instructions, neutral, number_of, one_line, regex


class _Marks(NamedTuple):
    """The lines between which a *section* of a file is replaced."""

    begin: str
    end: str
    section: re.Pattern[str]


def _marks(name: str, command: str) -> _Marks:
    begin, end = f"<!-- {name}: begin", f"<!-- {name}: end -->"
    section = regex(rf"{begin}\b.*?{end}\r?\n?", re.DOTALL)
    return _Marks(f"{begin}; `{command}` replaces this section -->", end, section)


_EXPORT = _marks("contextgraph", "contextgraph export --agents-md")
_TEAM = _marks("contextgraph team", "contextgraph team sync")
# What a file of this name has to begin with.
_SKILL = "SKILL.md"
_FRONT_MATTER = """\
---
name: {name}-playbook
description: What earlier runs of agents in {repo} show: tests, set-up, files, errors with remedies.
---

"""
_LONGEST = 1 << 22
_AGREEING = 2
# Kinds of error that are looked at, and listed with what cleared them.
_LOOKED_AT, _LISTED, _MESSAGE_CHARS = 64, 10, 120
# With the lines around them at most 40.
_ENTRIES = 34


def agents_md(memory: AgentMemory, repo: str) -> list[str]:
    """Return the entries of the section on *repo*: what at least two tasks agree on; may be empty.

    First its playbook, then the errors that cost most steps with what cleared each: together few
    enough for a file that is read at each start. Nothing that looks like an instruction to an
    agent, or that one named source alone shows.
    """
    playbook = memory.playbook(repo)
    lines = [line.text for line in playbook_lines(playbook) if not gives_instructions(line.text)]
    worded = [f"{line[:1].upper()}{line[1:]}" for line in lines]
    return [*map(_shown, islice((*worded, *_remedies(memory, repo)), _ENTRIES))]


def write_agents_md(
    path: Path, repo: str, tasks: int, entries: list[str], *, dry_run: bool = False
) -> str:
    """Write the section with *entries*, which *tasks* gave, into the file *path*.

    Takes the place of the section of an earlier export, which goes where there are no entries; all
    other text stays. Returns what changed
    as a diff; with *dry_run* nothing is written. Raises `SettingsError` where the file cannot be
    read or written.
    """
    name = re.sub(r"[^a-z0-9]+", "-", repo.lower()).strip("-")
    front = _FRONT_MATTER.format(name=name, repo=repo) if path.name == _SKILL else ""
    head = f"## What earlier runs in {repo} show\n\nCounts are of {number_of(tasks, 'task')}."
    return _replaced(path, _EXPORT, head, entries, front=front, dry_run=dry_run)


def write_team_rules(path: Path, rules: Sequence[str], *, dry_run: bool = False) -> str:
    """Write *rules* of a team into a section of the file *path*; all other text stays.

    Returns what changed as a diff; with *dry_run* nothing is written. Raises `SettingsError` where
    the file cannot be read or written.
    """
    return _replaced(path, _TEAM, "## Rules of the team", [*map(_shown, rules)], dry_run=dry_run)


def text_beside_rules(path: Path) -> str:
    """Return the text of the file *path* without the section of `write_team_rules`."""
    return _TEAM.section.sub("", content_of(path))


def _shown(entry: str) -> str:
    """Return *entry* without what hides what follows from people, or ends the section."""
    return neutral(entry).replace("<!--", "< !--")


def content_of(path: Path) -> str:
    """Return the text of the file *path*, empty where there is none.

    Raises `SettingsError` for a pipe or device, bytes that are no text, and a link that leaves its
    folder.
    """
    path = inside(path.parent, path.name)
    try:
        return content(path, _LONGEST).decode()
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path} cannot be read: {error}") from error


def _replaced(
    path: Path, marks: _Marks, head: str, entries: Sequence[str], *, front: str = "", dry_run: bool
) -> str:
    """Put a section with *entries* into *path*, in the place of that of an earlier call."""
    before = content_of(path)
    listed = "\n".join(f"- {entry}" for entry in entries)
    section = f"{marks.begin}\n{head}\n\n{listed}\n{marks.end}\n" if entries else ""
    if "\r\n" in before:
        section = section.replace("\n", "\r\n")
    text = before or (front if section else "")
    if marks.section.search(text):
        written = marks.section.sub(lambda _: section, text, count=1)
    else:
        line = "\r\n" if "\r\n" in before else "\n"
        written = f"{text.rstrip()}{2 * line}{section}" if text.strip() and section else section
        written = written or text
    if not dry_run and written != before:
        try:
            with inside(path.parent, path.name).open("w", encoding="utf-8", newline="") as file:
                file.write(written)
        except OSError as error:
            raise SettingsError(f"{path} cannot be written: {error}") from error
    lines = (before.splitlines(keepends=True), written.splitlines(keepends=True))
    return "".join(unified_diff(*lines, f"a/{path.name}", f"b/{path.name}"))


def _remedies(memory: AgentMemory, repo: str) -> Iterator[str]:
    """Yield the costliest errors of *repo* for which tasks agree on a remedy, with that remedy."""
    tallies = memory.store.recoveries.errors(model.Scope(repo), _LOOKED_AT)
    costly = sorted(tallies, key=lambda tally: (-tally.steps, tally.error.id))
    agreed = (tally.error for tally in costly if tally.cleared >= _AGREEING)
    remedies = (_remedy(memory, repo, error) for error in agreed)
    yield from islice(filter(None, remedies), _LISTED)


def _remedy(memory: AgentMemory, repo: str, error: model.ErrorPattern) -> str:
    """The newest message of *error* in *repo*, and what cleared it there; empty for neither."""
    signature = error.signature()
    question = model.ErrorQuestion(signature, model.SignatureLevel.TEMPLATE, model.Scope(repo))
    for cleared in memory.store.recoveries.for_error([question], 1):
        signature = replace(signature, message=cleared.message)
        context = memory.retriever.retrieve(model.State(repo=repo), 1, error=signature)
        for item in context.ranked:
            agreed = item.why.agreement and item.why.agreement.did >= _AGREEING
            message = one_line(signature.message, _MESSAGE_CHARS)
            entry = f"`{message}`: {remedy_line(item)}"
            is_of_one = any(item.why.sources) and not item.why.is_active
            if agreed and not is_of_one and not gives_instructions(entry):
                return entry
    return ""
