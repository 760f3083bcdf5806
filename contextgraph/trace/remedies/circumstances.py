"""In which circumstances an attempt failed: where these differ, other remedies help."""

import re
import sys
from collections.abc import Iterator, Sequence
from itertools import pairwise

from contextgraph.model import EXCEPTIONS, Action, ErrorSignature, RemedyKind, RemedyPattern
from contextgraph.trace.actions.reading import new_text, read_action
from contextgraph.trace.edits import Span
from contextgraph.trace.remedies.placeholders import (
    ANOTHER_PATH,
    CURRENT_FOLDER,
    MISSING_MODULE,
    UNDEFINED_NAME,
    WITHOUT_DOUBLED,
    Names,
    names_in,
)

# Of so many lines behind the range of an edit the first that is not blank counts.
_LINES_BEHIND = 4
_IDENTIFIER = re.compile(r"[A-Za-z_]\w{2,}")
_PROGRAM = re.compile(r"\w[\w.-]*")


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
    found = []
    rest = shown[at + 1 :] if (at := shown.rfind(f"\n{first}:")) >= 0 else ""
    for number, line in enumerate(rest.split("\n", last - first + 1), start=first):
        if number > last or not line.startswith(f"{number}:"):
            break
        found.append(line.removeprefix(f"{number}:").rstrip())
    return [line for line in found if line]


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
    is set by the attempt, or where the file was *shown*, needs no import.
    """
    if pattern.target == f"import of {UNDEFINED_NAME}":
        name = re.escape(names.fill(UNDEFINED_NAME))
        return re.search(rf"(?:^|[\s:]){name} *=(?!=)", f"{attempt}\n{shown}") is None
    if pattern.target == WITHOUT_DOUBLED:
        return any(_has_doubled_folder(name) for name in names.names)
    if pattern.target == ANOTHER_PATH and pattern.replaced:
        return pattern.replaced in {name.strip("/") for name in names.names}
    if pattern.target == CURRENT_FOLDER and pattern.parameters:
        return any(_names_program(one, attempt) for one in pattern.parameters)
    if pattern.kind is RemedyKind.EDIT or not attempt:
        return True
    program = _PROGRAM.match(pattern.replaced)
    return program is None or _names_program(program[0], attempt)


def _names_program(program: str, attempt: str) -> bool:
    return re.search(rf"(?<![\w-]){re.escape(program)}\b", attempt) is not None


def _has_doubled_folder(path: str) -> bool:
    parts = path.strip("/").split("/")
    return any(one == other for one, other in pairwise(parts))
