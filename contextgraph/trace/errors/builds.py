"""Complaints of compilers, linkers and checkers of source code."""

import re

from contextgraph.model import Family
from contextgraph.trace.errors.build_tools import build_tool_failure
from contextgraph.trace.errors.finding import Finding
from contextgraph.trace.errors.printed import PRINTED
from contextgraph.trace.errors.reasons import reason_of

_RUSTC = re.compile(r"^error(?:\[(E\d{4})\])?: ([^\n]*)\n[ \t]*--> ([^\s:]+:\d+)", re.MULTILINE)
_TSC = re.compile(
    r"^(?:([^\s(:]+)(?:\((\d+),\d+\): |:(\d+):\d+ - ))?error (TS\d+): ([^\n]*)", re.MULTILINE
)
# Gradle writes what javac says behind the name of its task.
_GCC = re.compile(
    r"^(?::\w+(?=/))?([^\s:]+):(\d+):(?:\d+:)? (?:fatal )?error: ([^\n]*)", re.MULTILINE
)
# A compiler that could not start on a file: no place in it is to blame.
_DRIVER = re.compile(
    r"^(?:\S*/)?(cc1(?:plus)?|gcc|g\+\+|clang(?:\+\+)?|cc|c\+\+)(?:-\d+)?: (?:fatal )?error: "
    r"([^\n]*)",
    re.MULTILINE,
)
_JAVAC = re.compile(
    r"^error: (file not found|invalid [\w ]+|class file [\w ]+)[^\n]*", re.MULTILINE
)
_SYMBOL = re.compile(r"(?:\n(?! *symbol:)[^\n]*){0,3}\n *symbol: +(\w+) ([\w.$]+)")
_CODE = re.compile(r"\s\[([a-z-]+)\]$")
_LINKER = re.compile(
    r"^(?:[^\n]{0,300}: )?(undefined reference to [^\n]*|multiple definition of [^\n]*"
    r"|cannot find -l[^\n]*|ld: [^\n]*|collect2: error[^\n]*)",
    re.MULTILINE,
)
_GO = re.compile(r"^(?:vet: )?(?:\./)?([^\s:]+\.go):(\d+):\d+: ([^\n]*)", re.MULTILINE)
_GO_UNDER_NAME = re.compile(r"^# \S[^\n]*\n(?:\./)?([^\s:]+\.go):(\d+): ([^\n]*)", re.MULTILINE)
_MAVEN = re.compile(r"^\[ERROR\] ([^\s:\[]+\.(?:java|kt)):\[(\d+),\d+\] ([^\n]*)", re.MULTILINE)
_ESLINT = re.compile(r"^[ \t]{1,9}(\d+):\d+[ \t]{1,9}error[ \t]{1,9}(\S[^\n]*)$", re.MULTILINE)
_RULE = re.compile(r"[\w@/-]{1,100}")
_TOO_MANY = re.compile(r"^ESLint found too many warnings[^\n]*", re.MULTILINE)
_ESLINT_FILE = re.compile(r"^\S[^\n]*\.\w{1,6}$", re.MULTILINE)


def build_failure(text: str) -> Finding | None:
    """The first complaint of a compiler, checker or build tool."""
    if "Oops! Something went wrong! :(" in text:
        return _eslint_itself(text)
    said = _compiler(text) if "rror" in text or "ERROR]" in text else _linker(text)
    return said or _go(text) or build_tool_failure(text)


def _compiler(text: str) -> Finding | None:
    if "-->" in text and (match := _RUSTC.search(text)):
        return _build(f"rustc: {match[1] or reason_of(match[2])}", match[2], match[3])
    if "error TS" in text and (match := _TSC.search(text)):
        place = f"{match[1]}:{match[2] or match[3]}" if match[1] else None
        return _build(f"tsc: {match[4]}", match[5], place)
    if "[ERROR] " in text and (match := _MAVEN.search(text)):
        return _javac(match)
    if "error: " in text and (found := _like_gcc(text)):
        return found
    if "✖ " in text and (found := _eslint(text)):
        return found
    return _linker(text)


def _like_gcc(text: str) -> Finding | None:
    """What compilers complain of in the manner of gcc."""
    if match := _GCC.search(text):
        if match[1].endswith(".java"):
            return _javac(match)
        code = _CODE.search(match[3]) if match[1].endswith((".py", ".pyi")) else None
        error_type = f"mypy: {code[1]}" if code else f"gcc: {reason_of(match[3])}"
        return _build(error_type, match[3], f"{match[1]}:{match[2]}")
    if (match := _DRIVER.search(text)) and "linker command failed" not in text:
        return _build(f"gcc: {reason_of(match[2])}", match[2])
    if match := _JAVAC.search(text):
        return _build(f"javac: {match[1]}", match.group())
    return None


def _javac(match: re.Match[str]) -> Finding:
    """A complaint of javac, with the symbol that it names on a line of its own."""
    message = match[3].strip()
    if message == "cannot find symbol" and (symbol := _SYMBOL.match(match.string, match.end())):
        message = f"{message}: {symbol[1]} '{symbol[2]}'"
    return _build(f"javac: {reason_of(match[3])}", message, f"{match[1]}:{match[2]}")


def _linker(text: str) -> Finding | None:
    if not any(said in text for said in ("undefined ref", "multiple def", "ld: ", "collect2: ")):
        return None
    match = _LINKER.search(text)
    return _build(f"ld: {reason_of(match[1])}", match[1]) if match else None


def _eslint(text: str) -> Finding | None:
    if not (match := _ESLINT.search(text)):
        many = _TOO_MANY.search(text)
        return _build("eslint: too many warnings", many.group()) if many else None
    files = _ESLINT_FILE.findall(text[max(0, match.start() - 20_000) : match.start()])
    place = f"{files[-1]}:{match[1]}" if files else None
    said, _, rule = match[2].rpartition("  ")
    if not _RULE.fullmatch(rule):
        said, rule = match[2], reason_of(match[2])
    return _build(f"eslint: {rule}", said.strip(), place)


def _eslint_itself(text: str) -> Finding:
    start = text.find("Oops! Something went wrong!")
    said = [line for line in text[start : start + 2000].splitlines()[1:] if line.strip()]
    message = next((line for line in said if not line.startswith("ESLint: ")), "")
    return Finding(Family.PYTHON_EXCEPTION, PRINTED, message)


def _go(text: str) -> Finding | None:
    if ".go:" not in text:
        return None
    match = _GO.search(text) or _GO_UNDER_NAME.search(text)
    if match is None:
        return None
    where = f"{match[1]}:{match[2]}"
    if match[3].startswith(("no required module", "package ", "cannot find package")):
        return _build("go: module not found", match[3], where)
    return _build(f"go: {reason_of(match[3])}", match[3], where)


def _build(error_type: str, message: str, location: str | None = None) -> Finding:
    return Finding(Family.BUILD, error_type, message, location)
