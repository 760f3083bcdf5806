"""Advice that names paths and symbols of a working tree, without those that are gone."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple, TypeAlias, TypeVar

from contextgraph.model import (
    CommandHistory,
    CommandRecord,
    ErrorSignature,
    ErrorSolution,
    FailingTest,
    MemoryContext,
    PlaybookFile,
    RemedyAction,
    RepositoryPlaybook,
    ScopeLevel,
    SimilarCase,
    Suggestion,
)
from contextgraph.retrieval.names import names_of_test, paths_of_command, paths_of_remedy
from contextgraph.retrieval.render import playbook_lines
from contextgraph.trace import describe_remedy, names_in
from contextgraph.working_tree import WorkingTree

Remedy: TypeAlias = tuple[RemedyAction, ...]
_Named = TypeVar("_Named", PlaybookFile, CommandRecord, FailingTest)


class Stale(NamedTuple):
    """What advice names and the working tree does not have: a *kind*, the *name*, what is gone."""

    kind: str
    name: str
    gone: str


def fresh_playbook(playbook: RepositoryPlaybook, tree: WorkingTree) -> RepositoryPlaybook:
    """*playbook* without what *tree* does not have."""
    package = playbook.package if tree.has(playbook.package) else ""
    return replace(
        playbook,
        files=tuple(
            _present_symbols(one, tree) for one in _present(playbook.files, tree, _of_file)
        ),
        tests=_present(playbook.tests, tree, _of_command),
        scripts=_present(playbook.scripts, tree, _of_command),
        setup=_present(playbook.setup, tree, _of_command),
        failing_tests=_present(playbook.failing_tests, tree, _of_test),
        package=package,
        package_tasks=playbook.package_tasks if package else 0,
    )


def fresh_context(context: MemoryContext, tree: WorkingTree) -> MemoryContext:
    """*context* without what *tree* does not have.

    A remedy that names such a path is worded in general terms, or left out.
    """
    playbook = fresh_playbook(context.playbook, tree) if context.playbook else None
    return replace(
        context,
        suggestions=tuple(
            one
            for item in context.suggestions
            for one in _fresh_suggestion(item, context.error, tree)
        ),
        error_solutions=tuple(
            one
            for item in context.error_solutions
            for one in _fresh_solution(item, context.error, tree)
        ),
        similar_cases=tuple(_fresh_case(one, tree) for one in context.similar_cases),
        playbook=playbook if playbook and any(playbook_lines(playbook)) else None,
    )


def fresh_history(history: CommandHistory, tree: WorkingTree) -> CommandHistory:
    """*history* whose other ways exist in *tree*."""
    return replace(history, others=_present(history.others, tree, _of_command))


def stale_in(playbook: RepositoryPlaybook, tree: WorkingTree) -> Iterator[Stale]:
    """What *playbook* names and *tree* does not have."""
    for file in playbook.files:
        if gone := _of_file(file, tree):
            yield Stale("file", file.path, gone)
        else:
            missing = (one for one in file.symbols if not tree.has(file.path, one))
            yield from (Stale("symbol", f"{file.path}: {one}", one) for one in missing)
    for command in (*playbook.tests, *playbook.scripts, *playbook.setup):
        if gone := _of_command(command, tree):
            yield Stale("command", command.line, gone)
    for test in playbook.failing_tests:
        if gone := _of_test(test, tree):
            yield Stale("test", test.name, gone)
    if not tree.has(playbook.package):
        yield Stale("package", playbook.package, playbook.package)


def _fresh_remedy(actions: Remedy, error: ErrorSignature | None, tree: WorkingTree) -> Remedy:
    """*actions* as they were done; where a path is gone in general terms, if these say anything.

    Without an *error* there is nothing that general terms could be about.
    """
    if all(map(tree.has, paths_of_remedy(actions))):
        return actions
    general = tuple(one.general for one in actions)
    return general if error and describe_remedy(general, general=True) else ()


def _fresh_solution(
    solution: ErrorSolution, error: ErrorSignature | None, tree: WorkingTree
) -> Iterator[ErrorSolution]:
    actions = _fresh_remedy(solution.actions, error, tree)
    if actions == solution.actions:
        yield solution
    elif error and actions:
        yield replace(solution, actions=actions, description=_in_general(actions, error))


def _fresh_suggestion(
    suggestion: Suggestion, error: ErrorSignature | None, tree: WorkingTree
) -> Iterator[Suggestion]:
    actions = _fresh_remedy(suggestion.remedies, error, tree)
    if actions == suggestion.remedies:
        yield suggestion
    elif error and actions:
        yield replace(suggestion, remedies=actions, strategy=_in_general(actions, error))


def _in_general(actions: Remedy, error: ErrorSignature) -> str:
    return names_in(error.error_type, error.message).fill(describe_remedy(actions, general=True))


def _present(
    named: Iterable[_Named], tree: WorkingTree, missing: Callable[[_Named, WorkingTree], str]
) -> tuple[_Named, ...]:
    return tuple(one for one in named if not missing(one, tree))


def _of_file(file: PlaybookFile, tree: WorkingTree) -> str:
    return "" if tree.has(file.path) else file.path


def _present_symbols(file: PlaybookFile, tree: WorkingTree) -> PlaybookFile:
    symbols = tuple(one for one in file.symbols if tree.has(file.path, one))
    return replace(file, symbols=symbols)


def _of_command(command: CommandRecord, tree: WorkingTree) -> str:
    return next((one for one in paths_of_command(command) if not tree.has(one)), "")


def _of_test(test: FailingTest, tree: WorkingTree) -> str:
    missing = (one for one in names_of_test(test) if not tree.has(*one))
    return next((symbol or path for path, symbol in missing), "")


def _fresh_case(case: SimilarCase, tree: WorkingTree) -> SimilarCase:
    if case.why.scope is not ScopeLevel.REPO:
        return case
    files = tuple(one for one in case.files if tree.has(one))
    symbols = tuple(
        name for name in case.changed.symbols if any(tree.has(file, name) for file in files)
    )
    return replace(case, files=files, changed=replace(case.changed, symbols=symbols))
