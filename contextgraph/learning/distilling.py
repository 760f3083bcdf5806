"""Distils lessons and methodologies by a language model: which wait, what it costs, the results.

Beside the memory a log has a line for each session that was asked about: it is the receipt, the
bound of a day is counted by it, and no session is asked about twice with the same prompt. So it has
for each methodology, which several cases of one error have in common.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from contextgraph.config import RUNNING_AGENT, Settings
from contextgraph.errors import (
    InvalidArgumentError,
    LimitReachedError,
    NotFoundError,
    RemoteError,
    StoreUnavailableError,
)
from contextgraph.inference.answering import Answered, Answerer
from contextgraph.inference.chat import prompt_text
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
from contextgraph.knowledge.lessons import Lessons
from contextgraph.learning.abstraction import Derived
from contextgraph.learning.consolidator import MemoryConsolidator
from contextgraph.model import (
    NO_USAGE,
    LessonStatus,
    MethodologyGroup,
    ModelWording,
    Origin,
    RunFilter,
    Trajectory,
    Words,
)
from contextgraph.model.values import checked as checks_types, replace
from contextgraph.store.memory_store import RunStore
from contextgraph.system.processes import append, locked, replacing
from contextgraph.text import clean, count_tokens, digest, mask_secrets, one_line

if TYPE_CHECKING:
    from pydantic import BaseModel

PROMPT, REVIEWS = "lessons.v3", "reviews.v1"
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
    "stopped" (there is no answer), with the *reason*; after both the session still waits. An answer
    of the running agent with refused parts is "returned", and nothing is kept. *turns* are those of
    the session that were asked about by then.
    """

    at: datetime
    run: str
    status: str
    turns: int = 0
    by: str = ""
    prompt: str = "lessons.v1"  # receipts of this version do not name it
    requests: int = 0
    tokens: int = 0
    cost: float = 0.0
    kept: int = 0
    confirmed: int = 0
    refused: tuple[Refused, ...] = ()
    reason: str = ""


class DistilRequest(Struct, frozen=True):
    """The *text* of a request; its answer is given with the *id*, which is that of this text."""

    id: str
    text: str


class Worded(Struct, frozen=True):
    """The *words* of a model for cases of one error (*group*), with the *receipt*."""

    receipt: Distilled
    group: MethodologyGroup
    words: Words


class DistilLog:
    """The receipts of a memory on this machine, in the folder beside it.

    Those of a memory in RAM end with it.
    """

    def __init__(self, settings: Settings) -> None:
        self._folder = Path(f"{settings.companion}.distil")
        self._path = self._folder / "log.jsonl"
        self._held: list[Distilled] | None = [] if settings.is_in_memory else None
        self._lock = Lock()

    def entries(self) -> Sequence[Distilled]:
        """Return all receipts, the newest last; a line that was cut off is left out."""
        if self._held is not None:
            return (*self._held,)
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
        if self._held is not None:
            self._held.append(receipt)
            return
        append(self._path, msgspec.json.encode(receipt) + b"\n")

    def forget(self, runs: Collection[str]) -> None:
        """Remove the receipts of *runs*: they quote what was refused."""
        if self._held is not None:
            self._held = [one for one in self._held if one.run not in runs]
        elif runs and self._path.exists():
            kept = [one for one in self.entries() if one.run not in runs]
            with replacing(self._path) as part:
                part.write_bytes(b"".join(msgspec.json.encode(one) + b"\n" for one in kept))

    @contextmanager
    def alone(self) -> Iterator[bool]:
        """Hold the lock of the one worker for the block; False where another has it."""
        if self._held is None:
            with locked(self._folder / "lock", wait=False) as is_alone:
                yield is_alone
        elif is_alone := self._lock.acquire(blocking=False):
            try:
                yield is_alone
            finally:
                self._lock.release()
        else:
            yield False


class Distiller:
    """Distils sessions of a memory, within *most* tokens a day, and notes it in *log*."""

    def __init__(
        self,
        runs: RunStore,
        lessons: Lessons,
        consolidator: Callable[[], MemoryConsolidator],
        log: DistilLog,
        most: float,
    ) -> None:
        self._runs, self._lessons, self._consolidator = runs, lessons, consolidator
        self._log, self._most = log, most
        self._known = log.entries()

    def is_paused(self) -> bool:
        """Return whether the model gave no usable answer within the last hour."""
        of_others = (one for one in reversed(self._known) if one.by not in (FILE, RUNNING_AGENT))
        last = next(of_others, None)
        return bool(last and _is_end(last) and last.at > datetime.now(UTC) - _PAUSE)

    def waiting(
        self,
        repo: str | None = None,
        since: datetime | None = None,
        only_of: str | None = None,
    ) -> Iterator[Session]:
        """Yield the sessions that were not asked about, the newest first, after a failure last.

        Those in which nobody spoke are noted, so that they are read once. Only those that the
        source *only_of* supplied, if it is given.
        """
        asked, failed = self._asked(), list[Session]()
        before = {one.run for one in self._known if one.status == "failed"}
        for run in self._runs.listed(RunFilter(repo=repo, since=since), _NEWEST):
            if only_of not in (None, run.contributor) or (run.id in asked and not asked[run.id]):
                continue
            session = self._session(run)
            if session is None:
                self._note(Distilled(datetime.now(UTC), run.id, "silent", prompt=PROMPT))
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

    def parts(self, session: Session) -> Iterator[int]:
        """Yield the numbers of the parts of *session* with turns that were not asked about."""
        asked, end = self._asked().get(session.run_id, 0), 0
        for number, turns in enumerate(session.parts):
            end += len(turns)
            if end > asked:
                yield number

    def _session(self, run: Trajectory) -> Session | None:
        raw = self._runs.raw(run.id)
        return session_of(raw, run.id, run.contributor) if raw else None

    def named(self, id_: str) -> Request | None:
        """Return the request of an id that `id_of` gave; None where it has changed or is answered.

        It changes with the session, and with the lessons that are nearest to it.
        """
        run = self._runs.trajectories([id_.rpartition(".")[0]])
        session = self._session(next(iter(run.values()))) if run else None
        requests = (self.request(session, part) for part in self.parts(session)) if session else ()
        return next((one for one in requests if id_of(one) == id_), None)

    def _asked(self) -> dict[str, int]:
        """The turns that were asked about, by session; also of one that was given up.

        A failure counts once the same model has answered about a later session: until then it may
        be a word about limits, which some programs print as an answer.
        """
        asked, counts = dict[str, int](), Counter[str]()
        failed = defaultdict[str, dict[str, int]](dict)
        for one in self._known:
            if one.prompt not in (PROMPT, REVIEWS):
                continue
            if one.status == "stopped":  # the parts before were answered
                asked |= {one.run: one.turns} if one.turns else {}
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
        listed = self._lessons.of(session.repo, status=[LessonStatus.ACTIVE, LessonStatus.PROPOSED])
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
        answered = self._asked().get(session.run_id, 0)
        for part in self.parts(session):
            request = self.request(session, part)
            try:
                answer, receipt = self._ask(answerer, request.text, receipt)
                found, problems = self._checked(answer.text, request)
                if problems:
                    text = repair(request, answer.text, problems)
                    second, receipt = self._ask(answerer, text, receipt)
                    again, left = self._checked(second.text, request)
                    found, problems = (again, left) if again is not None else (found, problems)
            except RemoteError as error:
                receipt = replace(receipt, status="stopped", turns=answered, reason=str(error))
                break
            if found is None:
                reason = _unusable(answerer.name, answer.text, problems[0].reason)
                receipt = replace(receipt, status="failed", reason=reason)
                break
            self._keep(found, session)
            answered = sum(map(len, session.parts[: part + 1]))
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

    def take(
        self, answer: str, request: Request, by: str = FILE, *, is_last: bool = True
    ) -> Distilled:
        """Keep the lessons of an *answer* that came as a file, or from the running agent.

        Where parts of it are refused, nothing is kept or noted unless it *is_last*.
        """
        found, problems = self._checked(answer, request)
        until = sum(map(len, request.session.parts[: request.part + 1]))
        tokens = count_tokens(request.text) + count_tokens(answer) if by == RUNNING_AGENT else 0
        receipt = replace(_receipt(request.session, by), turns=until, requests=1, tokens=tokens)
        if problems and not is_last:
            return replace(receipt, status="returned", refused=problems)
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
        waiting = self._consolidator().wordings().waiting(worded_by(by))
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
            kept = self._consolidator().wordings().keep([derived], [wording])
            receipt = replace(receipt, kept=0 if wording.reason else kept)
        self._note(receipt)
        return Worded(receipt, derived[0], wording.words)

    def left_today(self) -> float:
        """Return the tokens that may still be used today."""
        today = datetime.now(UTC).date()
        return self._most - sum(one.tokens for one in self._known if one.at.date() == today)

    def check_bound(self, text: str, used: int = 0) -> None:
        """Raise `LimitReachedError` if *text* and its answer need more tokens than are left today.

        *used* tokens count as used today.
        """
        needed = count_tokens(text) + _ANSWER_TOKENS
        left = self.left_today() - used
        if needed > left:
            raise LimitReachedError(
                f"{needed:,} tokens are needed, {max(0, left):,.0f} of {self._most:,.0f} are left "
                "today; raise the setting distil_tokens, or go on tomorrow"
            )

    def _ask(
        self,
        answerer: Answerer,
        text: str,
        receipt: Distilled,
        form: "type[BaseModel] | None" = None,
    ) -> tuple[Answered, Distilled]:
        """Return the answer to *text*, and the receipt with its costs."""
        self.check_bound(text, receipt.tokens)
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

    def _keep(self, found: Checked, session: Session) -> None:
        self._lessons.keep(found.kept, session.repo, session.contributor)

    def _note(self, receipt: Distilled) -> None:
        # Of a reviewer there is no run with which what was refused would be forgotten.
        self._log.add(replace(receipt, refused=()) if receipt.prompt == REVIEWS else receipt)
        self._known = (*self._known, receipt)


@checks_types
class DistilQueue:
    """The requests that wait for the running agent, where *chosen* says that it answers them.

    One process at a time: others get `StoreUnavailableError`. A lesson counts as said by the source
    of its session: with *only_of* only the sessions of this source are asked about and answered.
    """

    def __init__(self, log: DistilLog, distiller: Callable[[], Distiller], chosen: str) -> None:
        self._log, self._distiller, self._chosen = log, distiller, chosen

    def next_request(
        self, repo: str | None = None, *, only_of: str | None = None
    ) -> DistilRequest | None:
        """Return the request about the newest session (of *repo*) that waits; None without any.

        Raises `LimitReachedError` where it needs more tokens than are left today, and
        `NotFoundError` unless the setting *distil* is ``agent``.
        """
        with self._alone() as distiller:
            for session in distiller.waiting(repo, only_of=only_of):
                request = distiller.request(session, next(distiller.parts(session)))
                distiller.check_bound(request.text)
                return DistilRequest(id_of(request), request.text)
        return None

    def answer(
        self, request: str, answer: str, *, is_last: bool = False, only_of: str | None = None
    ) -> Distilled:
        """Check the *answer* to the *request* of an id, keep its lessons, and return the receipt.

        Where parts of it are refused, its status is "returned": then nothing is kept, and the
        corrected answer *is_last*. Raises `InvalidArgumentError` for a request that does not wait.
        """
        with self._alone() as distiller:
            found = distiller.named(request)
            if found is None or only_of not in (None, found.session.contributor):
                raise InvalidArgumentError(
                    f"{request} waits no more, or its session or lessons have changed: "
                    "ask for the next request"
                )
            return distiller.take(answer, found, RUNNING_AGENT, is_last=is_last)

    @contextmanager
    def _alone(self) -> Iterator[Distiller]:
        if self._chosen != RUNNING_AGENT:
            raise NotFoundError(
                f'no request waits for the running agent: set distil = "{RUNNING_AGENT}" '
                "in contextgraph.toml"
            )
        with self._log.alone() as is_alone:
            if not is_alone:
                raise StoreUnavailableError("another process distils this memory; try again later")
            yield self._distiller()


def id_of(request: Request) -> str:
    """Return an id of *request* that is of its text."""
    return f"{request.session.run_id}.{digest(request.text)}"


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
