"""Regular expressions that are compiled at first use.

A process that answers one question uses a few of the hundreds of patterns that it imports, and
compiling all of them would take longer than its answer.
"""

import re
from typing import Any, AnyStr, cast

_METHODS = ("search", "match", "fullmatch", "split", "findall", "finditer", "sub", "subn")


class Regex:
    """A pattern; once it was used, its methods are those of the compiled one."""

    def __init__(self, pattern: Any, flags: int) -> None:
        self.pattern = pattern
        self.flags = flags

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):  # such as `__deepcopy__`
            raise AttributeError(name)
        compiled = re.compile(self.pattern, self.flags)
        self.__dict__.update({method: getattr(compiled, method) for method in _METHODS})
        return getattr(compiled, name)


def regex(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return `re.compile(pattern, flags)`, compiled at its first use."""
    return cast("re.Pattern[AnyStr]", Regex(pattern, flags))
