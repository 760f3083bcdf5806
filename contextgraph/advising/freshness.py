"""Checks advice against a working tree: drops missing paths and symbols."""

import os
import posixpath
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from itertools import chain, zip_longest
from typing import NamedTuple, TypeVar

from contextgraph.model import (
    Cause,
    CommandHistory,
    CommandRecord,
    ErrorSignature,
    FailingTest,
    Freshness,
    Lesson,
    LessonFacts,
    LessonKind,
    MachineFact,
    MemoryContext,
    Note,
    NoteScope,
    Origin,
    PipelineStep,
    PlaybookFile,
    RawTrajectory,
    Recollection,
    Remedy,
    RemedyAction,
    RemedyKind,
    RepositoryPlaybook,
    ScopeLevel,
    Silence,
    SimilarCase,
    Step,
)
from contextgraph.model.values import replace
from contextgraph.store.memory_store import NoteStore
from contextgraph.system.working_tree import WorkingTree
from contextgraph.text import regex, stems
from contextgraph.trace import (
    describe_remedy,
    facts_of,
    files_changed,
    folder_of,
    names_in,
    read_steps,
    without_tests,
)

# What agents read by themselves when they start, at most so much of it; and the share of a lesson's
# words in two lines of it that say the same.
_INSTRUCTIONS = ("CLAUDE.md", "AGENTS.md", "GEMINI.md", ".claude/CLAUDE.md")
_INSTRUCTION_BYTES, _KNOWN = 100_000, 0.7
# Of a conversation so many words are a passage; one with this share of a lesson's words says it.
_PASSAGE, _READ_THERE = 100, 0.55
_SAY_WHAT_TO_DO = frozenset({LessonKind.RULE, LessonKind.CHECKLIST})
# As of `pip install NAME`.
_WORDS_OF_ONE = 3
# No agent refuses a file of fewer bytes as too long for one read.
_SHORT = 50_000
_Named = TypeVar("_Named", PlaybookFile, CommandRecord, FailingTest)
_Probable = TypeVar("_Probable", PlaybookFile, SimilarCase)

# The weight of advice that names a file whose content differs from that in the runs. Most of it
# stays right: a file that tasks change is changed again. For named lines see `fresh_remedy`.
WEIGHT_IF_CHANGED = 0.9


class Stale(NamedTuple):
    """Something that advice names and the working tree lacks: *kind*, *name*, what is *gone*.

    Or nothing is gone, but the content of the file *changed* since the runs.
    """

    kind: str
    name: str
    gone: str = ""
    changed: str = ""


def fresh_playbook(playbook: RepositoryPlaybook, tree: WorkingTree) -> RepositoryPlaybook:
    """Return *playbook* without what is absent in *tree*; changed files make a line count less.

    Programs are looked up on this machine.
    """
    files = (_present_symbols(file, tree) for file in _present(playbook.files, tree, _of_file))
    weighed = (_weighed(file, [file.path], tree) for file in files)
    package = playbook.package if tree.has(playbook.package) else ""
    return replace(
        playbook,
        files=tuple(sorted(weighed, key=lambda file: -file.probability)),
        tests=_fresh_commands(playbook.tests, tree),
        scripts=_fresh_commands(playbook.scripts, tree),
        setup=_fresh_commands((one for one in playbook.setup if _is_needed(one, tree)), tree),
        failing_tests=_present(playbook.failing_tests, tree, _of_test),
        places=tuple(
            one for one in playbook.places if os.path.exists(os.path.join(tree.root, one[1]))
        ),
        package=package,
        package_tasks=playbook.package_tasks if package else 0,
        facts=tuple(fact for fact in playbook.facts if _holds(fact, tree)),
    )


def _holds(fact: MachineFact, tree: WorkingTree) -> bool:
    """True where *fact* may hold on this machine: what works is there, what is missing is not."""
    if fact.cause is Cause.PROGRAM:
        return tree.has("", fact.works) and not tree.is_same_program(fact.fails, fact.works)
    if fact.cause is Cause.LONG_FILE and "*" not in fact.fails:
        from contextgraph.knowledge.broken import files_in_tree  # with how sessions are read

        files = files_in_tree([fact.fails], tree).get(fact.fails, () if tree.is_of_git else None)
        return files is None or any(tree.size(file) >= _SHORT for file in files)
    return fact.cause is not Cause.PACKAGE or not tree.has_package(fact.works.split()[-1])


def _is_needed(installation: CommandRecord, tree: WorkingTree) -> bool:
    """Return False for an *installation* of one package, by pip, that this machine has."""
    words = installation.command.split()
    is_of_one = len(words) == _WORDS_OF_ONE and words[:2] == ["pip", "install"]
    return not (is_of_one and installation.worked and tree.has_package(words[-1]))


def fresh_history(history: CommandHistory, tree: WorkingTree) -> CommandHistory:
    """Return *history* with only those other ways that exist in *tree*."""
    return replace(history, others=_fresh_commands(history.others, tree))


def runs_to_compare(context: MemoryContext) -> list[str]:
    """Return ids of runs whose content hashes decide what is fresh, without the playbook's."""
    runs = chain(
        *(one.why.trajectories for one in context.ranked if any(paths_of_remedy(one.actions))),
        (case.trajectory_id for case in context.similar_cases if case.why.scope is ScopeLevel.REPO),
    )
    return [*dict.fromkeys(runs)]


def with_content_hashes(raw: RawTrajectory, tree: WorkingTree) -> RawTrajectory:
    """Return *raw*, which has just ended in *tree*, with hashes of the files that it names.

    These are files that it changed, and those that its commands name.
    """
    facts = facts_of(raw, read_steps(raw))
    commands = (CommandRecord(use.text, use.folder, 0, 0) for use in facts.commands)
    named = {*files_changed(raw.patch or ""), *facts.edited}.union(*map(paths_of_command, commands))
    hashes = {
        path: content_hash for path in sorted(named) if (content_hash := tree.content_hash(path))
    }
    return replace(raw, content_hashes=hashes)


def stale_in(playbook: RepositoryPlaybook, tree: WorkingTree) -> Iterator[Stale]:
    """Yield what *playbook* names and *tree* lacks, or has with another content."""
    for file in playbook.files:
        if gone := _of_file(file, tree):
            yield Stale("file", file.path, gone)
        else:
            missing = (symbol for symbol in file.symbols if not tree.has(file.path, symbol))
            yield from (Stale("symbol", f"{file.path}: {symbol}", symbol) for symbol in missing)
            yield from _changed("file", file.path, [file.path], tree)
    for command in (*playbook.tests, *playbook.scripts, *playbook.setup):
        if gone := _of_command(command, tree):
            yield Stale("command", command.line, gone)
        else:
            yield from _changed("command", command.line, paths_of_command(command), tree)
    for test in playbook.failing_tests:
        if gone := _of_test(test, tree):
            yield Stale("test", test.name, gone)
    if not tree.has(playbook.package):
        yield Stale("package", playbook.package, playbook.package)


def _changed(kind: str, name: str, paths: Iterable[str], tree: WorkingTree) -> Iterator[Stale]:
    changed = (path for path in paths if tree.is_unchanged(path) is False)
    yield from (Stale(kind, name, changed=path) for path in changed)


def _freshness(paths: Iterable[str], tree: WorkingTree) -> Freshness:
    states = {tree.is_unchanged(path) for path in paths}
    if False in states:
        return Freshness.CHANGED
    return Freshness.UNCHANGED if True in states else Freshness.UNKNOWN


def _weighed(item: _Probable, paths: Iterable[str], tree: WorkingTree) -> _Probable:
    """*item*, which names *paths*, with its freshness, and less probable where that is changed."""
    freshness = _freshness(paths, tree)
    return replace(item, freshness=freshness, probability=item.probability * _weight(freshness))


def _weight(freshness: Freshness) -> float:
    return WEIGHT_IF_CHANGED if freshness is Freshness.CHANGED else 1.0


def fresh_remedy(
    error: ErrorSignature | None, tree: WorkingTree, remedy: Remedy
) -> Remedy | Silence:
    """Word *remedy* in general terms where a path is gone, or edited lines are of a changed file.

    Return a silence if nothing is left to say in general terms, as without an *error*.
    What names a changed file counts less.
    """
    freshness = _freshness(paths_of_remedy(remedy.actions), tree)
    weight = _weight(freshness)
    remedy = replace(
        remedy,
        freshness=freshness,
        probability=weight * remedy.probability,
        score=weight * remedy.score,
    )
    gone = [path for path in paths_of_remedy(remedy.actions) if not tree.has(path)]
    changed = [path for path in paths_edited(remedy.actions) if tree.is_unchanged(path) is False]
    if not (gone or changed):
        return remedy
    general = tuple(action.general for action in remedy.actions)
    text = describe_remedy(general, general=True) if error else ""
    if error is None or not text:
        state = "is not there any more" if gone else "changed since"
        return Silence(PipelineStep.FRESH, f"{(gone or changed)[0]} {state}")
    text = names_in(error.error_type, error.message).fill(text)
    return replace(remedy, actions=general, description=text)


def _present(
    named: Iterable[_Named], tree: WorkingTree, missing: Callable[[_Named, WorkingTree], str]
) -> tuple[_Named, ...]:
    return tuple(fact for fact in named if not missing(fact, tree))


def _of_file(file: PlaybookFile, tree: WorkingTree) -> str:
    return "" if tree.has(file.path) else file.path


def _present_symbols(file: PlaybookFile, tree: WorkingTree) -> PlaybookFile:
    symbols = tuple(symbol for symbol in file.symbols if tree.has(file.path, symbol))
    return replace(file, symbols=symbols)


def _fresh_commands(
    commands: Iterable[CommandRecord], tree: WorkingTree
) -> tuple[CommandRecord, ...]:
    weighed = (
        replace(command, freshness=_freshness(paths_of_command(command), tree))
        for command in _present(commands, tree, _of_command)
    )
    return tuple(sorted(weighed, key=lambda command: -command.worked * _weight(command.freshness)))


def _of_command(command: CommandRecord, tree: WorkingTree) -> str:
    return next((path for path in paths_of_command(command) if not tree.has(path)), "")


def _of_test(test: FailingTest, tree: WorkingTree) -> str:
    named = names_of_test(test)
    return next((symbol or path for path, symbol in named if not tree.has(path, symbol)), "")


def fresh_case(case: SimilarCase, tree: WorkingTree) -> SimilarCase:
    """Return *case* without files and symbols that *tree* lacks, if it is of the repository."""
    if case.why.scope is not ScopeLevel.REPO:
        return case
    files = tuple(path for path in case.files if tree.has(path))
    symbols = tuple(
        name for name in case.changed.symbols if any(tree.has(file, name) for file in files)
    )
    present = replace(case, files=files, changed=replace(case.changed, symbols=symbols))
    return _weighed(present, files, tree)


_FILE = regex(r"/|\.(?:py|sh|js|ts|toml|cfg|ini|txt|ya?ml|json|rb|pl)$")
_NO_PATH = regex(r"^[-@<\"'$]|://|[()*?{}=]")
_SEARCH_PATH = regex(r"\w*PATH=")
_NAMED_BY_COMMAND = (
    RemedyKind.RUN,
    RemedyKind.USE,
    RemedyKind.SEARCH,
    RemedyKind.OPEN,
    RemedyKind.CWD,
    RemedyKind.REVERT,
    RemedyKind.SET_ENV,
)

_NOTES_READ = 100
_OF_LINES = (RemedyKind.EDIT, RemedyKind.RESEND)


def paths_of_command(command: CommandRecord) -> Iterator[str]:
    """Yield the folder of *command* and the paths that it names."""
    if command.folder:
        yield command.folder
    yield from _paths_in(command.command, command.folder)


def paths_of_remedy(actions: Iterable[RemedyAction]) -> Iterator[str]:
    """Yield paths that a concrete remedy names, without those that it makes."""
    made: list[str] = []
    for action in actions:
        if action.is_general:
            continue
        if action.kind is RemedyKind.CREATE:
            made.append(posixpath.normpath(action.target))
        for path in _paths_of(without_tests(action)):
            if not any(f"{path}/".startswith(f"{own}/") for own in made):
                yield path


def paths_edited(actions: Iterable[RemedyAction]) -> Iterator[str]:
    """Yield files whose lines a concrete remedy changes."""
    for action in actions:
        if action.kind in _OF_LINES and not action.is_general:
            yield from _paths_of(action)


def paths_in_prose(text: str) -> Iterator[str]:
    """Yield the paths that sentences name."""
    for word in text.split():
        path = word.lstrip("`'\"([<").rstrip("`'\")]>.,;:!?")
        if _FILE.search(path) and not _NO_PATH.search(path):
            yield posixpath.normpath(path)


def notes_naming(paths: Iterable[str], repo: str, store: NoteStore) -> list[Recollection]:
    """Return notes on *repo* that name one of these files or a folder of it, newest first.

    A note may name the end of a path only. Pinned notes stand in the playbook.
    """
    files = [path for path in paths if _FILE.search(path)]
    words = [stem for path in files for stem in stems(path)]
    noted = store.for_text(words, NoteScope((repo.casefold(),)), _NOTES_READ) if files else ()
    naming = [
        note
        for note in noted
        if not note.pinned
        and any(
            f"/{path}".endswith(f"/{name}") or path.startswith(f"{name}/")
            for name in paths_in_prose(note.content)
            for path in files
        )
    ]
    naming.sort(key=lambda note: (note.created_at, note.id), reverse=True)
    return [Recollection(note, 1.0, {}) for note in naming]


def lessons_to_say(
    lessons: Iterable[Recollection], tree: WorkingTree, *, at_start: bool
) -> tuple[Recollection, ...]:
    """Return *lessons* without those about files of *tree* that are gone, or struck out of one.

    And, *at_start*, without those that its instructions have, which agents read by themselves.
    """
    known = [*map(stems, _instructions(tree))] if at_start else []
    lessons = [
        one
        for one in lessons
        if not _is_known(one.note.content, known, _KNOWN)
        if not (one.note.lesson and is_struck_out(one.note.content, one.note.lesson, tree))
    ]
    gone = without_files((one.note for one in lessons), tree)
    return tuple(one for one in lessons if one.note.id not in gone)


def unread(
    lessons: Iterable[Recollection], task: str, steps: Iterable[Step]
) -> tuple[Recollection, ...]:
    """Return *lessons* without what was decided or is so, and stands in a passage of the run.

    The agent has read it, in its *task* or in one of its *steps*. A rule and a checklist say what
    to do: one that the agent has read it may forget.
    """
    read = (
        (step.thought, step.action.text, step.observation, step.user_message)
        for step in steps
        if step.observation is not None or not step.action.text  # else it is the one to come
    )
    passages = [
        frozenset(words[begin : begin + _PASSAGE])
        for words in map(stems, filter(None, (task, *chain.from_iterable(read))))
        for begin in range(0, max(1, len(words) - _PASSAGE // 2), _PASSAGE // 2)
    ]
    return tuple(
        one
        for one in lessons
        if (one.note.lesson and one.note.lesson.kind in _SAY_WHAT_TO_DO)
        or not _is_known(one.note.content, passages, _READ_THERE)
    )


def without_files(notes: Iterable[Note], tree: WorkingTree) -> set[str]:
    """Return the ids of the lessons of *notes* that name files, all of which *tree* lost."""
    from contextgraph.knowledge.broken import gone_files  # with how sessions are read

    naming = {
        note.id: (note.content, note.lesson.about)
        for note in notes
        if note.lesson and note.lesson.about.paths
    }
    lost = gone_files(naming, tree).items()
    return {id_ for id_, files in lost if len(files) == len(naming[id_][1].paths)}


def is_struck_out(text: str, facts: LessonFacts | Lesson, tree: WorkingTree) -> bool:
    """Return whether the lesson *text* was written into a file of *tree* that no longer has it.

    A file that is missing, perhaps only in this checkout, does not count, nor does a long one.
    A lesson that a person reviewed holds without its line.
    """
    is_reviewed = facts.is_reviewed if isinstance(facts, Lesson) else facts.before is not None
    if facts.origin is not Origin.WRITTEN or is_reviewed:
        return False
    named = (os.path.normpath(os.path.join(tree.root, one.speaker)) for one in facts.evidence)
    inside = (file for file in named if file.startswith(os.path.join(tree.root, "")))
    there = [
        file
        for file in inside
        if os.path.isfile(file) and os.path.getsize(file) <= _INSTRUCTION_BYTES
    ]
    lines = map(stems, chain.from_iterable(map(_lines_of, there)))
    return bool(there) and not _is_known(text, lines, _KNOWN)


def _is_known(text: str, known: Iterable[Collection[str]], share: float) -> bool:
    """Return True if this *share* of the words of *text* stands in one of the texts *known*."""
    own = {*stems(text)}
    return any(len(own.intersection(other)) >= share * len(own) for other in known)


def _instructions(tree: WorkingTree) -> Iterator[str]:
    """Yield the lines of what the agents of *tree* read when they start."""
    for name in _INSTRUCTIONS:
        yield from _lines_of(os.path.join(tree.root, name))


def _lines_of(file: str) -> Iterator[str]:
    """Yield each line of *file* with the next one: a sentence may be wrapped."""
    with suppress(OSError), open(file, "rb") as opened:
        lines = opened.read(_INSTRUCTION_BYTES).decode(errors="replace").splitlines()
        yield from map(" ".join, zip_longest(lines, lines[1:], fillvalue=""))


def names_of_test(test: FailingTest) -> tuple[tuple[str, str], ...]:
    """Return file and function of a test named by pytest; nothing for another name."""
    path, *names = test.name.partition("[")[0].split("::")
    return ((path, ""), (path, names[-1])) if names else ()


def _paths_of(action: RemedyAction) -> Iterator[str]:
    if action.kind in _NAMED_BY_COMMAND:
        yield from _paths_in(action.target, folder_of(action.target))
    else:
        yield from (posixpath.normpath(path) for path in action.values_of("file") if path)


def _paths_in(command: str, folder: str) -> Iterator[str]:
    """The paths that *command*, run in *folder*, names."""
    for word in command.split():
        named = [word.partition("::")[0].partition("[")[0]]
        if search_path := _SEARCH_PATH.match(word):
            named = word[search_path.end() :].strip("\"'").split(":")
        elif not _FILE.search(named[0]) or _NO_PATH.search(named[0]):
            continue
        yield from (posixpath.normpath(posixpath.join(folder, path)) for path in named if path)
