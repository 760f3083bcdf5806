"""What was changed in code so that a command ran."""

import re
from collections.abc import Iterator

from contextgraph.consolidation.move import Move
from contextgraph.consolidation.roles import Names
from contextgraph.consolidation.sentences import codes_in

_CHANGED = re.compile(r"changed (?P<old>.+?) to (?P<new>`.+) in (?P<file>\S+)")
_ADDED = re.compile(r"added (?P<new>`.+) in (?P<file>\S+)")
_FROM = re.compile(r"from ([\w.]+) import (.+)")
_COMMON = re.compile(r"if __name__|return\b|print\(|#|\"\"\"|else|try|import (?:os|sys)$")
_WORDS = 2


def of_code(clause: str, names: Names) -> Iterator[Move]:
    """What a clause about changed code comes to."""
    if match := _CHANGED.fullmatch(clause):
        old, new = codes_in(match["old"]), codes_in(match["new"])
        yield from _imports(old, new, names)
        if old and new:
            was, now = old[0].strip(), new[0].strip()
            yield Move(f"change `{was}` to `{now}`", 0)
            yield Move(f"change `{names.mask(was)}` to `{names.mask(now)}`", 1)
    elif match := _ADDED.fullmatch(clause):
        for line in filter(_says_something, map(str.strip, codes_in(match["new"])[:2])):
            yield Move(f"add `{line}`", 0)
            yield Move(f"add `{names.mask(line)}`", 1)


def _says_something(line: str) -> bool:
    """False for lines that many programs have, such as `else:`."""
    return len(re.findall(r"\w{3,}", line)) >= _WORDS and not _COMMON.match(line)


def _imports(old: list[str], new: list[str], names: Names) -> Iterator[Move]:
    """Where a name was imported from instead."""
    if not names.names:
        return
    wanted = names.names[0]
    for line in new:
        match = _FROM.fullmatch(line.strip())
        if match is None:
            continue
        imported = re.findall(r"\w+", match[2])
        if wanted in imported:
            yield Move(f"import it from where it is defined: `from {match[1]} import {wanted}`", 0)
            yield Move(f"`from {match[1]} import {names.roles[0]}`", 1)
            yield from _relation(old, match[1], wanted)
        elif wanted in _module_of(old, imported):
            yield Move(f"`{wanted}` is `{match[1]}`: `from {match[1]} import {match[2]}`", 0)
            yield from _module_relation(wanted, match[1])


def _module_of(old: list[str], imported: list[str]) -> set[str]:
    """The modules from which *old* lines import one of *imported*."""
    found = (_FROM.fullmatch(line.strip()) for line in old)
    return {m[1] for m in found if m and set(re.findall(r"\w+", m[2])) & set(imported)}


def _relation(old: list[str], module: str, wanted: str) -> Iterator[Move]:
    for line in old:
        match = _FROM.fullmatch(line.strip())
        if match and wanted in re.findall(r"\w+", match[2]) and match[1] != module:
            yield from _module_relation(match[1], module, named=True)


def _module_relation(was: str, now: str, named: bool = False) -> Iterator[Move]:
    what = "<the name>" if named else "what you need"
    package = "<the package>" if named else "<the missing module>"
    if now.startswith(f"{was}."):
        yield Move(
            f"import {what} from the module of {package} that defines it "
            f'(`from {package}.<its module> import …`; `grep -rn "{what}"` finds it)',
            1,
        )
    elif was.startswith(f"{now}."):
        yield Move(
            f"import {what} from the package above {package} (`from <the package above> import …`)",
            1,
        )
    elif was.rpartition(".")[2] == now.rpartition(".")[2]:
        yield Move(f"the module lies in another package: `from <package>.{package} import …`", 1)
