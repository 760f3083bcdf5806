"""Circumstances of a failed attempt, which separate several causes of one message."""

import posixpath
import re
import sys
from collections.abc import Iterator, Sequence
from itertools import pairwise

from contextgraph.model import (
    EXCEPTIONS,
    Action,
    ErrorSignature,
    RemedyKind,
    RemedyPattern,
    State,
)
from contextgraph.trace.actions.reading import new_text, read_action
from contextgraph.trace.edits import Span, numbered_lines
from contextgraph.trace.remedies.edits import FILE_TO_EDIT, UNDEFINED
from contextgraph.trace.remedies.placeholders import (
    ABSOLUTE,
    ANOTHER_PATH,
    CURRENT_FOLDER,
    MISSING_MODULE,
    NO_FILE_NAME,
    PARENT_FOLDER,
    UNDEFINED_NAME,
    WITHOUT_DOUBLED,
    Construct,
    Names,
    edited,
    is_import,
    names_in,
)

# Of so many lines behind the range of an edit the first that is not blank counts.
_LINES_BEHIND = 4
_COMPARED_BEHIND = 2
_IDENTIFIER = re.compile(r"[A-Za-z_]\w{2,}")
_PROGRAM = re.compile(r"\w[\w.-]*")
_NUMBERED = re.compile(r"^(\d+):", re.MULTILINE)
_MORE_LINES = "<more lines"
# What is written where it is expected that a command may fail.
_PROBING = re.compile(r"\b2>|\|\||\btest -|\[ -")
# What has no ending is a class or a package rather than a file: no folder has it.
_NO_FILE_SOUGHT = re.compile(r"""\s*find_file\s+["']?[^\s.*"']+["']?(?:\s|$)""")
# Of a file that is not there a listing of the current folder says no more.
_LISTS_FILE = re.compile(r"\bls(?: -\S+)* [^\s/-][^\s/]*\.\w+(?=\s|$)")


def circumstances_of(error: ErrorSignature, attempt: str, shown: str) -> tuple[str, ...]:
    """What is known of the action *attempt* that met *error* and returned *shown*, sorted.

    Statements of one kind exclude each other, so that the circumstances of two failures can be
    compared.
    """
    action = Action(tool="", text=attempt)
    reading = read_action(action, None, None)
    text = [line for line in new_text(action, reading) if line.strip()]
    names = names_in(error.error_type, error.message)
    # Which program ran the code at fault says nothing of it, unless it did not find a module.
    is_of_code = error.family in EXCEPTIONS and MISSING_MODULE not in names.roles
    known = [f"attempt by {reading.verb}"] if reading.verb and not is_of_code else []
    if UNDEFINED_NAME in names.roles and text:
        known.append(f"undefined name used as {_use(names.names[0], text)}")
    if reading.span is not None:
        known += _of_range(reading.span, text, shown)
    return tuple(sorted(known))


def _use(name: str, text: Sequence[str]) -> str:
    """What *text* uses the undefined *name* as: modules and classes are imported, values set."""
    name = name.partition(".")[0]
    match = re.search(rf"\b{re.escape(name)}\b(.?)", "\n".join(text))
    if match is None:
        return "nothing in the edit"
    if name in sys.stdlib_module_names:
        return "standard module"
    if name[:1].isupper():
        return "class"
    return {".": "object", "(": "function"}.get(match[1], "value")


def _of_range(span: Span, text: Sequence[str], shown: str) -> Iterator[str]:
    """How the *text* of an edit fits the lines that it replaces and those behind them."""
    first, last = span
    replaced = last - first + 1
    yield "one line replaced" if replaced == 1 else "several lines replaced"
    yield "text longer than the range" if len(text) > replaced else "text not longer than the range"
    old, behind = _lines(shown, first, last), _lines(shown, last + 1, last + _LINES_BEHIND)
    if not text or not old:
        return
    stripped = {line.strip() for line in text}
    opens = any(line.endswith(":") and line.strip() not in stripped for line in old)
    yield "opening of a block replaced" if opens else "no opening of a block replaced"
    shares = not _identifiers(text).isdisjoint(_identifiers(old))
    yield "text about the lines replaced" if shares else "text about other lines"
    yield f"first line indented {_compared(text[0], old[0])} than before"
    if behind:
        yield f"line behind indented {_compared(behind[0], text[-1])} than the last"


def _lines(shown: str, first: int, last: int) -> list[str]:
    """Lines *first* to *last*, without blank ones, of the last numbered view in *shown*."""
    lines = numbered_lines(shown, shown.rfind(f"\n{first}:"), first, last)
    return [line.rstrip() for line in lines if line.strip()]


def _identifiers(lines: Sequence[str]) -> set[str]:
    return set(_IDENTIFIER.findall("\n".join(lines)))


def _compared(line: str, other: str) -> str:
    more = _indentation(line) - _indentation(other)
    return "more" if more > 0 else "less" if more < 0 else "no more"


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip())


def could_apply(pattern: RemedyPattern, attempt: str, names: Names, shown: str = "") -> bool:
    """False where *pattern* changes something that the failed *attempt* does not have.

    *names* are those of its error: the paths that were not found, the name that was undefined. What
    is set or defined by the attempt, or where the file was *shown*, or imported by another name,
    needs no import; nor does an edit that lacks the name.
    """
    change = edited(pattern.target)
    if change is not None and change.name == UNDEFINED_NAME and change.construct.binds:
        name = re.escape(names.fill(UNDEFINED_NAME))
        if re.search(rf"\b(?:class|def) {name}\b", f"{attempt}\n{shown}"):
            return False
        if change.construct is Construct.IMPORT:
            is_missing = _span(attempt) is not None and re.search(rf"\b{name}\b", attempt) is None
            by_another = rf"\bimport {name}(?:\.| as )"
            is_set = re.search(rf"(?:^|[\s:]){name} *=(?!=)|{by_another}", f"{attempt}\n{shown}")
            return not is_missing and is_set is None
    if pattern.target == WITHOUT_DOUBLED:
        return any(_has_doubled_folder(name) for name in names.names)
    if pattern.target == ABSOLUTE:
        return any("/" in name.strip("/") for name in names.names or attempt.split()[1:])
    if pattern.target == ANOTHER_PATH and pattern.replaced:
        return pattern.replaced in {name.strip("/") for name in names.names}
    if pattern.target == CURRENT_FOLDER and pattern.parameters:
        return any(names_program(parameter, attempt) for parameter in pattern.parameters)
    program = replaced_program(pattern)
    return not (program and attempt) or names_program(program, attempt)


def replaced_program(pattern: RemedyPattern) -> str:
    """The program in place of which *pattern* runs something else; empty for none."""
    program = None if pattern.kind is RemedyKind.EDIT else _PROGRAM.match(pattern.replaced)
    return program[0] if program else ""


def names_program(program: str, attempt: str) -> bool:
    """Whether *attempt*, a shell line, names *program*."""
    return re.search(rf"(?<![\w-]){re.escape(program)}\b", attempt) is not None


def shows_cause(pattern: RemedyPattern, state: State) -> bool:
    """False where *pattern* presumes a cause that *state* does not show.

    Many causes end in the same message. An edit was meant for another file where this one has no
    such lines, and for more lines where its text repeats what follows its range. It lacks a name
    where no other is undefined; but an import, only where its range is right. A path that an agent
    asks about may rightly be missing, and so may a folder where there is a module of its name. A
    name without an ending is not found as a file anywhere.
    """
    attempt, shown = state.last_action, state.last_outcome
    if pattern.target in (CURRENT_FOLDER, ANOTHER_PATH) and _NO_FILE_SOUGHT.match(attempt):
        return False
    if pattern.target == CURRENT_FOLDER:
        return not (_PROBING.search(attempt) or _LISTS_FILE.search(attempt))
    if pattern.kind is RemedyKind.EDIT and UNDEFINED_NAME in pattern.target:
        is_only_one = len({*UNDEFINED.findall(shown)}) < 2
        return is_only_one and (
            is_import(pattern.target) or not _repeats_lines_behind(attempt, shown)
        )
    if pattern.target == FILE_TO_EDIT:
        return _is_beyond_file(attempt, shown)
    if pattern.target == NO_FILE_NAME:
        return posixpath.basename(state.open_file) in map(posixpath.basename, _arguments(attempt))
    if pattern.kind is RemedyKind.CREATE and pattern.target == PARENT_FOLDER:
        return not _is_module(attempt, f"{state.open_file}\n{shown}\n{state.task_description}")
    if pattern.target.startswith(_MORE_LINES):
        return _repeats_lines_behind(attempt, shown)
    return True


def _arguments(attempt: str) -> list[str]:
    return attempt.partition("\n")[0].split()[1:]


def _is_module(attempt: str, shown: str) -> bool:
    """True where a folder of the path in *attempt* has the name of a module that is *shown*."""
    folders = filter(None, map(posixpath.dirname, _arguments(attempt)))
    return any(f"{folder}.py" in shown for folder in folders)


def _is_beyond_file(attempt: str, shown: str) -> bool:
    span, numbers = _span(attempt), _NUMBERED.findall(shown)
    return span is not None and bool(numbers) and int(numbers[-1]) < span[0]


def _repeats_lines_behind(attempt: str, shown: str) -> bool:
    action = Action(tool="", text=attempt)
    reading = read_action(action, None, None)
    text = [line for line in new_text(action, reading) if line.strip()]
    if reading.span is None or not text:
        return False
    first, last = reading.span
    old, behind = _lines(shown, first, last), _lines(shown, last + 1, last + _LINES_BEHIND)
    is_indented_so = not old or _indentation(old[0]) == _indentation(text[0])
    repeated = {line.strip() for line in text}.intersection(
        line.strip() for line in behind[:_COMPARED_BEHIND]
    )
    return is_indented_so and bool(repeated)


def _span(attempt: str) -> Span | None:
    return read_action(Action(tool="", text=attempt), None, None).span


def _has_doubled_folder(path: str) -> bool:
    parts = path.strip("/").split("/")
    return any(parent == child for parent, child in pairwise(parts))
