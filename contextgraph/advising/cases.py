"""Past runs that the channels found: which are shown, and which files such a task changes."""

import posixpath
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set as AbstractSet
from datetime import datetime
from functools import lru_cache
from itertools import accumulate, chain
from math import log
from operator import itemgetter
from pathlib import PurePosixPath
from typing import NamedTuple

from msgspec import Struct

from contextgraph.advising.channels import (
    SAME_TEMPLATE,
    TITLE_CHARS,
    CaseHit,
    Query,
    about_another,
    emphasised,
    final_score,
    ranks_in,
    scope_level,
    signature_level,
)
from contextgraph.advising.evidence import advice_ids
from contextgraph.advising.gate import (
    TYPICAL_DISTANCE,
    CaseFeatures,
    Gate,
    case_probability,
    credits_for,
    is_supported,
)
from contextgraph.knowledge.fitted import fitted
from contextgraph.knowledge.ranking import blend
from contextgraph.model import (
    ChannelRank,
    Family,
    Found,
    Outcome,
    PassageKind,
    PassageScope,
    PlaybookFile,
    RecoveryCandidate,
    Remedy,
    RepositoryPlaybook,
    RunFacts,
    ScopeLevel,
    SignatureLevel,
    SimilarCase,
    Trajectory,
    Why,
    vouches,
)
from contextgraph.model.values import replace
from contextgraph.store.memory_store import Store
from contextgraph.text import (
    TASK_CHARS,
    addresses_reader,
    clip,
    gives_instructions,
    regex,
    stem,
    stems,
    title_of,
    word_counts,
    words,
)

FRAGMENTS_SHOWN = 3
# So many passages of a session are looked through for a turn of a person.
_PASSAGES = 1_000
# Kinds of hits that say how a session began.
_OPENINGS = ("task", "session")
# For how many tasks the typical rank of a related task in time counts beside the one that is seen.
_FEW = 8
# The lines of a traceback that name files, of Python and of others.
_PLACES = regex(r'^.*(?:\bFile "|\.\w+:\d+).*$', re.MULTILINE)


Rankings = Mapping[str, Sequence[CaseHit]]


def cases_of(
    query: Query,
    by_channel: Rankings,
    gate: Gate,
    store: Store,
    limit: int,
    weights: Mapping[str, float],
) -> tuple[SimilarCase, ...]:
    """Fuse *by_channel* into one ranking of at most *limit* runs; empty if the gate admits none."""
    ranks = ranks_in(
        {
            name: [(hit.trajectory.id, hit.evidence) for hit in hits]
            for name, hits in by_channel.items()
        }
    )
    ranking = ranking_of(query, by_channel, weights, limit)
    cases = [
        _case(query, ranked, ranks[ranked.run], gate, is_first=place == 0)
        for place, ranked in enumerate(ranking)
    ]
    if not any(case.is_shown or case.probability >= gate.min_case_precision for case in cases):
        return ()
    here = [case.trajectory_id for case in cases if case.why.scope is ScopeLevel.REPO]
    return _without_quarantined(_with_parts(cases, here, store), store)


class RankedRun(NamedTuple):
    """A past run with what all channels found of it."""

    run: str
    hits: Sequence[CaseHit]
    score: float
    features: CaseFeatures


def ranking_of(
    query: Query, by_channel: Rankings, weights: Mapping[str, float], limit: int
) -> list[RankedRun]:
    """Return the best run in *by_channel* of each of *limit* instances, best first."""
    by_run: dict[str, list[CaseHit]] = {}
    for hit in chain.from_iterable(by_channel.values()):
        by_run.setdefault(hit.trajectory.id, []).append(hit)
    given = {name: weights[name] for name in by_channel if by_channel[name]}
    scores = _scored(by_run, blend(_channel_scores(by_run, by_channel), given))
    ordered = sorted(by_run, key=lambda run: (-scores[run], run))
    best: dict[str, str] = {}
    for run in ordered:
        best.setdefault(by_run[run][0].trajectory.instance_id, run)
    runs = [*best.values()]
    closeness = {run: scores[run] / scores[runs[0]] for run in runs}
    # The same task, given again, is no rival.
    rivals = (
        run for run in runs if by_run[run][0].trajectory.task != by_run[runs[0]][0].trajectory.task
    )
    lead = 1 - closeness.get(next(rivals, ""), 0.0)
    distances = _distances(query.asked_at, [by_run[run][0].trajectory for run in runs])
    return [
        RankedRun(
            run,
            by_run[run],
            scores[run],
            _features(query, by_run[run], closeness[run], 0.0 if place else lead, distances[run]),
        )
        for place, run in enumerate(runs[:limit])
    ]


def _distances(asked_at: datetime | None, runs: Sequence[Trajectory]) -> dict[str, float]:
    """Run -> the share of *runs* that are nearer in time to *asked_at*, or newer; by days.

    Among few a rank says little, and within a day none: see `TYPICAL_DISTANCE`.
    """
    asked_at = asked_at or max((run.seen_at for run in runs), default=None)
    days = {run.id: abs(asked_at - run.seen_at).days for run in runs} if asked_at else {}
    ordered = sorted(days.values())
    if not ordered or ordered[0] == ordered[-1]:
        return dict.fromkeys((run.id for run in runs), TYPICAL_DISTANCE)
    return {
        run: (
            (bisect_left(ordered, of_run) + bisect_right(ordered, of_run)) / 2
            + _FEW * TYPICAL_DISTANCE
        )
        / (len(ordered) + _FEW)
        for run, of_run in days.items()
    }


def _features(
    query: Query, hits: Sequence[CaseHit], closeness: float, lead: float, distance: float
) -> CaseFeatures:
    similarity = max(hits[0].task_overlap, *(hit.similarity for hit in hits))
    shared = query.weights.keys() & word_counts(hits[0].trajectory.task).keys()
    return CaseFeatures(similarity, len(shared), closeness, lead, distance)


def _channel_scores(
    runs: Mapping[str, Sequence[CaseHit]], by_channel: Rankings
) -> dict[str, dict[str, float]]:
    """Run -> its score in each channel, whichever found it; by words, except for two channels."""
    # What is not among the nearest is at most as near as the last of them.
    least = min((hit.similarity for hit in by_channel.get("semantic", ())), default=0.0)
    return {
        run: {
            **dict.fromkeys(by_channel, hits[0].task_overlap),
            "state": max((hit.evidence for hit in hits if hit.fragments), default=0.0),
            "semantic": max(least, *(hit.similarity for hit in hits)),
        }
        for run, hits in runs.items()
    }


def _scored(
    runs: Mapping[str, Sequence[CaseHit]], blended: Mapping[str, float]
) -> dict[str, float]:
    """Run -> its final score: all are lifted by what speaks for the best, so the blend orders."""
    everything = list(chain.from_iterable(runs.values()))
    newest = max((hit.trajectory.seen_at for hit in everything), default=None)
    evidence = max((hit.evidence for hit in everything), default=0.0)
    return {
        run: final_score(blended[run], evidence, hits[0].trajectory.seen_at, newest)
        for run, hits in runs.items()
    }


def _case(
    query: Query,
    ranked: RankedRun,
    ranks: tuple[ChannelRank, ...],
    gate: Gate,
    *,
    is_first: bool,
) -> SimilarCase:
    trajectory = ranked.hits[0].trajectory
    scope = scope_level(trajectory.repo, query.state.repo)
    fragments = tuple(dict.fromkeys(fragment for hit in ranked.hits for fragment in hit.fragments))
    is_same_task = trajectory.instance_id == query.state.instance_id
    probability = 1.0 if is_same_task else case_probability(ranked.features)
    at_same_file = bool(fragments) and scope is ScopeLevel.REPO
    # What is as probable and only second to another is hardly ever linked, unless it is named. Of
    # its repository the first one is shown as soon as it is ranked: tasks of one project share
    # words, so that each is less probable by them than it is linked.
    is_likely = is_first and scope is ScopeLevel.REPO and probability >= gate.min_case_precision
    is_close = is_likely or (
        probability >= gate.close_case_precision and (is_first or _names_file(query, trajectory))
    )
    # What a run changed that failed is no evidence of what has to be changed.
    may_be_right = trajectory.outcome is not Outcome.FAILED
    return SimilarCase(
        trajectory_id=trajectory.id,
        instance_id=trajectory.instance_id,
        repo=trajectory.repo,
        outcome=trajectory.outcome,
        summary=trajectory.summary,
        files=trajectory.files,
        fragments=fragments,
        score=ranked.score,
        why=Why(channels=ranks, scope=scope, support=1, trajectories=(trajectory.id,)),
        title=_shown_title(trajectory.task),
        source=trajectory.contributor,
        probability=probability,
        is_shown=at_same_file or is_same_task or (is_close and may_be_right),
    )


def _shown_title(task: str) -> str:
    """Return the title of *task*, judged before it is cut: its beginning may look harmless."""
    line = title_of(task)
    title = clip(line, TITLE_CHARS)
    is_hidden = addresses_reader(line) and not gives_instructions(title)
    return "(reads like an instruction)" if is_hidden else title


def _names_file(query: Query, trajectory: Trajectory) -> bool:
    """True where the task of *query* names a file that *trajectory* changed.

    A traceback names all that was called, and the name of the project is in many tasks.
    """
    terms = word_counts(_PLACES.sub("", query.state.task_description))
    stems = {PurePosixPath(file).stem for file in trajectory.files}
    project = query.state.repo.rpartition("/")[2].casefold()
    return any(is_named(stem, terms) for stem in stems if stem.casefold() != project)


def session_of_task(
    found: Sequence[Found], repo: str, excluded: Collection[str], gate: Gate, store: Store
) -> tuple[SimilarCase, ...]:
    """Return the best session of *found*, by a search for a task of *repo*; often none.

    With what was said in it about the task. None where it answers too rarely for *gate*, its source
    does not vouch here, or no person spoke in it after the task: the forms of issues share words,
    and such tasks are compared as tasks. Of *excluded* instances none.
    """
    likely = (one for one in found if one.probability >= gate.min_session_precision)
    best = next((one for one in likely if one.session not in excluded), None)
    if best is None:
        return ()
    run = store.runs.trajectories([best.run]).get(best.run)
    if run is None or not vouches(run.contributor, run.repo, repo):
        return ()
    title = _shown_title(run.title or run.task)
    if not title:
        return ()
    passages = store.passages.newest(PassageScope(runs=(run.id,)), _PASSAGES)
    if not any(one.kind is PassageKind.TURN and not one.by_agent for one in passages):
        return ()
    # Answers say more of a cause than requests do; how it began is the title.
    said = sorted(
        (one for one in found if one.run == run.id and one.kind not in _OPENINGS),
        key=lambda one: one.speaker == "user",
    )
    harmless = (
        one.text for one in said if not (gives_instructions(one.text) or addresses_reader(one.text))
    )
    case = _case_of(run, repo, best.probability, title)
    case = replace(case, score=best.score, cause=next(harmless, ""))
    return _without_quarantined(_with_parts([case], [run.id], store), store)


def cases_at_error(
    query: Query,
    candidates: Iterable[RecoveryCandidate],
    remedies: Iterable[Remedy],
    gate: Gate,
    store: Store,
    limit: int,
) -> tuple[SimilarCase, ...]:
    """Return the runs of *candidates* that cleared the very error of *query*, at most *limit*.

    Each with the fragment in which it did. Those of the repository come first, then those whose
    remedy is probable enough for *gate*; a repository knows its own errors. The probability is that
    of the remedy: what is of none of *remedies*, or of one that is not shown, cannot help here.
    """
    error, scope = query.signature, query.state.repo
    if error is None:
        return ()
    probable: dict[str, float] = {}
    for remedy in remedies:
        for run in () if remedy.silence else remedy.why.trajectories:
            probable[run] = max(remedy.probability, probable.get(run, 0.0))
    best: dict[str, tuple[tuple[bool, bool, float, datetime, str], RecoveryCandidate]] = {}
    for one in candidates:
        if (share := probable.get(one.trajectory_id)) is None:
            continue
        is_near = scope_level(one.repo, scope) is ScopeLevel.REPO
        if not (is_near or share >= gate.min_precision):
            continue
        level = signature_level(error, one)
        if level in SAME_TEMPLATE and not about_another(error, one):
            rank = (is_near, level is SignatureLevel.PLACE, share, one.seen_at, one.fragment_id)
            if one.instance_id not in best or best[one.instance_id][0] < rank:
                best[one.instance_id] = rank, one
    chosen = sorted(best.values(), key=itemgetter(0), reverse=True)[:limit]
    if not chosen:
        return ()
    runs, fragments, recoveries = store.runs.moments(
        [one.trajectory_id for _, one in chosen], [one.fragment_id for _, one in chosen]
    )
    cases = [
        replace(
            _case_of(past, scope, share, _shown_title(past.task)),
            fragments=(fragments[one.fragment_id],) if one.fragment_id in fragments else (),
        )
        for (_, _, share, _, _), one in chosen
        if (past := runs.get(one.trajectory_id))
    ]
    return _without_quarantined(cases, store, recoveries)


def _case_of(run: Trajectory, repo: str, probability: float, title: str) -> SimilarCase:
    """Return *run* as a case for a question about *repo*, scored by its *probability*."""
    return SimilarCase(
        trajectory_id=run.id,
        instance_id=run.instance_id,
        repo=run.repo,
        outcome=run.outcome,
        summary=run.summary,
        files=run.files,
        fragments=(),
        score=probability,
        why=Why((), scope_level(run.repo, repo), 1, (run.id,)),
        title=title,
        source=run.contributor,
        probability=probability,
    )


def _with_parts(
    cases: Sequence[SimilarCase], ours: Sequence[str], store: Store
) -> tuple[SimilarCase, ...]:
    """Return *cases* with fragments, and those of the runs *ours* with what the run changed."""
    others = [case.trajectory_id for case in cases if not case.fragments]
    known, fragments = store.runs.facts_and_fragments(ours, others, FRAGMENTS_SHOWN)
    return tuple(
        replace(
            case,
            changed=facts.patch if (facts := known.get(case.trajectory_id)) else case.changed,
            fragments=tuple(fragments.get(case.trajectory_id, case.fragments)),
        )
        for case in cases
    )


def _without_quarantined(
    cases: Sequence[SimilarCase],
    store: Store,
    recoveries: Sequence[RecoveryCandidate] | None = None,
) -> tuple[SimilarCase, ...]:
    """*cases* without those that would cite quarantined advice.

    *recoveries* are those of their fragments where they are known; they are asked for otherwise.
    """
    cited = {fragment.id: {fragment.id} for case in cases for fragment in case.fragments}
    # A run may meet an error a hundred times; equal actions of a store are one object.
    names: dict[tuple[Family, str, int], frozenset[str]] = {}
    if recoveries is None:
        recoveries = store.recoveries.of_fragments(cited)
    for recovery in recoveries:
        did = (recovery.family, recovery.error_type, id(recovery.actions))
        if did not in names:
            names[did] = advice_ids(recovery)
        cited[recovery.fragment_id] |= names[did]
    known = credits_for(store, chain.from_iterable(cited.values()))
    if known.distrusted:
        runs = store.runs.trajectories(case.trajectory_id for case in cases)
        cases = [
            case for case in cases if runs[case.trajectory_id].contributor not in known.distrusted
        ]
    harmful = {
        fragment
        for fragment, names in cited.items()
        if any(known.of(name).is_quarantined for name in names)
    }
    return tuple(
        case for case in cases if harmful.isdisjoint(fragment.id for fragment in case.fragments)
    )


OUTSIDE = ("/", "..", "~")
_SHORTEST_NAME = 4
_IDENTIFIER = regex(r"[A-Za-z_]\w{3,}")
# Where the packages of a project may be.
_SOURCES = ("", "src/", "lib/")
_FILES_SHOWN = 3
_TEST_FILE = regex(r"(?:^|/)(?:test_[^/]*|[^/]*_test|conftest)\.\w+$|(?:^|/)(?:tests?|testing)/")


class KnownRun(Struct, frozen=True):
    """A run of the repository: its instance, and what it shows of the project.

    *changed*, *opened* and *listed* are the files of the project itself that it changed, looked at
    and met in listings and searches. *source* supplied it.
    """

    instance_id: str
    changed: frozenset[str]
    opened: frozenset[str]
    listed: frozenset[str]
    facts: RunFacts
    source: str = ""


def known_runs(runs: Sequence[tuple[Trajectory, RunFacts]]) -> list[KnownRun]:
    """Return *runs* with the facts that they show: of named sources only supported ones."""
    # Runs of a project meet the same files.
    met = frozenset(
        chain.from_iterable((*run.files, *facts.opened, *facts.listed) for run, facts in runs)
    )
    files = frozenset(filter(_is_own, met))
    known = [
        KnownRun(
            run.instance_id,
            changed=own.intersection(run.files),
            opened=own.intersection(facts.opened),
            listed=own.intersection(facts.listed),
            facts=facts,
            source=run.contributor,
        )
        for run, facts in runs
        for own in [files.difference(facts.created)]
    ]
    return _supported(known) if any(run.source for run in known) else known


def _supported(runs: list[KnownRun]) -> list[KnownRun]:
    """Return *runs* without files, symbols and failing tests that only one named source shows.

    How commands went is kept: what counts them says so.
    """
    sources: dict[tuple[str, str], set[str]] = {}
    for run in runs:
        for fact in _facts_of(run):
            sources.setdefault(fact, set()).add(run.source)
    known = {fact for fact, of in sources.items() if is_supported(of, several_sources=True)}

    def files(paths: frozenset[str]) -> frozenset[str]:
        return frozenset(path for path in paths if ("", path) in known)

    return [
        replace(
            run,
            changed=files(run.changed),
            opened=files(run.opened),
            listed=files(run.listed),
            facts=replace(
                run.facts,
                symbols={
                    path: tuple(name for name in names if (path, name) in known)
                    for path, names in run.facts.symbols.items()
                },
                failing=tuple(test for test in run.facts.failing if ("failing", test) in known),
            ),
        )
        for run in runs
    ]


def _facts_of(run: KnownRun) -> Iterator[tuple[str, str]]:
    """Yield the files, the symbols by file and the failing tests of *run*."""
    yield from (("", path) for path in run.changed | run.opened | run.listed)
    yield from ((path, name) for path, names in run.facts.symbols.items() for name in names)
    yield from (("failing", test) for test in run.facts.failing)


def _is_own(file: str) -> bool:
    """Return True if *file* is of the project, and no test."""
    is_outside = file.startswith(OUTSIDE) or "site-packages/" in file
    is_test = "test" in file and _TEST_FILE.search(file)  # the word is found in a tenth of the time
    return bool(file) and not is_outside and not is_test


def ranked_files(runs: Sequence[KnownRun], task: str, limit: int) -> tuple[PlaybookFile, ...]:
    """Return at most *limit* files that *task* does not name, most probable first, ties by path."""
    model = fitted("files")
    probable = sorted(
        (-model.probability(features), path)
        for path, features in file_features(runs, task).items()
        if path.rpartition("/")[2] not in task
    )[:limit]
    changed = _tasks_of((run.instance_id, run.changed) for run in runs)
    opened = _tasks_of((run.instance_id, run.opened) for run in runs)
    symbols = _symbols(runs, frozenset(path for _, path in probable))
    terms = frozenset(words(task[:TASK_CHARS]))
    return tuple(
        PlaybookFile(
            path,
            len(changed.get(path, ())),
            len(opened.get(path, ())),
            -negative,
            tuple(
                name
                for name, tasks in sorted(
                    symbols.get(path, {}).items(), key=lambda entry: (-len(entry[1]), entry[0])
                )
                if len(tasks) > 1 or is_named(name, terms)
            ),
        )
        for negative, path in probable
    )


def _tasks_of(files: Iterable[tuple[str, Collection[str]]]) -> dict[str, set[str]]:
    """File -> the instances that have it."""
    tasks: dict[str, set[str]] = {}
    for instance, paths in files:
        for path in paths:
            tasks.setdefault(path, set()).add(instance)
    return tasks


def _symbols(runs: Sequence[KnownRun], files: frozenset[str]) -> dict[str, dict[str, set[str]]]:
    """File, of *files* -> function or class -> the instances that changed it."""
    symbols: dict[str, dict[str, set[str]]] = {}
    for run in runs:
        for file in files.intersection(run.facts.symbols):
            for name in run.facts.symbols[file]:
                symbols.setdefault(file, {}).setdefault(name, set()).add(run.instance_id)
    return symbols


def files_shown(playbook: RepositoryPlaybook) -> list[PlaybookFile]:
    """Return the first files of *playbook* that five tasks or more, and three of four, changed.

    Of other files, even of a probability of .5, most were wrong (docs/evaluation.md).
    """
    least = max(5, 0.75 * playbook.tasks)
    return [file for file in playbook.files[:_FILES_SHOWN] if file.changed >= least]


def file_features(runs: Sequence[KnownRun], task: str) -> dict[str, dict[str, float]]:
    """Return features by path of the files that *runs* met, of kinds that runs changed.

    They say how probably a task changes a file. *folders*: the share of the words of its folders
    that the task has, by their rarity; *name*: the same of its own name, times the greatest weight
    and rarity of one of these words, as ln(1 + x); *used*: the share of tasks that changed or
    opened it, over their number + 1; *symbol*: 1 where the task has a name that it is known to
    define, or that is imported from it; *package*: 1 for an `__init__` file. Words count without
    their English endings.
    """
    used = _tasks_of((run.instance_id, run.changed | run.opened) for run in runs)
    kinds = {_name_of(file).ending for run in runs for file in run.changed}
    named = frozenset(_IDENTIFIER.findall(task[:TASK_CHARS]))
    met = frozenset(chain(used, *(run.listed for run in runs)))
    imported, defining = _places(runs, met, named)
    files = sorted(file for file in met | imported if _name_of(file).ending in kinds)
    weights = _weights(task)
    count = len({run.instance_id for run in runs}) + 1
    rarity = _rarity(files)
    return {
        file: {
            "folders": _share(name.folders, weights.keys(), rarity),
            "name": _name(name.words, weights, rarity),
            "used": len(used.get(file, ())) / count,
            "symbol": float(file in defining),
            "package": float(name.is_package),
        }
        for file in files
        for name in [_name_of(file)]
    }


def _weights(task: str) -> dict[str, float]:
    """The weight of each word of *task*, without its ending."""
    counted = {word: 1 + log(count) for word, count in word_counts(task).items()}
    weights: dict[str, float] = {}
    for word, weight in emphasised(counted, task).items():
        weights[stem(word)] = max(weight, weights.get(stem(word), 0.0))
    return weights


def _name(words: Sequence[str], weights: Mapping[str, float], rarity: Mapping[str, float]) -> float:
    """The feature `name` of a file whose own name has these *words*."""
    shared = [weights[word] * rarity[word] for word in words if word in weights]
    return log(1 + _share(words, weights.keys(), rarity) * max(shared)) if shared else 0.0


def _places(
    runs: Sequence[KnownRun], met: Collection[str], named: frozenset[str]
) -> tuple[frozenset[str], frozenset[str]]:
    """The files that imports show, and the files that have a name of *named*."""
    folders = frozenset(chain.from_iterable(map(_folders_of, met)))
    modules = {place for run in runs for place in run.facts.names if not _name_of(place).ending}
    files = {module: _file_of_module(module, met, folders) for module in modules}
    created = frozenset(chain.from_iterable(run.facts.created for run in runs))
    defining = (
        files.get(place, place)
        for run in runs
        for place, names in chain(run.facts.symbols.items(), run.facts.names.items())
        if not named.isdisjoint(names)
    )
    imported = frozenset(files.values()) - created
    return frozenset(filter(_is_own, imported)), frozenset(defining)


@lru_cache(1 << 14)
def _folders_of(file: str) -> tuple[str, ...]:
    """The folders that *file* is in, from the outermost."""
    return tuple(accumulate(file.split("/")[:-1], lambda folder, name: f"{folder}/{name}"))


def _file_of_module(module: str, met: Collection[str], folders: Collection[str]) -> str:
    """The file of a *module*, a path without ending, of the project; empty for another one."""
    package = module.partition("/")[0]
    beside = ""
    for source in _SOURCES:
        path = f"{source}{module}"
        for file in (f"{path}.py", f"{path}/__init__.py"):
            if file in met:
                return file
        # In a package that is known, if it is no package itself.
        if not beside and f"{source}{package}" in folders and path not in folders:
            beside = f"{path}.py"
    return beside


def _rarity(files: Collection[str]) -> dict[str, float]:
    """Return the rarity of each word of the paths of *files* among them, at most 1."""
    names = map(_name_of, files)
    met = Counter(chain.from_iterable(name.distinct for name in names))
    most = log(1 + len(files))
    return {word: log(1 + len(files) / n) / most for word, n in met.items()}


def _share(named: Sequence[str], terms: AbstractSet[str], rarity: Mapping[str, float]) -> float:
    """The share of the words *named* that are in *terms*, by their rarity."""
    if terms.isdisjoint(named):
        return 0.0
    # In a fixed order: floating-point sums depend on it.
    shared = sum(rarity[word] for word in named if word in terms)
    return shared / sum(rarity[word] for word in named)


class _FileName(NamedTuple):
    """Words of the path of a file: of its *folders* and of its own name, each once.

    The *words* of a package are those of its folder. *distinct* are those of both.
    """

    folders: tuple[str, ...]
    words: tuple[str, ...]
    distinct: tuple[str, ...]
    ending: str
    is_package: bool


@lru_cache(1 << 14)
def _name_of(file: str) -> _FileName:
    folder, name = posixpath.split(file)
    own, ending = posixpath.splitext(name)
    is_package = own == "__init__"
    own = posixpath.basename(folder) if is_package else own
    above, named = _stems(folder), _stems(own)
    return _FileName(above, named, tuple({*above, *named}), ending, is_package)


@lru_cache(1 << 14)
def _stems(part: str) -> tuple[str, ...]:
    """Return the stems of a folder, of which most have several files, or of a name."""
    return tuple(dict.fromkeys(stems(part)))


def is_named(symbol: str, terms: Collection[str]) -> bool:
    """True where a task with the words *terms* names a function, a class or the stem of a file."""
    return len(symbol) >= _SHORTEST_NAME and symbol.lower() in terms
