"""Lessons, notes, pages and entities. See docs/notes.md."""

from typing import TYPE_CHECKING

from contextgraph.system.names import attached

if TYPE_CHECKING:
    from contextgraph.knowledge.lessons import Lessons as Lessons, NewLesson as NewLesson
    from contextgraph.knowledge.notes import (
        NoteProperties as NoteProperties,
        Notes as Notes,
        maintain_notes as maintain_notes,
    )
    from contextgraph.knowledge.pages import (
        Entities as Entities,
        Entity as Entity,
        Page as Page,
        PageFound as PageFound,
        Pages as Pages,
    )
    from contextgraph.knowledge.recall import (
        explain_note as explain_note,
        name_notes as name_notes,
        render_notes as render_notes,
        shareable as shareable,
        shareable_snapshot as shareable_snapshot,
        without_secret as without_secret,
    )
    from contextgraph.model import MaintenancePolicy as MaintenancePolicy

# Resolved at first use: a query at an error needs lessons, and neither notes nor pages.
_HOMES = {
    "Entities": "contextgraph.knowledge.pages",
    "Entity": "contextgraph.knowledge.pages",
    "Lessons": "contextgraph.knowledge.lessons",
    "MaintenancePolicy": "contextgraph.model.note",
    "NewLesson": "contextgraph.knowledge.lessons",
    "NoteProperties": "contextgraph.knowledge.notes",
    "Notes": "contextgraph.knowledge.notes",
    "Page": "contextgraph.knowledge.pages",
    "PageFound": "contextgraph.knowledge.pages",
    "Pages": "contextgraph.knowledge.pages",
    "explain_note": "contextgraph.knowledge.recall",
    "maintain_notes": "contextgraph.knowledge.notes",
    "name_notes": "contextgraph.knowledge.recall",
    "render_notes": "contextgraph.knowledge.recall",
    "shareable": "contextgraph.knowledge.recall",
    "shareable_snapshot": "contextgraph.knowledge.recall",
    "without_secret": "contextgraph.knowledge.recall",
}

__all__ = sorted(_HOMES)  # noqa: PLE0605  (a list; the linter cannot see it)
if not TYPE_CHECKING:  # a checker would take any name
    __getattr__, __dir__ = attached(__name__, _HOMES)
