"""Findings: failures in observations, the tables of patterns that find one, and signatures."""

import re
from collections.abc import Callable, Iterable
from functools import lru_cache

from contextgraph.lazy import TYPE_CHECKING, dataclass, regex
from contextgraph.model import ErrorSignature, Family
from contextgraph.text import compiled

if TYPE_CHECKING:
    from typing import TypeAlias


_CONTROL = regex(r"\x1b(?:\[[0-?]*+[ -/]*+[@-~]|\][^\x07\x1b\n]{0,200}(?:\x07|\x1b\\)|[@-Z\\-_])")
_INDENTED = r"(?:(?:[ \t][^\n]*)?\n)*+"
_REPORT = r"(?:(?![ \t]*Remainder of file)(?:[ \t][^\n]*)?\n)*+"
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

MESSAGE_LENGTH = 300
# The type of a failure that a program reports without naming an exception.
PRINTED = "printed error"
_TYPE_LENGTH = 100
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
    """*text* with plain line ends and without control sequences."""
    if "\x1b" in text:
        text = _CONTROL.sub("", text)
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def without_banners(text: str) -> str:
    """Plain *text* without what interpreters print although they go on."""
    if "ignored" in text or "Error processing line" in text or "Error in sitecustomize" in text:
        return _BANNERS.sub("", text)
    return text


@dataclass(frozen=True, slots=True)
class Finding:
    """A failure with its message and place as they are shown."""

    family: Family
    error_type: str
    message: str
    location: str | None = None


Search: "TypeAlias" = Callable[[str], Finding | None]


@dataclass(frozen=True, slots=True)
class Recogniser:
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
            object.__setattr__(self, "words", (self.words,))

    def find(self, text: str) -> Finding | None:
        """The first message of this form in *text*."""
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


def first_in(table: Iterable[Recogniser], text: str) -> Finding | None:
    """Return what the first row of *table* that applies finds in *text*."""
    for recogniser in table:
        # Looked for here as well, since calling `find` for each row costs more than looking.
        for word in recogniser.words:
            if word in text:
                if finding := recogniser.find(text):
                    return finding
                break
    return None


# Agents meet the same message many times, and masking it is the most expensive part of a step.
@lru_cache(maxsize=2048)
def signature_for(finding: Finding) -> ErrorSignature:
    """The signature of a *finding*."""
    message = finding.message.strip()[:MESSAGE_LENGTH]
    error_type = finding.error_type[:_TYPE_LENGTH]
    return ErrorSignature(
        finding.family,
        error_type,
        message,
        template_of(message),
        keywords_of(message, error_type),
        finding.location,
    )


def line_at(text: str, position: int) -> str:
    """The line of *text* that *position* is in, clipped."""
    start = text.rfind("\n", 0, position) + 1
    end = text.find("\n", position)
    return text[start : min(len(text) if end < 0 else end, start + _LINE_LENGTH)]


def reason_of(message: str) -> str:
    """The message without names, numbers and details, at most six words."""
    bare = _QUOTED.sub("", _FILE.sub("", message[:500], count=1)).split(";", 1)[0].strip()
    kind = _KIND.match(bare)
    words = (kind[1] if kind else bare).split()
    return " ".join(words[:_REASON_WORDS]).rstrip(":, ") or "error"


def class_name(name: str) -> str:
    """The class without its module; with it where the class name is too general."""
    parts = name.strip(".").split(".")
    return ".".join(parts[-2:]) if parts[-1] in ("error", "Error") else parts[-1]


def exception(
    name: str,
    message: str,
    location: str | None = None,
    family: Family = Family.PYTHON_EXCEPTION,
) -> Finding:
    """An exception of class *name*; of *family*, unless the source is what is wrong."""
    error_type = class_name(name)
    if error_type in _SYNTAX_ERRORS:
        family = Family.SYNTAX_ERROR
    return Finding(family, error_type, message, location)


TEMPLATE_LENGTH = 200
KEYWORDS = 3
_READ = 1000
# One mistake in the words of several versions of Python, and what only some of them add.
_VARIANTS = (
    (regex(r"(expected an indented block) after [^\n]* on line \d+"), r"\1"),
    (regex(r"(invalid syntax)\. (?:Perhaps|Maybe) [^\n]*"), r"\1"),
    (regex(r"EOL while scanning string literal"), "unterminated string literal"),
    (
        regex(r"EOF while scanning triple-quoted string literal"),
        "unterminated triple-quoted string literal",
    ),
    (regex(r" \(detected at line \d+\)"), ""),
    (regex(r"(cannot import name '[^']*') from '[^']*' \([^()\n]*\)"), r"\1"),
    (regex(r"\.? Did you mean:? [^\n]*\?"), ""),
    (regex(r"(unrecognized argument)s?: [^\n]*"), r"\1"),
)
_MASKED = regex(
    # Plain words, which nothing below matches, are skipped whole: that halves the time.
    r"""(?P<word>(?<!named\ )(?<!Directory\ )(?<!name\ )(?<!File\ )(?<!for\ )
        \b(?!arguments\b)[A-Za-z]++(?=\ (?!object\ has)|$))
    |(?P<mask><(?:url|time|name|path|hex|number)>)
    |(?P<url>\b[a-z][a-z0-9+.-]{1,10}://[^\s'"<>]++)
    |(?P<time>\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?
        |\b\d\d:\d\d:\d\d\b)
    |(?P<name>(?<!\w)(?:b|u|r|f)?'(?:[^'\\\n]|\\.){0,300}'(?!\w)|"(?:[^"\\\n]|\\.){0,300}"
        |`[^`'\n]{1,300}[`']
        |‘[^’\n]{1,300}’|“[^”\n]{1,300}”|(?:\b[A-Za-z_][\w.]*+)?(?=\(\))
        |(?<=\bmodule\ named\ )[\w.]++|\b\w++(?=\ object\ has\ no\ attribute\b)
        |(?<=valid\ object\ name\ )\S+)
    |(?P<path>(?<=Directory\ )\S+(?=\ not\ found)|(?<=File\ name\ )\S+(?=\ not\ found)
        |(?<=\bFile\ )\S+(?=\ not\ found)|(?<=distribution\ found\ for\ )\S+
        |[^\s<>'"]+(?=:\ (?:No\ such\ file|Permission\ denied|Is\ a\ dir|Not\ a\ dir))
        |(?<![\w>])(?:[A-Za-z]:\\|~?/|\.{1,2}/)[\w.@+-][^\s'"<>:,;()\[\]]*+
        |\b[\w.-]++(?:/[\w.@+-]++)+
        |\b[\w-]++\.(?:py|[jt]sx?|c|cc|cpp|h|go|rs|java|toml|ya?ml|json|cfg|ini|txt|md|whl|zip|gz)\b
        (?::\d++)*)
    |(?P<hex>\b0[xX][0-9a-fA-F]+\b|\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,64}\b)
    |(?P<number>(?<![\w.>])[vV+-]?\d++(?:[.,_]\d++)*(?:[eE][+-]?\d++)?
        (?:\.?(?:dev|post|rc|a|b)\d++)?(?!\w))
    |(?P<plural>(?<=argument)s\b)""",
    re.VERBOSE,
)
_NAMES = regex(r"<name>(?:(?:,|,? and|,? or) <name>)+")
_QUOTED_TEXT = regex(
    r"""(?<!\w)'([^'\n]{1,120})'|"([^"\n]{1,120})"|`([^`'\n]{1,120})[`']|‘([^’\n]{1,120})’"""
)
_IDENTIFIER = regex(r"[A-Za-z_][\w-]*(?:[./][\w-]+)*")
_CODE_LIKE = regex(r"\w_\w|[a-z][A-Z]|\w[./]\w|^[A-Z]{2,}$|__")
_WORD = regex(r"[A-Za-z][A-Za-z-]{2,}")
_BOILERPLATE = frozenset(
    "the and not for are was has had have can cannot could with from this that but you your its "
    "it's than then there their into only been does did don doesn name object type instance "
    "error errors exception traceback most recent call last file line module named attribute "
    "got given takes missing required positional keyword argument arguments failed failure "
    "unexpected invalid none true false expected value raise raised assert self code python "
    "found such directory must should while when during after before because using use please "
    "try".split()
)


def template_of(message: str) -> str:
    """*message* with paths, numbers, ids, quoted names, addresses and times masked.

    At most 200 characters; the template of a template is itself.
    """
    text = message[:_READ]
    for pattern, replacement in _VARIANTS:
        text = pattern.sub(replacement, text)
    text = _masked(" ".join(text.split()))
    # Masking may bring two halves of a name together; a few rounds reach the form that stays.
    for _ in range(6):
        if (once_more := _masked(text)) == text:
            break
        text = once_more
    return text


def _masked(text: str) -> str:
    masked = _NAMES.sub("<name>", _MASKED.sub(_placeholder, text))
    return masked.strip()[:TEMPLATE_LENGTH].rstrip()


def _placeholder(match: re.Match[str]) -> str:
    kind = match.lastgroup
    if kind == "plural":
        return ""
    if kind in ("word", "mask") or not match.group():
        return match.group()
    return f"<{kind}>"


def keywords_of(message: str, error_type: str) -> tuple[str, ...]:
    """At most three words that set *message* apart: names first, then other informative words.

    Where a message has only common words, these are better than none.
    """
    text = message[:_READ]
    quoted = (next(filter(None, match.groups())) for match in _QUOTED_TEXT.finditer(text))
    names = [word for part in quoted for word in _IDENTIFIER.findall(part)[:2]]
    names += [match[0] for match in _IDENTIFIER.finditer(text) if _CODE_LIKE.search(match[0])]
    # The last part of a path; a dotted name stays whole.
    candidates = [name.rsplit("/", 1)[-1][:60] for name in names]
    words = (word.lower() for word in _WORD.findall(text))
    candidates += [word for word in words if word not in _BOILERPLATE]
    known = {error_type, error_type.rsplit(".", 1)[-1]}
    chosen = _distinct([word for word in candidates if word not in known])
    return tuple(chosen or _distinct(_WORD.findall(text)))


def _distinct(words: list[str]) -> list[str]:
    """The first few *words*, none of them part of another."""
    chosen: list[str] = []
    joined = ""
    for word in words:
        if word.lower() not in joined:
            chosen.append(word)
            joined = f"{joined} {word.lower()}"
        if len(chosen) == KEYWORDS:
            break
    return chosen
