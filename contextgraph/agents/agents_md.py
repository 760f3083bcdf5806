"""Entries of AGENTS.md or a skill, from what the runs of a repository agree on."""

import re
from collections.abc import Iterator
from difflib import unified_diff
from itertools import islice
from pathlib import Path

from contextgraph import model
from contextgraph.advising.wording import playbook_lines, remedy_line
from contextgraph.agents.install import inside
from contextgraph.errors import SettingsError
from contextgraph.memory import AgentMemory
from contextgraph.model.values import replace
from contextgraph.text import gives_instructions, neutral, number_of, one_line, regex

_BEGIN = "<!-- contextgraph: begin; `contextgraph export --agents-md` replaces this section -->"
_END = "<!-- contextgraph: end -->"
_SECTION = regex(r"<!-- contextgraph: begin\b.*?<!-- contextgraph: end -->\n?", re.DOTALL)
# What a file of this name has to begin with.
_SKILL = "SKILL.md"
_FRONT_MATTER = """\
---
name: {name}-playbook
description: What earlier runs of agents in {repo} show: tests, set-up, files, errors with remedies.
---

"""
_AGREEING = 2
# Kinds of error that are looked at, and listed with what cleared them.
_LOOKED_AT, _LISTED, _MESSAGE_CHARS = 64, 10, 120
# With the lines around them at most 40.
_ENTRIES = 34


def agents_md(memory: AgentMemory, repo: str) -> list[str]:
    """Return the entries of the section on *repo*: what at least two tasks agree on; may be empty.

    First its playbook, then the errors that cost most steps with what cleared each: together few
    enough for a file that is read at each start. Nothing that looks like an instruction to an
    agent.
    """
    playbook = memory.playbook(repo)
    lines = [line.text for line in playbook_lines(playbook) if not gives_instructions(line.text)]
    worded = [f"{line[:1].upper()}{line[1:]}" for line in lines]
    # A comment would hide what follows from people, or end the section.
    entries = islice((*worded, *_remedies(memory, repo)), _ENTRIES)
    return [neutral(entry).replace("<!--", "< !--") for entry in entries]


def write_agents_md(
    path: Path, repo: str, tasks: int, entries: list[str], *, dry_run: bool = False
) -> str:
    """Write the section with *entries*, which *tasks* gave, into the file *path*.

    Takes the place of the section of an earlier export, which goes where there are no entries; all
    other text stays. Returns what changed
    as a diff; with *dry_run* nothing is written. Raises `SettingsError` where the file cannot be
    read or written.
    """
    head = f"## What earlier runs in {repo} show\n\nCounts are of {number_of(tasks, 'task')}.\n"
    listed = "\n".join(f"- {entry}" for entry in entries)
    section = f"{_BEGIN}\n{head}\n{listed}\n{_END}\n" if entries else ""
    path = inside(path.parent, path.name)
    try:
        before = path.read_text() if path.exists() else ""
        name = re.sub(r"[^a-z0-9]+", "-", repo.lower()).strip("-")
        front = _FRONT_MATTER.format(name=name, repo=repo) if path.name == _SKILL else ""
        text = before or front
        if _SECTION.search(text):
            written = _SECTION.sub(lambda _: section, text, count=1)
        else:
            written = f"{text.rstrip()}\n\n{section}" if text.strip() else section
        if not dry_run:
            path.write_text(written)
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path} cannot be written: {error}") from error
    lines = (before.splitlines(keepends=True), written.splitlines(keepends=True))
    return "".join(unified_diff(*lines, f"a/{path.name}", f"b/{path.name}"))


def _remedies(memory: AgentMemory, repo: str) -> Iterator[str]:
    """Yield the costliest errors of *repo* for which tasks agree on a remedy, with that remedy."""
    tallies = memory.store.recoveries.errors(model.Scope(repo), _LOOKED_AT)
    costly = sorted(tallies, key=lambda tally: (-tally.steps, tally.error.id))
    agreed = (tally.error for tally in costly if tally.cleared_runs >= _AGREEING)
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
            if agreed and not gives_instructions(entry):
                return entry
    return ""
