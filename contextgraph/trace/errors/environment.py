"""Failures of the surroundings: package installers, the network, time-outs."""

import re

from contextgraph.model import Family
from contextgraph.trace.errors.finding import Finding, line_at

_TAIL = 600
# The reason stands at the beginning of a complaint.
_HEAD = 400
_TIMEOUTS = (
    ("EXECUTION TIMED OUT", "EXECUTION TIMED OUT"),
    ("timed out after", "command timed out"),
    ("command timed out", "command timed out"),
    ("Command timed out", "command timed out"),
    ("was timed out", "command timed out"),
    ("was cancelled because it took more than", "command timed out"),
    ("The command has no new output after", "command timed out"),
)
_TELLING = ("timed out", "TIMED OUT", "MALFORMED", "took more than", "no new output")
_HARNESS = ("EXECUTION FAILED OR COMMAND MALFORMED",)
_PIP = re.compile(r"^[ \t]*(?:ERROR|error): ([^\n]*)", re.MULTILINE)
_PIP_KNOWN = re.compile(
    r"HTTP error \d+|No matching distribution found|due to an? (\w+)|Invalid requirement|"
    r"Failed building wheel|subprocess-exited-with-error|ResolutionImpossible|"
    r"Cannot install|externally-managed-environment|Could not open requirements file|"
    r"is not a supported wheel|requires a different Python|metadata-generation-failed|"
    r"You must give at least one requirement|Directory [^\n]* is not installable|"
    r"is not a valid editable requirement|Could not build wheels|unknown command|no such option"
)
_PIP_CERTAIN = re.compile(
    r"HTTP error \d+ while getting|No matching distribution found|Could not install packages|"
    r"Invalid requirement|Failed building wheel|ResolutionImpossible|Could not build wheels|"
    r"Cannot install|Could not open requirements file|subprocess-exited-with-error"
)
_PIP_HARMLESS = ("pip's dependency resolver", "Could not find a version that satisfies")
_CURL = re.compile(r"^curl: (\(\d+\)) ([^\n]*)", re.MULTILINE)
_CURL_DETAIL = re.compile(r" to | host| after |[:'\"].*", re.DOTALL)
_WGET = re.compile(r"\bERROR (\d{3}): ([^\n.]*)|^wget: ([^\n:]{0,200})", re.MULTILINE)
_APT = re.compile(r"^E: ([^\n]*)", re.MULTILINE)
_CONDA = re.compile(
    r"^(PackagesNotFoundError|CondaError|ResolvePackageNotFound|\w*CondaError|"
    r"UnsatisfiableError|CondaHTTPError|EnvironmentNameNotFound):([^\n]*)",
    re.MULTILINE,
)
_NPM = re.compile(r"^npm (?:ERR!|error) (?:code (\w+)|(Missing script)[^\n]*)", re.MULTILINE)
_NETWORK = re.compile(
    r"^(?:fatal|ssh): ([^\n]*(?:Could not resolve host|unable to access|Connection refused|"
    r"Could not read from remote|could not read Username|Connection timed out)[^\n]*)",
    re.MULTILINE,
)
_DETAIL = re.compile(r"['\"`‘“(\[:,].*|\S*/.*", re.DOTALL)


def timeout(text: str) -> Finding | None:
    """The harness gave up waiting, or could not run the command at all."""
    tail = text[-_TAIL:]
    if not any(word in tail for word in _TELLING):
        return None
    for words in _HARNESS:
        if words in tail:
            return Finding(Family.ENVIRONMENT, words, words)
    for words, error_type in _TIMEOUTS:
        if words in tail and (line := line_at(tail, tail.find(words))):
            return Finding(Family.TIMEOUT, error_type, line)
    return None


def installer_failure(text: str) -> Finding | None:
    """What a package installer complains of."""
    if "ERROR: " in text or "error: " in text:
        for match in _PIP.finditer(text):
            if not any(words in match[1] for words in _PIP_HARMLESS):
                return Finding(Family.ENVIRONMENT, f"pip: {_pip_type(match[1])}", match[1])
    return _other_installer(text)


def known_installer_failure(text: str) -> Finding | None:
    """What an installer complains of in words that nothing else uses."""
    if "ERROR: " in text:
        for match in _PIP.finditer(text):
            if _PIP_CERTAIN.match(match[1]):
                return Finding(Family.ENVIRONMENT, f"pip: {_pip_type(match[1])}", match[1])
    return _other_installer(text)


def network_failure(text: str) -> Finding | None:
    """What a program that fetches from the network complains of."""
    if "curl: (" in text and (match := _CURL.search(text)):
        reason = _curl_reason(match[2])
        return Finding(Family.ENVIRONMENT, f"curl: {match[1]} {reason}", match[2])
    if ("ERROR " in text or "wget: " in text) and (match := _WGET.search(text)):
        reason = f"ERROR {match[1]}" if match[1] else _DETAIL.sub("", match[3][:_HEAD]).strip()
        return Finding(Family.ENVIRONMENT, f"wget: {reason}", line_at(text, match.start()))
    if ("fatal: " in text or "ssh: " in text) and (match := _NETWORK.search(text)):
        return Finding(Family.ENVIRONMENT, "git: network failure", match[1])
    return None


def _pip_type(message: str) -> str:
    if match := _PIP_KNOWN.search(message[:_HEAD]):
        return match[1] or match.group()
    return " ".join(_DETAIL.sub("", message[:_HEAD]).split()[:5])


def _curl_reason(message: str) -> str:
    for words in ("Failed to connect", "Could not resolve host"):
        if message.startswith(words):
            return words
    return _CURL_DETAIL.split(message)[0]


def _other_installer(text: str) -> Finding | None:
    if "\nE: " in text or text.startswith("E: "):
        complaint = _APT.search(text)
        if complaint:
            reason = " ".join(_DETAIL.sub("", complaint[1][:_HEAD]).split()[:4])
            return Finding(Family.ENVIRONMENT, f"apt: {reason}", complaint[1])
    if "npm " in text and (match := _NPM.search(text)):
        return Finding(
            Family.ENVIRONMENT, f"npm: {match[1] or match[2]}", line_at(text, match.start())
        )
    if "Error:" in text and (match := _CONDA.search(text)):
        return Finding(Family.ENVIRONMENT, f"conda: {match[1]}", match[2])
    return None
