"""Notes in answers, as far as every agent may see them."""

from collections.abc import Iterable
from datetime import datetime
from typing import Protocol

from contextgraph.advising.query import (
    Channel,
    Findings,
    Query,
)
from contextgraph.errors import ContextGraphError
from contextgraph.model import (
    LinkType,
    Note,
    Recollection,
)
from contextgraph.ports import Store
from contextgraph.text import gives_instructions

# How many are recalled; the gate and the length of the text limit how many are shown.
_RECALLED = 10


class Recall(Protocol):
    """Recalls the notes that answer a question best, as `contextgraph.knowledge.Notes.recall`."""

    def __call__(self, question: str, *, repo: str, limit: int) -> tuple[Recollection, ...]: ...


def by_notes(recall: Recall) -> Channel:
    """The channel of notes about the task; not used at errors, where no note was ever right."""

    def channel(query: Query, store: Store) -> Findings:
        # A note is as short as a title: more of the task is only more that it cannot answer.
        title = next(iter(query.state.task_description.strip().splitlines()), "")
        if query.is_at_error or not title:
            return Findings()
        try:
            recollections = recall(title, repo=query.state.repo, limit=_RECALLED)
            notes = (recollection.note for recollection in recollections)
            seen = readable(notes, store, query.scope.exclude_instances, query.scope.as_of)
        except ContextGraphError as error:  # notes may be in a database of their own
            return Findings(degraded=str(error))
        ids = {note.id for note in seen}
        return Findings(
            notes=tuple(
                recollection for recollection in recollections if recollection.note.id in ids
            )
        )

    return channel


def readable(
    notes: Iterable[Note],
    store: Store,
    exclude_instances: frozenset[str],
    as_of: datetime | None,
) -> list[Note]:
    """Those of *notes* that every agent may see, and that were there at the time *as_of*.

    Not what is confidential, looks like instructions, or was said in a run of *exclude_instances*.
    """
    shown = [
        note
        for note in notes
        if not (note.security.is_secret or gives_instructions(note.content))
        and (as_of is None or (note.created_at <= as_of and note.is_valid(as_of)))
    ]
    said_in = [run for note in shown for run in note.targets(LinkType.SAID_IN)]
    runs = store.runs.trajectories(said_in if exclude_instances else ()).values()
    hidden = {run.id for run in runs if run.instance_id in exclude_instances}
    return [note for note in shown if hidden.isdisjoint(note.targets(LinkType.SAID_IN))]
