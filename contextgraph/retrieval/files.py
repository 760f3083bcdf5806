"""The files that a task is likely to change, by what runs of the repository changed and opened."""

import posixpath
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from math import exp, log

from contextgraph.model import PlaybookFile, RepositoryPlaybook, Trajectory
from contextgraph.ranking import TASK_CHARS, bm25, word_counts
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
    """A run of the repository: its task, and what it shows of the project.

    *changed* and *opened* are the files of the project itself that it changed and looked at.
    """

    instance_id: str
    task: str
    changed: frozenset[str]
    opened: frozenset[str]
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

    return KnownRun(run.instance_id, run.task, own(run.files), own(facts.opened), facts)


@dataclass(frozen=True, slots=True)
class FileFeatures:
    """What the probability that a file is changed for a task is computed from.

    *folders*, *name*: the share of the words of its path and of its own name that the task has, by
    their rarity; *changed*, *opened*: the share of tasks that did, over their number + 1;
    *nearest*: how similar the most similar task is that changed it; *symbol*: 1 where the task
    names a function or class that was changed in it.
    """

    folders: float
    name: float
    changed: float
    opened: float
    nearest: float
    symbol: float


# Fitted by `python -m benchmarks.playbook` (see benchmarks/README.md): a logistic regression.
COEFFICIENTS = {
    "folders": 0.76,
    "name": 1.68,
    "changed": 1.21,
    "opened": 4.32,
    "nearest": 1.02,
    "symbol": 1.08,
}
INTERCEPT = -5.55


def ranked_files(runs: Sequence[KnownRun], task: str) -> list[PlaybookFile]:
    """The files that *task* does not name, the most probable for it first; ties by path."""
    terms = frozenset(words(task[:TASK_CHARS]))
    found = [
        PlaybookFile(
            path,
            len(evidence.changed),
            len(evidence.opened),
            _probability(evidence.features),
            tuple(_symbols_to_name(evidence.symbols, terms)),
        )
        for path, evidence in file_evidence(runs, task).items()
        if posixpath.basename(path) not in task
    ]
    return sorted(found, key=lambda one: (-one.probability, one.path))


def _symbols_to_name(
    changed: Mapping[str, Collection[str]], terms: frozenset[str]
) -> Iterator[str]:
    for name, tasks in sorted(changed.items(), key=lambda one: (-len(one[1]), one[0])):
        if len(tasks) > 1 or is_named(name, terms):
            yield name


def files_shown(playbook: RepositoryPlaybook) -> list[PlaybookFile]:
    """The first files of *playbook* that most tasks changed.

    Of other files, even of a probability of .5, most were wrong (docs/evaluation.md).
    """
    return [one for one in playbook.files[:_FILES_SHOWN] if 2 * one.changed > playbook.tasks + 1]


def _probability(features: FileFeatures) -> float:
    total = sum(weight * getattr(features, name) for name, weight in COEFFICIENTS.items())
    return 1 / (1 + exp(-INTERCEPT - total))


@dataclass(frozen=True, slots=True)
class FileEvidence:
    """The instances that changed and opened a file, or changed *symbols* in it; its features."""

    changed: frozenset[str]
    opened: frozenset[str]
    symbols: Mapping[str, Collection[str]]
    features: FileFeatures


def file_evidence(runs: Sequence[KnownRun], task: str) -> dict[str, FileEvidence]:
    """Path -> what speaks for it, of all files that any of *runs* changed or opened."""
    changed: dict[str, set[str]] = {}
    opened: dict[str, set[str]] = {}
    symbols: dict[str, dict[str, set[str]]] = {}
    similarities = _similarities(runs, task)
    for run in runs:
        instance = run.instance_id
        for file in run.changed:
            changed.setdefault(file, set()).add(instance)
        for file in run.opened:
            opened.setdefault(file, set()).add(instance)
        for file, names in run.facts.symbols.items():
            of_file = symbols.setdefault(file, {})
            for name in names:
                of_file.setdefault(name, set()).add(instance)
    terms = frozenset(words(task[:TASK_CHARS]))
    count = len({run.instance_id for run in runs}) + 1
    kinds = {posixpath.splitext(file)[1] for file in changed}
    rarity = _rarity({*changed, *opened})
    return {
        file: FileEvidence(
            frozenset(did),
            frozenset(opened.get(file, ())),
            symbols.get(file, {}),
            FileFeatures(
                folders=_share(_words_of(file)[0], terms, rarity),
                name=_share(_words_of(file)[1], terms, rarity),
                changed=len(did) / count,
                opened=len(opened.get(file, ())) / count,
                nearest=max((similarities[one] for one in did), default=0.0),
                symbol=float(any(is_named(name, terms) for name in symbols.get(file, ()))),
            ),
        )
        for file in sorted({*changed, *opened})
        if posixpath.splitext(file)[1] in kinds
        for did in [changed.get(file, set())]
    }


def _similarities(runs: Sequence[KnownRun], task: str) -> dict[str, float]:
    """Instance -> how similar its task is to *task*, relative to the most similar one."""
    texts = {run.instance_id: word_counts(run.task) for run in runs}
    scores = bm25(word_counts(task), list(texts.values()))
    most = max(scores, default=0.0) or 1.0
    return dict(zip(texts, (score / most for score in scores), strict=True))


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
