"""The predicament of an agent after a step: what it tried and the outcome."""

import re
from dataclasses import dataclass

from contextgraph.model import (
    Action,
    ErrorSignature,
    Phase,
    State,
    Step,
)
from contextgraph.trace.actions.kinds import SHELL_TOOLS, ActionKind
from contextgraph.trace.actions.reading import (
    canonical,
    imported_names,
    read_action,
)
from contextgraph.trace.edits import (
    edited_file,
    is_edit,
    new_lines,
)
from contextgraph.trace.errors.signature import recognise, signature_of
from contextgraph.trace.steps import StepTrace
from contextgraph.trace.wording import one_line

# What changes from run to run without meaning anything: addresses, places, durations, hashes.
_VOLATILE = re.compile(
    r"0x[0-9a-f]+|line \d+|(?<!\d)\d++\.\d+ ?s(?:ec\w*)?\b|/tmp/[\w./-]+"
    r"|\b(?=[a-f]*\d)[0-9a-f]{7,40}\b"
)
_COMPARED = 4_000
_HEAD = 80
# The file that a command puts back as it was, from git or from a copy that was made before.
_RESTORED = re.compile(
    r"git (?:checkout|restore)\b(?: \S+)*? (?P<file>[\w./+-]+\.[A-Za-z]\w{0,4}|\.)(?: |$)"
    r"|(?:cp|mv)(?: -\w+)* (?P<copy>\S+?)[._~-](?:bak|backup|orig|original|save|old)\w*"
    r" (?P=copy)(?: |$)"
)
_SCRIPT_FOLDER = re.compile(r"(?<= )[\w./-]*/(?=[\w-]+\.(?:py|sh|js)(?: |$))")
_JUST_FAILED = frozenset({"error", "failed", "failure", "fail", "exception"})
# What a program prints when nothing is wrong.
_SUCCESS = re.compile(
    r"\b(?:passed|ok)\b|[✓✅]|\bno (?:\w+ )?(?:issues|errors|problems)\b", re.IGNORECASE
)
_INTERPRETERS = frozenset("python node deno bash sh zsh ruby perl php java ts-node tsx".split())
# What SWE-agent answers instead of nothing.
SILENCE = "Your command ran successfully and did not produce any output."


@dataclass(frozen=True, slots=True)
class Predicament:
    """An attempt and its outcome, in forms that are equal where nothing is new.

    *goal* is what stays the same while an agent tries in several ways: the command, or the file
    that is edited. *attempt* is the exact action, *outcome* the error or a digest of the answer.
    *written* is the action of a step that changes files, as typed. *inconclusive*: an error, or a
    run whose answer does not show that all is well. *is_hidden*: an edit of which the log shows
    only the file, which cannot be known to equal another one.
    """

    kind: ActionKind
    goal: str
    attempt: str
    outcome: str
    inconclusive: bool = False
    error: ErrorSignature | None = None
    span: tuple[int, int] | None = None
    text: str = ""
    phase: Phase | None = None
    command: str = ""
    written: str = ""
    is_hidden: bool = False

    @property
    def action_type(self) -> ActionKind:
        """The kind of action that was tried."""
        return self.kind

    @property
    def error_category(self) -> str:
        """The type of its error, such as ``ImportError``; empty without one."""
        return self.error.error_type if self.error else ""

    @property
    def error_keywords(self) -> tuple[str, ...]:
        """The keywords of the error message."""
        return self.error.keywords if self.error else ()

    @property
    def is_rejected_edit(self) -> bool:
        """True for an edit that failed."""
        return self.error is not None and self.kind.writes

    @property
    def is_typed(self) -> bool:
        """True for a program that is typed on the line, mostly to look at something."""
        return self.command.startswith("python -c ")

    @property
    def restored(self) -> str:
        """The file that it puts back as it was; empty for anything else."""
        match = _RESTORED.match(self.command) if self.error is None else None
        return (match["file"] or match["copy"]) if match else ""

    @property
    def name(self) -> str:
        """A few words that name the attempt and its outcome for a reader."""
        what = one_line(self.command, 80)
        if self.text:
            what = f"{what} in {self.goal.partition(':')[2]}"
        return f"{what} → {self.error.error_type}" if self.error else what


def predicament_of(step: StepTrace) -> Predicament:
    """The predicament that *step* ends in."""
    reading, error = step.reading, step.error
    writes = is_edit(step)
    file = edited_file(step) if writes else ""
    changes = bool(writes or reading.changed or reading.scripted)
    attempt = canonical(step.step.action, file or None)
    is_run = reading.kind.runs or reading.kind is ActionKind.OTHER
    goal = file if writes else _program(step) if is_run else attempt
    return Predicament(
        kind=reading.kind,
        goal=reading.kind + ":" + goal,
        attempt=_digest(attempt),
        outcome=_outcome(step),
        inconclusive=error is not None or (is_run and _is_inconclusive(step)),
        error=error,
        span=reading.span,
        text=_digest("\n".join(filter(None, map(str.strip, new_lines(step))))) if writes else "",
        phase=step.phase,
        command=reading.command,
        written=" ".join((step.step.action.text, *reading.scripted)) if changes else "",
        is_hidden=writes and error is None and _is_hidden(step.step.action),
    )


def _is_hidden(action: Action) -> bool:
    """True for the call of an editing tool that names nothing but a file."""
    is_shell = action.tool.lower() in SHELL_TOOLS or action.text.startswith("create ")
    return not is_shell and "\n" not in action.text and " --" not in action.text


def _program(step: StepTrace) -> str:
    """The command of a run, a script without its folder; of what is typed what it imports."""
    command = step.reading.command
    if command.startswith("python -c "):
        names = imported_names(command)
        return f"python -c import {', '.join(sorted(names))}" if names else command
    return _SCRIPT_FOLDER.sub("", command) if step.reading.kind is ActionKind.RUN else command


def predicament_in(state: State, *, has_outcomes: bool = True) -> Predicament | None:
    """The predicament that *state* shows by its last action; None before the first one.

    Without outcomes its current error is taken for the outcome of the last action.
    """
    if not state.last_action.strip():
        return None
    answer = state.last_outcome if has_outcomes else state.current_error
    if state.last_outcome.strip().lower() in _JUST_FAILED:
        answer = state.current_error
    return predicament_of(_step_in(state, answer))


def error_of(state: State) -> ErrorSignature | None:
    """The failure that the current error of *state* shows, None where it is not recognised.

    Where it is the answer to the last action it is read as such, as in recorded runs.
    """
    if state.last_action.strip() and state.current_error:
        error = _step_in(state, state.current_error).error
        if error and error.message[:_HEAD] in (state.last_outcome or state.current_error):
            return error
    return signature_of(state.current_error)


def _step_in(state: State, answer: str) -> StepTrace:
    """The last step as *state* shows it."""
    action = Action(state.last_action.split(maxsplit=1)[0], state.last_action)
    reading = read_action(action, None, state.open_file or None)
    error = recognise(action, answer, reading=reading)
    return StepTrace(Step(0, "", action, answer), reading, state.phase or Phase.FIXING, error)


def is_same_predicament(state1: State, state2: State) -> bool:
    """True where two states are the same trouble.

    Same kind of action, same category of error and a keyword in common; without an error, the
    same action with the same outcome.
    """
    predicament, other = _last_predicament(state1), _last_predicament(state2)
    if (predicament.kind if predicament else None) != (other.kind if other else None):
        return False
    error, other_error = _error_of(state1, predicament), _error_of(state2, other)
    if error is not None and other_error is not None:
        same = (error.family, error.error_type) == (other_error.family, other_error.error_type)
        return same and _share_keyword(error, other_error)
    if error is not other_error or predicament is None or other is None:
        return False
    return (predicament.attempt, predicament.outcome) == (other.attempt, other.outcome)


def _last_predicament(state: State) -> Predicament | None:
    return predicament_in(state, has_outcomes=bool(state.last_outcome))


def steady(text: str) -> str:
    """The first 4,000 characters of *text* without what changes from run to run."""
    return _VOLATILE.sub("", text[:_COMPARED])


def _error_of(state: State, predicament: Predicament | None) -> ErrorSignature | None:
    if state.current_error:
        return error_of(state)
    return predicament.error if predicament else None


def _share_keyword(error: ErrorSignature, other: ErrorSignature) -> bool:
    """True for a keyword in common; errors whose message has none agree by their template."""
    if not error.keywords and not other.keywords:
        return error.template == other.template
    return bool(set(error.keywords) & set(other.keywords))


def _outcome(step: StepTrace) -> str:
    if step.error is not None:
        return f"{step.error.error_type}: {steady(step.error.message)}"
    if is_edit(step):
        # The view that follows an accepted edit differs with every line; the attempt says it all.
        return "accepted"
    shown = step.step.observation or ""
    if len(shown) > _COMPARED:
        shown = f"{shown[: _COMPARED // 2]}{shown[-_COMPARED // 2 :]}{len(shown)}"
    return _digest(shown if step.reading.kind.reads else steady(shown))


def _is_inconclusive(step: StepTrace) -> bool:
    """True where an answer without an error leaves open whether all is well."""
    shown = step.step.observation
    verb = step.reading.verb.partition(" ")[0]
    if step.step.exit_code == 0 and verb not in _INTERPRETERS:
        return False  # a build or a check that ended well; of a script the output counts
    if shown is None or _SUCCESS.search(shown[-_COMPARED:]):
        return False
    # Programs are run for their output; `cd` and the like have none.
    return step.reading.kind.runs or shown.strip() not in ("", SILENCE)


def _digest(text: str) -> str:
    """A short digest of *text*, for comparisons within one process."""
    return f"{hash(text):x}"
