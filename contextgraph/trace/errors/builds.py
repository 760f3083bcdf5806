"""Errors of compilers, linkers, linters and build tools, as a table."""

import re
from functools import partial

from contextgraph.model import Family
from contextgraph.trace.errors.finding import (
    PRINTED,
    Finding,
    Recogniser,
    first_in,
    reason_of,
)

_build = partial(Recogniser, Family.BUILD)

_SYMBOL = re.compile(r"(?:\n(?! *symbol:)[^\n]*){0,3}\n *symbol: +(\w+) ([\w.$]+)")
_ESLINT_FILE = re.compile(r"^\S[^\n]*\.\w{1,6}$", re.MULTILINE)
_ESLINT_RULE = re.compile(r"[\w@/-]{1,100}")
_GO_MISSING = re.compile(r"no required module|cannot find|not found|is not in (?:std|GOROOT)")
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


_BUILDS = (
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


def build_failure(text: str) -> Finding | None:
    """The first message of a compiler, linker, checker or build tool."""
    return first_in(_BUILDS, text)
