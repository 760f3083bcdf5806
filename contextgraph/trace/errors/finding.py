"""What a piece of evidence says of an observation, before it becomes a signature."""

import re
from dataclasses import dataclass
from functools import lru_cache

from contextgraph.model import ErrorSignature, Family
from contextgraph.trace.errors.keywords import keywords_of
from contextgraph.trace.errors.template import template_of

MESSAGE_LENGTH = 300
_CONTROL = re.compile(
    r"\x1b(?:\[[0-?]*+[ -/]*+[@-~]|\][^\x07\x1b\n]{0,200}(?:\x07|\x1b\\)|[@-Z\\-_])"
)


@dataclass(frozen=True, slots=True)
class Finding:
    """A failure with its message and place as they are shown."""

    family: Family
    error_type: str
    message: str
    location: str | None = None


# Agents meet the same message again and again; masking it is the dearest part of a step.
@lru_cache(maxsize=2048)
def signed(finding: Finding) -> ErrorSignature:
    """The signature of a *finding*."""
    message = finding.message.strip()[:MESSAGE_LENGTH]
    error_type = finding.error_type[:100]
    return ErrorSignature(
        finding.family,
        error_type,
        message,
        template_of(message),
        keywords_of(message, error_type),
        finding.location,
    )


def plain(text: str) -> str:
    """*text* without control sequences, carriage returns and noise of an interpreter's start."""
    if "\x1b" in text:
        text = _CONTROL.sub("", text)
    if "Remainder of file ignored" in text:
        text = _without_start_up(text)
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def _without_start_up(text: str) -> str:
    """*text* without what Python says at its start of broken ``.pth`` files, and goes on."""
    start = text.find("Error processing line")
    end = text.find("\n", text.rfind("Remainder of file ignored"))
    return text[:start] + (text[end + 1 :] if end >= 0 else "") if start >= 0 else text


def line_at(text: str, position: int) -> str:
    """The line of *text* that *position* is in, clipped."""
    start = text.rfind("\n", 0, position) + 1
    end = text.find("\n", position)
    return text[start : min(len(text) if end < 0 else end, start + 1000)]
