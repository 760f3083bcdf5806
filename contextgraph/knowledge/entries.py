"""Lessons as files of a repository: one entry a file below ``.contextgraph/lessons``.

Markdown with a small head, one value a line. Values that people change stand between lines that
they do not change, and the name of a file follows from its content: so git merges what several
people add and edit without a driver.
"""

import json
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import NamedTuple, TypeVar

from msgspec import Struct

from contextgraph.errors import ReadError
from contextgraph.knowledge.notes import MAX_NOTE
from contextgraph.model import LESSONS_FOLDER, About, LessonKind, LessonStatus, Origin, Quotation
from contextgraph.system.intake import content, leaves
from contextgraph.text import digest, iso_time, regex, words

_LONGEST, _MOST_FILES, _MOST_BYTES = 1 << 16, 5_000, 1 << 24
_NAME_WORDS, _NAME_CHARS = 8, 48
QUESTIONS_FOLDER = ".contextgraph/questions"
_RULE, _EVIDENCE, _ANSWER = "---", "## Evidence", "## Answer"
_VALUES = ("lesson", "kind", "by", "status", "at", "subject", "origin", "probability", "request")
_LISTS = ("paths", "symbols", "programs")
_CITED = ("session", "step", "speaker", "at", "asked", "pasted")
_PLAIN = regex(r"[\w./<(~$-](?:[^\n\"#]*[^\s\"#:])?")
_FIELD = regex(r"(?P<name>[a-z]+):(?:[ \t]+(?P<value>.*))?")
_NAMING = regex(r"[a-z0-9_]+")  # common words, too: "not" is one
_ITEM = regex(r"[ \t]*-[ \t]+(?P<value>.+)")
_PROBABILITY = regex(r"0(?:\.\d{1,6})?|1(?:\.0{1,6})?")
_CONFLICT = regex(r"<{7} |={7}$|>{7} |\|{7} ")
_Choice = TypeVar("_Choice", bound=StrEnum)


class Entry(Struct, frozen=True):
    """A lesson in a file: *lesson* is the id that it had in the memory of who proposed it.

    *by* proposed it, *at* is when it was said first, *request* how the session began in which a
    person said it: requests like it find the lesson. *probability* is how likely a reader wants it,
    None where somebody reviewed it. *path* is relative to the repository; empty before it is
    written.
    """

    text: str
    kind: LessonKind
    status: LessonStatus
    about: About
    at: datetime
    evidence: tuple[Quotation, ...] = ()
    origin: Origin = Origin.WRITTEN
    by: str = ""
    lesson: str = ""
    probability: float | None = None
    request: str = ""
    path: str = ""

    @property
    def holds_everywhere(self) -> bool:
        """True for a rule of any work: it names no file and no symbol."""
        is_rule = self.kind is LessonKind.RULE and self.status is LessonStatus.ACTIVE
        return is_rule and not (self.about.paths or self.about.symbols)


class Entries(NamedTuple):
    """The entries of a folder, and why *damaged* files of it hold none, by their path."""

    listed: Sequence[Entry]
    damaged: Mapping[str, ReadError]


class Question(Struct, frozen=True):
    """A saved question, in the file at *path*, and the lessons that have to answer it."""

    text: str
    answers: tuple[str, ...]
    path: str = ""


def entries_in(root: str) -> Entries:
    """Return the entries of the repository at *root*; links, and what is too long, are damaged."""
    listed, damaged = list[Entry](), dict[str, ReadError]()
    for path, text in _texts(root, LESSONS_FOLDER, damaged):
        written_at = datetime.fromtimestamp(os.stat(os.path.join(root, path))[stat.ST_MTIME], UTC)
        try:
            listed.append(entry_in(text, path, written_at))
        except ReadError as error:
            damaged[path] = error
    return Entries(listed, damaged)


def questions_in(root: str) -> tuple[list[Question], dict[str, ReadError]]:
    """Return the saved questions of the repository at *root*, and why files hold none, by path."""
    listed, damaged = list[Question](), dict[str, ReadError]()
    for path, text in _texts(root, QUESTIONS_FOLDER, damaged):
        question, _, below = text.partition(f"\n{_ANSWER}\n")
        answers = [item["value"] for item in map(_ITEM.fullmatch, below.splitlines()) if item]
        if question.strip() and answers:
            asked = " ".join(question.split())[:MAX_NOTE]
            listed.append(Question(asked, tuple(map(str.strip, answers)), path))
        else:
            damaged[path] = ReadError(path, "", f"no question with items below {_ANSWER!r}")
    return listed, damaged


def question_file(question: Question) -> tuple[str, str]:
    """Return the path and the text of the file of *question*."""
    name = "-".join(word for word in words(question.text) if word.isascii())[:_NAME_CHARS]
    answers = (f"- {' '.join(text.split())}" for text in question.answers)
    text = "\n".join((question.text, "", _ANSWER, "", *answers, ""))
    return f"{QUESTIONS_FOLDER}/{name.strip('-') or 'question'}-{digest(question.text, 4)}.md", text


def _texts(root: str, place: str, damaged: dict[str, ReadError]) -> Iterator[tuple[str, str]]:
    """Yield path and text of the files in the folder *place*; others go to *damaged*."""
    folder, size = os.path.join(root, place), 0
    if os.path.isdir(folder) and leaves(folder, root):
        damaged[place] = ReadError(place, "", "a link to outside the repository")
        return
    for count, file in enumerate(sorted(_files(folder))):
        path = os.path.relpath(file, root).replace(os.sep, "/")
        try:
            if count >= _MOST_FILES or size > _MOST_BYTES:
                raise ReadError(path, "", "not read: the folder has too many entries")
            if os.path.islink(file) or not path.isprintable():
                raise ReadError(path, "", "a link, or its name has control characters")
            text = content(file, _LONGEST, inside=root)
            size += len(text)
            yield path, text.decode("utf-8-sig")
        except ReadError as error:
            damaged[path] = error
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "not UTF-8"
            damaged[path] = ReadError(path, "", "unreadable entry", reason)


def _files(folder: str) -> Iterator[str]:
    for place, _, names in os.walk(folder):
        yield from (os.path.join(place, name) for name in names if name.endswith(".md"))


def name_of(entry: Entry) -> str:
    """Return the file name of *entry*, which follows from its content alone."""
    said = _NAMING.findall(entry.text.lower())[:_NAME_WORDS]
    start = "-".join(said)[:_NAME_CHARS].strip("-") or "lesson"
    return f"{start}-{digest(written(entry), 4)}.md"


def written(entry: Entry) -> str:
    """Return the text of the file of *entry*, which `entry_in` reads."""
    about = entry.about
    values = {
        "lesson": entry.lesson,
        "kind": entry.kind,
        "by": entry.by,
        "status": entry.status,
        "at": entry.at.astimezone(UTC).isoformat(),
        "subject": about.subject,
        "origin": entry.origin,
    }
    if entry.probability is not None:
        values["probability"] = f"{entry.probability:.3f}"
    if entry.request:
        values["request"] = entry.request
    lines = [_RULE, *(f"{name}: {_scalar(value)}".rstrip() for name, value in values.items())]
    for name, listed in zip(_LISTS, (about.paths, about.symbols, about.programs), strict=True):
        lines += [f"{name}:", *(f"  - {_scalar(one)}" for one in listed)]
    lines += [_RULE, "", *_paragraphs(entry.text), ""]
    lines += [_EVIDENCE] if entry.evidence else []
    for one in entry.evidence:
        lines += ["", *(f"> {line}".rstrip() for line in one.quote.splitlines()), ""]
        cited = (one.session, str(one.step), one.speaker, one.at.astimezone(UTC).isoformat())
        shown = zip(_CITED, (*cited, one.context, one.pasted), strict=True)
        lines += [f"- {name}: {_scalar(value)}" for name, value in shown if value]
    return "\n".join(lines).rstrip("\n") + "\n"


def _scalar(value: str) -> str:
    line = " ".join(value.split())
    is_plain = not line or (_PLAIN.fullmatch(line) and ": " not in line)
    return line if is_plain else json.dumps(line, ensure_ascii=False)


def _paragraphs(text: str) -> list[str]:
    lines = [line.rstrip() for line in text.strip().splitlines()]
    is_marked = any(line.startswith((_EVIDENCE, _RULE)) or _CONFLICT.match(line) for line in lines)
    return [" ".join(text.split())] if is_marked else lines


def entry_in(text: str, path: str, written_at: datetime) -> Entry:
    """Return the entry that the file *text* at *path* holds; raises `ReadError` with its line.

    All but the text may be missing; *written_at* is then its time.
    """
    lines = text.splitlines()
    for number, line in enumerate(lines, start=1):
        if _CONFLICT.match(line):
            raise ReadError(path, f"line {number}", "a merge conflict that is not resolved")
    first = _FIELD.fullmatch(lines[0].rstrip()) if lines else None
    if first and first["name"] in (*_VALUES, *_LISTS) and _RULE in lines:
        raise ReadError(path, "line 1", f"the head does not begin with {_RULE}")
    head, body = _head(lines, path) if lines[:1] == [_RULE] else ({}, 0)
    below = [line.rstrip() for line in lines[body:]]
    end = below.index(_EVIDENCE) if _EVIDENCE in below else len(below)
    said = "\n".join(below[:end]).strip()
    if not said or len(said) > MAX_NOTE:
        raise ReadError(path, f"line {body + 1}", f"a lesson has 1 to {MAX_NOTE:,} characters")
    found = _Head(path, head)
    at = found.time("at", written_at)
    return Entry(
        text=said,
        kind=found.choice("kind", LessonKind.RULE),
        status=found.choice("status", LessonStatus.ACTIVE),
        about=About(
            paths=found.items("paths"),
            symbols=found.items("symbols"),
            programs=found.items("programs"),
            subject=found.value("subject"),
        ),
        at=at,
        evidence=tuple(_evidence(lines, body + end + 1, path, at)),
        origin=found.choice("origin", Origin.WRITTEN),
        by=found.value("by"),
        lesson=found.value("lesson"),
        probability=found.probability(),
        request=found.value("request"),
        path=path,
    )


class _Head(NamedTuple):
    """The values of a head by name, each with its line."""

    path: str
    values: Mapping[str, Sequence[tuple[str, int]]]

    def value(self, name: str) -> str:
        return next((value for value, _ in self.values.get(name, ())), "")

    def items(self, name: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(value for value, _ in self.values.get(name, ()) if value))

    def choice(self, name: str, default: _Choice) -> _Choice:
        for value, line in self.values.get(name, ()):
            known = [str(one) for one in type(default)]
            if value and value not in known:
                reason = f"{name} {value!r} is none of {', '.join(known)}"
                raise ReadError(self.path, f"line {line}", reason)
            return type(default)(value) if value else default
        return default

    def time(self, name: str, default: datetime) -> datetime:
        for value, line in self.values.get(name, ()):
            return _time(value, self.path, line) if value else default
        return default

    def probability(self) -> float | None:
        for value, line in self.values.get("probability", ()):
            if value and not _PROBABILITY.fullmatch(value):
                raise ReadError(self.path, f"line {line}", "probability: not a number from 0 to 1")
            return float(value) if value else None
        return None

    def number(self, name: str, default: int) -> int:
        for value, line in self.values.get(name, ()):
            if not value.removeprefix("-").isdecimal() or len(value) > 9:
                raise ReadError(self.path, f"line {line}", f"{name} is not a number")
            return int(value)
        return default


def _head(lines: Sequence[str], path: str) -> tuple[dict[str, list[tuple[str, int]]], int]:
    """Return the values of the head of *lines*, and after how many lines it ends."""
    head, listed = dict[str, list[tuple[str, int]]](), ""
    for number, line in enumerate(lines[1:], start=2):
        if line.rstrip() == _RULE:
            return head, number
        item, field = _ITEM.fullmatch(line), _FIELD.fullmatch(line.rstrip())
        if item and listed:
            head[listed].append((_unquoted(item["value"], path, number), number))
        elif field and field["name"] in (*_VALUES, *_LISTS) and field["name"] not in head:
            name, value = field["name"], field["value"] or ""
            listed = name if name in _LISTS and not value else ""
            head[name] = [] if listed else [(_unquoted(value, path, number), number)]
        elif field:
            known = ", ".join((*_VALUES, *_LISTS))
            reason = f"{field['name']!r} is unknown or there twice; known: {known}"
            raise ReadError(path, f"line {number}", reason)
        elif line.strip() and not line.startswith("#"):
            raise ReadError(path, f"line {number}", "neither `name: value` nor `- item`")
    raise ReadError(path, f"line {len(lines)}", f"the head does not end with {_RULE}")


def _evidence(lines: Sequence[str], start: int, path: str, at: datetime) -> Iterator[Quotation]:
    """Yield the evidence in *lines* from the index *start* on."""
    quoted, cited = list[str](), dict[str, list[tuple[str, int]]]()

    def ended() -> Iterator[Quotation]:
        if quoted:
            found = _Head(path, cited)
            yield Quotation(
                quote="\n".join(quoted).strip(),
                run="",
                session=found.value("session") or path,
                step=found.number("step", -1),
                at=found.time("at", at),
                speaker=found.value("speaker") or "user",
                context=found.value("asked"),
                pasted=found.value("pasted"),
            )

    for number, line in enumerate(lines[start:], start=start + 1):
        item = _ITEM.fullmatch(line)
        field = item and _FIELD.fullmatch(item["value"])
        if line.startswith(">"):
            if cited:
                yield from ended()
                quoted, cited = [], {}
            quoted.append(line[1:].removeprefix(" ").rstrip())
        elif field and field["name"] in _CITED and quoted:
            value = _unquoted(field["value"] or "", path, number)
            cited[field["name"]] = [(value, number)]
        elif line.strip():
            raise ReadError(path, f"line {number}", "evidence is a quote (>) and its message (-)")
    yield from ended()


def _unquoted(value: str, path: str, line: int) -> str:
    value = value.strip()
    if not value.startswith('"'):
        return value
    try:
        found = json.loads(value)
    except ValueError as error:
        raise ReadError(
            path, f"line {line}", f"a quoted value that does not end: {error}"
        ) from None
    return " ".join(str(found).split())


def _time(value: str, path: str, line: int) -> datetime:
    try:
        return iso_time(value).astimezone(UTC)
    except (ValueError, OverflowError):
        raise ReadError(path, f"line {line}", f"{value!r} is no time in ISO 8601") from None
