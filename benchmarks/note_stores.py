"""``python -m benchmarks.note_stores [ADDRESS]``: recall among many notes, in each kind of store.

Fills a store of notes with generated ones, in repositories of 1,000, and measures how long a recall
takes, and of it the searches by words and by vectors: wall time, and CPU time of this process.
ADDRESS is that of an index in PostgreSQL or Qdrant, as in the setting `notes`, or of a Neo4j
server; without it, or beside an index, the store is an SQLite file.
"""

import argparse
import random
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np

from contextgraph import AgentMemory
from contextgraph.config import Settings, load_settings
from contextgraph.knowledge.recall import Question, recollections
from contextgraph.model import Note, NoteScope, Vector
from contextgraph.model.values import replace
from contextgraph.store.memory_store import NoteStore

SPACE = "made/up@384"
NOW = datetime(2026, 1, 1, tzinfo=UTC)
IN_REPOSITORY, QUESTIONS, PROPOSED, AT_ONCE = 1_000, 200, 200, 500


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.note_stores", description=__doc__)
    parser.add_argument("address", nargs="?", default="")
    parser.add_argument("--notes", type=int, default=100_000)
    options = parser.parse_args()
    with _opened(options.address) as store:
        draw = random.Random(17)
        began = time.perf_counter()
        _fill(store, options.notes, draw)
        print(f"{options.notes} notes stored and embedded in {time.perf_counter() - began:.0f} s")
        repositories = max(1, options.notes // IN_REPOSITORY)
        for name, repos, count in (("in a repository", repositories, QUESTIONS), ("in all", 0, 20)):
            questions = [_question(repos, draw) for _ in range(count)]
            _time(
                f"recall {name}",
                partial(_recall, store),
                [(question, question[2]) for question in questions],
            )
            _time(f"by words {name}", store.for_text, [(words, at) for words, _, at in questions])
            _time(
                f"by vectors {name}", store.nearest, [(vector, at) for _, vector, at in questions]
            )
        if options.address:
            store.delete([note.id for note in store.newest(NoteScope(), options.notes)])


@contextmanager
def _opened(address: str) -> Iterator[NoteStore]:
    with tempfile.TemporaryDirectory() as folder:
        is_store = address.startswith(("neo4j", "bolt"))
        settings = replace(
            load_settings() if is_store else Settings(),
            store=address if is_store else str(Path(folder) / "memory.db"),
            tenant=uuid4().hex,
            notes="" if is_store else address,
        )
        with AgentMemory.of_settings(settings) as memory:
            yield memory.store.notes


def _fill(store: NoteStore, count: int, draw: random.Random) -> None:
    for first in range(0, count, AT_ONCE):
        notes = [made_note(number, draw) for number in range(first, min(count, first + AT_ONCE))]
        store.change(new=notes)
        store.add(SPACE, {note.id: made_vector(draw) for note in notes})


def made_note(number: int, draw: random.Random) -> Note:
    content = " ".join(made_words(draw, 15))
    repo = f"repo/{number // IN_REPOSITORY}"
    return Note(f"note_{number}", content, repo, "user", NOW + timedelta(minutes=number))


def made_words(draw: random.Random, count: int) -> list[str]:
    """Words of a vocabulary of 20,000, some of them frequent, as in a language."""
    return [f"word{int(20_000 ** draw.random())}" for _ in range(count)]


def made_vector(draw: random.Random) -> Vector:
    return Vector.of(SPACE, np.random.default_rng(draw.getrandbits(32)).normal(size=384).tolist())


def _question(repos: int, draw: random.Random) -> tuple[list[str], Vector, NoteScope]:
    scope = NoteScope((f"repo/{draw.randrange(repos)}", "")) if repos else NoteScope()
    return made_words(draw, 6), made_vector(draw), scope


def _recall(
    store: NoteStore, question: tuple[list[str], Vector, NoteScope], scope: NoteScope, _limit: int
) -> None:
    words, vector, _ = question
    recollections(store, Question(tuple(words), vector, scope, NOW))


def _time(
    name: str,
    search: Callable[[Any, NoteScope, int], object],
    questions: Sequence[tuple[Any, NoteScope]],
) -> None:
    wall, cpu = [], []
    for question, scope in questions:
        began = time.perf_counter(), time.process_time()
        search(question, scope, PROPOSED)
        wall.append(1_000 * (time.perf_counter() - began[0]))
        cpu.append(1_000 * (time.process_time() - began[1]))
    p50, p95, cpu50, cpu95 = (*np.percentile(wall, [50, 95]), *np.percentile(cpu, [50, 95]))
    print(f"{name}: {p50:.1f} and {p95:.1f} ms (p50, p95); CPU {cpu50:.1f} and {cpu95:.1f} ms")


if __name__ == "__main__":
    main()
