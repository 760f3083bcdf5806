"""Findings: failures in observations, and the tables of messages of programs that find one.

Exceptions, builds, shells, installers, and the tools of agents.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import force_setattr

from contextgraph.model import Family
from contextgraph.text import compiled, regex

if TYPE_CHECKING:
    from typing import TypeAlias


_CONTROL = regex(r"\x1b(?:\[[0-?]*+[ -/]*+[@-~]|\][^\x07\x1b\n]{0,200}(?:\x07|\x1b\\)|[@-Z\\-_])")
_INDENTED = r"(?>(?:(?:[ \t][^\n]*)?\n)*)"
_REPORT = r"(?>(?:(?![ \t]*Remainder of file)(?:[ \t][^\n]*)?\n)*)"
_BROKEN_PTH = r"Error processing line \d+"
# Up to the next one: a report that held all that follow would be read once for each of them.
_OWN_REPORT = _REPORT.replace("(?:", rf"(?:(?![^\n]*{_BROKEN_PTH})", 1)
_REMAINDER = r"[ \t]*Remainder of file ignored(?:\n|\Z)"
# What interpreters print when they start or stop, and go on: also where all went well.
_BANNERS = regex(
    # A broken `.pth` file; `head` and `tail` may have cut either end of the report.
    rf"{_BROKEN_PTH} of [^\n]{{0,1000}}\n{_OWN_REPORT}(?:{_REMAINDER}|(?:[ \t][^\n]*)?\Z)"
    rf"|\A{_REPORT}{_REMAINDER}"
    # An exception that a destructor raised.
    r"|^Exception ignored (?:in|on|while)\b[^\n]*(?:\n|\Z)"
    rf"(?:Traceback \(most recent call last\):\n{_INDENTED})?"
    r"(?:[A-Za-z_][\w.]*+(?::[^\n]*)?(?:\n|\Z))?"
    r"|^Error in sitecustomize; [^\n]*\n[^\n]*(?:\n|\Z)",
    re.MULTILINE,
)

# The type of a failure that a program reports without naming an exception.
PRINTED = "printed error"
_LINE_LENGTH = 1000
# The reason of a long message stands at its end.
_REASON_LENGTH = 400
_SYNTAX_ERRORS = ("SyntaxError", "IndentationError", "TabError")
_QUOTED = regex(r"['‘`\"“][^'’`\"”\n]*['’`\"”]|\d+|\([^()\n]*\)")
# `incompatible types: String cannot be …`, `undefined: knead`: the kind stands before the colon.
_KIND = regex(r"([A-Za-z][A-Za-z ,-]{2,80}): ")
_FILE = regex(r"\S+\.\w+: ")
_REASON_WORDS = 6


def plain(text: str) -> str:
    """Return *text* with plain line ends and without control sequences."""
    if "\x1b" in text:
        text = _CONTROL.sub("", text)
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def without_banners(text: str) -> str:
    """Plain *text* without what interpreters print although they go on."""
    if "ignored" in text or "Error processing line" in text or "Error in sitecustomize" in text:
        return _BANNERS.sub("", text)
    return text


class Finding(Struct, frozen=True):
    """A failure with its message and place as they are shown."""

    family: Family
    error_type: str
    message: str
    location: str | None = None


Search: "TypeAlias" = Callable[[str], Finding | None]


class Recogniser(Struct, frozen=True):
    """One row of a table: a form of message, and what it is classified as.

    A text that holds none of *words* is skipped. Without a *pattern*, the line of the first of
    them is the message; in patterns ``^`` and ``$`` are the borders of lines. Groups of the
    pattern: ``message``, or ``detail`` where that is empty (without these groups the whole match);
    ``place``, or ``file`` and ``line``. A place that the message does not show is looked for behind
    it by *frame*. With *reasons*, only a message that gives one of them counts.

    *error_type* is text in which ``{reason}`` stands for the reason, ``{name}`` for a group of
    the pattern, or for the reason where the group is empty; or a function of the match.
    *read* replaces all of this by a function of the match.
    """

    family: Family
    error_type: str | Callable[[re.Match[str]], str]
    words: str | tuple[str, ...]
    pattern: str | None = None
    frame: str | None = None
    reasons: re.Pattern[str] | None = None
    read: Callable[[re.Match[str]], Finding | None] | None = None

    def __post_init__(self) -> None:
        if isinstance(self.words, str):
            force_setattr(self, "words", (self.words,))

    def find(self, text: str) -> Finding | None:
        """Return the first message of this form in *text*."""
        for word in self.words:
            if word in text:
                break
        else:
            return None
        if self.pattern is None:
            return Finding(self.family, str(self.error_type), line_at(text, text.find(word)))
        pattern = compiled(self.pattern, re.MULTILINE)
        if self.reasons is None:
            # `search` would try a pattern for the beginning at every position.
            at_start = self.pattern.startswith(r"\A")
            match = pattern.match(text) if at_start else pattern.search(text)
            return self._finding(match) if match else None
        matches = pattern.finditer(text)
        return next((finding for match in matches if (finding := self._finding(match))), None)

    def _finding(self, match: re.Match[str]) -> Finding | None:
        if self.read is not None:
            return self.read(match)
        groups = match.groupdict()
        message = match.group()
        if "message" in groups:
            message = groups["message"] or groups.get("detail") or ""
        reason = None
        if self.reasons is not None:
            reason = self.reasons.search(message[-_REASON_LENGTH:])
            if reason is None:
                return None
        error_type = self._type(match, groups, reason.group() if reason else message)
        if "\n" in message:
            message = " ".join(message.split())
        return Finding(self.family, error_type, message, self._place(match, groups))

    def _type(self, match: re.Match[str], groups: dict[str, str | None], source: str) -> str:
        if callable(self.error_type):
            return self.error_type(match)
        if "{" not in self.error_type:
            return self.error_type
        reason = source
        if self.reasons is None and ("{reason}" in self.error_type or None in groups.values()):
            reason = reason_of(source)
        named = {name: value or reason for name, value in groups.items()}
        return self.error_type.format_map({**named, "reason": reason})

    def _place(self, match: re.Match[str], groups: dict[str, str | None]) -> str | None:
        if place := groups.get("place"):
            return place
        if groups.get("file"):
            return f"{groups['file']}:{groups['line']}"
        if self.frame is None:
            return None
        frame = compiled(self.frame, re.MULTILINE).search(match.string, match.end())
        return frame[1] if frame else None


class Report(Struct, frozen=True):
    """One row of a table: what *find* reads by itself in texts that hold one of *words*."""

    words: tuple[str, ...]
    find: Search


def first_in(table: Iterable[Recogniser | Report], text: str) -> Finding | None:
    """Return what the first row of *table* that applies finds in *text*."""
    for row in table:
        # Looked for here as well, since calling `find` for each row costs more than looking.
        for word in row.words:
            if word in text:
                if finding := row.find(text):
                    return finding
                break
    return None


def line_at(text: str, position: int) -> str:
    """Return the line of *text* that *position* is in, clipped."""
    start = text.rfind("\n", 0, position) + 1
    end = text.find("\n", position)
    return text[start : min(len(text) if end < 0 else end, start + _LINE_LENGTH)]


def reason_of(message: str) -> str:
    """Return the message without names, numbers and details, at most six words."""
    bare = _QUOTED.sub("", _FILE.sub("", message[:500], count=1)).split(";", 1)[0].strip()
    kind = _KIND.match(bare)
    words = (kind[1] if kind else bare).split()
    return " ".join(words[:_REASON_WORDS]).rstrip(":, ") or "error"


def class_name(name: str) -> str:
    """Return the class without its module; with it where the class name is too general."""
    parts = name.strip(".").split(".")
    return ".".join(parts[-2:]) if parts[-1] in ("error", "Error") else parts[-1]


def exception(
    name: str,
    message: str,
    location: str | None = None,
    family: Family = Family.PYTHON_EXCEPTION,
) -> Finding:
    """Return an exception of class *name*; of *family*, unless the source is what is wrong."""
    error_type = class_name(name)
    if error_type in _SYNTAX_ERRORS:
        family = Family.SYNTAX_ERROR
    return Finding(family, error_type, message, location)


TRACEBACK = "Traceback (most recent call last)"
_FRAME = regex(r'\s{0,6}File "([^"\n]{1,1000})", line (\d+)')
_RAISED = regex(r"([A-Za-z_][\w.]{0,150})(?::[ ]?(.*))?$", re.DOTALL)
# What a program prints on its other stream may stand between the frames and the exception.
_CERTAIN = regex(
    r"(?:[A-Za-z_]\w*\.)*\w*(?:[Ee]rror|Exception|Warning|Interrupt|Exit|Iteration|NotFound|Expired"
    r"|[Tt]imeout|Failure|Failed|Fault|Abort|Group)(?:: |:?[ ]?$)"
)
_LIKELY = regex(r"(?:[A-Za-z_]\w*\.)+[A-Z]\w*(?:: |:?[ ]?$)|[A-Z]\w*: ")
_LOOKED_AHEAD = 40
_BARE_SYNTAX = regex(
    r"^(?P<compiled>Sorry: )?(?P<name>SyntaxError|IndentationError|TabError): (?P<message>[^\n]*)",
    re.MULTILINE,
)
_COMPILED_PLACE = regex(r" \(([^\s()]+), line (\d+)\)$")
_LINES = 20_000

_crash = partial(Recogniser, Family.RUNTIME_EXCEPTION)

USAGE = "argparse usage error"

_NODE_PLACE = regex(r"^(\S+\.(?:[cm]?[jt]sx?)):(\d+)$", re.MULTILINE)
_NODE_FRAME = regex(
    r"^    at (?:[^\n(]{0,200}\()?(?:file://)?((?!node:)[^\s():]{1,300}:\d+)", re.MULTILINE
)
_HARMLESS = regex(
    r"(?i)^[ \t]*(?:0\b|none\b|no errors?(?:[.,;]|\s*$)|pip's dependency|false\b|\[\]|$)"
)
_USAGE_LINE = regex(r"^(?:ERROR: )?[ \t]*[Uu]sage: ", re.MULTILINE)
_USAGE_MESSAGE = regex(
    r"^(?:[\w./ -]{1,120}: error|Error|ERROR): (?!usage: )([^\n]*)", re.MULTILINE
)
_USAGE_HINT = regex(r"^(Try '[^'\n]{1,80}' for [^\n]*)", re.MULTILINE)
_CLASS = regex(
    r"^((?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt|NotFound|Timeout)"
    r"|(?:[A-Za-z_]\w*\.)+error|(?:[A-Za-z_]\w*\.)*(?:exceptions?|errors?)\.[A-Z]\w*)"
    r":[ \t]*([^\n]*)",
    re.MULTILINE,
)
_MARKS = (
    r"\[?(?:ERROR|Error|error|FATAL|Fatal|fatal|CRITICAL|critical)\]?\s?(?::|-|!)",
    (
        r"(?:An?|Caught an?|Unexpected|Caught) (?:unexpected |unhandled )?"
        r"(?:error|exception|\w+Error)(?: has)?"
        r"(?: occurr?ed| was raised| happened| caught)?(?: [^:\n]{0,60})?:"
    ),
    r"(?:Error|Exception) (?:occurred|raised|caught|while|during|with|in)\b[^:\n]{0,80}:",
    r"Error [a-z]{3,12}ing\b[^:\n]{0,80}(?::|(?=\.?$))",
    r"[A-Z][\w ]{1,40} failed(?: with[^:\n]{0,60})?:",
    r"(?:An e|E)rror occurr?ed(?=\.?$)",
    r"\d+ validation errors? for(?= )",
    r"(?:Caught e|E)xception:",
    r"Failed (?:to|with)\b[^:\n]{0,80}:",
    r"FAIL(?:ED|URE)?:(?= (?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception)\b)",
)
# Scripts that try several cases print each failure below the name of its case.
_OF_A_CASE = r"[ \t]+(?:[✗✘❌][ \t]*)?(?=(?:ERROR|Error):)|[✗✘❌][ \t]*"
_MARKED = regex(rf"^(?:{_OF_A_CASE})?({'|'.join(_MARKS)})[ \t]*([^\n]*)", re.MULTILINE)
_CLASS_IN_MARK = regex(r"\b[A-Z]\w*(?:Error|Exception)\b")
_CLASS_FIRST = regex(r"((?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception))\b(?::[ ]?|\()?")


def last_traceback(text: str) -> Finding | None:
    """Return the exception that the last traceback of *text* ends in, with its deepest frame."""
    start = text.rfind(TRACEBACK)
    if start < 0:
        return _bare_syntax_error(text)
    location, likely, wait = None, "", _LOOKED_AHEAD
    lines = _unprefixed(text, start)
    for line in lines:
        if frame := _FRAME.match(line):
            location, likely, wait = f"{frame[1]}:{frame[2]}", "", _LOOKED_AHEAD
        elif line and not line[0].isspace():
            if _CERTAIN.match(line):
                return _raised(line, lines, location)
            likely = likely or (line if _LIKELY.match(line) else "")
            wait -= 1
        if wait == 0:
            break
    if not likely:  # the first line after the frames
        outer = (line for line in _unprefixed(text, start) if line and not line[0].isspace())
        likely = next(outer, "")
    return _raised(likely, iter(()), location)


def _raised(line: str, following: Iterator[str], location: str | None) -> Finding:
    """The exception named on the last *line* of a traceback."""
    match = _RAISED.match(line[:2000])
    if match is None:
        return Finding(Family.PYTHON_EXCEPTION, "Exception", line, location)
    message = match[2]
    if message is not None and (
        not message.strip() or message.rstrip().endswith(":") or "validation error" in message
    ):  # it only announces the next lines
        more = [line.strip() for line, _ in zip(following, range(2), strict=False)]
        message = " ".join(part for part in (message.strip(), *more) if part)
    return exception(match[1], message or "", location)


def _unprefixed(text: str, start: int) -> Iterator[str]:
    """The lines after the header at *start*, without what stands before it on each line."""
    line_start = text.rfind("\n", max(0, start - 200), start) + 1 or start
    prefix = text[line_start:start].replace("Exception Group ", "")
    position = text.find("\n", start) + 1
    for _ in range(_LINES):
        if position <= 0:
            return
        end = text.find("\n", position)
        line = text[position : end if end >= 0 else len(text)]
        head = line[: len(prefix)]
        is_prefixed = head == prefix or not head.strip(" |+-\t")
        yield line[len(prefix) :] if is_prefixed else line
        position = end + 1


def _bare_syntax_error(text: str) -> Finding | None:
    """A syntax error in the script itself, which is reported without a header."""
    if "SyntaxError" not in text and "IndentationError" not in text and "TabError" not in text:
        return None
    if not (match := _BARE_SYNTAX.search(text)):
        return None
    frames = _FRAME.findall(text, max(0, match.start() - 1500), match.start())
    if match["compiled"]:  # py_compile names the place in the message
        frames = _COMPILED_PLACE.findall(match["message"])
    if not frames:
        return None
    message = _COMPILED_PLACE.sub("", match["message"])
    return Finding(Family.SYNTAX_ERROR, match["name"], message, ":".join(frames[-1]))


def _usage_error(text: str) -> Finding | None:
    """A command line that a program's own argument parser refused."""
    if _USAGE_LINE.search(text) is None:
        return None
    match = _USAGE_MESSAGE.search(text) or _USAGE_HINT.search(text)
    return Finding(Family.TOOL_USAGE, USAGE, match[1]) if match else None


def _printed_error(text: str) -> Finding | None:
    """The first failure that a program prints itself, with its class where that is shown."""
    if match := _CLASS.search(text):
        return exception(match[1], match[2])
    for match in _MARKED.finditer(text):
        if not _HARMLESS.match(match[2]) or match[1].startswith(("Error ", "An error")):
            return _marked(match[1], match[2])
    return None


USAGE_ERROR = Report(("sage: ",), _usage_error)
PRINTED_ERROR = Report(
    ("rror", "xception", "ERROR", "ailed", "atal", "ritical", "RITICAL"), _printed_error
)


def _marked(mark: str, message: str) -> Finding:
    if match := _CLASS_IN_MARK.search(mark):
        return exception(match.group(), message)
    if match := _CLASS_FIRST.match(message):
        return exception(match[1], message[match.end() :].rstrip(")"))
    return Finding(Family.PYTHON_EXCEPTION, PRINTED, message.strip(" .") or mark)


def _node(match: re.Match[str]) -> Finding:
    """An exception of Node: its first frame outside Node, or the place of broken source."""
    text = match.string
    frame = _NODE_FRAME.search(text, match.start())
    place = _NODE_PLACE.search(text)
    location = frame[1] if frame else None
    if place and (match["name"] == "SyntaxError" or not frame):
        location = f"{place[1]}:{place[2]}"
    return exception(match["name"], match["message"], location, Family.RUNTIME_EXCEPTION)


RUST_PANIC = _crash(
    "panic",
    "panicked at",
    r"^thread '[^'\n]*'(?: \(\d+\))? panicked at "
    r"(?:'(?P<message>[^\n]*)', )?(?P<place>[^\s:]+:\d+)(?::\d+)?:?\n?(?P<detail>[^\n]*)",
)
GO_PANIC = _crash(
    "{kind}",
    ("panic: ", "\ngoroutine "),
    r"^(?P<kind>panic|fatal error): (?P<message>[^\n]*)",
    # A frame of the program says more than one of the standard library that it called.
    frame=r"^\t((?!\S*/src/(?:runtime|testing|internal|reflect|sync|time)/)\S+\.go:\d+)",
)
CRASHES = (
    _crash(
        "{name}",
        "\n    at ",
        r"^ ?(?:Uncaught |\[|Exception during run: )?(?P<name>\w*(?:Error|Exception|Rejection))"
        r"(?: \[\w+\])?: (?P<message>[^\n]*)(?:\n(?!    at )[^\n]*){0,12}\n    at ",
        read=_node,
    ),
    _crash(
        lambda match: class_name(match["name"].replace("$", ".")),
        ("Exception in thread", "Caused by:"),
        r"^(?:Exception in thread \"[^\"\n]*\"|Caused by:) (?P<name>[\w.$]+)"
        r"(?:: (?P<message>[^\n]*))?",
        frame=r"^[ \t]+at [^\n(]{1,300}\((\w+\.(?:java|kt|scala):\d+)\)",
    ),
    RUST_PANIC,
    GO_PANIC,
    _crash(
        "assertion failed",
        "Assertion",
        r"^\S+: (?P<place>[^\s:]+:\d+): [^\n]{1,300}: Assertion [`'‘](?P<message>[^\n]*)",
    ),
    _crash(
        lambda match: match["name"].rsplit("::", 1)[-1],
        "terminate called",
        r"^terminate called after throwing an instance of '(?P<name>[^'\n]+)'"
        r"(?:\n\s*what\(\): +(?P<message>[^\n]*))?",
    ),
    _crash(
        "{kind}",
        "Sanitizer: ",
        r"^==\d+==ERROR: (?P<message>(?P<kind>\w+Sanitizer: [\w-]+)[^\n]*)",
        frame=r"^ +#\d+ 0x[0-9a-f]+ in \S+ (\S+?:\d+)",
    ),
    _crash(
        "runtime error",
        ": runtime error: ",
        r"^(?P<place>\S+?:\d+):\d+: runtime error: (?P<message>[^\n]*)",
    ),
    _crash(
        "{message}",
        ("fault", "Aborted", "exception", "Bus error", "Illegal instruction"),
        r"^(?:\S{1,200}: line \d+: +\d+ )?"
        r"(?P<message>Segmentation fault|Floating point exception|Bus error"
        r"|Illegal instruction|Aborted)(?:(?: +\(core dumped\)| {3,})[^\n]*)?$",
    ),
    # `go run` reports how the program ended; the last line that it printed is why.
    _crash(
        PRINTED,
        "exit status ",
        r"(?:^(?:\d{4}[-/]\d\d[-/]\d\d[ T]\d\d:\d\d:\d\d\S*+[ \t]++)?(?P<message>[^\n]*)\n)?"
        r"^(?P<detail>exit status [1-9]\d*)$",
    ),
)


_build = partial(Recogniser, Family.BUILD)

_SYMBOL = regex(r"(?:\n(?! *symbol:)[^\n]*){0,3}\n *symbol: +(\w+) ([\w.$]+)")
_ESLINT_FILE = regex(r"^\S[^\n]*\.\w{1,6}$", re.MULTILINE)
_ESLINT_RULE = regex(r"[\w@/-]{1,100}")
_GO_MISSING = regex(r"no required module|cannot find|not found|is not in (?:std|GOROOT)")
_CARGO_WORDS = ("Cargo.toml", "cargo", "crate", " target named ")
_MAVEN_GOAL = r"(?:Failed to execute goal (?:\S+ \([^)\n]*\) )?on project \S+?: )?"


def _javac(match: re.Match[str]) -> Finding:
    """An error of javac, with the symbol that it names on a line of its own."""
    message = match["message"].strip()
    if message == "cannot find symbol" and (symbol := _SYMBOL.match(match.string, match.end())):
        message = f"{message}: {symbol[1]} '{symbol[2]}'"
    error_type = f"javac: {reason_of(match['message'])}"
    return Finding(Family.BUILD, error_type, message, f"{match['file']}:{match['line']}")


def _eslint(match: re.Match[str]) -> Finding:
    """An error of ESLint, which names the file on a line above and the rule behind the message."""
    before = match.string[max(0, match.start() - 20_000) : match.start()]
    files = _ESLINT_FILE.findall(before)
    message, _, rule = match["message"].rpartition("  ")
    if not _ESLINT_RULE.fullmatch(rule):
        message, rule = match["message"], reason_of(match["message"])
    place = f"{files[-1]}:{match['line']}" if files else None
    return Finding(Family.BUILD, f"eslint: {rule}", message.strip(), place)


def _cargo(match: re.Match[str]) -> Finding | None:
    """An error of Cargo, where it or what follows names something of Cargo's."""
    if not any(word in match.string[match.start() :] for word in _CARGO_WORDS):
        return None
    return Finding(Family.BUILD, f"cargo: {reason_of(match['message'])}", match["message"])


def _go_compiler_type(match: re.Match[str]) -> str:
    message = match["message"]
    if message.startswith(("no required module", "package ", "cannot find package")):
        return "go: module not found"
    return f"go: {reason_of(message)}"


def _go_tool_type(match: re.Match[str]) -> str:
    return "go: module not found" if _GO_MISSING.search(match["message"]) else "go: error"


def _make_type(match: re.Match[str]) -> str:
    message = match["message"]
    if message.startswith("No rule"):
        return "make: No rule to make target"
    return f"make: {'recipe failed' if 'Error' in message else reason_of(message)}"


BUILDS = (
    _build(
        "rustc: {code}",
        "-->",
        r"^error(?:\[(?P<code>E\d{4})\])?: (?P<message>[^\n]*)\n"
        r"[ \t]*--> (?P<place>[^\s:]+:\d+)",
    ),
    _build(
        "tsc: {code}",
        "error TS",
        r"^(?:(?P<file>[^\s(:]+)[(:](?P<line>\d+)[,:]\d+(?:\):| -) )?"
        r"error (?P<code>TS\d+): (?P<message>[^\n]*)",
    ),
    _build(
        "javac",
        "[ERROR] ",
        r"^\[ERROR\] (?P<file>[^\s:\[]+\.(?:java|kt)):\[(?P<line>\d+),\d+\] "
        r"(?P<message>[^\n]*)",
        read=_javac,
    ),
    # Gradle writes the name of its task before what javac reports.
    _build(
        "javac",
        ".java:",
        r"^(?::\w+(?=/))?(?P<file>[^\s:]+\.java):(?P<line>\d+):(?:\d+:)? "
        r"(?:fatal )?error: (?P<message>[^\n]*)",
        read=_javac,
    ),
    _build(
        "mypy: {code}",
        "error: ",
        r"^(?P<file>[^\s:]+\.pyi?):(?P<line>\d+):(?:\d+:)? error: "
        r"(?P<message>[^\n]*\s\[(?P<code>[a-z-]+)\])$",
    ),
    _build(
        "gcc: {reason}",
        "error: ",
        r"^(?P<file>[^\s:]+):(?P<line>\d+):(?:\d+:)? (?:fatal )?error: (?P<message>[^\n]*)",
    ),
    # A compiler that could not start on a file: no place in it is at fault.
    _build(
        "gcc: {reason}",
        "error: ",
        r"^(?:\S*/)?(?:cc1(?:plus)?|gcc|g\+\+|clang(?:\+\+)?|cc|c\+\+)(?:-\d+)?: "
        r"(?:fatal )?error: (?!linker command failed)(?P<message>[^\n]*)",
    ),
    _build(
        "javac: {kind}",
        "error: ",
        r"^error: (?P<kind>file not found|invalid [\w ]+|class file [\w ]+)[^\n]*",
    ),
    _build(
        "eslint",
        "✖ ",
        r"^[ \t]{1,9}(?P<line>\d+):\d+[ \t]{1,9}error[ \t]{1,9}(?P<message>\S[^\n]*)$",
        read=_eslint,
    ),
    _build("eslint: too many warnings", "✖ ", r"^ESLint found too many warnings[^\n]*"),
    Recogniser(
        Family.RUNTIME_EXCEPTION,
        PRINTED,
        "Oops! Something went wrong! :(",
        r"Oops! Something went wrong! :\([^\n]*\s+(?:ESLint: [^\n]*\s+)?(?P<message>\S[^\n]*)",
    ),
    _build(
        "ld: {reason}",
        ("undefined ref", "multiple def", "ld: ", "collect2: "),
        r"^(?:[^\n]{0,300}: )?(?P<message>undefined reference to [^\n]*"
        r"|multiple definition of [^\n]*|cannot find -l[^\n]*|ld: [^\n]*"
        r"|collect2: error[^\n]*)",
    ),
    _build(
        _go_compiler_type,
        ".go:",
        r"^(?:vet: )?(?:\./)?(?P<file>[^\s:]+\.go):(?P<line>\d+):\d+: (?P<message>[^\n]*)",
    ),
    _build(
        _go_compiler_type,
        ".go:",
        r"^# \S[^\n]*\n(?:\./)?(?P<file>[^\s:]+\.go):(?P<line>\d+): (?P<message>[^\n]*)",
    ),
    _build(
        "cmake: error",
        "CMake Error",
        r"^CMake Error(?:: (?P<message>[^\n]+)|(?: at (?P<place>[^\s:]+:\d+))?[^\n]*"
        r"(?:\n+ *(?P<detail>[^\n]*?(?::\s*\n\s*[^\n]*|$)))?)",
    ),
    _build(
        _make_type,
        ": *** ",
        r"^(?:\S*make(?:\[\d+\])?|(?P<place>[^\s:]+:\d+)): \*\*\* (?:\[[^\s:\]]+:\d+: )?"
        r"(?P<message>[^\n]*)",
    ),
    _build("build failed", "ould not compile"),
    _build(
        lambda match: f"gradle: {reason_of(match['detail'])}",
        "* What went wrong:",
        r"^\* What went wrong:\n(?P<detail>[^\n]*)(?:\n> (?P<message>[^\n]*))?",
    ),
    Recogniser(
        Family.ENVIRONMENT,
        "mvn: {reason}",
        "Could not resolve",
        rf"^\[(?:ERROR|FATAL)\] ++{_MAVEN_GOAL}(?P<message>[^\n]*Could not resolve[^\n]*)",
    ),
    _build(
        "mvn: {reason}",
        ("BUILD FAILURE", "[Help 1]", "re-run Maven"),
        rf"^\[(?:ERROR|FATAL)\] ++{_MAVEN_GOAL}(?P<message>\S[^\n]*)",
    ),
    _build("cargo", _CARGO_WORDS, r"^error: (?P<message>[^\n]*)", read=_cargo),
    _build(
        _go_tool_type,
        ("go: ", "package ", "pattern ", "no required module", "import cycle"),
        r"^(?P<message>(?:go: (?!(?:downloading|finding|found|added|creating|upgraded|to add"
        r"|warning)\b)"
        r"[^\n]*\b(?:cannot|not found|errors?|missing|invalid|malformed|unknown|no such"
        r"|does not)\b|package \S+ is not in|[ \t]+imports \S+ from \S+: import cycle"
        r"|pattern \S+: |[^\n]{0,200}no required module)[^\n]*)",
    ),
)


# The type of an error of a tool that shows nothing of a file as it is too long for one answer.
FILE_TOO_LONG = "tool: File too long"
_wrong_usage = partial(Recogniser, Family.TOOL_USAGE)
_not_found = partial(Recogniser, Family.NOT_FOUND)

# A harness reports a time-out at the end, editors and other tools answer at the beginning.
_TAIL = 600
_EDITOR_HEAD = 500
_HEAD = 2000

_TIMEOUTS = (
    Recogniser(
        Family.ENVIRONMENT,
        "EXECUTION FAILED OR COMMAND MALFORMED",
        "EXECUTION FAILED OR COMMAND MALFORMED",
        "EXECUTION FAILED OR COMMAND MALFORMED",
    ),
    Recogniser(Family.TIMEOUT, "EXECUTION TIMED OUT", "EXECUTION TIMED OUT"),
    Recogniser(
        Family.TIMEOUT,
        "command timed out",
        ("timed out", "took more than", "no new output after"),
        r"^[^\n]*(?:timed out after|[Cc]ommand timed out|was timed out"
        r"|was cancelled because it took more than|The command has no new output after)[^\n]*",
    ),
)
_REFUSED = "Your proposed edit has introduced new syntax error"
_LISTED = regex(r"^- (?:([A-Z]\d{3}) )?([^\n]*)", re.MULTILINE)
_LINT_CLASS = regex(r"(?:\w+(?:Error|Warning))\b")
_LINTER_LINE = regex(r"^\S+?:\d+:\d+: ([A-Z]\d{3}) ([^\n]*)", re.MULTILINE)
_LINT_NAME = regex(r"\s*[`'\"‘’“”].*|\s*\(.*", re.DOTALL)
_LISTED_LENGTH = 5000
# What editors answer that could not do what was requested.
_REFUSED_EDITS = tuple(
    Recogniser(Family.EDIT_REJECTED, f"tool: {kind}", words)
    for kind, words in {
        "old_str not found": (
            "No replacement was performed, old_str",
            "did not appear verbatim in",
            "String to replace not found in file",
        ),
        "old_str not unique": (
            "No replacement was performed. Multiple occurrences",
            "matches of the string to replace, but replace_all is false",
        ),
        "File not read": ("File has not been read yet",),
        "File modified since read": (
            "File has been modified since read",
            "File has been unexpectedly modified",
        ),
        "No change": ("No changes to make: old_string and new_string are exactly the same",),
        "No replacement": ("No replacement was performed",),
    }.items()
)
_MARKED_ERROR = regex(r"<tool_use_error>(?:Error: )?([^<\n]*)|<error>([^<\n]*)")
_WRONG_ARGUMENTS = (
    _wrong_usage("tool: No file open", "No file open", r"\ANo file open[^\n]*"),
    _wrong_usage("tool: Usage: goto", "goto allows", r"\Agoto allows only one line number[^\n]*"),
    _not_found(
        "tool: {kind} not found",
        " not found",
        r"\A(?P<message>(?P<kind>File|Directory) [^\n]{0,500}? not found\.?)(?=\n|\Z)",
    ),
    # Tools that fail at a wrong path print their usage, or errors of their own script, first.
    _not_found(
        "tool: File not found",
        " not found",
        r"\A(?:(?:Usage: |awk: |/\S{1,100}: line )[^\n]*\n){1,4}"
        r"(?P<message>(?:Error: )?File (?:name )?[^\n]{0,500} not found\b[^\n]*)",
    ),
    _wrong_usage(
        "tool: Usage: {command}",
        "Usage: ",
        r"\A(?P<message>Usage: (?P<command>edit|open|goto|scroll_up|scroll_down|create"
        r"|search_dir|search_file|find_file|submit)(?![\w-])(?! \[OPTIONS\])[^\n]*)",
    ),
    _wrong_usage(
        "tool: File already exists",
        "already exists",
        r"\A(?:Error: File [^\n]{0,500} already exists|File already exists at)[^\n]*",
    ),
    _wrong_usage(
        "tool: line out of range",
        "Error: <",
        r"\AError: <\w+>[^\n]*(?:must be|greater than|less than|out of range)[^\n]*",
    ),
    _wrong_usage(
        FILE_TOO_LONG,
        " exceeds max",
        r"\A(?:<tool_use_error>)?(?:Error: )?File (?:content )?"
        r"\([^()\n]{1,40}\) exceeds max[^<\n]*",
    ),
    _wrong_usage(
        "tool: Is a directory",
        " is a directory",
        r"\AError: [^\n]{0,500} is a directory\. You can only open files[^\n]*",
    ),
)
_PARAMETERS = (
    _not_found(
        "tool: File not found",
        "does not exist",
        r"\A(?:(?:ERROR:?\n?)?(?:Error: )?Invalid `?\w+`? parameter:?[^\n]*does not exist"
        r"|The path [^\n]{0,500} does not exist|File does not exist|Path does not exist)[^\n]*",
    ),
    _wrong_usage(
        "tool: Invalid {name}",
        "Invalid ",
        r"\A(?:ERROR:?\n?)?(?:Error: )?Invalid `?(?P<name>\w+)`? parameter:?[^\n]*",
    ),
    _wrong_usage(
        "tool: Missing parameter",
        ("Parameter `", "InputValidationError"),
        r"\A(?:ERROR:?\n?)?(?P<message>Parameter `\w+` is required[^\n]*"
        r"|InputValidationError[^\n]*)",
    ),
    _wrong_usage(
        "tool: Invalid {name}",
        "is expected to be one of",
        r"\A(?:ERROR:?\n?)?"
        r"(?P<message>Parameter ['`](?P<name>\w+)['`] is expected to be one of[^\n]*)",
    ),
)


def timeout(text: str) -> Finding | None:
    """Return the message of a harness that gave up waiting, or could not run the command at all."""
    return first_in(_TIMEOUTS, text[-_TAIL:])


def refused_edit(text: str) -> Finding | None:
    """Return the first reason for which an edit was refused."""
    head = text[:_EDITOR_HEAD]
    start = head.find(_REFUSED)
    return _lint_message(text, start) if start >= 0 else first_in(_REFUSED_EDITS, head)


def tool_message(text: str) -> Finding | None:
    """Return the message that *text* starts with, where a tool refused its arguments."""
    head = text[:_HEAD].strip()
    if finding := first_in(_WRONG_ARGUMENTS, head):
        return finding
    if marked := _MARKED_ERROR.match(head):
        message = marked[1] or marked[2] or ""
        return first_in(_PARAMETERS, message) or Finding(Family.TOOL_USAGE, "tool: error", message)
    return first_in(_PARAMETERS, head)


def _lint_message(text: str, start: int) -> Finding:
    """The first message of the linter that checked an edit."""
    listed = text.find("ERRORS:", start)
    match = _LISTED.search(text, listed, listed + _LISTED_LENGTH) if listed >= 0 else None
    match = match or _LINTER_LINE.search(text, start, start + _LISTED_LENGTH)
    if match is None:
        line = text[start:].partition("\n")[0]
        return Finding(Family.EDIT_REJECTED, "edit refused", line)
    code, message = match[1] or "", match[2]
    if code or _LINT_CLASS.match(message):
        return Finding(Family.EDIT_REJECTED, _lint_type(code, message), message)
    # The linter itself failed, and its last words are listed as if they were messages.
    end = text.find("\nThis is how", start, start + _LISTED_LENGTH)
    end = end if end >= 0 else start + _LISTED_LENGTH
    lines = [line for _, line in _LISTED.findall(text[match.start() : end])]
    last = next((line for line in reversed(lines) if line.strip()), message)
    return Finding(Family.EDIT_REJECTED, "linter crashed", last)


def _lint_type(code: str, message: str) -> str:
    """The lint code with the class of the message: no names, no details."""
    if code.startswith("E9") and (match := _LINT_CLASS.match(message)):
        return f"{code} {match.group()}"
    return f"{code} {_LINT_NAME.sub('', message)}".strip()


_shell = partial(Recogniser, Family.SHELL)
_environment = partial(Recogniser, Family.ENVIRONMENT)

_SYNTAX = ("syntax error", "unexpected eof", "unexpected end of file")
_REASON = regex(
    r"command not found|[Nn]o such file or directory|Permission denied|[Ii]s a directory|"
    r"[Nn]ot a directory|invalid option|unrecognized option|unknown option|File exists|"
    r"illegal option|Directory not empty|Operation not permitted|missing (?:file )?operand|"
    r"missing destination file operand|syntax error|unexpected EOF|unexpected end of file|"
    r"Argument list too long|No space left on device|Read-only file system|"
    r"numeric argument required|too many arguments|ambiguous redirect|cannot execute|"
    r"bad substitution|unbound variable|event not found|not a valid identifier|are the same file|"
    r"Syntax error|Bad substitution|"
    r"unterminated `?s'?|unknown command|invalid (?:number|context|line|mode|argument)|"
    r"extra operand|cannot open|paths must precede expression|unknown predicate|not found|"
    r"Invalid (?:regular expression|range end|back reference|preceding regular expression)|"
    r"Unmatched|does not exist|not a git repository|parse error|omitting directory"
)
_COMMANDS = (
    r"ls|cat|cp|mv|rm|rmdir|mkdir|touch|ln|chmod|chown|head|tail|wc|find|"
    r"grep|egrep|fgrep|rg|sed|awk|gawk|mawk|diff|patch|sort|uniq|cut|tr|tee|xargs|tar|unzip|gzip|"
    r"sudo|env|nohup|timeout|which|tree|stat|file|du|kill|pkill|git|od|nl|basename|dirname|date|"
    r"source|cd|less|more|readlink|realpath|jq|ps|man|su|strace|gdb|zsh|perl|ruby|make|nano|vim"
)
_GIT_REASON = regex(
    r"not a git repository|did not match any file|Not a valid object name|patch does not apply|"
    r"already exists and is not an empty directory|unknown switch|unknown option|"
    r"ambiguous argument|"
    r"bad revision|corrupt patch|Your local changes|not something we can merge|"
    r"unable to auto-detect email address|no upstream branch|No such remote|"
    r"unrecognized argument|bad object|unknown revision|failed to push|needed a single revision"
)
_DETAIL = regex(r"['\"`‘“(\[:,].*|\S*/.*", re.DOTALL)
_DETAIL_LENGTH = 400
_PIP_REASON = regex(
    r"HTTP error \d+|No matching distribution found|due to an? (\w+)|Invalid requirement|"
    r"Failed building wheel|subprocess-exited-with-error|ResolutionImpossible|"
    r"Cannot install|externally-managed-environment|Could not open requirements file|"
    r"is not a supported wheel|requires a different Python|metadata-generation-failed|"
    r"You must give at least one requirement|Directory [^\n]* is not installable|"
    r"is not a valid editable requirement|Could not build wheels|unknown command|no such option"
)
# What pip reports in words that nothing else uses.
_PIP_ONLY = (
    r"HTTP error \d+ while getting|No matching distribution found|Could not install packages|"
    r"Invalid requirement|Failed building wheel|ResolutionImpossible|Could not build wheels|"
    r"Cannot install|Could not open requirements file|subprocess-exited-with-error"
)
_PIP_HARMLESS = r"pip's dependency resolver|Could not find a version that satisfies"


def _first_words(message: str, count: int) -> str:
    """The first words of a message, up to the first name or path."""
    return " ".join(_DETAIL.sub("", message[:_DETAIL_LENGTH]).split()[:count])


def _pip_type(match: re.Match[str]) -> str:
    message = match["message"]
    if reason := _PIP_REASON.search(message[:_DETAIL_LENGTH]):
        return f"pip: {reason[1] or reason.group()}"
    return f"pip: {_first_words(message, 5)}"


def _wget_type(match: re.Match[str]) -> str:
    if match["code"]:
        return f"wget: ERROR {match['code']}"
    return f"wget: {_DETAIL.sub('', match['reason']).strip()}"


_INTERPRETERS = (
    _shell(
        "python: can't open file",
        "can't open file",
        r"^(?:\S*/)?python[\d.]*: can't open file [^\n]*",
    ),
    _shell(
        "python -m: No module named",
        (": No module named", ": Error while finding module"),
        r"^(?:\S*/)?(?:python[\d.]*|pypy[\d.]*|coverage)(?: -m)?: "
        r"(?P<message>No module named [^\n]*|Error while finding module specification[^\n]*)",
    ),
)
# Lines are found by the line end before them, which `re` looks for several times as fast.
_SHELL = _shell(
    "bash: {reason}",
    ": ",
    r"\n(?:(?:/\S{0,40}/)?-?(?:bash|sh|zsh|dash|ksh|eval)(?:: (?:line )?\d+)?"
    r"|\(eval\)(?::[\w.-]+)?:\d+|\S{1,200}: (?:line )?\d+): "
    # Shells print this when they start, and go on.
    r"(?P<message>(?!warning: setlocale)[^\n]*)",
    reasons=_REASON,
)
_CORE_TOOLS = (
    _shell(  # what people quote of it
        "bash: command not found",
        (": command not found",),
        r"\n(?P<message>[\w.+-]{1,60}: command not found)[ \t]*(?=\n|\Z)",
    ),
    _shell(
        "{command}: {reason}",
        ": ",
        rf"\n(?:/(?:usr/)?(?:s?bin)/)?(?=[a-z]{{2,8}}: )(?P<command>{_COMMANDS}): "
        r"(?P<message>[^\n]*)",
        reasons=_REASON,
    ),
    _shell(
        "{command}: error",
        ("sed: ", "find: ", "rg: ", "patch: ", "awk: "),
        # `head` has seen enough: no failure.
        r"\n(?P<command>sed|find|rg|patch|awk): (?![^\n]*: Broken pipe)(?P<message>[^\n]*: [^\n]*)",
    ),
)
GIT = (
    _shell(
        "git: {reason}",
        ("fatal: ", "error: "),
        r"^(?:fatal|error): (?P<message>[^\n]*)",
        reasons=_GIT_REASON,
    ),
    _shell("git: fatal", ("fatal: ", "error: "), r"^(?:fatal|error): (?P<message>[^\n]*)"),
)
PIP = _environment(
    _pip_type,
    ("ERROR: ", "error: "),
    rf"^[ \t]*(?:ERROR|error): (?![^\n]*(?:{_PIP_HARMLESS}))(?P<message>[^\n]*)",
)
INSTALLERS = (
    _environment(
        _pip_type, "ERROR: ", rf"^[ \t]*(?:ERROR|error): (?P<message>(?:{_PIP_ONLY})[^\n]*)"
    ),
    _environment(
        lambda match: f"apt: {_first_words(match['message'], 4)}", "E: ", r"^E: (?P<message>[^\n]*)"
    ),
    _environment(
        "npm: {code}",
        "npm ",
        r"^npm (?:ERR!|error) (?:code )?(?P<code>(?<=code )\w+|Missing script)[^\n]*",
    ),
    _environment(
        "conda: {name}",
        ("Error:", "ResolvePackageNotFound:"),
        r"^(?P<name>PackagesNotFoundError|CondaError|ResolvePackageNotFound|\w*CondaError|"
        r"UnsatisfiableError|CondaHTTPError|EnvironmentNameNotFound):(?P<message>[^\n]*)",
    ),
)
NETWORK = (
    _environment(
        "curl: {code} {cause}",
        "curl: (",
        r"^curl: (?P<code>\(\d+\)) (?P<message>(?P<cause>Failed to connect"
        r"|Could not resolve host|[^\n]*?(?= to | host| after |[:'\"]|$))[^\n]*)",
    ),
    _environment(
        _wget_type,
        ("ERROR ", "wget: "),
        r"^[^\n]*?\bERROR (?P<code>\d{3}): [^\n]*|^wget: (?P<reason>[^\n:]{0,200})[^\n]*",
    ),
    _environment(
        "git: network failure",
        ("fatal: ", "ssh: "),
        r"^(?:fatal|ssh): (?P<message>[^\n]*(?:Could not resolve host|unable to access"
        r"|Connection refused|Could not read from remote|could not read Username"
        r"|Connection timed out)[^\n]*)",
    ),
)


def _shell_message(text: str) -> Finding | None:
    """The first message of a shell, a core tool or an interpreter that could not start."""
    if finding := first_in(_INTERPRETERS, text):
        return finding
    lines = f"\n{text}"
    if finding := _SHELL.find(lines):
        return Finding(finding.family, _unified(finding.error_type), finding.message)
    return first_in(_CORE_TOOLS, lines)


def _unified(error_type: str) -> str:
    """The type in the words of bash, whichever shell reported it."""
    reason = error_type.removeprefix("bash: ")
    if reason.lower() in _SYNTAX:
        return "bash: syntax error"
    if reason == "no such file or directory":
        return "bash: No such file or directory"
    return "bash: command not found" if reason == "not found" else error_type


# Any text: the messages of shells have no word in common.
SHELL_MESSAGE = Report(("",), _shell_message)
