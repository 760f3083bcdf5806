"""Where in a repository tasks of a kind were solved: which files runs changed."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from contextgraph.consolidation.policy import ConsolidationPolicy
from contextgraph.consolidation.sighting import Sighting, by_what, is_enough, practice, runs_of
from contextgraph.governance import confidence
from contextgraph.model import (
    Action,
    Fragment,
    PastRun,
    Phase,
    PracticeGroup,
    RepoHistory,
    Source,
    Trajectory,
)
from contextgraph.model.embedding import TASK_CHARS
from contextgraph.text import words
from contextgraph.trace import ActionKind, read_action

_SAID = "look at `{}` first: that was changed"
_LEAST_LETTERS = 4
_NAME = re.compile(r"\b[A-Za-z]\w*(?:_\w|[a-z][A-Z])\w*")
_FILE = re.compile(r"[^/]\S*\.\w+")

Rarity = Callable[[Collection[str]], Mapping[str, float]]
"""Word -> the share of the runs of other repositories whose task speaks of it."""


@dataclass(frozen=True, slots=True)
class _Place:
    """*file* was changed by these *sightings*, all about *keyword*; *about* runs were."""

    keyword: str
    file: str
    sightings: tuple[Sighting, ...]
    about: frozenset[str]

    @property
    def runs(self) -> frozenset[str]:
        return runs_of(self.sightings)


def places_of(
    history: RepoHistory, policy: ConsolidationPolicy, rarity: Rarity
) -> Iterator[PracticeGroup]:
    """What tasks spoke of and which files their runs changed; first the files that most changed.

    A keyword is a part of the path, or a name that is rare elsewhere, of at most half of the
    tasks. Most of the runs about it changed the file, and more often than the others did.
    """
    changes = {run.trajectory.id: list(_changes(run)) for run in history.runs}
    every = [sighting for found in changes.values() for sighting in found]
    changing = runs_of(every)
    usual = [
        _Place("", file, tuple(found), changing)
        for file, found in by_what(every)
        if is_enough(found, policy) and len(runs_of(found)) > policy.practice_share * len(changing)
    ]
    if usual:
        yield _group(history.repo, usual[: policy.remedies], every)
    kept = list(_telling(_narrowed(history.repo, every, policy, rarity)))
    for keyword in sorted({place.keyword for place in kept}):
        of_it = [place for place in kept if place.keyword == keyword]
        yield _group(history.repo, of_it[: policy.remedies], every)


def _changes(run: PastRun) -> Iterator[Sighting]:
    """The project's own files that *run* changed, as far as its patch has them."""
    made = {path for fragment in run.fragments for path in _made(fragment)}
    kept = set(run.trajectory.files)
    for fragment in run.fragments:
        if fragment.phase is Phase.FIXING:
            for file in fragment.files:
                if _FILE.fullmatch(file) and file not in made and (not kept or file in kept):
                    source = Source(run.trajectory.id, fragment.id)
                    steps = fragment.end - fragment.start + 1
                    yield Sighting(run.trajectory, file, source, steps)


def _made(fragment: Fragment) -> Iterator[str]:
    """Files that were not there before, as far as the first lines of actions tell."""
    for line in fragment.action_sequence:
        reading = read_action(Action("", line), None, None)
        if reading.kind is ActionKind.CREATE:
            yield from reading.changed


def _narrowed(
    repo: str, every: list[Sighting], policy: ConsolidationPolicy, rarity: Rarity
) -> Iterator[_Place]:
    """The files that runs about one thing changed and others did not, each with the thing."""
    runs = {one.run.id: one.run for one in every}
    names = frozenset(name for run in runs.values() for name in _names_of(run))
    about: dict[str, set[str]] = {}
    for run in runs.values():
        for word in _words_of(run).difference(words(repo)):
            about.setdefault(word, set()).add(run.id)
    some = {word: frozenset(ids) for word, ids in about.items() if _is_some(ids, runs, policy)}
    rare = {word for word, share in rarity(some).items() if share <= policy.rare}
    for word, ids in some.items():
        for file, found in by_what(one for one in every if one.run.id in ids):
            telling = word in words(file) or (word in names and word in rare)
            if telling and is_enough(found, policy):
                place = _Place(word, file, tuple(found), ids)
                if _stands_out(place, every, policy):
                    yield place


def _is_some(ids: Collection[str], runs: Collection[str], policy: ConsolidationPolicy) -> bool:
    return policy.runs <= len(ids) <= len(runs) / 2


def _stands_out(place: _Place, every: list[Sighting], policy: ConsolidationPolicy) -> bool:
    """True where most runs about the keyword changed the file, and surely more than of others."""
    others = runs_of(every) - place.about
    otherwise = others & runs_of(one for one in every if one.what == place.file)
    sure = confidence(len(place.runs), len(place.about), len(otherwise), len(others))
    return sure > 0 and len(place.runs) > policy.practice_share * len(place.about)


def _telling(places: Iterable[_Place]) -> Iterator[_Place]:
    """Of *places* of one file those that tell of runs that those before do not, the best first."""
    covered: dict[str, frozenset[str]] = {}
    for place in sorted(places, key=_best_first):
        before = covered.get(place.file, frozenset())
        if len(place.runs - before) > 1:
            covered[place.file] = before | place.runs
            yield place


def _best_first(place: _Place) -> tuple[bool, float, str, str]:
    share = len(place.runs) / len(place.about)
    return (
        place.keyword not in words(place.file),
        -share * len(place.runs),
        place.keyword,
        place.file,
    )


def _group(repo: str, places: list[_Place], every: list[Sighting]) -> PracticeGroup:
    sightings = [sighting for place in places for sighting in place.sightings]
    about, first = places[0].about, places[0].file
    others = runs_of(every) - about
    return PracticeGroup(
        repo=repo,
        phase=Phase.LOCATING,
        keyword=places[0].keyword,
        task_type=None,
        about=len(about),
        others=len(others),
        otherwise=len(others & runs_of(one for one in every if one.what == first)),
        solved=len({one.run.id for one in sightings if one.run.success}),
        practices=tuple(practice(_SAID.format(place.file), place.sightings) for place in places),
        sources=tuple(sorted({one.source for one in sightings})),
    )


def _words_of(run: Trajectory) -> frozenset[str]:
    """What the task of *run* speaks of, in lower case."""
    found = words(run.task[:TASK_CHARS])
    return frozenset(word for word in found if len(word) >= _LEAST_LETTERS)


def _names_of(run: Trajectory) -> frozenset[str]:
    """The names in code among it."""
    return frozenset(name.strip("_").lower() for name in _NAME.findall(run.task[:TASK_CHARS]))
