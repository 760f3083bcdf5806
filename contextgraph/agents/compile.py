"""Compiles answers of a memory: for hooks, which have no time to query it, and for AGENTS.md."""

import os
import re
from collections.abc import Collection, Iterator, Sequence
from difflib import unified_diff
from itertools import islice
from pathlib import Path

import orjson
from msgspec import Struct

from contextgraph import model
from contextgraph.advising.channels import OF_CODE, readable
from contextgraph.advising.freshness import paths_in_prose, paths_of_command, paths_of_remedy
from contextgraph.advising.gate import SHIPPED, stored_gate
from contextgraph.advising.pipeline import MemoryRetriever, settle
from contextgraph.advising.wording import (
    HEADS,
    command_warning,
    note_line,
    playbook_lines,
    remedy_line,
    remedy_text,
    rendered,
    shown_item,
    start_of,
)
from contextgraph.agents.hook import HOOKED
from contextgraph.agents.hook_files import (
    STAND_INS,
    CompiledRemedy,
    ErrorAdvice,
    ErrorKey,
    RepositoryAdvice,
    compiled_revision,
    write_advice,
)
from contextgraph.agents.install import inside
from contextgraph.agents.live import submission_warning
from contextgraph.codec import encoded
from contextgraph.errors import ContextGraphError, SettingsError
from contextgraph.knowledge.statements import is_rule_of, says_of, words_beside
from contextgraph.memory import AgentMemory
from contextgraph.ports import Store
from contextgraph.ranking import QuotedSession, quote_of
from contextgraph.text import gives_instructions, number_of, one_line, quoted_names, regex
from contextgraph.trace import replaced_program
from contextgraph.trace.ordered import command_words
from contextgraph.values import replace
from contextgraph.working_tree import WorkingTree

# Patterns that are read at once, and recoveries of one that say where and of what it was.
_MAX_ERRORS, _MAX_REPOSITORIES, _MAX_RECOVERIES, _MAX_NOTES = 100_000, 100_000, 256, 1_000
_LIMIT = 3
_EVERYWHERE = model.Scope(None)
# Of statements on one file: the newest.
_MOST_SAID = 3
# Has none of the paths that advice names.
_NO_TREE = WorkingTree(Path(os.devnull))


class CompiledAdvice(Struct, frozen=True):
    """The compiled file, and the number of errors and repositories it has a text for."""

    path: Path
    errors: int
    repositories: int


def compile_advice(
    memory: AgentMemory,
    path: Path,
    *,
    whole: bool = False,
    consolidated: Collection[str] | None = None,
    repos: Collection[str] = (),
) -> CompiledAdvice:
    """Write the answers of *memory* to the file *path*, atomically.

    Errors are queried as by `query`, at each level of their signature, in each repository in which
    they occurred and in general, but without vectors. If *path* exists, only errors that occurred
    since are queried, after a consolidation also the *consolidated* ones (by id) and those whose
    advice was shown or decided by hand, unless *whole* is true or another gate was fitted since;
    and only repositories with new runs, with pinned notes, or in *repos*.
    Raises `SettingsError` where the file cannot be written, and `StoreError`.
    """
    # One state of the memory, and one transaction for thousands of questions.
    with memory.store.snapshot():
        return _compiled(memory, path, whole, consolidated, repos)


def _compiled(
    memory: AgentMemory,
    path: Path,
    whole: bool,
    consolidated: Collection[str] | None,
    repos: Collection[str],
) -> CompiledAdvice:
    gate = orjson.dumps(encoded(stored_gate(memory.store) or SHIPPED)).decode()
    before = None if whole else compiled_revision(path, gate)
    todo = memory.store.admin.unconsolidated(before or 0)
    if before is not None and before > todo.revision:
        before = None  # of another memory that was at this place
    tallies = memory.store.recoveries.errors(_EVERYWHERE, _MAX_ERRORS)
    if before is not None:
        changed = {*todo.error_ids, *(consolidated or ())}
        if consolidated is not None:
            changed |= _judged(memory.store)
        tallies = [tally for tally in tallies if tally.error.id in changed]
    compiler = _Compiler(memory)
    try:  # pinned notes have no revision; there are none while notes are away
        pinned = memory.store.notes.newest(model.NoteScope(pinned=True), _MAX_NOTES)
    except ContextGraphError:
        pinned = ()
    with_notes = {note.repo for note in pinned}
    rates = memory.stats.get_solve_rates().items()
    changed_repos = {*todo.repos, *with_notes, *repos} - {""}
    known = {name for name, _ in memory.store.runs.repositories(_MAX_REPOSITORIES)} | with_notes
    counts = write_advice(
        path,
        todo.revision,
        compiler.errors(tallies),
        compiler.repositories(changed_repos),
        {sign: submission_warning(sign, rate).text for sign, rate in rates if rate.is_lower},
        gate=gate,
        conversations=compiler.conversations(changed_repos),
        outdated=None if before is None else [tally.error for tally in tallies],
        known={name.casefold() for name in known | {*repos, ""}},
    )
    return CompiledAdvice(path, *counts)


def _judged(store: Store) -> set[str]:
    """The errors whose advice was shown, or decided on by hand: its credit may have changed."""
    decided = [verdict.advice for verdict in store.exposures.record([]).verdicts]
    errors = {methodology.error_id for methodology in store.methodologies.get(decided)}
    return errors | {exposure.error_id for exposure in store.exposures.all() if exposure.error_id}


class _Compiler:
    def __init__(self, memory: AgentMemory) -> None:
        self._store, self._statements = memory.store, memory.statements
        whole = memory.retriever
        # A message without its names has no meaning that could be compared, and models cost.
        channels = {name: channel for name, channel in whole.channels.items() if name != "semantic"}
        self._retriever = MemoryRetriever(
            memory.store, channels=channels, gate=whole.gate, weights=whole.weights
        )
        self._retriever.playbooks = whole.playbooks

    def errors(self, tallies: Sequence[model.ErrorTally]) -> Iterator[tuple[ErrorKey, ErrorAdvice]]:
        """The advice on each error that was cleared, by its key."""
        types: dict[tuple[str, model.Family, str], str] = {}
        for tally in tallies:
            error = tally.error
            cleared = self._cleared(error) if tally.cleared_runs else ()
            repos = sorted({candidate.repo.casefold() for candidate in cleared} | {""})
            message = _neutral(error.context)
            for repo in repos if cleared else ():
                yield self._entry(repo, error.signature(message))
                types.setdefault((repo, error.family, error.error_type), message)
            if error.family in OF_CODE:
                yield from self._by_name(error, cleared)
        # A message that is not known is taken to be like the most frequent one of its type.
        for (repo, family, error_type), message in types.items():
            yield self._entry(repo, model.ErrorSignature(family, error_type, message, ""))

    def repositories(self, repos: Collection[str]) -> Iterator[tuple[str, str, RepositoryAdvice]]:
        """Return the start of work in each of *repos*, and the commands that do not run there.

        For each agent with hooks that has runs, also of repositories that are not known.
        """
        known = {name.casefold(): name for name in sorted(repos)}
        runs = self._store.runs
        agents = [agent for agent in HOOKED if runs.for_task(None, _EVERYWHERE, 1, agent)]
        asked = [("", repo) for repo in known.values()]
        asked += [(agent, repo) for agent in agents for repo in ("", *known.values())]
        least = self._retriever.gate.min_statement_precision
        for agent, repo in asked:
            context = self._retriever.retrieve(model.State(repo=repo, agent=agent), _LIMIT)
            text, lines = start_of(context)
            text = text if lines else rendered(context).text
            named = [(line.title, line.parts, encoded(item)) for line, item in lines]
            commands = self._failing_commands(repo, agent)
            said = [] if agent else self._said(repo)
            files = {} if agent else self._noted_files(repo, said)
            orders = [
                (quote_of(note).line(), words, note.content, note.id)
                for note in said
                if note.importance >= least and (words := command_words(note.content))
            ]
            yield agent, repo.casefold(), RepositoryAdvice(text, named, commands, files, orders)

    def conversations(
        self, repos: Collection[str]
    ) -> Iterator[tuple[str, Iterator[QuotedSession]]]:
        """Return what people decided in the sessions of each of *repos*."""
        for repo in sorted({name.casefold() for name in repos}):
            yield repo, map(self._readable, self._statements.conversations(repo))

    def _readable(self, known: QuotedSession) -> QuotedSession:
        """*known* without showing what agents may not see."""
        notes = self._store.notes.get([quote.id for quote in known.quotes]).values()
        seen = {note.id for note in readable(notes, self._store, frozenset(), None)}
        quotes = [
            quote._replace(is_shown=quote.is_shown and quote.id in seen) for quote in known.quotes
        ]
        return known._replace(quotes=quotes)

    def _failing_commands(self, repo: str, agent: str) -> dict[str, tuple[str, Sequence[str]]]:
        playbooks = self._retriever.playbooks
        runs = playbooks.runs(repo, frozenset(), agent=agent)
        failed = {use.text for run in runs for use in run.facts.commands if not use.ran}
        warnings: dict[str, tuple[str, Sequence[str]]] = {}
        for command in sorted(failed):
            history = playbooks.history(repo, command, agent=agent)
            # That it failed before is known by now: only what runs instead is news.
            if history.form and history.others:
                paths = [*paths_of_command(history.others[0])]
                general = replace(history, exact=None)
                warnings[command] = command_warning(history), paths
                warnings[history.form.command] = command_warning(general), paths
        return {command: warning for command, warning in warnings.items() if warning[0]}

    def _said(self, repo: str) -> Sequence[model.Note]:
        """The confirmed statements on *repo* that hold, the newest first."""
        try:
            listed = self._statements.of(repo)
        except ContextGraphError:
            return ()
        said = [one.note for one in listed if one.is_confirmed and not one.superseded_by]
        return readable(said, self._store, frozenset(), None)

    def _noted_files(
        self, repo: str, said: Sequence[model.Note]
    ) -> dict[str, list[tuple[str, list[str], str]]]:
        """The paths that notes on *repo* name, with these notes; the pinned are shown anyway.

        Each with the words some of which an edit has to put in, where not any edit will do.
        """
        try:
            newest = self._store.notes.newest(model.NoteScope((repo.casefold(),)), _MAX_NOTES)
        except ContextGraphError:
            return {}
        notes: dict[str, list[tuple[str, list[str], str]]] = {}
        for note in readable(newest, self._store, frozenset(), None):
            for path in () if note.pinned else paths_in_prose(note.content):
                notes.setdefault(path, []).append((f"note: {note_line(note)}", [], note.id))
        for note in said:
            files = (name for name in note.about if "." in name.rpartition("/")[2])
            for path in (name for name in files if says_of(note, name)):
                known = notes.setdefault(path, [])
                if len(known) < _MOST_SAID:
                    words = [] if is_rule_of(note, path) else words_beside(note, path)
                    known.append((quote_of(note).line(), words, note.id))
        return notes

    def _cleared(self, error: model.ErrorPattern) -> Sequence[model.RecoveryCandidate]:
        question = model.ErrorQuestion(
            error.signature(), model.SignatureLevel.TEMPLATE, _EVERYWHERE
        )
        return self._store.recoveries.for_error([question], _MAX_RECOVERIES)

    def _by_name(
        self, error: model.ErrorPattern, cleared: Sequence[model.RecoveryCandidate]
    ) -> Iterator[tuple[ErrorKey, ErrorAdvice]]:
        """The advice on *error* where its message quotes the very names of an earlier one."""
        seen = set[tuple[str, tuple[str, ...]]]()
        for candidate in cleared:
            names = quoted_names(candidate.message)
            repo = candidate.repo.casefold()
            if names and repo and (repo, names) not in seen:
                seen.add((repo, names))
                signature = error.signature(candidate.message)
                yield self._entry(repo, signature, "\n".join(names))

    def _entry(
        self, repo: str, signature: model.ErrorSignature, names: str = ""
    ) -> tuple[ErrorKey, ErrorAdvice]:
        found = self._retriever.retrieve(model.State(repo=repo), _LIMIT, error=signature)
        context = settle(found, _LIMIT, unasked=True)
        key = (repo, signature.family, signature.error_type, signature.template, names)
        if not context.shown:
            return key, ErrorAdvice()
        elsewhere = settle(context, _LIMIT, tree=_NO_TREE, unasked=True).ranked
        in_general = {remedy.advice: remedy for remedy in elsewhere}
        remedies = [
            _compiled_remedy(remedy, in_general.get(remedy.advice)) for remedy in context.ranked
        ]
        return key, ErrorAdvice(remedies, len(context.shown), HEADS)


def _compiled_remedy(remedy: model.Remedy, in_general: model.Remedy | None) -> CompiledRemedy:
    """*remedy* for the file; *in_general* is it where what it names is missing, if that says it."""
    paths = sorted({*paths_of_remedy(remedy.actions)})
    return CompiledRemedy(
        remedy_text(remedy),
        remedy.description,
        encoded(shown_item(remedy)),
        installs=any(action.kind is model.RemedyKind.INSTALL for action in remedy.actions),
        programs=sorted({replaced_program(action.pattern) for action in remedy.actions} - {""}),
        paths=paths,
        general=(
            remedy_text(in_general),
            in_general.description,
            encoded(shown_item(in_general)),
        )
        if paths and in_general
        else (),
    )


def _neutral(message: str) -> str:
    """*message* with stand-ins for the names that it quotes."""
    pairs = zip(quoted_names(message), STAND_INS, strict=False)
    for name, stand_in in sorted(pairs, key=lambda pair: -len(pair[0])):
        message = message.replace(name, stand_in)
    return message


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
    return [*worded, *_remedies(memory, repo)][:_ENTRIES]


def write_agents_md(
    path: Path, repo: str, tasks: int, entries: list[str], *, dry_run: bool = False
) -> str:
    """Write the section with *entries*, which *tasks* gave, into the file *path*.

    Takes the place of the section of an earlier export; all other text stays. Returns what changed
    as a diff; with *dry_run* nothing is written. Raises `SettingsError` where the file cannot be
    read or written.
    """
    head = f"## What earlier runs in {repo} show\n\nCounts are of {number_of(tasks, 'task')}.\n"
    listed = "\n".join(f"- {entry}" for entry in entries)
    section = f"{_BEGIN}\n{head}\n{listed}\n{_END}\n"
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
