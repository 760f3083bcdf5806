"""What costs nothing to build, and must be beaten: chance, frequency, BM25."""

import random
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from contextgraph.replay.bm25 import Bm25
from contextgraph.replay.clearance import matches
from contextgraph.replay.cures import Cure
from contextgraph.replay.lessons import Lesson, PastTask, in_scope
from contextgraph.replay.moves import Move

_NUMBER = re.compile(r"\d+")
_TASK_CHARS = 2_000


Item = TypeVar("Item", Cure, str)


@dataclass(frozen=True, slots=True)
class Answer(Generic[Item]):
    """What one method says at a moment: *items* best first, how sure it is of the first."""

    items: tuple[Item, ...] = ()
    score: float = 0.0
    evidence: float = 0.0


class Lessons:
    """The recoveries learned so far, as each baseline recalls them."""

    def __init__(self) -> None:
        self._all: list[Lesson] = []
        self._index = Bm25()
        self._by_repo: dict[str, list[Lesson]] = {}
        self._frequent: dict[str, dict[str, dict[str, Lesson]]] = {}
        self._by_part: dict[Move | str, list[Lesson]] = {}

    def add(self, lessons: Sequence[Lesson]) -> None:
        """Take in what one more run taught."""
        for lesson in lessons:
            self._all.append(lesson)
            self._index.add(lesson.text)
            self._by_repo.setdefault(lesson.repo, []).append(lesson)
            same_type = self._frequent.setdefault(lesson.error_type, {})
            runs = same_type.setdefault(_NUMBER.sub("", lesson.advice), {})
            runs.setdefault(lesson.instance_id, lesson)
            for part in _parts(lesson.cure):
                self._by_part.setdefault(part, []).append(lesson)

    def at_random(
        self, repo: str, limit: int, hidden: Collection[str], chance: random.Random
    ) -> Answer[Cure]:
        """Any recoveries of the repository; where it has none, of all."""
        visible = in_scope(self._by_repo.get(repo, ()), repo, hidden)
        visible = visible or in_scope(self._all, repo, hidden)
        drawn = chance.sample(visible, min(limit, len(visible)))
        return Answer(tuple(lesson.cure for lesson in drawn))

    def most_frequent(self, error_type: str, limit: int, hidden: Collection[str]) -> Answer[Cure]:
        """What most runs did about errors of this type, whatever the message."""
        counted = [
            (len(visible), next(iter(visible.values())))
            for runs in self._frequent.get(error_type, {}).values()
            if (visible := {run: one for run, one in runs.items() if run not in hidden})
        ]
        best = sorted(counted, key=lambda found: -found[0])[:limit]
        return Answer(tuple(lesson.cure for _, lesson in best), best[0][0] if best else 0.0)

    def tell(self, cure: Cure, message: str, hidden: Collection[str]) -> bool:
        """Whether any recovery that may be seen tells *cure*: no method can find more."""
        return any(
            lesson.instance_id not in hidden and matches(cure, lesson.cure, message)
            for part in _parts(cure)
            for lesson in self._by_part.get(part, ())
        )

    def bm25(
        self, text: str, limit: int, hidden: Collection[str], repo: str | None
    ) -> Answer[Cure]:
        """The recoveries whose text is most like *text*, of *repo* or of all (None)."""

        def is_visible(number: int) -> bool:
            lesson = self._all[number]
            return lesson.instance_id not in hidden and repo in (None, lesson.repo)

        found = self._index.best(text, limit, is_visible)
        cures = tuple(self._all[number].cure for _, number in found)
        return Answer(cures, found[0][0] if found else 0.0)


def _parts(cure: Cure) -> Iterator[Move | str]:
    """All by which two cures can agree."""
    yield from cure.moves
    yield from cure.adds
    yield from cure.drops


class PastTasks:
    """The tasks learned so far, as each baseline recalls them."""

    def __init__(self) -> None:
        self._all: list[PastTask] = []
        self._index = Bm25()

    def add(self, task: PastTask) -> None:
        """Take in one more."""
        self._all.append(task)
        self._index.add(task.task[:_TASK_CHARS])

    def of(self, repo: str, hidden: Collection[str]) -> list[PastTask]:
        """Those of *repo* that may be seen."""
        return [t for t in self._all if t.repo == repo and t.instance_id not in hidden]

    def bm25(
        self, text: str, limit: int, hidden: Collection[str], repo: str | None
    ) -> tuple[list[PastTask], float]:
        """The tasks most like *text*, of *repo* or of all (None), and the score of the first."""

        def is_visible(number: int) -> bool:
            task = self._all[number]
            return task.instance_id not in hidden and repo in (None, task.repo)

        found = self._index.best(text[:_TASK_CHARS], limit, is_visible)
        return [self._all[number] for _, number in found], found[0][0] if found else 0.0


def files_at_random(tasks: Sequence[PastTask], chance: random.Random) -> Answer[str]:
    """The files of past tasks in any order."""
    drawn = chance.sample(tasks, len(tasks))
    return Answer(files_in(drawn))


def files_most_frequent(tasks: Sequence[PastTask]) -> Answer[str]:
    """The files that most past tasks changed."""
    counts = Counter(file for task in tasks for file in dict.fromkeys(task.files))
    return Answer(tuple(file for file, _ in counts.most_common()))


def files_in(tasks: Sequence[PastTask]) -> tuple[str, ...]:
    """The files of *tasks* in order, each once."""
    return tuple(dict.fromkeys(file for task in tasks for file in task.files))
