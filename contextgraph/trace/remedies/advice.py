"""The key under which remedies of independent runs are the same advice."""

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from hashlib import blake2b
from typing import TypeAlias

from contextgraph.model import (
    ErrorKind,
    RemedyAction,
    RemedyKind,
    RemedyPattern,
)
from contextgraph.trace.remedies.edits import ANOTHER_MODULE, ANOTHER_NAME
from contextgraph.trace.remedies.wording import describe_pattern

Remedy: TypeAlias = tuple[RemedyAction, ...]
AdviceKey: TypeAlias = tuple[RemedyAction | RemedyPattern, ...]

_REMEMBERED = 8_192
_FROM_ANOTHER_MODULE = " from another module"
_PREFIX = "adv_"
_ID = re.compile(rf"{_PREFIX}[0-9a-f]{{16}}")
# Variables that any project may set; others mean something to one project only.
_COMMON_SETTING = re.compile(
    r"PYTHON|PYTEST_|PIP_|GIT_|LC_|LANG|PATH=|CI=|NODE_|JAVA_HOME|MPLBACKEND"
)
_SETTING = re.compile(r"[A-Za-z_]\w*=")
_NUMBER = re.compile(r"\b\d+\b")


@lru_cache(_REMEMBERED)
def is_general(pattern: RemedyPattern) -> bool:
    """True for a *pattern* that says what to do where names of one project mean nothing."""
    if pattern.kind is RemedyKind.RETRY or _leaves_out_what(pattern):
        return False
    if pattern.kind is RemedyKind.SET_ENV and not is_common_setting(pattern):
        return False
    return bool(describe_pattern(pattern))


def is_common_setting(pattern: RemedyPattern) -> bool:
    """True for an environment variable that means the same to any project."""
    return _COMMON_SETTING.match(pattern.target) is not None


def sets_own_variable(command: str) -> bool:
    """True for a command that sets an environment variable which means something to one project."""
    return _SETTING.match(command) is not None and _COMMON_SETTING.match(command) is None


def _leaves_out_what(pattern: RemedyPattern) -> bool:
    """True for a change of code that is specific to its project, unless an edit was refused."""
    target = pattern.target
    if target in (ANOTHER_NAME, ANOTHER_MODULE) or target.endswith(_FROM_ANOTHER_MODULE):
        return True
    is_of_refused_edit = bool(pattern.parameters)
    return target.startswith(("definition of ", "assignment of ")) and not is_of_refused_edit


def advice_key(remedy: Remedy) -> AdviceKey:
    """The patterns, by which independent runs agree; an action where its own says too little."""
    return tuple(
        _without_placing(action.pattern) if is_general(action.pattern) else _without_numbers(action)
        for action in remedy
    )


def advice_id(error: ErrorKind | None, remedy: Sequence[RemedyAction]) -> str:
    """The id of the advice *remedy* about errors of the type of *error* (None: about no error)."""
    return _advice_id(f"{error.family}\n{error.error_type}" if error else "", tuple(remedy))


@lru_cache(_REMEMBERED)
def _advice_id(kind: str, remedy: Remedy) -> str:
    text = f"{kind}\n{advice_key(remedy)!r}"
    return f"{_PREFIX}{blake2b(text.encode('utf-8', 'surrogatepass'), digest_size=8).hexdigest()}"


def is_advice_id(name: str) -> bool:
    """True for an id as `advice_id` gives it."""
    return _ID.fullmatch(name) is not None


def _without_placing(pattern: RemedyPattern) -> RemedyPattern:
    """Whether a definition goes before an edit or into it makes no difference."""
    return replace(pattern, parameters=()) if pattern.kind is RemedyKind.EDIT else pattern


@lru_cache(_REMEMBERED)
def _without_numbers(action: RemedyAction) -> RemedyAction:
    """What makes two actions the same, whatever line numbers and counts they name."""
    return replace(
        action,
        target=_NUMBER.sub("", action.target),
        replaced=_NUMBER.sub("", action.replaced),
        parameters=(),
    )
