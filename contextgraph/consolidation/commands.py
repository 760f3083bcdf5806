"""What was typed otherwise in a command that had failed."""

import re
from collections.abc import Iterator, Sequence

from contextgraph.consolidation.move import Move
from contextgraph.consolidation.roles import Names

_USED = re.compile(
    r"(?:ran|used) `(?P<new>[^`]+)` instead of `(?P<old>[^`]+)`"
    r"(?: \(found with `(?P<found>[^`]+)`\))?"
)
_FIRST = re.compile(r"ran `(?P<deed>[^`]+)`(?: first)?")
_OPENED = re.compile(r"opened (?P<file>\S+) first, then used `(?P<command>[^`]+)`")
_TOKEN = re.compile(r"\"[^\"]*\"|'[^']*'|\S+")
_PATH = re.compile(r"~?/?[\w.@+-]+(?:/[\w.@+-]*)*")
_SHAPE_CHARS = 60
_PLACES = frozenset({"/", ".", "..", "~"})
_LOOKING_UP = frozenset({"find_file", "find", "ls", "search_dir", "grep", "tree"})
_AGAIN = frozenset({"ran the same command again", "sent the same edit again and it was accepted"})


def of_command(clause: str, names: Names, repo_name: str) -> Iterator[Move]:
    """What a clause about a command comes to."""
    if match := _USED.fullmatch(clause):
        yield from _replaced(match["old"], match["new"], match["found"] or "", repo_name)
    elif match := _OPENED.fullmatch(clause):
        verb = match["command"].split()[0]
        yield Move(f"open the file you mean first: `{verb}` goes by the file that is open", 1)
    elif match := _FIRST.fullmatch(clause):
        yield from _deed(match["deed"], names)


def once_more(clause: str) -> Iterator[Move]:
    """Where the very same thing was done again."""
    if clause in _AGAIN or clause.startswith("repeated "):
        yield Move("do the same once more: it passed the next time", 1)


def _deed(deed: str, names: Names) -> Iterator[Move]:
    """A command that changed what later ones met."""
    if deed.endswith("…"):
        return
    said = _spelt(deed, names)
    yield Move(f"run `{deed}` first", 0)
    if said != deed:
        yield Move(f"run `{said}` first", 1)


def _spelt(deed: str, names: Names) -> str:
    """*deed* with names replaced, also where a package is spelt with other letters."""
    said = names.mask(deed)
    for name, role in zip(names.names, names.roles, strict=False):
        for other in (name.replace("_", "-"), name.lower(), name.split(".")[0]):
            said = re.sub(rf"(?<![\w<./-]){re.escape(other)}(?![\w>/-])", role, said)
    return said


def _replaced(old: str, new: str, found: str, repo_name: str) -> Iterator[Move]:
    if new.endswith("…") or old.endswith("…"):
        return
    before, after = _TOKEN.findall(old), _TOKEN.findall(new)
    if not before or not after:
        return
    yield Move(f"use `{new}` instead of `{old}`", 0)
    came = [token for token in after if token not in before]
    went = [token for token in before if token not in after]
    looked = f", found with `{_masked_lookup(found)}`" if found else ""
    if before[0] == after[0]:
        yield from _same_verb(before[0], came, went, looked, repo_name)
    elif re.sub(r"\W", "", before[0]) != re.sub(r"\W", "", after[0]):
        shown, asked = _shape(after), _shape(before)
        if shown != asked and len(shown) <= _SHAPE_CHARS and len(asked) <= _SHAPE_CHARS:
            yield Move(f"use `{shown}` instead of `{asked}`{looked}", 1)
    else:
        yield Move(f"write `{after[0]}` and its argument apart: `{after[0]} …`", 1)


_WITHOUT_PATH = {
    "ls": ": list where you are first (`ls`), and go on from what is there",
    "search_dir": ": `search_dir <text>` searches from where you are",
    "search_file": ": `search_file <text>` searches the file that is open",
    "find_file": ": `find_file <name>` looks from where you are",
}


def _same_verb(
    verb: str, came: Sequence[str], went: Sequence[str], looked: str, repo_name: str
) -> Iterator[Move]:
    """One program, other arguments."""
    flags = [token for token in came if _is_flag(token)]
    if flags and not went and len(flags) == len(came):
        yield Move(f"add `{' '.join(flags)}` to `{verb}`", 1)
    paths = [token for token in went if _is_path(token)]
    if not came and paths and len(went) == 1:
        yield Move(f"leave the path out{_WITHOUT_PATH.get(verb, f': `{verb}` alone')}", 1)
        yield Move(f"leave `{paths[0]}` out of `{verb}`: there is no such path", 0)
    if len(came) == len(went) == 1 and _is_path(went[0]) and _is_path(came[0]):
        yield from _path(verb, went[0], came[0], looked, repo_name)


def _path(verb: str, was: str, now: str, looked: str, repo_name: str) -> Iterator[Move]:
    old, new = was.strip("/"), now.strip("/")
    if old and new:
        yield Move(f"there is no `{was}`: it is `{now}`", 0)
    head = old.removesuffix(new).strip("/") if new and old.endswith(f"/{new}") else ""
    if now in ("/", "~", ".", "..") or (verb == "cd" and old == new):
        yield Move(f"use `{verb} {now}`", 1)
    elif now == f"/{was}":
        yield Move("give the path from the root, with a leading `/`", 1)
    elif head == repo_name:
        yield Move(
            "leave out the leading <name of the repository>/: paths are taken from the "
            "repository's root, where you are",
            1,
        )
        yield Move(f"leave out the leading `{head}/`", 0)
    elif head:
        yield Move(f"leave out the leading `{head}/`", 0)
        yield Move(f"leave out the leading directory of the path{looked}", 1)
    elif old and new.endswith(f"/{old}"):
        yield Move(f"put `{new.removesuffix(old)}` before the path", 0)
        yield Move(f"put the directory it is in before the path{looked}", 1)
    elif old.rpartition("/")[2] == new.rpartition("/")[2]:
        yield Move(f"the file is in another directory{looked}", 1 if looked else 2)
    elif looked:
        yield Move(f"look the path up first{looked}", 1)
    elif old == "src":
        yield Move("there is no `src`: take the directory of the package itself (`ls` shows it)", 1)


def _masked_lookup(command: str) -> str:
    tokens = _TOKEN.findall(command)
    if not tokens or tokens[0] not in _LOOKING_UP:
        return _shape(tokens)
    if tokens[0] == "ls":
        return "ls <directory>"
    return f'{tokens[0]} "<file name>"' if tokens[0].startswith("find") else f"{tokens[0]} <text>"


def _shape(tokens: Sequence[str]) -> str:
    """A command with placeholders for its arguments."""
    shape = [tokens[0]] if tokens else []
    for token in tokens[1:]:
        if _is_flag(token):
            shape.append(token)
        elif token[0] in "\"'":
            shape.append('"<text>"')
        elif token.isdecimal():
            shape.append("<line>")
        else:
            shape.append("<path>" if _is_path(token) else "<text>")
    return " ".join(shape)


def _is_flag(token: str) -> bool:
    return token.startswith("-") and len(token) > 1


def _is_path(token: str) -> bool:
    return (_PATH.fullmatch(token) is not None and not _is_flag(token)) or token in (
        "/",
        ".",
        "..",
        "~",
    )
