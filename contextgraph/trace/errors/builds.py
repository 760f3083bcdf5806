"""Complaints of compilers and build tools, and uncaught exceptions of other languages."""

import re

from contextgraph.model import Family
from contextgraph.trace.errors.finding import Finding, line_at
from contextgraph.trace.errors.foreign_reports import rust_panic
from contextgraph.trace.errors.tracebacks import bare_class

_RUSTC = re.compile(r"^error(?:\[(E\d{4})\])?: ([^\n]*)\n[ \t]*--> ([^\s:]+:\d+)", re.MULTILINE)
_TSC = re.compile(
    r"^([^\s(:]+)(?:\((\d+),\d+\): |:(\d+):\d+ - )error (TS\d+): ([^\n]*)", re.MULTILINE
)
_GCC = re.compile(r"^([^\s:]+):(\d+):(?:\d+:)? (?:fatal )?error: ([^\n]*)", re.MULTILINE)
_LINKER = re.compile(
    r"^(?:[^\n]{0,300}: )?(undefined reference to [^\n]*|ld: [^\n]*|collect2: error[^\n]*)",
    re.MULTILINE,
)
_GO = re.compile(r"^(?:\./)?([^\s:]+\.go):(\d+)(?::\d+)?: ([^\n]*)", re.MULTILINE)
_GO_OTHER = re.compile(
    r"^(?:go: [^\n]*\b(?:cannot|not found)\b|package \S+ is not in|[^\n]{0,200}no required module)"
    r"[^\n]*",
    re.MULTILINE,
)
_MAVEN = re.compile(r"^\[ERROR\] ([^\s:\[]+\.(?:java|kt)):\[(\d+),\d+\] ([^\n]*)", re.MULTILINE)
_MAKE = re.compile(r"^\S*make(?:\[\d+\])?: \*\*\* ([^\n]*)", re.MULTILINE)
_CMAKE = re.compile(r"^CMake Error(?: at ([^\s:]+:\d+))?[^\n]*(?:\n+ *([^\n]*))?", re.MULTILINE)
_QUOTED = re.compile(r"['‘`\"“][^'’`\"”\n]*['’`\"”]|\d+")
_NODE = re.compile(
    r"^(?:Uncaught )?((?:\w+)?(?:Error|Exception))(?: \[(\w+)\])?: ([^\n]*)"
    r"(?:\n(?!    at )[^\n]*){0,12}\n    at ",
    re.MULTILINE,
)
_NODE_PLACE = re.compile(r"^(\S+\.(?:[cm]?[jt]sx?)):(\d+)$", re.MULTILINE)
_NODE_FRAME = re.compile(
    r"^    at (?:[^\n(]{0,200}\()?((?!node:)[^\s():]{1,300}:\d+)", re.MULTILINE
)
_JAVA = re.compile(
    r"^(?:Exception in thread \"[^\"\n]*\"|Caused by:) ([\w.$]+)(?:: ([^\n]*))?", re.MULTILINE
)
_JAVA_PLACE = re.compile(r"^[ \t]+at [^\n(]{1,300}\((\w+\.(?:java|kt|scala):\d+)\)", re.MULTILINE)
_GO_PANIC = re.compile(r"^panic: ([^\n]*)", re.MULTILINE)
_GO_FRAME = re.compile(r"^\t(\S+\.go:\d+)", re.MULTILINE)


def build_failure(text: str) -> Finding | None:
    """The first complaint of a compiler or build tool."""
    if "error" in text or "rror:" in text or "ERROR]" in text:
        return _compiler(text) or _build_tool(text)
    if ".go:" in text and (match := _GO.search(text)) and "\n# " in f"\n{text}":
        return _build("go: build failed", match[3], f"{match[1]}:{match[2]}")
    return _build_tool(text)


def foreign_exception(text: str) -> Finding | None:
    """An exception that ended a program in JavaScript, Java, Rust or Go."""
    if "\n    at " in text and (found := _node(text)):
        return found
    if ("Exception in thread" in text or "Caused by:" in text) and (match := _JAVA.search(text)):
        place = _JAVA_PLACE.search(text, match.end())
        name = bare_class(match[1].replace("$", "."))
        return _exception(name, match[2] or "", place[1] if place else None)
    if panic := rust_panic(text):
        return _exception("panic", *panic)
    if "panic: " in text and (match := _GO_PANIC.search(text)):
        place = _GO_FRAME.search(text, match.end())
        return _exception("panic", match[1], place[1] if place else None)
    return None


def _compiler(text: str) -> Finding | None:
    if "-->" in text and (match := _RUSTC.search(text)):
        return _build(f"rustc: {match[1] or _reason(match[2])}", match[2], match[3])
    if "error TS" in text and (match := _TSC.search(text)):
        return _build(f"tsc: {match[4]}", match[5], f"{match[1]}:{match[2] or match[3]}")
    if "[ERROR] " in text and (match := _MAVEN.search(text)):
        return _build(f"javac: {_reason(match[3])}", match[3], f"{match[1]}:{match[2]}")
    if "error: " in text and (match := _GCC.search(text)):
        tool = "javac" if match[1].endswith(".java") else "gcc"
        return _build(f"{tool}: {_reason(match[3])}", match[3], f"{match[1]}:{match[2]}")
    if "undefined reference" in text or "ld: " in text or "collect2: " in text:
        match = _LINKER.search(text)
        return _build(f"ld: {_reason(match[1])}", match[1]) if match else None
    return None


def _build_tool(text: str) -> Finding | None:
    if ".go:" in text and "\n# " in f"\n{text}" and (match := _GO.search(text)):
        return _build("go: build failed", match[3], f"{match[1]}:{match[2]}")
    if "CMake Error" in text and (match := _CMAKE.search(text)):
        return _build("cmake: error", match[2] or match.group(), match[1])
    if ": *** " in text and (match := _MAKE.search(text)):
        return _build(f"make: {_make_reason(match[1])}", match[1])
    if "Could not compile" in text or "could not compile" in text:
        return _build("build failed", line_at(text, text.lower().find("could not compile")))
    if "module" in text or "package " in text:
        match = _GO_OTHER.search(text)
        return _build("go: module not found", match.group()) if match else None
    return None


def _build(error_type: str, message: str, location: str | None = None) -> Finding:
    return Finding(Family.BUILD, error_type, message, location)


def _exception(error_type: str, message: str, location: str | None) -> Finding:
    return Finding(Family.PYTHON_EXCEPTION, error_type, message, location)


def _reason(message: str) -> str:
    """The complaint without the names in it, at most six words."""
    bare = _QUOTED.sub("", message).split(";", 1)[0]
    return " ".join(bare.split()[:6]).rstrip(":, ") or "error"


def _make_reason(message: str) -> str:
    if message.startswith("No rule"):
        return "No rule to make target"
    return "recipe failed" if "Error" in message else _reason(message)


def _node(text: str) -> Finding | None:
    match = _NODE.search(text)
    if match is None:
        return None
    frame = _NODE_FRAME.search(text, match.start())
    place = _NODE_PLACE.search(text)
    location = frame[1] if frame else f"{place[1]}:{place[2]}" if place else None
    return _exception(match[1], match[3], location)
