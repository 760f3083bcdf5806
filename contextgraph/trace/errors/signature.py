"""Decides whether an observation shows a failure, and computes its signature."""

from contextgraph.lazy import regex
from contextgraph.model import Action, ErrorSignature, Family, Step
from contextgraph.trace.actions import ActionReading, read_action
from contextgraph.trace.errors.finding import (
    Finding,
    Search,
    first_in,
    plain,
    signature_for,
    without_banners,
)
from contextgraph.trace.errors.programs import (
    CRASHES,
    build_failure,
    last_traceback,
    printed_error,
    usage_error,
)
from contextgraph.trace.errors.tests import (
    DOCTEST,
    TOX,
    after_passed_tests,
    conftest_failure,
    foreign_failure,
    pytest_failure,
    pytest_ran,
    unittest_failure,
    unittest_ran,
)
from contextgraph.trace.errors.tools import (
    git_message,
    installer_failure,
    known_installer_failure,
    message_of_git,
    network_failure,
    refused_edit,
    shell_message,
    timeout,
    tool_message,
)
from contextgraph.trace.kinds import ActionKind

_SHOWN_BY_GIT = regex(r"git (?:-\S+ )*(?:diff|show|log|blame|grep|status|ls-files|cat-file)\b")
_EDGE = 1500

_TESTS: tuple[Search, ...] = (
    pytest_failure,
    unittest_failure,
    DOCTEST.find,
    foreign_failure,
)
_PROGRAMS: tuple[Search, ...] = (
    conftest_failure,
    last_traceback,
    known_installer_failure,
    network_failure,
    TOX.find,
    build_failure,
    lambda text: first_in(CRASHES, text),
    usage_error,
    shell_message,
    git_message,
    printed_error,
)
_TOOLS: tuple[Search, ...] = (timeout, refused_edit, tool_message)
# What begins like this is neither a refusal nor a message of a tool.
_NO_TOOL_MESSAGE = ("[File: ", "Found ", "No matches found", "Traceback ", "Your command ran")

# Commands whose exit code 1, or 123 of xargs, is an answer: nothing found, files differ, test is
# false.
_ANSWER_BY_EXIT_CODE = regex(
    r"(?:^|[;&|(!\n])[ \t]*(?:(?:git|sudo|then|if|xargs(?: -\S+)*)[ \t]+)?"
    r"(?:[ef]?grep|rg|ag|diff|cmp|test|which|find|pgrep|type|command|\[)(?:[ \t]|$)"
)

# The family of a failure that only the log states.
_FAMILY_OF_KIND = {
    ActionKind.TEST: Family.TEST_FAILURE,
    ActionKind.INSTALL: Family.ENVIRONMENT,
    ActionKind.RUN: Family.PYTHON_EXCEPTION,
}
_OTHER_RUNTIMES = frozenset(
    {"node", "deno", "ts-node", "tsx", "java", "go", "cargo", "ruby", "perl", "php", "julia"}
)


def recognise(
    action: Action,
    observation: str | None,
    *,
    exit_code: int | None = None,
    is_error: bool | None = None,
    reading: ActionReading | None = None,
) -> ErrorSignature | None:
    """The failure that *observation* shows, None where the action went well or has no answer yet.

    *exit_code* and *is_error* are what the log itself says; *reading* is what *action*
    does, where that is known already.
    """
    if observation is None:
        return None
    reading = reading or read_action(action, None, None)
    text = plain(observation)
    is_display = _is_display(reading)
    if not is_display:
        text = without_banners(text)
    finding = _found(text, reading, is_display=is_display)
    if finding is None and _is_logged_failure(action, exit_code, is_error):
        finding = _unexplained(reading, text, exit_code)
    return signature_for(finding) if finding else None


def error_at(step: Step, reading: ActionReading) -> ErrorSignature | None:
    """The failure that *step* shows, whose action does what *reading* says."""
    return recognise(
        step.action,
        step.observation,
        exit_code=step.exit_code,
        is_error=step.is_error,
        reading=reading,
    )


def signature_of(text: str) -> ErrorSignature | None:
    """The failure that *text* shows by itself: a traceback, a line, a whole observation."""
    text = without_banners(plain(text))
    finding = _first((*_TOOLS, *_TESTS), text) or _first(_PROGRAMS, after_passed_tests(text))
    return signature_for(finding) if finding else None


def _found(text: str, reading: ActionReading, *, is_display: bool) -> Finding | None:
    if not text or text.isspace():
        return None
    if finding := _first((timeout,) if text.startswith(_NO_TOOL_MESSAGE) else _TOOLS, text):
        return finding
    return _message_at_an_edge(text) if is_display else _of_program(text, reading)


def _is_display(reading: ActionReading) -> bool:
    """True where the output is text that was requested, or a file as it is after an edit."""
    kind = reading.kind
    if kind.changes_files or kind is ActionKind.SUBMIT:
        return reading.verb != "python"
    if kind is ActionKind.VCS:
        return _SHOWN_BY_GIT.match(reading.command) is not None
    return kind.is_passive


def _message_at_an_edge(text: str) -> Finding | None:
    """A message before or after what was displayed."""
    if "[File: " in text[:_EDGE]:
        return None
    edges = [text]
    if len(text) > 2 * _EDGE:
        edges = [text[:_EDGE], text[text.rfind("\n", 0, -_EDGE) + 1 :]]
    return next((finding for edge in edges if (finding := _shell_or_git(edge))), None)


def _shell_or_git(text: str) -> Finding | None:
    return shell_message(text) or git_message(text)


def _of_program(text: str, reading: ActionReading) -> Finding | None:
    if reading.kind is ActionKind.INSTALL and (finding := installer_failure(text)):
        return finding
    if reading.kind is ActionKind.VCS:
        return network_failure(text) or shell_message(text) or message_of_git(text)
    if finding := _first(_TESTS, text):
        return finding
    if pytest_ran(text) or unittest_ran(text):
        return None
    return _first(_PROGRAMS, after_passed_tests(text))


def _first(searches: tuple[Search, ...], text: str) -> Finding | None:
    return next((finding for search in searches if (finding := search(text))), None)


def _is_logged_failure(action: Action, exit_code: int | None, is_error: bool | None) -> bool:
    """Return what the log says, without exit codes that only answer a question with no."""
    if exit_code is None:
        return bool(is_error)
    if exit_code == 0:
        return False
    return not (exit_code in (1, 123) and _ANSWER_BY_EXIT_CODE.search(action.text))


def _unexplained(reading: ActionReading, text: str, exit_code: int | None) -> Finding:
    """A failure that the log states and the text does not explain."""
    lines = [line for line in text[-2000:].splitlines() if line.strip()]
    message = lines[-1].strip() if lines else ""
    if exit_code in (124, -1):
        return Finding(Family.TIMEOUT, "command timed out", message)
    error_type = "failed" if exit_code is None else f"exit code {exit_code}"
    if reading.kind is ActionKind.RUN and reading.verb in _OTHER_RUNTIMES:
        return Finding(Family.RUNTIME_EXCEPTION, error_type, message)
    if family := _FAMILY_OF_KIND.get(reading.kind):
        return Finding(family, error_type, message)
    return Finding(Family.SHELL, f"{reading.verb or 'command'}: {error_type}", message)
