"""Messages of shells, of coreutils and of interpreters that could not start."""

import re

from contextgraph.model import Family
from contextgraph.trace.errors.finding import Finding

_SHELL = re.compile(
    r"\n(?:(?:/\S{0,40}/)?-?(?:bash|sh|zsh|dash|ksh|eval)(?:: (?:line )?\d+)?"
    r"|\(eval\)(?::[\w.-]+)?:\d+|\S{1,200}: (?:line )?\d+): ([^\n]*)"
)
_LINE_NUMBER = re.compile(r": (?:line )?\d+: ")
_COMMAND = re.compile(
    r"\n(?:/(?:usr/)?(?:s?bin)/)?(ls|cat|cp|mv|rm|rmdir|mkdir|touch|ln|chmod|chown|head|tail|wc|find|"
    r"grep|egrep|fgrep|rg|sed|awk|gawk|mawk|diff|patch|sort|uniq|cut|tr|tee|xargs|tar|unzip|gzip|"
    r"sudo|env|nohup|timeout|which|tree|stat|file|du|kill|pkill|git|od|nl|basename|dirname|date|"
    r"source|cd|less|more|readlink|realpath|jq|ps|man|su|strace|gdb|zsh|perl|ruby|make|nano|vim): "
    r"([^\n]*)"
)
_REASON = re.compile(
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
_CANNOT_OPEN = re.compile(r"^(?:\S*/)?(python[\d.]*): can't open file ([^\n]*)", re.MULTILINE)
_NO_MODULE = re.compile(
    r"^(?:\S*/)?(?:python[\d.]*|pypy[\d.]*|coverage): (No module named [^\n]*|Error while finding "
    r"module specification[^\n]*)",
    re.MULTILINE,
)
_GIT = re.compile(r"^(?:fatal|error): ([^\n]*)", re.MULTILINE)
_GIT_REASON = re.compile(
    r"not a git repository|did not match any file|Not a valid object name|patch does not apply|"
    r"already exists and is not an empty directory|unknown switch|unknown option|"
    r"ambiguous argument|"
    r"bad revision|corrupt patch|Your local changes|not something we can merge|"
    r"unable to auto-detect email address|no upstream branch|No such remote|"
    r"unrecognized argument|bad object|unknown revision|failed to push|needed a single revision"
)
_SYNTAX_DETAIL = "syntax error"


def shell_message(text: str) -> Finding | None:
    """The first complaint of a shell, a core tool or an interpreter that could not start."""
    # Lines are looked for by the line end before them: `re` finds that several times as fast.
    return _interpreter(text) or _shell(f"\n{text}") or _core_tool(f"\n{text}")


def git_message(text: str) -> Finding | None:
    """The first complaint that only git words so."""
    if "fatal: " not in text and "error: " not in text:
        return None
    for match in _GIT.finditer(text):
        if reason := _GIT_REASON.search(match[1]):
            return Finding(Family.SHELL, f"git: {reason.group()}", match[1])
    return None


def message_of_git(text: str) -> Finding | None:
    """The first complaint in the output of git itself."""
    if known := git_message(text):
        return known
    match = _GIT.search(text)
    return Finding(Family.SHELL, "git: fatal", match[1]) if match else None


def _interpreter(text: str) -> Finding | None:
    if "can't open file" in text and (match := _CANNOT_OPEN.search(text)):
        return Finding(Family.SHELL, "python: can't open file", match.group())
    if "ython" in text and (match := _NO_MODULE.search(text)):
        return Finding(Family.SHELL, "python -m: No module named", match[1])
    return None


def _shell(text: str) -> Finding | None:
    if "sh: " not in text and "eval" not in text and not _LINE_NUMBER.search(text):
        return None
    for match in _SHELL.finditer(text):
        if reason := _REASON.search(match[1][-400:]):
            return Finding(Family.SHELL, f"bash: {_unified(reason.group())}", match[1])
    return None


def _unified(reason: str) -> str:
    """The reason in the words of bash, whichever shell said it."""
    if reason.lower() in (_SYNTAX_DETAIL, "unexpected eof", "unexpected end of file"):
        return _SYNTAX_DETAIL
    if reason == "no such file or directory":
        return "No such file or directory"
    return "command not found" if reason == "not found" else reason


def _core_tool(text: str) -> Finding | None:
    for match in _COMMAND.finditer(text):
        message = match[2]
        if reason := _REASON.search(message[-400:]):
            return Finding(Family.SHELL, f"{match[1]}: {reason.group()}", message)
        if match[1] in ("sed", "find", "rg", "patch", "awk") and ": " in message:
            return Finding(Family.SHELL, f"{match[1]}: error", message)
    return None
