"""Renders notes for agents, and for callers other than the owner."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from contextgraph.model import (
    Note,
    Recollection,
    Snapshot,
)
from contextgraph.text import (
    count_tokens,
    fence,
    gives_instructions,
)

RENDER_TOKENS = 400


def render_notes(recollections: Sequence[Recollection], max_tokens: int = RENDER_TOKENS) -> str:
    """The prompt text of *recollections*, fenced as data, within *max_tokens*; empty for none."""
    return snapshot_of([recollection.note for recollection in recollections], max_tokens).text


def snapshot_of(notes: Iterable[Note], max_tokens: int) -> Snapshot:
    """The first of *notes* that fit into *max_tokens*, each whole, and their prompt text."""
    shown: list[Note] = []
    lines: list[str] = []
    for note in notes:
        if gives_instructions(note.content):
            continue
        line = _line(note)
        if count_tokens(fence("\n".join((*lines, line)), "notes")) > max_tokens:
            break
        lines.append(line)
        shown.append(note)
    return Snapshot(tuple(shown), fence("\n".join(lines), "notes") if lines else "")


def without_secret(note: Note) -> Note:
    """*note* as others than the owner of the memory see it: a confidential text is left out."""
    return replace(note, content=f"[{note.security.upper()}]") if note.security.is_secret else note


def shareable(recollection: Recollection) -> Recollection:
    """*recollection* with its note as `without_secret` leaves it."""
    return replace(recollection, note=without_secret(recollection.note))


def shareable_snapshot(snapshot: Snapshot, max_tokens: int) -> Snapshot:
    """*snapshot* with its notes, and their text, as `without_secret` leaves them."""
    return snapshot_of(map(without_secret, snapshot.notes), max_tokens)


def _line(note: Note) -> str:
    mark = "; another note says otherwise" if note.contradicts else ""
    origin = f"{note.source}, {note.created_at:%Y-%m-%d}{mark}"
    return f"- {' '.join(note.content.split())} ({origin})"
