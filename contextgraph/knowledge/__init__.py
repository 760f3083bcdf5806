"""What people and agents say, remembered and recalled: see docs/notes.md."""

from contextgraph.knowledge.candidates import Candidates
from contextgraph.knowledge.notes import Notes, render_notes

__all__ = ["Candidates", "Notes", "render_notes"]
