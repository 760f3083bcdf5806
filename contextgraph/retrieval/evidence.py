"""Whether the state shows what a remedy takes for granted, where several causes are possible."""

import posixpath
import re
import sys
import typing

from contextgraph.model import RemedyKind, RemedyPattern
from contextgraph.retrieval.query import Query
from contextgraph.trace import MISSING_MODULE, is_own_module, shows_cause

# In Python modules and what annotations name are the usual imports; other names may be anything.
_IMPORTABLE = sys.stdlib_module_names | frozenset(typing.__all__)
_IMPORT_OF = "import of "
_FRAME = re.compile(r'^\s*File "([^"<]+)", line \d+', re.MULTILINE)
_LOADED_BY_NAME = re.compile(r"\b(?:import_module|__import__|_gcd_import)\(")


def is_supported(query: Query, pattern: RemedyPattern, *, is_same_name: bool) -> bool:
    """False where *pattern* needs evidence that the state of *query* does not have.

    *is_same_name*: what was cleared by it named the same things as the error of *query*.
    """
    state = query.state
    if pattern.target.startswith(_IMPORT_OF):
        return is_same_name or _is_importable(query)
    if pattern.kind is RemedyKind.INSTALL and pattern.target == MISSING_MODULE:
        return is_same_name or _is_imported(query)
    return shows_cause(pattern, state.last_action, state.last_outcome)


def _is_importable(query: Query) -> bool:
    """True for a module of the language or the project, or a name that the task imports."""
    name = query.names.names[0].partition(".")[0] if query.names.names else ""
    if name in _IMPORTABLE or is_own_module(name, query.state.repo):
        return True
    importing = rf"^[>\s]*(?:from\s+\S+\s+)?import\b[^\n]*\b{re.escape(name)}\b"
    return re.search(importing, query.state.task_description, re.MULTILINE) is not None


def _is_imported(query: Query) -> bool:
    """False where what was run makes the name up: its own script imports it, or a setting names it.

    The task may name it; other files import what they need.
    """
    state, module = query.state, re.escape(query.names.fill(MISSING_MODULE))
    if re.search(rf"\b{module}\b", state.task_description):
        return True
    if _LOADED_BY_NAME.search(state.last_outcome):
        return re.search(rf"\b(?:import|from)\s+{module}\b", state.last_outcome) is not None
    importing = _FRAME.findall(state.last_outcome)[-1:]
    return not any(posixpath.basename(file) in state.last_action for file in importing)
