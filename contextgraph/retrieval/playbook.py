"""The playbook of a repository, from the facts of its runs."""

import posixpath
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from itertools import chain
from math import exp, log
from typing import TypeAlias

from contextgraph.model import (
    CommandHistory,
    CommandRecord,
    FailingTest,
    PlaybookFile,
    RepositoryPlaybook,
    Scope,
    Trajectory,
)
from contextgraph.ports import Store
from contextgraph.retrieval.score import TASK_CHARS, bm25, word_counts
from contextgraph.text import masked_name, words
from contextgraph.trace import (
    SCRIPT,
    TESTS,
    ActionKind,
    CommandUse,
    ProjectFacts,
    command_use,
    project_facts,
)

# So many runs are looked at, solved ones first, then the newest: reading one takes 1.5 ms.
RUNS = 32
FILES = 20
_SHORTEST_NAME = 4
_FILES_SHOWN, _MIN_PROBABILITY = 3, 0.08
_REMEMBERED_RUNS = 4_096
_TEST_FILE = re.compile(
    r"(?:^|/)(?:test_[^/]*|[^/]*_test|conftest)\.\w+$|(?:^|/)(?:tests?|testing)/"
)
_OUTSIDE = ("/", "..", "~")


class Playbooks:
    """Makes playbooks; what a run shows is read once and remembered."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._runs: dict[str, KnownRun] = {}

    def of(
        self,
        repo: str,
        task: str = "",
        exclude_instances: frozenset[str] = frozenset(),
        as_of: datetime | None = None,
    ) -> RepositoryPlaybook:
        """The playbook of *repo*, its files ranked for *task*."""
        runs = self.runs(repo, exclude_instances, as_of)
        if not runs:
            return RepositoryPlaybook(repo)
        package = _package(runs)
        return RepositoryPlaybook(
            repo=repo,
            runs=len(runs),
            tasks=len({run.instance_id for run in runs}),
            files=tuple(ranked_files(runs, task))[:FILES],
            tests=_records(runs, ActionKind.TEST),
            scripts=_records(runs, ActionKind.RUN),
            setup=_records(runs, ActionKind.INSTALL),
            failing_tests=_failing(runs),
            package=package[0],
            package_tasks=package[1],
        )

    def history(
        self,
        repo: str,
        command: str,
        exclude_instances: frozenset[str] = frozenset(),
        as_of: datetime | None = None,
    ) -> CommandHistory:
        """How *command*, a shell line, went in *repo*; of several commands the last counts."""
        runs = self.runs(repo, exclude_instances, as_of)
        uses = [(run, use) for run in runs for use in run.facts.commands]
        made = {path for run in runs for path in run.facts.created}
        # A script that is not known is one that the run has just made.
        for created in (made, command.split()):
            asked = command_use(command, created)
            same = [(run, use) for run, use in uses if asked and _runner(use) == _runner(asked)]
            if asked and same:
                exact = [one for one in same if one[1].text == asked.text]
                return CommandHistory(
                    repo,
                    command,
                    len(runs),
                    form=_record(same, _runner),
                    first=_record(list(_first_of_each_run(same)), _runner),
                    exact=_record(exact, lambda use: use.text),
                    ways=_recorded(same, lambda use: (use.text, use.folder)),
                    others=tuple(_instead_of(asked, runs)),
                )
        return CommandHistory(repo, command, len(runs))

    def runs(
        self, repo: str, exclude_instances: frozenset[str], as_of: datetime | None = None
    ) -> list["KnownRun"]:
        """The runs of *repo* that are looked at."""
        hidden = frozenset(map(masked_name, exclude_instances))
        found = self._of_task(Scope(repo, hidden, as_of)) if repo else ()
        if repo and not found:
            spelled = self._store.runs.trajectories(self._store.runs.ids(repo=repo)).values()
            names = sorted({one.repo for one in spelled})
            found = [one for name in names for one in self._of_task(Scope(name, hidden, as_of))]
        return [self._known(one) for one in found[:RUNS]]

    def _of_task(self, scope: Scope) -> Sequence[Trajectory]:
        return self._store.runs.for_task(None, scope, RUNS)

    def _known(self, run: Trajectory) -> "KnownRun":
        known = self._runs.get(run.id)
        if known is None:
            raw = self._store.runs.raw(run.id)
            known = _known_run(run, project_facts(raw) if raw else ProjectFacts())
            if len(self._runs) >= _REMEMBERED_RUNS:
                self._runs.pop(next(iter(self._runs)), None)
            self._runs[run.id] = known
        return known


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


def _known_run(run: Trajectory, facts: ProjectFacts) -> KnownRun:
    def own(files: Iterable[str]) -> frozenset[str]:
        return frozenset(
            file
            for file in files
            if file not in facts.created
            and not file.startswith(_OUTSIDE)
            and not _TEST_FILE.search(file)
        )

    return KnownRun(run.instance_id, run.task, own(run.files), own(facts.opened), facts)


_Use: TypeAlias = tuple[KnownRun, CommandUse]


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
    """The files that runs changed, the most probable for *task* first; ties by path."""
    asked = frozenset(words(task[:TASK_CHARS]))
    found = [
        PlaybookFile(
            path,
            len(evidence.changed),
            len(evidence.opened),
            _probability(evidence.features),
            tuple(_symbols_to_name(evidence.symbols, asked)),
        )
        for path, evidence in file_evidence(runs, task).items()
    ]
    return sorted(found, key=lambda one: (-one.probability, one.path))


def _symbols_to_name(
    changed: Mapping[str, Collection[str]], asked: frozenset[str]
) -> Iterator[str]:
    for name, tasks in sorted(changed.items(), key=lambda one: (-len(one[1]), one[0])):
        if len(tasks) > 1 or _is_named(name, asked):
            yield name


def files_shown(playbook: RepositoryPlaybook) -> list[PlaybookFile]:
    """The first files of *playbook* that are probable enough, and that two tasks agree on."""
    return [
        one
        for one in playbook.files[:_FILES_SHOWN]
        if one.probability >= _MIN_PROBABILITY and max(one.changed, one.opened) > 1
    ]


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
    likeness = _likeness(runs, task)
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
    asked = frozenset(words(task[:TASK_CHARS]))
    count = len({run.instance_id for run in runs}) + 1
    kinds = {posixpath.splitext(file)[1] for file in changed}
    rarity = _rarity({*changed, *opened})
    return {
        file: FileEvidence(
            frozenset(did),
            frozenset(opened.get(file, ())),
            symbols.get(file, {}),
            FileFeatures(
                folders=_share(_words_of(file)[0], asked, rarity),
                name=_share(_words_of(file)[1], asked, rarity),
                changed=len(did) / count,
                opened=len(opened.get(file, ())) / count,
                nearest=max((likeness[one] for one in did), default=0.0),
                symbol=float(any(_is_named(name, asked) for name in symbols.get(file, ()))),
            ),
        )
        for file in sorted({*changed, *opened})
        if posixpath.splitext(file)[1] in kinds
        for did in [changed.get(file, set())]
    }


def _likeness(runs: Sequence[KnownRun], task: str) -> dict[str, float]:
    """Instance -> how similar its task is to *task*, relative to the most similar one."""
    texts = {run.instance_id: word_counts(run.task) for run in runs}
    scores = bm25(word_counts(task), list(texts.values()))
    most = max(scores, default=0.0) or 1.0
    return dict(zip(texts, (score / most for score in scores), strict=True))


def _rarity(files: Collection[str]) -> dict[str, float]:
    met = Counter(word for file in files for word in {*chain(*_words_of(file))})
    return {word: log(1 + len(files) / n) for word, n in met.items()}


def _share(named: Collection[str], asked: frozenset[str], rarity: Mapping[str, float]) -> float:
    # In a fixed order: floating-point sums depend on it.
    shared = sum(rarity[word] for word in named if word in asked)
    return shared / sum(rarity[word] for word in named) if shared else 0.0


@lru_cache(1 << 14)
def _words_of(file: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The words of the folders of *file*, and those of its name, each once."""
    folder, name = posixpath.split(file)
    stem = posixpath.splitext(name)[0]
    stem = posixpath.basename(folder) if stem == "__init__" else stem
    return tuple(dict.fromkeys(words(folder))), tuple(dict.fromkeys(words(stem)))


def _is_named(symbol: str, asked: frozenset[str]) -> bool:
    return len(symbol) >= _SHORTEST_NAME and symbol.lower() in asked


def _package(runs: Sequence[KnownRun]) -> tuple[str, int]:
    """The folder below which most tasks changed files, and how many did."""
    folders: dict[str, set[str]] = {}
    for run in runs:
        for file in run.changed:
            parts = file.split("/")[:-1]
            depth = 2 if parts[:1] in (["src"], ["lib"]) else 1
            if len(parts) >= depth:
                folders.setdefault("/".join(parts[:depth]), set()).add(run.instance_id)
    counted = sorted(
        ((len(did), folder) for folder, did in folders.items()), key=lambda one: (-one[0], one[1])
    )
    return (counted[0][1], counted[0][0]) if counted else ("", 0)


def _records(runs: Sequence[KnownRun], kind: ActionKind) -> tuple[CommandRecord, ...]:
    """How the commands of this *kind* went, by form: those that worked in most tasks first."""
    uses = [
        (run, use)
        for run in runs
        for use in run.facts.commands
        if use.kind is kind and not use.folder.startswith(_OUTSIDE)
    ]
    forms = {use.form for _, use in uses}

    def key(use: CommandUse) -> tuple[str, str]:
        chosen = f"{_runner(use)} {TESTS}"
        return chosen if chosen in forms else use.form, use.folder

    return _recorded(uses, key)


def _runner(use: CommandUse) -> str:
    return use.runner


def _first_of_each_run(uses: Sequence[_Use]) -> Iterator[_Use]:
    """The first of the *uses* of each run; those of one run stand together."""
    last: KnownRun | None = None
    for run, use in uses:
        if run is not last:
            yield run, use
        last = run


def _record(uses: Sequence[_Use], command: Callable[[CommandUse], str]) -> CommandRecord | None:
    """One record of all *uses*, which are of one *command*, in any folder."""
    return next(iter(_recorded(uses, lambda use: (command(use), ""))), None)


def _instead_of(asked: CommandUse, runs: Sequence[KnownRun]) -> Iterator[CommandRecord]:
    """Other ways to run tests, or a script, that mostly worked."""
    if asked.kind is ActionKind.TEST or asked.form.endswith(SCRIPT):
        for one in _records(runs, asked.kind):
            is_script = one.command.endswith(SCRIPT)
            is_same = one.command.removesuffix(f" {TESTS}") == _runner(asked)
            if one.is_agreed and not is_same and is_script == asked.form.endswith(SCRIPT):
                yield one


def _recorded(
    uses: Iterable[_Use], key: Callable[[CommandUse], tuple[str, str]]
) -> tuple[CommandRecord, ...]:
    """One record for each *key*, a command and a folder, of *uses*."""
    worked: dict[tuple[str, str], set[str]] = {}
    tried: dict[tuple[str, str], set[str]] = {}
    reasons: dict[tuple[str, str], Counter[str]] = {}
    for run, use in uses:
        found, instance = key(use), run.instance_id
        tried.setdefault(found, set()).add(instance)
        if use.ran:
            worked.setdefault(found, set()).add(instance)
        else:
            reasons.setdefault(found, Counter())[use.error_type] += 1
    records = (
        CommandRecord(*found, len(worked.get(found, ())), len(did), _most(reasons.get(found)))
        for found, did in tried.items()
    )
    return tuple(
        sorted(records, key=lambda one: (-one.worked, -one.tried, one.folder, one.command))
    )


def _most(counted: Counter[str] | None) -> str:
    counted = counted or Counter()
    return min(counted, key=lambda one: (-counted[one], one), default="")


def _failing(runs: Sequence[KnownRun]) -> tuple[FailingTest, ...]:
    failed: dict[str, set[str]] = {}
    for run in runs:
        for name in run.facts.failing:
            failed.setdefault(name, set()).add(run.instance_id)
    found = (FailingTest(name, len(tasks)) for name, tasks in failed.items() if len(tasks) > 1)
    return tuple(sorted(found, key=lambda one: (-one.tasks, one.name)))
