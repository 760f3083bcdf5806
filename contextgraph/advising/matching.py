"""The rule by which two remedies are the same; evaluation uses it, too.

docs/evaluation.md states the rule with examples. Changing it changes every figure: measure the old
and the new version under one rule.
"""

import posixpath
from collections.abc import Iterable, Iterator, Sequence

from contextgraph.lazy import dataclass, regex
from contextgraph.model import (
    Action,
    RemedyAction,
    RemedyKind,
    RemedyPattern,
)
from contextgraph.trace import (
    ActionReading,
    Names,
    edited,
    is_import,
    pattern_key,
    read_action,
)
from contextgraph.trace.remedies.edits import leaves_open

# Of the identifiers that two changes add (or only drop), so large a share must be common to both.
SHARED_CHANGE = 0.4
# In another file one common identifier may be chance.
SHARED_ELSEWHERE = 2

# Agents name one file in several ways; its last parts are what they have in common.
_PARTS_COMPARED = 2
_PLACEHOLDER_OF_PATH = regex(r"<.*(?:path|elsewhere|folder)")
_FILE_NAME = regex(r"\.[A-Za-z]\w{0,4}$")
_IDENTIFIER = regex(r"[A-Za-z_]\w+")
_CODE_KINDS = frozenset({RemedyKind.EDIT, RemedyKind.CONFIGURE, RemedyKind.RESEND})


@dataclass(frozen=True, slots=True)
class RepoRemedy:
    """The *actions* of one remedy that can be advice, as done in *repo*."""

    repo: str
    actions: tuple[RemedyAction, ...]

    def __bool__(self) -> bool:
        """False where nothing was done that could help again."""
        return bool(self.actions)


def remedy_of(actions: Iterable[RemedyAction], repo: str) -> RepoRemedy:
    """The remedy that *actions* are: repeating what failed and looking around are none."""
    counted = (
        action
        for action in actions
        if action.kind is not RemedyKind.RETRY and not _is_lookup(action)
    )
    return RepoRemedy(repo.casefold(), tuple(counted))


def same_remedy(done: RepoRemedy, advised: RepoRemedy, names: Names) -> bool:
    """Whether *advised* has an action in common with what was *done*.

    *names* are those in the message of the error that was cleared.
    """
    here = done.repo == advised.repo
    return any(
        same_action(action, other, names, here=here)
        for action in done.actions
        for other in advised.actions
    )


def first_match(done: RepoRemedy, advised: Sequence[RepoRemedy], names: Names) -> int | None:
    """The rank, from 1, of the first of *advised* that is the same remedy; None for none."""
    ranked = enumerate(advised, start=1)
    return next((rank for rank, remedy in ranked if same_remedy(done, remedy, names)), None)


def kind_of_command(reading: ActionReading) -> str:
    """The program or tool of a command; `edit` for all that changes files."""
    return "edit" if reading.kind.changes_files else reading.verb


def kinds_of_commands(advised: RepoRemedy) -> frozenset[str]:
    """The kinds of command that *advised* consists of."""
    return frozenset(kind for action in advised.actions for kind in _kinds(action))


def _kinds(action: RemedyAction) -> Iterator[str]:
    if action.kind in _CODE_KINDS:
        yield "edit"
    lines = (action.target, *action.values_of("command"))
    if action.kind is RemedyKind.INSTALL:
        lines = lines[1:] or ("pip install",)
    for line in lines:
        if line and not line.startswith("<"):
            yield kind_of_command(read_action(Action(line.split()[0], line), None, None))


def same_action(done: RemedyAction, advised: RemedyAction, names: Names, *, here: bool) -> bool:
    """Whether following *advised* does what was *done*.

    *here*: both are of one repository, where paths, commands and code can be compared; advice from
    elsewhere is its pattern, with the names of the error at hand.
    """
    if done.kind is not advised.kind:
        return False
    if _defines(done) and _defines(advised) and is_concrete(advised):
        return (here or _imports(done)) and _head(done) == _head(advised)
    equal = pattern_key(done.pattern, names) == pattern_key(advised.pattern, names)
    closed = equal and (not is_open(done.pattern) or _is_spelled_out(done))
    if not here or not is_concrete(advised):
        return closed
    return _is_about(advised, names) if closed else _same_target(done, advised, names)


def clues_of(action: RemedyAction, names: Names) -> frozenset[str]:
    """All by which *action* can agree with another, so that an index finds candidates."""
    target, replaced = action.pattern.target, action.pattern.replaced
    clues = {" ".join(action.target.split()), " ".join(_head(action)), *_places(action)}
    clues |= {f"{target} for {replaced}", f"{names.fill(target)} for {names.fill(replaced)}"}
    clues |= {" ".join(line) for line in _lines(action)}
    clues |= {*action.values_of("adds"), *action.values_of("drops")}
    return frozenset(f"{action.kind} {clue}" for clue in clues)


def is_open(pattern: RemedyPattern) -> bool:
    """True for a *pattern* that leaves out which path, code or command it was."""
    return (
        pattern.kind is RemedyKind.OTHER
        or leaves_open(pattern.target)
        or any(map(leaves_open, pattern.parameters))
        or (pattern.kind is RemedyKind.EDIT and edited(pattern.target) is not None)
    )


def is_concrete(action: RemedyAction) -> bool:
    """True for an *action* as it was done, False for one in general terms."""
    return action.target != action.pattern.target or bool(action.parameters)


def _is_lookup(action: RemedyAction) -> bool:
    """True for a search or listing that only showed what to do."""
    pattern = action.pattern
    looks = action.kind is RemedyKind.SEARCH and not pattern.target.startswith("<")
    return looks and not (action.replaced or pattern.replaced or pattern.parameters)


def _is_about(action: RemedyAction, names: Names) -> bool:
    """True where *action* deals with the names that its pattern has placeholders for."""
    pattern = f"{action.pattern.target} {action.pattern.replaced}"
    values = (value for _, value in action.parameters)
    text = _spelling(" ".join((action.target, action.replaced, *values)))
    pairs = zip(names.names, names.roles, strict=True)
    return all(_spelling(name).partition(".")[0] in text for name, role in pairs if role in pattern)


def _spelling(name: str) -> str:
    return name.lower().replace("_", "-")


def _defines(action: RemedyAction) -> bool:
    """True for a definition that a refused edit lacked."""
    return bool(action.values_of("placing"))


def _imports(action: RemedyAction) -> bool:
    return is_import(action.pattern.target)


def _head(action: RemedyAction) -> list[str]:
    """The line of a definition without its parameters: an import in full."""
    return action.target.partition("(")[0].split()


def _is_spelled_out(action: RemedyAction) -> bool:
    """True for an `import name`, which no module was left out of."""
    return _imports(action) and action.target.split() == ["import", *action.values_of("adds")]


def _same_target(done: RemedyAction, advised: RemedyAction, names: Names) -> bool:
    """Whether both actions, of one kind and repository, did the same thing."""
    if done.kind is RemedyKind.RESEND:
        return not _lines(done).isdisjoint(_lines(advised))
    if done.kind in _CODE_KINDS:
        return _same_code(done, advised, names)
    if done.target.split() == advised.target.split():
        return True
    return not _places(done).isdisjoint(_places(advised))


def _lines(action: RemedyAction) -> frozenset[tuple[str, ...]]:
    """The lines that made the difference, but for those that stand in any text, as `else:`."""
    return frozenset(
        (name, *value.split())
        for name, value in action.parameters
        if name in ("with", "without") and _IDENTIFIER.search(value.partition("#")[0]) is not None
    )


def _same_code(done: RemedyAction, advised: RemedyAction, names: Names) -> bool:
    """Whether two changes add the same identifiers, or, adding none, drop the same."""
    ours, theirs = set(done.values_of("adds")), set(advised.values_of("adds"))
    if not ours and not theirs:
        ours, theirs = set(done.values_of("drops")), set(advised.values_of("drops"))
    shared = ours & theirs
    if not shared or done.values_of("file") == advised.values_of("file"):
        return bool(shared)
    if len(shared) < SHARED_ELSEWHERE and shared.isdisjoint(names.names):
        return False
    return 2 * len(shared) / (len(ours) + len(theirs)) >= SHARED_CHANGE


def _places(action: RemedyAction) -> frozenset[str]:
    """The paths that were right, by their last parts."""
    words = [word for word in action.values_of("to") if not word.isdecimal()]
    paths = {word for word in words if "/" in word or _FILE_NAME.search(word)}
    if words and _PLACEHOLDER_OF_PATH.match(action.pattern.target):
        paths.add(words[-1])
    tails = (posixpath.normpath(path).strip("/").split("/")[-_PARTS_COMPARED:] for path in paths)
    return frozenset("/".join(tail) for tail in tails) - {"", ".", ".."}
