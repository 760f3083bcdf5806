"""The playbook of a repository, from the facts of its runs."""

import posixpath
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
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

# So many runs are looked at: solved ones first, then the newest.
RUNS = 64
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
        self._facts: dict[str, ProjectFacts] = {}

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
            tasks=len({run.trajectory.instance_id for run in runs}),
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
            same = [(run, use) for run, use in uses if asked and use.runner == asked.runner]
            if asked and same:
                exact = [one for one in same if one[1].text == asked.text]
                return CommandHistory(
                    repo,
                    command,
                    len(runs),
                    next(iter(_recorded(same, lambda use: (use.runner, ""))), None),
                    next(iter(_recorded(exact, lambda use: (use.text, ""))), None),
                    _recorded(same, lambda use: (use.text, use.folder)),
                    tuple(_instead_of(asked, runs)),
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
        return [KnownRun(one, self._facts_of(one.id)) for one in found[:RUNS]]

    def _of_task(self, scope: Scope) -> Sequence[Trajectory]:
        return self._store.runs.for_task(None, scope, RUNS)

    def _facts_of(self, run: str) -> ProjectFacts:
        known = self._facts.get(run)
        if known is None:
            raw = self._store.runs.raw(run)
            known = project_facts(raw) if raw else ProjectFacts()
            if len(self._facts) >= _REMEMBERED_RUNS:
                self._facts.pop(next(iter(self._facts)), None)
            self._facts[run] = known
        return known


@dataclass(frozen=True, slots=True)
class KnownRun:
    """A run of the repository, and what it shows of the project."""

    trajectory: Trajectory
    facts: ProjectFacts

    @property
    def changed(self) -> frozenset[str]:
        """Files of the project itself that it changed."""
        return self._own(self.trajectory.files)

    @property
    def opened(self) -> frozenset[str]:
        """Files of the project itself that it looked at."""
        return self._own(self.facts.opened)

    def _own(self, files: Iterable[str]) -> frozenset[str]:
        made = self.facts.created
        return frozenset(
            file
            for file in files
            if file not in made and not file.startswith(_OUTSIDE) and not _TEST_FILE.search(file)
        )


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
    "folders": 0.84,
    "name": 1.58,
    "changed": 2.07,
    "opened": 3.85,
    "nearest": 0.82,
    "symbol": 1.61,
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
        instance = run.trajectory.instance_id
        for file in run.changed:
            changed.setdefault(file, set()).add(instance)
        for file in run.opened:
            opened.setdefault(file, set()).add(instance)
        for file, names in run.facts.symbols.items():
            of_file = symbols.setdefault(file, {})
            for name in names:
                of_file.setdefault(name, set()).add(instance)
    asked = frozenset(words(task[:TASK_CHARS]))
    count = len({run.trajectory.instance_id for run in runs}) + 1
    kinds = {posixpath.splitext(file)[1] for file in changed}
    rarity = _rarity(frozenset((*changed, *opened)))
    return {
        file: FileEvidence(
            frozenset(did),
            frozenset(opened.get(file, ())),
            symbols.get(file, {}),
            FileFeatures(
                folders=_share(words(posixpath.dirname(file)), asked, rarity),
                name=_share(words(_stem(file)), asked, rarity),
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
    texts = {run.trajectory.instance_id: word_counts(run.trajectory.task) for run in runs}
    scores = bm25(word_counts(task), list(texts.values()))
    most = max(scores, default=0.0) or 1.0
    return dict(zip(texts, (score / most for score in scores), strict=True))


def _rarity(files: frozenset[str]) -> dict[str, float]:
    met = Counter(word for file in files for word in set(words(file)))
    return {word: log(1 + len(files) / n) for word, n in met.items()}


def _share(named: Sequence[str], asked: frozenset[str], rarity: Mapping[str, float]) -> float:
    weights = {word: rarity.get(word, 1.0) for word in named}
    total = sum(weights.values())
    return (
        sum(weight for word, weight in weights.items() if word in asked) / total if total else 0.0
    )


def _is_named(symbol: str, asked: frozenset[str]) -> bool:
    return len(symbol) >= _SHORTEST_NAME and symbol.lower() in asked


def _stem(file: str) -> str:
    name = posixpath.splitext(posixpath.basename(file))[0]
    return name if name != "__init__" else posixpath.basename(posixpath.dirname(file))


def _package(runs: Sequence[KnownRun]) -> tuple[str, int]:
    """The folder below which most tasks changed files, and how many did."""
    folders: dict[str, set[str]] = {}
    for run in runs:
        for file in run.changed:
            parts = file.split("/")[:-1]
            depth = 2 if parts[:1] in (["src"], ["lib"]) else 1
            if len(parts) >= depth:
                folders.setdefault("/".join(parts[:depth]), set()).add(run.trajectory.instance_id)
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
        chosen = f"{use.runner} {TESTS}"
        return chosen if chosen in forms else use.form, use.folder

    return _recorded(uses, key)


def _instead_of(asked: CommandUse, runs: Sequence[KnownRun]) -> Iterator[CommandRecord]:
    """Other ways to run tests, or a script, that mostly worked."""
    if asked.kind is ActionKind.TEST or asked.form.endswith(SCRIPT):
        for one in _records(runs, asked.kind):
            is_script = one.command.endswith(SCRIPT)
            is_same = one.command.removesuffix(f" {TESTS}") == asked.runner
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
        found, instance = key(use), run.trajectory.instance_id
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
            failed.setdefault(name, set()).add(run.trajectory.instance_id)
    found = (FailingTest(name, len(tasks)) for name, tasks in failed.items() if len(tasks) > 1)
    return tuple(sorted(found, key=lambda one: (-one.tasks, one.name)))
