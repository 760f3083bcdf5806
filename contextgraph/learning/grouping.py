"""Groups recoveries of an error that agree on a remedy, by repository and message.

Each action of a clearance supports two remedies: the action as it was done, and its pattern, which
other projects can share. Runs agree where they support the same one.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from functools import lru_cache

from contextgraph.lazy import dataclass, replace
from contextgraph.model import (
    Clearance,
    CommonRemedy,
    ErrorHistory,
    ErrorOccurrence,
    Family,
    MethodologyGroup,
    Outcome,
    RemedyAction,
    RemedyKind,
    RemedyPattern,
    TaskType,
)
from contextgraph.text import subject_of
from contextgraph.trace import Term, describe_pattern, describe_remedy, is_hazardous

# The outcome of a run weights what it did, and never filters it.
_WEIGHT = {Outcome.SOLVED: 1.0, Outcome.UNKNOWN: 0.96, Outcome.FAILED: 0.94}
# A concrete remedy is preferred to the pattern that it is a case of, where it has at least this
# part of its runs.
_CONCRETE_SHARE = 0.6
# Patterns that name nothing to do: which other one was used differs from run to run.
_VAGUE = frozenset({Term.ANOTHER_MODULE, Term.ANOTHER_NAME})


@dataclass(frozen=True, slots=True)
class ConsolidationPolicy:
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
    """The groups of *history* that have a remedy in common; each repository, then the general one.

    A keyword narrows the error where messages about one thing were cleared in one concrete way
    (`from typing import Optional`), a type of task only where all types have nothing in common.
    """
    clearances = [
        clearance
        for clearance in history.clearances
        if clearance.recovered.verified and not clearance.recovered.workaround
    ]
    return tuple(
        group
        for scope in _scopes(history, clearances, policy)
        for group in _groups_in(history, scope, policy)
    )


@dataclass(frozen=True, slots=True)
class _Scope:
    """One repository or all of them (None), with the verified clearances there."""

    repo: str | None
    occurrences: tuple[ErrorOccurrence, ...]
    clearances: Sequence[Clearance]


@dataclass(frozen=True, slots=True)
class _Key:
    """Key that two actions share if they are the same remedy: general words, or the action."""

    is_general: bool
    text: str
    kind: RemedyKind = RemedyKind.OTHER
    replaced: str = ""

    @property
    def rank(self) -> tuple[bool, str, str, str]:
        return self.is_general, self.text, self.kind, self.replaced


_Support = Sequence[tuple[Clearance, RemedyAction]]
"""Clearances, each with the action that makes it support a remedy."""


@dataclass(frozen=True, slots=True)
class _Agreement:
    """Remedies with the clearances that they cover, in their order; *keys* of the remedies."""

    remedies: tuple[CommonRemedy, ...]
    keys: tuple[_Key, ...]
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
    if _has_words(history.error.template):
        if whole.remedies:
            yield _group(history, scope, "", None, whole)
        else:
            for kind, part in _partition(
                scope.clearances, lambda clearance: clearance.task_type.value
            ):
                agreement = finder.common(part)
                if agreement.remedies:
                    yield _group(history, scope, "", TaskType(kind), agreement)
    for keyword, part in _partition(scope.clearances, _subject):
        if keyword and len(part) >= policy.min_clearances:
            agreement = finder.common(part, is_narrowed=True)
            is_new = bool(agreement.keys) and agreement.keys[0] not in whole.keys
            if is_new and _is_about(agreement.remedies[0].action, keyword):
                yield _group(history, scope, keyword, None, agreement)


@dataclass(frozen=True, slots=True)
class _RemedyFinder:
    """Finds what clearances agree on; with *is_general*, what several repositories agree on."""

    family: Family
    policy: ConsolidationPolicy
    is_general: bool

    def common(self, clearances: Sequence[Clearance], *, is_narrowed: bool = False) -> _Agreement:
        """The remedies that *clearances* have in common, the most frequent first.

        *is_narrowed*: all clear messages about one thing.
        """
        least = self.policy.min_share * len({clearance.trajectory_id for clearance in clearances})
        left, chosen = list(clearances), dict[_Key, _Support]()
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
            tuple(_common_remedy(support) for support in chosen.values()),
            tuple(chosen),
            tuple(clearance for clearance in clearances if id(clearance) in covered),
        )

    def _supported(self, clearances: Iterable[Clearance]) -> dict[_Key, _Support]:
        """Each remedy with the clearances that support it."""
        supported: dict[_Key, list[tuple[Clearance, RemedyAction]]] = {}
        for clearance in clearances:
            for key, action in dict(self._remedies(clearance)).items():
                supported.setdefault(key, []).append((clearance, action))
        return {**supported}

    def _remedies(self, clearance: Clearance) -> Iterator[tuple[_Key, RemedyAction]]:
        """Return what *clearance* supports: its actions, corrected paths, and patterns.

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
                yield _Key(True, text), action.general
            if action.kind is not RemedyKind.RESEND:
                yield _Key(False, action.target, action.kind, action.replaced), action
            for wrong, right in zip(action.values_of("from"), action.values_of("to"), strict=False):
                path = RemedyAction(RemedyKind.USE, right, action.pattern, wrong)
                yield _Key(False, right, RemedyKind.USE, wrong), path

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


@lru_cache(4096)
def _pattern_text(pattern: RemedyPattern) -> str:
    return describe_pattern(pattern)


def _best(common: Mapping[_Key, _Support]) -> _Key:
    """The remedy of most runs, or a concrete one that most of these did."""
    weights = {
        key: _weight([clearance for clearance, _ in support]) for key, support in common.items()
    }
    ranked = sorted(common, key=lambda key: (-weights[key], key.rank))
    concrete = next((key for key in ranked if not key.is_general), ranked[0])
    is_usual = weights[concrete] >= _CONCRETE_SHARE * weights[ranked[0]]
    return concrete if is_usual else ranked[0]


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


def _common_remedy(support: _Support) -> CommonRemedy:
    action = _typical([action for _, action in support])
    return CommonRemedy(
        text=describe_remedy((action,)),
        runs=len({clearance.trajectory_id for clearance, _ in support}),
        repositories=len({clearance.repo for clearance, _ in support}),
        steps=sum(clearance.steps for clearance, _ in support) / len(support),
        action=action,
    )


def _typical(actions: Sequence[RemedyAction]) -> RemedyAction:
    """The most frequent of *actions*, without its file where that is not the same in all."""
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
    agreement: _Agreement,
) -> MethodologyGroup:
    def fits(message: str, kind: TaskType) -> bool:
        return task_type in (None, kind) and (not keyword or subject_of(message) == keyword)

    clearances = [
        clearance
        for clearance in history.clearances
        if scope.repo in (None, clearance.repo) and clearance.recovered.verified
        if fits(clearance.recovered.message, clearance.task_type)
    ]
    cleared = {clearance.trajectory_id for clearance in clearances}
    met = {run.trajectory_id for run in scope.occurrences if fits(run.message, run.task_type)}
    supporting = {clearance.trajectory_id for clearance in agreement.clearances}
    longest = max(clearance.steps for clearance in agreement.clearances)
    as_fast = {clearance.trajectory_id for clearance in clearances if clearance.steps <= longest}
    return MethodologyGroup(
        error=history.error,
        keyword=keyword,
        task_type=task_type,
        repo=scope.repo,
        met=len(met | cleared),
        cleared=len(cleared),
        otherwise=len(as_fast - supporting),
        remedies=agreement.remedies,
        clearances=agreement.clearances,
    )


def _subject(clearance: Clearance) -> str:
    return subject_of(clearance.recovered.message)


def _has_words(template: str) -> bool:
    """False for a template that consists of placeholders, which errors of all kinds share."""
    bare = "".join("" if part.startswith("<") else part for part in template.split())
    return any(letter.isalpha() for letter in bare)
