"""``python -m benchmarks.note_stores [ADDRESS]``: recall among many notes, in each kind of store.

Fills a store of notes with generated ones, in repositories of 1,000, and measures how long the
search by words and by vectors takes. ADDRESS is that of PostgreSQL or Qdrant, as in the setting
`notes`; without it, the store is an SQLite file.
"""

import argparse
import random
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np

from contextgraph import AgentMemory
from contextgraph.config import Settings
from contextgraph.model import Note, NoteScope
from contextgraph.ports import NoteStore
from contextgraph.vectors import Vector

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
        for name, repos in (("in a repository", repositories), ("in all", 0)):
            questions = [_question(repos, draw) for _ in range(QUESTIONS)]
            _time(f"by words {name}", store.for_text, [(words, at) for words, _, at in questions])
            _time(f"by vectors {name}", store.nearest, [(one, at) for _, one, at in questions])
        store.delete([note.id for note in store.newest(NoteScope(), options.notes)])


@contextmanager
def _opened(address: str) -> Iterator[NoteStore]:
    with tempfile.TemporaryDirectory() as folder:
        settings = replace(
            Settings(), store=str(Path(folder) / "memory.db"), tenant=uuid4().hex, notes=address
        )
        with AgentMemory.of_settings(settings) as memory:
            yield memory.store.notes


def _fill(store: NoteStore, count: int, draw: random.Random) -> None:
    for first in range(0, count, AT_ONCE):
        notes = [_note(number, draw) for number in range(first, min(count, first + AT_ONCE))]
        store.put(notes)
        store.add(SPACE, {note.id: _vector(draw) for note in notes})


def _note(number: int, draw: random.Random) -> Note:
    content = " ".join(_words(draw, 15))
    repo = f"repo/{number // IN_REPOSITORY}"
    return Note(f"note_{number}", content, repo, "user", NOW + timedelta(minutes=number))


def _words(draw: random.Random, count: int) -> list[str]:
    """Words of a vocabulary of 20,000, some of them frequent, as in a language."""
    return [f"word{int(20_000 ** draw.random())}" for _ in range(count)]


def _vector(draw: random.Random) -> Vector:
    return Vector.of(SPACE, np.random.default_rng(draw.getrandbits(32)).normal(size=384).tolist())


def _question(repos: int, draw: random.Random) -> tuple[list[str], Vector, NoteScope]:
    scope = NoteScope((f"repo/{draw.randrange(repos)}", "")) if repos else NoteScope()
    return _words(draw, 6), _vector(draw), scope


def _time(
    name: str,
    search: Callable[[Any, NoteScope, int], object],
    questions: Sequence[tuple[Any, NoteScope]],
) -> None:
    seconds = []
    for asked, scope in questions:
        began = time.perf_counter()
        search(asked, scope, PROPOSED)
        seconds.append(1_000 * (time.perf_counter() - began))
    p50, p95 = np.percentile(seconds, [50, 95])
    print(f"{name}: {p50:.1f} ms (p50), {p95:.1f} ms (p95)")


if __name__ == "__main__":
    main()
