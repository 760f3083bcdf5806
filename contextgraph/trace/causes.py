"""The causes of errors that belong to a machine or a harness, over all messages they show."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from contextgraph.lazy import regex
from contextgraph.model import Cause, RemedyAction, RemedyKind
from contextgraph.trace.remedies.edits import Term

_PROGRAM = regex(r"[A-Za-z][\w.+-]*")
_MISSING = regex(r"No such file|not found|can't open|not a valid editable")


# What edits are refused for, and what to do: several remedies are of one cause.
_UNDEFINED = "an undefined name", "put its import or definition in before its use"
_CUT = "lines that cut a statement in two", "replace whole statements"
_INDENTATION = "their indentation", "indent like the lines around"
_REFUSED: Mapping[str, tuple[str, str]] = {
    Term.WITHOUT_UNDEFINED: _UNDEFINED,
    Term.MORE_LINES: _CUT,
    Term.MORE_LINES_BEFORE: _CUT,
    Term.MORE_LINES_REPEATED: _CUT,
    Term.BLOCK_LINE: _CUT,
    Term.FEWER_LINES: _CUT,
    Term.OTHER_LINES: ("lines that had moved", "look at the line numbers again first"),
    Term.FILE_TO_EDIT: ("another file being open", "open the file that you mean first"),
    Term.INDENTED: _INDENTATION,
    Term.REORDERED: _INDENTATION,
}


class Lesson(NamedTuple):
    """Lesson about a machine: a *cause*, what *fails* and what *works* there.

    *fails* and *works* are programs, packages or commands, of edits a reason and what to do; empty
    where the cause says it all.
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
        case RemedyKind.CWD:
            return Lesson(Cause.KEPT_FOLDER if _repeats_a_folder(action) else Cause.FOLDER)
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
        case RemedyKind.EDIT if action.values_of("placing"):
            return Lesson(Cause.EDIT, *_UNDEFINED)
        case RemedyKind.RESEND | RemedyKind.OPEN if pattern.target in _REFUSED:
            return Lesson(Cause.EDIT, *_REFUSED[pattern.target])
    return None


def _are_programs(*names: str) -> bool:
    return all(map(_PROGRAM.fullmatch, names)) and len({*names}) > 1


def _repeats_a_folder(action: RemedyAction) -> bool:
    """True where the shell was in the folder already that the command changed to again."""
    return action.replaced.startswith(f"{action.target}/")
