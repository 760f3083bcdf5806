"""What worked in a repository without an error: files that were changed, commands that were run."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from contextgraph.consolidation.policy import ConsolidationPolicy
from contextgraph.governance import confidence
from contextgraph.model import (
    Action,
    CommonRemedy,
    Fragment,
    FragmentOutcome,
    Outcome,
    PastRun,
    Phase,
    PracticeGroup,
    RemedyAction,
    RemedyKind,
    RemedyPattern,
    RepoHistory,
    Source,
    TaskType,
    Trajectory,
)
from contextgraph.model.embedding import TASK_CHARS
from contextgraph.text import words
from contextgraph.trace import ActionKind, ActionReading, is_hazardous, read_action

WordShares = Callable[[Collection[str]], Mapping[str, float]]
"""Word -> the share of the runs of other repositories whose task contains it."""


@dataclass(frozen=True, slots=True)
class Practice:
    """What is done with a target, in which phase, and its *wording*."""

    kind: RemedyKind
    phase: Phase
    wording: str


_LOOK = Practice(RemedyKind.OPEN, Phase.LOCATING, "look at `{}` first: that was changed")
_OF_COMMANDS = {
    ActionKind.TEST: Practice(RemedyKind.RUN, Phase.TESTING, "tests are run with `{}`"),
    ActionKind.INSTALL: Practice(RemedyKind.INSTALL, Phase.REPRODUCING, "run `{}` first"),
}

# Nothing in a run but a solved task shows that what it did was right: two runs that solved theirs
# count as much as four whose outcome is failed or unknown.
_WEIGHT = {Outcome.SOLVED: 1.0, Outcome.UNKNOWN: 0.5, Outcome.FAILED: 0.5}

_MIN_LETTERS = 4
_NAME = re.compile(r"\b[A-Za-z]\w*(?:_\w|[a-z][A-Z])\w*")
_FILE = re.compile(r"[^/]\S*\.\w+")
_TEST_FILE = re.compile(r"(?:^|/)(?:test_[^/]*|[^/]*_test)\.\w+(?:::.*)?$|(?:^|/)tests?/.*\.\w+$")
_CHOICE = re.compile(r"(?<=\s-k\s)(?:\"[^\"]*\"|'[^']*'|\S+)")
_CLIPPED = "…"


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A *run* changed a file or ran a command, the *target*, in a fragment of so many *steps*."""

    run: Trajectory
    target: str
    source: Source
    steps: int


def practices_of(
    history: RepoHistory, policy: ConsolidationPolicy, word_shares: WordShares
) -> tuple[PracticeGroup, ...]:
    """All that runs of *history* have in common; mostly nothing."""
    return (*_places(history, policy, word_shares), *_commands(history, policy))


def is_enough(occurrences: Sequence[Occurrence], policy: ConsolidationPolicy) -> bool:
    """True where enough runs did it, and enough of these solved their tasks."""
    outcomes = {one.run.id: one.run.outcome for one in occurrences}
    return (
        len({one.source for one in occurrences}) >= policy.min_clearances
        and len(outcomes) >= policy.min_runs
        and sum(_WEIGHT[outcome] for outcome in outcomes.values()) >= policy.min_practice_weight
    )


def _by_target(occurrences: Iterable[Occurrence]) -> list[tuple[str, list[Occurrence]]]:
    """*occurrences* by target, that of most runs first, ties by the target."""
    found: dict[str, list[Occurrence]] = {}
    for one in occurrences:
        found.setdefault(one.target, []).append(one)
    return sorted(found.items(), key=lambda item: (-len(_runs(item[1])), item[0]))


def _usual(
    occurrences: Sequence[Occurrence], policy: ConsolidationPolicy
) -> list[tuple[str, list[Occurrence]]]:
    """The targets of more than the least share of the runs."""
    least = policy.min_practice_share * len(_runs(occurrences))
    return [
        (target, found)
        for target, found in _by_target(occurrences)
        if is_enough(found, policy) and len(_runs(found)) > least
    ][: policy.max_remedies]


def _runs(occurrences: Iterable[Occurrence]) -> frozenset[str]:
    return frozenset(one.run.id for one in occurrences)


def _supporters(occurrences: Iterable[Occurrence]) -> frozenset[tuple[str, str]]:
    return frozenset((one.run.instance_id, one.run.contributor) for one in occurrences)


def _common(practice: Practice, target: str, occurrences: Sequence[Occurrence]) -> CommonRemedy:
    return CommonRemedy(
        text=practice.wording.format(target),
        runs=len(_runs(occurrences)),
        repositories=1,
        steps=sum(one.steps for one in occurrences) / len(occurrences),
        action=_action(practice, target),
    )


def _action(practice: Practice, target: str) -> RemedyAction:
    return RemedyAction(practice.kind, target, RemedyPattern(practice.kind, target))


@dataclass(frozen=True, slots=True)
class _Place:
    """*file* was changed in these *occurrences*, all about *keyword*; *about* runs were."""

    keyword: str
    file: str
    occurrences: tuple[Occurrence, ...]
    about: frozenset[str]

    @property
    def runs(self) -> frozenset[str]:
        return _runs(self.occurrences)

    @property
    def rank(self) -> tuple[bool, float, str, str]:
        """Ascending, the best first: a keyword of the path, then the share of the runs."""
        share = len(self.runs) / len(self.about)
        in_path = self.keyword in words(self.file)
        return not in_path, -share * len(self.runs), self.keyword, self.file


def _places(
    history: RepoHistory, policy: ConsolidationPolicy, word_shares: WordShares
) -> Iterator[PracticeGroup]:
    """Which files runs changed; first those that most runs changed, then by what tasks are about.

    A keyword is a part of the path, or a name that is rare elsewhere, of at most half of the
    tasks. Most of the runs about it changed the file, and more often than the others did.
    """
    every = [occurrence for run in history.runs for occurrence in _changes(run)]
    changing = _runs(every)
    usual = [_Place("", file, tuple(found), changing) for file, found in _usual(every, policy)]
    if usual:
        yield _place_group(history.repo, usual, every)
    by_keyword: dict[str, list[_Place]] = {}
    for place in _distinct(_narrowed(history.repo, every, policy, word_shares)):
        by_keyword.setdefault(place.keyword, []).append(place)
    for _, places in sorted(by_keyword.items()):
        yield _place_group(history.repo, places[: policy.max_remedies], every)


def _changes(run: PastRun) -> Iterator[Occurrence]:
    """The project's own files that *run* changed, as far as its patch has them."""
    created = {path for fragment in run.fragments for path in _created(fragment)}
    patched = set(run.trajectory.files)
    for fragment in run.fragments:
        if fragment.phase is not Phase.FIXING:
            continue
        for file in fragment.files:
            if _FILE.fullmatch(file) and file not in created and (not patched or file in patched):
                source = Source(run.trajectory.id, fragment.id)
                steps = fragment.end - fragment.start + 1
                yield Occurrence(run.trajectory, file, source, steps)


def _created(fragment: Fragment) -> Iterator[str]:
    """Files that did not exist before, as far as the first lines of actions show."""
    for reading in map(_read, fragment.action_sequence):
        if reading.kind is ActionKind.CREATE:
            yield from reading.changed


def _narrowed(
    repo: str, every: list[Occurrence], policy: ConsolidationPolicy, word_shares: WordShares
) -> Iterator[_Place]:
    """The files that runs about one thing changed and others did not, each with the thing."""
    runs = {one.run.id: one.run for one in every}
    names = frozenset(name for run in runs.values() for name in _names_of(run))
    about: dict[str, set[str]] = {}
    for run in runs.values():
        for word in _words_of(run).difference(words(repo)):
            about.setdefault(word, set()).add(run.id)
    frequent = {
        word: frozenset(ids)
        for word, ids in about.items()
        if policy.min_runs <= len(ids) <= len(runs) / 2
    }
    rare = {
        word for word, share in word_shares(frequent).items() if share <= policy.rare_word_share
    }
    for word, ids in frequent.items():
        for file, found in _by_target(one for one in every if one.run.id in ids):
            is_specific = word in words(file) or (word in names and word in rare)
            if is_specific and is_enough(found, policy):
                place = _Place(word, file, tuple(found), ids)
                if _stands_out(place, every, policy):
                    yield place


def _stands_out(place: _Place, every: list[Occurrence], policy: ConsolidationPolicy) -> bool:
    """True where most runs about the keyword changed the file, and surely more than of others."""
    others = _runs(every) - place.about
    otherwise = others & _runs(one for one in every if one.target == place.file)
    lift = confidence(len(place.runs), len(place.about), len(otherwise), len(others))
    return lift > 0 and len(place.runs) > policy.min_practice_share * len(place.about)


def _distinct(places: Iterable[_Place]) -> Iterator[_Place]:
    """Of the *places* of one file those that cover further runs, the best first."""
    covered: dict[str, frozenset[str]] = {}
    for place in sorted(places, key=lambda one: one.rank):
        before = covered.get(place.file, frozenset())
        if len(place.runs - before) > 1:
            covered[place.file] = before | place.runs
            yield place


def _place_group(repo: str, places: list[_Place], every: list[Occurrence]) -> PracticeGroup:
    occurrences = [occurrence for place in places for occurrence in place.occurrences]
    about, first = places[0].about, places[0].file
    others = _runs(every) - about
    return PracticeGroup(
        repo=repo,
        phase=_LOOK.phase,
        keyword=places[0].keyword,
        task_type=None,
        about=len(about),
        others=len(others),
        otherwise=len(others & _runs(one for one in every if one.target == first)),
        solved=len({one.run.id for one in occurrences if one.run.success}),
        practices=tuple(_common(_LOOK, place.file, place.occurrences) for place in places),
        sources=tuple(sorted({one.source for one in occurrences})),
        supporters=_supporters(occurrences),
    )


def _words_of(run: Trajectory) -> frozenset[str]:
    """The words of the task of *run*, in lower case."""
    return frozenset(word for word in words(run.task[:TASK_CHARS]) if len(word) >= _MIN_LETTERS)


def _names_of(run: Trajectory) -> frozenset[str]:
    """The names of code among them."""
    return frozenset(name.strip("_").lower() for name in _NAME.findall(run.task[:TASK_CHARS]))


def _commands(history: RepoHistory, policy: ConsolidationPolicy) -> Iterator[PracticeGroup]:
    """The commands that most runs used for tests and for installing, without an error.

    Of all runs together, or else of those of one type of task.
    """
    for kind, practice in _OF_COMMANDS.items():
        every = [occurrence for run in history.runs for occurrence in _uses(run, kind)]
        whole = _command_group(history.repo, practice, None, every, policy)
        if whole is not None:
            yield whole
            continue
        for task_type in TaskType:
            of_type = [one for one in every if one.run.task_type is task_type]
            part = _command_group(history.repo, practice, task_type, of_type, policy)
            if part is not None:
                yield part


def _uses(run: PastRun, kind: ActionKind) -> Iterator[Occurrence]:
    for fragment in run.fragments:
        if fragment.outcome is FragmentOutcome.COMPLETED:
            lines = (line for line in fragment.action_sequence if not line.endswith(_CLIPPED))
            readings = (reading for reading in map(_read, lines) if reading.kind is kind)
            for command in dict.fromkeys(_masked(reading.command) for reading in readings):
                source = Source(run.trajectory.id, fragment.id)
                steps = fragment.end - fragment.start + 1
                yield Occurrence(run.trajectory, command, source, steps)


# Runs repeat each other, and what is looked at again with a new run was mostly read before.
@lru_cache(16_384)
def _read(line: str) -> ActionReading:
    return read_action(Action("", line), None, None)


def _masked(command: str) -> str:
    """*command* with placeholders for the choice of tests."""
    tokens = _CHOICE.sub("<name>", " ".join(command.split())).split(" ")
    return " ".join("<test file>" if _TEST_FILE.search(token) else token for token in tokens)


def _command_group(
    repo: str,
    practice: Practice,
    task_type: TaskType | None,
    every: list[Occurrence],
    policy: ConsolidationPolicy,
) -> PracticeGroup | None:
    usual = [
        (command, found)
        for command, found in _usual(every, policy)
        if not is_hazardous((_action(practice, command),))
    ]
    if not usual:
        return None
    covered = [occurrence for _, found in usual for occurrence in found]
    return PracticeGroup(
        repo=repo,
        phase=practice.phase,
        keyword="",
        task_type=task_type,
        about=len(_runs(every)),
        others=0,
        otherwise=0,
        solved=len({one.run.id for one in covered if one.run.success}),
        practices=tuple(_common(practice, command, found) for command, found in usual),
        sources=tuple(sorted({one.source for one in covered})),
        supporters=_supporters(covered),
    )
