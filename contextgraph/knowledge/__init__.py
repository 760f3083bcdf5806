"""What people and agents say, remembered and recalled: see docs/notes.md."""

from contextgraph.knowledge.notes import Notes, render_notes

__all__ = ["Notes", "render_notes"]
