"""Notes, pages and entities: statements of people and agents. See docs/notes.md."""

from contextgraph.knowledge.notes import (
    MaintenancePolicy as MaintenancePolicy,
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
from contextgraph.knowledge.statements import Statement as Statement, Statements as Statements
