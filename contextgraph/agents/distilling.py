"""Distils lessons and methodologies by a language model: which wait, what it costs, the results.

Beside the memory a log has a line for each session that was asked about: it is the receipt, the
bound of a day is counted by it, and no session is asked about twice with the same prompt. So it has
for each methodology, which several cases of one error have in common.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from contextgraph.config import Settings
from contextgraph.errors import RemoteError, SettingsError
from contextgraph.inference.answering import Answered, Answerer, ModelAnswerer, ProgramAnswerer
from contextgraph.inference.chat import MAKER, prompt_text
from contextgraph.inference.summarizer import PROMPT_VERSION, reword, worded_by, wording_in
from contextgraph.knowledge.distil import (
    Checked,
    Refused,
    Request,
    Session,
    UnusableError,
    checked,
    nearest,
    repair,
    session_of,
)
from contextgraph.learning.abstraction import Derived
from contextgraph.memory.agent_memory import AgentMemory
from contextgraph.model import (
    NO_USAGE,
    Lesson,
    LessonStatus,
    MethodologyGroup,
    ModelWording,
    Origin,
    RunFilter,
    Words,
)
from contextgraph.model.values import replace
from contextgraph.system.processes import append, locked, replacing
from contextgraph.text import clean, count_tokens, mask_secrets, one_line

if TYPE_CHECKING:
    from pydantic import BaseModel

PROMPT, REVIEWS = "lessons.v1", "reviews.v1"
FILE = "file"
_NEWEST = 10_000
# An answer has a few lessons; a model may reason before it.
_ANSWER_TOKENS = 1_500
_PAUSE = timedelta(hours=1)
# A session is given up where a model failed so often at it, and not at a later one.
_TRIES = 2
_MOST_CITED = 120


class Distilled(Struct, frozen=True, omit_defaults=True):
    """The receipt of one session, or methodology: the model that was asked (*by*), and the result.

    *status* is "done", "silent" (nobody spoke), "failed" (the answer has not the form asked for) or
    "stopped" (there is no answer), with the *reason*; after both the session still waits. *turns*
    are those that the session had.
    """

    at: datetime
    run: str
    status: str
    turns: int = 0
    by: str = ""
    prompt: str = PROMPT
    requests: int = 0
    tokens: int = 0
    cost: float = 0.0
    kept: int = 0
    confirmed: int = 0
    refused: tuple[Refused, ...] = ()
    reason: str = ""


class Worded(Struct, frozen=True):
    """The *words* of a model for cases of one error (*group*), with the *receipt*."""

    receipt: Distilled
    group: MethodologyGroup
    words: Words


class DistilLog:
    """The receipts of a memory on this machine, in the folder beside it."""

    def __init__(self, settings: Settings) -> None:
        self._folder = Path(f"{settings.companion}.distil")
        self._path = self._folder / "log.jsonl"

    def entries(self) -> Sequence[Distilled]:
        """Return all receipts, the newest last; a line that was cut off is left out."""
        found = []
        lines = self._path.read_bytes().splitlines() if self._path.exists() else ()
        for line in lines:
            try:
                found.append(msgspec.json.decode(line, type=Distilled))
            except msgspec.DecodeError:
                continue
        return found

    def add(self, receipt: Distilled) -> None:
        """Append *receipt*."""
        append(self._path, msgspec.json.encode(receipt) + b"\n")

    def forget(self, runs: Collection[str]) -> None:
        """Remove the receipts of *runs*: they quote what was refused."""
        kept = [one for one in self.entries() if one.run not in runs]
        if self._path.exists():
            with replacing(self._path) as part:
                part.write_bytes(b"".join(msgspec.json.encode(one) + b"\n" for one in kept))

    def alone(self) -> AbstractContextManager[bool]:
        """Hold the lock of the one worker for the block; False where another process has it."""
        return locked(self._folder / "lock", wait=False)


def answerer_of(chosen: str, memory: AgentMemory) -> Answerer:
    """Return the model *chosen*: ``openai/MODEL``, or a program that reads standard input.

    Raises `SettingsError` where none is.
    """
    if not chosen:
        raise SettingsError(
            "no model is chosen: give --by, or set distil in contextgraph.toml (claude, codex, "
            "openai/MODEL, or a command that reads standard input); see docs/llm.md"
        )
    if chosen.startswith(f"{MAKER}/"):
        chat = memory.chat_of(chosen)
        assert chat is not None
        return ModelAnswerer(chat)
    return ProgramAnswerer(chosen)


class Distiller:
    """Distils sessions of *memory*, within *most* tokens a day."""

    def __init__(self, memory: AgentMemory, log: DistilLog, most: float) -> None:
        self._memory, self._log, self._most = memory, log, most
        self._known = log.entries()

    def is_paused(self) -> bool:
        """Return whether the model gave no usable answer within the last hour."""
        last = next((one for one in reversed(self._known) if one.by != FILE), None)
        return bool(last and _is_end(last) and last.at > datetime.now(UTC) - _PAUSE)

    def waiting(self, repo: str | None = None, since: datetime | None = None) -> Iterator[Session]:
        """Yield the sessions that were not asked about, the newest first, after a failure last.

        Those in which nobody spoke are noted, so that they are read once.
        """
        asked, failed = self._asked(), list[Session]()
        before = {one.run for one in self._known if one.status == "failed"}
        runs = self._memory.store.runs
        for run in runs.listed(RunFilter(repo=repo, since=since), _NEWEST):
            if run.id in asked and not asked[run.id]:
                continue
            raw = runs.raw(run.id)
            session = session_of(raw, run.id, run.contributor) if raw else None
            if session is None:
                self._note(Distilled(datetime.now(UTC), run.id, "silent"))
            elif asked.get(run.id, 0) < _turns(session):
                if run.id in before:
                    failed.append(session)
                else:
                    yield session
        yield from self.not_asked(failed)

    def not_asked(self, sessions: Iterable[Session]) -> Iterator[Session]:
        """Yield those of *sessions* of which not all turns were asked about by now."""
        for one in sessions:
            if self._asked().get(one.run_id, 0) < _turns(one):
                yield one

    def _asked(self) -> dict[str, int]:
        """The turns that were asked about, by session; also of one that was given up.

        A failure counts once the same model has answered about a later session: until then it may
        be a word about limits, which some programs print as an answer.
        """
        asked, counts = dict[str, int](), Counter[str]()
        failed = defaultdict[str, dict[str, int]](dict)
        for one in self._known:
            if one.prompt not in (PROMPT, REVIEWS) or one.status == "stopped":
                continue
            if one.status == "failed":
                failed[one.by][one.run] = one.turns
                continue
            asked[one.run] = one.turns
            if one.status == "done" and one.by != FILE:
                counts.update(failed[one.by].keys())
                given_up = failed.pop(one.by)
                asked |= {run: turns for run, turns in given_up.items() if counts[run] >= _TRIES}
        return asked

    def request(
        self, session: Session, part: int = 0, named: Sequence[str] | None = None
    ) -> Request:
        """Return the request about a *part*, with the nearest active or the *named* lessons.

        Also those that a model wrote down and that wait for repetition; not other proposed ones,
        of which many are fragments.
        """
        listed = self._memory.lessons.of(
            session.repo, status=[LessonStatus.ACTIVE, LessonStatus.PROPOSED]
        )
        lessons = [
            one
            for one in listed
            if one.status is LessonStatus.ACTIVE or one.origin is Origin.DISTILLED
        ]
        if named is None:
            given = nearest(session, part, lessons)
        else:
            by_id = {one.id: one for one in lessons}
            given = tuple(by_id[id_] for id_ in named if id_ in by_id)
        return Request(session, part, given, prompt_text(_prompt(session)))

    def distil(self, answerer: Answerer, session: Session) -> Distilled:
        """Ask *answerer* about *session*, and keep the lessons that count."""
        receipt = _receipt(session, answerer.name)
        before: tuple[str, ...] = ()
        for part in range(len(session.parts)):
            request = self.request(session, part)
            request = replace(request, given=(*request.given, *self._of_ids(session, before)))
            try:
                answer, receipt = self._ask(answerer, request.text, receipt)
                found, problems = self._checked(answer.text, request)
                if problems:
                    text = repair(request, answer.text, problems)
                    second, receipt = self._ask(answerer, text, receipt)
                    again, left = self._checked(second.text, request)
                    found, problems = (again, left) if again is not None else (found, problems)
            except RemoteError as error:
                receipt = replace(receipt, status="stopped", reason=str(error))
                break
            if found is None:
                reason = _unusable(answerer.name, answer.text, problems[0].reason)
                receipt = replace(receipt, status="failed", reason=reason)
                break
            before = self._keep(found, session)
            receipt = replace(
                receipt,
                kept=receipt.kept + len(found.kept) - found.confirmed,
                confirmed=receipt.confirmed + found.confirmed,
                refused=(*receipt.refused, *found.refused),
            )
        self._note(receipt)
        return receipt

    def distil_all(self, answerer: Answerer, sessions: Iterable[Session]) -> Iterator[Distilled]:
        """Distil *sessions*; end where there is no usable answer."""
        for session in sessions:
            receipt = self.distil(answerer, session)
            yield receipt
            if _is_end(receipt):
                return

    def take(self, answer: str, request: Request) -> Distilled:
        """Keep the lessons of an *answer* that came as a file."""
        found, problems = self._checked(answer, request)
        receipt = replace(_receipt(request.session, FILE), requests=1)
        if found is None:
            receipt = replace(receipt, status="failed", reason=problems[0].reason)
        else:
            self._keep(found, request.session)
            receipt = replace(
                receipt,
                kept=len(found.kept) - found.confirmed,
                confirmed=found.confirmed,
                refused=found.refused,
            )
        self._note(receipt)
        return receipt

    def methodologies(self, by: str, limit: int | None = None) -> Iterator[Derived]:
        """Yield methodologies that *by* has not worded, with the cases that they summarise.

        After a failure last.
        """
        waiting = self._memory.consolidator.wordings().waiting(worded_by(by))
        failed = {one.run for one in self._known if one.status == "failed"}
        yield from islice(sorted(waiting, key=lambda derived: derived[1].id in failed), limit)

    def word_all(self, answerer: Answerer, limit: int | None = None) -> Iterator[Worded]:
        """Word the methodologies that wait, at most *limit*; end where there is no answer."""
        for derived in self.methodologies(answerer.name, limit):
            worded = self._word(answerer, derived)
            yield worded
            if _is_end(worded.receipt):
                return

    def _word(self, answerer: Answerer, derived: Derived) -> Worded:
        """Ask *answerer* to summarise the cases of a methodology, and keep its words."""
        receipt, answer = _receipt_of(derived, answerer.name), Answered("", NO_USAGE)

        def ask(text: str, form: "type[BaseModel]") -> Answered:
            nonlocal receipt, answer
            answer, receipt = self._ask(answerer, text, receipt, form)
            return answer

        try:
            wording = reword(derived[0], answerer.name, ask)
        except RemoteError as error:
            receipt = replace(receipt, status="stopped", reason=str(error))
            self._note(receipt)
            return Worded(receipt, derived[0], Words(""))
        return self._kept(receipt, derived, wording, answer.text)

    def take_words(self, answer: str, derived: Derived) -> Worded:
        """Keep the words of an *answer* that came as a file."""
        receipt = replace(_receipt_of(derived, FILE), requests=1)
        return self._kept(receipt, derived, wording_in(answer, derived[0], FILE), answer)

    def _kept(
        self, receipt: Distilled, derived: Derived, wording: ModelWording, answer: str
    ) -> Worded:
        """Store the words of an *answer*, also refused ones: they are not asked for again."""
        if not wording.is_formed:
            reason = _unusable(receipt.by, answer, wording.reason)
            receipt = replace(receipt, status="failed", reason=reason)
        elif reason := wording.reason:
            receipt = replace(receipt, refused=(Refused("", reason),))
        if wording.is_formed:
            kept = self._memory.consolidator.wordings().keep([derived], [wording])
            receipt = replace(receipt, kept=0 if wording.reason else kept)
        self._note(receipt)
        return Worded(receipt, derived[0], wording.words)

    def left_today(self) -> float:
        """Return the tokens that may still be used today."""
        today = datetime.now(UTC).date()
        return self._most - sum(one.tokens for one in self._known if one.at.date() == today)

    def _ask(
        self,
        answerer: Answerer,
        text: str,
        receipt: Distilled,
        form: "type[BaseModel] | None" = None,
    ) -> tuple[Answered, Distilled]:
        """Return the answer to *text*, and the receipt with its costs."""
        needed = count_tokens(text) + _ANSWER_TOKENS
        left = self.left_today() - receipt.tokens
        if needed > left:
            raise RemoteError(
                f"{needed:,} tokens are needed, {max(0, left):,.0f} of {self._most:,.0f} are left "
                "today; the setting distil_tokens has the bound"
            )
        answer = answerer(text, form)
        return answer, replace(
            receipt,
            requests=receipt.requests + 1,
            tokens=receipt.tokens + answer.usage.tokens,
            cost=receipt.cost + answer.usage.cost,
        )

    def _checked(self, answer: str, request: Request) -> tuple[Checked | None, tuple[Refused, ...]]:
        """The lessons of *answer* that count, if it is usable, and what is to be corrected."""
        try:
            found = checked(answer, request)
        except UnusableError as error:
            return None, (Refused("", str(error)),)
        return found, found.refused

    def _keep(self, found: Checked, session: Session) -> tuple[str, ...]:
        new, known = self._memory.lessons.keep(found.kept, session.repo, session.contributor)
        return (*new, *known)

    def _of_ids(self, session: Session, ids: Sequence[str]) -> tuple[Lesson, ...]:
        return self.request(session, 0, ids).given if ids else ()

    def _note(self, receipt: Distilled) -> None:
        # Of a reviewer there is no run with which what was refused would be forgotten.
        self._log.add(replace(receipt, refused=()) if receipt.prompt == REVIEWS else receipt)
        self._known = (*self._known, receipt)


def _receipt_of(derived: Derived, by: str) -> Distilled:
    return Distilled(datetime.now(UTC), derived[1].id, "done", by=by, prompt=PROMPT_VERSION)


def _receipt(session: Session, by: str) -> Distilled:
    return Distilled(
        datetime.now(UTC),
        session.run_id,
        "done",
        turns=_turns(session),
        by=by,
        prompt=_prompt(session),
    )


def _prompt(session: Session) -> str:
    return REVIEWS if session.reviewer else PROMPT


def _turns(session: Session) -> int:
    return sum(map(len, session.parts))


def _is_end(receipt: Distilled) -> bool:
    """Return whether the model may answer nothing else, as where its limit is used up."""
    return receipt.status in ("stopped", "failed")


def _unusable(by: str, answer: str, reason: str) -> str:
    said = one_line(mask_secrets(clean(answer)), _MOST_CITED)
    return f"{by} answered {said!r}: {reason}; it still waits"
