"""The files that a task is likely to change, by what runs of the repository did and saw."""

import posixpath
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from math import exp, log

from contextgraph.model import PlaybookFile, RepositoryPlaybook, Trajectory
from contextgraph.ranking import TASK_CHARS
from contextgraph.text import words
from contextgraph.trace import ProjectFacts

OUTSIDE = ("/", "..", "~")
_SHORTEST_NAME = 4
_FILES_SHOWN = 3
_TEST_FILE = re.compile(
    r"(?:^|/)(?:test_[^/]*|[^/]*_test|conftest)\.\w+$|(?:^|/)(?:tests?|testing)/"
)


@dataclass(frozen=True, slots=True)
class KnownRun:
    """A run of the repository: its instance, and what it shows of the project.

    *changed*, *opened* and *listed* are the files of the project itself that it changed, looked at
    and met in listings and searches.
    """

    instance_id: str
    changed: frozenset[str]
    opened: frozenset[str]
    listed: frozenset[str]
    facts: ProjectFacts


def known_run(run: Trajectory, facts: ProjectFacts) -> KnownRun:
    """*run* with the *facts* that it shows."""

    def own(files: Iterable[str]) -> frozenset[str]:
        return frozenset(
            file
            for file in files
            if file not in facts.created
            and not file.startswith(OUTSIDE)
            and not _TEST_FILE.search(file)
        )

    return KnownRun(run.instance_id, own(run.files), own(facts.opened), own(facts.listed), facts)


@dataclass(frozen=True, slots=True)
class FileFeatures:
    """What the probability that a file is changed for a task is computed from.

    *folders*, *name*: the share of the words of its path and of its own name that the task has, by
    their rarity; *used*: the share of tasks that changed or opened it, over their number + 1;
    *symbol*: 1 where the task names a function or class that was changed in it.
    """

    folders: float
    name: float
    used: float
    symbol: float


# Fitted by `python -m benchmarks.playbook` (see benchmarks/README.md): a logistic regression.
COEFFICIENTS = {"folders": 1.36, "name": 1.86, "used": 6.86, "symbol": 1.61}
INTERCEPT = -6.11


def ranked_files(runs: Sequence[KnownRun], task: str) -> list[PlaybookFile]:
    """The files that *task* does not name, the most probable for it first; ties by path."""
    changed = _tasks_of((run.instance_id, run.changed) for run in runs)
    opened = _tasks_of((run.instance_id, run.opened) for run in runs)
    symbols = _symbols(runs)
    terms = frozenset(words(task[:TASK_CHARS]))
    found = [
        PlaybookFile(
            path,
            len(changed.get(path, ())),
            len(opened.get(path, ())),
            _probability(features),
            tuple(_symbols_to_name(symbols.get(path, {}), terms)),
        )
        for path, features in file_features(runs, task).items()
        if posixpath.basename(path) not in task
    ]
    return sorted(found, key=lambda one: (-one.probability, one.path))


def _tasks_of(files: Iterable[tuple[str, Collection[str]]]) -> dict[str, set[str]]:
    """File -> the instances that have it."""
    found: dict[str, set[str]] = {}
    for instance, paths in files:
        for path in paths:
            found.setdefault(path, set()).add(instance)
    return found


def _symbols(runs: Sequence[KnownRun]) -> dict[str, dict[str, set[str]]]:
    """File -> function or class -> the instances that changed it."""
    found: dict[str, dict[str, set[str]]] = {}
    for run in runs:
        for file, names in run.facts.symbols.items():
            for name in names:
                found.setdefault(file, {}).setdefault(name, set()).add(run.instance_id)
    return found


def _symbols_to_name(
    changed: Mapping[str, Collection[str]], terms: frozenset[str]
) -> Iterator[str]:
    for name, tasks in sorted(changed.items(), key=lambda one: (-len(one[1]), one[0])):
        if len(tasks) > 1 or is_named(name, terms):
            yield name


def files_shown(playbook: RepositoryPlaybook) -> list[PlaybookFile]:
    """The first files of *playbook* that at least three tasks and three of four changed.

    Of other files, even of a probability of .5, most were wrong (docs/evaluation.md).
    """
    least = max(3, 0.75 * playbook.tasks)
    return [one for one in playbook.files[:_FILES_SHOWN] if one.changed >= least]


def _probability(features: FileFeatures) -> float:
    total = sum(weight * getattr(features, name) for name, weight in COEFFICIENTS.items())
    return 1 / (1 + exp(-INTERCEPT - total))


def file_features(runs: Sequence[KnownRun], task: str) -> dict[str, FileFeatures]:
    """Path -> its features, of all files of a kind that runs changed which any of *runs* met."""
    used = _tasks_of((run.instance_id, run.changed | run.opened) for run in runs)
    kinds = {posixpath.splitext(file)[1] for run in runs for file in run.changed}
    met = {*used, *chain.from_iterable(run.listed for run in runs)}
    files = sorted(file for file in met if posixpath.splitext(file)[1] in kinds)
    terms = frozenset(words(task[:TASK_CHARS]))
    symbols = _symbols(runs)
    count = len({run.instance_id for run in runs}) + 1
    rarity = _rarity(files)
    return {
        file: FileFeatures(
            folders=_share(_words_of(file)[0], terms, rarity),
            name=_share(_words_of(file)[1], terms, rarity),
            used=len(used.get(file, ())) / count,
            symbol=float(any(is_named(name, terms) for name in symbols.get(file, ()))),
        )
        for file in files
    }


def _rarity(files: Collection[str]) -> dict[str, float]:
    met = Counter(word for file in files for word in {*chain(*_words_of(file))})
    return {word: log(1 + len(files) / n) for word, n in met.items()}


def _share(named: Collection[str], terms: frozenset[str], rarity: Mapping[str, float]) -> float:
    # In a fixed order: floating-point sums depend on it.
    shared = sum(rarity[word] for word in named if word in terms)
    return shared / sum(rarity[word] for word in named) if shared else 0.0


@lru_cache(1 << 14)
def _words_of(file: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The words of the folders of *file*, and those of its name, each once."""
    folder, name = posixpath.split(file)
    stem = posixpath.splitext(name)[0]
    stem = posixpath.basename(folder) if stem == "__init__" else stem
    return tuple(dict.fromkeys(words(folder))), tuple(dict.fromkeys(words(stem)))


def is_named(symbol: str, terms: Collection[str]) -> bool:
    """True where a task with the words *terms* names a function, a class or the stem of a file."""
    return len(symbol) >= _SHORTEST_NAME and symbol.lower() in terms
