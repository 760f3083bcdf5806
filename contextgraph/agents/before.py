"""Questions before a call of an agent, and whether the memory has an entry for it."""

import os
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Self

from msgspec import Struct

from contextgraph.advising.freshness import notes_naming
from contextgraph.model import Action, CommandUse, NoteKind, NoteScope, Scope
from contextgraph.text import regex
from contextgraph.trace.actions import command_use, is_prose, new_text, read_action, shell_text

if TYPE_CHECKING:
    from contextgraph.knowledge.lessons import Lessons
    from contextgraph.store.memory_store import Store
    from contextgraph.system.working_tree import WorkingTree

# Names that say what they mean: a word alone may be about anything.
_SYMBOL = regex(r"\b(?:[A-Za-z]\w*_\w+|[a-z]+[A-Z]\w+|[A-Z][a-z0-9]+[A-Z]\w+)\b")
_IMPORTED = regex(
    r"^[ \t]*(?:import|from|use|using|extern[ \t]+crate)[ \t]+(?P<module>[A-Za-z_][\w-]*)"
    r"|(?:\b(?:from|import|require)|#[ \t]*include)\s*(?:\(\s*)?[\"'<](?P<quoted>[\w@-]+)",
    re.MULTILINE,
)
_MOST_SYMBOLS = 60


class NextCall(Struct, frozen=True):
    """A call that an agent is about to make.

    *names* are the files that it changes, relative to the working tree, and symbols and modules in
    what is *written* into them. Prose, such as a plan, only mentions symbols: it is a *request*.
    Of any other call *command* is its line where it is one for a shell, and *use* what it runs.
    """

    names: tuple[str, ...] = ()
    written: str = ""
    request: str = ""
    command: str = ""
    use: CommandUse | None = None

    @classmethod
    def of(cls, action: Action, tree: "WorkingTree | None") -> Self:
        """Return the call of *action* in the working *tree*."""
        reading = read_action(action, None, None)
        if reading.changed:
            written = "\n".join(new_text(action, reading))
            files = tuple(_in_tree(path, tree) for path in reading.changed)
            if all(map(is_prose, files)):
                return cls(files, written, request=written.strip())
            modules = [one["module"] or one["quoted"] for one in _IMPORTED.finditer(written)]
            named = [*dict.fromkeys((*modules, *_SYMBOL.findall(written)))][:_MOST_SYMBOLS]
            return cls((*files, *named), written)
        return cls(command=shell_text(action), use=command_use(action.text))

    def has_entry(self, repo: str, store: "Store", lessons: "Callable[[], Lessons]") -> bool:
        """Return False where the memory has nothing to say before this call in *repo*.

        That is: no lesson or note about its files or its command, nor a run of the repository
        that shows how a program went. Asks less than `LiveRun.before`, and loads no advice;
        *lessons*, which take a twelfth of a hook to load, only where the memory has some.
        """
        scope = NoteScope((repo.casefold(),) if repo else None, (NoteKind.LESSON,))
        known = lessons() if store.notes.newest(scope, 1) else None
        if self.names:
            about = known and known.naming(self.names, repo=repo or None, written=self.written)
            is_asked = known and self.request
            return bool(about or is_asked or notes_naming(self.names, repo, store.notes))
        if known and self.command and known.for_command(self.command, repo=repo or None):
            return True
        return bool(repo and self.use and store.runs.for_task(None, Scope(repo), 1))


def _in_tree(path: str, tree: "WorkingTree | None") -> str:
    """Return *path* relative to the root of *tree*, where it is in it."""
    if tree is None or not os.path.isabs(path):
        return path
    relative = os.path.relpath(path, tree.root).replace(os.sep, "/")
    return path if relative.startswith("../") else relative
