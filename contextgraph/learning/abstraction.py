"""Methodologies: remedies that runs agree on, by repository and message, merged and worded.

Each action of a clearance supports two remedies: the action as it was done, and its pattern, which
other projects can share. Runs agree where they support the same one.
"""

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from functools import lru_cache, partial
from hashlib import blake2b
from itertools import chain, combinations, groupby
from operator import attrgetter

from msgspec import Struct, field
from msgspec.structs import asdict

from contextgraph.advising.channels import has_words
from contextgraph.advising.counts import Tasks
from contextgraph.advising.gate import Credits, credits_for, least_lift, wilson
from contextgraph.errors import EmbeddingError, MissingExtraError, RemoteError
from contextgraph.inference.answering import Answerer
from contextgraph.inference.spaces import Lease
from contextgraph.inference.summarizer import (
    USUAL_ANSWER_TOKENS,
    request_about,
    reword,
    template_summary,
    worded_by,
)
from contextgraph.model import (
    NO_USAGE,
    Clearance,
    CommonRemedy,
    ErrorHistory,
    ErrorOccurrence,
    Family,
    Methodology,
    MethodologyGroup,
    MethodologyStatus,
    ModelWording,
    Outcome,
    RemedyAction,
    RemedyKind,
    RemedyPattern,
    ResolvedBy,
    SimilarTo,
    Source,
    StepReport,
    TaskType,
    Usage,
    Vector,
    WordingPlan,
    cosines,
    is_fitted,
    vouches,
)
from contextgraph.model.values import batched, replace
from contextgraph.store.memory_store import Store, id_pages
from contextgraph.store.protocols import EmbedderSource
from contextgraph.text import count_tokens, dice, subject_of, words
from contextgraph.trace import (
    RemedyKey,
    Term,
    describe_pattern,
    describe_remedy,
    is_hazardous,
    remedy_key,
)

# The outcome of a run weights what it did, and never filters it.
_WEIGHT = {Outcome.SOLVED: 1.0, Outcome.UNKNOWN: 0.96, Outcome.FAILED: 0.94}
# A concrete remedy is preferred to the pattern that it is a case of, where it has at least this
# part of its runs.
_CONCRETE_SHARE = 0.6
# Patterns that name nothing to do: which other one was used differs from run to run.
_VAGUE = frozenset({Term.ANOTHER_MODULE, Term.ANOTHER_NAME})


class ConsolidationPolicy(Struct, frozen=True):
    """When consolidation is due, what counts as evidence, and what is merged or removed.

    It is due every *interval* learned runs. Of an error the newest *window* runs
    are evidence. A remedy needs *min_clearances* from *min_runs*, in general advice from
    *min_repositories*, and at least *min_share* of the runs that cleared the error; the
    *max_remedies* most frequent ones make a methodology. Two methodologies are merged from
    *similarity_threshold* on (0 to 1), and separated again below *separation_threshold*.

    Of the failed attempts at an error the newest *max_failed_fragments* stay. A methodology below
    *min_confidence* from fewer than *min_sources* is retired after *probation_exposures*.

    After learning, requests to a language model start within *rewording_time*.
    """

    interval: int = 16
    window: int = 400
    min_clearances: int = 3
    min_runs: int = 2
    min_repositories: int = 2
    min_share: float = 0.08
    max_remedies: int = 3
    similarity_threshold: float = 0.9
    separation_threshold: float = 0.8
    max_failed_fragments: int = 1000
    min_confidence: float = 0.3
    min_sources: int = 3
    probation_exposures: int = 8
    rewording_time: timedelta = timedelta(seconds=30)


def groups_of(history: ErrorHistory, policy: ConsolidationPolicy) -> tuple[MethodologyGroup, ...]:
    """Return groups of *history* with a common remedy: each repository, then the general one.

    A keyword narrows the error where messages about one thing were cleared in one concrete way
    (`from typing import Optional`), a type of task only where all types have nothing in common.
    """
    clearances = [
        clearance
        for clearance in history.clearances
        if clearance.recovered.verified
        and not clearance.recovered.workaround
        # What a clone says is for its repository alone, and a methodology may be for all.
        and vouches(clearance.contributor, clearance.repo, "")
    ]
    return tuple(
        group
        for scope in _scopes(history, clearances, policy)
        for group in _groups_in(history, scope, policy)
    )


class _Scope(Struct, frozen=True):
    """One repository or all of them (None), with the verified clearances there."""

    repo: str | None
    occurrences: tuple[ErrorOccurrence, ...]
    clearances: Sequence[Clearance]


_Support = Sequence[tuple[Clearance, RemedyAction]]
"""Clearances, each with the action that makes it support a remedy."""


class _Agreement(Struct, frozen=True):
    """What supports each remedy, in their order, and the clearances that they cover."""

    support: Mapping[RemedyKey, _Support]
    clearances: tuple[Clearance, ...]


def _scopes(
    history: ErrorHistory, clearances: Sequence[Clearance], policy: ConsolidationPolicy
) -> Iterator[_Scope]:
    """The repositories that have enough clearances, then all together."""
    for repo, part in _partition(clearances, lambda clearance: clearance.repo):
        if repo and len(part) >= policy.min_clearances:
            occurrences = tuple(run for run in history.occurrences if run.repo == repo)
            yield _Scope(repo, occurrences, part)
    if len(clearances) >= policy.min_clearances:
        yield _Scope(None, history.occurrences, clearances)


def _groups_in(
    history: ErrorHistory, scope: _Scope, policy: ConsolidationPolicy
) -> Iterator[MethodologyGroup]:
    finder = _RemedyFinder(history.error.family, policy, is_general=scope.repo is None)
    whole = finder.common(scope.clearances)
    if has_words(history.error.template):
        if whole.support:
            yield _group(history, scope, "", None, finder, whole)
        else:
            for kind, part in _partition(
                scope.clearances, lambda clearance: clearance.task_type.value
            ):
                agreement = finder.common(part)
                if agreement.support:
                    yield _group(history, scope, "", TaskType(kind), finder, agreement)
    for keyword, part in _partition(scope.clearances, _subject):
        if keyword and len(part) >= policy.min_clearances:
            agreement = finder.common(part, is_narrowed=True)
            first = next(iter(agreement.support), None)
            if first is None or first in whole.support:
                continue
            if _is_about(_typical(agreement.support[first]), keyword):
                yield _group(history, scope, keyword, None, finder, agreement)


class _RemedyFinder(Struct, frozen=True):
    """Finds what clearances agree on; with *is_general*, what several repositories agree on."""

    family: Family
    policy: ConsolidationPolicy
    is_general: bool
    # Patterns with the same wording are one remedy here: the words are what is advised.
    _worded: dict[str, RemedyKey] = field(default_factory=dict)

    def common(self, clearances: Sequence[Clearance], *, is_narrowed: bool = False) -> _Agreement:
        """Return remedies that *clearances* have in common, the most frequent first.

        *is_narrowed*: all cleared messages are about one thing.
        """
        least = self.policy.min_share * len({clearance.trajectory_id for clearance in clearances})
        left, chosen = list(clearances), dict[RemedyKey, _Support]()
        while len(chosen) < self.policy.max_remedies:
            common = {
                key: support
                for key, support in self._supported(left).items()
                if self._is_enough([clearance for clearance, _ in support], least)
                and (is_narrowed or _is_for_any_subject(support))
            }
            if not common:
                break
            best = _best(common)
            chosen[best] = common[best]
            done = {id(clearance) for clearance, _ in common[best]}
            left = [clearance for clearance in left if id(clearance) not in done]
        covered = {id(clearance) for support in chosen.values() for clearance, _ in support}
        return _Agreement(
            chosen,
            tuple(clearance for clearance in clearances if id(clearance) in covered),
        )

    def tasks(self, clearances: Iterable[Clearance]) -> Tasks:
        """Return what the tasks of *clearances* did, as what runs agree on and as it was done."""
        tasks = Tasks()
        for clearance in clearances:
            keys = (remedy_key(clearance.recovered.actions), *dict(self._remedies(clearance)))
            tasks.add((clearance.instance_id,), chain.from_iterable(keys))
        return tasks

    def _supported(self, clearances: Iterable[Clearance]) -> dict[RemedyKey, _Support]:
        """Each remedy with the clearances that support it."""
        supported: dict[RemedyKey, list[tuple[Clearance, RemedyAction]]] = {}
        for clearance in clearances:
            for key, action in dict(self._remedies(clearance)).items():
                supported.setdefault(key, []).append((clearance, action))
        return {**supported}

    def _remedies(self, clearance: Clearance) -> Iterator[tuple[RemedyKey, RemedyAction]]:
        """Yield what *clearance* supports: its actions, corrected paths, and patterns.

        Only another try clears a time-out itself; after any other error another try teaches
        nothing. Of an edit that is sent again the lines differ from file to file.
        """
        for action in clearance.recovered.actions:
            if is_hazardous((action,)):
                continue
            if (action.kind is RemedyKind.RETRY) is not (self.family is Family.TIMEOUT):
                continue
            text = _pattern_text(action.pattern)
            if text and action.pattern.target not in _VAGUE:
                key = self._worded.setdefault(text, remedy_key([action.pattern]))
                yield key, action.general
            if action.kind is not RemedyKind.RESEND:
                yield _concrete(action), action
            for wrong, right in zip(action.values_of("from"), action.values_of("to"), strict=False):
                path = RemedyAction(RemedyKind.USE, right, action.pattern, wrong)
                yield _concrete(path), path

    def _is_enough(self, clearances: Sequence[Clearance], least_runs: float) -> bool:
        policy = self.policy
        return (
            len(clearances) >= policy.min_clearances
            and len({clearance.trajectory_id for clearance in clearances})
            >= max(policy.min_runs, least_runs)
            and (
                not self.is_general
                or len({clearance.repo for clearance in clearances}) >= policy.min_repositories
            )
        )


def _concrete(action: RemedyAction) -> RemedyKey:
    """Return the key of *action* as it was done, whatever its pattern."""
    return remedy_key([RemedyPattern(action.kind, action.target, action.replaced)])


@lru_cache(4096)
def _pattern_text(pattern: RemedyPattern) -> str:
    return describe_pattern(pattern)


def _best(common: Mapping[RemedyKey, _Support]) -> RemedyKey:
    """The remedy of most runs, or a concrete one that most of these did."""
    weights = {
        key: _weight([clearance for clearance, _ in support]) for key, support in common.items()
    }
    ranked = sorted(
        common, key=lambda key: (-weights[key], _is_general(common[key]), key[0].target)
    )
    concrete = next((key for key in ranked if not _is_general(common[key])), ranked[0])
    is_usual = weights[concrete] >= _CONCRETE_SHARE * weights[ranked[0]]
    return concrete if is_usual else ranked[0]


def _is_general(support: _Support) -> bool:
    return support[0][1].is_general


def _is_for_any_subject(support: _Support) -> bool:
    """False for what cleared messages about one thing only: `PyYAML` is not for any module.

    That is advice where the error is narrowed to messages about this thing.
    """
    subjects = {_subject(clearance) for clearance, _ in support}
    if len(subjects) > 1 or subjects == {""}:
        return True
    return not any(_is_about(action, subject) for _, action in support for subject in subjects)


def _is_about(remedy: RemedyAction, subject: str) -> bool:
    """True for an action as it was done, and for a pattern that names the *subject*."""
    pattern = remedy.pattern
    return not remedy.is_general or subject in (pattern.target, pattern.replaced)


def _weight(clearances: Sequence[Clearance]) -> float:
    outcomes = {clearance.trajectory_id: clearance.outcome for clearance in clearances}
    return sum(_WEIGHT[outcome] for outcome in outcomes.values())


def _common_remedy(support: _Support, tasks: int, cleared: int) -> CommonRemedy:
    action = _typical(support)
    return CommonRemedy(
        text=describe_remedy((action,)),
        tasks=tasks,
        cleared=cleared,
        repositories=len({clearance.repo for clearance, _ in support}),
        steps=sum(clearance.steps for clearance, _ in support) / len(support),
        action=action,
    )


def _typical(support: _Support) -> RemedyAction:
    """The most frequent action of *support*, without its file where that is not always the same."""
    actions = [action for _, action in support]
    counts = Counter(actions)
    action = min(counts, key=lambda action: (-counts[action], action.pattern, action.parameters))
    if len({action.values_of("file") for action in actions}) > 1:
        rest = tuple(pair for pair in action.parameters if pair[0] != "file")
        action = replace(action, parameters=rest)
    return action


def _partition(
    clearances: Iterable[Clearance], key: Callable[[Clearance], str]
) -> list[tuple[str, list[Clearance]]]:
    parts: dict[str, list[Clearance]] = {}
    for clearance in clearances:
        parts.setdefault(key(clearance), []).append(clearance)
    return sorted(parts.items())


def _group(
    history: ErrorHistory,
    scope: _Scope,
    keyword: str,
    task_type: TaskType | None,
    finder: _RemedyFinder,
    agreement: _Agreement,
) -> MethodologyGroup:
    def fits(message: str, kind: TaskType) -> bool:
        return task_type in (None, kind) and (not keyword or subject_of(message) == keyword)

    clearances = [
        clearance
        for clearance in history.clearances
        if scope.repo in (None, clearance.repo)
        if fits(clearance.recovered.message, clearance.task_type)
    ]
    tasks = finder.tasks(clearances)
    clearances = [clearance for clearance in clearances if clearance.recovered.verified]
    cleared = {clearance.instance_id for clearance in clearances}
    met = {run.instance_id for run in scope.occurrences if fits(run.message, run.task_type)}
    supporting = {clearance.instance_id for clearance in agreement.clearances}
    longest = max(clearance.steps for clearance in agreement.clearances)
    as_fast = {clearance.instance_id for clearance in clearances if clearance.steps <= longest}
    return MethodologyGroup(
        error=history.error,
        keyword=keyword,
        task_type=task_type,
        repo=scope.repo,
        met=len(met | cleared),
        cleared=len(cleared),
        otherwise=len(as_fast - supporting),
        remedies=tuple(
            _common_remedy(support, tasks.that_did(key), len(tasks.cleared))
            for key, support in agreement.support.items()
        ),
        clearances=agreement.clearances,
    )


def _subject(clearance: Clearance) -> str:
    return subject_of(clearance.recovered.message)


Derived = tuple[MethodologyGroup, Methodology]
"""The abstraction of a methodology from what runs have in common."""

# Read together and written in one transaction: other writers wait no longer than for these.
BATCH = 32


class StepCounts(Struct):
    """Progress of one step."""

    examined: int = 0
    created: int = 0
    updated: int = 0
    removed: int = 0


class Counts(Struct):
    """The counts of one consolidation: by step, and the trajectories that were new."""

    trajectories: int = 0
    embed: StepCounts = field(default_factory=StepCounts)
    abstract: StepCounts = field(default_factory=StepCounts)
    merge: StepCounts = field(default_factory=StepCounts)
    statistics: StepCounts = field(default_factory=StepCounts)
    clean_up: StepCounts = field(default_factory=StepCounts)
    word: StepCounts = field(default_factory=StepCounts)

    def reports(self) -> tuple[StepReport, ...]:
        """Return the reports of steps, in their order."""
        steps = asdict(self)
        del steps["trajectories"]
        return tuple(
            StepReport(name.replace("_", " "), **asdict(step)) for name, step in steps.items()
        )


class Changes(Struct):
    """Changes to write in one transaction."""

    methodologies: list[Methodology] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    resolved: list[ResolvedBy] = field(default_factory=list)
    similar: list[SimilarTo] = field(default_factory=list)

    def write(self, store: Store) -> int:
        """Write it; how many similarities between fragments were new."""
        if not (self.methodologies or self.removed or self.resolved or self.similar):
            return 0
        return store.methodologies.put(
            self.methodologies, self.removed, self.resolved, self.similar
        )


def resolved_by(methodology: Methodology, survivor_id: str) -> ResolvedBy:
    """Return the edge from an error to the *methodology* that resolves it, with its statistics."""
    return ResolvedBy(
        error_id=methodology.error_id,
        methodology_id=survivor_id,
        success_rate=methodology.success_rate,
        avg_steps=methodology.avg_steps,
        support=methodology.support,
    )


_DIGITS = 4
_ALL_HOPS = 1_000


def credit_of_methodologies(store: Store, ids: Iterable[str]) -> Credits:
    """Return the credit of the methodologies *ids*, which does not depend on the others."""
    return credits_for(store, ids, attrgetter("id"), hops=_ALL_HOPS)


def measured(methodology: Methodology, group: MethodologyGroup, known: Credits) -> Methodology:
    """Return *methodology* with its statistics from *group* and its credit."""
    credit = known.of(methodology.id)
    support, never = methodology.support, group.met - group.cleared
    # Runs that never cleared the error may have tried this remedy: they count against it and
    # against the base rate. Support and the times it was shown are both evidence.
    worked, tried = support + credit.helped, support + credit.helped + never + credit.failed
    lift = least_lift(worked, tried, group.otherwise, group.cleared - support + never)
    steps = [clearance.steps for clearance in group.clearances]
    instances = {clearance.instance_id for clearance in group.clearances}
    sources = {clearance.contributor for clearance in group.clearances} - known.distrusted
    is_active = known.is_active(len(instances), sources)
    is_silenced = known.is_silenced(methodology.id, sources) or not sources
    return replace(
        methodology,
        status=_status_of(lift, is_silenced=is_silenced, is_active=is_active),
        confidence=round(wilson(worked, tried)[0], _DIGITS),
        success_rate=round(support / (support + never), _DIGITS),
        avg_steps=round(sum(steps) / len(steps), _DIGITS),
        success_count=credit.helped,
        failure_count=credit.failed,
    )


def _status_of(lift: float, *, is_silenced: bool, is_active: bool) -> MethodologyStatus:
    if is_silenced:
        return MethodologyStatus.QUARANTINED
    return MethodologyStatus.ACTIVE if is_active and lift > 0 else MethodologyStatus.PROBATION


_CONTENT = ("situation", "strategy", "words", "sources", "remedies")


class _Known(Struct, frozen=True):
    """Methodologies that are stored already, and those that superseded them, by id."""

    before: Mapping[str, Methodology]
    survivors: Mapping[str, Methodology]

    def survivor_of(self, methodology: Methodology) -> Methodology:
        """Return what superseded *methodology*; itself where nothing did."""
        return self.survivors.get(methodology.superseded_by or "", methodology)


class Abstraction(Struct, frozen=True):
    """Makes methodologies of what histories have in common, and gathers what changed."""

    store: Store
    policy: ConsolidationPolicy
    similarity: "Similarity"

    def of_errors(self, error_ids: Sequence[str], counts: Counts) -> Changes:
        """Derive new, changed and removed methodologies of these errors; add to *counts*."""
        changes = Changes()
        histories = self.store.recoveries.histories(error_ids, self.policy.window)
        known = self._known([history.error.id for history in histories])
        groups = [group for history in histories for group in groups_of(history, self.policy)]
        self._compare(self._derived(groups, known), known, changes, counts)
        for history in histories:
            counts.abstract.examined += len(history.clearances)
            changes.similar += similar_fragments(history.error.id, history.clearances, self.policy)
        counts.merge.examined += len(changes.similar)
        return changes

    def derive(self, error_ids: Sequence[str]) -> Iterator[Derived]:
        """Yield all that would be stored for these errors."""
        for batch in batched(error_ids, BATCH):
            histories = self.store.recoveries.histories(batch, self.policy.window)
            known = self._known(batch)
            groups = [group for history in histories for group in groups_of(history, self.policy)]
            yield from self._derived(groups, known)

    def _known(self, error_ids: Sequence[str]) -> _Known:
        before = self.store.methodologies.get(errors=error_ids)
        gone = sorted(
            {methodology.superseded_by for methodology in before if methodology.superseded_by}
        )
        survivors = self.store.methodologies.get(gone) if gone else ()
        return _Known(
            {methodology.id: methodology for methodology in before},
            {survivor.id: survivor for survivor in survivors},
        )

    def _derived(self, groups: Sequence[MethodologyGroup], known: _Known) -> list[Derived]:
        """The methodology of each of *groups*, worded and retired as before."""
        made = [(group, _methodology(group)) for group in groups]
        credit = credit_of_methodologies(self.store, (methodology.id for _, methodology in made))
        new = [(group, measured(methodology, group, credit)) for group, methodology in made]
        self.similarity.prepare(
            methodology
            for _, now in new
            if (before := known.before.get(now.id)) and before.superseded_by
            for methodology in (now, known.survivor_of(before))
        )
        return [(group, self._as_before(methodology, known)) for group, methodology in new]

    def _as_before(self, now: Methodology, known: _Known) -> Methodology:
        """*now* with the words for the same remedies, and still retired for the same reason.

        What was merged stays so while both are nearly as similar as they had to be for that: the
        similarity varies a little with each fitting of the embedding space.
        """
        before = known.before.get(now.id)
        if before is not None and before.remedies == now.remedies:
            now = replace(now, words=before.words)
        if before is None or before.status is not MethodologyStatus.RETIRED:
            return now
        if before.superseded_by is None:
            return before
        survivor = known.survivor_of(before)
        similarity = self.similarity.of(now, survivor)
        if survivor is before or similarity < self.policy.separation_threshold:
            return now
        return replace(now, status=before.status, superseded_by=before.superseded_by)

    def _compare(
        self, derived: Iterable[Derived], known: _Known, changes: Changes, counts: Counts
    ) -> None:
        not_derived = dict(known.before)
        for _, now in derived:
            before = not_derived.pop(now.id, None)
            counts.statistics.examined += 1
            if now == before:
                continue
            changes.methodologies.append(now)
            if before is None:
                counts.abstract.created += 1
            elif any(getattr(now, name) != getattr(before, name) for name in _CONTENT):
                counts.abstract.updated += 1
            else:
                counts.statistics.updated += 1
            survivor = known.survivor_of(now)
            if survivor.status is not MethodologyStatus.RETIRED:
                changes.resolved.append(resolved_by(now, survivor.id))
        gone = [
            methodology.id for methodology in not_derived.values() if not _is_tombstone(methodology)
        ]
        changes.removed += gone
        counts.abstract.removed += len(gone)


def methodology_id(
    error_id: str, keyword: str, task_type: TaskType | None, repo: str | None
) -> str:
    """Return the id of a methodology for an error (narrowed by *keyword*), type of task, scope.

    It does not depend on the wording.
    """
    scope = "" if repo is None else f"repo:{repo}"
    parts = (error_id, keyword, task_type or "", scope)
    encoded = b"\x1f".join(part.encode("utf-8", "surrogatepass") for part in parts)
    return f"mth_{blake2b(encoded, digest_size=12).hexdigest()}"


def _methodology(group: MethodologyGroup) -> Methodology:
    """Word what *group* teaches by the template; it is not measured yet."""
    summary = template_summary(group)
    sources = {clearance.source for clearance in group.clearances}
    return Methodology(
        id=methodology_id(group.error.id, group.keyword, group.task_type, group.repo),
        error_id=group.error.id,
        keyword=group.keyword,
        task_type=group.task_type,
        repo=group.repo,
        situation=summary.situation,
        strategy=summary.strategy,
        made_by=summary.made_by,
        status=MethodologyStatus.PROBATION,
        confidence=0.0,
        support=len({clearance.instance_id for clearance in group.clearances}),
        repositories=len({clearance.repo for clearance in group.clearances}),
        success_rate=0.0,
        avg_steps=0.0,
        frequency=group.met,
        sources=tuple(sorted(sources)),
        remedies=tuple(remedy.action for remedy in group.remedies),
    )


def _is_tombstone(methodology: Methodology) -> bool:
    """True for what was retired for good, so that it does not come up again."""
    return methodology.status is MethodologyStatus.RETIRED and methodology.superseded_by is None


class Similarity:
    """The similarity of the advice of two methodologies, 0 to 1, by words and by vectors.

    Each text is split and embedded once; `prepare` embeds those of many methodologies together.
    Only vectors of the memory's own TF-IDF space are used: others have no threshold.
    """

    def __init__(self, embedder: EmbedderSource) -> None:
        self._embedder = embedder
        self._words: dict[str, frozenset[str]] = {}
        self._vectors: dict[str, Vector | None] = {}

    def prepare(self, methodologies: Iterable[Methodology]) -> None:
        """Embed what *methodologies* advise, in one request."""
        texts = {text for methodology in methodologies for text in _texts(methodology)}
        new = sorted(texts - self._vectors.keys())
        if new:
            self._vectors.update(zip(new, self._embedded(new), strict=True))

    def of(self, methodology: Methodology, other: Methodology) -> float:
        """Return the lesser similarity: that of all remedies, or that of the first ones.

        Each is the greater of Dice's coefficient and the cosine. The same remedies in another order
        are other advice. With different keywords, they are similar only if they follow from the
        same clearances.
        """
        if methodology.remedies == other.remedies or _are_twins(methodology, other):
            return 1.0
        if methodology.keyword != other.keyword:
            return 0.0
        self.prepare((methodology, other))
        pairs = zip(_texts(methodology), _texts(other), strict=True)
        return min(max(self._dice(a, b), self._cosine(a, b)) for a, b in pairs)

    def _dice(self, first: str, second: str) -> float:
        for text in (first, second):
            if text not in self._words:
                self._words[text] = frozenset(words(text))
        return dice(self._words[first], self._words[second])

    def _cosine(self, text: str, other: str) -> float:
        first, second = self._vectors[text], self._vectors[other]
        return cosines(first, [second])[0] if first and second else 0.0

    def _embedded(self, texts: Sequence[str]) -> Sequence[Vector | None]:
        try:
            embedder = self._embedder()
            if embedder is not None and is_fitted(embedder.space):
                return embedder.embed(texts).vectors
        except EmbeddingError:
            pass  # the words decide; the next consolidation compares again
        return [None] * len(texts)


def _texts(methodology: Methodology) -> tuple[str, str]:
    """All remedies of *methodology* in words, and the first one."""
    texts = [describe_remedy((remedy,)) for remedy in methodology.remedies]
    return "\n".join(texts), texts[0] if texts else ""


def merge(
    store: Store,
    error_ids: Sequence[str],
    policy: ConsolidationPolicy,
    similarity: Similarity,
    lease: Lease,
    counts: StepCounts,
) -> None:
    """Let the better supported of two similar methodologies replace the other for its errors.

    Compared are those of errors of the types of *error_ids*.
    """
    seen: set[str] = set()
    for batch in batched(error_ids, BATCH):
        changes = Changes()
        of_types = store.methodologies.of_types(batch)
        new = [
            known
            for known in of_types
            if not seen.issuperset(methodology.id for methodology in known)
        ]
        similarity.prepare(
            methodology for known in new for methodology in known if _is_alive(methodology)
        )
        for known in new:
            seen.update(methodology.id for methodology in known)
            counts.examined += len(known)
            counts.removed += _merge(known, policy, similarity, changes)
        lease.check()
        changes.write(store)


def _merge(
    known: Sequence[Methodology],
    policy: ConsolidationPolicy,
    similarity: Similarity,
    changes: Changes,
) -> int:
    """Add to *changes* which of those *known* of one type of error are replaced; how many are."""
    pairs = list(_duplicates(known, policy, similarity))
    for stays, goes in pairs:
        # What that one had itself replaced follows on.
        for methodology in (goes, *(merged for merged in known if merged.superseded_by == goes.id)):
            retired = replace(methodology, status=MethodologyStatus.RETIRED, superseded_by=stays.id)
            changes.methodologies.append(retired)
            changes.resolved.append(resolved_by(methodology, stays.id))
    return len(pairs)


def _duplicates(
    methodologies: Sequence[Methodology], policy: ConsolidationPolicy, similarity: Similarity
) -> Iterator[tuple[Methodology, Methodology]]:
    """(the one that stays, the one that goes) of those of one scope and type of task.

    The better supported stays, of equal ones that of a keyword, which is concrete; ties by id.
    """
    gone: set[str] = set()
    for _, group in groupby(sorted(filter(_is_alive, methodologies), key=_scope), key=_scope):
        ranked = sorted(group, key=lambda one: (-one.support, not one.keyword, one.id))
        for stays, goes in combinations(ranked, 2):
            if (
                gone.isdisjoint((stays.id, goes.id))
                and similarity.of(stays, goes) >= policy.similarity_threshold
            ):
                gone.add(goes.id)
                yield stays, goes


def _is_alive(methodology: Methodology) -> bool:
    return methodology.status is not MethodologyStatus.RETIRED


def _scope(methodology: Methodology) -> tuple[str, str]:
    return methodology.repo or "", methodology.task_type or ""


def _are_twins(methodology: Methodology, other: Methodology) -> bool:
    """Return whether both say the same of the same clearances, one of them for a keyword alone."""
    patterns, others = ([remedy.pattern for remedy in one.remedies] for one in (methodology, other))
    return patterns == others and methodology.sources == other.sources


def similar_fragments(
    error_id: str, clearances: Iterable[Clearance], policy: ConsolidationPolicy
) -> Iterator[SimilarTo]:
    """Yield each fragment with the newest one of its repository with the same clearance.

    *clearances* are the newest first.
    """
    by_repo: dict[str, list[Clearance]] = {}
    for clearance in clearances:
        by_repo.setdefault(clearance.repo, []).append(clearance)
    similar = {
        source: SimilarTo(error_id, source, head, weight)
        for in_repo in by_repo.values()
        for source, head, weight in _with_heads(in_repo, policy.similarity_threshold)
    }
    yield from similar.values()


def _with_heads(
    clearances: Sequence[Clearance], threshold: float
) -> Iterator[tuple[Source, Source, float]]:
    """Each fragment, its representative and their similarity."""
    if len(clearances) == 1:
        yield clearances[0].source, clearances[0].source, 1.0
        return
    heads: list[tuple[Source, frozenset[str]]] = []
    for clearance in clearances:
        own = frozenset(words(describe_remedy(clearance.recovered.actions)))
        weight, head = max(
            ((_close(own, of_head), head) for head, of_head in heads),
            key=lambda weighted: weighted[0],
            default=(0.0, clearance.source),
        )
        if weight < threshold:
            weight, head = 1.0, clearance.source
            heads.append((head, own))
        yield clearance.source, head, round(weight, 4)


def _close(first: frozenset[str], second: frozenset[str]) -> float:
    """Their coefficient, 0 where their sizes already show that it is small."""
    shorter, longer = sorted((len(first), len(second)))
    return dice(first, second) if 2 * shorter > longer else 0.0


# Requests at the same time, and answers written together: a killed process loses no more of them.
_PARALLEL = 4
_BATCH = 8


class RewordingResult(Struct):
    """Usage of the requests, the number of methodologies that wait, and why.

    Once there is a *reason*, no further request is sent. *unusable* counts answers that were
    rejected and are not requested again, *fault* is what was wrong with one of them.
    """

    usage: Usage = NO_USAGE
    waiting: int = 0
    reason: str = ""
    unusable: int = 0
    fault: str = ""

    def add(self, answer: ModelWording | str) -> None:
        """Count an answer, or the reason why there is none."""
        if isinstance(answer, str):
            self.waiting += 1
            self.reason = answer
            return
        self.usage += answer.usage
        if not answer.words:
            self.unusable += 1
            self.fault = answer.reason


class Wordings(Struct, frozen=True):
    """The methodologies of *store* in the words of models."""

    store: Store
    derive: Callable[[Sequence[str]], Iterator[Derived]]

    def waiting(self, model: str, error_ids: Collection[str] | None = None) -> Iterator[Derived]:
        """Yield methodologies that *model* has not worded as they are now, with what to word.

        Only those of the errors *error_ids*, if given.
        """
        known = self.errors(model) if error_ids is None else error_ids
        for derived in self.derive(sorted(known)):
            if _needs_words(derived[1], model):
                yield derived

    def errors(self, model: str) -> set[str]:
        """Return the errors of all methodologies that need words of *model*."""
        return {
            methodology.error_id
            for ids in id_pages(self.store.methodologies, BATCH)
            for methodology in self.store.methodologies.get(ids)
            if _needs_words(methodology, model)
        }

    def keep(self, batch: Sequence[Derived], answers: Sequence[ModelWording | str]) -> int:
        """Store the words for a batch; return how many methodologies were reworded.

        Where remedies were changed or removed meanwhile, the answer is of no use.
        """
        stored = {
            methodology.id: methodology
            for methodology in self.store.methodologies.get([m.id for _, m in batch])
        }
        changed = [
            replace(now, words=answer.words)
            for (_, planned), answer in zip(batch, answers, strict=True)
            if not isinstance(answer, str)
            and (now := stored.get(planned.id)) is not None
            and now.remedies == planned.remedies
        ]
        if changed:
            self.store.methodologies.put(changed)
        return len(changed)


def _needs_words(methodology: Methodology, model: str) -> bool:
    """Return True where *model* has not answered yet for the remedies as they are now."""
    words = methodology.words
    is_retired = methodology.status is MethodologyStatus.RETIRED
    return not is_retired and (words is None or words.model != model)


class Rewriter(Struct, frozen=True):
    """Lets *model* reword the methodologies that are not in its words."""

    wordings: Wordings
    model: Answerer

    def plan(self) -> WordingPlan:
        """Return what a consolidation would send now, at most: merging may leave less."""
        changed = self.wordings.store.admin.unconsolidated().error_ids
        usage, prompts, name = NO_USAGE, [], worded_by(self.model.name)
        for group, _ in self._todo({*changed, *self.wordings.errors(name)}):
            prompts.append(request_about(group))
            sent, answered = count_tokens(prompts[-1]), USUAL_ANSWER_TOKENS
            usage += Usage(1, sent + answered, self.model.cost(sent, answered))
        return WordingPlan(name, tuple(prompts), usage)

    def reword(
        self,
        lease: Lease,
        counts: StepCounts,
        of_changed: Sequence[str],
        within: timedelta | None = None,
    ) -> RewordingResult:
        """Reword all methodologies that need it.

        With *within*, only those of the errors *of_changed*, and no request starts after that time.
        """
        result = RewordingResult()
        started, limit = time.monotonic(), None if within is None else within.total_seconds()
        todo = self._todo(None if limit is None else of_changed)
        for batch in batched(todo, _BATCH):
            if not result.reason and limit is not None and time.monotonic() - started > limit:
                result.reason = "learning does not wait for a model any longer"
            answers = self._answers(batch, result.reason, interactive=limit is not None)
            for answer in answers:
                result.add(answer)
            lease.check()
            counts.examined += len(batch)
            counts.updated += self.wordings.keep(batch, answers)
        return result

    def _todo(self, error_ids: Collection[str] | None = None) -> Iterator[Derived]:
        return self.wordings.waiting(worded_by(self.model.name), error_ids)

    def _answers(
        self, batch: Sequence[Derived], reason: str, *, interactive: bool
    ) -> list[ModelWording | str]:
        """The answers for *batch*, or why there is none; no request is sent with a *reason*."""

        ask = partial(self.model, interactive=interactive)

        def answer_or_reason(derived: Derived) -> ModelWording | str:
            try:
                return reason or reword(derived[0], self.model.name, ask)
            except (RemoteError, MissingExtraError) as error:
                return str(error)

        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(_PARALLEL) as pool:
            return list(pool.map(answer_or_reason, batch))
