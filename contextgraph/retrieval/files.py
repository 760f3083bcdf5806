"""The files that a task is likely to change, by what runs of the repository did and saw."""

import posixpath
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, chain
from math import exp, log

from contextgraph.model import PlaybookFile, RepositoryPlaybook, Trajectory
from contextgraph.ranking import TASK_CHARS, word_counts
from contextgraph.retrieval.score import emphasised
from contextgraph.text import words
from contextgraph.trace import ProjectFacts

OUTSIDE = ("/", "..", "~")
_SHORTEST_NAME = 4
_IDENTIFIER = re.compile(r"[A-Za-z_]\w{3,}")
# Where the packages of a project may be.
_SOURCES = ("", "src/", "lib/")
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
        return frozenset(file for file in files if _is_own(file, facts.created))

    return KnownRun(run.instance_id, own(run.files), own(facts.opened), own(facts.listed), facts)


def _is_own(file: str, created: Collection[str]) -> bool:
    """Whether *file* is of the project and no test, and not *created* by a run."""
    is_outside = file in created or file.startswith(OUTSIDE) or "site-packages/" in file
    return bool(file) and not is_outside and not _TEST_FILE.search(file)


@dataclass(frozen=True, slots=True)
class FileFeatures:
    """What the probability that a file is changed for a task is computed from.

    *folders*: the share of the words of its folders that the task has, by their rarity; *name*: the
    greatest weight of a word of its own name in the task, by its rarity; *stem*: 1 where the task
    has its whole name; *used*: the share of tasks that changed or opened it, over their number + 1;
    *symbol*: 1 where the task has a name that it is known to define, or that is imported from it;
    *package*: 1 for an `__init__` file.
    """

    folders: float
    name: float
    stem: float
    used: float
    symbol: float
    package: float


# Fitted by `python -m benchmarks.playbook` (see benchmarks/README.md): a logistic regression.
COEFFICIENTS = {
    "folders": 1.15,
    "name": 0.58,
    "stem": 0.82,
    "used": 6.51,
    "symbol": 1.52,
    "package": -1.32,
}
INTERCEPT = -6.1


def ranked_files(runs: Sequence[KnownRun], task: str, limit: int) -> tuple[PlaybookFile, ...]:
    """At most *limit* files that *task* does not name, the most probable first; ties by path."""
    probable = sorted(
        (-_probability(features), path)
        for path, features in file_features(runs, task).items()
        if posixpath.basename(path) not in task
    )
    changed = _tasks_of((run.instance_id, run.changed) for run in runs)
    opened = _tasks_of((run.instance_id, run.opened) for run in runs)
    terms = frozenset(words(task[:TASK_CHARS]))
    return tuple(
        PlaybookFile(
            path,
            len(changed.get(path, ())),
            len(opened.get(path, ())),
            -negative,
            tuple(_symbols_to_name(_symbols(runs, path), terms)),
        )
        for negative, path in probable[:limit]
    )


def _tasks_of(files: Iterable[tuple[str, Collection[str]]]) -> dict[str, set[str]]:
    """File -> the instances that have it."""
    found: dict[str, set[str]] = {}
    for instance, paths in files:
        for path in paths:
            found.setdefault(path, set()).add(instance)
    return found


def _symbols(runs: Sequence[KnownRun], file: str) -> dict[str, set[str]]:
    """Function or class of *file* -> the instances that changed it."""
    found: dict[str, set[str]] = {}
    for run in runs:
        for name in run.facts.symbols.get(file, ()):
            found.setdefault(name, set()).add(run.instance_id)
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
    known = _names_by_file(runs, {*used, *chain.from_iterable(run.listed for run in runs)})
    files = sorted(file for file in known if posixpath.splitext(file)[1] in kinds)
    named = frozenset(_IDENTIFIER.findall(task[:TASK_CHARS]))
    lower = {name.lower() for name in named}
    weights = {word: 1 + log(count) for word, count in word_counts(task).items()}
    weights = emphasised(weights, task)
    count = len({run.instance_id for run in runs}) + 1
    rarity = _rarity(files)
    return {
        file: FileFeatures(
            folders=_share(folders, weights, rarity),
            name=max((weights[word] * rarity[word] for word in own if word in weights), default=0),
            stem=float(is_named(_stem(file), lower)),
            used=len(used.get(file, ())) / count,
            symbol=float(not named.isdisjoint(known[file])),
            package=float(posixpath.basename(file) == "__init__.py"),
        )
        for file in files
        for folders, own in [_words_of(file)]
    }


def _names_by_file(runs: Sequence[KnownRun], met: Collection[str]) -> dict[str, set[str]]:
    """The files that were *met*, or that imports show, and the names that are known in each."""
    places: dict[str, set[str]] = {}
    for run in runs:
        for place, names in chain(run.facts.symbols.items(), run.facts.names.items()):
            places.setdefault(place, set()).update(names)
    created = frozenset(chain.from_iterable(run.facts.created for run in runs))
    folders = frozenset(chain.from_iterable(map(_folders_of, met)))
    found: dict[str, set[str]] = {file: set() for file in met}
    for place, names in places.items():
        is_module = not posixpath.splitext(place)[1]
        file = _file_of_module(place, met, folders) if is_module else place
        if file in found or (is_module and _is_own(file, created)):
            found.setdefault(file, set()).update(names)
    return found


@lru_cache(1 << 14)
def _folders_of(file: str) -> tuple[str, ...]:
    """The folders that *file* is in, from the outermost."""
    return tuple(accumulate(file.split("/")[:-1], lambda folder, name: f"{folder}/{name}"))


def _file_of_module(module: str, met: Collection[str], folders: Collection[str]) -> str:
    """The file of a *module*, a path without ending, of the project; empty for another one."""
    paths = [f"{source}{module}" for source in _SOURCES]
    known = (file for path in paths for file in (f"{path}.py", f"{path}/__init__.py"))
    # A module beside known ones, in a package that is known.
    package = module.partition("/")[0]
    beside = (
        f"{path}.py"
        for path, source in zip(paths, _SOURCES, strict=True)
        if f"{source}{package}" in folders and path not in folders
    )
    return next(chain((file for file in known if file in met), beside), "")


def _rarity(files: Collection[str]) -> dict[str, float]:
    """How rare each word of the paths of *files* is among them, at most 1."""
    met = Counter(word for file in files for word in {*chain(*_words_of(file))})
    most = log(1 + len(files))
    return {word: log(1 + len(files) / n) / most for word, n in met.items()}


def _share(named: Collection[str], terms: Collection[str], rarity: Mapping[str, float]) -> float:
    # In a fixed order: floating-point sums depend on it.
    shared = sum(rarity[word] for word in named if word in terms)
    return shared / sum(rarity[word] for word in named) if shared else 0.0


@lru_cache(1 << 14)
def _words_of(file: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The words of the folders of *file*, and those of its name, each once."""
    folder = posixpath.dirname(file)
    return tuple(dict.fromkeys(words(folder))), tuple(dict.fromkeys(words(_stem(file))))


def _stem(file: str) -> str:
    """The name of *file* without its ending; of a package that of its folder."""
    folder, name = posixpath.split(file)
    stem = posixpath.splitext(name)[0]
    return posixpath.basename(folder) if stem == "__init__" else stem


def is_named(symbol: str, terms: Collection[str]) -> bool:
    """True where a task with the words *terms* names a function, a class or the stem of a file."""
    return len(symbol) >= _SHORTEST_NAME and symbol.lower() in terms
