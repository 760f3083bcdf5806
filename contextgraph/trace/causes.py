"""The causes of errors that belong to a machine or a harness, over all messages they show."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from contextgraph.lazy import regex
from contextgraph.model import Cause, RemedyAction, RemedyKind
from contextgraph.trace.remedies.edits import Term

_PROGRAM = regex(r"[A-Za-z][\w.+-]*")
_MISSING = regex(r"No such file|not found|can't open|not a valid editable")


class Lesson(NamedTuple):
    """Lesson about a machine: a *cause*, what *fails* and what *works* there.

    *fails* and *works* are programs, packages or commands; empty where the cause says it all.
    """

    cause: Cause
    fails: str = ""
    works: str = ""


def lessons_of(actions: Iterable[RemedyAction], error_type: str) -> Iterator[Lesson]:
    """Return the lesson of *actions* about the machine; edits of code give none."""
    for action in actions:
        lesson = _lesson(action, error_type)
        if lesson is not None:
            yield lesson


def _lesson(action: RemedyAction, error_type: str) -> Lesson | None:
    pattern = action.pattern
    match pattern.kind:
        case RemedyKind.USE if _are_programs(pattern.target, pattern.replaced):
            return Lesson(Cause.PROGRAM, pattern.replaced, pattern.target)
        case RemedyKind.CWD if _repeats_a_folder(action):
            return Lesson(Cause.KEPT_FOLDER)
        case RemedyKind.CWD:
            return Lesson(Cause.FOLDER)
        case RemedyKind.RUN if pattern.target == Term.WITH_FOLDER and _MISSING.search(error_type):
            return Lesson(Cause.FOLDER)
        case RemedyKind.INSTALL if pattern.target in (
            Term.THE_REPOSITORY,
            Term.REQUIREMENTS,
        ):
            command = next(iter(action.values_of("command")), "")
            return Lesson(Cause.SETUP, works=command) if command else None
        case RemedyKind.INSTALL if not action.is_general:
            installer = " ".join(action.values_of("command")[:1]).split()[:2]
            return Lesson(Cause.PACKAGE, works=" ".join((*installer, action.target)))
        case RemedyKind.RESEND:
            return Lesson(Cause.EDIT)
    return None


def _are_programs(*names: str) -> bool:
    return all(map(_PROGRAM.fullmatch, names)) and len({*names}) > 1


def _repeats_a_folder(action: RemedyAction) -> bool:
    """True where the shell was in the folder already that the command changed to again."""
    return action.replaced.startswith(f"{action.target}/")
