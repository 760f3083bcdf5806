"""Complaints of the tools that drive a build: make, CMake, Cargo, Go, Maven, Gradle."""

import re

from contextgraph.model import Family
from contextgraph.trace.errors.finding import Finding, line_at
from contextgraph.trace.errors.reasons import reason_of

_MAKE = re.compile(
    r"^(?:\S*make(?:\[\d+\])?|([^\s:]+:\d+)): \*\*\* (?:\[([^\s:\]]+:\d+): )?([^\n]*)", re.MULTILINE
)
_CMAKE = re.compile(
    r"^CMake Error(?:: ([^\n]+)|(?: at ([^\s:]+:\d+))?[^\n]*"
    r"(?:\n+ *([^\n]*?(?::\s*\n\s*[^\n]*|$)))?)",
    re.MULTILINE,
)
_GO = re.compile(
    r"^(?:go: (?!(?:downloading|finding|found|added|creating|upgraded|to add|warning)\b)"
    r"[^\n]*\b(?:cannot|not found|errors?|missing|invalid|malformed|unknown|no such|does not)\b"
    r"|package \S+ is not in|[ \t]+imports \S+ from \S+: import cycle|pattern \S+: "
    r"|[^\n]{0,200}no required module)[^\n]*",
    re.MULTILINE,
)
_GO_MISSING = re.compile(r"no required module|cannot find|not found|is not in (?:std|GOROOT)")
_CARGO = re.compile(r"^error: ([^\n]*)", re.MULTILINE)
_OF_CARGO = ("Cargo.toml", "cargo", "crate", " target named ")
_MAVEN = re.compile(r"^\[(?:ERROR|FATAL)\] +(\S[^\n]*)", re.MULTILINE)
_MAVEN_ON = re.compile(r"Failed to execute goal (?:\S+ \([^)\n]*\) )?on project \S+?: (.*)")
_MAVEN_ENDS = ("BUILD FAILURE", "[Help 1]", "re-run Maven")
_GRADLE = re.compile(r"^\* What went wrong:\n([^\n]*)(?:\n> ([^\n]*))?", re.MULTILINE)


def build_tool_failure(text: str) -> Finding | None:
    """The first complaint of a build tool."""
    if "CMake Error" in text and (match := _CMAKE.search(text)):
        message = match[1] or match[3] or match.group()
        return _build("cmake: error", " ".join(message.split()), match[2])
    if ": *** " in text and (match := _MAKE.search(text)):
        return _build(f"make: {_make_reason(match[3])}", match[3], match[1])
    if "ould not compile" in text:
        return _build("build failed", line_at(text, text.find("ould not compile")))
    if "* What went wrong:" in text and (match := _GRADLE.search(text)):
        return _build(f"gradle: {reason_of(match[1])}", match[2] or match[1])
    if "[ERROR] " in text and any(end in text for end in _MAVEN_ENDS):
        return _maven(text)
    if "error: " in text and any(word in text for word in _OF_CARGO):
        return _cargo(text)
    return _go(text)


def _build(error_type: str, message: str, location: str | None = None) -> Finding:
    return Finding(Family.BUILD, error_type, message, location)


def _make_reason(message: str) -> str:
    if message.startswith("No rule"):
        return "No rule to make target"
    return "recipe failed" if "Error" in message else reason_of(message)


def _maven(text: str) -> Finding | None:
    match = _MAVEN.search(text)
    if match is None:
        return None
    on_project = _MAVEN_ON.match(match[1])
    said = on_project[1] if on_project else match[1]
    family = Family.ENVIRONMENT if "Could not resolve" in said else Family.BUILD
    return Finding(family, f"mvn: {reason_of(said)}", said)


def _cargo(text: str) -> Finding | None:
    match = _CARGO.search(text)
    if match is None or not any(word in text[match.start() :] for word in _OF_CARGO):
        return None
    return _build(f"cargo: {reason_of(match[1])}", match[1])


def _go(text: str) -> Finding | None:
    if not any(
        word in text
        for word in ("go: ", "package ", "pattern ", "no required module", "import cycle")
    ):
        return None
    if not (match := _GO.search(text)):
        return None
    missing = _GO_MISSING.search(match.group())
    return _build("go: module not found" if missing else "go: error", match.group())
