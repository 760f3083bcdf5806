"""``python -m benchmarks.notes LOCOMO.json``: recall of notes, eviction, and false conflicts.

Reads conversations as snap-research/LoCoMo has them (CC BY-NC 4.0; not part of this package). Each
message is a note of its conversation; a question has the messages that answer it as evidence.
"""

import argparse
import json
import random
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from contextgraph import AgentMemory
from contextgraph.knowledge.forgetting import Capacity, Evictable, RecallStats, RecallValue, rarity
from contextgraph.model import Link, LinkType, Note, NoteStatus
from contextgraph.model.values import replace
from contextgraph.text import stems

START = datetime(2026, 1, 1, tzinfo=UTC)
WEEK = timedelta(days=7)


_KINDS = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop"}
_UNANSWERABLE = 5
_ABOUT_TIME = frozenset("when recent recently before last ago".split())


@dataclass(frozen=True, slots=True)
class Question:
    """A question, its category, and the ids of the notes that answer it."""

    text: str
    category: int
    evidence: frozenset[str]


@dataclass(frozen=True, slots=True)
class Conversation:
    """Its notes, its questions, those that it does not answer, and what was observed in it."""

    notes: tuple[Note, ...]
    questions: tuple[Question, ...]
    unanswerable: tuple[Question, ...]
    observations: tuple[str, ...]

    @property
    def repo(self) -> str:
        """The name under which its notes are kept."""
        return self.notes[0].repo


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.notes", description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--skip", type=int, default=0, help="conversations used for tuning")
    parser.add_argument("--embedder", default="local", help="as of the setting")
    options = parser.parse_args()
    conversations = conversations_in(options.data)
    with AgentMemory.open(":memory:", embedder=options.embedder) as memory:
        for conversation in conversations:
            memory.store.notes.change(new=conversation.notes)
        embedded = memory.reembed()
        print(f"{embedded.space.name}: {embedded.runs} notes embedded")
        conversations = conversations[options.skip :]
        recall(memory, conversations)
        intents(memory, conversations)
        abstention(memory, conversations)
        eviction(memory, conversations)
    conflicts(conversations)


def conversations_in(file: Path) -> list[Conversation]:
    """Read the conversations of a *file* of LoCoMo."""
    return [*map(_conversation, json.loads(file.read_text()))]


def recall(memory: AgentMemory, conversations: Sequence[Conversation]) -> None:
    """How much of the evidence is among the first ten, by kind of question, and how fast."""
    values_by_kind: dict[str, list[tuple[float, bool]]] = {}
    seconds = []
    for conversation in conversations:
        for question in conversation.questions:
            memory.notes.recall(question.text, repo=conversation.repo)  # its vector is cached now
            began = time.process_time()
            ids = [
                item.note.id
                for item in memory.notes.recall(question.text, repo=conversation.repo, limit=10)
            ]
            seconds.append(time.process_time() - began)
            share = len(question.evidence & {*ids}) / len(question.evidence)
            sessions = {id_.partition(":")[0] for id_ in question.evidence}
            is_hit = bool(ids) and ids[0].partition(":")[0] in sessions
            for kind in ("all", _KINDS[question.category]):
                values_by_kind.setdefault(kind, []).append((share, is_hit))
    for kind, values in values_by_kind.items():
        shares, hits = zip(*values, strict=True)
        low, high = _interval(shares)
        print(
            f"{kind}: recall@10 {_mean(shares):.3f} ({low:.3f} to {high:.3f}), "
            f"session hit@1 {_mean(hits):.3f}, {len(shares)} questions"
        )
    cuts = statistics.quantiles(seconds, n=20)
    print(f"recall: {1000 * cuts[9]:.1f} and {1000 * cuts[18]:.1f} ms of CPU (p50, p95)")


def intents(memory: AgentMemory, conversations: Sequence[Conversation]) -> None:
    """Whether questions about time gain by a plan of their own: recent notes first, or more."""
    shares_by_plan: dict[str, list[float]] = {}
    for conversation in conversations:
        for question in conversation.questions:
            if not _ABOUT_TIME & {*question.text.lower().split()}:
                continue
            recalled = memory.notes.recall(question.text, repo=conversation.repo, limit=50)
            plans = {
                "as all questions": recalled,
                "recency counts .1 more": sorted(
                    recalled, key=lambda item: -item.score - 0.1 * item.why["recency"]
                ),
                "the newest first": sorted(recalled, key=lambda item: -item.why["recency"]),
            }
            for name, items in plans.items():
                ids = {item.note.id for item in items[:10]}
                shares_by_plan.setdefault(name, []).append(
                    len(question.evidence & ids) / len(question.evidence)
                )
    for name, shares in shares_by_plan.items():
        print(f"{len(shares)} questions about time, {name}: recall@10 {_mean(shares):.3f}")


def abstention(memory: AgentMemory, conversations: Sequence[Conversation]) -> None:
    """Measure how well probability separates questions with an answer from those without one.

    Without one are those about the wrong person, and every third of another conversation.
    """
    best: dict[str, list[tuple[float, bool]]] = {}
    for number, conversation in enumerate(conversations):
        foreign = [
            replace(question, evidence=frozenset())
            for other in (*conversations[:number], *conversations[number + 1 :])
            for question in other.questions[::3]
        ]
        asked = {
            "answerable": conversation.questions,
            "unanswerable": conversation.unanswerable,
            "of another conversation": foreign,
        }
        for kind, questions in asked.items():
            for question in questions:
                found = memory.notes.recall(question.text, repo=conversation.repo)
                first = found[0].note.id in question.evidence if found else False
                most = max((one.probability for one in found), default=0.0)
                best.setdefault(kind, []).append((most, first))
    answerable = [most for most, _ in best["answerable"]]
    for kind, of_kind in best.items():
        if kind != "answerable":
            pairs = [(high > low) + (high == low) / 2 for high in answerable for low, _ in of_kind]
            print(f"answerable against {kind}: AUC {_mean(pairs):.3f}, {len(of_kind)} questions")
    for threshold in (0.05, 0.1, 0.2, 0.3, 0.4, 0.5):
        shares = ", ".join(
            f"{_mean([most >= threshold for most, _ in of_kind]):.2f} {kind}"
            for kind, of_kind in best.items()
        )
        right = _mean([first for most, first in best["answerable"] if most >= threshold])
        print(f"probability >= {threshold}: answered {shares}; {right:.2f} of answers right")


def eviction(memory: AgentMemory, conversations: Sequence[Conversation]) -> None:
    """How much evidence of half of the questions is kept when the others were past recalls."""
    found_again_by: dict[str, list[bool]] = {}
    for conversation in conversations:
        questions = [*conversation.questions]
        random.Random(0).shuffle(questions)
        now = conversation.notes[-1].created_at + WEEK
        stats = {note.id: RecallStats() for note in conversation.notes}
        for question in questions[::2]:
            recalled = memory.notes.recall(question.text, repo=conversation.repo, limit=10)
            for item in recalled:
                before = stats[item.note.id]
                total = before.total_score + item.score / recalled[0].score
                stats[item.note.id] = RecallStats(before.count + 1, total, now)
        weights = rarity({note.id: {*stems(note.content)} for note in conversation.notes})
        items = [
            Evictable(note.id, note.created_at, weights[note.id], stats[note.id])
            for note in conversation.notes
        ]
        half = len(items) // 2
        for name, policy in (
            ("newest", Capacity(half)),
            ("recalls alone", RecallValue(half)),
            ("recalls and words", RecallValue(half, information=2.0)),
        ):
            gone = {*policy.chosen(items, now)}
            wanted = [id_ not in gone for question in questions[1::2] for id_ in question.evidence]
            found_again_by.setdefault(name, []).extend(wanted)
    for name, found_again in found_again_by.items():
        print(f"half evicted by {name}: {_mean(found_again):.3f} of the evidence kept")


def conflicts(conversations: Sequence[Conversation]) -> None:
    """How many observations, which are all true, are taken for conflicts."""
    statuses: list[NoteStatus] = []
    with AgentMemory.open(":memory:") as memory:
        for number, conversation in enumerate(conversations):
            receipts = (
                memory.notes.remember(text, repo=f"conversation {number}")
                for text in conversation.observations
            )
            statuses.extend(receipt.status for receipt in receipts)
    wrong = {NoteStatus.SUPERSEDES, NoteStatus.CONTRADICTS}
    flagged = sum(status in wrong for status in statuses)
    print(f"{len(statuses)} observations, {flagged} taken for conflicts")


def _conversation(record: dict[str, Any]) -> Conversation:
    name, turns = record["sample_id"], record["conversation"]
    notes = tuple(_notes(name, turns))
    known = {note.id for note in notes}
    questions = [
        Question(entry["question"], entry["category"], evidence)
        for entry in record["qa"]
        if (evidence := frozenset(f"{name}/{id_}" for id_ in entry["evidence"]) & known)
        or entry["category"] == _UNANSWERABLE
    ]
    observed = (texts for session in record["observation"].values() for texts in session.values())
    return Conversation(
        notes,
        tuple(question for question in questions if question.category != _UNANSWERABLE),
        tuple(
            replace(question, evidence=frozenset())
            for question in questions
            if question.category == _UNANSWERABLE
        ),
        tuple(text for texts in observed for text, _ in texts),
    )


def _notes(name: str, turns: dict[str, Any]) -> Iterator[Note]:
    """Each message a note, as if all were remembered one after the other."""
    sessions = [session for session in turns.values() if isinstance(session, list)]
    before: tuple[Link, ...] = ()
    for number, session in enumerate(sessions):
        for minute, turn in enumerate(session):
            id_, text = f"{name}/{turn['dia_id']}", f"{turn['speaker']}: {turn['text']}"
            at = START + number * WEEK + timedelta(minutes=minute)
            yield Note(id_, text, name, "user", at, links=before)
            before = (Link(LinkType.FOLLOWS, id_),)


def _interval(values: Sequence[float]) -> tuple[float, float]:
    """The 95 % bootstrap interval of the mean."""
    draw = random.Random(0)
    means = sorted(_mean(draw.choices(values, k=len(values))) for _ in range(1_000))
    return means[25], means[974]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / max(1, len(values))


if __name__ == "__main__":
    main()
