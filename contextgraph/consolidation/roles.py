"""What the names in an error message are: the placeholders that stand for them in advice."""

import re
from dataclasses import dataclass

from contextgraph.model import ErrorPattern
from contextgraph.text import quoted_names

_ROLES = {
    "F821": ("<the undefined name>",),
    "F822": ("<the undefined name>",),
    "NameError": ("<the undefined name>",),
    "UnboundLocalError": ("<the variable>",),
    "ModuleNotFoundError": ("<the missing module>",),
    "ImportError": ("<the name>", "<the package>"),
    "AttributeError": ("<the class>", "<the attribute>"),
    "KeyError": ("<the key>",),
    "TypeError": ("<the argument>",),
    "FileNotFoundError": ("<the path>",),
}
_PATHS = re.compile(r"not found$|No such file|can't open")
_OTHERS = ("<the name>", "<the other name>", "<the third name>")


@dataclass(frozen=True, slots=True)
class Names:
    """The names that a message quotes, and what each is."""

    names: tuple[str, ...]
    roles: tuple[str, ...]

    def mask(self, text: str) -> str:
        """*text* with the names replaced by what they are, longest names first."""
        pairs = sorted(zip(self.names, self.roles, strict=True), key=lambda pair: -len(pair[0]))
        for name, role in pairs:
            text = re.sub(rf"(?<![\w<]){re.escape(name)}(?![\w>])", role, text)
        return text


def names_of(error: ErrorPattern, message: str) -> Names:
    """The names in a *message* of *error*."""
    names = quoted_names(message)[: len(_OTHERS)]
    return Names(names, roles_of(error)[: len(names)])


def roles_of(error: ErrorPattern) -> tuple[str, ...]:
    """What the names in messages of *error* are, by their order."""
    kind = error.error_type.split()[0] if error.error_type else ""
    known = _ROLES.get(kind, ())
    if not known and _PATHS.search(error.error_type):
        known = ("<the path>",)
    return (*known, *_OTHERS[len(known) :])
