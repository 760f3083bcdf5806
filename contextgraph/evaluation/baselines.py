"""Baselines to compare with: chance, frequency, BM25."""

import random
from array import array
from collections import Counter
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Generic, TypeVar

from msgspec import Struct

from contextgraph.advising.gate import RepoRemedy, clues_of, does_the_same, remedy_of
from contextgraph.model import RawTrajectory, RemedyAction, RemedyPattern
from contextgraph.text import TASK_CHARS, rarity, words
from contextgraph.trace import (
    Names,
    Trace,
    command_lines,
    describe_pattern,
    describe_remedy,
    files_changed,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Robertson & Zaragoza 2009, the usual constants. A library that indexes once would have to do so
# again before every judged run of an online evaluation.
_K1, _B = 1.2, 0.75
_NO_NAMES = Names()

Item = TypeVar("Item", RepoRemedy, str)


class Answer(Struct, Generic[Item], frozen=True):
    """Answer of one method at a moment: *items*, best first, and the score of the first."""

    items: tuple[Item, ...] = ()
    score: float = 0.0


class PastTask(Struct, frozen=True):
    """The task of a learned run, and the files that it changed."""

    instance_id: str
    repo: str
    task: str
    files: tuple[str, ...]


class Bm25:
    """Texts by the number of their arrival, from 0, ranked by BM25."""

    def __init__(self) -> None:
        self._postings: dict[str, tuple[array[int], array[int]]] = {}
        self._lengths = array("i")

    def add(self, text: str) -> None:
        """Add the next text."""
        counts = Counter(words(text))
        for word, count in counts.items():
            numbers, frequencies = self._postings.setdefault(word, (array("i"), array("i")))
            numbers.append(len(self._lengths))
            frequencies.append(count)
        self._lengths.append(counts.total())

    def best(
        self, text: str, limit: int, visible: "NDArray[np.bool_]"
    ) -> Sequence[tuple[float, int]]:
        """(score, number) of the *visible* texts most like *text*, best first, ties by number."""
        import numpy as np

        # A buffer must not be held while its array grows: all of them are gone on return.
        lengths = np.frombuffer(self._lengths, dtype=np.intc) if self._lengths else np.zeros(0)
        norms = _K1 * (1 - _B + _B * lengths / max(1e-9, lengths.mean() if len(lengths) else 1))
        scores = np.zeros(len(lengths))
        for word in dict.fromkeys(words(text)):
            if word in self._postings:
                numbers, counts = (np.frombuffer(array, np.intc) for array in self._postings[word])
                weight = rarity(len(numbers), len(lengths))
                scores[numbers] += weight * counts * (_K1 + 1) / (counts + norms[numbers])
        matches = np.flatnonzero((scores > 0) & visible)
        order = np.lexsort((matches, -scores[matches]))[:limit]
        return [(float(scores[number]), int(number)) for number in matches[order]]


class _Visibility:
    """Masks of the entries added so far that a run may see."""

    def __init__(self) -> None:
        self._instances: list[str] = []
        self._by_repo: dict[str, list[int]] = {}
        self._last: tuple[Collection[str], NDArray[np.bool_]] | None = None

    def add(self, instance_id: str, repo: str) -> None:
        self._by_repo.setdefault(repo.casefold(), []).append(len(self._instances))
        self._instances.append(instance_id)
        self._last = None

    def anywhere(self, hidden: Collection[str]) -> "NDArray[np.bool_]":
        """True for entries that are not of *hidden* instances."""
        import numpy as np

        if self._last is None or self._last[0] != hidden:
            seen = [instance not in hidden for instance in self._instances]
            self._last = (hidden, np.array(seen, dtype=bool))
        return self._last[1]

    def within(self, repo: str, hidden: Collection[str]) -> "NDArray[np.bool_]":
        """Return the same for entries of *repo* only."""
        import numpy as np

        here = np.zeros(len(self._instances), dtype=bool)
        here[self._by_repo.get(repo.casefold(), [])] = True
        return here & self.anywhere(hidden)


class RecoveryBaselines:
    """The recoveries learned so far, as each baseline recalls them.

    They recall what can be advised: from another repository only what can be worded in general.
    """

    def __init__(self) -> None:
        self._remedies: list[RepoRemedy] = []
        self._general: list[bool] = []
        self._index = Bm25()
        self._visible = _Visibility()
        self._by_type: dict[str, dict[tuple[RemedyPattern, ...], dict[str, int]]] = {}
        self._by_clue: dict[str, list[int]] = {}

    def add(self, read: Trace) -> None:
        """Add the recoveries of one more run, verified or not, as a memory learns them."""
        for recovery in read.recoveries:
            remedy = remedy_of(recovery.actions, read.raw.repo)
            number = len(self._remedies)
            patterns = tuple(action.pattern for action in remedy.actions)
            is_general = any(describe_pattern(pattern) for pattern in patterns)
            self._remedies.append(remedy)
            self._general.append(is_general)
            self._visible.add(read.raw.instance_id, read.raw.repo)
            worded = (describe_remedy(recovery.actions), *command_lines(recovery.actions))
            self._index.add("\n".join((recovery.error.message, *worded)))
            if is_general:
                same_type = self._by_type.setdefault(recovery.error.error_type, {})
                same_type.setdefault(patterns, {}).setdefault(read.raw.instance_id, number)
            for clue in {clue for action in remedy.actions for clue in clues_of(action, _NO_NAMES)}:
                self._by_clue.setdefault(clue, []).append(number)

    def at_random(
        self, repo: str, limit: int, hidden: Collection[str], chance: random.Random
    ) -> Answer[RepoRemedy]:
        """Any recoveries of the repository; where it has none, of all."""
        numbers = self._scope(repo, hidden).nonzero()[0].tolist()
        drawn = chance.sample(numbers, min(limit, len(numbers)))
        return Answer(tuple(self._remedies[number] for number in drawn))

    def most_frequent(
        self, error_type: str, limit: int, hidden: Collection[str]
    ) -> Answer[RepoRemedy]:
        """Return what most instances did about errors of this type, whatever the message."""
        counted = [
            (len(seen), patterns)
            for patterns, instances in self._by_type.get(error_type, {}).items()
            if (seen := instances.keys() - hidden)
        ]
        best = sorted(counted, key=lambda entry: -entry[0])[:limit]
        remedies = tuple(_in_general(patterns) for _, patterns in best)
        return Answer(remedies, float(best[0][0]) if best else 0.0)

    def bm25(
        self, text: str, limit: int, hidden: Collection[str], repo: str, *, in_scope: bool
    ) -> Answer[RepoRemedy]:
        """Return recoveries with a text most like *text*: of *repo*, else of all repositories."""
        visible = self._scope(repo, hidden) if in_scope else self._anywhere(repo, hidden)
        matches = self._index.best(text, limit, visible)
        if in_scope and not matches:
            return self.bm25(text, limit, hidden, repo, in_scope=False)
        remedies = tuple(self._remedies[number] for _, number in matches)
        return Answer(remedies, matches[0][0] if matches else 0.0)

    def reaches(self, done: RepoRemedy, names: Names, hidden: Collection[str]) -> bool:
        """Return True where a visible recovery is the remedy *done*: recalling cannot find more."""
        visible = self._visible.anywhere(hidden)
        clues = {clue for action in done.actions for clue in clues_of(action, names)}
        numbers = {number for clue in clues for number in self._by_clue.get(clue, ())}
        return any(
            visible[number] and does_the_same(done, self._remedies[number], names)
            for number in numbers
        )

    def _scope(self, repo: str, hidden: Collection[str]) -> "NDArray[np.bool_]":
        here = self._visible.within(repo, hidden)
        return here if here.any() else self._anywhere(repo, hidden)

    def _anywhere(self, repo: str, hidden: Collection[str]) -> "NDArray[np.bool_]":
        import numpy as np

        general = np.array(self._general, dtype=bool) & self._visible.anywhere(hidden)
        return general | self._visible.within(repo, hidden)


def _in_general(patterns: Sequence[RemedyPattern]) -> RepoRemedy:
    return RepoRemedy("", tuple(RemedyAction(p.kind, p.target, p, p.replaced) for p in patterns))


class TaskBaselines:
    """The tasks learned so far, as each baseline recalls them."""

    def __init__(self) -> None:
        self._tasks: list[PastTask] = []
        self._index = Bm25()
        self._visible = _Visibility()

    def add(self, raw: RawTrajectory) -> None:
        """Add the task of one more run; its files are those of its patch."""
        files = files_changed(raw.patch or "")
        self._tasks.append(PastTask(raw.instance_id, raw.repo, raw.task, files))
        self._index.add(raw.task[:TASK_CHARS])
        self._visible.add(raw.instance_id, raw.repo)

    def of(self, repo: str, hidden: Collection[str]) -> list[PastTask]:
        """Return the visible entries of *repo*."""
        numbers = self._visible.within(repo, hidden).nonzero()[0]
        return [self._tasks[number] for number in numbers]

    def bm25(
        self, text: str, limit: int, hidden: Collection[str], repo: str, *, in_scope: bool
    ) -> tuple[list[PastTask], float]:
        """Return the tasks most like *text*, of *repo*, else of all; and the score of the first."""
        everywhere = self._visible.anywhere(hidden)
        visible = self._visible.within(repo, hidden) if in_scope else everywhere
        matches = self._index.best(text[:TASK_CHARS], limit, visible)
        if in_scope and not matches:
            matches = self._index.best(text[:TASK_CHARS], limit, everywhere)
        return [self._tasks[number] for _, number in matches], matches[0][0] if matches else 0.0


def files_at_random(tasks: Sequence[PastTask], chance: random.Random) -> Answer[str]:
    """Return the files of past tasks in any order."""
    return Answer(files_in(chance.sample(tasks, len(tasks))))


def files_most_frequent(tasks: Sequence[PastTask]) -> Answer[str]:
    """Return the files that most past tasks changed."""
    counts = _file_counts(tasks)
    return Answer(tuple(file for file, _ in counts.most_common()))


def tasks_most_frequent(tasks: Sequence[PastTask]) -> list[PastTask]:
    """Past tasks, those first that changed the files which most tasks changed."""
    counts = _file_counts(tasks)
    return sorted(tasks, key=lambda task: -max((counts[file] for file in task.files), default=0))


def files_in(tasks: Sequence[PastTask]) -> tuple[str, ...]:
    """Return the files of *tasks* in order, each once."""
    return tuple(dict.fromkeys(file for task in tasks for file in task.files))


def _file_counts(tasks: Sequence[PastTask]) -> Counter[str]:
    return Counter(file for task in tasks for file in dict.fromkeys(task.files))
