"""Errors of agents' own tools: time-outs, refused edits, wrong arguments."""

import re
from functools import partial

from contextgraph.lazy import regex
from contextgraph.model import Family
from contextgraph.trace.errors.finding import Finding, Recogniser, first_in

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
    """The message of a harness that gave up waiting, or could not run the command at all."""
    return first_in(_TIMEOUTS, text[-_TAIL:])


def refused_edit(text: str) -> Finding | None:
    """The first reason for which an edit was refused."""
    head = text[:_EDITOR_HEAD]
    start = head.find(_REFUSED)
    return _lint_message(text, start) if start >= 0 else first_in(_REFUSED_EDITS, head)


def tool_message(text: str) -> Finding | None:
    """The message that *text* starts with, where a tool refused its arguments."""
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
_GIT = (
    _shell(
        "git: {reason}",
        ("fatal: ", "error: "),
        r"^(?:fatal|error): (?P<message>[^\n]*)",
        reasons=_GIT_REASON,
    ),
    _shell("git: fatal", ("fatal: ", "error: "), r"^(?:fatal|error): (?P<message>[^\n]*)"),
)
_PIP = _environment(
    _pip_type,
    ("ERROR: ", "error: "),
    rf"^[ \t]*(?:ERROR|error): (?![^\n]*(?:{_PIP_HARMLESS}))(?P<message>[^\n]*)",
)
_INSTALLERS = (
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
_NETWORK = (
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


def shell_message(text: str) -> Finding | None:
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


def git_message(text: str) -> Finding | None:
    """The first message that only git words like this."""
    return _GIT[0].find(text)


def message_of_git(text: str) -> Finding | None:
    """The first message in the output of git itself."""
    return first_in(_GIT, text)


def installer_failure(text: str) -> Finding | None:
    """Recognise errors in the output of a package installer."""
    return first_in((_PIP, *_INSTALLERS), text)


def known_installer_failure(text: str) -> Finding | None:
    """Recognise errors that only package installers word so."""
    return first_in(_INSTALLERS, text)


def network_failure(text: str) -> Finding | None:
    """Recognise errors of a program that uses the network."""
    return first_in(_NETWORK, text)
