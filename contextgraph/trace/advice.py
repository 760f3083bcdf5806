"""Advice: the general terms of remedies, their wording, and the key by which they are the same."""

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import lru_cache, partial
from itertools import chain, product
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from msgspec import Struct

from contextgraph.model import TESTS, Cause, ErrorKind, RemedyAction, RemedyKind, RemedyPattern
from contextgraph.model.values import replace
from contextgraph.text import digest, quoted_names, regex
from contextgraph.text.strings import ELLIPSIS, code, is_cut, joined_lines, shortened
from contextgraph.trace.actions import command_use
from contextgraph.trace.shell import SCRIPT
from contextgraph.trace.steps import Change

if TYPE_CHECKING:
    from typing import Self


ANY_VERSION = "any version"
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
    KEPT_FOLDER = "<path from the folder of the shell>", "leave out the folder that the shell is in"
    AFTER_CLONE = "<path in the checkout, once cloned>", "clone the project first"
    NO_SUCH_FOLDER = "<folder that is not there>", "see with `ls` which folders there are"
    WRITTEN_SCRIPT = "<script just written>", "run a script in the command that writes it"
    PART_OF_FILE = "<a part of the file>", "read the file in parts"
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
    FILE_TO_EDIT = (
        "<the file to edit>",
        "another file was open: open the file you mean, then send the same edit again",
    )
    FILE_TO_LOOK_AT = (
        "<the file to look at>",
        "open the file you mean first: the command goes by the file that is open",
    )
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
    REQUIREMENTS = "<requirements file>", "install the requirements that the repository lists"
    THE_REPOSITORY = (
        "<the repository itself>",
        "install the repository itself (`pip install -e .`)",
    )

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


class Edited(Struct, frozen=True):
    """A *construct* of the *name*, or in the file, that has this placeholder.

    *target* stands for it in a `RemedyPattern`; `EDITED` is the inverse.
    """

    construct: Construct
    name: str
    path: ImportPath = ImportPath.ANY

    @property
    def target(self) -> str:
        """The construct and the file, as a remedy names them."""
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
# Targets of patterns that name a construct, and what they edit.
EDITED: Mapping[str, Edited] = {
    edit.target: edit
    for edit in (
        *(Edited(construct, name) for construct, name in product(_OF_NAMES, _NAMES)),
        *(Edited(Construct.IMPORT, name, path) for name, path in product(_NAMES, ImportPath)),
        *(Edited(Construct.CODE, file) for file in _FILES),
    )
}


IMPORTS = frozenset(target for target, edit in EDITED.items() if edit.construct is Construct.IMPORT)


class Names(Struct, frozen=True):
    """The names that an error message quotes, and the placeholder of each."""

    names: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()

    def mask(self, text: str) -> str:
        """Return *text* with the names replaced by their placeholders, longest names first."""
        pairs = zip(self.names, self.roles, strict=True)
        for name, role in sorted(pairs, key=lambda pair: -len(pair[0])):
            text = re.sub(rf"(?<![\w<]){re.escape(name)}(?![\w>])", role, text)
        return text

    def fill(self, text: str) -> str:
        """Return *text* with the placeholders replaced by the names."""
        for name, role in zip(self.names, self.roles, strict=True):
            text = text.replace(role, name)
        return text

    def role_of(self, name: str) -> str:
        """Return the placeholder of *name*, empty where the message does not quote it."""
        pairs = zip(self.names, self.roles, strict=True)
        return next((role for known, role in pairs if known == name), "")


@lru_cache(4_096)
def names_in(error_type: str, message: str) -> Names:
    """Return the names in a *message* of an error of this type."""
    names = quoted_names(message)[: len(GENERIC_ROLES)]
    kind = error_type.split(maxsplit=1)[0] if error_type else ""
    known = (Term.MISSING_MODULE,) if message.startswith(_MISSING_MODULE) else _ROLES.get(kind, ())
    if not known and _PATH_ERRORS.search(error_type):
        known = (_PATH,)
    return Names(names, (*known, *GENERIC_ROLES[len(known) :])[: len(names)])


ACTION_CHARS = 200
# A parameter of an action that replaces what the agent typed, and not what another run did.
INSTEAD = ("instead", "")
_ACTIONS = 6
_REPEAT = "repeat it once: it passed the next time"
_VAGUE = (SCRIPT, Term.UNKNOWN_COMMAND)
_INTERPRETER = regex(r"python[\d.]*")


def describe_remedy(actions: Sequence[RemedyAction], *, general: bool = False) -> str:
    """Word *actions* as advice.

    *general* leaves out all that is of one project; empty where nothing is left to say then.
    """
    if general:
        return _joined([describe_pattern(action.pattern) for action in actions])
    # The command of another action is not repeated as an action of its own.
    examples = {command for action in actions for command in action.values_of("command")}
    said = [
        action
        for action in actions
        if not (
            action.kind is RemedyKind.OTHER
            and action.target in examples
            and any(other.kind is RemedyKind.SET_ENV for other in actions)
        )
    ]
    return _joined(
        [
            describe_pattern(one.pattern) if one.is_general else _CONCRETE[one.kind](one)
            for one in said
        ]
    )


def describe_pattern(pattern: RemedyPattern) -> str:
    """Word *pattern* in general terms; empty where nothing is specific."""
    return _GENERAL[pattern.kind](pattern)


def describe_change(change: Change) -> str:
    """Word what *change* does to a file, in a clause."""
    return _edited(shortened(change.added), shortened(change.removed), change.file, past=True)


def command_lines(actions: Sequence[RemedyAction]) -> tuple[str, ...]:
    """Return the last six of *actions*, each in one line of at most 200 characters.

    A command stands as it was typed; an edit with its file and the text that it puts in.
    """
    lines = (joined_lines(_command_line(action), ACTION_CHARS) for action in actions)
    return tuple(dict.fromkeys(line for line in lines if line))[-_ACTIONS:]


def is_retry(actions: Sequence[RemedyAction]) -> bool:
    """Return True if all that was done was to repeat what had failed."""
    return all(action.kind is RemedyKind.RETRY for action in actions)


def _command_line(action: RemedyAction) -> str:
    if action.is_general:
        return describe_pattern(action.pattern)
    if commands := action.values_of("command"):
        return commands[0]
    if action.kind in (RemedyKind.EDIT, RemedyKind.CONFIGURE, RemedyKind.RESEND):
        file = next(iter(action.values_of("file")), "")
        lines = next(iter(action.values_of("lines")), "")
        text = action.target if action.kind is not RemedyKind.RESEND else ""
        text = text or "\n".join(action.values_of("with")) or "(lines deleted)"
        return f"edit {' '.join(part for part in (file, lines) if part)}: {text}"
    return f"open {action.target}" if action.pattern.target == Term.FILE_TO_EDIT else action.target


def _instead(action: RemedyAction) -> str:
    """Word what *action* replaces, in a clause: what was typed, or nothing."""
    if INSTEAD in action.parameters:
        return " instead"
    return f" instead of {code(action.replaced)}" if action.replaced else ""


# How much of its output another task looked at.
_SHOWN_OUTPUT = regex(r"\s*+(?:2>&1\s*+)?(?>(?:\|[^|&;]++)*)")


def without_tests(action: RemedyAction) -> RemedyAction:
    """Return *action*, where another program ran tests, with a placeholder for these.

    They were those of another task, as is how much of the output it looked at. Where the choice of
    tests is all that differs, *action* itself.
    """
    if action.kind is not RemedyKind.USE or action.is_general:
        return action
    target, replaced = map(_test_form, (action.target, action.replaced))
    return action if target == replaced else replace(action, target=target, replaced=replaced)


def _test_form(line: str) -> str:
    use = command_use(line)
    if use is None or not use.form.endswith(TESTS):
        return line
    before, _, after = line.partition(use.text)
    return f"{before}{use.form}{'' if _SHOWN_OUTPUT.fullmatch(after) else after}"


def _run(action: RemedyAction) -> str:
    return f"run {code(action.target)}{_instead(action) or ' first'}"


def _used(action: RemedyAction) -> str:
    action = without_tests(action)
    return f"use {code(action.target)}{_instead(action)}"


def _in_folder(action: RemedyAction) -> str:
    if action.target.startswith("cd "):
        return _used(action)
    return f"run it in {code(action.target)}{_instead(action)}"


def _with_command(verb: str, action: RemedyAction) -> str:
    command = next(iter(action.values_of("command")), "")
    # The target says enough where the command does not fit whole.
    example = f" ({code(command)})" if command and not is_cut(command) else ""
    return f"{verb} {code(action.target)}{example}"


def _installed(action: RemedyAction) -> str:
    command = next(iter(action.values_of("command")), action.target)
    return f"run {code(command)}{_instead(action)}"


def _opened(action: RemedyAction) -> str:
    if action.pattern.target == Term.FILE_TO_EDIT:
        return Term.FILE_TO_EDIT.wording.replace("the file you mean", code(action.target))
    if action.pattern.target == Term.FILE_TO_LOOK_AT:
        then = next(iter(action.values_of("command")), "")
        return f"open {code(action.target)} first, then use {code(then)}"
    return _used(action)


def _searched(action: RemedyAction) -> str:
    return _used(action) if action.replaced else f"look it up with {code(action.target)}"


def _edit(action: RemedyAction) -> str:
    file = next(iter(action.values_of("file")), "")
    if placing := action.values_of("placing"):
        line, name = code(action.target), next(iter(action.values_of("adds")), "")
        undefined = f"{code(name)} is undefined: "
        if placing == ("before",):
            return f"{undefined}add {line} to {_file(file)} first, then send the edit again"
        return f"{undefined}put {line} into the edit itself"
    return _edited(action.target.split("\n"), action.replaced.split("\n"), file)


def _edited(added: Sequence[str], removed: Sequence[str], file: str, *, past: bool = False) -> str:
    """An edit in a clause; in the past tense if *past*, else as advice."""
    new, old = _code_lines(added), _code_lines(removed)
    where = f" in {_file(file)}" if file else ""
    if new and old:
        return f"{'changed' if past else 'change'} {old} to {new}{where}"
    if new:
        return f"{'added' if past else 'add'} {new}{where}"
    return f"{'removed' if past else 'remove'} {old}{where}" if old else ""


def _code_lines(lines: Sequence[str]) -> str:
    named = ", ".join(code(line) for line in lines if line not in ("", ELLIPSIS))
    return f"{named} {ELLIPSIS}" if ELLIPSIS in lines else named


def _file(path: str) -> str:
    return posixpath.normpath(path) if path else "the file"


def _resent(action: RemedyAction) -> str:
    pattern = action.pattern.target
    with_lines = ", ".join(map(code, action.values_of("with")))
    without = ", ".join(map(code, action.values_of("without")))
    lines = f"for lines {action.target} instead of {action.replaced}"
    if pattern == Term.NO_FILE_NAME:
        return (
            f"leave out the file, which has to be open: {code(action.target)} "
            f"instead of {code(action.replaced)}"
        )
    if pattern == Term.INDENTED:
        return f"indent the same text by {action.target}: {with_lines}"
    if not with_lines and not without:
        text = _SENT_AGAIN.get(pattern, f"send the same text {lines}")
        return text + _PURPOSES.get(pattern, "")
    if pattern == Term.OTHER_TEXT and with_lines:
        text = f"write {with_lines} there instead"
    else:
        parts = [f"with {with_lines}"] if with_lines else []
        parts += [f"without {without}"] if without else []
        undefined = "".join(f"do without {code(name)}: " for name in action.values_of("name"))
        text = f"{undefined}send the text again {' and '.join(parts)}"
    return f"{text}, {lines}" if action.replaced else text


_SENT_AGAIN: Mapping[str, str] = {
    Term.LINES_DELETED: "delete the lines instead",
    Term.REORDERED: "send the text again in another order or indentation",
}
_PURPOSES: Mapping[str, str] = {
    Term.MORE_LINES: ", so that nothing of the old statement is left over",
    Term.FEWER_LINES: ", so that the lines around it stay",
}


_CONCRETE: Mapping[RemedyKind, Callable[[RemedyAction], str]] = {
    RemedyKind.RUN: _run,
    RemedyKind.USE: _used,
    RemedyKind.CWD: _in_folder,
    RemedyKind.SET_ENV: partial(_with_command, "set"),
    RemedyKind.INSTALL: _installed,
    RemedyKind.CREATE: partial(_with_command, "create"),
    RemedyKind.OPEN: _opened,
    RemedyKind.SEARCH: _searched,
    RemedyKind.EDIT: _edit,
    RemedyKind.RESEND: _resent,
    RemedyKind.CONFIGURE: _edit,
    RemedyKind.REVERT: partial(_with_command, "undo the changes of"),
    RemedyKind.DELETE: partial(_with_command, "delete"),
    RemedyKind.RETRY: lambda _: _REPEAT,
    RemedyKind.OTHER: lambda action: f"run {code(action.target)}",
}

_WITHOUT_PATH = {
    "ls": ": list where you are first (`ls`), and go on from what is there",
    "search_dir": ": `search_dir <text>` searches from where you are",
    "search_file": ": `search_file <text>` searches the file that is open",
    "find_file": ": `find_file <name>` looks from where you are",
}
_IMPORTED = {ImportPath.SUBMODULE: "from the module of the package that defines it"}


def _run_pattern(pattern: RemedyPattern) -> str:
    program = pattern.target
    if term_of(program) or SCRIPT in program:
        return wording_of(program)
    flags = [parameter for parameter in pattern.parameters if parameter.startswith("-")]
    parts = [f"add `{' '.join(flags)}` to `{program}`"] if flags else []
    parts += [f"run `{program}` without `{pattern.replaced}`"] if pattern.replaced else []
    return " and ".join(parts)


def _use_pattern(pattern: RemedyPattern) -> str:
    if pattern.replaced.endswith(Term.ITS_ARGUMENT):
        return f"write `{pattern.target}` and its argument apart: `{pattern.target} …`"
    both = (pattern.target, pattern.replaced)
    if any(vague in program for program in both for vague in _VAGUE) or len({*both}) == 1:
        return ""
    # An interpreter alone, instead of another program, leaves out what it runs.
    if len({bool(_INTERPRETER.fullmatch(program)) for program in both}) > 1:
        return ""
    return f"use `{pattern.target}` instead of `{pattern.replaced}`"


def _install_pattern(pattern: RemedyPattern) -> str:
    if words := wording_of(pattern.target):
        return words
    if ANY_VERSION in pattern.parameters:
        return f"install `{pattern.target}` without asking for that version"
    if pattern.target == Term.MISSING_MODULE and not pattern.parameters:
        return f"install the package that provides `{pattern.target}`; its name may differ"
    version, program = (*pattern.parameters, "", "")[:2]
    return f"install `{pattern.target}{version}`" + (f" with {program}" if program else "")


_CREATED: Mapping[str, str] = {
    Term.PARENT_FOLDER: "create the missing folder first (`mkdir -p`)",
    Term.FOLDER: "create the folder first (`mkdir -p`)",
    Term.FILE: "",
}


def _create_pattern(pattern: RemedyPattern) -> str:
    return _CREATED.get(pattern.target, f"create `{pattern.target}`")


def _folder_pattern(pattern: RemedyPattern) -> str:
    # The folder above is looked in by a path, and a command is run in it.
    is_above = pattern.target == Term.PARENT_FOLDER
    return "run it in the folder above" if is_above else wording_of(pattern.target)


def _look_pattern(pattern: RemedyPattern) -> str:
    if pattern.target == Term.CURRENT_FOLDER:
        return wording_of(pattern.target) + _WITHOUT_PATH.get("".join(pattern.parameters), "")
    if words := wording_of(pattern.target):
        return words
    if pattern.target == Term.ANOTHER_PATH:
        missing = "there is no `src`: take the folder of the package itself (`ls` shows it)"
        return missing if pattern.replaced == "src" else ""
    if pattern.parameters or pattern.replaced or pattern.kind is RemedyKind.OPEN:
        return _run_pattern(pattern)
    return f"look it up with `{pattern.target}`"


def _edit_pattern(pattern: RemedyPattern) -> str:
    added = EDITED.get(pattern.target)
    if pattern.replaced:
        return _replacement_pattern(pattern, added, EDITED.get(pattern.replaced))
    if added is None or added.construct in (Construct.CODE, Construct.USE):
        return ""
    is_assignment = added.construct is Construct.ASSIGNMENT
    text = f"the {added.construct} of {_quoted(added.name)}"
    if not pattern.parameters:
        return f"add {text}"
    text = f"the line that sets {_quoted(added.name)}" if is_assignment else text
    if pattern.parameters == ("before",):
        return f"add {text} first, then send the edit again"
    return f"put {text} into the same edit as its first use"


def _replacement_pattern(
    pattern: RemedyPattern, added: Edited | None, removed: Edited | None
) -> str:
    """An edit that replaces a name, or the import of one."""
    name = _quoted(removed.name if removed else pattern.replaced)
    if not pattern.target:
        return f"remove the {removed.construct} of {name}" if removed else f"do without {name}"
    if pattern.target == Term.ANOTHER_MODULE:
        return f"import another module instead of {name}"
    if pattern.target == Term.ANOTHER_NAME:
        is_vague = pattern.replaced in GENERIC_ROLES
        return "" if is_vague else f"use another name instead of {name}"
    if added is None or added.construct is not Construct.IMPORT:
        return _quoted(pattern.target)
    return f"import {_quoted(added.name)} {_IMPORTED.get(added.path, added.path)}"


def _quoted(text: str) -> str:
    """*text* with the placeholders of names in backquotes."""
    return re.sub(r"(<the [^>]+>)", r"`\1`", text)


def _configure_pattern(pattern: RemedyPattern) -> str:
    if pattern.parameters == (IN_ENVIRONMENT,):
        return f"set the environment variable {pattern.target} before the import"
    return f"configure `{pattern.target}` before the first use"


_GENERAL: Mapping[RemedyKind, Callable[[RemedyPattern], str]] = {
    RemedyKind.RUN: _run_pattern,
    RemedyKind.USE: _use_pattern,
    RemedyKind.CWD: _folder_pattern,
    RemedyKind.SET_ENV: lambda pattern: f"set `{pattern.target}`",
    RemedyKind.INSTALL: _install_pattern,
    RemedyKind.CREATE: _create_pattern,
    RemedyKind.OPEN: _look_pattern,
    RemedyKind.SEARCH: _look_pattern,
    RemedyKind.EDIT: _edit_pattern,
    RemedyKind.RESEND: lambda pattern: wording_of(pattern.target),
    RemedyKind.CONFIGURE: _configure_pattern,
    RemedyKind.REVERT: lambda _: "undo the last edits of the file (`git checkout <file>`)",
    RemedyKind.DELETE: lambda pattern: (
        "" if pattern.target == Term.FILE else f"delete `{pattern.target}`"
    ),
    RemedyKind.RETRY: lambda _: _REPEAT,
    RemedyKind.OTHER: lambda _: "",
}


def _joined(parts: Sequence[str]) -> str:
    return "; then ".join(dict.fromkeys(part for part in parts if part))


Remedy: TypeAlias = tuple[RemedyAction, ...]
RemedyKey: TypeAlias = tuple[RemedyAction | RemedyPattern, ...]

_REMEMBERED = 8_192
_NO_NAMES = Names()
_FROM_ANOTHER_MODULE = " from another module"
_PREFIX = "adv_"
_ID = regex(rf"{_PREFIX}[0-9a-f]{{16}}")
# Variables that any project may set; others mean something to one project only.
_COMMON_SETTING = regex(r"PYTHON|PYTEST_|PIP_|GIT_|LC_|LANG|PATH=|CI=|NODE_|JAVA_HOME|MPLBACKEND")
_SETTING = regex(r"[A-Za-z_]\w*=")
_NUMBER = regex(r"\b\d+\b")


@lru_cache(_REMEMBERED)
def is_general(pattern: RemedyPattern) -> bool:
    """True for a *pattern* that says what to do where names of one project mean nothing."""
    target = pattern.target
    if pattern.kind is RemedyKind.RETRY or target in (Term.ANOTHER_NAME, Term.ANOTHER_MODULE):
        return False
    # A change of code is specific to its project, unless an edit was refused.
    is_of_code = target.startswith(("definition of ", "assignment of ")) and not pattern.parameters
    if is_of_code or target.endswith(_FROM_ANOTHER_MODULE):
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


def remedy_key(
    remedy: Iterable[RemedyAction | RemedyPattern], names: Names = _NO_NAMES
) -> RemedyKey:
    """Return what all forms of the same remedy have in common, with *names* filled in.

    Ranking, grouping, credit, methodologies, statistics and evaluation compare remedies by it. An
    action counts as its pattern, by which independent runs agree, or as itself where the pattern
    says too little.
    """
    return tuple([_part_of_key(one, names) for one in remedy])


@lru_cache(_REMEMBERED)
def _part_of_key(one: RemedyAction | RemedyPattern, names: Names) -> RemedyAction | RemedyPattern:
    if isinstance(one, RemedyAction):
        if not is_general(one.pattern):
            return _without_numbers(one)
        one = one.pattern
    return replace(
        one,
        target=names.fill(one.target),
        replaced=names.fill(one.replaced),
        # Whether a definition goes before an edit or into it makes no difference.
        parameters=() if one.kind is RemedyKind.EDIT else one.parameters,
    )


def advice_id(error: ErrorKind | None, remedy: Sequence[RemedyAction]) -> str:
    """Return the id of the advice *remedy* about the type of *error* (None: about no error)."""
    return _advice_id(f"{error.family}\n{error.error_type}" if error else "", tuple(remedy))


@lru_cache(_REMEMBERED)
def _advice_id(kind: str, remedy: Remedy) -> str:
    text = f"{kind}\n{remedy_key(remedy)!r}"
    return f"{_PREFIX}{digest(text)}"


def is_advice_id(name: str) -> bool:
    """True for an id as `advice_id` gives it."""
    return _ID.fullmatch(name) is not None


@lru_cache(_REMEMBERED)
def _without_numbers(action: RemedyAction) -> RemedyAction:
    """Return what equal actions have in common, whatever line numbers and counts they name."""
    return replace(
        action,
        target=_NUMBER.sub("", action.target),
        replaced=_NUMBER.sub("", action.replaced),
        parameters=(),
    )


_PROGRAM = regex(r"[A-Za-z][\w.+-]*")
_INSTALLER = regex(r"\S+ (?:-m \S+ )?\S+ ")
_THE_PROJECT = regex(r"\s(?:-e|--editable)[ =]\.(?:\s|$)")
_MISSING = regex(r"No such file|not found|can't open|not a valid editable")


# What edits are refused for, and what to do: several remedies are of one cause.
_UNDEFINED = "an undefined name", "put its import or definition in first"
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
    Term.FILE_TO_EDIT: ("another file being open", "open yours first"),
    Term.INDENTED: _INDENTATION,
    Term.REORDERED: _INDENTATION,
}
# The same where what was sent instead shows no more than that the error is gone.
_REFUSED_FOR: Mapping[str, tuple[str, str]] = {
    "F821 undefined name": _UNDEFINED,
    "E999 IndentationError": _INDENTATION,
    "E999 SyntaxError": _CUT,
}


class MachineLesson(NamedTuple):
    """Lesson about a machine: a *cause*, what *fails* and what *works* there.

    *fails* and *works* are programs, packages or commands, of edits a reason and what to do; empty
    where the cause says it all.
    """

    cause: Cause
    fails: str = ""
    works: str = ""


def _packages(action: RemedyAction) -> Iterator[MachineLesson]:
    """Yield a lesson for each package that *action* installs."""
    command = " ".join(action.values_of("command")[:1])
    installer = _INSTALLER.match(command)
    packages = action.target.split()
    if action.pattern.target == Term.THE_REPOSITORY:
        packages = ["-e ."] if _THE_PROJECT.search(command) else []
    for package in packages:
        yield MachineLesson(Cause.PACKAGE, works=f"{installer[0] if installer else ''}{package}")


def lessons_of(actions: Iterable[RemedyAction], error_type: str) -> Iterator[MachineLesson]:
    """Yield the lesson of *actions* about the machine; edits of code give none."""
    for action in actions:
        pattern = action.pattern
        names = {pattern.target, pattern.replaced}
        match pattern.kind:
            case RemedyKind.USE if len(names) > 1 and all(map(_PROGRAM.fullmatch, names)):
                yield MachineLesson(Cause.PROGRAM, pattern.replaced, pattern.target)
            case RemedyKind.CWD:
                # The shell was in the folder already that the command changed to again.
                if action.replaced.startswith(f"{action.target}/"):
                    yield MachineLesson(Cause.KEPT_FOLDER, posixpath.basename(action.target))
                else:
                    yield MachineLesson(Cause.FOLDER)
            case RemedyKind.RUN if pattern.target == Term.WITH_FOLDER:
                if _MISSING.search(error_type):
                    yield MachineLesson(Cause.FOLDER)
            case RemedyKind.INSTALL if not (
                action.is_general or pattern.target == Term.REQUIREMENTS
            ):
                yield from _packages(action)
            case RemedyKind.RESEND | RemedyKind.OPEN if pattern.target in _REFUSED:
                yield MachineLesson(Cause.EDIT, *_REFUSED[pattern.target])
            case RemedyKind.EDIT | RemedyKind.RESEND if error_type in _REFUSED_FOR:
                yield MachineLesson(Cause.EDIT, *_REFUSED_FOR[error_type])
