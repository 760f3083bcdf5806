"""What people and agents say: notes, pages and entities. See docs/notes.md."""

from contextgraph.knowledge.candidates import Candidates
from contextgraph.knowledge.entities import Entities, Entity, RelatedEntity
from contextgraph.knowledge.links import explain_note, name_notes
from contextgraph.knowledge.maintenance import MaintenancePolicy, maintain_notes
from contextgraph.knowledge.notes import RECALLED, Notes
from contextgraph.knowledge.pages import Page, PageFound, Pages
from contextgraph.knowledge.rendering import (
    render_notes,
    shareable,
    shareable_snapshot,
    without_secret,
)
from contextgraph.knowledge.statements import MAX_NOTE, NoteProperties

__all__ = [
    "MAX_NOTE",
    "RECALLED",
    "Candidates",
    "Entities",
    "Entity",
    "MaintenancePolicy",
    "NoteProperties",
    "Notes",
    "Page",
    "PageFound",
    "Pages",
    "RelatedEntity",
    "explain_note",
    "maintain_notes",
    "name_notes",
    "render_notes",
    "shareable",
    "shareable_snapshot",
    "without_secret",
]
