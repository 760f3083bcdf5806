"""The names that an error message is about."""

import re
from functools import lru_cache

_READ = 600
_NAME = re.compile(
    r"""['"`‘](?P<quoted>[A-Za-z_./~][\w./-]*)['"`’]
    |\bNo\ module\ named\ (?P<module>[\w.]+)
    |\b(?:Directory|File\ name|File)\ (?P<path>\S+)\ not\ found
    |\bcd:\ (?P<folder>\S+):\ No\ such""",
    re.VERBOSE,
)


def quoted_names(message: str) -> tuple[str, ...]:
    """The names and paths that *message* quotes, in order, each once."""
    found = (match[match.lastgroup or 0] for match in _NAME.finditer(message[:_READ]))
    return tuple(dict.fromkeys(found))


@lru_cache(8192)
def subject_of(message: str) -> str:
    """What *message* is about among others of its template: its names, empty where it has none."""
    return ", ".join(quoted_names(message)[:2])
