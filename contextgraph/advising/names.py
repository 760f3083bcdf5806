"""The paths and symbols of a working tree that commands, tests and remedies name."""

import posixpath
import re
from collections.abc import Iterable, Iterator

from contextgraph.model import (
    CommandRecord,
    FailingTest,
    RemedyAction,
    RemedyKind,
)
from contextgraph.trace import folder_of

_FILE = re.compile(r"/|\.(?:py|sh|js|ts|toml|cfg|ini|txt|ya?ml|json|rb|pl)$")
_NO_PATH = re.compile(r"^[-@<\"'$]|://|[()*?{}=]")
_SEARCH_PATH = re.compile(r"\w*PATH=")
_NAMED_BY_COMMAND = (
    RemedyKind.RUN,
    RemedyKind.USE,
    RemedyKind.SEARCH,
    RemedyKind.OPEN,
    RemedyKind.CWD,
    RemedyKind.REVERT,
    RemedyKind.SET_ENV,
)

_OF_LINES = (RemedyKind.EDIT, RemedyKind.RESEND)


def paths_of_command(command: CommandRecord) -> Iterator[str]:
    """The folder of *command* and the paths that it names."""
    if command.folder:
        yield command.folder
    yield from _paths_in(command.command, command.folder)


def paths_of_remedy(actions: Iterable[RemedyAction]) -> Iterator[str]:
    """The paths that a remedy names as it was done, but for those that it makes."""
    made: list[str] = []
    for action in actions:
        if action.is_general:
            continue
        if action.kind is RemedyKind.CREATE:
            made.append(posixpath.normpath(action.target))
        for path in _paths_of(action):
            if not any(f"{path}/".startswith(f"{own}/") for own in made):
                yield path


def paths_edited(actions: Iterable[RemedyAction]) -> Iterator[str]:
    """The files whose lines a remedy changes as it was done."""
    for action in actions:
        if action.kind in _OF_LINES and not action.is_general:
            yield from _paths_of(action)


def paths_in_prose(text: str) -> Iterator[str]:
    """The paths that sentences name."""
    for word in text.split():
        path = word.lstrip("`'\"([<").rstrip("`'\")]>.,;:!?")
        if _FILE.search(path) and not _NO_PATH.search(path):
            yield posixpath.normpath(path)


def names_of_test(test: FailingTest) -> tuple[tuple[str, str], ...]:
    """The file and the function of a test as pytest names it; nothing of another name."""
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
