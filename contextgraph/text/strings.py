"""Text: cleaned, fenced, cut, split into words, compared, and masked where it holds secrets."""

import builtins
import keyword
import re
import threading
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache, lru_cache
from itertools import accumulate, chain, islice, pairwise, repeat
from math import log
from typing import TYPE_CHECKING, AnyStr, Generic
from unicodedata import combining, name as unicode_name, normalize

from msgspec import Struct

if TYPE_CHECKING:
    from typing import Literal


class Regex(Struct, Generic[AnyStr], dict=True, eq=False):
    """A regular expression that is compiled at its first use; then its methods are those of `re`.

    A command uses a few of the 650 of the modules that it imports. Were all compiled there, a hook
    with nothing to say would take 11.9 times as long as starting Python in place of 7.6, a query
    17.0 in place of 13.6. `re.search` keeps 512, and each call of it takes 2.8 times as long.
    """

    pattern: AnyStr
    flags: int

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):  # such as `__deepcopy__`
            raise AttributeError(name)
        compiled = re.compile(self.pattern, self.flags)
        methods = ("search", "match", "fullmatch", "split", "findall", "finditer", "sub", "subn")
        self.__dict__.update({method: getattr(compiled, method) for method in methods})
        return getattr(compiled, name)


def regex(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return `re.compile(pattern, flags)`, compiled at its first use."""
    return Regex(pattern, flags)  # type: ignore[return-value]  # it has the same methods


# CSI and OSC sequences, then the escapes of two or three characters.
_ANSI = regex(
    r"(?:\x1b\[|\x9b)[0-?]*+[ -/]*+[@-~]?"
    r"|\x1b[\]PX^_][^\x07\x1b\n]{0,4096}+(?:\x07|\x1b\\)"
    r"|\x1b[ -/]{0,2}[0-~]"
)
_CONTROL = regex(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]+")
_UNWANTED = regex("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
# What Unicode lets a text hold unseen: its format characters (but for signs above numbers) and
# those that programs may ignore, such as bidi controls, variation selectors and tags; line ends.
_INVISIBLE = regex(
    "[\u00ad\u034f\u061c\u070f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]+"
)
_PLAIN_ASCII = bytes((*b"\t\n", *range(32, 127)))
_CONTROL_ASCII = bytes(code for code in (*range(32), 127) if code not in b"\t\n\r")

# All control characters but tab and newline: logs of agents hold escape sequences, which would
# otherwise colour, retitle or clear the terminal.
_TERMINAL = regex(r"\x1b\[[0-9;?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def encodable(text: str) -> str:
    """Return *text* with halves of surrogate pairs joined, and one without its partner as U+FFFD.

    The result encodes as UTF-8, which what a program printed need not, as Python reads it.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def clean(text: str) -> str:
    r"""Return *text* without escape sequences and control characters, with `\n` as line end.

    A line that was redrawn after a carriage return keeps its last state; the result is `encodable`.
    Cleaning twice changes nothing more.
    """
    if is_plain(text):
        return text
    if "\x1b" in text or "\x9b" in text:
        text = _ANSI.sub("", text)
    if text.isascii():
        text = text.encode("ascii").translate(None, _CONTROL_ASCII).decode("ascii")
    else:
        text = _CONTROL.sub("", encodable(text))
    if "\r" not in text:
        return text
    lines = (line.split("\r") for line in text.replace("\r\n", "\n").split("\n"))
    return "\n".join(next(filter(None, reversed(states)), "") for states in lines)


def visible(text: str) -> str:
    """Return *text* without hiding or reversing characters: bidi, zero width, tags."""
    if text.isascii() or not _INVISIBLE.search(_without_plain_ascii(text)):
        return text
    return _INVISIBLE.sub("", text)


def _without_plain_ascii(text: str) -> str:
    """Return the part of *text* to look at, in a sixth of the time of a pattern over it all."""
    left = text.encode("utf-8", "surrogatepass").translate(None, _PLAIN_ASCII)
    return left.decode("utf-8", "surrogatepass")


def gives_instructions(text: str) -> bool:
    """Return True for a text that instructs an agent, as in "ignore previous instructions".

    Characters of full width and without width do not hide one, nor does a name such as that of a
    file.
    """
    plain_text = _lowered(text)
    apart = _JOINED.sub(" ", plain_text)
    # Most texts join no words; the pattern takes most of the time.
    texts = (plain_text, apart) if apart != plain_text else (plain_text,)
    return any(map(_INSTRUCTION.search, texts))


def addresses_reader(text: str) -> bool:
    """Return True for what `gives_instructions`, or speaks to a reader as a person might."""
    return gives_instructions(text) or _ADDRESS.search(_lowered(text)) is not None


def _lowered(text: str) -> str:
    """Return *text* in lower case, without characters that hide a word or stand for another.

    A pattern that ignores case takes twice as long as one of lower case.
    """
    if text.isascii():
        return text.lower()
    return normalize("NFKC", visible(text)).translate(_DOTTED_OR_NOT).lower()


def is_plain(text: str) -> bool:
    """Return True where *text* is clean already."""
    # Six times as fast as the pattern; nearly all texts of a run are ASCII.
    if text.isascii():
        return not text.encode("ascii").translate(None, _PLAIN_ASCII)
    return not _UNWANTED.search(_without_plain_ascii(text))


_DOTTED_OR_NOT = str.maketrans("\u0130\u0131", "ii")
# What a text would say to an agent, rather than about a program. English only, in lower case.
_INSTRUCTION = regex(
    r"\b(?:ignore|disregard|forget|override|bypass)\s+(?:\w+\s+){0,4}"
    r"(?:instructions?|prompts?|rules|guidelines|directions)\b"
    r"|\byou\s+(?:must|should|shall|need\s+to|have\s+to|are\s+(?:required|instructed)\s+to)\s+"
    r"(?:\w+\s+){0,2}(?:run|execute|call|invoke|install|download|fetch|visit|send|post|upload|"
    r"delete|remove|reveal|print|output|ignore|disable|approve)\b"
    r"|\b(?:new|updated|real|actual|system)\s+(?:instructions?|prompt)\b"
    r"|\byou\s+are\s+now\b|\b(?:do\s+not|don't|never)\s+(?:tell|inform|ask|warn)\s+the\s+user\b"
    r"|\b(?:ai|llm|coding)\s+(?:agents?|assistants?|models?)\s*[:,]"
    r"|\b(?:important|attention|notice|note|instructions?|message)\s+(?:to|for)\s+"
    r"(?:the\s+|all\s+|any\s+)?(?:\w+\s+)?(?:agents?|assistants?|models?|ai|llm|reader)\b"
    r"|\b(?:your\s+(?:new|real|actual|true|only)\s+(?:task|goal|job|role|objective)"
    r"|pretend\s+(?:to\s+be|that\s+you|you))\b"
    r"|\b(?:curl|wget|iwr|invoke-webrequest)\b[^\n|]{0,300}\|\s*(?:sudo\s+)?(?:ba|z|da)?sh\b"
    r"|\b(?:reveal|print|show|send|post|upload|email|leak|exfiltrate|copy|paste)\s+(?:\w+\s+){0,4}"
    r"(?:secrets?|tokens?|passwords?|credentials?|api[ _-]?keys?|private\s+keys?|ssh\s+keys?"
    r"|environment\s+variables|system\s+prompt)\s+(?:to|at|in|into|on|via|here)\b"
)
# What people say to their agents, too, and no title of a task has.
_ADDRESS = regex(
    r"\b(?:from\s+now\s+on|without\s+(?:asking|telling|informing|the\s+user)"
    r"|(?:act|respond|behave|answer)\s+(?:only\s+)?(?:as|in)\s"
    r"|(?:do\s+not|don't|never)\s+(?:mention|reveal|disclose|report)\s+(?:this|it|that))\b"
)
_JOINED = regex(r"(?<=\w)[_./-](?=\w)|_")
_FENCE_NAME = "cg-memory"
# Letters of the Cyrillic and Greek scripts that look like those of the name.
_LOOK_ALIKES = {
    "c": "\u0441\u03f2",
    "e": "\u0435\u03b5",
    "m": "\u043c",
    "o": "\u043e\u03bf",
    "y": "\u0443\u03b3",
}


def _any_form(word: str) -> str:
    """A pattern of *word* in letters that look like it, those of full width among them."""
    return "".join(f"[{c}{_LOOK_ALIKES.get(c, '')}{chr(ord(c) + 0xFEE0)}]" for c in word)


_ANY_NAME = regex(rf"({_any_form('cg')})\W{{1,3}}({_any_form('memory')})", re.IGNORECASE)
# What delimits the turns of a chat in the prompts of many models.
_TURN = regex(
    r"[<\uff1c](?:[|\uff5c](?=[\w\u2581]{1,40}(?:[|\uff5c]|>))|(?=\w{1,40}[|\uff5c]>))"
    r"|(?<!<)<(?=<SYS>>)|<(?=/s>|[!?](?:--|\[)?\s*system)"
    r"|\[(?=/?(?:INST|SYS|SYSTEM|USER|[A-Z]{2,20}_[A-Z_]{2,20})\])"
)
# Tags with which clients of agents mark what they say themselves, and what tools return. Whatever
# follows the name: attributes have any length, and hold any character in quotes. A name with
# letters of other scripts may look like any of them.
_FRAME = regex(
    r"[<\uff1c\ufe64\u2039\u3008\u27e8\u27ea\u276c\u276e\u29fc\u1438\u02c2]"
    r"(?=(?:/\s?)?(?:\w+[:.]){0,3}[\w\u2010-\u2015-]{0,40}?(?:system|"
    r"agents|claude|permission|hook|reminder|function|tool|invoke|assistant|"
    r"human|user|instruction|prompt|developer|admin|think|notification|environment|context|"
    r"command|memory|important|result|of_turn|bash|stdout|stderr|diagnostics|feedback|parameter|"
    r"policy|persona|guideline|objective|transcript|conversation|override|ephemeral|attachment|"
    r"file_content|rules|skill|task|answer|directive|message|channel)"
    r"|(?:/\s?)?[\w:.-]{0,40}[^\W\x00-\x7f])",
    re.IGNORECASE,
)
# Of whatever name: a tag that a later one closes, around more than one word.
_TAG, _CLOSING = regex(r"<(?=/?\s?([\w:.-]{1,60}))"), regex(r"</\s?([\w:.-]{1,60})\s{0,8}>")
_VALUE = regex(r"<([\w:.-]{1,60})>[^\s<>]{0,200}</\1>")
_SPOKEN = (
    r"[ \t]*|\#{2,6}[ \t]*|\*\*|\[)(?:human|assistant|system|developer|user|tool"
    r"|instructions?|response)\b[*\]]{0,2})([:\uff1a])"
)
_SPEAKER = regex(rf"((?:^{_SPOKEN}", re.IGNORECASE | re.MULTILINE)
_SPEAKER_IN_JSON = regex(rf"((?:\\n{_SPOKEN}", re.IGNORECASE)
_ID = regex(r"[A-Za-z0-9_.:-]{1,128}")
# A log may hold a fence as JSON or HTML escaped it.
_LESS = r"(?:<|&(?:lt|LT|\#0{0,6}60|\#[xX]0{0,6}3[cC]);|\\{1,8}u003[cC])"
_MORE = r"(?:>|&(?:gt|GT|\#0{0,6}62|\#[xX]0{0,6}3[eE]);|\\{1,8}u003[eE])"
_FENCE = regex(
    rf"{_LESS}(?:(?P<close>\\{{0,8}}/){_FENCE_NAME}\s{{0,8}}"
    rf"|{_FENCE_NAME}(?P<attributes>(?>(?:(?!{_MORE})[^\n<>\w-](?>(?:(?!{_MORE})[^\n<>]){{0,300}}))?)))"
    rf"{_MORE}"
)
_QUOTE = r"""(?:\\*["']|\\+u0022|&(?:quot|\#34);)?"""
_ATTRIBUTE_ID = regex(rf"\bid\s{{0,4}}=\s{{0,4}}{_QUOTE}({_ID.pattern})")


def neutral(text: str) -> str:
    """Return *text* as it is shown to an agent: it can end no frame, and begin none.

    Control characters and those that hide or reverse text are removed first: where one stood in a
    tag, the tag is whole once it is gone. Markers of our fence, and what looks like one, lose their
    hyphen; a space breaks tags of the frames of clients and delimiters of turns.
    """
    data = _TERMINAL.sub("", visible(text))
    if not data.isascii():
        folded = "".join(c for c in normalize("NFKD", data) if not combining(c))
        data = folded if _FRAME.search(folded) or _TURN.search(folded) else data
    if not data.isascii() or "memory" in data.lower():
        data = _ANY_NAME.sub(r"\1 \2", data)
    if "<" in data or not data.isascii():
        data = _FRAME.sub("< ", data)
        if names := Counter(_CLOSING.findall(data)):
            names -= Counter(_VALUE.findall(data))
            data = _TAG.sub(lambda found: "< " if found[1] in names else "<", data)
    if "<" in data or "[" in data or not data.isascii():
        data = _TURN.sub(lambda found: f"{found[0][:1]} {found[0][1:]}", data)
    return _SPEAKER.sub(r"\1 \2", data) if ":" in data or "\uff1a" in data else data


def fence(text: str, context_id: str) -> str:
    """Return *text*, `neutral`, between markers that carry *context_id*.

    In one line where it is one. Raises ValueError for an id with characters other than letters,
    digits and `_.:-`.
    """
    if not is_id(context_id):
        raise ValueError(f"context id {context_id!r}: only letters, digits and _.:- are allowed")
    data = neutral(text)
    line = "\n" if "\n" in data else ""
    return f"<{_FENCE_NAME} id={context_id}>{line}{data}{line}</{_FENCE_NAME}>"


def is_id(text: str) -> bool:
    """True for at most 128 characters, all of them letters, digits or ``_.:-``."""
    return _ID.fullmatch(text) is not None


def may_be_fenced(text: str) -> bool:
    """False for a text that no marker is in."""
    return _FENCE_NAME in text


def strip_fenced(text: str) -> tuple[str, tuple[str, ...]]:
    """Return *text* without its fenced blocks, and the context ids found, first seen first.

    Fences may be escaped as JSON or HTML and nested. A fence that is not closed (its end was cut
    off) reaches to the end of the text; an end without a beginning is dropped by itself.
    """
    if not may_be_fenced(text):
        return text, ()
    parts: list[str] = []
    ids: dict[str, None] = {}
    depth = end = 0
    for marker in _FENCE.finditer(text):
        if depth == 0:
            parts.append(text[end : marker.start()])
        if marker["close"]:
            depth = max(0, depth - 1)
        else:
            depth += 1
            ids.update(dict.fromkeys(_ATTRIBUTE_ID.findall(marker["attributes"] or "")[:1]))
        end = marker.end()
    if depth == 0:
        parts.append(text[end:])
    return "".join(parts), tuple(ids)


_PRIVATE = regex(
    rf"{_LESS}\s{{0,8}}(?P<close>\\{{0,8}}/\s{{0,8}})?private(?![\w-])"
    rf"(?>(?:=\s{{0,8}}(?:\"[^\"]{{0,300}}\"|'[^']{{0,300}}')|(?!{_MORE})[^<>]){{0,300}}){_MORE}",
    re.IGNORECASE,
)
_SQUARE = regex(r"\[(\s{0,8}/?\s{0,8}private(?![\w-])[^][<>\n]{0,300})\]", re.IGNORECASE)
_COMMENT = regex(r"<!--(\s{0,4}/?\s{0,8}private\s{0,8})-->", re.IGNORECASE)
_HALF_WIDTH = {code + 0xFEE0: code for code in range(0x21, 0x7F)} | {0xFE64: "<", 0xFE65: ">"}


def without_private(text: str) -> str:
    """Return *text* without what its author put between ``<private>`` and ``</private>``.

    The marks may have attributes and spaces, be escaped, nested, or of full width, and in square
    brackets or comments where one is closed. What is not closed reaches to the end, and a further
    closing mark back to the one before.
    """
    has_marks = not text.isascii() or "private" in text.lower()
    return private_in(text)[0] if has_marks else text


def private_in(text: str) -> tuple[str, tuple[str, ...]]:
    """Return *text* as `without_private` does, and what was between the marks."""
    shown = text if text.isascii() else visible(text)
    folded = shown.translate(_HALF_WIDTH)  # of the same length
    if "private" not in folded.lower():
        return text, ()
    if "[/private" in folded.lower():
        folded = _SQUARE.sub(r"<\1>", folded)
    if any("/" in inner for inner in _COMMENT.findall(folded)):
        folded = _COMMENT.sub(r"<   \1  >", folded)  # of the same length
    # Begin and end of each, with its marks and without them.
    spans, depth = list[tuple[int, int, int, int]](), 0
    for mark in _PRIVATE.finditer(folded):
        if not mark["close"]:
            if depth == 0:
                spans.append((mark.start(), mark.end(), len(shown), len(shown)))
            depth += 1
        elif spans:
            depth = max(0, depth - 1)
            if depth == 0:
                spans[-1] = (*spans[-1][:2], mark.start(), mark.end())
    if not spans:
        return text, ()
    begins, ends = [span[0] for span in spans], [0, *(span[3] for span in spans)]
    kept = (shown[end:begin] for end, begin in zip(ends, [*begins, len(shown)], strict=True))
    return "".join(kept), tuple(shown[begin:end] for _, begin, end, _ in spans)


def plain(text: str) -> str:
    """Return *text* without control characters and characters that cannot be seen."""
    return _TERMINAL.sub("", visible(text))


_UNSAFE_IN_JSON = regex(rf"[\x7f-\x9f]|{_INVISIBLE.pattern}")


_BEGINNING = regex(r"[<\uff1c\ufe64\u2039\u3008\u27e8]")


def terminal_json(line: str) -> str:
    r"""Return JSON of the same value, with `\uXXXX` for characters that `plain` removes.

    So is what begins the tags that `neutral` breaks: agents read what programs print.
    """

    def escaped(found: re.Match[str]) -> str:
        units = found[0].encode("utf-16-be").hex()
        return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))

    line = _UNSAFE_IN_JSON.sub(escaped, line)  # JSON escapes those below U+0020 itself
    folded = normalize("NFKC", line)
    if _FRAME.search(folded) or any(mark in folded for mark in ("<|", "<<", "</")):
        line = _BEGINNING.sub(escaped, line)
    line = _SPEAKER_IN_JSON.sub(lambda found: f"{found[1]}\\u{ord(found[2]):04x}", line)
    return _TURN.sub(lambda found: f"\\u{ord(found[0][0]):04x}{found[0][1:]}", line)


def one_line(text: str, width: int) -> str:
    """Return *text* on one line of at most *width* characters, cut with an ellipsis."""
    return cut(" ".join(plain(text).split()), width)


_COMMAND = regex(r"\s*(/[\w:-]+)(?!\S)")


def command_of(prompt: str) -> str:
    """Return the command that a *prompt* begins with, such as `/review`; empty for none."""
    begun = _COMMAND.match(prompt)
    return begun[1] if begun else ""


def title_of(text: str) -> str:
    """Return the first line of *text* with words, with the next one where it only announces it."""
    lines = (line.strip("#*-=<> \t") for line in text.splitlines())
    said = [*islice((line for line in lines if any(map(str.isalnum, line))), 2)]
    return " ".join(said[: 1 + said[0].endswith(":")]) if said else ""


_LETTERS = regex(r"[^\W\d_]+")


def mixes_alphabets(name: str) -> bool:
    """Return True where a word of *name* has letters of several alphabets, as look-alikes do.

    Letters that have two cases are of the Latin, Greek and Cyrillic alphabets and their like.
    """
    return not name.isascii() and any(
        len({unicode_name(c, "").partition(" ")[0] for c in word if c.lower() != c.upper()}) > 1
        for word in _LETTERS.findall(normalize("NFKC", name))
    )


def folded(text: str) -> str:
    """Return *text* without case, on one line: equal for texts with the same words."""
    return " ".join(text.casefold().split())


def cut(text: str, width: int) -> str:
    """Return the first *width* characters of *text*; an ellipsis stands for the rest."""
    return text if len(text) <= width else f"{text[: width - 1].rstrip()}…"


_LONGEST = 64
_HAN = "[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f]"
_FIRST_HAN = "\u3400"
# Unicode has given the range further characters, which an older Python takes for no letters.
_IDENTIFIER, _UNICODE_IDENTIFIER = regex(rf"\w{{2,}}|(?=\w){_HAN}"), regex(r"\w{2,}")
# The same for ASCII, in half the time, and what else it would not find: many texts have a dash or
# quotes of another script, and no letter.
_ASCII_IDENTIFIER, _FOREIGN = regex(r"[A-Za-z0-9_]{2,}"), regex(r"[^\W\x00-\x7f]")
# Of ASCII alone, with a blank for what is in no identifier, in a fifth.
_BLANKED = "".join(
    chr(code) if chr(code).isalnum() or code == ord("_") else " " for code in range(128)
)
_SCRIPTS = regex(rf"(?P<han>{_HAN}+)|(?:(?!{_HAN})[^_])+")
_NO_HAN = regex(r"(?P<han>(?!))|[^_]+")
# Names whose capitals do not begin words.
_CAMEL_NAMES = "SQLite|MySQL|GraphQL|GitHub|GitLab|YouTube|LaTeX|NumPy|SciPy|PyPI|OAuth|macOS|iOS"
# HTTPServer -> HTTP, Server; sha256sum -> sha256, sum; digits stay with the letters before them.
_PART = regex(rf"(?:{_CAMEL_NAMES})(?![a-z])[0-9]*|[A-Z]+(?![a-z])[0-9]*|[A-Z]?[a-z]+[0-9]*|[0-9]+")
_STOP_WORDS = frozenset(
    "a an and are as at be been but by can did do does for from had has have how i if in into is "
    "it its me my no not of on or our so such than that the their then there these they this to "
    "was we were what when where which while who why will with would you your".split()
)


@cache
def compiled(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """Return a *pattern* of a table, compiled at its first use: few processes need all of them."""
    return re.compile(pattern, flags)


def words(text: str) -> list[str]:
    """Return the words of *text* in order, in lower case, with repeats.

    An identifier gives itself and then its parts: `getattr_static` gives `getattr_static`,
    `getattr`, `static`. Chinese gives each pair of neighbouring characters, a single one itself.
    Numbers, single letters, common English words and words longer than 64 characters are left out.
    """
    return list(chain.from_iterable(map(_words_of, _identifiers(text))))


def _identifiers(text: str) -> list[str]:
    if text.isascii():
        return text.translate(_BLANKED).split()  # single letters give no word
    if not _FOREIGN.search(text):
        return _ASCII_IDENTIFIER.findall(text)
    return (_IDENTIFIER if _may_have_han(text) else _UNICODE_IDENTIFIER).findall(text)


@lru_cache(maxsize=1 << 16)
def _words_of(identifier: str) -> tuple[str, ...]:
    if not identifier.isascii():
        return tuple(_foreign_words(identifier))
    parts = [part.lower() for part in _PART.findall(identifier)]
    whole = identifier.strip("_").lower()
    candidates = parts if parts == [whole] else [whole, *parts]
    return tuple(filter(_is_significant, candidates))


def _may_have_han(text: str) -> bool:
    """Return whether Chinese characters may be in *text*; their patterns take long to compile."""
    return max(text) >= _FIRST_HAN


def _foreign_words(identifier: str) -> Iterator[str]:
    """The words of an identifier with other characters than ASCII; Han runs as bigrams."""
    scripts = _SCRIPTS if _may_have_han(identifier) else _NO_HAN
    segments = [*scripts.finditer(identifier)]
    if len(segments) > 1 and not any(segment["han"] for segment in segments):
        yield from filter(_is_significant, [identifier.strip("_").lower()])
    for segment in segments:
        text = segment[0]
        if segment["han"]:
            yield from map("".join, pairwise(text)) if len(text) > 1 else text
        elif text.isascii():
            yield from _words_of(text)
        else:
            yield from filter(_is_significant, [text.lower()])


def _is_significant(word: str) -> bool:
    return 1 < len(word) <= _LONGEST and not word.isdigit() and word not in _STOP_WORDS


def stems(text: str) -> list[str]:
    """`words` of *text* without their English endings: `running tests` gives `run`, `test`."""
    return list(chain.from_iterable(map(_stems_of, _identifiers(text))))


@lru_cache(maxsize=1 << 16)
def _stems_of(identifier: str) -> tuple[str, ...]:
    return tuple(map(stem, _words_of(identifier)))


@lru_cache(maxsize=1 << 16)
def stem(word: str) -> str:
    """Return *word* without its English ending; unchanged unless it has only ASCII letters."""
    if not (word.isascii() and word.isalpha()):
        return word
    if (stem_word := getattr(_of_thread, "stem_word", None)) is None:
        from Stemmer import Stemmer

        # It has a state while it works, and making one takes longer than that.
        _of_thread.stem_word = stem_word = Stemmer("english", maxCacheSize=0).stemWord
    stemmed: str = stem_word(word)
    return stemmed


_of_thread = threading.local()


_READ = 600
_QUOTED_NAME = regex(
    r"""['"`‘](?P<quoted>[A-Za-z_./~][\w./-]*)['"`’]
    |\bNo\ module\ named\ (?P<module>[\w.]+)
    |\b(?:Directory|File\ name|File)\ (?P<path>\S+)\ not\ found
    |\bcd:\ (?P<folder>\S+):\ No\ such""",
    re.VERBOSE,
)


@lru_cache(8192)
def quoted_names(message: str) -> tuple[str, ...]:
    """Return the names and paths that *message* quotes, in order, each once."""
    names = (match[match.lastgroup or 0] for match in _QUOTED_NAME.finditer(message[:_READ]))
    return tuple(dict.fromkeys(names))


def subject_of(message: str) -> str:
    """Return the names in *message* that set it apart within its template; may be empty."""
    return ", ".join(quoted_names(message)[:2])


def digest(text: str, size: int = 8) -> str:
    """Return *size* bytes, in hexadecimal digits, that differ for different texts."""
    from hashlib import blake2b  # slow to load

    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=size).hexdigest()


def meant(name: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """Return the one of *known* that *name* was meant to be, for a message; empty for none."""
    from difflib import get_close_matches  # slow to load

    return next(iter(get_close_matches(name, [*known], 1, cutoff)), "")


def iso_time(text: str) -> datetime:
    """Return the time that *text* is in ISO 8601, in UTC without a zone; raises `ValueError`."""
    time = datetime.fromisoformat(text)
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def number_of(count: int, noun: str) -> str:
    """Return *count* of an English *noun*: ``1 run``, ``0 recoveries``, ``2,000 runs``."""
    if count == 1:
        return f"1 {noun}"
    ends_in_y = noun.endswith("y") and noun[-2] not in "aeiou"
    return f"{count:,} {noun[:-1]}ies" if ends_in_y else f"{count:,} {noun}s"


def short_count(count: int) -> str:
    """Return *count* with two significant digits at least: ``987``, ``1.2 k``, ``34 M``."""
    for size, unit in ((1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")):
        if count >= size:
            shown = count / size
            return f"{shown:.1f} {unit}" if shown < 10 else f"{shown:.0f} {unit}"
    return f"{count}"


# Measured on code: 2.7 characters a token; prose has more, so the estimate errs on the high side.
_CHARACTERS, _TOKENS = 27, 10


def count_tokens(text: str) -> int:
    """Return about how many tokens *text* has, rather too many than too few.

    An estimate from lengths only: 2.7 ASCII characters a token, as in code (English prose has
    more), and half a token for each byte of any other character.
    """
    if text.isascii():
        return -(-len(text) * _TOKENS // _CHARACTERS)
    narrow = len(text.encode("ascii", "ignore"))
    wide_bytes = len(text.encode("utf-8", "surrogatepass")) - narrow
    return -(-(narrow * _TOKENS * 2 + wide_bytes * _CHARACTERS) // (_CHARACTERS * 2))


def clip_tokens(text: str, max_tokens: int, *, at: "Literal['middle', 'end']" = "middle") -> str:
    """Return *text*, cut so that `count_tokens` of it is at most *max_tokens*."""
    if count_tokens(text) <= max_tokens:
        return text
    low, high = 0, min(len(text), max(0, max_tokens) * _CHARACTERS // _TOKENS)
    while low < high:
        middle = (low + high + 1) // 2
        if count_tokens(clip(text, middle, at=at)) <= max_tokens:
            low = middle
        else:
            high = middle - 1
    return clip(text, low, at=at)


def clip(text: str, max_chars: int, *, at: "Literal['middle', 'end']" = "middle") -> str:
    """Return *text*, cut at the middle or at the end to at most *max_chars* characters.

    The cut shows as `… [N characters cut] …`; where that does not fit, only the head is left.
    """
    if len(text) <= max_chars:
        return text
    rest = max_chars - len(_mark(len(text)))
    if rest < 0:
        return text[: max(0, max_chars)]
    tail = rest // 2 if at == "middle" else 0
    head = rest - tail
    return text[:head] + _mark(len(text) - rest) + text[len(text) - tail :]


def _mark(cut: int) -> str:
    return f"… [{cut} characters cut] …"


_CODE_CHARS, _LINE_READ = 100, 500
_LINES_NAMED = 2
ELLIPSIS = "…"
_CODE_NAME = regex(r"[A-Za-z_]\w+")
_STRING = regex(r"[rbfuRBFU]{0,2}(?:\"[^\"]*\"|'[^']*')")
_COMMON = frozenset({*keyword.kwlist, *keyword.softkwlist, *dir(builtins), "self", "cls", "args"})


def joined_lines(text: str, limit: int) -> str:
    """Return *text* without line ends, at most *limit* characters; ` ⏎ ` stands for a line end."""
    lines = [" ".join(line.split()) for line in text.strip()[: 4 * limit].splitlines()]
    joined = " ⏎ ".join([line for line in lines if line and line != "end_of_edit"])
    return cut(joined, limit)


def command_text(text: str, limit: int) -> str:
    """Return *text* in one line, without its middle where it is longer than *limit* characters.

    A command ends with what it is about: the tests, the file, the options that were added.
    """
    half = 4 * limit
    ends = text if len(text) <= 2 * half else f"{text[:half]}\n{text[-half:]}"
    line = joined_lines(ends, 4 * half)
    if len(line) <= limit:
        return line
    tail = 2 * limit // 5
    return f"{line[: limit - tail - 3].rstrip()} {ELLIPSIS} {line[-tail:].lstrip()}"


def code(text: str) -> str:
    """Return a line of code or a command in backquotes."""
    return f"`{command_text(text, _CODE_CHARS)}`"


def is_cut(text: str) -> bool:
    """Return True where `code` leaves out a part of *text*."""
    return len(joined_lines(text, 4 * _CODE_CHARS)) > _CODE_CHARS


def identifiers(lines: Iterable[str]) -> set[str]:
    """Return names in *lines*, without keywords, builtins, strings and comments."""
    bare = (_STRING.sub("", line[:_LINE_READ]).partition("#")[0] for line in lines)
    return {name for line in bare for name in _CODE_NAME.findall(line)} - _COMMON


def informative_lines(lines: Sequence[str], named: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the two lines that say most, in order.

    Those that hold a word of *named* are preferred, then those that come first.
    """
    candidates = list(dict.fromkeys(filter(_is_informative, lines)) or dict.fromkeys(lines))
    best = sorted(candidates, key=lambda line: not any(name in line for name in named))[
        :_LINES_NAMED
    ]
    return tuple(line.strip() for line in candidates if line in best)


def shortened(lines: Sequence[str], named: Sequence[str] = ()) -> tuple[str, ...]:
    """Return `informative_lines`, then an ellipsis if there are others."""
    chosen = informative_lines(lines, named)
    others = islice(filter(_is_informative, dict.fromkeys(lines)), len(chosen), None)
    return (*chosen, ELLIPSIS) if any(others) else chosen


def _is_informative(line: str) -> bool:
    bare = line.strip()
    return len(bare) > 2 and not bare.startswith("#")


# The head of an issue says what it is about; logs and code follow.
TASK_CHARS = 2_000
_REMEMBERED_TEXTS = 4_096

# BM25 (Robertson & Zaragoza 2009) with the usual constants; the reference length stands for the
# average document, which a growing memory would have to recompute.
_K1, _B, _REFERENCE_WORDS = 1.2, 0.75, 150
# Words of a phrase are at most so far apart.
_PAIR, _NEAR = 2, 5


def rarity(having: int, texts: int) -> float:
    """Return the inverse document frequency (BM25) of a word in *having* of *texts*.

    That is ln(1 + (N - n + 0.5) / (n + 0.5)).
    """
    return log(1 + (texts - having + 0.5) / (having + 0.5))


# Each further word costs as much as the one before it and says less: the rarest few decide.
MOST_WORDS = 8
# A query reads every text with one of its words: common words cost most and say least.
MOST_TEXTS = 2_000


def word_weights(
    total: int, counts: Mapping[str, int], most: int = MOST_WORDS, texts: float = MOST_TEXTS
) -> dict[str, int]:
    """Return the rarest known words with their weights: 1,000 times the logarithm of their rarity.

    At *most* so many, that occur in at most so many *texts* together; the rarest is always one of
    them. *counts* says in how many of the *total* texts each word occurs. Weights are whole
    numbers from 1, so that a sum does not depend on the order of adding.
    """
    known = sorted((count, word) for word, count in counts.items() if count)[:most]
    together = accumulate(count for count, _ in known)
    return {
        word: 1 + round(1000 * log((1 + total) / count))
        for (count, word), so_far in zip(known, together, strict=True)
        if so_far <= texts or so_far == count
    }


def overlap(
    query: Mapping[str, float],
    counted: Counter[str],
    *,
    by_length: float = _B,
    length: int = _REFERENCE_WORDS,
) -> float:
    """Return the share of *query* (word -> weight) that is *counted*: BM25 over its maximum.

    *by_length* is how much longer texts than those of *length* words are counted down, 0 to 1.
    """
    most = sum(query.values()) * (_K1 + 1)
    if not most:
        return 0.0
    norm = _K1 * (1 - by_length + by_length * counted.total() / length)
    # In a fixed order: floating-point sums depend on it.
    shared = sorted(query.keys() & counted.keys())
    score = sum([query[word] * counted[word] / (counted[word] + norm) for word in shared])
    return score * (_K1 + 1) / most


def nearness(query: Mapping[str, float], sequence: Sequence[str]) -> float:
    """Return how much neighbours in *query* (word -> weight, in order) are near in *sequence*.

    A part of its weight: of each two words the smaller weight over their distance.
    """
    places: dict[str, list[int]] = {}
    for place, word in enumerate(sequence):
        if word in query:
            places.setdefault(word, []).append(place)
    if len(places) < _PAIR:
        return 0.0
    total, near = sum(query.values()), 0.0
    for first, second in pairwise(query):
        if first in places and second in places:
            distance = min(abs(a - b) for a in places[first] for b in places[second])
            if distance <= _NEAR:
                near += min(query[first], query[second]) / distance
    return near / total if total else 0.0


def bm25(query: Collection[str], texts: Sequence[Counter[str]]) -> list[float]:
    """Return the BM25 of each of *texts*, which are the collection, for the words *query*.

    So stores that propose the same texts lead to the same scores.
    """
    lengths = [text.total() for text in texts]
    mean = sum(lengths) / max(1, len(texts)) or 1.0
    norms = [_K1 * (1 - _B + _B * (length / mean)) for length in lengths]
    scores = [0.0] * len(texts)
    # In a fixed order: floating-point sums depend on it.
    for word in sorted(set(query)):
        counts = list(map(dict.get, texts, repeat(word), repeat(0)))
        if met := len(counts) - counts.count(0):
            weight = rarity(met, len(texts))
            scores = [
                score + weight * count * (_K1 + 1) / (count + norm) if count else score
                for score, count, norm in zip(scores, counts, norms, strict=True)
            ]
    return scores


class FixedCounts(Counter[str]):
    """Counts that are not to be changed; their sum is computed once."""

    _total: int | None = None

    def total(self) -> int:
        """Return the sum of all counts."""
        if self._total is None:
            self._total = super().total()
        return self._total


@lru_cache(_REMEMBERED_TEXTS)
def word_counts(text: str) -> FixedCounts:
    """Return the words in the head of *text* with their counts, in order."""
    return FixedCounts(words(text[:TASK_CHARS]))


def dice(first: Collection[str], second: Collection[str]) -> float:
    """Dice's coefficient of two sets of words, 0 to 1."""
    shared = sum(word in second for word in first)
    return 2 * shared / (len(first) + len(second)) if first and second else 0.0
