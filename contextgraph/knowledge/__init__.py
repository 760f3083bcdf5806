"""Lessons, notes, pages and entities. See docs/notes.md."""

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from contextgraph.knowledge.lessons import Lessons as Lessons, NewLesson as NewLesson
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

# Resolved at first use: a query at an error needs lessons, and neither notes nor pages.
_MODULES = {
    "Entities": "pages",
    "Entity": "pages",
    "Lessons": "lessons",
    "MaintenancePolicy": "notes",
    "NewLesson": "lessons",
    "NoteProperties": "notes",
    "Notes": "notes",
    "Page": "pages",
    "PageFound": "pages",
    "Pages": "pages",
    "explain_note": "recall",
    "maintain_notes": "notes",
    "name_notes": "recall",
    "render_notes": "recall",
    "shareable": "recall",
    "shareable_snapshot": "recall",
    "without_secret": "recall",
}

__all__ = sorted(_MODULES)  # noqa: PLE0605  (a list; the linter cannot see it)


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module 'contextgraph.knowledge' has no attribute {name!r}")
    module = f"contextgraph.knowledge.{_MODULES[name]}"
    __import__(module)
    return getattr(sys.modules[module], name)


def __dir__() -> list[str]:
    return __all__
