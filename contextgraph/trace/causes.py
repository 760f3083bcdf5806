"""The machine of a run, as its log shows it, and the causes of errors that belong to it."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from contextgraph.lazy import regex
from contextgraph.model import Cause, Environment, RawTrajectory, RemedyAction, RemedyKind
from contextgraph.trace.edits import Term

_PROGRAM = regex(r"[A-Za-z][\w.+-]*")
_WHOLE_PROJECT = (Term.THE_REPOSITORY, Term.REQUIREMENTS)
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
        case RemedyKind.INSTALL if not (action.is_general or pattern.target in _WHOLE_PROJECT):
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


_VERSION_ASKED = regex(r"(?:^|&& )([A-Za-z][\w.+-]*) (?:--version|-V|version)(?: 2>&1)?$")
_VERSION = regex(r"(?<![\w.])v?(\d+\.\d+)(?=[.\s,)]|$)")
_OF_PYTHON = regex(r"lib/python(\d\.\d+)/|^platform \w+ -- Python (\d+\.\d+)", re.MULTILINE)
_PYTHON = regex(r"(?:^|&& |/)(python[\d.]*|pip[\d.]*|pytest) [^&|;]*(?:$|2>&1|\|)")
_SYSTEMS = (
    ("darwin", regex(r"^platform darwin|/opt/homebrew/|/Users/", re.MULTILINE)),
    ("win32", regex(r"^platform win32|\b[A-Z]:\\\\?(?:Users|Program)", re.MULTILINE)),
    ("linux", regex(r"^platform linux|/usr/lib/python|x86_64-linux|/home/", re.MULTILINE)),
)
_MOST_READ, _FEW_LINES = 2_000, 4


def environment_of(raw: RawTrajectory) -> Environment:
    """Return what the commands of *raw*, and what they printed, show of its machine.

    Only what interpreters print is read: files that an agent looks at may quote other machines.
    """
    systems, roots = Counter[str](), Counter[str]()
    versions: dict[str, Counter[str]] = {}
    for step in raw.steps:
        line, cwd = step.action.text, step.cwd or ""
        output = ""
        if cwd.startswith(("/", "./")):
            roots[cwd] += 1
        if len(line) < _MOST_READ and "\n" not in line:
            asked, ran = _VERSION_ASKED.search(line), _PYTHON.search(line)
            output = (step.observation or "")[:_MOST_READ] if asked or ran else ""
            shown = _OF_PYTHON.search(output)
            if asked and output.count("\n") < _FEW_LINES:
                versions.setdefault(asked[1], Counter()).update(_VERSION.findall(output)[:1])
            elif ran and shown:
                versions.setdefault(ran[1], Counter())[shown[1] or shown[2]] += 1
        if output or roots[cwd] == 1:
            place = f"{cwd}\n{output}"
            systems.update([name for name, marks in _SYSTEMS if marks.search(place)][:1])
    return Environment(
        _most_common(systems),
        _most_common(roots),
        tuple((name, _most_common(seen)) for name, seen in sorted(versions.items()) if seen),
    )


def usual_environment(environments: Iterable[Environment]) -> Environment:
    """Return the most frequent value of each property of *environments*, without the folder."""
    systems = Counter[str]()
    versions: dict[str, Counter[str]] = {}
    for one in environments:
        systems.update([one.system] if one.system else [])
        for name, version in one.versions:
            versions.setdefault(name, Counter())[version] += 1
    usual = tuple((name, _most_common(seen)) for name, seen in sorted(versions.items()))
    return Environment(_most_common(systems), "", usual)


def _most_common(counted: Counter[str]) -> str:
    return max(counted, key=lambda name: counted[name], default="")
