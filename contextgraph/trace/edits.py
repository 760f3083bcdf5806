"""Placeholders: general terms for names and paths of one project."""

import posixpath
import re
from collections.abc import Iterable, Sequence
from enum import StrEnum
from functools import lru_cache
from itertools import chain, product

from contextgraph.lazy import TYPE_CHECKING, dataclass, regex, replace
from contextgraph.model import ErrorSignature, RemedyAction, RemedyKind, RemedyPattern
from contextgraph.text import quoted_names
from contextgraph.trace.shell import SCRIPT
from contextgraph.trace.steps import Change, Span, StepTrace, edited_file, new_lines, similarity
from contextgraph.trace.wording import identifiers, informative_lines, shortened

if TYPE_CHECKING:
    from typing import Self


IN_ENVIRONMENT = "environment variable"


class Term(StrEnum):
    """A general term in a pattern, with the advice that it comes to, where it says what to do.

    *is_open*: it states the kind of action and leaves out its object.
    """

    wording: str
    is_open: bool

    def __new__(cls, value: str, wording: str = "", is_open: bool = False) -> "Self":
        member = str.__new__(cls, value)
        member._value_ = value
        member.wording, member.is_open = wording, is_open
        return member

    # Names in messages
    UNDEFINED_NAME = "<the undefined name>"
    ATTRIBUTE = "<the attribute>"
    MISSING_MODULE = "<the missing module>"

    # Paths, and how a wrong one is put right
    CURRENT_FOLDER = "<current folder>", "leave the path out"
    ABSOLUTE = "<path from the root>", "give the path from the root, with a leading `/`"
    RELATIVE = (
        "<path without the leading slash>",
        "leave out the leading `/`: the path starts where you are",
    )
    WITHOUT_REPOSITORY = (
        "<path without the name of the repository>",
        "leave out the leading name of the repository: paths are taken from its root",
    )
    WITHOUT_DOUBLED = (
        "<path without the doubled folder>",
        "leave out the folder that the path names twice",
    )
    WITHOUT_FOLDER = (
        "<path without its leading folder>",
        "leave out the leading folder of the path",
        True,
    )
    WITH_FOLDER = "<path with its folder>", "put the folder it is in before the path", True
    ELSEWHERE = (
        "<same name elsewhere>",
        "the file is in another folder: look it up by its name",
        True,
    )
    ANOTHER_PATH = "<another path>", "", True
    ANOTHER_LINE = "<another line>", "give a line that the file has", True

    # Folders and files
    PARENT_FOLDER = "<parent folder>", "look in the folder above"
    REPOSITORY_ROOT = "<repository root>", "run it in the root of the repository"
    SUBFOLDER = "<subfolder>", "run it in the subfolder it belongs to", True
    ANOTHER_FOLDER = "<another folder>", "", True
    SOURCE_FOLDER = "<source folder>"
    FOLDER = "<folder>", "", True
    FILE = "<file>", "", True
    FILE_TO_EDIT = "<the file to edit>"
    FILE_TO_LOOK_AT = "<the file to look at>"
    FILE_AT_FAULT = "<the file at fault>"
    FILE_JUST_EDITED = "<the file just edited>"
    SCRIPT_THAT_WAS_RUN = "<the script that was run>"
    A_TEST = "<a test>"
    ANOTHER_FILE = "<another file>"
    WORKING_TREE = "<working tree>"

    # Commands and packages
    ITS_ARGUMENT = "<its argument>"
    OTHER_ARGUMENTS = "<other arguments>", "", True
    MORE_ARGUMENTS = "<more arguments>", "", True
    FEWER_ARGUMENTS = "<fewer arguments>", "", True
    UNKNOWN_COMMAND = "<unknown command>", "", True
    REQUIREMENTS = "<requirements file>"
    THE_REPOSITORY = "<the repository itself>"

    # Edits that were refused, sent again
    MORE_LINES = (
        "<more lines>",
        (
            "send the same text for a range that ends later, so that nothing of the old "
            "statement is left over"
        ),
    )
    MORE_LINES_BEFORE = (
        "<more lines before>",
        "start the range earlier, so that it replaces the line before it as well",
    )
    MORE_LINES_REPEATED = (
        "<more lines, repeated in the text>",
        (
            "take more lines into the range and repeat in the text those that are to stay: the "
            "edit cut a statement in two"
        ),
    )
    FEWER_LINES = (
        "<fewer lines>",
        "send the edit for fewer lines, so that the lines around it stay",
    )
    OTHER_LINES = (
        "<other lines>",
        (
            "look at the line numbers again (`goto`, `open`) and send the same text for the lines "
            "where the statement is now"
        ),
    )
    LINES_DELETED = "<lines deleted>", "delete the lines instead"
    NO_FILE_NAME = (
        "<no file name>",
        "leave out the file name: the edit goes to the file that is open",
    )
    INDENTED = (
        "<indentation as around>",
        "send the same text again, indented like the lines around it",
    )
    REORDERED = (
        "<another order or indentation>",
        "check the indentation of the text, then send it again",
    )
    BLOCK_LINE = (
        "<the line that opens the block>",
        (
            "send the line that opens the block (`if …:`, `def …:`, `try:`) in the same edit as "
            "its body, with the range starting there"
        ),
    )
    WITHOUT_UNDEFINED = (
        "<text without the undefined name>",
        "write the edit without the undefined name",
    )
    CORRECTED_TEXT = "<corrected text>", "", True
    OTHER_TEXT = "<other text>", "", True

    # Code
    ANOTHER_NAME = "<another name>", "", True
    ANOTHER_MODULE = "<another module>", "", True


_TERMS: dict[str, Term] = {str(member): member for member in Term}


def term_of(target: str) -> Term | None:
    """Return the term that *target* is; None for anything else."""
    return _TERMS.get(target)


def leaves_open(target: str) -> bool:
    """True for a term that states the kind of action and leaves out its object."""
    term = _TERMS.get(target)
    return target == SCRIPT or (term is not None and term.is_open)


def wording_of(target: str) -> str:
    """Return what to do where a pattern has this *target*; empty where that says nothing."""
    found = _TERMS.get(target)
    return found.wording if found else ""


_PATH = "<the path>"
_SYSTEM = frozenset({"home", "tmp", "usr", "root", "opt", "var", "etc", "mnt"})
_ROLES = {
    "F821": (Term.UNDEFINED_NAME,),
    "F822": (Term.UNDEFINED_NAME,),
    "NameError": (Term.UNDEFINED_NAME,),
    "UnboundLocalError": ("<the variable>",),
    "ImportError": ("<the name>", "<the package>"),
    "AttributeError": ("<the class>", Term.ATTRIBUTE),
    "KeyError": ("<the key>",),
    "TypeError": ("<the argument>",),
    "FileNotFoundError": (_PATH,),
}
_MISSING_MODULE = "No module named"
_PATH_ERRORS = regex(r"not found$|No such file|can't open")
GENERIC_ROLES = ("<the name>", "<the other name>", "<the third name>")


class Construct(StrEnum):
    """Targets of an edit; CODE: no name of the error."""

    IMPORT = "import"
    DEFINITION = "definition"
    ASSIGNMENT = "assignment"
    USE = "use"
    CODE = "code"

    @property
    def binds(self) -> bool:
        """True for what gives a name its value."""
        return self in (Construct.IMPORT, Construct.DEFINITION, Construct.ASSIGNMENT)


class ImportPath(StrEnum):
    """The path by which a name is now imported; ANY: the path did not change."""

    ANY = ""
    RELATIVE = "by a relative path"
    ABSOLUTE = "by an absolute path"
    SUBMODULE = "from <a module of the package>"
    PARENT = "from the package above"
    OTHER = "from another module"


@dataclass(frozen=True, slots=True)
class Edited:
    """A *construct* of the *name*, or in the file, that has this placeholder.

    *target* stands for it in a `RemedyPattern`; `edited` is the inverse.
    """

    construct: Construct
    name: str
    path: ImportPath = ImportPath.ANY

    @property
    def target(self) -> str:
        preposition = "in" if self.construct is Construct.CODE else "of"
        return f"{self.construct} {preposition} {self.name} {self.path}".rstrip()


_NAMES = {*chain.from_iterable(_ROLES.values()), Term.MISSING_MODULE, *GENERIC_ROLES}
_OF_NAMES = (Construct.DEFINITION, Construct.ASSIGNMENT, Construct.USE)
_FILES = (
    Term.SCRIPT_THAT_WAS_RUN,
    Term.FILE_AT_FAULT,
    Term.A_TEST,
    Term.ANOTHER_FILE,
)
_EDITED = {
    edit.target: edit
    for edit in (
        *(Edited(construct, name) for construct, name in product(_OF_NAMES, _NAMES)),
        *(Edited(Construct.IMPORT, name, path) for name, path in product(_NAMES, ImportPath)),
        *(Edited(Construct.CODE, file) for file in _FILES),
    )
}


def edited(target: str) -> Edited | None:
    """Return what a pattern with this *target* edits; None where it names no construct."""
    return _EDITED.get(target)


def is_import(target: str) -> bool:
    """True for the *target* of a pattern that edits an import."""
    edit = edited(target)
    return edit is not None and edit.construct is Construct.IMPORT


@dataclass(frozen=True, slots=True)
class Names:
    """The names that an error message quotes, and the placeholder of each."""

    names: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()

    def mask(self, text: str) -> str:
        """*text* with the names replaced by their placeholders, longest names first."""
        for name, role in sorted(self._pairs(), key=lambda pair: -len(pair[0])):
            text = re.sub(rf"(?<![\w<]){re.escape(name)}(?![\w>])", role, text)
        return text

    def fill(self, text: str) -> str:
        """*text* with the placeholders replaced by the names."""
        for name, role in self._pairs():
            text = text.replace(role, name)
        return text

    def role_of(self, name: str) -> str:
        """The placeholder of *name*, empty where the message does not quote it."""
        return next((role for known, role in self._pairs() if known == name), "")

    def _pairs(self) -> list[tuple[str, str]]:
        return list(zip(self.names, self.roles, strict=True))


@lru_cache(4_096)
def names_in(error_type: str, message: str) -> Names:
    """The names in a *message* of an error of this type."""
    names = quoted_names(message)[: len(GENERIC_ROLES)]
    kind = error_type.split(maxsplit=1)[0] if error_type else ""
    known = (Term.MISSING_MODULE,) if message.startswith(_MISSING_MODULE) else _ROLES.get(kind, ())
    if not known and _PATH_ERRORS.search(error_type):
        known = (_PATH,)
    return Names(names, (*known, *GENERIC_ROLES[len(known) :])[: len(names)])


def path_placeholder(wrong: str, right: str, repo_name: str) -> str:
    """How the path *right* differs from the path *wrong* that it replaced."""
    old, new = wrong.strip("/"), right.strip("/")
    if right in (".", "./", "~"):
        return Term.CURRENT_FOLDER
    if right in ("/", "..") or (new and old.startswith(f"{new}/")):
        return Term.PARENT_FOLDER
    if _without_doubled(old) == new:
        return Term.WITHOUT_DOUBLED
    if old == new and wrong.startswith("/"):
        return Term.RELATIVE
    # Of a name alone the folder was not known, which is more than a leading slash.
    if old == new or (right.startswith("/") and "/" in old and new.endswith(f"/{old}")):
        return Term.ABSOLUTE
    if new and old.endswith(f"/{new}"):
        head = old.removesuffix(new).strip("/")
        return Term.WITHOUT_REPOSITORY if repo_name and head == repo_name else Term.WITHOUT_FOLDER
    if old and new.endswith(f"/{old}"):
        return Term.WITH_FOLDER
    same_name = posixpath.basename(old) == posixpath.basename(new)
    return Term.ELSEWHERE if same_name else Term.ANOTHER_PATH


def folder_placeholder(was: str, now: str) -> str:
    """Where the folder *now* lies, in which a command ran that had failed in *was*."""
    if now.count("/") == 1 < len(now) and now[1:] not in _SYSTEM:
        return Term.REPOSITORY_ROOT
    if was.startswith(f"{now.rstrip('/')}/") or now == "..":
        return Term.PARENT_FOLDER
    return Term.SUBFOLDER if now.startswith(f"{was}/") else Term.ANOTHER_FOLDER


def _without_doubled(path: str) -> str:
    """*path* without the first folder that is named twice in a row; empty where none is."""
    parts = path.split("/")
    for index in range(1, len(parts)):
        if parts[index] and parts[index] == parts[index - 1]:
            return "/".join(parts[:index] + parts[index + 1 :])
    return ""


UNDEFINED = regex(r"undefined name ['\"`]?([A-Za-z_][\w.]*)")
_WORD = regex(r"\w+")
# What stands before a name that a line makes known: imports, definitions, loops, parameters.
_INTRODUCING = regex(
    r"\s*(?:(?:from\s*\S+\s+)?import\b|(?:async\s+)?(?:def|class)\s+\Z"
    r"|(?:async\s+)?def\s+\w+\(|(?:with|for|except)\b)"
)
_ASSIGNED = regex(r"\s*(?::[^=]*)?=[^=]")
_IMPORT = regex(r"\s*(?:from\s+(?P<source>\S+)\s+)?import\s+(?P<names>.+)")
_DEFINITION = regex(r"\s*(?:async\s+)?(?:def|class)\b")
_CONFIGURING = regex(
    r"\b(settings\.configure|django\.setup|sys\.path\.(?:insert|append)|matplotlib\.use"
    r"|os\.environ(?:\.setdefault)?[\[(]\s*['\"]\w+['\"]|set_event_loop_policy|basicConfig)"
)
_QUOTED = regex(r"['\"](\w+)['\"]")
_SPACE = regex(r"\s+")
_TEST_FILE = regex(r"(?:^|/)(?:test_[^/]*|[^/]*_test\.\w+|tests?/.*)$")
_LINE_READ = 500
_MAX_IDENTIFIERS = 24

IMPORTING = frozenset({"ImportError", "ModuleNotFoundError"})

Parameters = list[tuple[str, str]]


def refused_edit(
    failed: StepTrace, accepted: StepTrace, before: Sequence[StepTrace]
) -> tuple[RemedyAction, ...]:
    """Return the difference between two edits, given those accepted in between."""
    return (
        _definition(failed, accepted, before)
        or _placing(failed, accepted)
        or (_other_text(failed, accepted),)
    )


def code_change(change: Change, error: ErrorSignature, script: Sequence[str]) -> RemedyAction:
    """The edit that *change* is, made about *error* of a command that runs the *script* files."""
    names = names_in(error.error_type, error.message)
    added, removed = identifiers(change.added), identifiers(change.removed)
    adds, drops = sorted(added - removed), sorted(removed - added)
    parameters: Parameters = [("file", change.file)] if change.file else []
    parameters += [("adds", name) for name in adds[:_MAX_IDENTIFIERS]]
    parameters += [("drops", name) for name in drops[:_MAX_IDENTIFIERS]]
    pattern = (
        _configuring(change, error)
        or _named_change(change, names)
        or _pattern(Construct.CODE, _place(change.file, error, script))
    )
    return RemedyAction(
        pattern.kind,
        "\n".join(shortened(change.added, error.keywords)),
        pattern,
        "\n".join(shortened(change.removed, error.keywords)),
        tuple(parameters),
    )


def _pattern(construct: Construct, name: str) -> RemedyPattern:
    return RemedyPattern(RemedyKind.EDIT, Edited(construct, name).target)


def _definition(
    failed: StepTrace, accepted: StepTrace, before: Sequence[StepTrace]
) -> tuple[RemedyAction, ...]:
    """How a name that was undefined got its definition; empty where that was not the trouble."""
    match = UNDEFINED.search(failed.error.message) if failed.error else None
    if match is None:
        return ()
    name = match[1].partition(".")[0]
    for step in before:
        if line := _defining(new_lines(step), name):
            return (_definition_by(line, name, edited_file(step), "before"),)
    known = {line.strip() for line in new_lines(failed)}
    added = [line for line in new_lines(accepted) if line.strip() not in known]
    if line := _defining(added, name):
        return (_definition_by(line, name, edited_file(accepted), "same edit"),)
    if _is_used(match[1], failed) and not _is_used(match[1], accepted):
        return (_sent_again(failed, accepted, Term.WITHOUT_UNDEFINED, ("name", match[1])),)
    return ()


def _definition_by(line: str, name: str, file: str, placing: str) -> RemedyAction:
    construct = _construct(line)
    if imported := _IMPORT.match(line):
        construct, line = Construct.IMPORT, _only(imported, name)
    target = Edited(construct, Term.UNDEFINED_NAME).target
    pattern = RemedyPattern(RemedyKind.EDIT, target, parameters=(placing,))
    parameters = (("file", file), ("adds", name), ("placing", placing))
    return RemedyAction(RemedyKind.EDIT, line.strip(), pattern, parameters=parameters)


def _construct(line: str) -> Construct:
    return Construct.DEFINITION if _DEFINITION.match(line) else Construct.ASSIGNMENT


def _only(imported: re.Match[str], name: str) -> str:
    """The import of *name*, without what else its line brings in."""
    source, named = imported["source"], _WORD.findall(imported["names"])
    return f"from {source} import {name}" if source and name in named else imported.group()


def _defining(lines: Sequence[str], name: str) -> str:
    """The first of *lines* that makes *name* known; empty where none does."""
    return next((line for line in lines if name in line and _defines(line[:_LINE_READ], name)), "")


def _defines(line: str, name: str) -> bool:
    for word in _WORD.finditer(line):
        if word.group() == name:
            start, end = word.span()
            if _INTRODUCING.match(line, 0, start):
                return True
            if _ASSIGNED.match(line, end) and not line[:start].strip():
                return True
    return False


def _is_used(name: str, step: StepTrace) -> bool:
    lines = [line[:_LINE_READ] for line in new_lines(step) if name in line]
    return bool(lines) and re.search(rf"\b{re.escape(name)}\b", "\n".join(lines)) is not None


def _placing(failed: StepTrace, accepted: StepTrace) -> tuple[RemedyAction, ...]:
    """How the same text was placed otherwise; empty where the text itself was changed."""
    old, new = _text_of(failed), _text_of(accepted)
    if [line.strip() for line in old] != [line.strip() for line in new]:
        return ()
    file = edited_file(accepted)
    if edited_file(failed) != file:
        opening = RemedyPattern(RemedyKind.OPEN, Term.FILE_TO_EDIT)
        return (RemedyAction(RemedyKind.OPEN, file, opening, edited_file(failed)),)
    was_head, head = (step.step.action.text.split("\n", 1)[0] for step in (failed, accepted))
    if was_head.split() != head.split() and file in was_head:
        pattern = RemedyPattern(RemedyKind.RESEND, Term.NO_FILE_NAME)
        return (RemedyAction(RemedyKind.RESEND, head, pattern, was_head, (("file", file),)),)
    was, now = failed.reading.span, accepted.reading.span
    if was is not None and now is not None and was != now:
        return (_sent_again(failed, accepted, _range_placeholder(was, now)),)
    if old != new:
        pairs = zip(old, new, strict=True)
        line = next(after for before, after in pairs if before != after)
        indent = f"{len(line) - len(line.lstrip())} spaces"
        again = _sent_again(failed, accepted, Term.INDENTED, ("with", line))
        return (replace(again, target=indent),)
    return (retry(head),)


def retry(what: str) -> RemedyAction:
    """The repetition of *what* had failed."""
    return RemedyAction(RemedyKind.RETRY, what, RemedyPattern(RemedyKind.RETRY))


def _text_of(step: StepTrace) -> list[str]:
    return [line.rstrip() for line in new_lines(step) if line.strip()]


def _span(span: Span) -> str:
    return f"{span[0]}:{span[1]}"


def _range_placeholder(was: Span, now: Span) -> Term:
    if now[0] <= was[0] and was[1] < now[1]:
        return Term.MORE_LINES
    if now[0] < was[0] and was[1] == now[1]:
        return Term.MORE_LINES_BEFORE
    if was[0] <= now[0] and now[1] <= was[1]:
        return Term.FEWER_LINES
    return Term.OTHER_LINES


def _other_text(failed: StepTrace, accepted: StepTrace) -> RemedyAction:
    """Return the difference between the refused and the accepted text."""
    old, new = _text_of(failed), _text_of(accepted)
    come, gone = _differences(old, new)
    was, now = failed.reading.span, accepted.reading.span
    if not new:
        return _sent_again(failed, accepted, Term.LINES_DELETED)
    if similarity(old, new) == 0.0:
        return _sent_again(failed, accepted, Term.OTHER_TEXT)
    placeholder = _text_placeholder(come, gone, was or (0, 0), now or (0, 0))
    return _sent_again(failed, accepted, placeholder)


def _text_placeholder(come: Sequence[str], gone: Sequence[str], was: Span, now: Span) -> Term:
    if come and not gone and now[1] > was[1]:
        return Term.MORE_LINES_REPEATED
    if come and come[0].rstrip().endswith(":") and (now[0] < was[0] or not gone):
        return Term.BLOCK_LINE
    if gone and not come and now[1] - now[0] < was[1] - was[0]:
        return Term.FEWER_LINES
    is_same = _SPACE.sub("", "".join(gone)) == _SPACE.sub("", "".join(come))
    return Term.REORDERED if is_same else Term.CORRECTED_TEXT


def _sent_again(
    failed: StepTrace, accepted: StepTrace, term: Term, *more: tuple[str, str]
) -> RemedyAction:
    """The edit that was refused, sent again with what *term* says, for other lines or text."""
    come, gone = _differences(_text_of(failed), _text_of(accepted))
    named = failed.error.keywords if failed.error else ()
    parameters: Parameters = [*more, ("file", edited_file(accepted))]
    parameters += [("with", line) for line in informative_lines(come, named)]
    parameters += [("without", line) for line in informative_lines(gone, named)]
    pattern = RemedyPattern(RemedyKind.RESEND, term)
    was, now = failed.reading.span, accepted.reading.span
    if was is not None and now is not None and was != now:
        parameters += [("lines", _span(now)), ("replaced_lines", _span(was))]
        return RemedyAction(RemedyKind.RESEND, _span(now), pattern, _span(was), tuple(parameters))
    return RemedyAction(RemedyKind.RESEND, "", pattern, parameters=tuple(parameters))


def _differences(old: Sequence[str], new: Sequence[str]) -> tuple[list[str], list[str]]:
    """The lines that came, and those that went."""
    both = {line.strip() for line in old} & {line.strip() for line in new}
    come = [line for line in new if line.strip() not in both]
    return come, [line for line in old if line.strip() not in both]


def _configuring(change: Change, error: ErrorSignature) -> RemedyPattern | None:
    """The setting that *change* makes, None where it makes none that bears on *error*."""
    for line in change.added:
        if match := _CONFIGURING.search(line[:_LINE_READ]):
            # Scripts begin with it: it clears nothing but import errors.
            if match[1].startswith("sys.path") and error.error_type not in IMPORTING:
                continue
            variable = _QUOTED.search(match[1]) if "environ" in match[1] else None
            if variable:
                return RemedyPattern(RemedyKind.CONFIGURE, variable[1], "", (IN_ENVIRONMENT,))
            return RemedyPattern(RemedyKind.CONFIGURE, match[1])
    return None


def _named_change(change: Change, names: Names) -> RemedyPattern | None:
    """Return what *change* does with a name that the error quotes; None without one."""
    added, removed = _words_in(change.added), _words_in(change.removed)
    # What a module or class lacks says more than its own name does.
    pairs = zip(names.names, names.roles, strict=True)
    for quoted, role in sorted(pairs, key=lambda pair: pair[1] != Term.ATTRIBUTE):
        last = quoted.rpartition("/")[2].rpartition(".")[2] or quoted
        name = quoted if role in GENERIC_ROLES else last
        if name not in added and name not in removed:
            continue
        imported = _import_change(change, quoted, name, role)
        if imported is not None:
            return imported
        if name not in added:
            gone = Term.ANOTHER_NAME if change.added else ""
            return RemedyPattern(RemedyKind.EDIT, gone, role)
        if line := _defining(change.added, name):
            return _pattern(_construct(line), role)
        return _pattern(Construct.USE, role)
    return None


def _words_in(lines: Iterable[str]) -> set[str]:
    return {word for line in lines for word in _WORD.findall(line[:_LINE_READ])}


def _import_change(change: Change, quoted: str, name: str, role: str) -> RemedyPattern | None:
    """How the import of a name was changed; None where no import of it was."""
    added, removed = (_imports_of(lines, quoted, name) for lines in (change.added, change.removed))
    if not added and not removed:
        return None
    if not added:
        instead = Term.ANOTHER_MODULE if _imports_at_all(change.added) else ""
        return RemedyPattern(RemedyKind.EDIT, instead, Edited(Construct.IMPORT, role).target)
    if not removed:
        return _pattern(Construct.IMPORT, role)
    now = Edited(Construct.IMPORT, role, _import_path(removed[0], added[0]))
    return RemedyPattern(RemedyKind.EDIT, now.target, Edited(Construct.IMPORT, role).target)


def _imports_of(lines: Iterable[str], quoted: str, name: str) -> list[str]:
    """The modules from which *lines* import a name, or by which they name it."""
    modules = []
    for line in lines:
        match = _IMPORT.match(line[:_LINE_READ])
        if match and (name in _WORD.findall(match["names"]) or quoted in line.split()):
            modules.append(match["source"] or match["names"].split()[0].strip(","))
    return modules


def _imports_at_all(lines: Iterable[str]) -> bool:
    return any(_IMPORT.match(line[:_LINE_READ]) for line in lines)


def _import_path(was: str, now: str) -> ImportPath:
    if now.startswith(".") != was.startswith("."):
        return ImportPath.RELATIVE if now.startswith(".") else ImportPath.ABSOLUTE
    if now.startswith(f"{was}."):
        return ImportPath.SUBMODULE
    return ImportPath.PARENT if was.startswith(f"{now}.") else ImportPath.OTHER


def _place(file: str, error: ErrorSignature, script: Sequence[str]) -> str:
    """Where a change lies that touches no name of the error."""
    location = posixpath.basename((error.location or "").rpartition(":")[0])
    name = posixpath.basename(file)
    if name and name in {posixpath.basename(target) for target in script}:
        return Term.SCRIPT_THAT_WAS_RUN
    if name and name == location:
        return Term.FILE_AT_FAULT
    return Term.A_TEST if _TEST_FILE.search(file) else Term.ANOTHER_FILE
