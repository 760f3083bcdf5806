"""``python -m benchmarks.moments --sessions FOLDER --read FOLDER``: lessons at the right moment.

FOLDER are logs of sessions of one team, and ``requests/`` and ``answers/`` of readers who wrote
down their lessons. The turns of all sessions are replayed in order of time as hooks see them:
start, prompts, edits, commands, ends of turns; the turns that are over when one of another session
begins are learned by then. With ``--model`` the lessons of the readers, checked as `contextgraph
distil` does, are accepted as soon as the words that they quote are learned.
With ``--answers FOLDER`` the lessons are those of answers to the requests of this version instead.
The replay writes each request as `contextgraph distil --write-requests` does, in waves, and reads
the answer beside it (``NAME.json``). A request shows the lessons that are active when its wave
begins. Where answers are missing it says so, and ends. A request that was written stays as it is,
also where later versions give other lessons with it.
``judged/turns.jsonl`` names the turns to which a lesson of an earlier session applies. Without
``--held`` the last third of the sessions is not measured. ``--sheet FILE`` writes the texts for a
reader. ``--fit`` prints the model `lessons about` of ``fitted.json`` from the replays without and
with readers, and with ``--answers`` where they are given, by ``judged/prompts.jsonl``: lessons near
the prompts of the earlier part that help there, as a reader said. ``--starts FILE`` writes each
first request with what the agent is shown up to it, without the index. ``judged/openings.jsonl``
has the subjects that readers in place of the agent opened.

``--clone`` measures how much of that a colleague is shown instead: a memory of the earlier part
proposes its lessons, git clones them, and a second memory has these alone; both replay the
measured sessions.
"""

import argparse
import json
import os
import re
import subprocess
import time
from collections import Counter, defaultdict, deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from hashlib import blake2b
from itertools import accumulate, chain, pairwise
from operator import attrgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, TypeAlias

from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score

from benchmarks.corpus import sessions_of
from benchmarks.measure import model_line
from contextgraph import AgentMemory, RawTrajectory
from contextgraph.agents.live import INDEX
from contextgraph.knowledge.distil import (
    MAX_LESSONS,
    Request,
    Session,
    UnusableError,
    checked,
    given_in,
    session_of,
)
from contextgraph.knowledge.entries import Entries
from contextgraph.knowledge.lessons import NewLesson, lesson_of, note_of_lesson
from contextgraph.knowledge.team import compared, files_of, trust_lessons
from contextgraph.learning import trajectory_id
from contextgraph.learning.distilling import Distiller, id_of
from contextgraph.model import Lesson as KnownLesson, LessonStatus, Note, is_subagent
from contextgraph.model.values import replace
from contextgraph.readers.repository import GitFolder
from contextgraph.text import count_tokens, digest as text_digest, folded

Row: TypeAlias = dict[str, Any]  # of an answer, as `contextgraph.knowledge.distil` checks it

_JUDGED = Path(__file__).parent / "judged" / "turns.jsonl"
_OPENED = Path(__file__).parent / "judged" / "openings.jsonl"
_READ = Path(__file__).parent / "judged" / "prompts.jsonl"
REPO = "team/project"
_TUNED, _RATED, _FOLDS = 2 / 3, 6, 8
WAVES = 4, 2  # of the first two thirds, of the last third
_START, _REQUEST = -1, 1_500


class Lesson(NamedTuple):
    """A lesson that applies: a digest of its letters, and the turns in which it was said."""

    digest: str
    session: str
    turns: frozenset[int]

    def is_said_by(self, note: Note, steps: Mapping[str, Sequence[int]]) -> bool:
        """Return whether *note* is this lesson, or rests on the same words of a person."""
        facts, meant = note.lesson, self.said_after(steps)
        assert facts is not None
        return digest(note.content) == self.digest or any(
            one.session == self.session and one.step in meant for one in facts.evidence
        )

    def said_after(self, steps: Mapping[str, Sequence[int]]) -> set[int]:
        """Return the steps after which it was said."""
        own = steps.get(self.session, ())
        return {own[turn] for turn in self.turns if turn < len(own)}


class Moment(NamedTuple):
    """A turn to which lessons apply; *is_corrected*: the agent had already gone wrong there."""

    session: str
    turn: int
    is_corrected: bool
    lessons: Sequence[Lesson]


class Shown(NamedTuple):
    """A text that an agent was shown in a *turn* (-1: at the start) at a *moment*."""

    turn: int
    moment: str
    text: str
    lessons: Sequence[Note]
    about: str


def moments() -> dict[str, list[Moment]]:
    """Session -> its labelled moments."""
    found: defaultdict[str, list[Moment]] = defaultdict(list)
    for row in map(json.loads, _JUDGED.read_text("utf-8").splitlines()):
        lessons = [
            Lesson(one["lesson"], one["session"], frozenset(one["turns"])) for one in row["lessons"]
        ]
        found[row["session"]].append(
            Moment(row["session"], row["turn"], row["kind"] == "corrected", lessons)
        )
    return found


def openings() -> dict[str, dict[int, list[str]]]:
    """Session -> turn -> digests of the subjects that a reader opened there."""
    found: defaultdict[str, dict[int, list[str]]] = defaultdict(dict)
    for row in map(json.loads, _OPENED.read_text("utf-8").splitlines()):
        found[row["session"]][row["turn"]] = row["subjects"]
    return found


def judged() -> dict[tuple[str, int, str], float]:
    """Session, turn and digest of a lesson -> how much it helps there, as a reader said."""
    rows = map(json.loads, _READ.read_text("utf-8").splitlines())
    return {(row["session"], row["turn"], row["lesson"]): row["helps"] for row in rows}


def digest(text: str) -> str:
    """Return by what a lesson is named in the labels."""
    letters = "".join(re.findall(r"[^\W_]", text.lower()))
    return blake2b(letters.encode(), digest_size=6).hexdigest()


def answers_in(folder: Path) -> dict[str, list[Row]]:
    """Session -> the rows of the answers to the requests about it."""
    found: defaultdict[str, list[Row]] = defaultdict(list)
    for path in sorted((folder / "requests").glob("*.txt")):
        session = path.read_text("utf-8").split()[1]
        answer = folder / "answers" / f"{path.stem}.json"
        found[session] += json.loads(answer.read_text("utf-8")) if answer.exists() else []
    return found


def digest_of(folder: Path) -> str:
    """Return a digest of the requests: of what the readers were given, letter by letter."""
    hashed = blake2b(digest_size=8)
    for path in sorted((folder / "requests").glob("*.txt")):
        hashed.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return hashed.hexdigest()


def keep_read(
    memory: AgentMemory, run: RawTrajectory, run_id: str, rows: Sequence[Row]
) -> set[str]:
    """Keep, and accept, the lessons that a reader wrote of *run*; returns their ids."""
    session, kept = session_of(run, run_id), set[str]()
    for part, turns in enumerate(session.parts if session else ()):
        assert session is not None
        said = {turn.number: " ".join(turn.text.split()) for turn in turns}
        answer = []
        for row in rows:
            quotes = [" ".join(one["quote"].split()) for one in row["evidence"]]
            cited = [
                {"turn": at[0], "quote": quote}
                for quote in quotes
                if (at := [turn for turn in said if quote in said[turn]])
            ]
            if len(cited) == len(quotes):
                answer.append({**row, "evidence": cited, "changes": []})
        for start in range(0, len(answer), MAX_LESSONS):
            asked = Request(session, part, (), "")
            result = checked(json.dumps(answer[start : start + MAX_LESSONS]), asked)
            new, known = memory.lessons.keep(result.kept, run.repo)
            memory.lessons.accept([*new, *known])
            kept.update(new, known)
    return kept


class UnansweredError(Exception):
    """Requests of a wave have no answer."""


class Waves:
    """Requests about sessions, and the lessons in the answers to them.

    *parts* are sessions in order of time, each part with the number of its waves; the sessions of a
    wave are asked about when the first of them begins. *folder* has each request under the id of
    its text, and the answer beside it; that about a later part of a session shows the lessons of
    the parts before, and is written once these are answered.
    """

    def __init__(self, folder: Path, parts: Sequence[tuple[Sequence[RawTrajectory], int]]) -> None:
        self._folder, self._waves, self._number = folder, deque[list[Session]](), 0
        self._waiting = dict[str, list[NewLesson]]()
        self._before = defaultdict[str, list[KnownLesson]](list)
        self._counts = Counter[str]()
        folder.mkdir(parents=True, exist_ok=True)
        for runs, number in parts:
            asked = (session_of(run, trajectory_id(run)) for run in runs)
            sessions = [session for session in asked if session]
            ends = [len(sessions) * wave // number for wave in range(number + 1)]
            self._waves += [sessions[begin:end] for begin, end in pairwise(ends)]

    def ask(self, memory: AgentMemory, time: datetime) -> None:
        """Write the requests of waves that have begun at this *time*, and read the answers.

        Raises `UnansweredError` where there are none.
        """
        while self._waves and any(
            one.started_at and one.started_at <= time for one in self._waves[0]
        ):
            self._ask(memory.distiller(), self._waves.popleft())

    def _ask(self, distiller: Distiller, sessions: Sequence[Session]) -> None:
        asked, missing = list[tuple[Path, Request]](), list[Path]()
        for session in sessions:
            for part in distiller.parts(session):
                path, request = self._written(distiller, session, part)
                asked.append((path, request))
                if not (answer := path.with_suffix(".json")).exists():
                    missing.append(path)
                    break
                self._read(answer.read_text("utf-8"), request)
        self._number += 1
        texts = [path.read_text("utf-8") for path, _ in asked]
        given = [{*given_in(text)} for text in texts]
        known = [{lesson.id for lesson in request.given} for _, request in asked]
        print(
            f"wave {self._number}: {len(sessions)} sessions, {len(asked)} requests,"
            f" {sum(map(count_tokens, texts)):,} tokens, {sum(map(len, given))} lessons given,"
            f" {sum(len(ids - now) for ids, now in zip(given, known, strict=True))} of them unknown"
        )
        if missing:
            raise UnansweredError(
                "\n".join([f"{len(missing)} requests without an answer:", *map(str, missing)])
            )

    def _written(self, distiller: Distiller, session: Session, part: int) -> tuple[Path, Request]:
        """Return the request that was written about a *part*, or write it."""
        written = sorted(self._folder.glob(f"{session.run_id}.*.txt"))
        for path in sorted(written, key=lambda one: not one.with_suffix(".json").exists()):
            text = path.read_text("utf-8")
            request = self._request(distiller, session, part, given_in(text))
            is_whole = path.stem == f"{session.run_id}.{text_digest(text)}"
            if is_whole and text.startswith(replace(request, given=()).text):
                return path, request
        request = self._request(distiller, session, part)
        path = self._folder / f"{id_of(request)}.txt"
        path.write_text(request.text, "utf-8")
        return path, request

    def _request(
        self, distiller: Distiller, session: Session, part: int, named: Sequence[str] | None = None
    ) -> Request:
        """Return a request as `Distiller.request`, also with lessons of the parts before."""
        request, before = distiller.request(session, part, named), self._before[session.run_id]
        own = [one for one in before if named is None or one.id in named]
        return replace(request, given=(*own, *request.given))

    def _read(self, answer: str, request: Request) -> None:
        try:
            result = checked(answer, request)
        except UnusableError:
            self._counts["unusable"] += 1
            return
        self._waiting.setdefault(request.session.instance_id, []).extend(result.kept)
        made = (note_of_lesson(one, request.session.repo, "") for one in result.kept)
        self._before[request.session.run_id] += map(lesson_of, made)
        self._counts += Counter(
            kept=len(result.kept) - result.confirmed,
            confirmed=result.confirmed,
            replaced=sum(len(one.supersedes) for one in result.kept),
            refused=len(result.refused),
        )

    def keep(self, memory: AgentMemory, run: RawTrajectory) -> None:
        """Keep, and accept, the lessons that rest on turns of *run*."""
        said, waiting = {_START, *steps_of(run)}, self._waiting.get(run.instance_id, [])
        learned = [one for one in waiting if said.issuperset(q.step for q in one.facts.evidence)]
        if learned:
            self._waiting[run.instance_id] = [one for one in waiting if one not in learned]
            new, known = memory.lessons.keep(learned, run.repo)
            memory.lessons.accept([*new, *known])

    def report(self) -> str:
        """Return how many lessons the answers had."""
        return f"lessons: {', '.join(f'{count} {name}' for name, count in self._counts.items())}"


def tuned_part(runs: Sequence[RawTrajectory], read: Collection[str]) -> set[str]:
    """Return the sessions of the first two thirds, in time, of those *read*."""
    order = [*dict.fromkeys(run.instance_id for run in runs if run.instance_id in read)]
    return {*order[: int(len(order) * _TUNED)]}


def steps_of(run: RawTrajectory) -> list[int]:
    """Return the step before each turn of the person; -1 before the first request."""
    said = [step.index for step in run.steps if (step.user_message or "").strip()]
    return [*([-1] * _is_turn(run.task)), *said]


def _is_turn(task: str) -> bool:
    """Return whether *task* is a turn: readers were not given a command of the client alone."""
    return bool(task.strip()) and not re.fullmatch(r"/[\w:-]+", task.strip())


class Turn(NamedTuple):
    """A turn of *run* that began at a *time*; *end* steps were over after it, None for all."""

    time: datetime
    run: RawTrajectory
    begin: int
    end: int | None

    @property
    def over(self) -> RawTrajectory:
        """The run up to the end of this turn."""
        steps = [*self.run.steps[: self.end]]
        if self.end is not None:
            steps[-1] = replace(steps[-1], user_message=None)
        return replace(self.run, steps=tuple(steps))


def turns_in_order(runs: Sequence[RawTrajectory]) -> list[Turn]:
    """Return the turns of all *runs* in order of time.

    A step is not later than the steps after it: some logs have a later time among them.
    """
    found = []
    for run in runs:
        assert run.started_at is not None
        times = [step.timestamp or run.started_at for step in run.steps]
        times = [*accumulate(reversed(times), min)][::-1] or [run.started_at]
        said = [step.index + 1 for step in run.steps if (step.user_message or "").strip()]
        for begin, end in pairwise([0, *said, None]):
            assert begin is not None
            time = times[min(begin, len(times) - 1)] if begin else run.started_at
            found.append(Turn(max(time, run.started_at), run, begin, end))
    return sorted(found, key=attrgetter("time"))


def replay(
    memory: AgentMemory, run: RawTrajectory, opened: Mapping[int, Sequence[str]]
) -> Iterator[list[Shown]]:
    """Yield what the agent of *run* would be shown in each turn, and what it *opened*.

    It can open a subject that it was shown in this session.
    """
    live = memory.live(
        repo=run.repo,
        task="",
        agent=run.agent,
        exclude_instances=[run.instance_id],
        session=f"replay of {run.instance_id}",
    )
    turn, seen, read = _START, 0, ""
    named = memory.lessons.subjects(run.repo, run.task)
    subjects = {digest(one): one for one in named.values()}

    def lessons_opened() -> Iterator[Shown]:
        for subject in filter(None, map(subjects.get, opened.get(turn, ()))):
            if subject in read:
                ids = [one.id for one in memory.lessons.about(subject, run.repo)]
                notes = memory.store.notes.get(ids).values()
                yield Shown(turn, "opened", "", [*notes], subject)

    def shown(moment: str, text: str | None, about: str) -> Iterator[Shown]:
        nonlocal seen, read
        if text:
            read += text
            text, index = parted(text)
            yield from [Shown(turn, "index", index, (), "")] * bool(index)
        if text:
            exposures = live.session.exposures()[seen:]
            seen += len(exposures)
            said = memory.store.notes.get([id_ for one in exposures for id_ in one.said])
            notes = [note for note in said.values() if note.lesson]
            yield Shown(turn, moment, text, notes, about)

    def prompted(text: str, is_turn: bool = True) -> Iterator[Shown]:
        nonlocal turn
        turn += is_turn
        yield from shown("prompt", live.prompt(text), text)
        yield from lessons_opened()

    found = [*shown("start", live.start(is_prompted=True), "")]
    found += prompted(run.task, _is_turn(run.task)) if run.task.strip() else ()
    for step in run.steps:
        found += shown("before", live.before(step.action), step.action.text)
        live.resume([replace(step, user_message=None)])
        if said := (step.user_message or "").strip():
            found += shown("end", "; ".join(live.broken()), "")
            yield found
            found = [*prompted(said)]
    found += shown("end", "; ".join(live.broken()), "")
    yield found


def parted(text: str) -> tuple[str, str]:
    """Return *text* without the index of lessons, and this index with its fence."""
    at = text.find(INDEX)
    begins = text.rfind("<", 0, at) if at >= 0 else len(text)
    return text[:begins], text[begins:]


def prompts_of(run: RawTrajectory) -> list[str]:
    """Return the turns of the person."""
    said = filter(None, ((step.user_message or "").strip() for step in run.steps))
    return [*([run.task] * _is_turn(run.task)), *said]


def _searched(
    memory: AgentMemory, run: RawTrajectory, labelled: Sequence[Moment],
    steps: Mapping[str, Sequence[int]],
) -> dict[int, set[str]]:  # fmt: skip
    """Turns where a search for the words of the person has the right thing first.

    Each with the ids of the lessons that are right there, by `turns.jsonl` or `prompts.jsonl`.
    """
    helps, name = judged(), run.instance_id
    known = [note for note in memory.store.notes.all() if note.lesson and note.session != name]
    first = dict[int, set[str]]()
    for turn, prompt in enumerate(prompts_of(run)):
        meant = [one for moment in labelled if moment.turn == turn for one in moment.lessons]
        right = [
            note
            for note in known
            if any(one.is_said_by(note, steps) for one in meant)
            or helps.get((name, turn, digest(note.content)))
        ]
        said = {(one.session, step) for one in meant for step in one.said_after(steps)}
        said |= {
            (one.session, one.step) for note in right if note.lesson for one in note.lesson.evidence
        }
        ids = {note.id for note in right}
        found = memory.search(prompt, repo=run.repo) if said else ()
        earlier = [one for one in found if one.session != name][:1]
        if any(one.id in ids or (one.session, one.step) in said for one in earlier):
            first[turn] = ids
    return first


class Replays:
    """The replays of sessions, turn by turn, of which *counts* are made."""

    def __init__(self, counts: "Counts", steps: Mapping[str, Sequence[int]], fits: bool) -> None:
        self._counts, self._steps, self._fits = counts, steps, fits
        self._labelled, self._opened = moments(), openings()
        self._running = dict[str, Iterator[list[Shown]]]()
        self._shown = defaultdict[str, list[Shown]](list)

    def add(self, memory: AgentMemory, turn: Turn) -> None:
        """Replay a *turn*; count what was shown at the end of its session."""
        run, name = turn.run, turn.run.instance_id
        labelled = self._labelled.get(name, ())
        if self._fits:
            if not turn.begin:
                self._counts.rate(memory, run, labelled, self._steps)
            return
        if name not in self._running:
            self._running[name] = replay(memory, run, self._opened.get(name, {}))
        self._shown[name] += next(self._running[name])
        if turn.end is None:
            self._counts.add(run, self._shown[name], labelled, self._steps, memory)


class Counts:
    """What was shown at the labelled turns, at controls, and at all."""

    def __init__(self) -> None:
        self.right: list[tuple[Moment, bool, bool]] = []
        self.opened = 0
        self.searched: list[bool] = []
        self.indexed = 0
        self.rated: list[tuple[str, Mapping[str, float], float, float]] = []
        self.lines, self.texts = Counter[str](), Counter[str]()
        self.prompts, self.controls = 0, 0
        self.sheet: list[str] = []
        self.starts: list[str] = []
        self.begun = 0

    def add(
        self, run: RawTrajectory, shown: Sequence[Shown], labelled: Sequence[Moment],
        steps: Mapping[str, Sequence[int]], memory: AgentMemory,
    ) -> None:  # fmt: skip
        """Count what was *shown* in *run*, and what *memory* knew when it ended."""
        known = [note for note in memory.store.notes.all() if note.lesson and note.lesson.is_active]
        texts = " ".join(" ".join(one.text.split()) for one in shown)
        named = memory.lessons.subjects(run.repo, run.task)
        indexed = memory.store.notes.get([i for i, one in named.items() if one in texts]).values()
        self.prompts += len(steps_of(run))
        for moment in labelled:
            last = moment.turn - moment.is_corrected
            there = [one for one in shown if one.turn <= last]
            pushed = [note for one in there if one.moment != "opened" for note in one.lessons]
            read = [note for one in there for note in one.lessons]
            is_right, is_read, is_known = (
                any(lesson.is_said_by(note, steps) for lesson in moment.lessons for note in of)
                for of in (pushed, read, known)
            )
            self.right.append((moment, is_right, is_known))
            self.opened += is_read
            self.indexed += any(
                lesson.is_said_by(note, steps) for lesson in moment.lessons for note in indexed
            )
        for turn, ids in _searched(memory, run, labelled, steps).items():
            said = (note.id for one in shown if one.turn <= turn for note in one.lessons)
            self.searched.append(not ids.isdisjoint(said))
        first = [one for one in shown if one.turn <= 0 and one.moment in ("start", "prompt")]
        self.begun += any(one.lessons for one in first)
        text = "\n\n".join(one.text for one in first) or "(nothing)"
        request = "\n> ".join(run.task[:_REQUEST].splitlines())
        self.starts.append(f"## {run.instance_id}\n> {request}\n\n{text}\n")
        wanted = {moment.turn for moment in labelled}
        spoken = {one.turn for one in shown if one.moment == "prompt"}
        others = {turn for turn in range(len(steps_of(run))) if turn not in wanted}
        self.controls += len(others)
        self.lines["turns without a label, with a line"] += len(others & spoken)
        for one in shown:
            self.texts[one.moment] += 1
            self.lines[one.moment] += max(1, len(one.lessons))
            if one.moment in ("opened", "index"):
                continue
            right = any(
                lesson.is_said_by(note, steps)
                for moment in labelled
                for lesson in moment.lessons
                for note in one.lessons
            )
            about = " ".join(one.about.split())[:400]
            self.sheet.append(
                f"## {run.instance_id} turn {one.turn}, {one.moment}{', right' * right}\n"
                f"> {about}\n\n{one.text}\n"
            )

    def rate(
        self, memory: AgentMemory, run: RawTrajectory, labelled: Sequence[Moment],
        steps: Mapping[str, Sequence[int]],
    ) -> None:  # fmt: skip
        """Add how close lessons are to the prompts of *run*, and how much they help there.

        What applies to a later turn of the session helps half, unless a reader said otherwise.
        """
        helps = judged()
        for turn, prompt in enumerate(prompts_of(run)):
            meant = [
                lesson
                for moment in labelled
                if turn <= moment.turn - moment.is_corrected
                for lesson in moment.lessons
            ]
            found = memory.lessons.for_request(prompt, repo=run.repo, is_reply=turn > 0)
            closest = sorted(found, key=lambda one: -one.score)[:_RATED]
            for one in closest:
                applies = any(lesson.is_said_by(one.note, steps) for lesson in meant)
                key = run.instance_id, turn, digest(one.note.content)
                helping = helps.get(key, applies / 2)
                self.rated.append((run.instance_id, one.why, helping, one.probability))

    def fitted(self) -> str:
        """Return the model of the probability that a lesson helps with a prompt.

        And how well a model of the other sessions ranks, beside the one in `fitted.json`.
        """
        names = [*self.rated[0][1]]
        sessions = sorted({session for session, *_ in self.rated})
        others = dict[int, LogisticRegression]()
        for fold in range(_FOLDS):
            own = {*sessions[fold::_FOLDS]}
            others[fold] = _model([one for one in self.rated if one[0] not in own])
        ranked = [
            others[sessions.index(session) % _FOLDS].predict_proba([[*why.values()]])[0, 1]
            for session, why, _, _ in self.rated
        ]
        model, lines = _model(self.rated), list[str]()
        for least in (0.0, 0.5):
            right = [helps > least for _, _, helps, _ in self.rated]
            as_is = [probability for *_, probability in self.rated]
            refitted, now = (average_precision_score(right, of) for of in (ranked, as_is))
            lines.append(
                f"helps more than {least}: {sum(right)} of {len(right)}; average precision of a"
                f" model of other sessions {refitted:.3f}, of the one in use {now:.3f}"
            )
        named = dict(zip(names, map(float, model.coef_[0].round(2)), strict=True))
        return "\n".join([*lines, model_line("lessons about", float(model.intercept_[0]), named)])

    def report(self) -> str:
        """Return the figures."""
        right = sum(is_right for _, is_right, _ in self.right)
        known = sum(is_known for _, _, is_known in self.right)
        corrected = [is_right for moment, is_right, _ in self.right if moment.is_corrected]
        without = self.lines["turns without a label, with a line"]
        share = 40 * without / max(1, self.controls)
        lines = [
            f"right at the moment: {right} of {len(self.right)}; {known} are known",
            f"said, or opened where openings are recorded: {self.opened}",
            f"its subject is in the index: {self.indexed}",
            f"before a correction: {sum(corrected)} of {len(corrected)}",
            f"first of a search: {len(self.searched)} prompts, of these said: {sum(self.searched)}",
            f"turns without a label: {self.controls}, with a line: {without}, of 40: {share:.1f}",
            f"starts with a lesson: {self.begun} of {len(self.starts)}",
            f"lines a prompt: {self.lines['prompt'] / max(1, self.prompts):.2f} of {self.prompts}",
        ]
        lines += [
            f"{moment}: {number} texts, {self.lines[moment]} lines"
            for moment, number in sorted(self.texts.items())
        ]
        return "\n".join(lines)


def _model(rated: Sequence[tuple[str, Mapping[str, float], float, float]]) -> LogisticRegression:
    """Fit the probability that a lesson helps to the lessons that were *rated*."""
    rows = [
        ([*why.values()], right, 0.5)
        for _, why, helps, _ in rated
        for right in (helps > 0, helps > 0.5)
    ]
    features, right, weights = zip(*rows, strict=True)
    return LogisticRegression(max_iter=2_000).fit(features, right, sample_weight=weights)


class Answered(NamedTuple):
    """Lines of lessons, by session, turn and text, that the *first* machine and a *clone* say."""

    first: set[tuple[str, int, str]]
    clone: set[tuple[str, int, str]]

    def report(self, proposed: set[str]) -> str:
        """Return how much of what the first machine says of the lessons *proposed* a clone says."""
        own = {line for line in self.first if line[2] in proposed}
        sessions = {(session, text) for session, _, text in self.clone}
        same = len(own & self.clone)
        there = sum((session, text) in sessions for session, _, text in own)
        return (
            f"the first machine says {len(self.first)} lines, {len(own)} of what it proposes;"
            f" a clone says {same} of these in the same turn ({same / max(1, len(own)):.3f}),"
            f" {there} in the same session ({there / max(1, len(own)):.3f}),"
            f" and {len(self.clone - self.first)} others"
        )


def cloned(first: AgentMemory, root: Path) -> Path:
    """Return a clone, below *root*, of a repository with what *first* proposes."""
    lessons = first.lessons.of(REPO, status=[*LessonStatus])
    files = files_of(compared(lessons, Entries((), {})).own, Entries((), {}), "Ada")
    origin, clone = root / "first", root / "clone"

    def git(*arguments: str) -> None:
        subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True)

    git("init", "-q", "-b", "main", str(origin))
    folder = GitFolder.around(str(origin))
    assert folder is not None
    assert folder.commit(files, "Propose lessons", ("Ada", "ada@example.org"), "main")
    git("clone", "-q", str(origin), str(clone))
    git("-C", str(clone), "remote", "set-url", "origin", f"https://github.com/{REPO}.git")
    return clone


def answered(
    runs: Sequence[RawTrajectory],
    measured: Sequence[RawTrajectory],
    answers: Mapping[str, list[Row]],
) -> str:
    """Return how much of what a memory of *runs* says in *measured* sessions a clone says.

    With the lessons of readers, *answers*, accepted.
    """
    said = Answered(set(), set())
    with TemporaryDirectory() as name, AgentMemory.open(":memory:") as first:
        root = Path(name)
        os.environ["XDG_DATA_HOME"] = str(root / "data")
        for run in runs:
            receipt = first.learn(run)
            keep_read(first, run, receipt.trajectory_id, answers.get(run.instance_id, ()))
        clone = cloned(first, root)
        with AgentMemory.open(":memory:") as second:
            second.learn_team(clone)
            untrusted = len([*second.store.notes.all()])
            trust_lessons(clone)
            taken = second.learn_team(clone)
            for memory, lines in zip((first, second), said, strict=True):
                for run in measured:
                    for one in chain.from_iterable(replay(memory, run, {})):
                        for note in one.lessons:
                            lines.add((run.instance_id, one.turn, folded(note.content)))
            there = {folded(note.content) for note in second.store.notes.all() if note.lesson}
    begins = f"a clone reads {taken.added} lessons; {untrusted} where it is not trusted"
    return f"{begins}\n{said.report(there)}"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.moments", description=__doc__)
    parser.add_argument("--sessions", type=Path, required=True)
    parser.add_argument("--read", type=Path, required=True)
    parser.add_argument("--model", action="store_true", help="with the lessons of readers")
    parser.add_argument("--answers", type=Path, help="with answers to the requests in this folder")
    parser.add_argument("--held", action="store_true", help="measure the last third alone")
    parser.add_argument("--sheet", type=Path)
    parser.add_argument("--starts", type=Path)
    parser.add_argument("--fit", action="store_true", help="fit the probability of a lesson")
    parser.add_argument("--missed", action="store_true", help="list the moments that were missed")
    parser.add_argument("--clone", action="store_true", help="measure what a clone is shown")
    return parser.parse_args()


def main() -> None:
    """Measure and print."""
    options = _options()
    runs = [replace(run, repo=REPO) for run in sessions_of(options.sessions)]
    if options.clone:
        print(_clone(runs, options))
        return
    counts = Counts()
    began = time.process_time()
    try:
        for model, answers in _given(options):
            _measure(runs, options, counts, model, answers)
    except UnansweredError as error:
        print(error)
        return
    print(counts.fitted() if options.fit else counts.report())
    print(f"{time.process_time() - began:.0f} s of CPU")
    _print(counts, options)


def _clone(runs: Sequence[RawTrajectory], options: argparse.Namespace) -> str:
    """Measure a clone of the earlier part; in its own sessions, or in the later ones."""
    answers = answers_in(options.read)
    owned = {run.instance_id: run for run in reversed(runs) if not is_subagent(run.agent)}
    read = [run for run in reversed(owned.values()) if run.instance_id in answers]
    tuned = int(len(read) * _TUNED)
    last = read[tuned].started_at
    earlier = [run for run in runs if run.started_at and last and run.started_at < last]
    measured = read[tuned:] if options.held else read[:tuned]
    return answered(earlier, measured, answers if options.model else {})


def _given(options: argparse.Namespace) -> list[tuple[bool, Path | None]]:
    """Return whether each replay has the lessons of readers, and its folder of answers."""
    if not options.fit:
        return [(options.model, options.answers)]
    return [(False, None), (True, None), *[(False, options.answers)] * bool(options.answers)]


def _measure(
    runs: Sequence[RawTrajectory], options: argparse.Namespace, counts: Counts,
    with_readers: bool, folder: Path | None,
) -> None:  # fmt: skip
    """Replay *runs*, and add to *counts* what is measured of them."""
    answers = answers_in(options.read)
    tuned = tuned_part(runs, answers)
    own = {run.instance_id: run for run in reversed(runs) if not is_subagent(run.agent)}
    read = {name: own[name] for name in answers if name in own}
    replays = Replays(counts, {name: steps_of(run) for name, run in own.items()}, options.fit)
    waves = _waves(folder, [*read.values()], tuned, options.held) if folder else None
    kept = set[str]()
    with AgentMemory.open(":memory:") as memory:
        for turn, following in pairwise([*turns_in_order(runs), None]):
            assert turn is not None
            if waves:
                waves.ask(memory, turn.time)
            name, is_read = turn.run.instance_id, read.get(turn.run.instance_id) is turn.run
            if is_read and (name in tuned) != options.held:
                replays.add(memory, turn)
            if turn.end is None or following is None or following.run is not turn.run:
                receipt = memory.learn(turn.over)
                if is_read and waves:
                    waves.keep(memory, turn.over)
                elif is_read and with_readers:
                    kept |= keep_read(memory, turn.over, receipt.trajectory_id, answers[name])
    if waves:
        print(waves.report())
    elif with_readers:
        print(f"{len(kept)} lessons of readers to the requests {digest_of(options.read)}")


def _waves(
    folder: Path, read: Sequence[RawTrajectory], tuned: Collection[str], is_held: bool
) -> Waves:
    """Return the waves of what was *read*; of the *tuned* part alone unless held."""
    order = sorted(read, key=lambda run: (run.started_at or 0, run.instance_id))
    parts = [[run for run in order if (run.instance_id in tuned) is one] for one in (True, False)]
    return Waves(folder, [*zip(parts, WAVES, strict=True)][: 1 + is_held])


def _print(counts: Counts, options: argparse.Namespace) -> None:
    """Print and write what was asked for beside the figures."""
    if options.sheet:
        options.sheet.write_text("\n".join(counts.sheet), "utf-8")
    if options.starts:
        options.starts.write_text("\n".join(counts.starts), "utf-8")
    if options.missed:
        for moment, is_right, is_known in counts.right:
            if not is_right:
                print(moment.session[:8], moment.turn, "known" if is_known else "not known")


if __name__ == "__main__":
    main()
