"""The one place that decides whether an observation shows a failure, and which."""

import re
from collections.abc import Callable

from contextgraph.model import Action, ErrorSignature, Family
from contextgraph.trace.actions.kinds import ActionKind
from contextgraph.trace.actions.reading import ActionReading, read_action
from contextgraph.trace.errors.builds import build_failure
from contextgraph.trace.errors.crashes import foreign_crash
from contextgraph.trace.errors.environment import (
    installer_failure,
    known_installer_failure,
    network_failure,
    timeout,
)
from contextgraph.trace.errors.finding import Finding, plain, signed
from contextgraph.trace.errors.foreign_reports import after_passed_tests, foreign_failure
from contextgraph.trace.errors.printed import printed_error, usage_error
from contextgraph.trace.errors.pytest_reports import conftest_failure, pytest_failure, pytest_ran
from contextgraph.trace.errors.rejected_edits import refused_edit
from contextgraph.trace.errors.shell_messages import git_message, message_of_git, shell_message
from contextgraph.trace.errors.tool_messages import tool_answer
from contextgraph.trace.errors.tracebacks import last_traceback
from contextgraph.trace.errors.unittest_reports import (
    doctest_failure,
    tox_failure,
    unittest_failure,
    unittest_ran,
)

Evidence = Callable[[str], Finding | None]

_DISPLAYS = frozenset({ActionKind.VIEW, ActionKind.SEARCH, ActionKind.LIST, ActionKind.THINK})
_WRITES = frozenset({ActionKind.EDIT, ActionKind.CREATE, ActionKind.DELETE, ActionKind.SUBMIT})
_SHOWN_BY_GIT = re.compile(r"git (?:-\S+ )*(?:diff|show|log|blame|grep|status|ls-files|cat-file)\b")
_EDGE = 1500

_TESTS: tuple[Evidence, ...] = (pytest_failure, unittest_failure, doctest_failure, foreign_failure)
_CRASHES: tuple[Evidence, ...] = (conftest_failure, last_traceback)
_PROGRAMS: tuple[Evidence, ...] = (
    known_installer_failure,
    network_failure,
    tox_failure,
    build_failure,
    foreign_crash,
    usage_error,
    shell_message,
    git_message,
    printed_error,
)
_ANSWERS: tuple[Evidence, ...] = (timeout, refused_edit, tool_answer)
# What begins so is neither a refusal nor a complaint of a tool.
_NO_ANSWER = ("[File: ", "Found ", "No matches found", "Traceback ", "Your command ran")

# Exit codes that tell of an answer, not of a failure: nothing found, files differ, test is false.
_ANSWERS_NO = re.compile(
    r"(?:^|[;&|(!\n])[ \t]*(?:(?:git|sudo|then|if|xargs(?: -\S+)*)[ \t]+)?"
    r"(?:[ef]?grep|rg|ag|diff|cmp|test|which|find|pgrep|type|command|\[)(?:[ \t]|$)"
)


def recognise(
    action: Action,
    observation: str | None,
    *,
    exit_code: int | None = None,
    is_error: bool | None = None,
    reading: ActionReading | None = None,
) -> ErrorSignature | None:
    """The failure that *observation* shows, None where the action went well or is unanswered.

    *exit_code* and *is_error* are what the log itself says; *reading* is what *action*
    does, where that is known already.
    """
    if observation is None:
        return None
    reading = reading or read_action(action, None, None)
    finding = _found(plain(observation), reading)
    if finding is None and _says_failed(action, observation, exit_code, is_error):
        finding = _unexplained(reading, observation, exit_code)
    return signed(finding) if finding else None


def signature_of(text: str) -> ErrorSignature | None:
    """The failure that a bare error *text* tells of: a traceback, a line, a whole observation."""
    text = plain(text)
    found = _first((*_ANSWERS, *_TESTS), text) or _of_what_follows(text)
    return signed(found) if found else None


def _found(text: str, reading: ActionReading) -> Finding | None:
    if not text or text.isspace():
        return None
    for look in (timeout,) if text.startswith(_NO_ANSWER) else _ANSWERS:
        if found := look(text):
            return found
    if _only_displays(text, reading):
        return _message_at_an_edge(text)
    return _of_program(text, reading)


def _only_displays(text: str, reading: ActionReading) -> bool:
    """True where the output is text that was asked for, or a file as it is after an edit."""
    if reading.kind in _DISPLAYS:
        return True
    if reading.kind in _WRITES:
        return reading.verb != "python"
    return reading.kind is ActionKind.VCS and _SHOWN_BY_GIT.match(reading.command) is not None


def _message_at_an_edge(text: str) -> Finding | None:
    """A complaint before or after what was displayed."""
    if "[File: " in text[:_EDGE]:
        return None
    if len(text) <= 2 * _EDGE:
        return shell_message(text) or git_message(text)
    return shell_message(text[:_EDGE]) or shell_message(text[text.rfind("\n", 0, -_EDGE) + 1 :])


def _of_program(text: str, reading: ActionReading) -> Finding | None:
    if reading.kind is ActionKind.INSTALL and (found := installer_failure(text)):
        return found
    if reading.kind is ActionKind.VCS:
        return network_failure(text) or shell_message(text) or message_of_git(text)
    if found := _first(_TESTS, text):
        return found
    return None if pytest_ran(text) or unittest_ran(text) else _of_what_follows(text)


def _of_what_follows(text: str) -> Finding | None:
    """A crash or complaint that no report of passed tests accounts for."""
    return _first((*_CRASHES, *_PROGRAMS), after_passed_tests(text))


def _first(evidence: tuple[Evidence, ...], text: str) -> Finding | None:
    return next((found for look in evidence if (found := look(text))), None)


def _says_failed(
    action: Action, observation: str, exit_code: int | None, is_error: bool | None
) -> bool:
    """What the log itself says, without the exit codes that only answer a question with no."""
    if exit_code is None:
        return bool(is_error)
    if exit_code == 0:
        return False
    return not (exit_code == 1 and _ANSWERS_NO.search(action.text))


def _unexplained(reading: ActionReading, observation: str, exit_code: int | None) -> Finding:
    """A failure that the log states and the text does not explain."""
    lines = [line for line in observation[-2000:].splitlines() if line.strip()]
    message = lines[-1].strip() if lines else ""
    if exit_code in (124, -1):
        return Finding(Family.TIMEOUT, "command timed out", message)
    error_type = "failed" if exit_code is None else f"exit code {exit_code}"
    if reading.kind is ActionKind.TEST:
        return Finding(Family.TEST_FAILURE, error_type, message)
    if reading.kind is ActionKind.INSTALL:
        return Finding(Family.ENVIRONMENT, error_type, message)
    if reading.kind is ActionKind.RUN:
        return Finding(Family.PYTHON_EXCEPTION, error_type, message)
    return Finding(Family.SHELL, f"{reading.verb or 'command'}: {error_type}", message)
