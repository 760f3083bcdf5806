"""Notes, pages and entities: statements of people and agents. See docs/notes.md."""

from contextgraph.knowledge.candidates import Candidates as Candidates
from contextgraph.knowledge.entities import Entities as Entities, Entity as Entity
from contextgraph.knowledge.links import explain_note as explain_note, name_notes as name_notes
from contextgraph.knowledge.maintenance import (
    MaintenancePolicy as MaintenancePolicy,
    maintain_notes as maintain_notes,
)
from contextgraph.knowledge.notes import Notes as Notes
from contextgraph.knowledge.pages import (
    Page as Page,
    PageFound as PageFound,
    Pages as Pages,
)
from contextgraph.knowledge.rendering import (
    render_notes as render_notes,
    shareable as shareable,
    shareable_snapshot as shareable_snapshot,
    without_secret as without_secret,
)
from contextgraph.knowledge.statements import NoteProperties as NoteProperties
