"""Whether a state supports a remedy, when the error has several possible causes."""

import posixpath
import re
import sys
import typing

from contextgraph.advising.query import Query
from contextgraph.model import (
    Family,
    RemedyAction,
    RemedyKind,
    RemedyPattern,
    State,
)
from contextgraph.trace import (
    CURRENT_FOLDER,
    ELSEWHERE,
    MISSING_MODULE,
    MISSING_PROGRAM,
    THE_REPOSITORY,
    edited,
    is_common_setting,
    is_import,
    is_own_module,
    shows_cause,
)

# In Python modules and what annotations name are the usual imports; other names may be anything.
_IMPORTABLE = sys.stdlib_module_names | frozenset(typing.__all__)
# A file that is not found may be gone, or not be made yet; what an error names may be needed, and
# then the edit that drops it (without a target) only hides the error.
_NEVER_IN_GENERAL = (ELSEWHERE, "")
_LOADED_BY_NAME = re.compile(r"\b(?:import_module|__import__|_gcd_import)\(")
_IMPORT = re.compile(r"^[>\s]*((?:from\s+\S+\s+)?import\b[^\n]*)", re.MULTILINE)
# The places of a traceback, of Python and of pytest, from the outermost to the innermost.
_PLACES = re.compile(r'^\s*File "([^"\n]+)", line \d+|^([\w./-]+\.py):\d+: ', re.MULTILINE)


def is_supported(query: Query, action: RemedyAction, *, is_same_name: bool, is_near: bool) -> bool:
    """False where *action* needs evidence that the state of *query* does not have.

    *is_same_name*: what was cleared by it named the same thing as the error of *query*; *is_near*:
    in the same repository.
    """
    state, pattern = query.state, action.pattern
    if not _has_file(state, action) or not shows_cause(pattern, state):
        return False
    if action.is_general and pattern.target in _NEVER_IN_GENERAL:
        return False
    if is_import(pattern.target):
        return (is_same_name and is_near) or _is_importable(query, pattern)
    if pattern.kind is RemedyKind.INSTALL and pattern.target == MISSING_MODULE:
        return (is_same_name and is_near) or _is_imported(query)
    if pattern.kind is RemedyKind.SET_ENV and not is_common_setting(pattern):
        return pattern.target.partition("=")[0] in _shown(state)
    if pattern.kind is RemedyKind.CONFIGURE:
        is_done = f"{pattern.target}(" in state.last_action
        return not is_done and pattern.target.partition(".")[0] in _shown(state)
    timed_out = query.signature is not None and query.signature.family is Family.TIMEOUT
    return not (timed_out and pattern.kind is RemedyKind.OPEN)


def was_tried(query: Query, action: RemedyAction) -> bool:
    """True where the run did what *action* says before, and got no further."""
    state, pattern = query.state, action.pattern
    if any(line in state.failed_actions for line in (action.target, *action.values_of("command"))):
        return True
    if pattern.kind is RemedyKind.SET_ENV:
        return f"{action.target} {state.last_action}" in state.failed_actions
    if pattern.kind is RemedyKind.INSTALL:
        package = rf"(?<![\w-]){re.escape(query.names.fill(action.target))}(?![\w-])"
        what = r"\s\.(?=[\s[]|$)" if pattern.target == THE_REPOSITORY else package
        installing = re.compile(rf"\binstall\b.*{what}")
        return any(map(installing.search, state.failed_actions))
    if pattern.target == CURRENT_FOLDER:
        return any(_is_wider(tried, state.last_action) for tried in state.failed_actions)
    if not (pattern.kind is RemedyKind.USE and pattern.replaced and state.last_action):
        return False
    replaced = rf"(?<![\w-]){re.escape(pattern.replaced)}\b"
    instead = re.sub(replaced, lambda _: pattern.target, state.last_action)
    return instead != state.last_action and instead in state.failed_actions


def _is_wider(look: str, narrow: str) -> bool:
    """True where *look* says all that *narrow* says but for some arguments, or names the folders
    that those are in; options apart.
    """
    wide, wanted = (
        [word for word in line.split() if not word.startswith("-")] for line in (look, narrow)
    )
    if wide[:1] != wanted[:1]:
        return False
    return set(wide) < set(wanted) or {*wide[1:]} == {*map(posixpath.dirname, wanted[1:])}


def _is_importable(query: Query, pattern: RemedyPattern) -> bool:
    """True for a module of the language or the project, or a name that the task imports."""
    change = edited(pattern.target)
    name = query.names.fill(change.name).partition(".")[0] if change else ""
    if name in _IMPORTABLE or is_own_module(name, query.state.repo):
        return True
    return _imports(query.state.task_description, name)


def _is_imported(query: Query) -> bool:
    """True where the task or a file of the project imports the module that was not found.

    Agents invent modules in scripts of their own; what a setting or an argument names may be
    anything.
    """
    state, module = query.state, query.names.fill(MISSING_MODULE)
    if query.signature is not None and query.signature.error_type in MISSING_PROGRAM:
        return True
    if _imports(state.task_description, module):
        return True
    if _LOADED_BY_NAME.search(state.last_outcome):
        return _imports(state.last_outcome, module)
    places = _PLACES.findall(state.last_outcome)
    place = "".join(places[-1]) if places else ""
    return not place or ("/" in place and not _is_script(place, state.last_action))


def _imports(text: str, name: str) -> bool:
    """True where a line of *text* imports *name*, or from it."""
    return bool(name) and any(
        re.search(rf"\b{re.escape(name)}\b", statement) for statement in _IMPORT.findall(text)
    )


def _is_script(path: str, command: str) -> bool:
    """True for a file that *command* names without a folder: agents write their scripts there."""
    name = re.escape(posixpath.basename(path))
    return re.search(rf"(?<![\w/.-])(?:\./)?{name}(?!\w)", command) is not None


def _shown(state: State) -> str:
    return f"{state.last_action}\n{state.last_outcome}\n{state.current_error}"


def _has_file(state: State, action: RemedyAction) -> bool:
    """False where the state names no file as *action* edits."""
    shown = f"{_shown(state)}\n{state.open_file}\n{state.task_description}"
    return all(posixpath.basename(file) in shown for file in action.values_of("file"))
