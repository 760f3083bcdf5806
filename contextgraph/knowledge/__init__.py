"""What people and agents say, remembered and recalled: see docs/notes.md."""

from contextgraph.knowledge.candidates import Candidates
from contextgraph.knowledge.notes import NoteProperties, Notes, render_notes
from contextgraph.knowledge.upkeep import MaintenancePolicy, maintain_notes

__all__ = [
    "Candidates",
    "MaintenancePolicy",
    "NoteProperties",
    "Notes",
    "maintain_notes",
    "render_notes",
]
