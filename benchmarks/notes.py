"""``python -m benchmarks.notes LOCOMO.json``: recall of notes, eviction, and false conflicts.

Reads conversations as snap-research/LoCoMo has them (CC BY-NC 4.0; not part of this package). Each
message is a note of its conversation; a question has the messages that answer it as evidence.
"""

import argparse
import json
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from contextgraph import AgentMemory
from contextgraph.governance import Capacity, Evictable, RecallStats, RecallValue
from contextgraph.model import Note, NoteStatus
from contextgraph.text import words

START = datetime(2026, 1, 1, tzinfo=UTC)
WEEK = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class Conversation:
    """Its notes, its questions with the ids of their evidence, and what was observed in it."""

    notes: tuple[Note, ...]
    questions: tuple[tuple[str, frozenset[str]], ...]
    observations: tuple[str, ...]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.notes", description=__doc__)
    parser.add_argument("data", type=Path)
    options = parser.parse_args()
    conversations = [*map(_conversation, json.loads(options.data.read_text()))]
    with AgentMemory.open(":memory:") as memory:
        for one in conversations:
            memory.store.notes.put(one.notes)
        recall(memory, conversations)
        eviction(memory, conversations)
    conflicts(conversations)


def recall(memory: AgentMemory, conversations: Sequence[Conversation]) -> None:
    """How much of the evidence is among the first ten, and at which rank the first of it is."""
    shares, ranks, seconds = [], [], []
    for one in conversations:
        for question, evidence in one.questions:
            began = time.perf_counter()
            found = memory.notes.recall(question, repo=one.notes[0].repo, limit=10)
            seconds.append(time.perf_counter() - began)
            ids = [item.note.id for item in found]
            shares.append(len(evidence & {*ids}) / len(evidence))
            ranks.append(next((1 / n for n, id_ in enumerate(ids, 1) if id_ in evidence), 0.0))
    print(f"recall@10 {_mean(shares):.3f}, MRR {_mean(ranks):.3f}, {len(shares)} questions")
    print(f"recall: median {1000 * sorted(seconds)[len(seconds) // 2]:.1f} ms")


def eviction(memory: AgentMemory, conversations: Sequence[Conversation]) -> None:
    """How much evidence of half of the questions is kept when the others were past recalls."""
    kept: dict[str, list[bool]] = {}
    for one in conversations:
        questions = [*one.questions]
        random.Random(0).shuffle(questions)
        now = one.notes[-1].created_at + WEEK
        stats = {note.id: RecallStats() for note in one.notes}
        for question, _ in questions[::2]:
            found = memory.notes.recall(question, repo=one.notes[0].repo, limit=10)
            for item in found:
                before = stats[item.note.id]
                total = before.total_score + item.score / found[0].score
                stats[item.note.id] = RecallStats(before.count + 1, total, now)
        items = [
            Evictable(note.id, note.created_at, len({*words(note.content)}), stats[note.id])
            for note in one.notes
        ]
        half = len(items) // 2
        for name, policy in (
            ("newest", Capacity(half)),
            ("recalls alone", RecallValue(half, information=0.0)),
            ("recalls and words", RecallValue(half)),
        ):
            gone = {*policy.chosen(items, now)}
            wanted = [id_ not in gone for _, ids in questions[1::2] for id_ in ids]
            kept.setdefault(name, []).extend(wanted)
    for name, found_again in kept.items():
        print(f"half evicted by {name}: {_mean(found_again):.2f} of the evidence kept")


def conflicts(conversations: Sequence[Conversation]) -> None:
    """How many observations, which are all true, are taken for conflicts."""
    statuses: list[NoteStatus] = []
    with AgentMemory.open(":memory:") as memory:
        for number, one in enumerate(conversations):
            receipts = (
                memory.notes.remember(text, repo=f"conversation {number}")
                for text in one.observations
            )
            statuses.extend(receipt.status for receipt in receipts)
    wrong = {NoteStatus.SUPERSEDES, NoteStatus.CONTRADICTS}
    flagged = sum(status in wrong for status in statuses)
    print(f"{len(statuses)} observations, {flagged} taken for conflicts")


def _conversation(record: dict[str, Any]) -> Conversation:
    name, turns = record["sample_id"], record["conversation"]
    notes = tuple(_notes(name, turns))
    known = {note.id for note in notes}
    questions = []
    for question in record["qa"]:
        evidence = known & {f"{name}/{id_}" for id_ in question["evidence"]}
        if evidence and question["category"] != 5:  # 5: there is no answer
            questions.append((question["question"], frozenset(evidence)))
    observed = (one for session in record["observation"].values() for one in session.values())
    return Conversation(notes, tuple(questions), tuple(text for one in observed for text, _ in one))


def _notes(name: str, turns: dict[str, Any]) -> Iterator[Note]:
    sessions = [one for one in turns.values() if isinstance(one, list)]
    for number, session in enumerate(sessions):
        for turn in session:
            text = f"{turn['speaker']}: {turn['text']}"
            yield Note(f"{name}/{turn['dia_id']}", text, name, "user", START + number * WEEK)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / max(1, len(values))


if __name__ == "__main__":
    main()
