"""Requests to a language model for the lessons of a session, and the check of its answers.

A request has the turns of the person, numbered, each after the end of the agent's turn before it,
and with the errors that were cleared in it. An answer is never trusted: a lesson counts if its
quotes stand in the turns that it cites, and if its names, numbers and absolute words stand in the
conversation; a fact about an error if its names stand in what the trace verified.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence, Set as AbstractSet
from datetime import UTC, datetime, timedelta
from functools import cached_property
from itertools import chain, zip_longest
from json import JSONDecoder
from typing import Annotated, Any

import msgspec
from msgspec import Struct, field

from contextgraph.config import REQUEST_MARK
from contextgraph.knowledge.conflict import Relation, Statement, verdict
from contextgraph.knowledge.extraction import sentences_in, sentences_of
from contextgraph.knowledge.lessons import NewLesson, said_again
from contextgraph.model import (
    About,
    Family,
    Lesson,
    LessonFacts,
    LessonKind,
    Origin,
    Quotation,
    RawTrajectory,
    is_subagent,
)
from contextgraph.model.values import replace
from contextgraph.text import (
    clip_tokens,
    count_tokens,
    dice,
    gives_instructions,
    kept_text,
    mask_secrets,
    neutral,
    one_line,
    regex,
    stems,
)
from contextgraph.trace import Recovery, describe_remedy, is_retry, trace

MAX_TOKENS = 6_000
MAX_LESSONS = 8
MAX_LESSON, MAX_QUOTE = 240, 160
_TURN_TOKENS, _BEFORE_CHARACTERS, _CONTEXT_CHARACTERS = 1_500, 600, 160
_GIVEN, _GIVEN_HEAD = 12, "--- given lessons"
# A session with one request is asked about where the person typed so many words.
_OWN_WORDS = 40
# Errors of commands, not of the code at hand; so many of a turn, each so long.
_OF_COMMANDS = frozenset(
    {
        Family.SHELL,
        Family.ENVIRONMENT,
        Family.TIMEOUT,
        Family.BUILD,
        Family.PYTHON_EXCEPTION,
        Family.RUNTIME_EXCEPTION,
    }
)
_CLEARED, _CLEARED_CHARACTERS = 3, 160
_GIVEN_ID = regex(r"^([a-z]+_\w+): ", re.MULTILINE)
# How much of two lessons is about the same where one takes the place of the other.
_SAME_SUBJECT = 0.2
# So much of a fact about a cleared error stands in the line about it; of 15 at least .36.
_SAID_BY_LINE = 1 / 3
# From here on a lesson has the words of its quotes.
_SAME_WORDS = 0.5
_DECODER = JSONDecoder()
# The time of the first turn, where only the order of turns counts.
_TURN_BEGINS = datetime.min.replace(tzinfo=UTC)
_MAX_STARTS = 200
# An empty list says that there is no lesson, also after one word and a colon; beside other words of
# its line it belongs to something else.
_EMPTY_LIST = regex(
    r"""^[^\w"{}\[\],\n]*(?:\w+\W{0,2}:\W{0,3})?\[\s*\][^\w"{}\[\],\n]*$""", re.MULTILINE
)

# What a sentence may name only where the conversation does: code, paths, identifiers, numbers.
_CODE = regex(r"`([^`]+)`")
_NAME = regex(
    r"(?<![\w./-])(?:[\w.-]+/[\w./-]*\w|\w\w+(?:\.\w\w+)+|\w*[a-z]\w*[A-Z]\w*|\w+(?:_\w+)+"
    r"|--?[a-z][\w-]+|v?\d[\w.]*|[\w-]*[A-Za-z]\d[\w-]*)"
)
_PART = regex(r"[^\W_]+")
# What stands for a part that differs each time.
_PLACEHOLDER = regex(r"<[a-z][a-z ]{0,30}>")
_CLAUSE = regex(r"[,;:](?=\s)|\s(?=but\s)")
_ADDRESS = regex(r"\b[a-z][a-z0-9+.-]*://|\b[\w.+-]+@[\w-]+\.\w", re.IGNORECASE)
_NEGATION = regex(
    r"\b(?:not(?!\s+only\b)|no|never|none|nothing|without|cannot)\b|n['’]t\b", re.IGNORECASE
)
_ABSOLUTE = {word: regex(rf"\b{word}\b", re.IGNORECASE) for word in ("never", "always")}


class Turn(Struct, frozen=True):
    """A turn of a person: its *text*, after the end of what the agent wrote *before* it.

    *step* is that after which it was written, -1 for the first request. *cleared* are errors of the
    agent's work on it, each with what cleared it. A comment of a review is of the *session* of its
    pull request, after the line that it is about.
    """

    number: int
    step: int
    at: datetime | None
    text: str
    before: str = ""
    session: str = ""
    cleared: tuple[str, ...] = ()

    def __str__(self) -> str:
        before, text = neutral(self.before), neutral(self.text)
        preceding = f"[agent before turn {self.number}] …{before}\n" if before else ""
        cleared = [f"\n[cleared in turn {self.number}] {neutral(one)}" for one in self.cleared]
        return f"{preceding}[turn {self.number}, person] {text}{''.join(cleared)}"


class Session(Struct, frozen=True):
    """A session as it is asked about: its *turns* in *parts*, each small enough for a request.

    Or what one *reviewer* wrote on pull requests. *contributor* supplied it.
    """

    run_id: str
    instance_id: str
    repo: str
    title: str
    started_at: datetime | None
    parts: tuple[tuple[Turn, ...], ...]
    contributor: str = ""
    reviewer: str = ""


class Request(Struct, frozen=True):
    """A part of a session, with the lessons *given* that are nearest to it in subject."""

    session: Session
    part: int
    given: tuple[Lesson, ...]
    instructions: str

    @property
    def turns(self) -> tuple[Turn, ...]:
        """The turns of the part."""
        return self.session.parts[self.part]

    @property
    def text(self) -> str:
        """The text that is sent."""
        session = self.session
        when = f" · {session.started_at:%Y-%m-%d %H:%M}" if session.started_at else ""
        parts = f" · part {self.part + 1} of {len(session.parts)}" if len(session.parts) > 1 else ""
        lessons = [f"{one.id}: {neutral(one.text)}" for one in self.given]
        return "\n\n".join(
            [
                REQUEST_MARK,
                self.instructions.strip(),
                f"--- session {session.run_id}{when}{parts}",
                *map(str, self.turns),
                *([_GIVEN_HEAD, "\n".join(lessons)] if lessons else []),
            ]
        )

    @property
    def name(self) -> str:
        """The name of its file."""
        run = re.sub(r"[^\w-]", "-", self.session.run_id)
        return f"{run}.{self.part}"


def session_of(run: RawTrajectory, run_id: str, contributor: str = "") -> Session | None:
    """Return the turns of people in *run*, masked; None if nobody spoke.

    A session with only its first request counts where a person typed many words of it.
    """
    is_answered = any(step.user_message for step in run.steps)
    if is_subagent(run.agent) or not (is_answered or _says_much(run)):
        return None
    turns = list(_with_cleared(run, [*_turns(run)]))
    return Session(
        run_id,
        run.instance_id,
        run.repo,
        kept_text(run.task),
        run.started_at,
        tuple(in_parts(turns)),
        contributor,
    )


def _says_much(run: RawTrajectory) -> bool:
    sentences = sentences_of(run) if run.session else ()
    return sum(len(sentence.split()) for sentence, _ in sentences) >= _OWN_WORDS


def _with_cleared(run: RawTrajectory, turns: Sequence[Turn]) -> Iterator[Turn]:
    """Yield *turns* with the errors of commands that were verified to be cleared in them."""
    cleared = [
        (one.cleared_step, _cleared(one))
        for one in trace(run).recoveries
        if one.verified and not one.workaround and not is_retry(one.actions)
        if one.error.family in _OF_COMMANDS
    ]
    for turn, following in zip_longest(turns, turns[1:]):
        end = following.step if following else len(run.steps)
        own = dict.fromkeys(line for at, line in cleared if turn.step < at <= end)
        yield replace(turn, cleared=(*own,)[:_CLEARED])


def _cleared(one: Recovery) -> str:
    """Word an error and what cleared it, masked."""
    parts = (one.error.error_type, one.error.message, describe_remedy(one.actions))
    error, message, remedy = (one_line(kept_text(part), _CLEARED_CHARACTERS) for part in parts)
    return f"{error} ({message}), cleared: {remedy}" if message else f"{error}, cleared: {remedy}"


def _turns(run: RawTrajectory) -> Iterator[Turn]:
    number, before = 0, list[str]()
    if run.task.strip():
        yield Turn(number, -1, run.started_at, fitting(run.task))
        number += 1
    for step in run.steps:
        before += filter(None, [step.thought])
        if step.user_message and step.user_message.strip():
            # The end of what it wrote says what a short answer is about.
            written = kept_text("\n\n".join(before))
            yield Turn(
                number,
                step.index,
                step.timestamp,
                fitting(step.user_message),
                written[-_BEFORE_CHARACTERS:],
            )
            number += 1
            before = []


def in_parts(turns: Sequence[Turn]) -> Iterator[tuple[Turn, ...]]:
    """Yield *turns* in parts that are small enough for a request."""
    part, tokens = list[Turn](), 0
    for turn in turns:
        size = count_tokens(str(turn))
        if part and tokens + size > MAX_TOKENS:
            yield tuple(part)
            part, tokens = [], 0
        part.append(turn)
        tokens += size
    yield tuple(part)


def fitting(text: str) -> str:
    """Return *text* as it is sent: masked, and cut where it is too long for a turn."""
    return clip_tokens(kept_text(text), _TURN_TOKENS)


def nearest(session: Session, part: int, lessons: Iterable[Lesson]) -> tuple[Lesson, ...]:
    """Return *lessons* that share most words with a part of *session*.

    Also those of later sessions: the newest are asked about first. Not what was said in this one
    alone, nor a sentence from which another of *lessons* was made. Before them what a model wrote
    down of the parts before, or of what was said before the session went on.
    """
    lessons = [*lessons]
    again = said_again([(one.id, one, True) for one in lessons])
    words = {*stems(" ".join(f"{turn.before} {turn.text}" for turn in session.parts[part]))}
    own_turns = {
        (turn.session or session.instance_id, turn.step)
        for turn in chain(*session.parts[: part + 1])
    }
    scored, written = [], list[Lesson]()
    for one in lessons:
        if one.origin is Origin.DISTILLED and any(
            (quote.session, quote.step) in own_turns for quote in one.evidence
        ):
            written.append(one)
            continue
        own = {*stems(f"{one.text} {one.about.subject}")}
        is_new = all(said.session == session.instance_id for said in one.evidence)
        if own and not (is_new or one.id in again) and (share := len(own & words) / len(own)) > 0:
            scored.append((share, one))
    scored.sort(key=lambda pair: (-pair[0], pair[1].id))
    written.sort(key=lambda one: (one.time, one.id))
    return (*written[-_GIVEN:], *(one for _, one in scored[:_GIVEN]))


class Refused(Struct, frozen=True):
    """A part of an answer that does not count, and why."""

    text: str
    reason: str


class Checked(Struct, frozen=True):
    """The lessons of an answer that count, how many of them *confirmed* known ones, the others."""

    kept: tuple[NewLesson, ...] = ()
    confirmed: int = 0
    refused: tuple[Refused, ...] = ()


class _Cited(Struct, frozen=True):
    turn: int
    quote: Annotated[str, msgspec.Meta(min_length=1)]


class _About(Struct, frozen=True):
    files: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    subject: str = ""


class _Item(Struct, frozen=True):
    evidence: tuple[_Cited, ...]
    kind: LessonKind | None = None
    lesson: str = ""
    about: _About = field(default_factory=_About)
    rejected: str = ""
    changes: tuple[str, ...] = ()
    confirms: str = ""


def given_in(text: str) -> tuple[str, ...]:
    """Return ids of the lessons in the *text* of a request."""
    _, _, given = text.rpartition(f"\n{_GIVEN_HEAD}\n")
    return tuple(match[1] for match in _GIVEN_ID.finditer(given))


class UnusableError(ValueError):
    """An answer without a list of lessons."""


def checked(answer: str, request: Request) -> Checked:
    """Return lessons in *answer* that turns of *request* confirm, and reasons against the others.

    Raises `UnusableError` if there is no list in it.
    """
    check = _Check(request)
    kept: list[NewLesson] = []
    refused: list[Refused] = []
    confirmed = 0
    for number, value in enumerate(list_in(answer)):
        text = str(value.get("lesson") or value.get("confirms") or "") if _is_row(value) else ""
        try:
            if number >= MAX_LESSONS:
                raise _RefusedError(f"more than {MAX_LESSONS} lessons")
            item = msgspec.convert(value, _Item)
            kept.append(check.confirmed(item) if item.confirms else check.lesson(item))
            confirmed += bool(item.confirms)
        except (_RefusedError, msgspec.ValidationError) as error:
            refused.append(Refused(mask_secrets(text)[:MAX_LESSON], str(error)))
    return Checked(tuple(kept), confirmed, tuple(refused))


def _is_row(value: object) -> bool:
    return isinstance(value, dict)


def _names_lesson(value: dict[str, Any]) -> bool:
    return "lesson" in value or "confirms" in value


def _clauses(text: str) -> Iterator[str]:
    """Yield the sentences of *text*, and the clauses of each: a word beside them hides nothing."""
    for sentence in sentences_in(text):
        parts = [part for one in _CLAUSE.split(sentence) if (part := one.strip())]
        yield from dict.fromkeys((sentence, *parts))


def list_in(answer: str) -> list[Any]:
    """Return the last list of lessons in *answer*, within prose or reasoning.

    Lists within an answer that was cut off, and those of errors, are none. Raises `UnusableError`.
    """
    found: list[Any] | None = None
    found_end, start = 0, answer.find("[")
    for _ in range(_MAX_STARTS):
        if start < 0:
            break
        end = start + 1
        try:
            value, end = _DECODER.raw_decode(answer, start)
        except (ValueError, RecursionError):
            value = None
        is_list = isinstance(value, list) and all(map(_is_row, value))
        if is_list and any(map(_names_lesson, value)):
            found, found_end = value, end
        start = answer.find("[", end)
    if _EMPTY_LIST.search(answer, found_end):  # also after a draft
        return []
    if found is None:
        raise UnusableError("no list of lessons in JSON")
    return found


class _RefusedError(ValueError):
    """Why an item does not count."""


class _Check:
    """Compares items with the turns of a request."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._turns = {turn.number: turn for turn in request.turns}
        self._given = {one.id: one for one in request.given}

    def lesson(self, item: _Item) -> NewLesson:
        """Return the lesson of *item*; raises `_RefusedError`."""
        text = " ".join(item.lesson.split())
        if item.kind is None or not text:
            raise _RefusedError("it has no kind or no sentence")
        if len(text) > MAX_LESSON:
            raise _RefusedError(f"it is longer than {MAX_LESSON} characters")
        evidence, named = self._evidence(item.evidence), item.about
        known = self._known(item.kind, item.evidence)
        paths, symbols, programs = (
            tuple(name for name in names if not _missing(name, known))
            for names in (named.files, named.names, named.programs)
        )
        about = About(paths, symbols, programs, named.subject)
        shown = " ".join((text, *about.names, about.subject, item.rejected))
        if gives_instructions(shown):
            raise _RefusedError("it addresses its reader")
        if _ADDRESS.search(shown):
            raise _RefusedError("it has an address")
        if mask_secrets(shown) != shown:
            raise _RefusedError("it has a secret")
        self._check_words(" ".join((text, *about.names, about.subject)), item.evidence, known)
        self._check_later(item.evidence)
        # What was ruled out counts by itself: the lesson stands without it.
        is_foreign = self._foreign(item.rejected, self._parts)
        ruled_out = "" if is_foreign else " ".join(item.rejected.split())
        facts = LessonFacts(item.kind, Origin.DISTILLED, about, evidence, ruled_out=ruled_out)
        return NewLesson(
            text, facts, self._superseded(item.changes, text), self._request.session.title
        )

    def confirmed(self, item: _Item) -> NewLesson:
        """Return the given lesson that *item* confirms, with evidence; raises `_RefusedError`."""
        known = self._given.get(item.confirms)
        if known is None:
            raise _RefusedError(f"{item.confirms} was not given")
        evidence = self._evidence(item.evidence)
        self._known(known.kind, item.evidence)
        said = {*stems(" ".join(map(self._around, item.evidence)))}
        if not said & {*stems(known.text)}:
            raise _RefusedError("its quotes have no word of the lesson")
        facts = LessonFacts(known.kind, known.origin, known.about, evidence)
        return NewLesson(known.text, facts, title=self._request.session.title)

    def _evidence(self, cited: Sequence[_Cited]) -> tuple[Quotation, ...]:
        """The quotations; raises where there are none, or one is not in the turn that it cites."""
        if not cited:
            raise _RefusedError("it has no quote")
        return tuple(map(self._quotation, cited))

    def _quotation(self, cited: _Cited) -> Quotation:
        turn, quote = self._turns.get(cited.turn), " ".join(cited.quote.split())
        if turn is None:
            raise _RefusedError(f"there is no turn {cited.turn}")
        line = self._line(cited)
        if not line and quote not in " ".join(turn.text.split()):
            raise _RefusedError(f"the words {quote[:60]!r} do not stand in turn {cited.turn}")
        session = self._request.session
        return Quotation(
            quote=quote[:MAX_QUOTE],
            run="" if session.reviewer else session.run_id,
            session=turn.session or session.instance_id,
            step=turn.step,
            speaker="agent" if line else session.reviewer or "user",
            at=turn.at or session.started_at or datetime.now(UTC),
            context="" if line else turn.before[-_CONTEXT_CHARACTERS:],
        )

    def _line(self, cited: _Cited) -> str:
        """Return the line about a cleared error that is cited; empty for the words of a person."""
        turn, quote = self._turns[cited.turn], " ".join(cited.quote.split())
        if quote in " ".join(turn.text.split()):
            return ""
        return next((line for line in turn.cleared if quote in line), "")

    def _around(self, cited: _Cited) -> str:
        turn = self._turns[cited.turn]
        return self._line(cited) or f"{turn.before} {turn.text}"

    def _known(self, kind: LessonKind, evidence: Sequence[_Cited]) -> frozenset[str]:
        """Return the parts of names that a lesson may have: those of the conversation.

        What no person said is a fact about an error: it names what cleared it, and nothing else.
        """
        lines = [self._line(one) for one in evidence]
        if not all(lines):
            return self._parts
        if kind is not LessonKind.FACT:
            raise _RefusedError("no person says it: only a fact rests on what cleared an error")
        return _parts_of(" ".join(lines))

    def _check_words(self, text: str, evidence: Sequence[_Cited], known: Collection[str]) -> None:
        """Raise where *text* names what is not *known*, or excludes what the turns do not.

        A cleared error counts as a negation: something did not work.
        """
        if foreign := self._foreign(text, known):
            missing = _missing(foreign, known)
            raise _RefusedError(f"the conversation does not have {missing[0]!r} of {foreign!r}")
        cited, denied = " ".join(map(self._around, evidence)), [*_denied(text)]
        rests_on_error, own = all(map(self._line, evidence)), {*stems(text)}
        if rests_on_error and len(own & {*stems(cited)}) < _SAID_BY_LINE * len(own):
            raise _RefusedError("it is not about the error that it cites")
        if (
            _NEGATION.search(_worded(text))
            and not (_NEGATION.search(cited) or rests_on_error)
            and not (denied and all(map(self._is_denied, denied)))
        ):
            raise _RefusedError("it has a negation, the turns that it cites have none")
        if _is_inverted(text, " ".join(one.quote for one in evidence)):
            raise _RefusedError("it recommends what its quotes exclude, and the reverse")
        for word, pattern in _ABSOLUTE.items():
            if pattern.search(text) and not pattern.search(self._said):
                raise _RefusedError(f"it says {word!r}, the conversation does not")

    def _is_denied(self, words: AbstractSet[str]) -> bool:
        """Return whether a person denies these *words*, or half of them, in any turn."""
        clauses = (clause for turn in self._request.turns for clause in _denied(turn.text))
        return any(words and len(words & clause) >= len(words) / 2 for clause in clauses)

    def _check_later(self, evidence: Sequence[_Cited]) -> None:
        """Raise where a later turn, which the item does not cite, takes the words back."""
        last = max(cited.turn for cited in evidence)
        for turn in self._request.turns:
            if turn.number <= last:
                continue
            for clause in _clauses(turn.text):
                said = Statement(clause, "", _TURN_BEGINS + timedelta(turn.number))
                for cited in evidence:
                    at = _TURN_BEGINS + timedelta(cited.turn)
                    before = (Statement(one, "", at) for one in _clauses(cited.quote))
                    if any(verdict(said, one).relation is Relation.SUPERSEDES for one in before):
                        raise _RefusedError(f"turn {turn.number} takes it back")

    def _foreign(self, text: str, known: Collection[str]) -> str:
        """Return the first name in *text* with parts that are not *known*; empty if none."""
        named = (*_CODE.findall(text), *_NAME.findall(_CODE.sub(" ", text)))
        return next((name for name in named if _missing(name, known)), "")

    @cached_property
    def _said(self) -> str:
        given = [f"{one.text} {' '.join(one.about.names)}" for one in self._request.given]
        turns = [" ".join((one.before, one.text, *one.cleared)) for one in self._request.turns]
        return " ".join((self._request.session.repo, self._request.session.title, *turns, *given))

    @cached_property
    def _parts(self) -> frozenset[str]:
        """The words of the conversation, and the words that a name has within it."""
        return _parts_of(self._said)

    def _superseded(self, ids: Iterable[str], text: str) -> tuple[str, ...]:
        """Return the *ids* of earlier lessons on the same subject; others are left to a person."""
        own, until = stems(text), self._request.turns[-1].at or self._request.session.started_at
        given = [self._given[id_] for id_ in ids if id_ in self._given]
        earlier = [one for one in given if until is None or one.time <= until]
        return tuple(one.id for one in earlier if dice(own, stems(one.text)) >= _SAME_SUBJECT)


def _parts_of(text: str) -> frozenset[str]:
    return frozenset(part.casefold() for part in _PART.findall(text))


def _missing(name: str, known: Collection[str]) -> list[str]:
    """Return the parts of *name*, placeholders left out, that are not *known*."""
    parts = _PART.findall(_PLACEHOLDER.sub(" ", name))
    return [part for part in parts if part.casefold() not in known]


def _is_inverted(text: str, quoted: str) -> bool:
    """Return whether *text*, in the words of *quoted*, excludes what that recommends.

    Other wordings are for a person to compare: the words quoted stand beside the lesson.
    """
    if dice(stems(text), stems(quoted)) < _SAME_WORDS:
        return False
    excluded, recommended = _sides(text)
    excluded_there, recommended_there = _sides(quoted)
    return bool(
        excluded & recommended_there
        and recommended & excluded_there
        and excluded.isdisjoint(excluded_there.union(*_denied(quoted)))
    )


def _denied(text: str) -> Iterator[set[str]]:
    """Yield the stems behind the negation of each clause of *text* that has one."""
    for sentence in sentences_in(text):
        for clause in _CLAUSE.split(_worded(sentence)):
            _, *behind = _NEGATION.split(clause, 1)
            yield from ({*stems(part)} for part in behind)


def _worded(text: str) -> str:
    """Return *text* without negations that are names in its code, such as `None`."""
    return _CODE.sub(lambda code: _NEGATION.sub(" ", code[0]), text)


def _sides(text: str) -> tuple[set[str], set[str]]:
    """Return the stems of *text* that follow a negation at once in its clause, and the others."""
    _, *behind = _NEGATION.split(_worded(text))
    excluded = {word for part in behind for word in stems(_CLAUSE.split(part, 1)[0])[:1]}
    return excluded, {*stems(_NEGATION.sub(" ", _worded(text)))} - excluded


def repair(request: Request, answer: str, refused: Sequence[Refused]) -> str:
    """Return the request to correct the *refused* parts of an *answer*, which is sent once."""
    reasons = [f"{one.text or 'the answer'}: {one.reason}" for one in refused]
    return repair_of(request.text, answer, reasons, "list")


def repair_of(asked: str, answer: str, reasons: Sequence[str], form: str) -> str:
    """Return the request to correct an *answer* to *asked*, a *form* of JSON, for *reasons*."""
    listed = "\n".join(f"- {reason}" for reason in reasons)
    return (
        f"{asked}\n\n--- your answer before\n\n{clip_tokens(answer, 2_000)}\n\n"
        f"--- not usable\n\n{listed}\n\nReturn the whole {form} again, with these corrected or "
        "left out. Only JSON."
    )
